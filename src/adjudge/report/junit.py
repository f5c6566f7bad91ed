"""A run as JUnit XML: a test case for each case, whatever their number."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from adjudge.formats.text import clean
from adjudge.report.cases import ShownResult, cut, find_worst, show_result
from adjudge.report.format import list_model_changes, say_verdict
from adjudge.report.report import Report
from adjudge.runs.item import RunItem


def write_junit(report: Report, items: Iterable[RunItem]) -> Iterator[str]:
    """The lines of a JUnit file; ``items`` are those that ``report`` is of, in the same order.

    A case that failed is a failure, one that is undecided an error; of one that is judged repeatedly, the worst
    judgement counts.
    """
    counts = report.case_outcomes
    numbers = {"tests": report.cases, "failures": counts["failed"], "errors": counts["undecided"], "skipped": 0}
    said = "".join([_write_attribute(name, str(number)) for name, number in numbers.items()])
    suite = report.about.rubric or report.about.dataset or "adjudge"
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield f'<testsuites name="adjudge"{said}>\n'
    yield f"<testsuite{_write_attribute('name', suite)}{said}{_write_time(report)}>\n<properties>\n"
    for name, value in _list_properties(report):
        yield f"<property{_write_attribute('name', name)}{_write_attribute('value', value)}/>\n"
    yield "</properties>\n"
    for _, together in groupby(items, key=lambda item: item.place):
        yield _write_case(list(together), suite)
    yield "</testsuite>\n</testsuites>\n"


def _list_properties(report: Report) -> Iterator[tuple[str, str]]:
    about = report.about
    named = {"run": about.id, "status": about.status, "dataset": about.dataset, "judge": about.judge}
    named |= {"adjudge": about.adjudge}
    yield from ((f"adjudge.{name}", said) for name, said in named.items() if said)
    if report.passed.rate is not None:
        yield "adjudge.passed", f"{report.passed.rate:.6f}"
    for place, said in enumerate(list_model_changes(report), 1):
        yield f"adjudge.model_change.{place}", said


def _write_time(report: Report) -> str:
    if report.durations is None:
        return ""
    return _write_attribute("time", f"{report.durations.mean * report.durations.count / 1000:.3f}")


def _write_case(items: Sequence[RunItem], suite: str) -> str:
    case = items[0].case
    outcome = find_worst([item.result.outcome for item in items])
    times = [item.result.duration_ms for item in items]
    seconds = sum(time for time in times if math.isfinite(time)) / 1000
    group = case.group if case.group is not None else suite
    said = f"{_write_attribute('classname', group)}{_write_attribute('name', case.id)}"
    said += _write_attribute("time", f"{seconds:.3f}")
    if outcome == "passed":
        return f"<testcase{said}/>\n"
    worst = show_result(next(item.result for item in items if item.result.outcome == outcome))
    kind = "failure" if outcome == "failed" else "error"
    about = _write_attribute("type", worst.undecided_because or outcome)
    about += _write_attribute("message", say_verdict(worst))
    body = html.escape(clean(_explain(worst, items)), quote=False)
    return f"<testcase{said}><{kind}{about}>{body}</{kind}></testcase>\n"


def _explain(worst: ShownResult, items: Sequence[RunItem]) -> str:
    lines = [line for line in (worst.detail, worst.reasoning) if line]
    for item in worst.criteria:
        score = "no score" if item.score is None else f"{item.score:.2f}"
        needs = f", needs {item.threshold:.2f}" if item.threshold is not None else ""
        lines.append(f"{'pass' if item.passed else 'fail'} {item.name}: {score}{needs}; {item.reasoning}")
    lines += [f"{severity}: {name}: {message}" for name, severity, message in worst.rules]
    lines += [f"{seat.judge}: {seat.outcome}; {seat.said}" for seat in worst.seats]
    if len(items) > 1:
        passed = sum(item.result.outcome == "passed" for item in items)
        lines.append(f"{passed} of {len(items)} judgements passed")
    return "\n".join(lines)


def _write_attribute(name: str, text: str) -> str:
    # What ``clean`` leaves is valid in XML 1.0: controls, surrogates and what is no character become a dot.
    return f' {name}="{html.escape(clean(cut(text, 1000), keep_lines=False), quote=True)}"'
