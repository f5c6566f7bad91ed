"""Putting something between judges and their models leaves everything else as it was."""

from __future__ import annotations

import asyncio
from typing import Any

from adjudge import Judge, JudgeChain
from adjudge.judges.layers import wrap_models
from adjudge.models import Model, Reply, Request
from adjudge.testing import ScriptedModel

RUBRIC = "code-quality"


class Between:
    """A model that says who was asked, and asks."""

    def __init__(self, model: Model, number: int, asked: list[Any]) -> None:
        self.model, self.number, self.asked = model, number, asked

    @property
    def name(self) -> str:
        return self.model.name

    async def complete(self, request: Request, /) -> Reply:
        self.asked.append((self.name, self.number, request.sample))
        return await self.model.complete(request)


def make_model(name: str) -> ScriptedModel:
    return ScriptedModel([{"safe": True}] * 9, name=name)


def test_every_model_at_any_depth_is_asked_through_what_was_put_between():
    """Seats of one model are numbered in their order, and the chain answers as before."""
    asked: list[Any] = []
    inner = JudgeChain([Judge(make_model("a"), name="first"), Judge(make_model("b"))], strategy="consensus", name="two")
    chain = JudgeChain([inner, Judge(make_model("a"), name="last")], strategy="consensus", timeout=7.0)

    wired = wrap_models(chain, lambda model, number: Between(model, number, asked))
    result = asyncio.run(wired.ask("Is this safe?"))

    assert sorted(asked) == [("a", 0, 0), ("a", 1, 0), ("b", 0, 0)]
    assert result.passed
    assert (wired.name, wired.names, wired.timeout) == (chain.name, chain.names, 7.0)
    assert wired.judges[0][1].names == ("first", "b")


def test_judges_of_another_kind_stay_as_they_are():
    """An object of anybody's has no model that could be replaced."""

    class Mine:
        name = "mine"

        async def ask(self, question: Any, /) -> Any:
            raise NotImplementedError

    mine = Mine()
    assert wrap_models(mine, lambda model, number: model) is mine
    assert wrap_models(JudgeChain([mine]), lambda model, number: model).judges == (("mine", mine),)
