"""Typed values read from plain data or JSON by msgspec, safely from several threads."""

from __future__ import annotations

import threading
from typing import Any, TypeVar

T = TypeVar("T")

_LOCK = threading.Lock()

_READY: set[Any] = set()
"""Types that are prepared."""


def prepare_type(kind: Any) -> None:
    """Let msgspec build its description of a type before the type is used, once and in one thread at a time.

    msgspec 0.22 publishes the description of a dataclass before it is complete. A second thread that uses it then
    crashes the process with a segmentation fault; two first requests at the same time were enough.
    """
    if kind in _READY:
        return
    import msgspec

    with _LOCK:
        msgspec.json.Decoder(kind)  # builds the description
        _READY.add(kind)


def read_typed(data: Any, kind: type[T]) -> T:
    """Read an instance from plain data, every member of exactly its type; raises what ``msgspec.convert`` raises."""
    import msgspec

    prepare_type(kind)
    return msgspec.convert(data, kind)


def read_typed_json(body: bytes | str, kind: type[T]) -> T:
    """Read an instance from JSON; raises what ``msgspec.json.decode`` raises."""
    import msgspec

    prepare_type(kind)
    return msgspec.json.decode(body, type=kind)
