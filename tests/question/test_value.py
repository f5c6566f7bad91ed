"""Replies of the caller's own type: pydantic models, dataclasses and msgspec Structs."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Literal

import msgspec
import pydantic
import pytest

from adjudge import Judge
from adjudge.testing import ScriptedModel
from kit.judges import names


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


class Graded(pydantic.BaseModel):
    """A format whose verdict is computed in code."""

    reasoning: str = ""
    score: float
    tone: Literal["warm", "cold"] = "warm"


GOOD = {"reasoning": "why", "score": 0.9, "tone": "warm"}


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
        {"passed": "true", "tone": "warm"},
        {"passed": 1, "tone": "warm"},
        {"passed": None, "tone": "warm"},
        {"passed": True, "tone": 5},
        "It passed.",
        '{"passed": true, "tone": ""} {"passed": true, "tone": ""}',
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
    assert evaluate({"passed": True, "tone": "warm", flag: False}, kind).undecided_because == "contradiction"
    assert evaluate({"passed": False, "tone": "warm", flag: True}, kind).undecided_because == "contradiction"
    assert evaluate({"passed": True, "tone": "warm", flag: True}, kind).passed


@dataclasses.dataclass
class DataByDefault:
    reasoning: str
    passed: bool = True


class StructByDefault(msgspec.Struct):
    reasoning: str = ""
    passed: bool = True


class ModelByDefault(pydantic.BaseModel):
    reasoning: str = ""
    passed: bool = True


@pytest.mark.parametrize("kind", [DataByDefault, StructByDefault, ModelByDefault])
def test_a_verdict_nobody_gave_does_not_pass_by_default(kind):
    """The type's default is for its constructor; every member of the form stands in the reply."""
    result = evaluate({"reasoning": "This is awful and must be rejected."}, kind)

    assert (result.undecided_because, result.value) == ("unparseable", None)
    assert names(result.detail, "reply", "'passed'", kind.__name__)
    assert names(evaluate("{}", kind).detail, "reply", "'reasoning'", kind.__name__)
    assert evaluate({"reasoning": "Good.", "passed": True}, kind).passed


def test_what_passes_looks_at_is_not_made_up_either():
    """An empty list by default would read as "no issues found"."""

    @dataclasses.dataclass
    class Review:
        issues: list[str] = dataclasses.field(default_factory=list)

    result = evaluate({"verdict": "reject"}, Review, passes=lambda value: not value.issues)

    assert names(result.detail, "reply", "'issues'", "Review")
    assert evaluate({"issues": []}, Review, passes=lambda value: not value.issues).passed


class ModelAlias(pydantic.BaseModel):
    passed: bool
    tone: str = pydantic.Field("", alias="voice")


class StructAlias(msgspec.Struct, rename={"tone": "voice"}):
    passed: bool
    tone: str = ""


@pytest.mark.parametrize("kind", [ModelAlias, StructAlias])
def test_members_go_by_the_names_of_the_form(kind):
    """Where a member has another name in JSON, the form shows that one, and the reply has to have it."""
    assert evaluate({"passed": True, "voice": "warm"}, kind).value.tone == "warm"
    assert names(evaluate({"passed": True, "tone": "warm"}, kind).detail, "'voice'", kind.__name__)


class StrictModel(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    passed: bool


class StrictStruct(msgspec.Struct, forbid_unknown_fields=True):
    passed: bool


@pytest.mark.parametrize("kind", [StrictModel, StrictStruct])
def test_a_type_that_forbids_more_members_is_not_read_with_more(kind):
    """What adjudge itself asks for beside it, where a rubric is judged as well, is not held against it."""
    more = {"passed": True, "reasoning": "Good.", "suggestions": []}

    assert evaluate(more, kind).undecided_because == "unparseable"
    assert evaluate({**CRITERIA, **more}, kind, criteria="Good.").passed
    assert evaluate({**CRITERIA, **more, "mood": 1}, kind, criteria="Good.").undecided_because == "unparseable"


@pytest.mark.parametrize("kind", [StrictModel, StrictStruct])
def test_what_the_type_says_about_hostile_members_is_shown_harmlessly(kind):
    """Its message quotes the reply, and a detail is printed."""
    result = evaluate({"\x1b]0;pwned\x07\u202e\x1b[2J": 1, "passed": True}, kind)

    assert result.undecided_because == "unparseable"
    assert result.detail.isprintable()


def test_passes_derives_the_verdict():
    """For a format that has no ``passed``."""
    result = evaluate(GOOD, Graded, passes=lambda value: value.score > 0.5)

    assert (result.outcome, result.score, result.reasoning) == ("passed", 0.9, "why")
    assert evaluate(GOOD, Graded, passes=lambda value: value.tone == "cold").outcome == "failed"


@pytest.mark.parametrize(("passes", "detail"), [(lambda value: 1, "whether it passed must be a boolean, got int")])
def test_a_verdict_that_is_no_boolean_is_undecided(passes, detail):
    """Truthiness decides nothing."""
    result = evaluate(GOOD, Graded, passes=passes)

    assert (result.undecided_because, result.detail) == ("error", detail)


def test_a_verdict_that_raises_is_undecided():
    """A mistake in the caller's function lets nothing pass, and says what it was."""
    result = evaluate(GOOD, Graded, passes=lambda value: value.nothing)

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
    """A reply that leaves a member out is like any other that cannot be read."""
    result = evaluate([{"passed": True}, {"passed": True, "tone": "warm"}], Data, reask=1)

    assert (result.outcome, result.attempts) == ("passed", 2)


# ---------------------------------------------------------------- with a rubric


CRITERIA = {"criteria": [{"reasoning": "so", "score": 0.9}]}
LOW = {"criteria": [{"reasoning": "so", "score": 0.1}]}


@KINDS
@pytest.mark.parametrize(
    ("scored", "passed", "outcome"),
    [(CRITERIA, True, "passed"), (CRITERIA, False, "failed"), (LOW, True, "failed"), (LOW, False, "failed")],
)
def test_with_a_rubric_both_must_pass(kind, scored, passed, outcome):
    """The score is the rubric's; the format's own flag is no contradiction but a second verdict that was asked for."""
    result = evaluate({**scored, "passed": passed, "tone": "warm"}, kind, criteria="Good.")

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
