"""From scores to an outcome: the arithmetic, and what a judge says beside its scores."""

from __future__ import annotations

import asyncio
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import Judge, Rubric
from adjudge.testing import ScriptedModel
from kit.judges import scores


def rubric(*criteria: dict, **more) -> Rubric:
    made = [{"name": chr(97 + at), "description": "d", **item} for at, item in enumerate(criteria)]
    return Rubric(name="r", criteria=made, **more)


def evaluate(reply, made: Rubric, content="The content.", **options):
    return asyncio.run(Judge(ScriptedModel(reply), reask=0, **options).evaluate(content, made))


def listed(*values, **more):
    return scores(*values, names=[chr(97 + at) for at in range(len(values))], **more)


# ---------------------------------------------------------------- the mean


def test_a_score_is_written_without_noise():
    """``0.58`` and not ``0.5800000000000001``, of a rubric and of a scale; as people and JSON see it."""
    mean = evaluate(listed(0.4, 0.7), rubric({"weight": 2}, {"weight": 3}))
    scaled = evaluate(listed(4.4), rubric({}, scale=(1, 5)))

    assert (mean.score, scaled.score, scaled.criteria[0].score) == (0.58, 0.85, 0.85)
    assert mean.to_dict()["score"] == 0.58


def test_a_third_stays_a_third():
    """What no short number is meant by is kept to the last digit, so that it equals what the reader computes."""
    assert evaluate(listed(1.0, 0.0, 1.0), rubric({}, {}, {})).score == 2 / 3


@given(weights=st.lists(st.floats(0.001, 1e6), min_size=1, max_size=9), factor=st.floats(0.01, 100))
def test_only_the_proportion_of_weights_counts(weights, factor):
    """Shares sum to 1 and do not change when every weight is multiplied."""
    one = rubric(*({"weight": weight} for weight in weights)).shares
    other = rubric(*({"weight": weight * factor} for weight in weights)).shares

    assert math.fsum(one.values()) == pytest.approx(1)
    assert list(other.values()) == pytest.approx(list(one.values()))


# ---------------------------------------------------------------- thresholds


def test_seven_tenths_three_times_is_seven_tenths():
    """Although the doubles fall short of it."""
    result = evaluate(listed(0.7, 0.7, 0.7), rubric(*[{"weight": 0.1}] * 3))

    assert (result.outcome, result.score) == ("passed", pytest.approx(0.7))


def test_a_criterion_below_its_own_threshold_fails_the_rubric():
    """Whatever the mean says."""
    result = evaluate(listed(0.89, 1.0), rubric({"threshold": 0.9}, {"weight": 99}))

    assert (result.outcome, result.score > 0.99) == ("failed", True)
    assert result.explain().endswith("below their own threshold: a")


def test_a_criterion_without_a_threshold_does_not_gate():
    """A zero can be outweighed, and is shown as not passed."""
    result = evaluate(listed(0.0, 1.0), rubric({}, {"weight": 9}))

    assert (result.outcome, [item.passed for item in result.criteria]) == ("passed", [False, True])


def test_weight_zero_with_a_threshold_is_a_pure_veto():
    """It adds nothing and can fail everything."""
    made = rubric({"weight": 0, "threshold": 0.5}, {})

    assert evaluate(listed(0.5, 0.7), made).score == 0.7
    assert evaluate(listed(0.4, 1.0), made).outcome == "failed"


# ---------------------------------------------------------------- scales and levels


@pytest.mark.parametrize(("value", "unit"), [(1, 0.0), (10, 1.0), (5.5, 0.5), (7.3, 0.7)])
def test_scores_on_another_scale_become_0_to_1(value, unit):
    """From 1 to 10 here."""
    result = evaluate(listed(value), rubric({}, scale=[1, 10]))

    assert result.criteria[0].score == pytest.approx(unit)
    assert result.outcome == ("passed" if unit >= 0.7 else "failed")


@pytest.mark.parametrize("value", [0, 0.99, 10.01, 95, -3])
def test_a_score_outside_its_scale_is_undecided(value):
    """Never clamped, also where it would be on the usual scale."""
    assert evaluate(listed(value), rubric({}, scale=[1, 10])).undecided_because == "off_scale"


