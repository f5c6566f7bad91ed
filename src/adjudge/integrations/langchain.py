"""A guard in front of every tool call of a LangChain agent: ``create_agent(..., middleware=[GateMiddleware(guard)])``.

A call that waits for people is held by ``interrupt()``. LangGraph runs its node again when it resumes, so the call is
looked up in the guard each time; what the program says with ``Command(resume=...)`` is not read. What a model reads of
a refused or held call is written in ``guards/tool_guard/guard.py``.
"""

from __future__ import annotations

import copy
import json
import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from hashlib import sha256
from typing import Any

from adjudge.errors import UsageError
from adjudge.guards.tool_guard.call import ToolCall, ToolVerdict, shorten_id
from adjudge.guards.tool_guard.guard import NOT_CHECKED, WITHHELD, ToolGuard
from adjudge.hooks import logger
from adjudge.sync import run_sync

try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
    from langchain.tools.tool_node import ToolCallRequest
    from langchain_core.messages import BaseMessage, ToolMessage
    from langchain_core.tools import ToolException
    from langgraph.errors import GraphBubbleUp
    from langgraph.types import Command, interrupt
except ModuleNotFoundError as error:
    # Version 0 of langchain has no middleware.
    if not str(error.name).startswith(("langchain", "langgraph")):
        raise
    message = (
        "adjudge.integrations.langchain needs the package langchain, 1.0 or later; to have it, pip install langchain"
    )
    raise ModuleNotFoundError(message, name=error.name) from None

__all__ = ["GateMiddleware"]

_Result = Any
"""The result of a tool's call in LangGraph: a message, a command, or a list of them."""

_NO_THREAD = "The call was not made: a person may have to see it, and this agent keeps nothing that it could wait with."

_CHANGED = "The call was not made: it is not the one that was checked, or it was made already."


