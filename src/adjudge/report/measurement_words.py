"""A measurement in words and rows, the same in every form of a report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from adjudge.dataset.case import LabelValue
from adjudge.formats.numbers import (
    NOTHING,
    format_apart,
    format_decimal,
    format_points,
    format_range,
    format_rate,
    format_score,
)
from adjudge.labels.truth import LabelledVerdict, TruthHeap
from adjudge.measurement.disagreement import Disagreement, DisagreementSort
from adjudge.measurement.measurement import Measurement
from adjudge.measurement.people import describe_uncounted
from adjudge.measurement.rate import Sampling
from adjudge.report.difference_words import describe_preference, list_preference_facts
from adjudge.templates.figures import format_count, format_share
from adjudge.trust.agreement import Agreement
from adjudge.trust.corrected_rate import CorrectedRate, Refusal
from adjudge.trust.intervals import Estimate

_SAMPLING: dict[Sampling, str] = {
    "census": "Every case has a label, so nothing is estimated.",
    "plan": "The labelled cases were drawn from this run, and the draw is recorded.",
    "random": "You said that the labelled cases are a random sample of this run.",
    "unknown": "Nobody recorded how the labelled cases were chosen.",
}

TO_DO: dict[DisagreementSort, str] = {
    "judge wrong": "people disagree with the judge: fix the judge or the rubric's wording",
    "people disagree": "people said different things: settle it among them first",
    "rubric silent": "somebody could not tell, or the criteria leave out what people minded: say it in the rubric",
}
"""The meaning of each sort, and what to do about it."""

HEAPS: dict[TruthHeap, str] = {
    "good": "good",
    "bad": "bad",
    "first": "the first is better",
    "second": "the second is better",
    "tie": "a tie",
    "number": "a number",
    "cannot_tell": "cannot tell",
    "unresolved": "people split",
}
"""The heaps of truths as they are shown, in their order."""

VERDICTS: dict[LabelledVerdict, str] = {
    "passed": "passed",
    "failed": "failed",
    "first": "first",
    "second": "second",
    "tie": "tie",
    "undecided": "undecided",
}


_LOPSIDED = 0.9
"""The share of one heap from which kappa says little."""


def describe_labels(measurement: Measurement) -> str:
    """Describe labels that are not counted, or are no random sample; empty where there are none. Shown first."""
    return " ".join(_list_doubts(measurement))


def list_doubts(measurements: Iterable[Measurement]) -> list[str]:
    """List the doubts about the labels of several measurements, each once."""
    return list(dict.fromkeys(filter(None, map(describe_labels, measurements))))


def list_warnings(measurements: Iterable[Measurement]) -> list[str]:
    """List all that a reader must know before the figures of several measurements, each once: the doubts come first."""
    listed = list(measurements)
    return list(dict.fromkeys([*list_doubts(listed), *(text for each in listed for text in each.warnings)]))


def _list_doubts(measurement: Measurement) -> Iterator[str]:
    """Yield sentences on labels that are not counted, or cannot be relied on as a sample."""
    if measurement.other_contents:
        yield f"{describe_uncounted(measurement.other_contents)}."
    if measurement.other_draws:
        cases = format_count(measurement.other_draws, "labelled case")
        which = "was" if measurement.other_draws == 1 else "were"
        here = "" if measurement.contents is None else f" of these {format_count(measurement.contents.cases, 'case')}"
        if measurement.draw_problem:
            cause = "drawn from other contents, or by a plan that does not fit them"
        else:
            cause = "drawn from other contents"
        they = "it is" if measurement.other_draws == 1 else "they are"
        yield f"{cases} {which} {cause}, so {they} no random sample{here}."
    if measurement.draw_problem:
        yield f"The plan in the run's folder is not relied on: {measurement.draw_problem}."
    if measurement.run is not None and measurement.unbound:
        yield _describe_unbound(measurement)


def _describe_unbound(measurement: Measurement) -> str:
    """Describe how many labelled cases have labels of no content, and what rests on that."""
    cases = format_count(measurement.labelled, "labelled case")
    if measurement.sampling in {"random", "census"}:
        verb = "is" if measurement.unbound == 1 else "are"
        claim = "these are a random sample is only what you said"
        if measurement.sampling == "census":
            claim = "it was this content is only what the ids say"
        return (
            f"{measurement.unbound:,} of {cases} {verb} bound to no content: no label says which content was read, "
            f"and that {claim}."
        )
    if measurement.unbound == measurement.labelled:
        return "No label says which content was read, so no rate relies on how these labels were drawn."
    cases = format_count(measurement.unbound, "labelled case")
    return f"{cases} {'has' if measurement.unbound == 1 else 'have'} labels that do not say which content was read."


def describe_figures(measurement: Measurement) -> str:
    """Describe what people would pass, and what the judge got right, in a few sentences."""
    preference = "" if measurement.preference is None else describe_preference(measurement.preference)
    errors, elsewhere = _describe_errors(measurement), _describe_elsewhere(measurement)
    return " ".join(filter(None, (preference, describe_rate(measurement), errors, elsewhere)))


def describe_rate(measurement: Measurement) -> str:
    """Describe what people would pass beside what the judge does, in a sentence; empty where no label says so."""
    rate = measurement.rate
    if rate is None or (isinstance(rate, Refusal) and rate.because == "no_labels"):
        return ""
    prefers = measurement.kind == "preference"
    does, verb = ("prefers the first in", "prefer the first in") if prefers else ("passes", "pass")
    judge = format_whole(rate.naive.rate if rate.naive is not None else None)
    if isinstance(rate, Refusal):
        return f"How many people would {verb} cannot be said: {rate.reason}. The judge {does} {judge}."
    number = "this" if measurement.cases == 1 else "these"
    whole = (
        f"{number} {format_count(measurement.cases, 'pair' if prefers else 'case')}"
        if rate.target == "run"
        else "what this system produces"
    )
    if measurement.is_counted:
        return f"People {verb} {format_whole(rate.value)} of {whole}; the judge {does} {judge}."
    between = f"{format_between(rate.low, rate.high)}, for one look"
    return f"People would {verb} {format_whole(rate.value)} of {whole} ({between}); the judge {does} {judge}."


def _describe_errors(measurement: Measurement, where: str = "") -> str:
    """Describe how often the judge is right, on the run ``where`` or on this one."""
    if measurement.kind == "number":
        return _describe_correlation(measurement, where)
    if measurement.agreement is None:
        measured = (
            measurement.labelled or measurement.measured_on is not None or isinstance(measurement.rate, CorrectedRate)
        )
        return "" if measured else "No judged case has a label, so the judge is not measured."
    if measurement.kind == "preference":
        agreed, of = measurement.agreement.confusion.agreed, measurement.agreement.confusion.items
        return _start_sentence(
            f"it preferred what people prefer in {agreed:,} of {format_count(of, 'labelled pair')}.", where
        )
    if measurement.is_weighted:
        return _describe_weighted(measurement.agreement, where)
    caught, bad = measurement.count("failed", "bad"), _count_heap(measurement, "bad")
    kept, good = measurement.count("passed", "good"), _count_heap(measurement, "good")
    clauses = [f"caught {caught:,} of {format_count(bad, 'bad answer')}"] if bad else []
    clauses += [f"kept {kept:,} of {format_count(good, 'good one')}"] if good else []
    missing = "" if bad and good else f" No labelled answer is {'good' if bad else 'bad'}."
    return _start_sentence(f"it {' and '.join(clauses)}.{missing}", where)


def _start_sentence(sentence: str, where: str) -> str:
    return f"On run {where} {sentence}" if where else f"{sentence[:1].upper()}{sentence[1:]}"


def _describe_elsewhere(measurement: Measurement) -> str:
    """Describe what was counted on another run, and that it says nothing certain of this one."""
    if measurement.measured_on is None:
        return ""
    other = measurement.measured_on
    counted = _describe_errors(other.measurement, other.name) or f"On run {other.name} no label is settled."
    if not isinstance(measurement.rate, Refusal):
        return counted
    return f"{counted.removesuffix('.')}; how often it errs on this run is not known: {measurement.rate.remedy}."


def _describe_weighted(agreement: Agreement, where: str) -> str:
    """Describe rates in place of counts: labels that stand for different numbers of cases cannot be added up."""
    caught, kept = agreement.specificity.value, agreement.sensitivity.value
    clauses = [f"catches about {format_points(caught, digits=0)} of 100 bad answers"] if caught is not None else []
    clauses += [f"keeps about {format_points(kept, digits=0)} of 100 good ones"] if kept is not None else []
    return _start_sentence(f"it {' and '.join(clauses)}.", where) if clauses else ""


def _describe_correlation(measurement: Measurement, where: str) -> str:
    """Describe how the judge's scores go with people's; empty where no correlation was computed."""
    if measurement.correlation is None:
        return ""
    value = measurement.correlation.per_item.spearman
    estimate = format_estimate(value, share=False)
    sentence = (
        f"the judge's scores and people's have a Spearman correlation of {estimate} over "
        f"{format_count(value.of, 'labelled case')}."
    )
    return _start_sentence(sentence, where)


def _count_heap(measurement: Measurement, heap: TruthHeap) -> int:
    return sum(row.get(heap, 0) for row in measurement.table.values())


def format_whole(rate: float | None) -> str:
    """Format a share in whole per cent; never 100 % of what is not all, nor 0 % of what is something."""
    if rate is None:
        return NOTHING
    if 0 < rate < 0.01 or 0.99 < rate < 1:
        return format_rate(rate)
    return f"{format_points(rate, digits=0)} %"


def format_between(low: float, high: float) -> str:
    """Format an interval in per cent, rounded outward: rounded inward, it would promise more than was computed."""
    digits = 0 if high - low >= 0.03 else 1
    scale = 10**digits
    # Rounding errors of one limit must not move it by a whole step.
    least, most = math.floor(100 * scale * low + 1e-9) / scale, math.ceil(100 * scale * high - 1e-9) / scale
    return f"between {least:.{digits}f} and {most:.{digits}f}"


def format_estimate(estimate: Estimate | None, *, share: bool) -> str:
    """Format an estimate with its interval; shares in per cent."""
    limits = "" if estimate is None or estimate.value is None else format_limits(estimate, share=share, brackets=True)
    return f"{format_value(estimate, share=share)}{limits}"


def format_value(estimate: Estimate | None, *, share: bool) -> str:
    """Format an estimate without its interval."""
    if estimate is None or estimate.value is None:
        return NOTHING
    return format_rate(estimate.value) if share else format_score(estimate.value)


def format_limits(estimate: Estimate | None, *, share: bool, brackets: bool = False) -> str:
    """Format the limits of an estimate; nothing where it has none."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return ""
    low, high = estimate.low, estimate.high
    limits = format_range(low, high) if share else " to ".join(format_apart(low, high))
    return f" ({limits})" if brackets else limits


