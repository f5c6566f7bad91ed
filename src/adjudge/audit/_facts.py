"""What an audit takes from a result as it was recorded: little, since there may be a million, and only what it checked.

A ledger holds whatever was appended to it. What is not of the form that a result writes counts as not known, and a rule
that cannot be read as one that failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from adjudge.errors import UsageError
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
