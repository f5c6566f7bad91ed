"""``adjudge report``: what a run came to, on standard output and in files, and the exit status for scripts."""

from __future__ import annotations

import json
import shutil
import sqlite3
import xml.etree.ElementTree as ET
from contextlib import closing
from pathlib import Path

import pytest

from kit.cli import HIDDEN, Line, feed, isolate
from kit.judges import names
from kit.reports import keep_run, list_example, list_hostile, make_hostile_manifest, make_item, make_manifest_of


@pytest.fixture(name="line")
def provide_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    """The command line in an empty directory, with one run in it."""
    isolate(monkeypatch, tmp_path)
    feed(monkeypatch)
    keep_run(Path("run"), list_example(60)).close()
    return Line(capsys)


def test_it_says_what_a_run_came_to(line: Line):
    """In plain columns where there is no terminal; what is only for people goes to standard error."""
    done = line("report", "run")

    assert done.status == 0
    first, second, third, *rest = done.out.splitlines()
    assert first.startswith("support.jsonl judged by majority(openai:gpt-6.1-terra, ")
    assert second.startswith("61.7 % of 60 cases passed (95 % interval 49.0 to 72.9 %)")
    assert third == "37 passed, 22 failed, 1 undecided"
    assert any(item.split()[:2] == ["delivery", "20"] for item in rest)
    assert "10 of the 23 that did not pass; --top shows more" in done.err
    assert sum("✗ failed" in item or "? undecided: split" in item for item in rest) == 10


@pytest.mark.parametrize(
    ("top", "failures", "passed", "left_out"),
    [
        ("22", 22, 0, "22 of the 23 that did not pass; --top shows more"),
        ("23", 23, 0, ""),
        ("30", 23, 7, "30 of the 60 cases; --top shows more"),
        ("60", 23, 37, ""),
    ],
)
def test_as_many_cases_as_asked_for_are_listed(line: Line, top: str, failures: int, passed: int, left_out: str):
    """Failures first, then those that passed."""
    done = line("report", "run", "--top", top)
    rows = [item for item in done.out.splitlines() if item.startswith("answer-")]
    words = ["passed" if "✓ passed" in item else "other" for item in rows]

    assert words == ["other"] * failures + ["passed"] * passed
    assert left_out in done.err if left_out else "--top" not in done.err


def test_files_are_written_beside_it(line: Line):
    """HTML, JUnit and Markdown, each where it is asked for; what is there is replaced."""
    Path("r.html").write_text("old", "utf-8")
    done = line("report", "run", "--html", "r.html", "--junit", "r.xml", "--markdown", "r.md")

    assert (done.status, done.err.count("wrote r.")) == (0, 3)
    assert Path("r.html").read_text("utf-8").startswith("<!doctype html>")
    assert len(list(ET.parse("r.xml").iter("testcase"))) == 60
    assert Path("r.md").read_text("utf-8").startswith("<!-- adjudge/report/1 -->\n### 61.7 % of 60 cases passed\n")


def test_json_is_one_document(line: Line):
    """With the figures and the cases, and nothing beside it."""
    done = line("report", "run", "--json")

    assert (done.status, done.err) == (0, "")
    assert (done.document["schema"], done.document["cases_shown"]) == ("adjudge/report/1", 60)


def test_a_comment_on_standard_output_stands_alone(line: Line):
    """So it can be piped into whatever posts it."""
    done = line("report", "run", "--markdown", "-", "--top", "3")

    assert done.out.startswith("<!-- adjudge/report/1 -->\n")
    assert "<summary>3 of 23 cases that did not pass</summary>" in done.out
    assert done.out.endswith("</sub>\n")


@pytest.mark.parametrize(
    ("share", "status", "message"),
    [
        ("0.6", 0, ""),
        ("0.62", 3, "0.6167 of 60 judgements passed, and 1 … undecided … --fail-under asks for 0.62"),
        ("0.7", 1, "0.6167 of 60 judgements passed … --fail-under asks for 0.7"),
    ],
    ids=["met", "open", "missed"],
)
def test_a_threshold_is_for_ci(line: Line, share: str, status: int, message: str):
    """1 when fewer passed than asked for, whatever the undecided ones would have been; 3 when these would decide."""
    done = line("report", "run", "--fail-under", share)

    assert done.status == status
    assert names(done.err, *message.split(" … "))


