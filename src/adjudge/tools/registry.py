"""The registry of forged tools: who may use which, how they do, and how they rise a tier or lose it."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self, TypeVar

from adjudge.content import copy_plain
from adjudge.errors import LedgerError, ToolRefused, UsageError
from adjudge.formats.arguments import check_choice, check_flag, check_seconds, check_share, check_whole_number
from adjudge.formats.invisible import doubt_name
from adjudge.formats.text import show
from adjudge.hooks import call_safely
from adjudge.judges.evaluate import since
from adjudge.ledger.ledger import Ledger
from adjudge.ledger.payload import check_text
from adjudge.tools.lifecycle import (
    ForgeResult,
    Promotion,
    ToolJudge,
    ToolTransaction,
    ask_creation,
    ask_promotion,
    make_claim,
    make_promotion,
    make_result,
)
from adjudge.tools.promotion import PromotionLimits, find_use_obstacle
from adjudge.tools.record import STATUSES, Claim, ToolRecord, ToolStatus
from adjudge.tools.reuse import validate_reuse
from adjudge.tools.store import LedgerToolStore, MemoryToolStore, ToolFilter, ToolStore
from adjudge.tools.tool import MISSING, TIERS, EmergentTool, ToolCandidate, ToolTier, tool_digest
from adjudge.tools.verdict import CreationVerdict, ReuseVerdict

RunTool = Callable[[ToolCandidate, Any], Any]
"""What runs a tool, wherever that may safely be done: given the candidate and the arguments, it returns the output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """What one use of a tool came to; true exactly when it ended well and put out what its schema says."""

    output: Any = None
    """``None`` where there is none that fits, so that nobody goes on with one that does not."""
    verdict: ReuseVerdict | None = None
    """Whether the output fits, and whether it lies outside the tool's history; ``None`` where none came."""
    error: BaseException | None = None
    """What the tool raised."""
    duration_ms: float = 0.0

    def __bool__(self) -> bool:
        return self.error is None and self.verdict is not None and self.verdict.valid


async def run_tool(run: RunTool, record: ToolRecord, arguments: Any) -> ToolUse:
    """Run a tool once; what it raises is part of the result."""
    candidate, usage = record.tool.candidate, record.tool.usage
    started = time.perf_counter()
    output, error = await call_safely(_call, run, candidate, arguments)
    took = since(started)
    if error is not None:
        return ToolUse(error=error, duration_ms=took)
    output = copy_plain(output)  # what is checked is what is handed on, though the tool may hold the same list
    schema = True if candidate.output_schema is None else candidate.output_schema
    history = usage.history if usage is not None else None
    verdict = validate_reuse(record.id, output, schema, history=history)
    return ToolUse(output=output if verdict.valid else None, verdict=verdict, duration_ms=took)


async def _call(run: RunTool, candidate: ToolCandidate, arguments: Any) -> Any:
    if inspect.iscoroutinefunction(run):
        return await run(candidate, arguments)
    said, error = await asyncio.to_thread(_call_here, run, candidate, arguments)
    if error is not None:
        raise error
    return await said if inspect.isawaitable(said) else said


def _call_here(run: RunTool, candidate: ToolCandidate, arguments: Any) -> tuple[Any, BaseException | None]:
    # Handed over as a value: a future cannot carry every exception, and its caller would wait for ever.
    try:
        return run(candidate, arguments), None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a tool is somebody else's and may raise anything
        return None, error


T = TypeVar("T")


LONGEST_NAME = 200
"""Characters in the name of a tool, an agent, a session or a person; every database can find texts of that length."""


def _now() -> datetime:
    return datetime.now(UTC)


