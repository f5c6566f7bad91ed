"""The registry of forged tools: who may use which tool, how well it does, and how it is promoted or demoted.

Whether a tool may run or finds room is decided in ``registry_obstacles.py``, whether it rises a tier in
``promotion.py`` (``find_promotion_obstacle``), and what a change writes in ``lifecycle.py`` (``ToolTransaction``).
"""

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
from adjudge.errors import Argument, LedgerError, ToolRefused, UsageError
from adjudge.formats.arguments import check_choice, check_flag, check_seconds, check_share, check_whole_number
from adjudge.formats.invisible import explain_doubtful_name
from adjudge.formats.text import show
from adjudge.formats.times import get_now
from adjudge.guards.tool_guard.call import ToolCall
from adjudge.guards.tool_guard.screens import Screened
from adjudge.hooks import call_safely
from adjudge.judges.evaluate import measure_ms
from adjudge.ledger.ledger import Ledger
from adjudge.ledger.payload import check_text
from adjudge.tools.lifecycle import ForgeResult, ToolJudge, ToolTransaction, ask_creation, make_claim, make_result
from adjudge.tools.promotion import Promotion, ask_promotion, begin_promotion, end_promotion, make_promotion
from adjudge.tools.record import STATUSES, Claim, ToolRecord, ToolStatus
from adjudge.tools.registry_obstacles import RegistryLimits, find_use_obstacle
from adjudge.tools.reuse import validate_reuse
from adjudge.tools.store import ToolFilter, open_store
from adjudge.tools.tool import MISSING, TIERS, EmergentTool, ToolCandidate, ToolTier, tool_digest
from adjudge.tools.verdict import CreationVerdict, ReuseVerdict

