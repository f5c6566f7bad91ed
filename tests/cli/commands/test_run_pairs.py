"""``adjudge run``: with pairs, a budget and a cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from adjudge import open_run
from kit import cli
from kit.cli import WORDS, Line, serve, write
from kit.judges import names

pytestmark = pytest.mark.timed


PAIRS = ("--pairs", "--criteria", "Is good.", "--judge", "python:kit.pairs:judge_pairs")
ROWS = [("good", "bad", "first"), ("bad", "good", "first"), ("good", "good", "tie"), ("bad", "odd", "second")]


@pytest.fixture(autouse=True)
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    directory = tmp_path / "work"
    directory.mkdir()
    cli.isolate(monkeypatch, directory)
    write(*[{"id": str(n), "content": {"a": a, "b": b}, "label": label} for n, (a, b, label) in enumerate(ROWS)])
    return Line(capsys)


def read_rows(out: str) -> list[list[str]]:
    return [row.split() for row in out.splitlines() if row]


def test_pairs_are_summed_up(line: Line):
    """Who wins how often and within what interval, how often the orders disagree, and whether labels agree."""
    ran = line("run", "data.jsonl", *PAIRS, "--out", "R")

    assert ran.status == 0
    rows = read_rows(ran.out)
    assert ["4", "comparisons", "of", "pairs"] in rows
    assert ["first", "is", "better", "1", "25.0", "%"] in rows
    assert ["tie", "1", "25.0", "%"] in rows
    assert ["unparseable", "1"] in rows
    assert ["win", "rate", "of", "the", "first", "1.5", "of", "3", "50.0", "%", "(12.5", "to", "87.5)"] in rows
    assert next(row for row in rows if row[:2] == ["orders", "disagree"])[2:5] == ["1", "of", "3"]
    assert next(row for row in rows if row[:2] == ["orders", "agree"])[2:5] == ["2", "of", "4"]
    assert next(row for row in rows if row[0] == "agree")[4:7] == ["2", "of", "4"]
    assert not [row for row in rows if row[:2] == ["mean", "score"]]


def test_json_has_the_summary_of_the_pairs(line: Line):
    """Beside the manifest, as ``adjudge/pair-summary/1``."""
    ran = line("run", "data.jsonl", *PAIRS, "--out", "R", "--json", "--on-conflict", "undecided")

    pairs = ran.document["pairs"]
    assert (pairs["schema"], pairs["pairs"], pairs["undecided_by"]) == (
        "adjudge/pair-summary/1", 4, {"split": 1, "unparseable": 1},
    )  # fmt: skip
    assert ran.document["asked"]["pairs"] == "undecided"


def test_a_win_rate_can_be_asked_for(line: Line):
    """``--fail-under`` is the share in which the first is better: a tie is no win, and what is undecided is unknown."""
    assert line("run", "data.jsonl", *PAIRS, "--out", "R", "--fail-under", "0.25").status == 0
    assert line("run", "data.jsonl", *PAIRS, "--out", "S", "--fail-under", "0.5").status == 3
    assert line("run", "data.jsonl", *PAIRS, "--out", "T", "--fail-under", "0.6").status == 1


def test_recorded_replies_are_compared_again(line: Line):
    """What ``--record`` wrote of pairs answers as ``replay:`` in both orders."""
    line("run", "data.jsonl", *PAIRS, "--out", "R", "--record", "replies.jsonl")
    again = line("run", "data.jsonl", *PAIRS[:3], "--judge", "replay:replies.jsonl", "--out", "S")

    assert again.status == 0
    preferences = [[item.result.to_dict()["preferred"] for item in open_run(name).items()] for name in "RS"]
    assert preferences[0] == preferences[1] == ["first", "second", "tie", None]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*PAIRS, "--threshold", "0.5"], "--pairs compares two contents, and --threshold is for judging one"),
        ([*PAIRS, "--rule", "json"], "and --rule is for judging one by itself"),
        ([*PAIRS, "--on-conflict", "first"], "--on-conflict … one of tie, undecided … got 'first'"),
        ([*PAIRS[1:], "--on-conflict", "tie"], "--on-conflict belongs to --pairs"),
        ([*PAIRS, "--budget", "-1"], "--budget"),
        ([*PAIRS, "--budget", "nan"], "--budget"),
        ([*PAIRS, "--budget", "1"], "a budget needs the price of python:kit.pairs:judge_pairs"),
        ([*PAIRS, "--cache", "c.sqlite", "--record", "r.jsonl"], "give one of them"),
    ],
)
def test_wrong_usage_is_a_sentence(line: Line, arguments: list[str], message: str):
    """2, one sentence, nobody asked, and no folder."""
    ran = line("run", "data.jsonl", *arguments, "--out", "R")

    assert ran.status == 2
    assert names(ran.sentence, *message.split(" … "))
    assert not Path("R").exists()


def configure(spec: str) -> None:
    Path("adjudge.toml").write_text(
        f"""[judges.small]
