"""Sentences, facts and rows about a measurement, the same on a page, in a comment and on a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from adjudge.dataset.case import LabelValue
from adjudge.formats.numbers import (
    NOTHING,
    format_decimal,
    format_distinct,
    format_points,
    format_range,
    format_rate,
    format_score,
)
from adjudge.labels.truth import LabelledVerdict, TruthHeap
from adjudge.measurement.disagreement import Disagreement, DisagreementSort
from adjudge.measurement.measurement import Measurement
from adjudge.measurement.people import describe_uncounted
from adjudge.measurement.sampled_rate import Sampling
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

HEAP_NAMES: dict[TruthHeap, str] = {
    "good": "good",
    "bad": "bad",
    "first": "the first is better",
    "second": "the second is better",
    "tie": "a tie",
    "number": "a number",
    "cannot_tell": "cannot tell",
    "unresolved": "people split",
}
"""The truths of cases (heaps) as they are shown, in their order."""

VERDICTS: dict[LabelledVerdict, str] = {
    "passed": "passed",
    "failed": "failed",
    "first": "first",
    "second": "second",
    "tie": "tie",
    "undecided": "undecided",
}


_MOST_PREVALENT = 0.9
"""The share of one truth above which kappa says little."""


def describe_labels(measurement: Measurement) -> str:
    """Describe the labels that do not count, or are no random sample, in sentences; empty where there are none."""
    return " ".join(_list_doubts(measurement))


def list_doubts(measurements: Iterable[Measurement]) -> list[str]:
    """List the doubts about the labels of several measurements, each once."""
    return list(dict.fromkeys(filter(None, map(describe_labels, measurements))))


def list_warnings(measurements: Iterable[Measurement]) -> list[str]:
    """List the doubts about the labels of several measurements, and then the warnings, each sentence once."""
    listed = list(measurements)
    warnings = [warning for measurement in listed for warning in measurement.warnings]
    return list(dict.fromkeys([*list_doubts(listed), *warnings]))


def _list_doubts(measurement: Measurement) -> Iterator[str]:
    """Yield sentences on labels that are not counted, or cannot be relied on as a sample."""
    if measurement.other_contents:
        yield f"{describe_uncounted(measurement.other_contents)}."
    if measurement.other_draws:
        cases = format_count(measurement.other_draws, "labelled case")
        was, it_is = ("was", "it is") if measurement.other_draws == 1 else ("were", "they are")
        of_these = (
            "" if measurement.contents is None else f" of these {format_count(measurement.contents.cases, 'case')}"
        )
        if measurement.draw_problem:
            cause = "drawn from other contents, or by a plan that does not fit them"
        else:
            cause = "drawn from other contents"
        yield f"{cases} {was} {cause}, so {it_is} no random sample{of_these}."
    if measurement.draw_problem:
        yield f"The plan in the run's folder is not relied on: {measurement.draw_problem}."
    if measurement.run is not None and measurement.unbound:
        yield _describe_unbound(measurement)


def _describe_unbound(measurement: Measurement) -> str:
    """Describe how many cases have labels that do not say which content was read, and what cannot be relied on so."""
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
    """Describe the rates at which people would pass and the judge passes, in a sentence; empty without a label."""
    rate = measurement.rate
    if rate is None or (isinstance(rate, Refusal) and rate.because == "no_labels"):
        return ""
    are_pairs = measurement.kind == "preference"
    passes, pass_verb = ("prefers the first in", "prefer the first in") if are_pairs else ("passes", "pass")
    judge_rate = format_whole(rate.naive.rate if rate.naive is not None else None)
    if isinstance(rate, Refusal):
        return f"How many people would {pass_verb} cannot be said: {rate.reason}. The judge {passes} {judge_rate}."
    these = "this" if measurement.cases == 1 else "these"
    cases = (
        f"{these} {format_count(measurement.cases, 'pair' if are_pairs else 'case')}"
        if rate.target == "run"
        else "what this system produces"
    )
    people_rate = format_whole(rate.value)
    if measurement.is_counted:
        return f"People {pass_verb} {people_rate} of {cases}; the judge {passes} {judge_rate}."
    between = f"{format_between(rate.low, rate.high)}, for one look"
    return f"People would {pass_verb} {people_rate} of {cases} ({between}); the judge {passes} {judge_rate}."


def _describe_errors(measurement: Measurement, other_run: str = "") -> str:
    """Describe how often the judge is right.

    ``other_run`` is the name of the run that was measured, if the sentence is shown with another run; else empty.
    """
    if measurement.kind == "number":
        return _describe_correlation(measurement, other_run)
    if measurement.agreement is None:
        is_measured = (
            measurement.labelled or measurement.measured_on is not None or isinstance(measurement.rate, CorrectedRate)
        )
        return "" if is_measured else "No judged case has a label, so the judge is not measured."
    if measurement.kind == "preference":
        agreed, pairs = measurement.agreement.confusion.agreed, measurement.agreement.confusion.items
        return _start_sentence(
            f"it preferred what people prefer in {agreed:,} of {format_count(pairs, 'labelled pair')}.", other_run
        )
    if measurement.is_weighted:
        return _describe_weighted_errors(measurement.agreement, other_run)
    caught, bad = measurement.count("failed", "bad"), _count_heap(measurement, "bad")
    kept, good = measurement.count("passed", "good"), _count_heap(measurement, "good")
    clauses = [f"caught {caught:,} of {format_count(bad, 'bad answer')}"] if bad else []
    clauses += [f"kept {kept:,} of {format_count(good, 'good one')}"] if good else []
    missing = "" if bad and good else f" No labelled answer is {'good' if bad else 'bad'}."
    return _start_sentence(f"it {' and '.join(clauses)}.{missing}", other_run)


def _start_sentence(sentence: str, other_run: str) -> str:
    """Begin a sentence with the name of the other run that it is about, or (empty) with a capital letter."""
    return f"On run {other_run} {sentence}" if other_run else f"{sentence[:1].upper()}{sentence[1:]}"


def _describe_elsewhere(measurement: Measurement) -> str:
    """Describe the judge's errors on the other run that was measured, which say nothing certain of this run.

    Empty where no other run was measured.
    """
    if measurement.measured_on is None:
        return ""
    other = measurement.measured_on
    errors = _describe_errors(other.measurement, other.name) or f"On run {other.name} no label is settled."
    if not isinstance(measurement.rate, Refusal):
        return errors
    return f"{errors.removesuffix('.')}; how often it errs on this run is not known: {measurement.rate.remedy}."


def _describe_weighted_errors(agreement: Agreement, other_run: str) -> str:
    """Describe how often the judge is right by rates: labels that represent different numbers of cases cannot be added.

    Arguments are those of ``_describe_errors``.
    """
    caught, kept = agreement.specificity.value, agreement.sensitivity.value
    clauses = [f"catches about {format_points(caught, digits=0)} of 100 bad answers"] if caught is not None else []
    clauses += [f"keeps about {format_points(kept, digits=0)} of 100 good ones"] if kept is not None else []
    return _start_sentence(f"it {' and '.join(clauses)}.", other_run) if clauses else ""


def _describe_correlation(measurement: Measurement, other_run: str) -> str:
    """Describe how the judge's scores correlate with labels that are numbers; empty where that was not computed."""
    if measurement.correlation is None:
        return ""
    value = measurement.correlation.per_item.spearman
    estimate = format_estimate(value, share=False)
    sentence = (
        f"the judge's scores and people's have a Spearman correlation of {estimate} over "
        f"{format_count(value.of, 'labelled case')}."
    )
    return _start_sentence(sentence, other_run)


