"""The revision of a ledger's database: what refuses another one, and what an upgrade does, on both databases."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateTable

from adjudge import Approvals, Ledger, UsageError
from adjudge.errors import LedgerError
from adjudge.guards.approval.tables import make_tables as make_approval_tables
from adjudge.ledger import revision, upgrade
from adjudge.ledger.store import make_table
from adjudge.tools.store import make_tables as make_tool_tables
from kit.house import TESTS
from kit.ledgers import STORES, make_result, open_store, record, run

PINNED = TESTS / "data" / "schema"


@pytest.fixture(name="url", params=STORES)
def make_url(request: pytest.FixtureRequest, tmp_path: Path, require: Any) -> Iterator[str]:
    require("alembic", find_spec("alembic"), "pip install 'adjudge[server]'")
    with open_store(request.param, tmp_path, require) as url:
        yield url


def execute(url: str, *statements: str) -> list[Any]:
    """What the last of some statements finds, each committed."""
    engine = create_engine(url)
    values: list[Any] = []
    try:
        for statement in statements:
            with engine.begin() as connection:
                rows = connection.exec_driver_sql(statement)
                values = [tuple(row) for row in rows] if rows.returns_rows else []
    finally:
        engine.dispose()
    return values


def find_revision(url: str) -> list[Any]:
    return execute(url, f"SELECT version_num FROM {revision.VERSION_TABLE}")


def ask(url: str) -> str:
    """The id of a new request for approval in a ledger."""
    return run(url, request_approval)


async def request_approval(ledger: Ledger) -> str:
    async with Approvals(ledger) as approvals:
        return await approvals.request(make_result(), "Publish this?", approvers=["Ana"])


def count_open(url: str) -> int:
    async def work(ledger: Ledger) -> int:
        async with Approvals(ledger) as approvals:
            return len(await approvals.list())

    return run(url, work)


ADD_COLUMN = """
import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

def upgrade():
    if sa.inspect(op.get_bind()).has_table("adjudge_approvals"):
        op.add_column("adjudge_approvals", sa.Column("urgent", sa.Integer, nullable=False, server_default="0"))
"""


@pytest.fixture(name="become_later")
def make_later_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A function that makes this a later version, with a second step: by default a column more of requests."""
    versions = tmp_path / "migrations" / "versions"

    def become_later(step: str = ADD_COLUMN) -> None:
        versions.mkdir(parents=True)
        first = 'revision = "0001"\ndown_revision = None\n'
        (versions / "revision_0001.py").write_text(first, encoding="utf-8")
        (versions / "revision_0002.py").write_text(step, encoding="utf-8")
        for module in (revision, upgrade):
            monkeypatch.setattr(module, "REVISION", "0002")
        monkeypatch.setattr(upgrade, "MIGRATIONS", versions.parent)

    return become_later


def test_a_new_ledger_names_its_revision(url: str):
    """The revision is written when the ledger is made."""
    record(url, {"n": 1})

    assert find_revision(url) == [(revision.REVISION,)]


def test_a_ledger_made_before_there_were_revisions_is_used_as_it_is(url: str):
    """No name counts as the first revision, and nothing has to be done."""
    record(url, {"n": 1})
    execute(url, f"DROP TABLE {revision.VERSION_TABLE}")

    assert record(url, {"n": 2}) == [3]
    ask(url)
    assert count_open(url) == 1


def test_an_upgrade_of_what_is_up_to_date_changes_nothing(url: str):
    """It may be run at any time."""
    ask(url)

    done = run(url, lambda ledger: ledger.upgrade())

    assert (done.before, done.after) == ("0001", "0001")
    assert count_open(url) == 1


def test_a_ledger_of_a_later_version_is_not_used(url: str):
    """Nothing is written and no table is read; the chain can still be verified."""
    ask(url)
    execute(url, f"UPDATE {revision.VERSION_TABLE} SET version_num = '0099'")

    for work in (lambda: record(url, {"n": 1}), lambda: ask(url), lambda: count_open(url), lambda: upgrade_now(url)):
        with pytest.raises(UsageError, match="update adjudge"):
            work()
    # Its entries are of a schema of their own, and stay legible.
    assert run(url, lambda ledger: ledger.verify())


