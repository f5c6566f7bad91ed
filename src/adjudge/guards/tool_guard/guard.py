"""Tool guards: decide whether an agent's tool calls may be made, by gates, screens and people.

Frameworks run their hooks again when they resume, and their "approved" can mean many things. So the guard looks up
whether this very call was checked before, trusts only its own store, and refuses a call if anything goes wrong: most
harnesses make the call when a hook raises, is late or returns nothing.

Which gate checks a tool is decided in ``tool_patterns.py``, whether a run may go on after refusals in ``run_trust.py``,
and what a gate answers in ``guards/gate.py``.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal, Self, get_args
from weakref import WeakValueDictionary

from adjudge.content import check_extent, digest_text, read_content, write_plain
from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.arguments import ReadOnly, check_choice, check_flag, check_seconds, check_whole_number
from adjudge.formats.text import flatten, quote, show
from adjudge.guards.approval.approvals import Approvals
from adjudge.guards.approval.pending_decisions import PendingDecision
from adjudge.guards.approval.request_terms import LONGEST_ANSWER
from adjudge.guards.decision import Decision
from adjudge.guards.firewall.prompt import PromptFirewall
from adjudge.guards.gate import Gate
from adjudge.guards.repeated_request import can_repeat, check_request, find_repeated, repeat_request
from adjudge.guards.tool_guard.arguments import read_arguments
from adjudge.guards.tool_guard.call import CallRefusedBecause, ToolCall, ToolVerdict
from adjudge.guards.tool_guard.effects import EFFECTS, list_effects, read_effects
from adjudge.guards.tool_guard.held_call import HeldCall
from adjudge.guards.tool_guard.named_files import NamedFiles, read_named_files
from adjudge.guards.tool_guard.run_trust import MOST_DENIALS, MOST_REFUSALS, RunTrust, TrustReader, reopen_run
from adjudge.guards.tool_guard.screens import CallScreen, ResultScreen, Screened, make_screened
from adjudge.guards.tool_guard.tool_patterns import ToolKey, ToolPatterns
from adjudge.guards.tool_guard.unfinished import AT_WORK, CONTENT, UnfinishedCall, list_unfinished_calls
from adjudge.hooks import logger
from adjudge.ledger.columns import CALL_PASSED, CALL_RAN, CALL_UNCHECKED, make_call_name
from adjudge.ledger.database import IN_MEMORY
from adjudge.ledger.judged_content import describe_judged
from adjudge.ledger.ledger import Ledger

CallMatch = Literal["call", "content"]

CallChecker = Gate | CallScreen

_REFUSAL_REASONS: dict[CallRefusedBecause, str] = {
    "refused": "it is not allowed here.",
    "not_listed": "this tool is not available here.",
    "refused_before": "it was refused before in this run.",
    "denied": "a person said no. Do not try it in another way.",
    "expired": "nobody answered in time.",
    "used": "it was approved once, and was made then or may have been.",
    "waits": 'it waits for a person, who finds it as "{word}". Do not repeat it now; go on with other work.',
    "stopped": "this run was stopped after several refusals, until a person reopens it.",
}
"""The eight sentences for the agent, by the reason of a refusal. They do not quote a judge or a rule, which would tell
an attacker what to write instead."""

_NEVER_HELD = "it was not held back, so it cannot be resumed"

_REFUSALS_BY_STATUS: dict[str, CallRefusedBecause] = {"denied": "denied", "blocked": "refused", "unknown": "refused"}
"""The reason of the refusal of a repeated call by the status of its last request, if people must not be asked again."""

_REFUSALS_WITH_IDS: dict[str, CallRefusedBecause] = _REFUSALS_BY_STATUS | {"used": "used"}
"""The same for calls with ids (``match="call"``): a call that was made is refused when it is repeated."""

_DEFAULT_MOST_OPEN = {"run": 10, "key": 50, "gate": 100}

_LONGEST_REMARK = 300

_MOST_RUNNING = 1_000
"""The most approved calls whose decisions a guard keeps in memory until their results come."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
"""Seconds that ``wait`` pauses before it looks at a call again: at first, and at most."""

_REFUSAL_STARTS = {
    "answer": "The answer was not given",
    "prompt": "The prompt was not taken",
    "content": "The content did not pass",
}
"""The beginning of a refusal for the agent, by the kind of a text that is no call."""

WITHHELD = "The result was withheld."
"""The sentence for an agent whose tool returned what may not reach it."""

FILES_NOT_BOUND = "files_not_bound"
"""The member of a call's text that says that it may use files which an approval is not bound to."""

USE_WITHIN = "use_within"
"""The member of a request's metadata that says, in seconds, for how long its approval can be used."""

