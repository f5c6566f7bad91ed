"""Rubrics: what is valid, what is refused, and what stays the same."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import Judge, JudgeResult, UsageError
from adjudge.rubric import Criterion, Example, Rubric
from adjudge.testing import ScriptedModel


def make(*weights: float, **more: object) -> Rubric:
    criteria = [
        Criterion(name=f"c{place}", description="What to look for.", weight=weight)
        for place, weight in enumerate(weights)
    ]
    return Rubric(**{"name": "r", "criteria": criteria, **more})


def test_weights_become_shares():
    """Weights 1, 2, 3 count 16.7, 33.3 and 50 percent."""
    assert [round(share * 100, 1) for share in make(1, 2, 3).shares.values()] == [16.7, 33.3, 50.0]


def test_a_weight_may_be_any_finite_number_of_at_least_zero():
    """3 is valid, and so is 0 beside another weight."""
    assert make(3).criteria[0].weight == 3.0
    assert make(0, 1).shares == {"c0": 0.0, "c1": 1.0}


@given(st.lists(st.floats(min_value=1e-6, max_value=1e6), min_size=1, max_size=8))
def test_shares_sum_to_one(weights):
    """Whatever the weights, the shares are a whole."""
    assert math.isclose(math.fsum(make(*weights).shares.values()), 1.0)


@pytest.mark.parametrize("weight", [-1, -0.1, math.nan, math.inf, True, "3", None, 10**400])
def test_a_weight_that_is_no_weight_is_refused(weight):
    """Negative, non-finite and non-numeric weights raise, naming the criterion and the value."""
    with pytest.raises(UsageError, match=r"criterion 'c0': weight .*at least 0"):
        make(weight)


def test_weights_must_have_a_sum():
    """Weights that sum to 0, or to more than a number holds, raise."""
    with pytest.raises(UsageError, match="sum to 0"):
        make(0, 0)
    with pytest.raises(UsageError, match="divide"):
        make(1e308, 1e308)


def test_a_percentage_gets_a_hint():
    """70 is refused with the number that was meant."""
    with pytest.raises(UsageError, match=r"passing_threshold .*got 70; .*write 0.7"):
        make(1, passing_threshold=70)
    with pytest.raises(UsageError, match=r"for 90 % write 0.9"):
        Criterion(name="a", description="b", threshold=90)


@pytest.mark.parametrize("threshold", [-0.1, 101, math.nan, math.inf, True, "0.7", 10**400])
def test_a_threshold_outside_0_to_1_is_refused(threshold):
    """Both kinds of threshold are numbers in 0 to 1."""
    with pytest.raises(UsageError, match="between 0 and 1"):
        make(1, passing_threshold=threshold)
    with pytest.raises(UsageError, match="between 0 and 1"):
        Criterion(name="a", description="b", threshold=threshold)


def test_the_default_thresholds():
    """0.7 for the whole, none for a criterion."""
    assert make(1).passing_threshold == 0.7
    assert make(1).criteria[0].threshold is None


def test_names_are_unique_and_not_empty():
    """Two criteria of one name, or a blank name, raise."""
    twice = [Criterion(name="a", description="b"), Criterion(name="a", description="c")]
    with pytest.raises(UsageError, match="two criteria named 'a'"):
        Rubric(name="r", criteria=twice)
    for name in ("", "  ", None, 3):
        with pytest.raises(UsageError, match="name"):
            Criterion(name=name, description="b")
        with pytest.raises(UsageError, match="name"):
            make(1, name=name)


@pytest.mark.parametrize("criteria", [[], "abc", {"a": "b"}, 3, None, [3], [{"name": "a"}], [{"description": "b"}]])
def test_criteria_are_a_list_of_criteria(criteria):
    """An empty list, and anything that is not a list of criteria, raises."""
    with pytest.raises(UsageError, match="criteri"):
        make(1, criteria=criteria)


def test_a_criterion_without_a_name_says_name():
    """The missing key is named."""
    with pytest.raises(UsageError, match="'name'"):
        make(1, criteria=[{"description": "b"}])


@pytest.mark.parametrize("scale", [[0, 10], (1, 5), [-1, 1]])
def test_a_scale_is_two_numbers(scale):
    """The lowest comes first."""
    assert make(1, scale=scale).scale == (float(scale[0]), float(scale[1]))


@pytest.mark.parametrize("scale", [[1], [1, 1], [2, 1], [0, math.inf], [False, True], "01", 5, [0, 1, 2], [0, 10**400]])
def test_a_scale_that_is_none_is_refused(scale):
    """Equal, reversed, infinite and non-numeric bounds raise."""
    with pytest.raises(UsageError, match="scale must be two numbers"):
        make(1, scale=scale)


def test_levels_are_sorted_and_may_come_as_text_keys():
    """JSON and TOML have only text as keys, so "0.5" is a score there."""
    one = Criterion(name="a", description="b", levels={1: "good", 0: "bad"})
    other = Criterion(name="a", description="b", levels={"0": "bad", "1.0": "good"})
    assert one == other
    assert one.levels == ((0.0, "bad"), (1.0, "good"))


@pytest.mark.parametrize(
    "levels",
    [{0: "a"}, {0: "a", "0": "b"}, {True: "a", 0: "b"}, {"x": "a", 0: "b"}, {0: 1, 1: 2}, 5, "ab", {10**400: "a"}],
)
def test_levels_that_are_none_are_refused(levels):
    """Levels are at least two different scores with a meaning each."""
    with pytest.raises(UsageError, match="level"):
        Criterion(name="a", description="b", levels=levels)


def test_levels_and_examples_stand_on_the_scale():
    """A level or an example outside the rubric's scale raises when the rubric is made."""
    for more in ({"levels": {0: "a", 3: "b"}}, {"examples": [{"content": "x", "score": 3}]}):
        criterion = Criterion(name="a", description="b", **more)
        assert Rubric(name="r", criteria=[criterion], scale=(0, 3))
        with pytest.raises(UsageError, match="outside the scale"):
            Rubric(name="r", criteria=[criterion])


