"""A ledger in a file that anybody can check: one JSON object per line, with the very bytes that were hashed."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
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


_LONGEST_LINE = MOST_BYTES + 100_000
"""The longest line, in bytes: a payload and the members around it."""


_ERASED_PAYLOAD = b"null"
"""The payload of an exported entry that was erased; any other payload is a JSON object."""


class RowSource(Protocol):
    """A store whose rows can be exported."""

    def stream(self) -> Generator[Row]:
        """All rows in order."""
        ...


def write_export(store: RowSource, path: str | os.PathLike[str]) -> Head:
    """Write all rows to a new file that only its owner can read, one JSON object a line; return the ledger's head.

    Where that fails, the file is removed. Raises ``UsageError`` for a file that cannot be written, and ``LedgerError``
    for a ledger without entries.
    """
    line_format = _make_line_format()
    encode, make_line, make_raw = line_format.encode, line_format.make_line, line_format.make_raw
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    except OSError as error:
        raise refuse_export(path, error) from None
    row: Row | None = None
    try:
        with os.fdopen(descriptor, "wb") as file:
            for row in store.stream():
                values: dict[str, Any] = dict(zip(COLUMNS, row, strict=True))
                values["payload"] = make_raw(_ERASED_PAYLOAD if row[PAYLOAD] is None else row[PAYLOAD])
                file.write(encode(make_line(schema=SCHEMA, **values)) + b"\n")
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
    """Read a pinned head, given as the value itself, as its text, or as a file that holds it.

    Raises ``UsageError`` for anything else.
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
    """A line of a file that is not as an export writes it."""


def _read_rows(path: str | os.PathLike[str]) -> Iterator[Row]:
    """Yield the rows of an export. Raises ``_BadLineError`` for a line that is not exactly as an export writes it."""
    line_format = _make_line_format()
    with open_regular(path) as file:
        while text := file.readline(_LONGEST_LINE):
            try:
                line = line_format.decode(text)
                rewritten = line_format.encode(line) + b"\n"
            except (ValueError, RecursionError):
                raise _BadLineError("it is no line of an export") from None
            # What was decoded is encoded again and compared, so that every byte of the file is checked: spaces, unknown
            # members, a member that is there twice.
            if rewritten != text or line.schema != SCHEMA:
                raise _BadLineError("it is not written as an export writes it")
            payload = bytes(line.payload)
            values = {name: getattr(line, name) for name in COLUMNS}
            values["payload"] = None if payload == _ERASED_PAYLOAD else payload
            yield tuple(values.values())  # type: ignore[misc]


@dataclass(frozen=True, slots=True, kw_only=True)
class _LineFormat:
    """The functions that write and read the lines of an export."""

    encode: Callable[[Any], bytes]
    make_line: Callable[..., Any]
    """Makes a line of its members."""
    make_raw: Callable[[Any], Any]
    """Makes the value of a member from bytes, which are encoded as they are."""
    decode: Callable[[bytes], Any]


@cache
def _make_line_format() -> _LineFormat:
    """Make the functions that write and read the lines of an export, whose members are in the order of the alphabet."""
    import msgspec

    types: dict[str, Any] = dict.fromkeys(COLUMNS, str)
    types |= {"seq": int, "payload": msgspec.Raw, "signature": str | None, "schema": str}
    line_type: Any = msgspec.defstruct("Line", sorted(types.items()), forbid_unknown_fields=True, kw_only=True)
    return _LineFormat(
        encode=msgspec.json.Encoder().encode,
        make_line=line_type,
        make_raw=msgspec.Raw,
        decode=msgspec.json.Decoder(line_type).decode,
    )
