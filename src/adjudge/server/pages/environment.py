"""The templates of the pages, in the environment of reports, which pages show too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adjudge.report.html import make_report_environment

if TYPE_CHECKING:
    from jinja2 import Template


def find_template(name: str) -> Template:
    """Find a template by the name of its file."""
    return make_report_environment("adjudge.server.pages").get_template(name)