def list_shares(measurement: Measurement) -> Iterator[tuple[str, Estimate]]:
    """Yield the shares of a measurement by name, the first ones those that people ask for."""
    agreement = measurement.agreement
    if agreement is None:
        return
    if measurement.kind == "verdict":
        yield "good ones kept (sensitivity)", agreement.sensitivity
        yield "bad ones caught (specificity)", agreement.specificity
        yield "good among its passes (precision)", agreement.precision
    yield "right (accuracy)", agreement.accuracy


def list_coefficients(measurement: Measurement) -> Iterator[tuple[str, Estimate]]:
    """Yield the coefficient of a measurement by name; ``to_dict`` has the others."""
    agreement = measurement.agreement
    if agreement is not None:
        # One coefficient is enough. Kappa is low where nearly all cases are alike, however often the judge is right.
        if _find_prevalence(measurement) > _LOPSIDED:
            yield "Gwet's AC1", agreement.gwet_ac1
        else:
            yield "Cohen's kappa", agreement.cohen_kappa
    if measurement.correlation is not None:
        mean = measurement.correlation.over_groups
        if mean is not None:
            yield "Spearman, mean of groups", mean.spearman
        else:
            yield "Spearman", measurement.correlation.per_item.spearman


def _find_prevalence(measurement: Measurement) -> float:
    """Find the share of the settled labelled cases that are in the largest heap."""
    heaps = [_count_heap(measurement, heap) for heap in HEAPS if heap not in ("cannot_tell", "unresolved")]
    return max(heaps) / (sum(heaps) or 1)


