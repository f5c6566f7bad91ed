"""What a ledger says of each thing that was judged, collected entry by entry. Pure: rows in, plain values out.

Several entries can be about one thing: its result, the decisions of a gate, a request for approval and its end, an
override. They are brought together by the result's id.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

from adjudge.errors import UsageError
from adjudge.ledger.audit.entry import Became
from adjudge.ledger.entry import Row
from adjudge.result import REASONS, Outcome, RuleResult

_OUTCOMES = get_args(Outcome)

_MOST_SEATS = 10_000

_MOST_RULES = 100
"""Rules of one result that are looked at one by one; of more, those that failed come first."""

LONGEST = 200
"""Characters that a report takes over of a name somebody chose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of a result."""

    outcome: str = "unreadable"
    """``passed``, ``failed``, ``undecided``; ``unjudged``, where a gate did not sample it; else ``unreadable``."""
    undecided_because: str | None = None
    decided_by: str = ""
    judge: str = ""
    subject: str = ""
    score: float | None = None
    is_tampered: bool = False
    """Whether it, or a seat at any depth, is undecided because of tampering."""
    rules: tuple[RuleResult, ...] = ()
    is_short: bool = True
    """Whether it is less than the whole result; entries about approvals repeat one in short."""

    @property
    def broken(self) -> tuple[RuleResult, ...]:
        """The error rules that failed."""
        return tuple(item for item in self.rules if not item.passed and item.severity == "error")


def read_facts(said: Mapping[str, Any]) -> Facts:
    """What is known of a result from its recorded form."""
    outcome, because, score = said.get("outcome"), said.get("undecided_because"), said.get("score")
    in_range = isinstance(score, int | float) and not isinstance(score, bool) and 0 <= score <= 1
    return Facts(
        outcome=outcome if isinstance(outcome, str) and outcome in _OUTCOMES else "unreadable",
        undecided_because=because if isinstance(because, str) and because in REASONS else None,
        decided_by=read_text(said.get("decided_by")),
        judge=read_text(said.get("judge")),
        subject=read_text(said.get("subject")),
        score=float(score) if in_range and score is not None else None,
        is_tampered=_is_tampered(said),
        rules=_read_rules(said.get("rule_results")),
        is_short="schema" not in said,
    )


def read_text(value: object) -> str:
    """A text of bearable length; nothing where it is none."""
    return value[:LONGEST] if isinstance(value, str) else ""


def _is_tampered(said: Mapping[str, Any]) -> bool:
    left: list[Any] = [said]
    for _ in range(_MOST_SEATS):
        if not left:
            return False
        item = left.pop()
        if not isinstance(item, Mapping):
            continue
        if item.get("undecided_because") == "tampering":
            return True
        seats = item.get("results")
        left += seats if isinstance(seats, list) else []
    return True  # nobody makes a chain of so many seats: whoever does hides something behind them


def _read_rules(said: object) -> tuple[RuleResult, ...]:
    found = [_read_rule(item) for item in said] if isinstance(said, list) else []
    return tuple(sorted(found, key=lambda item: item.passed)[:_MOST_RULES])


def _read_rule(said: object) -> RuleResult:
    held: Mapping[str, Any] = said if isinstance(said, dict) else {}
    try:
        # Its metadata can be of any size, and stands in the ledger.
        read = RuleResult.from_dict({**held, "metadata": {}})
    except UsageError:
        return RuleResult(name=read_text(held.get("name")) or "?", passed=False, message="cannot be read")
    return RuleResult(
        name=read.name[:LONGEST],
        passed=read.passed,
        severity=read.severity,
        message=read.message[:LONGEST],
        score=read.score,
    )


_DECIDES = ("result", "decision", "tool.reviewed")
"""Kinds that say by themselves that something was judged."""

_PEOPLE = ("approval.requested", "approval.voted", "approval.closed", "override")

READ = (*_DECIDES, *_PEOPLE)
"""Kinds that an audit reads; the payload of one of these that was erased could have held any finding."""

_MOST_OTHERS = 5

_MOST_PEOPLE = 20

_NOBODY: frozenset[str] = frozenset()

_UNKNOWN = Facts()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSelection:
    """What an audit is about; times as entries hold them."""

    since: str | None = None
    until: str | None = None
    gate: str | None = None
    execution: str | None = None
    subject: str | None = None

    @property
    def all(self) -> bool:
        """Whether everything of its time is wanted."""
        return self.gate is None and self.execution is None and self.subject is None

    def in_time(self, at: str) -> bool:
        """Whether an entry was recorded within the time; ``until`` is not included."""
        return (self.since is None or at >= self.since) and (self.until is None or at < self.until)

    def takes(self, subject: str, said: Mapping[str, Any], about: Mapping[str, Any]) -> bool:
        """Whether an entry is about what is wanted."""
        found = {"subject": (subject, about.get("subject"))}
        found |= {name: (said.get(name), about.get(name)) for name in ("gate", "execution")}
        return all(getattr(self, name) in (None, *values) for name, values in found.items())

    def may_take(self, subject: str) -> bool:
        """Whether an entry without a payload could have been about what is wanted."""
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
    """Whether it was recorded with different outcomes."""
    through: frozenset[str] = _NOBODY
    """Who let it through: ``human``, ``policy``, ``judge`` or ``rule``. Once through is through: no later entry,
    which whoever can append may add, takes that back."""
    stopped: frozenset[str] = _NOBODY
    pending: bool = False
    by: tuple[str, ...] = ()
    """The people who answered, or the judge that was asked before them."""

    @property
    def became(self) -> Became:
        """What was done with it."""
        if self.through:
            return "let through"
        return "stopped" if self.stopped else "pending" if self.pending else "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loose:
    """Something about an entry that belongs to no one thing that was judged."""

    code: str
    seq: int
    hash: str
    kind: str
    approval: str | None = None


class Evidence:
    """What has been collected so far."""

    def __init__(self, wanted: AuditSelection) -> None:
        self.wanted = wanted
        self.entries = 0
        """How many entries the audit is about, the first of them and the last."""
        self.first: int | None = None
        self.last: int | None = None
        self._loose: list[Loose] = []
        self._items: dict[str, JudgedItem] = {}
        self._approvals: dict[str, str] = {}
        self._whole: tuple[JudgedItem, Mapping[str, Any]] | None = None

    def add(self, row: Row) -> None:
        """Take in one entry, which the check of the chain has found in order."""
        seq, _, at, kind, subject, payload, _, _, found_hash, _ = row
        if not self.wanted.in_time(at):
            return
        if payload is None:
            if kind in READ and self.wanted.may_take(subject):
                self._count(seq)
                self._loose.append(Loose(code="erased", seq=seq, hash=found_hash, kind=kind))
            return
        said = _read_payload(payload) if kind in READ else {}
        if kind == "approval.voted":
            self._add_vote(row, said)
        # An override of an audit's opinion judges nothing.
        elif kind not in READ or (kind == "override" and "audit" in said):
            self._add_other(seq)
        else:
            self._add_item(row, said)

    def list_items(self) -> list[JudgedItem]:
        """What was judged and is in scope, in the order of the ledger."""
        return [item for item in self._items.values() if item.in_scope]

    def list_loose(self) -> Iterator[Loose]:
        """The rest, in scope: an entry about an approval is when what was to be approved is."""
        for item in self._loose:
            held = self._items.get(self._approvals.get(item.approval or "", ""))
            if item.approval is None or (held.in_scope if held is not None else self.wanted.all):
                yield item

    def find_whole(self) -> Mapping[str, Any] | None:
        """The recorded form of the result, where exactly one thing is in scope."""
        items = self.list_items()
        return self._whole[1] if self._whole is not None and len(items) == 1 and items[0] is self._whole[0] else None

    def _count(self, seq: int) -> None:
        self.entries += 1
        self.first, self.last = self.first or seq, seq

    def _add_other(self, seq: int) -> None:
        if self.wanted.all:
            self._count(seq)

    def _add_vote(self, row: Row, said: Mapping[str, Any]) -> None:
        self._add_other(row[0])
        # A judge that was asked first and did not approve was no attempt of anybody's.
        if said.get("accepted") is False and said.get("voter") != "judge":
            approval = read_text(said.get("approval")) or "?"
            self._loose.append(Loose(code="vote_refused", seq=row[0], hash=row[8], kind=row[3], approval=approval))

    def _add_item(self, row: Row, said: Mapping[str, Any]) -> None:
        about = _find_result(row[3], said)
        item = self._find_item(row, said, about)
        if item is None:
            self._add_other(row[0])
            return
        item.others = (*item.others, item.seq)[-_MOST_OTHERS:] if item.seq else ()
        item.seq, item.hash, item.kind = row[0], row[8], row[3]
        item.in_scope = item.in_scope or self.wanted.takes(row[4], said, about or {})
        if item.in_scope:
            self._count(row[0])
        if about is not None:
            _take_facts(item, read_facts(about))
            # Kept of one alone, for the report that is about exactly one.
            if self._whole is None and item.in_scope and not item.facts.is_short:
                self._whole = item, about
        elif row[3] == "decision" and said.get("sampled") is False:
            item.facts = replace(item.facts, outcome="unjudged")
        item.gate = read_text(said.get("gate")) or item.gate
        item.subject = row[4][:LONGEST] or item.subject
        _take_statement(item, row[3], said)
        if item.approval_id is not None:
            self._approvals.setdefault(item.approval_id, item.key)

    def _find_item(self, row: Row, said: Mapping[str, Any], about: Mapping[str, Any] | None) -> JudgedItem | None:
        """The item that an entry is about, a new one where it is the first of it."""
        ident = (about or {}).get("id")
        # What names no result stands for itself, and no id that somebody chose can be its key: two things that were
        # taken for one would be counted once.
        key = f"result {ident}" if isinstance(ident, str) and ident else f"entry {row[0]}"
        if not isinstance(ident, str) and row[3] in _PEOPLE:
            known = self._approvals.get(read_text(said.get("approval")))
            if known is None and row[3] == "approval.closed":
                return None  # the end of a request that was made before the time in question
            key = known or key
        shown = ident[:LONGEST] if isinstance(ident, str) else read_text(said.get("id"))
        return self._items.setdefault(key, JudgedItem(key=key, id=shown or key))


def _read_payload(payload: bytes) -> Mapping[str, Any]:
    try:
        said = json.loads(payload)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _find_result(kind: str, said: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The result that an entry holds: its payload, or a member of it."""
    if kind == "result":
        return said
    if kind == "tool.reviewed":
        return _read_verdict(said)
    held = said.get("result")
    return held if isinstance(held, dict) else None


