"""A measurement in words and rows, the same in every form of a report."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

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
from adjudge.measurement.rate import Sampling
from adjudge.templates.figures import format_count, format_share
from adjudge.trust.agreement import Agreement
from adjudge.trust.corrected_rate import CorrectedRate, Refusal
from adjudge.trust.estimate import Estimate

_SAMPLING: dict[Sampling, str] = {
    "census": "Every case has a label, so nothing is estimated.",
    "plan": "The labelled cases were drawn from this run, and the draw is recorded.",
    "random": "You said that the labelled cases are a random sample of this run.",
    "unknown": "Nobody recorded how the labelled cases were chosen.",
}

TO_DO: dict[DisagreementSort, str] = {
    "judge wrong": "people say otherwise than the judge: mend the judge or the rubric's wording",
    "people disagree": "people said different things: settle it among them first",
    "rubric silent": "somebody could not tell, or the criteria leave out what people minded: say it in the rubric",
}
"""What a sort means, and what to do about it."""

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


def describe_labels(found: Measurement) -> str:
    """Which labels are not counted, or are no random sample, in sentences; empty where there are none. Shown first."""
    return " ".join(_list_doubts(found))


def _list_doubts(found: Measurement) -> Iterator[str]:
    if found.other_contents:
        one = found.other_contents == 1
        yield (
            f"{format_count(found.other_contents, 'label')} {'is' if one else 'are'} not counted: "
            f"{'it is' if one else 'they are'} of another content than the case of {'its' if one else 'their'} id."
        )
    if found.other_draws:
        cases = format_count(found.other_draws, "labelled case")
        which = "was" if found.other_draws == 1 else "were"
        here = "" if found.contents is None else f" of these {format_count(found.contents.cases, 'case')}"
        if found.draw_problem:
            cause = "drawn from other contents, or by a plan that does not fit them"
        else:
            cause = "drawn from other contents"
        yield f"{cases} {which} {cause}, so {'it is' if found.other_draws == 1 else 'they are'} no random sample{here}."
    if found.draw_problem:
        yield f"The plan in the run's folder is not relied on: {found.draw_problem}."
    if found.run is None or found.sampling in ("random", "census"):
        return
    if found.unbound and found.unbound == found.labelled:
        yield "No label says which content was read, so no rate relies on how these labels were drawn."
    elif found.unbound:
        cases = format_count(found.unbound, "labelled case")
        yield f"{cases} {'has' if found.unbound == 1 else 'have'} labels that do not say which content was read."


def describe_measurement(found: Measurement) -> str:
    """The measurement in a few sentences; which labels do not count comes first."""
    return " ".join(filter(None, (describe_labels(found), describe_figures(found))))


def describe_figures(found: Measurement) -> str:
    """What people would pass, and what the judge got right, in a few sentences."""
    return " ".join(filter(None, (describe_rate(found), _describe_errors(found), _describe_elsewhere(found))))


def describe_rate(found: Measurement) -> str:
    """What people would pass beside what the judge does, in a sentence; nothing where no label says so."""
    rate = found.rate
    if rate is None or (isinstance(rate, Refusal) and rate.because == "no_labels"):
        return ""
    prefers = found.kind == "preference"
    does, verb = ("prefers the first in", "prefer the first in") if prefers else ("passes", "pass")
    judge = format_whole(rate.naive.rate if rate.naive is not None else None)
    if isinstance(rate, Refusal):
        return f"How many people would {verb} cannot be said: {rate.reason}. The judge {does} {judge}."
    number = "this" if found.cases == 1 else "these"
    whole = (
        f"{number} {format_count(found.cases, 'pair' if prefers else 'case')}"
        if rate.target == "run"
        else "what this system produces"
    )
    if found.is_counted:
        return f"People {verb} {format_whole(rate.value)} of {whole}; the judge {does} {judge}."
    between = format_between(rate.low, rate.high)
    return f"People would {verb} {format_whole(rate.value)} of {whole} ({between}); the judge {does} {judge}."


def _describe_errors(found: Measurement, where: str = "") -> str:
    """How often the judge is right, on the run ``where`` or on this one."""
    if found.kind == "number":
        return _describe_correlation(found, where)
    if found.agreement is None:
        measured = found.labelled or found.measured_on is not None or isinstance(found.rate, CorrectedRate)
        return "" if measured else "No judged case has a label, so the judge is not measured."
    if found.kind == "preference":
        agreed, of = found.agreement.confusion.agreed, found.agreement.confusion.items
        return _begin(f"it preferred what people prefer in {agreed:,} of {format_count(of, 'labelled pair')}.", where)
    if found.is_weighted:
        return _describe_weighted(found.agreement, where)
    caught, bad = found.count("failed", "bad"), _count_heap(found, "bad")
    kept, good = found.count("passed", "good"), _count_heap(found, "good")
    said = [f"caught {caught:,} of {format_count(bad, 'bad answer')}"] if bad else []
    said += [f"kept {kept:,} of {format_count(good, 'good one')}"] if good else []
    missing = "" if bad and good else f" No labelled answer is {'good' if bad else 'bad'}."
    return _begin(f"it {' and '.join(said)}.{missing}", where)


def _begin(sentence: str, where: str) -> str:
    return f"On run {where} {sentence}" if where else f"{sentence[:1].upper()}{sentence[1:]}"


def _describe_elsewhere(found: Measurement) -> str:
    """What was counted on another run, and that it says nothing certain of this one."""
    if found.measured_on is None:
        return ""
    other = found.measured_on
    counted = _describe_errors(other.measurement, other.name) or f"On run {other.name} no label is settled."
    if not isinstance(found.rate, Refusal):
        return counted
    return f"{counted.removesuffix('.')}; how often it errs on this run is not known: {found.rate.remedy}."


def _describe_weighted(agreement: Agreement, where: str) -> str:
    """Rates in place of counts: labels that stand for different numbers of cases cannot be added up."""
    caught, kept = agreement.specificity.value, agreement.sensitivity.value
    said = [f"catches about {format_points(caught, digits=0)} of 100 bad answers"] if caught is not None else []
    said += [f"keeps about {format_points(kept, digits=0)} of 100 good ones"] if kept is not None else []
    return _begin(f"it {' and '.join(said)}.", where) if said else ""


def describe_difference() -> str:
    """Why the corrected rates of two runs over the same contents are not subtracted from each other."""
    return (
        "No interval is given for the difference: both runs hold the same answers, so people would pass the same share "
        "of both. What differs is how often each judge is wrong."
    )


def _describe_correlation(found: Measurement, where: str) -> str:
    if found.correlation is None:
        return ""
    value = found.correlation.per_item.spearman
    said = format_estimate(value, share=False)
    sentence = (
        f"the judge's scores and people's have a Spearman correlation of {said} over "
        f"{format_count(value.of, 'labelled case')}."
    )
    return _begin(sentence, where)


def _count_heap(found: Measurement, heap: TruthHeap) -> int:
    return sum(row.get(heap, 0) for row in found.table.values())


def format_whole(rate: float | None) -> str:
    """A share in whole per cent; never 100 % of what is not all, nor 0 % of what is something."""
    if rate is None:
        return NOTHING
    if 0 < rate < 0.01 or 0.99 < rate < 1:
        return format_rate(rate)
    return f"{format_points(rate, digits=0)} %"


def format_between(low: float, high: float) -> str:
    """An interval in per cent, rounded outward: a limit that is rounded inward promises more than was computed."""
    digits = 0 if high - low >= 0.03 else 1
    scale = 10**digits
    # Rounding errors of one limit must not move it by a whole step.
    least, most = math.floor(100 * scale * low + 1e-9) / scale, math.ceil(100 * scale * high - 1e-9) / scale
    return f"between {least:.{digits}f} and {most:.{digits}f}"


def format_estimate(estimate: Estimate | None, *, share: bool) -> str:
    """An estimate with its interval; shares in per cent."""
    if estimate is None or estimate.value is None:
        return NOTHING
    value = format_rate(estimate.value) if share else format_score(estimate.value)
    return f"{value}{format_limits(estimate, share=share, brackets=True)}"


def format_limits(estimate: Estimate | None, *, share: bool, brackets: bool = False) -> str:
    """The limits of an estimate; nothing where it has none."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return ""
    low, high = estimate.low, estimate.high
    said = format_range(low, high) if share else " to ".join(format_apart(low, high))
    return f" ({said})" if brackets else said


