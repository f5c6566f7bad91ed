"""What every form of a report says in words: what the figures are of, what it leaves out, what it cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from adjudge.report._format import say_count, say_dollars
from adjudge.report._values import Report


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
