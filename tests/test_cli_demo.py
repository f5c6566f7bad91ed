"""``adjudge demo``: the whole road without a key, without a network and without a configuration."""

from __future__ import annotations

import re
import socket
import sys
from pathlib import Path

import pytest

import cli_support
from cli_support import Line


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    cli_support.isolate(monkeypatch, tmp_path)
    return Line(capsys)


def test_the_demo_needs_nothing(line: Line, monkeypatch: pytest.MonkeyPatch):
    """No connection is made and no name is looked up, and it ends well."""

    def refuse(*_: object) -> None:
        raise AssertionError("the demo went to the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)

    assert line("demo").status == 0


def test_the_demo_shows_a_table_and_explains_one(line: Line):
    """Ten answers with a mark for each criterion, one failure told in words, and what to type next."""
    out = line("demo").out
    rows = [text.split() for text in out.splitlines() if re.search(r"[✓✗] (passed|failed) ", text)]

    assert len(rows) == 10
    assert {row[2] for row in rows} == {"passed", "failed"}
    assert "5 of 10 answers pass the rubric 'Support answer', which needs 0.75." in out
    assert (
        "Why 'template-left' failed: failed with 0.80 (needs 0.75); below their own threshold: no-placeholders" in out
    )
    assert "adjudge judge answer.txt --criteria" in out
    assert "\x1b" not in out
    assert all(text == text.rstrip() for text in out.splitlines())


@pytest.mark.skipif(sys.platform == "win32", reason="terminals are POSIX's here")
def test_a_terminal_of_80_columns_shows_every_name(line: Line, monkeypatch: pytest.MonkeyPatch):
    """No answer's name, verdict or criterion is cut off where most people see it first."""
    monkeypatch.setattr("adjudge.cli.output.draws", lambda: True)
    monkeypatch.setattr("adjudge.cli.commands.demo.draws", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    out = re.sub(r"\x1b\[[0-9;]*m", "", line("demo").out)
    table = [text for text in out.splitlines() if text[:1] in "┏┃┡│└"]

    assert {len(text) for text in table} <= set(range(81))
    assert "…" not in "".join(table)
    assert sum("✓ passed" in text or "✗ failed" in text for text in table) == 10
    for name in ("refund-promise", "template-left", "placeholders", "readable-"):
        assert any(name in text for text in table)


def test_the_labels_of_the_demo_are_mostly_its_verdicts(line: Line):
    """The example is honest: a rubric of rules is right about most answers, and says so where it is not."""
    from importlib.resources import as_file, files

    from adjudge import open_dataset

    with as_file(files("adjudge.cli.demo") / "answers.jsonl") as path:
        labels = {case.id: case.label for case in open_dataset(path)}
    results = line("demo", "--json").document["results"]

    assert [item["case"] for item in results] == list(labels)
    assert sum(item["passed"] is labels[item["case"]] for item in results) >= 8


def test_the_demo_as_json(line: Line):
    """One document of the same schema as that of ``judge``; every criterion names the rule that decided."""
    document = line("demo", "--json").document

    assert document["schema"] == "adjudge/results/1"
    assert {item["judge"] for item in document["results"]} == {"rules"}
    assert all(criterion["rule"] for item in document["results"] for criterion in item["criteria"])
