"""Audits and what is forgotten: a content goes, and what people said of it stays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adjudge import Approvals, Gate
from adjudge.erasure.choice import Choice
from adjudge.erasure.forget import Places, forget
from adjudge.erasure.ledger import Order
from adjudge.guards import Monitor, read_monitor
from adjudge.guards.approval.request_columns import rebuild_listed, verify_listed
from adjudge.guards.approval.tables import make_tables
from kit.audited import answer, use
from kit.ledgers import STORES, open_store, verify

pytestmark = pytest.mark.timed


@pytest.fixture(name="url", params=STORES)
def make_url(request: pytest.FixtureRequest, tmp_path: Path, require: Any) -> Iterator[str]:
    """Each store."""
    with open_store(request.param, tmp_path, require) as url:
        yield url


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


def test_audits_are_listed_as_the_ledger_has_them(url: str):
    """Open ones and those that were answered; what is derived anew is the same."""

    async def work(gate: Gate, approvals: Approvals) -> None:
        for number in range(3):
            await gate.check(f"content {number}")
        await answer(approvals, [True, False])
        ledger = approvals.ledger
        before = await approvals.list(audits=True, status=None)
        assert (await verify_listed(ledger, await ledger.verify())).valid
        await ledger.upgrade(rebuild=rebuild_listed)
        assert (await verify_listed(ledger, await ledger.verify())).valid
        assert await approvals.list(audits=True, status=None) == before
        assert [audit.status for audit in before] == ["approved", "denied", "open"]

    use(url, work)


def test_an_audit_that_somebody_put_among_what_waits_is_found(file: str):
    """In the table alone, where it would be counted as a request that something waits for."""

    async def work(gate: Gate, approvals: Approvals) -> None:
        await gate.check("The content.")
        await approvals.ledger.transact(
            lambda step: step.connection.exec_driver_sql("UPDATE adjudge_approvals SET status = 'open'"),
            tables=make_tables(),
        )
        verification = await verify_listed(approvals.ledger, await approvals.ledger.verify())
        assert (verification.valid, verification.code) == (False, "columns_changed")

    use(file, work)
