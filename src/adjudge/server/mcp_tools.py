"""The tools of ``adjudge mcp serve``: an agent has content judged, puts it through a gate, and waits for people.

The client is an agent, which may want its content to pass. So it can name only judges, rubrics and gates of the
configuration, and cannot approve anything. Of a request for approval it never gets the id: only the word by which
people find the request, and only for requests that it caused itself.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeVar

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import BaseModel, ConfigDict, Field

from adjudge import __version__
from adjudge.config.file import Config
from adjudge.config.gates import check_gate_ready, close_gate, open_approvals, open_gate
from adjudge.config.ledger import CommandRecorder
from adjudge.config.server import ServerSettings
from adjudge.errors import AdjudgeError, FunctionError, UsageError
from adjudge.formats.text import flatten, show
from adjudge.guards.approval.approvals import Approvals
from adjudge.guards.gate import Gate
from adjudge.guards.tool_guard.call import CallRefusedBecause
from adjudge.guards.tool_guard.guard import ToolGuard
from adjudge.guards.tool_guard.tool_patterns import ToolKey
from adjudge.hooks import logger
from adjudge.ledger.judged_content import describe_judged
from adjudge.ledger.ledger import Ledger
from adjudge.result import JudgeResult
from adjudge.server.permissions import Permissions, make_permissions
from adjudge.server.server_judges import ServerJudges, open_judges

_MOST_REFUSALS = 100
"""Contents of one run that rules and judges may refuse; an agent that revises a text is refused often."""

_MOST_PENDING = 1_000
"""Requests for approval whose words are remembered. An agent gets a forgotten word again by the same check."""

_LONGEST_WAIT = 300.0

_PAUSE = 1.0
"""Seconds between two looks whether people have decided."""

_MESSAGES: dict[CallRefusedBecause, str] = {
    "refused": "It did not pass.",
    "refused_before": "It did not pass before, and the same content is not judged again.",
    "denied": "A person said no. Do not try it in another way.",
    "expired": "Nobody answered in time.",
    "used": "It was approved once, and that approval was used.",
    "waits": (
        'A person has to decide, and finds the request as "{word}". Wait with wait_for_approval. Once it is approved, '
        "check the same content again: it passes then, once."
    ),
    "stopped": "Too much was blocked in this run, so nothing passes until a person reopens it.",
}

T = TypeVar("T")

_FAILED = "It could not be checked, so it does not pass."

# ---------------------------------------------------------------- answers


class _Answer(BaseModel):
    """A structured result; its schema is the tool's output schema."""

    model_config = ConfigDict(frozen=True)


class CriterionAnswer(_Answer):
    """The judge's answer to one criterion."""

    name: str
    passed: bool
    score: float | None = Field(description="From 0 to 1.")
    reasoning: str


class EvaluateAnswer(_Answer):
    """The judge's answer about some content."""

    outcome: Literal["passed", "failed", "undecided"] = Field(
        description="Undecided means that no judgement could be made. It is no pass."
    )
    score: float | None = Field(description="From 0 to 1; null if there is none.")
    reasoning: str
    criteria: list[CriterionAnswer]
    suggestions: list[str]


class CheckAnswer(_Answer):
    """The answer of a gate about some content."""

    status: Literal["pass", "blocked", "pending"] = Field(
        description="Only with pass may the content be used. Pending means that a person has to decide first."
    )
    message: str
    word: str | None = Field(description="With pending: the word for wait_for_approval. People find the request by it.")


class WaitAnswer(_Answer):
    """The decision of people."""

    status: Literal["approved", "denied", "expired", "pending"] = Field(
        description="Approved: check the same content again, it passes once. Pending: nobody has decided yet."
    )


# ---------------------------------------------------------------- who asks


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCaller:
    """An agent that calls the tools."""

    run: str
    """The run whose refusals are counted, and whose requests are found again."""
    permissions: Permissions


KEYLESS_PERMISSIONS = make_permissions(["judge"])
"""The permissions of agents that need no key: to have content judged, and nothing else."""

IdentifyCaller = Callable[[Context], Awaitable[AgentCaller]]
"""Finds who sent a call; raises ``ToolError`` for nobody."""