class ToolRegistry:
    """Forged tools by tier: of one session, of one agent, or shared.

    A tool enters as its session's with a verdict that approves it, rises one tier at a time, and is bound to the
    SHA-256 of what it is: changed, it has no tier, does not run, and is reviewed again. The registry runs nothing by
    itself. Use it as an async context manager, or call ``aclose``.

    Args:
        store: where tools are kept: ``None`` for this process's memory; a ``Ledger``, or the address of one, for tables
            beside it. There a verdict, its entry and the change of tier are one transaction, any number of
            processes work at once, and a tool runs only as the ledger confirms it.
        session_cap: tools of one session, demoted ones aside.
        agent_cap: tools of the tier agent that one agent has.
        min_uses: uses before a promotion is reviewed.
        min_success_rate: the share of them that has to have succeeded.
        claim_seconds: how long one review may take; a killed process blocks a tool's next review as long.
        clock: what time it is, as an aware datetime.

    Raises:
        UsageError: for numbers that cannot be, and an address that cannot be used.
    """

    def __init__(
        self,
        store: Ledger | str | None = None,
        *,
        session_cap: int = 10,
        agent_cap: int = 50,
        min_uses: int = 5,
        min_success_rate: float = 0.8,
        claim_seconds: float = 300.0,
        clock: Callable[[], datetime] = _now,
    ) -> None:
        if store is not None and not isinstance(store, Ledger | str):
            raise UsageError(f"tools are kept in memory, beside a Ledger or at its address; got {show(store)}")
        numbers = {"session_cap": session_cap, "agent_cap": agent_cap, "min_uses": min_uses}
        for name, number in numbers.items():
            check_whole_number(name, number, least=1)
        check_share("min_success_rate", min_success_rate)
        check_seconds("claim_seconds", claim_seconds, most=86_400)
        self._limits = PromotionLimits(**numbers, min_success_rate=min_success_rate)
        self._claim_seconds = claim_seconds
        self._clock = clock
        ledger = Ledger(store) if isinstance(store, str) else store
        self._shelf: ToolStore = (
            MemoryToolStore() if ledger is None else LedgerToolStore(ledger, owns=isinstance(store, str))
        )

    # ---------------------------------------------------------------- coming and going

    async def register(
        self, candidate: ToolCandidate, verdict: CreationVerdict, *, agent: str, session: str
    ) -> ToolRecord:
        """Add a candidate that was approved, as a tool of a session; ``forge`` reviews it first.

        Raises ``UsageError`` for a verdict that does not approve, or is on anything else, and ``ToolRefused`` where
        the session is full, has a tool of that name in reach, or what the tool does was demoted.
        """
        _check_candidate(candidate)
        _check_verdict(verdict, candidate)
        if not verdict.approved:
            raise UsageError(f"the tool {show(candidate.name)} was rejected, and is not registered")
        _check_names(agent=agent, session=session)
        _check_name(candidate)
        return await self._change(lambda step: step.register(candidate, verdict, agent, session))

    async def load(
        self, source: ToolCandidate | EmergentTool | Mapping[str, Any], *, agent: str, session: str
    ) -> ToolRecord:
        """Add a tool from elsewhere, or what ``to_dict`` of one wrote; it does not run before ``review`` approves it.

        Of the package only the candidate is taken: what others say of its uses and reviews is no evidence here.
        Raises as ``register``.
        """
        candidate = _read_package(source)
        _check_names(agent=agent, session=session)
        _check_name(candidate)
        return await self._change(lambda step: step.write_unreviewed(candidate, agent, session))

    async def check_room(self, candidate: ToolCandidate, *, agent: str, session: str) -> None:
        """Raise ``ToolRefused`` where ``register`` would, before a review is paid for."""
        _check_candidate(candidate)
        _check_names(agent=agent, session=session)
        _check_name(candidate)
        await self._look(lambda step: step.check_room(candidate, agent, session))

    async def record_rejection(
        self, candidate: ToolCandidate, verdict: CreationVerdict, *, agent: str, session: str
    ) -> None:
        """Record that a candidate was rejected; in memory, nothing."""
        _check_candidate(candidate)
        _check_verdict(verdict, candidate)
        if verdict.approved:
            raise UsageError(f"the tool {show(candidate.name)} was approved; register() records that")
        _check_names(agent=agent, session=session)
        await self._change(lambda step: step.reject(candidate, verdict, agent, session))

    async def end_session(self, session: str, *, agent: str | None = None) -> int:
        """Remove the tools of a session (of one agent, where given), and say how many there were.

        The name is compared whole. What has risen above the session stays, and so does the record of what was demoted.
        """
        _check_names(session=session, **({} if agent is None else {"agent": agent}))
        return await self._change(lambda step: step.end_session(session, agent))

    async def remove(self, id: str, reason: str = "", *, by: str | None = None) -> None:  # noqa: A002 - as everywhere
        """Remove a tool of any tier; raises ``ToolRefused`` where there is none."""
        _check_words(reason=reason)
        _check_people(by=by)
        await self._change(lambda step: step.remove(id, reason, by))

    # ---------------------------------------------------------------- looking

    async def get(self, id: str) -> ToolRecord:  # noqa: A002 - as everywhere
        """A tool by its id; raises ``ToolRefused`` (``unknown``) where there is none."""
        return await self._look(lambda step: step.find(id))

    async def list(
        self,
        *,
        tier: ToolTier | None = None,
        session: str | None = None,
        agent: str | None = None,
        status: ToolStatus | None = None,
    ) -> tuple[ToolRecord, ...]:
        """Tools in the order in which they were registered: all that match everything given, running or not."""
        for what, value, known in (("tier", tier, TIERS), ("status", status, STATUSES)):
            if value is not None:
                check_choice(f"a tool's {what}", value, known)
        _check_words(session=session, agent=agent)
        wanted = ToolFilter(tier=tier, session=session, agent=agent, status=status)
        return tuple(await self._look(lambda step: step.view.find(wanted)))

    async def usable(self, *, agent: str, session: str) -> tuple[ToolRecord, ...]:
        """The tools that run there: those of the session, those of the agent, and those that are shared."""
        _check_names(agent=agent, session=session)
        wanted = (
            ToolFilter(tier="session", status="active", agent=agent, session=session),
            ToolFilter(tier="agent", status="active", agent=agent),
            ToolFilter(tier="shared", status="active"),
        )
        return tuple(await self._look(lambda step: [item for each in wanted for item in step.view.find(each)]))

    # ---------------------------------------------------------------- using

    async def check(
        self,
        id: str,  # noqa: A002 - as everywhere
        *,
        agent: str,
        session: str,
        candidate: ToolCandidate | None = None,
    ) -> ToolRecord:
        """The tool, if it may run there; raises ``ToolRefused`` if not.

        ``candidate`` is what the caller would run: anything else than what was reviewed is refused. Raises
        ``LedgerError`` where the ledger does not confirm what the tables beside it say of the tool.
        """
        _check_names(agent=agent, session=session)
        record = await self.get(id)
        obstacle = find_use_obstacle(record, agent=agent, session=session, candidate=candidate)
        if obstacle is not None:
            raise obstacle.make_error()
        await self._confirm(record)
        return record

    async def use(self, id: str, run: RunTool, arguments: object, *, agent: str, session: str) -> ToolUse:  # noqa: A002 - as everywhere
        """Have the caller's ``run(candidate, arguments)`` run a tool, check what it puts out, and count the use.

        ``run`` is handed what was reviewed, so nothing else can be run by mistake; a synchronous one runs in a thread.
        The result is true exactly when it succeeded: what it raised is in ``error``, and an output that does not fit
        the schema is dropped, with the reasons in ``verdict``. Raises ``ToolRefused``, before anything runs, for what
        ``check`` refuses and for arguments that do not fit the input schema; and afterwards where the tool was changed
        or taken out of use meanwhile.
        """
        record = await self.check(id, agent=agent, session=session)
        candidate = record.tool.candidate
        arguments = copy_plain(arguments)  # what fits is what runs, though the caller goes on changing its own
        fitting = validate_reuse(id, arguments, candidate.input_schema)
        if not fitting.valid:
            said = "; ".join(fitting.schema_errors[:3])
            raise ToolRefused(f"the arguments do not fit the input schema of {id}: {said}", because="arguments")
        use = await run_tool(run, record, arguments)
        kept = use.output if use else MISSING
        await self._record_use(id, record.digest, success=bool(use), ms=use.duration_ms, output=kept)
        return use

    async def record_use(
        self,
        id: str,  # noqa: A002 - as everywhere
        success: bool,  # noqa: FBT001 - the words of whoever counts
        duration_ms: float,
        output: object = MISSING,
        *,
        candidate: ToolCandidate | None = None,
    ) -> ToolRecord:
        """Count a use that the caller ran and checked itself; ``use`` does both.

        An ``output`` that does not fit the tool's schema makes it a failure. Raises ``ToolRefused`` for a tool that
        does not run, and, with ``candidate``, where that is not what the tool is now.
        """
        check_flag("success", success)
        if isinstance(duration_ms, bool) or not 0 <= duration_ms < float("inf"):
            raise UsageError(f"duration_ms is a number of milliseconds from 0, got {show(duration_ms)}")
        if success and output is not MISSING:
            schema = (await self.get(id)).tool.candidate.output_schema
            success = validate_reuse(id, output, True if schema is None else schema).valid
        digest = tool_digest(candidate) if candidate is not None else None
        return await self._record_use(id, digest, success=success, ms=duration_ms, output=output)

    # ---------------------------------------------------------------- rising and falling

    async def promote(
        self,
        id: str,  # noqa: A002 - as everywhere
        judge: ToolJudge,
        *,
        to: ToolTier = "agent",
        approved_by: str | None = None,
    ) -> Promotion:
        """Put a tool before the panel, if its uses say so, and raise it by one tier if both reviewers approve.

        True exactly when the tool rose. Nobody is asked where the tool has too few uses, cools down after a refusal,
        has the tier already, or is before the panel at this moment: that is a result, and can be tried after every
        use. Raises ``ToolRefused`` where something has to be mended first: a tool that is unknown, unreviewed or
        demoted, a tier that is not the next one, a full cap, a name that is taken, and ``shared`` without the name of
        who approved it, which the caller has established.
        """
        check_choice("a tier", to, TIERS)
        if approved_by is not None:
            _check_people(approved_by=approved_by)
        claim = self._make_claim()
        begun = await self._change(lambda step: step.begin_rise(id, to, approved_by, claim))
        if begun.obstacle is not None or begun.record is None:
            return make_promotion(begun, None)
        record = begun.record

        async def ask() -> Promotion:
            await self._confirm(record)
            verdict = await ask_promotion(judge, record.tool, self._claim_seconds)
            ended = await self._change(lambda step: step.end_rise(record, to, approved_by, verdict))
            return make_promotion(ended, verdict)

        return await self._hold(id, claim, ask())

    async def demote(self, id: str, reason: str, *, by: str) -> ToolRecord:  # noqa: A002 - as everywhere
        """Take a tool out of use, at once and in every process; ``review`` can reinstate it.

        Nothing stands in the way: no cap, and no panel that is under way. A new tool that does the same is refused.
        """
        _check_words(reason=reason)
        _check_names(by=by)
        _check_people(by=by)
        return await self._change(lambda step: step.demote(id, reason, by))

    async def update(self, id: str, candidate: ToolCandidate, *, session: str | None = None) -> ToolRecord:  # noqa: A002 - as everywhere
        """Replace what a tool is. Unless that is the same, it loses its tier, its statistics and its review.

        ``session`` is where it is tried from now on; by default where it was made.
        """
        _check_candidate(candidate)
        _check_name(candidate)
        if session is not None:
            _check_names(session=session)
        return await self._change(lambda step: step.update(id, candidate, session))

    async def review(
        self,
        id: str,  # noqa: A002 - as everywhere
        judge: ToolJudge,
        *,
        by: str | None = None,
        session: str | None = None,
    ) -> ForgeResult:
        """Have a tool reviewed that was loaded, changed or demoted; approved, it runs in its session.

        ``by`` is who reinstates a demoted one, and needed for that. Raises ``ToolRefused`` for an unknown tool.
        """
        _check_people(by=by)
        if session is not None:
            _check_names(session=session)
        claim = self._make_claim()
        begun = await self._change(lambda step: step.begin_review(id, by, session, claim))
        if begun.obstacle is not None or begun.record is None:
            return make_result(begun, None)
        record = begun.record

        async def ask() -> ForgeResult:
            await self._confirm(record)
            verdict = await ask_creation(judge, record.tool.candidate, self._claim_seconds)
            ended = await self._change(lambda step: step.end_review(record, verdict, by, session))
            return make_result(ended, verdict)

        return await self._hold(id, claim, ask())

    # ---------------------------------------------------------------- its end

    async def aclose(self) -> None:
        """Close the store, if it was opened here."""
        await self._shelf.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    # ---------------------------------------------------------------- within

    async def _record_use(self, ident: str, digest: str | None, *, success: bool, ms: float, output: Any) -> ToolRecord:
        return await self._change(
            lambda step: step.record_use(ident, digest, success=success, ms=ms, output=output if success else MISSING)
        )

    async def _hold(self, ident: str, claim: Claim, work: Awaitable[T]) -> T:
        """What some work makes of a tool that was claimed for it; the claim is given back where that fails."""
        try:
            return await work
        except BaseException:
            # A store that fails cannot take it back either; the claim ends by itself then.
            with suppress(LedgerError):
                await self._change(lambda step: step.release(ident, claim))
            raise

    async def _confirm(self, record: ToolRecord) -> None:
        """Raise unless the ledger holds what the tables say: whoever can write those could promote what he likes."""
        doubt = await self._shelf.find_doubt(record)
        if doubt is not None:
            raise LedgerError(
                f"the tool {record.id} is {record.status} with the tier {record.tier} in its table, and the ledger "
                f"does not confirm {doubt}; `adjudge ledger verify` shows whether the ledger was changed"
            )

    async def _change(self, work: Callable[[ToolTransaction], T]) -> T:
        return await self._shelf.change(lambda view: work(ToolTransaction(view, self._limits, self._time())))

    async def _look(self, work: Callable[[ToolTransaction], T]) -> T:
        return await self._shelf.look(lambda view: work(ToolTransaction(view, self._limits, self._time())))

    def _make_claim(self) -> Claim:
        return make_claim(self._time(), self._claim_seconds)

    def _time(self) -> datetime:
        now = self._clock()
        if now.tzinfo is None:
            raise UsageError("the clock of a registry gives times without a zone; use datetime.now(timezone.utc)")
        return now.astimezone(UTC)


