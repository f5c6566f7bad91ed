"""The files that a call names are found in its folder, and nowhere else."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from adjudge.guards.tool_guard.files import MOST_BYTES, MOST_FILES, MOST_WORDS, NamedFiles, read_named_files


@pytest.fixture(name="folder")
def make_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    (folder / "src").mkdir(parents=True)
    (folder / "deploy.py").write_text("deploy")
    (folder / "src" / "a b.py").write_text("spaced")
    (tmp_path / "outside.txt").write_text("outside")
    return folder


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


NAMED: dict[str, tuple[dict[str, Any], set[str]]] = {
    "a path": ({"path": "deploy.py"}, {"deploy.py"}),
    "a path with a blank": ({"path": "src/a b.py"}, {"src/a b.py"}),
    "a word of a command": ({"command": "python ./deploy.py --now"}, {"deploy.py"}),
    "quoted": ({"command": "python 'deploy.py'"}, {"deploy.py"}),
    "after an operator": ({"command": "cd src&&python ../deploy.py;true"}, set()),
    "an option's value": ({"command": "run --file=deploy.py"}, {"deploy.py"}),
    "redirected": ({"command": "sh<deploy.py"}, {"deploy.py"}),
    "a list of words": ({"argv": ["python", "deploy.py"]}, {"deploy.py"}),
    "below other members": ({"options": [{"input": "deploy.py"}]}, {"deploy.py"}),
    "outside": ({"path": "../outside.txt"}, set()),
    "a folder": ({"path": "src"}, set()),
    "no file": ({"path": "nothing.py"}, set()),
    "not a path": ({"text": "x" * 10_000, "number": 5, "flag": True}, set()),
}


@pytest.mark.parametrize("name", NAMED)
def test_named_files_are_found(folder: Path, name: str):
    """As a whole argument, or as a word of a command."""
    arguments, expected = NAMED[name]

    found = read_named_files(arguments, str(folder))

    # `cd src && python ../deploy.py` is read from the folder in which the call begins, where it leads outside.
    assert set(found.digests) == expected
    assert found.is_complete


def test_an_absolute_path_in_the_folder_is_found(folder: Path):
    """It is named relative to the folder, with the SHA-256 of what it holds."""
    found = read_named_files({"path": str(folder / "deploy.py")}, str(folder))

    assert found == NamedFiles({"deploy.py": digest("deploy")})


def test_links_are_followed_inside_the_folder_alone(folder: Path):
    """A link that leads out binds nothing."""
    (folder / "in").symlink_to(folder / "deploy.py")
    (folder / "out").symlink_to(folder.parent / "outside.txt")
    (folder / "up").symlink_to(folder.parent)

    inside = read_named_files({"path": "in"}, str(folder))

    assert inside.digests == {"deploy.py": digest("deploy")}
    assert read_named_files({"a": "out", "b": "up/outside.txt"}, str(folder)).digests == {}


def test_what_is_no_file_is_not_read(folder: Path):
    """A pipe would keep the reader for ever."""
    os.mkfifo(folder / "pipe")

    assert read_named_files({"path": "pipe"}, str(folder)) == NamedFiles({})


def test_more_files_than_are_bound_are_said_to_be_left_out(folder: Path):
    """People see that not all files are bound."""
    for number in range(MOST_FILES + 1):
        (folder / f"{number}.txt").write_text("x")
    found = read_named_files({"command": " ".join(f"{n}.txt" for n in range(MOST_FILES + 1))}, str(folder))

    assert len(found.digests) == MOST_FILES
    assert not found.is_complete


def test_a_file_that_is_too_large_is_said_to_be_left_out(folder: Path):
    """The others are bound all the same."""
    with (folder / "large.bin").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    found = read_named_files({"command": "cat large.bin deploy.py"}, str(folder))

    assert set(found.digests) == {"deploy.py"}
    assert not found.is_complete


def test_words_without_end_are_said_to_be_left_out(folder: Path):
    """The work has a limit, whatever the arguments hold."""
    found = read_named_files({"command": "x " * MOST_WORDS + "deploy.py"}, str(folder))

    assert not found.is_complete
