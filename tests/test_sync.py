"""The one door for callers without an event loop."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import threading

import pytest

from adjudge import Judge, JudgeChain, UsageError
from adjudge._sync import run_sync
from adjudge.testing import ScriptedModel
from judge_support import scores

GOOD = scores(0.9)


def test_a_judge_and_a_chain_answer_without_a_loop():
    """The result is the same as that of the coroutine."""
    for judge in (Judge(ScriptedModel(GOOD)), JudgeChain([ScriptedModel(GOOD)])):
        assert judge.evaluate_sync("Hello.", criteria="Good.").passed


def test_it_works_inside_a_running_loop():
    """As in a notebook; the running loop is left as it is."""

    async def main():
        loop = asyncio.get_running_loop()
        result = Judge(ScriptedModel(GOOD)).evaluate_sync("Hello.", criteria="Good.")
        return result, asyncio.get_running_loop() is loop

    result, same = asyncio.run(main())
    assert (result.passed, same) == (True, True)


def test_every_call_uses_the_same_loop_and_thread():
    """So sessions are shared; nothing is started for a second call."""

    async def where():
        return threading.current_thread(), asyncio.get_running_loop()

    assert run_sync(where()) == run_sync(where())
    assert run_sync(where())[0] is not threading.current_thread()
    assert run_sync(where())[0].daemon


def test_many_threads_may_call_at_once():
    """None waits for another's judge."""
    everybody = threading.Barrier(8)

    def judge_function(prompt: str) -> str:
        everybody.wait(timeout=20)  # breaks unless all eight are judged at the same time
        token = prompt.rpartition('"token": "')[2][:8]
        return f'{{"token": "{token}", "criteria": [{{"name": "criteria", "score": 1}}]}}'

    outcomes = []
    judge = Judge(judge_function, reask=0, structured="text")
    calls = [
        threading.Thread(target=lambda: outcomes.append(judge.evaluate_sync("x", criteria="Good.").outcome))
        for _ in range(8)
    ]
    for call in calls:
        call.start()
    for call in calls:
        call.join()
    assert outcomes == ["passed"] * 8


def test_errors_come_out_as_they_are():
    """A wrong call raises in the caller's thread."""
    with pytest.raises(UsageError, match="nothing says what good means"):
        Judge(ScriptedModel(GOOD)).evaluate_sync("Hello.")


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
            started.wait(timeout=20)
            raise Interrupted

        def cancel(self):
            return self.inner.cancel()

    submit = asyncio.run_coroutine_threadsafe
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio, "run_coroutine_threadsafe", lambda work, loop: Future(submit(work, loop)))
        with pytest.raises(Interrupted):
            run_sync(hang())
    assert stopped.wait(timeout=20)


PROGRAM = """
import os
from adjudge import Judge
from adjudge.testing import ScriptedModel
judge = Judge(ScriptedModel({"criteria": [{"name": "criteria", "score": 1.0}]}))
print(judge.evaluate_sync("x", criteria="Good.").outcome, flush=True)
"""
FORK = """
import warnings
warnings.simplefilter("ignore")
if os.fork() == 0:
    print(judge.evaluate_sync("x", criteria="Good.").outcome, flush=True)
    os._exit(0)
os.wait()
"""


@pytest.mark.parametrize(("program", "lines"), [(PROGRAM, 1), (PROGRAM + FORK, 2)], ids=["plain", "fork"])
def test_a_program_ends_quietly(program, lines):
    """Nothing is printed, nothing hangs; a forked child gets a loop of its own."""
    if "fork" in program and not hasattr(os, "fork"):
        pytest.skip("this system has no fork")
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", program], capture_output=True, text=True, timeout=50, check=False
    )
    # In its development mode Python tells of what takes long, and on a busy machine anything may.
    said = [line for line in done.stderr.splitlines() if not re.fullmatch(r"Executing .* took [\d.]+ seconds", line)]
    assert (done.returncode, done.stdout.split(), said) == (0, ["passed"] * lines, [])


def test_a_ready_made_prompt_has_a_sync_door():
    """``ask_sync`` is ``ask`` for callers without a loop."""
    assert JudgeChain([ScriptedModel('{"safe": true}')]).ask_sync("Is it safe?").passed
