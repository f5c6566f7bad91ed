"""``adjudge judge FOLDER``: every text in it, in the order of their names, and what of it is left out."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from kit import cli
from kit.cli import WORDS, Line
from kit.judges import names

ASK = ("--criteria", "Is polite.", "--judge", WORDS)


@pytest.fixture(name="line")
def provide_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    """The command line in a folder that holds another with texts."""
    cli.isolate(monkeypatch, tmp_path)
    for name in ("texts/b.txt", "texts/a/z.md", "texts/a/c.txt", "texts/.hidden", "texts/.git/config", "alone.txt"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("good", "utf-8")
    Path("texts/picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
    return Line(capsys)


def test_every_text_of_a_folder_is_judged(line: Line):
    """Those below it too, sorted; one line says how many hidden and binary files are left out."""
    ran = line("judge", "texts", *ASK)
    paths = [str(Path("texts", name)) for name in ("a/c.txt", "a/z.md", "b.txt")]

    assert ran.status == 0
    assert [text.split("\t")[1] for text in ran.out.splitlines()] == ["input", *paths]
    assert "left out of texts: 2 hidden, 1 binary\n" in ran.err
    assert "3 inputs: 3 passed" in ran.err


def test_a_folder_can_stand_beside_files(line: Line):
    """In the order in which they are named; a folder with one text is still a folder."""
    document = line("judge", "alone.txt", "texts", *ASK, "--json").document
    Path("one").mkdir()
    Path("one/x.txt").write_text("bad", "utf-8")
    one = line("judge", "one", *ASK, "--json")

    assert [Path(item["input"]).name for item in document["results"]] == ["alone.txt", "c.txt", "z.md", "b.txt"]
    assert (one.status, len(one.document["results"])) == (1, 1)


def test_a_folder_without_a_text_is_refused(line: Line):
    """Nothing judged would look like a pass."""
    Path("empty/.git").mkdir(parents=True)
    ran = line("judge", "empty", *ASK)

    assert ran.status == 2
    assert names(ran.sentence, "empty", "no text file", "1 hidden", "a folder with texts")


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_no_link_is_followed(line: Line):
    """It may lead to a file that nobody meant to send to a model, or round in a circle."""
    Path("secret").write_text("good", "utf-8")
    Path("texts/link.txt").symlink_to(Path("secret").resolve())
    Path("texts/loop").symlink_to(Path("texts").resolve())
    os.mkfifo("texts/pipe")
    ran = line("judge", "texts", *ASK)

    assert "3 inputs: 3 passed" in ran.err
    assert "2 hidden, 1 binary, 3 links, or no files" in ran.err


def test_what_cannot_be_decided_for_the_same_reason_is_said_once(line: Line):
    """With how often; what is said of one alone names it."""
    for number in range(12):
        Path(f"texts/odd-{number}.txt").write_text("neither", "utf-8")
    Path("texts/empty.txt").write_text("", "utf-8")
    ran = line("judge", "texts", *ASK)
    undecided = [text for text in ran.err.splitlines() if "undecided (unparseable)" in text]

    assert ran.status == 2
    assert len(undecided) == 1
    assert undecided[0].endswith(" (12 times)")
    assert f"{Path('texts/empty.txt')} is empty" in ran.err
    assert "adjudge: texts/odd-1.txt: undecided" in line("judge", "texts/odd-1.txt", "alone.txt", *ASK).err
