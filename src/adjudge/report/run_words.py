"""Figures and sentences of a run's report as texts, the same on a page, in a comment and on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from adjudge.dataset.case import LabelValue
from adjudge.formats.numbers import NOTHING, format_distinct, format_dollars, format_rate, format_score
from adjudge.report.cases import ShownResult
from adjudge.report.document import Words
from adjudge.report.report import Report
from adjudge.report.report_tables import CriterionSummary, OwnSummary, RubricSummary
from adjudge.result import JudgeResult
from adjudge.templates.figures import format_count, format_interval


def format_criterion_share(criterion: CriterionSummary) -> tuple[str, str]:
    """Format the share of judgements that passed a criterion by its threshold or rule, and the interval of the share.

    For a criterion without a threshold or rule, both texts say that there is nothing: a share above 0.5 would look as
    if the outcome depended on it.
    """
    if not criterion.gates:
        return NOTHING, NOTHING
    return format_rate(criterion.passed.rate), format_interval(criterion.passed)


def format_label(label: LabelValue) -> str:
    """Format the label of a person, such as ``true``, ``0.5`` or ``first``."""
    return str(label).lower() if isinstance(label, bool) else f"{label:g}" if isinstance(label, float) else str(label)


def describe_passed(report: Report) -> str:
    """Describe the share that the judge passed; if people labelled cases, with the remark that it counts its errors."""
    interval = f" (95 % interval {format_interval(report.passed)})" if report.passed.of else ""
    share, cases = format_rate(report.passed.rate), format_count(report.cases, "case")
    if not report.is_measured:
        return f"{share} of {cases} passed{interval}"
    return f"The judge alone passed {share} of {cases}{interval}, which counts its errors as right"


def format_outcomes(outcomes: Mapping[str, int]) -> str:
    """Format the number of each outcome."""
    return ", ".join(f"{number:,} {name}" for name, number in outcomes.items())


def format_verdict(result: ShownResult | JudgeResult) -> str:
    """Format the outcome of a judgement with its score and threshold, or the preference in a pair, in one line."""
    preferred = result.preferred if isinstance(result, ShownResult) else None
    if preferred is not None:
        verdict = {"tie": "neither is preferred"}.get(preferred, f"the {preferred} is preferred")
    elif result.undecided_because:
        verdict = f"undecided: {result.undecided_because}"
    else:
        verdict = str(result.outcome)
        score, needed = format_distinct(result.score, result.threshold)
        verdict += f" with {score}" if result.score is not None else ""
        verdict += f", needs {needed}" if result.threshold is not None else ""
    return verdict if result.decided_by == "judge" else f"{verdict}; decided by {result.decided_by}"


def list_notices(report: Report) -> Iterable[str]:
    """Yield sentences that a reader has to know before the figures, such as that the run is not finished."""
    about = report.about
    if about.status != "finished":
        of_all = f" of {about.expected:,}" if about.expected is not None else ""
        status = "How this run ended is unknown" if about.status == "unknown" else f"This run is {about.status}"
        yield f"{status}: {report.cases:,}{of_all} cases are judged. Every figure is about these alone."
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
    """Format how many cases bring criteria, rules or a threshold of their own, and how many lower the threshold so."""
    numbers = {"criteria": summary.criteria, "rules": summary.rules, "a threshold": summary.threshold}
    clauses = [
        f"{format_count(number, 'case')} brought {name} of {_choose_pronoun(number)} own"
        for name, number in numbers.items()
        if number
    ]
    sentences = "; ".join(clauses) + "."
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
    """Format a rubric in one line: its name, its first criterion, where it is from, and its digest.

    ``quote`` makes the words that are from a file fit for the output, such as escaped.
    """
    origin = "brought by cases" if rubric.own else "of the run"
    return f"{quote(rubric.name)} ({quote(rubric.about)}), {origin}, {rubric.digest[:12]}"


def list_model_changes(report: Report) -> Iterable[tuple[str | Words, ...]]:
    """Yield a sentence for each judge whose replies came from another model than was asked for, or than before.

    Names of models are ``Words``, because a server may have made them up.
    """
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
    all_cases = format_count(report.cases, "case")
    return f"{shown:,} of {all_cases}; the others are in no list here, but in every figure. {order}"


def format_cost(report: Report) -> str:
    """Format the cost of the run, for how many judgements it is unknown, and what may have been paid twice."""
    return _format_known_cost(report) + format_paid_again(report.about.paid_again, report.about.paid_again_usd)


def format_paid_again(requests: int, usd: float | None) -> str:
    """Format the possible cost of requests that were sent again; empty where there are none."""
    if not requests:
        return ""
    most = "an unknown amount" if usd is None else f"up to {format_dollars(usd)}"
    return f", and {most} for {format_count(requests, 'request')} sent again with --pay-again"


def _format_known_cost(report: Report) -> str:
    """Format the sum of the known costs, and for how many judgements a part is unknown."""
    cost = report.cost
    if cost.known_usd is None:
        return "unknown" if cost.unknown else "nothing was spent"
    if not cost.unknown:
        return format_dollars(cost.known_usd)
    return f"{format_dollars(cost.known_usd)} known; a part unknown for {format_count(cost.unknown, 'judgement')}"
