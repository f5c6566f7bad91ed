"""The formats of data sets: what each may hold, and what a file that is damaged or hostile does."""

from __future__ import annotations

import gzip
import json
import sys

import pytest

from adjudge import Case, UsageError, open_dataset
from adjudge.dataset import write_cases
from kit import cli
from kit.datasets import FORMS, HEADER
from kit.judges import names


def read(tmp_path, name: str, data: str | bytes, **options) -> list[Case]:
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return list(open_dataset(path, **options))


def read_error(tmp_path, name: str, data: str | bytes, **options) -> str:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, name, data, **options)
    return str(caught.value).removeprefix(str(tmp_path) + "/")


ONE = [Case(id="1", content="x", label=True)]


@pytest.mark.parametrize("name", FORMS)
def test_the_suffix_says_the_format(tmp_path, name):
    """In any case of letters."""
    assert read(tmp_path, name, FORMS[name]) == ONE


def test_the_format_can_be_given(tmp_path):
    """For a name that says nothing, or something else."""
    assert read(tmp_path, "data.txt", FORMS["c.csv"], format="csv") == ONE
    assert read(tmp_path, "data.json", FORMS["c.jsonl"], format="jsonl") == ONE


@pytest.mark.parametrize("name", ["c.jsonl", "c.ndjson", "c.csv", "c.tsv"])
def test_lines_may_be_compressed(tmp_path, name):
    """They are unpacked while they are read."""
    assert read(tmp_path, f"{name}.gz", gzip.compress(FORMS[name].encode())) == ONE


@pytest.mark.parametrize("data", [b"no gzip at all", gzip.compress(FORMS["c.jsonl"].encode() * 5000)[:-20]])
def test_broken_compression_is_an_error_that_nothing_skips(tmp_path, data):
    """What follows the fault cannot be known, so leaving it out would be leaving out anything."""
    message = read_error(tmp_path, "c.jsonl.gz", data, on_bad_row="skip", check_ids=False)

    assert message.startswith("cannot read ")
    assert "compress" in message


@pytest.mark.parametrize("name", ["c.jsonl", "c.csv", "c.tsv", "c.json", "c.yaml"])
@pytest.mark.parametrize("change", ["bom", "crlf"])
def test_what_windows_writes_is_read(tmp_path, name, change):
    """A byte order mark, and lines that end in two characters."""
    data = FORMS[name].encode()
    assert read(tmp_path, name, b"\xef\xbb\xbf" + data if change == "bom" else data.replace(b"\n", b"\r\n")) == ONE


@pytest.mark.parametrize("name", ["c.jsonl", "c.csv", "c.tsv", "c.json", "c.yaml"])
@pytest.mark.parametrize("data", ["", "\n\n", " \n"])
def test_an_empty_file_has_no_cases(tmp_path, name, data):
    """Whether that is wrong is for the caller to say."""
    assert read(tmp_path, name, "" if name in {"c.csv", "c.tsv"} and data == " \n" else data) == []


def test_only_a_header_is_no_case(tmp_path):
    """But it is checked."""
    assert read(tmp_path, "c.csv", HEADER) == []
    assert names(
        read_error(tmp_path, "c.csv", "id,text\n"), "c.csv, line 1", "content", "'id', 'text'", "fields['content']"
    )


def test_lines_of_json_end_at_line_feeds_alone(tmp_path):
    """A text may hold every other character that ends a line somewhere."""
    text = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg"
    (case,) = read(tmp_path, "c.jsonl", json.dumps({"content": text}, ensure_ascii=False))

    assert case.content == text


def test_a_line_that_is_no_utf8_is_a_bad_row(tmp_path):
    """Named with its line; the others are read."""
    data = b'{"content": "a"}\n{"content": "\xff"}\n{"content": "b"}\n'

    assert names(read_error(tmp_path, "c.jsonl", data), "c.jsonl, line 2", "UTF-8", "byte 13", "on_bad_row='skip'")
    assert [case.content for case in read(tmp_path, "c.jsonl", data, on_bad_row="skip")] == ["a", "b"]
    table = b"content\na\n\xff\nb\n"
    assert [case.content for case in read(tmp_path, "c.csv", table, on_bad_row="skip")] == ["a", "b"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "latin-1"])
@pytest.mark.parametrize("name", ["c.csv", "c.jsonl", "c.json", "c.yaml"])
def test_another_encoding_is_an_error(tmp_path, name, encoding):
    """It is never guessed."""
    data = FORMS[name].replace("x", "é").encode(encoding)

    assert any(word in read_error(tmp_path, name, data) for word in ("UTF-8", "NUL", "JSON", "YAML"))


