"""From observing to enforcing: a gate that enforces from its first certified result on, and never observes again.

That it has enforced is an entry of the ledger, so that every process, and a gate that is made anew, knows it.

Which result is certified is decided in ``qualification.py``.
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
    """The state of one gate with ``mode="enforce_when_certified"``: it enforces by now, or not yet."""

    def __init__(self, gate: str, ledger: Ledger) -> None:
        self._gate, self._ledger = gate, ledger
        self._has_begun = self._is_prepared = False
        self._unrecorded: Qualification | None = None
        """The qualification that it began with, until the ledger has the entry."""

    @property
    def has_begun(self) -> bool:
        """Return whether it is known here that the gate enforces; another process may know more."""
        return self._has_begun

    async def choose_mode(self, qualification: Qualification | None) -> Literal["enforce", "observe"]:
        """Choose what the gate does with a result, and record that it begins to enforce with the first qualified one.

        If the ledger cannot be read or written, it enforces: the gate may have begun to, and must not observe again.
        """
        if not self._has_begun:
            is_recorded, error = await call_safely(self._is_recorded)
            if error is not None:
                return "enforce"
            self._has_begun = is_recorded is True
        if not self._has_begun:
            if qualification is None or qualification.kind != "qualified":
                return "observe"
            # Set before it is recorded, and kept if that fails: this gate would else observe again.
            self._has_begun, self._unrecorded = True, qualification
        if self._unrecorded is not None:
            _, error = await call_safely(self._record, self._unrecorded)
            self._unrecorded = None if error is None else self._unrecorded
        return "enforce"

    async def _is_recorded(self) -> bool:
        if not self._is_prepared:
            await self._ledger.prepare()
            self._is_prepared = True
        async for _ in self._ledger.query(kind=GATE_ENFORCED, subject=digest_text(self._gate)):
            return True
        return False

    async def _record(self, qualification: Qualification) -> None:
        payload = {"schema": "adjudge/gate-enforced/1", "gate": self._gate, "because": qualification.reason}
        await self._ledger.append(payload, kind=GATE_ENFORCED, subject=digest_text(self._gate))
