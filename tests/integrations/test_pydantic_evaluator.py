"""A judge as an evaluator of pydantic-evals: the real package evaluates a data set, and its report says the rest."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from adjudge import Judge, Rubric, UsageError
from adjudge.models import Request
from adjudge.testing import ScriptedModel

SCORES = {"good": 0.9, "fair": 0.5, "bad": 0.2}


@pytest.fixture(autouse=True)
def package(require) -> None:
    require("pydantic-evals", find_spec("pydantic_evals"), "pip install pydantic-evals")


def grade(request: Request) -> Any:
    """Score what is judged by its first word; of anything else, say what cannot be read."""
    content = request.user.partition("<<content")[2].partition("\n")[2]
    score = SCORES.get(content.split()[0])
    if score is None:
        return "I cannot say."
    return {
        "criteria": [{"reasoning": "It\x1b[31m reads well.", "score": score}],
        "suggestions": [],
    }


def open_evaluator(source: Any = grade, **options: Any) -> Any:
    from adjudge.integrations.pydantic_evals import JudgeEvaluator

    judge = Judge(ScriptedModel(source), name="careful")
    return JudgeEvaluator(judge, **{"criteria": "Reads well.", **options})


def evaluate(evaluator: Any, *outputs: Any, **more: Any) -> Any:
    """The report on a data set whose task returns these outputs, one for each case."""
    from pydantic_evals import Case, Dataset

    cases = [
        Case(name=f"case {place}", inputs=f"question {place}", expected_output="the target")
        for place in range(len(outputs))
    ]
    outputs_left = iter(outputs)
    dataset: Any = Dataset(name="answers", cases=cases, evaluators=[evaluator])
    return dataset.evaluate_sync(lambda _: next(outputs_left), progress=False, max_concurrency=1, **more)


def test_a_case_is_judged():
    """It has an assertion with the judge's reasoning, and a score."""
    [case] = evaluate(open_evaluator(), "good answer").cases

    assert case.assertions["JudgeEvaluator_pass"].value is True
    assert case.scores["JudgeEvaluator_score"].value == 0.9
    reason = case.assertions["JudgeEvaluator_pass"].reason
    assert reason.startswith("passed with 0.90 (needs 0.70)")
    assert "reads well" in reason
    assert "\x1b" not in reason
    assert case.evaluator_failures == []


def test_what_fails_is_a_false_assertion():
    """With the score it had, and averages that count it."""
    report = evaluate(open_evaluator(), "good", "bad")

    assert [case.assertions["JudgeEvaluator_pass"].value for case in report.cases] == [True, False]
    assert report.averages().assertions == 0.5
    assert report.averages().scores["JudgeEvaluator_score"] == pytest.approx(0.55)


def test_what_is_undecided_is_an_evaluator_failure():
    """There is no assertion and no score, and the report says why."""
    [case] = evaluate(open_evaluator(), "strange").cases
    [failure] = case.evaluator_failures

    assert (case.assertions, case.scores) == ({}, {})
    assert failure.error_type == "JudgmentFailed"
    assert "undecided: unparseable" in failure.error_message


def test_what_is_undecided_can_be_a_false_assertion():
    """For a check of the assertions alone: it is never true, and has no score."""
    [case] = evaluate(open_evaluator(on_undecided="fail"), "strange").cases

    assert case.assertions["JudgeEvaluator_pass"].value is False
    assert case.assertions["JudgeEvaluator_pass"].reason.startswith("undecided: unparseable")
    assert case.scores == {}


@pytest.mark.parametrize("reply", [RuntimeError("down"), "pass", {"safe": True}, None, {"criteria": []}])
@pytest.mark.parametrize("on_undecided", ["raise", "fail"])
def test_a_broken_judge_never_passes(reply: Any, on_undecided: str):
    """Whatever it raises or says, no assertion is true."""
    [case] = evaluate(open_evaluator(reply, on_undecided=on_undecided), "good").cases

    assert not any(item.value for item in case.assertions.values())
    assert case.scores == {}
    assert bool(case.evaluator_failures) is (on_undecided == "raise")


def test_a_retry_of_the_data_set_asks_again(require):
    """What was undecided at first is decided by the second answer."""
    require("tenacity", find_spec("tenacity"), "pip install tenacity")
    from tenacity import stop_after_attempt

    answers = iter(["?", "?", grade])  # the judge itself asks twice
    evaluator = open_evaluator(lambda request: answer(request) if callable(answer := next(answers)) else answer)
    [case] = evaluate(evaluator, "good", retry_evaluators={"stop": stop_after_attempt(2)}).cases

    assert case.assertions["JudgeEvaluator_pass"].value is True