def list_people(measurement: Measurement) -> Iterator[tuple[str, Estimate]]:
    """Yield how well people agree with each other: the most that agreement with them can mean."""
    if measurement.ceiling is not None:
        yield "people with each other", measurement.ceiling.agreement


def list_baselines(measurement: Measurement) -> Iterator[tuple[str, str]]:
    """Yield the judges that look at nothing, each once."""
    if measurement.agreement is None:
        return
    seen = set()
    for baseline in measurement.agreement.baselines:
        if baseline.category not in seen:
            seen.add(baseline.category)
            yield (
                f"a judge that says {name_category(baseline.category)} to everything",
                format_rate(baseline.accuracy.rate),
            )


def name_category(category: LabelValue) -> str:
    """Name a category as people do."""
    if category is None:
        return "undecided"
    return {True: "good", False: "bad"}.get(category, str(category)) if isinstance(category, bool) else str(category)


def list_confusion(measurement: Measurement) -> tuple[list[str], list[list[str]]]:
    """List the confusion table as texts: a column for each verdict, a row for each heap of truths."""
    expected: tuple[LabelledVerdict, ...] = ("passed", "failed") if measurement.kind == "verdict" else ()
    verdicts = [name for name in VERDICTS if measurement.verdicts.get(name) or name in expected]
    rows = []
    for heap, name_of_heap in HEAPS.items():
        if number := _count_heap(measurement, heap):
            counts = [f"{measurement.count(name, heap):,}" for name in verdicts]
            rows.append([f"people: {name_of_heap}", *counts, f"{number:,}"])
    if measurement.cases > measurement.labelled:
        unlabelled = [
            measurement.verdicts.get(name, 0) - sum(measurement.table.get(name, {}).values()) for name in verdicts
        ]
        rows.append(["not labelled", *(f"{number:,}" for number in (*unlabelled, sum(unlabelled)))])
    return ["", *(f"judge: {VERDICTS[name]}" for name in verdicts), "cases"], rows


