"""White space is marked wherever it changes what a text means, and the text stays what it is."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.formats.blanks import TextPart, describe_blanks, list_blanks, split_blanks, split_hidden

TEXTS = st.text(
    st.one_of(st.sampled_from(" \t\n\r\u00a0\u2003\u200b\u202e\ufe0f☺a"), st.characters(exclude_categories=["Cs"]))
)


def show(text: str, *around: str) -> str:
    """A text with each part that is marked in brackets."""
    return "".join(f"[{part.mark or part.text}]" if part.kind else part.text for part in split_blanks(text, *around))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("one two three", "one two three"),
        ("rm -rf '/srv/my  two   spaces'", "rm -rf '/srv/my[  ]two[   ]spaces'"),
        ("a\tb\t\tc", "a[\t]b[\t][\t]c"),
        ("a\nb\r\nc", "a[\n]b[U+000D][\n]c"),
        (" a", "[ ]a"),
        ("a ", "a[ ]"),
        ("a \nb", "a[ ][\n]b"),
        ("a\n b", "a[\n][ ]b"),
        ("a \tb", "a[ ][\t]b"),
        ("a\u00a0b", "a[U+00A0]b"),
        ("a \u2003b", "a[ ][U+2003]b"),
        ("a\u3000b\u202fc\u1680d", "a[U+3000]b[U+202F]c[U+1680]d"),
        ("a\u2028b\u2029c\x0bd\x85e", "a[U+2028]b[U+2029]c[U+000B]d[U+0085]e"),
        ("a\u200bb\u202ec", "a[U+200B]b[U+202E]c"),
        ("☺\ufe0f and a\ufe0f", "☺\ufe0f and a[U+FE0F]"),
        ("日本 語", "日本 語"),
        ("]^-\\\u200b", "]^-\\[U+200B]"),
    ],
)
def test_what_is_marked(text: str, shown: str):
    """And what is not: a single blank between words, in any writing."""
    assert show(text) == shown


def test_a_piece_of_a_text_is_marked_as_in_the_whole():
    """A run that two pieces share is one, and the end of a piece is no end of a line."""
    assert (show("a ", "", "b"), show("a ", "", " "), show(" b", "a", ""), show(" b", " ", "")) == (
        "a ", "a[ ]", " b", "[ ]b",
    )  # fmt: skip


@given(TEXTS)
def test_the_parts_are_the_text(text: str):
    """Nothing is lost or added, and no unmarked part holds two blanks in a row, a tab, or what looks like a blank."""
    parts = split_blanks(text)
    assert "".join(part.text for part in parts) == text
    for part in parts:
        if not part.kind:
            assert not {"\t", "\n"} & set(part.text)
            assert "  " not in part.text
            assert all(char == " " or unicodedata.category(char) != "Zs" for char in part.text)


def test_what_is_marked_is_said_in_words():
    """And where, for a terminal, which draws no marks into a text that is copied."""
    assert describe_blanks("one two") == ""
    assert describe_blanks("a  b\tc", "d \n") == "2 runs of blanks (·), 1 tab (→), 1 line break (↵)"
    blanks = [(line, column, part.text) for line, column, part in list_blanks("a  b\tc\n  d\u00a0e ")]
    assert blanks == [(1, 2, "  "), (1, 5, "\t"), (2, 4, "\u00a0"), (2, 6, " ")]


def test_what_a_reader_sees_is_not_marked_where_nothing_is_decided():
    """Line breaks and indentation are seen; tabs, runs within a line and characters without a look are not."""
    text = "def f():\n    return  1\n\tx\ty\u00a0z\u200b"
    parts = split_hidden(text)

    assert "".join(part.text for part in parts) == text
    assert [(part.kind, part.text) for part in parts if part.kind] == [
        ("blanks", "  "), ("tab", "\t"), ("code", "\u00a0"),
    ]  # fmt: skip
    assert split_hidden("one line") == (TextPart("one line"),)
    assert split_hidden("") == ()
