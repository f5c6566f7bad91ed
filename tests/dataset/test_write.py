"""Writing cases: what is read again is equal, whatever the cases hold and whatever the format."""

from __future__ import annotations

import csv
import gzip
import json
import tempfile
import unicodedata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge import Case, Rubric, UsageError, open_dataset
from adjudge.dataset import write_cases
from kit.judges import names

FORMATS = ["c.jsonl", "c.csv", "c.tsv", "c.json", "c.yaml", "c.parquet", "c.jsonl.gz", "c.csv.gz"]

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
hard = st.sampled_from(
    ["", " ", "\r", "\n", "a\r\nb", "\x00", '"', "null", "true", "1:30", "- x", "%TAG", "\u2028%", "="]
)
numbers = st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
leaves = st.none() | st.booleans() | numbers | texts | hard
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)
labels = st.none() | st.booleans() | numbers | st.sampled_from(["first", "second", "tie"])
contents = values.filter(lambda value: value is not None)


words = (texts | hard).filter(str.strip)
own_criteria = (
    words | st.lists(words, min_size=1, max_size=3, unique=True) | st.dictionaries(words, words, min_size=1, max_size=3)
)
rubrics = st.builds(lambda name, text: Rubric(name=name, criteria=[{"name": name, "description": text}]), words, words)
own_rules = st.dictionaries(words, st.sampled_from(["secrets", {"length": 9}, {"regex": "a", "severity": "info"}]),
                            max_size=2)  # fmt: skip


@st.composite
def draw_own(draw) -> dict[str, Any]:
    """What a case may bring to be judged by."""
    own = draw(st.just({}) | st.builds(lambda value: {"criteria": value}, own_criteria)
               | st.builds(lambda value: {"rubric": value}, rubrics))  # fmt: skip
    rules = draw(own_rules)
    folded = {name.replace("-", "_") for name in rules}
    threshold = draw(st.none() | st.floats(0, 1))
    return {**own, "rules": rules if len(folded) == len(rules) else (), "threshold": threshold}


@st.composite
def draw_cases(draw) -> list[Case]:
    names = draw(st.lists(texts.filter(bool), max_size=4, unique=True))
    optional = {
        "reference": values,
        "task": texts | hard,
        "context": values,
        "label": labels,
        "labels": st.dictionaries(texts, labels, max_size=2),
        "group": st.none() | texts | hard,
        "metadata": st.dictionaries(texts, values, max_size=3),
    }
    return [
        Case(id=name, content=draw(contents | texts | hard), **{key: draw(value) for key, value in optional.items()})
        for name in names
    ]


@pytest.mark.slow_table
@pytest.mark.parametrize("name", FORMATS)
def test_what_is_written_is_read_again(name, require):
    """Every case is equal, in the same order."""
    if "parquet" in name:
        require("pyarrow", find_spec("pyarrow"), "pip install 'adjudge[parquet]'")

    @given(draw_cases())
    def go_round(cases: list[Case]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            assert write_cases(path, iter(cases)) == len(cases)
            again = list(open_dataset(path))
        assert again == cases
        assert [repr(case) for case in again] == [repr(case) for case in cases]

    go_round()


@pytest.mark.parametrize("name", ["c.jsonl", "c.csv", "c.yaml"])
def test_what_cases_bring_is_read_again(name: str):
    """Criteria, rubrics, rules and thresholds of their own are equal too, where they are asked for."""

    @settings(max_examples=50)
    @given(st.lists(draw_own(), max_size=3))
    def go_round(brought: list[dict[str, Any]]) -> None:
        cases = [Case(id=str(place), content="x", **own) for place, own in enumerate(brought)]
        with tempfile.TemporaryDirectory() as folder:
            write_cases(Path(folder) / name, cases)
            again = list(open_dataset(Path(folder) / name, case_criteria=True))
        assert again == cases

    go_round()


def test_a_line_says_what_it_is(tmp_path):
    """With the schema, and without what a case does not have."""
    write_cases(tmp_path / "c.jsonl", [Case(id="a", content="é", label=True)])

    assert (tmp_path / "c.jsonl").read_text("utf-8") == (
        '{"schema": "adjudge/case/1", "id": "a", "content": "é", "label": true}\n'
    )


def test_a_table_has_the_columns_that_are_used(tmp_path):
    """Text stays text; what is none is JSON in a column that says so."""
    cases = [
        Case(id="a", content="A", task=""),
        Case(id="b", content="B", task="t", reference=[1], labels={"ann": True}),
    ]
    write_cases(tmp_path / "c.csv", cases)

    assert (tmp_path / "c.csv").read_bytes().decode().split("\r\n") == [
        "id,content,reference.json,task.json,labels",
        'a,A,,"""""",',
        'b,B,[1],"""t""","{""ann"": true}"',
        "",
    ]


def test_yaml_is_for_people(tmp_path):
    """One item for each case, in the order of the keys."""
    write_cases(tmp_path / "c.yaml", [Case(id="a", content="A\nB", label=True)])

    assert (tmp_path / "c.yaml").read_text("utf-8").startswith("- schema: adjudge/case/1\n  id: a\n  content: ")


def test_a_file_is_never_overwritten(tmp_path):
    """Also not with itself."""
    path = tmp_path / "c.jsonl"
    path.write_text('{"content": "x"}\n', "utf-8")
    with pytest.raises(UsageError, match="exists already; name a new file"):
        write_cases(path, open_dataset(path))

    assert path.read_text("utf-8") == '{"content": "x"}\n'


@pytest.mark.parametrize("name", ["c.jsonl", "c.csv", "c.yaml", "c.json"])
@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (Case(id="a", content=object()), "object is not a JSON type"),
        (Case(id="a", content=b"x"), "bytes is not a JSON type"),
        (Case(id="a", content="\ud800"), "surrogate pair"),
        (Case(id="a", content=float("nan")), "nan is not a JSON number"),
    ],
)
def test_what_cannot_be_written_leaves_no_file(tmp_path, name, case, reason):
    """Half a data set would be taken for a whole one."""
    with pytest.raises(UsageError) as caught:
        write_cases(tmp_path / name, [Case(id="0", content="fine"), case])

    assert names(caught.value, "case 'a'", "cannot be written", reason)
    assert list(tmp_path.iterdir()) == []


