"""HTML out of parts, with one rule: what is not ``Safe`` is text, and is escaped.

Nothing of a report is written by hand around a value, so nothing can be forgotten: a text that was judged, a name from
a file or a judge's words cannot become an element, an attribute or an entity.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Union

from adjudge._display import clean

_EMPTY = {"br", "input", "line", "meta", "rect"}


class Safe(str):
    """HTML that was made here."""

    __slots__ = ()


Part = Union[str, None, Iterable["Part"]]  # noqa: UP007 - it refers to itself
Value = str | int | float | bool | None


def tag(name: str, /, *parts: Part, **attributes: Value) -> Safe:
    """An element. ``class_`` is ``class``, ``aria_label`` is ``aria-label``; ``None`` and false leave one out."""
    said = "".join([_write_attribute(key, value) for key, value in attributes.items()])
    if name in _EMPTY:
        return Safe(f"<{name}{said}>") if name in {"br", "input", "meta"} else Safe(f"<{name}{said}/>")
    return Safe(f"<{name}{said}>{join(parts)}</{name}>")


def join(parts: Part) -> Safe:
    """Parts, one after the other."""
    if parts is None:
        return Safe()
    if isinstance(parts, Safe):
        return parts
    if isinstance(parts, str):
        return Safe(html.escape(clean(parts), quote=True))
    return Safe("".join([join(part) for part in parts]))


def _write_attribute(key: str, value: Value) -> str:
    name = key.removesuffix("_").replace("_", "-")
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    said = f"{value:.4g}" if isinstance(value, float) else str(value)
    return f' {name}="{html.escape(clean(said, keep_lines=False), quote=True)}"'
