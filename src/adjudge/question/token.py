"""The token that marks an answer: unguessable for content, the same for the same question under one secret."""

from __future__ import annotations

import hmac
import os
import secrets
from functools import lru_cache

# Base 32 (RFC 4648) in lower case, ten bits at a time; the standard library's loop takes as long as the HMAC.
_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"


_PAIRS = tuple(first + second for first in _LETTERS for second in _LETTERS)


MASK = "{{token}}"
"""The placeholder for the token in digests, cache keys and recordings."""


def make_token(digest: str, secret: bytes | None = None) -> str:
    """Make the eight characters that fence this question's data and begin its reply.

    They are HMAC-SHA256 of the question under a secret that is random per process, or ``ADJUDGE_SECRET``: the author of
    the content cannot know them, and every change of the content changes them. A run whose replies another process may
    fetch has a ``secret`` of its own.
    """
    mac = _start_mac(secret if secret is not None else _find_secret()).copy()
    mac.update(digest.encode())
    bits = int.from_bytes(mac.digest()[:5], "big")  # 40 bits, of which each ten are a pair of letters
    return _PAIRS[bits >> 30] + _PAIRS[bits >> 20 & 1023] + _PAIRS[bits >> 10 & 1023] + _PAIRS[bits & 1023]


def make_run_secret(run: str) -> bytes:
    """Make the secret for the processes of one run; it does not reveal this process's own, nor that of another run.

    ``run`` is the run's id. Where ``ADJUDGE_SECRET`` is set, a run that is resumed has the same secret again.
    """
    return hmac.digest(_find_secret(), b"adjudge/run/" + run.encode(), "sha256")


@lru_cache(maxsize=1)
def _find_secret() -> bytes:
    """Return the secret of this process: ``ADJUDGE_SECRET``, else random bytes."""
    return os.environ.get("ADJUDGE_SECRET", "").encode() or secrets.token_bytes(32)


@lru_cache(maxsize=4)
def _start_mac(secret: bytes) -> hmac.HMAC:
    """Start an HMAC under a secret; it is shared, so a caller has to copy it."""
    return hmac.new(secret, digestmod="sha256")
