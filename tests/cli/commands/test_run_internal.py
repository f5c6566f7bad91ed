"""The exit status and the progress of a run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from adjudge.cli.commands.run import RunSession, describe_progress, find_status, open_counted
from adjudge.cli.options import DataOptions
from adjudge.runs import Progress
from kit import cli
from kit.cli import Line, write


@pytest.fixture(autouse=True)
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    directory = tmp_path / "work"
    directory.mkdir()
    cli.isolate(monkeypatch, directory)
    write(*[{"id": str(n), "content": text, "label": text == "good"} for n, text in enumerate(["good", "bad", "ugly"])])
    return Line(capsys)


@pytest.mark.parametrize(
    ("counts", "fail_under", "status"),
    [
        ((9, 1, 0), None, 0),
        ((0, 1, 9), None, 0),
        ((0, 0, 9), None, 3),
        ((9, 1, 0), 0.9, 0),
        ((9, 1, 0), 0.95, 1),
        ((8, 0, 2), 0.9, 3),
        ((8, 2, 0), 0.8, 0),
        ((7, 2, 1), 0.9, 1),
        ((0, 0, 9), 0.5, 3),
        ((0, 9, 0), 0.0, 0),
    ],
)
def test_the_exit_status_is_what_can_be_said(counts: tuple[int, int, int], fail_under: float | None, status: int):
    """0 when enough passed, 1 when they did not, 3 when what is undecided would decide it, or nothing is decided."""
    assert find_status(dict(zip(("passed", "failed", "undecided"), counts, strict=True)), fail_under) == status


def test_progress_in_words():
    """How many, how fast, how long still, what came out, and the cost once there is one that is known."""
    progress = Progress(
        done=1250, fresh=1000, total=5000, seconds=10.0, outcomes={"passed": 1200, "failed": 50}, cost_usd=0.5
    )
    line = describe_progress(progress)
    assert line == "judged 1,250 of 5,000 (25 %), 100.0/s, 38 s left; 50 failed, 1,200 passed; $0.50"

    unknown = Progress(done=2, fresh=2, total=None, seconds=4.0, outcomes={"passed": 2}, cost_usd=None)
    assert describe_progress(unknown) == "judged 2, 0.5/s; 2 passed"


@pytest.mark.parametrize(
    ("name", "data", "size"),
    [
        ("c.csv", 'id,content\n1,"good\nindeed"\n2,good\n', 2),
        ("c.jsonl", '{"content": "good"}\n', 1),
        ("c.yaml", "- {content: good}\n", None),
    ],
)
def test_a_file_whose_rows_can_be_counted_has_a_total(name: str, data: str, size: int | None):
    """Before its first row is judged, so that progress says how many there are and how long they will take."""
    Path(name).write_text(data, "utf-8")

    assert open_counted(name, DataOptions()).size == size


@pytest.mark.parametrize(("has_begun", "said"), [(False, "nothing was judged yet"), (True, "--out R --resume")])
def test_an_interrupt_before_the_run_could_catch_it_says_what_is_kept(
    line: Line, monkeypatch: pytest.MonkeyPatch, has_begun: bool, said: str
):
    """Also where no handler can be set, as on Windows."""

    async def interrupt(session: RunSession) -> int:
        if has_begun:
            await session.running
        raise KeyboardInterrupt

    monkeypatch.setattr(RunSession, "judge_and_report", interrupt)
    Path("data.jsonl").write_text('{"content": "good"}\n', "utf-8")
    ran = line("run", "data.jsonl", "--criteria", "Is good.", "--judge", cli.WORDS, "--out", "R")

    assert ran.status == 130
    assert said in ran.err


IMPORTED = """
import sys
from adjudge.cli import main
try:
    main(sys.argv[1:])
finally:
    unwanted = ("adjudge.runs.batch.", "adjudge.models.batch", "adjudge.runs.estimate.e", "adjudge.runs.ray.executor")
    print(*[name for name in sys.modules if name.startswith(unwanted)])
"""


@pytest.mark.integration
def test_a_live_run_imports_nothing_that_is_for_other_runs(monkeypatch: pytest.MonkeyPatch):
    """Batches, estimates and Ray are read by the runs that use them; of batches, only what their options may be."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    words = ["run", "data.jsonl", "--criteria", "Is good.", "--judge", cli.WORDS, "--out", "R", "--json"]
    done = subprocess.run([sys.executable, "-c", IMPORTED, *words], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "adjudge.runs.batch.options"
