"""Reports as text: a document is made of each and drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from adjudge.measurement.measurement import Measurement
from adjudge.report.diff_document import make_diff_document
from adjudge.report.html import draw_html
from adjudge.report.markdown import draw_markdown
from adjudge.report.measurement_document import make_measurement_document
from adjudge.report.paired_cases import PairedCase
from adjudge.report.report import Report
from adjudge.report.run_diff import Diff
from adjudge.report.run_document import make_run_document

MOST_CASES = 20
"""Cases of a run in a comment, where nobody says how many."""

MOST_CHANGES = 50
"""Cases of a diff in a comment; it has room for about as many."""


def render_html(report: Report) -> str:
    """Render a report as the text of one HTML file.

    Args:
        report: The report of a run.
    """
    return draw_html(make_run_document(report))


def render_markdown(report: Report, *, most_cases: int = MOST_CASES, needed: float | None = None) -> str:
    """Render a report in at most 65,000 characters of GitHub's Markdown.

    Args:
        report: What is rendered.
        most_cases: How many cases are listed at most, those that failed first.
        needed: The share of the cases that must pass, from 0 to 1; ``None`` is none.
    """
    return draw_markdown(make_run_document(report, top=most_cases, needed=needed), mark="<!-- adjudge/report/1 -->")


def render_measurement_html(measurements: Sequence[Measurement]) -> str:
    """Render measurements as the text of one HTML file, complete without scripts.

    Args:
        measurements: The measurements, each shown in full.
    """
    return draw_html(make_measurement_document(measurements))


def render_measurement_markdown(measurements: Sequence[Measurement], *, most: int) -> str:
    """Render measurements as Markdown, with at most so many disagreements of each.

    Args:
        measurements: The measurements.
        most: The most disagreements of each.
    """
    return draw_markdown(make_measurement_document(measurements, top=most), mark="<!-- adjudge/measurement/1 -->")


def render_diff_html(diff: Diff, cases: Iterable[PairedCase]) -> str:
    """Render a diff as the text of one HTML file; ``cases`` are what ``pair_cases`` found."""
    return draw_html(make_diff_document(diff, cases))


def render_diff_markdown(diff: Diff, *, most_cases: int = MOST_CHANGES) -> str:
    """Render what changed as Markdown, with at most so many cases."""
    return draw_markdown(make_diff_document(diff, top=most_cases), mark="<!-- adjudge/diff/1 -->")
