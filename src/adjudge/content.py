"""Content as plain data and as the text that a judge sees.

Content is copied once, where it enters, with a limit on its size. The copy is what is judged, recorded and handed on,
so nothing depends on what the program does to its own object meanwhile.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.agents.run import AgentRun
from adjudge.errors import UsageError
from adjudge.formats.json import MOST_DEPTH
from adjudge.formats.json_size import MOST_WRITTEN, measure_excess
from adjudge.panic import convert_panics

MEDIA_PARTS = {"image", "image_url", "input_image", "input_audio", "audio", "file", "input_file", "document", "video"}
"""Types of parts of a message that are an image, sound or file."""

_BINARY = (bytes, bytearray, memoryview)


def content_text(content: Any, *, label: str = "content") -> str:
    """Return the text a judge sees for some content.

    Text stays as it is. An object with ``.output`` stands for that output. Any JSON value, dataclass, pydantic
    model, msgspec Struct and list of chat messages becomes indented JSON. So does an agent's run, the whole of it; a
    judge is shown as much as the run's budget holds. Raises ``UsageError`` for binary data,
    images, text that is not valid Unicode, what nests deeper than 200 levels and what comes to more than 20,000,000
    characters.
    """
    return write_content(content, label=label)[0]


def write_content(content: Any, *, label: str = "content") -> tuple[str, bool]:
    """Return the text as ``content_text`` does, and whether it is the JSON of a value that is no text."""
    return write_plain(read_content(content, label=label), label=label)


def read_content(content: Any, *, label: str = "content") -> Any:
    """Copy content into plain data: text, numbers, booleans, ``None``, and lists and dictionaries of these.

    A run of an agent stays one, because rules read it and a judge is shown a part of it. Raises ``UsageError`` as
    ``content_text`` does.
    """
    if isinstance(content, str):
        return content
    if isinstance(content, _BINARY):
        raise UsageError(f"the {label} is binary ({len(content)} bytes); decode it to text first")
    check_extent(content, label)
    if isinstance(content, AgentRun):
        return content.copy()
    try:
        plain = _to_plain(content, label)
    except RecursionError:  # a program may have lowered its limit
        raise _make_depth_error(label) from None
    _refuse_images(plain, label)
    return plain


def write_plain(plain: Any, *, label: str = "content") -> tuple[str, bool]:
    """Return the text of what ``read_content`` copied, and whether it is the JSON of a value that is no text.

    Raises ``UsageError`` for what JSON does not have.
    """
    if isinstance(plain, str):
        return _check_text(plain, label), False
    if isinstance(plain, AgentRun):
        plain = plain.to_dict()
    try:
        return _check_text(json.dumps(plain, ensure_ascii=False, indent=2, allow_nan=False), label), True
    except (ValueError, TypeError, RecursionError) as error:
        raise UsageError(
            f"the {label} cannot be written as JSON ({error}); hand in text or plain JSON values"
        ) from None


def digest_text(text: str) -> str:
    """Return the SHA-256 of a text's UTF-8 bytes, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def check_size(size: int, limit: int, *, model: str) -> None:
    """Raise ``UsageError`` when a question is longer than a model's limit; nothing is ever cut silently."""
    if size > limit:
        raise UsageError(
            f"the question is {size:,} characters long and {model!r} takes {limit:,}; "
            "shorten the content or judge it in parts"
        )


def _check_text(text: str, label: str) -> str:
    """Return a text as it is. Raises ``UsageError`` if it holds a NUL character or a lone surrogate."""
    if text.isascii() and "\x00" not in text:  # a shortcut for most texts: ASCII has no surrogates
        return text
    if "\x00" in text:
        raise UsageError(f"the {label} holds a NUL character at {text.index(chr(0))}, so it looks binary; hand in text")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"the {label} is not valid Unicode: a lone surrogate at character {error.start}; replace it first"
        ) from None
    return text


def _to_plain(content: Any, label: str, depth: int = 0) -> Any:
    """Convert content to values that JSON has, at any depth; raise ``UsageError`` for a value that JSON has not."""
    if content is None or isinstance(content, str | bool | int | float):
        return content
    if isinstance(content, _BINARY):
        raise UsageError(f"the {label} holds binary data ({len(content)} bytes); decode it to text first")
    if depth >= MOST_DEPTH:  # JSON is written by recursive C code, which would crash where the limit was raised
        raise _make_depth_error(label)
    if isinstance(content, Mapping):
        return _convert_mapping(content, label, depth + 1)
    if isinstance(content, Sequence):
        return [_to_plain(member, label, depth + 1) for member in content]
    if isinstance(content, set | frozenset):  # in one order, or its digest would differ from process to process
        return sorted([_to_plain(member, label, depth + 1) for member in content], key=repr)
    # The depth grows although the content does not nest deeper: an object may be its own output, without end.
    return _to_plain(_unwrap_object(content, label), label, depth + 1)


