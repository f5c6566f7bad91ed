"""Requests with a key that are under way, as other requests and other servers on one ledger see them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from adjudge import Ledger
from adjudge.config.server import ServerSettings
from adjudge.formats.times import get_now
from adjudge.server import idempotency
from adjudge.server.problem import Problem


class Desk:
    """Servers on one ledger, under a clock that a test moves."""

    def __init__(self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ledger = ledger
        self.now = get_now()
        self.begun: list[asyncio.Future[Response]] = []
        monkeypatch.setattr(idempotency, "get_now", lambda: self.now)

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    async def begin(self, **settings: Any) -> asyncio.Task[Response]:
        """Send the request, and return once its work waits for an answer."""
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        started = asyncio.Event()

        async def work() -> Response:
            started.set()
            return await answer

        self.begun.append(answer)
        task = asyncio.ensure_future(self._send(work, settings))
        waiting = asyncio.ensure_future(started.wait())
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        assert not task.done()
        return task

    async def ask(self, answer: str, **settings: Any) -> str:
        """Send the request, whose work would answer at once; returns the answer, or the code of the problem."""

        async def work() -> Response:
            return JSONResponse(answer)

        try:
            response = await self._send(work, settings)
        except Problem as problem:
            return str(problem.code)
        return str(json.loads(bytes(response.body)))

    async def _send(self, work: Callable[[], Awaitable[Response]], settings: dict[str, Any]) -> Response:
        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"{}", "more_body": False}

        scope = {"type": "http", "method": "POST", "path": "/v1/x", "headers": [(b"idempotency-key", b"k")]}
        state: Any = SimpleNamespace(ledger=self.ledger, settings=ServerSettings(**settings))
        caller: Any = SimpleNamespace(identity="key:1")
        return await idempotency.answer_once(Request(scope, receive), state, caller, work)


@pytest.fixture(name="play")
def make_play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Desk], Awaitable[None]]], None]:
    def play(story: Callable[[Desk], Awaitable[None]]) -> None:
        async def use() -> None:
            async with Ledger(tmp_path / "adjudge.db") as ledger:
                await story(Desk(ledger, monkeypatch))

        asyncio.run(use())

    return play


@pytest.mark.parametrize("settings", [{"idempotency": 1.0}, {"deadline": 1.0}])
def test_a_request_under_way_is_not_done_twice(play, settings: dict[str, float]):
    """Where answers are kept for less than a deadline, and where another server has a shorter one."""

    async def story(desk: Desk) -> None:
        first = await desk.begin(**(settings if "idempotency" in settings else {}))
        desk.wait(50)
        assert await desk.ask("second", **settings) == "under_way"

        desk.begun[0].set_result(JSONResponse("first"))
        assert bytes((await first).body) == b'"first"'
        assert await desk.ask("second", **settings) == "first"

    play(story)


def test_an_answer_is_kept_from_when_it_was_given(play):
    """However long it took."""

    async def story(desk: Desk) -> None:
        first = await desk.begin(idempotency=10.0)
        desk.wait(50)
        desk.begun[0].set_result(JSONResponse("first"))
        await first
        desk.wait(9)
        assert await desk.ask("second", idempotency=10.0) == "first"
        desk.wait(2)
        assert await desk.ask("second", idempotency=10.0) == "second"

    play(story)


@pytest.mark.parametrize("end", [JSONResponse("first"), RuntimeError("the judge is gone")])
def test_a_request_that_outlives_its_deadline_leaves_the_row_of_the_next_one_alone(play, end: Any):
    """Its answer is not stored over the other's, and what it raises does not make a third try possible."""

    async def story(desk: Desk) -> None:
        first = await desk.begin()
        desk.wait(70)
        second = await desk.begin()
        if isinstance(end, Exception):
            desk.begun[0].set_exception(end)
            with pytest.raises(RuntimeError):
                await first
        else:
            desk.begun[0].set_result(end)
            await first
        assert await desk.ask("third") == "under_way"

        desk.begun[1].set_result(JSONResponse("second"))
        await second
        assert await desk.ask("third") == "second"

    play(story)


def test_a_request_that_failed_may_be_sent_again(play):
    """Nothing is kept of it."""

    async def story(desk: Desk) -> None:
        first = await desk.begin()
        desk.begun[0].set_exception(RuntimeError("the judge is gone"))
        with pytest.raises(RuntimeError):
            await first
        assert await desk.ask("second") == "second"

    play(story)
