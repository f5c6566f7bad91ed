"""Why a judgement did not pass, criterion by criterion, for the report of a failed test.

Everything a judge wrote is data here: no control character of it reaches a terminal, and none of it is endless.
"""

from __future__ import annotations

from collections.abc import Iterator

from adjudge import CriterionResult, JudgeResult
from adjudge._display import clean, say_models, say_outcome

WIDTH = 10
"""Characters of a full bar."""
LONGEST = 400
"""Characters of one reasoning."""
MOST = 40
"""Lines about criteria, rules, suggestions and seats, each."""

_REMEDIES = {
    "error": "is the judge reachable? adjudge doctor says so",
    "timeout": "give the judge longer: timeout in adjudge.toml",
    "unparseable": "adjudge doctor says whether this judge's replies can be read",
    "missing_criterion": "adjudge doctor says whether this judge's replies can be read",
    "truncated": "raise max_output_tokens in adjudge.toml",
    "split": "an odd number of judges cannot split evenly",
}


def explain(result: JudgeResult, again: str = "") -> str:
    """The outcome, every criterion with its score and reasoning, and how to run the test again."""
    lines = [f"{say_outcome(result)} (judge {_short(result.judge, 120)})"]
    lines += _limit([line for item in result.criteria for line in _say_criterion(item)], 2 * MOST)
    lines += _limit([f"  {item.severity}: {_short(item.name, 80)}: {_short(item.message)}"
                     for item in result.rule_results if not item.passed and item.message])  # fmt: skip
    lines += [f"  {_short(said)}" for said in (result.detail, result.reasoning) if said]
    lines += _limit([f"  suggestion: {_short(item)}" for item in result.suggestions])
    lines += _limit([f"  seat {_short(seat.judge, 80)}: {say_outcome(seat)}: {_short(seat.detail or seat.reasoning)}"
                     for seat in getattr(result, "results", ())])  # fmt: skip
    lines += [f"  warning: {_short(note)}" for note in say_models(result)]
    remedy = _REMEDIES.get(result.undecided_because or "")
    lines += [f"  undecided is not a pass; {remedy}"] if remedy else []
    return "\n".join([*lines, *([f"  again: {again}"] if again else [])])


def _say_criterion(item: CriterionResult) -> Iterator[str]:
    score = "   -" if item.score is None else f"{item.score:4.2f}"
    needs = f" needs {item.threshold:.2f}" if item.threshold is not None else ""
    yield f"  {'✓' if item.passed else '✗'} {score} {draw_bar(item.score)} {_short(item.name, 80)}{needs}"
    if item.reasoning:
        yield f"      {_short(item.reasoning)}"


def draw_bar(score: float | None) -> str:
    """A score in 0 to 1 as a bar; an empty one where there is none."""
    filled = 0 if score is None else min(WIDTH, max(0, int(score * WIDTH + 1e-9)))
    return "█" * filled + "░" * (WIDTH - filled)


def _short(text: str, most: int = LONGEST) -> str:
    # Cut first: cleaning looks at every character, and a reply may have a million.
    flat = " ".join(clean(text[: 4 * most], keep_lines=False).split())
    return flat if len(flat) <= most and len(text) <= 4 * most else f"{flat[:most]}…"


def _limit(lines: list[str], most: int = MOST) -> list[str]:
    return lines if len(lines) <= most else [*lines[:most], f"  … and {len(lines) - most} more lines"]
