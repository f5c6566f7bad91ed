"""A guard in front of the tools of an agent of the OpenAI Agents SDK (``openai-agents``).

The guard checks a call where the tool is invoked, inside everything else that the SDK runs around the tool, with the
arguments that the tool gets. A call that waits for people interrupts the run, as the SDK's own ``needs_approval`` does.
An approval in the SDK does not allow the call; it only makes the guard check the call again.
"""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any
from weakref import ref

from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.text import show
from adjudge.guards.tool_guard.arguments import read_arguments
from adjudge.guards.tool_guard.call import ToolCall, ToolVerdict, shorten_id
from adjudge.guards.tool_guard.guard import NOT_CHECKED, WITHHELD, ToolGuard
from adjudge.hooks import logger

try:
    from agents import (
        Agent,
        FunctionTool,
        GuardrailFunctionOutput,
        Handoff,
        InputGuardrail,
        OutputGuardrail,
        RunContextWrapper,
        RunState,
        Tool,
        ToolSearchTool,
    )
    from agents.tool_context import ToolContext
    from pydantic import BaseModel
except ModuleNotFoundError as error:
    if error.name != "agents":  # it is installed, and lacks something of its own
        raise
    message = "adjudge.integrations.openai_agents needs openai-agents; to have it, pip install openai-agents"
    raise ModuleNotFoundError(message, name=error.name) from None

__all__ = ["FindRun", "answer_interruptions", "guard_agent"]

FindRun = Callable[[RunContextWrapper[Any]], str]
"""Names the run of a call, from the context of the SDK; the same name when the run is resumed."""

_CACHE_SECONDS = 60.0

_MOST_CACHED = 1_000


# ---------------------------------------------------------------- checks of calls


@dataclass(frozen=True, slots=True)
class _CachedVerdict:
    """A verdict of the guard that is kept from the SDK's first question about a call for its second."""

    usage: object
    """The usage of the run, by which the run is known."""
    verdict: ToolVerdict
    expires_at: float
    """The time of the monotonic clock after which it is not used."""


class _GuardedCalls:
    """The guard's checks of the tool calls of some agents.

    The SDK asks about one call twice: first if it needs approval, and then when the tool is invoked. The verdict of the
    first question is kept for the second, so that a judge is paid once and cannot answer differently. If the verdict is
    no longer there, the guard is asked again.
    """

    def __init__(
        self,
        guard: ToolGuard,
        *,
        run_id: str | FindRun,
        cwd: str | None,
        media: Collection[str],
        hosted: Collection[str],
    ) -> None:
        self.guard = guard
        self.media = frozenset(media)
        self.hosted = frozenset(hosted)
        self._run_id = run_id
        self._cwd = cwd
        self._kept: OrderedDict[str, _CachedVerdict] = OrderedDict()

    def find_run(self, context: RunContextWrapper[Any]) -> str:
        """Return the name of the run; raises what the program's ``run_id`` function raises."""
        return shorten_id(self._run_id if isinstance(self._run_id, str) else self._run_id(context))

    def make_call(
        self,
        tool: _ToolIdentity,
        context: RunContextWrapper[Any],
        arguments: Mapping[str, Any] | str,
        call_id: str,
    ) -> ToolCall:
        """Make the call that the guard checks; raises as ``find_run`` does, and for an invalid name of a run."""
        return ToolCall(
            tool=tool.name,
            arguments=arguments,
            call_id=shorten_id(call_id),
            run_id=self.find_run(context),
            server=tool.server,
            agent=tool.agent,
            cwd=self._cwd,
        )

    async def check_early(self, call: ToolCall, context: RunContextWrapper[Any]) -> bool:
        """Check a call before it is invoked; return true if it waits for people, and keep any other verdict."""
        verdict = await self.guard.check(call)
        key = _make_call_key(call)
        if verdict.kind != "pending" and key is not None:
            self._kept[key] = _CachedVerdict(context.usage, verdict, time.monotonic() + _CACHE_SECONDS)
            while len(self._kept) > _MOST_CACHED:
                self._kept.popitem(last=False)
        return verdict.kind == "pending"

    async def decide(self, call: ToolCall, context: RunContextWrapper[Any]) -> ToolVerdict:
        """Return the verdict that ``check_early`` kept for a call, if it is of this run and fresh, or ask the guard."""
        key = _make_call_key(call)
        kept = None if key is None else self._kept.pop(key, None)
        # A run has one usage object. Comparing it ensures that a verdict is not used in another run with the same ids.
        if kept is not None and kept.usage is context.usage and time.monotonic() <= kept.expires_at:
            return kept.verdict
        return await self.guard.check(call)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ToolIdentity:
    """The name and the MCP server of a tool, by which the guard finds its gate, and the agent that has the tool."""

    name: str
    server: str | None
    agent: str


