"""The sentences of a report, the same in every form of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from adjudge.dataset.case import LabelValue
from adjudge.formats.numbers import NOTHING, format_apart, format_dollars, format_rate, format_score
from adjudge.report.cases import ShownResult
from adjudge.report.document import Words
from adjudge.report.report import Report
from adjudge.report.summaries import CriterionSummary, OwnSummary, RubricSummary
from adjudge.result import JudgeResult
from adjudge.templates.figures import format_count, format_interval


def format_criterion_share(criterion: CriterionSummary) -> tuple[str, str]:
    """Format the share that reached a criterion's threshold, or its rule, and its interval; nothing without either.

    A criterion without either has a mean alone: a share above some middle would be taken for what the outcome rests on.
    """
    if not criterion.gates:
        return NOTHING, NOTHING
    return format_rate(criterion.passed.rate), format_interval(criterion.passed)


def format_label(label: LabelValue) -> str:
    """Format the decision of a person."""
    return str(label).lower() if isinstance(label, bool) else f"{label:g}" if isinstance(label, float) else str(label)


def describe_passed(report: Report) -> str:
    """Describe the share that the judge passed; once people have labelled some cases, with what that counts."""
    interval = f" (95 % interval {format_interval(report.passed)})" if report.passed.of else ""
    share, cases = format_rate(report.passed.rate), format_count(report.cases, "case")
    if not report.is_measured:
        return f"{share} of {cases} passed{interval}"
    return f"The judge alone passed {share} of {cases}{interval}, which counts its errors as right"


def format_outcomes(outcomes: Mapping[str, int]) -> str:
    """Format the number of each outcome."""
    return ", ".join(f"{number:,} {name}" for name, number in outcomes.items())


def format_verdict(result: ShownResult | JudgeResult) -> str:
    """Format the outcome of a judgement, in one line."""
    preferred = result.preferred if isinstance(result, ShownResult) else None
    if preferred is not None:
        verdict = {"tie": "neither is preferred"}.get(preferred, f"the {preferred} is preferred")
    elif result.undecided_because:
        verdict = f"undecided: {result.undecided_because}"
    else:
        verdict = str(result.outcome)
        score, needed = format_apart(result.score, result.threshold)
        verdict += f" with {score}" if result.score is not None else ""
        verdict += f", needs {needed}" if result.threshold is not None else ""
    return verdict if result.decided_by == "judge" else f"{verdict}; decided by {result.decided_by}"


def list_notices(report: Report) -> Iterable[str]:
    """Yield what a reader has to know before the figures mean anything."""
    about = report.about
    if about.status != "finished":
        of = f" of {about.expected:,}" if about.expected is not None else ""
        ending = "How this run ended is unknown" if about.status == "unknown" else f"This run is {about.status}"
        yield f"{ending}: {report.cases:,}{of} cases are judged. Every figure is about these alone."
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
    if report.text_after:
        replies = "reply was" if report.text_after == 1 else "replies were"
        yield f"{report.text_after:,} {replies} unparseable because text followed the answer."
    for name, number in report.left_out.items():
        yield f"There are too many {name} to tell apart: {number:,} mentions of further ones are not shown."


def format_own(summary: OwnSummary) -> str:
    """Format how many cases bring criteria of their own: a threshold that a case lowers has to be seen."""
    parts = {"criteria": summary.criteria, "rules": summary.rules, "a threshold": summary.threshold}
    clauses = [
        f"{format_count(number, 'case')} brought {name} of {_choose_pronoun(number)} own"
        for name, number in parts.items()
    ]
    sentences = "; ".join([part for part, number in zip(clauses, parts.values(), strict=True) if number]) + "."
    if summary.below:
        verb = "needs" if summary.below == 1 else "need"
        sentences += (
            f" {format_count(summary.below, 'case')} {verb} less than the {format_score(summary.needed)} that the run "
            f"asks for; "
            f"{format_count(summary.below_passed)} of them passed."
        )
    return sentences


def _choose_pronoun(number: int) -> str:
    return "its" if number == 1 else "their"


def format_rubric(rubric: RubricSummary, quote: Callable[[str], str] = str) -> str:
    """Format the name of a rubric; ``quote`` writes words that come from a file."""
    whose = "brought by cases" if rubric.own else "of the run"
    return f"{quote(rubric.name)} ({quote(rubric.about)}), {whose}, {rubric.digest[:12]}"


def list_model_changes(report: Report) -> Iterable[tuple[str | Words, ...]]:
    """Yield where other models answered than were asked for; a name may be made up by a server."""
    for change in report.model_changes:
        ending = " before." if not change.asked else " was asked for."
        yield (
            "Judge ",
            Words(text=change.judge),
            f": {format_count(change.judgements, 'judgement')} came from the model ",
            Words(text=change.reported),
            ", and ",
            Words(text=change.expected),
            ending,
        )


def format_shown(report: Report) -> str:
    """Format how many cases a report holds, and how many it leaves out."""
    shown = len(report.shown)
    order = "Failed ones first, then undecided ones, then those that passed."
    if shown == report.cases:
        return f"All {format_count(shown, 'case')}. {order}"
    every = format_count(report.cases, "case")
    return f"{shown:,} of {every}; the others are in no list here, but in every figure. {order}"


def format_cost(report: Report) -> str:
    """Format the cost of the run, for how many judgements it is unknown, and what may have been paid twice."""
    return _format_known(report) + format_paid_again(report.about.paid_again, report.about.paid_again_usd)


def format_paid_again(requests: int, usd: float | None) -> str:
    """Format the possible cost of requests that were sent again; empty where there are none."""
    if not requests:
        return ""
    most = "an unknown amount" if usd is None else f"up to {format_dollars(usd)}"
    return f", and {most} for {format_count(requests, 'request')} sent again with --pay-again"


def _format_known(report: Report) -> str:
    cost = report.cost
    if cost.known_usd is None:
        return "unknown" if cost.unknown else "nothing was spent"
    if not cost.unknown:
        return format_dollars(cost.known_usd)
    return f"{format_dollars(cost.known_usd)} known; a part unknown for {format_count(cost.unknown, 'judgement')}"
