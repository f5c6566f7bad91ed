"""Values as plain data that JSON can hold, whatever they are.

Content is copied, with limits on its size and depth, in ``content.py`` (``copy_plain``).

A judgement has been paid for when it is written down, and its metadata and value are other people's. So writing one
never fails for what they hold: what JSON has no form for is written as its text.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from adjudge.formats.extent import MOST_WRITTEN, find_excess
from adjudge.formats.json import MOST_DEPTH
from adjudge.formats.text import clean

_CONTAINERS = (dict, list, tuple, set, frozenset, Mapping)  # the one that is slow to ask for comes last

AS_IS = frozenset((str, int, bool, type(None)))
"""Types whose values are plain as they are: nearly everything there is."""

_LEAVES = (str, int, float, datetime, type(None))

_UNKNOWN = object()
"""Stands for what an object holds where it cannot be taken apart."""


def to_plain(value: Any) -> Any:
    """Convert a value to dictionaries, lists, texts, numbers, booleans and ``None``.

    NaN and the infinities become ``"nan"``, ``"inf"`` and ``"-inf"``; what nests deeper than 200 levels, comes to more
    than 20,000,000 characters, or cannot be taken apart, becomes a text that says so.
    """
    kind = type(value)
    if kind in AS_IS or (kind is float and math.isfinite(value)):
        return value
    if find_excess(value) == "long":  # before anything is copied: an object held many times is written each time
        return _render_placeholder(value, f"more than {MOST_WRITTEN:,} characters")
    return _copy_plain(value, 0)


def _copy_plain(value: Any, depth: int) -> Any:
    """Copy a value, and all that it holds, as plain data; ``depth`` values hold it."""
    kind = type(value)
    if kind in AS_IS or (kind is float and math.isfinite(value)):  # the quick way, for nearly everything
        return value
    if getattr(kind, "writes_flat", False) is True:  # a record whose ``to_dict`` gives plain data already
        return value.to_dict()
    container = value if isinstance(value, _CONTAINERS) else _open_level(value)
    if not isinstance(container, _CONTAINERS):  # a single value, which is plain now
        return container
    if depth >= MOST_DEPTH:  # in a value that holds itself there is always one more
        return _render_placeholder(value, f"nested more than {MOST_DEPTH} levels deep")
    if isinstance(container, dict | Mapping):
        return {
            key if type(key) is str else str(key): child if type(child) in AS_IS else _copy_plain(child, depth + 1)
            for key, child in container.items()
        }
    return [child if type(child) in AS_IS else _copy_plain(child, depth + 1) for child in container]


def _open_level(value: Any) -> Any:
    """Convert one level of a value that is no container: an object to the mapping or list of what it holds.

    A single value becomes plain, and an object that cannot be taken apart a text that says so.
    """
    if isinstance(value, _LEAVES):
        return _write_leaf(value)
    try:
        members = _take_apart(value)
    except (TypeError, ValueError, RecursionError):
        members = _UNKNOWN
    if isinstance(members, _CONTAINERS):
        return members
    if isinstance(members, _LEAVES):
        return _write_leaf(members)
    # An object that stands for a further object is not followed: it may stand for itself.
    return _render_placeholder(value, "cannot be written as plain data")


def _write_leaf(value: Any) -> Any:
    """Write a value that holds no others as JSON has it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(float(value))
    return value.isoformat() if isinstance(value, datetime) else value


def _take_apart(value: Any) -> Any:
    """Return what an object holds, or stands for, one level deep."""
    for method in ("to_dict", "model_dump"):
        if hasattr(value, method):
            return getattr(value, method)()
    kind = type(value)
    # One level at a time, so that those below are counted: msgspec alone would descend to the end, in C.
    if dataclasses.is_dataclass(value) or hasattr(kind, "__attrs_attrs__"):
        names = [attribute.name for attribute in getattr(kind, "__attrs_attrs__", None) or dataclasses.fields(value)]
        return {name: getattr(value, name) for name in names}
    if hasattr(kind, "__struct_fields__"):
        config = kind.__struct_config__
        pairs = zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True)
        tag = {config.tag_field: config.tag} if config.tag is not None else {}
        return tag | {written: getattr(value, name) for written, name in pairs}
    import msgspec

    return msgspec.to_builtins(value, enc_hook=str)


def _render_placeholder(value: object, reason: str) -> str:
    return clean(f"<{type(value).__name__}: {reason}>", keep_lines=False)


def encode(plain: Any) -> bytes:
    """Encode plain data as JSON."""
    import msgspec

    # Half a surrogate pair has no UTF-8; it was judged all the same, and is kept as it is written in a program.
    try:
        return msgspec.json.encode(plain)
    except UnicodeEncodeError:
        return json.dumps(plain).encode()


def digest_description(described: Mapping[str, Any] | None) -> str | None:
    """Compute the SHA-256 of plain data, in hexadecimal."""
    return None if described is None else hashlib.sha256(encode(to_plain(described))).hexdigest()