def _make_call_key(call: ToolCall) -> str | None:
    """Make a key of everything in a call; ``None`` for a call whose arguments cannot be read strictly."""
    try:
        arguments = read_arguments(call.arguments)
    except AdjudgeError:
        return None
    return json.dumps([call.tool, call.server, call.agent, call.run_id, call.call_id, arguments], sort_keys=True)


# ---------------------------------------------------------------- a tool


@dataclass(frozen=True, slots=True, kw_only=True)
class _GuardedInvoker:
    """Invokes a tool in the SDK's place: checks the call, runs the tool, and checks its result."""

    checks: _GuardedCalls
    tool: _ToolIdentity
    invoke: Callable[[ToolContext[Any], str], Any]

    async def __call__(self, context: ToolContext[Any], arguments: str) -> Any:
        """Return the tool's result if the guard allows the call, and otherwise the guard's sentence for the agent."""
        try:
            call = self.checks.make_call(self.tool, context, arguments or "{}", context.tool_call_id)
        except Exception as error:  # noqa: BLE001 - the program's own function
            logger.error("a call of %s could not be checked: %s", show(self.tool.name[:80]), type(error).__name__)
            return NOT_CHECKED
        verdict = await self.checks.decide(call, context)
        if not verdict:
            return verdict.message
        try:
            result = await self.invoke(context, arguments)
        finally:
            await self.checks.guard.record_return(call)
        return result if await self._may_read(call, result) else WITHHELD

    async def needs_approval(self, context: RunContextWrapper[Any], arguments: dict[str, Any], call_id: str) -> bool:
        """Return whether the run has to stop here, because the call waits for people."""
        try:
            call = self.checks.make_call(self.tool, context, arguments, call_id)
        except Exception:  # noqa: BLE001 - the invocation meets the same error, and refuses
            return False
        return await self.checks.check_early(call, context)

    async def _may_read(self, call: ToolCall, result: Any) -> bool:
        """Return whether the agent may read a result.

        If results are checked, images and files pass only from the tools that ``media`` names.
        """
        plain = _to_plain(result)
        parts = plain if isinstance(plain, list) else [plain]
        # No judge sees an image or opens a file.
        has_media = any(isinstance(part, Mapping) and part.get("type") in {"image", "file"} for part in parts)
        if has_media and self.checks.guard.results is not None and self.tool.name not in self.checks.media:
            return False
        return bool(await self.checks.guard.check_result(call, plain))