NOT_CHECKED = "The call was not made: it could not be checked."
"""The sentence for an agent whose call an integration could not hand to a guard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """A question for a gate: a call, a result, an answer, a prompt or another text, in the form that is judged."""

    run_id: str
    call_id: str
    """Empty if calls are found by their content, and for a text that is no call."""
    subject: str
    """SHA-256 of the text of ``content``."""
    content: Any
    """Plain data that is judged, shown to people and bound to their approval."""
    call_members: Mapping[str, Any]
    """The members of ``call`` in the metadata, which an approval is bound to."""
    label: str
    """The tool, as people read it."""
    refusal_start: str = "The call was not made"
    unbound_metadata: Mapping[str, Any]
    """Metadata that an approval is not bound to."""
    effects: tuple[str, ...] = ()
    """The effects that the operator declares for a call of this tool."""


class ToolGuard(ReadOnly):
    """Decide whether an agent's calls of tools may be made: by gates, with people, once, and on the record.

    ``await guard.check(call)`` returns a ``ToolVerdict``, which is true only if the call may be made. It never raises
    because of the call. What is judged, shown to people and bound to their approval is one text: tool, server, folder,
    agent, arguments, and the digests of the files that the arguments name.

    Raises ``UsageError`` for a gate that could let a call pass unseen (see ``unsafe``), for gates that record in
    different ledgers, and for names of tools that cannot be told apart.

    Args:
        tools: A gate, or which gate checks which tool. A name is written as it is, or as its beginning with ``*``;
            several with ``|`` between them; tools of MCP as ``(server, tool)``. The most specific one that fits counts.
            A tool that none names is refused, and so is one that only resembles a stricter name. An ``InputFirewall``
            and a ``ToolRegistry`` are taken where a gate is. ``None`` checks nothing, and needs an exact name.
        answers: A gate for what the agent answers in the end.
        prompts: A gate, or a ``PromptFirewall``, for what the agent is told.
        results: A gate for what tools return, before the agent reads it.
        match: ``call`` finds a repeated call by its id; ``content`` by its content, for harnesses that give a repeated
            call a new id. A used approval is then followed by a new request.
        timeout: Seconds for one check, which must be less than the harness waits; after them the call is refused.
        show_reasons: Tell the agent what the failed rules are for, in the words of their ``description``.
        pass_answers: Tell the agent the line that a person wrote for it who denied its call, as a quotation.
        reading: Names of tools, as in ``tools``, that may go on when a run was stopped.
        effects: What calls of a tool do, in your words, such as ``("cannot be taken back", "money leaves")``; tools are
            named as in ``tools``. People read them beside the call, and their approval is bound to them: after a change
            they are asked again.
        use_within: Seconds after a person's vote in which an approval can be used.
        most_refusals: Refusals by rules and judges after which a run is stopped.
        most_denials: Denials by people after which a run is stopped.
        most_open: Requests that may wait for people at once: of a ``run``, of a ``key`` of a server, and of a ``gate``;
            10, 50 and 100 by default. In a run, those about calls and those about results, answers and prompts are
            counted apart.
        bind_files: Read the files that a call names in its folder, and bind the approval to what they hold.
        unsafe: Exceptions, each ``gate.option``: ``sample`` below 1, ``on_undecided="allow"``, an ``on_expiry`` of
            ``"approve"``, and asking people without ``show_content`` or a ledger with ``store_content="held"``.
        screens: Checks that every call has to pass before its gate is asked.
        harness: The program that runs the agent on this machine, such as ``claude``. Requests carry it, and ``adjudge
            approvals approve`` refuses them, because the agent could run that command.
        ledger: Where decisions are recorded; by default the ledger of the gates, or memory where they have none.
        name: The name under which the guard's own refusals are recorded.
    """

    def __init__(
        self,
        tools: CallChecker | Mapping[ToolKey, CallChecker | None],
        *,
        answers: Gate | None = None,
        prompts: Gate | PromptFirewall | None = None,
        results: Gate | None = None,
        match: CallMatch = "call",
        timeout: float = 30.0,
        show_reasons: bool = False,
        pass_answers: bool = False,
        reading: Collection[ToolKey] = (),
        effects: Mapping[ToolKey, Sequence[str]] | None = None,
        use_within: float = 900.0,
        most_refusals: int = MOST_REFUSALS,
        most_denials: int = MOST_DENIALS,
        most_open: Mapping[str, int] | None = None,
        bind_files: bool = True,
        unsafe: Collection[str] = (),
        screens: Sequence[CallScreen] = (),
        harness: str | None = None,
        ledger: Ledger | None = None,
        name: str = "tools",
    ) -> None:
        check_choice("match", match, get_args(CallMatch), where="a tool guard")
        check_flag("show_reasons", show_reasons)
        check_flag("pass_answers", pass_answers)
        check_flag("bind_files", bind_files)
        check_seconds("timeout", timeout)
        check_seconds("use_within", use_within)
        check_whole_number("most_refusals", most_refusals, least=1)
        check_whole_number("most_denials", most_denials, least=1)
        self.match: CallMatch = match
        self.timeout = timeout
        self.show_reasons = show_reasons
        self.pass_answers = pass_answers
        self.use_within = use_within
        self.most_refusals = most_refusals
        self.most_denials = most_denials
        self.most_open = _read_most_open(most_open)
        self.bind_files = bind_files
        self.name = name
        checkers: Mapping[ToolKey, CallChecker | None] = tools if isinstance(tools, Mapping) else {"*": tools}
        gates = [value for value in (*checkers.values(), answers, prompts, results) if isinstance(value, Gate)]
        _check_gates(gates, unsafe)
        known_ledger = _find_ledger(gates, ledger)
        self.ledger = Ledger(IN_MEMORY) if known_ledger is None else known_ledger
        """The ledger in which every decision is recorded."""
        self._owns_ledger = known_ledger is None
        prepared = {id(gate): self._prepare_gate(gate) for gate in gates}
        self._tools = ToolPatterns({key: _find_prepared(value, prepared) for key, value in checkers.items()})
        _check_checkers(self._tools)
        self._reading = ToolPatterns(dict.fromkeys(reading))
        self._effects = ToolPatterns({key: read_effects(declared) for key, declared in (effects or {}).items()})
        self._screens = tuple(screens)
        self.harness = harness
        self.answers = _find_prepared(answers, prepared)
        self.prompts = _find_prepared(prompts, prepared)
        self.results = _find_prepared(results, prepared)
        self._trust = TrustReader(self.ledger)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._running_decisions: OrderedDict[str, str] = OrderedDict()
        """The ids of the decisions that allowed approved calls, by the call's key, until the call's result comes."""
        self._is_made = True

    # ---------------------------------------------------------------- checking

    async def check(self, call: ToolCall, *, task: object = None) -> ToolVerdict:
        """Decide whether a call may be made; what cannot be checked within ``timeout`` is refused.

        Args:
            call: The call of a tool.
            task: What the user asked the agent for; the judge is shown it, and an approval is bound to it. Give it only
                where it comes from the user and not from the agent.
        """
        return await self._run_check(self._check_call(call, task), call.tool)

    async def resume(self, call: ToolCall, *, task: object = None) -> ToolVerdict:
        """Return what became of a call that waited for people; nobody is asked anew, and no judge.

        A call that was never held back is refused, so that a framework's word that it was approved opens nothing.

        Args:
            call: The call of a tool.
            task: What the user asked the agent for. It has to be what the call was held back with.
        """
        return await self._run_check(self._check_call(call, task, may_judge=False), call.tool)

    async def check_content(self, gate: str, content: object, *, run_id: str) -> ToolVerdict:
        """Decide whether some content may pass a gate of ``tools``, which has to stand there under this exact name.

        Use it for an agent that asks about a text itself. The gate judges the content as it is, and people are shown
        the same. Otherwise it is checked like a call of a tool of that name without an id: the same content in the same
        run is the same question.

        Args:
            gate: The name of the gate, as it stands in ``tools``.
            content: What is judged.
            run_id: The id of the agent's run.
        """
        return await self._run_check(self._check_content(gate, content, run_id), gate)

    async def check_answer(self, answer: object, *, run_id: str, task: object = None) -> ToolVerdict:
        """Decide whether the agent's answer may be given, by the gate ``answers``; without one it may.

        Args:
            answer: The agent's answer.
            run_id: The id of the agent's run.
            task: What the user asked the agent for. The judge is shown it.
        """
        return await self._check_text("answer", self.answers, answer, run_id, task)

    async def check_prompt(self, prompt: str, *, run_id: str) -> ToolVerdict:
        """Decide whether a prompt may reach the agent, by ``prompts``; without it, it may.

        Args:
            prompt: What the user wrote to the agent.
            run_id: The id of the agent's run.
        """
        return await self._check_text("prompt", self.prompts, prompt, run_id, None)

    async def check_result(self, call: ToolCall, result: object) -> ToolVerdict:
        """Decide whether the agent may read what a tool returned, by ``results``, and for a forged tool by its schema.

        Give the agent ``WITHHELD`` in its place where it may not. That the call was made is recorded, as by
        ``record_return``.

        Args:
            call: The call of a tool.
            result: What the tool returned.
        """
        await self.record_return(call)
        return await self._run_check(self._check_result(call, result), call.tool, message=WITHHELD)

    def can_hold(self, tool: str, server: str | None = None) -> bool:
        """Return whether a call of a tool may have to wait for people.

        For integrations that cannot recognise the call when it is repeated: they refuse such a tool, so that nobody is
        asked in vain.

        Args:
            tool: The name of the tool.
            server: The name of the MCP server that has the tool; ``None`` for a tool of no server.
        """
        matched = self._tools.find(tool, server)
        if matched is None:
            return False
        checker = matched.value
        # _check_gates refuses a gate that asks without storing pending decisions. So this is true if the gate asks and
        # does not only observe.
        return isinstance(checker, Gate) and can_repeat(checker)

    async def wait(self, call: ToolCall, *, seconds: float, task: object = None) -> ToolVerdict:
        """Check a call, and if people have to decide, wait for them.

        For programs that can wait inside of a run. Where nobody has answered until then, the verdict is pending, and
        the same call can be checked again.

        Args:
            call: The call of a tool.
            seconds: How many seconds to wait for people at most.
            task: What the user asked the agent for. The judge is shown it, and an approval is bound to it.
        """
        verdict = await self.check(call, task=task)
        deadline, pause = time.monotonic() + seconds, _FIRST_PAUSE
        while verdict.kind == "pending" and (seconds_left := deadline - time.monotonic()) > 0:
            await asyncio.sleep(min(pause, seconds_left))
            pause = min(pause * 1.5, _LONGEST_PAUSE)
            if not await self.is_waiting(call):
                # Not ``check``, which would ask people again and again after requests that expired.
                verdict = await self.resume(call, task=task)
        return verdict

    async def is_waiting(self, call: ToolCall) -> bool:
        """Return whether people were asked about this very call and have not answered yet.

        For integrations whose framework has to be told which held calls can go on: nobody is asked, nothing is recorded
        and no approval is used, so ``check`` or ``resume`` decides afterwards. Where it cannot be looked up within
        ``timeout``, the call counts as waiting.

        Args:
            call: The call of a tool.
        """
        try:
            async with asyncio.timeout(self.timeout):
                return await self._is_request_open(call)
        except Exception as error:  # noqa: BLE001 - a call that cannot be looked up counts as waiting
            logger.error("tool guard %r could not look up a held call: %s", self.name, type(error).__name__)
            return True

    def find_approvals(self, tool: str, server: str | None = None) -> Approvals | None:
        """Find the approvals of a tool's gate; ``None`` if it has none, or an asker of the program's own.

        For integrations that know a person by their sign-in, and take a vote of theirs.

        Args:
            tool: The name of the tool.
            server: The name of the MCP server that has the tool; ``None`` for a tool of no server.
        """
        matched = self._tools.find(tool, server)
        store = matched.value.pending_store if matched is not None and isinstance(matched.value, Gate) else None
        return store if isinstance(store, Approvals) else None

    async def record_pass(self, call: ToolCall, verdict: ToolVerdict) -> None:
        """Record that a call is about to be made, so that ``record_run`` knows it; a refused one is let through.

        Raises ``UsageError`` for a call that cannot be read, and ``LedgerError``.

        Args:
            call: The call of a tool.
            verdict: The verdict on the call.
        """
        digest, members = _digest_call(call), _describe_tool(call)
        self._running_decisions.pop(_make_call_key(call, digest), None)  # ``record_run`` will record that it was made
        decision = None if verdict.decision is None else verdict.decision.id
        entry = {"schema": "adjudge/call-passed/1", **members, "because": verdict.because, "decision": decision}
        await self.ledger.append(entry, kind=CALL_PASSED, subject=digest)

    async def record_refusal(self, call: ToolCall, *, reason: str) -> ToolVerdict:
        """Record that a call is refused before anybody judges it, for a reason of your program, and return the verdict.

        It is none of the refusals that stop a run, since the call was not the reason. Raises ``LedgerError``.

        Args:
            call: The call of a tool.
            reason: Why it is refused, in a sentence.
        """
        await self.ledger.prepare()
        return await self._record_refusal("refused", call, reason)

    async def record_run(self, call: ToolCall, *, failed: bool = False, exposed: bool = False) -> bool:
        """Record that a call was made, and return whether ``record_pass`` had recorded it just as it was made.

        One that nobody let pass ends the run's trust: every further call of the run is refused until people reopen it.
        So does one that cannot be read, which nobody can have let pass. Raises ``LedgerError``.

        Args:
            call: The call of a tool.
            failed: True if the tool raised or returned an error.
            exposed: True if the agent was shown a result that it may not read, which ends the run's trust.
        """
        members = _describe_tool(call)
        try:
            digest = _digest_call(call)
        except AdjudgeError:
            # A call that cannot be read is recorded too, or somebody could hide a changed call by making it unreadable.
            digest = sha256(json.dumps(members).encode()).hexdigest()
        await self.ledger.prepare()
        entry = {"schema": "adjudge/call-ran/1", **members, "failed": failed, "exposed": exposed}
        was_passed = await self._count_unused_passes(call, digest) > 0
        kind = CALL_RAN if was_passed and not exposed else CALL_UNCHECKED
        seq = await self.ledger.append(entry, kind=kind, subject=digest)
        if kind == CALL_RAN and await self._count_unused_passes(call, digest, until=seq) < 0:
            # The same call was recorded as made twice meanwhile. The order of the ledger decides which one was passed.
            await self.ledger.append(entry, kind=CALL_UNCHECKED, subject=digest)
            return False
        return was_passed

    async def _count_unused_passes(self, call: ToolCall, digest: str, *, until: int | None = None) -> int:
        """Count the records that let a call pass, less the records that it was made, up to the entry ``until``.

        Each pass allows one run of the call. A hook that is installed twice records both twice.
        """
        unused = 0
        async for entry in self.ledger.query(run=make_call_name(call.run_id, call.call_id)):
            if entry.subject == digest and (until is None or entry.seq <= until):
                unused += {CALL_PASSED: 1, CALL_RAN: -1}.get(entry.kind, 0)
        return unused

    async def reopen(self, run_id: str, *, by: str, reason: str) -> int:
        """Let a run that was stopped go on, and return the place of the entry; its refused calls are judged anew.

        Raises ``UsageError`` where a name, the person or the reason is empty, and ``LedgerError``.

        Args:
            run_id: The id of the agent's run.
            by: The name of the person who lets it go on, whom your program knows.
            reason: Why the run may go on.
        """
        return await reopen_run(self.ledger, run_id, by=by, reason=reason)

    async def list_unfinished(
        self, run_id: str | None = None, *, since: datetime | None = None, at_work: float = AT_WORK
    ) -> tuple[UnfinishedCall, ...]:
        """List calls that people approved and of which no entry says that they were made, as after a crash.

        They are not made again by themselves, since they may have run. Raises ``LedgerError``.

        Args:
            run_id: Only calls of this run; ``None`` is all.
            since: Only calls that were allowed from this time on.
            at_work: Leave out calls that were allowed less than this many seconds ago.
        """
        await self.ledger.prepare()
        return await list_unfinished_calls(self.ledger, run=run_id, since=since, at_work=at_work)

    async def record_return(self, call: ToolCall) -> None:
        """Record that a call was made which people had approved, so that ``list_unfinished`` leaves it out.

        Call it when the tool has returned, or has raised. Of other calls nothing is recorded. It never raises: a record
        that cannot be written undoes nothing.

        Args:
            call: The call of a tool.
        """
        try:
            digest = _digest_call(call)
            decision = self._running_decisions.pop(_make_call_key(call, digest), None)
            if decision is not None:
                entry = {"schema": "adjudge/call-ran/1", **_describe_tool(call), "decision": decision}
                await self.ledger.append(entry, kind=CALL_RAN, subject=digest)
        except Exception as error:  # noqa: BLE001 - the call is listed as one that may not have run
            logger.error("tool guard %r could not record that a call was made: %s", self.name, type(error).__name__)

    async def aclose(self) -> None:
        """Close the ledger if it was opened here."""
        if self._owns_ledger:
            await self.ledger.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"ToolGuard({self.name!r}, match={self.match!r})"

    # ---------------------------------------------------------------- a call

    async def _run_check(self, check: Any, name: str, *, message: str | None = None) -> ToolVerdict:
        """Await a check, and return its verdict; a check that raises or is late is a refusal.

        ``name`` is that of the tool, for the log. ``message`` replaces the message of a refusal.
        """
        try:
            async with asyncio.timeout(self.timeout):
                verdict: ToolVerdict = await check
        except Exception as error:  # noqa: BLE001 - a harness makes the call when its hook raises
            # Only the error's type: a store's error quotes the content.
            kind = type(error).__name__
            logger.error("tool guard %r could not check %s: %s", self.name, show(name[:80]), kind)
            logger.debug("what the check raised", exc_info=error)
            verdict = self._refuse("refused")
        return verdict if verdict or message is None else replace(verdict, message=message)

    async def _check_call(self, call: ToolCall, task: object, *, may_judge: bool = True) -> ToolVerdict:
        """Check a call of a tool; refuse one that no pattern fits or that cannot be read, and record that."""
        matched = self._tools.find(call.tool, call.server)
        if matched is None:
            return await self._record_refusal("not_listed", call, "no name of the guard's tools fits this one")
        try:
            question = await self._read_call(call)
        except AdjudgeError as error:
            return await self._record_refusal("refused", call, f"the call cannot be read: {error}")
        return await self._check_one_at_a_time(call, question, matched.value, task, may_judge=may_judge)

    async def _check_content(self, gate: str, content: object, run: str) -> ToolVerdict:
        """Check a content by the gate of exactly this name; without one it is refused, and that is recorded."""
        call = ToolCall(gate, {}, "", run)
        matched = self._tools.find(gate, None)
        if matched is None or not matched.pattern.is_exact or not isinstance(matched.value, Gate):
            return await self._record_refusal("not_listed", call, "no gate of the guard has this name")
        try:
            call_members = {"tool": gate, "run_id": run, "kind": CONTENT}
            question = self._read_text(content, "content", call_members, run, label=gate)
        except AdjudgeError as error:
            return await self._record_refusal("refused", call, f"the content cannot be read: {error}")
        return await self._check_one_at_a_time(call, question, matched.value, None)

    async def _check_one_at_a_time(
        self,
        call: ToolCall,
        question: _Question,
        checker: CallChecker | None,
        task: object,
        *,
        may_judge: bool = True,
    ) -> ToolVerdict:
        """Check a call after any other check of the same text in the same run, in this process, has ended."""
        # Otherwise an agent could make one call many times at once, and each would be judged, until one is passed.
        lock = self._locks.setdefault(f"{question.run_id}\n{question.subject}", asyncio.Lock())
        async with lock:
            return await self._check_question(call, question, checker, task, may_judge=may_judge)

    async def _check_question(
        self, call: ToolCall, question: _Question, checker: CallChecker | None, task: object, *, may_judge: bool
    ) -> ToolVerdict:
        """Check a call by the run's trust, by screens, and by the gate or other checker of its tool, in this order.

        Without ``may_judge`` the call is only resumed: if people were not asked about it, it is refused and not judged.
        """
        trust = await self._trust.read(call.run_id)
        for check in (self._check_trust, self._check_screens):
            refusal = await check(trust, question, call)
            if refusal is not None:
                return refusal
        if isinstance(checker, Gate):
            verdict = await self._ask_gate(checker, question, task, may_judge=may_judge)
        elif may_judge:
            verdict = await self._record_screened(question, await _ask_screen(checker, call, question))
        else:
            verdict = await self._record_refusal("refused", call, _NEVER_HELD)
        verdict = await self._check_again(call, question, verdict) if verdict else verdict
        # Remember an approved call's decision, so that ``record_return`` can record that the call was made.
        if verdict and verdict.decision is not None and verdict.decision.approval_id is not None:
            self._running_decisions[_make_call_key(call, _digest_call(call))] = verdict.decision.id
            if len(self._running_decisions) > _MOST_RUNNING:
                self._running_decisions.popitem(last=False)
        return verdict

    async def _check_again(self, call: ToolCall, question: _Question, verdict: ToolVerdict) -> ToolVerdict:
        """Return an allowing verdict, or a refusal if a file or the run's trust changed while the call was judged."""
        if call.cwd is not None and (await self._read_call(call)).subject != question.subject:
            # A file was changed, or did not exist when the call was read.
            return await self._record_refusal("refused", call, "a file that it names changed while it was checked")
        # Another check, in this process or another, may have refused this call or stopped its run meanwhile.
        trust = await self._trust.read(call.run_id)
        refusal = await self._check_trust(trust, question, call)
        return verdict if refusal is None else refusal  # no `or`: a refusal is false

    async def _check_trust(self, trust: RunTrust, question: _Question, call: ToolCall) -> ToolVerdict | None:
        """Record and return the refusal of a call that was refused before, or whose run is stopped; else ``None``.

        In a stopped run, tools that are listed in ``reading`` may still be called, unless a call was not checked.
        """
        end = trust.explain_end(most_refusals=self.most_refusals, most_denials=self.most_denials)
        if trust.unchecked:
            return await self._record_refusal("stopped", call, end)
        if question.subject in trust.denied:
            refusal = await self._record_refusal("denied", call, "people denied this call before in this run")
            return self._add_person_message(refusal, trust.denied[question.subject])
        if question.subject in trust.refused:
            # Otherwise an agent could repeat a refused call until the judge makes a mistake.
            return await self._record_refusal("refused_before", call, "this call was refused before in this run")
        if end and not self._reading.fits(call.tool, call.server):
            return await self._record_refusal("stopped", call, end)
        return None

    async def _check_screens(self, _trust: RunTrust, question: _Question, call: ToolCall) -> ToolVerdict | None:
        """Record and return the refusal of the first of the guard's ``screens`` that refuses a call; else ``None``."""
        for screen in self._screens:
            screened = await screen.screen_call(call, question.content["arguments"])
            if not screened.allowed:
                return await self._record_screened(question, screened)
        return None

    async def _read_call(self, call: ToolCall) -> _Question:
        """Read a call, with the files that it names, as the question that is judged, shown and bound to an approval.

        Raises ``UsageError`` for a call that cannot be read.
        """
        content: dict[str, Any] = {"tool": call.tool}
        optional_members = {"server": call.server, "cwd": call.cwd, "agent": call.agent}
        content |= {name: text for name, text in optional_members.items() if text is not None}
        content["arguments"] = read_arguments(call.arguments)
        files = await self._find_files(call, content["arguments"])
        if files.digests:
            content["files"] = dict(files.digests)
        if files.links:
            content["links"] = dict(files.links)
        if not files.is_complete:
            content[FILES_NOT_BOUND] = True
        check_extent(content, "call")
        text, _ = write_plain(content, label="call")
        declared_effects = self._effects.find(call.tool, call.server)
        label = call.tool if call.server is None else f"{call.server}: {call.tool}"
        remarks = _read_remarks(call.remarks)
        return _Question(
            run_id=call.run_id,
            call_id=call.call_id if self.match == "call" else "",
            subject=digest_text(text),
            content=content,
            call_members=self._describe_call(call),
            label=flatten(label, 200),
            unbound_metadata={"remarks": remarks} if remarks else {},
            effects=() if declared_effects is None else declared_effects.value,
        )

    def _describe_call(self, call: ToolCall) -> dict[str, Any]:
        """Return the members of ``call`` in the metadata: tool, run and, where the call has them, id, server, agent."""
        members = {"tool": call.tool, "run_id": call.run_id}
        members |= {"call_id": call.call_id} if self.match == "call" else {}
        return members | {name: text for name in ("server", "agent") if (text := getattr(call, name)) is not None}

    async def _find_files(self, call: ToolCall, arguments: Mapping[str, Any]) -> NamedFiles:
        """Return the files that a call is bound to: those of ``call.files``, else those that it names in its folder.

        Without ``bind_files`` no file is read, and the result is marked as incomplete.
        """
        if call.files is not None:
            return NamedFiles(dict(sorted(call.files.items())))
        if call.cwd is None:
            return NamedFiles({})
        if not self.bind_files:
            return NamedFiles({}, is_complete=False)
        tool = call.tool if call.server is None else None
        return await asyncio.to_thread(read_named_files, arguments, call.cwd, tool=tool)

    # ---------------------------------------------------------------- a gate, and people

    async def _ask_gate(self, gate: Gate, question: _Question, task: object, *, may_judge: bool = True) -> ToolVerdict:
        """Ask a gate about a question, unless people were asked about the same question; then use their answer.

        Without ``may_judge``, a question that people were not asked about is refused.
        """
        if not can_repeat(gate) and may_judge:
            return await self._judge(gate, question, self._make_held_call(question, 1), task, {})
        # One check at a time in this process, so that fifty checks of one call ask the judge once. Among several
        # processes, only one can make the request, because its key is unique in the store.
        key = self._make_held_call(question, 1).digest_key(gate.name)
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            return await self._resume_or_judge(gate, question, task, may_judge=may_judge)

    async def _resume_or_judge(self, gate: Gate, question: _Question, task: object, *, may_judge: bool) -> ToolVerdict:
        """Answer a call by its last request for approval, if it has one; otherwise let the gate judge it.

        If that request was used, has expired or is about other terms, the call is judged again, and people are asked in
        a new request with a description of the old one (``before``). ``_REFUSALS_BY_STATUS`` and, for calls with ids,
        ``_REFUSALS_WITH_IDS`` say when the call is refused instead. Without ``may_judge`` it is never judged.
        """
        approval_id, held = await self._find_latest_request(gate, question)
        before: dict[str, Any] = {}
        if approval_id is not None and gate.pending_store is not None:
            stored = await gate.pending_store.pending(approval_id)
            status = "unknown" if stored is None else "changed" if stored.used_at is None else "used"
            if stored is not None and status == "changed" and _is_same_question(stored.decision, task, question):
                metadata = {**stored.decision.metadata, **self._make_bound_metadata(question)}
                repetition = await repeat_request(
                    gate, approval_id, held, question.content, within=self.use_within, task=task, metadata=metadata
                )
                status = repetition.status
                if status == "allowed":
                    return ToolVerdict("allow", decision=repetition.decision)
                if status == "waiting":
                    return self._make_pending(gate, question, held, repetition.decision, approval_id)
            can_ask_again = may_judge and self.match == "content"  # after a used approval
            because = _REFUSALS_BY_STATUS.get(status) if can_ask_again else _REFUSALS_WITH_IDS.get(status)
            if because is None and not may_judge:
                because = "expired" if status == "expired" else "refused"
            if because is not None:
                return await self._record_repeated(because, question, f"its approval {approval_id} is {status}")
            before = {} if stored is None else {"before": _describe_previous_request(stored, status)}
            held = replace(held, number=held.number + 1)  # people are asked again, in the call's next request
        if not may_judge:
            return await self._record_repeated("refused", question, _NEVER_HELD)
        return await self._judge(gate, question, held, task, before)

    async def _find_latest_request(self, gate: Gate, question: _Question) -> tuple[str | None, HeldCall]:
        """Find the latest request for approval of this call.

        Returns the request's id, and the held call with the request's number. Without a request, it returns ``None``
        and the held call with the number 1.
        """
        held, approval_id = self._make_held_call(question, 1), None
        # Requests of a call are numbered from 1 without a gap, so the first number without a request ends the search.
        while (found_id := await find_repeated(gate, held)) is not None:
            approval_id, held = found_id, replace(held, number=held.number + 1)
        return approval_id, held if approval_id is None else replace(held, number=held.number - 1)

    async def _is_request_open(self, call: ToolCall) -> bool:
        """Return whether the latest request about this call is open; false for a gate that cannot hold calls back."""
        matched = self._tools.find(call.tool, call.server)
        gate = None if matched is None else matched.value
        if not isinstance(gate, Gate) or gate.pending_store is None or not can_repeat(gate):
            return False
        try:
            question = await self._read_call(call)
        except AdjudgeError:  # a call that cannot be read is refused, so it never waits
            return False
        approval_id, _ = await self._find_latest_request(gate, question)
        return approval_id is not None and await gate.pending_store.is_open(approval_id)

    async def _judge(
        self, gate: Gate, question: _Question, held: HeldCall, task: object, before: Mapping[str, Any]
    ) -> ToolVerdict:
        """Let a gate judge a call, and return the verdict of its decision.

        A call that people were asked about before goes to people again, even if the judge passes it. ``before`` is the
        metadata about its previous request; empty without one.
        """
        # The title has the word that the agent is told, so that people find the request by it.
        title, terms = question.label, {}
        if can_repeat(gate):
            title, terms = f"{title} ({held.make_word(gate.name)})", {USE_WITHIN: self.use_within}
        bound_metadata = self._make_bound_metadata(question)
        metadata = {"title": title, **terms, **question.unbound_metadata, **before, **bound_metadata}
        # Otherwise an agent could repeat a call that people did not approve until the judge passes it by mistake.
        was_asked = can_repeat(gate) and (
            held.number > 1 or await self._trust.was_asked(question.run_id, question.subject)
        )
        decision = await check_request(gate, question.content, held, metadata, task=task, asks_always=was_asked)
        if decision.pending and decision.approval_id is not None:
            return self._make_pending(gate, question, held, decision, decision.approval_id)
        if decision.allowed:
            return ToolVerdict("allow", decision=decision)
        return self._refuse("refused", decision, start=question.refusal_start, gate=gate)

    def _make_held_call(self, question: _Question, number: int) -> HeldCall:
        """Make the held call of a question for its request for approval of this number, counted from 1."""
        return HeldCall(
            run_id=question.run_id,
            call_id=question.call_id,
            subject=question.subject,
            number=number,
            most_open=self.most_open,
        )

    def _make_bound_metadata(self, question: _Question) -> dict[str, Any]:
        """Make the metadata that an approval is bound to: an approval given with other ones does not count."""
        guard_members: dict[str, Any] = {} if self.harness is None else {"harness": self.harness}
        # Effects are bound too: an approval from before "money leaves" was declared does not approve that.
        guard_members |= {EFFECTS: list(question.effects)} if question.effects else {}
        return {"tool": question.call_members.get("tool"), "call": {**question.call_members, **guard_members}}

    # ---------------------------------------------------------------- what is no call

    async def _check_text(
        self,
        kind: Literal["answer", "prompt"],
        checker: Gate | PromptFirewall | None,
        value: Any,
        run: str,
        task: object,
    ) -> ToolVerdict:
        """Check an answer of the agent or a prompt; without a checker it is allowed."""
        if checker is None:
            return ToolVerdict("allow")

        async def ask() -> ToolVerdict:
            call = ToolCall(f"({kind})", {}, "", run)  # raises for an invalid run id, as for every call
            question = self._read_text(value, kind, {"part": kind, "run_id": call.run_id}, run)
            if isinstance(checker, Gate):
                return await self._ask_gate(checker, question, task)
            return await self._record_screened(question, await _ask_prompt_firewall(checker, value))

        return await self._run_check(ask(), kind)

    def _read_text(
        self, value: object, kind: str, call_members: Mapping[str, Any], run: str, *, label: str | None = None
    ) -> _Question:
        """Read an answer, a prompt or another content as the question that is judged, shown and bound to an approval.

        Raises ``AdjudgeError`` for a content that cannot be read.
        """
        content = read_content(value, label=kind)
        return _Question(
            run_id=run,
            call_id="",
            subject=digest_text(write_plain(content, label=kind)[0]),
            content=content,
            call_members=call_members,
            label=label or kind,
            refusal_start=_REFUSAL_STARTS[kind],
            unbound_metadata={},
        )

    async def _check_result(self, call: ToolCall, result: object) -> ToolVerdict:
        """Check what a tool returned, by the tool's own screen and the gate of results; without both it is allowed."""
        matched = self._tools.find(call.tool, call.server)
        checker = None if matched is None else matched.value
        if self.results is None and not isinstance(checker, ResultScreen):
            return ToolVerdict("allow")  # nobody checks it, so it may be of any size and kind
        content: dict[str, Any] = {"tool": call.tool, **({} if call.server is None else {"server": call.server})}
        content["result"] = read_content(result, label="result")
        question = _Question(
            run_id=call.run_id,
            call_id=call.call_id if self.match == "call" else "",
            subject=digest_text(write_plain(content, label="result")[0]),
            content=content,
            call_members={"part": "result", **self._describe_call(call)},
            label=flatten(f"result of {call.tool}", 200),
            unbound_metadata={},
        )
        if isinstance(checker, ResultScreen):
            verdict = await self._record_screened(question, await checker.screen_result(call, content["result"]))
            if not verdict:
                return verdict
        return ToolVerdict("allow") if self.results is None else await self._ask_gate(self.results, question, None)

    # ---------------------------------------------------------------- verdicts

    def _refuse(
        self,
        because: CallRefusedBecause,
        decision: Decision | None = None,
        *,
        start: str = "The call was not made",
        gate: Gate | None = None,
    ) -> ToolVerdict:
        """Make the verdict of a refusal, with what the gate's failed rules are for if ``show_reasons``.

        Nothing is recorded here.
        """
        message = f"{start}: {_REFUSAL_REASONS[because]}"
        reasons = _list_reasons(gate, decision) if self.show_reasons and gate is not None else ""
        return ToolVerdict("refuse", f"{message} {reasons}".rstrip(), decision, because=because)

    def _add_person_message(self, verdict: ToolVerdict, answer: str) -> ToolVerdict:
        """Add a person's message to the agent to a refusal, as a quotation, if ``pass_answers``."""
        if not answer or not self.pass_answers:
            return verdict
        return replace(verdict, message=f"{verdict.message} They wrote: {quote(answer, LONGEST_ANSWER)}")

    def _make_pending(
        self, gate: Gate, question: _Question, held: HeldCall, decision: Decision | None, approval_id: str
    ) -> ToolVerdict:
        """Make the verdict of a call that waits for people, with the word by which they find the request."""
        word = held.make_word(gate.name)
        message = f"{question.refusal_start}: {_REFUSAL_REASONS['waits'].format(word=word)}"
        message += " The same call passes once it is approved." if self.match == "content" else ""
        return ToolVerdict("pending", message, decision, approval_id, because="waits", word=word)

    async def _record_screened(self, question: _Question, screened: Screened) -> ToolVerdict:
        """Record the answer of a screen or a firewall as a decision, and return the verdict."""
        decision = Decision(
            gate=self.name,
            allowed=screened.allowed,
            decided_by=screened.decided_by,
            result=screened.result,
            detail=screened.detail,
            subject=question.subject,
            metadata={"title": question.label, **self._make_bound_metadata(question)},
        )
        decision = await self._append(decision, question.content)
        return ToolVerdict("allow", decision=decision) if decision.allowed else self._refuse("refused", decision)

    async def _record_repeated(self, because: CallRefusedBecause, question: _Question, reason: str) -> ToolVerdict:
        """Record the refusal of a call that is not judged, because of its last request or because it has none."""
        decision = Decision(
            gate=self.name,
            allowed=False,
            decided_by="policy",
            detail=f"the call was refused: {reason}",
            subject=question.subject,
            metadata={"title": question.label, **self._make_bound_metadata(question)},
        )
        return self._refuse(because, await self._append(decision, question.content), start=question.refusal_start)

    async def _record_refusal(self, because: CallRefusedBecause, call: ToolCall, detail: str) -> ToolVerdict:
        """Record a refusal that the guard itself decides, and return the verdict; the call may be unreadable."""
        call_members = {
            name: flatten(text, 200) if isinstance(text, str) else text
            for name, text in self._describe_call(call).items()
        }
        decision = Decision(
            gate=self.name,
            allowed=False,
            decided_by="policy",
            detail=detail,
            metadata={"title": flatten(call.tool, 200), "tool": call_members["tool"], "call": call_members},
        )
        return self._refuse(because, await self._append(decision))

    async def _append(self, decision: Decision, content: object = None) -> Decision:
        """Append a decision of the guard to its ledger, and return it with its place there.

        A decision without a subject, about a call that cannot be read, is recorded under the digest of its metadata.
        """
        subject = decision.subject or sha256(json.dumps(dict(decision.metadata)).encode()).hexdigest()
        judged = {} if content is None else describe_judged(self.ledger, content, {})
        seq = await self.ledger.append(decision, kind="decision", subject=subject, gate=decision.gate, **judged)
        return replace(decision, ledger_seq=seq)

    def _prepare_gate(self, gate: Gate) -> Gate:
        """Return a copy of a gate that does not wait for people, and that has the guard's ledger if it had none."""
        return gate.replace(wait=False, ledger=self.ledger if gate.ledger is None else gate.ledger)


