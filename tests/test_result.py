"""Results: what they say, what they can never say, and that they survive being written down."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import math
import re
import sys
from typing import get_args

import msgspec
import pytest

from adjudge import CriterionResult, JudgeChainResult, JudgeResult, JudgmentFailed, RuleResult, Usage
from adjudge.errors import Reason
from adjudge.judges import read_result
from kit.judges import complaint, names

REASONS: tuple[str, ...] = get_args(Reason)

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
    "request_id": "req-1",
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
    results = [JudgeResult(outcome="passed", judge="j"), JudgeResult(outcome="failed", judge="j"), undecided()]

    assert [result.passed for result in results] == [True, False, False]


@pytest.mark.parametrize("outcome", ["passed", "failed"])
def test_a_decided_result_has_no_reason(outcome):
    """No reader or policy can build a pass that says why it could not decide."""
    message = complaint(JudgeResult, outcome=outcome, judge="j", undecided_because="error")
    assert names(message, f"'{outcome}'", "undecided_because='error'", "exactly when the outcome is 'undecided'")


def test_an_undecided_result_has_a_reason_and_no_score():
    """``None``, never 0 for "could not tell"."""
    assert names(complaint(JudgeResult, outcome="undecided", judge="j"), "undecided_because", "None", "set the reason")
    assert names(complaint(undecided, score=0.0), "score", "0.0", "leave it None")


NO_SHARES = [math.nan, math.inf, -math.inf, -0.01, 1.01, 5, True, False, "0.9", [0.9], 1j]


@pytest.mark.parametrize("value", NO_SHARES, ids=repr)
@pytest.mark.parametrize("name", ["score", "threshold", "confidence"])
def test_a_share_is_a_number_in_0_to_1(name, value):
    """NaN would be sure, 5 too, and a text would break whoever compares it; a boolean is no number."""
    assert names(complaint(JudgeResult, outcome="passed", judge="j", **{name: value}), name, repr(value), "0 to 1")
    if name != "confidence":
        message = complaint(CriterionResult, name="a", passed=True, **{"score": 0.5, name: value})
        assert names(message, name, "'a'", repr(value), "0 to 1")


@pytest.mark.parametrize("value", [None, 0, 1, 0.0, 0.5, 1.0, 1 + 1e-12])
def test_a_share_may_be_whole_or_unknown(value):
    """And the last digit of a mean is forgiven."""
    made = JudgeResult(outcome="passed", judge="j", score=value, threshold=value, confidence=value)

    assert JudgeResult.from_dict(made.to_dict()) == made


@pytest.mark.parametrize("score", [math.nan, math.inf, -0.01, 1.01, 95])
def test_a_score_is_in_0_to_1(score):
    """NaN is on neither side of a threshold, and 95 would be a hundred times a pass."""
    assert names(complaint(JudgeResult, outcome="passed", judge="j", score=score), "score", repr(score), "0 to 1")
    assert names(complaint(CriterionResult, name="a", passed=True, score=score), "'a'", repr(score), "0 to 1")


def test_the_last_digit_of_a_mean_is_no_reason_to_refuse_it():
    """A weighted mean of ones can be a rounding error above one."""
    assert JudgeResult(outcome="passed", judge="j", score=1.0000000000000002).passed
    assert CriterionResult(name="a", passed=False, score=-1e-17).score == -1e-17


def test_there_are_no_other_outcomes_and_reasons():
    """A judge of yours that invents one has not answered."""
    assert names(complaint(JudgeResult, outcome="PASSED", judge="j"), "outcome", "'PASSED'", "failed, undecided")
    assert names(complaint(undecided, "whatever"), "undecided_because", "'whatever'", ", ".join(REASONS))


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
        (JudgeResult(outcome="passed", judge="j", score=0.9, threshold=0.7), "passed … 0.90 … 0.70"),
        (undecided("timeout", detail="no answer within 3 s"), "undecided … timeout … no answer within 3 s"),
        (JudgeResult(**FULL), "failed … 0.25 … 0.70 … threshold: a … too short"),
    ],
)
def test_a_result_explains_itself_in_one_line(result, line):
    """Outcome, numbers or reason, what gated, and the detail; the repr adds who judged."""
    explanation = result.explain()
    assert names(explanation, *line.split(" … "))
    assert "\n" not in explanation
    assert repr(result) == f"<JudgeResult {result.judge!r} {explanation}>"


HOSTILE = "\x1b[2J\x1b]0;pwned\x07\u202ereversed\nforged: passed"


def test_an_explanation_holds_nothing_a_terminal_obeys():
    """Details quote replies, and criteria are named by files: one printable line in repr, error and log."""
    low = CriterionResult(name=HOSTILE, score=0.1, passed=False, threshold=0.5)
    result = JudgeResult(outcome="failed", judge=HOSTILE, detail=HOSTILE, criteria=(low,))

    for text in (result.explain(), repr(result), str(JudgmentFailed(result))):
        assert text.isprintable()
        assert "reversed forged: passed" in text


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
    assert names(complaint(JudgeResult.from_dict, {}), "schema", "None", "adjudge/result/1")
    assert names(complaint(read_result, {"schema": "adjudge/run/1"}), "'adjudge/run/1'", "adjudge/chain-result/1")


@pytest.mark.parametrize(
    "change",
    [
        {"created_at": None},
        {"created_at": "yesterday"},
        {"criteria": [7]},
        {"criteria": [{"name": "a", "score": "0.9", "passed": True}]},
        {"criteria": [{"name": "a", "score": math.nan, "passed": True}]},
        {"criteria": [{"name": "a", "score": 0.9, "passed": True, "threshold": math.nan}]},
        {"criteria": [{"name": "a", "score": 0.9, "passed": "yes"}]},
        {"criteria": "abc"},
        {"usage": 7},
        {"outcome": None},
        {"decided_by": "\x1b[2J"},
        {"score": "nan"},
        {"score": True},
        {"score": math.nan},
        {"score": 1.5},
        {"threshold": "0.7"},
        {"threshold": math.inf},
        {"confidence": math.nan},
        {"confidence": 1.1},
        {"confidence": "x"},
        {"metadata": [1]},
        {"schema": "adjudge/chain-result/1"},
        {"schema": "adjudge/chain-result/1", "strategy": "s", "results": None},
        {"schema": "adjudge/chain-result/1", "strategy": "s", "results": 5},
        {"schema": "adjudge/chain-result/1", "strategy": "s", "results": ["x"]},
        {"schema": "adjudge/chain-result/1", "strategy": "s", "results": [None]},
        {"schema": "adjudge/chain-result/1", "strategy": 7, "results": []},
        {"schema": [[]]},
    ],
)
def test_what_nobody_wrote_is_not_read(change):
    """A damaged or forged record is a usage error in one printable line, and not a crash."""
    message = complaint(read_result, {**JudgeResult(**FULL).to_dict(), **change})

    assert message.isprintable()
    assert len(message) < 300


@pytest.mark.parametrize("data", [[], None, "x", 7])
def test_what_is_no_dictionary_is_not_read(data):
    """Whatever stood in the file."""
    for read in (read_result, JudgeResult.from_dict, JudgeChainResult.from_dict):
        assert complaint(read, data).startswith("a result is read from a dictionary that to_dict wrote, got ")
    for kind in (Usage, RuleResult, CriterionResult):
        assert complaint(kind.from_dict, data).startswith(f"this is not a dictionary that {kind.__name__}.to_dict")


@pytest.mark.parametrize("name", ["id", "created_at", "outcome", "judge"])
def test_what_names_a_result_is_never_made_up(name):
    """A record without an identity or a time would get another one each time it is read."""
    data = JudgeResult(**FULL).to_dict()
    del data[name]

    assert names(complaint(read_result, data), "dictionary", repr(name))


@pytest.mark.slow
def test_seats_are_read_to_a_bounded_depth():
    """A file of chains in chains without end is refused and exhausts nothing."""
    data = JudgeResult(**FULL).to_dict()
    for _ in range(50):
        data = {**chain().to_dict(), "results": [data]}
    assert read_result(data).to_dict() == data

    for _ in range(100_000):
        data = {**data, "results": [data]}
    assert names(complaint(read_result, data), "chains", "more than 50 levels")


def test_what_was_written_cannot_be_turned_into_a_pass_by_halves():
    """Changing the outcome alone makes it unreadable."""
    data = undecided().to_dict() | {"outcome": "passed"}

    assert "a result that is 'passed' cannot have undecided_because='error'" in complaint(read_result, data)


def test_values_of_other_types_are_written_as_plain_data():
    """A format's instance and metadata become what JSON can hold."""

    class Point(msgspec.Struct):
        x: int

    result = JudgeResult(outcome="passed", judge="j", value=Point(x=1), metadata={"at": {1, 2}, "who": Point(x=2)})
    data = json.loads(json.dumps(result.to_dict()))

    assert (data["value"], sorted(data["metadata"]["at"]), data["metadata"]["who"]) == ({"x": 1}, [1, 2], {"x": 2})