def test_a_ledger_of_an_earlier_version_is_not_used_until_it_is_upgraded(url: str, become_later: Callable[..., None]):
    """The refusal names the command, and what was stored is there afterwards."""
    ask(url)
    become_later()

    for work in (lambda: record(url, {"n": 1}), lambda: ask(url), lambda: count_open(url)):
        with pytest.raises(UsageError, match="adjudge ledger upgrade"):
            work()

    done = upgrade_now(url)

    assert (done.before, done.after) == ("0001", "0002")
    assert execute(url, "SELECT urgent FROM adjudge_approvals") == [(0,)]
    assert count_open(url) == 1
    assert run(url, lambda ledger: ledger.verify())
    assert upgrade_now(url).before == "0002"


def test_an_unnamed_revision_is_upgraded_from_the_first(url: str, become_later: Callable[..., None]):
    """A ledger from before there were revisions takes every step after the first."""
    ask(url)
    execute(url, f"DROP TABLE {revision.VERSION_TABLE}")
    become_later()

    assert upgrade_now(url).before == "0001"
    assert find_revision(url) == [("0002",)]


def test_a_ledger_alone_is_upgraded_too(url: str, become_later: Callable[..., None]):
    """A step leaves out tables that were never made."""
    record(url, {"n": 1})
    become_later()

    assert upgrade_now(url).after == "0002"
    assert record(url, {"n": 2}) == [3]


def test_an_upgrade_that_fails_leaves_everything_as_it_was(url: str, become_later: Callable[..., None]):
    """All steps or none, on SQLite as well."""
    ask(url)
    become_later(ADD_COLUMN + "    op.execute('INSERT INTO no_such_table VALUES (1)')\n")

    with pytest.raises(LedgerError, match="upgraded"):
        upgrade_now(url)

    assert find_revision(url) == [("0001",)]
    with pytest.raises(Exception, match="urgent"):
        execute(url, "SELECT urgent FROM adjudge_approvals")


def test_a_program_that_was_running_stops_writing_when_the_database_is_upgraded(
    url: str, become_later: Callable[..., None]
):
    """The revision is read with every change of a table, not only at the start."""

    async def work(ledger: Ledger) -> None:
        await request_approval(ledger)
        await asyncio.to_thread(execute, url, f"UPDATE {revision.VERSION_TABLE} SET version_num = '0002'")
        with pytest.raises(UsageError, match="update adjudge"):
            await request_approval(ledger)

    run(url, work)
    become_later()
    assert count_open(url) == 1


def test_nothing_is_upgraded_where_there_is_no_ledger(url: str, tmp_path: Path):
    """A mistyped address makes no file."""
    with pytest.raises(UsageError, match="no ledger"):
        upgrade_now(url)

    assert not (tmp_path / "adjudge.db").exists()


def upgrade_now(url: str) -> upgrade.LedgerUpgrade:
    return run(url, lambda ledger: ledger.upgrade())


@pytest.mark.parametrize("name", ["sqlite", "postgresql"])
def test_a_table_changes_only_with_a_revision(name: str):
    """A table whose description changes is not changed where it is: that needs a step under ``migrations/versions``.

    With a new revision, write its form into a file beside this one, which stays. A new table needs no step.
    """
    pinned = " ".join((PINNED / f"{revision.REVISION}.{name}.sql").read_text("utf-8").split())
    dialect = {"sqlite": sqlite, "postgresql": postgresql}[name].dialect()

    for table in list_tables():
        if f"CREATE TABLE {table.name} (" in pinned:
            statement = " ".join(str(CreateTable(table).compile(dialect=dialect)).split())
            assert statement + ";" in pinned, f"{table.name} is not as revision {revision.REVISION} has it: {statement}"


def list_tables() -> list[Any]:
    """Every table that a ledger's database can have, but for the server's where it is not installed."""
    tables = [make_table(), *make_approval_tables().sorted_tables, *make_tool_tables().sorted_tables]
    if find_spec("fastapi") is not None:
        from adjudge.server.database import make_tables as make_server_tables

        tables += make_server_tables().sorted_tables
    return tables