def test_the_judge_sees_inputs_and_expected_output_as_data():
    """Each in a fence of its own, unless it is left out."""
    seen: list[str] = []

    def watch(request: Request) -> Any:
        seen.append(request.user)
        return grade(request)

    evaluate(open_evaluator(watch), "good")
    evaluate(open_evaluator(watch, include_input=False, include_expected_output=False), "good")

    assert "<<task" in seen[0]
    assert "question 0" in seen[0]
    assert "the target" in seen[0]
    assert "question 0" not in seen[1]
    assert "the target" not in seen[1]


def test_outputs_that_are_data_are_judged():
    """A dataclass, a dictionary or a list reaches the judge as JSON; what cannot be written is undecided."""
    seen: list[str] = []

    def watch(request: Request) -> Any:
        seen.append(request.user)
        return {"criteria": [{"reasoning": "r", "score": 1.0}]}

    first, second = evaluate(open_evaluator(watch), {"answer": [1, 2]}, b"\0").cases

    assert '"answer"' in seen[0]
    assert first.assertions["JudgeEvaluator_pass"].value is True
    assert "binary" in second.evaluator_failures[0].error_message
    assert len(seen) == 1


def test_rules_decide_without_a_model():
    """An outcome without a number is an assertion alone."""
    [case] = evaluate(open_evaluator(rules=[{"regex": "secret", "absent": True}]), "a secret").cases

    assert case.assertions["JudgeEvaluator_pass"].value is False
    assert case.scores == {}


def test_results_have_the_name_they_are_given():
    """So that two judges of one case can be told apart."""
    [case] = evaluate(open_evaluator(evaluation_name="style"), "good").cases

    assert list(case.assertions) == ["style_pass"]
    assert list(case.scores) == ["style_score"]


def test_a_report_names_the_judge_and_not_its_parts():
    """What an evaluator was made with stands in the report by name: no object of a judge, so no key."""
    rubric = Rubric(name="Style", criteria=[{"name": "criteria", "description": "Reads well."}])
    [case] = evaluate(open_evaluator(criteria=None, rubric=rubric), "good").cases
    source = case.assertions["JudgeEvaluator_pass"].source

    assert source.name == "JudgeEvaluator"
    assert source.arguments == {"judge": "careful", "rubric": "Style"}


def test_a_data_set_in_a_file_names_its_judge(tmp_path: Path):
    """The evaluator is read from YAML, and written back the same with a schema beside it."""
    from pydantic_evals import Dataset

    from adjudge.integrations.pydantic_evals import JudgeEvaluator

    text = """
name: answers
cases:
- name: one
  inputs: question
evaluators:
- JudgeEvaluator:
    judge: ollama:tiny
    criteria: {polite: Is polite.}
    threshold: 0.8
"""
    dataset = Dataset[str, str, Any].from_text(text, custom_evaluator_types=[JudgeEvaluator])
    [evaluator] = dataset.evaluators

    assert isinstance(evaluator, JudgeEvaluator)
    assert evaluator.judge == "ollama:tiny"
    assert evaluator.as_spec().arguments == {
        "judge": "ollama:tiny",
        "criteria": {"polite": "Is polite."},
        "threshold": 0.8,
    }

    dataset.to_file(tmp_path / "cases.yaml", custom_evaluator_types=[JudgeEvaluator])
    again = Dataset[str, str, Any].from_file(tmp_path / "cases.yaml", custom_evaluator_types=[JudgeEvaluator])
    schema = (tmp_path / "cases_schema.json").read_text("utf-8")

    assert again.evaluators[0].as_spec() == evaluator.as_spec()
    assert "include_expected_output" in schema
    assert "_opened_judge" not in schema


@pytest.mark.parametrize(
    "make",
    [
        lambda evaluator: evaluator(Judge(grade), criteria="x", on_undecided="pass"),
        lambda evaluator: evaluator(Judge(grade), criteria="x", include_input="no"),
        lambda evaluator: evaluator("nobody:knows", criteria="x"),
        lambda evaluator: evaluator("python:os:system", criteria="x"),
        lambda evaluator: evaluator(),
    ],
    ids=["policy", "flag", "model", "code", "no judge"],
)
def test_what_cannot_be_is_said_when_the_evaluator_is_made(make: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch):
    """Before any case is asked for; a file of cases names no code."""
    from adjudge.integrations.pydantic_evals import JudgeEvaluator

    monkeypatch.delenv("ADJUDGE_JUDGE", raising=False)
    with pytest.raises(UsageError):
        make(JudgeEvaluator)


def test_an_evaluator_without_a_rubric_judges_nothing():
    """Nothing says what good means: that is a failure of every case, and no pass."""
    [case] = evaluate(open_evaluator(criteria=None), "good").cases

    assert case.assertions == {}
    assert "nothing says what good means" in case.evaluator_failures[0].error_message
