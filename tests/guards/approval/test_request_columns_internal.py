"""What requests for approval are found by: derived from the ledger's entries, compared with them, and derived anew."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine

from adjudge import Approvals, Ledger, UsageError
from adjudge.guards.approval.request_columns import rebuild_listed, verify_listed
from adjudge.guards.approval.tables import APPROVALS, APPROVERS, REQUEST_COLUMNS
from kit.approvals import make_result
from kit.ledgers import STORES, open_store, run


@pytest.fixture(name="url", params=STORES)
def make_url(request: pytest.FixtureRequest, tmp_path: Path, require: Any) -> Iterator[str]:
    require("alembic", find_spec("alembic"), "pip install 'adjudge[server]'")
    with open_store(request.param, tmp_path, require) as url:
        yield url


def execute(url: str, *statements: str) -> list[Any]:
    """What the last of some statements finds."""
    engine, rows = create_engine(url), list[Any]()
    try:
        with engine.begin() as connection:
            for statement in statements:
                result = connection.exec_driver_sql(statement)
                rows = [tuple(row) for row in result] if result.returns_rows else []
    finally:
        engine.dispose()
    return rows


ODD = {"title": "half \ud800 a title\n", "agent": 7, "customer": "c" * 5_000}


async def fill(ledger: Ledger) -> list[str]:
    """Requests of every form: open, approved, denied and forgotten, with titles and without."""
    about = {"title": "Publish the letter", "agent": "writer", "customer": "acme"}
    async with Approvals(ledger) as approvals:
        terms: list[dict[str, Any]] = [
            {"approvers": ["ana", "bob"], "metadata": about},
            {"approvers": ["bob"], "expires_in": 3_600},
            {"approvers": ["ana"], "metadata": about | {"agent": "reader"}},
            {"approvers": ["ana"], "metadata": ODD},
        ]
        ids = [await approvals.request(make_result(), "Publish it?", **options) for options in terms]
        await approvals.decide(ids[2], "ana", True, "read it")
        await approvals.decide(ids[3], "ana", False, "no")
        await approvals.forget(ids[3])
    return ids


async def check(ledger: Ledger) -> Any:
    return await verify_listed(ledger, await ledger.verify())


async def list_ids(ledger: Ledger, **filters: Any) -> tuple[list[int], int]:
    """Which of the requests match, by their order, and how many."""
    async with Approvals(ledger) as approvals:
        every, _ = await approvals.find_requests(most=100)
        ids, total = await approvals.find_requests(**({"most": 100} | filters))
    return [every.index(ident) for ident in ids], total


WANTED: list[tuple[dict[str, Any], tuple[list[int], int]]] = [
    ({}, ([0, 1, 2, 3], 4)),
    ({"most": 2}, ([0, 1], 4)),
    ({"status": "open"}, ([0, 1], 2)),
    ({"status": "approved"}, ([2], 1)),
    ({"approver": "ana"}, ([0, 2, 3], 3)),
    ({"approver": "ana", "status": "denied"}, ([3], 1)),
    ({"approver": "nobody"}, ([], 0)),
    ({"gates": ["door"]}, ([], 0)),
    ({"title": "THE letter"}, ([0, 2], 2)),
    ({"title": "%"}, ([], 0)),
    ({"agent": "writer"}, ([0], 1)),
    ({"agent": "writ"}, ([], 0)),
    ({"customer": "acme", "agent": "reader"}, ([2], 1)),
    ({"customer": "acme", "status": "open"}, ([0], 1)),
]


def test_requests_are_found_by_what_their_entries_say(url: str):
    """By status, approver, gate, title, agent and customer, and counted beyond those that are returned."""
    run(url, fill)

    for filters, matching in WANTED:
        assert run(url, lambda ledger, filters=filters: list_ids(ledger, **filters)) == matching, filters
    rows = execute(url, f"SELECT title, agent, customer FROM {REQUEST_COLUMNS} ORDER BY approval")
    assert rows[0] == ("Publish the letter", "writer", "acme")
    assert rows[1] == (None, None, None)
    assert rows[2][1] == "reader"
    assert rows[3][1:] == (None, None)
    assert run(url, check)


FIRST = f"(SELECT min(id) FROM {APPROVALS})"

CHANGES = {
    "gate": f"UPDATE {REQUEST_COLUMNS} SET gate = 'x' WHERE approval = {FIRST}",
    "title": f"UPDATE {REQUEST_COLUMNS} SET title = 'x' WHERE approval = {FIRST}",
    "agent": f"UPDATE {REQUEST_COLUMNS} SET agent = NULL WHERE approval = {FIRST}",
    "customer": f"UPDATE {REQUEST_COLUMNS} SET customer = 'x' WHERE approval = {FIRST}",
    "created_at": f"UPDATE {REQUEST_COLUMNS} SET created_at = 'x' WHERE approval = {FIRST}",
    "hidden": f"DELETE FROM {REQUEST_COLUMNS} WHERE approval = {FIRST}",
    "approver": f"DELETE FROM {APPROVERS} WHERE approver = 'ana' AND approval = {FIRST}",
    "one more": f"INSERT INTO {APPROVERS} SELECT min(id), 'eve' FROM {APPROVALS}",
    "status": f"UPDATE {APPROVALS} SET status = 'denied' WHERE id = {FIRST}",
    "expires": f"UPDATE {APPROVALS} SET expires_at = '2020-01-01T00:00:00.000000Z' WHERE id = {FIRST}",
}


@pytest.mark.slow_table
@pytest.mark.parametrize("change", CHANGES)
def test_a_request_that_is_listed_otherwise_is_found_and_listed_anew(url: str, change: str):
    """Whoever hides a request from an approver is found by verifying, and an upgrade shows it again."""
    run(url, fill)
    tables = (REQUEST_COLUMNS, APPROVERS, APPROVALS)
    before = [sorted(execute(url, f"SELECT * FROM {table}"), key=str) for table in tables]
    execute(url, CHANGES[change])

    verification = run(url, check)

    assert (verification.valid, verification.code, verification.seq) == (False, "columns_changed", 2)
    run(url, lambda ledger: ledger.upgrade(rebuild_listed))
    assert run(url, check)
    assert [sorted(execute(url, f"SELECT * FROM {table}"), key=str) for table in tables] == before


def test_a_request_that_no_entry_made_is_found(url: str):
    """Somebody who has the database wrote it there."""
    run(url, fill)
    forged = f"SELECT 'forged', status, expires_at, overrides, body FROM {APPROVALS} WHERE id = {FIRST}"
    execute(url, f"INSERT INTO {APPROVALS} {forged}")

    verification = run(url, check)

    assert (verification.valid, verification.code) == (False, "columns_changed")
    assert "forged" in verification.detail


def test_a_request_that_was_dropped_is_found(url: str):
    """Its entry is still there."""
    run(url, fill)
    for table, name in ((APPROVERS, "approval"), (REQUEST_COLUMNS, "approval"), (APPROVALS, "id")):
        execute(url, f"DELETE FROM {table} WHERE {name} = (SELECT min({name}) FROM {table})")

    verification = run(url, check)

    assert (verification.valid, verification.seq) == (False, 2)


def test_an_erased_entry_hides_no_request(url: str):
    """What is left to derive from is the request itself, and how its table says that it ended."""
    run(url, fill)
    places = execute(url, "SELECT seq FROM adjudge_ledger WHERE kind IN ('approval.requested', 'approval.closed')")
    for (seq,) in places:
        run(url, lambda ledger, seq=seq: ledger.erase(seq, "asked for", "Ana"))
    tables = (REQUEST_COLUMNS, APPROVERS, APPROVALS)
    before = [sorted(execute(url, f"SELECT * FROM {table}"), key=str) for table in tables]

    assert run(url, check)
    run(url, lambda ledger: ledger.upgrade(rebuild_listed))
    assert [sorted(execute(url, f"SELECT * FROM {table}"), key=str) for table in tables] == before


def test_requests_without_columns_name_the_remedy(url: str):
    """Those of a preview are in no list until an upgrade derives what they are found by; nothing is hidden silently."""
    run(url, fill)
    execute(url, f"DROP TABLE {APPROVERS}", f"DROP TABLE {REQUEST_COLUMNS}")

    for work in (list_ids, fill, check):
        with pytest.raises(UsageError, match="adjudge ledger upgrade"):
            run(url, work)
    run(url, lambda ledger: ledger.upgrade(rebuild_listed))

    assert run(url, list_ids)[1] == 4
    assert run(url, check)


def test_an_entry_that_a_program_wrote_by_itself_is_no_request(url: str):
    """Whoever appends may choose any kind."""

    async def work(ledger: Ledger) -> Any:
        await fill(ledger)
        for mapping in ({}, {"approval": "x"}, {"schema": "adjudge/approval-request/1", "approval": 5}):
            for kind in ("approval.requested", "approval.closed"):
                await ledger.append(mapping, kind=kind)
        return await check(ledger)

    assert run(url, work)
