"""The findings about what was judged. Pure; docs/audit.md has the same as a table.

The opinion that follows from them is decided in ``opinion.py`` (``choose_opinion``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from adjudge.ledger.audit.entry import SEVERITY_OF, Became, Finding, FindingCode, Judged
from adjudge.ledger.audit.gather import JudgedItem, LooseEntry

_LONGEST_DETAIL = 500


def is_judged(item: JudgedItem) -> bool:
    """Return whether an item was to be judged: every item is, but one that a gate did not sample."""
    return item.facts.outcome != "unjudged"


def is_undecided(item: JudgedItem) -> bool:
    """Return whether an item is unreadable, or no judge decided it and neither did anybody else afterwards."""
    return item.facts.outcome == "unreadable" or (_is_undecided_by_judge(item) and not _was_decided_afterwards(item))


def list_findings(item: JudgedItem) -> Iterator[Finding]:
    """Yield the gravest finding about an item, if there is one, and a warning for each warning rule that failed."""
    code = _choose_code(item)
    if code is not None:
        yield _make_finding(code, _explain(code, item), item.seq, item.hash)
    for rule in item.facts.rules:
        if not rule.passed and rule.severity == "warning":
            yield _make_finding("warning", f"rule {rule.name[:60]!r} warned", item.seq, item.hash)


def make_loose_finding(entry: LooseEntry, erased: Mapping[int, int]) -> Finding:
    """Make the finding about an entry that belongs to no judged item: it was erased, or it is a vote that was refused.

    ``erased`` maps the place of each erased entry to the place of the entry that records its erasure.
    """
    if entry.code == "erased":
        erasure_seq = erased.get(entry.seq)
        remark = f"recorded at {erasure_seq}" if erasure_seq is not None else "and no erasure is recorded"
        return _make_finding("erased", f"the payload of this {entry.kind} was erased, {remark}", entry.seq, entry.hash)
    return _make_finding(
        "vote_refused", "somebody tried to decide who could not, or not any more", entry.seq, entry.hash
    )


def describe_item(item: JudgedItem) -> Judged:
    """Describe an item as a report lists it."""
    return Judged(
        seq=item.seq,
        hash=item.hash,
        kind=item.kind,
        id=item.id,
        outcome=item.facts.outcome,
        became=item.became,
        judge=item.facts.judge,
        gate=item.gate,
        subject=item.facts.subject or item.subject,
        undecided_because=item.facts.undecided_because,
        score=item.facts.score,
        decided_by=_name_deciders(item),
        by=", ".join(item.answered_by),
        approval_id=item.approval_id,
        others=item.other_seqs,
    )


def _name_deciders(item: JudgedItem) -> str:
    """Return the names of those who let an item through or stopped it, such as ``human, policy``.

    Where no decision is recorded, return who decided its result; while it is pending, an empty text.
    """
    deciders = ", ".join(sorted(item.let_through_by or item.stopped_by))
    return deciders or ("" if item.is_pending else item.facts.decided_by)


def _choose_code(item: JudgedItem) -> FindingCode | None:
    """Choose the code of the gravest finding about an item; ``None`` where there is nothing to report."""
    facts = item.facts
    if item.has_conflict:
        return "conflict"
    if facts.is_tampered:
        return "tampering"
    if facts.undecided_because == "contradiction":
        return "contradiction"
    # A failed error rule is a failure whatever else the entry says.
    if facts.outcome == "failed" or facts.failed_rules:
        return _choose_failed_code(item)
    return _choose_other_code(item)


def _choose_other_code(item: JudgedItem) -> FindingCode | None:
    """Choose the code of an item that neither failed nor was tampered with; ``None`` where it is no finding."""
    if _is_undecided_by_judge(item):
        return _choose_undecided_code(item)
    if item.facts.outcome == "passed":
        return _choose_passed_code(item)
    if item.facts.outcome == "unjudged":
        return "unjudged" if item.let_through_by else None
    return "unreadable"


def _choose_failed_code(item: JudgedItem) -> FindingCode:
    """Choose the code of a failed item, by who let it through or stopped it.

    An item that people alone let through is ``approved`` or ``overridden`` and not ``let_through``.
    """
    if item.let_through_by == {"human"}:
        # People alone: if a judge or a policy let it through too, it would let the next one through as well. An
        # approval is by design where a gate had asked people before, and, if a rule failed, where the gate asks people
        # about failed rules (``on_rule="ask"``).
        is_by_design = not item.was_let_through_unasked and (not item.facts.failed_rules or item.asks_on_rule)
        return "approved" if is_by_design else "overridden"
    if item.let_through_by:
        return "let_through"
    code_of: dict[Became, FindingCode] = {"stopped": "stopped", "pending": "pending"}
    unknown_fate: FindingCode = "rule_failed" if item.facts.failed_rules else "failed"
    return code_of.get(item.became, unknown_fate)


def _choose_undecided_code(item: JudgedItem) -> FindingCode:
    """Choose the code of an item that no judge and no rule decided."""
    if _was_decided_afterwards(item):
        return "answered"
    if item.let_through_by or item.facts.outcome == "passed":
        return "opened"
    return "pending" if item.became == "pending" else "undecided"


def _choose_passed_code(item: JudgedItem) -> FindingCode | None:
    """Choose the code of an item that passed; ``None`` where it is no finding."""
    if "human" in item.stopped_by and not item.let_through_by:
        return "overruled"
    return "pending" if item.became == "pending" else None


def _is_undecided_by_judge(item: JudgedItem) -> bool:
    """Return whether no judge and no rule decided an item: it is undecided, or a chain's ``fail_open`` passed it."""
    outcome = item.facts.outcome
    return outcome == "undecided" or (outcome == "passed" and item.facts.decided_by == "policy")


