"""Results: what they say, what they can never say, and that they survive being written down."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import re
import uuid

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import CriterionResult, JudgeChainResult, JudgeResult, JudgmentFailed, RuleResult, Usage, read_result
from adjudge.result import REASONS, find_gravest, make_id
from judge_support import complaint

FULL = {
    "outcome": "failed",
    "judge": "careful",
    "detail": "too short",
    "score": 0.25,
    "threshold": 0.7,
    "confidence": 0.9,
    "criteria": (
        CriterionResult(name="a", score=0.2, passed=False, threshold=0.5, weight=2.0, evidence=("line",)),
        CriterionResult(name="b", score=0.5, passed=True, reasoning="fine", rule="length"),
    ),
    "rule_results": (RuleResult(name="length", passed=False, severity="warning", message="long", metadata={"n": 1}),),
    "reasoning": "so",
    "suggestions": ("more",),
    "model": "m-1",
    "raw_response": "{}",
    "earlier_responses": ("oops",),
    "finish_reason": "stop",
    "attempts": 2,
    "duration_ms": 12.5,
    "usage": Usage(input_tokens=5, output_tokens=2, cached_tokens=1, cost_usd=0.01),
    "question": "q" * 64,
    "subject": "s" * 64,
    "qualification": "v1",
    "metadata": {"case": "1"},
}


def undecided(because="error", **more) -> JudgeResult:
    return JudgeResult(outcome="undecided", undecided_because=because, judge="j", **more)


def chain(*seats: JudgeResult, **more) -> JudgeChainResult:
    return JudgeChainResult(outcome="passed", judge="c", strategy="majority", results=seats, **more)


# ---------------------------------------------------------------- outcomes


def test_passed_is_true_for_passed_alone():
    """Whoever only asks ``if result.passed`` fails closed."""
    said = [JudgeResult(outcome="passed", judge="j"), JudgeResult(outcome="failed", judge="j"), undecided()]

    assert [result.passed for result in said] == [True, False, False]


@pytest.mark.parametrize("outcome", ["passed", "failed"])
def test_a_decided_result_has_no_reason(outcome):
    """No reader or policy can build a pass that says why it could not decide."""
    assert complaint(JudgeResult, outcome=outcome, judge="j", undecided_because="error") == (
        f"a result that is '{outcome}' cannot have undecided_because='error'; "
        "set the reason exactly when the outcome is 'undecided'"
    )


def test_an_undecided_result_has_a_reason_and_no_score():
    """``None``, never 0 for "could not tell"."""
    assert complaint(JudgeResult, outcome="undecided", judge="j") == (
        "a result that is 'undecided' cannot have undecided_because=None; "
        "set the reason exactly when the outcome is 'undecided'"
    )
    assert complaint(undecided, score=0.0) == "an undecided result has no score, but was given 0.0; leave it None"


def test_there_are_no_other_outcomes_and_reasons():
    """A judge of yours that invents one has not answered."""
    assert complaint(JudgeResult, outcome="PASSED", judge="j") == (
        "an outcome is one of passed, failed, undecided; got 'PASSED'"
    )
    assert complaint(undecided, "whatever") == (f"undecided_because is one of {', '.join(REASONS)}; got 'whatever'")


def test_reasons_are_ordered_by_gravity():
    """The order is part of the interface."""
    assert REASONS == (
        "tampering",
        "contradiction",
        "refused",
        "truncated",
        "off_scale",
        "missing_criterion",
        "unparseable",
        "error",
        "timeout",
        "budget",
        "split",
        "unsure",
        "cancelled",
    )


@given(reasons=st.lists(st.sampled_from(REASONS)))
def test_the_gravest_reason_is_the_first_in_that_order(reasons):
    """Whatever the order they came in."""
    assert find_gravest(reasons) == next((reason for reason in REASONS if reason in reasons), None)


def test_only_a_policy_triggers_the_fallback():
    """For every other way of deciding it is false."""
    decided = {by: chain(decided_by=by).fallback_triggered for by in ("judge", "rule", "policy", "human")}

    assert decided == {"judge": False, "rule": False, "policy": True, "human": False}


# ---------------------------------------------------------------- asking a result


def test_a_criterion_is_found_by_its_name():
    """And a missing one is an error that names those there are."""
    result = JudgeResult(**FULL)

    assert result.criterion("b").rule == "length"
    with pytest.raises(KeyError, match=re.escape("no criterion 'c' in this result; it has ['a', 'b']")):
        result.criterion("c")


@pytest.mark.parametrize("result", [JudgeResult(outcome="failed", judge="j"), undecided("refused")])
def test_raise_if_failed_raises_for_failed_and_undecided(result):
    """The error carries the result; its outcome tells which."""
    with pytest.raises(JudgmentFailed) as caught:
        result.raise_if_failed()
    assert caught.value.result is result


def test_raise_if_failed_returns_a_result_that_passed():
    """So it can stand at the end of a line."""
    result = JudgeResult(outcome="passed", judge="j")

    assert result.raise_if_failed() is result


@pytest.mark.parametrize(
    ("result", "line"),
    [
        (JudgeResult(outcome="passed", judge="j"), "passed"),
        (JudgeResult(outcome="passed", judge="j", score=0.9, threshold=0.7), "passed with 0.90 (needs 0.70)"),
        (undecided("timeout", detail="no answer within 3 s"), "undecided: timeout; no answer within 3 s"),
        (JudgeResult(**FULL), "failed with 0.25 (needs 0.70); below their own threshold: a; too short"),
    ],
)
def test_a_result_explains_itself_in_one_line(result, line):
    """Outcome, numbers or reason, what gated, and the detail; the repr adds who judged."""
    assert result.explain() == line
    assert repr(result) == f"<JudgeResult {result.judge!r} {line}>"


def test_results_are_frozen():
    """Nobody changes a verdict afterwards."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        JudgeResult(**FULL).outcome = "passed"  # type: ignore[misc]


