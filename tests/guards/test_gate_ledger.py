"""A gate and a real ledger together: what was decided is on record, and quotes nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

from adjudge import Gate, Ledger
from adjudge.testing import ScriptedModel

RUBRIC = {"name": "Kind", "criteria": [{"name": "kind", "description": "Is kind."}]}


def test_a_decision_is_recorded_and_found_again(tmp_path: Path):
    """By gate and outcome, with the place that the decision names, in a ledger that verifies."""
    reply = {"criteria": [{"name": "kind", "reasoning": "It says: walrus.", "score": 0.1}]}

    async def run():
        ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
        gate = Gate("publish", rubric=RUBRIC, judge=ScriptedModel(reply), ledger=ledger)
        decision = await gate.check("The walrus.")
        entries = [entry async for entry in ledger.query(gate="publish", outcome="failed")]
        checked = await ledger.verify()
        await ledger.aclose()
        return decision, entries, checked

    decision, entries, checked = asyncio.run(run())

    assert not decision.allowed
    assert [(entry.seq, entry.kind) for entry in entries] == [(decision.ledger_seq, "decision")]
    assert "walrus" not in str(entries[0].payload)
    assert checked.valid