# ---------------------------------------------------------------- tables


@pytest.mark.parametrize(
    ("cell", "label"),
    [
        ("true", True),
        ("TRUE", True),
        (" False ", False),
        ("1", 1),
        ("0", 0),
        ("0.5", 0.5),
        ("-3", -3),
        ("1e2", 100.0),
        (".5", 0.5),
        ("first", "first"),
        ("Tie", "tie"),
        ("", None),
    ],
)
def test_labels_of_tables_are_read_from_text(tmp_path, cell, label):
    """The words of labels in any case, and numbers; empty is unknown."""
    (case,) = read(tmp_path, "c.csv", f"{HEADER}1,x,{cell}\n")

    assert (case.label, type(case.label)) == (label, type(label))


@pytest.mark.parametrize("cell", ["yes", "good", "nan", "inf", "1e999", "1_000", "0x1", "9" * 5000, "١"])
def test_no_label_is_guessed(tmp_path, cell):
    """What is no word and no number of ours is a bad row."""
    assert read_error(tmp_path, "c.csv", f"{HEADER}1,x,{cell}\n").startswith("c.csv, line 2: ")


def test_one_and_true_are_different_labels(tmp_path):
    """A scale from 0 to 1 is none of true and false."""
    cases = read(tmp_path, "c.csv", HEADER + "1,x,1\n2,y,true\n")

    assert [type(case.label) for case in cases] == [int, bool]


def test_an_empty_cell_says_nothing_except_as_content(tmp_path):
    """An empty answer can be judged."""
    (case,) = read(tmp_path, "c.csv", "id,content,reference,group,labels.ann,note\na,,,,,\n")

    assert case == Case(id="a", content="", labels={"ann": None}, metadata={"note": ""})


def test_other_columns_are_metadata(tmp_path):
    """Also those that have no name; a column may name its place in a case."""
    header = "content.a,content.b,labels.ann,metadata.x,topic,,reference.json,metadata"
    table = f'{header}\nA,B,tie,1,t,n,"[1]","{{""y"": 2}}"\n'
    (case,) = read(tmp_path, "c.csv", table)

    assert case.content == {"a": "A", "b": "B"}
    assert case.reference == [1]
    assert case.labels == {"ann": "tie"}
    assert case.metadata == {"x": "1", "topic": "t", "column 6": "n", "y": 2}


@pytest.mark.parametrize(
    ("table", "parts"),
    [
        ("content,content\na,b\n", ("line 1", "column 'content'", "twice", "name each column once")),
        ("id;content\n1;x\n", ("header", "';'", "put commas there")),
        ("content,id\nx\n", ("line 2", "1 cells under 2 columns", "put quotes around a cell")),
        ("content,id\nx,1,2\n", ("line 2", "3 cells under 2 columns", "put quotes around a cell")),
        ('content\n"never\nclosed', ("line 2", "row of a table", "unexpected end of data")),
        ('content\n"a" b\n', ("line 2", "row of a table", "(")),
        ("content\na\x00b\n", ("line 2", "NUL character")),
        ("content,content.a\nx,y\n", ("line 2", "'content.a'", "twice", "keep one")),
        ("content,metadata\nx,{\n", ("line 2", "column 'metadata'", "no JSON")),
        ("content,labels.json\nx,7\n", ("line 2", "'labels'", "an object", "7")),
        ("content,reference.json,reference\nx,1,y\n", ("line 2", "'reference'", "twice", "keep one")),
    ],
)
def test_a_damaged_table_is_an_error_with_its_line(tmp_path, table, parts):
    """A header that cannot be meant is no matter of single rows, and skipping does not help."""
    assert names(read_error(tmp_path, "c.csv", table), "c.csv", *parts)
    if parts[0] in {"line 1", "header"}:
        assert names(read_error(tmp_path, "c.csv", table, on_bad_row="skip"), "c.csv", *parts)


def test_rows_go_on_after_a_damaged_one(tmp_path):
    """With the line where each row begins, whatever line breaks stand in its cells."""
    table = 'content,id\n"two\nlines",1\n"a" b,2\n\n,\nlast,4\nlast,4\n'
    (tmp_path / "c.csv").write_text(table, "utf-8")
    dataset = open_dataset(tmp_path / "c.csv", on_bad_row="skip")

    assert [case.content for case in dataset] == ["two\nlines", "last"]
    assert [row.line for row in dataset.bad_rows] == [4, 8]


def test_a_column_that_is_not_there_is_an_error_of_the_table(tmp_path):
    """Once, with the nearest name, and not for every row."""
    message = read_error(tmp_path, "c.csv", "answer,gold\nx,y\n", fields={"content": "anser"}, on_bad_row="skip")

    assert names(message, "c.csv, line 1", "'anser'", "did you mean 'answer'", "'gold'")


