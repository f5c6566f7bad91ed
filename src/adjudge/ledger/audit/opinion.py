"""The opinion of an audit, by its findings: the rule, and its reason in a few words. Pure."""

from __future__ import annotations

from typing import Literal, get_args

Opinion = Literal["unqualified", "qualified", "adverse", "disclaimer"]

OPINIONS: tuple[Opinion, ...] = get_args(Opinion)


def choose_opinion(*, critical: int, major: int, judged: int, undecided: int, verified: bool) -> Opinion:
    """Choose the opinion of an audit from its findings.

    The first that applies: not verified, a disclaimer; a critical finding, adverse; nothing judged or more than half
    undecided, a disclaimer; a major finding or anything undecided, qualified; else unqualified.

    Args:
        critical: The number of critical findings.
        major: The number of major ones.
        judged: How many contents were to be judged.
        undecided: How many of them neither a judge nor a person decided.
        verified: Whether the ledger verifies.
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
    """Explain the rule's opinion in a few words."""
    if not verified:
        return "the ledger is not as it was recorded, so nothing in it can be relied on"
    if critical > 0:
        return f"there are critical findings: {critical}"
    if judged <= 0:
        return "nothing was judged"
    things = "1 thing that was judged" if judged == 1 else f"{judged} things that were judged"
    if 2 * undecided > judged:
        return f"of {things}, nobody decided {undecided}"
    if major > 0 or undecided > 0:
        return f"there are major findings: {major}; undecided: {undecided} of {judged}"
    return f"neither a critical nor a major finding about {things}"
