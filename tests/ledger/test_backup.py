"""Copies of a ledger in SQLite: taken while it is in use, checked, and restored."""

from __future__ import annotations

import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from adjudge import Ledger, UsageError
from adjudge.ledger import LedgerError
from kit.cli import Line, isolate
from kit.ledgers import POSTGRES, find, record, run, start_appender, verify


@pytest.fixture(name="url")
def make_url(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'adjudge.db'}"
    record(url, {"n": 1}, {"n": 2})
    return url


@pytest.fixture(name="adjudge")
def make_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Line:
    isolate(monkeypatch, tmp_path)
    return Line(capsys)


def backup(url: str, file: Path) -> None:
    run(url, lambda ledger: ledger.backup(file))


def test_a_copy_holds_what_the_ledger_holds_and_is_its_owners_alone(url: str, tmp_path: Path):
    """Every entry, in a file that others cannot read."""
    copy = tmp_path / "copy.db"

    backup(url, copy)

    assert find(f"sqlite:///{copy}") == find(url)
    if sys.platform != "win32":
        assert copy.stat().st_mode & 0o777 == 0o600


@pytest.mark.integration
def test_a_copy_is_taken_while_others_write_and_holds_a_prefix_of_what_they_wrote(url: str, tmp_path: Path):
    """The copy is of one moment, so its chain is in order."""
    appender = start_appender(url, "other")
    try:
        assert appender.stdout is not None
        for number in range(3):
            appender.stdout.readline()
            copy = tmp_path / f"copy{number}.db"
            backup(url, copy)
            assert verify(f"sqlite:///{copy}")
    finally:
        appender.kill()
        appender.communicate()
    copied = find(f"sqlite:///{tmp_path / 'copy2.db'}")

    assert find(url)[: len(copied)] == copied


def test_a_copy_is_never_written_over_a_file(url: str, tmp_path: Path):
    """A file that is there stays as it is."""
    there = tmp_path / "there.db"
    there.write_text("mine", encoding="utf-8")

    with pytest.raises(UsageError, match="there already"):
        backup(url, there)

    assert there.read_text("utf-8") == "mine"


def test_a_copy_that_cannot_be_written_is_not_left_behind(url: str, tmp_path: Path):
    """Half a copy could be taken for a whole one."""
    with pytest.raises(UsageError, match="cannot be written"):
        backup(url, tmp_path / "missing" / "copy.db")
    with closing(sqlite3.connect(tmp_path / "adjudge.db")) as database:
        database.execute("CREATE TABLE other (x)")
    damaged = tmp_path / "damaged.db"
    data = bytearray((tmp_path / "adjudge.db").read_bytes())
    data[:16] = b"no database here"
    damaged.write_bytes(data)

    with pytest.raises((LedgerError, UsageError)):
        backup(f"sqlite:///{damaged}", tmp_path / "copy.db")

    assert not (tmp_path / "copy.db").exists()


def test_a_ledger_that_is_not_there_is_not_copied(tmp_path: Path):
    """There is an error, and no empty copy."""
    with pytest.raises(UsageError, match="no ledger"):
        backup(f"sqlite:///{tmp_path / 'none.db'}", tmp_path / "copy.db")


def test_postgresql_has_a_copier_of_its_own(tmp_path: Path):
    """The refusal names it."""
    with pytest.raises(UsageError, match="pg_dump"):
        backup(POSTGRES, tmp_path / "copy.db")


def test_the_command_prints_the_head_of_a_copy_that_is_in_order(adjudge: Line, url: str, tmp_path: Path):
    """What is printed pins the copy."""
    copy = tmp_path / "copy.db"

    ran = adjudge("ledger", "backup", copy, "--ledger", url)

    assert ran.status == 0
    assert adjudge("ledger", "verify", "--ledger", copy, "--head", ran.out.strip()).status == 0


def test_the_command_says_when_the_copied_chain_is_broken(adjudge: Line, url: str, tmp_path: Path):
    """The exit status is 1: a copy of a damaged ledger is no backup."""
    with closing(sqlite3.connect(tmp_path / "adjudge.db")) as database:
        database.execute("DROP TRIGGER adjudge_ledger_no_update")
        database.execute("UPDATE adjudge_ledger SET subject = 'another' WHERE seq = 2")
        database.commit()

    ran = adjudge("ledger", "backup", tmp_path / "copy.db", "--ledger", url)

    assert ran.status == 1
    assert "not in order" in ran.out


def test_a_restored_copy_shows_what_it_lacks_by_the_head_that_was_kept_elsewhere(url: str, tmp_path: Path):
    """Without that head the copy looks whole."""
    backup(url, tmp_path / "copy.db")
    record(url, {"n": 3})
    head = str(run(url, Ledger.head))

    shutil.move(tmp_path / "copy.db", tmp_path / "adjudge.db")

    assert verify(url)
    verification = verify(url, head)
    assert not verification
    assert verification.code == "head_missing"