def list_rate_facts(measurement: Measurement) -> Iterator[tuple[str, str]]:
    """Yield the corrected rate with what it rests on, or why there is none."""
    rate = measurement.rate
    if measurement.preference is not None:
        yield from list_preference_facts(measurement.preference)
    if isinstance(rate, Refusal):
        yield "corrected rate", f"refused: {rate.reason}"
        yield "what would help", rate.remedy
    elif rate is not None:
        of = "of this run" if rate.target == "run" else "of the system"
        # Limits as the method gives them; the sentence above rounds outward.
        limits = "" if measurement.is_counted else f" ({format_range(rate.low, rate.high)})"
        yield f"corrected rate, {of}", f"{format_rate(rate.value)}{limits}"
        if measurement.is_counted:
            yield "beyond these cases", "--target system gives an interval for all that the system produces"
        limit = measurement.limit
        if limit is not None and limit.kind == "every look":
            # Whoever reads the narrower interval alone takes a gate as passed that is not.
            yield "for every look, as --fail-under-corrected asks", format_range(limit.low, limit.high)
        if rate.bounds is not None:
            yield "if every unresolved case is bad, or good", " to ".join(format_rate(end) for end in rate.bounds)
        yield "computed by", _describe_method(rate, counted=measurement.is_counted)
        if rate.worth is not None and rate.worth > rate.labels:
            yield (
                "worth",
                f"people alone would need about {rate.worth:,} labelled cases for this width, not {rate.labels:,}",
            )
    if rate is not None and rate.naive is not None:
        yield "the judge's own rate, which counts its errors as right", format_share(rate.naive)


def _describe_method(rate: CorrectedRate, *, counted: bool) -> str:
    if counted:
        return f"counting: {rate.labels:,} of {format_count(rate.cases, 'case')} labelled"
    method = f"{rate.method}, {format_count(rate.labels, 'labelled case')}"
    method += f" in {format_count(rate.groups, 'group')}" if rate.groups is not None else ""
    return method + (f", design effect {format_decimal(rate.deff, 1)}" if rate.deff is not None else "")


def list_assumptions(measurement: Measurement) -> Iterator[str]:
    """Yield how the labels were chosen, and what the corrected rate assumes."""
    if measurement.people and measurement.labelled:
        people = "1 person" if len(measurement.people) == 1 else f"{len(measurement.people):,} people"
        settled = f"; {measurement.settled:,} of them are settled" if measurement.table else ""
        yield f"{people} labelled {format_count(measurement.labelled, 'case')}{settled}."
    rate = measurement.rate
    # The first assumption of a rate names the user's claim already.
    is_said = measurement.sampling == "random" and isinstance(rate, CorrectedRate)
    if measurement.kind != "number" and measurement.labelled and not is_said:
        yield _SAMPLING[measurement.sampling]
    if isinstance(rate, CorrectedRate) and measurement.sampling != "census":
        yield from rate.assumptions
    for note in rate.notes if rate is not None else ():
        yield f"{note[:1].upper()}{note[1:]}{'' if note.endswith('.') else '.'}"


