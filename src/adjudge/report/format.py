"""Numbers as people read them, the same in every form of a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from adjudge.dataset.case import Label
from adjudge.report.cases import ShownResult
from adjudge.report.report import Report
from adjudge.trust.intervals import Share

NOTHING = "–"


def say_count(number: float, what: str = "", plural: str = "") -> str:
    """A number of things: ``1 case``, ``2,000 cases``."""
    said = f"{number:,.0f}" if float(number).is_integer() else f"{number:,.1f}"
    if not what:
        return said
    return f"{said} {what if said == '1' else plural or f'{what}s'}"


def say_rate(rate: float | None) -> str:
    """A share in per cent; never 100 % of what is not all, nor 0 % of what is something."""
    if rate is None:
        return NOTHING
    said = f"{100 * rate:.1f}"
    if said == "100.0" and rate < 1:
        said = ">99.9"
    elif said == "0.0" and rate > 0:
        said = "<0.1"
    return f"{said.removesuffix('.0')} %"


def say_interval(share: Share) -> str:
    """Where the true share may be."""
    if share.interval is None:
        return NOTHING
    low, high = share.interval
    return f"{100 * low:.1f} to {100 * high:.1f} %"


def say_share(share: Share) -> str:
    """A share with its interval and of how many it is."""
    if share.rate is None:
        return f"{NOTHING} (of none)"
    return f"{say_rate(share.rate)} ({say_interval(share)}; {say_count(share.count)} of {say_count(share.of)})"


def say_score(score: float | None) -> str:
    """A score with two digits."""
    return NOTHING if score is None else f"{score:.2f}"


def say_duration(duration_ms: float | None) -> str:
    """A duration in the unit that fits."""
    if duration_ms is None:
        return NOTHING
    if duration_ms < 999.5:
        return f"{duration_ms:.0f} ms" if duration_ms >= 9.95 or not duration_ms else f"{duration_ms:.1f} ms"
    seconds = duration_ms / 1000
    return f"{seconds:.1f} s" if seconds < 599.5 else f"{seconds / 60:.0f} min"


def say_dollars(dollars: float | None) -> str:
    """An amount, with as many digits as say something."""
    if dollars is None:
        return "unknown"
    return f"${dollars:,.2f}" if dollars >= 1 or not dollars else f"${dollars:.4f}"


def say_number(number: int | None) -> str:
    """A sum that may not be known."""
    return "unknown" if number is None else f"{number:,}"


def say_label(label: Label) -> str:
    """What a person decided."""
    return str(label).lower() if isinstance(label, bool) else f"{label:g}" if isinstance(label, float) else str(label)


def say_outcomes(outcomes: Mapping[str, int]) -> str:
    """How many of each."""
    return ", ".join(f"{number:,} {name}" for name, number in outcomes.items())


def say_verdict(result: ShownResult) -> str:
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
            f"{say_count(about.skipped, 'row')} of the data set could not be read and "
            f"{'is' if about.skipped == 1 else 'are'} in no figure."
        )
    if about.sample is not None:
        yield f"The cases are a sample of {about.sample:,}, drawn at random from the data set."
    for name, number in report.left_out.items():
        yield f"There are too many {name} to tell apart: {number:,} mentions of further ones are not shown."


def list_model_changes(report: Report, quote: Callable[[str], str] = repr) -> Iterable[str]:
    """Where other models answered than were asked for; ``quote`` writes a name, which a server may have made up."""
    for item in report.model_changes:
        judge, expected, reported = [quote(name) for name in (item.judge, item.expected, item.reported)]
        other = f"and {expected} before" if not item.asked else f"and {expected} was asked for"
        yield f"Judge {judge}: {say_count(item.judgements, 'judgement')} came from the model {reported}, {other}."


def say_shown(report: Report) -> str:
    """Which cases a report holds, and which it leaves out."""
    shown = len(report.shown)
    order = "Failed ones first, then undecided ones, then those that passed."
    if shown == report.cases:
        return f"All {say_count(shown, 'case')}. {order}"
    return (
        f"{shown:,} of {say_count(report.cases, 'case')}; the others are in no list here, but in every figure. {order}"
    )


def say_cost(report: Report) -> str:
    """What the run cost, and for how many judgements nobody knows."""
    cost = report.cost
    if cost.known_usd is None:
        return "unknown" if cost.unknown or not cost.calls else "nothing was spent"
    if not cost.unknown:
        return say_dollars(cost.known_usd)
    return f"{say_dollars(cost.known_usd)} known; a part unknown for {say_count(cost.unknown, 'judgement')}"
