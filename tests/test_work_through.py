"""Many things worked on at once and handed out in order: what one that takes long holds up, and what it does not."""

from __future__ import annotations

import asyncio

import pytest

from adjudge.concurrency import AHEAD, work_through
from virtual_clock import run_virtual


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