def _count_heap(measurement: Measurement, heap: TruthHeap) -> int:
    """Count the labelled cases with a truth, whatever the judge's verdict."""
    return sum(row.get(heap, 0) for row in measurement.table.values())


def format_whole(rate: float | None) -> str:
    """Format a share in whole per cent, but never round it to 0 % or 100 %: near these it gets more digits."""
    if rate is None:
        return NOTHING
    if 0 < rate < 0.01 or 0.99 < rate < 1:
        return format_rate(rate)
    return f"{format_points(rate, digits=0)} %"


def format_between(low: float, high: float) -> str:
    """Format an interval in per cent, rounded outward: rounded inward, it would promise more than was computed."""
    digits = 0 if high - low >= 0.03 else 1
    scale = 10**digits
    # Without 1e-9, an error in the last binary digit would move a limit by a whole step.
    rounded_low = math.floor(100 * scale * low + 1e-9) / scale
    rounded_high = math.ceil(100 * scale * high - 1e-9) / scale
    return f"between {rounded_low:.{digits}f} and {rounded_high:.{digits}f}"


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
    limits = format_range(low, high) if share else " to ".join(format_distinct(low, high))
    return f" ({limits})" if brackets else limits


def list_shares(measurement: Measurement) -> Iterator[tuple[str, Estimate]]:
    """Yield the shares of a measurement with their names: of verdicts sensitivity and the like, then the accuracy."""
    agreement = measurement.agreement
    if agreement is None:
        return
    if measurement.kind == "verdict":
        yield "good ones kept (sensitivity)", agreement.sensitivity
        yield "bad ones caught (specificity)", agreement.specificity
        yield "good among its passes (precision)", agreement.precision
    yield "right (accuracy)", agreement.accuracy