class GateMiddleware(AgentMiddleware[Any, Any, Any]):
    """Check every call of an agent's tools with a guard, for ``invoke`` and ``ainvoke`` alike.

    An allowed call runs once, with the arguments that were checked. The model reads why a call was refused as the
    result of its tool. A call that people have to decide about is held by ``interrupt()``: the agent needs a
    ``checkpointer``, and ``configurable.thread_id`` is the run of the guard. Resume it with ``Command(resume=True)``
    once somebody has decided; any other value does the same, because the guard reads the approval alone. Resumed
    before that, the call is held again.

    Without a thread each agent is a run of its own, and tools that people may have to decide about are refused.

    List it last in ``middleware``: what comes after it could call another tool. Arguments that were changed after the
    check, and a second run of an allowed call, are refused all the same.

    Raises ``UsageError`` for a guard that is none; the agent raises it when its model is given a tool of the provider's
    own that ``hosted`` does not name.

    Args:
        guard: The guard. Its ``results`` checks what tools return, and what their errors say; its ``answers`` and
            ``prompts`` are not asked here.
        media: Names of tools whose images and other parts that are no text may reach the agent. Of others they are
            withheld where the guard has ``results``, because no judge here sees them.
        hosted: Tools that the provider runs itself, such as ``web_search``, by type or name. No guard sees their calls.
    """

    def __init__(self, guard: ToolGuard, *, media: Collection[str] = (), hosted: Collection[str] = ()) -> None:
        super().__init__()
        if not isinstance(guard, ToolGuard):
            raise UsageError(f"guard must be a ToolGuard, got {type(guard).__name__}", argument="guard")
        for name, names in (("media", media), ("hosted", hosted)):
            if isinstance(names, str):  # each of its letters would be a name
                raise UsageError(f"{name} must be a list of names, got the text {names!r}", argument=name)
        self._guard = guard
        self._media = frozenset(media)
        self._hosted = frozenset(hosted)
        self._agent_run_id = f"agent:{secrets.token_hex(16)}"

    # ---------------------------------------------------------------- calls

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], _Result]) -> _Result:
        """Check a call, run it if it is allowed, and check its result."""
        call = self._read_call(request)
        if call is None:
            return _refuse(request, NOT_CHECKED)
        if self._cannot_wait(request, call):
            return _refuse(request, _NO_THREAD)
        verdict = run_sync(self._guard.check(call))
        while verdict.kind == "pending":
            _hold(call, verdict)
            verdict = run_sync(self._guard.check(call))
        if not verdict:
            return _refuse(request, verdict.message)
        try:
            result = handler(_bind_arguments(request, call))
        except GraphBubbleUp:
            raise  # a tool that interrupts, which is no error
        except Exception as error:
            run_sync(self._screen_error(call, error))
            raise
        return run_sync(self._screen(call, request, result))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[_Result]]
    ) -> _Result:
        """Check a call, run it if it is allowed, and check its result."""
        call = self._read_call(request)
        if call is None:
            return _refuse(request, NOT_CHECKED)
        if self._cannot_wait(request, call):
            return _refuse(request, _NO_THREAD)
        verdict = await self._guard.check(call)
        while verdict.kind == "pending":
            _hold(call, verdict)
            verdict = await self._guard.check(call)
        if not verdict:
            return _refuse(request, verdict.message)
        try:
            result = await handler(_bind_arguments(request, call))
        except GraphBubbleUp:
            raise
        except Exception as error:
            await self._screen_error(call, error)
            raise
        return await self._screen(call, request, result)

    def _read_call(self, request: ToolCallRequest) -> ToolCall | None:
        """Convert a call of LangChain to one for the guard; ``None`` for a call that cannot be checked."""
        requested, thread = request.tool_call, _find_thread(request)
        try:
            return ToolCall(
                tool=requested["name"],
                arguments=copy.deepcopy(requested["args"]),
                call_id=shorten_id(requested["id"] or ""),
                run_id=self._agent_run_id if thread is None else shorten_id(f"thread:{thread}"),
                agent=request.runtime.config.get("metadata", {}).get("lc_agent_name"),
            )
        except Exception as error:  # noqa: BLE001 - what cannot be read is not called
            logger.error("a call of %r cannot be read: %s", str(requested["name"])[:80], type(error).__name__)
            return None

    def _cannot_wait(self, request: ToolCallRequest, call: ToolCall) -> bool:
        """Return whether people may have to decide on a call of an agent without a thread, which cannot be resumed."""
        if _find_thread(request) is not None or not self._guard.can_hold(call.tool):
            return False
        logger.warning("a call of %r was refused: give the agent a checkpointer and a thread_id", call.tool[:80])
        return True

    # ---------------------------------------------------------------- results

    async def _screen(self, call: ToolCall, request: ToolCallRequest, result: _Result) -> _Result:
        """Return a result if the agent may read it, and otherwise a message that it was withheld."""
        await self._guard.record_return(call)
        has_unseen_media = self._guard.results is not None and call.tool not in self._media and _has_media(result)
        if has_unseen_media or not await self._guard.check_result(call, _describe_result(result)):
            return _refuse(request, WITHHELD)
        return result

    async def _screen_error(self, call: ToolCall, error: Exception) -> None:
        """Raise another error if the agent may not read what this one says."""
        if not await self._guard.check_result(call, {"error": str(error)}):
            raise ToolException(WITHHELD) from None

    # ---------------------------------------------------------------- what no guard sees

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Ask the model, unless it is given tools that no guard sees."""
        self._check_hosted(request.tools)
        return handler(request)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Ask the model, unless it is given tools that no guard sees."""
        self._check_hosted(request.tools)
        return await handler(request)

    def _check_hosted(self, tools: Sequence[Any]) -> None:
        """Raise ``UsageError`` for a tool that the provider runs itself, unless ``hosted`` names it."""
        for tool in tools:
            if not isinstance(tool, Mapping) or tool.get("type") == "function" or "input_schema" in tool:
                continue
            names = {tool.get("name"), tool.get("type")}
            if not names & self._hosted:
                name = tool.get("type") or tool.get("name")
                raise UsageError(
                    f"the provider runs the tool {name!r} itself, where no guard sees its calls; take it away, or name "
                    "it in hosted",
                    argument="hosted",
                )


def _find_thread(request: ToolCallRequest) -> Any:
    """Return the id of the thread in which the agent runs; ``None`` if it has none."""
    return request.runtime.config.get("configurable", {}).get("thread_id")


def _hold(call: ToolCall, verdict: ToolVerdict) -> None:
    """Hold a call until the graph is resumed. The value that it is resumed with is ignored: anybody could give it."""
    interrupt(
        {
            "type": "adjudge/approval",
            "approval": verdict.approval_id,
            "message": verdict.message,
            "tool": call.tool,
            "arguments": call.arguments,
            "tool_call_id": call.call_id,
        }
    )


