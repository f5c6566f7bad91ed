"""The drawing of what an agent changed in its workspace, however much that is."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from adjudge.agents import changes
from adjudge.agents.changes import list_changes
from adjudge.agents.step import FileChange
from adjudge.agents.workspace import take_snapshot

pytestmark = pytest.mark.integration


def compare(tmp_path: Path, before: dict[str, str], after: dict[str, str]) -> tuple[FileChange, ...]:
    """The changes from one folder to another, each with files of these texts."""
    for side, texts in (("before", before), ("after", after)):
        (tmp_path / side).mkdir()
        for name, text in texts.items():
            (tmp_path / side / name).write_text(text, "utf-8")
    source, copy = tmp_path / "before", tmp_path / "after"
    return list_changes(take_snapshot(source), take_snapshot(copy), source, copy)


def test_files_are_drawn_until_all_of_them_come_to_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A drawing of thousands of large files would fill the memory. Of the others, size and digest are there."""
    monkeypatch.setattr(changes, "MOST_BYTES_DRAWN", 10_000)
    written: list[int] = []
    run = subprocess.run

    def watch(command: list[str], **options: Any) -> Any:
        written.append(sum(path.stat().st_size for path in Path(options["cwd"]).rglob("*") if path.is_file()))
        return run(command, **options)

    monkeypatch.setattr(subprocess, "run", watch)
    before = {f"f{number:02}": "old\n" * 500 for number in range(8)} | {"small": "old\n"}
    after = {name: text.replace("old", "new") for name, text in before.items()}

    listed = compare(tmp_path, before, after)

    assert written == [8_008]
    assert [change.path for change in listed if change.diff.startswith("@@")] == ["f00", "f01", "small"]
    undrawn = {change.diff.partition(", SHA-256")[0] for change in listed if not change.diff.startswith("@@")}
    assert undrawn == {"not drawn: 2,000 bytes"}


def test_a_line_that_looks_like_the_head_of_another_file_is_a_part_of_its_own(tmp_path: Path):
    """The output is split where git begins a file, and not where a file says so."""
    before = {"a": "x\n", "b": "é\n", "c": "1\n"}
    after = {"a": "diff --git a/9 b/9\n", "b": "ü\n", "c": "2\n"}

    listed = compare(tmp_path, before, after)

    assert [change.diff.partition("\n")[2] for change in listed] == [
        "-x\n+diff --git a/9 b/9",
        "-é\n+ü",
        "-1\n+2\n",
    ]
