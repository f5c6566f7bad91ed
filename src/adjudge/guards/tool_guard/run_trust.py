"""The trust in an agent's run: its refused, denied and unchecked calls, and whether they stop it.

Only these are counted: how many calls a run makes is not limited.

It is read from the ledger, so that it is the same in every process, and a restart does not reset it. Each read only
reads the entries after those of the last one.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass, field

from adjudge.content import digest_text
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_label
from adjudge.formats.text import show
from adjudge.ledger.columns import CALL_UNCHECKED, RUN_REOPENED, make_asked_name, make_trust_name, split_run
from adjudge.ledger.entry import Entry
from adjudge.ledger.ledger import Ledger

MOST_REFUSALS, MOST_DENIALS = 10, 3
"""Refusals by rules and judges, and denials by people, after which a run is stopped, unless a guard says otherwise."""

REFUSALS_ERASED = "adjudge/refusals-erased/1"
"""The schema of the entry that says that refusals or denials of a run were deleted with what they were about."""

_MOST_UNDECIDED_CHECKS = 3
"""The number of undecided checks of one call after which the call counts as refused."""

_MOST_RUNS = 1_000
"""Runs that are kept in memory; of others, the ledger is read from its beginning."""


@dataclass(slots=True)
class RunTrust:
    """The refusals, denials and unchecked calls of one run, since people last reopened it."""

    refused: set[str] = field(default_factory=set)
    """SHA-256 of the calls that a rule or a judge refused."""
    denied: dict[str, str] = field(default_factory=dict)
    """The calls that people denied: the message to the agent, which may be empty, by SHA-256 of the call."""
    undecided: Counter[str] = field(default_factory=Counter)
    """The number of times that no judge could decide a call, by its SHA-256."""
    refusals: int = 0
    denials: int = 0
    unchecked: int = 0
    """Calls that were made without a check that had let them pass in this form."""
    erased: int = 0
    """The number of refusals and denials of the run that were deleted, so that nobody knows how many there were."""
    seq: int = 0
    """The last entry that was read."""

    def add(self, entry: Entry) -> None:
        """Count one entry of the ledger about the run."""
        self.seq = entry.seq
        if entry.kind == RUN_REOPENED:
            self._reset()
        elif entry.kind == CALL_UNCHECKED:
            is_erased = (entry.payload or {}).get("schema") == REFUSALS_ERASED
            self.erased += is_erased
            self.unchecked += not is_erased
        elif entry.kind == "approval.closed":
            answer = (entry.payload or {}).get("answer", "")
            self.denied[entry.subject] = answer if isinstance(answer, str) else ""
            self.denials += 1
        elif entry.subject not in self.refused and self._is_refusal(entry):
            self.refused.add(entry.subject)
            self.refusals += 1

    def _reset(self) -> None:
        """Reset all counts, because people reopened the run."""
        self.refused, self.denied, self.undecided = set(), {}, Counter()
        self.refusals = self.denials = self.unchecked = self.erased = 0

    def _is_refusal(self, entry: Entry) -> bool:
        """Return whether the entry of a blocking decision counts as a refusal of its call, and count an undecided one.

        An undecided result counts only at the third time, unless it is undecided because of tampering.
        """
        result = (entry.payload or {}).get("result")
        members = result if isinstance(result, dict) else {}
        if members.get("outcome") != "undecided" or members.get("undecided_because") == "tampering":
            return True
        # Otherwise an agent could repeat a call that makes the judge undecided until the judge passes it.
        self.undecided[entry.subject] += 1
        return self.undecided[entry.subject] >= _MOST_UNDECIDED_CHECKS

    def explain_end(self, *, most_refusals: int = MOST_REFUSALS, most_denials: int = MOST_DENIALS) -> str:
        """Return the reason why the run is stopped, as a clause; empty if it is not stopped."""
        if self.unchecked:
            # Something changes or makes calls without the guard, so the guard's answers mean nothing in this run.
            return "the run made a call that was not checked as it was made"
        if self.erased:
            return "refusals of the run were deleted with what they were about"
        if self.denials >= most_denials or self.refusals >= most_refusals:
            return f"the run was stopped after {self.denials} denials and {self.refusals} refusals"
        return ""

    @property
    def is_clean(self) -> bool:
        """Return whether nothing was refused, denied or unchecked, so that there is nothing to reopen."""
        return not (self.refusals or self.denials or self.unchecked or self.undecided or self.erased)


async def reopen_run(ledger: Ledger, run_id: str, *, by: str, reason: str) -> int:
    """Let a run that was stopped go on, and return the place of the entry.

    Raises ``UsageError`` where a name, the person or the reason is empty, and ``LedgerError``.
    """
    for argument, text in (("run_id", run_id), ("by", by), ("reason", reason)):
        check_label(argument, text, where="ToolGuard.reopen")
    payload = {"schema": "adjudge/run-reopened/1", "run": run_id, "by": by, "reason": reason}
    return await ledger.append(payload, kind=RUN_REOPENED, subject=digest_text(run_id))


async def reopen_stopped_run(ledger: Ledger, run_id: str, *, by: str, reason: str) -> int:
    """Reopen a run as ``reopen_run`` does, for a person who typed its name.

    Raises ``UsageError`` also if nothing of a run with this name was refused, because the name is probably mistyped.
    """
    if (await TrustReader(ledger).read(run_id)).is_clean:
        has_key = split_run(run_id).owner is not None
        hint = "" if has_key else "; behind a server its name begins with its key, like key:54343b4accb3/RUN"
        problem = f"nothing of the run {show(run_id)} was refused, so it is not stopped"
        raise UsageError(problem + hint, argument="run_id")
    return await reopen_run(ledger, run_id, by=by, reason=reason)


class TrustReader:
    """Reads the trust in runs from a ledger, and keeps what it read."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._runs: OrderedDict[str, RunTrust] = OrderedDict()
        self._is_prepared = False

    async def read(self, run: str) -> RunTrust:
        """Read the new entries about a run, and return its trust. Raises ``LedgerError`` and ``UsageError``."""
        trust = self._runs.setdefault(run, RunTrust())
        self._runs.move_to_end(run)
        if len(self._runs) > _MOST_RUNS:
            self._runs.popitem(last=False)
        await self._prepare()
        async for entry in self._ledger.query(run=make_trust_name(run), after=trust.seq):
            if entry.seq > trust.seq:  # another check of this run may have read it meanwhile
                trust.add(entry)
        return trust

    async def was_asked(self, run: str, subject: str) -> bool:
        """Return whether people were asked about a call with this content before in this run. Raises as ``read``."""
        await self._prepare()
        async for _ in self._ledger.query(run=make_asked_name(run), subject=subject):
            return True
        return False

    async def _prepare(self) -> None:
        """Prepare the ledger for queries, the first time."""
        if not self._is_prepared:
            await self._ledger.prepare()
            self._is_prepared = True