def identify_all_as(run: str) -> IdentifyCaller:
    """Make a function that takes every call as one agent's: there is one client, or all clients are without keys."""
    caller = AgentCaller(run=run, permissions=KEYLESS_PERMISSIONS)

    async def identify(_: Context) -> AgentCaller:
        """Return the one agent, whoever calls."""
        return caller

    return identify


def name_run(key: str) -> str:
    """Name the run to which today's calls with a key belong.

    Each day is a run of its own. Otherwise a run that was stopped after refusals would block the key for ever.
    """
    return f"key:{key}:{datetime.now(UTC):%Y-%m-%d}"


# ---------------------------------------------------------------- what is offered


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTools:
    """The judges and gates of a configuration, opened for agents."""

    settings: ServerSettings
    judges: ServerJudges
    gates: Mapping[str, Gate]
    guard: ToolGuard | None
    """In front of the gates; ``None`` if there are none."""
    approvals: Approvals
    ledger: Ledger
    judging_slots: asyncio.Semaphore
    """Bounds the number of contents that are judged at once."""
    _approval_ids: OrderedDict[tuple[str, str], str]
    """The ids of the requests that wait for people, by the run that caused them and by their word."""

    # ------------------------------------------------------------ evaluate

    async def evaluate(
        self,
        caller: AgentCaller,
        content: str,
        *,
        rubric: str | None,
        judge: str | None,
        task: str | None,
        context: str | None,
        reference: str | None,
    ) -> JudgeResult:
        """Judge some content and record the result; raises ``ToolError`` if either fails."""
        if not caller.permissions.covers("judge", None):
            raise ToolError("This key is limited to gates; use check.")
        texts = {"task": task, "context": context, "reference": reference}
        self._check_size({"content": content, **texts})
        opened_judge = _explain_usage(lambda: self.judges.find_judge(judge))
        opened_rubric = _explain_usage(lambda: self.judges.find_rubric(rubric))
        try:
            async with asyncio.timeout(self.settings.deadline), self.judging_slots:
                result = await opened_judge.evaluate(
                    content, opened_rubric, task=task, context=context, reference=reference
                )
                await self.ledger.append(result, **describe_judged(self.ledger, content, texts))
        except (AdjudgeError, TimeoutError) as error:
            if isinstance(error, UsageError) and not isinstance(error, FunctionError):
                raise ToolError(flatten(str(error), 500)) from None
            logger.error("an agent's content could not be judged: %s", type(error).__name__)
            raise ToolError("It could not be judged.") from None
        return result

    # ------------------------------------------------------------ check

    def list_gates(self, caller: AgentCaller) -> list[str]:
        """List the gates that the caller may use."""
        return [name for name in self.gates if caller.permissions.may("judge", name)]

    async def check(self, caller: AgentCaller, gate: str, content: str) -> CheckAnswer:
        """Put content through a gate. Raises ``ToolError`` for a gate that is not offered, and for too much content."""
        names = self.list_gates(caller)
        if self.guard is None or gate not in names:
            raise ToolError(f"There is no gate {show(gate)}; there are {flatten(', '.join(names), 400) or 'none'}.")
        self._check_size({"content": content})
        # A run counts refusals. One gate may refuse a text that another one passes, so each gate has its own run.
        async with self.judging_slots:
            verdict = await self.guard.check_content(gate, content, run_id=f"{caller.run}/{gate}")
        if verdict:
            return CheckAnswer(status="pass", message="It passed.", word=None)
        if verdict.kind != "pending" or verdict.word is None or verdict.approval_id is None:
            message = _MESSAGES.get(verdict.because or "refused", _FAILED)
            return CheckAnswer(status="blocked", message=message, word=None)
        self._approval_ids[caller.run, verdict.word] = verdict.approval_id
        while len(self._approval_ids) > _MOST_PENDING:
            self._approval_ids.popitem(last=False)
        return CheckAnswer(status="pending", message=_MESSAGES["waits"].format(word=verdict.word), word=verdict.word)

    # ------------------------------------------------------------ wait_for_approval

    async def wait(
        self, caller: AgentCaller, word: str, seconds: float, on_progress: Callable[[float], Awaitable[None]]
    ) -> WaitAnswer:
        """Wait until people have decided about the request that ``word`` names, at most ``seconds``.

        ``on_progress`` is called between two looks, with the seconds that were waited. Raises ``ToolError`` for a word
        that was not given to this caller, and if the decision cannot be read. The answer ``approved`` does not let the
        content through: the agent has to check it again, and the gate looks for the approval itself.
        """
        approval_id = self._approval_ids.get((caller.run, word))
        if approval_id is None:
            raise ToolError("No request of yours has this word; check the same content again, which tells you.")
        started = time.monotonic()
        try:
            while await self.approvals.is_open(approval_id):
                waited = time.monotonic() - started
                if waited >= seconds:
                    return WaitAnswer(status="pending")
                await on_progress(waited)
                await asyncio.sleep(min(_PAUSE, seconds - waited))
            answer = await self.approvals.wait(approval_id)  # the decision as the ledger confirms it
        except AdjudgeError as error:
            logger.error("approval %s could not be read: %s", approval_id, type(error).__name__)
            raise ToolError("What people decided could not be read.") from None
        if answer.approved:
            return WaitAnswer(status="approved")
        # A denial without a person's name is that of the policy, as a rule because the request expired.
        return WaitAnswer(status="expired" if answer.by is None else "denied")

    # ------------------------------------------------------------ all of them

    def _check_size(self, texts: Mapping[str, str | None]) -> None:
        """Raise ``ToolError`` for a text that is longer than the settings allow."""
        most = self.settings.largest_content
        for name, text in texts.items():
            if text is not None and len(text) > most:
                raise ToolError(f"{name} has {len(text)} characters, and at most {most} are judged.")

    async def aclose(self) -> None:
        """Close all but the ledger."""
        for gate in self.gates.values():
            await close_gate(gate)
        await self.judges.aclose()
        await self.approvals.aclose()


