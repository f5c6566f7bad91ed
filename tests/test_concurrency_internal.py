"""Many things worked on at once and handed out in order: what one that takes long holds up, and what it does not."""

from __future__ import annotations

import asyncio

import pytest

from adjudge.concurrency import AHEAD, map_concurrently, work_through
from kit.loops import run_virtual


def test_a_slow_one_holds_up_the_results_and_not_the_judging():
    """While one takes ten seconds, the others are judged beside it; the order stays."""

    async def wait(seconds):
        await asyncio.sleep(seconds)
        return seconds

    async def main():
        return [item async for item in work_through([10.0, *[1.0] * 18], wait, 3)], asyncio.get_running_loop().time()

    assert run_virtual(main()) == ([10.0, *[1.0] * 18], 10.0)


def test_one_that_never_ends_is_not_run_away_from():
    """So many rounds are judged ahead of it; what is finished meanwhile has to be kept."""
    taken = []

    async def wait(number):
        await asyncio.sleep(1.0 if number else 10**6)

    async def main():
        def endless():
            for number in range(10**9):
                taken.append(number)
                yield number

        many = work_through(endless(), wait, 4)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1000):
                await anext(many)
        await many.aclose()

    run_virtual(main())
    assert len(taken) == 4 * AHEAD


def test_whoever_takes_his_time_does_not_keep_the_places_empty():
    """Between two results that wait, what has room is begun."""
    begun = []

    async def wait(number):
        begun.append(number)
        await asyncio.sleep(0.0 if number else 5.0)

    async def main():
        many = work_through(range(100), wait, 2)
        await anext(many)
        waiting = len(begun)
        await asyncio.sleep(1)
        await anext(many)
        await asyncio.sleep(1)
        await many.aclose()
        return waiting

    assert run_virtual(main()) < len(begun)


# All of them, as a list


def give_up(item: object) -> str:
    return f"gave up {item}"


def test_every_item_has_its_place_whenever_it_ends():
    """The order is that of the items; one that takes long holds up no other."""

    async def wait(seconds):
        await asyncio.sleep(seconds)
        return seconds

    async def main():
        done = await map_concurrently([10.0, *[1.0] * 18], wait, 3, give_up=give_up)
        return done, asyncio.get_running_loop().time()

    assert run_virtual(main()) == ([10.0, *[1.0] * 18], 10.0)


@pytest.mark.parametrize("concurrency", [1, 3, 10**9])
def test_no_more_are_under_way_than_was_said(concurrency: int):
    """Items are taken when there is room, and there are no more workers than items."""
    under_way, most, taken = 0, 0, []

    async def work(number):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        assert len(taken) <= number + concurrency
        await asyncio.sleep(1)
        under_way -= 1
        return number

    def count():
        for number in range(7):
            taken.append(number)
            yield number

    assert run_virtual(map_concurrently(count(), work, concurrency, give_up=give_up)) == list(range(7))
    assert most == min(concurrency, 7)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_what_is_cancelled_from_within_is_given_up(concurrency: int):
    """Nobody cancelled the work on it: it is not missing, and those after it are worked on."""

    async def work(number):
        if number == 1:
            raise asyncio.CancelledError
        return str(number)

    assert asyncio.run(map_concurrently(range(4), work, concurrency, give_up=give_up)) == ["0", "gave up 1", "2", "3"]


def test_where_every_worker_is_gone_the_rest_is_given_up():
    """What cancels the task it runs in ends that worker, and still no item is left out."""

    async def work(number):
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    done = asyncio.run(map_concurrently(range(3), work, 1, give_up=give_up))

    assert done == ["gave up 0", "gave up 1", "gave up 2"]


def test_what_is_raised_ends_the_others_and_is_raised_as_it_is():
    """Not a group of exceptions, which nobody catches by its kind."""
    ended = []

    async def work(number):
        if number == 1:
            raise LookupError("one")
        try:
            await asyncio.sleep(10**6)
        finally:
            ended.append(number)

    with pytest.raises(LookupError, match="one"):
        run_virtual(map_concurrently(range(9), work, 3, give_up=give_up))
    assert sorted(ended) == [0, 2]


def test_who_cancels_it_from_outside_cancels_all():
    """That is nobody's missing result."""
    ended = []

    async def work(number):
        try:
            await asyncio.sleep(10**6)
        finally:
            ended.append(number)

    async def main():
        async with asyncio.timeout(1):
            await map_concurrently(range(9), work, 3, give_up=give_up)

    with pytest.raises(TimeoutError):
        run_virtual(main())
    assert sorted(ended) == [0, 1, 2]