RunTool = Callable[[ToolCandidate, Any], Any]
"""Your function that runs a tool in a safe place: it gets the candidate and the arguments and returns the output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """The result of one use of a tool. True exactly when the tool did not raise and its output fits its schema."""

    output: Any = None
    """The output; ``None`` if there is none, or if it does not fit the schema, so that no caller can use it."""
    verdict: ReuseVerdict | None = None
    """The verdict on the output: whether it fits, and whether it is unusual for this tool; ``None`` if the tool raised.
    """
    error: Exception | None = None
    """The exception that the tool raised, if any."""
    duration_ms: float = 0.0
    """The time that the tool took, in milliseconds."""

    def __bool__(self) -> bool:
        return self.error is None and self.verdict is not None and self.verdict.valid


async def run_tool(run: RunTool, record: ToolRecord, arguments: Any) -> ToolUse:
    """Run a tool once, and check its output; an exception of the tool is part of the result."""
    candidate, usage = record.tool.candidate, record.tool.usage
    started = time.perf_counter()
    output, error = await call_safely(_call_tool, run, candidate, arguments)
    duration_ms = measure_ms(started)
    if error is not None:
        return ToolUse(error=error, duration_ms=duration_ms)
    output = copy_plain(output)  # a copy, which the tool cannot change after it was checked
    schema = True if candidate.output_schema is None else candidate.output_schema
    history = usage.history if usage is not None else None
    verdict = validate_reuse(record.id, output, schema, history=history)
    return ToolUse(output=output if verdict.valid else None, verdict=verdict, duration_ms=duration_ms)


async def _call_tool(run: RunTool, candidate: ToolCandidate, arguments: Any) -> Any:
    """Call ``run`` for a tool and return what it returns; a ``run`` that is not async is called in a thread."""
    try:
        if inspect.iscoroutinefunction(run):
            return await run(candidate, arguments)
        output, error = await asyncio.to_thread(_call_sync, run, candidate, arguments)
        if error is not None:
            raise error
        return await output if inspect.isawaitable(output) else output
    except SystemExit as error:  # the tool, which a model wrote, must not end the program that runs it
        raise RuntimeError(f"the tool ended its program: SystemExit: {error}") from error


def _call_sync(run: RunTool, candidate: ToolCandidate, arguments: Any) -> tuple[Any, BaseException | None]:
    """Call ``run`` for a tool; return its value and ``None``, or ``None`` and the exception that it raised."""
    # The exception is returned and not raised: a future cannot carry every exception, and its caller would wait for
    # ever.
    try:
        return run(candidate, arguments), None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a tool is somebody else's and may raise anything
        return None, error


T = TypeVar("T")


LONGEST_NAME = 200
"""Characters in the name of a tool, an agent, a session or a person; every database can find texts of that length."""


class ToolRegistry:
    """Forged tools by tier: of one session, of one agent, or shared.

    A tool needs a verdict that approves it. It starts in its session and is promoted one tier at a time. Its verdicts
    and its tier are bound to the SHA-256 of its code and schemas: after a change it does not run until it is reviewed
    again. The registry never runs a tool by itself. Use it as an async context manager, or call ``aclose``.

    Args:
        store: Where tools are kept: ``None`` for memory, until the registry is closed; a ``Ledger``, or the address of
            one, for tables beside it. There, a verdict, its entry and the change of tier are one transaction, any
            number of processes can work at once, and a tool runs only if the ledger confirms its state.
        session_cap: The most tools that one session may have; demoted ones do not count.
        agent_cap: The most tools that one agent may have in the tier ``agent``.
        min_uses: The uses that a tool needs before a promotion is reviewed.
        min_success_rate: The share of these uses that must have succeeded, in 0 to 1.
        claim_seconds: Seconds that one review may take. If a process is killed, the tool's next review has to wait that
            long.
        clock: Returns the time, as an aware datetime.

    Raises:
        UsageError: For a number out of its range, and an address that cannot be used.
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
        clock: Callable[[], datetime] = get_now,
    ) -> None:
        if store is not None and not isinstance(store, Ledger | str):
            raise UsageError(
                f"tools are kept in memory, beside a Ledger or at its address; got {show(store)}", argument="store"
            )
        numbers = {"session_cap": session_cap, "agent_cap": agent_cap, "min_uses": min_uses}
        for name, number in numbers.items():
            check_whole_number(name, number, least=1)
        check_share("min_success_rate", min_success_rate)
        check_seconds("claim_seconds", claim_seconds, most=86_400)
        self._limits = RegistryLimits(
            session_cap=session_cap, agent_cap=agent_cap, min_uses=min_uses, min_success_rate=min_success_rate
        )
        self._claim_seconds = claim_seconds
        self._clock = clock
        self._store = open_store(store)

    # ---------------------------------------------------------------- coming and going

    async def register(
        self, candidate: ToolCandidate, verdict: CreationVerdict, *, agent: str, session: str
    ) -> ToolRecord:
        """Add an approved candidate as a tool of a session. To have it reviewed first, use ``forge``.

        Raises ``UsageError`` if the verdict does not approve or is about another candidate. Raises ``ToolRefused`` if
        the session is full, can already use a tool of that name, or if a tool with the same digest was demoted.

        Args:
            candidate: The candidate: its source or steps, its schemas and its tests.
            verdict: The verdict of the review.
            agent: The name of the agent.
            session: The name of the agent's session.
        """
        _check_candidate(candidate)
        _check_verdict(verdict, candidate)
        if not verdict.approved:
            raise UsageError(f"the tool {show(candidate.name)} was rejected, and is not registered")
        _check_names(agent=agent, session=session)
        _check_name(candidate)
        return await self._change_tools(lambda transaction: transaction.register(candidate, verdict, agent, session))

    async def load(
        self, source: ToolCandidate | EmergentTool | Mapping[str, Any], *, agent: str, session: str
    ) -> ToolRecord:
        """Add a tool from elsewhere, which does not run until ``review`` approves it.

        Only the candidate is read; the package's own claims about uses and reviews are ignored. Raises like
        ``register``.

        Args:
            source: A candidate, a tool, or either as plain data.
            agent: The name of the agent.
            session: The name of the agent's session.
        """
        candidate = _extract_candidate(source)
        _check_names(agent=agent, session=session)
        _check_name(candidate)
        return await self._change_tools(lambda transaction: transaction.write_unreviewed(candidate, agent, session))

    async def check_room(self, candidate: ToolCandidate, *, agent: str, session: str) -> None:
        """Raise ``ToolRefused`` if ``register`` would, so that you need not pay for a review first.

        Args:
            candidate: The candidate: its source or steps, its schemas and its tests.
            agent: The name of the agent.
            session: The name of the agent's session.
        """
        _check_candidate(candidate)
        _check_names(agent=agent, session=session)
        _check_name(candidate)
        await self._read_tools(lambda transaction: transaction.check_room(candidate, agent, session))

    async def record_rejection(
        self, candidate: ToolCandidate, verdict: CreationVerdict, *, agent: str, session: str
    ) -> None:
        """Record in the ledger that a candidate was rejected.

        Args:
            candidate: The candidate: its source or steps, its schemas and its tests.
            verdict: The verdict of the review.
            agent: The name of the agent.
            session: The name of the agent's session.
        """
        _check_candidate(candidate)
        _check_verdict(verdict, candidate)
        if verdict.approved:
            raise UsageError(f"the tool {show(candidate.name)} was approved; register it to record that")
        _check_names(agent=agent, session=session)
        await self._change_tools(lambda transaction: transaction.reject(candidate, verdict, agent, session))

    async def end_session(self, session: str, *, agent: str | None = None) -> int:
        """Remove the tools of a session and return how many there were.

        The session's name must match exactly. Promoted tools stay, and so do the records of demoted ones.

        Args:
            session: The name of the agent's session.
            agent: Remove the tools of this agent alone; ``None`` is every agent.
        """
        _check_names(session=session)
        if agent is not None:
            _check_names(agent=agent)
        return await self._change_tools(lambda transaction: transaction.end_session(session, agent))

    async def remove(self, id: str, reason: str = "", *, by: str | None = None) -> None:  # noqa: A002 - as everywhere
        """Remove a tool of any tier. Raises ``ToolRefused`` for an unknown id.

        Args:
            id: The id of the tool.
            reason: Why, in a sentence.
            by: The person who does it.
        """
        _check_texts(reason=reason)
        _check_people(by=by)
        await self._change_tools(lambda transaction: transaction.remove(id, reason, by))

    # ---------------------------------------------------------------- looking

    async def get(self, id: str) -> ToolRecord:  # noqa: A002 - as everywhere
        """Return a tool by its id. Raises ``ToolRefused`` (``unknown``) if there is none.

        Args:
            id: The id of the tool.
        """
        return await self._read_tools(lambda transaction: transaction.find(id))

    async def list(
        self,
        *,
        tier: ToolTier | None = None,
        session: str | None = None,
        agent: str | None = None,
        status: ToolStatus | None = None,
    ) -> tuple[ToolRecord, ...]:
        """Return the tools that match all conditions, of any status, in the order in which they were registered.

        Args:
            tier: Only tools of this tier.
            session: Only tools of this session.
            agent: Only tools of this agent.
            status: Only tools of this status.
        """
        for parameter, value, choices in (("tier", tier, TIERS), ("status", status, STATUSES)):
            if value is not None:
                check_choice(parameter, value, choices)
        _check_texts(session=session, agent=agent)
        tool_filter = ToolFilter(tier=tier, session=session, agent=agent, status=status)
        return tuple(await self._read_tools(lambda transaction: transaction.view.find(tool_filter)))

    async def usable(self, *, agent: str, session: str) -> tuple[ToolRecord, ...]:
        """Return the tools that may run there: those of the session, those of the agent, and shared ones.

        Args:
            agent: The name of the agent.
            session: The name of the agent's session.
        """
        _check_names(agent=agent, session=session)
        filters = (
            ToolFilter(tier="session", status="active", agent=agent, session=session),
            ToolFilter(tier="agent", status="active", agent=agent),
            ToolFilter(tier="shared", status="active"),
        )
        return tuple(
            await self._read_tools(
                lambda transaction: [record for tool_filter in filters for record in transaction.view.find(tool_filter)]
            )
        )

    # ---------------------------------------------------------------- using

    async def check(
        self,
        id: str,  # noqa: A002 - as everywhere
        *,
        agent: str,
        session: str,
        candidate: ToolCandidate | None = None,
    ) -> ToolRecord:
        """Return the tool if it may run there; raise ``ToolRefused`` if not.

        Raises ``LedgerError`` if the ledger does not confirm the tool's state in the tables.

        Args:
            id: The id of the tool.
            agent: The name of the agent.
            session: The name of the agent's session.
            candidate: The candidate that you are about to run; it is refused unless it is the reviewed one. ``None``
                compares nothing.
        """
        _check_names(agent=agent, session=session)
        record = await self.get(id)
        obstacle = find_use_obstacle(record, agent=agent, session=session, candidate=candidate)
        if obstacle is not None:
            raise obstacle.make_error()
        await self._check_confirmed(record)
        return record

    async def screen_call(self, call: ToolCall, arguments: Mapping[str, Any], /) -> Screened:
        """Return whether a call is of a tool that may run there, as a ``ToolGuard`` asks with this in a gate's place.

        The tool is found by its name among those that the call's ``agent`` can use in its ``run_id`` as the session,
        and its arguments have to fit its input schema.

        Args:
            call: The call of a tool.
            arguments: The arguments of the call, read.
        """
        try:
            record = await self._find_called_tool(call)
            await self.check(record.id, agent=call.agent or "", session=call.run_id)
        except ToolRefused as error:
            return Screened(allowed=False, detail=str(error))
        fitting = validate_reuse(record.id, dict(arguments), record.tool.candidate.input_schema)
        problems = "; ".join(fitting.schema_errors[:3])
        return Screened(allowed=fitting.valid, detail=problems or f"{record.id} is approved, digest {record.digest}")

    async def screen_result(self, call: ToolCall, result: Any, /) -> Screened:
        """Return whether the output of a called tool fits its schema; no judge is asked.

        Args:
            call: The call of a tool.
            result: What the tool returned.
        """
        try:
            record = await self._find_called_tool(call)
        except ToolRefused as error:
            return Screened(allowed=False, detail=str(error))
        schema = record.tool.candidate.output_schema
        verdict = validate_reuse(record.id, result, True if schema is None else schema)
        return Screened(allowed=verdict.valid, detail="; ".join(verdict.schema_errors[:3]))

    async def use(self, id: str, run: RunTool, arguments: object, *, agent: str, session: str) -> ToolUse:  # noqa: A002 - as everywhere
        """Run a tool with your ``run(candidate, arguments)``, check its output, and count the use.

        The result is true exactly when the use succeeded. An exception of the tool is in ``error``. An output that does
        not fit the schema is dropped, with the reasons in ``verdict``. Raises ``ToolRefused`` before anything runs, if
        ``check`` refuses the tool or the arguments do not fit the input schema; and afterwards, if the tool was changed
        or demoted meanwhile.

        Args:
            id: The id of the tool.
            run: Your function, sync or async, that is given the reviewed candidate and the arguments, so you cannot run
                another version by mistake. A synchronous one runs in a thread.
            arguments: The arguments of the tool.
            agent: The name of the agent.
            session: The name of the agent's session.
        """
        record = await self.check(id, agent=agent, session=session)
        candidate = record.tool.candidate
        arguments = copy_plain(arguments)  # a copy, which the caller cannot change after it was checked
        fitting = validate_reuse(id, arguments, candidate.input_schema)
        if not fitting.valid:
            problems = "; ".join(fitting.schema_errors[:3])
            raise ToolRefused(f"the arguments do not fit the input schema of {id}: {problems}", because="arguments")
        use = await run_tool(run, record, arguments)
        output = use.output if use else MISSING
        await self._record_use(id, record.digest, success=bool(use), ms=use.duration_ms, output=output)
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
        """Count a use that you ran and checked yourself; ``use`` does all three.

        Raises ``ToolRefused`` if the tool may not run, and if ``candidate`` is given and differs from the tool's
        current one.

        Args:
            id: The id of the tool.
            success: True if the output was right.
            duration_ms: The duration in milliseconds.
            output: What the tool returned, if it is to be checked; one that does not fit the tool's schema counts as a
                failure.
            candidate: The candidate that was run; ``None`` compares nothing.
        """
        check_flag("success", success)
        if isinstance(duration_ms, bool) or not 0 <= duration_ms < float("inf"):
            raise UsageError(
                f"duration_ms is a number of milliseconds from 0, got {show(duration_ms)}", argument="duration_ms"
            )
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
        """Have the panel review a tool if it is due, and promote it by one tier if both reviewers approve.

        The result is true exactly when the tool was promoted. Nobody is asked if the tool has too few uses, is in its
        cool-down after a refusal, has the tier already, or is being reviewed at this moment; the result then says so,
        and you can call this after every use. Raises ``ToolRefused`` if waiting cannot help: the tool is unknown,
        unreviewed or demoted, the tier is not the next one, a cap is full, the name is taken, or ``to="shared"`` comes
        without ``approved_by``.

        Args:
            id: The id of the tool.
            judge: The panel of reviewers.
            to: The tier that it is promoted to: the one after its own.
            approved_by: The name, which your program has checked, of the person who approves; needed for
                ``to="shared"``.
        """
        check_choice("to", to, TIERS)
        if approved_by is not None:
            _check_people(approved_by=approved_by)
        claim = self._make_claim()
        claimed = await self._change_tools(lambda transaction: begin_promotion(transaction, id, to, approved_by, claim))
        if claimed.obstacle is not None or claimed.record is None:
            return make_promotion(claimed, None)
        work = self._ask_and_promote(claimed.record, judge, to, approved_by)
        return await self._run_claimed(id, claim, work)

    async def demote(self, id: str, reason: str, *, by: str) -> ToolRecord:  # noqa: A002 - as everywhere
        """Take a tool out of use at once, in every process. ``review`` can reinstate it.

        This works even if a cap is full or a review is under way. A new tool with the same digest is refused.

        Args:
            id: The id of the tool.
            reason: Why, in a sentence.
            by: The person who does it.
        """
        _check_texts(reason=reason)
        _check_names(by=by)
        _check_people(by=by)
        return await self._change_tools(lambda transaction: transaction.demote(id, reason, by))

    async def update(self, id: str, candidate: ToolCandidate, *, session: str | None = None) -> ToolRecord:  # noqa: A002 - as everywhere
        """Replace a tool's candidate. If it differs, the tool loses its tier, its statistics and its review.

        Args:
            id: The id of the tool.
            candidate: The candidate: its source or steps, its schemas and its tests.
            session: The session that the tool belongs to from now on; by default the one that made it.
        """
        _check_candidate(candidate)
        _check_name(candidate)
        if session is not None:
            _check_names(session=session)
        return await self._change_tools(lambda transaction: transaction.update(id, candidate, session))

    async def review(
        self,
        id: str,  # noqa: A002 - as everywhere
        judge: ToolJudge,
        *,
        by: str | None = None,
        session: str | None = None,
    ) -> ForgeResult:
        """Have a loaded, changed or demoted tool reviewed. If it is approved, it runs in its session.

        Raises ``ToolRefused`` for an unknown tool.

        Args:
            id: The id of the tool.
            judge: The panel of reviewers.
            by: The name of the person who reinstates a demoted tool; not needed for another.
            session: The session that the tool belongs to from now on; by default its own.
        """
        _check_people(by=by)
        if session is not None:
            _check_names(session=session)
        claim = self._make_claim()
        claimed = await self._change_tools(lambda transaction: transaction.begin_review(id, by, session, claim))
        if claimed.obstacle is not None or claimed.record is None:
            return make_result(claimed, None)
        return await self._run_claimed(id, claim, self._ask_and_review(claimed.record, judge, by, session))

    # ---------------------------------------------------------------- its end

    async def aclose(self) -> None:
        """Close the store, if it was opened here."""
        await self._store.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    # ---------------------------------------------------------------- within

    async def _find_called_tool(self, call: ToolCall) -> ToolRecord:
        """Find the tool that a call names, among those that its agent may use.

        Raises ``ToolRefused`` for a call without an agent, and where there is no such tool or more than one.
        """
        if not call.agent:
            raise ToolRefused("a forged tool belongs to an agent, and this call names none", because="scope")
        usable = await self.usable(agent=call.agent, session=call.run_id)
        records = [record for record in usable if record.tool.candidate.name == call.tool]
        if len(records) != 1:
            name = show(call.tool[:80])
            raise ToolRefused(
                f"{len(records)} forged tools are called {name} there, and one is needed", because="unknown"
            )
        return records[0]

    async def _record_use(
        self, tool_id: str, digest: str | None, *, success: bool, ms: float, output: Any
    ) -> ToolRecord:
        """Count a use of a tool in a transaction; the output joins its history if the use succeeded."""
        return await self._change_tools(
            lambda transaction: transaction.record_use(
                tool_id, digest, success=success, ms=ms, output=output if success else MISSING
            )
        )

    async def _run_claimed(self, tool_id: str, claim: Claim, work: Awaitable[T]) -> T:
        """Await some work on a claimed tool and return its result; if the work raises, end the claim."""
        try:
            return await work
        except BaseException:
            # If the store fails, the claim cannot be ended; it expires by itself.
            with suppress(LedgerError):
                await self._change_tools(lambda transaction: transaction.release(tool_id, claim))
            raise

    async def _ask_and_promote(
        self, record: ToolRecord, judge: ToolJudge, to: ToolTier, approved_by: str | None
    ) -> Promotion:
        """Ask the panel about a claimed tool, and end the promotion by its verdict."""
        # Nobody is asked about a tool whose table was changed by hand.
        await self._check_confirmed(record)
        verdict = await ask_promotion(judge, record.tool, self._claim_seconds)
        outcome = await self._change_tools(
            lambda transaction: end_promotion(transaction, record, to, approved_by, verdict)
        )
        return make_promotion(outcome, verdict)

    async def _ask_and_review(
        self, record: ToolRecord, judge: ToolJudge, by: str | None, session: str | None
    ) -> ForgeResult:
        """Ask the judge of candidates about a claimed tool, and end the review by its verdict."""
        await self._check_confirmed(record)  # as for a promotion
        verdict = await ask_creation(judge, record.tool.candidate, self._claim_seconds)
        outcome = await self._change_tools(lambda transaction: transaction.end_review(record, verdict, by, session))
        return make_result(outcome, verdict)

    async def _check_confirmed(self, record: ToolRecord) -> None:
        """Raise ``LedgerError`` unless the ledger confirms what the tables say about a tool.

        Whoever can write to the database could otherwise promote a tool by changing its row.
        """
        doubt = await self._store.find_doubt(record)
        if doubt is not None:
            raise LedgerError(
                f"the tool {record.id} is {record.status} with the tier {record.tier} in its table, and the ledger "
                f"does not confirm {doubt}; `adjudge ledger verify` shows whether the ledger was changed"
            )

    async def _change_tools(self, work: Callable[[ToolTransaction], T]) -> T:
        """Call a function with a transaction that may change tools, and return its result."""
        return await self._store.change(lambda view: work(ToolTransaction(view, self._limits, self._get_time())))

    async def _read_tools(self, work: Callable[[ToolTransaction], T]) -> T:
        """Call a function with a transaction that only reads tools, and return its result."""
        return await self._store.read(lambda view: work(ToolTransaction(view, self._limits, self._get_time())))

    def _make_claim(self) -> Claim:
        """Make a claim for a review that begins now."""
        return make_claim(self._get_time(), self._claim_seconds)

    def _get_time(self) -> datetime:
        """Return the time of the clock, in UTC. Raises ``UsageError`` for a clock whose times have no zone."""
        now = self._clock()
        if now.tzinfo is None:
            raise UsageError(
                "the clock of a registry gives times without a zone; use datetime.now(timezone.utc)", argument="clock"
            )
        return now.astimezone(UTC)


