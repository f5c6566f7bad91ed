"""The environment of all templates: the one way in which text becomes HTML.

Everything that a page shows was written by a model, or by somebody who wants to pass, so the environment is strict by
construction: every text is escaped and shown without the characters that nobody sees, a name that is not known is an
error, and the filters that mark a text as HTML do not exist. A template therefore has no way to let a text through,
and the tests read all of them to see that none switches escaping off.
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
from adjudge.templates.opened import is_long

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

# They return HTML of what they are given, or mark it as such.
_REFUSED = ("safe", "escape", "e", "forceescape", "urlize", "xmlattr", "tojson", "striptags")


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
    for name in _REFUSED:
        environment.filters.pop(name, None)
    filters: dict[str, Any] = {**_FILTERS, "segment": quote_segment, "stamp": format_stamp, "at": format_place}
    blanks: dict[str, Any] = {
        "split_blanks": split_blanks,
        "split_hidden": split_hidden,
        "describe_blanks": describe_texts,
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
    """Convert a value that a template writes: text without unseen characters, a whole number, or HTML of a macro.

    Anything else is a mistake in the template, and shown as ``None`` or ``0.30000000000000004`` it would look like a
    figure: so it raises ``TypeError``.
    """
    if hasattr(value, "__html__"):
        return value
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if type(value).__name__.endswith("Undefined"):
        return value  # raises, with the name that is not known, when it is written
    raise TypeError(f"a template shows {value!r}, of type {type(value).__name__}; give it to a filter that says it")


def quote_segment(text: object) -> str:
    """Quote a text as one segment of a path, so that no id leads to another page or host."""
    quoted = quote(str(text), safe="")
    # A segment of dots alone would lead up.
    return quoted.replace(".", "%2E") if not quoted.strip(".") else quoted


def format_stamp(moment: datetime) -> str:
    """Format a time as the ``datetime`` of a ``time`` element."""
    return moment.isoformat(timespec="seconds")


def format_place(number: float) -> str:
    """Format a coordinate or length of a drawing: at most three digits after the point, and no exponent."""
    return f"{number:.3f}".rstrip("0").rstrip(".") if number else "0"


def make_option(text: str) -> tuple[str, str]:
    """Make an option of a choice from a text: its value, and what is shown."""
    return text, text


def describe_texts(texts: Iterable[str]) -> str:
    """Describe the white space that is marked in some texts, in words."""
    return describe_blanks(*texts)


_OPTION = re.compile(r"(?<![^\s'\"(\[{=|])(--?[A-Za-z0-9][\w-]{0,30})(?![\w-])")


def split_options(text: str) -> Iterator[tuple[str, bool]]:
    """Split a text at the options of commands, and say of each part whether it is one.

    Browsers break lines after hyphens, and a reader of ``rm -`` at the end of a line can miss the ``rf`` below it.
    """
    for place, part in enumerate(_OPTION.split(text)):
        if part:
            yield part, place % 2 == 1


def count_unseen(text: str) -> int:
    """Count the characters of a text that cannot be seen, so that a page shows the code of each."""
    cleaned = clean(text)
    return 0 if cleaned == text else sum(a != b for a, b in zip(cleaned, text, strict=True))


@cache
def read_style() -> str:
    """Read the stylesheet, with the line ends that it was written with on every system: its digest is in the policy."""
    return files("adjudge.templates").joinpath("style.css").read_bytes().decode("utf-8")