def _was_decided_afterwards(item: JudgedItem) -> bool:
    """Return whether a person or another judge decided an item that its judge could not decide; a policy is nobody."""
    deciders = {"human", "judge"}
    return item.let_through_by <= deciders if item.let_through_by else bool(item.stopped_by & deciders)


def _explain(code: FindingCode, item: JudgedItem) -> str:
    """Explain a finding in a sentence, with the rules that failed and the entries that blocked the item later."""
    if "human" in item.let_through_by:
        decider_kind = "a person"
    else:
        decider_kind = "a judge" if "judge" in item.let_through_by else "a policy"
    decider = f"{decider_kind} ({', '.join(item.answered_by)})" if item.answered_by else decider_kind
    # An approval that nobody used let nothing through, as far as the ledger knows.
    unused = ", and no entry says that it went through"
    let_through = "let it through" if item.was_used else f"approved it{unused}"
    reason = item.facts.undecided_because or "no reason is recorded"
    sentences: dict[FindingCode, str] = {
        "conflict": "it was recorded with different outcomes under one id",
        "unreadable": f"this {item.kind} says no outcome",
        "tampering": "somebody interfered with the judging",
        "contradiction": "a judge contradicted itself",
        "let_through": f"it failed, and {decider} {let_through}",
        "overridden": f"it failed, and {decider} {let_through}",
        "approved": f"it failed, a gate asked people, and {decider} approved it{'' if item.was_used else unused}",
        "rule_failed": "an error rule failed, and nothing says that it was stopped",
        "failed": "it failed, and nothing says that it was stopped",
        "undecided": f"nobody could decide ({reason})",
        "opened": "nobody decided, and a policy let it through",
        "pending": "it waits for a person",
        "stopped": "it failed, and was stopped",
        "answered": f"nobody could decide ({reason}), and then somebody did",
        "overruled": "it passed, and a person stopped it",
        "unjudged": "it was let through without being judged",
    }
    rule_names = ", ".join(repr(rule.name[:60]) for rule in item.facts.failed_rules[:20])
    blocking_seqs = ", ".join(map(str, item.later_blocks))
    parts = (
        sentences[code],
        rule_names and f"rules that failed: {rule_names}",
        blocking_seqs and f"blocked after that: entry {blocking_seqs}",
    )
    return "; ".join(filter(None, parts))


def _make_finding(code: FindingCode, detail: str, seq: int, entry_hash: str) -> Finding:
    return Finding(severity=SEVERITY_OF[code], code=code, detail=detail[:_LONGEST_DETAIL], seq=seq, hash=entry_hash)