# ---------------------------------------------------------------- whole documents


@pytest.mark.parametrize(
    ("name", "data", "parts"),
    [
        ("c.json", '{"content": 1}', ("list of objects", "dict")),
        ("c.json", FORMS["c.jsonl"] * 2, ("lines of JSON", "format jsonl")),
        ("c.json", '["x"]', ("row 1", "an object", "str")),
        ("c.json", '[{"content": "\\ud800"}]', ("row 1", "surrogate pair")),
        ("c.yaml", "content: 1", ("list of mappings", "dict")),
        ("c.yaml", "- content: [", ("not YAML", "line 2, column 1")),
        (
            "c.yaml",
            "- content: x\n\n- content: 2024-01-02\n",
            ("line 3", "date", "put it in quotes"),
        ),
        ("c.yaml", "- content: x\n- {1: x}\n", ("line 2", "key 1", "int", "text")),
        ("c.yaml", "- &a [*a]", ("aliases",)),
        ("c.yaml", "- !!python/name:os.system x", ("not YAML", "os.system")),
    ],
)
def test_a_document_that_is_no_list_of_cases_is_an_error(tmp_path, name, data, parts):
    """With the row, or in YAML the line."""
    assert names(read_error(tmp_path, name, data), name, *parts)


# ---------------------------------------------------------------- Parquet and standard input


def test_parquet_is_read(tmp_path, require):
    """With columns that are no text, in pieces."""
    require("pyarrow", cli.find_spec("pyarrow"), "pip install 'adjudge[parquet]'")
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table(
        {
            "content": [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}],
            "label": ["first", None],
            "score": [float("nan"), 0.5],
            "labels": [{"ann": True, "bob": None}, None],
        }
    )
    parquet.write_table(table, tmp_path / "c.parquet", row_group_size=1)
    cases = list(open_dataset(tmp_path / "c.parquet"))

    assert [case.content for case in cases] == [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]
    assert [case.label for case in cases] == ["first", None]
    assert [case.metadata for case in cases] == [{}, {"score": 0.5}]
    assert cases[0].labels == {"ann": True, "bob": None}


def test_a_parquet_file_that_is_none_is_an_error(tmp_path, require):
    """Cut off, or of a column that is no text."""
    require("pyarrow", cli.find_spec("pyarrow"), "pip install 'adjudge[parquet]'")
    import pyarrow as pa
    from pyarrow import parquet

    assert "c.parquet cannot be read as Parquet" in read_error(tmp_path, "c.parquet", b"PAR1 and no more")
    parquet.write_table(pa.table({"content": [b"x"]}), tmp_path / "b.parquet")
    with pytest.raises(UsageError) as caught:
        list(open_dataset(tmp_path / "b.parquet"))
    assert names(caught.value, "b.parquet, row 1", "column 'content'", "binary data", "1 bytes")


@pytest.mark.parametrize("work", ["read", "write"])
def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch, work):
    """It is no part of the base installation."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "c.parquet"
    with pytest.raises(UsageError, match=r"Parquet needs pyarrow; pip install 'adjudge\[parquet\]'"):
        write_cases(path, ONE) if work == "write" else read(tmp_path, "c.parquet", b"PAR1")
    assert path.exists() == (work == "read")


def test_standard_input_is_lines_of_json(monkeypatch):
    """Or what the format says."""
    cli.feed(monkeypatch, FORMS["c.jsonl"].encode())
    assert list(open_dataset("-")) == ONE
    cli.feed(monkeypatch, FORMS["c.csv"].encode())
    assert list(open_dataset("-", format="csv")) == ONE
    cli.feed(monkeypatch, b"{")
    with pytest.raises(UsageError, match="standard input, line 1: not a line of JSON"):
        list(open_dataset("-"))
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UsageError, match="standard input is closed"):
        list(open_dataset("-"))


@pytest.mark.slow
@pytest.mark.no_cover
def test_memory_does_not_grow_with_the_file(tmp_path):
    """Where repeated ids are left to the caller: what is held is one line, however many there are."""
    import tracemalloc

    path = tmp_path / "c.jsonl"
    path.write_text("".join(f'{{"id": "{number}", "content": "text {number}"}}\n' for number in range(20_000)), "utf-8")
    held = []
    tracemalloc.start()
    try:
        for number, _case in enumerate(open_dataset(path, check_ids=False)):
            if number % 5_000 == 4_999:
                held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()

    assert max(held[1:]) - held[0] < 20_000