def _refuse(request: ToolCallRequest, text: str) -> ToolMessage:
    """Make the message that the model reads in place of a result."""
    requested = request.tool_call
    return ToolMessage(text, name=requested["name"], tool_call_id=requested["id"], status="error")


# ---------------------------------------------------------------- one run, with the arguments that were checked


def _bind_arguments(request: ToolCallRequest, call: ToolCall) -> ToolCallRequest:
    """Return the request with a tool that runs once, for the arguments that were checked."""
    checked_call = {**request.tool_call, "args": copy.deepcopy(call.arguments)}
    tool = None if request.tool is None else _CheckedTool(request.tool, call)
    return request.override(tool_call=checked_call, tool=tool)  # type: ignore[typeddict-item]


class _CheckedTool:
    """A tool that runs only once, and only for the call that was checked.

    Middleware after this one gets it in place of the tool, and so cannot change or repeat the call.
    """

    def __init__(self, tool: Any, call: ToolCall) -> None:
        self._tool = tool
        self._call = call
        self._arguments: Any = call.arguments
        self._has_run = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tool, name)

    def invoke(self, requested: Any, *arguments: Any, **options: Any) -> Any:
        """Run the tool, or return a refusal."""
        return (
            self._tool.invoke(requested, *arguments, **options)
            if self._admit_call(requested)
            else self._refuse(requested)
        )

    async def ainvoke(self, requested: Any, *arguments: Any, **options: Any) -> Any:
        """Run the tool, or return a refusal."""
        return (
            await self._tool.ainvoke(requested, *arguments, **options)
            if self._admit_call(requested)
            else self._refuse(requested)
        )

    def _admit_call(self, requested: Any) -> bool:
        """Return whether a call may be made, and record that it was: it must be the checked call, and the first one."""
        arguments, checked = requested["args"], self._arguments
        # LangGraph adds arguments that the model does not see, such as the state, and removes those that the model gave
        # for them. A call with such a change, or with fewer arguments, is not the checked call.
        is_same = all(
            name in arguments and _write_argument(arguments[name]) == _write_argument(checked[name]) for name in checked
        )
        added = set(arguments) - set(checked)
        is_same = is_same and requested["name"] == self._call.tool and not (added and added & set(self._tool.args))
        if self._has_run or not is_same:
            logger.error("a call of %r was changed or repeated after its check", self._call.tool[:80])
            return False
        self._has_run = True
        return True

    def _refuse(self, requested: Any) -> ToolMessage:
        """Make the message that the model reads in place of a result."""
        return ToolMessage(_CHANGED, name=self._call.tool, tool_call_id=requested["id"], status="error")


def _write_argument(value: Any) -> str:
    """Write an argument as JSON for a comparison, because 1, 1.0 and True are equal and not the same argument."""
    return json.dumps(value, sort_keys=True, default=repr)


# ---------------------------------------------------------------- results as they are judged

_READABLE_TYPES = frozenset({"text", "json"})
"""Types of the parts of a message that a judge can read."""


def _describe_result(value: Any) -> Any:
    """Describe a tool's result as plain data: the content of its messages, and the updates of its commands."""
    if isinstance(value, BaseMessage):
        content = value.content
        return content if isinstance(content, str) else [_describe_block(block) for block in content]
    if isinstance(value, Command):
        goto = {"goto": _describe_result(value.goto)} if value.goto else {}
        return {"update": _describe_result(value.update), **goto}
    if isinstance(value, Mapping):
        return {str(name): _describe_result(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_describe_result(member) for member in value]
    return value if value is None or isinstance(value, str | int | float) else repr(value)


def _describe_block(block: Any) -> Any:
    """Describe a part of a message as plain data; one that is no text by its digest."""
    if not _is_media(block):
        return _describe_result(block)
    return {"type": str(block["type"]), "sha256": sha256(_write_argument(block).encode()).hexdigest()}


def _has_media(value: Any) -> bool:
    """Return whether a message of a result has a part that is no text."""
    if isinstance(value, BaseMessage):
        return isinstance(value.content, list) and any(map(_is_media, value.content))
    if isinstance(value, Command):
        return _has_media(value.update)
    if isinstance(value, Mapping):
        return any(map(_has_media, value.values()))
    members = value if isinstance(value, list | tuple) else ()
    return any(map(_has_media, members))


def _is_media(block: Any) -> bool:
    """Return whether a part of a message is not text, such as an image."""
    return isinstance(block, Mapping) and isinstance(block.get("type"), str) and block["type"] not in _READABLE_TYPES
