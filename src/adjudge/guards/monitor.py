"""Monitors: count a gate's audits from the ledger, and say whether its judge still lets through what was promised.

Every step is an entry: an audit was drawn, people answered it or did not, the judge's model changed, people reset the
monitor after an alarm. The state of a monitor follows from these entries alone, so it is the same in every process, and
``verify`` covers it.

The entries are counted here. When the alarm is raised is decided in ``trust/share_test.py`` (``ShareTest.is_broken``).
"""

from __future__ import annotations

import shlex
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

from adjudge.content import digest_text
from adjudge.formats.arguments import check_choice, check_label
from adjudge.formats.numbers import format_rate
from adjudge.formats.record import Layout, read_record, write_record
from adjudge.formats.text import show
from adjudge.formats.times import read_zoned_time
from adjudge.ledger.columns import (
    AUDIT_CLOSED,
    AUDIT_FAILED,
    AUDIT_PLANTED,
    AUDIT_REQUESTED,
    AUDITED,
    ENTRY_NAMES,
    MODEL_CHANGED,
    MONITOR_RESET,
    make_column_tables,
)
from adjudge.ledger.entry import Entry
from adjudge.ledger.ledger import Ledger
from adjudge.trust.share_test import ShareTest

if TYPE_CHECKING:
    from sqlalchemy import Connection

MonitorVerdict = Literal["quiet", "too few labels", "model changed", "unanswered", "alarm"]
"""From the best to the worst:

* ``quiet``: the labels do not show that the promise is broken.
* ``too few labels``: they do not, and fewer than 50 audits were answered, so that they could hardly show it.
* ``model changed``: a model answered that had not before, and fewer than 50 audits of what came since were answered; or
  20 models answered, so that another one would not be noticed.
* ``unanswered``: the labels do not show it, and would if those that nobody answered were bad.
* ``alarm``: the labels show, or showed, that the promise is broken. It stays until people begin anew.
"""

RELABEL = 50
"""Labels that a judge needs before anything is said about it: at first, and when its model changes.

It is also the most audits that wait for an answer and were not drawn at random."""

