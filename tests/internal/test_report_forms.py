"""The pieces that reports are written of: code spans and numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.formats.markdown import render_code
from adjudge.templates.figures import format_count, format_dollars, format_duration, format_rate
from report_forms_support import parse


@given(st.text(st.one_of(st.characters(), st.sampled_from("`|\\<>[]()!*_@#\n &;")), max_size=80))
def test_a_code_span_cannot_be_left(text: str):
    """In a table's cell too: the row keeps its three cells, and the text is in the second."""
    document = f"| a | b | c |\n| --- | --- | --- |\n| 1 | {render_code(text)} | 3 |\n"
    cells = [token for token in parse(document) if token.type == "inline"]

    assert [token.content for token in cells[:3]] == ["a", "b", "c"]
    assert [token.content for token in (cells[3], cells[5])] == ["1", "3"]
    assert [token.type for token in cells[4].children] in (["code_inline"], ["text"])
    assert len(cells) == 6


@pytest.mark.parametrize(
    ("said", "wanted"),
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
def test_numbers_are_said_as_people_read_them(said: str, wanted: str):
    """Nearly all is not all, and unknown is not zero."""
    assert said == wanted