def _to_plain(value: Any) -> Any:
    """Return a result or an answer as plain data."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_none=True)
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, list | tuple):
        return [_to_plain(part) for part in value]
    return value if value is None or isinstance(value, str | int | float | Mapping) else str(value)


def _guard_tool(checks: _GuardedCalls, tool: Tool, agent: str) -> Tool:
    """Return a copy of a tool that asks the guard first. Raises ``UsageError`` for a tool that cannot be guarded."""
    if _is_guarded(checks, tool):
        return tool
    if not isinstance(tool, FunctionTool):
        raise _make_error(
            agent, tool.name, "is no function tool: no guard sees its calls; take it away, or name it in hosted"
        )
    if tool._is_agent_tool:  # noqa: SLF001 - the SDK tells it in no other way
        raise _make_error(agent, tool.name, "is an agent; make the tool of what guard_agent returns for that agent")
    if tool._is_codex_tool:  # noqa: SLF001 - as above
        raise _make_error(
            agent, tool.name, "is a coding agent, whose own calls reach no guard here; guard it by its hook"
        )
    if tool.needs_approval is not False:
        raise _make_error(agent, tool.name, "has needs_approval of its own; let the guard's gate ask people instead")
    if tool.qualified_name != tool.name:
        raise _make_error(agent, tool.name, "has a namespace, which names of the guard's tools cannot tell apart")
    binding = tool._mcp_tool_binding  # noqa: SLF001 - as above
    # A binding begins with the name of the server.
    server = None if binding is None else binding[0]
    name = _ToolIdentity(name=tool.name, server=server, agent=agent)
    invoker = _GuardedInvoker(checks=checks, tool=name, invoke=tool.on_invoke_tool)
    can_wait = checks.guard.can_hold(name.name, name.server)
    return replace(tool, on_invoke_tool=invoker, needs_approval=invoker.needs_approval if can_wait else False)


def _is_guarded(checks: _GuardedCalls, tool: Tool) -> bool:
    """Return whether all calls of a tool ask a guard, or the program named the tool as one whose calls need not."""
    if not isinstance(tool, FunctionTool):
        return tool.name in checks.hosted or isinstance(tool, ToolSearchTool)  # it only finds tools
    if tool._is_agent_tool:  # noqa: SLF001 - as below
        return isinstance(tool._agent_instance, _GuardedAgent)  # noqa: SLF001 - as below
    return isinstance(tool.on_invoke_tool, _GuardedInvoker)


def _make_error(agent: str, tool: str, problem: str) -> UsageError:
    return UsageError(f"agent {show(agent)} cannot be guarded: its tool {show(tool)} {problem}", argument="agent")


# ---------------------------------------------------------------- an agent


@dataclass
class _GuardedAgent(Agent[Any]):
    """An agent whose every tool asks the guard, those of its MCP servers included."""

    checks: _GuardedCalls = field(kw_only=True, repr=False)

    async def get_mcp_tools(self, run_context: RunContextWrapper[Any]) -> list[Tool]:
        """Return the tools of the agent's servers, as they ask the guard."""
        return [_guard_tool(self.checks, tool, self.name) for tool in await super().get_mcp_tools(run_context)]

    async def get_all_tools(self, run_context: RunContextWrapper[Any]) -> list[Tool]:
        """Return all tools. Raises ``UsageError`` for a tool or a handoff that was added after the guard.

        The SDK asks for them before every request to the model, and then for the handoffs.
        """
        for handoff in self.handoffs:
            if not _is_guarded_handoff(handoff):
                name = handoff.agent_name if isinstance(handoff, Handoff) else handoff.name
                raise UsageError(
                    f"agent {show(self.name)} cannot be guarded: its handoff to {show(name)} was added after the "
                    "guard; give all handoffs to guard_agent",
                    argument="agent",
                )
        tools = await super().get_all_tools(run_context)
        for tool in tools:
            if not _is_guarded(self.checks, tool):
                raise _make_error(self.name, tool.name, "was added after the guard; give all tools to guard_agent")
        return tools


