"""The findings about what was judged. Pure; docs/audit.md has the same as a table.

The opinion that follows from them is decided in ``opinion.py`` (``choose_opinion``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from adjudge.ledger.audit.entry import SEVERITY_OF, Became, Finding, FindingCode, Judged
from adjudge.ledger.audit.gather import JudgedItem, Loose

_LONGEST = 500


def is_judged(judged: JudgedItem) -> bool:
    """Return whether it counts as something that was to be judged: everything but what a gate did not sample."""
    return judged.facts.outcome != "unjudged"


def is_undecided(judged: JudgedItem) -> bool:
    """Return whether neither a judge nor a person, nor a judge that was asked instead, decided it."""
    return judged.facts.outcome == "unreadable" or (_is_left_open(judged) and not _is_answered(judged))


def list_findings(judged: JudgedItem) -> Iterator[Finding]:
    """Yield the gravest finding about something that was judged, if there is one, and those that go with it."""
    code = _choose_code(judged)
    if code is not None:
        yield _make_finding(code, _explain(code, judged), judged.seq, judged.hash)
    for rule in judged.facts.rules:
        if not rule.passed and rule.severity == "warning":
            yield _make_finding("warning", f"rule {rule.name[:60]!r} warned", judged.seq, judged.hash)


def make_loose_finding(loose: Loose, erased: Mapping[int, int]) -> Finding:
    """Make the finding about an entry that belongs to nothing that was judged."""
    if loose.code == "erased":
        by = erased.get(loose.seq)
        erasure = f"recorded at {by}" if by is not None else "and no erasure is recorded"
        return _make_finding("erased", f"the payload of this {loose.kind} was erased, {erasure}", loose.seq, loose.hash)
    return _make_finding(
        "vote_refused", "somebody tried to decide who could not, or not any more", loose.seq, loose.hash
    )


def describe(judged: JudgedItem) -> Judged:
    """Describe something that was judged, as a report lists it."""
    return Judged(
        seq=judged.seq,
        hash=judged.hash,
        kind=judged.kind,
        id=judged.id,
        outcome=judged.facts.outcome,
        became=judged.became,
        judge=judged.facts.judge,
        gate=judged.gate,
        subject=judged.facts.subject or judged.subject,
        undecided_because=judged.facts.undecided_because,
        score=judged.facts.score,
        decided_by=_name_deciders(judged),
        by=", ".join(judged.by),
        approval_id=judged.approval_id,
        others=judged.others,
    )


def _name_deciders(judged: JudgedItem) -> str:
    """Name who let it through or stopped it; of a plain result, who decided that."""
    deciders = ", ".join(sorted(judged.through or judged.stopped))
    return deciders or ("" if judged.pending else judged.facts.decided_by)


def _choose_code(judged: JudgedItem) -> FindingCode | None:
    """Choose the code by the first reason that applies; ``None`` where there is nothing to report."""
    facts = judged.facts
    if judged.conflicts:
        return "conflict"
    if facts.is_tampered:
        return "tampering"
    if facts.undecided_because == "contradiction":
        return "contradiction"
    # A failed error rule is a failure whatever else the entry says.
    if facts.outcome == "failed" or facts.failed_rules:
        return _choose_failed(judged)
    return _choose_rest(judged)


def _choose_rest(judged: JudgedItem) -> FindingCode | None:
    """Choose the code of an item that neither failed nor was tampered with; ``None`` where it is no finding."""
    if _is_left_open(judged):
        return _choose_undecided(judged)
    if judged.facts.outcome == "passed":
        return _choose_passed(judged)
    if judged.facts.outcome == "unjudged":
        return "unjudged" if judged.through else None
    return "unreadable"


def _choose_failed(judged: JudgedItem) -> FindingCode:
    """Choose the code of a failed item by what became of it: not ``let_through`` where people alone let it through."""
    unknown: FindingCode = "rule_failed" if judged.facts.failed_rules else "failed"
    if judged.through == {"human"}:
        # By people alone: a judge or a policy beside them would let the next one through as well. Where a gate asked
        # them, that is what it was made for; about a rule that failed, only a gate that says so asks by design.
        is_by_design = not judged.unasked and (not judged.facts.failed_rules or judged.asks_on_rule)
        return "approved" if is_by_design else "overridden"
    if judged.through:
        return "let_through"
    code_of: dict[Became, FindingCode] = {"stopped": "stopped", "pending": "pending"}
    return code_of.get(judged.became, unknown)


def _choose_undecided(judged: JudgedItem) -> FindingCode:
    if _is_answered(judged):
        return "answered"
    if judged.through or judged.facts.outcome == "passed":
        return "opened"
    return "pending" if judged.became == "pending" else "undecided"


def _choose_passed(judged: JudgedItem) -> FindingCode | None:
    if "human" in judged.stopped and not judged.through:
        return "overruled"
    return "pending" if judged.became == "pending" else None


def _is_left_open(judged: JudgedItem) -> bool:
    """Return whether no judge and no rule decided it: undecided, or passed by a chain's ``fail_open``."""
    outcome = judged.facts.outcome
    return outcome == "undecided" or (outcome == "passed" and judged.facts.decided_by == "policy")


def _is_answered(judged: JudgedItem) -> bool:
    """Return whether somebody decided what the judge could not; a policy that let it through is nobody."""
    answers = {"human", "judge"}
    return judged.through <= answers if judged.through else bool(judged.stopped & answers)


def _explain(code: FindingCode, judged: JudgedItem) -> str:
    """Explain a finding about an item in a sentence, with the rules that failed."""
    who = "a person" if "human" in judged.through else "a judge" if "judge" in judged.through else "a policy"
    decider = f"{who} ({', '.join(judged.by)})" if judged.by else who
    # An approval that nobody used let nothing through, as far as the ledger knows.
    unused = ", and no entry says that it went through"
    let_through = "let it through" if judged.used else f"approved it{unused}"
    because = judged.facts.undecided_because or "no reason is recorded"
    sentences: dict[FindingCode, str] = {
        "conflict": "it was recorded with different outcomes under one id",
        "unreadable": f"this {judged.kind} says no outcome",
        "tampering": "somebody interfered with the judging",
        "contradiction": "a judge contradicted itself",
        "let_through": f"it failed, and {decider} {let_through}",
        "overridden": f"it failed, and {decider} {let_through}",
        "approved": f"it failed, a gate asked people, and {decider} approved it{'' if judged.used else unused}",
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
    names = ", ".join(repr(rule.name[:60]) for rule in judged.facts.failed_rules[:20])
    refused = ", ".join(map(str, judged.refused))
    parts = (
        sentences[code],
        names and f"rules that failed: {names}",
        refused and f"blocked after that: entry {refused}",
    )
    return "; ".join(filter(None, parts))


def _make_finding(code: FindingCode, detail: str, seq: int, entry_hash: str) -> Finding:
    return Finding(severity=SEVERITY_OF[code], code=code, detail=detail[:_LONGEST], seq=seq, hash=entry_hash)
