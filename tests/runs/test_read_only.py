"""A run in a folder to which nobody may write, such as a copy in CI, is reported, measured and compared like any."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("scipy", reason="needs numpy and scipy: pip install 'adjudge[trust]'")

from adjudge.labels import continue_plan, find_plan_status, make_plan, open_label_queue, write_plan
from adjudge.measurement import decide_rate, make_measurement
from adjudge.report import diff, make_report
from adjudge.runs import open_run
from kit.reports import keep_run, make_item, make_result

CASES, NOBODY = 200, 65534
BAR = 0.5

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes of folders are those of POSIX")


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Nobody may write to a folder, this process included: root gives its rights up for so long."""
    before = {path: path.stat().st_mode for path in (folder, *folder.iterdir())}
    for path in before:
        path.chmod(0o555 if path.is_dir() else 0o444)
    is_root = os.geteuid() == 0
    if is_root:
        os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        if is_root:
            os.setresuid(0, 0, 0)
        for path, mode in before.items():
            path.chmod(mode)


@pytest.fixture(scope="module")
def labelled() -> Iterator[Path]:
    """A run whose planned labels are there, and nobody looked; below a folder that everybody may read."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        folder = Path(place) / "run"
        draw = random.Random(3)
        good = [draw.random() < 0.8 for _ in range(CASES)]
        verdicts = ["passed" if value == (draw.random() < 0.9) else "failed" for value in good]
        keep_run(folder, [make_item(at, make_result(verdict)) for at, verdict in enumerate(verdicts)]).close()
        label_plan(folder, good)
        # What is imported when it is first needed has to be there before the rights are given up.
        warm = shutil.copytree(folder, folder.with_name("warm"))
        assert decide_rate(warm, BAR).outcome == "passed"
        make_report(warm)
        diff(warm, warm)
        yield folder


def label_plan(folder: Path, good: list[bool]) -> None:
    """Draw a plan, and label what it plans."""
    with open_run(folder) as run:
        plan = make_plan(run, within=0.08, seed=1)
        write_plan(plan, folder)
        while True:
            with open_label_queue(folder) as queue:
                while (task := queue.next("ann")) is not None:
                    queue.record("ann", task.case, good[int(task.case.removeprefix("case-"))])
                status = find_plan_status(plan, queue.labels())
            if status.complete:
                return
            plan = continue_plan(plan, run, status)
            write_plan(plan, folder)


@pytest.fixture(name="folder")
def copy_run(labelled: Path) -> Iterator[Path]:
    """A copy of its own."""
    place = shutil.copytree(labelled, labelled.with_name("copy"))
    yield place
    shutil.rmtree(place)


def test_a_run_is_reported_and_compared_where_nobody_may_write(folder: Path):
    """The same figures, and nothing is left in the folder."""
    expected = make_report(folder).to_dict()
    files = sorted(path.name for path in folder.iterdir())
    with read_only(folder):
        assert make_report(folder).to_dict() == expected
        assert diff(folder, folder).cases == CASES

    assert sorted(path.name for path in folder.iterdir()) == files


def test_the_labels_of_a_read_only_run_are_read(folder: Path):
    """With the rate that they give in a folder of one's own."""
    expected = make_measurement(folder).rate
    with read_only(folder):
        assert make_measurement(folder).rate == expected


def test_a_look_that_was_recorded_is_the_one_look_in_a_read_only_copy_too(folder: Path):
    """Whoever looked, and lets CI decide from a copy, sees the same limits there; no further look was taken."""
    first = decide_rate(folder, BAR)
    assert first.limit is not None
    assert first.limit.kind == "one look"
    record = (folder / "looks.jsonl").read_text()
    with read_only(folder):
        again = [decide_rate(folder, BAR) for _ in range(2)]

    assert again == [first, first]
    assert (folder / "looks.jsonl").read_text() == record


def test_a_look_that_nobody_could_record_has_the_limits_for_every_look(folder: Path):
    """Wider ones, and the reason says what to do for the others."""
    with read_only(folder):
        decision = decide_rate(folder, BAR)

    assert decision.limit is not None
    assert decision.limit.kind == "every look"
    assert "cannot be recorded" in decision.reason
    assert "make it writable" in decision.reason
    assert not (folder / "looks.jsonl").exists()
