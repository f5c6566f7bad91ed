"""What several callers hand in is written in groups: in order, by one writer at a time, and nothing is missed."""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Thread

import pytest

from adjudge.group_commit import GroupCommit, resolve_futures
from kit.loops import in_loop


def test_a_group_is_all_that_waits_in_its_order():
    """The first caller is to start a writer; the others are written by it."""
    group = GroupCommit[str]()
    assert [group.hand_in(item) for item in "abc"] == [True, False, False]
    assert (group.take(), group.hand_in("d"), group.take()) == (["a", "b", "c"], False, ["d"])
    assert group.is_writing()
    assert (group.take(), group.is_writing(), group.hand_in("e")) == ([], False, True)


def test_a_group_has_an_end_where_its_user_sets_one():
    """What does not fit waits for the next."""
    group = GroupCommit[int](count=lambda waiting: min(len(waiting), 2))
    for item in range(5):
        group.hand_in(item)
    assert [group.take() for _ in range(4)] == [[0, 1], [2, 3], [4], []]


def test_many_threads_lose_nothing_and_meet_no_second_writer():
    """However they fall together with the end of a writer, each item is written once, in its caller's order."""
    group = GroupCommit[tuple[int, int]]()
    written = list[tuple[int, int]]()

    def write() -> None:
        while together := group.take():
            written.extend(together)

    def begin() -> None:
        started.append(pool.submit(write))

    def call(caller: int) -> None:
        for number in range(2_000):
            if group.hand_in((caller, number)):
                begin()

    switch, started = sys.getswitchinterval(), []
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            callers = [Thread(target=call, args=(caller,)) for caller in range(4)]
            for thread in callers:
                thread.start()
            for thread in callers:
                thread.join()
    finally:
        sys.setswitchinterval(switch)

    for future in started:
        future.result()
    assert [[number for writer, number in written if writer == caller] for caller in range(4)] == [
        list(range(2_000))
    ] * 4


@in_loop
async def test_everybody_is_answered_in_their_own_loop_and_one_who_left_is_not():
    """A value, an error, one who was cancelled, and one whose loop is closed."""
    loop = asyncio.get_running_loop()
    answered, refused, left = [loop.create_future() for _ in range(3)]
    closed = asyncio.new_event_loop()
    gone = closed.create_future()
    closed.close()
    left.cancel()
    answers = [(gone, 0, None), (answered, 7, None), (left, 8, None), (refused, None, ValueError("full"))]
    await asyncio.to_thread(resolve_futures, answers)
    assert await answered == 7
    with pytest.raises(ValueError, match="full"):
        await refused
    assert left.cancelled()
