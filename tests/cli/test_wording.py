"""What the command line says speaks of its options, and never of arguments of a Python function."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kit import cli
from kit.cli import WORDS, Line
from kit.judges import names

ASK = ("--criteria", "Is polite.", "--judge", WORDS)

PYTHON = re.compile(r"\b[a-z_]+=(?!\w*[/.])|[a-z_]\(\)|\bUsageError\b|\blambda\b")
"""An argument of a function, a call, a class of ours."""


@pytest.fixture(name="line")
def provide_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    """The command line in a folder with what goes wrong."""
    cli.isolate(monkeypatch, tmp_path)
    Path("bad.jsonl").write_text("no json\n", "utf-8")
    Path("good.jsonl").write_text('{"content": "good"}\n', "utf-8")
    Path("good.txt").write_text("good", "utf-8")
    Path("columns.csv").write_text("a,b\n1,2\n", "utf-8")
    Path("cases.txt").write_text("x", "utf-8")
    line = Line(capsys)
    assert line("run", "good.jsonl", *ASK, "--out", "run", "--repeat", "2").status == 0
    return line


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "bad.jsonl", *ASK, "--out", "x"), "--on-bad-row skip leaves it out"),
        (("run", "good.jsonl", *ASK, "--out", "run"), "resume it with --resume, or name another folder"),
        (("run", "good.jsonl", *ASK, "--out", "run", "--resume"), "it has --repeat 2, and you asked for fewer, 1"),
        (("run", "columns.csv", *ASK, "--out", "x"), "with --content"),
        (("run", "cases.txt", *ASK, "--out", "x"), "give --from as one of"),
        (("judge", "good.txt", *ASK, "--reader", "label"), "--reader-labels"),
        (("judge", "good.txt", "--rubric", "Is this nice?", "--judge", WORDS), ""),
        (("judge", "good.txt", "--threshold", "0.5", "--judge", WORDS), "--criteria"),
        (("judge", "good.txt", "--criteria", "Is polite."), "adjudge demo judges without one, and adjudge doctor says"),
        (("judge", "good.txt", *ASK, "--strategy", "quorum"), "--quorum"),
        (("judge", "good.txt", *ASK, "--timeout", "-1"), "--timeout"),
        (("judge", "good.txt", *ASK, "--threshold", "70"), "--threshold"),
        (("run", "-", *ASK, "--sample", "2", "--out", "x"), "can be read once only … name a file"),
    ],
)
def test_messages_speak_of_options(line: Line, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], message: str):
    """Whatever part of the library found what is wrong."""
    cli.feed(monkeypatch, b'{"content": "good"}\n')
    ran = line(*words)

    assert ran.status == 2
    assert names(ran.err, *message.split(" … "))
    assert PYTHON.search(ran.err) is None, ran.err