LEVELS = {"levels": {0: "none", 0.5: "some", 1: "all"}}


@pytest.mark.parametrize(("value", "because"), [(0.5, None), (1, None), (0.6, "off_scale"), (0.51, "off_scale")])
def test_only_the_levels_are_scores(value, because):
    """Where a criterion has anchors, what lies between them is no answer."""
    assert evaluate(listed(value), rubric(LEVELS)).undecided_because == because


def test_levels_bind_replies_in_other_forms_too():
    """``Rating: [[0.6]]`` is as far off as 0.6."""
    assert evaluate("Rating: [[0.6]]", rubric(LEVELS), reader="Rating: [[7]]").undecided_because == "off_scale"
    assert evaluate("Rating: [[1]]", rubric(LEVELS), reader="Rating: [[7]]").passed


# ---------------------------------------------------------------- flags beside scores


@pytest.mark.parametrize("flag", ["safe", "passed", "allowed", "approved"])
def test_a_flag_more_generous_than_the_scores_is_ignored(flag):
    """Code decides; a low score stays a failure."""
    reply = listed(0.1, **{flag: True})
    reply["criteria"][0][flag] = True

    assert evaluate(reply, rubric({})).outcome == "failed"


@pytest.mark.parametrize(("score", "flag", "outcome"), [(0.9, True, "passed"), (0.1, False, "failed")])
def test_a_flag_that_agrees_with_the_scores_changes_nothing(score, flag, outcome):
    """Beside the whole and beside each criterion."""
    reply = listed(score, passed=flag)
    reply["criteria"][0]["passed"] = flag

    assert evaluate(reply, rubric({})).outcome == outcome


@pytest.mark.parametrize("flag", ["safe", "passed", "allowed", "approved"])
def test_a_flag_stricter_than_the_scores_is_a_contradiction(flag):
    """Beside the whole, or beside one criterion."""
    reply = listed(0.9)
    reply["criteria"][0][flag] = False

    assert evaluate(listed(0.9, **{flag: False}), rubric({})).undecided_because == "contradiction"
    assert evaluate(reply, rubric({})).undecided_because == "contradiction"


@pytest.mark.parametrize("value", ["true", 1, None])
def test_a_flag_that_is_no_boolean_is_not_read(value):
    """Each one present must be a real boolean."""
    assert evaluate(listed(0.9, passed=value), rubric({})).undecided_because == "unparseable"


def test_unknown_members_are_ignored():
    """Whatever else a judge likes to say, as long as it is JSON."""
    assert evaluate(listed(0.9, remark="failed", overall=0.1), rubric({})).passed
    assert evaluate(listed(0.9, overall=math.nan), rubric({})).undecided_because == "unparseable"


# ---------------------------------------------------------------- quotes


def quoting(*quote):
    entry = {"name": "a", "reasoning": "so", "score": 1.0}
    return {"criteria": [entry | {"quote": quote[0]} if quote else entry]}


@pytest.mark.parametrize(
    ("reply", "because"),
    [
        (quoting("the second line"), None),
        (quoting("first line\n  the   second"), None),
        (quoting(""), None),
        (quoting("The Second Line"), "contradiction"),
        (quoting("a third line"), "contradiction"),
        (quoting(7), "unparseable"),
        (quoting(), "unparseable"),
    ],
)
def test_a_quotation_must_stand_in_the_content(reply, because):
    """Word for word, whatever the line breaks; one that does not is a judge making things up."""
    result = evaluate(reply, rubric({"quote": True}), content="This is the first line\nthe second line.")

    assert result.undecided_because == because
    if because is None:
        assert result.criteria[0].evidence == tuple(filter(None, [reply["criteria"][0]["quote"]]))


def test_a_quotation_from_the_reference_is_none():
    """Only the content can prove something about the content."""
    judge = Judge(ScriptedModel(quoting("forty-two")))

    result = asyncio.run(judge.evaluate("The answer.", rubric({"quote": True}), reference="It is forty-two."))

    assert result.undecided_because == "contradiction"
