"""The pool of a run: how many are under way, when the next begins, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Any

import pytest

from adjudge import AdjudgeError
from adjudge.runs.pool import READ_AHEAD, STARTS_PER_TURN, Pool
from kit.loops import in_loop, run_virtual
from kit.patience import HANG

pytestmark = pytest.mark.timed


class Fixed:
    def __init__(self, current: int) -> None:
        self.current = current


class Source:
    """Numbers, one after the other; it counts how many were read."""

    def __init__(self, number: int, *, fails: Exception | None = None) -> None:
        self.number, self.fails = number, fails
        self.read = 0

    async def units(self) -> AsyncGenerator[int, None]:
        for unit in range(self.number):
            self.read += 1
            yield unit
        if self.fails is not None:
            raise self.fails


async def take_all(pool: Pool[int, int], taken: list[int] | None = None) -> list[int]:
    taken = [] if taken is None else taken
    while some := await pool.take_results():
        taken += some
    return taken


Finish = Callable[[Any], None]


@in_loop
async def test_everything_is_taken_once_in_the_order_it_is_finished():
    """Ten units with room for three come out once each."""

    async def work(unit: int, finish: Finish) -> None:
        await asyncio.sleep(0)
        finish(unit)

    assert await take_all(Pool(Source(10).units(), work, Fixed(3))) == list(range(10))


@in_loop
async def test_a_unit_is_under_way_until_it_is_settled():
    """A coroutine that has ended and only handed its item in holds its place, so nothing takes it."""
    handed: list[tuple[int, Finish]] = []

    async def work(unit: int, finish: Finish) -> None:
        handed.append((unit, finish))

    pool = Pool(Source(9).units(), work, Fixed(2))
    for finished in range(9):
        for _ in range(10):
            await asyncio.sleep(0)
        assert [unit for unit, _ in handed] == list(range(min(finished + 2, 9)))
        unit, finish = handed[finished]
        finish(unit)
    assert await take_all(pool) == list(range(9))


@in_loop
async def test_few_are_begun_in_one_turn():
    """Room for many is filled over several turns of the event loop: what begins together is answered together."""
    begun: list[int] = []

    async def work(unit: int, finish: Finish) -> None:
        begun.append(unit)
        await asyncio.sleep(0.01)
        finish(unit)

    pool = Pool(Source(100).units(), work, Fixed(100))
    before = 0
    while len(begun) < 100:
        await asyncio.sleep(0)
        assert len(begun) - before <= STARTS_PER_TURN
        before = len(begun)
    assert sorted(await take_all(pool)) == list(range(100))


@in_loop
async def test_not_much_more_is_read_than_is_begun():
    """A source is read as far ahead as may be under way, and never more than ``READ_AHEAD``."""
    source = Source(10_000)

    async def work(unit: int, finish: Finish) -> None:
        await asyncio.Event().wait()

    for limit in (5, 500):
        pool = Pool(source.units(), work, Fixed(limit))
        for _ in range(200):
            await asyncio.sleep(0)
        assert source.read == limit + min(limit, READ_AHEAD)
        source.read = 0
        await pool.stop()


@in_loop
async def test_winding_down_finishes_what_is_under_way_and_leaves_the_rest():
    """Nothing more is begun; what was read and not begun is told."""
    going = asyncio.Event()

    async def work(unit: int, finish: Finish) -> None:
        await going.wait()
        finish(unit)

    pool = Pool(Source(10).units(), work, Fixed(3))
    for _ in range(10):
        await asyncio.sleep(0)
    pool.wind_down()
    going.set()
    assert await take_all(pool) == [0, 1, 2]
    assert pool.unstarted_count == 3


@in_loop
async def test_winding_down_with_nobody_taking_ends():
    """A pool that waits for its items to be taken, and is told to end, ends once they are."""

    async def work(unit: int, finish: Finish) -> None:
        finish(unit)

    pool = Pool(Source(1_000).units(), work, Fixed(50))
    await asyncio.sleep(0.05)
    pool.wind_down()
    async with asyncio.timeout(HANG):
        taken = await take_all(pool)
    assert taken == list(range(len(taken)))
    assert 0 < len(taken) < 1_000


@pytest.mark.parametrize("odd", [0, -3, 0.5])
@in_loop
async def test_a_limit_of_less_than_one_is_one(odd: Any):
    """It would otherwise wait for itself to rise."""

    async def work(unit: int, finish: Finish) -> None:
        finish(unit)

    assert await take_all(Pool(Source(5).units(), work, Fixed(odd))) == list(range(5))


@in_loop
async def test_a_limit_that_raises_ends_the_run_and_not_what_is_under_way():
    """What was begun is finished, and then it is said what was wrong."""

    class Broken:
        asked = 0

        @property
        def current(self) -> int:
            self.asked += 1
            if self.asked > 8:
                raise RuntimeError("no idea")
            return 3

    async def work(unit: int, finish: Finish) -> None:
        await asyncio.sleep(0.01)
        finish(unit)

    taken: list[int] = []
    pool = Pool(Source(50).units(), work, Broken())
    async with asyncio.timeout(HANG):
        with pytest.raises(RuntimeError, match="no idea"):
            await take_all(pool, taken)
    assert taken == list(range(len(taken)))
    assert 1 <= len(taken) < 50


@pytest.mark.parametrize("fault", ["raises", "settles", "source"])
@in_loop
async def test_an_error_is_raised_when_all_under_way_is_finished(fault: str):
    """What a unit raises, or is settled with, or the source raises, takes nothing with it that was asked."""
    error = ValueError("broken")

    async def work(unit: int, finish: Finish) -> None:
        if unit == 2 and fault == "raises":
            raise error
        if unit == 2 and fault == "settles":
            finish(error)
            return
        await asyncio.sleep(0.01)
        finish(unit)

    source = Source(5, fails=error if fault == "source" else None)
    pool = Pool(source.units(), work, Fixed(4))
    taken: list[int] = []
    with pytest.raises(ValueError, match="broken"):
        await take_all(pool, taken)
    assert set(taken) >= {0, 1, 3}


@pytest.mark.slow
@in_loop
async def test_a_limit_that_rises_is_noticed():
    """Nobody tells the pool of it; it looks again by itself, before the slow one is finished."""
    limit, begun = Fixed(1), []
    slow = asyncio.Event()

    async def work(unit: int, finish: Finish) -> None:
        begun.append(unit)
        if unit == 0:
            await slow.wait()
        finish(unit)

    pool = Pool(Source(3).units(), work, limit)
    await asyncio.sleep(0.01)
    assert begun == [0]
    limit.current = 3
    async with asyncio.timeout(HANG):
        while len(begun) < 3:  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.05)
    slow.set()
    assert sorted(await take_all(pool)) == [0, 1, 2]


@pytest.mark.parametrize("first", ["handed in", "cancelled"])
@in_loop
async def test_a_place_is_given_back_once(first: str):
    """A unit that cancels its own task when it has handed its item in counts once, whichever is heard of first."""
    now = most = 0

    async def work(unit: int, finish: Finish) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        loop = asyncio.get_running_loop()

        def tell() -> None:
            nonlocal now
            now -= 1
            finish(unit)

        if unit == 1:
            loop.call_soon(tell) if first == "handed in" else loop.call_later(0.01, tell)
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
        else:
            loop.call_later(0.005, tell)

    pool, taken = Pool(Source(12).units(), work, Fixed(2)), list[int]()
    if first == "handed in":
        assert sorted(await take_all(pool, taken)) == list(range(12))
    else:
        with pytest.raises(AdjudgeError, match="cancelled from outside"):
            await take_all(pool, taken)
        assert taken == [0]
    assert most == 2


@in_loop
async def test_stopping_leaves_nothing_running():
    """Everything under way is cancelled and gone when ``stop`` returns."""
    cancelled: list[int] = []

    async def work(unit: int, finish: Finish) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(unit)
            raise

    pool = Pool(Source(20).units(), work, Fixed(6))
    for _ in range(20):
        await asyncio.sleep(0)
    before = len(asyncio.all_tasks())
    await pool.stop()
    assert sorted(cancelled) == list(range(6))
    assert len(asyncio.all_tasks()) == before - 7


def test_stopping_takes_a_second_where_nobody_listens():
    """A source and a unit that ignore their cancellation are let go, so a run can be ended."""

    async def ignore(seconds: float) -> None:
        until = asyncio.get_running_loop().time() + seconds
        while (left := until - asyncio.get_running_loop().time()) > 0:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(left)

    async def units() -> AsyncGenerator[int, None]:
        yield 0
        await ignore(50)
        yield 1

    async def work(unit: int, finish: Finish) -> None:
        begun.append(unit)
        await ignore(50)

    async def main() -> float:
        pool = Pool(units(), work, Fixed(6))
        await asyncio.sleep(1)
        await pool.stop()
        took = asyncio.get_running_loop().time()
        await asyncio.sleep(100)  # both have ended by then, and nobody else was begun
        return took

    begun: list[int] = []
    assert (run_virtual(main()), begun) == (2.0, [0])


@pytest.mark.parametrize("state", ["wound down", "a unit that broke"])
@in_loop
async def test_a_source_that_has_nothing_to_say_holds_up_no_end(state: str):
    """Whoever reads a queue that is empty for hours can end, and learns at once of what went wrong."""
    silent = asyncio.Event()

    async def units() -> AsyncGenerator[int, None]:
        yield 0
        yield 1
        if state == "wound down":
            asyncio.get_running_loop().call_soon(pool.wind_down)
        await silent.wait()

    async def work(unit: int, finish: Finish) -> None:
        await asyncio.sleep(0.01)
        finish(ValueError("broken") if unit and state != "wound down" else unit)

    pool, taken = Pool(units(), work, Fixed(4)), list[int]()
    async with asyncio.timeout(HANG):
        try:
            await take_all(pool, taken)
        except ValueError:
            assert state != "wound down"
        else:
            assert state == "wound down"
        await pool.stop()
    assert taken == ([0, 1] if state == "wound down" else [0])


@pytest.mark.parametrize("fault", [asyncio.CancelledError, GeneratorExit, BaseException])
@in_loop
async def test_a_source_that_breaks_off_is_an_error_and_no_end(fault: type[BaseException]):
    """One that is cancelled by somebody else would look as if it had been left in order, with half of it judged."""

    async def units() -> AsyncGenerator[int, None]:
        yield 0
        raise fault

    async def work(unit: int, finish: Finish) -> None:
        await asyncio.sleep(0.01)
        finish(unit)

    taken: list[int] = []
    async with asyncio.timeout(HANG):
        with pytest.raises(AdjudgeError, match=f"the data set broke off with {fault.__name__}; what was judged"):
            await take_all(Pool(units(), work, Fixed(4)), taken)
    assert taken == [0]


@in_loop
async def test_nothing_is_begun_after_a_limit_has_raised():
    """The one that asked for its place is not begun either."""
    begun: list[int] = []

    class Broken:
        @property
        def current(self) -> int:
            raise RuntimeError("no idea")

    async def work(unit: int, finish: Finish) -> None:
        begun.append(unit)
        finish(unit)

    async with asyncio.timeout(HANG):
        with pytest.raises(RuntimeError, match="no idea"):
            await take_all(Pool(Source(5).units(), work, Broken()))
    assert begun == []
