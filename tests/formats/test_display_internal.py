"""An outcome in one line, and texts made harmless."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import JudgeResult
from adjudge.formats.display import describe_outcome
from adjudge.formats.text import clean, flatten, quote
from kit.results import chain


@pytest.mark.parametrize(
    ("made", "line"),
    [
        (JudgeResult(outcome="passed", judge="j", score=0.9, threshold=0.7), "✓ passed 0.90 of 0.70 needed"),
        (JudgeResult(outcome="passed", judge="j"), "✓ passed"),
        (JudgeResult(outcome="failed", judge="j", decided_by="rule"), "✗ failed, decided by rule"),
        (chain(), "? undecided (split), decided by policy"),
    ],
)
def test_an_outcome_is_one_line(made, line):
    """Sign, word, reason, numbers, and who decided where it was no judge."""
    assert describe_outcome(made) == line


@given(text=st.text())
def test_cleaning_hides_nothing_and_keeps_length(text):
    """One character becomes one character, so nothing is removed without a trace."""
    cleaned = clean(text)

    assert len(cleaned) == len(text)
    assert all(one == other or other in "· " for one, other in zip(text, cleaned, strict=True))
    assert clean(cleaned) == cleaned


def test_lines_are_kept_only_where_there_is_room_for_them():
    """A judge's name with a line break must not forge a second line."""
    assert clean("a\nb\tc") == "a\nb\tc"
    assert clean("a\nb\tc", keep_lines=False) == "a b c"


def test_an_emoji_that_is_joined_is_one_picture_and_a_joiner_elsewhere_is_seen():
    """A family, a flag and a skin are drawn by joiners; between letters, or at an end, one hides something."""
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    for text in (family, "\U0001f3f3\ufe0f\u200d\U0001f308", "\U0001f469\U0001f3fd\u200d\U0001f4bb"):
        assert clean(f"{text} thanks") == f"{text} thanks"
    for text in (
        "a\u200db",
        "\u200d\U0001f469",
        "\U0001f469\u200d",
        "\U0001f469\u200db",
        "\U0001f469\u200d\u200d\U0001f469",
    ):
        assert "·" in clean(text)


def test_in_a_title_a_joiner_of_an_emoji_is_kept_and_every_other_one_is_an_escape():
    """A picture is all that its author can make of one: both pictures are seen, joined or side by side.

    Between letters it would split a word that a rule or a reader looks for, and at an end join what comes next; two in
    a row, or one beside a blank cell, could carry a text that nobody sees.
    """
    for text in ("\U0001f469\u200d\U0001f4bb ships", "\U0001f3f3\ufe0f\u200d\U0001f308"):
        assert flatten(text) == text
        assert quote(text) == f'"{text}"'
    for text in (
        "pass\u200dword",
        "\u200d\U0001f469",
        "\U0001f469\u200d",
        "\U0001f469\u200d\u200d\U0001f4bb",
        "\U0001f469\u200d\u202e\U0001f4bb",
        "\U0001f469\u200c\U0001f4bb",
    ):
        assert flatten(text).isascii() or "\\u20" in flatten(text)
        assert "\\u20" in quote(text)
