"""Folders of runs that are damaged or hostile: a sentence and status 2, whoever reads them."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from adjudge import UsageError, open_run, run
from adjudge.report import diff
from kit.cli import Line

pytestmark = pytest.mark.timed


DATA = [{"id": "late", "content": "Dear Ann."}, {"id": "rude", "content": "No."}]
RUBRIC = {"name": "Polite", "criteria": [{"name": "greets", "description": "Greets.", "rule": {"regex": "^Dear"}}]}


@pytest.fixture(name="line")
def provide_line(capsys: pytest.CaptureFixture[str]) -> Line:
    """The command line."""
    return Line(capsys)


@pytest.fixture(name="folder")
def make_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that is in order, in the working directory."""
    monkeypatch.chdir(tmp_path)
    Path("data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in DATA))
    Path("polite.json").write_text(json.dumps(RUBRIC))
    run("data.jsonl", "rules", "polite.json", out="run").finish_sync().close()
    shutil.copytree("run", "good")
    return Path("run")


def change_table(statement: str, *values: Any) -> None:
    with closing(sqlite3.connect("run/results.sqlite")) as connection, connection:
        connection.execute(statement, values)


def change_manifest(**changes: Any) -> None:
    path = Path("run/run.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def overwrite(name: str, content: bytes, start: int = 0) -> None:
    with (Path("run") / name).open("r+b") as file:
        size = file.seek(0, 2)
        file.seek(start)
        file.write(content * ((size - start) // len(content) + 1))


def read_all(folder: Path) -> None:
    with open_run(folder) as opened:
        assert opened.usage.calls >= 0
        list(opened.items())


FILES = {
    "no tables": lambda: Path("run/results.sqlite").write_bytes(b""),
    "broken pages": lambda: overwrite("results.sqlite", b"\xff", start=4096),
    "no results": lambda: change_table("DROP TABLE results"),
    "no cases": lambda: change_table("DROP TABLE cases"),
    "no result": lambda: change_table("UPDATE results SET body = ?", b"nonsense"),
    "a deep result": lambda: change_table("UPDATE results SET body = ?", b"[" * 100_000),
    "no counts": lambda: change_manifest(counts=None),
    "counts of words": lambda: change_manifest(counts={"passed": "x", "failed": 0, "undecided": 0}),
    "counts of less": lambda: change_manifest(counts={"passed": 2}),
    "no summary": lambda: change_manifest(summary={}),
    "no id": lambda: change_manifest(id=None),
    "no status": lambda: change_manifest(status=None),
}


@pytest.mark.parametrize("damage", FILES.values(), ids=list(FILES))
def test_a_damaged_run_is_a_sentence(folder: Path, damage: Any):
    """Opening it and reading all of it, and comparing it in either place end in a ``UsageError``."""
    damage()

    with pytest.raises(UsageError):
        read_all(folder)
    with pytest.raises(UsageError):
        diff(folder, "good")
    with pytest.raises(UsageError):
        diff("good", folder)


CASES = {
    "text": b"nonsense",
    "list": b"[]",
    "less": b"{}",
    "number as id": b'{"id": 5, "content": "x"}',
    "list as group": b'{"id": "a", "content": "x", "group": ["b"]}',
    "text as metadata": b'{"id": "a", "content": "x", "metadata": "m"}',
    "object as label": b'{"id": "a", "content": "x", "label": {}}',
}


@pytest.mark.parametrize("body", CASES.values(), ids=list(CASES))
def test_a_case_that_cannot_be_read_is_named(folder: Path, body: bytes):
    """A case in a form that is not ours is said with its place."""
    change_table("UPDATE cases SET body = ? WHERE place = 1", body)

    with pytest.raises(UsageError, match="what the run kept of case 1 cannot be read"):
        read_all(folder)


@pytest.mark.parametrize("criteria", [[[]], ["text"], [{"name": "a"}], {}, None])
def test_a_rubric_that_cannot_be_read_is_a_sentence(folder: Path, line: Line, criteria: Any):
    """Redeciding says that another has to be named."""
    change_manifest(rubric={"name": "Polite", "passing_threshold": 0.5, "criteria": criteria})

    ran = line("redecide", str(folder), "--threshold", "0.3")
    assert (ran.status, "crashed" in ran.err) == (2, False)
    assert "rubric" in ran.sentence or "criteri" in ran.sentence


GOING_ON = FILES | {
    "no digests": lambda: change_manifest(digests=None),
    "no options": lambda: change_manifest(options="none"),
    "repeat of words": lambda: change_manifest(options={"repeat": "x"}),
    "no lock": lambda: Path("run/run.lock").write_bytes(b"no lock" * 1000),
    "a link to itself": lambda: (
        Path("run/results.sqlite").unlink(),
        Path("run/results.sqlite").symlink_to("results.sqlite"),
    ),
}
for name in ("no tables", "no result", "a deep result"):  # begun anew, or not looked at
    del GOING_ON[name]


@pytest.mark.parametrize("damage", GOING_ON.values(), ids=list(GOING_ON))
def test_a_damaged_run_does_not_go_on(folder: Path, line: Line, damage: Any):
    """Nothing is judged into it, and the status is that of wrong usage."""
    damage()
    done = line("run", "data.jsonl", "--judge", "rules", "--rubric", "polite.json", "--out", "run", "--resume")

    assert done.status == 2
    assert "crashed" not in done.err


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links and pipes")
def test_a_manifest_is_not_written_through_a_link(folder: Path, line: Line):
    """A link in its place is replaced: what it leads to is somebody else's file."""
    kept = (folder / "run.json").read_text()
    Path("mine").write_text(kept)
    (folder / "run.json").unlink()
    (folder / "run.json").symlink_to(Path("mine").resolve())

    ran = line("run", "data.jsonl", "--judge", "rules", "--rubric", "polite.json", "--out", "run", "--resume")

    assert (ran.status, Path("mine").read_text()) == (0, kept)
    assert not (folder / "run.json").is_symlink()


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links and pipes")
def test_a_manifest_that_is_a_pipe_is_not_waited_for(folder: Path):
    """Whoever reads a stranger's folder does not hang in it."""
    (folder / "run.json").unlink()
    os.mkfifo(folder / "run.json")

    with pytest.raises(UsageError, match="is not a regular file"):
        open_run(folder)