async def _ask_screen(screen: CallScreen | None, call: ToolCall, question: _Question) -> Screened:
    """Ask the screen of a tool about a call; ``None`` allows every call."""
    if screen is None:
        return Screened(allowed=True, detail="the guard's configuration checks no call of this tool")
    return await screen.screen_call(call, question.content["arguments"])


async def _ask_prompt_firewall(firewall: PromptFirewall, prompt: str) -> Screened:
    """Ask a prompt firewall about a prompt, which is let through whole or not at all."""
    verdict = await firewall.check([prompt])
    detail = "; ".join(rejected.reason for rejected in verdict.rejected)
    return make_screened(verdict.chain_result, allowed=verdict.passed, detail=detail)


# ---------------------------------------------------------------- reading what a program passes in


def _check_gates(gates: Collection[Gate], unsafe: Collection[str]) -> None:
    """Raise ``UsageError`` for gates that could let a call pass unseen, unless ``unsafe`` names the option.

    Two gates of one name, and a gate that asks people without storing pending decisions, are refused too.
    """
    names: dict[str, Gate] = {}
    for gate in gates:
        if names.setdefault(gate.name, gate) is not gate:
            raise UsageError(f"two gates are called {show(gate.name)}; an approval of one would look like the other's")
        if gate.asks and gate.pending_store is None:
            raise UsageError(f"gate {show(gate.name)} asks people who keep no pending decisions; give it Approvals")
        for option, risk in _list_risks(gate):
            if f"{gate.name}.{option}" not in unsafe:
                raise UsageError(
                    f"gate {show(gate.name)} has {risk}, so a call could be made that nobody has seen; change it, or "
                    f"name {show(f'{gate.name}.{option}')} in unsafe",
                    argument="unsafe",
                )


