"""A summary of a suite's judgements: plain data for each, properties of a test report, a few lines at the end.

``plugin.py`` (``pytest_terminal_summary``) gathers the judgements of all workers of pytest-xdist.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from adjudge.content import content_text
from adjudge.formats.display import SIGNS, describe_models, describe_outcome, find_pass_mark
from adjudge.formats.numbers import format_distinct, format_dollars
from adjudge.formats.text import clean
from adjudge.judges.remedies import may_doctor_help
from adjudge.result import CriterionResult, JudgeResult

WIDTH = 10
"""The number of characters of a full bar."""

LONGEST = 400
"""The most characters of one reasoning."""

LONGEST_CONTENT = 2_000
"""The most characters of the judged content."""

MOST = 40
"""The most lines about rules, suggestions and seats, each; criteria, which take two lines, may have twice as many."""


_DOCTOR_REMEDIES = {
    "error": "is the judge reachable? adjudge doctor says so",
    "unparseable": "adjudge doctor says whether this judge's replies can be read",
    "missing_criterion": "adjudge doctor says whether this judge's replies can be read",
}
"""The remedy of each reason that the doctor helps with, where a model gave it."""

_REMEDIES = {
    "timeout": "give the judge longer: timeout in adjudge.toml",
    "truncated": "raise max_output_tokens in adjudge.toml",
    "split": "an odd number of judges cannot split evenly",
}


def explain(result: JudgeResult, command: str = "", *, code_judges: Collection[str] = ()) -> str:
    """Write the outcome, every criterion with its score and reasoning, and the command that runs the test again.

    ``code_judges`` names the judges in code, which the doctor cannot help.
    """
    lines = [f"{describe_outcome(result)} (judge {_shorten_text(result.judge, 120)})"]
    lines += _limit_lines(
        [line for criterion in result.criteria for line in _list_criterion_lines(criterion)], 2 * MOST
    )
    lines += _limit_lines([f"  {rule.severity}: {_shorten_text(rule.name, 80)}: {_shorten_text(rule.message)}"
                     for rule in result.rule_results if not rule.passed and rule.message])  # fmt: skip
    lines += [f"  {_shorten_text(text)}" for text in (result.detail, result.reasoning) if text]
    lines += _limit_lines([f"  suggestion: {_shorten_text(suggestion)}" for suggestion in result.suggestions])
    seats = getattr(result, "results", ())
    seat_texts = [
        (_shorten_text(seat.judge, 80), describe_outcome(seat), _shorten_text(seat.detail or seat.reasoning))
        for seat in seats
    ]
    lines += _limit_lines([f"  seat {name}: {outcome}: {reason}" for name, outcome, reason in seat_texts])
    lines += [f"  warning: {_shorten_text(note)}" for note in describe_models(result)]
    remedy = _find_remedy(result, code_judges)
    lines += [f"  undecided is not a pass; {remedy}"] if remedy else []
    return "\n".join([*lines, *([f"  again: {command}"] if command else [])])


def _find_remedy(result: JudgeResult, code_judges: Collection[str]) -> str | None:
    """Return a sentence on what to do about an undecided result; ``None`` if there is none to give."""
    because = result.undecided_because or ""
    if because == "error" and " raised " in result.detail:
        return "the judge is a function, and raised this itself"  # no server has to be reached
    if because in _DOCTOR_REMEDIES:
        return (
            _DOCTOR_REMEDIES[because] if may_doctor_help(result, code_judges) else None
        )  # else its detail says what to do
    return _REMEDIES.get(because)


def show_content(content: object) -> str:
    """Write what was judged, indented: the first lines of a long text, as a person at a terminal may see them."""
    text = clean(content_text(content)[: 4 * LONGEST_CONTENT])
    excerpt = text if len(text) <= LONGEST_CONTENT else f"{text[:LONGEST_CONTENT]}…"
    lines = excerpt.splitlines() or [""]
    return "\n".join(["  judged:", *_limit_lines([f"    {line}" for line in lines])])


def _list_criterion_lines(criterion: CriterionResult) -> Iterator[str]:
    """Yield a criterion's line with mark, score and bar, and a second one with its reasoning if it has any."""
    score, needed = format_distinct(criterion.score, criterion.threshold)
    score = "   -" if criterion.score is None else score
    needs = f" needs {needed}" if criterion.threshold is not None else ""
    sign = SIGNS.get(find_pass_mark(criterion) or "", " ")
    yield f"  {sign} {score} {draw_bar(criterion.score)} {_shorten_text(criterion.name, 80)}{needs}"
    if criterion.reasoning:
        yield f"      {_shorten_text(criterion.reasoning)}"


