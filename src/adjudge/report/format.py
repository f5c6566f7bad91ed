"""Numbers as people read them, the same in every form of a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from adjudge.dataset.case import LabelValue
from adjudge.report.cases import ShownResult
from adjudge.report.report import CriterionSummary, OwnSummary, Report, RubricSummary
from adjudge.trust.intervals import Share

NOTHING = "–"


def format_count(number: float, what: str = "", plural: str = "") -> str:
    """A number of things: ``1 case``, ``2,000 cases``."""
    said = f"{number:,.0f}" if float(number).is_integer() else f"{number:,.1f}"
    if not what:
        return said
    return f"{said} {what if said == '1' else plural or f'{what}s'}"


def format_rate(rate: float | None) -> str:
    """A share in per cent; never 100 % of what is not all, nor 0 % of what is something."""
    if rate is None:
        return NOTHING
    said = f"{100 * rate:.1f}"
    if said == "100.0" and rate < 1:
        said = ">99.9"
    elif said == "0.0" and rate > 0:
        said = "<0.1"
    return f"{said.removesuffix('.0')} %"


def format_interval(share: Share) -> str:
    """Where the true share may be."""
    if share.interval is None:
        return NOTHING
    low, high = share.interval
    return f"{100 * low:.1f} to {100 * high:.1f} %"


def format_criterion_share(item: CriterionSummary) -> tuple[str, str]:
    """The share that reached a criterion's threshold, or its rule, and where it may be; nothing where it has neither.

    What has nothing to reach has a mean alone: a share above some middle would be taken for what the outcome rests on.
    """
    if not item.gates:
        return NOTHING, NOTHING
    return format_rate(item.passed.rate), format_interval(item.passed)


def format_share(share: Share) -> str:
    """A share with its interval and of how many it is."""
    if share.rate is None:
        return f"{NOTHING} (of none)"
    return (
        f"{format_rate(share.rate)} ({format_interval(share)}; {format_count(share.count)} of {format_count(share.of)})"
    )


def format_score(score: float | None) -> str:
    """A score with two digits."""
    return NOTHING if score is None else f"{score:.2f}"


def format_duration(duration_ms: float | None) -> str:
    """A duration in the unit that fits."""
    if duration_ms is None:
        return NOTHING
    if duration_ms < 999.5:
        return f"{duration_ms:.0f} ms" if duration_ms >= 9.95 or not duration_ms else f"{duration_ms:.1f} ms"
    seconds = duration_ms / 1000
    return f"{seconds:.1f} s" if seconds < 599.5 else f"{seconds / 60:.0f} min"


def format_dollars(dollars: float | None) -> str:
    """An amount, with as many digits as say something."""
    if dollars is None:
        return "unknown"
    return f"${dollars:,.2f}" if dollars >= 1 or not dollars else f"${dollars:.4f}"


def format_number(number: int | None) -> str:
    """A sum that may not be known."""
    return "unknown" if number is None else f"{number:,}"


def format_label(label: LabelValue) -> str:
    """What a person decided."""
    return str(label).lower() if isinstance(label, bool) else f"{label:g}" if isinstance(label, float) else str(label)


def format_outcomes(outcomes: Mapping[str, int]) -> str:
    """How many of each."""
    return ", ".join(f"{number:,} {name}" for name, number in outcomes.items())


def format_verdict(result: ShownResult) -> str:
    """How a judgement came out, in one line."""
    if result.preferred is not None:
        said = {"tie": "neither is preferred"}.get(result.preferred, f"the {result.preferred} is preferred")
    elif result.undecided_because:
        said = f"undecided: {result.undecided_because}"
    else:
        said = str(result.outcome)
        said += f" with {result.score:.2f}" if result.score is not None else ""
        said += f", needs {result.threshold:.2f}" if result.threshold is not None else ""
    return said if result.decided_by == "judge" else f"{said}; decided by {result.decided_by}"


def list_notices(report: Report) -> Iterable[str]:
    """What a reader has to know before the figures mean anything."""
    about = report.about
    if about.status != "finished":
        of = f" of {about.expected:,}" if about.expected is not None else ""
        how = "How this run ended is unknown" if about.status == "unknown" else f"This run is {about.status}"
        yield f"{how}: {report.cases:,}{of} cases are judged. Every figure is about these alone."
    if report.pairs is not None:
        yield "These are comparisons: passed means that the first is preferred, failed that the second is, or neither."
    if about.skipped:
        yield (
            f"{format_count(about.skipped, 'row')} of the data set could not be read and "
            f"{'is' if about.skipped == 1 else 'are'} in no figure."
        )
    if about.sample is not None:
        yield f"The cases are a sample of {about.sample:,}, drawn at random from the data set."
    if report.own is not None:
        yield format_own(report.own)
    for name, number in report.left_out.items():
        yield f"There are too many {name} to tell apart: {number:,} mentions of further ones are not shown."


def format_own(own: OwnSummary) -> str:
    """What cases say themselves of how they are judged: a threshold that a case lowers has to be seen."""
    parts = {"criteria": own.criteria, "rules": own.rules, "a threshold": own.threshold}
    named = [f"{format_count(number, 'case')} brought {name} of {_whose(number)} own" for name, number in parts.items()]
    said = "; ".join([part for part, number in zip(named, parts.values(), strict=True) if number]) + "."
    if own.below:
        verb = "needs" if own.below == 1 else "need"
        said += (
            f" {format_count(own.below, 'case')} {verb} less than the {own.needed:.2f} that the run asks for; "
            f"{format_count(own.below_passed)} of them passed."
        )
    return said


def _whose(number: int) -> str:
    return "its" if number == 1 else "their"


def format_rubric(rubric: RubricSummary, quote: Callable[[str], str] = str) -> str:
    """Which rubric it is; ``quote`` writes what a file may have worded."""
    whose = "brought by cases" if rubric.own else "of the run"
    return f"{quote(rubric.name)} ({quote(rubric.about)}), {whose}, {rubric.digest[:12]}"


def list_model_changes(report: Report, quote: Callable[[str], str] = repr) -> Iterable[str]:
    """Where other models answered than were asked for; ``quote`` writes a name, which a server may have made up."""
    for item in report.model_changes:
        judge, expected, reported = [quote(name) for name in (item.judge, item.expected, item.reported)]
        other = f"and {expected} before" if not item.asked else f"and {expected} was asked for"
        yield f"Judge {judge}: {format_count(item.judgements, 'judgement')} came from the model {reported}, {other}."


def format_shown(report: Report) -> str:
    """Which cases a report holds, and which it leaves out."""
    shown = len(report.shown)
    order = "Failed ones first, then undecided ones, then those that passed."
    if shown == report.cases:
        return f"All {format_count(shown, 'case')}. {order}"
    every = format_count(report.cases, "case")
    return f"{shown:,} of {every}; the others are in no list here, but in every figure. {order}"


def format_cost(report: Report) -> str:
    """What the run cost, and for how many judgements nobody knows."""
    cost = report.cost
    if cost.known_usd is None:
        return "unknown" if cost.unknown or not cost.calls else "nothing was spent"
    if not cost.unknown:
        return format_dollars(cost.known_usd)
    return f"{format_dollars(cost.known_usd)} known; a part unknown for {format_count(cost.unknown, 'judgement')}"