def open_agent_tools(
    config: Config,
    settings: ServerSettings,
    ledger: Ledger,
    *,
    gates: Collection[str] = (),
    unsafe: Collection[str] = (),
) -> AgentTools:
    """Open what a configuration offers to agents: the ``gates`` of these names, by default all, and its judges.

    ``unsafe`` are exceptions as ``ToolGuard`` takes them. Raises ``UsageError`` for a gate that an agent could get
    anything through, and for a configuration without gates and judges.
    """
    recorder, approvals = CommandRecorder(ledger), open_approvals(config, ledger, quiet=False)
    opened: dict[str, Gate] = {
        name: open_gate(name, config, recorder=recorder, approvals=approvals) for name in gates or tuple(config.gates)
    }
    for name, gate in opened.items():
        try:
            check_gate_ready(gate)
        except UsageError as error:
            raise error.within(f"{config.path}: [gates.{flatten(name, 120)}]") from None
    judges = open_judges(config, settings)
    if not opened and not judges.judges:
        raise UsageError(f"{config.path} has no gates and no judges, so there is nothing to offer; write [gates.NAME]")
    guard = None
    if opened:
        patterns: dict[ToolKey, Any] = {**opened}
        guard = ToolGuard(
            patterns,
            match="content",
            timeout=settings.deadline,
            most_refusals=_MOST_REFUSALS,
            unsafe=unsafe,
            # The agent could run the command by which people approve.
            harness=None if config.approvals.get("command", False) else "mcp",
            ledger=ledger,
            name="mcp",
        )
    return AgentTools(
        settings=settings,
        judges=judges,
        gates=opened,
        guard=guard,
        approvals=approvals,
        ledger=ledger,
        judging_slots=asyncio.Semaphore(settings.concurrency),
        _approval_ids=OrderedDict(),
    )


def _explain_usage(find: Callable[[], T]) -> T:
    """Return what ``find`` returns; a ``UsageError`` becomes a ``ToolError``, whose message the agent reads."""
    try:
        return find()
    except UsageError as error:
        raise ToolError(flatten(str(error), 1_000)) from None


# ---------------------------------------------------------------- the server