def test_a_run_that_is_not_finished_meets_no_threshold(line: Line):
    """The cases that are missing may be the ones that fail."""
    keep_run(Path("part"), [make_item(0)], make_manifest_of(9, status="interrupted")).close()
    done = line("report", "part", "--fail-under", "0.9")

    assert done.status == 3
    assert (
        "the run is interrupted, so whether 0.9 of all cases pass is open; finish it with adjudge run --resume"
        in done.err
    )
    assert "This run is interrupted: 1 of 9 cases are judged." in done.out


def test_nothing_judged_meets_no_threshold(line: Line):
    """An empty data set is no success."""
    keep_run(Path("empty"), []).close()
    done = line("report", "empty", "--fail-under", "0")

    assert done.status == 1
    assert names(done.err, "nothing was judged", "--fail-under is missed")


def test_hostile_text_does_not_reach_the_terminal(line: Line):
    """No control character, no line and no column of its own, in any form."""
    keep_run(Path("hostile"), list_hostile(), make_hostile_manifest()).close()
    done = line("report", "hostile", "--markdown", "r.md", "--html", "r.html", "--junit", "r.xml")

    written = [Path(name).read_text("utf-8") for name in ("r.md", "r.html", "r.xml")]
    assert [HIDDEN.search(text) for text in (done.out, done.err, *written)] == [None] * 5
    assert not any(item.startswith("## forged") for item in done.out.splitlines())
    assert json.loads(line("report", "hostile", "--json").out)["cases"] == 3


def test_what_run_wrote_is_reported(line: Line):
    """The two commands go together, and mean the same by --fail-under."""
    Path("polite.yaml").write_text(
        "name: Polite\ncriteria:\n  - {name: greets, description: Greets., rule: {regex: '^Dear'}}\n", "utf-8"
    )
    rows = [{"id": str(number), "content": "Dear Ann" if number else "No", "label": True} for number in range(4)]
    Path("answers.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    ran = line("run", "answers.jsonl", "--rubric", "polite.yaml", "--judge", "rules", "--out", "monday")
    done = line("report", "monday", "--fail-under", "0.75", "--html", "monday.html")

    assert (ran.status, done.status) == (0, 0)
    assert done.out.splitlines()[0] == "answers.jsonl judged by rules, by the rubric Polite"
    assert "75 % of 4 cases passed" in done.out
    assert "\nAgreement with labels\nagreement: 75 %" in done.out
    assert "answers.jsonl" in Path("monday.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none"], "none holds no run"),
        (["run", "--fail-under", "90"], "--fail-under … between 0 and 1 … 90 … write 0.9"),
        (["run", "--json", "--markdown", "-"], "--json … --markdown - … standard output"),
        (["run", "--junit", "-"], "--html and --junit write a file"),
        (["run", "--html", "-"], "--html and --junit write a file"),
        (["run", "--top", "3000"], "0 to 2000 cases … 3000"),
        (["run", "--html", "no/where/r.html"], "cannot write no/where/r.html … No such file"),
        (["broken"], "broken/results.sqlite … cannot be read"),
        (["garbled"], "case 7 … cannot be read"),
    ],
    ids=range(9),
)
def test_what_is_wrong_is_one_sentence(line: Line, arguments: list[str], message: str):
    """Names the thing, the value and the remedy, and ends with 2."""
    shutil.copytree("run", "broken")
    with Path("broken/results.sqlite").open("r+b") as file:
        file.seek(4096)
        file.write(b"x" * 60_000)
    shutil.copytree("run", "garbled")
    with closing(sqlite3.connect("garbled/results.sqlite")) as connection, connection:
        connection.execute(
            """UPDATE results SET body = CAST('{"schema": "adjudge/result/1"}' AS BLOB) WHERE place = 7"""
        )
    done = line("report", *arguments)

    assert done.status == 2
    assert names(done.sentence, *message.split(" … "))