def _read_verdict(said: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The verdict on a tool as a result: it was approved, or it was not."""
    held = said.get("verdict")
    approved = (held if isinstance(held, dict) else said).get("approved")
    if not isinstance(approved, bool):
        return None
    return {"outcome": "passed" if approved else "failed", "results": [said.get("chain_result")]}


def _take_facts(item: JudgedItem, facts: Facts) -> None:
    # What was said first stands: a later entry under the same id, which whoever can append may add, is held against
    # it and does not replace it. Only what was said in short gives way to the whole.
    known = item.facts
    if known == _UNKNOWN or (known.is_short and not facts.is_short):
        item.facts = facts
    same = (known.outcome, known.undecided_because) == (facts.outcome, facts.undecided_because)
    item.conflicts = item.conflicts or not (known == _UNKNOWN or same)


def _take_statement(item: JudgedItem, kind: str, said: Mapping[str, Any]) -> None:
    """What an entry says was done."""
    if kind == "result":
        return
    item.approval_id = read_text(said.get("approval") or said.get("approval_id")) or item.approval_id
    if kind == "tool.reviewed":
        _note(item, "judge", through=item.facts.outcome == "passed")
    elif kind == "approval.requested" or said.get("pending") is True:
        item.pending = True
    elif kind == "decision":
        _note(item, _find_decider(item, said), through=said.get("allowed") is True)
    else:
        _take_answer(item, said)


def _find_decider(item: JudgedItem, said: Mapping[str, Any]) -> str:
    by = read_text(said.get("decided_by")) or "policy"
    # Of what its judge could not decide, a judge's word counts where it is another's, which was asked instead.
    borrowed = item.facts.outcome == "undecided" and by != "human" and not isinstance(said.get("answer"), dict)
    return "policy" if borrowed else by


def _take_answer(item: JudgedItem, said: Mapping[str, Any]) -> None:
    """The end of a request for approval, or people overruling a judge."""
    status = {"approved": True, "denied": False}.get(read_text(said.get("status")))
    approved = next((said[name] for name in ("approved", "label") if name in said), status)
    people = said.get("by") or said.get("closed_by")
    names = [read_text(name) for name in (people if isinstance(people, list) else [people])]
    item.by = tuple(dict.fromkeys([*item.by, *filter(None, names)]))[:_MOST_PEOPLE]
    by = read_text(said.get("decided_by")) or ("human" if any(names) else "policy")
    # What cannot be read is taken for the worse of the two.
    _note(item, by if isinstance(approved, bool) else "policy", through=approved is not False)


def _note(item: JudgedItem, by: str, *, through: bool) -> None:
    if through:
        item.through |= {by}
    else:
        item.stopped |= {by}
