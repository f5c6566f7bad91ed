"""An agent's call that a gate holds back: what its approval is bound to, and the key by which it is found again. Pure.

That its approval can be used only once is decided in ``guards/held_request.py`` (``is_single_use``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, ClassVar

from adjudge.guards.held_request import Kind

_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldCall:
    """One call of a run; with an empty ``call_id``, every call of the run with this content."""

    kind: ClassVar[Kind] = "call"
    joins: ClassVar[bool] = True
    """True: the key is the digest of all of the call, so one with the same key is the same call."""

    run_id: str
    call_id: str
    subject: str
    """SHA-256 of the text of the call that is judged, shown to people and bound to the approval."""
    number: int = 1
    """The number of the request for approval of this call, counted from 1: after a request that was used, expired, or
    cannot be resumed, people are asked again under the next number."""
    most_open: Mapping[str, int]
    """The most requests that may wait for people, by ``run``, ``key`` and ``gate``."""

    def describe(self, gate: str) -> dict[str, Any]:
        """Return the digests that identify the call, to be stored with the pending decision."""
        return {"key": self.digest_key(gate), "call": self._digest()}

    def list_differences(self, described: object) -> list[str]:
        """Return ``["call"]`` if a stored description is of another call or has another number; else an empty list."""
        is_same = isinstance(described, Mapping) and described.get("call") == self._digest()
        return [] if is_same else ["call"]

    def digest_key(self, gate: str) -> str:
        """Digest gate, run, call, content and number: the key by which the request is found again."""
        return self._digest(gate)

    def _digest(self, *gate: str) -> str:
        """Digest run, call, content and number, with the gate's name before them if it is given."""
        parts = [*gate, self.run_id, self.call_id, self.subject, self.number]
        return sha256(json.dumps(parts).encode()).hexdigest()

    def limit_open(self) -> Mapping[str, int]:
        """Return the most requests of this run, its key and its gate that may wait for people."""
        return self.most_open

    def make_word(self, gate: str) -> str:
        """Make a word of three syllables from the key, such as ``bamuti``, by which people find the request in a list.

        An agent may read it, so it is no id: no command and no API takes it.
        """
        number = int(self.digest_key(gate)[:16], 16)
        syllables = []
        for _ in range(3):
            number, consonant = divmod(number, len(_CONSONANTS))
            number, vowel = divmod(number, len(_VOWELS))
            syllables.append(_CONSONANTS[consonant] + _VOWELS[vowel])
        return "".join(syllables)
