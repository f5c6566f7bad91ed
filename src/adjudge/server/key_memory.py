"""The keys of the last second, so that not every request asks the database for the key that it came with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from time import monotonic

from adjudge.formats.times import get_now
from adjudge.ledger.ledger import Ledger
from adjudge.server.keys import ApiKey, find_key

REMEMBERED_SECONDS = 1.0
"""Seconds for which a key is accepted without asking the database: so much longer lives one that was revoked."""


@dataclass(frozen=True, slots=True)
class _Remembered:
    key: ApiKey
    until: float


class KeyMemory:
    """Finds keys as ``find_key`` does, and remembers each that is valid for a second."""

    def __init__(self, ledger: Ledger, clock: Callable[[], float] = monotonic) -> None:
        self._ledger, self._clock = ledger, clock
        self._remembered: dict[bytes, _Remembered] = {}

    async def find(self, text: str) -> ApiKey | None:
        """Find the valid key that a text is, or ``None``, whatever is wrong with it."""
        # By its digest, so that no key's text stays in memory.
        digest = sha256(text.encode("utf-8", "surrogatepass")).digest()
        remembered = self._remembered.get(digest)
        if remembered is not None and self._clock() < remembered.until:
            return remembered.key if remembered.key.is_valid(get_now()) else None
        until = self._clock() + REMEMBERED_SECONDS
        key = await find_key(self._ledger, text)
        # What is not valid is not remembered: anybody could fill the memory with it.
        if key is not None:
            self._drop_old()
            self._remembered[digest] = _Remembered(key, until)
        return key

    def _drop_old(self) -> None:
        now = self._clock()
        for digest in [digest for digest, remembered in self._remembered.items() if remembered.until <= now]:
            del self._remembered[digest]