# ---------------------------------------------------------------- writing and reading


@pytest.mark.parametrize(
    "result",
    [
        JudgeResult(**FULL),
        JudgeResult(outcome="passed", judge="j"),
        undecided("tampering"),
        chain(JudgeResult(**FULL), chain(undecided(), decided_by="policy"), duration_ms=3.0),
    ],
    ids=["full", "small", "undecided", "chain"],
)
def test_a_result_survives_being_written_and_read(result):
    """Through plain data and through JSON text, seats included, to any depth."""
    data = result.to_dict()

    assert read_result(data) == result
    assert read_result(json.loads(json.dumps(data))) == result
    assert type(result).from_dict(data) == result
    assert isinstance(read_result(data), type(result))


def test_what_is_written_says_what_it_is():
    """A schema, the computed members, and times with a zone."""
    data = chain(JudgeResult(**FULL)).to_dict()

    assert (data["schema"], data["results"][0]["schema"]) == ("adjudge/chain-result/1", "adjudge/result/1")
    assert (data["passed"], data["fallback_triggered"], data["total_duration_ms"]) == (True, False, 0.0)
    assert dt.datetime.fromisoformat(data["created_at"]).utcoffset() == dt.timedelta(0)


def test_members_a_later_version_adds_are_ignored():
    """Reading is tolerant of more, not of something else."""
    data = JudgeResult(**FULL).to_dict()

    assert JudgeResult.from_dict(data | {"new": 1}) == JudgeResult.from_dict(data)
    assert complaint(JudgeResult.from_dict, {}) == ("expected a dictionary with schema 'adjudge/result/1', got None")
    assert complaint(read_result, {"schema": "adjudge/run/1"}) == (
        "a result has one of the schemas adjudge/chain-result/1, adjudge/result/1; this dictionary has 'adjudge/run/1'"
    )


@pytest.mark.parametrize(
    "change", [{"created_at": None}, {"created_at": "yesterday"}, {"criteria": [7]}, {"usage": 7}, {"outcome": None}]
)
def test_what_nobody_wrote_is_not_read(change):
    """A damaged record is a usage error and not a crash."""
    data = {**JudgeResult(**FULL).to_dict(), **change}

    assert complaint(read_result, data)
    assert complaint(read_result, {"schema": data["schema"]}) == (
        "this is not a dictionary that JudgeResult.to_dict wrote (KeyError: 'created_at')"
    )


def test_what_was_written_cannot_be_turned_into_a_pass_by_halves():
    """Changing the outcome alone makes it unreadable."""
    data = undecided().to_dict() | {"outcome": "passed"}

    assert complaint(read_result, data).startswith("a result that is 'passed' cannot have undecided_because='error'")


def test_values_of_other_types_are_written_as_plain_data():
    """A format's instance and metadata become what JSON can hold."""

    class Point(msgspec.Struct):
        x: int

    result = JudgeResult(outcome="passed", judge="j", value=Point(x=1), metadata={"at": {1, 2}, "who": Point(x=2)})
    data = json.loads(json.dumps(result.to_dict()))

    assert (data["value"], sorted(data["metadata"]["at"]), data["metadata"]["who"]) == ({"x": 1}, [1, 2], {"x": 2})


# ---------------------------------------------------------------- identity, time, usage


def test_ids_are_uuids_of_version_7_in_order():
    """Unique, and sortable by the time they were made."""
    made = [uuid.UUID(make_id()) for _ in range(500)]

    assert {(item.version, item.variant) for item in made} == {(7, uuid.RFC_4122)}
    assert len(set(made)) == 500
    stamps = [item.int >> 80 for item in made]
    assert stamps == sorted(stamps)


def test_results_are_dated_in_utc():
    """Aware, so that two machines agree."""
    assert JudgeResult(outcome="passed", judge="j").created_at.tzinfo is dt.UTC


@pytest.mark.parametrize(("one", "two", "sum_"), [(0.5, 0.25, 0.75), (None, 0.25, None), (0.5, None, None)])
def test_an_unknown_cost_stays_unknown(one, two, sum_):
    """``None`` means unknown, never free; the tokens add up all the same."""
    total = Usage(input_tokens=1, output_tokens=2, cost_usd=one) + Usage(input_tokens=3, cached_tokens=1, cost_usd=two)

    assert total == Usage(input_tokens=4, output_tokens=2, cached_tokens=1, calls=2, cost_usd=sum_)
    assert Usage.from_dict(total.to_dict()) == total


def test_a_result_is_true_only_when_it_passed():
    """``if judge.evaluate_sync(...)`` lets nothing through that did not pass."""
    outcomes = [("passed", None), ("failed", None), ("undecided", "timeout")]
    results = [JudgeResult(outcome=said, undecided_because=why, judge="j") for said, why in outcomes]  # type: ignore[arg-type]

    assert [bool(item) for item in results] == [True, False, False]