seats = ["{spec}"]
max_output_tokens = 4
[prices]
"{spec}" = {{ input = 0.0, output = 1_000_000.0 }}
""",
        encoding="utf-8",
    )


def test_a_budget_from_the_command_line(line: Line):
    """Prices of adjudge.toml, not a call more than the budget pays for, and what was cut off with how to go on."""
    write(*[{"id": str(n), "content": f"good {n}"} for n in range(40)])
    with serve() as provider:
        configure(provider.spec)
        arguments = ("run", "data.jsonl", "--criteria", "Is good.", "--judge", "small", "--out", "R")
        ran = line(*arguments, "--budget", "11", "--concurrency", "32")

        assert (ran.status, len(provider.bodies)) == (0, 4)
        assert ["budget", "36"] in read_rows(ran.out)
        assert ["cost", "$8.0000"] in read_rows(ran.out)
        assert "spent $8.0000 of the budget of $11.0000\n" in ran.err
        assert "36 were cut off by the budget; judge them with --out, --resume and a higher --budget\n" in ran.err

        again = line(*arguments, "--resume")
        assert (again.status, len(provider.bodies)) == (0, 4)
        more = line(*arguments, "--resume", "--budget", "1000")
        assert (more.status, len(provider.bodies)) == (0, 40)
        assert ["passed", "40", "100.0", "%"] in read_rows(more.out)


def test_pairs_within_a_budget(line: Line):
    """Half a pair is none: the order that was not asked leaves it undecided, and what the other cost is counted."""
    with serve(mode="prose") as provider:
        configure(provider.spec)
        ran = line("run", "data.jsonl", *PAIRS[:3], "--judge", "small", "--out", "R", "--budget", "7", "--json")

        assert len(provider.bodies) == 2  # 2 dollars each, and the third may cost 4
    assert ran.status == 3
    assert ran.document["budget"] == {"usd": 7.0, "spent": 4.0}
    assert ran.document["summary"]["known_cost_usd"] == 4.0


def test_a_cache_from_the_command_line(line: Line):
    """The second run asks nobody, and nothing of it cost anything."""
    write(*[{"id": str(n), "content": f"good {n}"} for n in range(5)])
    with serve() as provider:
        configure(provider.spec)
        arguments = ("run", "data.jsonl", "--criteria", "Is good.", "--judge", "small", "--cache", "c.sqlite")
        line(*arguments, "--out", "R")
        ran = line(*arguments, "--out", "S")

        assert len(provider.bodies) == 5
    assert ["cost", "none"] in read_rows(ran.out)


def test_repeated_ids_are_skipped_when_asked_for(line: Line):
    """As any row that is no case; by default they end the run with file and line."""
    write({"id": "a", "content": "good"}, {"id": "a", "content": "bad"}, {"id": "b", "content": "bad"})
    good = ("--criteria", "Is good.", "--judge", WORDS)

    ran = line("run", "data.jsonl", *good, "--out", "R", "--on-bad-row", "skip")
    assert (ran.status, open_run("R").counts["passed"], open_run("R").counts["failed"]) == (0, 1, 1)
    assert "1 of the data set's rows was skipped" in ran.err
    assert (
        "data.jsonl, line 2: the id 'a' is already used by case 0"
        in line("run", "data.jsonl", *good, "--out", "S").sentence
    )
