"""The evidence about each thing that was judged, collected from a ledger's entries. Pure: rows in, values out.

Several entries can be about one thing: its result, the decisions of a gate, a request for approval and its end, an
override. They are brought together by the result's id.

What is a finding about them is decided in ``findings.py`` (``list_findings``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

from adjudge.errors import UsageError
from adjudge.ledger.audit.entry import Became
from adjudge.ledger.entry import HASH, KIND, SEQ, SUBJECT, Row
from adjudge.result import REASONS, Outcome, RuleResult

_OUTCOMES = get_args(Outcome)

_MOST_SEATS = 10_000

_MOST_RULES = 100
"""Rules of one result that are looked at one by one; of more, those that failed come first."""

LONGEST = 200
"""Characters that a report takes over of a name somebody chose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The known facts about a result."""

    outcome: str = "unreadable"
    """``passed``, ``failed``, ``undecided``; ``unjudged``, where a gate did not sample it; else ``unreadable``."""
    undecided_because: str | None = None
    decided_by: str = ""
    judge: str = ""
    subject: str = ""
    score: float | None = None
    is_tampered: bool = False
    """True if it, or a seat at any depth, is undecided because of tampering."""
    rules: tuple[RuleResult, ...] = ()
    is_short: bool = True
    """True if it is less than the whole result; entries about approvals repeat one in short."""

    @property
    def failed_rules(self) -> tuple[RuleResult, ...]:
        """The error rules that failed."""
        return tuple(rule for rule in self.rules if not rule.passed and rule.severity == "error")


def read_facts(recorded: Mapping[str, Any]) -> Facts:
    """Read the facts about a result from its recorded form."""
    outcome, because, score = recorded.get("outcome"), recorded.get("undecided_because"), recorded.get("score")
    in_range = isinstance(score, int | float) and not isinstance(score, bool) and 0 <= score <= 1
    return Facts(
        outcome=outcome if isinstance(outcome, str) and outcome in _OUTCOMES else "unreadable",
        undecided_because=because if isinstance(because, str) and because in REASONS else None,
        decided_by=read_text(recorded.get("decided_by")),
        judge=read_text(recorded.get("judge")),
        subject=read_text(recorded.get("subject")),
        score=float(score) if in_range and score is not None else None,
        is_tampered=_is_tampered(recorded),
        rules=_read_rules(recorded.get("rule_results")),
        is_short="schema" not in recorded,
    )


def read_text(value: object) -> str:
    """Return a text cut to a bearable length; an empty one for anything else."""
    return value[:LONGEST] if isinstance(value, str) else ""


def _is_tampered(recorded: Mapping[str, Any]) -> bool:
    """Return whether a recorded result, or a seat's result at any depth of it, is undecided for tampering."""
    to_check: list[Any] = [recorded]
    for _ in range(_MOST_SEATS):
        if not to_check:
            return False
        result = to_check.pop()
        if not isinstance(result, Mapping):
            continue
        if result.get("undecided_because") == "tampering":
            return True
        seats = result.get("results")
        to_check += seats if isinstance(seats, list) else []
    return True  # nobody makes a chain of so many seats: whoever does hides something behind them


def _read_rules(recorded: object) -> tuple[RuleResult, ...]:
    rules = [_read_rule(rule) for rule in recorded] if isinstance(recorded, list) else []
    return tuple(sorted(rules, key=lambda rule: rule.passed)[:_MOST_RULES])


def _read_rule(recorded: object) -> RuleResult:
    """Read a rule's result without its metadata; one that cannot be read counts as a failed error rule."""
    members: Mapping[str, Any] = recorded if isinstance(recorded, dict) else {}
    try:
        # Its metadata can be of any size, and stands in the ledger.
        rule = RuleResult.from_dict({**members, "metadata": {}})
    except UsageError:
        return RuleResult(name=read_text(members.get("name")) or "?", passed=False, message="cannot be read")
    return RuleResult(
        name=rule.name[:LONGEST],
        passed=rule.passed,
        severity=rule.severity,
        message=rule.message[:LONGEST],
        score=rule.score,
    )


_DECIDES = ("result", "decision", "tool.reviewed")
"""Kinds that say by themselves that something was judged."""

_PEOPLE = ("approval.requested", "approval.voted", "approval.closed", "override")

READ = (*_DECIDES, *_PEOPLE)
"""Kinds that an audit reads; the payload of one of these that was erased could have held any finding."""

_MOST_OTHERS = 5

_MOST_PEOPLE = 20

_SAYS_NOTHING, _STOPPED, _APPROVED, _USED, _OPENED, _CONFLICT = range(6)
"""The ranks of entries by how much they say of what came of something; the entry that says most of it is the one that
is cited."""

