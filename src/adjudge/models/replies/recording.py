"""A recording: what a model answered, in a file with one JSON object per line (``adjudge/recording/1``).

It holds what was judged and what was replied, with the token masked, and never a key; it is created readable by its
owner alone.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from adjudge.errors import ModelError, UsageError
from adjudge.formats.files import check_regular
from adjudge.models.model import Model, Reply, Request
from adjudge.models.replies.key import describe_request, make_key
from adjudge.models.replies.row import RECORDING, Row, check_text, decode_row, describe_reply
from adjudge.models.wrapper import WrapperModel

LARGEST = 500_000_000
"""The largest recording that is read, in bytes; it is held in memory, several times that."""


class RecordingModel(WrapperModel):
    """A model whose replies are appended to a file; everything else is the model's own.

    Raises ``UsageError`` when the file cannot be written, before the first request is made.

    Args:
        model: The model that is asked: a ``Model`` or a function.
        path: The file that its replies are appended to.
    """

    def __init__(self, model: Model | Callable[..., Any], path: str | os.PathLike[str]) -> None:
        super().__init__(model)
        self.path = Path(path)
        self._lock = threading.Lock()
        self._is_ready = False

    def check(self) -> None:
        """Raise ``UsageError`` when the file cannot be written, and for what the model's own ``check`` finds."""
        self._prepare_file()
        super().check()

    async def complete(self, request: Request, /) -> Reply:
        """Ask the model and record its reply. Exceptions are not recorded.

        Args:
            request: The request that a judge makes.
        """
        self._prepare_file()
        described = describe_request(request)
        key = make_key(self.name, described)
        reply = await self.model.complete(request)
        self._append_row(_encode_row(self.name, key, described, request, reply))
        return reply

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} to {str(self.path)!r}>"

    def _make_around(self, model: Model) -> Self:
        """Return another model whose replies are appended to the same file."""
        return type(self)(model, self.path)

    def _prepare_file(self) -> None:
        """Make the file ready before the first row: create it, check that it can be written, and end its last line.

        Raises ``UsageError``.
        """
        if self._is_ready:
            return
        try:
            with self._lock:
                if self.path.exists():  # a pipe would wait for its reader, and the last byte is read
                    check_regular(self.path)
                descriptor = self._open_file()
                try:
                    # A run that was killed may have left half a line; a row glued to it would be lost with it.
                    if not _ends_with_newline(self.path):
                        os.write(descriptor, b"\n")
                finally:
                    os.close(descriptor)
        except OSError as error:
            raise UsageError(
                f"the recording {str(self.path)!r} cannot be written: {error.strerror}; name another file"
            ) from None
        self._is_ready = True

    def _append_row(self, row: bytes) -> None:
        """Append a row to the file. Raises ``ModelError`` where that fails, because a replay would lack the reply."""
        # In one write to a file opened for appending, so that rows of other threads and processes do not mix with it.
        try:
            with self._lock:
                descriptor = self._open_file()
                try:
                    written = os.write(descriptor, row)
                    while written < len(row):
                        written += os.write(descriptor, row[written:])
                finally:
                    os.close(descriptor)
        except OSError as error:
            raise ModelError(f"the reply could not be recorded in {str(self.path)!r}: {error.strerror}") from None

    def _open_file(self) -> int:
        """Open the file for appending, created for its owner alone if need be; return its descriptor."""
        return os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)


def _ends_with_newline(path: Path) -> bool:
    """Return whether a file ends with a whole line; an empty file does."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        if size == 0:
            return True
        file.seek(size - 1)
        return file.read(1) == b"\n"


def _encode_row(model: str, key: str, described: Mapping[str, Any], request: Request, reply: Reply) -> bytes:
    """Encode a reply and its request as a line of the file; members of the request that are ``None`` are left out.

    Raises ``ModelError`` for a reply that JSON cannot hold.
    """
    import msgspec

    row: dict[str, Any] = {"schema": RECORDING, "key": key}
    row |= {"case": request.case} if request.case is not None else {}
    row |= {"subject": request.subject} if request.subject is not None else {}
    row |= {"order": request.order} if request.order is not None else {}
    row |= {"attempt": request.attempt, "model": model, "request": described, "reply": describe_reply(request, reply)}
    try:
        return msgspec.json.encode(row) + b"\n"
    except (TypeError, UnicodeEncodeError) as error:
        raise ModelError(f"the reply of {model} cannot be recorded: {error}") from None


def read_rows(path: Path) -> list[Row]:
    """Read the rows of a recording of at most 500 MB; raise ``UsageError`` naming file, line and fault."""
    return [_read_row(path, number, line) for number, line in read_lines(path)]


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the number, from 1, and the bytes of each line of a recording that is not empty. Raises ``UsageError``."""
    for number, line in enumerate(_read_bytes(path).splitlines(), 1):
        if line.strip():
            yield number, line


def _read_bytes(path: Path) -> bytes:
    """Read the file of a recording; raise ``UsageError`` for one that is no regular file, or too large."""
    # Only a regular file: reading a pipe would block the event loop, and a device may never end.
    if "\x00" in str(path):
        raise UsageError("a path to a recording has no NUL character in it")
    try:
        kind = path.stat().st_mode
        if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):  # opening a folder raises an OSError that says so
            raise UsageError(f"the recording {str(path)!r} is not a regular file; a recording is read from one")
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise UsageError(f"the recording {str(path)!r} cannot be read: {error.strerror}; name another file") from None
    if len(content) > LARGEST:
        raise UsageError(f"the recording {str(path)!r} is larger than {LARGEST // 10**6} MB; split it")
    return content


def _read_row(path: Path, number: int, line: bytes) -> Row:
    """Read one line of a recording. Raises ``UsageError``, also for a row by which no request could be found."""
    where = f"{path}, line {number}"
    row = decode_row(line, where=where, schema=RECORDING)
    check_text(row, where=where)
    if row.key is None and row.case is None:
        raise UsageError(f"{where}: a row has a key or a case, and this one has neither")
    return row