def list_remarks(measurement: Measurement) -> Iterator[str]:
    """Yield what else a reader should know: cases that are in no figure, the worst kind of case, and repeats."""
    if measurement.elsewhere:
        yield f"{format_count(measurement.elsewhere, 'labelled case')} were not judged here and are in no figure."
    if measurement.overrides:
        yield (
            f"{format_count(measurement.overrides, 'case')} have only labels of people who overruled a gate; they are "
            "in no figure, because a gate does not ask about cases at random."
        )
    worst = measurement.slices.worst if measurement.slices is not None else None
    if worst is not None and measurement.slices is not None:
        rate = f"{format_rate(worst.accuracy.value)} of {format_count(worst.accuracy.of, 'case')}"
        remark = "worse than elsewhere" if worst.is_worse else "no more than chance can explain"
        yield f"Worst kind: {worst.name}, right in {rate} ({remark}, {format_count(measurement.slices.tests, 'test')})."
    if measurement.flipped is not None:
        yield f"Judged again, the verdict differs in {format_share(measurement.flipped)} of the cases."
    if measurement.error_parts is not None and measurement.error_parts.noise_share.value is not None:
        noise = format_whole(measurement.error_parts.noise_share.value)
        yield f"Noise between judgements of one case is {noise} of the judge's error."
    if measurement.order_flips is not None:
        flips = measurement.order_flips
        yield f"The two orders of a pair disagree in {format_share(flips.flips)}."
    if measurement.alternative is not None:
        yield _describe_alternative(measurement)
    yield from measurement.notes


def _describe_alternative(measurement: Measurement) -> str:
    """Describe the result of the alternative annotator test; empty where it was not made."""
    test = measurement.alternative
    if test is None:
        return ""
    verb = "passes" if test.passed else "does not pass"
    wins = sum(annotator.rejected for annotator in test.annotators)
    notes = "".join(f" {note[:1].upper()}{note[1:]}." for note in test.notes)
    return (
        f"The judge {verb} the alternative annotator test (epsilon {test.epsilon:g}): it wins over {wins} of "
        f"{format_count(len(test.annotators), 'person', 'people')}, advantage probability "
        f"{format_score(test.advantage_probability)}.{notes}"
    )


def list_gaps(measurement: Measurement) -> Iterator[tuple[str, str]]:
    """Yield the figures that could not be computed, each with the reason."""
    names = {"ceiling": "people with each other", "slices": "by kind of case", "error_parts": "noise"}
    yield from ((names.get(name, name), reason) for name, reason in measurement.left_out.items())


def describe_sorts(measurement: Measurement) -> str:
    """Describe how many disagreements there are, and of which sort."""
    counts = [f"{number:,} {sort}" for sort, number in measurement.sorts.items() if number]
    return (
        f"{format_count(measurement.differing, 'disagreement')}: {', '.join(counts)}" if counts else "no disagreement"
    )


def format_side(value: LabelValue) -> str:
    """Format the label that people give a case."""
    if value is None:
        return HEAPS["unresolved"]
    if isinstance(value, bool):
        return "good" if value else "bad"
    return f"{value:g}" if isinstance(value, float) else str(value).replace("_", " ")


def format_labels(disagreement: Disagreement) -> str:
    """Format each person's label, by name."""
    return ", ".join(f"{rater}: {format_side(value)}" for rater, value in disagreement.labels)


def choose_disagreements(disagreements: Sequence[Disagreement], most: int) -> Sequence[Disagreement]:
    """Choose the first of each sort in turn, so that one sort of many does not hide the others."""
    apart: dict[DisagreementSort, list[Disagreement]] = {}
    for disagreement in disagreements:
        apart.setdefault(disagreement.sort, []).append(disagreement)
    chosen: list[Disagreement] = []
    while len(chosen) < most and any(apart.values()):
        for queue in apart.values():
            if queue and len(chosen) < most:
                chosen.append(queue.pop(0))
    order = {id(disagreement): place for place, disagreement in enumerate(disagreements)}
    return sorted(chosen, key=lambda disagreement: order[id(disagreement)])
