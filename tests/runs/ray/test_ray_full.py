"""A long run on two nodes of Ray, of which actors are killed and one node is lost; only with ADJUDGE_FULL=1."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from adjudge import Case, Judge, run
from kit.environment import require
from kit.house import ROOT
from kit.patience import HANG
from kit.process import start_module
from kit.ray import list_actors, open_cluster
from kit.runs import list_results

BENCH = ROOT / "bench"
CASES = int(os.environ.get("ADJUDGE_RAY_CASES", "20000"))
ACTORS, CONCURRENCY = 4, 48

pytestmark = [
    pytest.mark.integration,
    pytest.mark.full,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.timeout(3600),
    pytest.mark.no_cover,
]


@contextmanager
def serve() -> Iterator[str]:
    """The mock server in a process of its own; its address."""
    require("bench/mock_llm.py", (BENCH / "mock_llm.py").is_file(), "run the tests in a checkout")
    with start_module("ray_server", str(BENCH)) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def count(address: str, name: str) -> dict[str, int]:
    """What the server says of a run."""
    with urllib.request.urlopen(f"{address}/stats?run={name}", timeout=HANG) as answer:
        return json.load(answer)


def make_cases() -> list[Case]:
    """Cases that the server tells apart by their numbers."""
    return [Case(id=f"case-{n}", content=f"[item-{n:06d}] a text to judge", label=n % 3 != 0) for n in range(CASES)]


def test_a_run_survives_killed_actors_and_a_lost_node(tmp_path):
    """One result a case, no more requests than cases and what was in flight, and the results of one process."""
    with serve() as address, open_cluster((2, 2)) as cluster:

        def judge(name: str) -> Judge:
            return Judge(f"{address}/run-{name}_lat-50/v1#mock", reask=0, name="mock")

        async def go():
            running = run(
                make_cases(),
                judge("ray"),
                criteria="Is good.",
                out=tmp_path / "ray",
                concurrency=CONCURRENCY,
                engine="ray",
                ray_actors=ACTORS,
            )
            kept = 0
            async for _ in running:
                kept += 1
                if kept in (CASES * 15 // 100, CASES * 30 // 100):
                    os.kill(list_actors()[0], signal.SIGKILL)
                if kept == CASES * 45 // 100:
                    cluster.remove_node(cluster.worker_nodes.copy().pop(), allow_graceful=False)
            return await running

        done = asyncio.run(go())
        local = run(make_cases(), judge("local"), criteria="Is good.", concurrency=CONCURRENCY).finish_sync()
        asked = count(address, "ray")

    assert done.status == "finished"
    assert [item.place for item in done.items()] == list(range(CASES))
    assert asked["items"] == CASES
    # What two actors had under way, and those of the node, which may be all of them.
    assert CASES <= asked["requests"] <= CASES + 2 * CONCURRENCY // ACTORS + CONCURRENCY, asked
    assert list_results(done) == list_results(local)
    assert done.summary == local.summary