_NOBODY: frozenset[str] = frozenset()

_UNKNOWN = Facts()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSelection:
    """The choice of what an audit is about; times as entries hold them."""

    since: str | None = None
    until: str | None = None
    gate: str | None = None
    execution: str | None = None
    subject: str | None = None

    @property
    def all(self) -> bool:
        """True if everything of its time is selected."""
        return self.gate is None and self.execution is None and self.subject is None

    def in_time(self, at: str) -> bool:
        """Return whether an entry was recorded within the time; ``until`` is not included."""
        return (self.since is None or at >= self.since) and (self.until is None or at < self.until)

    def takes(self, subject: str, payload: Mapping[str, Any], about: Mapping[str, Any]) -> bool:
        """Return whether an entry is about what is selected."""
        values_of = {"subject": (subject, about.get("subject"))}
        values_of |= {name: (payload.get(name), about.get(name)) for name in ("gate", "execution")}
        return all(getattr(self, name) in (None, *values) for name, values in values_of.items())

    def may_take(self, subject: str) -> bool:
        """Return whether an entry without a payload could have been about what is selected."""
        return self.subject is None or self.subject == subject


@dataclass(slots=True, kw_only=True)
class JudgedItem:
    """Something that was judged, as far as it is known."""

    key: str
    id: str
    seq: int = 0
    hash: str = ""
    kind: str = ""
    others: tuple[int, ...] = ()
    in_scope: bool = False
    facts: Facts = _UNKNOWN
    gate: str = ""
    subject: str = ""
    approval_id: str | None = None
    conflicts: bool = False
    """True if it was recorded with different outcomes."""
    through: frozenset[str] = _NOBODY
    """The deciders who let it through: ``human``, ``policy``, ``judge`` or ``rule``. Once through is through: no later
    entry, which whoever can append may add, takes that back."""
    stopped: frozenset[str] = _NOBODY
    pending: bool = False
    used: bool = False
    """True if a decision let it through; an approval alone shows only that one could have."""
    asks_on_rule: bool = False
    """True if its gate asks people about what a rule failed (``on_rule="ask"``), by the decision that asked them or
    that let it through first."""
    refused: tuple[int, ...] = ()
    """The places of decisions that blocked it after it was approved, such as for other content."""
    weight: int = _SAYS_NOTHING
    """The rank of the entry at ``seq``, by how much it says."""
    unasked: bool = False
    """True if somebody let it through before a gate had asked people, or by an override."""
    by: tuple[str, ...] = ()
    """The people who answered, or the judge that was asked before them."""

    @property
    def became(self) -> Became:
        """The fate of the content."""
        if self.through:
            return "let through" if self.used else "approved"
        return "stopped" if self.stopped else "pending" if self.pending else "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loose:
    """A note about an entry that belongs to no one thing that was judged."""

    code: str
    seq: int
    hash: str
    kind: str
    approval: str | None = None


