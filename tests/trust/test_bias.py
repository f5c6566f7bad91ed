"""Bias: whether a judge errs to one side on answers of some length, format or language."""

from __future__ import annotations

import json
import random

import pytest

from adjudge.errors import UsageError
from adjudge.trust import make_bias
from kit.oracles import need_statistics


@pytest.fixture(autouse=True)
def statistics(require):
    need_statistics(require)


def draw_items(items: int = 400, seed: int = 1) -> tuple[list[float], list[float], dict[str, list]]:
    """Verdicts of a judge that passes what is long, whatever people say; languages and places do nothing."""
    chance = random.Random(seed)
    lengths = [chance.uniform(20, 2_000) for _ in range(items)]
    truth = [float(chance.random() < 0.5) for _ in range(items)]
    judged = [
        float(length > 1_000) if chance.random() < 0.6 else true for length, true in zip(lengths, truth, strict=True)
    ]
    languages = [chance.choice(["English", "English", "German"]) for _ in range(items)]
    first = [chance.random() < 0.5 for _ in range(items)]
    return judged, truth, {"shown first": first, "length": lengths, "language": languages}


def test_a_property_divides_the_items_and_says_what_each_side_says():
    """Numbers in quarters from the lowest; the judge passes more of the longest than people do."""
    judged, truth, properties = draw_items()
    bias = make_bias(judged, truth, properties)
    quarters = [kind for kind in bias.kinds if kind.by == "length"]

    assert [kind.items for kind in quarters] == [100] * 4
    assert quarters[0].name.startswith("2")
    assert quarters[0].difference < 0 < quarters[-1].difference
    assert quarters[-1].judge - quarters[-1].people == pytest.approx(quarters[-1].difference)
    assert quarters[-1].low < quarters[-1].difference < quarters[-1].high
    assert [kind.is_shown for kind in (quarters[0], quarters[-1])] == [True, True]
    assert not any(kind.is_shown for kind in bias.kinds if kind.by != "length")
    json.dumps(bias.to_dict(), allow_nan=False)


def test_two_kinds_are_one_test_and_other_kinds_one_each():
    """Both sides of a property have one p-value, and it is counted once."""
    judged, truth, properties = draw_items()
    bias = make_bias(judged, truth, properties)
    first, second = [kind for kind in bias.kinds if kind.by == "shown first"]

    assert (first.p_value, first.adjusted) == (second.p_value, second.adjusted)
    assert bias.tests == 1 + 4 + 1
    assert [kind.name for kind in bias.kinds if kind.by == "language"] == ["English", "German"]


@pytest.mark.slow
def test_p_values_are_adjusted_for_the_number_of_tests():
    """Twenty properties that do nothing: adjusted, at most one set in ten has one that is shown (5 %, and chance)."""
    chance = random.Random(3)
    shown = 0
    for _ in range(40):
        judged = [float(chance.random() < 0.5) for _ in range(250)]
        truth = [float(chance.random() < 0.5) for _ in range(250)]
        properties = {f"property {at}": [chance.random() < 0.5 for _ in range(250)] for at in range(20)}
        kinds = make_bias(judged, truth, properties).kinds
        shown += any(kind.is_shown for kind in kinds)
        assert all(kind.adjusted >= kind.p_value for kind in kinds)

    assert shown <= 6