def _list_risks(gate: Gate) -> list[tuple[str, str]]:
    """List the options by which a gate could let a call pass unseen, each with its setting, such as ``sample=0.5``."""
    risks = [("sample", f"sample={gate.sample:g}")] if gate.sample < 1 else []
    risks += [("on_undecided", "on_undecided='allow'")] if gate.on_undecided == "allow" else []
    risks += [("mode", f"mode={gate.mode!r}")] if gate.mode != "enforce" else []
    risks += [("on_expiry", "on_expiry='approve'")] if gate.ask.get("on_expiry") == "approve" else []
    return risks + ([("show_content", "show_content=False")] if gate.asks and not gate.shows_content else [])


def _find_ledger(gates: Collection[Gate], ledger: Ledger | None) -> Ledger | None:
    """Find the one ledger of some gates and their approvals; raise ``UsageError`` if there are several."""
    # A gate's recorder may wrap a ledger.
    candidates = [ledger, *[getattr(gate.ledger, "ledger", gate.ledger) for gate in gates]]
    candidates += [gate.pending_store.ledger for gate in gates if gate.pending_store is not None]
    ledgers = list({id(candidate): candidate for candidate in candidates if isinstance(candidate, Ledger)}.values())
    if len(ledgers) > 1:
        # Each of two stores could have a request for one call, and so one call could be approved twice.
        raise UsageError(
            f"the gates record in {len(ledgers)} ledgers; give all of them, and their approvals, the same one"
        )
    return ledgers[0] if ledgers else None