def _convert_mapping(content: Mapping[Any, Any], label: str, depth: int) -> dict[str, Any]:
    """Convert a mapping to a dictionary with texts as keys, its values by ``_to_plain``.

    Raises ``UsageError`` for two keys that become the same text.
    """
    if type(content) is not dict:
        _refuse_repeated_keys(content, label)
    members = {str(key): _to_plain(member, label, depth) for key, member in content.items()}
    if len(members) != len(content):
        raise UsageError(f"the {label} has two keys that are written alike, like 1 and '1'; make all of them text")
    return members


def _refuse_repeated_keys(content: Mapping[Any, Any], label: str) -> None:
    """Raise ``UsageError`` for a multi-dictionary of a web framework (a form or query) with several values under a key.

    Reading it as a mapping shows only one of these values.
    """
    for name in ("getlist", "getall"):
        list_values: Any = getattr(content, name, None)
        if not callable(list_values):
            continue
        for key in content:
            # A judge would see the value that is shown, and the program might use another.
            if len(list_values(key)) > 1:
                raise UsageError(
                    f"the {label} holds several values under one key, of which only one would be judged; "
                    "hand in a dictionary of lists"
                )


def _unwrap_object(content: Any, label: str) -> Any:
    """Return what is judged of an object: its ``output``, or its members. The caller converts that in turn.

    Raises ``UsageError`` for an image, and for what is neither text nor JSON.
    """
    if hasattr(content, "output"):
        return content.output
    if hasattr(content, "model_dump"):
        return _dump_model(content, label)
    if hasattr(content, "getbands") or hasattr(content, "tobytes"):
        raise UsageError(f"the {label} is an image or array ({type(content).__name__}); only text and JSON are judged")
    import msgspec

    try:
        # Bytes stay bytes, which the caller refuses: as base64 they would be judged as if they were text.
        return msgspec.to_builtins(content, builtin_types=_BINARY)
    except (TypeError, ValueError):
        name = type(content).__name__
        raise UsageError(f"the {label} is a {name}, which is not text and not a JSON value; convert it first") from None


def check_extent(value: object, label: str) -> None:
    """Raise ``UsageError`` for a value that comes to too much, or nests too deeply, to be written as JSON.

    It is checked before anything is copied or converted, because an object that is held many times is written each
    time.
    """
    excess = measure_excess(value)
    if excess == "long":
        raise UsageError(
            f"the {label} holds itself, or comes to more than {MOST_WRITTEN:,} characters as JSON, where an object "
            "that it holds several times is written each time; hand in less, or a text"
        )
    if excess == "deep":
        raise _make_depth_error(label)


def _make_depth_error(label: str) -> UsageError:
    return UsageError(f"the {label} holds itself, or nests too deeply to be shown; hand in text")


def _dump_model(content: Any, label: str) -> Any:
    """Return a pydantic model as JSON values. Raises ``UsageError`` for one that cannot be written as JSON."""
    try:
        with convert_panics():
            return content.model_dump(mode="json")
    except ValueError as error:  # bytes that are not UTF-8, for one
        reason = " ".join(str(error).split())[:200]
        raise UsageError(
            f"the {label} is a {type(content).__name__} that cannot be written as JSON ({reason})"
        ) from None


def _refuse_images(plain: Any, label: str) -> None:
    """Raise ``UsageError`` for a chat message, alone or in a list, with a part that is an image, sound or file."""
    messages = plain if isinstance(plain, list) else [plain]
    for message in messages:
        parts = message.get("content") if isinstance(message, dict) and "role" in message else None
        for part in parts if isinstance(parts, list) else []:
            kind = part.get("type") if isinstance(part, dict) else None
            if isinstance(kind, str) and kind in MEDIA_PARTS:  # only a text: a list cannot be looked up in a set
                raise UsageError(f"the {label} holds a message part of type {kind!r}; only text is judged")


def copy_plain(value: Any) -> Any:
    """Copy dictionaries, lists and tuples, nested as they are, and runs; return anything else as it is."""
    if isinstance(value, AgentRun):
        return value.copy()
    return _copy_value(value, {}, 0)


def _copy_value(value: Any, copies: dict[int, Any], depth: int) -> Any:
    """Copy dictionaries, lists and tuples with all in them; any other value stays the same object.

    ``copies`` has the copy of each object that was met, by its ``id``: an object that is held twice is copied once.
    """
    kind = type(value)  # not isinstance: an instance of a subclass may hold more than its members
    if kind not in (dict, list, tuple) or depth >= MOST_DEPTH:
        return value
    if id(value) in copies:  # else an object that holds itself twice would double the work with every level
        return copies[id(value)]
    if kind is tuple:
        return copies.setdefault(id(value), tuple([_copy_value(member, copies, depth + 1) for member in value]))
    copied: Any = kind()
    copies[id(value)] = copied
    if kind is dict:
        copied.update({key: _copy_value(member, copies, depth + 1) for key, member in list(value.items())})
    else:
        copied += [_copy_value(member, copies, depth + 1) for member in list(value)]
    return copied