def list_shares(found: Measurement) -> Iterator[tuple[str, Estimate]]:
    """The shares of a measurement by name, the first ones those that people ask for."""
    agreement = found.agreement
    if agreement is None:
        return
    if found.kind == "verdict":
        yield "good ones kept (sensitivity)", agreement.sensitivity
        yield "bad ones caught (specificity)", agreement.specificity
        yield "good among its passes (precision)", agreement.precision
    yield "right (accuracy)", agreement.accuracy


def list_coefficients(found: Measurement) -> Iterator[tuple[str, Estimate]]:
    """The coefficients of a measurement by name."""
    agreement = found.agreement
    if agreement is not None:
        if found.kind == "verdict":
            yield "F1", agreement.f1
        yield "Cohen's kappa", agreement.cohen_kappa
        yield "Gwet's AC1", agreement.gwet_ac1
        yield "Krippendorff's alpha", agreement.krippendorff_alpha
    if found.correlation is not None:
        each = found.correlation.per_item
        yield from (("Spearman", each.spearman), ("Kendall's tau-b", each.kendall), ("Pearson", each.pearson))
        mean = found.correlation.over_groups
        if mean is not None:
            yield "Spearman, mean of groups", mean.spearman


def list_people(found: Measurement) -> Iterator[tuple[str, Estimate, bool]]:
    """How well people agree with each other: the most that agreement with them can mean."""
    if found.ceiling is not None:
        yield "people with each other", found.ceiling.agreement, True
        yield "people with each other, kappa", found.ceiling.kappa, False


