"""A run as JUnit XML: a test case for each case, whatever their number."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from adjudge.formats.display import describe_pass_mark
from adjudge.formats.numbers import format_distinct, format_score
from adjudge.formats.text import clean
from adjudge.report.cases import ShownResult, cut, find_worst_outcome, make_shown_result
from adjudge.report.report import Report
from adjudge.report.run_words import format_rubric, format_verdict, list_model_changes
from adjudge.runs.item import RunItem


def render_junit(report: Report, items: Iterable[RunItem]) -> Iterator[str]:
    """Render the lines of a JUnit file.

    A failed case is a failure, an undecided one an error. If a case was judged repeatedly, the worst judgement counts.

    Args:
        report: The report.
        items: The run's items that the report was made from, in the same order.
    """
    counts = report.case_outcomes
    numbers = {"tests": report.cases, "failures": counts["failed"], "errors": counts["undecided"], "skipped": 0}
    attributes = "".join([_render_attribute(name, str(number)) for name, number in numbers.items()])
    suite = report.about.rubric or report.about.dataset or "adjudge"
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield f'<testsuites name="adjudge"{attributes}>\n'
    yield f"<testsuite{_render_attribute('name', suite)}{attributes}{_format_time(report)}>\n<properties>\n"
    for name, value in _list_properties(report):
        yield f"<property{_render_attribute('name', name)}{_render_attribute('value', value)}/>\n"
    yield "</properties>\n"
    for _, items_of_case in groupby(items, key=lambda item: item.place):
        yield _render_case(list(items_of_case), suite)
    yield "</testsuite>\n</testsuites>\n"


def _list_properties(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the properties of the suite, each with its name."""
    about = report.about
    texts = {"run": about.id, "status": about.status, "dataset": about.dataset, "judge": about.judge}
    texts |= {"adjudge": about.adjudge}
    yield from ((f"adjudge.{name}", value) for name, value in texts.items() if value)
    if report.passed.rate is not None:
        yield "adjudge.passed", f"{report.passed.rate:.6f}"
    if report.own is not None:
        yield "adjudge.own_criteria", str(report.own.criteria)
        yield "adjudge.threshold_below_the_run", str(report.own.below)
    for number, rubric in enumerate(report.rubrics[:10], 1):
        yield (
            f"adjudge.rubric.{number}",
            f"{format_rubric(rubric)}: needs {format_score(rubric.threshold)}, {rubric.cases} cases",
        )
    for number, change in enumerate(list_model_changes(report), 1):
        value = "".join(part if isinstance(part, str) else repr(part.text) for part in change)
        yield f"adjudge.model_change.{number}", value


def _format_time(report: Report) -> str:
    """Format the attribute with the seconds that all judgements took; empty where that is not known."""
    if report.durations is None:
        return ""
    return _render_attribute("time", f"{report.durations.mean * report.durations.count / 1000:.3f}")


def _render_case(items: Sequence[RunItem], suite: str) -> str:
    """Render a case with all its judgements as a test: passed, failed, or, if it is undecided, in error."""
    case = items[0].case
    outcome = find_worst_outcome([item.result.outcome for item in items])
    times = [item.result.duration_ms for item in items]
    seconds = sum(time for time in times if math.isfinite(time)) / 1000
    group = case.group if case.group is not None else suite
    attributes = f"{_render_attribute('classname', group)}{_render_attribute('name', case.id)}"
    attributes += _render_attribute("time", f"{seconds:.3f}")
    if outcome == "passed":
        return f"<testcase{attributes}/>\n"
    worst = make_shown_result(next(item.result for item in items if item.result.outcome == outcome))
    kind = "failure" if outcome == "failed" else "error"
    details = _render_attribute("type", worst.undecided_because or outcome)
    details += _render_attribute("message", format_verdict(worst))
    body = html.escape(clean(_explain_case(worst, items)), quote=False)
    return f"<testcase{attributes}><{kind}{details}>{body}</{kind}></testcase>\n"


def _explain_case(worst: ShownResult, items: Sequence[RunItem]) -> str:
    """Explain in lines why a case did not pass: what its worst judgement says, and how many of several passed."""
    lines = [line for line in (worst.detail, worst.reasoning) if line]
    for criterion in worst.criteria:
        score, needed = format_distinct(criterion.score, criterion.threshold)
        score = "no score" if criterion.score is None else score
        needs = f", needs {needed}" if criterion.threshold is not None else ""
        lines.append(
            f"{describe_pass_mark(criterion)} {criterion.name}: {score}{needs}; {criterion.reasoning}".lstrip()
        )
    lines += [f"{severity}: {name}: {message}" for name, severity, message in worst.rules]
    lines += [f"{seat.judge}: {seat.outcome}; {seat.remark}" for seat in worst.seats]
    if len(items) > 1:
        passed = sum(item.result.outcome == "passed" for item in items)
        lines.append(f"{passed} of {len(items)} judgements passed")
    return "\n".join(lines)


def _render_attribute(name: str, text: str) -> str:
    """Render an attribute of an element, with a space before it; the text is escaped and cut to 1,000 characters."""
    # What ``clean`` leaves is valid in XML 1.0: controls, surrogates and what is no character become a dot.
    return f' {name}="{html.escape(clean(cut(text, 1000), keep_lines=False), quote=True)}"'
