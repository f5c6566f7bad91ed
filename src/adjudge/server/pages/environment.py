"""The templates of the pages, in the one environment that reports use too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adjudge.templates.environment import make_environment

if TYPE_CHECKING:
    from jinja2 import Template


def find_template(name: str) -> Template:
    """A template by the name of its file."""
    return make_environment("adjudge.server.pages").get_template(name)