def test_a_bad_row_that_is_read_leaves_no_file(tmp_path):
    """The cases may come from another file."""
    (tmp_path / "in.jsonl").write_text('{"content": "x"}\n{\n', "utf-8")
    with pytest.raises(UsageError, match=r"in\.jsonl, line 2"):
        write_cases(tmp_path / "out.csv", open_dataset(tmp_path / "in.jsonl"))

    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


@pytest.mark.parametrize("name", ["gone/c.jsonl", "a\x00.jsonl"])
def test_a_place_that_cannot_be_written_is_an_error(tmp_path, name):
    """With its name and the remedy."""
    with pytest.raises(UsageError, match=r"cannot write .*; name another file"):
        write_cases(tmp_path / name, [])


@pytest.mark.parametrize("name", FORMATS)
def test_no_case_gives_a_file_that_is_read(tmp_path, require, name):
    """In every format."""
    if "parquet" in name:
        require("pyarrow", find_spec("pyarrow"), "pip install 'adjudge[parquet]'")
    write_cases(tmp_path / name, [])

    assert list(open_dataset(tmp_path / name)) == []


def test_compressed_lines_are_gzip(tmp_path):
    """As every tool reads it."""
    write_cases(tmp_path / "c.jsonl.gz", [Case(id="a", content="A")])

    assert json.loads(gzip.decompress((tmp_path / "c.jsonl.gz").read_bytes()))["content"] == "A"


FORMULAS = [
    "=1+1",
    "+1+1",
    "-1+cmd|' /C calc'!A0",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "\tplain",
    "\uff1d1",
    "\uff0b1+1",
    "\uff0d1+1",
    "\uff20A",
    " =1",
    "\u00a0=1",
    "\u200b=1",
    "\ufeff=1",
    "'=1",
    '"=1',
    "+",
    "-",
    "--1",
    "=",
    "- a list",
]
HARMLESS = ["-1", "+1.5", "-.5", "-1e3", "1", "fine", "a=b", "1-2", "a\n=b", "x@y.z", "'quoted'", "\u00bd"]


@pytest.mark.parametrize(("name", "delimiter"), [("c.csv", ","), ("c.tsv", "\t"), ("c.csv.gz", ",")])
def test_a_spreadsheet_runs_no_cell(tmp_path, name: str, delimiter: str):
    """An apostrophe before what it would run, in every column; numbers and other text stay as they are."""
    texts = FORMULAS + HARMLESS
    cases = [Case(id=text or "none", content=text, reference=text, task=text, group=text) for text in texts]
    write_cases(str(tmp_path / name), cases, for_spreadsheet=True)
    open_text = gzip.open if name.endswith(".gz") else open
    with open_text(tmp_path / name, "rt", encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file, delimiter=delimiter)

    assert head == ["id", "content", "reference", "task", "group"]
    for text, row in zip(texts, rows, strict=True):
        cell = f"'{text}" if text in FORMULAS else text
        assert row[1:] == [cell] * 4


def test_each_cell_is_quoted_for_a_spreadsheet(tmp_path):
    """One of another language takes a semicolon for the separator, and what stands behind it for a cell."""
    write_cases(str(tmp_path / "c.csv"), [Case(id="a", content="x;=1")], for_spreadsheet=True)

    assert (tmp_path / "c.csv").read_bytes() == b'"id","content"\r\n"a","x;=1"\r\n'


def test_without_being_asked_cells_are_as_they_are(tmp_path):
    """Byte for byte, so that what is read again is equal."""
    write_cases(str(tmp_path / "c.csv"), [Case(id="a", content="=1+1"), Case(id="b", content="@x")])

    assert (tmp_path / "c.csv").read_bytes() == b"id,content\r\na,=1+1\r\nb,@x\r\n"


@pytest.mark.parametrize("name", ["c.jsonl", "c.json", "c.yaml", "c.jsonl.gz"])
def test_only_tables_are_written_for_a_spreadsheet(tmp_path, name: str):
    """The option would change nothing there, and says so before anything is written."""
    with pytest.raises(UsageError, match=r"for_spreadsheet is for \.csv and \.tsv"):
        write_cases(str(tmp_path / name), [Case(id="a", content="b")], for_spreadsheet=True)
    assert not list(tmp_path.iterdir())


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=8))
def test_whatever_is_written_for_a_spreadsheet_begins_no_formula(text: str):
    """A cell begins with a sign only where it is a number."""
    with tempfile.TemporaryDirectory() as folder:
        write_cases(f"{folder}/c.csv", [Case(id="a", content=text)], for_spreadsheet=True)
        with Path(folder, "c.csv").open(encoding="utf-8", newline="") as file:
            cell = list(csv.reader(file))[1][1]
    plain = unicodedata.normalize("NFKC", cell)

    assert plain[:1] not in {"=", "+", "-", "@", "\t", "\r", "\n"} or float(cell) is not None
