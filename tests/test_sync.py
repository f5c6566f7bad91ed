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
from adjudge.testing import ScriptedModel
from kit.judges import scores
from kit.patience import HANG

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


def test_many_threads_may_call_at_once():
    """None waits for another's judge."""
    everybody = threading.Barrier(8)

    def judge_function(prompt: str) -> str:
        everybody.wait(timeout=HANG)  # breaks unless all eight are judged at the same time
        token = prompt.rpartition('"token": "')[2][:8]
        return f'{{"token": "{token}", "criteria": [{{"name": "good", "score": 1}}]}}'

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


PROGRAM = """
import os
from adjudge import Judge
from adjudge.testing import ScriptedModel
judge = Judge(ScriptedModel({"criteria": [{"score": 1.0}]}))
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


@pytest.mark.integration
@pytest.mark.parametrize(("program", "lines"), [(PROGRAM, 1), (PROGRAM + FORK, 2)], ids=["plain", "fork"])
def test_a_program_ends_quietly(program, lines):
    """Nothing is printed, nothing hangs; a forked child gets a loop of its own."""
    if "fork" in program and not hasattr(os, "fork"):
        pytest.skip("this system has no fork")
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", program], capture_output=True, text=True, timeout=HANG, check=False
    )
    # In its development mode Python tells of what takes long, and on a busy machine anything may.
    match = [line for line in done.stderr.splitlines() if not re.fullmatch(r"Executing .* took [\d.]+ seconds", line)]
    assert (done.returncode, done.stdout.split(), match) == (0, ["passed"] * lines, [])


def test_a_ready_made_prompt_has_a_sync_door():
    """``ask_sync`` is ``ask`` for callers without a loop."""
    assert JudgeChain([ScriptedModel('{"safe": true}')]).ask_sync("Is it safe?").passed


# ---------------------------------------------------------------- a loop that ends


HELD = """
import os, sys, threading, time, warnings
warnings.simplefilter("ignore")
from adjudge import Judge, sync
from adjudge.testing import ScriptedModel
judge = Judge(ScriptedModel({"criteria": [{"score": 1.0}]}))
print(judge.evaluate_sync("x", criteria="Good.").outcome, flush=True)

def hold():
    with sync._lock:
        held.set()
        time.sleep(1)

held = threading.Event()
thread = threading.Thread(target=hold)
thread.start()
held.wait()
child = os.fork()
if child == 0:
    print(judge.evaluate_sync("x", criteria="Good.").outcome, flush=True)
    os._exit(0)
thread.join()
os.waitpid(child, 0)
print(judge.evaluate_sync("x", criteria="Good.").outcome, flush=True)
"""
UNDER_WAY = """
import asyncio, os, threading, warnings
warnings.simplefilter("ignore")
from adjudge import Judge
from adjudge.sync import run_sync
from adjudge.testing import ScriptedModel
judge = Judge(ScriptedModel({"criteria": [{"score": 1.0}]}))

async def wait():
    begun.set()
    await asyncio.sleep(2)
    return "passed"

begun = threading.Event()
thread = threading.Thread(target=lambda: print(run_sync(wait()), flush=True))
thread.start()
begun.wait()
child = os.fork()
if child == 0:
    print(judge.evaluate_sync("x", criteria="Good.").outcome, flush=True)
    os._exit(0)
os.waitpid(child, 0)
thread.join()
print(judge.evaluate_sync("x", criteria="Good.").outcome, flush=True)
"""


@pytest.mark.integration
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("program", [HELD, UNDER_WAY], ids=["the lock is held", "a call is under way"])
def test_a_child_forked_at_any_moment_judges_and_so_does_its_parent(program):
    """The child has neither the thread that held the lock nor the one that waits for connections."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=HANG, check=False)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["passed"] * 3, "")


@pytest.mark.integration
def test_a_program_whose_loop_ended_ends_quietly():
    """No traceback of the thread, and nothing that was never retrieved."""
    program = (
        PROGRAM
        + """
from adjudge import AdjudgeError
def hook(result):
    raise KeyboardInterrupt
for _ in range(3):
    try:
        Judge(judge.model, on_result=hook).evaluate_sync("x", criteria="Good.")
    except AdjudgeError as error:
        print("ended" if "KeyboardInterrupt" in str(error) else error, flush=True)
print(judge.evaluate_sync("x", criteria="Good.").outcome, flush=True)
"""
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=HANG, check=False)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["passed", *["ended"] * 3, "passed"], "")


def test_a_traceback_has_no_frame_of_the_wait():
    """It leads from the call to what raised in it; how the thread was waited for says nothing to anybody."""
    with pytest.raises(UsageError) as raised:
        Judge(ScriptedModel(GOOD)).evaluate_sync("Hello.")

    files = [str(entry.path) for entry in raised.traceback]
    assert files[0] == __file__
    assert any(file.endswith("evaluate.py") for file in files)
    assert [file for file in files if "concurrent" in file] == []
