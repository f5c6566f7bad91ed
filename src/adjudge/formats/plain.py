"""Values as plain data that JSON can hold, whatever they are.

A judgement has been paid for when it is written down, and its metadata and value are other people's. So writing one
never fails for what they hold: what JSON has no form for is written as its text.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from adjudge.formats.extent import MOST_WRITTEN, find_excess
from adjudge.formats.json import MOST_DEPTH
from adjudge.formats.text import clean

_HOLDERS = (dict, list, tuple, set, frozenset, Mapping)  # the one that is slow to ask for comes last

AS_IS = frozenset((str, int, bool, type(None)))
"""Types whose values are plain as they are: nearly everything there is."""

_LEAVES = (str, int, float, datetime, type(None))


def to_plain(value: Any) -> Any:
    """A value as dictionaries, lists, texts, numbers, booleans and ``None``.

    NaN and the infinities become ``"nan"``, ``"inf"`` and ``"-inf"``; what nests deeper than 200 levels, comes to more
    than 20,000,000 characters, or cannot be taken apart, becomes a text that says so.
    """
    kind = type(value)
    if kind in AS_IS or (kind is float and math.isfinite(value)):
        return value
    if find_excess(value) == "long":  # before anything is copied: an object held many times is written each time
        return _render_placeholder(value, f"more than {MOST_WRITTEN:,} characters")
    return _copy(value, 0)


def _copy(value: Any, depth: int) -> Any:
    kind = type(value)
    if kind in AS_IS or (kind is float and math.isfinite(value)):  # known without asking what it could be taken for
        return value
    if getattr(kind, "writes_flat", False) is True:  # holds nothing that could hold it, and has looked itself
        return value.to_dict()
    held = value if isinstance(value, _HOLDERS) else _open(value)
    if not isinstance(held, _HOLDERS):
        return held
    if depth >= MOST_DEPTH:  # in a value that holds itself there is always one more
        return _render_placeholder(value, f"nested more than {MOST_DEPTH} levels deep")
    if isinstance(held, dict | Mapping):
        return {
            key if type(key) is str else str(key): item if type(item) in AS_IS else _copy(item, depth + 1)
            for key, item in held.items()
        }
    return [item if type(item) in AS_IS else _copy(item, depth + 1) for item in held]


def _open(value: Any) -> Any:
    """What holds nothing, as JSON has it; an object as the mapping or list of what it holds."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(float(value))
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, _LEAVES):
        return value
    try:
        opened = _take_apart(value)
    except (TypeError, ValueError, RecursionError):
        opened = value
    if isinstance(opened, _HOLDERS):
        return opened
    # An object that stands for a further object is not followed: it may stand for itself.
    return (
        _open(opened) if isinstance(opened, _LEAVES) else _render_placeholder(value, "cannot be written as plain data")
    )


def _take_apart(value: Any) -> Any:
    for way in ("to_dict", "model_dump"):
        if hasattr(value, way):
            return getattr(value, way)()
    kind = type(value)
    # One level at a time, so that those below are counted: msgspec alone would descend to the end, in C.
    if dataclasses.is_dataclass(value) or hasattr(kind, "__attrs_attrs__"):
        names = [item.name for item in getattr(kind, "__attrs_attrs__", None) or dataclasses.fields(value)]
        return {name: getattr(value, name) for name in names}
    if hasattr(kind, "__struct_fields__"):
        config = kind.__struct_config__
        pairs = zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True)
        tag = {config.tag_field: config.tag} if config.tag is not None else {}
        return tag | {written: getattr(value, name) for written, name in pairs}
    import msgspec

    return msgspec.to_builtins(value, enc_hook=str)


def _render_placeholder(value: object, what: str) -> str:
    return clean(f"<{type(value).__name__}: {what}>", keep_lines=False)
