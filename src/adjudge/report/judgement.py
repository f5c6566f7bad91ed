"""The parts of a judgement that a page shows: seats, rules, replies, findings and quotations.

A judgement is a ``JudgeResult``, or a ``ShownResult``, which is the shorter form that a report keeps.
"""

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
    """List the results of a chain's seats; none for a single judge."""
    if isinstance(result, ShownResult):
        return result.seats
    return result.results if isinstance(result, JudgeChainResult) else ()


def list_rules(result: JudgeResult | ShownResult) -> list[tuple[str, str, str]]:
    """List the state (one of ``RULE_STATES``), the name and the message of each rule, the worst state first."""
    if isinstance(result, ShownResult):
        rows = [(_find_failed_state(severity), name, message) for name, severity, message in result.rules]
    else:
        rows = [(_find_rule_state(rule), rule.name, rule.message) for rule in result.rule_results]
    return sorted(rows, key=lambda row: RULE_STATES.index(row[0]))


def _find_rule_state(rule: RuleResult) -> str:
    """Find the state of a rule, one of ``RULE_STATES``."""
    return "passed" if rule.passed else _find_failed_state(rule.severity)


def _find_failed_state(severity: str) -> str:
    """Find the state of a rule that did not pass, by its severity."""
    return "failed" if severity == "error" else severity


def list_replies(result: JudgeResult | ShownResult) -> list[tuple[str, str, str]]:
    """List the replies of models that are kept, word for word: the judge, the model and the text of each."""
    if isinstance(result, ShownResult):
        return [(result.judge, "", result.raw_response)] if result.raw_response else []
    seats = result.results if isinstance(result, JudgeChainResult) else (result,)
    return [(seat.judge, seat.model or "", seat.raw_response) for seat in seats if seat.raw_response]


def list_findings(result: JudgeResult) -> list[PlacedFinding]:
    """List the findings of a judgement, each with the part of the judged call or run that it is about.

    First come the findings of failed rules, which are about an argument or a call. Then come the scores of the judge on
    single calls and turns of a run.
    """
    findings = [
        PlacedFinding(
            place=place, finding=Finding(state=_find_failed_state(rule.severity), word=f"rule {rule.name}", text=text)
        )
        for rule in result.rule_results
        if not rule.passed
        for place, text in _list_places(rule)
    ]
    for judge, part in _list_part_results(result):
        finding = _make_part_finding(part, judge)
        if finding is not None:
            findings.append(finding)
    return findings


def _list_part_results(result: JudgeResult) -> Iterator[tuple[str, PartResult]]:
    """Yield the results on parts of a run, each with an empty name of the judge.

    For a chain without such results of its own, those of its seats are yielded with the names of the seats' judges.
    """
    if isinstance(result, JudgeChainResult) and not result.parts:
        yield from ((seat.judge, part) for seat in result.results for _, part in _list_part_results(seat))
    else:
        yield from (("", part) for part in result.parts)


_PART_NAME = re.compile(r"(?P<kind>call|turn) (?P<number>[1-9]\d{0,6})", re.ASCII)


def _make_part_finding(part: PartResult, judge: str) -> PlacedFinding | None:
    """Make the finding of a score on a part of a run, such as ``call 2``, whose place is ``calls[1]``.

    Returns ``None`` for a part whose name is no call and no turn.
    """
    name = _PART_NAME.fullmatch(part.part)
    if name is None:
        return None
    state = "undecided" if part.score is None else "passed" if part.passed else "failed"
    words = [f"{judge}:"] if judge else []
    words += [format_score(part.score)] if part.score is not None else []
    finding = Finding(state=state, word=" ".join((*words, part.criterion)), text=part.reasoning)
    index = int(name["number"]) - 1
    return PlacedFinding(place=f"{name['kind']}s[{index}]", finding=finding)


def _list_places(rule: RuleResult) -> list[tuple[str, str]]:
    """List the places that the metadata of a failed rule name, each with what the rule found there.

    A place is an argument or a call. A rule names the number of a call (of a run with several), one place, or a list of
    what it found with a place each; what it found at one place is then counted by kind.
    """
    place, call_number = rule.metadata.get("place"), rule.metadata.get("call")
    if isinstance(call_number, int):
        return [(f"calls[{call_number - 1}]", rule.message)]
    if isinstance(place, str):
        return [(place, rule.message)]
    items = rule.metadata.get("found")
    kinds_by_place: dict[str, Counter[str]] = {}
    for item in items if isinstance(items, list | tuple) else ():
        if isinstance(item, Mapping) and isinstance(item.get("place"), str):
            kinds_by_place.setdefault(item["place"], Counter())[str(item.get("kind"))] += 1
    return [
        (
            place_name,
            ", ".join(f"{kind} ({number:,} times)" if number > 1 else kind for kind, number in counts.items()),
        )
        for place_name, counts in kinds_by_place.items()
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
