"""A ledger in a file that anybody can check: one JSON object per line, with the very bytes that were hashed."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from adjudge.errors import LedgerError, UsageError
from adjudge.formats.files import open_regular
from adjudge.formats.text import clean
from adjudge.ledger.entry import COLUMNS, HASH, PAYLOAD, SCHEMA, SEQ, Head, Row
from adjudge.ledger.payload import MOST_BYTES
from adjudge.ledger.signature import find_check, open_check
from adjudge.ledger.verification import Chain, Verification, call_for_each

if TYPE_CHECKING:
    from adjudge.ledger.signature import PublicKey


_LONGEST = MOST_BYTES + 100_000
"""The longest line, in bytes: a payload and the members around it."""


_ERASED = b"null"
"""A payload that was erased; one that was not is an object."""


class Streams(Protocol):
    """The streams that can be exported."""

    def stream(self) -> Generator[Row]:
        """All rows in order."""
        ...


def write_export(store: Streams, path: str | os.PathLike[str]) -> Head:
    """Write all rows to a new file that its owner alone can read; the last one's head."""
    encode, line, raw = _tools()[:3]
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    except OSError as error:
        raise refuse_export(path, error) from None
    row: Row | None = None
    try:
        with os.fdopen(descriptor, "wb") as file:
            for row in store.stream():
                values: dict[str, Any] = dict(zip(COLUMNS, row, strict=True))
                values["payload"] = raw(_ERASED if row[PAYLOAD] is None else row[PAYLOAD])
                file.write(encode(line(schema=SCHEMA, **values)) + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except BaseException as error:
        Path(path).unlink(missing_ok=True)
        if isinstance(error, OSError):  # a disk that is full
            raise refuse_export(path, error) from None
        raise
    if row is None:
        Path(path).unlink(missing_ok=True)
        raise LedgerError("the ledger has lost its entries; there is nothing to export")
    return Head(seq=row[SEQ], hash=row[HASH])


def refuse_export(path: str | os.PathLike[str], error: OSError) -> UsageError:
    """Make the error for a file that an export cannot be written to."""
    return UsageError(f"cannot export to {os.fspath(path)}: {error.strerror}; name a new file")


def verify_export(
    path: str | os.PathLike[str],
    *,
    head: Head | str | os.PathLike[str] | None = None,
    public_key: PublicKey | None = None,
    each: Callable[[Row], object] | None = None,
) -> Verification:
    """Check an exported file as ``Ledger.verify`` checks the ledger, without it; every byte of the file counts.

    Raises ``UsageError`` when the file, the head or the key cannot be read at all.

    Args:
        path: The exported file.
        head: A ``Head`` that was kept elsewhere, to compare with.
        public_key: The key that entries must be signed with, in hexadecimal; by default the one that the ledger
            names.
        each: Called with the row of each entry, in order.
    """
    check = open_check(public_key) if public_key is not None else None
    chain = Chain(head=read_head(head), check=check, find_check=find_check)
    try:
        return chain.verify(_read_rows(path) if each is None else call_for_each(_read_rows(path), each))
    except OSError as error:
        raise UsageError(f"cannot read the export {os.fspath(path)}: {error.strerror}; name a file") from None
    except _BadLineError as error:
        return chain.break_off(str(error))


def read_head(head: Head | str | os.PathLike[str] | None) -> Head | None:
    """A pinned head: the value itself, its text, or a file that holds it.

    Raises ``UsageError`` where it is none of them.
    """
    if head is None or isinstance(head, Head):
        return head
    if isinstance(head, str) and not head.strip():
        raise UsageError("the head is empty; give SEQ:HASH, or a file that holds it")
    if isinstance(head, str) and (":" in head and head.partition(":")[0].isdigit()):
        return Head.parse(head)
    try:
        with open_regular(head) as file:
            return Head.parse(file.read(10_000).decode("utf-8", "replace"))
    except (OSError, ValueError) as error:
        if isinstance(error, UsageError):
            raise
        cause = getattr(error, "strerror", None) or "it is no path"
        raise UsageError(f"the head {clean(os.fspath(head)[:200])!r} cannot be read: {cause}; give SEQ:HASH") from None


class _BadLineError(Exception):
    """A line that no export of ours has."""


def _read_rows(path: str | os.PathLike[str]) -> Iterator[Row]:
    """Yield the rows of an export; raise for a line that an export would not have written so."""
    encode, _, _, decode = _tools()
    with open_regular(path) as file:
        while text := file.readline(_LONGEST):
            try:
                line = decode(text)
                written = encode(line) + b"\n"
            except (ValueError, RecursionError):
                raise _BadLineError("it is no line of an export") from None
            # What was decoded is written again and compared, so that no byte of the file goes unchecked: spaces,
            # members that are not ours, a member that stands there twice.
            if written != text or line.schema != SCHEMA:
                raise _BadLineError("it is not written as an export writes it")
            payload = bytes(line.payload)
            values = {name: getattr(line, name) for name in COLUMNS}
            values["payload"] = None if payload == _ERASED else payload
            yield tuple(values.values())  # type: ignore[misc]


@cache
def _tools() -> tuple[Any, Any, Any, Any]:
    """Return an encoder of lines, its type, a holder of bytes that are written as they are, and a decoder."""
    import msgspec

    types: dict[str, Any] = dict.fromkeys(COLUMNS, str)
    types |= {"seq": int, "payload": msgspec.Raw, "signature": str | None, "schema": str}
    line = msgspec.defstruct("Line", sorted(types.items()), forbid_unknown_fields=True, kw_only=True)
    return msgspec.json.Encoder().encode, line, msgspec.Raw, msgspec.json.Decoder(line).decode
