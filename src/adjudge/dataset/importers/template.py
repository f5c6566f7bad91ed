"""Texts with ``{{ variables }}`` as suites write them: names in braces, and nothing of a template language.

The value that replaces a variable is decided in each importer (``promptfoo.py``: ``_fill_reference``).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from adjudge.errors import UsageError
from adjudge.formats.text import quote

_VARIABLE = re.compile(r"\{\{\s*([A-Za-z_]\w*(?:\.\w+)*)\s*\}\}", re.ASCII)

_LANGUAGE = ("{{", "{%", "{#")
"""The beginning of a part of a template language that is more than a name: a filter, a condition, a comment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A name in braces."""

    name: str
    """With its dots, as it is written: ``item.question``."""


Part = str | Variable


def parse_template(text: str) -> tuple[Part, ...]:
    """Parse a text into plain texts and the variables between them; raise ``UsageError`` for anything more.

    Filters, conditions, loops and calls are refused and never evaluated: a suite is data, and what its own tool would
    make of them is not known here.
    """
    parts: list[Part] = []
    end = 0
    for match in _VARIABLE.finditer(text):
        parts += [text[end : match.start()], Variable(name=match[1])]
        end = match.end()
    parts.append(text[end:])
    if any(sign in part for part in parts if isinstance(part, str) for sign in _LANGUAGE):
        raise UsageError(f"the template {quote(text)} holds more than names of variables; write its text out")
    return tuple(part for part in parts if part != "")


def is_template(text: str) -> bool:
    """Return whether a text has a variable in braces, or another sign of a template language."""
    return any(sign in text for sign in _LANGUAGE)


def fill_template(parts: tuple[Part, ...], fill: Callable[[str], str]) -> str:
    """Join the parts of a template to a text, with ``fill(name)`` in place of each variable."""
    return "".join(part if isinstance(part, str) else fill(part.name) for part in parts)


def find_only_variable(parts: tuple[Part, ...]) -> str | None:
    """Find the name of the variable that is all of a text, but for blanks around it; ``None`` for any other text."""
    names = [part.name for part in parts if isinstance(part, Variable)]
    is_rest_blank = all(not part.strip() for part in parts if isinstance(part, str))
    return names[0] if is_rest_blank and len(names) == 1 else None
