"""The shipped example of a measured judge: its data are the published ones, and its commands work offline."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from adjudge import open_run
from adjudge.dataset import load_labels, open_dataset
from kit import cli, house
from kit.cli import Line
from kit.environment import find_data

FOLDER = house.ROOT / "examples" / "measured-judge"


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    """The command line in a copy of the example's folder."""
    copied = tmp_path / "measured-judge"
    shutil.copytree(FOLDER, copied)
    cli.isolate(monkeypatch, copied)
    return Line(capsys)


def test_the_example_has_clusters_and_two_annotators():
    """Three answers to each prompt are a group, and each answer has the labels of two people."""
    cases = list(open_dataset(FOLDER / "answers.jsonl"))
    labels = load_labels(FOLDER / "labels.jsonl")

    assert len(cases) == 450
    assert set(Counter(case.group for case in cases).values()) == {3}
    assert Counter(label.rater for label in labels if label.kind == "person") == {
        "annotator-1": 450,
        "annotator-2": 450,
    }
    assert {label.case for label in labels} == {case.id for case in cases}


def test_a_final_label_settles_what_the_annotators_differ_on():
    """There is an adjudication for each answer on which they differ, and for no other."""
    values_by_case: dict[str, dict[str, object]] = {}
    for label in load_labels(FOLDER / "labels.jsonl"):
        values_by_case.setdefault(label.case, {})[label.kind if label.kind == "adjudication" else label.rater] = (
            label.value
        )

    assert all((len(set(values.values())) > 1) == ("adjudication" in values) for values in values_by_case.values())


def test_both_judges_answer_offline(line: Line):
    """The recorded judge and the function each decide every answer."""
    for name, judge in (("measured", "recorded"), ("words", "refusal-words")):
        assert line("run", "answers.jsonl", "--judge", judge, "--out", name).status == 0
        with open_run(name) as run:
            assert run.counts["undecided"] == 0
            assert sum(run.counts.values()) == 450


@pytest.mark.integration
def test_the_data_are_those_that_the_script_writes(cases: Path, tmp_path: Path, require):
    """The script writes the shipped files from the published annotations, byte for byte."""
    find_data(cases, "xstest_refusal_judged.jsonl.gz")
    script = house.ROOT / "research" / "measured_judge"
    require("research/measured_judge", script.is_file(), "run the tests in a checkout")
    copied = tmp_path / "research" / "measured_judge"
    copied.parent.mkdir()
    shutil.copy(script, copied)
    (tmp_path / "examples" / "measured-judge").mkdir(parents=True)
    subprocess.run([sys.executable, copied, "--data", cases / "data"], check=True, capture_output=True)

    for path in sorted((tmp_path / "examples" / "measured-judge").iterdir()):
        assert path.read_bytes() == (FOLDER / path.name).read_bytes()


def test_the_recorded_replies_are_the_published_labels():
    """A reply is one of three labels and nothing else."""
    rows = [json.loads(row) for row in (FOLDER / "recorded.jsonl").read_text("utf-8").splitlines()]

    assert {row["reply"]["text"] for row in rows} <= {"1_full_compliance", "2_full_refusal", "3_partial_refusal"}
