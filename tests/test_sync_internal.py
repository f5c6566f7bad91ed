"""The private loop behind synchronous calls."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from adjudge import AdjudgeError, Judge, JudgeChain, JudgeResult, UsageError, open_model
from adjudge.sync import run_sync
from adjudge.testing import ScriptedModel
from kit.cli import serve
from kit.judges import scores
from kit.patience import HANG

pytestmark = pytest.mark.timed


GOOD = scores(0.9)


def test_every_call_uses_the_same_loop_and_thread():
    """So sessions are shared; nothing is started for a second call."""

    async def where():
        return threading.current_thread(), asyncio.get_running_loop()

    assert run_sync(where()) == run_sync(where())
    assert run_sync(where())[0] is not threading.current_thread()
    assert run_sync(where())[0].daemon


def test_a_sync_call_from_inside_the_private_loop_is_refused():
    """It would wait for itself for ever."""

    async def inner():
        Judge(ScriptedModel(GOOD)).evaluate_sync("Hello.", criteria="Good.")

    with pytest.raises(UsageError, match="from inside adjudge's own loop; await evaluate"):
        run_sync(inner())


def test_an_interrupt_cancels_the_work():
    """What the caller gave up is not left running and paid for."""
    started, stopped = threading.Event(), threading.Event()

    class Interrupted(Exception):
        pass

    async def hang():
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    class Future:
        """Stands in for Ctrl-C: waiting for the result is what gets interrupted."""

        def __init__(self, inner):
            self.inner = inner

        def result(self):
            started.wait(timeout=HANG)
            raise Interrupted

        def cancel(self):
            return self.inner.cancel()

    submit = asyncio.run_coroutine_threadsafe
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio, "run_coroutine_threadsafe", lambda work, loop: Future(submit(work, loop)))
        with pytest.raises(Interrupted):
            run_sync(hang())
    assert stopped.wait(timeout=HANG)


def within(seconds: float, work: Callable[[], Any]) -> Any:
    """What a call comes to in a thread of its own; a hang fails the test instead of holding it up."""
    came_to: list[Any] = []

    def run() -> None:
        try:
            came_to.append(work())
        except BaseException as error:  # noqa: BLE001 - it is what is looked at
            came_to.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert came_to, f"it hangs for {seconds} s"
    return came_to[0]


def raises(error: BaseException) -> Callable[[], None]:
    def end() -> None:
        raise error

    return end


def stop() -> None:
    asyncio.get_running_loop().stop()


def stop_and_close() -> None:
    """``close`` is refused while the loop runs, so somebody else's thread tries until it is taken."""
    loop = asyncio.get_running_loop()

    def close() -> None:
        while not loop.is_closed():
            with suppress(RuntimeError, AttributeError, ValueError):  # somebody else may be closing it at this moment
                loop.close()

    loop.stop()
    threading.Thread(target=close, daemon=True).start()


def stop_from_a_thread() -> None:
    loop = asyncio.get_running_loop()
    threading.Thread(target=loop.call_soon_threadsafe, args=(loop.stop,)).start()


def end_in_a_callback() -> None:
    asyncio.get_running_loop().call_soon(raises(KeyboardInterrupt()))


ENDS = [
    raises(KeyboardInterrupt()),
    raises(SystemExit(3)),
    stop,
    stop_and_close,
    stop_from_a_thread,
    end_in_a_callback,
]


ends = pytest.mark.parametrize(
    "end", ENDS, ids=["interrupt", "exit", "stop", "stop and close", "stop from a thread", "interrupt in a callback"]
)


