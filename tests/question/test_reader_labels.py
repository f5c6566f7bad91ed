"""What a reader has to be told: the names behind a style, from the API, the command line and ``adjudge.toml``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adjudge import Judge, UsageError, compare_sync, open_run
from kit import cli
from kit.cli import Line
from kit.judges import Plain, complaint, names

RANKED = '{"ordered_models": [{"model": "m", "rank": 2}, {"model": "M", "rank": 1}]}'
LABELS = ("compliance", "refusal", "partial")


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    directory = tmp_path / "work"
    directory.mkdir()
    cli.isolate(monkeypatch, directory)
    return Line(capsys)


def write_pair_recording(texts: dict[str, str]) -> None:
    """A case of two contents, and what was recorded of a judge in each order."""
    case = {"id": "one", "content": {"a": "good", "b": "bad"}}
    Path("pairs.jsonl").write_text(json.dumps(case) + "\n", encoding="utf-8")
    rows = [{"case": "one", "order": order, "reply": {"text": text}} for order, text in texts.items()]
    Path("said.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def write_recording(texts: dict[str, str]) -> None:
    """Cases, and what was recorded of a judge about each."""
    cases = [{"id": name, "content": f"content {name}"} for name in texts]
    Path("data.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in cases), encoding="utf-8")
    rows = [{"case": name, "reply": {"text": text}} for name, text in texts.items()]
    Path("said.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


# ---------------------------------------------------------------- from Python


@pytest.mark.parametrize(
    ("reader", "first", "second"),
    [
        ("name", "m", "M"),
        ("ordered_models", RANKED.replace("2", "0").replace("1", "2").replace("0", "1"), RANKED),
        ("json winner", '{"winner": "m"}', '{"winner": "M"}'),
    ],
)
def test_the_names_behind_a_style_are_the_two_places(reader: str, first: str, second: str):
    """The first label is the one shown first, in either order."""
    judge = Judge(Plain(second), reader=reader, reader_labels=("m", "M"), reask=0)
    pair = compare_sync("x", "y", judge=judge, criteria="Good.", both_orders=False)
    assert pair.preferred == "second"

    judge = Judge(Plain(first), reader=reader, reader_labels=["m", "M"], reask=0)
    pair = compare_sync("x", "y", judge=judge, criteria="Good.")
    assert [order.result.value for order in pair.orders] == ["first", "first"]


@pytest.mark.parametrize("reader", ["name", "ordered_models", "json winner"])
def test_a_judge_is_told_the_names_it_is_read_by(reader: str):
    """The prompt has the names, and not those that stand in where none were given."""
    model = Plain("x")
    judge = Judge(model, reader=reader, reader_labels=("left", "right{0}"), reask=0)
    compare_sync("x", "y", judge=judge, criteria="Good.", both_orders=False)
    instructions = model.requests[0].system.rpartition("\n\n")[2]
    assert '"left"' in instructions
    assert '"right{0}"' in instructions


def test_a_name_that_was_not_given_is_not_read():
    """The names replace the ones that stand in for them."""
    judge = Judge(Plain("first"), reader="name", reader_labels=("m", "M"), reask=0)
    assert compare_sync("x", "y", judge=judge, criteria="Good.").undecided_because == "unparseable"


@pytest.mark.parametrize(
    ("label", "outcome"), [("compliance", "passed"), ("partial", "failed"), ("other", "undecided")]
)
def test_a_label_passes_where_it_is_named(label: str, outcome: str):
    """Nothing passes because of its place in the list."""
    model = Plain(label)
    judge = Judge(model, reader="label", reader_labels=LABELS, reader_passes=("compliance",), reask=0)
    result = judge.evaluate_sync("x", criteria="Complies.")
    assert result.outcome == outcome
    assert result.value == (label if outcome != "undecided" else None)
    assert all(name in model.requests[0].system for name in LABELS)


def test_passes_of_the_call_says_which_labels_pass():
    """As for every other reader of labels; beside ``reader_passes`` there would be two answers."""
    judge = Judge(Plain("refusal"), reader="label", reader_labels=LABELS, reask=0)
    assert judge.evaluate_sync("x", criteria="Refuses.", passes=lambda label: label == "refusal").passed

    other = Judge(Plain("compliance"), reader="label", reader_labels=LABELS, reask=0)
    assert other.evaluate_sync("x", criteria="Refuses.", passes=lambda label: label == "refusal").outcome == "failed"

    both = Judge(Plain("refusal"), reader="label", reader_labels=LABELS, reader_passes=("refusal",))
    message = complaint(both.evaluate, "x", criteria="Refuses.", passes=lambda label: True)
    assert names(message, "passes and", "reader_passes", "give one")


def test_grades_of_other_names_are_read():
    """``GRADE:`` and one of the labels that were offered."""
    judge = Judge(
        Plain("It fits. GRADE: good"), reader="GRADE: C", reader_labels=("good", "bad"), reader_passes=["good"]
    )
    assert judge.evaluate_sync("x", criteria="Good.").passed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reader": "[[A]]", "reader_labels": ("m", "M")}, "reader '[[A]]' takes no labels … got ('m', 'M')"),
        ({"reader_labels": ("m", "M")}, "reader 'adjudge' takes no labels"),
        ({"reader": "name", "reader_labels": ("m",)}, "needs the two names compared, the one shown first first"),
        ({"reader": "ordered_models", "reader_labels": ("a", "b", "c")}, "needs the two names compared"),
        ({"reader": "name", "reader_labels": "mM"}, "reader_labels … a list of texts, like ['m', 'M'] … got 'mM'"),
        ({"reader": "name", "reader_labels": ("m", 1)}, "reader_labels … a list of texts"),
        ({"reader": "name", "reader_labels": ("m", "m")}, "labels … different texts"),
        ({"reader": "name", "reader_passes": ("m",)}, "reader 'name' reads no label"),
        ({"reader": "GRADE: C", "reader_passes": ("A",)}, "'A' … is none of the labels offered … C, I, P"),
        ({"reader": "label", "reader_labels": ("a",), "reader_passes": ("b",)}, "none of the labels offered … a"),
        (
            {"reader": "label", "reader_labels": ("a", "b"), "reader_passes": ("b", "a")},
            "reader_passes names every label (b, a) … nothing could fail",
        ),
    ],
)
def test_labels_that_a_reader_cannot_use_are_refused_when_the_judge_is_made(options: dict[str, Any], message: str):
    """A label that is not looked at would be believed to count."""
    with pytest.raises(UsageError) as caught:
        Judge(Plain("x"), **options)
    assert names(str(caught.value), *message.split(" … "))


def test_a_reader_of_labels_without_any_is_refused_before_anybody_is_asked():
    """There is nothing that a reply could be read by."""
    model = Plain("refusal")
    message = complaint(Judge(model, reader="label").evaluate, "x", criteria="Good.", passes=lambda label: True)
    assert message.startswith("reader 'label' needs the labels that were offered; give them as reader_labels")
    assert model.requests == []


# ---------------------------------------------------------------- from the command line


@pytest.mark.parametrize("reader", ["name", "ordered_models"])
def test_a_recording_in_a_style_of_names_is_replayed(line: Line, reader: str):
    """``--reader-labels`` says what the two were called when the replies were recorded."""
    ab, ba = ("M", "m") if reader == "name" else (RANKED, RANKED.replace("m", "x").replace("M", "m").replace("x", "M"))
    ba = ba if reader == "name" else '{"ordered_models": [{"model": "m", "rank": 1}, {"model": "M", "rank": 2}]}'
    write_pair_recording({"ab": ab, "ba": ba})
    asked = ("run", "pairs.jsonl", "--pairs", "--criteria", "Good.", "--judge", "replay:said.jsonl", "--reader", reader)
    assert line(*asked, "--out", "without").status == 3
    assert line(*asked, "--reader-labels", "m, M", "--out", "R").status == 0
    assert [item.result.preferred for item in open_run("R").items()] == ["second"]


def test_a_recording_of_labels_is_replayed_and_redecided(line: Line):
    """``--reader-passes`` says which labels pass, and the run remembers both."""
    write_recording({"one": "compliance", "two": "refusal", "three": "Refusal"})
    asked = ("run", "data.jsonl", "--criteria", "Complies.", "--judge", "replay:said.jsonl", "--reader", "label")
    labels = ("--reader-labels", ",".join(LABELS), "--reader-passes", "compliance")
    assert line(*asked, *labels, "--out", "R").status == 0
    outcomes = {item.case.id: item.result.outcome for item in open_run("R").items()}
    assert outcomes == {"one": "passed", "two": "failed", "three": "undecided"}
    assert line("redecide", "R").status in (0, 1)


def test_the_configuration_names_labels_and_the_command_line_another_reader(line: Line):
    """Labels of a table go with its reader; another reader on the command line leaves them behind."""
    Path("adjudge.toml").write_text(
        '[judges.kept]\nseats = ["replay:said.jsonl"]\nreader = "label"\n'
        'reader_labels = ["compliance", "refusal"]\nreader_passes = ["compliance"]\n',
        encoding="utf-8",
    )
    write_recording({"one": "compliance", "two": "refusal"})
    assert line("run", "data.jsonl", "--criteria", "Complies.", "--judge", "kept", "--out", "R").status == 0
    assert [item.result.outcome for item in open_run("R").items()] == ["passed", "failed"]

    write_recording({"one": "Rating: [[1]]"})
    asked = ("run", "data.jsonl", "--criteria", "Good.", "--judge", "kept", "--reader", "Rating: [[7]]", "--out", "S")
    assert line(*asked).status == 0
    assert [item.result.outcome for item in open_run("S").items()] == ["passed"]


def test_judge_takes_labels_as_well(line: Line):
    """As ``run`` does."""
    Path("good.txt").write_text("x", encoding="utf-8")
    Path("says.py").write_text("def say(prompt):\n    return 'refusal'\n", encoding="utf-8")
    asked = ("judge", "good.txt", "--criteria", "Complies.", "--judge", "python:says:say", "--reader", "label")
    ran = line(*asked, "--reader-labels", "compliance,refusal", "--reader-passes", "compliance")
    assert ran.status == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--reader", "[[A]]", "--reader-labels", "m,M"), "takes no labels"),
        (("--reader-labels", "m,M"), "reader 'adjudge' takes no labels"),
        (
            ("--reader", "label", "--reader-labels", "a,,b"),
            "--reader-labels … different names separated by commas",
        ),
        (("--reader", "label", "--reader-labels", "a,a"), "--reader-labels … different names"),
        (("--reader", "label", "--reader-passes", "a"), "none of the labels offered"),
        (("--reader", "label"), "needs the labels that were offered"),
    ],
)
def test_wrong_labels_are_one_sentence_and_status_2(line: Line, options: tuple[str, ...], message: str):
    """Before anybody is asked."""
    Path("good.txt").write_text("x", encoding="utf-8")
    ran = line("judge", "good.txt", "--criteria", "Good.", "--judge", "openai:small", *options)
    assert ran.status == 2
    assert names(ran.sentence, *message.split(" … "))


def test_a_reader_of_labels_needs_to_know_which_pass():
    """Before a model is asked."""
    judge = Judge(Plain("refusal"), reader="label", reader_labels=LABELS, reask=0)

    assert names(complaint(judge.evaluate, "x", criteria="Refuses."), "which pass")


def test_a_reader_of_one_score_takes_one_criterion_and_a_reader_of_labels_several():
    """A score is that of a criterion; a label is that of the whole."""
    two: dict[str, Any] = {"name": "Two", "criteria": [{"name": name, "description": name} for name in ("a", "b")]}
    score = Judge(Plain("Rating: [[7]]"), reader="Rating: [[7]]", reask=0)
    label = Judge(Plain("refusal"), reader="label", reader_labels=LABELS, reader_passes=("refusal",), reask=0)

    assert names(complaint(score.evaluate, "x", two), "one criterion")
    assert label.evaluate_sync("x", two).passed

    rule = {"name": "c", "description": "c", "rule": {"contains": "x"}}
    one_and_a_rule = {"name": "One", "criteria": [two["criteria"][0], rule], "scale": [0, 10], "passing_threshold": 0.5}
    assert score.evaluate_sync("x", one_and_a_rule).outcome == "passed"
    assert names(complaint(label.evaluate, "x", one_and_a_rule), "cannot have rules")
