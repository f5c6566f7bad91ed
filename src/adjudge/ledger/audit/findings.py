"""Which findings there are about what was judged. Pure; docs/audit.md has the same as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from adjudge.ledger.audit.entry import SEVERITY_OF, Became, Finding, FindingCode, Judged
from adjudge.ledger.audit.gather import JudgedItem, Loose

_LONGEST = 500


def is_judged(item: JudgedItem) -> bool:
    """Whether it counts as something that was to be judged: everything but what a gate did not sample."""
    return item.facts.outcome != "unjudged"


def is_undecided(item: JudgedItem) -> bool:
    """Whether neither a judge nor a person, nor a judge that was asked instead, decided it."""
    return item.facts.outcome == "unreadable" or (_is_left_open(item) and not _is_answered(item))


def list_findings(item: JudgedItem) -> Iterator[Finding]:
    """The gravest finding about something that was judged, if there is one, and those that stand beside it."""
    code = _choose_code(item)
    if code is not None:
        yield _make(code, _explain(code, item), item.seq, item.hash)
    for rule in item.facts.rules:
        if not rule.passed and rule.severity == "warning":
            yield _make("warning", f"rule {rule.name[:60]!r} warned", item.seq, item.hash)


def find_loose(loose: Loose, erased: Mapping[int, int]) -> Finding:
    """The finding about an entry that belongs to nothing that was judged."""
    if loose.code == "erased":
        by = erased.get(loose.seq)
        said = f"recorded at {by}" if by is not None else "and no erasure is recorded"
        return _make("erased", f"the payload of this {loose.kind} was erased, {said}", loose.seq, loose.hash)
    return _make("vote_refused", "somebody tried to decide who could not, or not any more", loose.seq, loose.hash)


def describe(item: JudgedItem) -> Judged:
    """What was judged, as a report lists it."""
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
        by=", ".join(item.by),
        approval_id=item.approval_id,
        others=item.others,
    )


def _name_deciders(item: JudgedItem) -> str:
    """Who let it through or stopped it; of a plain result, who decided that."""
    said = ", ".join(sorted(item.through or item.stopped))
    return said or ("" if item.pending else item.facts.decided_by)


def _choose_code(item: JudgedItem) -> FindingCode | None:
    facts = item.facts
    if item.conflicts:
        return "conflict"
    if facts.is_tampered:
        return "tampering"
    if facts.undecided_because == "contradiction":
        return "contradiction"
    # A failed error rule is a failure whatever else the entry says.
    if facts.outcome == "failed" or facts.broken:
        return _choose_failed(item)
    return _choose_rest(item)


def _choose_rest(item: JudgedItem) -> FindingCode | None:
    if _is_left_open(item):
        return _choose_undecided(item)
    if item.facts.outcome == "passed":
        return _choose_passed(item)
    if item.facts.outcome == "unjudged":
        return "unjudged" if item.through else None
    return "unreadable"


def _choose_failed(item: JudgedItem) -> FindingCode:
    unknown: FindingCode = "rule_failed" if item.facts.broken else "failed"
    if item.became == "let through" and item.through == {"human"}:
        return "overridden"  # by people alone: a judge or a policy beside them would let the next one through as well
    found: dict[Became, FindingCode] = {"let through": "let_through", "stopped": "stopped", "pending": "pending"}
    return found.get(item.became, unknown)


def _choose_undecided(item: JudgedItem) -> FindingCode:
    if _is_answered(item):
        return "answered"
    if item.through or item.facts.outcome == "passed":
        return "opened"
    return "pending" if item.became == "pending" else "undecided"


def _choose_passed(item: JudgedItem) -> FindingCode | None:
    if "human" in item.stopped and not item.through:
        return "overruled"
    return "pending" if item.became == "pending" else None


def _is_left_open(item: JudgedItem) -> bool:
    """Whether no judge and no rule decided it: undecided, or passed by the policy of a chain told to fail open."""
    outcome = item.facts.outcome
    return outcome == "undecided" or (outcome == "passed" and item.facts.decided_by == "policy")


def _is_answered(item: JudgedItem) -> bool:
    """Whether somebody decided what the judge could not; a policy, which may have let it through before, did not."""
    answers = {"human", "judge"}
    return item.through <= answers if item.through else bool(item.stopped & answers)


def _explain(code: FindingCode, item: JudgedItem) -> str:
    who = "a person" if "human" in item.through else "a judge" if "judge" in item.through else "a policy"
    named = f"{who} ({', '.join(item.by)})" if item.by else who
    because = item.facts.undecided_because or "no reason is recorded"
    said: dict[FindingCode, str] = {
        "conflict": "it was recorded with different outcomes under one id",
        "unreadable": f"this {item.kind} says no outcome",
        "tampering": "somebody interfered with the judging",
        "contradiction": "a judge contradicted itself",
        "let_through": f"it failed, and {named} let it through",
        "overridden": f"it failed, and {named} let it through",
        "rule_failed": "an error rule failed, and nothing says that it was stopped",
        "failed": "it failed, and nothing says that it was stopped",
        "undecided": f"nobody could decide ({because})",
        "opened": "nobody decided, and a policy let it through",
        "pending": "it waits for a person",
        "stopped": "it failed, and was stopped",
        "answered": f"nobody could decide ({because}), and then somebody did",
        "overruled": "it passed, and a person stopped it",
        "unjudged": "it was let through without being judged",
    }
    names = ", ".join(repr(rule.name[:60]) for rule in item.facts.broken[:20])
    return said[code] + (f"; rules that failed: {names}" if names else "")


def _make(code: FindingCode, detail: str, seq: int, entry_hash: str) -> Finding:
    return Finding(severity=SEVERITY_OF[code], code=code, detail=detail[:_LONGEST], seq=seq, hash=entry_hash)
