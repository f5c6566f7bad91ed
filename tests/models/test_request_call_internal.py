"""The terms of a request: who hears of the answers, who pays for another try, whether a kept reply may answer."""

from __future__ import annotations

import ast
import asyncio
import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import adjudge
from adjudge import Budget, Judge, JudgeChain, Model, Question, ReplyCache
from adjudge.models import Call, Price, RecordingModel, Reply, Request
from adjudge.models.model import UNBOUND
from adjudge.models.price import PricedModel
from adjudge.models.rate_limit import Pace, PacedModel
from adjudge.models.replies.cache import CachedModel
from adjudge.models.replies.key import describe_call, describe_request, make_call_key, make_key
from adjudge.models.replies.run_replies import RunReplyModel
from adjudge.models.wrapper import WrapperModel
from adjudge.runs.batch.batched_model import BatchedModel, PromptModel
from adjudge.runs.estimate.metered_model import MeteredModel
from adjudge.runs.store import RunStore
from kit import house


async def _pay() -> None:
    """What a budget would be asked."""


CALL = Call(pace=Pace(4), pay_again=_pay, anew=True)

ASKED = Request(system="s", user="Is <abcdefgh> good?", token="abcdefgh", call=CALL)


class Heard:
    """A model that keeps the requests it is asked."""

    name = "heard"
    identity = {"given": "1"}  # noqa: RUF012

    def __init__(self) -> None:
        self.requests: list[Request] = []

    async def complete(self, request: Request, /) -> Reply:
        self.requests.append(request)
        return Reply(text="yes")


class Careless(WrapperModel):
    """A wrapper that makes a new request and forgets its terms."""

    async def complete(self, request: Request, /) -> Reply:
        return await self.model.complete(Request(system=request.system, user=request.user + " "))


Make = Callable[[Model, Path], Model]

WRAPPERS: dict[type[WrapperModel], Make] = {
    CachedModel: lambda model, folder: CachedModel(model, ReplyCache(folder / "cache.sqlite")),
    RunReplyModel: lambda model, folder: RunReplyModel(model, RunStore(folder).create(), resumed=True),
    PacedModel: lambda model, _: PacedModel(model, Pace(2)),
    PricedModel: lambda model, _: PricedModel(model, lambda _: Price(input=1, output=1), budget=Budget(9)),
    PromptModel: lambda model, _: PromptModel(model, asyncio.Semaphore(1)),
    RecordingModel: lambda model, folder: RecordingModel(model, folder / "r.jsonl"),
}
"""Every wrapper of ours that asks the model it wraps, and how to make one."""

ANSWERING = {BatchedModel, MeteredModel}
"""Wrappers that answer out of batches or not at all; a test of runs by batch shows what reaches a budget there."""

OWN = {PacedModel: {"pace"}, PricedModel: {"pay_again"}}
"""The terms that a wrapper sets itself."""


def find_lost(wrap: Make, folder: Path) -> set[str]:
    """Which terms of a request do not arrive behind a wrapper as they were."""
    inner = Heard()
    asyncio.run(wrap(inner, folder).complete(ASKED))
    [request] = inner.requests
    return {name for name in Call.__dataclass_fields__ if getattr(request.call, name) is not getattr(CALL, name)}


def list_wrappers(kind: type[WrapperModel]) -> Iterator[type[WrapperModel]]:
    """Every wrapper that the package has, in whatever module it stands."""
    for wrapper in kind.__subclasses__():
        yield from list_wrappers(wrapper)
        if wrapper.__module__.startswith("adjudge."):
            yield wrapper


def test_every_wrapper_stands_in_the_table(require):
    """A wrapper that is added later is tried as well, or this says that it is not."""
    for item in pkgutil.walk_packages(adjudge.__path__, "adjudge."):
        if item.name.startswith("adjudge.integrations."):  # whose packages are large, and may not be installed
            assert "WrapperModel" not in house.modules()[item.name].read_text("utf-8")
        elif not item.name.endswith("__main__"):
            try:
                importlib.import_module(item.name)
            except ModuleNotFoundError as error:  # without the packages of the server, or of MCP
                assert item.name.startswith(("adjudge.server", "adjudge.mcp."))
                require(item.name, None, str(error))

    assert set(list_wrappers(WrapperModel)) == set(WRAPPERS) | ANSWERING


@pytest.mark.parametrize("kind", WRAPPERS, ids=lambda kind: kind.__name__)
def test_a_wrapper_hands_on_the_terms_it_was_given(kind: type[WrapperModel], tmp_path: Path):
    """Through any of them the pace hears, the budget is asked, and whoever asks anew does."""
    assert find_lost(WRAPPERS[kind], tmp_path) == OWN.get(kind, set())


def test_a_wrapper_that_forgets_the_terms_is_found(tmp_path: Path):
    """The test above can fail: one that makes a new request loses all three."""
    assert find_lost(lambda model, _: Careless(model), tmp_path) == {"pace", "pay_again", "anew"}


@pytest.mark.slow
def test_whoever_makes_a_request_says_its_terms():
    """No place in the package builds a request, or a question of another, and leaves out what it was asked under."""
    forgetful = [
        f"{path.name}:{node.lineno}"
        for path in sorted(house.PACKAGE.rglob("*.py"))
        if "from starlette.requests import Request" not in path.read_text()  # one of the web, of that name
        for node in house.nodes(path)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Request"
        if "call" not in {item.arg for item in node.keywords}
    ]

    assert forgetful == []


def test_terms_are_in_no_digest_key_or_recording():
    """Asked under other terms, it is the same request: found again, and written as it was."""
    plain = replace(ASKED, call=UNBOUND)

    assert plain == ASKED
    assert repr(plain) == repr(ASKED)
    assert describe_request(plain) == describe_request(ASKED)
    assert make_key("m", describe_request(plain)) == make_key("m", describe_request(ASKED))
    assert make_call_key(describe_call(Heard(), plain)) == make_call_key(describe_call(Heard(), ASKED))


def test_a_question_takes_its_terms_to_every_seat():
    """At any depth, and in the second try as in the first; the question stays the same."""
    models = [Heard(), Heard()]
    seats: list[Any] = [Judge(model, name=str(place)) for place, model in enumerate(models)]
    chain = JudgeChain([seats[0], JudgeChain([seats[1]])], strategy="consensus", stop_early=False)
    plain = _make_question(UNBOUND)
    question = _make_question(CALL)

    asyncio.run(chain.ask(question))

    assert question == plain
    assert [[request.call for request in model.requests] for model in models] == [[CALL, CALL]] * 2


def _make_question(call: Call) -> Question:
    from adjudge.judges.evaluate import make_prompt

    return replace(make_prompt("Is this safe?"), call=call)


def test_an_outer_budget_pays_for_the_try_of_an_inner_one():
    """A call behind two budgets is held in both again before it is sent again."""
    asked: list[str] = []

    async def outer() -> None:
        asked.append("outer")

    class Broken(Heard):
        async def complete(self, request: Request, /) -> Reply:
            assert request.call.pay_again is not None
            await request.call.pay_again()
            return await super().complete(request)

    budget = Budget(9)
    model = PricedModel(Broken(), lambda _: Price(input=1, output=1), budget=budget)
    asyncio.run(model.complete(replace(ASKED, call=Call(pay_again=outer))))

    assert asked == ["outer"]
    assert budget.spent > 0