def make_mcp_server(tools: AgentTools, identify: IdentifyCaller) -> MCPServer:
    """Make the server that offers the tools to agents; ``identify`` finds who calls."""
    server: MCPServer = MCPServer(
        "adjudge",
        version=__version__,
        instructions=(
            "Judges content by rubrics and gates that were configured beforehand. Nothing here approves anything: "
            "where a gate needs a person, only a person can decide."
        ),
        log_level="WARNING",
    )
    if tools.judges.judges:
        _add_evaluate(server, tools, identify)
    if tools.gates:
        _add_check(server, tools, identify)
    if any(gate.asks for gate in tools.gates.values()):
        _add_wait(server, tools, identify)
    return server


_READS = ToolAnnotations.model_validate({"readOnlyHint": True, "openWorldHint": False})

Content = Annotated[str, Field(description="The text that is judged, in full. JSON is given as its text.")]

RubricName = Annotated[str, Field(description="The name of a rubric; without one, the judge's own.")]

JudgeName = Annotated[str, Field(description="The name of a judge; without one, the default.")]

TaskText = Annotated[str, Field(description="What was asked for.")]

ContextText = Annotated[str, Field(description="What the content may rely on, such as sources.")]

ReferenceText = Annotated[str, Field(description="A known good answer.")]

GateName = Annotated[str, Field(description="The name of a gate.")]

RequestWord = Annotated[str, Field(description="The word that check answered with pending.")]

WaitSeconds = Annotated[float, Field(ge=0, le=_LONGEST_WAIT, description="Seconds to wait at most.")]


def _add_evaluate(server: MCPServer, tools: AgentTools, identify: IdentifyCaller) -> None:
    """Add the tool by which an agent has content judged."""
    judges = tools.judges
    description = (
        "Have a judge say how good some content is, by a rubric. This is advice: it opens no gate. "
        f"Rubrics: {_list_names(judges.rubrics)}. Judges: {_list_names(judges.judges)}."
    )

    @server.tool(description=description, annotations=_READS)
    async def evaluate(  # noqa: PLR0917 - each is a member of the tool's arguments
        ctx: Context,
        content: Content,
        rubric: RubricName = "",
        judge: JudgeName = "",
        task: TaskText = "",
        context: ContextText = "",
        reference: ReferenceText = "",
    ) -> EvaluateAnswer:
        result = await tools.evaluate(
            await identify(ctx),
            content,
            rubric=rubric or None,
            judge=judge or None,
            task=task or None,
            context=context or None,
            reference=reference or None,
        )
        return _make_evaluation(result)


def _add_check(server: MCPServer, tools: AgentTools, identify: IdentifyCaller) -> None:
    """Add the tool by which an agent puts content through a gate."""
    description = (
        "Put content through a gate before it is used. Use it only if the status is pass; blocked is final for this "
        f"content, and pending waits for a person. Gates: {_list_names(tools.gates)}."
    )

    @server.tool(description=description)
    async def check(ctx: Context, gate: GateName, content: Content) -> CheckAnswer:
        return await tools.check(await identify(ctx), gate, content)


def _add_wait(server: MCPServer, tools: AgentTools, identify: IdentifyCaller) -> None:
    """Add the tool by which an agent waits for people to decide; it reports progress while it waits."""
    description = (
        "Wait until a person has decided about a request that check answered with pending. Once it is approved, check "
        "the same content again: only check lets it pass."
    )

    @server.tool(description=description, annotations=_READS)
    async def wait_for_approval(ctx: Context, word: RequestWord, seconds: WaitSeconds = 30.0) -> WaitAnswer:
        async def report(waited: float) -> None:
            """Report to the client how many of the seconds have passed."""
            await ctx.report_progress(waited, seconds, "a person has to decide")

        return await tools.wait(await identify(ctx), word, seconds, report)


def _list_names(names: Collection[str]) -> str:
    """Write some names in one line, sorted, for the description of a tool."""
    return flatten(", ".join(sorted(names)), 1_000)


def _make_evaluation(result: JudgeResult) -> EvaluateAnswer:
    """Make the answer to an agent from a result; a result without a reasoning is explained by its detail."""
    return EvaluateAnswer(
        outcome=result.outcome,
        score=result.score,
        reasoning=result.reasoning or result.detail,
        criteria=[
            CriterionAnswer(
                name=criterion.name, passed=criterion.passed, score=criterion.score, reasoning=criterion.reasoning
            )
            for criterion in result.criteria
        ],
        suggestions=list(result.suggestions),
    )
