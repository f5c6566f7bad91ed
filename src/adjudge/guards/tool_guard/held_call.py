"""An agent's call as an approval is bound to it, and as it is found again. Pure.

That an approval of it is good for one use is decided in ``guards/held_request.py`` (``is_single_use``).
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
    """One call, or with an empty ``call_id`` every call of a run with this content."""

    kind: ClassVar[Kind] = "call"
    joins: ClassVar[bool] = True
    """True: the key is the digest of all of the call, so one with the same key is the same call."""

    run_id: str
    call_id: str
    subject: str
    """SHA-256 of the text that is judged, shown and bound: there is no second form of a call that could differ."""
    number: int = 1
    """The request for approval of this call: 1, and one more after each that was used, expired, or asked in vain."""
    most_open: Mapping[str, int]

    def describe(self, gate: str) -> dict[str, Any]:
        """Describe the call for the pending decision."""
        return {"key": self.digest_key(gate), "call": self._digest()}

    def list_differences(self, described: object) -> list[str]:
        """Return ``["call"]`` for the description of another call, or of another request for this one."""
        is_same = isinstance(described, Mapping) and described.get("call") == self._digest()
        return [] if is_same else ["call"]

    def digest_key(self, gate: str) -> str:
        """Digest gate, run, call, content and number."""
        return self._digest(gate)

    def _digest(self, *gate: str) -> str:
        parts = [*gate, self.run_id, self.call_id, self.subject, self.number]
        return sha256(json.dumps(parts).encode()).hexdigest()

    def limit_open(self) -> Mapping[str, int]:
        """Return the most requests of this run, its key and its gate that may be open."""
        return self.most_open

    def make_word(self, gate: str) -> str:
        """Make the word by which people find the request: no id, and nothing that a command or an API takes."""
        number = int(self.digest_key(gate)[:16], 16)
        letters = []
        for _ in range(3):
            number, consonant = divmod(number, len(_CONSONANTS))
            number, vowel = divmod(number, len(_VOWELS))
            letters.append(_CONSONANTS[consonant] + _VOWELS[vowel])
        return "".join(letters)
