"""A function that is given the content, named on the command line and in ``adjudge.toml``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit import cli
from kit.cli import Line

pytestmark = pytest.mark.timed


POLITE = ("--criteria", "Is polite.")

JUDGES = """
asked = []

def polite(content):
    asked.append(content)
    return "thank" in content.lower()

def careless(text):
    return "polite" in text

def strict(content):
    return {"criteria": [{"name": "polite", "score": 1.0}]}

def lost(content):
    return {"critera": []}

def hasty(content):
    answers = {"Thank you.": True, "No.": None, "Seven.": 7}
    return answers[content]
"""


@pytest.fixture(name="line")
def provide_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Line]:
    """The command line in a directory with judges in ``manners.py`` and two answers."""
    directory = tmp_path / "work"
    directory.mkdir()
    cli.isolate(monkeypatch, directory)
    Path("manners.py").write_text(JUDGES, encoding="utf-8")
    Path("good.txt").write_text("Thank you.", encoding="utf-8")
    Path("bad.txt").write_text("No.", encoding="utf-8")
    yield Line(capsys)
    sys.modules.pop("manners", None)


def test_a_function_judges_on_the_command_line(line: Line):
    """By its name after ``python:``, with no token to copy and no key."""
    named = ("--judge", "python:manners:polite")

    assert line("judge", "good.txt", *POLITE, *named).status == 0
    assert line("judge", "bad.txt", *POLITE, *named).status == 1
    ran = line("judge", "good.txt", *POLITE, "--judge", "python:manners:careless")
    assert ran.status == 2
    assert "name its parameter content (def careless(content))" in ran.err


def test_the_doctor_asks_a_function(line: Line):
    """It is asked the planted questions once, and what it says of them can be read."""
    ran = line("doctor", "--judge", "python:manners:polite", "--json")

    [seat] = ran.document["judges"][0]["seats"]
    assert (ran.status, seat["asked"], seat["readable"]) == (0, 4, 4)
    assert len(sys.modules["manners"].asked) == 4


def test_the_doctor_takes_no_offence_at_a_function_for_its_own_rubric(line: Line):
    """It answers for criteria that the planted questions do not have, and that says nothing against it."""
    ran = line("doctor", "--judge", "python:manners:strict")

    assert (ran.status, ran.err) == (0, "")
    assert "4 of 4 replies readable, for criteria of its own" in ran.out


def test_the_doctor_finds_a_function_that_returns_something_else(line: Line):
    """A misspelt member is not a criterion of its own."""
    ran = line("doctor", "--judge", "python:manners:lost")

    assert ran.status == 2
    assert "critera" in ran.err


@pytest.mark.parametrize(
    "command",
    [
        ("judge", "cases.jsonl"),
        ("judge", "cases.jsonl", "--json"),
        ("run", "cases.jsonl", "--out", "R"),
        ("run", "cases.jsonl", "--out", "R", "--judge", "python:manners:hasty", "--strategy", "consensus"),
    ],
)
@pytest.mark.parametrize(("content", "because"), [("No.", "unparseable"), ("Seven.", "off_scale"), ("Well?", "error")])
def test_neither_the_doctor_nor_no_token_is_advised_for_a_function(
    line: Line, content: str, because: str, command: tuple[str, ...]
):
    """It has no server and no token; its detail says what it may return."""
    rows = [{"id": "1", "content": "Thank you."}, {"id": "2", "content": content}]
    Path("cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    ran = line(*command, *POLITE, "--judge", "python:manners:hasty", "--concurrency", "1")

    shown = ran.out + ran.err
    assert because in shown
    assert {"unparseable": "returned None", "off_scale": "7", "error": "raised KeyError"}[because] in shown
    assert "doctor" not in shown
    assert "--no-token" not in shown


def test_a_name_that_is_no_function_is_named(line: Line):
    """With its whole spec, because a chain has several."""
    ran = line("judge", "good.txt", *POLITE, "--judge", "python:manners:asked")

    assert ran.status == 2
    assert "python:manners:asked: " in ran.err
    assert ran.err.rstrip().endswith("not list")


def test_a_run_of_a_function_goes_on_while_its_code_is_the_same(line: Line):
    """A resume asks nothing again; with other code it is refused with a sentence."""
    Path("cases.jsonl").write_text('{"id": "1", "content": "Thank you."}\n{"id": "2", "content": "No."}\n')
    command = ("run", "cases.jsonl", *POLITE, "--judge", "python:manners:polite", "--out", "run")

    assert line(*command).status == 0
    assert line(*command, "--resume").status == 0
    assert sorted(sys.modules["manners"].asked) == ["No.", "Thank you."]
    assert line("redecide", "run", "--threshold", "0").status == 0

    sys.modules.pop("manners")
    Path("manners.py").write_text(JUDGES.replace("thank", "please"), encoding="utf-8")
    ran = line(*command, "--resume")
    assert ran.status == 2
    assert "the code of the function" in ran.err
    assert "polite" in ran.err


def test_a_recording_of_a_function_is_no_model_s(line: Line):
    """``replay:`` names no function, so what one returned is not believed there."""
    named = ("--judge", "python:manners:polite")
    assert line("judge", "good.txt", *POLITE, *named, "--record", "said.jsonl").status == 0
    [row] = [json.loads(text) for text in Path("said.jsonl").read_text("utf-8").splitlines()]
    assert (row["reply"]["text"], row["reply"]["source"]) == ("true", "function")
    assert (row["reply"]["function"]["module"], row["reply"]["function"]["qualname"]) == ("manners", "polite")

    ran = line("judge", "good.txt", *POLITE, "--judge", "replay:said.jsonl")
    assert ran.status == 3
    assert "manners.polite" in ran.out + ran.err


def test_a_function_stands_in_the_configuration(line: Line):
    """As a seat of a judge of ``adjudge.toml``."""
    Path("adjudge.toml").write_text('[judges.manners]\nseats = ["python:manners:polite"]\n', encoding="utf-8")

    assert line("judge", "good.txt", *POLITE, "--judge", "manners").status == 0