def test_numbers_json_does_not_have_are_written_as_text():
    """So that what is written is JSON everywhere, with the strictest writer."""

    @dataclasses.dataclass
    class Found:
        ratio: float

    holds = {"a": [math.nan, -math.inf], "b": Found(ratio=math.inf)}
    result = JudgeResult(outcome="passed", judge="j", value=Found(ratio=math.nan), metadata=holds)
    data = result.to_dict()

    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert (data["value"], data["metadata"]) == ({"ratio": "nan"}, {"a": ["nan", "-inf"], "b": {"ratio": "inf"}})
    rule = RuleResult(name="r", passed=True, metadata={"x": math.nan})
    assert rule.to_dict()["metadata"] == {"x": "nan"}


class Holder(msgspec.Struct):
    held: object


@dataclasses.dataclass
class DataHolder:
    held: object


@pytest.mark.parametrize(
    "wrap",
    [lambda x: [x], lambda x: {"in": x}, lambda x: Holder(held=x), DataHolder],
    ids=["list", "object", "struct", "dataclass"],
)
def test_what_nests_without_end_is_written_to_a_bounded_depth(wrap):
    """A judgement that was paid for is not lost because of what its metadata holds."""
    deep: list[object] = []
    deep.append(deep)
    node: object = {}
    for _ in range(100_000):
        node = wrap(node)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10**6)  # what recurses in C would end a program that raised it
    try:
        data = JudgeResult(outcome="passed", judge="j", value=node, metadata={"deep": deep}).to_dict()
    finally:
        sys.setrecursionlimit(limit)

    assert json.dumps(data).count("nested more than 200 levels deep>") == 2
    assert read_result(data).passed


