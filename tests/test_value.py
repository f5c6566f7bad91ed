"""Replies of the caller's own type: pydantic models, dataclasses and msgspec Structs."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Literal

import msgspec
import pydantic
import pytest

from adjudge import Judge
from adjudge._value import check_format
from adjudge.testing import ScriptedModel
from judge_support import complaint


@dataclasses.dataclass
class Data:
    passed: bool
    tone: str = "neutral"


class Struct(msgspec.Struct):
    passed: bool
    tone: str = "neutral"


class Model(pydantic.BaseModel):
    passed: bool
    tone: str = "neutral"


KINDS = pytest.mark.parametrize("kind", [Data, Struct, Model])


@dataclasses.dataclass
class DataInner:
    words: list[str]


@dataclasses.dataclass
class DataOuter:
    passed: bool
    inner: DataInner


class Graded(pydantic.BaseModel):
    """A format whose verdict is computed in code."""

    reasoning: str = ""
    score: float
    tone: Literal["warm", "cold"] = "warm"


def evaluate(reply, kind, **how):
    options = {name: how.pop(name) for name in ("structured", "reask") if name in how}
    judge = Judge(ScriptedModel(reply), **{"reask": 0, **options})
    return asyncio.run(judge.evaluate("The content.", result_format=kind, **how))


@KINDS
@pytest.mark.parametrize("passed", [True, False])
def test_the_flag_of_the_format_decides(kind, passed):
    """The result is a ``JudgeResult`` like any other; the instance is ``result.value``."""
    result = evaluate({"passed": passed, "tone": "warm"}, kind)

    assert result.outcome == ("passed" if passed else "failed")
    assert (result.value, result.score) == (kind(passed=passed, tone="warm"), float(passed))
    assert type(result.value) is kind


@KINDS
@pytest.mark.parametrize(
    "reply",
    [
        {"tone": "warm"},
        {"passed": "true"},
        {"passed": 1},
        {"passed": None},
        {"passed": True, "tone": 5},
        "It passed.",
        '{"passed": true} {"passed": true}',
    ],
)
def test_what_does_not_fit_the_format_is_unparseable(kind, reply):
    """Strictly: no conversion, nothing filled in for what is missing; there is no value."""
    result = evaluate(reply, kind)

    assert (result.undecided_because, result.value) == ("unparseable", None)


@KINDS
@pytest.mark.parametrize("flag", ["safe", "allowed", "approved"])
def test_a_flag_beside_the_format_that_disagrees_is_a_contradiction(kind, flag):
    """One that agrees changes nothing."""
    assert evaluate({"passed": True, flag: False}, kind).undecided_because == "contradiction"
    assert evaluate({"passed": False, flag: True}, kind).undecided_because == "contradiction"
    assert evaluate({"passed": True, flag: True}, kind).passed


def test_passes_derives_the_verdict():
    """For a format that has no ``passed``."""
    good = {"reasoning": "why", "score": 0.9}
    result = evaluate(good, Graded, passes=lambda value: value.score > 0.5)

    assert (result.outcome, result.score, result.reasoning) == ("passed", 0.9, "why")
    assert evaluate(good, Graded, passes=lambda value: value.tone == "cold").outcome == "failed"


@pytest.mark.parametrize(("passes", "detail"), [(lambda value: 1, "whether it passed must be a boolean, got int")])
def test_a_verdict_that_is_no_boolean_is_undecided(passes, detail):
    """Truthiness decides nothing."""
    result = evaluate({"score": 0.9}, Graded, passes=passes)

    assert (result.undecided_because, result.detail) == ("error", detail)


def test_a_verdict_that_raises_is_undecided():
    """A mistake in the caller's function lets nothing pass, and says what it was."""
    result = evaluate({"score": 0.9}, Graded, passes=lambda value: value.nothing)

    assert result.undecided_because == "error"
    assert "AttributeError" in result.detail


