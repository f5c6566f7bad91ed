"""The readers of lines and cells, and how much they read at once."""

from __future__ import annotations

import csv
import gzip
import io

import pytest

from adjudge import Case, UsageError, open_dataset
from adjudge.dataset import formats as _formats
from adjudge.dataset import formats as _source
from kit.datasets import FORMS


def read(tmp_path, name: str, data: str | bytes, **options) -> list[Case]:
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return list(open_dataset(path, **options))


def read_error(tmp_path, name: str, data: str | bytes, **options) -> str:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, name, data, **options)
    return str(caught.value).removeprefix(str(tmp_path) + "/")


@pytest.mark.parametrize("name", ["c.jsonl", "c.csv"])
def test_a_line_without_end_does_not_fill_the_memory(tmp_path, name, monkeypatch):
    """It is passed over, and what stands after it has its right number."""
    monkeypatch.setattr(_source, "LONGEST", 40)
    lines = ["content" if name == "c.csv" else "", "x" * 1000, "y" if name == "c.csv" else '{"content": "y"}']
    path = tmp_path / name
    path.write_text("\n".join(lines), "utf-8")
    dataset = open_dataset(path, on_bad_row="skip")

    assert [case.content for case in dataset] == ["y"]
    assert [(row.line, "longer than" in row.why) for row in dataset.bad_rows] == [(2, True)]


def test_a_cell_may_be_longer_than_the_library_takes_by_default(tmp_path):
    """131,072 characters are no long answer."""
    (case,) = read(tmp_path, "c.csv", f"content\n{'x' * 300_000}\n")

    assert len(case.content) == 300_000
    assert csv.field_size_limit() >= _source.LONGEST


@pytest.mark.parametrize("name", ["c.json", "c.yaml"])
def test_what_is_read_at_once_may_not_be_large(tmp_path, name, monkeypatch):
    """Lines of JSON may."""
    monkeypatch.setattr(_formats, "LARGEST_JSON", 10)
    monkeypatch.setattr(_formats, "LARGEST_YAML", 10)

    assert "is larger than 0 MB; write it as JSON lines, which are streamed" in read_error(tmp_path, name, FORMS[name])


def test_the_reader_of_lines_takes_what_any_file_gives():
    """Bytes in memory too."""
    assert list(_source.read_lines(io.BytesIO(b"\xef\xbb\xbfa\n\nb"), "f")) == [(1, "a\n"), (2, "\n"), (3, "b")]


@pytest.mark.parametrize(
    ("name", "data", "rows"),
    [
        ("c.jsonl", '{"content": "a"}\n\n  \n{"content": "b"}', 2),
        ("c.csv", 'id,content\n1,"two\nlines, and ""quotes"""\n,\n2,b\n', 2),
        ("c.tsv", "id\tcontent\n1\ta\n", 1),
        ("c.json", '[{"content": "a"}, {"content": "b"}]', 2),
        ("c.json", '{"content": "a"}', None),
        ("c.yaml", "- content: a\n", None),
        ("c.txt", "a", None),
        ("c.csv", "", 0),
    ],
)
def test_rows_are_counted_before_they_are_read(tmp_path, name, data, rows):
    """So that progress has a total; where that cannot be said cheaply there is none."""
    path = tmp_path / name
    path.write_text(data, "utf-8")

    assert _formats.count_rows(str(path)) == rows
    if rows:
        assert len(list(open_dataset(path))) == rows


def test_counting_ends_where_it_would_take_long(tmp_path, monkeypatch):
    """A compressed file may hold any number of lines, and one that is broken is complained of where it is read."""
    packed, broken = tmp_path / "c.jsonl.gz", tmp_path / "b.csv.gz"
    packed.write_bytes(gzip.compress(b'{"content": "a"}\n' * 100))
    broken.write_bytes(b"no gzip")

    assert _formats.count_rows(str(packed)) == 100
    assert _formats.count_rows(str(broken)) is None
    assert _formats.count_rows("-") is None
    assert _formats.count_rows(str(tmp_path / "gone.csv")) is None
    monkeypatch.setitem(_formats.COUNTED, "jsonl", 1_000)
    assert _formats.count_rows(str(packed)) is None