def list_baselines(found: Measurement) -> Iterator[tuple[str, str]]:
    """Judges that look at nothing, each once."""
    if found.agreement is None:
        return
    seen = set()
    for item in found.agreement.baselines:
        if item.category not in seen:
            seen.add(item.category)
            yield f"a judge that says {name_category(item.category)} to everything", format_rate(item.accuracy.rate)


def name_category(category: LabelValue) -> str:
    """A category as people name it."""
    if category is None:
        return "undecided"
    return {True: "good", False: "bad"}.get(category, str(category)) if isinstance(category, bool) else str(category)


def list_confusion(found: Measurement) -> tuple[list[str], list[list[str]]]:
    """The confusion table as texts: a column for each verdict, a row for each heap of truths."""
    expected: tuple[LabelledVerdict, ...] = ("passed", "failed") if found.kind == "verdict" else ()
    verdicts = [name for name in VERDICTS if found.verdicts.get(name) or name in expected]
    rows = []
    for heap, name_of_heap in HEAPS.items():
        if number := _count_heap(found, heap):
            counts = [f"{found.count(name, heap):,}" for name in verdicts]
            rows.append([f"people: {name_of_heap}", *counts, f"{number:,}"])
    if found.cases > found.labelled:
        rest = [found.verdicts.get(name, 0) - sum(found.table.get(name, {}).values()) for name in verdicts]
        rows.append(["not labelled", *(f"{number:,}" for number in (*rest, sum(rest)))])
    return ["", *(f"judge: {VERDICTS[name]}" for name in verdicts), "cases"], rows


def list_rate_facts(found: Measurement) -> Iterator[tuple[str, str]]:
    """The corrected rate with what it rests on, or why there is none."""
    rate = found.rate
    if isinstance(rate, Refusal):
        yield "corrected rate", f"refused: {rate.reason}"
        yield "what would help", rate.remedy
    elif rate is not None:
        of = "of this run" if rate.target == "run" else "of the system"
        # Limits as the method gives them; the sentence above rounds outward.
        limits = "" if found.is_counted else f" ({format_range(rate.low, rate.high)})"
        yield f"corrected rate, {of}", f"{format_rate(rate.value)}{limits}"
        if rate.bounds is not None:
            yield "if every unresolved case is bad, or good", " to ".join(format_rate(end) for end in rate.bounds)
        yield "computed by", _describe_method(rate, counted=found.is_counted)
        if rate.worth is not None and rate.worth > rate.labels:
            yield (
                "worth",
                f"people alone would need about {rate.worth:,} labels for this width, instead of {rate.labels:,}",
            )
    if rate is not None and rate.naive is not None:
        yield "the judge's own rate, which counts its errors as right", format_share(rate.naive)


def _describe_method(rate: CorrectedRate, *, counted: bool) -> str:
    if counted:
        return f"counting: {format_count(rate.labels, 'label')} of {format_count(rate.cases, 'case')}"
    said = f"{rate.method}, {format_count(rate.labels, 'label')}"
    said += f" in {format_count(rate.groups, 'group')}" if rate.groups is not None else ""
    return said + (f", design effect {format_decimal(rate.deff, 1)}" if rate.deff is not None else "")


