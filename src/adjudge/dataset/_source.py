"""The bytes of a data set: a file, one that is compressed, or standard input, line by line and never all at once."""

from __future__ import annotations

import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from adjudge.errors import UsageError

LONGEST = 50_000_000
"""Bytes of the longest line: a file without line breaks must not fill the memory before anybody looks at it."""

_BOM = b"\xef\xbb\xbf"
Line = tuple[int, str | UsageError]


def check_path(path: str) -> bool:
    """Whether a data set can be read once only; raises ``UsageError`` when it cannot be read at all."""
    if path == "-":
        return True
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    if stat.S_ISDIR(mode):
        raise UsageError(f"{path} is a directory; name one data set in it")
    return not stat.S_ISREG(mode)


@contextmanager
def open_bytes(path: str, *, gz: bool = False) -> Iterator[BinaryIO]:
    """The bytes of a file, unpacked; ``-`` is standard input."""
    try:
        if path == "-":
            if sys.stdin is None:
                raise UsageError("standard input is closed; name a file")
            yield sys.stdin.buffer
            return
        with Path(path).open("rb") as file:
            if not gz:
                yield file
                return
            import gzip

            with gzip.GzipFile(fileobj=file) as unpacked:
                yield cast("BinaryIO", unpacked)
    except OSError as error:
        raise _unreadable(path, error) from None
    except (EOFError, zlib.error):
        raise UsageError(f"cannot read {path}: the compressed data are broken or cut off; compress it again") from None


def read_lines(file: BinaryIO) -> Iterator[Line]:
    """The lines with their numbers, from 1; for a line that is no text, why.

    Lines end at a line feed alone: JSON texts and cells may hold every other character that ends a line somewhere.
    """
    number = 0
    while line := file.readline(LONGEST + 1):
        number += 1
        if number == 1 and line.startswith(_BOM):
            line = line[len(_BOM) :]
        if len(line) > LONGEST:
            while line and not line.endswith(b"\n"):
                line = file.readline(LONGEST)
            yield number, UsageError(f"the line is longer than {LONGEST // 1_000_000} MB; split what it holds")
            continue
        try:
            yield number, line.decode()
        except UnicodeDecodeError as error:
            yield number, UsageError(f"the line is not UTF-8 text (byte {error.start:,}); write the file as UTF-8")


def read_whole(path: str, largest: int) -> str:
    """All of a file that is read at once; raises ``UsageError`` when it is larger than some bytes."""
    with open_bytes(path) as file:
        data = file.read(largest + 1)
    if len(data) > largest:
        raise UsageError(f"{path} is larger than {largest // 1_000_000} MB; write it as JSON lines, which are streamed")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text (byte {error.start:,}); write it as UTF-8") from None


def _unreadable(path: str, error: OSError | ValueError) -> UsageError:
    said = getattr(error, "strerror", None) or ("broken compressed data" if Path(path).exists() else str(error))
    return UsageError(f"cannot read {path}: {said}; name a data set that can be read")
