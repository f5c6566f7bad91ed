"""``kill -9`` in the middle of a run by batches: nothing is lost, and nothing is paid for twice."""

from __future__ import annotations

import multiprocessing
import random
import sys
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from adjudge import Judge, open_run, run
from kit.batch import PROVIDERS, BatchServer, go, serve
from kit.batch_process import judge_by_batches
from kit.environment import FULL
from kit.patience import HANG, wait_for
from kit.runs import list_results, make_cases

CASES = 5_000 if FULL else 50

PARTS = 5

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is POSIX's"),
    pytest.mark.timeout(1_800),  # with 5,000 cases, as scripts/full asks for
]

every_way = pytest.mark.parametrize("kind", PROVIDERS if FULL else ("openai", "anthropic"))
"""A batch whose creation was not answered is found by its label, or by the ids in its results."""


def start(server: BatchServer, folder: Path) -> BaseProcess:
    """A process that judges by batches, or goes on with it.

    Forked from one that has imported everything and has no threads: an interpreter of its own takes a second.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["kit.batch_process"])
    process = context.Process(
        target=judge_by_batches, args=(server.kind, server.base, str(folder), CASES, CASES // PARTS)
    )
    process.start()
    return process


def kill(process: BaseProcess) -> None:
    """End a process as a machine that loses its memory would."""
    process.kill()
    process.join(HANG)
    assert process.exitcode is not None


def wait_until(process: BaseProcess, happened: Callable[[], bool]) -> None:
    """Until something has happened, or the process has ended."""
    wait_for(lambda: happened() or not process.is_alive())


def check_end(server: BatchServer, folder: Path) -> None:
    """Go on to the end, and compare with a run that nobody killed."""
    done = go(server, make_cases(CASES), folder, resume=True)

    assert (done.status, done.counts["undecided"]) == ("finished", 0)
    assert (len(server.run), set(server.run.values())) == (CASES, {1})
    live = run(make_cases(CASES), Judge(server.open()), criteria="Is good.").finish_sync()
    assert list_results(open_run(folder)) == list_results(live)
    assert done.usage == live.usage


@every_way
def test_a_run_that_is_killed_three_times_loses_nothing_and_pays_nothing_twice(tmp_path: Path, kind: str):
    """Once after the provider created a batch and before it said so, once while results come in, once anywhere."""
    with serve(kind, hang_answers=1) as server:
        process = start(server, tmp_path / "R")
        wait_until(process, server.created.is_set)
        kill(process)
        assert len(server.jobs) == 1

        server.stall = 1
        process = start(server, tmp_path / "R")
        wait_until(process, server.stalled.is_set)
        kill(process)
        server.release.set()

        enough = random.Random().randrange(CASES // 5, CASES - CASES // 5)
        process = start(server, tmp_path / "R")
        wait_until(process, lambda: len(server.run) >= enough)
        kill(process)

        check_end(server, tmp_path / "R")


@pytest.mark.parametrize("kind", PROVIDERS if FULL else ("openai",))
def test_kills_at_any_moment_pay_nothing_twice(tmp_path: Path, kind: str):
    """After some random number of requests that the provider was sent, three times."""
    chance = random.Random()
    with serve(kind, looks=4) as server:
        for _ in range(3):
            enough = len(server.seen) + chance.randrange(1, 12)
            process = start(server, tmp_path / "R")
            wait_until(process, lambda enough=enough: len(server.seen) >= enough)
            time.sleep(chance.random() * 0.1)
            kill(process)
        check_end(server, tmp_path / "R")


def test_a_kill_before_anything_left_costs_nothing(tmp_path: Path):
    """The first request is the file; a process that dies by then is followed by one that sends all of it."""
    with serve() as server:
        process = start(server, tmp_path / "R")
        wait_until(process, (tmp_path / "R" / "batches.sqlite").exists)
        kill(process)
        check_end(server, tmp_path / "R")
