"""Audits and what is forgotten: a content goes, and what people said of it stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from adjudge import Approvals, Gate
from adjudge.erasure.choice import Choice
from adjudge.erasure.forget import Places, forget
from adjudge.erasure.ledger import Order
from adjudge.guards import Monitor, read_monitor
from kit.audited import answer, use
from kit.ledgers import verify

pytestmark = pytest.mark.timed


@pytest.fixture(name="file")
def make_file(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'adjudge.db'}"


def test_forgetting_a_content_keeps_what_people_answered(file: str):
    """``adjudge forget`` deletes every text of it; an audit that is open counts as not answered."""

    async def work(gate: Gate, approvals: Approvals) -> tuple[Monitor, str]:
        await gate.check("Weber's letter.", metadata={"customer": "C-1"})
        await answer(approvals, [False])
        await gate.check("Another letter of Weber's.", metadata={"customer": "C-1"})
        order = Order(choice=Choice(name="customer", value="C-1"), reason="asked for", by="ana")
        await forget(order, Places(ledger=approvals.ledger))
        return await read_monitor(approvals.ledger, "answers"), str(await approvals.list(audits=True, status=None))

    monitor, listed = use(file, work)

    assert (monitor.audits, monitor.labels, monitor.bad, monitor.unanswered) == (2, 1, 1, 1)
    assert "Weber" not in listed
    assert verify(file).valid
