"""The evidence about each judged item, collected from the entries of a ledger for an audit. Pure.

Several entries can be about one item: its result, the decisions of a gate, a request for approval and its end, an
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
"""The most characters of a name or an id, which anybody may choose, that a report repeats."""


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
    """Read the facts about a result from the result as an entry records it; what is invalid counts as unknown."""
    outcome, reason, score = recorded.get("outcome"), recorded.get("undecided_because"), recorded.get("score")
    is_score = isinstance(score, int | float) and not isinstance(score, bool) and 0 <= score <= 1
    return Facts(
        outcome=outcome if isinstance(outcome, str) and outcome in _OUTCOMES else "unreadable",
        undecided_because=reason if isinstance(reason, str) and reason in REASONS else None,
        decided_by=read_short_text(recorded.get("decided_by")),
        judge=read_short_text(recorded.get("judge")),
        subject=read_short_text(recorded.get("subject")),
        score=float(score) if is_score and score is not None else None,
        is_tampered=_is_tampered(recorded),
        rules=_read_rules(recorded.get("rule_results")),
        is_short="schema" not in recorded,
    )


def read_short_text(value: object) -> str:
    """Return a text, cut to ``LONGEST`` characters; an empty one for any other value."""
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
    # No real chain has so many seats. The seats that were not looked at may hide tampering.
    return True


def _read_rules(recorded: object) -> tuple[RuleResult, ...]:
    """Read the results of rules, the failed ones first, and keep at most ``_MOST_RULES``."""
    rules = [_read_rule(rule) for rule in recorded] if isinstance(recorded, list) else []
    return tuple(sorted(rules, key=lambda rule: rule.passed)[:_MOST_RULES])


def _read_rule(recorded: object) -> RuleResult:
    """Read a rule's result without its metadata; one that cannot be read counts as a failed error rule."""
    members: Mapping[str, Any] = recorded if isinstance(recorded, dict) else {}
    try:
        # Without the metadata, which can be of any size and can be looked up in the ledger.
        rule = RuleResult.from_dict({**members, "metadata": {}})
    except UsageError:
        return RuleResult(name=read_short_text(members.get("name")) or "?", passed=False, message="cannot be read")
    return RuleResult(
        name=rule.name[:LONGEST],
        passed=rule.passed,
        severity=rule.severity,
        message=rule.message[:LONGEST],
        score=rule.score,
    )


_JUDGED_KINDS = ("result", "decision", "tool.reviewed")
"""Kinds that say by themselves that something was judged."""

_PEOPLE_KINDS = ("approval.requested", "approval.voted", "approval.closed", "override")

READ_KINDS = (*_JUDGED_KINDS, *_PEOPLE_KINDS)
"""Kinds that an audit reads; the payload of one of these that was erased could have held any finding."""

_MOST_OTHER_SEQS = 5

_MOST_PEOPLE = 20

_SAYS_NOTHING, _STOPPED, _APPROVED, _USED, _OPENED, _CONFLICT = range(6)
"""The ranks of entries, by how much they say of what became of an item. The entry of the highest rank is cited."""

_NOBODY: frozenset[str] = frozenset()

