"""Sentences about the difference of two systems: what a margin decides is said, and nothing more."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from adjudge.measurement import LabelDraw, ShareDifference
from adjudge.report.difference_words import (
    describe_judges,
    describe_preference,
    describe_systems,
    list_preference_facts,
    list_system_facts,
)
from adjudge.trust.rate_difference import RateDifference


def make_difference(low: float, high: float, limit: str = "one look", **others: Any) -> Any:
    """A difference with these limits, by 50 labels of 200 unless all are labelled."""
    labels = 200 if limit == "count" else 50
    rate = RateDifference(
        value=(low + high) / 2, low=low, high=high, level=0.95, questions=200, labels=labels, weight=1.0, worth=60,
        judged=0.0, **{"unresolved": 0, "more": None} | others,
    )  # fmt: skip
    return SimpleNamespace(rate=rate, limit=limit, because="", left=None, questions=labels)


def make_agreement(
    low: float, high: float, limit: str = "one look", *, more: int | None = None, draw: LabelDraw | None = None
) -> Any:
    """Two judges whose agreement with people differs by these limits."""
    share = ShareDifference(before=40, after=42, of=50, value=(low + high) / 2, low=low, high=high, more=more)
    return SimpleNamespace(agreement=share, limit=limit, because="", draw=draw)


def describe(low: float, high: float, margin: float | None, limit: str = "one look", **others: Any) -> str:
    """The sentence about two systems whose difference has these limits."""
    return describe_systems(make_difference(low, high, limit, **others), "old", "new", margin=margin)


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
    """Nothing is left that could tell, and what was counted has no limits."""
    counted = make_difference(0.0, 0.0, "count")

    assert describe(0.0, 0.0, None, "count") == "People would pass new exactly as often as old."
    assert describe_preference(counted) == "People would prefer both equally often."
    assert describe_judges(make_agreement(0.0, 0.0, "count"), "old", "new") == (
        "new agrees with people exactly as often as old."
    )
    assert dict(list_system_facts(counted))["difference"] == "+0.0 points"
    assert dict(list_preference_facts(counted))["second less first"] == "+0.0 points"


@pytest.mark.parametrize(("limit", "unresolved"), [("one look", 0), ("every look", 0), ("count", 3)])
def test_a_sample_is_never_worded_as_a_count(limit: str, unresolved: int):
    """Not even where its limits are equal: some answers have no label, or none that people settled."""
    sample = make_difference(0.0, 0.0, limit, unresolved=unresolved)

    assert describe(0.0, 0.0, None, limit, unresolved=unresolved).startswith("These labels cannot tell")
    assert describe_preference(sample).startswith("These labels cannot tell")
    if not unresolved:
        assert "cannot tell" in describe_judges(make_agreement(0.0, 0.0, limit), "old", "new")
    assert "(+0.0 to +0.0)" in dict(list_system_facts(sample))["difference"]
    assert "(+0.0 to +0.0)" in dict(list_preference_facts(sample))["second less first"]


ONCE = "by the wider limits for every look"
ALWAYS = "by these limits, which hold at every look"
DRAW = ": label on, or draw them (adjudge plan RUN --against RUN2)."


@pytest.mark.parametrize(
    ("more", "limit", "ends"),
    [
        (37, "one look", f"; about 37 more labelled cases would, {ONCE}{DRAW}"),
        (1200, "every look", f"; about 1,200 more labelled cases would, {ALWAYS}{DRAW}"),
        (1, "one look", f"; about 1 more labelled case would, {ONCE}{DRAW}"),
        (None, "one look", "."),
    ],
)
def test_labels_that_cannot_tell_two_judges_apart_say_how_many_would(more: int | None, limit: str, ends: str):
    """By which limits, because whoever labels on looks again, and how to draw them; unless no number would."""
    sentence = describe_judges(make_agreement(-0.031, 0.11, limit, more=more), "old", "new")

    assert sentence == (
        "These labels cannot tell which judge agrees with people more often: for new it is between 3.1 points less and "
        f"11.0 points more than for old{ends}"
    )


@pytest.mark.parametrize(("limit", "price"), [("one look", ONCE), ("every look", ALWAYS)])
def test_the_price_of_more_labels_is_said_of_systems_and_pairs(limit: str, price: str):
    """The limits for one look are for one look."""
    difference = make_difference(-0.031, 0.11, limit, more=37)

    assert describe_preference(difference).endswith(f"; about 37 more labelled pairs would, {price}.")
    assert describe_systems(difference, "old", "new").endswith(f"; about 37 more labelled questions would, {price}.")
    difference.left = 0
    assert f"would, {price}, in a new plan: delete" in describe_systems(difference, "old", "new")


def test_a_plan_of_two_judges_that_cannot_tell_leads_to_a_larger_one():
    """It is drawn whole, so that further labels need another plan."""
    sentence = describe_judges(
        make_agreement(-0.031, 0.11, more=37, draw=LabelDraw(name="plan", planned=True)), "old", "new"
    )

    assert sentence.endswith(
        f"about 37 more labelled cases would, {ONCE}, in a new plan: delete plan.json, then adjudge plan RUN "
        "--against RUN2 with a smaller --within."
    )
