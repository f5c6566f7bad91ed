"""The state of a gate that observes until its first certified result, and enforces from then on.

That it enforces is recorded in the ledger, so that every process, and the same gate after a restart, knows it. Which
result is certified is decided in ``qualification.py``.
"""

from __future__ import annotations

from typing import Literal

from adjudge.content import digest_text
from adjudge.guards.certificate.qualification import Qualification
from adjudge.hooks import call_safely
from adjudge.ledger.ledger import Ledger

GATE_ENFORCED = "gate.enforced"
"""The kind of the entry with which a gate begins to enforce."""


class Enforcement:
    """The state of one gate with ``mode="enforce_when_certified"``: whether it enforces yet."""

    def __init__(self, gate: str, ledger: Ledger) -> None:
        self._gate, self._ledger = gate, ledger
        self._enforces = self._is_prepared = False
        self._unrecorded_qualification: Qualification | None = None
        """The qualification with which the gate began to enforce, as long as that is not recorded; else ``None``."""

    @property
    def has_begun(self) -> bool:
        """Return whether this object knows that the gate enforces; the ledger may have it from another process."""
        return self._enforces

    async def choose_mode(self, qualification: Qualification | None) -> Literal["enforce", "observe"]:
        """Choose whether the gate enforces or observes for a result with this qualification (``None``: none was made).

        From the first qualified result on it enforces, which is recorded in the ledger. If the ledger cannot be read or
        written, it enforces too, because the gate may have begun before, and must not observe again.
        """
        if not self._enforces:
            is_recorded, error = await call_safely(self._is_enforcement_recorded)
            if error is not None:
                return "enforce"
            self._enforces = is_recorded is True
        if not self._enforces:
            if qualification is None or qualification.kind != "qualified":
                return "observe"
            # Set before the entry is written, and kept if that fails, or this gate would observe again.
            self._enforces, self._unrecorded_qualification = True, qualification
        if self._unrecorded_qualification is not None:
            _, error = await call_safely(self._record_enforcement, self._unrecorded_qualification)
            self._unrecorded_qualification = None if error is None else self._unrecorded_qualification
        return "enforce"

    async def _is_enforcement_recorded(self) -> bool:
        """Return whether the ledger has an entry that this gate began to enforce."""
        if not self._is_prepared:
            await self._ledger.prepare()
            self._is_prepared = True
        async for _ in self._ledger.query(kind=GATE_ENFORCED, subject=digest_text(self._gate)):
            return True
        return False

    async def _record_enforcement(self, qualification: Qualification) -> None:
        """Append the entry that this gate began to enforce, with the reason why the result was qualified."""
        payload = {"schema": "adjudge/gate-enforced/1", "gate": self._gate, "because": qualification.reason}
        await self._ledger.append(payload, kind=GATE_ENFORCED, subject=digest_text(self._gate))