_UNKNOWN_FACTS = Facts()
"""The facts about an item of which no entry with a result has been read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSelection:
    """The choice of what an audit is about; times as entries hold them."""

    since: str | None = None
    until: str | None = None
    gate: str | None = None
    execution: str | None = None
    subject: str | None = None

    @property
    def is_unlimited(self) -> bool:
        """True if nothing but the time limits the selection."""
        return self.gate is None and self.execution is None and self.subject is None

    def is_in_time(self, recorded_at: str) -> bool:
        """Return whether a time, as entries hold it, is in the selected period; ``until`` is not included."""
        return (self.since is None or recorded_at >= self.since) and (self.until is None or recorded_at < self.until)

    def selects(self, subject: str, payload: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
        """Return whether an entry is about the selected gate, execution and subject.

        Each may be named by the entry itself or by the ``result`` that it holds.
        """
        stated_values = {"subject": (subject, result.get("subject"))}
        stated_values |= {name: (payload.get(name), result.get(name)) for name in ("gate", "execution")}
        # A limit of None is no limit.
        return all(getattr(self, name) in (None, *values) for name, values in stated_values.items())

    def may_select(self, subject: str) -> bool:
        """Return whether an erased entry could have been about what is selected: only its subject is still known."""
        return self.subject is None or self.subject == subject


@dataclass(slots=True, kw_only=True)
class JudgedItem:
    """Something that was judged, as far as it is known."""

    key: str
    id: str
    seq: int = 0
    hash: str = ""
    kind: str = ""
    other_seqs: tuple[int, ...] = ()
    is_in_scope: bool = False
    facts: Facts = _UNKNOWN_FACTS
    gate: str = ""
    subject: str = ""
    approval_id: str | None = None
    has_conflict: bool = False
    """True if it was recorded with different outcomes."""
    let_through_by: frozenset[str] = _NOBODY
    """The deciders who let it through: ``human``, ``policy``, ``judge`` or ``rule``. No later entry takes that back,
    because anybody who can append could add one."""
    stopped_by: frozenset[str] = _NOBODY
    is_pending: bool = False
    was_used: bool = False
    """True if a decision let it through; an approval alone shows only that one could have."""
    asks_on_rule: bool = False
    """True if its gate asks people about what a rule failed (``on_rule="ask"``), by the decision that asked them or
    that let it through first."""
    later_blocks: tuple[int, ...] = ()
    """The places of decisions that blocked it after it was approved, such as for other content."""
    rank: int = _SAYS_NOTHING
    """The rank of the entry at ``seq``: how much it says of what became of the item."""
    was_let_through_unasked: bool = False
    """True if somebody let it through before a gate had asked people, or by an override."""
    answered_by: tuple[str, ...] = ()
    """The people who answered, or the judge that was asked before them."""

    @property
    def became(self) -> Became:
        """The fate of the content."""
        if self.let_through_by:
            return "let through" if self.was_used else "approved"
        return "stopped" if self.stopped_by else "pending" if self.is_pending else "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class LooseEntry:
    """A note about an entry that belongs to no one thing that was judged."""

    code: str
    seq: int
    hash: str
    kind: str
    approval: str | None = None


class Evidence:
    """The evidence of an audit, as far as it has been collected: the judged items, and the entries that are of none."""

    def __init__(self, selection: AuditSelection) -> None:
        self.selection = selection
        self.entries = 0
        """The number of entries the audit is about, and the first and the last of them."""
        self.first: int | None = None
        self.last: int | None = None
        self._loose_entries: list[LooseEntry] = []
        self._items: dict[str, JudgedItem] = {}
        self._key_of_approval: dict[str, str] = {}
        self._first_whole_item: JudgedItem | None = None
        """The first item in scope of which the ledger has the whole result, not only its outcome."""
        self._first_whole_result: Mapping[str, Any] | None = None
        """The recorded form of that result."""

    def add(self, row: Row) -> None:
        """Add one entry, which the verification of the ledger has found in order."""
        seq, _, recorded_at, kind, subject, encoded, _, _, entry_hash, _ = row
        if not self.selection.is_in_time(recorded_at):
            return
        if encoded is None:  # its payload was erased
            if kind in READ_KINDS and self.selection.may_select(subject):
                self._count_entry(seq)
                self._loose_entries.append(LooseEntry(code="erased", seq=seq, hash=entry_hash, kind=kind))
            return
        payload = _read_payload(encoded) if kind in READ_KINDS else {}
        if kind == "approval.voted":
            self._add_vote(row, payload)
        # An override that names an audit replaces an opinion, and judges nothing.
        elif kind not in READ_KINDS or (kind == "override" and "audit" in payload):
            self._count_other_entry(seq)
        else:
            self._add_item(row, payload)

    def list_items(self) -> list[JudgedItem]:
        """List the judged items that are in scope, in the order of the ledger."""
        return [item for item in self._items.values() if item.is_in_scope]

    def list_loose_entries(self) -> Iterator[LooseEntry]:
        """Yield the entries that belong to no judged item, as far as they are in scope.

        A refused vote is in scope if the item of its request for approval is. If that request is not known, the vote is
        in scope only of an audit without limits other than the time.
        """
        for loose in self._loose_entries:
            if loose.approval is None:
                yield loose
                continue
            item = self._items.get(self._key_of_approval.get(loose.approval, ""))
            is_in_scope = item.is_in_scope if item is not None else self.selection.is_unlimited
            if is_in_scope:
                yield loose

    def find_single_result(self) -> Mapping[str, Any] | None:
        """Return the recorded form of the result, if exactly one item is in scope and the ledger has its whole result.

        Else return ``None``.
        """
        items = self.list_items()
        return self._first_whole_result if len(items) == 1 and items[0] is self._first_whole_item else None

    def _count_entry(self, seq: int) -> None:
        """Count an entry that the audit is about, and remember the first and the last place."""
        self.entries += 1
        self.first, self.last = self.first or seq, seq

    def _count_other_entry(self, seq: int) -> None:
        """Count an entry of no judged item, unless the audit is limited to a gate, an execution or a subject."""
        if self.selection.is_unlimited:
            self._count_entry(seq)

    def _add_vote(self, row: Row, payload: Mapping[str, Any]) -> None:
        """Count a vote, and note it as refused where it was; a refused vote of a judge is not noted."""
        self._count_other_entry(row[SEQ])
        # A judge that is asked before people and does not approve is nobody who tried to vote without the right.
        if payload.get("accepted") is False and payload.get("voter") != "judge":
            approval = read_short_text(payload.get("approval")) or "?"
            self._loose_entries.append(
                LooseEntry(code="vote_refused", seq=row[SEQ], hash=row[HASH], kind=row[KIND], approval=approval)
            )

    def _add_item(self, row: Row, payload: Mapping[str, Any]) -> None:
        """Add an entry to the judged item that it is about.

        An entry that is about no item is counted among the others.
        """
        result = _find_result(row[KIND], payload)
        item = self._find_item(row, payload, result)
        if item is None:
            self._count_other_entry(row[SEQ])
            return
        item.is_in_scope = item.is_in_scope or self.selection.selects(row[SUBJECT], payload, result or {})
        if item.is_in_scope:
            self._count_entry(row[SEQ])
        if result is not None:
            _note_facts(item, read_facts(result))
            # Only the first is kept: a report shows a result if it is about exactly one.
            if self._first_whole_result is None and item.is_in_scope and not item.facts.is_short:
                self._first_whole_item, self._first_whole_result = item, result
        elif row[KIND] == "decision" and payload.get("sampled") is False:
            item.facts = replace(item.facts, outcome="unjudged")
        item.gate = read_short_text(payload.get("gate")) or item.gate
        item.subject = row[SUBJECT][:LONGEST] or item.subject
        rank = _note_statement(item, row, payload)
        # The first entry that contradicts an earlier one shows the conflict.
        _cite_entry(item, row, _CONFLICT if item.has_conflict else rank)
        if item.approval_id is not None:
            self._key_of_approval.setdefault(item.approval_id, item.key)

    def _find_item(self, row: Row, payload: Mapping[str, Any], result: Mapping[str, Any] | None) -> JudgedItem | None:
        """Return the item that an entry is about, which is made if this is the first entry about it.

        ``None`` for the end of a request for approval that no entry in the selected time has made.
        """
        result_id = (result or {}).get("id")
        # An entry that names no result is an item of its own. The prefix keeps its key apart from every result's id,
        # which anybody may choose: two items with one key would be counted once.
        key = f"result {result_id}" if isinstance(result_id, str) and result_id else f"entry {row[SEQ]}"
        if not isinstance(result_id, str) and row[KIND] in _PEOPLE_KINDS:
            known_key = self._key_of_approval.get(read_short_text(payload.get("approval")))
            if known_key is None and row[KIND] == "approval.closed":
                return None
            key = known_key or key
        shown_id = result_id[:LONGEST] if isinstance(result_id, str) else read_short_text(payload.get("id"))
        return self._items.setdefault(key, JudgedItem(key=key, id=shown_id or key))


def _read_payload(payload: bytes) -> Mapping[str, Any]:
    """Read the members of a payload from its bytes; none where the bytes are no JSON object."""
    try:
        members = json.loads(payload)
    except (ValueError, RecursionError):
        return {}
    return members if isinstance(members, dict) else {}


def _find_result(kind: str, payload: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Find the recorded result that an entry is about: its payload, a member of that, or a verdict on a tool."""
    if kind == "result":
        return payload
    if kind == "tool.reviewed":
        return _read_verdict(payload)
    result = payload.get("result")
    return result if isinstance(result, dict) else None