@pytest.mark.parametrize("rare", [10, 15])
@pytest.mark.parametrize("grouped", [False, True])
def test_a_rare_kind_without_an_error_proves_nothing(rare, grouped):
    """A judge that errs equally often in both languages is blamed in at most 10 of 100 draws (5 %, and chance).

    Robust errors see no variance where none of a few items happens to be wrong, and would call that a difference; the
    error is therefore never below the one that holds if errors vary alike everywhere.
    """
    chance, shown = random.Random(5), 0
    size = 2 if grouped else 1
    languages = ["fr"] * rare * size + ["en"] * 100 * size
    groups = [at // 2 for at in range(len(languages))] if grouped else None
    for _ in range(100):
        judged = [float(chance.random() < 0.95) for _ in languages]
        bias = make_bias(judged, [1.0] * len(languages), {"language": languages}, groups=groups)
        shown += bias.kinds[0].is_shown

    assert shown <= 10


def test_the_limits_of_verdicts_are_those_of_a_difference():
    """Three errors in eleven cases reach beyond 100 points by Student's t; scores of another scale are not cut."""
    judged = [0.0] * 3 + [1.0] * 30
    properties = {"language": ["fr"] * 4 + ["en"] * 29}
    shares = make_bias(judged, [1.0] * 33, properties).kinds[1]
    scores = make_bias([10 * value for value in judged], [10.0] * 33, properties).kinds[1]

    assert (shares.name, shares.low) == ("fr", -1.0)
    assert shares.difference < shares.high < 1
    assert scores.low < -10


def test_groups_make_the_interval_honest():
    """A property of the question, with errors that questions share, is no news eight times over."""
    chance = random.Random(4)
    groups = [at // 8 for at in range(320)]
    kinds = ["hard" if group % 2 else "easy" for group in groups]
    shared = [chance.gauss(0, 1) for _ in range(40)]
    judged = [shared[group] + chance.gauss(0, 0.3) for group in groups]
    alone, grouped = (
        make_bias(judged, [0.0] * 320, {"kind": kinds}, groups=grouping).kinds[0] for grouping in (None, groups)
    )

    assert grouped.high - grouped.low > 2 * (alone.high - alone.low)
    assert grouped.difference == alone.difference
    assert grouped.p_value > alone.p_value


@pytest.mark.parametrize(("values", "reason"), [(["md"] * 400, "'md'"), ([7.0] * 400, "7.0"), ([True] * 400, "True")])
def test_a_property_that_divides_nothing_is_refused(values, reason):
    """It is listed with the reason, and the others are compared without it."""
    judged, truth, properties = draw_items()
    bias = make_bias(judged, truth, {**properties, "format": values})

    assert bias.refused == {"format": f"every item has the value {reason}"}
    assert {kind.by for kind in bias.kinds} == {"shown first", "length", "language"}


def test_a_kind_of_few_items_or_groups_is_shown_and_not_tested():
    """Where a few items or groups decide, errors come out much too small."""
    judged, truth, _ = draw_items()
    rare = ["rare" if at < 8 else "common" for at in range(400)]
    kinds = make_bias(judged, truth, {"kind": rare}).kinds
    few = ["few" if at < 40 else "many" for at in range(400)]
    grouped = make_bias(judged, truth, {"kind": few}, groups=[at // 10 for at in range(400)]).kinds
    single = make_bias(judged, truth, {"kind": ["one" if at < 10 else "many" for at in range(400)]},
                       groups=[at // 10 for at in range(400)]).kinds  # fmt: skip

    assert [(kind.name, kind.items, kind.p_value, kind.is_shown) for kind in kinds] == [
        ("common", 392, None, False), ("rare", 8, None, False),
    ]  # fmt: skip
    assert [kind.p_value for kind in grouped] == [None, None]
    assert [(kind.low, kind.high) for kind in single if kind.name == "one"] == [(None, None)]


VERDICTS = [1.0, 0.0] * 20


@pytest.mark.parametrize(
    ("judged", "truth", "properties", "named"),
    [
        ([1.0] * 10, [0.0] * 10, {"a": [1.0] * 10}, "at least 30 items, got 10"),
        (VERDICTS, VERDICTS[1:], {"a": list(range(40))}, "40 and 39 items"),
        (VERDICTS, VERDICTS, {"a": ["x"] * 40}, "no property divides the items"),
        (VERDICTS, VERDICTS, {}, "none was given"),
        (VERDICTS, VERDICTS, {"a": [1.0]}, "1 values of 40"),
        (VERDICTS, VERDICTS, {"a": [1.0, float("nan")] * 20}, "nan"),
        (VERDICTS, VERDICTS, {"a": [1.0, "x"] * 20}, "mixes"),
        ([float("inf")] * 40, VERDICTS, {"a": list(range(40))}, "inf"),
    ],
)
def test_too_little_is_refused(judged, truth, properties, named):
    """What cannot be known is not compared; the message says what is missing."""
    with pytest.raises(UsageError, match=named):
        make_bias(judged, truth, properties)


@pytest.mark.parametrize("grouped", [False, True])
def test_an_exact_difference_is_not_certain(grouped: bool):
    """Where the judge errs on all marked-up answers and no other, no error is left; chance is not ruled out."""
    marked = [number % 4 == 0 for number in range(80)]
    groups = [number // 2 for number in range(80)] if grouped else None
    kinds = make_bias([float(item) for item in marked], [0.0] * 80, {"format": marked}, groups=groups).kinds
    right, wrong = (next(kind for kind in kinds if kind.name == name) for name in ("false", "true"))

    assert (right.difference, wrong.difference) == (0.0, 1.0)
    assert 0 < wrong.p_value < 0.001