def _extract_candidate(source: ToolCandidate | EmergentTool | Mapping[str, Any]) -> ToolCandidate:
    """Return the candidate in a tool, or in the plain data of a tool or candidate; a candidate is returned as it is."""
    if isinstance(source, ToolCandidate):
        return source
    if isinstance(source, EmergentTool):
        return source.candidate
    candidate_data = source.get("candidate") if isinstance(source, Mapping) else None
    return ToolCandidate.from_dict(source if candidate_data is None else candidate_data)


def _check_candidate(candidate: object) -> None:
    """Raise ``UsageError`` for a value that is no ``ToolCandidate``."""
    if not isinstance(candidate, ToolCandidate):
        raise UsageError(
            f"a registry holds what was made of a ToolCandidate, got {show(candidate)}", argument="candidate"
        )


def _check_verdict(verdict: object, candidate: ToolCandidate) -> None:
    """Raise ``UsageError`` for a value that is no ``CreationVerdict`` on exactly this candidate."""
    if not isinstance(verdict, CreationVerdict):
        raise UsageError(f"a tool is registered with a CreationVerdict, got {show(verdict)}", argument="verdict")
    if verdict.tool_digest != tool_digest(candidate):
        raise UsageError(
            f"the verdict is on something else than the tool {show(candidate.name)}; have it reviewed",
            argument="verdict",
        )


