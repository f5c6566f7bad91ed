"""What was judged is what goes on: for guards, and for whatever else judges a value that somebody else may hold too.

A judge takes seconds and a person hours, and meanwhile other tasks and threads can change a list that was handed in.
So what is judged is a copy, or is looked at again before it is used; what is not the same any more never runs.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

from adjudge.errors import UsageError
from adjudge.formats.extent import MOST_WRITTEN, find_excess
from adjudge.formats.json import MOST_DEPTH

_IMAGE_PARTS = {"image", "image_url", "input_image", "input_audio", "audio", "file", "input_file", "document", "video"}

_BINARY = (bytes, bytearray, memoryview)


def content_text(content: Any, *, what: str = "content") -> str:
    """The text a judge sees for some content.

    Text stays as it is. An object with ``.output`` stands for that output. Any JSON value, dataclass, pydantic
    model, msgspec Struct and list of chat messages becomes indented JSON. Raises ``UsageError`` for binary data,
    images, text that is not valid Unicode, what nests deeper than 200 levels and what comes to more than 20,000,000
    characters.
    """
    return write_content(content, what=what)[0]


def write_content(content: Any, *, what: str = "content") -> tuple[str, bool]:
    """As ``content_text``, and whether that text is the JSON of a value that is none."""
    if isinstance(content, str):
        return _check_text(content, what), False
    if isinstance(content, _BINARY):
        raise UsageError(f"the {what} is binary ({len(content)} bytes); decode it to text first")
    check_extent(content, what)
    try:
        plain = _to_plain(content, what)
    except RecursionError:  # a program may have lowered its limit
        raise _too_deep(what) from None
    if isinstance(plain, str):
        return _check_text(plain, what), False
    _refuse_images(plain, what)
    try:
        return _check_text(json.dumps(plain, ensure_ascii=False, indent=2, allow_nan=False), what), True
    except (ValueError, TypeError, RecursionError) as error:
        raise UsageError(f"the {what} cannot be written as JSON ({error}); hand in text or plain JSON values") from None


def digest_text(text: str) -> str:
    """SHA-256 of a text's UTF-8 bytes, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def fence(label: str, text: str, token: str) -> str:
    """A piece of data between its fence lines, and an empty line after them."""
    return f"<<{label} {token}>>\n{text}\n<<end {label} {token}>>\n\n"


def check_size(size: int, limit: int, *, model: str) -> None:
    """Raise ``UsageError`` when a question is longer than a model's limit; nothing is ever cut silently."""
    if size > limit:
        raise UsageError(
            f"the question is {size:,} characters long and {model!r} takes {limit:,}; "
            "shorten the content or judge it in parts"
        )


def _check_text(text: str, what: str) -> str:
    if text.isascii() and "\x00" not in text:  # by far the most, and known without a look at each character
        return text
    if "\x00" in text:
        raise UsageError(f"the {what} holds a NUL character at {text.index(chr(0))}, so it looks binary; hand in text")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"the {what} is not valid Unicode: a lone surrogate at character {error.start}; "
            "decode it with errors='replace' first"
        ) from None
    return text


def _to_plain(content: Any, what: str, depth: int = 0) -> Any:
    if content is None or isinstance(content, str | bool | int | float):
        return content
    if isinstance(content, _BINARY):
        raise UsageError(f"the {what} holds binary data ({len(content)} bytes); decode it to text first")
    if depth >= MOST_DEPTH:  # what recurses in C would end a process whose recursion limit was raised
        raise _too_deep(what)
    if isinstance(content, Mapping):
        return _list_members(content, what, depth + 1)
    if isinstance(content, Sequence):
        return [_to_plain(item, what, depth + 1) for item in content]
    if isinstance(content, set | frozenset):  # in one order, or its digest would differ from process to process
        return sorted([_to_plain(item, what, depth + 1) for item in content], key=repr)
    # What an object stands for is as deep as the object; the count goes on, since it may stand for itself.
    return _to_plain(_open_object(content, what), what, depth + 1)


def _list_members(content: Mapping[Any, Any], what: str, depth: int) -> dict[str, Any]:
    if type(content) is not dict:
        _refuse_hidden(content, what)
    found = {str(key): _to_plain(item, what, depth) for key, item in content.items()}
    if len(found) != len(content):
        raise UsageError(f"the {what} has two keys that are written alike, like 1 and '1'; make all of them text")
    return found


def _refuse_hidden(content: Mapping[Any, Any], what: str) -> None:
    """Refuse a form or query, as web frameworks have them, that shows one of the values it holds under a key."""
    for name in ("getlist", "getall"):
        list_values: Any = getattr(content, name, None)
        if not callable(list_values):
            continue
        for key in content:
            # Else a judge would pass the value that is shown, and the program behind it use another.
            if len(list_values(key)) > 1:
                raise UsageError(
                    f"the {what} holds several values under one key, of which only one would be judged; "
                    "hand in a dictionary of lists"
                )


