"""Threads that synchronous functions are called in."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import threading
import weakref

import pytest

from adjudge import threads
from adjudge.threads import call_in_thread
from kit.patience import HANG, wait_for


def call(*functions):
    """Call functions one after the other in one event loop, and return what they return."""

    async def run():
        return [await call_in_thread(function, name="test") for function in functions]

    return asyncio.run(run())


def test_a_thread_is_used_again():
    """Starting one takes longer than most functions; also a later event loop uses it."""
    first, second = call(threading.get_ident, threading.get_ident)
    (third,) = call(threading.get_ident)

    assert first == second == third != threading.get_ident()


def test_calls_at_once_have_threads_of_their_own():
    """None of them waits for another."""
    barrier = threading.Barrier(5, timeout=HANG)

    def meet():
        barrier.wait()
        return threading.get_ident()

    async def run():
        async with asyncio.TaskGroup() as group:
            return [group.create_task(call_in_thread(meet, name="test")) for _ in range(5)]

    assert len({task.result() for task in asyncio.run(run())}) == 5


def test_a_thread_that_hangs_is_not_used_again():
    """The next call gets another one, and the one that hung is used again when it has returned."""
    release = threading.Event()

    async def run():
        returned = asyncio.Event()
        hanging = asyncio.create_task(call_in_thread(lambda: release.wait(HANG), name="test", on_return=returned.set))
        await asyncio.sleep(0)
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging
        assert await call_in_thread(lambda: "done", name="test") == "done"
        assert not returned.is_set()
        release.set()
        await returned.wait()

    asyncio.run(run())


def make_late_function(release):
    """A function that returns a coroutine once it is released, and the list that gets it."""
    made = []

    async def answer():
        return "yes"

    def make():
        assert release.wait(HANG)
        made.append(answer())
        return made[0]

    return make, made


@pytest.mark.parametrize("is_late", [True, False])
def test_a_coroutine_that_nobody_awaits_is_closed(is_late: bool):
    """It came after the caller was cancelled, or at that moment; Python would warn that it was never awaited."""
    release = threading.Event()
    make, made = make_late_function(release)

    async def run():
        returned = asyncio.Event()
        calling = asyncio.create_task(call_in_thread(make, name="test", on_return=returned.set))
        await asyncio.sleep(0)
        if is_late:
            calling.cancel()
            await asyncio.sleep(0)
        release.set()
        await returned.wait()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling

    asyncio.run(run())

    assert inspect.getcoroutinestate(made[0]) == inspect.CORO_CLOSED


def test_a_coroutine_that_comes_after_the_loop_was_closed_is_closed():
    """As when a program ends while a function that was given up still works."""
    release = threading.Event()
    make, made = make_late_function(release)

    async def run():
        calling = asyncio.create_task(call_in_thread(make, name="test"))
        await asyncio.sleep(0)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling

    asyncio.run(run())
    release.set()

    wait_for(lambda: made and inspect.getcoroutinestate(made[0]) == inspect.CORO_CLOSED)


def test_an_idle_thread_ends(monkeypatch):
    """After a while without a call."""
    monkeypatch.setattr(threads, "IDLE_SECONDS", 0.01)
    monkeypatch.setattr(threads, "_pool", threads._Pool())
    (thread,) = call(threading.current_thread)
    thread.join(HANG)

    assert not thread.is_alive()
    assert call(lambda: "again") == ["again"]


def test_what_a_call_was_given_is_free_after_it():
    """An idle thread holds nothing of the last call."""

    class Large:
        def __call__(self):
            return None

    large = Large()
    watched = weakref.ref(large)
    call(large)
    del large

    def is_free() -> bool:
        gc.collect()
        return watched() is None

    wait_for(is_free)


@pytest.mark.parametrize("raised", [ValueError("boom"), SystemExit(3), KeyboardInterrupt()], ids=repr)
def test_what_a_function_raises_is_raised_where_it_is_awaited(raised):
    """And the thread goes on to the next call."""

    def fails():
        raise raised

    with pytest.raises(type(raised)):
        call(fails)
    assert call(lambda: 1) == [1]


@pytest.mark.integration
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_the_child_of_a_fork_starts_threads_of_its_own():
    """The parent's threads do not exist there; waiting for one would never end."""
    call(lambda: None)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if call(lambda: 1) == [1] else 1
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
