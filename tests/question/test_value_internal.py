"""The form of a result's value."""

from __future__ import annotations

import asyncio
import dataclasses

import pydantic

from adjudge import Judge
from adjudge.question.result_format import check_format
from adjudge.testing import ScriptedModel
from kit.judges import complaint, names


@dataclasses.dataclass
class DataInner:
    words: list[str]


@dataclasses.dataclass
class DataOuter:
    passed: bool
    inner: DataInner


def evaluate(reply, kind, **how):
    options = {name: how.pop(name) for name in ("structured", "reask") if name in how}
    judge = Judge(ScriptedModel(reply), **{"reask": 0, **options})
    return asyncio.run(judge.evaluate("The content.", result_format=kind, **how))


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

    assert names(complaint(check_format, Tree, None), "result_format", "itself", "must have an end")


def test_a_member_that_json_cannot_hold_is_refused():
    """Also one whose type cannot be found."""

    @dataclasses.dataclass
    class Odd:
        passed: bool
        stream: DoesNotExist  # type: ignore[name-defined]  # noqa: F821

    assert complaint(check_format, Odd, None).startswith("result_format Odd has a member no reply can hold: ")