def _check_checkers(tools: ToolPatterns[Any]) -> None:
    """Raise ``UsageError`` for a value that cannot check calls, and for ``None`` with a pattern of several tools."""
    for pattern, checker in tools.list():
        if checker is None and not pattern.is_exact:
            raise UsageError(
                f"tools have None for {show(pattern.key)}; a tool that nothing checks is named exactly",
                argument="tools",
            )
        if checker is not None and not isinstance(checker, Gate | CallScreen):
            raise UsageError(
                f"{show(pattern.key)} needs a Gate, an InputFirewall, a ToolRegistry or None, got "
                f"{type(checker).__name__}",
                argument="tools",
            )


def _find_prepared(value: Any, prepared: Mapping[int, Gate]) -> Any:
    """Return the prepared gate in place of a gate, found by its ``id()``; any other value as it is."""
    return prepared.get(id(value), value)


def _read_most_open(most_open: Mapping[str, int] | None) -> dict[str, int]:
    """Return the limits of waiting requests, with the defaults filled in; raise ``UsageError`` for an invalid one."""
    limits = _DEFAULT_MOST_OPEN | dict(most_open or {})
    for name, most in limits.items():
        if name not in _DEFAULT_MOST_OPEN:
            raise UsageError(f"most_open has run, key and gate, got {show(name)}", argument="most_open")
        check_whole_number("most_open", most, least=1)
    return limits


