"""Lines: result files cut into them, and requests put together to jobs that keep to the limits.

Which missing lines make a job doubtful is decided in ``runs/batch/dispatcher.py`` (``_collect_results``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from adjudge.models.batch.job import Limits

T = TypeVar("T")

FILLED = 0.95
"""The share of a limit in bytes that is used: what the provider adds counts too."""

LONGEST_LINE = 64 * 2**20
"""Bytes of a line that are kept until its end comes."""


class LineCutter:
    """Cuts a file that arrives in pieces into lines, and hands each line to ``take``.

    Only a newline (LF) ends a line. Text in JSON may hold U+2028, U+2029 and U+0085 as they are, and ``str.splitlines``
    cuts at each of them, in the middle of a reply.
    """

    def __init__(self, take: Callable[[bytes], None]) -> None:
        self._take = take
        self._remainder = bytearray()

    def feed(self, piece: bytes) -> None:
        """Add a piece of the file, and hand on the lines that end in it. Raises ``ValueError`` for too long a line."""
        search_start = max(len(self._remainder) - 1, 0)
        self._remainder += piece
        if self._remainder.find(b"\n", search_start) < 0:
            if len(self._remainder) > LONGEST_LINE:
                raise ValueError("a line of the results is too long")
            return
        *lines, remainder = bytes(self._remainder).split(b"\n")
        self._remainder = bytearray(remainder)
        for line in lines:
            if line.strip():
                self._take(line)

    def finish(self) -> bool:
        """Hand on the text after the last newline, if it is a whole line.

        Returns false where it is a part of a line, which means that the file was cut off.
        """
        remainder = bytes(self._remainder)
        if not remainder.strip():
            return True
        try:
            msgspec.json.decode(remainder, type=dict[str, msgspec.Raw])
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return False
        self._take(remainder)
        return True


def split_by_limits(
    lines: Sequence[T], limits: Limits, measure: Callable[[T], int], tokens: int | None = None
) -> list[list[T]]:
    """Split lines into as few jobs as the limits allow, in their order.

    ``measure`` returns the bytes of a line. ``tokens``, if given, is the most that a job may have by ``count_tokens``.
    A line that is over a limit by itself is alone in its job.
    """
    most_bytes = int(limits.size * FILLED)
    jobs: list[list[T]] = []
    size = 0
    for line in lines:
        length = measure(line)
        is_full = not jobs or len(jobs[-1]) >= limits.requests or size + length > most_bytes
        if is_full or (tokens is not None and count_tokens(size + length) > tokens):
            jobs.append([])
            size = 0
        jobs[-1].append(line)
        size += length
    return jobs


def count_tokens(size: int) -> int:
    """Estimate the tokens of so many bytes of requests, at three bytes a token: more than there will be."""
    return size // 3 + 1
