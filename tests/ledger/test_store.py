"""Where a ledger keeps its entries: what it promises, what it refuses, and what is gone."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import stat
from collections.abc import Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from adjudge import JudgeResult, Ledger, UsageError
from adjudge.ledger import Head, LedgerError, create_signing_key
from kit.judges import names
from kit.ledgers import SECRET, connect, find, make_result, record, run, verify
from kit.patience import HANG

REST = "at, kind, subject, payload, payload_hash, prev, hash, signature FROM adjudge_ledger WHERE seq = 2"


# ---------------------------------------------------------------- the store


def test_the_file_is_its_owners_alone(url: str, tmp_path: Path):
    """Mode 0600, for the database and for its log."""

    def look() -> set[int]:
        return {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}

    async def work(ledger: Ledger) -> set[int]:
        await ledger.append({}, kind="run")
        return await asyncio.to_thread(look)

    old = os.umask(0)
    try:
        assert run(url, work) == {0o600}
    finally:
        os.umask(old)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM adjudge_ledger WHERE seq = 2",
        "UPDATE adjudge_ledger SET payload = NULL WHERE seq = 2",
        "UPDATE adjudge_ledger SET subject = 'x' WHERE seq = 2",
        "UPDATE adjudge_ledger SET seq = 9 WHERE seq = 2",
        "UPDATE OR REPLACE adjudge_ledger SET seq = 1 WHERE seq = 2",
        "INSERT OR REPLACE INTO adjudge_ledger SELECT * FROM adjudge_ledger WHERE seq = 2",
        f"INSERT OR REPLACE INTO adjudge_ledger SELECT 4, id, {REST}",
        f"INSERT INTO adjudge_ledger SELECT 9, 'x', {REST}",
        "INSERT INTO adjudge_ledger VALUES (4, 'x', 'x', 'x', 'x', 'text and no bytes', 'x', 'x', 'x', NULL)",
    ],
    ids=range(9),
)
def test_the_database_refuses_changes(url: str, statement: str):
    """Updates, deletions, replacements, gaps and values of other types are refused by SQLite itself."""
    record(url, {"n": 1}, {"n": 2})
    with connect(url) as connection, pytest.raises(sqlite3.IntegrityError):
        connection.execute(statement)

    assert verify(url)


def test_what_is_changed_past_the_triggers_is_found(url: str):
    """Whoever owns the file can drop the triggers; the hashes tell."""
    record(url, *[{"n": number} for number in range(5)])
    with connect(url) as connection:
        connection.execute("DROP TRIGGER adjudge_ledger_no_update")
        connection.execute("UPDATE adjudge_ledger SET payload = ? WHERE seq = 4", (b'{"n":7}',))
        connection.commit()
    verification = verify(url)

    assert (verification.code, verification.seq, verification.entries) == ("payload_changed", 4, 3)
    assert names(verification.detail, "entry 4", "another payload")


@pytest.mark.slow
def test_damaged_files_are_findings(url: str):
    """A page that is none any more is reported with what was still in order; no traceback."""
    record(url, *[{"n": number, "text": "x" * 500} for number in range(200)])
    path = Path(url.removeprefix("sqlite:///"))
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2 :] = b"\xff" * (len(raw) - len(raw) // 2)
    path.write_bytes(raw)
    verification = verify(url)

    assert not verification
    assert verification.code in ("unreadable", "sequence_broken", "payload_changed")


ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM r) SELECT n AS seq, 'a' AS name, 'b' AS value"


@pytest.mark.parametrize(
    "statements",
    [
        ("DROP TABLE adjudge_ledger_names", f"CREATE VIEW Adjudge_Ledger_Names AS {ENDLESS} FROM r"),
        ("ALTER TABLE adjudge_ledger ADD COLUMN more TEXT AS (hex(zeroblob(1000000000)))",),
        (f"CREATE TRIGGER x AFTER INSERT ON adjudge_ledger WHEN 0 IN ({ENDLESS} FROM r) BEGIN SELECT 1; END",),
        (
            "DROP TABLE adjudge_ledger_search_trigrams",
            "CREATE VIRTUAL TABLE adjudge_ledger_search_trigrams USING fts5(text)",
        ),
    ],
    ids=range(4),
)
def test_a_ledger_with_tables_of_another_making_is_not_read(url: str, statements: tuple[str, ...]):
    """A stranger's view in the place of a table would be read without end."""
    record(url, {"n": 1})
    with connect(url) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    verification = verify(url)

    assert verification.code == "unreadable"
    assert "is not as adjudge makes it" in verification.detail
    with pytest.raises(LedgerError, match="is not as adjudge makes it"):
        record(url, {"n": 2})


def test_tables_of_others_may_be_in_the_file(url: str):
    """Nobody here reads them."""
    record(url, {"n": 1})
    with connect(url) as connection:
        connection.execute("CREATE VIEW payloads AS SELECT CAST(payload AS TEXT) FROM adjudge_ledger")

    assert verify(url)


