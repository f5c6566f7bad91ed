"""What a run came to: numbers with their intervals, and the cases worth reading, failures first."""

from adjudge.report._about import About
from adjudge.report._html import write_html
from adjudge.report._junit import write_junit
from adjudge.report._markdown import write_markdown
from adjudge.report._shown import ShownCase, ShownResult
from adjudge.report._spread import Spread
from adjudge.report._summary import make_report
from adjudge.report._values import Report

__all__ = [
    "About",
    "Report",
    "ShownCase",
    "ShownResult",
    "Spread",
    "make_report",
    "write_html",
    "write_junit",
    "write_markdown",
]
