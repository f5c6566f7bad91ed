"""The rule by which an audit comes to its opinion: pure, total, and the only place where one is chosen.

The words are those of auditors: ``unqualified`` (no reservation), ``qualified`` (with reservations), ``adverse`` (not
as it should be) and ``disclaimer`` (there is not enough to go by).
"""

from __future__ import annotations

from typing import Literal, get_args

Opinion = Literal["unqualified", "qualified", "adverse", "disclaimer"]
OPINIONS: tuple[Opinion, ...] = get_args(Opinion)

Severity = Literal["critical", "major", "minor"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""Gravest first."""

FindingCode = Literal[
    "ledger_changed",
    "conflict",
    "tampering",
    "contradiction",
    "let_through",
    "rule_failed",
    "overridden",
    "failed",
    "undecided",
    "opened",
    "pending",
    "erased",
    "unreadable",
    "stopped",
    "answered",
    "overruled",
    "unjudged",
    "warning",
    "vote_refused",
]

SEVERITY_OF: dict[FindingCode, Severity] = {
    "ledger_changed": "critical",
    "conflict": "critical",
    "tampering": "critical",
    "contradiction": "critical",
    "let_through": "critical",
    "rule_failed": "critical",
    "overridden": "major",
    "failed": "major",
    "undecided": "major",
    "opened": "major",
    "pending": "major",
    "erased": "major",
    "unreadable": "major",
    "stopped": "minor",
    "answered": "minor",
    "overruled": "minor",
    "unjudged": "minor",
    "warning": "minor",
    "vote_refused": "minor",
}
"""How grave each finding is; docs/audit.md says when there is one."""


def choose_opinion(*, critical: int, major: int, judged: int, undecided: int, verified: bool) -> Opinion:
    """The opinion on what was found.

    ``judged`` is how many things were to be judged, ``undecided`` how many of them neither a judge nor a person
    decided, and ``verified`` whether the ledger is as it was recorded. The first that applies: not verified, a
    disclaimer; a critical finding, adverse; nothing judged or more than half undecided, a disclaimer; a major finding
    or anything undecided, qualified; else unqualified.
    """
    # First of all: whoever could change the ledger could have changed every number below.
    if not verified:
        return "disclaimer"
    # Before the next: otherwise whoever can make judges fail turns an adverse opinion into a disclaimer.
    if critical > 0:
        return "adverse"
    if judged <= 0 or 2 * undecided > judged:
        return "disclaimer"
    return "qualified" if major > 0 or undecided > 0 else "unqualified"


def explain_opinion(*, critical: int, major: int, judged: int, undecided: int, verified: bool) -> str:
    """Why the rule says what it says, in a few words."""
    if not verified:
        return "the ledger is not as it was recorded, so nothing in it can be relied on"
    if critical > 0:
        return f"there are critical findings: {critical}"
    if judged <= 0:
        return "nothing was judged"
    if 2 * undecided > judged:
        return f"of {judged} things that were judged, nobody decided {undecided}"
    if major > 0 or undecided > 0:
        return f"there are major findings: {major}; undecided: {undecided} of {judged}"
    return f"neither a critical nor a major finding about {judged} things that were judged"
