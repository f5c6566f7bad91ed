"""Conformance cases about judging, replayed: what chains, rubrics and replies decided elsewhere, and decide here.

Each case says what is ``given`` and what is ``expected`` of adjudge. Every key of both must be understood: a case that
asks for something this file does not know fails, so that nothing is checked by half.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Mapping
from typing import Any, get_args

import pytest

from adjudge import (
    Gate,
    Judge,
    JudgeChain,
    JudgeResult,
    JudgmentFailed,
    ReplyError,
    Rubric,
    Rule,
    RuleResult,
    Rules,
    UsageError,
    improve,
    load_rubric,
)
from adjudge.errors import Reason
from adjudge.question.reply_object import read_object
from adjudge.question.score import SHOWN_MARK, grade_criterion
from adjudge.rubric import Criterion
from adjudge.testing import ScriptedModel
from kit.environment import read_vectors
from kit.judges import scores
from kit.loops import run_virtual

REASONS: tuple[str, ...] = get_args(Reason)

Case = Mapping[str, Any]
Given = dict[str, Any]

FEATURES = (
    "judge_chain",
    "extract_last_json",
    "rubric_",
    "criterion_passed",
    "weights.normalise",
    "throw_on_fail",
    "result_parse",
    "model_choice",
    "judge.",
    "rules.",
    "evaluator_optimizer",
)
REMARKS = ("why", "with", "note", "next")
"""Keys of an expectation that explain it to people."""


CASES: list[Case] = read_vectors(features=FEATURES)


def expectation(case: Case) -> Given:
    """What is expected of adjudge, without remarks."""
    expected = case["expect"]["recommended"]
    expected = case["expect"]["original"] if expected == "same" else expected
    return {key: as_number(value) for key, value in expected.items() if key not in REMARKS}


def as_number(value: Any) -> Any:
    """A value as written in the cases, which are JSON and so have words for NaN and infinity."""
    words = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
    if isinstance(value, dict):
        return {key: as_number(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_number(item) for item in value]
    return words.get(value, value) if isinstance(value, str) else value


def take(inputs: Given, *known: str) -> list[Any]:
    """The values of the keys known; fails when there are others."""
    assert set(inputs) <= set(known), f"unknown in given: {sorted(set(inputs) - set(known))}"
    return [as_number(inputs.get(name)) for name in known]


# ---------------------------------------------------------------- what a case asks for


Outcome = dict[str, Callable[[Any], None]]
"""For each key of an expectation that a feature understands, a check of its value."""


def equals(actual: Any) -> Callable[[Any], None]:
    def check(expected: Any) -> None:
        if isinstance(expected, float) and isinstance(actual, float):
            assert actual == pytest.approx(expected, abs=1e-4)
        else:
            assert actual == expected

    return check


def status_of(result: JudgeResult) -> Callable[[Any], None]:
    def check(expected: Any) -> None:
        assert not result.passed or expected == "passed"
        if expected in REASONS:
            assert result.undecided_because == expected
        else:
            assert result.outcome == expected

    return check


def about(result: JudgeResult) -> Outcome:
    """What can be expected of any result."""
    return {
        "passed": equals(result.passed),
        "status": status_of(result),
        "outcome": equals(result.outcome),
        "undecided_because": equals(result.undecided_because),
        "decided_by": equals(result.decided_by),
        "score": equals(result.score),
        "effective_threshold": equals(result.threshold),
    }


class Adapter:
    """A judge of a case: it replies, throws, returns something else, or takes its time."""

    def __init__(self, spec: Given, calls: list[str]) -> None:
        self.name, self.reply, self.throws, self.returns, self.delay, hangs = take(
            spec, "name", "reply", "throws", "returns", "delay_ms", "hangs"
        )
        self.answer = self.reply if "reply" in spec else self.returns
        self.calls = calls
        self.delay = math.inf if hangs else (self.delay or 0.0) / 1000.0

    async def evaluate(self, prompt: str) -> Any:
        self.calls.append(self.name)
        if self.delay == math.inf:
            await asyncio.Event().wait()
        await asyncio.sleep(self.delay)
        if self.throws is not None:
            raise RuntimeError(self.throws)
        return self.answer


def make_chain(inputs: Given, calls: list[str]) -> JudgeChain:
    adapters, strategy, timeout, fail_open, quorum = take(
        inputs, "adapters", "strategy", "timeout_ms", "fail_open", "quorum"
    )
    options: Given = {"strategy": strategy, "fail_open": fail_open, "quorum": quorum}
    options |= {"timeout": timeout / 1000.0} if timeout is not None else {}
    seats = [Judge(Adapter(spec, calls), timeout=None) for spec in adapters]
    return JudgeChain(seats, **{name: value for name, value in options.items() if value is not None})


def replay_chain(inputs: Given) -> Outcome:
    calls: list[str] = []
    result = run_virtual(make_chain(inputs, calls).ask("Is it safe?"))
    return about(result) | {
        "calls": equals(calls),
        "fallback_triggered": equals(result.fallback_triggered),
        "strategy": equals(result.strategy),
        "results": equals(len(result.results)),
    }


def replay_creation(inputs: Given) -> Outcome:
    chain = make_chain(inputs, [])
    return {
        "strategy": equals(chain.strategy),
        "fail_open": equals(chain.fail_open),
        "timeout_ms": equals(None if chain.timeout is None else chain.timeout * 1000),
        "names": equals(list(chain.names)),
    }


def replay_reading(inputs: Given) -> Outcome:
    (raw,) = take(inputs, "raw")
    try:
        value, because = read_object(raw, None), None
    except ReplyError as error:
        value, because = None, error.because
    return {"json": equals(value), "status": equals(because)}


def replay_weights(inputs: Given) -> Outcome:
    (weights,) = take(inputs, "weights")
    made = [Criterion(name=str(place), description="d", weight=weight) for place, weight in enumerate(weights)]
    shares = list(Rubric(name="r", criteria=made).shares.values())
    return {
        "percent": lambda expected: equals([round(share * 100, 1) for share in shares])([float(x) for x in expected]),
        "shares": equals(pytest.approx(shares, abs=1e-4)),
    }


def replay_score(inputs: Given) -> Outcome:
    criteria, points, threshold = take(inputs, "criteria", "scores", "passing_threshold")
    more = {"passing_threshold": threshold} if threshold is not None else {}
    rubric = Rubric(name="r", criteria=[{"description": "d", **item} for item in criteria], **more)
    model = ScriptedModel(scores(*points.values(), names=list(points)))
    result = run_virtual(Judge(model).evaluate("The content.", rubric))
    gates = [item.name for item in result.criteria if item.threshold is not None and not item.passed]
    return about(result) | {"failed_criteria": equals(gates)}


def replay_schema(inputs: Given) -> Outcome:
    try:
        load_rubric(as_number(inputs))
        message = None
    except UsageError as error:
        message = str(error)

    def names_path(path: str) -> None:
        assert message is not None
        assert path.rpartition(".")[2].strip("[]") in message

    return {"valid": equals(message is None), "path": names_path}


def replay_criterion(inputs: Given) -> Outcome:
    score, threshold = take(inputs, "score", "threshold")
    made = grade_criterion(Criterion(name="a", description="d", threshold=threshold), score)
    mark = SHOWN_MARK if made.threshold is None else made.threshold
    return {"passed": equals(made.passed), "effective_threshold": equals(mark)}


def replay_throwing(inputs: Given) -> Outcome:
    passes, throws = take(inputs, "passed", "throw_on_fail")
    more = {} if throws is None else {"throw_on_fail": throws}
    judging = Judge(ScriptedModel(scores(float(passes)))).evaluate("The content.", criteria="Good.", **more)
    try:
        result, error = run_virtual(judging), None
    except JudgmentFailed as caught:
        result, error = caught.result, caught
    return {
        "raises": lambda expected: equals(error is not None)(True),
        "error_carries": lambda expected: equals((expected, error.result.passed))(("judgment", False)),
        "returns_judgment": equals(error is None),
        "passed": equals(result.passed),
    }


def replay_parsing(inputs: Given) -> Outcome:
    described, reply = take(inputs, "reply_is", "reply")
    good = json.dumps(scores(1.0, names=["good"]))
    kinds = {
        "prose": "It looks good to me.",
        "empty": "",
        "truncated": good[:40],
        "missing": "{}",
        "fence": f"```json\n{good}\n```",
    }
    known = [text for word, text in kinds.items() if word in (described or "")]
    assert reply is not None or known, f"unknown kind of reply: {described!r}"
    result = run_virtual(Judge(ScriptedModel(known[0] if reply is None else reply)).evaluate("x", criteria="Good."))
    return about(result)


def replay_choice(inputs: Given) -> Outcome:
    call, options, option, rubric_model, judge_model, default = take(
        inputs, "call_model", "options_model", "option_model", "rubric_model", "judge_model", "default_model"
    )
    rubric = Rubric(name="r", model=rubric_model, criteria=[{"name": "criteria", "description": "d"}])
    judge = Judge(ScriptedModel(scores(1.0), name=judge_model or default or "the judge's own"))
    return {"model_used": equals(run_virtual(judge.evaluate("x", rubric, model=call or options or option)).model)}


def replay_threshold(inputs: Given) -> Outcome:
    score, threshold = take(inputs, "score", "threshold")
    more = {} if threshold is None else {"threshold": threshold}
    judge = Judge(ScriptedModel(scores(score)))
    return about(run_virtual(judge.evaluate("The content.", criteria="Good.", **more)))


def replay_config(inputs: Given) -> Outcome:
    criteria, threshold, model = take(inputs, "criteria", "threshold", "model")
    options = {name: value for name, value in (("criteria", criteria), ("threshold", threshold)) if value is not None}
    names = [f"criterion-{at}" for at in range(1, len(criteria) + 1)] if isinstance(criteria, list) else []
    names = list(criteria) if isinstance(criteria, dict) else names
    reply = scores(*[1.0] * max(len(names), 1), names=names)
    try:
        run_virtual(Judge(ScriptedModel(reply)).evaluate("The content.", model=model, **options))
        valid = True
    except UsageError:
        valid = False
    return {"valid": equals(valid)}


def replay_gate(inputs: Given) -> Outcome:
    (specs,) = take(inputs, "results")

    def make_rule(spec: Given) -> Rule:
        name, passed, severity, message = take(spec, "ruleName", "passed", "severity", "message")
        known = RuleResult(name=name, passed=passed, severity=severity, message=message)
        return Rule(name=name, severity=severity, evaluate=lambda content: known)

    decision = run_virtual(Gate("door", rules=[make_rule(spec) for spec in specs]).check("x"))
    return {"blocked": equals(not decision.allowed)}


def replay_lookup(inputs: Given) -> Outcome:
    (name,) = take(inputs, "name")
    return {"returns": equals(Rules(["json", "secrets", "personal_data"]).get(name))}


def replay_personal(inputs: Given) -> Outcome:
    (content,) = take(inputs, "content")
    (result,) = run_virtual(Rules(["personal_data"]).evaluate(content))
    return {"passed": equals(result.passed)}


def replay_improving(inputs: Given) -> Outcome:
    values, threshold, most = take(inputs, "scores", "threshold", "max_iterations")
    judge = Judge(ScriptedModel([scores(value) for value in values]))

    async def rewrite(content: str, result: JudgeResult) -> str:
        return f"{content}."

    done = run_virtual(improve("x", judge, None, rewrite, rounds=most, criteria="Good.", threshold=threshold))
    return {"iterations": equals(len(done.rounds)), "passed": equals(done.passed)}


REPLAYS: dict[str, Callable[[Given], Outcome]] = {
    "rules.gate": replay_gate,
    "rules.get": replay_lookup,
    "rules.pii_example": replay_personal,
    "evaluator_optimizer": replay_improving,
    "judge_chain.create": replay_creation,
    "judge_chain.defaults": replay_creation,
    "judge_chain": replay_chain,
    "extract_last_json": replay_reading,
    "weights.normalise": replay_weights,
    "rubric_score": replay_score,
    "rubric_schema": replay_schema,
    "criterion_passed": replay_criterion,
    "throw_on_fail": replay_throwing,
    "result_parse": replay_parsing,
    "model_choice": replay_choice,
    "judge.threshold": replay_threshold,
    "judge.config": replay_config,
}


def check_case(case: Case) -> None:
    """Replay one case and compare everything it expects."""
    expected = expectation(case)
    assert case["feature"] in REPLAYS, f"unknown feature {case['feature']!r}"
    replay = REPLAYS[case["feature"]]
    if "raises" in expected and case["feature"] != "throw_on_fail":
        with pytest.raises(UsageError):
            replay(case["given"])
        assert set(expected) == {"raises"}
        return
    checks = replay(case["given"])
    for key, value in expected.items():
        assert key in checks, f"unknown expectation {key!r}"
        checks[key](value)


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_conformance_cases(case: Case) -> None:
    """Each case comes out as recommended."""
    check_case(case)


# ---------------------------------------------------------------- the driver itself


def one(feature: str, inputs: Given, **recommended: Any) -> Case:
    return {"feature": feature, "given": inputs, "expect": {"original": {}, "recommended": recommended}}


A = {"name": "a", "reply": '{"safe": true}'}


@pytest.mark.parametrize(
    "case",
    [
        one("judge_chain", {"adapters": [A]}, passed=False),
        one("judge_chain", {"adapters": [A]}, status="unparseable"),
        one("judge_chain", {"adapters": [A]}, raises="something"),
        one("judge_chain", {"adapters": [A]}, passed=True, mood="good"),
        one("judge_chain", {"adapters": [A], "mood": "good"}, passed=True),
        one("judge_chain", {"adapters": [{**A, "mood": "good"}]}, passed=True),
        one("judge_mood", {}, passed=True),
        one("extract_last_json", {"raw": "{}"}, json=None),
        one("rubric_score", {"criteria": [{"name": "a"}], "scores": {"a": 0.5}}, score=0.6),
        one("result_parse", {"reply_is": "a poem"}, status="unparseable"),
        one("throw_on_fail", {"passed": True, "throw_on_fail": True}, raises="JudgmentFailedError"),
        one("rules.get", {"name": "json"}, returns=None),
        one("rules.pii_example", {"content": "no number"}, passed=False),
        one("rules.pii_example", {"content": "no number", "mood": "good"}, passed=True),
    ],
)
def test_the_driver_fails_what_it_should(case: Case) -> None:
    """A wrong expectation, an unknown feature and an unknown key all fail."""
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check_case(case)


@pytest.mark.parametrize(
    "case",
    [
        one("judge_chain", {"adapters": [{**A, "delay_ms": 20}], "timeout_ms": 10}, status="timeout", calls=["a"]),
        one("judge_chain", {"adapters": [{"name": "a", "hangs": True}], "timeout_ms": 10}, fallback_triggered=True),
        one("judge_chain", {"adapters": [A, {"name": "b", "throws": "x"}], "strategy": "majority"}, status="error"),
        one("judge_chain", {"adapters": [A], "timeout_ms": "NaN"}, raises="not a number"),
        one("weights.normalise", {"weights": [1, 3]}, percent=[25, 75]),
        one("rubric_score", {"criteria": [{"name": "a"}], "scores": {"a": "NaN"}}, status="off_scale", passed=False),
        one("model_choice", {"rubric_model": "r", "call_model": "c"}, model_used="c"),
    ],
)
def test_the_driver_passes_what_it_should(case: Case) -> None:
    """Also forms that no case of today has."""
    check_case(case)
