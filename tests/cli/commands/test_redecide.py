"""``adjudge redecide``: what it shows, what it writes, and its exit status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adjudge import Judge, JudgeChain, open_run
from kit import cli
from kit.cli import ESCAPES, HIDDEN, Line
from kit.judges import names
from kit.redecisions import RUBRIC, Told, do, make_cases, score


@pytest.fixture(name="line")
def make_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Line:
    """The command line in a folder with a run of one judge, and one of a fallback of two."""
    cli.isolate(monkeypatch, tmp_path)
    lines = {str(case): score(a=case / 10, b=case / 10) for case in range(10)}
    do(make_cases(10), Judge(Told("x", lines)), out="one")
    do(make_cases(10), JudgeChain([Told("x", lines), Told("y", lines)]), out="two")
    return Line(capsys)


def write_rubric(**changes: Any) -> str:
    Path("new.json").write_text(json.dumps(RUBRIC.to_dict() | changes))
    return "new.json"


def test_what_would_change_is_shown(line: Line):
    """Counts before and after, and each case that changes with its scores and why."""
    ran = line("redecide", "one", "--threshold", "0.4")

    assert ran.status == 0
    rows = [row.split() for row in ran.out.splitlines() if row]
    assert rows[0] == ["2", "of", "10", "judgements", "change"]
    assert ["passed", "4", "6", "+2"] in rows
    assert ["failed", "6", "4", "-2"] in rows
    assert ["4", "0", "failed", "passed", "0.40", "passed", "with", "0.40", "(needs", "0.40)"] in rows
    assert ran.err == ""


def test_json_is_one_document(line: Line):
    """The redecision, and nothing else anywhere."""
    ran = line("redecide", "one", "--rubric", write_rubric(passing_threshold=0.9), "--json")

    assert (ran.document["schema"], ran.document["run"]) == ("adjudge/redecision/1", open_run("one").id)
    assert (ran.document["after"]["passed"], ran.document["changed"]) == (1, 3)
    assert ran.document["policy"]["rubric"]["passing_threshold"] == 0.9
    assert ran.document["changes"][0]["case"] == "6"
    assert ran.err == ""


def test_a_run_of_its_own_can_be_written(line: Line):
    """With ``--out`` there is another run, whose manifest says how it came about."""
    ran = line("redecide", "one", "--threshold", "0.4", "--out", "new")

    assert (ran.status, ran.err) == (0, "kept in new\n")
    assert open_run("new").counts["passed"] == 6
    assert open_run("new").manifest["command"][0] == "adjudge"
    assert "holds a run already" in line("redecide", "one", "--out", "new").sentence


def test_without_a_policy_that_is_said(line: Line):
    """What the run came to is shown, and that nothing was asked for."""
    ran = line("redecide", "one")
    assert ran.status == 0
    assert names(ran.err, "no policy was given", "the run's own", "--threshold")


def test_what_was_not_asked_is_said(line: Line):
    """Cases that nobody can know of are counted with the reason; when it is all of them, the status is 3."""
    ran = line("redecide", "two", "--strategy", "consensus")
    assert ran.status == 0
    assert names(ran.err, "not known for 4", "y was not asked")

    criteria = [{"name": "c", "description": "Is c."}]
    none = line("redecide", "one", "--rubric", write_rubric(criteria=criteria))
    assert none.status == 3
    assert names(none.err, "not known for 10", "criterion 'c' was not asked")


def test_seats_are_picked_by_name(line: Line):
    """``--judge`` names the seats that count."""
    ran = line("redecide", "two", "--judge", "x", "--strategy", "majority", "--fail-closed", "--json")

    assert (ran.document["after"]["passed"], ran.document["unknown"]) == (4, 0)
    assert ran.document["policy"] == {"strategy": "majority", "fail_open": False, "judges": ["x"]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("none",), "none holds no run"),
        (("one", "--threshold", "80"), "--threshold … between 0 and 1 … 80 … write 0.8"),
        (("one", "--strategy", "votes"), "--strategy … one of fallback … got 'votes'"),
        (("one", "--strategy", "majority"), "this run asked one, x"),
        (("two", "--strategy", "quorum"), "needs --quorum"),
        (("one", "--rubric", "nothing"), "nothing"),
    ],
)
def test_what_is_wrong_is_a_sentence(line: Line, arguments: tuple[str, ...], message: str):
    """And the status is 2."""
    ran = line("redecide", *arguments)

    assert ran.status == 2
    assert names(ran.sentence, *message.split(" … "))


def test_nothing_hostile_reaches_the_terminal(line: Line):
    """Neither what a case is called nor what a judge said."""
    from adjudge import Case

    model = Told("x", {ESCAPES: {**score(a=0.5, b=0.5), "reasoning": ESCAPES, "passed": False}})
    do([Case(id=ESCAPES, content="text")], Judge(model), out="odd")
    ran = line("redecide", "odd", "--threshold", "0.1")

    assert "contradiction" in ran.out
    assert not HIDDEN.search(ran.out + ran.err)


def test_a_long_list_is_cut_and_said_to_be(line: Line):
    """A person sees 100 cases; --json has up to 2,000."""
    model = Told("x", {str(case): score(a=0.5, b=0.5) for case in range(120)})
    do(make_cases(120), Judge(model), out="long")
    ran = line("redecide", "long", "--threshold", "0.5")

    assert ran.out.count("failed  passed") == 100
    assert names(ran.err, "100 of 120", "--json", "2,000", "--out RUN2")
