"""Summaries of comparisons."""

from __future__ import annotations

import json
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import UsageError
from adjudge.errors import Reason
from adjudge.judges import PairSummary, Preference
from adjudge.judges.pair_summary import summarise_pairs
from adjudge.trust import Share
from kit.pairs import make_pair

REASONS: tuple[str, ...] = get_args(Reason)


PREFERENCES: tuple[str, ...] = get_args(Preference)


SAID = st.sampled_from((*PREFERENCES, *REASONS[:4]))


JUDGED = st.lists(st.tuples(SAID, st.none() | SAID, st.none() | st.sampled_from(PREFERENCES)), max_size=30)


def summarise(rows: list[tuple[str, str | None, str | None]]) -> PairSummary:
    return summarise_pairs((make_pair(ab, ba), label) for ab, ba, label in rows)


def test_a_summary_by_hand():
    """Ten pairs: what wins, what flips, and what a person says."""
    rows = [
        *[("first", "second", "first")] * 4,
        ("second", "first", "first"),
        ("tie", "tie", "tie"),
        ("first", "first", "second"),
        ("second", "second", None),
        ("first", "tie", None),
        ("timeout", "first", "second"),
    ]
    summary = summarise(rows)

    assert (summary.pairs, summary.wins, summary.ties, summary.losses, summary.undecided) == (10, 4, 4, 1, 1)
    assert summary.undecided_by == {"timeout": 1}
    assert (summary.win_rate.count, summary.win_rate.of) == (6.0, 9)
    assert (summary.flips.count, summary.flips.of, summary.reversals) == (3, 9, 2)
    assert (summary.agreement.count, summary.agreement.of) == (6, 10)
    assert (summary.shown_first.count, summary.shown_first.of) == (9, 16)
    assert (summary.labelled, summary.accuracy.count, summary.accuracy.of) == (8, 5, 8)
    assert (summary.accuracy_untied.count, summary.accuracy_untied.of) == (4, 5)
    assert (summary.accuracy_ab.count, summary.accuracy_ba.count, summary.accuracy_ba.of) == (5, 7, 8)
    assert (summary.both_right.count, summary.both_right.of) == (5, 8)
    assert summary.confusion == {
        "first": {"first": 4, "second": 1},
        "tie": {"tie": 1},
        "second": {"tie": 1, "undecided": 1},
    }


@given(rows=JUDGED)
def test_the_counts_of_a_summary_add_up(rows: list[tuple[str, str | None, str | None]]):
    """Every pair is a win, a tie, a loss or undecided, no share is above 1, and it can be written as JSON."""
    summary = summarise(rows)

    assert summary.wins + summary.ties + summary.losses + summary.undecided == summary.pairs == len(rows)
    assert sum(summary.undecided_by.values()) == summary.undecided
    assert sum(sum(counts.values()) for counts in summary.confusion.values()) == summary.labelled
    for name in PairSummary.__dataclass_fields__:
        value = getattr(summary, name)
        assert not isinstance(value, Share) or 0 <= value.count <= value.of
    assert json.loads(json.dumps(summary.to_dict()))["schema"] == "adjudge/pair-summary/1"


@given(rows=JUDGED)
def test_swapping_the_contents_turns_a_summary_round(rows: list[tuple[str, str | None, str | None]]):
    """Wins become losses; flips, agreement and the favourite place stay what they are."""
    both = [row for row in rows if row[1] is not None]
    mirror = {"first": "second", "second": "first", "tie": "tie", None: None}
    one, other = summarise(both), summarise([(str(ba), ab, mirror[label]) for ab, ba, label in both])

    assert (other.wins, other.ties, other.losses) == (one.losses, one.ties, one.wins)
    assert (other.flips, other.agreement, other.shown_first) == (one.flips, one.agreement, one.shown_first)
    assert (other.accuracy, other.both_right) == (one.accuracy, one.both_right)
    assert (other.accuracy_ab, other.accuracy_ba) == (one.accuracy_ba, one.accuracy_ab)


@pytest.mark.parametrize("label", [True, 1, "a", ""])
def test_a_label_of_another_kind_is_refused(label: object):
    """A pair is labelled by which of the two is better; true and false say nothing of that."""
    with pytest.raises(UsageError, match="the label of a pair is first, second or tie"):
        summarise_pairs([(make_pair("first", "second"), label)])
