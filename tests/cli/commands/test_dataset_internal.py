"""Data sets as the command line reads and counts them."""

from __future__ import annotations

from pathlib import Path

import pytest

from adjudge import Case, UsageError
from adjudge.cli import input as _input
from adjudge.cli.commands import dataset as _dataset
from adjudge.cli.options import DataOptions
from kit import cli
from kit.cli import Line

TABLE = "qid,question,answer,gold,ok\n1,Why?,Because,x,true\n2,How?,,y,FALSE\n3,Who?,A\n1,When?,B,z,\n"


@pytest.fixture(name="line")
def make_line(capsys, monkeypatch, tmp_path) -> Line:
    cli.isolate(monkeypatch, tmp_path)
    Path("answers.csv").write_text(TABLE, "utf-8")
    return Line(capsys)


def test_a_table_is_a_content_where_contents_are_judged(line: Line):
    """Its rows are cases only where a data set is asked for."""
    assert _input.list_inputs(["answers.csv"]).single


def test_options_make_a_data_set(line: Line):
    """An empty name leaves a field in the metadata; ids can be left to the caller."""
    Path("x.jsonl").write_text('{"a": "x", "label": "odd", "id": 1}\n{"a": "y", "id": 1}\n', "utf-8")
    dataset = _input.open_from_options("x.jsonl", DataOptions(content="a", label=""), check_ids=False)

    assert [case.metadata for case in dataset] == [{"label": "odd"}, {}]
    with pytest.raises(UsageError):
        _input.open_from_options("x.jsonl", DataOptions(kind="promptfoo", other=["nothing=x"]))


def test_counting_takes_no_more_room_for_more_cases():
    """Labels beyond the first twenty are one number."""
    tally = _dataset._Tally()
    for number in range(1000):
        tally.add(Case(id=str(number), content="", label=float(number)))

    assert (len(tally.labels), tally.others, tally.empty) == (_dataset.MOST_LABELS, 980, 1000)