def _check_names(**names: object) -> None:
    """Raise ``UsageError`` for an empty or too long name of an agent, a session or a person.

    Names are compared as a whole, so everybody who gives none would have the same name.
    """
    for role, name in names.items():
        _check_length(role, name)
        if not str(name).strip():
            raise UsageError(f"{role} needs a name that is not empty", argument=role)


def _check_people(**names: str | None) -> None:
    """Raise ``UsageError`` for a name of a person that could be mistaken for another name; ``None`` is no name."""
    for role, name in names.items():
        if name is not None:
            _check_names(**{role: name})
            doubt = explain_doubtful_name(name)
            if doubt is not None:
                raise UsageError(Argument(role, f"{name[:80]!a}"), f" names nobody for certain: {doubt}", argument=role)


def _check_length(label: str, name: object) -> None:
    """Raise ``UsageError`` for a name that no store can hold exactly, or that is too long."""
    check_text(label, name)
    if len(str(name)) > LONGEST_NAME:
        raise UsageError(f"{label} has at most {LONGEST_NAME} characters, got {len(str(name)):,}", argument=label)


def _check_texts(**texts: str | None) -> None:
    """Raise ``UsageError`` for a text that not every store can hold exactly; ``None`` is no text."""
    for parameter, text in texts.items():
        if text is not None:
            check_text(parameter, text)


def _check_name(candidate: ToolCandidate) -> None:
    """Raise ``ToolRefused`` for a candidate whose name cannot be stored, or is too long.

    It is no ``UsageError``, because a model may have chosen the name: the candidate is at fault, and not the caller.
    """
    try:
        _check_length("a tool's name", candidate.name)
    except UsageError as error:
        raise ToolRefused(error, because="name") from None
