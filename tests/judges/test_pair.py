"""The value of a comparison: what it promises, what it is written as, how it is shown."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import Judge, PairResult, UsageError, compare_sync
from adjudge.errors import Reason
from adjudge.judges import Preference
from adjudge.models import Reply
from adjudge.testing import ScriptedModel
from kit.judges import names
from kit.pairs import BAD, GOOD, make_pair, prefer

REASONS: tuple[str, ...] = get_args(Reason)
PREFERENCES: tuple[str, ...] = get_args(Preference)

BETTER = "Answers the question."


def ask(script: Any, a: object = GOOD, b: object = BAD, **how: Any) -> PairResult:
    return compare_sync(a, b, judge=Judge(ScriptedModel(script), reask=0), criteria=BETTER, **how)


@given(
    ab=st.sampled_from((*PREFERENCES, *REASONS)),
    ba=st.sampled_from((*PREFERENCES, *REASONS)),
    conflict=st.sampled_from(("tie", "undecided")),
)
def test_swapping_the_contents_swaps_the_preference(ab: str, ba: str, conflict: str):
    """What is said of b against a is the mirror image of what is said of a against b."""
    pair, mirrored = make_pair(ab, ba, on_conflict=conflict), make_pair(ba, ab, on_conflict=conflict)
    swapped = {"first": "second", "second": "first", "tie": "tie", None: None}

    assert mirrored.preferred == swapped[pair.preferred]
    assert mirrored.flipped == pair.flipped
    assert mirrored.undecided_because == pair.undecided_because
    assert {pair.outcome, mirrored.outcome} != {"passed"}


@given(ab=st.sampled_from((*PREFERENCES, *REASONS)), ba=st.none() | st.sampled_from((*PREFERENCES, *REASONS)))
def test_a_pair_passes_only_when_every_order_prefers_the_first(ab: str, ba: str | None):
    """The outcome answers "is the first better?", and only unanimous orders say yes."""
    pair = make_pair(ab, ba)

    assert pair.passed == (ab == "first" and ba in (None, "second"))
    assert (pair.outcome == "undecided") == (ab in REASONS or ba in REASONS)
    assert pair.passed == bool(pair) == (pair.score == 1.0)
    assert {"first": 1.0, "tie": 0.5, "second": 0.0, None: None}[pair.preferred] == pair.score


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "adjudge/result/1"},
        {"schema": None},
        {"preferred": "A"},
        {"preferred": None},
        {"preferred": "second"},
        {"preferred": None, "undecided_because": "because"},
        {"preferred": ["first"]},
        {"confidence": 1.5},
        {"undecided_because": "split"},
        {"orders": None},
        {"orders": [1]},
        {"orders": [{"order": "ac", "result": {}}]},
        {"orders": [{"order": "ab"}]},
        {"duration_ms": "long"},
        {"created_at": 3.5},
    ],
)
def test_what_is_no_pair_is_refused(change: dict[str, Any]):
    """A dictionary of another schema, or with a member that cannot be, is a ``UsageError``."""
    with pytest.raises(UsageError):
        PairResult.from_dict(make_pair("first", "second").to_dict() | change)


@pytest.mark.parametrize("missing", ["id", "created_at", "preferred", "judge", "orders"])
def test_a_pair_without_its_identity_is_refused(missing: str):
    """A default would make up who judged, or when."""
    data = make_pair("first", "second").to_dict()
    del data[missing]
    with pytest.raises(UsageError):
        PairResult.from_dict(data)


def test_a_pair_adds_up_what_its_orders_used():
    """Usage is that of both orders; digests are of both contents together and of each."""
    reply = Reply(text=json.dumps(prefer("first")), usage=None)
    pair = ask(lambda request: reply)
    other = ask(lambda request: reply, a=BAD, b=GOOD)

    assert pair.usage is None
    assert pair.subjects == other.subjects[::-1]
    assert pair.subject != other.subject
    assert {item.result.subject for item in pair.orders} == {pair.subject}


def test_a_pair_is_shown_as_data():
    """Markup, control characters and scripts in a judge's words stay text, in a terminal and in a notebook."""
    from io import StringIO

    from rich.console import Console

    pair = ask(prefer("first", "\x1b[31mred [bold]x[/bold] <script>alert(1)</script>"), on_conflict="undecided")
    out = StringIO()
    Console(file=out, width=120, color_system=None).print(pair)

    assert "\x1b" not in out.getvalue()
    assert "[bold]x[/bold]" in out.getvalue()
    assert "undecided (split)" in out.getvalue()
    assert "<script>" not in pair._repr_html_()
    assert "&lt;script&gt;" in pair._repr_html_()
    assert names(repr(pair), "<PairResult 'scripted' undecided: split;", "ab says first", "ba says second>")
