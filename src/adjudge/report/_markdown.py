"""A report as Markdown for a comment on a pull request.

Whatever was judged, or written by a judge, stands in a code span and nowhere else: there it cannot be a heading, a
link, an image, HTML, a mention that writes to somebody, or a reference that closes an issue.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from adjudge._display import clean
from adjudge.report._format import (
    NOTHING,
    say_count,
    say_duration,
    say_interval,
    say_outcomes,
    say_rate,
    say_score,
    say_share,
)
from adjudge.report._notes import list_model_changes, list_notices, say_cost
from adjudge.report._shown import ShownCase, cut
from adjudge.report._values import Report

MOST_CHARACTERS = 65_000
"""GitHub takes 65,536 in a comment."""
MARK = "<!-- adjudge/report/1 -->"
"""The first line, by which a script finds its own comment to update it."""
MOST_CASES = 20


def write_markdown(report: Report, *, most_cases: int = MOST_CASES, needed: float | None = None) -> str:
    """A report in at most 65,000 characters of GitHub's Markdown; ``needed`` is the share that was asked for."""
    head = "\n\n".join(_list_sections(report, needed))
    foot = _write_foot(report)
    room = MOST_CHARACTERS - len(head) - len(foot) - 400  # what stands around the list
    return f"{MARK}\n{head}\n\n{_write_cases(report, most_cases, room)}{foot}\n"


def write_code(text: str, most: int = 120) -> str:
    """A text as a code span that it cannot leave, of one line, in a table too; a vertical bar is shown as ``¦``."""
    # A bar would end the cell, and with it the span, however it is escaped: GitHub splits rows before it reads spans.
    line = " ".join(clean(text, keep_lines=False).split()).replace("|", "¦")
    if not line:
        return NOTHING
    line = cut(line, most)
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def _list_sections(report: Report, needed: float | None) -> Iterator[str]:
    about = report.about
    asked = f", by the rubric {write_code(about.rubric)}" if about.rubric else ""
    wanted = f"; {say_rate(needed)} needed" if needed is not None else ""
    yield f"### {say_rate(report.passed.rate)} of {say_count(report.cases, 'case')} passed{wanted}"
    yield f"Judged: {write_code(about.dataset or 'a run')} by {write_code(about.judge or 'a judge', 200)}{asked}."
    yield f"{say_outcomes(report.outcomes)}. 95 % interval of the share: {say_interval(report.passed)}."
    for notice in list_notices(report):
        yield f"> {notice}"
    for notice in list_model_changes(report, write_code):
        yield f"> {notice}"
    if report.criteria:
        yield _write_table(
            ("criterion", "judged", "mean", "passed", "95 % interval", "needs"),
            [
                (
                    write_code(item.name, 80),
                    f"{item.passed.of:,}",
                    say_score(item.scores.mean if item.scores else None),
                    say_rate(item.passed.rate),
                    say_interval(item.passed),
                    NOTHING if item.threshold is None else f"{item.threshold:.2f}",
                )
                for item in report.criteria[:50]
            ],
        )
    yield from _list_more(report)


def _list_more(report: Report) -> Iterator[str]:
    if report.undecided_because:
        reasons = ", ".join(f"{name} {number:,}" for name, number in report.undecided_because.items())
        yield f"Undecided because: {reasons}."
    if report.pairs is not None:
        flips = say_share(report.pairs.flips)
        yield f"The first wins {say_share(report.pairs.win_rate)}; the orders disagree in {flips}."
        if report.pairs.labelled:
            yield f"Agrees with the label in {say_share(report.pairs.accuracy)}."
    if report.labels is not None:
        floor = say_rate(report.labels.always_passing.rate)
        yield f"Right by the labels: {say_share(report.labels.accuracy)}; {floor} if everything passed."
    if report.split is not None and report.split.count:
        yield f"Judges of the chain were split in {say_share(report.split)}."
    if report.repeats is not None:
        yield f"Judged again, the outcome differs in {say_share(report.repeats.flipped)}."


def _write_cases(report: Report, most: int, room: int) -> str:
    """Cases that did not pass, in a table that opens; as many as there is room for."""
    rest = report.case_outcomes["failed"] + report.case_outcomes["undecided"]
    rows: list[str] = []
    for case in [case for case in report.shown if case.outcome != "passed"][:most]:
        row = _write_row(_list_cells(case))
        room -= len(row) + 1
        if room < 0:
            break
        rows.append(row)
    if not rows:
        return ""
    head = _write_table(("case", "outcome", "score", "why"), [])
    of = f"{len(rows):,} of {say_count(rest, 'case')} that did not pass"
    return f"<details><summary>{of}</summary>\n\n{head}\n" + "\n".join(rows) + "\n\n</details>\n\n"


def _list_cells(case: ShownCase) -> tuple[str, ...]:
    worst = case.worst
    said = f"{case.outcome}: {worst.undecided_because}" if worst.undecided_because else str(case.outcome)
    return write_code(case.id, 80), said, say_score(worst.score), write_code(worst.why, 240)


def _write_foot(report: Report) -> str:
    time = f", median time {say_duration(report.durations.median)}" if report.durations is not None else ""
    return f"<sub>Cost: {say_cost(report)}{time}. Undecided is not passed.</sub>"


def _write_table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    return "\n".join([_write_row(columns), _write_row(("---",) * len(columns)), *map(_write_row, rows)])


def _write_row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"
