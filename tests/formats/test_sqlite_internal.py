"""SQLite files are opened in one way: for their owner alone, in a log that several processes share."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from adjudge.formats.sqlite import UNUSABLE, create_private, enter_wal, name_sqlite, open_sqlite


def count_tables(path: Path) -> int:
    with closing(open_sqlite(path, mode="read")) as connection:
        return connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]


@pytest.mark.skipif(os.name != "posix", reason="file modes are those of POSIX")
def test_a_file_is_made_for_its_owner_alone(tmp_path: Path):
    """Whatever the umask, the database and the files that SQLite puts beside it are nobody else's."""
    path = tmp_path / "file.db"
    before = os.umask(0)
    try:
        with closing(open_sqlite(path, mode="make", prepare=enter_wal)) as connection:
            connection.execute("CREATE TABLE t (n)")
            modes = {item.name: stat.S_IMODE(item.stat().st_mode) for item in tmp_path.iterdir()}
    finally:
        os.umask(before)

    assert modes == dict.fromkeys(("file.db", "file.db-wal", "file.db-shm"), 0o600)


@pytest.mark.parametrize("mode", ["read", "write"])
def test_only_make_begins_a_file(tmp_path: Path, mode: str):
    """A mistyped path is refused, and leaves no empty file behind."""
    path = tmp_path / "absent.db"
    with pytest.raises(UNUSABLE):
        open_sqlite(path, mode=mode, prepare=lambda opened: opened.execute("SELECT 1 FROM sqlite_schema"))  # type: ignore[arg-type]

    assert not path.exists()


def test_a_reader_cannot_write(tmp_path: Path):
    """What is opened to be read stays as it is."""
    path = tmp_path / "file.db"
    open_sqlite(path, mode="make", prepare=lambda opened: opened.execute("CREATE TABLE t (n)")).close()

    with closing(open_sqlite(path, mode="read")) as connection, pytest.raises(sqlite3.OperationalError):
        connection.execute("INSERT INTO t VALUES (1)")


@pytest.mark.parametrize("name", [":memory:", "a?mode=memory", "what#is.db", "100 %.db", "ünï.db"])
def test_a_name_is_a_file_whatever_it_looks_like(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    """No name of a file is an option, an address or a database in memory."""
    monkeypatch.chdir(tmp_path)
    open_sqlite(name, mode="make", prepare=lambda opened: opened.execute("CREATE TABLE t (n)")).close()

    assert [item.name for item in tmp_path.iterdir()] == [name]
    assert count_tables(tmp_path / name) == 1
    assert name_sqlite(name, "write").count("?") == 1


def test_what_prepare_raises_closes_the_connection(tmp_path: Path):
    """A file that turns out to be somebody else's is not held open."""
    seen: list[sqlite3.Connection] = []

    def refuse(connection: sqlite3.Connection) -> None:
        seen.append(connection)
        raise LookupError

    with pytest.raises(LookupError):
        open_sqlite(tmp_path / "file.db", mode="make", prepare=refuse)

    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        seen[0].execute("SELECT 1")


def test_a_file_that_is_there_is_not_begun_anew(tmp_path: Path):
    """``new`` refuses it; without, it is left as it is."""
    path = tmp_path / "file.db"
    path.write_bytes(b"mine")
    create_private(path)

    with pytest.raises(FileExistsError):
        create_private(path, new=True)
    assert path.read_bytes() == b"mine"


WRITE = (
    "import sqlite3, sys; connection = sqlite3.connect(sys.argv[1], isolation_level=None); "
    "connection.execute('INSERT INTO t VALUES (2)'); connection.close()"
)


@pytest.mark.integration
def test_what_is_committed_is_not_lost_when_another_process_closes(tmp_path: Path):
    """Opening a second connection drops no lock of the first: another process does not delete the log that is used."""
    path = tmp_path / "file.db"
    with closing(open_sqlite(path, mode="make", prepare=enter_wal)) as first:
        first.execute("CREATE TABLE t (n)")
        first.execute("INSERT INTO t VALUES (1)")
        with closing(open_sqlite(path, mode="make", prepare=enter_wal)):
            create_private(path)
            # Whoever takes itself for the last user of a database empties its log at the end, and deletes it.
            subprocess.run([sys.executable, "-c", WRITE, str(path)], check=True)
            first.execute("INSERT INTO t VALUES (3)")
            ran = subprocess.run(
                [sys.executable, "-c", WRITE.replace("VALUES (2)", "SELECT count(*) FROM t"), str(path)], check=True
            )
    with closing(open_sqlite(path, mode="read")) as connection:
        numbers = [row[0] for row in connection.execute("SELECT n FROM t ORDER BY rowid")]

    assert ran.returncode == 0
    assert numbers == [1, 2, 3, 3]


@pytest.mark.parametrize("kind", ["folder", "loop"])
def test_what_can_be_no_file_is_refused(tmp_path: Path, kind: str):
    """A folder, and a link to itself."""
    path = tmp_path / "file.db"
    if kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(path)

    with pytest.raises(OSError, match=r"file\.db"):
        create_private(path)


def test_a_link_to_a_file_that_is_not_there_begins_it(tmp_path: Path):
    """For its owner alone, where the link points to."""
    (tmp_path / "link.db").symlink_to(tmp_path / "file.db")
    create_private(tmp_path / "link.db")

    assert stat.S_IMODE((tmp_path / "file.db").stat().st_mode) == 0o600


def test_many_enter_the_log_of_a_new_file_at_once(tmp_path: Path):
    """Each wants the file's lock for it; those who do not get it wait, and none is refused."""
    path = tmp_path / "file.db"
    errors: list[Exception] = []
    ready = threading.Barrier(8)

    def enter() -> None:
        ready.wait()
        try:
            open_sqlite(path, mode="make", prepare=enter_wal).close()
        except sqlite3.Error as error:
            errors.append(error)

    threads = [threading.Thread(target=enter) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []


@pytest.mark.parametrize(("durable", "level"), [(True, 2), (False, 1)])
def test_what_is_durable_waits_for_the_disk(tmp_path: Path, durable: bool, level: int):
    """A ledger's commit is on disk when it returns; a run's need not be."""
    with closing(open_sqlite(tmp_path / "file.db", mode="make")) as connection:
        enter_wal(connection, durable=durable)

        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        assert connection.execute("PRAGMA synchronous").fetchone()[0] == level
