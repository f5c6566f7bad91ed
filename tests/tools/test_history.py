"""What a tool's outputs have been like, and which one is unusual."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.tools import ReuseVerdict, ToolHistory, ToolUsage
from kit.judges import complaint
from kit.tools import check


def history_of(*outputs: Any) -> ToolHistory:
    history = ToolHistory()
    for output in outputs:
        history = history.add(output)
    return history


USUAL = [{"n": place, "tags": ["a"] * (place % 3)} for place in range(30)]


def test_nothing_is_unusual_without_a_history():
    """Or with one of fewer than ten outputs."""
    assert not check("x" * 10_000, True).anomaly
    assert not check("x" * 10_000, True, history=history_of(*USUAL[:9])).anomaly


@pytest.mark.parametrize(
    ("output", "unusual"),
    [
        ({"n": 7, "tags": []}, False),
        ({"n": 7.5, "tags": ["b", "c"]}, False),
        ({"n": 7, "tags": ["x" * 100]}, True),
        ({"n": 7, "tags": ["a"] * 50}, True),
        ({}, True),
        ({"n": "7", "tags": []}, True),
        ({"n": 7, "tags": [1]}, True),
        ({"n": 7, "tags": [], "x": 1}, True),
        ([7], True),
        (None, True),
    ],
)
def test_size_and_shape_outside_the_history_are_unusual(output: Any, unusual: bool):
    """Below half the smallest, above twice the largest, or of a shape never seen; valid or not is another matter."""
    history = history_of(*USUAL)

    assert check(output, True, history=history) == ReuseVerdict(valid=True, anomaly=unusual)
    assert check(output, {"not": {}}, history=history).anomaly is unusual


def test_a_tool_whose_shapes_vary_has_no_unusual_shape():
    """A new one with every output says nothing when the next comes; its size still does."""
    history = history_of(*[{f"k{place}": 1} for place in range(30)])

    assert not check({"other": 1}, True, history=history).anomaly
    assert check({"other": "x" * 100}, True, history=history).anomaly


def test_a_history_holds_no_output():
    """Counts, two sizes, and digests of shapes; the same after a way through JSON."""
    history = history_of({"password": "SECRET"}, {"password": "OTHER"})
    data = json.loads(json.dumps(history.to_dict()))

    assert "password" not in json.dumps(data)
    assert (history.count, history.smallest, history.largest, len(history.shapes)) == (2, 20, 21, 1)
    assert ToolHistory.from_dict(data) == history


def test_a_history_does_not_grow_without_end():
    """Beyond 64 shapes it only remembers that there were more."""
    assert len(history_of(*[{f"k{place}": 1} for place in range(200)]).shapes) == 65


@given(outputs=st.lists(st.sampled_from(USUAL), min_size=10, max_size=40))
def test_what_was_seen_is_not_unusual(outputs: list[Any]):
    """However often, and in whatever order."""
    history = history_of(*outputs)

    assert not any(history.is_unusual(output) for output in outputs)


@pytest.mark.parametrize(
    "more",
    [
        {"count": -1},
        {"count": 1.5},
        {"smallest": 9},
        {"shapes": "ab"},
        {"shapes": [1]},
        {"schema": "x"},
        {"count": None},
    ],
)
def test_a_history_is_read_strictly(more: dict[str, Any]):
    """What ``to_dict`` did not write is refused."""
    assert complaint(ToolHistory.from_dict, history_of(1, 2).to_dict() | more)


def test_what_is_no_json_joins_no_history():
    """It is the caller's mistake: only what was found valid is added."""
    for odd in ({1}, float("nan"), print):
        assert complaint(ToolHistory().add, odd)


def test_usage_counts_and_keeps_the_mean():
    """A value that a registry keeps; what came out joins its history only where it is given."""
    usage = ToolUsage().add(success=True, duration_ms=10, output={"a": 1}).add(success=False, duration_ms=30)

    assert (usage.uses, usage.successes, usage.failures, usage.mean_ms) == (2, 1, 1, 20.0)
    assert (usage.success_rate, usage.history.count) == (0.5, 1)
    assert ToolUsage.from_dict(json.loads(json.dumps(usage.to_dict()))) == usage
    assert ToolUsage().success_rate == 0.0
