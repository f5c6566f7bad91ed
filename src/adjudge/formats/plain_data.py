"""Conversion of any value to plain data that JSON can hold.

Content is copied, with limits on its size and depth, in ``content.py`` (``copy_plain``).

A judgement has been paid for when it is written down, and its metadata and value may be objects of any class. So
writing one never fails for their sake: a value that JSON has no form for is written as text.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from adjudge.formats.json import MOST_DEPTH
from adjudge.formats.json_size import MOST_WRITTEN, measure_excess
from adjudge.formats.text import clean

_CONTAINERS = (dict, list, tuple, set, frozenset, Mapping)  # ``isinstance`` is slow for Mapping, so it comes last

AS_IS = frozenset((str, int, bool, type(None)))
"""Types whose values are plain data already; nearly all values are of these."""

_LEAVES = (str, int, float, datetime, type(None))

_UNREADABLE = object()
"""The members of an object that raises when it is asked for them."""


def to_plain(value: Any) -> Any:
    """Convert a value to dictionaries, lists, texts, numbers, booleans and ``None``.

    NaN and the infinities become ``"nan"``, ``"inf"`` and ``"-inf"``; what nests deeper than 200 levels, comes to more
    than 20,000,000 characters, or cannot be taken apart, becomes a text that says so.
    """
    kind = type(value)
    if kind in AS_IS or (kind is float and math.isfinite(value)):
        return value
    if measure_excess(value) == "long":  # before anything is copied: an object held many times is written each time
        return _render_placeholder(value, f"more than {MOST_WRITTEN:,} characters")
    return _copy_plain(value, 0)


def _copy_plain(value: Any, depth: int) -> Any:
    """Copy a value and all its members as plain data; ``depth`` is the number of containers around it."""
    kind = type(value)
    if kind in AS_IS or (kind is float and math.isfinite(value)):  # nearly every value, so it is checked first
        return value
    if getattr(kind, "writes_flat", False) is True:  # a record whose ``to_dict`` gives plain data already
        return value.to_dict()
    container = value if isinstance(value, _CONTAINERS) else _convert_level(value)
    if not isinstance(container, _CONTAINERS):  # not a container, so it is plain data now
        return container
    if depth >= MOST_DEPTH:  # a value that contains itself would never end
        return _render_placeholder(value, f"nested more than {MOST_DEPTH} levels deep")
    if isinstance(container, dict | Mapping):
        return {
            key if type(key) is str else str(key): child if type(child) in AS_IS else _copy_plain(child, depth + 1)
            for key, child in container.items()
        }
    return [child if type(child) in AS_IS else _copy_plain(child, depth + 1) for child in container]


def _convert_level(value: Any) -> Any:
    """Convert one level of a value that is no container: an object becomes a mapping or list of its members.

    A value without members becomes plain data, and an object whose members cannot be read a text that says so.
    """
    if isinstance(value, _LEAVES):
        return _write_leaf(value)
    try:
        members = _read_members(value)
    except (TypeError, ValueError, RecursionError):
        members = _UNREADABLE
    if isinstance(members, _CONTAINERS):
        return members
    if isinstance(members, _LEAVES):
        return _write_leaf(members)
    # An object that converts to a further object is not followed, because it may convert to itself.
    return _render_placeholder(value, "cannot be written as plain data")


def _write_leaf(value: Any) -> Any:
    """Write a value without members as JSON can hold it: NaN and the infinities, and times, as text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(float(value))
    return value.isoformat() if isinstance(value, datetime) else value


def _read_members(value: Any) -> Any:
    """Return the members of an object, or the value that it converts itself to, one level deep."""
    for method in ("to_dict", "model_dump"):
        if hasattr(value, method):
            return getattr(value, method)()
    kind = type(value)
    # Only one level, so that the caller can count the depth: msgspec would convert all levels at once, in C.
    if dataclasses.is_dataclass(value) or hasattr(kind, "__attrs_attrs__"):
        names = [attribute.name for attribute in getattr(kind, "__attrs_attrs__", None) or dataclasses.fields(value)]
        return {name: getattr(value, name) for name in names}
    if hasattr(kind, "__struct_fields__"):
        config = kind.__struct_config__
        pairs = zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True)
        tag = {config.tag_field: config.tag} if config.tag is not None else {}
        return tag | {encoded_name: getattr(value, name) for encoded_name, name in pairs}
    import msgspec

    return msgspec.to_builtins(value, enc_hook=str)


def _render_placeholder(value: object, reason: str) -> str:
    """Write the text that replaces a value which cannot be copied."""
    return clean(f"<{type(value).__name__}: {reason}>", keep_lines=False)


def encode(plain: Any) -> bytes:
    """Encode plain data as JSON."""
    import msgspec

    # Half a surrogate pair has no UTF-8. It may be in content that was judged, so it is kept, as an escape.
    try:
        return msgspec.json.encode(plain)
    except UnicodeEncodeError:
        return json.dumps(plain).encode()


def digest_description(described: Mapping[str, Any] | None) -> str | None:
    """Compute the SHA-256 of plain data, in hexadecimal."""
    return None if described is None else hashlib.sha256(encode(to_plain(described))).hexdigest()