def _read_verdict(payload: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Read the verdict on a tool as a result, passed or failed; ``None`` if it does not say whether it approves."""
    verdict = payload.get("verdict")
    approved = (verdict if isinstance(verdict, dict) else payload).get("approved")
    if not isinstance(approved, bool):
        return None
    return {"outcome": "passed" if approved else "failed", "results": [payload.get("chain_result")]}


def _note_facts(item: JudgedItem, facts: Facts) -> None:
    """Note the facts that an entry states about an item, or that they conflict with those of an earlier entry."""
    # The first facts are kept, because anybody who can append could add a later entry under the same id: such an entry
    # is compared with them. Only a whole result replaces a shortened one.
    earlier = item.facts
    if earlier == _UNKNOWN_FACTS or (earlier.is_short and not facts.is_short):
        item.facts = facts
    is_same = (earlier.outcome, earlier.undecided_because) == (facts.outcome, facts.undecided_because)
    is_conflict = not (earlier == _UNKNOWN_FACTS or is_same)
    item.has_conflict = item.has_conflict or is_conflict


def _cite_entry(item: JudgedItem, row: Row, rank: int) -> None:
    """Cite an entry for an item if it says more of what became of it than the entry that is cited so far.

    Of several entries that let it through or approved it, the first stays cited: a later attempt that was blocked would
    not show that. Of several that stopped it, or say nothing of that, the last is cited.
    """
    is_first = item.seq == 0
    is_later_of_equals = rank == item.rank and rank <= _STOPPED
    replaces = is_first or rank > item.rank or is_later_of_equals
    other_seq = item.seq if replaces else row[SEQ]  # 0 for the first entry, which replaces none
    item.other_seqs = tuple(sorted({*item.other_seqs, other_seq} - {0}))[-_MOST_OTHER_SEQS:]
    if replaces:
        item.seq, item.hash, item.kind, item.rank = row[SEQ], row[HASH], row[KIND], rank


def _note_statement(item: JudgedItem, row: Row, payload: Mapping[str, Any]) -> int:
    """Note what an entry says became of an item, and return the rank of the entry."""
    kind = row[KIND]
    if kind == "result":
        return _SAYS_NOTHING
    item.approval_id = read_short_text(payload.get("approval") or payload.get("approval_id")) or item.approval_id
    # Read before this entry is noted: a request that somebody appends afterwards has asked nobody.
    were_people_asked = item.is_pending and kind != "override"
    let_through_before = item.let_through_by
    rank = _SAYS_NOTHING
    if kind == "tool.reviewed":
        rank = _note_decision(item, "judge", let_through=item.facts.outcome == "passed")
    elif kind == "decision":
        rank = _note_gate_decision(item, row[SEQ], payload)
    elif kind == "approval.requested" or payload.get("pending") is True:
        item.is_pending = True
    else:
        rank = _note_answer(item, payload)
    is_let_through_now = item.let_through_by != let_through_before
    item.was_let_through_unasked = item.was_let_through_unasked or (is_let_through_now and not were_people_asked)
    return rank


def _note_gate_decision(item: JudgedItem, seq: int, payload: Mapping[str, Any]) -> int:
    """Note a gate's decision about an item, and return the rank of the entry."""
    # After the item went through, no later entry can claim that its gate asks people about failed rules.
    item.asks_on_rule = item.asks_on_rule or (not item.was_used and _asks_on_rule(payload))
    if payload.get("pending") is True:
        item.is_pending = True
        return _SAYS_NOTHING
    allowed = payload.get("allowed") is True
    if item.let_through_by and not allowed:
        item.later_blocks = (*item.later_blocks, seq)[-_MOST_OTHER_SEQS:]
    return _note_decision(item, _choose_decider(item, payload), let_through=allowed)


def _asks_on_rule(payload: Mapping[str, Any]) -> bool:
    """Return whether a decision was made under a policy that asks people about what a rule failed."""
    basis = payload.get("basis")
    policy = basis.get("policy") if isinstance(basis, dict) else None
    return isinstance(policy, dict) and policy.get("on_rule") == "ask"


def _choose_decider(item: JudgedItem, payload: Mapping[str, Any]) -> str:
    """Return who made a decision of a gate, such as ``human`` or ``policy``; what the entry says may be corrected."""
    decider = read_short_text(payload.get("decided_by")) or "policy"
    # The judge of an undecided item cannot have decided it. It was another judge, if the entry has that judge's answer,
    # and else a policy.
    has_other_judge = isinstance(payload.get("answer"), dict)
    was_policy = item.facts.outcome == "undecided" and decider != "human" and not has_other_judge
    return "policy" if was_policy else decider


def _note_answer(item: JudgedItem, payload: Mapping[str, Any]) -> int:
    """Note the answer to a request for approval, or an override by people, and return the rank of the entry."""
    approved: object
    if "approved" in payload:
        approved = payload["approved"]
    elif "label" in payload:
        approved = payload["label"]
    else:
        approved = {"approved": True, "denied": False}.get(read_short_text(payload.get("status")))
    people = payload.get("by") or payload.get("closed_by")
    names = [read_short_text(name) for name in (people if isinstance(people, list) else [people])]
    item.answered_by = tuple(dict.fromkeys([*item.answered_by, *filter(None, names)]))[:_MOST_PEOPLE]
    decider = read_short_text(payload.get("decided_by")) or ("human" if any(names) else "policy")
    # An answer that cannot be read is taken for the graver case: that a policy let the item through.
    return _note_fate(item, decider if isinstance(approved, bool) else "policy", let_through=approved is not False)


def _note_decision(item: JudgedItem, decider: str, *, let_through: bool) -> int:
    """Note that a decision took effect: it let an item through or stopped it. Return the rank of the entry."""
    item.was_used = item.was_used or let_through
    rank = _note_fate(item, decider, let_through=let_through)
    # A decision by which a judge or a policy let an item through is graver than one of people, so it is cited first.
    return (_USED if decider == "human" else _OPENED) if let_through else rank


def _note_fate(item: JudgedItem, decider: str, *, let_through: bool) -> int:
    """Note who let an item through or stopped it, and return the rank of the entry that says so."""
    if let_through:
        item.let_through_by |= {decider}
        return _APPROVED
    item.stopped_by |= {decider}
    return _STOPPED