def judges_that(end: Callable[[], None]) -> list[tuple[str, Callable[[], Any]]]:
    """Calls in which something of somebody else's ends the loop: a model, a judge, a hook, and a task of theirs."""

    async def model(prompt: str) -> str:
        end()
        await asyncio.sleep(0.05)
        return '{"safe": true}'

    class Own:
        name = "own"

        async def ask(self, question: object, /) -> Any:
            await model("")

    async def in_a_task() -> str:
        return await asyncio.create_task(model(""))

    def hook(result: object) -> None:
        end()

    quiet = {"token": False, "reask": 0}
    return [
        ("model", lambda: Judge(model, **quiet).ask_sync("Safe?")),
        ("seat", lambda: JudgeChain([Judge(model, **quiet)]).ask_sync("Safe?")),
        ("judge", lambda: JudgeChain([Own()]).ask_sync("Safe?")),
        ("hook", lambda: Judge(ScriptedModel('{"safe": true}'), on_result=hook).ask_sync("Safe?")),
        ("coroutine", lambda: run_sync(model(""))),
        ("task", lambda: run_sync(in_a_task())),
    ]


def is_clear(outcome: object) -> bool:
    """Whether a call ended with a result, or with the error that says what has happened; never with an exit."""
    return isinstance(outcome, JudgeResult | str) or (
        isinstance(outcome, AdjudgeError) and "event loop" in str(outcome)
    )


# What was under way on a loop that somebody closed is collected at any later moment, and says so on standard error.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@ends
def test_what_ends_the_loop_fails_who_waits_and_not_who_comes_next(end):
    """The call itself, another under way meanwhile and the next: none hangs, and the next one judges."""

    async def wait() -> None:
        waiting.set()
        await asyncio.sleep(60)

    for where, call in judges_that(end):
        waiting = threading.Event()
        others: list[Any] = []
        other = threading.Thread(target=lambda: others.append(within(HANG, lambda: run_sync(wait()))), daemon=True)  # noqa: B023
        other.start()
        assert waiting.wait(HANG)
        outcome = within(HANG, call)
        assert is_clear(outcome), (where, outcome)
        if isinstance(outcome, AdjudgeError):
            other.join(HANG)
            assert [is_clear(item) for item in others] == [True], (where, others)
            assert any(word in str(outcome) for word in ("KeyboardInterrupt", "SystemExit", "stopped"))
        after = [
            within(HANG, lambda: Judge(ScriptedModel(GOOD)).evaluate_sync("Hello.", criteria="Good.")) for _ in "12"
        ]
        # Where a thread stops the loop, that may be while the first of the two is under way.
        assert is_clear(after[0]) if end is stop_from_a_thread else after[0].passed, where
        assert after[1].passed, where


def test_many_threads_survive_a_loop_that_ends_again_and_again():
    """Every call comes to an end, and those that asked nothing wrong are judged or told to call again."""

    async def end_it() -> None:
        stop()

    def judge() -> list[Any]:
        answers: list[Any] = []
        for _ in range(20):
            try:
                answers.append(Judge(ScriptedModel(GOOD)).evaluate_sync("Hello.", criteria="Good."))
            except AdjudgeError as error:
                answers.append(error)
        return answers

    threads = [threading.Thread(target=lambda: outcomes.extend(within(HANG, judge)), daemon=True) for _ in range(4)]
    outcomes: list[Any] = []
    for thread in threads:
        thread.start()
    for _ in range(10):
        assert is_clear(within(HANG, lambda: run_sync(end_it())) or "")
    for thread in threads:
        thread.join(HANG)
    assert len(outcomes) == 80
    assert all(is_clear(answers) for answers in outcomes)


def test_a_new_loop_has_connections_of_its_own():
    """A session of the loop that ended is neither used by the next call nor left open."""
    with serve() as server:
        judge = Judge(open_model(server.spec), timeout=HANG)
        first = within(HANG, lambda: judge.evaluate_sync("x", criteria="Good."))
        within(HANG, lambda: run_sync(stop_now()))
        second = within(HANG, lambda: judge.evaluate_sync("x", criteria="Good."))
    assert [first.outcome, second.outcome] == ["passed", "passed"]


async def stop_now() -> None:
    stop()
