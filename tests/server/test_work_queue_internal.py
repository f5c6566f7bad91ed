"""The queue of contents that wait to be judged: callers take turns, and none of them fills it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from adjudge.config.server import ServerSettings
from adjudge.server.problem import Problem
from adjudge.server.work_queue import WorkQueue
from adjudge.server.work_thread import WorkThread

pytestmark = pytest.mark.timed


async def yield_to_others() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def reach(check: Callable[[], bool]) -> None:
    """Return once something holds; the time limit of a test ends what never comes to hold."""
    while not check():  # noqa: ASYNC110 - nobody tells of it
        await asyncio.sleep(0.001)


def make_queue(**settings: Any) -> WorkQueue:
    return WorkQueue(ServerSettings(**{"concurrency": 1, "queue": 8, **settings}))


async def work(queue: WorkQueue, caller: str, done: list[str]) -> None:
    async with queue.enter(caller):
        await asyncio.sleep(0)
        done.append(caller)


def test_one_caller_cannot_fill_the_queue():
    """Half of it is left for the others, or what the setting says."""

    async def run(**settings: Any) -> tuple[int, int]:
        queue = make_queue(**settings)
        done: list[str] = []
        async with AsyncExitStack() as held:
            await held.enter_async_context(queue.enter("a"))
            waiting = [asyncio.ensure_future(work(queue, "a", done)) for _ in range(20)]
            others = [asyncio.ensure_future(work(queue, f"b{number}", done)) for number in range(20)]
            await yield_to_others()
            refused = sum(isinstance(item.exception(), Problem) for item in waiting if item.done())
            elsewhere = sum(isinstance(item.exception(), Problem) for item in others if item.done())
        await asyncio.wait([*waiting, *others])
        return 20 - refused, 20 - elsewhere

    assert asyncio.run(run()) == (4, 4)
    assert asyncio.run(run(queue_per_caller=2)) == (2, 6)
    assert asyncio.run(run(queue=1)) == (1, 0)
    assert asyncio.run(run(queue=0)) == (0, 0)


def test_callers_take_turns():
    """Somebody who comes after many requests of another waits for one of them."""

    async def run() -> list[str]:
        queue, done = make_queue(), []
        async with queue.enter("a"):
            waiting = [asyncio.ensure_future(work(queue, caller, done)) for caller in "aaaabc"]
            await yield_to_others()
        await asyncio.wait(waiting)
        assert (queue.running, queue.waiting) == (0, 0)
        return done

    assert asyncio.run(run()) == ["a", "b", "c", "a", "a", "a"]


def test_who_gives_up_leaves_no_place_behind():
    """Neither while waiting nor in the moment in which its turn comes."""

    async def run() -> None:
        queue, done = make_queue(), []
        for early in (True, False):
            async with queue.enter("a"):
                waiting = [asyncio.ensure_future(work(queue, "a", done)) for _ in range(3)]
                await yield_to_others()
                if early:
                    waiting[0].cancel()
                    await yield_to_others()
            if not early:
                waiting[0].cancel()
            await asyncio.wait(waiting)
            assert (queue.running, queue.waiting) == (0, 0)

    asyncio.run(run())


@pytest.mark.parametrize("turns", range(6))
def test_a_place_is_given_back_from_another_thread(turns: int):
    """Also where the request is cancelled there, at any moment."""

    async def run() -> None:
        queue, thread, done = make_queue(), WorkThread(), []
        async with queue.enter("a"):
            waiting = [asyncio.ensure_future(thread.run(work(queue, "b", done))) for _ in range(3)]
            await reach(lambda: queue.waiting == 3)
        for _ in range(turns):
            await asyncio.sleep(0)
        waiting[0].cancel()
        waiting[2].cancel()
        await asyncio.wait(waiting)
        await reach(lambda: not queue.running and not queue.waiting)
        assert "b" in done
        await thread.aclose()

    asyncio.run(run())


def test_what_stops_refuses_those_that_wait():
    """With 503, from whatever thread."""

    async def run() -> None:
        queue, thread, done = make_queue(), WorkThread(), []
        async with queue.enter("a"):
            waiting = [
                asyncio.ensure_future(work(queue, "a", done)),
                asyncio.ensure_future(thread.run(work(queue, "b", done))),
            ]
            await reach(lambda: queue.waiting == 2)
            queue.stop()
            await asyncio.wait(waiting)
        assert [getattr(item.exception(), "status_code", None) for item in waiting] == [503, 503]
        with pytest.raises(Problem):
            await work(queue, "c", done)
        await thread.aclose()

    asyncio.run(run())