def guard_agent(
    agent: Agent[Any],
    guard: ToolGuard,
    *,
    run_id: str | FindRun,
    cwd: str | None = None,
    media: Collection[str] = (),
    hosted: Collection[str] = (),
) -> Agent[Any]:
    """Return an agent like this one, each of whose calls of a tool is made only if a guard allows it.

    The agents that it hands over to are guarded as well. A call that waits for people interrupts the run, so that
    ``result.interruptions`` has it; see ``answer_interruptions``. A call that is refused gives the agent the guard's
    sentence in place of a result, and a result that may not be read is withheld. If the guard has ``prompts`` or
    ``answers``, they are checked by guardrails: before the model is asked, and after the last answer. One that is
    refused ends the run with the SDK's ``InputGuardrailTripwireTriggered`` or ``OutputGuardrailTripwireTriggered``.

    Raises ``UsageError`` for an agent with a tool that the guard cannot stand in front of: one that the provider runs,
    the SDK's own shell, patch, computer and custom tools, other agents that are not guarded, and tools with
    ``needs_approval`` of their own.

    Args:
        agent: The agent; it is not changed.
        guard: The guard. Its patterns find tools by their names, and tools of the agent's MCP servers by server and
            name.
        run_id: The name of the run, the same when it is resumed, or a function that finds it in the SDK's context. The
            SDK has none of its own that would be kept.
        cwd: The absolute path of the folder in which tools work; files that a call names there are bound to it.
        media: Names of tools whose images and files may reach the agent. Of others they are withheld where the guard
            has ``results``, because no judge here sees them.
        hosted: Names of tools that are no function tools, such as ``web_search``. No guard sees their calls.
    """
    if not isinstance(guard, ToolGuard):
        raise UsageError(f"guard must be a ToolGuard, got {type(guard).__name__}", argument="guard")
    for name, names in (("media", media), ("hosted", hosted)):
        if isinstance(names, str):  # each of its letters would be a name
            raise UsageError(f"{name} must be a list of names, got the text {names!r}", argument=name)
    if not (callable(run_id) or (isinstance(run_id, str) and run_id.strip())):
        raise UsageError(f"run_id must be a name or a function that finds it, got {run_id!r}", argument="run_id")
    checks = _GuardedCalls(guard, run_id=run_id, cwd=cwd, media=media, hosted=hosted)
    return _AgentGuarder(checks).guard_agent(agent)


class _AgentGuarder:
    """Makes guarded copies of agents that hand over to each other, one for each, since they may do so in a circle."""

    def __init__(self, checks: _GuardedCalls) -> None:
        self._checks = checks
        self._made: dict[int, tuple[Agent[Any], _GuardedAgent]] = {}

    def guard_agent(self, agent: Agent[Any]) -> _GuardedAgent:
        """Return the guarded copy of an agent."""
        if isinstance(agent, _GuardedAgent):
            return agent
        if type(agent) is not Agent:
            # A subclass, such as the SDK's SandboxAgent, may have tools of its own while it runs.
            raise UsageError(f"agent must be an Agent itself, got {type(agent).__name__}", argument="agent")
        if id(agent) in self._made:
            _, guarded = self._made[id(agent)]
            return guarded
        if agent.mcp_config.get("include_server_in_tool_names"):
            raise UsageError(
                f"agent {show(agent.name)} cannot be guarded: its tools of MCP servers have the server in their names, "
                f"which a guard keeps apart; leave include_server_in_tool_names out of mcp_config",
                argument="agent",
            )
        members: dict[str, Any] = {member.name: getattr(agent, member.name) for member in fields(agent) if member.init}
        members["tools"] = [_guard_tool(self._checks, tool, agent.name) for tool in agent.tools]
        members["handoffs"] = []
        members["input_guardrails"] = [*agent.input_guardrails, *_make_prompt_guardrails(self._checks)]
        members["output_guardrails"] = [*agent.output_guardrails, *_make_answer_guardrails(self._checks)]
        guarded_agent = _GuardedAgent(**members, checks=self._checks)
        # Before the handoffs, one of which may lead back to this agent. The agent is kept so that its id stays taken.
        self._made[id(agent)] = (agent, guarded_agent)
        guarded_agent.handoffs.extend(self._guard_handoff(handoff) for handoff in agent.handoffs)
        return guarded_agent

    def _guard_handoff(self, handoff: Agent[Any] | Handoff[Any, Any]) -> Agent[Any] | Handoff[Any, Any]:
        """Return a handoff to an agent that asks the guard.

        The agent of a ``Handoff`` is guarded when it is invoked. The reference by which the SDK resumes a run is set to
        the guarded agent.
        """
        if not isinstance(handoff, Handoff):
            return self.guard_agent(handoff)
        target = None if handoff._agent_ref is None else handoff._agent_ref()  # noqa: SLF001 - the SDK resumes by it
        guarded_target = self.guard_agent(target) if isinstance(target, Agent) else None

        guarded = replace(handoff, on_invoke_handoff=_GuardedHandoff(self, handoff))
        guarded._agent_ref = None if guarded_target is None else ref(guarded_target)  # noqa: SLF001 - as above
        return guarded