@pytest.mark.parametrize(
    "examples",
    [
        3,
        [3],
        {"content": "x"},
        [{"content": "x"}],
        [{"content": 3, "score": 1}],
        [{"content": "x", "score": True}],
        [{"content": "x", "score": 1, "why": 3}],
        [{"content": "x", "score": 1, "weight": 3}],
    ],
)
def test_examples_that_are_none_are_refused(examples):
    """An example is a text and a score, and nothing is converted to make it one."""
    with pytest.raises(UsageError, match="example"):
        Criterion(name="a", description="b", examples=examples)


def test_examples_become_values():
    """An example may be given as a mapping."""
    criterion = Criterion(name="a", description="b", examples=[{"content": "x", "score": 1}])
    assert criterion.examples == (Example(content="x", score=1.0),)


def test_flags_and_models_are_checked():
    """A text that looks like a flag, and a model that is no text, raise."""
    with pytest.raises(UsageError, match="quote must be true or false"):
        Criterion(name="a", description="b", quote="false")
    with pytest.raises(UsageError, match="model must be a text"):
        make(1, model=5)


def test_a_rule_is_read_and_named_after_its_criterion():
    """A rule given as data decides the criterion under the criterion's name; a wrong one names the criterion."""
    rule = Criterion(name="hash", description="b", rule={"regex": "bcrypt"}).rule
    assert rule is not None
    assert (rule.name, rule.spec) == ("hash", {"regex": "bcrypt"})
    with pytest.raises(UsageError, match="criterion 'hash': no rule is named 'rejex'"):
        Criterion(name="hash", description="b", rule={"rejex": "bcrypt"})


def test_the_digest_tells_content_and_nothing_else():
    """Equal rubrics have equal digests however they were written; any change of meaning changes it."""
    assert make(1, 2).digest == make(1.0, 2.0, passing_threshold=0.7).digest
    assert make(-0.0, 1).digest == make(0, 1).digest
    others = [
        make(1, 2, passing_threshold=0.8),
        make(2, 1),
        make(1, 2, name="s"),
        make(1, 2, model="m"),
        make(1, 2, scale=(0, 2)),
    ]
    assert len({item.digest for item in [make(1, 2), *others]}) == 6


def judge_by(criteria: Any, *names: str, threshold: float | None = None) -> JudgeResult:
    """The result of a judge that gives 0.8 to criteria of these names."""
    model = ScriptedModel({"criteria": [{"name": name, "score": 0.8} for name in names]})
    return Judge(model).evaluate_sync("Hello.", criteria=criteria, threshold=threshold)


def test_words_become_a_rubric():
    """A sentence, a list and a mapping each give equally weighted criteria."""
    assert judge_by("Is kind.", "is-kind").passed
    assert judge_by(
        ["Is kind, and says so.", "Is kind: and says so!"], "is-kind-and-says-so", "is-kind-and-says-so-2"
    ).passed
    with pytest.raises(UsageError, match="given twice"):
        judge_by(["Is kind.", "Is kind."])
    assert judge_by(["Is kind.", "Is short."], "is-kind", "is-short").score == 0.8
    strict = judge_by({"kind": "Is kind."}, "kind", threshold=0.9)
    assert (strict.threshold, strict.outcome) == (0.9, "failed")
    with pytest.raises(UsageError, match="criteria must be"):
        judge_by(3)