def list_assumptions(found: Measurement) -> Iterator[str]:
    """How the labels were chosen, and what the corrected rate assumes."""
    if found.kind != "number" and found.labelled:
        yield _SAMPLING[found.sampling]
    rate = found.rate
    if isinstance(rate, CorrectedRate) and found.sampling != "census":
        yield from rate.assumptions
    for note in rate.notes if rate is not None else ():
        yield f"{note[:1].upper()}{note[1:]}{'' if note.endswith('.') else '.'}"


def list_remarks(found: Measurement) -> Iterator[str]:
    """What else a reader should know: cases that are in no figure, the worst kind of case, repeats and biases."""
    if found.elsewhere:
        yield f"{format_count(found.elsewhere, 'labelled case')} were not judged here and are in no figure."
    if found.overrides:
        yield (
            f"{format_count(found.overrides, 'case')} have only labels of people who overruled a gate; they are in no "
            "figure, because a gate does not ask about cases at random."
        )
    worst = found.slices.worst if found.slices is not None else None
    if worst is not None and found.slices is not None:
        rate = f"{format_rate(worst.accuracy.value)} of {format_count(worst.accuracy.of, 'case')}"
        told = "worse than elsewhere" if worst.is_worse else "no more than chance can explain"
        yield f"Worst kind: {worst.name}, right in {rate} ({told}, {format_count(found.slices.tests, 'test')})."
    if found.flipped is not None:
        yield f"Judged again, the verdict differs in {format_share(found.flipped)} of the cases."
    if found.error_parts is not None and found.error_parts.noise_share.value is not None:
        noise = format_whole(found.error_parts.noise_share.value)
        yield f"Noise between judgements of one case is {noise} of the judge's error."
    if found.order_flips is not None:
        flips = found.order_flips
        yield f"The two orders of a pair disagree in {format_share(flips.flips)}."
    if found.alternative is not None:
        yield _describe_alternative(found)
    yield from found.notes


def _describe_alternative(found: Measurement) -> str:
    test = found.alternative
    if test is None:
        return ""
    said = "passes" if test.passed else "does not pass"
    wins = sum(item.rejected for item in test.annotators)
    notes = "".join(f" {note[:1].upper()}{note[1:]}." for note in test.notes)
    return (
        f"The judge {said} the alternative annotator test (epsilon {test.epsilon:g}): it wins over {wins} of "
        f"{format_count(len(test.annotators), 'person', 'people')}, advantage probability "
        f"{format_score(test.advantage_probability)}.{notes}"
    )


def list_biases(found: Measurement) -> Iterator[str]:
    """What the judge's error follows, in sentences; those that are shown first."""
    if found.bias is not None:
        effects = sorted(found.bias.effects, key=lambda effect: not effect.is_shown)
        yield from (effect.words for effect in effects)


def list_gaps(found: Measurement) -> Iterator[tuple[str, str]]:
    """What could not be computed, and why."""
    names = {"ceiling": "people with each other", "slices": "by kind of case", "error_parts": "noise"}
    yield from ((names.get(name, name), why) for name, why in found.left_out.items())


def describe_sorts(found: Measurement) -> str:
    """How many disagreements there are, and of which sort."""
    counts = [f"{number:,} {sort}" for sort, number in found.sorts.items() if number]
    return f"{format_count(found.differing, 'disagreement')}: {', '.join(counts)}" if counts else "no disagreement"


def format_side(value: LabelValue) -> str:
    """What people say of a case."""
    if value is None:
        return HEAPS["unresolved"]
    if isinstance(value, bool):
        return "good" if value else "bad"
    return f"{value:g}" if isinstance(value, float) else str(value).replace("_", " ")


def format_labels(item: Disagreement) -> str:
    """What each person said, by name."""
    return ", ".join(f"{rater}: {format_side(value)}" for rater, value in item.labels)


def take(items: Sequence[Disagreement], most: int) -> Sequence[Disagreement]:
    """The first of each sort in turn, so that one sort of many does not hide the others."""
    apart: dict[DisagreementSort, list[Disagreement]] = {}
    for item in items:
        apart.setdefault(item.sort, []).append(item)
    chosen: list[Disagreement] = []
    while len(chosen) < most and any(apart.values()):
        for found in apart.values():
            if found and len(chosen) < most:
                chosen.append(found.pop(0))
    order = {id(item): place for place, item in enumerate(items)}
    return sorted(chosen, key=lambda item: order[id(item)])