def _digest_call(call: ToolCall) -> str:
    """Digest tool, server, agent and arguments of a call; its folder and files may change until it is made."""
    plain = {"tool": call.tool, "server": call.server, "agent": call.agent, "arguments": read_arguments(call.arguments)}
    return digest_text(write_plain(plain, label="call")[0])


def _make_call_key(call: ToolCall, digest: str) -> str:
    """Make the key of a call in memory from its run, its id and its digest."""
    return json.dumps([call.run_id, call.call_id, digest])


def _describe_tool(call: ToolCall) -> dict[str, Any]:
    """Return the members that every entry about the making of a call has."""
    server = None if call.server is None else flatten(call.server, 200)
    tool = {"tool": flatten(call.tool, 200), "server": server, "agent": call.agent}
    return {"run": call.run_id, "call": call.call_id, **tool}


def _read_remarks(remarks: Mapping[str, Any]) -> dict[str, str]:
    """Return the agent's remarks about a call as short lines of text, at most ten."""
    pairs = list(remarks.items())[:10]
    return {flatten(str(name), 60): flatten(str(text), _LONGEST_REMARK) for name, text in pairs}


def _is_same_question(pending: Decision, task: object, question: _Question) -> bool:
    """Return whether people were asked about a call with the same effects and this task."""
    return list_effects(pending.metadata) == question.effects and _is_same_task(pending, task)