def list_coefficients(measurement: Measurement) -> Iterator[tuple[str, Estimate]]:
    """Yield one coefficient of agreement and one of correlation, with their names, where the labels allow them."""
    agreement = measurement.agreement
    if agreement is not None:
        # One coefficient is enough. Kappa is low where nearly all cases are alike, however often the judge is right.
        if _find_prevalence(measurement) > _MOST_PREVALENT:
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
    """Find the share of the most frequent truth among the labelled cases that people settled."""
    counts = [_count_heap(measurement, heap) for heap in HEAP_NAMES if heap not in ("cannot_tell", "unresolved")]
    return max(counts) / (sum(counts) or 1)


def list_people_agreement(measurement: Measurement) -> Iterator[tuple[str, Estimate]]:
    """Yield how well people agree with each other: the most that agreement with them can mean."""
    if measurement.ceiling is not None:
        yield "people with each other", measurement.ceiling.agreement


def list_baselines(measurement: Measurement) -> Iterator[tuple[str, str]]:
    """Yield the baselines, each once: how often a judge is right that gives every case the same verdict."""
    if measurement.agreement is None:
        return
    listed_categories = set()
    for baseline in measurement.agreement.baselines:
        if baseline.category not in listed_categories:
            listed_categories.add(baseline.category)
            yield (
                f"a judge that says {name_category(baseline.category)} to everything",
                format_rate(baseline.accuracy.rate),
            )


def name_category(category: LabelValue) -> str:
    """Name a category of a confusion matrix: ``good``, ``bad``, ``undecided``, or the category itself."""
    if category is None:
        return "undecided"
    if isinstance(category, bool):
        return "good" if category else "bad"
    return str(category)


def list_confusion(measurement: Measurement) -> tuple[list[str], list[list[str]]]:
    """List the names of the columns and the rows of the confusion table, as texts.

    There is a column for each verdict, and a row for each truth and one for the cases without a label.
    """
    expected: tuple[LabelledVerdict, ...] = ("passed", "failed") if measurement.kind == "verdict" else ()
    verdicts = [verdict for verdict in VERDICTS if measurement.verdicts.get(verdict) or verdict in expected]
    rows = []
    for heap, heap_name in HEAP_NAMES.items():
        heap_count = _count_heap(measurement, heap)
        if heap_count:
            counts = [f"{measurement.count(verdict, heap):,}" for verdict in verdicts]
            rows.append([f"people: {heap_name}", *counts, f"{heap_count:,}"])
    if measurement.cases > measurement.labelled:
        unlabelled = [
            measurement.verdicts.get(verdict, 0) - sum(measurement.table.get(verdict, {}).values())
            for verdict in verdicts
        ]
        rows.append(["not labelled", *(f"{number:,}" for number in (*unlabelled, sum(unlabelled)))])
    return ["", *(f"judge: {VERDICTS[verdict]}" for verdict in verdicts), "cases"], rows


