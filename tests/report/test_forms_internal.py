"""The pieces that reports are written of: code spans and numbers."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.formats.markdown import escape, render_code
from adjudge.formats.numbers import format_dollars, format_rate
from adjudge.formats.text import clean
from adjudge.templates.figures import format_count, format_duration
from kit.markup import parse


@given(st.text(st.one_of(st.characters(), st.sampled_from("`|\\<>[]()!*_@#\n &;")), max_size=80))
def test_a_code_span_cannot_be_left(text: str):
    """In a table's cell too: the row keeps its three cells, and the text is in the second."""
    document = f"| a | b | c |\n| --- | --- | --- |\n| 1 | {render_code(text)} | 3 |\n"
    cells = [token for token in parse(document) if token.type == "inline"]

    assert [token.content for token in cells[:3]] == ["a", "b", "c"]
    assert [token.content for token in (cells[3], cells[5])] == ["1", "3"]
    assert [token.type for token in cells[4].children] in (["code_inline"], ["text"])
    assert len(cells) == 6


REACHES_PEOPLE = re.compile(r"@|#\d|\bgh-\d", re.IGNORECASE)
"""What GitHub looks for in text, once it has read the escapes: people, addresses, issues."""

HOSTILE_PIECES = (
    "@all", "ada@example.com", "#12", "gh-7", "o/r#1", "https://e.example", "www.e.example", "![i](u)", "[l](u)",
    "<b>", "&lt;", "`", "``", "|", "\n", "\\", "*", "_", "~~", "@#1", "#@1", "$x$",
)  # fmt: skip


@given(st.lists(st.sampled_from(HOSTILE_PIECES) | st.text(st.characters(), max_size=5), max_size=8).map("".join))
def test_escaped_text_is_read_as_it_was_written(text: str):
    """In a sentence and in a cell: no emphasis, link, image, HTML or cell of its own, and nobody is written to."""
    for document in (f"Said: {escape(text)}.", f"| a | b |\n| --- | --- |\n| 1 | {escape(text)}. |\n"):
        tokens = parse(document)
        last = [token for token in tokens if token.type == "inline"][-1]
        cleaned = " ".join(clean(text, keep_lines=False).split())

        assert {token.type for token in last.children} <= {"text", "code_inline"}
        assert "".join(token.content for token in last.children).removeprefix("Said: ").strip() == f"{cleaned}."
        pieces = [token.content for token in last.children if token.type == "text"]
        assert [piece for piece in pieces if REACHES_PEOPLE.search(piece)] == []


@pytest.mark.parametrize("link", ["https://e.example", "HTTP://e.example", "www.e.example", "ftp://e.example"])
def test_an_address_in_escaped_text_is_no_link(link: str):
    """GitHub makes links of bare addresses, and looks for them before it reads escapes."""
    assert re.search(r"(?<!\\)://|www\.", escape(link), re.IGNORECASE) is None


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (format_rate(0.99999), ">99.9 %"),
        (format_rate(0.00001), "<0.1 %"),
        (format_rate(1), "100 %"),
        (format_rate(None), "–"),
        (format_count(1, "case"), "1 case"),
        (format_count(2_000, "case"), "2,000 cases"),
        (format_count(2.5), "2.5"),
        (format_duration(0.4), "0.4 ms"),
        (format_duration(999.9), "1.0 s"),
        (format_duration(1_800_000), "30 min"),
        (format_dollars(None), "unknown"),
        (format_dollars(0.00012), "$0.0001"),
        (format_dollars(1234.5), "$1,234.50"),
    ],
    ids=range(13),
)
def test_numbers_are_said_as_people_read_them(shown: str, expected: str):
    """Nearly all is not all, and unknown is not zero."""
    assert shown == expected