def _is_same_task(pending: Decision, task: object) -> bool:
    """Return whether a pending decision was made with this task; false for a task that cannot be read."""
    try:
        digest = None if task is None else digest_text(write_plain(read_content(task, label="task"), label="task")[0])
    except AdjudgeError:
        return False
    return pending.basis.get("task") == digest


def _describe_previous_request(stored: PendingDecision, status: str) -> dict[str, Any]:
    """Describe what became of the previous request about a call, for the people who are asked again."""
    approval = stored.approval
    members = {"approval": approval.id, "status": status, "decided_by": list(approval.closed_by)}
    members |= {} if approval.closed_at is None else {"decided_at": approval.closed_at.isoformat()}
    if stored.used_at is not None:
        members |= {"used_at": stored.used_at.isoformat(), "note": "this call was approved before, and may have run"}
    return members


def _list_reasons(gate: Gate, decision: Decision | None) -> str:
    """Join the descriptions of a gate's rules that failed; they are the operator's words and quote no call or judge."""
    results = () if decision is None or decision.result is None else decision.result.rule_results
    failed_names = {result.name for result in results if not result.passed}
    failed_rules = [rule for rule in gate.rules if rule.name in failed_names]
    return " ".join(dict.fromkeys(rule.description for rule in failed_rules if rule.description))
