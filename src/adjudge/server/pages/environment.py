"""The Jinja environment of the pages: that of reports, which pages show too, with filters for labels."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from adjudge.report.html import make_report_environment
from adjudge.server.pages.label_view import describe_judged, describe_value

if TYPE_CHECKING:
    from jinja2 import Environment, Template


def find_template(name: str) -> Template:
    """Find a template by the name of its file."""
    return _make_page_environment().get_template(name)


@cache
def _make_page_environment() -> Environment:
    """Make the environment of reports, with the templates of the pages and the filters that only pages need."""
    environment = make_report_environment("adjudge.server.pages")
    filters: dict[str, Any] = {"label_value": describe_value, "judged": describe_judged}
    environment.filters.update(filters)
    return environment
