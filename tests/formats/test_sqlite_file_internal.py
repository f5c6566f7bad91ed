"""A SQLite file of ours: begun once, refused when it is not ours, changed all or nothing."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from adjudge import AdjudgeError, UsageError
from adjudge.formats.sqlite import create_private
from adjudge.formats.sqlite_file import FileKind, SqliteFile
from kit.patience import HANG

KIND = FileKind(
    schema="test/things/1",
    tables=("CREATE TABLE things (name TEXT PRIMARY KEY) STRICT",),
    unreadable="{path} cannot be read: {why}",
    unwritable="{folder} cannot be written: {why}",
    other_schema="{path} is not of {schema}",
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "things.sqlite"


def list_things(path: Path) -> list[str]:
    return [row[0] for row in SqliteFile(path, KIND).ask("SELECT name FROM things ORDER BY name")]


def test_a_file_begins_with_its_tables_and_schema(path: Path):
    """And what was kept is there for the next who opens it."""
    with closing(SqliteFile(path, KIND, mode="make")) as file:
        assert file.execute("INSERT INTO things VALUES (?)", "a") == 1
        file.set_fact("colour", "red")

    again = SqliteFile(path, KIND)
    assert (list_things(path), again.find_fact("colour"), again.find_fact("schema")) == (["a"], "red", "test/things/1")


def test_only_make_and_begin_make_a_file(path: Path):
    """A mistyped path is refused, and nothing is there afterwards."""
    with pytest.raises(UsageError, match="cannot be read: unable to open"):
        SqliteFile(path, KIND).open()
    assert not path.exists()

    SqliteFile(path, KIND).begin().close()
    assert SqliteFile(path, KIND).has_tables()


def test_a_file_that_was_left_empty_is_begun(path: Path):
    """Its process was killed before it made the tables."""
    create_private(path)
    assert not SqliteFile(path, KIND).has_tables()

    SqliteFile(path, KIND).begin().close()
    assert list_things(path) == []


@pytest.mark.parametrize("mode", ["make", "write", "read", "look"])
def test_a_database_of_another_program_is_refused_and_not_changed(path: Path, mode: str):
    """Not even its journal is."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    before = path.read_bytes()

    with pytest.raises(UsageError, match="is not of test/things/1"):
        SqliteFile(path, KIND, mode=mode).open()  # type: ignore[arg-type]

    assert [item.name for item in path.parent.iterdir()] == [path.name]
    assert path.read_bytes() == before


ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM r) SELECT n AS name FROM r"


@pytest.mark.parametrize("mode", ["make", "write", "read", "look"])
@pytest.mark.parametrize(
    "statements",
    [
        ("ALTER TABLE things RENAME TO old", f"CREATE VIEW things AS {ENDLESS}"),
        ("ALTER TABLE about RENAME TO old", f"CREATE VIEW about AS {ENDLESS}"),
        ("DROP TABLE things", "CREATE TABLE things (name TEXT AS (hex(zeroblob(1000000000))), a)"),
        ("DROP TABLE things", "CREATE VIRTUAL TABLE things USING fts5(name)"),
        (f"CREATE TRIGGER slow AFTER INSERT ON things BEGIN DELETE FROM about WHERE name IN ({ENDLESS}); END",),
        ("CREATE TABLE other (name TEXT)",),
    ],
)
def test_a_file_with_tables_of_another_making_is_refused(path: Path, mode: str, statements: tuple[str, ...]):
    """A stranger's view in the place of a table would be read without end."""
    SqliteFile(path, KIND, mode="make").open().close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)

    with pytest.raises(UsageError, match=r"is not as adjudge makes it|is not of test/things/1"):
        SqliteFile(path, KIND, mode=mode).open()  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["make", "write", "read", "look"])
def test_a_trigger_by_the_name_of_a_table_is_refused(path: Path, mode: str):
    """SQLite allows it where the table is made after it."""
    SqliteFile(path, KIND, mode="make").open().close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        [about] = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'about'").fetchone()
        connection.execute("DROP TABLE about")
        connection.execute("CREATE TRIGGER about AFTER INSERT ON things BEGIN DELETE FROM things; END")
        connection.execute(about)
        connection.execute("INSERT INTO about VALUES ('schema', ?)", (KIND.schema,))

    with pytest.raises(UsageError, match="'about' in it is not as adjudge makes it"):
        SqliteFile(path, KIND, mode=mode).open()  # type: ignore[arg-type]


