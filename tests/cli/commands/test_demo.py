"""``adjudge demo``: the whole road without a key, without a network and without a configuration."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest

from kit import cli
from kit.cli import Line
from kit.judges import names


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    cli.isolate(monkeypatch, tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
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
    first = out[: out.index("\n2. ")]
    rows = [text.split() for text in first.splitlines() if re.search(r"[✓✗] (passed|failed) ", text)]

    assert len(rows) == 10
    assert {row[2] for row in rows} == {"passed", "failed"}
    assert "5 of 10 answers pass the rubric 'Support answer', which needs 0.75." in out
    assert (
        "Why 'template-left' failed: failed with 0.80 (needs 0.75); below their own threshold: no-placeholders" in out
    )
    assert "adjudge judge answer.txt --criteria" in out
    assert "\x1b" not in out
    assert all(text == text.rstrip() for text in out.splitlines())


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
    assert document["report"] is None  # written with --out alone
    assert {item["judge"] for item in document["results"]} == {"rules"}
    assert all(criterion["rule"] for item in document["results"] for criterion in item["criteria"])


def test_three_judges_are_decided_by_two_strategies(line: Line):
    """One disagrees and one fails; where the strategies differ, it says how many each needs and who said nothing."""
    out = line("demo").out
    act = out[out.index("\n2. ") : out.index("\n3. ")]
    rows = [text.split() for text in act.splitlines() if text.count("✓") + text.count("✗") + text.count("?") == 5]

    assert "the replies of all three judges were written for this demonstration" in act
    assert len(rows) == 10
    assert ["wrong-size", "✓", "0.93", "✓", "0.83", "?", "error", "?", "undecided", "✓", "passed"] in rows
    assert "  one-word: 2 passed, 1 failed\n" in act
    assert "    consensus needs 3 of 3 to pass, and 1 to fail: ✗ failed\n" in act
    assert "    majority needs 2 of 3 to pass or to fail: ✓ passed\n" in act
    assert "(unreliable: no object in the reply begins with the token" in act
    assert act.count(" needs ") == 6


def test_what_the_strategies_say_is_computed_from_the_replies(line: Line):
    """As those of any chain: one result for each judge, with the reply as it was written and the ask that followed."""
    strategies = line("demo", "--json").document["strategies"]
    majority = {item["case"]: item for item in strategies["majority"]}
    (unread,) = [seat for seat in majority["no-order"]["results"] if seat["outcome"] == "undecided"]

    assert {name: len(results) for name, results in strategies.items()} == {"consensus": 10, "majority": 10}
    assert (majority["no-order"]["outcome"], majority["no-order"]["undecided_because"]) == ("undecided", "unparseable")
    assert (unread["judge"], unread["attempts"], len(unread["earlier_responses"])) == ("unreliable", 2, 1)
    assert [item["case"] for item in strategies["consensus"] if item["outcome"] == "undecided"] == ["wrong-size"]


def test_a_report_is_written_where_it_is_asked_for(line: Line):
    """One file and the run it is of, which the other commands read; what is there already is not touched."""
    ran, again = line("demo", "--out", "deep/demo"), line("demo", "--out", "deep/demo")
    report = Path("deep/demo/report.html")

    assert ran.status == 0
    assert f"Written to {report};" in ran.out
    assert "<script>" in report.read_text("utf-8")
    assert "no-order" in line("report", "deep/demo/run", "no-order").out
    assert again.status == 2
    assert names(again.sentence, str(Path("deep/demo")), "holds a run", "another folder with --out")
    assert line("demo", "--json", "--out", "other").document["report"] == str(Path("other/report.html"))
    Path("file").write_text("", "utf-8")
    assert "name another with --out" in line("demo", "--out", "file").sentence


def test_a_browser_is_opened_only_when_asked(line: Line, monkeypatch: pytest.MonkeyPatch):
    """With the report, by its whole address."""
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    line("demo", "--out", "one")
    assert opened == []
    line("demo", "--out", "two", "--open")
    assert opened == [Path("two/report.html").resolve().as_uri()]


def test_each_act_ends_with_what_to_type(line: Line):
    """Every command it shows is one that exists, with options that it has."""
    out = line("demo", "--out", "d").out
    typed = [text.split() for text in out.splitlines() if text.startswith("  adjudge ")]

    assert out.count("\nFor your own answers") == 3
    assert {words[1] for words in typed} == {"judge", "run", "report"}
    for words in typed:
        page = line(words[1], "--help").out
        assert all(word in page for word in words if word.startswith("--"))
