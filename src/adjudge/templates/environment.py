"""The Jinja environment of all templates: the only way in which text becomes HTML.

Everything that a page shows was written by a model, or by somebody who wants to pass, so the environment is strict:
every text is escaped and shown without invisible characters, an unknown name is an error, and the filters that mark a
text as HTML do not exist. So no template can write a text as HTML, and tests check that none switches escaping off.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from adjudge.formats.blanks import describe_blanks, split_blanks, split_hidden
from adjudge.formats.numbers import NOTHING, format_beside, format_decimal, format_dollars, format_rate, format_score
from adjudge.formats.text import clean
from adjudge.templates import figures
from adjudge.templates.icons import ICONS, STATES
from adjudge.templates.opened_parts import is_long

if TYPE_CHECKING:
    from jinja2 import Environment

_FILTERS = {
    "count": figures.format_count,
    "rate": format_rate,
    "limits": figures.format_interval,
    "share": figures.format_share,
    "score": format_score,
    "beside": format_beside,
    "decimal": format_decimal,
    "duration": figures.format_duration,
    "dollars": format_dollars,
    "number": figures.format_number,
    "size": figures.format_size,
    "moment": figures.format_moment,
    "day": figures.format_day,
    "clock": figures.format_clock,
    "left": figures.format_left,
    "short": figures.format_short,
    "minute": figures.format_minute,
}

# Filters of Jinja that return HTML, or mark a text as HTML.
_REMOVED_FILTERS = ("safe", "escape", "e", "forceescape", "urlize", "xmlattr", "tojson", "striptags")


@cache
def make_environment(*packages: str) -> Environment:
    """Make the environment of all pages and reports, and of the ``templates`` folders of these ``packages``.

    Templates come out of installed packages alone. Raises ``ValueError`` if a package has no such folder.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=ChoiceLoader([PackageLoader("adjudge", "templates"), *[PackageLoader(name) for name in packages]]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=convert_output,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        cache_size=-1,
    )
    for name in _REMOVED_FILTERS:
        environment.filters.pop(name, None)
    filters: dict[str, Any] = {**_FILTERS, "segment": quote_segment, "stamp": format_stamp, "at": format_place}
    blanks: dict[str, Any] = {
        "split_blanks": split_blanks,
        "split_hidden": split_hidden,
        "describe_blanks": describe_marked_blanks,
        "unseen": count_unseen,
        "split_options": split_options,
        "is_long": is_long,
    }
    environment.filters.update(filters | blanks | {"pair": make_option})
    shapes = {name: Markup(drawn) for name, drawn in ICONS.items()}  # noqa: S704 - ours, and constant
    constants: dict[str, Any] = {"icons": shapes, "states": STATES, "NOTHING": NOTHING}
    environment.globals.update(constants)
    return environment


def convert_output(value: object) -> object:
    """Convert a value that a template writes: a text loses its invisible characters; whole numbers and HTML stay.

    Any other value raises ``TypeError``. It is a mistake in the template, which would show ``None`` or
    ``0.30000000000000004`` to readers.
    """
    if hasattr(value, "__html__"):
        return value
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if type(value).__name__.endswith("Undefined"):
        return value  # Jinja raises an error with the unknown name when it writes this
    raise TypeError(f"a template shows {value!r}, of type {type(value).__name__}; give it to a filter that says it")


def quote_segment(text: object) -> str:
    """Quote a text as one segment of a path, so that no id leads to another page or host."""
    quoted = quote(str(text), safe="")
    # Dots alone, as in "..", would lead to the folder above.
    return quoted.replace(".", "%2E") if not quoted.strip(".") else quoted


def format_stamp(moment: datetime) -> str:
    """Format a time as the ``datetime`` of a ``time`` element."""
    return moment.isoformat(timespec="seconds")


def format_place(number: float) -> str:
    """Format a coordinate or a length in an SVG drawing: at most three digits after the point, and no exponent."""
    return f"{number:.3f}".rstrip("0").rstrip(".") if number else "0"


def make_option(text: str) -> tuple[str, str]:
    """Make an option of a ``select`` element from a text: its value, and the text that is shown, which is the same."""
    return text, text


def describe_marked_blanks(texts: Iterable[str]) -> str:
    """Describe the white space that is marked in some texts, in words."""
    return describe_blanks(*texts)


_OPTION = re.compile(r"(?<![^\s'\"(\[{=|])(--?[A-Za-z0-9][\w-]{0,30})(?![\w-])")


def split_options(text: str) -> Iterator[tuple[str, bool]]:
    """Split a text at command-line options such as ``-rf``, and yield each part with whether it is an option.

    Pages keep an option in one line: browsers break lines after hyphens, and a reader of ``rm -`` at the end of a line
    can miss the ``rf`` below it.
    """
    # The pattern has one group, so every second part is an option.
    for index, part in enumerate(_OPTION.split(text)):
        if part:
            yield part, index % 2 == 1


def count_unseen(text: str) -> int:
    """Count the invisible characters of a text, which ``clean`` replaces; a page shows the code of each."""
    cleaned = clean(text)
    return 0 if cleaned == text else sum(shown != char for shown, char in zip(cleaned, text, strict=True))


@cache
def read_style() -> str:
    """Read the stylesheet, with the same line ends on every system: the security policy of reports holds its digest."""
    return files("adjudge.templates").joinpath("style.css").read_bytes().decode("utf-8")