MOST_MODELS = 20
"""Models that are noticed, since people last began anew: a server could report another name with each reply.

With so many, the verdict is ``model changed`` or a worse one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Monitor:
    """The state of a gate's audits, since they began or people last began anew."""

    schema: ClassVar[str] = "adjudge/monitor/1"
    _layout: ClassVar[Layout] = Layout(last=("alarm", "open"))

    gate: str
    """The gate's name."""
    verdict: MonitorVerdict
    """``quiet``, ``alarm``, or why neither can be said."""
    promise: float | None = None
    """The largest share of bad ones that the gate promises; ``None`` before the first audit."""
    confidence: float | None = None
    """One minus the probability of an alarm, ever, where the promise is kept; ``None`` before the first audit."""
    audits: int = 0
    """Audits that were drawn."""
    labels: int = 0
    """Audits that people answered."""
    bad: int = 0
    """Answers that it should have been stopped."""
    unanswered: int = 0
    """Audits that nobody answered in time, or that could not be put to anybody. They do not count as good."""
    wealth: float = 1.0
    """Evidence against the promise: 20, at any time, is an alarm at a confidence of 0.95."""
    alarm_seq: int | None = None
    """The place in the ledger of the answer that raised the alarm; ``None`` without one."""
    models: tuple[str, ...] = ()
    """The models that the judge's replies reported, in the order in which they were first seen."""
    model_changed: bool = False
    """True while too few audits are answered since the last of them was first seen, if it was not the only one.

    With so many models that another one would not be noticed, it is true until people begin anew."""
    labels_needed: int = 0
    """Further answers until there are enough; 0 where there are."""
    planted: int = 0
    """Audits whose content somebody made up, as one that should have been stopped; they are in no other figure."""
    planted_answered: int = 0
    """Those of them that people answered."""
    planted_found: int = 0
    """Of those that were answered, how many people would have stopped."""
    draws_at_once: int = 0
    """Audits that are still drawn of each call, and not at random, because the model changed; 0 while 50 wait."""
    since: int = 0
    """The entry of the ledger with which people began anew; 0 where they have not."""
    seq: int = 0
    """The last entry of the ledger that it rests on; 0 without any."""

    def __post_init__(self) -> None:
        check_choice("verdict", self.verdict, get_args(MonitorVerdict), where="a monitor")

    @property
    def alarm(self) -> bool:
        """True until people begin anew after an alarm: until then, do not rely on the promise."""
        return self.verdict == "alarm"

    @property
    def open(self) -> int:
        """Audits that people can still answer."""
        return self.audits - self.labels - self.unanswered

    @property
    def _has_too_many_models(self) -> bool:
        """True if so many models answered that another one would not be noticed."""
        return len(self.models) >= MOST_MODELS

    def explain(self) -> str:
        """Say in one sentence what the labels show."""
        name = f"gate {show(self.gate)}"
        if not self.audits:
            return f"{name} has no audits: nothing that its judge let through was sent to people"
        answers = f"{self.bad:,} of {self.labels:,} that people looked at should have been stopped"
        promise = f"the promise is at most {format_rate(self.promise or 0)}"
        if self.verdict == "alarm":
            return f"alarm: {name} lets through more than it promises: {answers}, and {promise}"
        if self.verdict == "model changed":
            if self._has_too_many_models:
                change = f"{name} reported {len(self.models):,} models, and another one would not be noticed"
            else:
                model = show(self.models[-1])
                change = f"the model of {name} changed to {model}, and nobody knows yet how good it is"
            return f"{change}: {answers}"
        if self.verdict == "unanswered":
            missing = f"{self.unanswered:,} of {self.audits:,} audits of {name} were not answered"
            return f"{missing}: were those bad, the promise would be broken ({answers}, and {promise})"
        if self.verdict == "too few labels":
            return f"too few audits of {name} are answered to say much: {answers}, and {promise}"
        return f"{name} keeps its promise as far as people looked: {answers}, and {promise}"

    @property
    def advice(self) -> str:
        """Say in one sentence what to do now; empty where nothing is to be done."""
        open_now = f"{self.open:,} {'audit is' if self.open == 1 else 'audits are'} open"
        reset = f"`adjudge monitor {shlex.quote(self.gate)} --reset REASON`"
        if self.verdict == "alarm":
            return f"let people decide what this gate lets through until its judge is measured again; then {reset}"
        if self.verdict == "unanswered":
            return f"see that audits are answered in time ({open_now}); then {reset}"
        if self.verdict == "model changed" and self._has_too_many_models:
            return f"find out why it reports so many models; then {reset}"
        if self.verdict in ("model changed", "too few labels"):
            return f"label {self.labels_needed:,} more of what it lets through; {open_now}"
        return ""

    def to_dict(self) -> dict[str, Any]:
        """Write this value as plain data that JSON can hold; ``from_dict`` reads it back."""
        return write_record(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back ``data`` that ``to_dict`` wrote; raises ``UsageError`` when it is something else.

        Args:
            data: What ``to_dict`` wrote.
        """
        return read_record(cls, data)


@dataclass(frozen=True, slots=True)
class _AuditTerms:
    """The promise that an audit tests."""

    promise: float
    confidence: float


@dataclass(frozen=True, slots=True)
class _OpenAudit:
    """An audit that was requested and is not answered."""

    terms: _AuditTerms
    expires_at: datetime
    model_changes: int
    """The number of changes of the judge's model before it was requested."""
    was_forced: bool = False
    """True if it was not drawn at random: after a change of the model, every call is audited for a while."""


@dataclass(slots=True)
class _MonitorCounts:
    """The counts of a gate's audits, made from the ledger's entries in their order."""

    gate: str
    terms: _AuditTerms | None = None
    """The promise of the last audit."""
    tests: dict[_AuditTerms, ShareTest] = field(default_factory=dict)
    """A test for each promise: if a gate's promise is lowered, the earlier promise still has to be kept."""
    worst_case_tests: dict[_AuditTerms, ShareTest] = field(default_factory=dict)
    """The same tests, with every audit that was not answered counted as bad."""
    open_audits: dict[str, _OpenAudit] = field(default_factory=dict)
    """The audits that are not closed, by the ids of their requests."""
    audits: int = 0
    labels: int = 0
    bad: int = 0
    unanswered: int = 0
    alarm_seq: int | None = None
    models: list[str] = field(default_factory=list)
    planted_unanswered: set[str] = field(default_factory=set)
    """The audits that were planted and are not answered."""
    planted: int = 0
    planted_answered: int = 0
    planted_found: int = 0
    model_changes: int = 0
    """The number of changes of the judge's model."""
    audits_since_change: int = 0
    """Audits that were drawn since the last change of the model."""
    labels_since_change: int = 0
    """Answers to those."""
    reset_seq: int = 0
    """The place of the last reset in the ledger; 0 without one."""
    seq: int = 0
    """The place of the last entry that was counted."""

    def add(self, entry: Entry) -> None:
        """Count one entry of the ledger; an entry of another kind, or without a readable payload, is ignored."""
        self.seq = entry.seq
        payload = entry.payload or {}
        ident = str(payload.get("approval"))
        if entry.kind == AUDIT_PLANTED:
            self.planted_unanswered.add(ident)
            self.planted += 1
        elif ident in self.planted_unanswered:
            self._add_planted(entry.kind, ident, payload)
        elif entry.kind == AUDIT_REQUESTED:
            self._add_requested(payload)
        elif entry.kind == AUDIT_FAILED and (terms := _read_terms(payload)) is not None:
            self._count_audit(terms)
            self._add_unanswered(terms)
        elif entry.kind == AUDIT_CLOSED and (closed := self._take_closed(payload)) is not None:
            self._add_closed(closed, payload, entry.seq)
        elif entry.kind == MODEL_CHANGED:
            self._add_model(payload.get("model"))
        elif entry.kind == MONITOR_RESET:
            self._reset(entry.seq)

    def _add_planted(self, kind: str, ident: str, payload: Mapping[str, Any]) -> None:
        """Count the end of an audit whose content was made up: whether people answered, and would have stopped it."""
        if kind != AUDIT_CLOSED:
            return
        self.planted_unanswered.discard(ident)
        if payload.get("decided_by") == "human":
            self.planted_answered += 1
            self.planted_found += payload.get("status") != "approved"

    def _count_audit(self, terms: _AuditTerms) -> None:
        """Count an audit that was drawn, and begin the tests of its terms if it is the first with them."""
        self.terms = terms
        self.audits += 1
        self.audits_since_change += 1
        self.tests.setdefault(terms, ShareTest(promise=terms.promise))
        self.worst_case_tests.setdefault(terms, ShareTest(promise=terms.promise))

    def _add_requested(self, payload: Mapping[str, Any]) -> None:
        """Count an audit that was requested, and keep it as open until it is closed; ignore an unreadable one."""
        terms, ident = _read_terms(payload), payload.get("approval")
        expires_at = read_zoned_time(payload.get("expires_at"))
        if terms is None or not isinstance(ident, str) or expires_at is None:
            return
        was_forced = self.model_changes > 0 and self.audits_since_change < RELABEL
        self._count_audit(terms)
        self.open_audits[ident] = _OpenAudit(terms, expires_at, self.model_changes, was_forced)

    def _take_closed(self, payload: Mapping[str, Any]) -> _OpenAudit | None:
        """Remove the audit that an entry closes from the open ones, and return it.

        Returns ``None`` for an audit that was requested before the last reset, which does not count any more.
        """
        open_audit = self.open_audits.pop(str(payload.get("approval")), None)
        terms, requested_seq = _read_terms(payload), payload.get("requested")
        if open_audit is not None:
            return open_audit
        if terms is None or not isinstance(requested_seq, int) or requested_seq <= self.reset_seq:
            return None
        # The entry of the request was erased together with the content, so the audit is counted only now. Its answer
        # still counts, or somebody could erase an alarm.
        self._count_audit(terms)
        return _OpenAudit(terms, datetime.max.replace(tzinfo=UTC), self.model_changes)

    def _add_closed(self, audit: _OpenAudit, payload: Mapping[str, Any], seq: int) -> None:
        """Count how an audit ended: not answered, unless a person closed it; bad, unless it was ``approved``.

        If the answer breaks the test of the audit's terms, the place of its entry becomes that of the alarm, unless
        there was an alarm before.
        """
        if payload.get("decided_by") != "human":
            self._add_unanswered(audit.terms)
            return
        is_bad = payload.get("status") != "approved"
        for tests in (self.tests, self.worst_case_tests):
            tests[audit.terms] = tests[audit.terms].add(is_bad=is_bad)
        self.labels += 1
        self.bad += is_bad
        self.labels_since_change += audit.model_changes == self.model_changes
        if self.alarm_seq is None and self.tests[audit.terms].is_broken(audit.terms.confidence):
            self.alarm_seq = seq

    def _add_unanswered(self, terms: _AuditTerms) -> None:
        """Count an audit that nobody answered; the worst-case test of its terms takes it as bad."""
        self.unanswered += 1
        self.worst_case_tests[terms] = self.worst_case_tests[terms].add(is_bad=True)

    def _add_model(self, model: object) -> None:
        """Note a model that was not seen before; from the second one on, that is a change of the model."""
        if not isinstance(model, str) or model in self.models:
            return
        self.models.append(model)
        if len(self.models) > 1:
            self.model_changes += 1
            self.audits_since_change = self.labels_since_change = 0

    def _reset(self, seq: int) -> None:
        """Reset the counts at the entry of a reset; the last model and unanswered planted audits are kept."""
        # Open audits are dropped too: an answer to one of them is about a content from before the reset.
        self.tests, self.worst_case_tests, self.open_audits = {}, {}, {}
        self.audits = self.labels = self.bad = self.unanswered = 0
        self.planted = len(self.planted_unanswered)
        self.planted_answered = self.planted_found = 0
        self.model_changes = self.audits_since_change = self.labels_since_change = 0
        self.alarm_seq = None
        self.models = self.models[-1:]
        self.reset_seq = seq

    def describe(self, now: datetime) -> Monitor:
        """Make the monitor at a time; open audits that have expired by then count as not answered."""
        expired_terms = [audit.terms for audit in self.open_audits.values() if audit.expires_at <= now]
        labels_needed = max(0, RELABEL - self.labels_since_change)
        # With so many models, the auditor does not record another one, so the monitor must not say that all is quiet.
        has_too_many_models = len(self.models) >= MOST_MODELS
        is_changed = has_too_many_models or (self.model_changes > 0 and labels_needed > 0)
        # Open ones count against the limit too. Otherwise a server that reports a new model name with every reply would
        # flood the people who answer audits.
        open_forced = sum(audit.was_forced for audit in self.open_audits.values() if audit.expires_at > now)
        return Monitor(
            gate=self.gate,
            verdict=self._choose_verdict(expired_terms, is_changed=is_changed),
            promise=self.terms.promise if self.terms else None,
            confidence=self.terms.confidence if self.terms else None,
            audits=self.audits,
            labels=self.labels,
            bad=self.bad,
            unanswered=self.unanswered + len(expired_terms),
            wealth=self.tests[self.terms].wealth if self.terms in self.tests else 1.0,
            alarm_seq=self.alarm_seq,
            models=tuple(self.models),
            model_changed=is_changed,
            labels_needed=labels_needed,
            planted=self.planted,
            planted_answered=self.planted_answered,
            planted_found=self.planted_found,
            draws_at_once=max(0, RELABEL - max(self.audits_since_change, open_forced)) if is_changed else 0,
            since=self.reset_seq,
            seq=self.seq,
        )

    def _choose_verdict(self, expired_terms: list[_AuditTerms], *, is_changed: bool) -> MonitorVerdict:
        """Choose the worst verdict that fits.

        ``expired_terms`` are the terms of open audits that nobody answered in time. For the verdict ``unanswered``,
        each of these audits counts as bad.
        """
        if self.alarm_seq is not None:
            return "alarm"
        worst_case_tests = dict(self.worst_case_tests)
        for terms in expired_terms:
            worst_case_tests[terms] = worst_case_tests[terms].add(is_bad=True)
        if any(test.is_broken(terms.confidence) for terms, test in worst_case_tests.items()):
            return "unanswered"
        # Only after "unanswered": otherwise a server could hide that nobody answers by reporting another model once.
        if is_changed:
            return "model changed"
        return "too few labels" if self.labels_since_change < RELABEL else "quiet"


def _read_terms(payload: Mapping[str, Any]) -> _AuditTerms | None:
    """Read the promise and the confidence from an entry about an audit; ``None`` if they are missing or invalid."""
    audit = payload.get("audit")
    members = audit if isinstance(audit, dict) else {}
    promise, confidence = members.get("promise"), members.get("confidence")
    if not isinstance(promise, float) or not isinstance(confidence, float):
        return None
    return _AuditTerms(promise, confidence) if 0 < promise < 1 and 0 < confidence < 1 else None


class MonitorReader:
    """Reads the monitor of one gate from a ledger; each read only reads the entries after those of the last one."""

    def __init__(self, ledger: Ledger, gate: str) -> None:
        self._ledger = ledger
        self._counts = _MonitorCounts(gate)
        self._lock = threading.Lock()

    async def read(self) -> Monitor:
        """Count the new entries, and return the monitor.

        Raises ``UsageError`` if there is no ledger, and ``LedgerError`` if it cannot be read.
        """
        async for entry in self._ledger.query(audited=self._counts.gate, after=self._counts.seq):
            with self._lock:
                if entry.seq > self._counts.seq:  # another call may have counted it meanwhile
                    self._counts.add(entry)
        with self._lock:
            return self._counts.describe(datetime.now(UTC))


async def read_monitor(ledger: Ledger, gate: str) -> Monitor:
    """Read the state of a gate's audits from the ledger, from its first entry about them.

    A gate that has ``audit`` reads it with ``Gate.read_monitor``, which reads only what is new. Raises ``UsageError``
    where there is no ledger, and ``LedgerError`` when it cannot be read.

    Args:
        ledger: The ledger that holds it.
        gate: The name of the gate.
    """
    return await MonitorReader(ledger, gate).read()


async def list_audited(ledger: Ledger) -> tuple[str, ...]:
    """List the gates that have entries about audits in the ledger; raises ``UsageError`` if there is no ledger."""
    return tuple(await ledger.look(_find_audited, tables=make_column_tables()) or ())


def _find_audited(connection: Connection) -> list[str]:
    """Find the names of the gates that the ledger has entries about audits of."""
    from sqlalchemy import select

    names = make_column_tables().tables[ENTRY_NAMES]
    statement = select(names.c.value).where(names.c.name == AUDITED).distinct().order_by(names.c.value)
    return list(connection.execute(statement).scalars())


async def reset_monitor(ledger: Ledger, gate: str, *, by: str, reason: str) -> int:
    """Begin a gate's audits anew, once what raised an alarm was dealt with, and return the place of the entry.

    What was drawn before does not count any more, answered or not. Raises ``UsageError`` where the gate, the person or
    the reason is empty, and ``LedgerError``.

    Args:
        ledger: The ledger that holds it.
        gate: The name of the gate.
        by: The person who dealt with it.
        reason: What was done.
    """
    for argument, text in (("gate", gate), ("by", by), ("reason", reason)):
        check_label(argument, text, where="reset_monitor")
    payload = {"schema": "adjudge/monitor-reset/1", "gate": gate, "by": by, "reason": reason}
    return await ledger.append(payload, kind=MONITOR_RESET, subject=digest_text(gate))
