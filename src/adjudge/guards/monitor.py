"""Is what a gate's judge lets through still as good as was promised? Answered from audits, in the ledger.

Every step is an entry: that an audit was drawn, how people answered or that they did not, that the judge's model became
another one, and that people began anew after an alarm. What is known of a gate follows from these entries alone, so it
is the same in every process, and ``verify`` covers it.

Here the entries are counted. When the alarm is raised is decided in ``trust/e_process.py`` (``ShareTest.is_broken``).
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
from adjudge.trust.e_process import ShareTest

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
class _Terms:
    """The promise that an audit tests."""

    promise: float
    confidence: float


@dataclass(frozen=True, slots=True)
class _Drawn:
    """An audit that was drawn and is not answered."""

    terms: _Terms
    expires_at: datetime
    change: int
    """The number of changes of the model before it was drawn."""
    at_once: bool = False
    """True for one of those that every call draws, because the model changed."""


@dataclass(slots=True)
class _Progress:
    """All that is counted of a gate's audits while entries go by, in the ledger's order."""

    gate: str
    terms: _Terms | None = None
    """The promise of the last audit."""
    tests: dict[_Terms, ShareTest] = field(default_factory=dict)
    """By promise: a gate that is made to promise less has to keep what it promised before."""
    worst: dict[_Terms, ShareTest] = field(default_factory=dict)
    """The same, with those that were not answered as bad ones."""
    waiting: dict[str, _Drawn] = field(default_factory=dict)
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
    change: int = 0
    """The number of changes of the model."""
    drawn_since: int = 0
    """Audits that were drawn since the last change of the model."""
    labels_since: int = 0
    """Answers to those."""
    since: int = 0
    seq: int = 0

    def add(self, entry: Entry) -> None:
        """Count one entry of the ledger; one of another kind, or whose payload cannot be read, is passed over."""
        self.seq = entry.seq
        payload = entry.payload or {}
        ident = str(payload.get("approval"))
        if entry.kind == AUDIT_PLANTED:
            self.planted_unanswered.add(ident)
            self.planted += 1
        elif ident in self.planted_unanswered:
            self._add_planted(entry.kind, ident, payload)
        elif entry.kind == AUDIT_REQUESTED:
            self._add_drawn(payload)
        elif entry.kind == AUDIT_FAILED and (terms := _read_terms(payload)) is not None:
            self._count_drawn(terms)
            self._add_unanswered(terms)
        elif entry.kind == AUDIT_CLOSED and (drawn := self._take_drawn(payload)) is not None:
            self._add_closed(drawn, payload, entry.seq)
        elif entry.kind == MODEL_CHANGED:
            self._add_model(payload.get("model"))
        elif entry.kind == MONITOR_RESET:
            self._begin_anew(entry.seq)

    def _add_planted(self, kind: str, ident: str, payload: Mapping[str, Any]) -> None:
        if kind != AUDIT_CLOSED:
            return
        self.planted_unanswered.discard(ident)
        if payload.get("decided_by") == "human":
            self.planted_answered += 1
            self.planted_found += payload.get("status") != "approved"

    def _count_drawn(self, terms: _Terms) -> None:
        """Count an audit that was drawn, and begin the tests of its terms if it is the first with them."""
        self.terms = terms
        self.audits += 1
        self.drawn_since += 1
        self.tests.setdefault(terms, ShareTest(promise=terms.promise))
        self.worst.setdefault(terms, ShareTest(promise=terms.promise))

    def _add_drawn(self, payload: Mapping[str, Any]) -> None:
        """Count an audit that was drawn, and keep it until it is closed; one that cannot be read is passed over."""
        terms, ident = _read_terms(payload), payload.get("approval")
        expires_at = read_zoned_time(payload.get("expires_at"))
        if terms is None or not isinstance(ident, str) or expires_at is None:
            return
        at_once = self.change > 0 and self.drawn_since < RELABEL
        self._count_drawn(terms)
        self.waiting[ident] = _Drawn(terms, expires_at, self.change, at_once)

    def _take_drawn(self, payload: Mapping[str, Any]) -> _Drawn | None:
        """Find the audit that was closed; ``None`` for one that was drawn before people began anew."""
        drawn = self.waiting.pop(str(payload.get("approval")), None)
        terms, requested = _read_terms(payload), payload.get("requested")
        if drawn is not None or terms is None or not isinstance(requested, int) or requested <= self.since:
            return drawn
        # What people were asked was erased, with the content. What they answered stays, or an alarm could be erased.
        self._count_drawn(terms)
        return _Drawn(terms, datetime.max.replace(tzinfo=UTC), self.change)

    def _add_closed(self, drawn: _Drawn, payload: Mapping[str, Any], seq: int) -> None:
        """Count how an audit ended: not answered, unless a person closed it; bad, unless it was ``approved``.

        The entry at which the test of its terms breaks becomes the alarm, unless there is one.
        """
        if payload.get("decided_by") != "human":
            self._add_unanswered(drawn.terms)
            return
        is_bad = payload.get("status") != "approved"
        for tests in (self.tests, self.worst):
            tests[drawn.terms] = tests[drawn.terms].add(is_bad=is_bad)
        self.labels += 1
        self.bad += is_bad
        self.labels_since += drawn.change == self.change
        if self.alarm_seq is None and self.tests[drawn.terms].is_broken(drawn.terms.confidence):
            self.alarm_seq = seq

    def _add_unanswered(self, terms: _Terms) -> None:
        self.unanswered += 1
        self.worst[terms] = self.worst[terms].add(is_bad=True)

    def _add_model(self, model: object) -> None:
        if not isinstance(model, str) or model in self.models:
            return
        self.models.append(model)
        if len(self.models) > 1:
            self.change += 1
            self.drawn_since = self.labels_since = 0

    def _begin_anew(self, seq: int) -> None:
        """Drop all counts and all audits that wait; the last model and planted audits without an answer stay."""
        # What is answered from now on about what was let through before says nothing of what people began with.
        self.tests, self.worst, self.waiting = {}, {}, {}
        self.audits = self.labels = self.bad = self.unanswered = 0
        self.planted = len(self.planted_unanswered)
        self.planted_answered = self.planted_found = 0
        self.change = self.drawn_since = self.labels_since = 0
        self.alarm_seq = None
        self.models = self.models[-1:]
        self.since = seq

    def describe(self, now: datetime) -> Monitor:
        """Describe the state at a time: audits whose time is over count as not answered, closed or not."""
        lapsed = [drawn.terms for drawn in self.waiting.values() if drawn.expires_at <= now]
        needed = max(0, RELABEL - self.labels_since)
        # The auditor records no further name then: without this, the monitor would be quiet about a model that is new.
        has_too_many = len(self.models) >= MOST_MODELS
        is_changed = has_too_many or (self.change > 0 and needed > 0)
        # Those that wait count, too: else a server that reports one name after the other floods who answers audits.
        waiting = sum(drawn.at_once for drawn in self.waiting.values() if drawn.expires_at > now)
        return Monitor(
            gate=self.gate,
            verdict=self._choose_verdict(lapsed, is_changed=is_changed),
            promise=self.terms.promise if self.terms else None,
            confidence=self.terms.confidence if self.terms else None,
            audits=self.audits,
            labels=self.labels,
            bad=self.bad,
            unanswered=self.unanswered + len(lapsed),
            wealth=self.tests[self.terms].wealth if self.terms in self.tests else 1.0,
            alarm_seq=self.alarm_seq,
            models=tuple(self.models),
            model_changed=is_changed,
            labels_needed=needed,
            planted=self.planted,
            planted_answered=self.planted_answered,
            planted_found=self.planted_found,
            draws_at_once=max(0, RELABEL - max(self.drawn_since, waiting)) if is_changed else 0,
            since=self.since,
            seq=self.seq,
        )

    def _choose_verdict(self, lapsed: list[_Terms], *, is_changed: bool) -> MonitorVerdict:
        """Choose the first verdict that fits; ``lapsed`` are the terms of audits that nobody answered in time.

        For the verdict ``unanswered``, each of these counts as a bad one.
        """
        if self.alarm_seq is not None:
            return "alarm"
        worst = dict(self.worst)
        for terms in lapsed:
            worst[terms] = worst[terms].add(is_bad=True)
        if any(test.is_broken(terms.confidence) for terms, test in worst.items()):
            return "unanswered"
        # After "unanswered", or a server hides that nobody answers: it has only to report another name once.
        if is_changed:
            return "model changed"
        return "too few labels" if self.labels_since < RELABEL else "quiet"


def _read_terms(payload: Mapping[str, Any]) -> _Terms | None:
    audit = payload.get("audit")
    members = audit if isinstance(audit, dict) else {}
    promise, confidence = members.get("promise"), members.get("confidence")
    if not isinstance(promise, float) or not isinstance(confidence, float):
        return None
    return _Terms(promise, confidence) if 0 < promise < 1 and 0 < confidence < 1 else None


class MonitorReader:
    """Reads from a ledger what is known of one gate's audits; each look reads only the entries since the last one."""

    def __init__(self, ledger: Ledger, gate: str) -> None:
        self._ledger = ledger
        self._progress = _Progress(gate)
        self._lock = threading.Lock()

    async def read(self) -> Monitor:
        """Read what is new, and return the state. Raises ``UsageError`` if there is no ledger, and ``LedgerError``."""
        async for entry in self._ledger.query(audited=self._progress.gate, after=self._progress.seq):
            with self._lock:
                if entry.seq > self._progress.seq:  # another look may have read it meanwhile
                    self._progress.add(entry)
        with self._lock:
            return self._progress.describe(datetime.now(UTC))


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
    """List the gates of whose audits the ledger has entries. Raises ``UsageError`` where there is no ledger."""
    return tuple(await ledger.look(_find_audited, tables=make_column_tables()) or ())


def _find_audited(connection: Connection) -> list[str]:
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