def list_rate_facts(measurement: Measurement) -> Iterator[tuple[str, str]]:
    """Yield the facts of the corrected rate, each with its name, or why there is no rate; then the judge's own rate."""
    rate = measurement.rate
    if measurement.preference is not None:
        yield from list_preference_facts(measurement.preference)
    if isinstance(rate, Refusal):
        yield "corrected rate", f"refused: {rate.reason}"
        yield "what would help", rate.remedy
    elif rate is not None:
        of_target = "of this run" if rate.target == "run" else "of the system"
        # Limits as the method gives them; those in the sentence of the lead are rounded outward.
        limits = "" if measurement.is_counted else f" ({format_range(rate.low, rate.high)})"
        yield f"corrected rate, {of_target}", f"{format_rate(rate.value)}{limits}"
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
    """Describe how a rate was computed, and from how many labels; ``counted`` is whether every case is labelled."""
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
    # If the user says that the sample is random, the first assumption of the rate says so.
    is_in_assumptions = measurement.sampling == "random" and isinstance(rate, CorrectedRate)
    if measurement.kind != "number" and measurement.labelled and not is_in_assumptions:
        yield _SAMPLING[measurement.sampling]
    if isinstance(rate, CorrectedRate) and measurement.sampling != "census":
        yield from rate.assumptions
    for note in rate.notes if rate is not None else ():
        yield f"{note[:1].upper()}{note[1:]}{'' if note.endswith('.') else '.'}"


def list_remarks(measurement: Measurement) -> Iterator[str]:
    """Yield remarks: on cases that are in no figure, the worst kind of case, repeated judgements and further tests."""
    if measurement.elsewhere:
        were, are = ("was", "is") if measurement.elsewhere == 1 else ("were", "are")
        cases = format_count(measurement.elsewhere, "labelled case")
        yield f"{cases} {were} not judged here and {are} in no figure."
    if measurement.overrides:
        verb, pronoun = ("has", "it is") if measurement.overrides == 1 else ("have", "they are")
        yield (
            f"{format_count(measurement.overrides, 'case')} {verb} only labels of people who overruled a gate; "
            f"{pronoun} in no figure, because a gate does not ask about cases at random."
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


def list_left_out(measurement: Measurement) -> Iterator[tuple[str, str]]:
    """Yield the figures that could not be computed, each with the reason."""
    names = {"ceiling": "people with each other", "slices": "by kind of case", "error_parts": "noise"}
    yield from ((names.get(name, name), reason) for name, reason in measurement.left_out.items())


def describe_sorts(measurement: Measurement) -> str:
    """Describe how many disagreements there are, and of which sort."""
    counts = [f"{number:,} {sort}" for sort, number in measurement.sorts.items() if number]
    return (
        f"{format_count(measurement.differing, 'disagreement')}: {', '.join(counts)}" if counts else "no disagreement"
    )


def format_label_value(value: LabelValue) -> str:
    """Format the value of a label, such as ``good`` or ``cannot tell``; ``None`` is a truth that people split on."""
    if value is None:
        return HEAP_NAMES["unresolved"]
    if isinstance(value, bool):
        return "good" if value else "bad"
    return f"{value:g}" if isinstance(value, float) else str(value).replace("_", " ")


def format_labels(disagreement: Disagreement) -> str:
    """Format each person's label, by name."""
    return ", ".join(f"{rater}: {format_label_value(value)}" for rater, value in disagreement.labels)


def choose_disagreements(disagreements: Sequence[Disagreement], most: int) -> Sequence[Disagreement]:
    """Choose at most ``most`` disagreements: of each sort in turn the next, so that a frequent sort hides no other.

    They are returned in the order in which ``disagreements`` has them.
    """
    queues: dict[DisagreementSort, list[Disagreement]] = {}
    for disagreement in disagreements:
        queues.setdefault(disagreement.sort, []).append(disagreement)
    chosen: list[Disagreement] = []
    while len(chosen) < most and any(queues.values()):
        for queue in queues.values():
            if queue and len(chosen) < most:
                chosen.append(queue.pop(0))
    order = {id(disagreement): index for index, disagreement in enumerate(disagreements)}
    return sorted(chosen, key=lambda disagreement: order[id(disagreement)])
