"""The templates of the pages, in one environment: everything is escaped, and a name that is missing is an error."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment, Template


@cache
def make_environment() -> Environment:
    """The environment of all pages."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("adjudge.server.pages", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def find_template(name: str) -> Template:
    """A template by the name of its file."""
    return make_environment().get_template(name)