def draw_bar(score: float | None) -> str:
    """Draw a score in 0 to 1 as a bar; an empty one where there is none."""
    filled = 0 if score is None else min(WIDTH, max(0, int(score * WIDTH + 1e-9)))
    return "█" * filled + "░" * (WIDTH - filled)


def _shorten_text(text: str, most: int = LONGEST) -> str:
    """Write a text on one line of at most ``most`` characters, without control characters."""
    # Cut before cleaning, which reads every character, since a reply may have a million.
    flat = " ".join(clean(text[: 4 * most], keep_lines=False).split())
    return flat if len(flat) <= most and len(text) <= 4 * most else f"{flat[:most]}…"


def _limit_lines(lines: list[str], most: int = MOST) -> list[str]:
    return lines if len(lines) <= most else [*lines[:most], f"  … and {len(lines) - most} more lines"]


MOST_CRITERIA = 50
"""The most criteria of one judgement in a test report."""

SLOWEST = 3


def describe(result: JudgeResult) -> dict[str, Any]:
    """Describe a judgement as plain data that travels between processes; scores in 0 to 1, no content or reasoning."""
    usage = result.usage
    return {
        "outcome": str(result.outcome),
        "because": result.undecided_because,
        "score": result.score,
        "judge": _clean_name(result.judge),
        "ms": float(result.duration_ms),
        "usage": usage.to_dict() if usage is not None else None,
        # A judge that is a function reports no usage, and must not count as one whose usage is unknown.
        "asked": result.attempts > 0 and (usage is not None or result.undecided_because is not None),
        "criteria": [(_clean_name(criterion.name), criterion.score) for criterion in result.criteria[:MOST_CRITERIA]],
    }


def list_properties(result: JudgeResult, number: int) -> Iterator[tuple[str, str]]:
    """List the properties of a test report; ``number`` counts the test's judgements, and from 2 on is in each name."""
    members = describe(result)
    suffix = "" if number == 1 else f"#{number}"
    for name in ("outcome", "because", "score", "judge"):
        if members[name] is not None:
            yield f"adjudge.{name}{suffix}", _format_value(members[name])
    for name, score in members["criteria"]:
        yield f"adjudge.criterion.{name}{suffix}", _format_value(score)


def summarise(entries: Sequence[Mapping[str, Any]], notes: Iterable[str] = ()) -> list[str]:
    """Write the lines of the summary; ``entries`` are what ``describe`` made, each with its ``test``."""
    outcomes = Counter(str(entry["outcome"]) for entry in entries)
    reasons = Counter(str(entry["because"]) for entry in entries if entry["because"])
    counts = ", ".join(f"{outcomes[name]} {name}" for name in ("passed", "failed", "undecided"))
    reasons_text = f" ({', '.join(f'{number} {name}' for name, number in reasons.most_common())})" if reasons else ""
    slowest = sorted(entries, key=lambda entry: -entry["ms"])[:SLOWEST]
    return [
        f"{len(entries)} judged: {counts}{reasons_text}",
        *([_format_usage(entries)] if any(entry["asked"] for entry in entries) else []),
        *[f"{entry['ms'] / 1000:.2f} s {clean(entry['test'], keep_lines=False)}" for entry in slowest],
        *[clean(note, keep_lines=False)[:500] for note in notes],
    ]


def _format_usage(entries: Sequence[Mapping[str, Any]]) -> str:
    """Format the tokens and the cost of all judgements, and of how many they are unknown."""
    usages = [entry["usage"] for entry in entries if entry["asked"]]
    known_usages = [usage for usage in usages if usage is not None]
    priced = [usage["cost_usd"] for usage in known_usages if usage["cost_usd"] is not None]
    if not known_usages:
        return "tokens and cost unknown"
    input_tokens = sum(usage["input_tokens"] for usage in known_usages)
    output_tokens = sum(usage["output_tokens"] for usage in known_usages)
    tokens = f"{input_tokens:,} tokens in, {output_tokens:,} out"
    tokens += f" (unknown for {len(usages) - len(known_usages)})" if len(known_usages) < len(usages) else ""
    # The number without a known cost is added, because the sum would otherwise look like the cost of all.
    unpriced = len(usages) - len(priced)
    cost = format_dollars(sum(priced), digits=4) if priced else "unknown"
    cost += f" and unknown for {unpriced}" if priced and unpriced else ""
    return f"{tokens}, cost {cost}"


def _clean_name(text: str) -> str:
    return clean(text[:120], keep_lines=False)


def _format_value(value: object) -> str:
    return "none" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