def _read_package(source: ToolCandidate | EmergentTool | Mapping[str, Any]) -> ToolCandidate:
    if isinstance(source, ToolCandidate):
        return source
    if isinstance(source, EmergentTool):
        return source.candidate
    inner = source.get("candidate") if isinstance(source, Mapping) else None
    return ToolCandidate.from_dict(source if inner is None else inner)


def _check_candidate(candidate: object) -> None:
    if not isinstance(candidate, ToolCandidate):
        raise UsageError(f"a registry holds what was made of a ToolCandidate, got {show(candidate)}")


def _check_verdict(verdict: object, candidate: ToolCandidate) -> None:
    if not isinstance(verdict, CreationVerdict):
        raise UsageError(f"a tool is registered with a CreationVerdict, got {show(verdict)}")
    if verdict.tool_digest != tool_digest(candidate):
        raise UsageError(f"the verdict is on something else than the tool {show(candidate.name)}; have it reviewed")


def _check_names(**names: object) -> None:
    """Agents, sessions and people are compared whole, so an empty name would be everybody's."""
    for what, name in names.items():
        _check_length(what, name)
        if not str(name).strip():
            raise UsageError(f"{what} needs a name that is not empty")


def _check_people(**names: str | None) -> None:
    """Who answers for something: nobody may stand there twice under names that read the same."""
    for what, name in names.items():
        if name is not None:
            _check_names(**{what: name})
            doubt = doubt_name(name)
            if doubt is not None:
                raise UsageError(f"{what}={name[:80]!a} names nobody for certain: {doubt}")


def _check_length(what: str, name: object) -> None:
    check_text(what, name)
    if len(str(name)) > LONGEST_NAME:
        raise UsageError(f"{what} has at most {LONGEST_NAME} characters, got {len(str(name)):,}")


def _check_words(**texts: str | None) -> None:
    for what, text in texts.items():
        if text is not None:
            check_text(what, text)


def _check_name(candidate: ToolCandidate) -> None:
    """A model may have chosen it, so an odd one is refused like a bad tool and not like a caller's mistake."""
    try:
        _check_length("a tool's name", candidate.name)
    except UsageError as error:
        raise ToolRefused(str(error), because="name") from None