def test_what_nests_as_deep_as_a_reply_may_is_written_whole():
    """A format's instance that was read is never cut when it is written."""
    inside: list[object] = []
    for _ in range(198):
        inside = [inside]
    data = JudgeResult(outcome="passed", judge="j", value=Holder(held=inside)).to_dict()

    assert data["value"] == {"held": inside}


def test_a_tagged_struct_is_written_with_its_names_in_json():
    """As msgspec itself writes it."""

    class Named(msgspec.Struct, tag="named", rename="camel"):
        two_words: float

    made = Named(two_words=1.5)
    data = JudgeResult(outcome="passed", judge="j", value=made).to_dict()

    assert data["value"] == msgspec.to_builtins(made) == {"type": "named", "twoWords": 1.5}


def test_what_has_no_plain_form_is_named():
    """By its type; nothing of it is run more than once."""

    class Sealed:
        def to_dict(self) -> object:
            raise ValueError("no")

    data = JudgeResult(outcome="passed", judge="j", metadata={"x": Sealed()}).to_dict()

    assert list(data["metadata"]) == ["x"]
    assert names(data["metadata"]["x"], "<Sealed", "plain data>")


def test_a_chain_in_chains_is_written_once():
    """Each result by the chain that holds it, so writing takes as long as there are results."""
    written: list[int] = []

    class Counted:
        def to_dict(self) -> object:
            written.append(1)
            return {}

    made: JudgeResult = JudgeResult(outcome="passed", judge="j", value=Counted())
    for _ in range(30):
        made = chain(made)
    made.to_dict()

    assert len(written) == 1


# ---------------------------------------------------------------- identity, time, usage


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
    results = [JudgeResult(outcome=outcome, undecided_because=because, judge="j") for outcome, because in outcomes]  # type: ignore[arg-type]

    assert [bool(item) for item in results] == [True, False, False]
