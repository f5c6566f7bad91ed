"""The trust that an agent's run still has: its refused calls, and the permission to go on.

Read from the ledger, so that it holds in every process and nobody can forget it by starting anew. Each look reads only
the entries since the last one.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass, field

from adjudge.content import digest_text
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_label
from adjudge.formats.text import show
from adjudge.ledger.columns import CALL_UNCHECKED, RUN_REOPENED, name_asked, name_trust, split_run
from adjudge.ledger.entry import Entry
from adjudge.ledger.ledger import Ledger

MOST_REFUSALS, MOST_DENIALS = 10, 3
"""Refusals by rules and judges, and denials by people, after which a run is stopped, unless a guard says otherwise."""

REFUSALS_ERASED = "adjudge/refusals-erased/1"
"""The schema of the entry that says that refusals or denials of a run were deleted with what they were about."""

_MOST_UNDECIDED = 3
"""Checks of one call that no judge could decide, after which it counts as refused."""

_MOST_RUNS = 1_000
"""Runs that are kept in memory; of others, the ledger is read from its beginning."""


@dataclass(slots=True)
class RunTrust:
    """The refusals, denials and unchecked calls of one run, since people last reopened it."""

    refused: set[str] = field(default_factory=set)
    """SHA-256 of the calls that a rule or a judge refused."""
    denied: dict[str, str] = field(default_factory=dict)
    """SHA-256 of the calls that people denied, and what they had the agent told."""
    undecided: Counter[str] = field(default_factory=Counter)
    """The number of times that no judge could decide a call, by its SHA-256."""
    refusals: int = 0
    denials: int = 0
    unchecked: int = 0
    """Calls that were made and that nobody had let pass as they were made."""
    erased: int = 0
    """The number of refusals and denials of the run that were deleted, so that nobody knows how many there were."""
    seq: int = 0
    """The last entry that was read."""

    def add(self, entry: Entry) -> None:
        """Count one entry of the ledger."""
        self.seq = entry.seq
        if entry.kind == RUN_REOPENED:
            self._begin_anew()
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

    def _begin_anew(self) -> None:
        self.refused, self.denied, self.undecided = set(), {}, Counter()
        self.refusals = self.denials = self.unchecked = self.erased = 0

    def _is_refusal(self, entry: Entry) -> bool:
        """Return whether a decision refuses its call for good, as the third one does that no judge could make."""
        result = (entry.payload or {}).get("result")
        members = result if isinstance(result, dict) else {}
        if members.get("outcome") != "undecided" or members.get("undecided_because") == "tampering":
            return True
        # Else a judge that content can silence is asked until it answers otherwise.
        self.undecided[entry.subject] += 1
        return self.undecided[entry.subject] >= _MOST_UNDECIDED

    def explain_end(self, *, most_refusals: int = MOST_REFUSALS, most_denials: int = MOST_DENIALS) -> str:
        """Say why the run is stopped, in a part of a sentence; empty where it goes on."""
        if self.unchecked:
            # Something beside the guard changes or makes calls, so an answer of it means nothing in this run.
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
    """Do as ``reopen_run``, for a person who types the run's name; ``UsageError`` where nothing was refused in it."""
    if (await TrustReader(ledger).read(run_id)).is_clean:
        hint = "; behind a server its name begins with its key, like key:54343b4accb3/RUN"
        problem = f"nothing of the run {show(run_id)} was refused, so it is not stopped"
        raise UsageError(problem + hint * (split_run(run_id).owner is None), argument="run_id")
    return await reopen_run(ledger, run_id, by=by, reason=reason)


class TrustReader:
    """Reads from a ledger how far runs are trusted."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._runs: OrderedDict[str, RunTrust] = OrderedDict()
        self._is_prepared = False

    async def read(self, run: str) -> RunTrust:
        """Read what is new of a run, and return all that is known of it. Raises ``LedgerError`` and ``UsageError``."""
        trust = self._runs.setdefault(run, RunTrust())
        self._runs.move_to_end(run)
        if len(self._runs) > _MOST_RUNS:
            self._runs.popitem(last=False)
        await self._prepare()
        async for entry in self._ledger.query(run=name_trust(run), after=trust.seq):
            if entry.seq > trust.seq:  # another check of this run may have read it meanwhile
                trust.add(entry)
        return trust

    async def was_asked(self, run: str, subject: str) -> bool:
        """Return whether people were asked about this call before, under whatever id. Raises like ``read``."""
        await self._prepare()
        async for _ in self._ledger.query(run=name_asked(run), subject=subject):
            return True
        return False

    async def _prepare(self) -> None:
        if not self._is_prepared:
            await self._ledger.prepare()
            self._is_prepared = True