@dataclass(frozen=True, slots=True)
class _GuardedHandoff:
    """Invokes the program's handoff, and hands over to the guarded copy of the agent that it returns."""

    guarding: _AgentGuarder
    handoff: Handoff[Any, Any]

    async def __call__(self, context: RunContextWrapper[Any], arguments: str) -> Agent[Any]:
        """Return the agent that takes over."""
        return self.guarding.guard_agent(await self.handoff.on_invoke_handoff(context, arguments))


def _is_guarded_handoff(handoff: Agent[Any] | Handoff[Any, Any]) -> bool:
    if isinstance(handoff, Handoff):
        return isinstance(handoff.on_invoke_handoff, _GuardedHandoff)
    return isinstance(handoff, _GuardedAgent)


def _make_prompt_guardrails(checks: _GuardedCalls) -> list[InputGuardrail[Any]]:
    """Make the guardrail that checks prompts before the model reads them; none if the guard has no ``prompts``."""
    if checks.guard.prompts is None:
        return []

    async def check(context: RunContextWrapper[Any], _agent: Agent[Any], prompt: Any) -> GuardrailFunctionOutput:
        text = prompt if isinstance(prompt, str) else json.dumps(_to_plain(prompt), ensure_ascii=False, default=str)
        verdict = await checks.guard.check_prompt(text, run_id=checks.find_run(context))
        return GuardrailFunctionOutput(output_info=verdict.message, tripwire_triggered=not verdict)

    # By default the guardrail would run together with the model, which would then read the prompt all the same.
    return [InputGuardrail(check, name="adjudge", run_in_parallel=False)]


def _make_answer_guardrails(checks: _GuardedCalls) -> list[OutputGuardrail[Any]]:
    """Make the guardrail that checks an agent's last answer; none if the guard has no ``answers``."""
    if checks.guard.answers is None:
        return []

    async def check(context: RunContextWrapper[Any], _agent: Agent[Any], answer: Any) -> GuardrailFunctionOutput:
        verdict = await checks.guard.check_answer(_to_plain(answer), run_id=checks.find_run(context))
        return GuardrailFunctionOutput(output_info=verdict.message, tripwire_triggered=not verdict)

    return [OutputGuardrail(check, name="adjudge")]


# ---------------------------------------------------------------- held calls


async def answer_interruptions(state: RunState[Any]) -> int:
    """Let the calls go on that people have answered, and return how many still wait.

    A call is approved in the state whatever the answer was: when it is invoked, the guard looks up the answer, and
    refuses what was denied. So ``state.approve`` by anybody else opens nothing, and resuming too early gives the agent
    the guard's sentence that the call waits.

    Args:
        state: The state of an interrupted run of a guarded agent: ``result.to_state()``, or what
            ``RunState.from_string`` made of a stored one. Interruptions of agents that are not guarded are left alone.
    """
    waiting = 0
    for item in state.get_interruptions():
        if not isinstance(item.agent, _GuardedAgent):
            continue
        checks, raw = item.agent.checks, item.raw_item
        origin = item.tool_origin
        name = _ToolIdentity(
            name=item.tool_name or "",
            server=None if origin is None else origin.mcp_server_name,
            agent=item.agent.name,
        )
        context = state._context  # noqa: SLF001 - a state has no other way to its context
        call = checks.make_call(name, context, _read_member(raw, "arguments"), _read_member(raw, "call_id"))  # type: ignore[arg-type]
        if await checks.guard.is_waiting(call):
            waiting += 1
        else:
            state.approve(item)
    return waiting


def _read_member(raw: Any, name: str) -> str:
    """Read a member of the SDK's raw item, which is a mapping or an object, as text."""
    return str(raw.get(name) if isinstance(raw, Mapping) else getattr(raw, name, None))
