"""The columns by which entries are searched: derived from payloads, and compared with them by verifying."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine

from adjudge import Decision, Ledger
from adjudge.ledger import Entry
from adjudge.ledger.columns import ALL_COLUMNS, ENTRY_COLUMNS, ENTRY_NAMES
from adjudge.ledger.search_index import SEARCH_TEXTS
from kit.ledgers import SECRET, STORES, make_chain_result, make_result, open_store, run

HELD = Decision(
    gate="door",
    allowed=False,
    decided_by="judge",
    pending=True,
    result=make_result(judge="strict"),
    approval_id="approval-1",
    metadata={"title": "Publish the letter"},
)

MAPPINGS: list[dict[str, Any]] = [
    {"gate": "door", "outcome": "passed", "judge": "a"},
    {"gate": 7, "outcome": ["passed"], "judge": None, "score": "high"},
    {"gate": "door", "result": {"gate": "window", "outcome": "failed", "judge": "a", "results": [{"judge": "b"}, 3]}},
    {"outcome": "passed", "result": {"outcome": "failed", "judge": "b"}, "execution": "e-1"},
    {"judge": "half \ud800 a character", "gate": "nul \0"},
    {"gate": "g" * 5_000, "judge": "😀" * 900},
    {"results": [{"judge": "a"}, {"judge": "a"}, {"judge": "b"}]},
    {"results": "none", "result": "none"},
    {},
]
"""What a program may append of its own: any of the members that a query looks for, of any type."""


@pytest.fixture(name="url", params=STORES)
def make_url(request: pytest.FixtureRequest, tmp_path: Path, require: Any) -> Iterator[str]:
    with open_store(request.param, tmp_path, require) as url:
        yield url


def execute(url: str, statement: str) -> list[Any]:
    """What a statement finds or changes."""
    engine = create_engine(url)
    try:
        with engine.begin() as connection:
            rows = connection.exec_driver_sql(statement)
            return [tuple(row) for row in rows] if rows.returns_rows else []
    finally:
        engine.dispose()


async def fill(ledger: Ledger) -> None:
    """Entries of every form: a result, a chain, a decision that waits, and mappings of a program's own."""
    await ledger.append(make_result(judge="quick"), gate="door", execution="e-1")
    await ledger.append(make_chain_result(make_result(judge="first"), make_result(judge="second")))
    await ledger.append(HELD)
    for kind in ("run", "decision", "result"):
        for mapping in MAPPINGS:
            await ledger.append(mapping, kind=kind)


def matches(entry: Entry, name: str, value: str) -> bool:
    """Whether an entry says this: by its payload, or by the result in it; as a judge also by a seat."""
    payload = entry.payload or {}
    inner = payload.get("result")
    about = inner if isinstance(inner, dict) else payload
    if name != "judge":
        return value in [payload.get(name), about.get(name)]
    seats = about.get("results")
    judges = [seat.get("judge") for seat in (seats if isinstance(seats, list) else []) if isinstance(seat, dict)]
    return value in [about.get("judge"), *judges]


@pytest.mark.parametrize("name", ["gate", "outcome", "judge", "execution"])
def test_a_query_finds_what_payloads_say(url: str, name: str):
    """Of any entry, also one whose members contradict each other, and nothing else."""
    values = ["door", "window", "passed", "failed", "quick", "first", "second", "panel", "a", "b", "e-1", "g", "none"]

    async def work(ledger: Ledger) -> tuple[list[Entry], dict[str, list[int]]]:
        await fill(ledger)
        every = [entry async for entry in ledger.query()]
        asked: dict[str, dict[str, Any]] = {value: {name: value} for value in values}
        return every, {value: [entry.seq async for entry in ledger.query(**asked[value])] for value in values}

    every, places = run(url, work)

    assert places == {value: [entry.seq for entry in every if matches(entry, name, value)] for value in values}
    assert any(places.values())


def change(table: str, **values: str) -> str:
    changed = ", ".join(f"{name} = {value}" for name, value in values.items())
    return f"UPDATE {table} SET {changed} WHERE seq = 4"


NUMBERS = ("seq", "score", "duration_ms", "cost_usd")