def test_entries_that_were_all_removed_are_not_begun_anew(url: str):
    """An emptied ledger does not verify, and nothing is appended to it."""
    record(url, {"n": 1})
    with connect(url) as connection:
        connection.execute("DROP TRIGGER adjudge_ledger_no_delete")
        connection.execute("DELETE FROM adjudge_ledger")
        connection.commit()

    assert verify(url).code == "empty"
    with pytest.raises(LedgerError, match="lost its genesis"):
        record(url, {"n": 2})


@pytest.mark.parametrize("url", ["", "sqlite://", "sqlite:///:memory:", "mysql://x", "sqlite:///a?mode=ro", "::"])
def test_other_addresses_are_refused(url: str):
    """Neither of the two stores, no file, or options: said when the ledger is made."""
    with pytest.raises(UsageError, match="ledger"):
        Ledger(url)


def test_a_file_that_cannot_be_written_is_said(tmp_path: Path):
    """A folder that is not there, and a file that is no database."""
    (tmp_path / "text.db").write_text("not a database at all, but long enough to be looked at" * 20)
    with pytest.raises(UsageError, match="cannot be written: No such file"):
        record(f"sqlite:///{tmp_path}/none/a.db", {})
    with pytest.raises(LedgerError, match="not a database"):
        record(f"sqlite:///{tmp_path}/text.db", {})


def test_options_that_contradict_each_other_are_refused(url: str):
    """``redacted`` and ``redact`` belong together, and there are three ways to store content."""
    for options in ({"store_content": "none"}, {"store_content": "redacted"}, {"redact": str}):
        with pytest.raises(UsageError, match=r"redact|full"):
            Ledger(url, **options)  # type: ignore[arg-type]


def test_an_append_that_has_to_wait_holds_nobody_up(url: str, tmp_path: Path):
    """While somebody else writes, the loop goes on; here it has to, for it is the one to let the append go on."""

    async def work(ledger: Ledger) -> int:
        await ledger.append({}, kind="run")
        with closing(sqlite3.connect(tmp_path / "adjudge.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            waiting = asyncio.create_task(ledger.append({}, kind="run"))
            for _ in range(1_000):
                await asyncio.sleep(0)
            assert not waiting.done()
            other.execute("ROLLBACK")
        return await waiting

    assert run(url, work) == 3


def test_sqlite_is_told_what_a_ledger_rests_on(url: str, tmp_path: Path):
    """Readers do not wait for writers (WAL), and a column holds what it is declared to hold (STRICT)."""
    record(url, {})
    with closing(sqlite3.connect(tmp_path / "adjudge.db")) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert [row[5] for row in connection.execute("PRAGMA table_list") if row[1] == "adjudge_ledger"] == [1]


def test_a_ledger_serves_several_loops_and_is_used_again_after_it_was_closed(url: str):
    """Closing waits for what was handed in; the next use opens anew."""
    ledger = Ledger(url)

    async def use(number: int) -> int:
        place = await ledger.append({"n": number}, kind="run")
        await ledger.aclose()
        return place

    assert [asyncio.run(use(number)) for number in range(3)] == [2, 3, 4]


def test_a_cancelled_append_is_whole_or_absent(url: str):
    """Whoever stops waiting leaves a chain in order, and the others their answers."""

    async def work(ledger: Ledger) -> Any:
        tasks = [asyncio.ensure_future(ledger.append({"n": number}, kind="run")) for number in range(50)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        kept = [await task for task in tasks[1::2]]
        return kept, await ledger.verify()

    kept, verification = run(url, work)

    assert len(set(kept)) == 25
    assert verification


@pytest.mark.integration
@pytest.mark.integration
def test_a_forked_child_uses_connections_of_its_own(url: str):
    """After a fork neither the writer's thread nor a connection is the parent's."""
    import multiprocessing

    ledger = Ledger(url)

    def append() -> None:
        asyncio.run(_append_and_close(ledger))

    append()
    process = multiprocessing.get_context("spawn" if not hasattr(os, "fork") else "fork").Process(target=append)
    process.start()
    process.join(HANG)
    append()

    assert process.exitcode == 0
    assert verify(url).entries == 4


async def _append_and_close(ledger: Ledger) -> None:
    await ledger.append({}, kind="run")
    await ledger.aclose()


# ---------------------------------------------------------------- head, erasure, signatures


def test_a_pinned_head_is_read_from_its_forms(url: str, tmp_path: Path):
    """The value, its text, and a file with the text or the JSON."""
    record(url, {"n": 1})
    head = run(url, Ledger.head)
    (tmp_path / "head.txt").write_text(f"{head}\n")
    (tmp_path / "head.json").write_text(json.dumps(head.to_dict()))

    for pin in (head, str(head), tmp_path / "head.txt", str(tmp_path / "head.json")):
        assert verify(url, pin).pinned_head
    assert verify(url, Head(seq=2, hash="0" * 64)).code == "head_changed"
    assert verify(url, Head(seq=9, hash="0" * 64)).code == "head_missing"
    for wrong in ("2:zz", "x", tmp_path / "none", tmp_path):
        with pytest.raises(UsageError, match="head"):
            verify(url, wrong)


def test_an_erased_payload_is_gone_and_the_chain_holds(url: str, tmp_path: Path):
    """The bytes are in no file any more; the hash, who and why are in the ledger."""
    record(url, {"text": SECRET}, {"n": 2})
    place = run(url, lambda ledger: ledger.erase(2, "asked for by the person", "dpo@example.com"))
    entries = find(url)
    record(url, {"n": 3})
    verification = verify(url)

    assert SECRET.encode() not in b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert (place, entries[1].payload, entries[3].kind) == (4, None, "erasure")
    assert entries[3].payload is not None
    assert entries[3].payload["by"] == "dpo@example.com"
    assert entries[3].payload["payload_hash"] == entries[1].payload_hash
    assert verification
    assert verification.erased == {2: 4}


@pytest.mark.slow
def test_an_erasure_does_not_wait_for_readers(url: str):
    """Somebody reads for long: the erasure is recorded, and what was erased leaves the log with a later one."""
    record(url, {"text": SECRET}, {"n": 2})
    with connect(url) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT COUNT(*) FROM adjudge_ledger").fetchone()
        assert run(url, lambda ledger: ledger.erase(2, "why", "me")) == 4
        assert reader.execute("SELECT payload FROM adjudge_ledger WHERE seq = 2").fetchone()[0] is not None
        reader.execute("COMMIT")
    run(url, lambda ledger: ledger.erase(3, "why", "me"))

    assert SECRET.encode() not in Path(url.removeprefix("sqlite:///")).read_bytes()
    assert verify(url).erased == {2: 4, 3: 5}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, "why", "me"), "is a genesis"),
        ((3, "why", "me"), "is a erasure"),
        ((2, "why", "me"), "erased before"),
        ((9, "why", "me"), "no entry 9"),
        ((2, " ", "me"), "needs reason"),
        ((2, "why", ""), "needs by"),
    ],
    ids=range(6),
)
def test_erasures_that_cannot_be_are_refused(url: str, arguments: Any, message: str):
    """What is not there, what explains the rest, and what nobody answers for; nothing is recorded."""
    record(url, {"n": 1})
    run(url, lambda ledger: ledger.erase(2, "why", "me"))
    with pytest.raises(UsageError, match=message):
        run(url, lambda ledger: ledger.erase(*arguments))

    assert verify(url).entries == 3