class Evidence:
    """The evidence that has been collected so far."""

    def __init__(self, selection: AuditSelection) -> None:
        self.selection = selection
        self.entries = 0
        """The number of entries the audit is about, and the first and the last of them."""
        self.first: int | None = None
        self.last: int | None = None
        self._loose: list[Loose] = []
        self._items: dict[str, JudgedItem] = {}
        self._approvals: dict[str, str] = {}
        self._whole_item: JudgedItem | None = None
        """The first thing in scope of which the ledger has the whole result."""
        self._whole: Mapping[str, Any] | None = None
        """The recorded form of that result."""

    def add(self, row: Row) -> None:
        """Take in one entry, which the check of the chain has found in order."""
        seq, _, at, kind, subject, encoded, _, _, found_hash, _ = row
        if not self.selection.in_time(at):
            return
        if encoded is None:
            if kind in READ and self.selection.may_take(subject):
                self._count_entry(seq)
                self._loose.append(Loose(code="erased", seq=seq, hash=found_hash, kind=kind))
            return
        payload = _read_payload(encoded) if kind in READ else {}
        if kind == "approval.voted":
            self._add_vote(row, payload)
        # An override of an audit's opinion judges nothing.
        elif kind not in READ or (kind == "override" and "audit" in payload):
            self._add_other(seq)
        else:
            self._add_item(row, payload)

    def list_items(self) -> list[JudgedItem]:
        """List what was judged and is in scope, in the order of the ledger."""
        return [judged for judged in self._items.values() if judged.in_scope]

    def list_loose(self) -> Iterator[Loose]:
        """Yield the rest, in scope: an entry about an approval is when what was to be approved is."""
        for loose in self._loose:
            judged = self._items.get(self._approvals.get(loose.approval or "", ""))
            if loose.approval is None or (judged.in_scope if judged is not None else self.selection.all):
                yield loose

    def find_whole(self) -> Mapping[str, Any] | None:
        """Return the recorded form of the result, where exactly one thing is in scope."""
        items = self.list_items()
        return self._whole if len(items) == 1 and items[0] is self._whole_item else None

    def _count_entry(self, seq: int) -> None:
        """Count an entry that is looked at."""
        self.entries += 1
        self.first, self.last = self.first or seq, seq

    def _add_other(self, seq: int) -> None:
        if self.selection.all:
            self._count_entry(seq)

    def _add_vote(self, row: Row, payload: Mapping[str, Any]) -> None:
        """Count a vote where all entries are selected; note one that was refused, unless it is a judge's."""
        self._add_other(row[SEQ])
        # A judge that was asked first and did not approve was no attempt of anybody's.
        if payload.get("accepted") is False and payload.get("voter") != "judge":
            approval = read_text(payload.get("approval")) or "?"
            self._loose.append(
                Loose(code="vote_refused", seq=row[SEQ], hash=row[HASH], kind=row[KIND], approval=approval)
            )

    def _add_item(self, row: Row, payload: Mapping[str, Any]) -> None:
        """Add an entry to the judged item that it is about, or count it among the others.

        Of a row, 0 is the place, 3 the kind, 4 the subject and 8 the hash, as ``COLUMNS`` has them.
        """
        about = _find_result(row[KIND], payload)
        judged = self._find_item(row, payload, about)
        if judged is None:
            self._add_other(row[SEQ])
            return
        judged.in_scope = judged.in_scope or self.selection.takes(row[SUBJECT], payload, about or {})
        if judged.in_scope:
            self._count_entry(row[SEQ])
        if about is not None:
            _take_facts(judged, read_facts(about))
            # Kept of one alone, for the report that is about exactly one.
            if self._whole is None and judged.in_scope and not judged.facts.is_short:
                self._whole_item, self._whole = judged, about
        elif row[KIND] == "decision" and payload.get("sampled") is False:
            judged.facts = replace(judged.facts, outcome="unjudged")
        judged.gate = read_text(payload.get("gate")) or judged.gate
        judged.subject = row[SUBJECT][:LONGEST] or judged.subject
        weight = _take_statement(judged, row, payload)
        # The first entry that contradicts an earlier one shows the conflict.
        _cite(judged, row, _CONFLICT if judged.conflicts else weight)
        if judged.approval_id is not None:
            self._approvals.setdefault(judged.approval_id, judged.key)

    def _find_item(self, row: Row, payload: Mapping[str, Any], about: Mapping[str, Any] | None) -> JudgedItem | None:
        """Return the item that an entry is about, a new one where it is the first of it."""
        ident = (about or {}).get("id")
        # What names no result stands for itself, and no id that somebody chose can be its key: two things that were
        # taken for one would be counted once.
        key = f"result {ident}" if isinstance(ident, str) and ident else f"entry {row[SEQ]}"
        if not isinstance(ident, str) and row[KIND] in _PEOPLE:
            known_key = self._approvals.get(read_text(payload.get("approval")))
            if known_key is None and row[KIND] == "approval.closed":
                return None  # the end of a request that was made before the time in question
            key = known_key or key
        shown_id = ident[:LONGEST] if isinstance(ident, str) else read_text(payload.get("id"))
        return self._items.setdefault(key, JudgedItem(key=key, id=shown_id or key))


def _read_payload(payload: bytes) -> Mapping[str, Any]:
    try:
        members = json.loads(payload)
    except (ValueError, RecursionError):
        return {}
    return members if isinstance(members, dict) else {}


