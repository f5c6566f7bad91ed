"""Sentences about a calibrated threshold or cascade, the same on a terminal and wherever else it is shown."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime

from adjudge.formats.numbers import format_decimal, format_dollars, format_points, format_rate
from adjudge.guards.release_policy import LabelSample, ReleaseRisk
from adjudge.measurement.calibration import Calibration
from adjudge.measurement.cascade_calibration import CascadeCalibration
from adjudge.templates.figures import format_count, format_day


def describe_calibration(calibration: Calibration, name: str) -> str:
    """Describe what a judge may decide alone, what people still decide, and on what that was measured.

    ``name`` is the name of the run.
    """
    measured = f"On the {format_count(calibration.cases, 'case')} of {name}, {_describe_dates(calibration)}: "
    policy = calibration.policy
    if policy is None:
        return f"{measured}{_describe_refusal(calibration)} Until then people decide everything."
    share = policy.released / policy.cases
    return (
        f"{measured}from a score of {format_threshold(policy.threshold)} on the judge may decide alone. It then passes "
        f"{format_rate(share)} of the cases, and {describe_bound(calibration.risk, calibration.bound)}, with "
        f"{_format_confidence(calibration.confidence)} confidence; people decide the other {format_rate(1 - share)}."
    )


def describe_bound(risk: ReleaseRisk, bound: float) -> str:
    """Describe what is promised: ``at most 5 % of all cases are wrong passes``."""
    return f"at most {format_rate(bound)} of {_RISK_SUBJECTS[risk]} {_RISK_PREDICATES[risk]}"


_RISK_SUBJECTS: dict[ReleaseRisk, str] = {"wrong_pass": "all cases", "wrong_given_pass": "what it passes alone"}

_RISK_PREDICATES: dict[ReleaseRisk, str] = {"wrong_pass": "are wrong passes", "wrong_given_pass": "is wrong"}


def _describe_refusal(calibration: Calibration) -> str:
    """Describe why no threshold is certified, and what would help."""
    promise = describe_bound(calibration.risk, calibration.bound)
    if calibration.outcome == "none can":
        return (
            f"no threshold of this judge can keep the promise that {promise}: the labels show a higher share at every "
            "threshold that is of use. Choose another judge or rubric, or promise less."
        )
    refusal = f"these {format_count(calibration.labels, 'label')} cannot show a threshold at which {promise}"
    if calibration.needed is None:
        return f"{refusal}; at the share of errors seen so far no number of labels would."
    beyond = (
        f", more than the {calibration.cases:,} cases of this run" if calibration.needed > calibration.cases else ""
    )
    more = format_count(calibration.needed - calibration.labels, "more label")
    return (
        f"{refusal}; about {more} would ({calibration.needed:,} in all{beyond}), by the stricter limits of a further "
        "look, if the judge errs as often as it was seen to."
    )


def describe_cascade(calibration: CascadeCalibration, cheap_name: str, strong_name: str) -> str:
    """Describe whether a cheap judge may decide before a strong one, and what that loses and saves.

    ``cheap_name`` and ``strong_name`` are the names of the runs of both judges.
    """
    dates = format_dates(calibration.measured_from, calibration.measured_to)
    measured = f"On the {format_count(calibration.cases, 'case')} of {cheap_name}, judged {dates}: "
    bound = format_rate(calibration.bound)
    if calibration.advice == "cheap alone":
        return f"{measured}the cheap judge alone is better: {_describe_agreement(calibration)}."
    if calibration.advice == "more labels":
        return (
            f"{measured}these {format_count(calibration.labels, 'label')} cannot show a confidence at which a cascade "
            f"loses at most {bound} of all cases{_describe_needed(calibration.needed, calibration.labels)} Until then "
            f"ask the judge of {strong_name}."
        )
    if calibration.threshold is None:
        return (
            f"{measured}a cascade does not pay: the labels show that it loses more than {bound} of all cases at every "
            f"confidence that is of use. Ask the judge of {strong_name}."
        )
    share = calibration.decided / calibration.cases
    if calibration.advice == "does not pay":
        return (
            f"{measured}a cascade does not pay: the cheap judge may decide {format_rate(share)} of the cases, and "
            f"asking it first costs more than that saves. Ask the judge of {strong_name}."
        )
    saved = (
        "" if calibration.saved is None else f" That saves {format_rate(calibration.saved)} of the strong one's price."
    )
    return (
        f"{measured}from a confidence of {format_threshold(calibration.threshold)} on the cheap judge may decide "
        f"alone. It then decides {format_rate(share)} of the cases, and at most {bound} of all cases are lost, with "
        f"{_format_confidence(calibration.confidence)} confidence.{saved}"
    )


def _describe_needed(needed: int | None, labels: int) -> str:
    """Describe how many more labels would show a threshold, as the end of a sentence; a full stop if none would."""
    if needed is None:
        return "."
    return (
        f"; about {format_count(needed - labels, 'more label')} would, by the stricter limits of a further look, if "
        "the judges err as often as they were seen to."
    )


def _describe_agreement(calibration: CascadeCalibration) -> str:
    """Describe how often the cheap and the strong judge agree with people, with the limits of the difference."""
    low, high = (format_points(limit, sign=True) for limit in calibration.difference)
    return (
        f"it agrees with people on {calibration.right[0]:,} and the strong one on {calibration.right[1]:,} of "
        f"{format_count(calibration.labels, 'labelled case')} ({low} to {high} points)"
    )


def list_cascade_facts(calibration: CascadeCalibration) -> Iterator[tuple[str, str]]:
    """Yield the figures behind the sentence about a cascade, each with its name."""
    if calibration.threshold is not None:
        yield "escalate_below", repr(calibration.threshold)
        yield "lost", f"{calibration.lost:,} of {format_count(calibration.labels, 'labelled case')}"
    yield "agreement", _describe_agreement(calibration)
    cheap, strong = (format_dollars(cost, digits=6) for cost in calibration.costs_usd)
    yield "a case costs", f"{cheap} by the cheap judge, {strong} by the strong one"
    yield (
        "labels",
        f"{calibration.labels:,} of {format_count(calibration.cases, 'case')}, {_SAMPLES[calibration.sample]}",
    )
    yield "thresholds", f"fixed before any label was read; SHA-256 {calibration.grid_digest}"
    yield "look", _describe_look(calibration)


def list_calibration_facts(calibration: Calibration) -> Iterator[tuple[str, str]]:
    """Yield the figures behind the sentence, each with its name."""
    policy = calibration.policy
    if policy is not None:
        people = policy.cases - policy.released
        yield "judge alone", f"{format_count(policy.released, 'case')} of {policy.cases:,}"
        yield "people", format_count(people, "case")
        yield "wrong", f"{policy.wrong:,} of the {policy.labels_released:,} labelled cases that are released"
    yield (
        "labels",
        f"{calibration.labels:,} of {format_count(calibration.cases, 'case')}, {_SAMPLES[calibration.sample]}",
    )
    if calibration.cost_usd is not None:
        each = format_dollars(calibration.cost_usd / calibration.cases, digits=6)
        yield "the judge costs", f"{format_dollars(calibration.cost_usd)} for these cases, {each} each"
    yield (
        "thresholds",
        f"{calibration.thresholds:,}, fixed before any label was read; SHA-256 {calibration.grid_digest}",
    )
    yield "look", _describe_look(calibration)


_SAMPLES: dict[LabelSample, str] = {
    "census": "every case",
    "random order": "in the random order of adjudge label",
    "plan": "drawn by a plan without strata",
    "said random": "a random sample, as you say",
}


def list_calibration_warnings(calibration: Calibration) -> Iterator[str]:
    """Yield the warnings that have to be read before the figures."""
    yield from calibration.warnings
    if calibration.without_score:
        cases = format_count(calibration.without_score, "passed case")
        verb, pronoun = ("has", "it") if calibration.without_score == 1 else ("have", "them")
        yield f"{cases} {verb} no score, so people decide {pronoun}"


def format_threshold(threshold: float) -> str:
    """Format a threshold with at most four digits, rounded up: typed in as it is shown, it releases no further case."""
    rounded_up = math.ceil(threshold * 10_000 - 1e-6) / 10_000  # without 1e-6 an error in binary would be a whole step
    return format_decimal(rounded_up, 4).rstrip("0").rstrip(".") or "0"


def _format_confidence(confidence: float) -> str:
    return f"{format_points(confidence, digits=2).rstrip('0').rstrip('.')} %"


def _describe_look(calibration: Calibration | CascadeCalibration) -> str:
    """Describe the number of this look at the run, and the confidence of its tests, which rises with each look."""
    level = f"tested at {_format_confidence(calibration.level)}"
    if calibration.look == 1:
        return f"the first at thresholds of this run, {level}; each further one is stricter"
    return f"number {calibration.look} at thresholds of this run, {level}, so that all of them keep the promise"


def _describe_dates(calibration: Calibration) -> str:
    """Describe when the cases were judged, and, if that is known, when they were labelled."""
    judged = f"judged {format_dates(calibration.measured_from, calibration.measured_to)}"
    policy = calibration.policy
    if policy is None or policy.labelled_from is None or policy.labelled_to is None:
        return judged
    return f"{judged} and labelled {format_dates(policy.labelled_from, policy.labelled_to)}"


def format_dates(start: datetime, end: datetime) -> str:
    """Format two days: ``on 22 Nov 2026``, or ``from 22 Nov 2026 to 24 Nov 2026``."""
    first, last = format_day(start), format_day(end)
    return f"on {first}" if first == last else f"from {first} to {last}"
