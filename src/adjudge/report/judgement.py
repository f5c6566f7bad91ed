"""The parts of a judgement that are shown, of a result and of what a report keeps of one alike."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from adjudge.formats.numbers import format_score
from adjudge.report.cases import ShownResult, ShownSeat
from adjudge.result import CriterionResult, JudgeChainResult, JudgeResult, PartResult, RuleResult
from adjudge.templates.call_values import Finding, PlacedFinding

RULE_STATES = ("failed", "warning", "info", "passed")
"""The outcomes of a rule, the worst first."""


def list_seats(result: JudgeResult | ShownResult) -> Sequence[JudgeResult | ShownSeat]:
    """List the results of a chain's seats; none for a judge alone."""
    if isinstance(result, ShownResult):
        return result.seats
    return result.results if isinstance(result, JudgeChainResult) else ()


def list_rules(result: JudgeResult | ShownResult) -> list[tuple[str, str, str]]:
    """List the rules, those that found something first: the state of each, its name and its message."""
    if isinstance(result, ShownResult):
        rows = [(_find_state(severity), name, message) for name, severity, message in result.rules]
    else:
        rows = [(_find_rule_state(rule), rule.name, rule.message) for rule in result.rule_results]
    return sorted(rows, key=lambda row: RULE_STATES.index(row[0]))


def _find_rule_state(rule: RuleResult) -> str:
    return "passed" if rule.passed else _find_state(rule.severity)


def _find_state(severity: str) -> str:
    return "failed" if severity == "error" else severity


def list_replies(result: JudgeResult | ShownResult) -> list[tuple[str, str, str]]:
    """List the replies that are kept, word for word: the judge of each, its model and the text."""
    if isinstance(result, ShownResult):
        return [(result.judge, "", result.raw_response)] if result.raw_response else []
    seats = result.results if isinstance(result, JudgeChainResult) else (result,)
    return [(seat.judge, seat.model or "", seat.raw_response) for seat in seats if seat.raw_response]


def list_findings(result: JudgeResult) -> list[PlacedFinding]:
    """List what failed rules found in one argument of a call each, by the places that they name.

    Then what the judge said of each call and turn of a run that it judged by itself.
    """
    by_rules = [
        PlacedFinding(
            place=place, finding=Finding(state=_find_state(rule.severity), word=f"rule {rule.name}", text=text)
        )
        for rule in result.rule_results
        if not rule.passed
        for place, text in _list_places(rule)
    ]
    return [
        *by_rules,
        *(placed for judge, part in _list_parts(result) if (placed := _place_part(part, judge)) is not None),
    ]


def _list_parts(result: JudgeResult) -> Iterator[tuple[str, PartResult]]:
    """Yield the results on parts of a run; of a chain that has none of its own, those of its seats, by judge."""
    if isinstance(result, JudgeChainResult) and not result.parts:
        yield from ((seat.judge, part) for seat in result.results for _, part in _list_parts(seat))
    else:
        yield from (("", part) for part in result.parts)


_PART = re.compile(r"(call|turn) ([1-9]\d{0,6})", re.ASCII)


def _place_part(part: PartResult, judge: str) -> PlacedFinding | None:
    """Place the score of a part at its step; ``None`` for a part that has another name than adjudge gives it."""
    named = _PART.fullmatch(part.part)
    if named is None:
        return None
    state = "undecided" if part.score is None else "passed" if part.passed else "failed"
    words = [f"{judge}:"] if judge else []
    words += [format_score(part.score)] if part.score is not None else []
    finding = Finding(state=state, word=" ".join((*words, part.criterion)), text=part.reasoning)
    return PlacedFinding(place=f"{named[1]}s[{int(named[2]) - 1}]", finding=finding)


def _list_places(rule: RuleResult) -> list[tuple[str, str]]:
    """List the places that a rule names, each with what it found there."""
    place, call = rule.metadata.get("place"), rule.metadata.get("call")
    if isinstance(call, int):  # of a run with several calls
        return [(f"calls[{call - 1}]", rule.message)]
    if isinstance(place, str):
        return [(place, rule.message)]
    places = rule.metadata.get("found")
    kinds: dict[str, Counter[str]] = {}
    for item in places if isinstance(places, list | tuple) else ():
        if isinstance(item, Mapping) and isinstance(item.get("place"), str):
            kinds.setdefault(item["place"], Counter())[str(item.get("kind"))] += 1
    return [
        (at, ", ".join(f"{kind}{f' ({number:,} times)' if number > 1 else ''}" for kind, number in counts.items()))
        for at, counts in kinds.items()
    ]


def list_quotations(result: JudgeResult) -> tuple[str, ...]:
    """List every text that a judge and its seats gave as evidence, each once, in their order."""
    return tuple(
        dict.fromkeys(text for criterion in _list_criteria(result) for text in criterion.evidence if text.strip())
    )


def _list_criteria(result: JudgeResult) -> list[CriterionResult]:
    """List the criteria of a result, then those of its seats."""
    seats = result.results if isinstance(result, JudgeChainResult) else ()
    return [*result.criteria, *[criterion for seat in seats for criterion in _list_criteria(seat)]]
