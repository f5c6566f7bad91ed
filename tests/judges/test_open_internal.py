"""From whatever was handed in to a judge: every door takes the same things, and says what is wrong with others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from adjudge import Gate, Judge, JudgeChain, JudgeResult, UsageError, compare_sync, improve, judge
from adjudge import run as begin
from adjudge.guards.approval.first_judge import open_first
from adjudge.judges.chain import list_judges, list_leaves
from adjudge.judges.layers import wrap_models
from adjudge.judges.open import as_chain, as_judge, find_judge
from adjudge.models.wrapper import WrapperModel
from adjudge.testing import ScriptedModel

PASSES = '{"passed": true}'


class Own:
    """A judge of somebody's own."""

    name = "own"

    async def ask(self, _question: Any, /) -> JudgeResult:
        return JudgeResult(outcome="passed", judge="own")


class Nameless:
    """What can be asked, and has no name."""

    async def ask(self, _question: Any, /) -> JudgeResult:
        raise AssertionError("nobody asks it")


class Asking(Judge):
    """A judge of ours that asks in its own way."""

    async def ask(self, question: Any, /) -> JudgeResult:
        return await super().ask(question)


def says(_prompt: str) -> str:
    """A function that is a model."""
    return PASSES


async def _run(source: Any) -> None:
    async with begin([{"content": "x"}], source, criteria="Good.") as running:
        assert len([item async for item in running]) == 1


DOORS: dict[str, Callable[[Any], object]] = {
    "judge": lambda source: asyncio.run(judge("x", judge=source, criteria="Good.")),
    "compare": lambda source: compare_sync("a", "b", judge=source, criteria="Good."),
    "improve": lambda source: asyncio.run(improve("x", source, None, lambda *_: "y", criteria="Good.")),
    "gate": lambda source: Gate(
        "g", judge=source, rubric={"name": "r", "criteria": [{"name": "good", "description": "Good."}]}
    ),
    "chain": lambda source: JudgeChain([source]),
    "run": lambda source: asyncio.run(_run(source)),
    "as_chain": as_chain,
    "as_judge": as_judge,
}


@pytest.mark.parametrize(
    "source", [Own(), says, ("said", says), ScriptedModel(PASSES), Judge(says), JudgeChain([says])]
)
@pytest.mark.parametrize("door", DOORS)
def test_every_door_takes_whatever_can_be_asked(door: str, source: Any):
    """A judge, a chain, somebody's own object with ``ask``, a function, a pair and a model are judges everywhere."""
    DOORS[door](source)


@pytest.mark.parametrize("source", [5, ("a", "b", "c"), object(), ["openai:a"]])
@pytest.mark.parametrize("door", DOORS)
def test_every_door_says_what_is_no_judge(door: str, source: Any):
    """The refusal shows what was handed in, at the call and before anybody is asked."""
    with pytest.raises(UsageError, match=r"a model is a spec|a pair must be"):
        DOORS[door](source)


@pytest.mark.parametrize("door", DOORS)
def test_what_can_be_asked_needs_a_name(door: str):
    """Without one no result could say who answered, and that is said as one sentence with a remedy."""
    with pytest.raises(UsageError, match=r"a judge needs a name beside its ask.*Nameless"):
        DOORS[door](Nameless())


def test_judges_stay_as_they_are_and_others_become_a_seat():
    """Nobody's limits, names or hooks are changed by being handed in; what is not ours cannot break its caller."""
    single, chain, own = Judge(says), JudgeChain([says]), Own()

    assert as_judge(single) is single
    assert as_judge(chain) is as_chain(chain) is chain
    assert [seat for _, seat in as_judge(own).judges] == [own]  # type: ignore[union-attr]
    assert as_judge(own).timeout is None
    assert as_judge(own, keep_name=True).name == as_chain(own).name == "own"
    assert as_chain(single).judges == ((single.name, single),)


def test_only_who_shares_gets_the_judge_of_others():
    """A judge that its user closes is its own; one that nobody closes is one for all."""
    assert as_judge("openai:shared-a") is not as_judge("openai:shared-a")
    assert as_judge("openai:shared-a", shared=True) is find_judge("openai:shared-a")


def test_people_are_shown_the_judge_that_answers_first_itself():
    """``first=`` keeps a judge as it is, and refuses one whose name is no text."""
    own = Own()

    assert open_first(own) is own
    with pytest.raises(UsageError, match="a judge needs a name"):
        open_first(type("Odd", (Own,), {"name": 5})())


class Wrapped(WrapperModel):
    """A model around another."""


def test_models_are_changed_at_every_depth_and_nobody_else():
    """Names stay; a judge of another class, and a subclass that asks in its own way, are what they were."""
    own, asking = Own(), Asking(says)
    inner = JudgeChain([Judge(says, name="inner")], name="deep")
    chain = JudgeChain([Judge(says, name="a"), inner, own, asking], name="all")

    changed = chain.map_models(Wrapped)

    assert changed.names == chain.names
    assert changed.name == "all"
    assert [type(leaf.model) for leaf in list_judges(changed)] == [Wrapped, Wrapped]
    assert list(list_leaves(changed))[2:] == [own, asking]
    assert all(not isinstance(leaf.model, Wrapped) for leaf in list_judges(chain))
    assert asking.map_models(Wrapped) is asking
    assert wrap_models(own, lambda model, _: model) is own
