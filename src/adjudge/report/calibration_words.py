"""Sentences about a threshold with a promise, the same on a terminal and wherever else a calibration is shown."""

from __future__ import annotations

import math
from collections.abc import Iterator

from adjudge.formats.numbers import format_decimal, format_dollars, format_points, format_rate
from adjudge.guards.release_policy import LabelSample, ReleaseRisk
from adjudge.measurement.calibration import Calibration
from adjudge.templates.figures import format_count, format_day


def describe_calibration(calibration: Calibration, name: str) -> str:
    """Describe what a judge may decide alone, and what that was measured on: one sentence, and what people do.

    ``name`` is that of the run.
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
    return f"at most {format_rate(bound)} of {_WHOLES[risk]} {_WRONG[risk]}"


_WHOLES: dict[ReleaseRisk, str] = {"wrong_pass": "all cases", "wrong_given_pass": "what it passes alone"}

_WRONG: dict[ReleaseRisk, str] = {"wrong_pass": "are wrong passes", "wrong_given_pass": "is wrong"}


def _describe_refusal(calibration: Calibration) -> str:
    promise = describe_bound(calibration.risk, calibration.bound)
    if calibration.outcome == "none can":
        return (
            f"no threshold of this judge can keep the promise that {promise}: the labels show a higher share at every "
            "threshold that is of use. Choose another judge or rubric, or promise less."
        )
    refusal = f"these {format_count(calibration.labels, 'label')} cannot show a threshold at which {promise}"
    if calibration.needed is None:
        return f"{refusal}; at the share of errors seen so far no number of labels would."
    more = calibration.needed - calibration.labels
    beyond = (
        f", more than the {calibration.cases:,} cases of this run" if calibration.needed > calibration.cases else ""
    )
    return (
        f"{refusal}; about {format_count(more, 'more label')} would ({calibration.needed:,} in all{beyond}), if the "
        "judge errs as often as it was seen to."
    )


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
    """Yield what has to be known before the figures."""
    yield from calibration.warnings
    if calibration.without_score:
        number = format_count(calibration.without_score, "passed case")
        verb = "has" if calibration.without_score == 1 else "have"
        yield f"{number} {verb} no score, so people decide {'it' if calibration.without_score == 1 else 'them'}"


def format_threshold(threshold: float) -> str:
    """Format a threshold with at most four digits, never lower than it is: who types it releases no more."""
    return format_decimal(math.ceil(threshold * 10_000 - 1e-6) / 10_000, 4).rstrip("0").rstrip(".") or "0"


def _format_confidence(confidence: float) -> str:
    return f"{format_points(confidence, digits=2).rstrip('0').rstrip('.')} %"


def _describe_look(calibration: Calibration) -> str:
    level = f"tested at {_format_confidence(calibration.level)}"
    if calibration.look == 1:
        return f"the first at thresholds of this run, {level}; each further one is stricter"
    return f"number {calibration.look} at thresholds of this run, {level}, so that all of them keep the promise"


def _describe_dates(calibration: Calibration) -> str:
    first, last = format_day(calibration.measured_from), format_day(calibration.measured_to)
    judged = f"judged on {first}" if first == last else f"judged from {first} to {last}"
    policy = calibration.policy
    if policy is None or policy.labelled_from is None or policy.labelled_to is None:
        return judged
    first, last = format_day(policy.labelled_from), format_day(policy.labelled_to)
    return f"{judged} and labelled {f'on {first}' if first == last else f'from {first} to {last}'}"
