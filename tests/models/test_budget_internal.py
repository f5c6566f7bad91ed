"""The layers around a model that a rubric names."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from adjudge import Budget, Judge, ModelError, ReplyError, open_model
from adjudge.judges import with_layers
from adjudge.models import Price, Request, resolve_model
from adjudge.models.price import PricedModel
from kit.wire import reset, serve

pytestmark = pytest.mark.timed


PRICE = Price(input=0.0, output=1_000_000.0)
"""A dollar for each token of output: what a request may cost at most is its max_output_tokens."""


def test_a_model_that_a_rubric_names_is_held_to_the_budget_too():
    """Another provider's model is opened behind the same layers, and its own price is asked for."""
    judge = with_layers(
        Judge(open_model("openai:a")), budget=Budget(5), prices={"a": PRICE, "groq:b": Price(input=1, output=1)}
    )
    other = resolve_model("groq:b", judge.model)
    unknown = resolve_model("groq:c", judge.model)

    assert isinstance(other, PricedModel)
    assert isinstance(unknown, PricedModel)
    assert (other.budget, other.price) == (judge.model.budget, Price(input=1, output=1))
    assert unknown.price is None


def request(most: int) -> Request:
    return Request(system="", user="", max_output_tokens=most)


def within(model: Any, budget: Budget, price: Price | None = PRICE) -> Any:
    """The model that a judge within the budget asks."""
    prices = {} if price is None else {model.name: price}
    return with_layers(Judge(model), budget=budget, prices=prices).model


async def settle_all(*calls: Any) -> list[Any]:
    """What each call returned or raised; they run at once."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    await asyncio.wait(tasks)
    return [task.exception() or task.result() for task in tasks]


def refused(outcomes: list[Any]) -> list[bool]:
    return [isinstance(item, ReplyError) and item.because == "budget" for item in outcomes]


def test_a_connection_that_was_refused_costs_nothing():
    """Nothing left this machine; each of four that broke while the server had the request counts in full."""

    async def run(*, up: bool):
        budget = Budget(50)
        async with serve(reset) as server:
            url = server.url if up else "http://127.0.0.1:9/v1"
            model = open_model(f"{url}#m")
            model.transport._sleep = lambda seconds: asyncio.sleep(0)  # type: ignore[attr-defined]
            async with within(model, budget) as priced:
                outcomes = await settle_all(priced.complete(request(4)))
        return type(outcomes[0]), budget.spent

    assert asyncio.run(run(up=False)) == (ModelError, 0.0)
    assert asyncio.run(run(up=True)) == (ModelError, 16.0)


def test_what_broke_off_is_sent_again_only_within_the_budget():
    """The provider may charge for each request it had: two fit, a third would not, and is not sent."""

    async def run():
        inner, outer = Budget(10), Budget(50)
        async with serve(reset) as server:
            model = open_model(f"{server.url}#m")
            model.transport._sleep = lambda seconds: asyncio.sleep(0)  # type: ignore[attr-defined]
            async with within(within(model, inner), outer) as priced:
                outcomes = await settle_all(priced.complete(request(4)))
        return refused(outcomes), len(server.bodies), inner.spent, outer.spent, inner.held + outer.held

    assert asyncio.run(run()) == ([True], 2, 8.0, 8.0, 0.0)
