"""A cache that remembers valid API keys for a second, so that not every request asks the database for its key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from time import monotonic

from adjudge.formats.times import get_now
from adjudge.ledger.ledger import Ledger
from adjudge.server.keys import ApiKey, find_key

REMEMBERED_SECONDS = 1.0
"""Seconds for which a key is accepted without asking the database. A key that is revoked may be used so much longer."""


@dataclass(frozen=True, slots=True)
class _Remembered:
    """A valid key, and the time of the cache's clock until which it is accepted without asking the database."""

    key: ApiKey
    until: float


class KeyCache:
    """Finds keys as ``find_key`` does, and remembers each that is valid for a second."""

    def __init__(self, ledger: Ledger, clock: Callable[[], float] = monotonic) -> None:
        self._ledger, self._clock = ledger, clock
        self._remembered: dict[bytes, _Remembered] = {}

    async def find(self, text: str) -> ApiKey | None:
        """Find the valid API key whose text this is; ``None`` for a text that is no key, or an invalid key."""
        # Remembered by its digest, so that no key's text stays in memory.
        digest = sha256(text.encode("utf-8", "surrogatepass")).digest()
        remembered = self._remembered.get(digest)
        if remembered is not None and self._clock() < remembered.until:
            return remembered.key if remembered.key.is_valid(get_now()) else None
        until = self._clock() + REMEMBERED_SECONDS
        key = await find_key(self._ledger, text)
        # Invalid keys are not remembered: anybody could fill the memory with them.
        if key is not None:
            self._drop_expired()
            self._remembered[digest] = _Remembered(key, until)
        return key

    def _drop_expired(self) -> None:
        """Forget the keys whose second is over."""
        now = self._clock()
        for digest in [digest for digest, remembered in self._remembered.items() if remembered.until <= now]:
            del self._remembered[digest]