def test_a_file_that_lacks_something_of_ours_is_refused(path: Path):
    """It may be the trigger that keeps what was written from being changed."""
    SqliteFile(path, KIND, mode="make").open().close()
    kind = replace(KIND, tables=(*KIND.tables, "CREATE TABLE others (name TEXT) STRICT"))

    with pytest.raises(UsageError, match="lacks 'CREATE TABLE others"):
        SqliteFile(path, kind, mode="write").open()


def test_a_file_that_somebody_had_analysed_is_read(path: Path):
    """What SQLite keeps for itself is no table of a stranger."""
    with closing(SqliteFile(path, KIND, mode="make")) as file:
        file.execute("INSERT INTO things VALUES ('a')")
        file.execute("ANALYZE")

    assert list_things(path) == ["a"]


def test_a_newer_schema_is_refused(path: Path):
    """What a later version keeps there may mean something else."""
    SqliteFile(path, replace(KIND, schema="test/things/2"), mode="make").open().close()

    with pytest.raises(UsageError, match="is not of test/things/1"):
        SqliteFile(path, KIND).open()


def test_what_is_no_database_is_refused(path: Path):
    """With what SQLite says of it, on one line."""
    path.write_bytes(b"no database" * 1000)

    with pytest.raises(UsageError, match=r"things\.sqlite cannot be read: file is not a database"):
        SqliteFile(path, KIND, mode="make").open()


def test_a_check_comes_before_each_opening(path: Path):
    """A file that must not be opened is not."""

    def refuse(place: Path) -> None:
        raise UsageError(f"not {place.name}")

    with pytest.raises(UsageError, match=r"not things\.sqlite"):
        SqliteFile(path, replace(KIND, check=refuse), mode="make").open()
    assert not path.exists()


def test_a_change_is_done_as_a_whole_or_not_at_all(path: Path):
    """A change within another is part of it."""
    file = SqliteFile(path, KIND, mode="make")

    def add(*names: str) -> None:
        with file.change():
            file.execute("INSERT INTO things VALUES (?)", names[0])
            with file.change() as connection:
                connection.executemany("INSERT INTO things VALUES (?)", [(name,) for name in names[1:]])

    add("a", "b")
    with pytest.raises(UsageError, match="UNIQUE"):
        add("c", "a")
    assert list_things(path) == ["a", "b"]


def test_a_file_that_cannot_be_written_is_no_wrong_usage(path: Path):
    """Another process holds it, or the disk is full: the file itself is in order."""
    file = SqliteFile(path, KIND, mode="make", statement_wait=0).open()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(AdjudgeError, match="cannot be written: database is locked") as caught:
            file.execute("INSERT INTO things VALUES ('a')")

    assert not isinstance(caught.value, UsageError)


def test_what_is_streamed_stands_in_nobodys_way(path: Path):
    """A reader that is half-way sees what was there when it began, and others write meanwhile."""
    file = SqliteFile(path, KIND, mode="make")
    file.execute("INSERT INTO things VALUES ('a'), ('b')")
    rows = file.stream("SELECT name FROM things ORDER BY name")

    first = next(rows)
    file.execute("INSERT INTO things VALUES ('c')")

    assert [first, *rows] == [("a",), ("b",)]
    assert list_things(path) == ["a", "b", "c"]


def test_many_threads_begin_one_file(path: Path):
    """Each with an opening of its own: the tables are made once, and none is refused."""
    errors: list[Exception] = []
    ready = threading.Barrier(8)

    def begin(number: int) -> None:
        ready.wait(HANG)
        try:
            with closing(SqliteFile(path, KIND, mode="make")) as file:
                file.execute("INSERT INTO things VALUES (?)", str(number))
        except Exception as error:  # noqa: BLE001 - shown below
            errors.append(error)

    threads = [threading.Thread(target=begin, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    assert list_things(path) == list("01234567")