def _find_result(kind: str, payload: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Find the result that an entry holds: its payload, or a member of it."""
    if kind == "result":
        return payload
    if kind == "tool.reviewed":
        return _read_verdict(payload)
    result = payload.get("result")
    return result if isinstance(result, dict) else None


def _read_verdict(payload: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Read the verdict on a tool as a result: it was approved, or it was not."""
    verdict = payload.get("verdict")
    approved = (verdict if isinstance(verdict, dict) else payload).get("approved")
    if not isinstance(approved, bool):
        return None
    return {"outcome": "passed" if approved else "failed", "results": [payload.get("chain_result")]}


def _take_facts(judged: JudgedItem, facts: Facts) -> None:
    """Note what an entry says of an item's result, and whether it contradicts an earlier entry."""
    # What was said first stands: a later entry under the same id, which whoever can append may add, is held against
    # it and does not replace it. Only what was said in short gives way to the whole.
    earlier = judged.facts
    if earlier == _UNKNOWN or (earlier.is_short and not facts.is_short):
        judged.facts = facts
    same = (earlier.outcome, earlier.undecided_because) == (facts.outcome, facts.undecided_because)
    judged.conflicts = judged.conflicts or not (earlier == _UNKNOWN or same)


def _cite(judged: JudgedItem, row: Row, weight: int) -> None:
    """Cite an entry if it says more of what came of it than the one that is cited by now.

    Of several that let it through or approved it the first stays: an attempt that was blocked afterwards shows nothing
    of that. Of several that stopped it, or say nothing, the last is cited.
    """
    is_cited = not judged.seq or weight > judged.weight or weight == judged.weight <= _STOPPED
    other = judged.seq if is_cited else row[SEQ]
    judged.others = tuple(sorted({*judged.others, other} - {0}))[-_MOST_OTHERS:]
    if is_cited:
        judged.seq, judged.hash, judged.kind, judged.weight = row[SEQ], row[HASH], row[KIND], weight


def _take_statement(judged: JudgedItem, row: Row, payload: Mapping[str, Any]) -> int:
    """Note what an entry says was done, and return how much it says."""
    kind = row[KIND]
    if kind == "result":
        return _SAYS_NOTHING
    judged.approval_id = read_text(payload.get("approval") or payload.get("approval_id")) or judged.approval_id
    was_asked, before = judged.pending and kind != "override", judged.through
    weight = _SAYS_NOTHING
    if kind == "tool.reviewed":
        weight = _note_decision(judged, "judge", through=judged.facts.outcome == "passed")
    elif kind == "decision":
        weight = _take_decision(judged, row[SEQ], payload)
    elif kind == "approval.requested" or payload.get("pending") is True:
        judged.pending = True
    else:
        weight = _take_answer(judged, payload)
    # As it was when this entry was made: a request that somebody appends afterwards asked nobody.
    judged.unasked = judged.unasked or (not was_asked and judged.through != before)
    return weight


def _take_decision(judged: JudgedItem, seq: int, payload: Mapping[str, Any]) -> int:
    """Note a gate's decision, and by which policy it asked people."""
    # Once it went through, no later entry can say that its gate asks people by design.
    judged.asks_on_rule = judged.asks_on_rule or (not judged.used and _asks_on_rule(payload))
    if payload.get("pending") is True:
        judged.pending = True
        return _SAYS_NOTHING
    allowed = payload.get("allowed") is True
    if judged.through and not allowed:
        judged.refused = (*judged.refused, seq)[-_MOST_OTHERS:]
    return _note_decision(judged, _find_decider(judged, payload), through=allowed)


def _asks_on_rule(payload: Mapping[str, Any]) -> bool:
    basis = payload.get("basis")
    policy = basis.get("policy") if isinstance(basis, dict) else None
    return isinstance(policy, dict) and policy.get("on_rule") == "ask"


def _find_decider(judged: JudgedItem, payload: Mapping[str, Any]) -> str:
    by = read_text(payload.get("decided_by")) or "policy"
    # Of what its judge could not decide, a judge's word counts where it is another's, which was asked instead.
    borrowed = judged.facts.outcome == "undecided" and by != "human" and not isinstance(payload.get("answer"), dict)
    return "policy" if borrowed else by


def _take_answer(judged: JudgedItem, payload: Mapping[str, Any]) -> int:
    """Note the end of a request for approval, or that people overruled a judge."""
    status = {"approved": True, "denied": False}.get(read_text(payload.get("status")))
    approved = next((payload[name] for name in ("approved", "label") if name in payload), status)
    people = payload.get("by") or payload.get("closed_by")
    names = [read_text(name) for name in (people if isinstance(people, list) else [people])]
    judged.by = tuple(dict.fromkeys([*judged.by, *filter(None, names)]))[:_MOST_PEOPLE]
    by = read_text(payload.get("decided_by")) or ("human" if any(names) else "policy")
    # What cannot be read is taken for the worse of the two.
    return _note_fate(judged, by if isinstance(approved, bool) else "policy", through=approved is not False)


def _note_decision(judged: JudgedItem, by: str, *, through: bool) -> int:
    judged.used = judged.used or through
    weight = _note_fate(judged, by, through=through)
    # What a judge or a policy let through is graver than what people did, so it is cited before that.
    return (_USED if by == "human" else _OPENED) if through else weight


def _note_fate(judged: JudgedItem, by: str, *, through: bool) -> int:
    """Note by whose decision something was let through or stopped, and return how much that says of it."""
    if through:
        judged.through |= {by}
        return _APPROVED
    judged.stopped |= {by}
    return _STOPPED
