#!/usr/bin/env python3
"""Kill and resume: a run of 5,000 cases over HTTP, killed with ``kill -9`` at 30 random points, each time resumed.

After every kill: each case that was kept before is kept still. At the end: the run equals one that nobody killed, and
the server counted at most one request for each case and, for each kill, as many as were under way.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import common
import suite


def start(folder: Path, port: int, out: str, options: argparse.Namespace) -> subprocess.Popen[bytes]:
    """``adjudge run`` in a process of its own, going on with what is in ``out``."""
    latency = f"lat-{options.latency}"
    command = [sys.executable, "-m", "adjudge", "run", str(folder / "data.jsonl"), "--criteria", common.CRITERION]
    command += ["--judge", f"http://127.0.0.1:{port}/run-{out}_{latency}/v1#mock", "--out", str(folder / out)]
    command += ["--concurrency", str(options.concurrency), "--resume", "--json"]
    environment = suite.make_environment()
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder, env=environment)


def count_requests(port: int, out: str) -> int:
    """Read what the mock has counted of a run."""
    return int(json.loads(common.get(f"http://127.0.0.1:{port}/stats?run={out}"))["requests"])


def read_places(folder: Path) -> set[int]:
    """The cases that are kept."""
    from adjudge import UsageError, open_run

    try:
        return {item.place for item in open_run(folder).items()}
    except UsageError:  # killed before there was a folder
        return set()


def list_results(folder: Path) -> list[Any]:
    """List what came out, without what differs from one judgement to the next."""
    from adjudge import open_run

    return [(item.place, item.sample, item.subject, item.result.score) for item in open_run(folder).items()]


def finish(process: subprocess.Popen[bytes]) -> None:
    """Wait for the end of a run that nobody kills."""
    _, err = process.communicate(timeout=600)
    if process.returncode:
        sys.exit(f"the run ended with {process.returncode}: {err.decode()}")


def kill_often(folder: Path, port: int, options: argparse.Namespace) -> list[int]:
    """Start and kill; the points at which it was, in requests."""
    chance, kept, points = random.Random(options.seed), set[int](), []
    for number in sorted(chance.sample(range(1, options.n), options.kills)):
        process = start(folder, port, "K", options)
        while count_requests(port, "K") < number and process.poll() is None:
            time.sleep(chance.random() / 100)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
        points.append(count_requests(port, "K"))
        now = read_places(folder / "K")
        if not kept <= now:
            sys.exit(f"{len(kept - now)} kept cases were lost by the kill at request {points[-1]}")
        kept = now
    return points


def main() -> None:
    """Kill, resume, compare, and say whether nothing was lost and nothing asked twice."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=5000)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--latency", type=int, default=20, help="of the mock, in ms")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, suite.run_mock() as port:
        folder = Path(name)
        rows = ({"id": str(number), "content": common.make_item(number)["output"]} for number in range(options.n))
        (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        points = kill_often(folder, port, options)
        finish(start(folder, port, "K", options))
        finish(start(folder, port, "S", options))
        requests = count_requests(port, "K")
        same = list_results(folder / "K") == list_results(folder / "S")
    most = options.n + options.kills * options.concurrency
    head = ["cases", "kills", "in flight", "requests", "at most", "more than needed", "equals an unbroken run"]
    more = str(requests - options.n)
    row = [str(options.n), str(len(points)), str(options.concurrency), str(requests), str(most), more, str(same)]
    common.print_table(head, [row])
    figures = {"requests": requests, "at_most": most, "seed": options.seed, "killed_at": points}
    common.print_verdict("resume", figures, met=same and options.n <= requests <= most)


if __name__ == "__main__":
    main()
