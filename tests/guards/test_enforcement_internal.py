"""The beginning of enforcement where the ledger fails at that moment."""

from __future__ import annotations

import asyncio
from pathlib import Path

from adjudge import Ledger
from adjudge.guards.certificate.enforcement import GATE_ENFORCED, Enforcement
from adjudge.guards.certificate.qualification import Qualification

QUALIFIED = Qualification(kind="qualified", reason="measured")
STALE = Qualification(kind="stale", reason="too old")


class FailingOnce(Ledger):
    """A ledger whose first append fails."""

    failures = 1

    async def append(self, *arguments, **options):
        if self.failures:
            self.failures -= 1
            raise OSError("no space left")
        return await super().append(*arguments, **options)


def test_a_beginning_that_could_not_be_recorded_is_kept_and_recorded_later(tmp_path: Path):
    """Else the next result without a certificate would be let through, after the gate had enforced."""

    async def go() -> tuple[list[str], int]:
        async with FailingOnce(f"sqlite:///{tmp_path / 'adjudge.db'}") as ledger:
            enforcement = Enforcement("answers", ledger)
            modes = [await enforcement.choose_mode(each) for each in (STALE, QUALIFIED, STALE, STALE)]
            return modes, len([entry async for entry in ledger.query(kind=GATE_ENFORCED)])

    modes, entries = asyncio.run(go())

    assert modes == ["observe", "enforce", "enforce", "enforce"]
    assert entries == 1
