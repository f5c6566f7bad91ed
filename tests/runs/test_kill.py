"""``kill -9`` in the middle of a run: what was kept is there, and what goes on asks for the rest alone."""

from __future__ import annotations

import json
import random
import signal
import sys
from pathlib import Path

import pytest

from adjudge import open_run
from kit import cli
from kit.cli import serve
from kit.patience import HANG
from kit.runs import list_results

pytestmark = pytest.mark.integration


CASES, KILLS, CONCURRENCY = 5_000, 3, 32

posix = pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is POSIX's")


@posix
def test_a_run_that_is_killed_ends_like_one_that_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """5,000 cases, killed three times at random points: every kept case stays, and at most those under way are lost.

    The server counts at most one request for each case, and for each kill as many as were under way; the results are
    those of a run that nobody killed.
    """
    directory = tmp_path / "work"
    directory.mkdir()
    cli.isolate(monkeypatch, directory)
    # A process that is killed reports no coverage, and being measured takes it twice the time.
    monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)
    monkeypatch.delenv("COVERAGE_PROCESS_START", raising=False)
    Path("data.jsonl").write_text(
        "".join(json.dumps({"id": str(n), "content": f"text {n}"}) + "\n" for n in range(CASES))
    )
    chance = random.Random()
    points = sorted(chance.sample(range(200, CASES - 200), KILLS))

    with serve() as provider:
        common = ("run", "data.jsonl", "--criteria", "Is good.", "--judge", provider.spec, "--json")
        common += ("--concurrency", str(CONCURRENCY))
        kept: set[int] = set()
        for point in points:
            process = cli.start(tmp_path, *common, "--out", "R", "--resume")
            while len(provider.bodies) < point and process.poll() is None:
                provider.asked.clear()
                provider.asked.wait(1)
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=HANG)
            left = open_run("R")
            now = {item.place for item in left.items()}
            assert left.status == "interrupted"
            assert kept <= now, f"lost after a kill at request {point}"
            assert len(now) >= len(provider.bodies) - KILLS * CONCURRENCY
            kept = now

        last = cli.finish(cli.start(tmp_path, *common, "--out", "R", "--resume"))
        assert (last.status, last.document["counts"]["passed"]) == (0, CASES), last.err
        assert CASES <= len(provider.bodies) <= CASES + KILLS * CONCURRENCY, points

        cli.finish(cli.start(tmp_path, *common, "--out", "S"))
    assert list_results(open_run("R")) == list_results(open_run("S"))


@posix
def test_kills_do_not_lift_a_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A call is in the file before it is made, so what was under way at a kill is off the budget of the next attempt.

    Each call costs 2 dollars and may cost 4. The provider lets three attempts hang until they are killed, and answers
    the fourth: all that it was asked is paid for.
    """
    directory = tmp_path / "work"
    directory.mkdir()
    cli.isolate(monkeypatch, directory)
    monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)
    monkeypatch.delenv("COVERAGE_PROCESS_START", raising=False)
    Path("data.jsonl").write_text(
        "".join(json.dumps({"id": str(n), "content": f"text {n}"}) + "\n" for n in range(200))
    )
    budget = 200.0

    with serve(mode="hang") as provider:
        Path("adjudge.toml").write_text(
            f'[judges.small]\nseats = ["{provider.spec}"]\nmax_output_tokens = 4\n'
            '[prices]\n"small" = {input = 0.0, output = 1000000.0}\n'
        )
        command = (
            "run",
            "data.jsonl",
            "--criteria",
            "Is good.",
            "--judge",
            "small",
            "--json",
            "--out",
            "R",
            "--resume",
        )
        command += ("--concurrency", "8", "--budget", str(budget))
        for kill in range(1, KILLS + 1):
            process = cli.start(tmp_path, *command)
            while len(provider.bodies) < 8 * kill and process.poll() is None:
                provider.asked.clear()
                provider.asked.wait(1)
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=HANG)
        killed = len(provider.bodies)
        provider.mode = "answer"
        last = cli.finish(cli.start(tmp_path, *command))
        asked = len(provider.bodies) - killed

    assert killed == 8 * KILLS
    assert last.document["summary"]["undecided_because"].keys() == {"budget"}, last.err
    assert last.document["counts"]["passed"] == asked
    assert budget - 4.0 < 4.0 * killed + 2.0 * asked <= budget