CHANGES = {
    **{name: change(ENTRY_COLUMNS, **{name: "'x'"}) for name in ALL_COLUMNS if name not in NUMBERS},
    **{name: change(ENTRY_COLUMNS, **{name: "0.125"}) for name in NUMBERS if name != "seq"},
    "seq": f"UPDATE {ENTRY_COLUMNS} SET seq = 400 WHERE seq = 4",
    "no columns": f"DELETE FROM {ENTRY_COLUMNS} WHERE seq = 4",
    "another text": change(SEARCH_TEXTS, text="'x'"),
    "no text": f"DELETE FROM {SEARCH_TEXTS} WHERE seq = 4",
    "one more name": f"INSERT INTO {ENTRY_NAMES} VALUES (4, 'judge', 'x')",
}


@pytest.mark.slow_table
@pytest.mark.parametrize("change", CHANGES)
def test_columns_that_were_changed_are_found_and_derived_anew(url: str, change: str, require: Any):
    """Whoever hides a decision from lists is found by verifying, and an upgrade shows it again."""
    require("alembic", find_spec("alembic"), "pip install 'adjudge[server]'")
    run(url, fill)
    before = execute(url, f"SELECT * FROM {ENTRY_COLUMNS} ORDER BY seq")
    execute(url, CHANGES[change])

    verification = run(url, lambda ledger: ledger.verify())

    assert (verification.valid, verification.code, verification.seq) == (False, "columns_changed", 4)
    assert "adjudge ledger upgrade" in verification.detail
    run(url, lambda ledger: ledger.upgrade())
    assert run(url, lambda ledger: ledger.verify())
    assert execute(url, f"SELECT * FROM {ENTRY_COLUMNS} ORDER BY seq") == before


@pytest.mark.parametrize("seq", [900, 0])
def test_columns_of_no_entry_are_found(url: str, seq: int):
    """A decision that was never recorded is in no list for long."""
    run(url, fill)
    execute(
        url, f"INSERT INTO {ENTRY_COLUMNS} (seq, at, kind, subject, state) VALUES ({seq}, '', 'decision', '', 'passed')"
    )

    verification = run(url, lambda ledger: ledger.verify())

    assert (verification.valid, verification.code, verification.seq) == (False, "columns_changed", seq)


def test_what_the_entries_show_comes_first(url: str):
    """A ledger whose entry was changed says so, whatever else was changed with it."""
    run(url, fill)
    trigger = "DROP TRIGGER adjudge_ledger_no_update" + ("" if url.startswith("sqlite") else " ON adjudge_ledger")
    execute(url, trigger)
    execute(url, "UPDATE adjudge_ledger SET subject = 'x' WHERE seq = 5")
    execute(url, CHANGES["gate"])

    verification = run(url, lambda ledger: ledger.verify())

    assert (verification.code, verification.seq) == ("entry_changed", 5)


def test_what_is_erased_is_nowhere(url: str):
    """The columns and the search text of an entry go with its payload, and the ledger still verifies."""

    async def work(ledger: Ledger) -> tuple[list[int], Any]:
        seq = await ledger.append(make_result(judge=SECRET), kind="result")
        await ledger.erase(seq, "asked for", "Ana")
        return [entry.seq async for entry in ledger.query(judge=SECRET)], await ledger.verify()

    entries, verification = run(url, work, store_content="full")

    assert (entries, bool(verification)) == ([], True)
    for table in (ENTRY_COLUMNS, SEARCH_TEXTS, ENTRY_NAMES):
        assert SECRET.lower() not in json.dumps(execute(url, f"SELECT * FROM {table}")).lower()


def test_a_ledger_without_columns_names_the_remedy(url: str, require: Any):
    """Nothing is written beside entries that no list would show; an upgrade derives all of them."""
    require("alembic", find_spec("alembic"), "pip install 'adjudge[server]'")
    run(url, fill)
    for table in (ENTRY_COLUMNS, ENTRY_NAMES):
        execute(url, f"DROP TABLE {table}")
    refused: list[Callable[[Ledger], Any]] = [
        lambda ledger: ledger.append({"n": 1}, kind="run"),
        lambda ledger: ledger.verify(),
    ]

    for work in refused:
        with pytest.raises(Exception, match="adjudge ledger upgrade"):
            run(url, work)
    run(url, lambda ledger: ledger.upgrade())

    assert run(url, lambda ledger: ledger.verify())
    assert run(url, lambda ledger: ledger.append({"n": 1}, kind="run"))
