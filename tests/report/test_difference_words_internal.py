"""Sentences about the difference of two systems: what a margin decides is said, and nothing more."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from adjudge.measurement import LabelDraw, ShareDifference
from adjudge.report.difference_words import describe_judges, describe_systems
from adjudge.trust.rate_difference import RateDifference


def describe(low: float, high: float, margin: float | None) -> str:
    """The sentence about two systems whose difference has these limits."""
    rate = RateDifference(
        value=(low + high) / 2, low=low, high=high, level=0.95, questions=200, labels=50, unresolved=0, weight=1.0,
        worth=60, more=None, judged=0.0,
    )  # fmt: skip
    difference: Any = SimpleNamespace(rate=rate, because="")
    return describe_systems(difference, "old", "new", margin=margin)


@pytest.mark.parametrize("margin", [None, 0.1])
def test_labels_that_cannot_tell_say_so(margin: float | None):
    """Also where the margin does not cover the interval."""
    assert describe(-0.12, 0.03, margin).startswith("These labels cannot tell whether people would pass new more often")


def test_a_margin_that_covers_the_interval_is_what_decides():
    """The sentence is then the reason for the exit status 0."""
    assert describe(-0.12, 0.03, 0.15) == (
        "By people's labels new is not more than 15 points worse than old: the difference is between 12.0 points less "
        "and 3.0 points more."
    )
    assert describe(-0.12, -0.02, 0.15).endswith("less often than old: not more than 15 points worse.")
    assert "worse" not in describe(0.02, 0.08, 0.15)


@pytest.mark.parametrize(("low", "words"), [(0.0003, "0.03 to 3.00 points"), (0.00001, "0.001 to 3.000 points")])
def test_a_limit_that_is_not_0_is_not_shown_as_0(low: float, words: str):
    """Else a difference that is shown would look like one that may be none."""
    assert describe(low, 0.03, None) == f"People would pass new {words} more often than old."


def test_where_every_label_is_there_no_difference_is_none():
    """Nothing is left that could tell."""
    assert describe(0.0, 0.0, None) == "People would pass new exactly as often as old."


def describe_unclear_judges(more: int | None, draw: LabelDraw | None) -> str:
    """The sentence about two judges between whom the labels, drawn like this, cannot tell."""
    share = ShareDifference(before=40, after=42, of=50, value=0.04, low=-0.031, high=0.11, more=more)
    difference: Any = SimpleNamespace(agreement=share, because="", draw=draw)
    return describe_judges(difference, "old", "new")


DRAW = ": label on, or draw them (adjudge plan RUN --against RUN2)."


@pytest.mark.parametrize(
    ("more", "ends"),
    [
        (37, f"than for old; about 37 more labelled cases would{DRAW}"),
        (1200, f"than for old; about 1,200 more labelled cases would{DRAW}"),
        (1, f"than for old; about 1 more labelled case would{DRAW}"),
        (None, "than for old."),
    ],
)
def test_labels_that_cannot_tell_two_judges_apart_say_how_many_would(more: int | None, ends: str):
    """And how to draw them, unless no number of labels would."""
    assert describe_unclear_judges(more, None) == (
        "These labels cannot tell which judge agrees with people more often: for new it is between 3.1 points less and "
        f"11.0 points more {ends}"
    )


def test_a_plan_of_two_judges_that_cannot_tell_leads_to_a_larger_one():
    """It is drawn whole, so that further labels need another plan."""
    sentence = describe_unclear_judges(37, LabelDraw(name="plan", planned=True))

    assert sentence.endswith(
        "about 37 more labelled cases would, in a new plan: delete plan.json, then adjudge plan RUN --against RUN2 "
        "with a smaller --within."
    )