def _open_object(content: Any, what: str) -> Any:
    """What an object stands for: its output, or its members, which are looked at next."""
    if hasattr(content, "output"):
        return content.output
    if hasattr(content, "model_dump"):
        return _dump_model(content, what)
    if hasattr(content, "getbands") or hasattr(content, "tobytes"):
        raise UsageError(f"the {what} is an image or array ({type(content).__name__}); only text and JSON are judged")
    import msgspec

    try:
        # Bytes are kept, for the next look to refuse: as base64 they would be judged as if they were text.
        return msgspec.to_builtins(content, builtin_types=_BINARY)
    except (TypeError, ValueError):
        name = type(content).__name__
        raise UsageError(f"the {what} is a {name}, which is not text and not a JSON value; convert it first") from None


def check_extent(value: object, what: str) -> None:
    """Raise ``UsageError`` for a value that comes to too much, or nests too deeply, to be written as JSON.

    Looked at before anything is copied or converted: what holds one object many times is written out each time.
    """
    excess = find_excess(value)
    if excess == "long":
        raise UsageError(
            f"the {what} holds itself, or comes to more than {MOST_WRITTEN:,} characters as JSON, where an object that "
            "it holds several times is written each time; hand in less, or a text"
        )
    if excess == "deep":
        raise _too_deep(what)


def _too_deep(what: str) -> UsageError:
    return UsageError(f"the {what} holds itself, or nests too deeply to be shown; hand in text")


def _dump_model(content: Any, what: str) -> Any:
    try:
        return content.model_dump(mode="json")
    except ValueError as error:  # bytes that are not UTF-8, for one
        said = " ".join(str(error).split())[:200]
        raise UsageError(f"the {what} is a {type(content).__name__} that cannot be written as JSON ({said})") from None


def _refuse_images(plain: Any, what: str) -> None:
    messages = plain if isinstance(plain, list) else [plain]
    for message in messages:
        parts = message.get("content") if isinstance(message, dict) and "role" in message else None
        for part in parts if isinstance(parts, list) else []:
            kind = part.get("type") if isinstance(part, dict) else None
            if isinstance(kind, str) and kind in _IMAGE_PARTS:  # it may be a list, which no set can be asked for
                raise UsageError(f"the {what} holds a message part of type {kind!r}; only text is judged")


def copy_plain(value: Any) -> Any:
    """A copy of dictionaries, lists and tuples, nested as they are; anything else as it is."""
    return _copy(value, {}, 0)


def _copy(value: Any, done: dict[int, Any], depth: int) -> Any:
    kind = type(value)  # not isinstance: a type of somebody's own may hold more than its members
    if kind not in (dict, list, tuple) or depth >= MOST_DEPTH:
        return value
    if id(value) in done:  # what holds itself twice would otherwise double the work with every level
        return done[id(value)]
    if kind is tuple:
        return done.setdefault(id(value), tuple([_copy(item, done, depth + 1) for item in value]))
    made: Any = kind()
    done[id(value)] = made
    if kind is dict:
        made.update({key: _copy(item, done, depth + 1) for key, item in list(value.items())})
    else:
        made += [_copy(item, done, depth + 1) for item in list(value)]
    return made


def has_changed(judged: str | None, write: Callable[[], str]) -> bool:
    """Whether what was judged, by the digest of its text, is not what ``write`` writes now.

    What cannot be written, or was never read, cannot be compared, and counts as changed.
    """
    try:
        return judged is None or digest_text(write()) != judged
    except (Exception, SystemExit):  # noqa: BLE001 - an object of anybody's may raise anything when it is opened
        return True


def call_unchanged(function: Callable[..., Any], bound: inspect.BoundArguments, refuse: Callable[[], None]) -> Any:
    """Call a function whose arguments were judged; ``refuse`` raises where they are not the same any more.

    The body of a generator, or of a coroutine that somebody awaits later, has not begun when the call returns, so it is
    looked at again when it does begin.
    """
    said = function(*bound.args, **bound.kwargs)
    if inspect.isgenerator(said) and inspect.getgeneratorstate(said) == inspect.GEN_CREATED:
        return _begin_generator(said, refuse)
    if inspect.iscoroutine(said) and inspect.getcoroutinestate(said) == inspect.CORO_CREATED:
        return _begin_coroutine(said, refuse)
    return said


def _begin_generator(said: Generator[Any, Any, Any], refuse: Callable[[], None]) -> Generator[Any, Any, Any]:
    refuse()
    return (yield from said)


async def _begin_coroutine(said: Any, refuse: Callable[[], None]) -> Any:
    try:
        refuse()
    except BaseException:
        said.close()  # or it would warn that nobody awaited it
        raise
    return await said