def test_a_signed_ledger_is_signed_throughout(url: str, tmp_path: Path, require):
    """Every entry is signed, an erasure too; without the key, or with another, nothing is appended."""
    from importlib.util import find_spec

    require("cryptography", find_spec("cryptography"), "pip install 'adjudge[sign]'")
    key = tmp_path / "key.pem"
    public = create_signing_key(key)
    record(url, {"n": 1}, key=key)
    run(url, lambda ledger: ledger.erase(2, "why", "me"), key=str(key))
    create_signing_key(tmp_path / "other.pem")

    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert all(entry.signature for entry in find(url))
    assert verify(url, public_key=public).signatures == "pinned"
    assert verify(url).signatures == "own"
    assert not verify(url, public_key="0" * 64)
    for options in ({}, {"key": tmp_path / "other.pem"}):
        with pytest.raises(UsageError, match="is signed with"):
            record(url, {"n": 2}, **options)
    record(f"{url}2", {"n": 1})
    with pytest.raises(UsageError, match="without signatures"):
        record(f"{url}2", {"n": 2}, key=key)


@pytest.mark.parametrize("key", [b"short", "none.pem", b"-----BEGIN PRIVATE KEY-----\nx\n", 5])
def test_what_is_no_key_is_refused(url: str, key: Any, require):
    """A sentence that names the remedy and quotes nothing of the key."""
    from importlib.util import find_spec

    require("cryptography", find_spec("cryptography"), "pip install 'adjudge[sign]'")
    with pytest.raises(UsageError, match="key"):
        Ledger(url, key=key)


def test_passwords_are_not_shown():
    """Neither the representation nor an error holds the password of an address."""
    ledger = Ledger("postgresql://someone:hunter2@127.0.0.1:1/none")

    async def head() -> Coroutine[Any, Any, Head] | Head:
        return await ledger.head()

    with pytest.raises((LedgerError, UsageError)) as caught:
        asyncio.run(head())
    assert "hunter2" not in repr(ledger) + str(caught.value)


def test_a_result_given_twice_is_two_entries(url: str):
    """A ledger records that something was recorded; it does not look for repeats."""
    result: JudgeResult = make_result()

    assert record(url, result, result) == [2, 3]