def test_a_computed_property_may_be_the_verdict():
    """``passed`` as a property of the type."""

    @dataclasses.dataclass
    class Computed:
        faults: list[str]

        @property
        def passed(self) -> bool:
            return not self.faults

    assert evaluate({"faults": []}, Computed).passed
    assert evaluate({"faults": ["x"]}, Computed).outcome == "failed"


def test_a_validator_of_the_type_counts():
    """What the type refuses is unparseable, on one line."""

    class Even(pydantic.BaseModel):
        passed: bool
        number: int

        @pydantic.field_validator("number")
        @classmethod
        def check(cls, value: int) -> int:
            if value % 2:
                raise ValueError("odd")
            return value

    result = evaluate({"passed": True, "number": 3}, Even)

    assert result.undecided_because == "unparseable"
    assert result.detail.startswith("the reply does not fit Even: ")
    assert "\n" not in result.detail


def test_what_cannot_be_read_is_asked_again():
    """A reply that does not fit is like any other that cannot be read."""
    result = evaluate([{"passed": "no"}, {"passed": True}], Data, reask=1)

    assert (result.outcome, result.attempts) == ("passed", 2)


# ---------------------------------------------------------------- with a rubric


CRITERIA = {"criteria": [{"name": "criteria", "reasoning": "so", "score": 0.9}]}
LOW = {"criteria": [{"name": "criteria", "reasoning": "so", "score": 0.1}]}


@KINDS
@pytest.mark.parametrize(
    ("scored", "passed", "outcome"),
    [(CRITERIA, True, "passed"), (CRITERIA, False, "failed"), (LOW, True, "failed"), (LOW, False, "failed")],
)
def test_with_a_rubric_both_must_pass(kind, scored, passed, outcome):
    """The score is the rubric's; the format's own flag is no contradiction but a second verdict that was asked for."""
    result = evaluate({**scored, "passed": passed}, kind, criteria="Good.")

    assert (result.outcome, result.score) == (outcome, scored["criteria"][0]["score"])
    assert result.value.passed is passed


def test_with_a_rubric_a_missing_score_is_no_pass():
    """Both halves must be readable."""
    assert evaluate({"passed": True}, Data, criteria="Good.").undecided_because == "missing_criterion"
    assert evaluate(CRITERIA, Data, criteria="Good.").undecided_because == "unparseable"


# ---------------------------------------------------------------- the form


@KINDS
def test_the_model_is_told_the_form(kind):
    """In words, and as a schema whose first member is the token."""
    model = ScriptedModel({"passed": True}, structured=True)
    asyncio.run(Judge(model).evaluate("x", result_format=kind))
    request = model.requests[0]

    assert request.form.name == kind.__name__
    assert list(request.form.schema["properties"]) == ["token", "passed", "tone"]
    assert request.form.schema["properties"]["passed"]["type"] == "boolean"
    assert '"passed": ' in request.system


def test_nested_types_are_written_out():
    """The schema has no references, since it becomes part of another."""

    class Inner(pydantic.BaseModel):
        words: list[str]

    class Outer(pydantic.BaseModel):
        passed: bool
        inner: Inner

    for kind in (Outer, DataOuter):
        assert check_format(kind, None)["inner"]["properties"]["words"]["items"] == {"type": "string"}
        assert evaluate({"passed": True, "inner": {"words": ["a"]}}, kind).value.inner.words == ["a"]


def test_a_type_that_holds_itself_is_refused():
    """A reply has an end."""

    class Tree(pydantic.BaseModel):
        passed: bool
        below: list[Tree] = []

    Tree.model_rebuild(_types_namespace={"Tree": Tree})

    assert complaint(check_format, Tree, None) == ("result_format refers to itself; a reply's form must have an end")


def test_a_member_that_json_cannot_hold_is_refused():
    """Also one whose type cannot be found."""

    @dataclasses.dataclass
    class Odd:
        passed: bool
        stream: DoesNotExist  # type: ignore[name-defined]  # noqa: F821

    assert complaint(check_format, Odd, None).startswith("result_format Odd has a member no reply can hold: ")
