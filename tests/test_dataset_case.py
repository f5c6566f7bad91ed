"""Rows of a data set: what a line may hold, and that nothing is skipped in silence."""

from __future__ import annotations

import json

import pytest

from adjudge import Case, UsageError, read_cases
from adjudge.content import digest_text
from adjudge.dataset._case import parse_row


def write(tmp_path, *lines: object):
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), "utf-8")
    return path


def why(tmp_path, *lines: object) -> str:
    with pytest.raises(UsageError) as caught:
        list(read_cases(write(tmp_path, *lines)))
    return str(caught.value).removeprefix(str(tmp_path / "rows.jsonl"))


def test_a_row_has_what_belongs_to_one_item():
    """Everything the format names."""
    data = {
        "schema": "adjudge/row/1",
        "id": 7,
        "content": {"a": "x", "b": "y"},
        "reference": "gold",
        "task": "t",
        "context": ["c"],
        "label": "first",
        "labels": {"ann": "tie", "bob": None},
        "group": "g",
        "metadata": {"k": 1},
    }

    assert parse_row(json.dumps(data)) == Case(
        **{name: data[name] for name in data if name not in ("schema", "id")}, id="7"
    )


@pytest.mark.parametrize("label", [True, False, 0, 0.5, -3, "first", "second", "tie", None])
def test_labels_are_verdicts_numbers_or_preferences(label):
    """Or unknown."""
    assert parse_row(json.dumps({"content": "x", "label": label})).label == label


def test_without_an_id_the_content_is_the_id():
    """Its SHA-256, so the same content twice is found."""
    assert parse_row('{"content": "x"}').id == digest_text("x")
    assert parse_row('{"content": {"b": 1}}').id == digest_text('{\n  "b": 1\n}')


def test_rows_are_read_in_order_and_empty_lines_are_none(tmp_path):
    """One at a time, so a large file needs no memory."""
    rows = read_cases(write(tmp_path, {"content": "a"}, "", {"content": "b"}, "  "))

    assert next(rows).content == "a"
    assert [row.content for row in rows] == ["b"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1]", "a row must be an object, got list"),
        ("{}", "the row has no 'content'; it has nothing"),
        ('{"text": 1}', "the row has no 'content'; it has 'text'"),
        (
            '{"content": 1, "labl": 1}',
            (
                "unknown key 'labl'; a row has id, content, reference, task, context, label, labels, group, metadata; "
                "put more into metadata"
            ),
        ),
        (
            '{"content": 1, "label": "yes"}',
            "label must be true, false, a number, 'first', 'second' or 'tie', got 'yes'",
        ),
        (
            '{"content": 1, "labels": {"ann": [1]}}',
            "label must be true, false, a number, 'first', 'second' or 'tie', got [1]",
        ),
        ('{"content": 1, "labels": [1]}', "'labels' must be an object, got [1]"),
        ('{"content": 1, "metadata": "x"}', "'metadata' must be an object, got 'x'"),
        ('{"content": "caf\\ud800"}', None),
        ('{"content": 1, "label": NaN}', "not a line of JSON (NaN is not JSON); write one object per line"),
        (
            '{"content": 1, "content": 2}',
            'not a line of JSON (the key "content" stands twice in one object); write one object per line',
        ),
        ("{", None),
    ],
)
def test_a_wrong_row_is_an_error_with_its_place(tmp_path, line, message):
    """File, line, what is wrong and the remedy."""
    said = why(tmp_path, {"content": "fine"}, line)

    assert said.startswith(", line 2: ")
    assert message is None or said == f", line 2: {message}"


def test_an_id_twice_is_an_error(tmp_path):
    """Also where it is the same content twice."""
    repeated = "already; give each row an id of its own"

    assert why(tmp_path, {"id": "a", "content": 1}, {"id": "a", "content": 2}) == (
        f", line 2: the id 'a' stands on line 1 {repeated}"
    )
    assert why(tmp_path, {"content": 1}, {"content": 1}).endswith(repeated)


def test_a_file_that_cannot_be_read_is_an_error(tmp_path):
    """Absent, or not text."""
    binary = tmp_path / "binary"
    binary.write_bytes(b'{"content": "\xff"}')

    for path, reason in ((tmp_path / "absent", "No such file or directory"), (binary, "it is not UTF-8 text")):
        with pytest.raises(UsageError) as caught:
            list(read_cases(path))
        assert str(caught.value) == f"cannot read {path}: {reason}; give a file of JSON lines"
