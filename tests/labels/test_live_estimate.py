"""The line of ``adjudge label`` that says how well the rate is known, and how many more labels it takes."""

from __future__ import annotations

import random
import re
from datetime import timedelta
from pathlib import Path

import pytest

pytest.importorskip("scipy", reason="needs numpy and scipy: pip install 'adjudge[trust]'")

from adjudge.dataset import Label
from adjudge.labels import (
    LabelPlan,
    LabelQueue,
    continue_plan,
    find_plan_status,
    load_plan,
    make_plan,
    open_label_queue,
    write_plan,
)
from adjudge.runs import open_run
from adjudge.trust import LiveRate, compute_live_rate, estimate_more_labels
from kit import cli
from kit.cli import Line, feed
from kit.labels import bind_labels
from kit.reports import keep_run, make_item, make_result

CASES = 400

DAY = timedelta(days=1)

RATE = re.compile(r"people pass ([0-9.]+) % \(([0-9.]+) to ([0-9.]+)\)(.*)")


def is_good(case: str) -> bool:
    """The truth of a case."""
    return int(case.removeprefix("case-")) % 3 > 0


@pytest.fixture(name="line")
def make_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Line:
    """The command line in a folder with a run whose judge is right in 19 of 20 cases."""
    cli.isolate(monkeypatch, tmp_path)
    keep(Path("run"))
    return Line(capsys)


def keep(folder: Path, group: int | None = None) -> None:
    """A run, whose cases may be in groups of so many."""
    chance = random.Random(1)
    items = []
    for place in range(CASES):
        passes = is_good(f"case-{place}") != (chance.random() < 0.05)
        of = {} if group is None else {"group": f"q{place // group}"}
        items.append(make_item(place, make_result("passed" if passes else "failed"), **of))
    keep_run(folder, items).close()


def answer(queue: LabelQueue, rater: str, most: int) -> None:
    """A rater labels so many cases."""
    for _ in range(most):
        task = queue.next(rater)
        assert task is not None
        queue.record(rater, task.case, is_good(task.case))


def read_line(line: Line, monkeypatch: pytest.MonkeyPatch, *options: str) -> tuple[float, float, str] | None:
    """The limits that ``adjudge label`` shows, and what it says behind them; ``None`` where it says nothing."""
    feed(monkeypatch, b"q\n")
    match = RATE.search(line("label", "run", "--rater", "zoe", *options).err)
    return None if match is None else (float(match[2]), float(match[3]), match[4])


def count(queue: LabelQueue, plan: LabelPlan | None = None) -> LiveRate:
    """The rate from what the queue lists."""
    listed = queue.list_draws()
    assert listed is not None
    names = list(listed.sizes)
    draws = [(names.index(stratum), good) for stratum, good in listed.draws]
    return compute_live_rate(list(listed.sizes.values()), draws, allocations=() if plan is None else plan.allocations)


def show(rate: LiveRate) -> tuple[float, float]:
    """The limits as they are shown."""
    return float(f"{rate.low * 100:.1f}"), float(f"{rate.high * 100:.1f}")


def test_the_line_says_how_many_more(line: Line, monkeypatch: pytest.MonkeyPatch):
    """From ten labels on, with the limits that hold after every label and what is missing to 3 points."""
    with open_label_queue("run", seed=1) as queue:
        answer(queue, "ann", 9)
        assert read_line(line, monkeypatch) is None
        answer(queue, "ann", 71)
        rate = count(queue)
    shown = read_line(line, monkeypatch)

    assert rate.labels == 80
    assert shown == (*show(rate), f"; about {estimate_more_labels(rate, within=0.03)} more until ± 3 points")


def test_after_the_pilot_the_line_counts_as_the_plan_drew(line: Line, monkeypatch: pytest.MonkeyPatch):
    """The plan draws more where people disagree: who bets as if it drew in proportion gets wider limits."""
    with open_run("run") as run:
        plan = make_plan(run, within=0.04, seed=2)
        pilot = [
            Label(case=item.case, rater="ann", value=is_good(item.case), subject=item.subject) for item in plan.order
        ]
        plan = continue_plan(plan, run, find_plan_status(plan, pilot))
        write_plan(plan, run.folder)
    assert [phase.kind for phase in plan.phases][:2] == ["pilot", "spread"]
    with open_label_queue("run") as queue:
        answer(queue, "ann", len(plan.order) - 5)
        rate, plain = count(queue, plan), count(queue)
        status = find_plan_status(plan, queue.labels())
    shown = read_line(line, monkeypatch)

    assert status.live == rate
    assert shown == (*show(rate), f"; about {estimate_more_labels(rate, within=0.04)} more until ± 4 points")
    assert show(rate) != show(plain)


def test_enough_is_not_said_while_planned_labels_are_missing(line: Line, monkeypatch: pytest.MonkeyPatch):
    """``adjudge agree`` waits for them, so the line and ``adjudge plan`` say how many there are."""
    with open_run("run") as run:
        plan = make_plan(run, within=0.2, seed=2)
        write_plan(plan, run.folder)
    with open_label_queue("run") as queue:
        answer(queue, "ann", len(plan.order) - 2)
        assert find_plan_status(plan, queue.labels()).enough
    shown = read_line(line, monkeypatch)

    assert shown is not None
    assert shown[2] == "; within ± 20 points, and 2 of the plan are missing for adjudge agree"
    assert "2 planned labels are missing for `adjudge agree run`" in line("plan", "run").out


def test_a_case_counts_when_it_has_all_its_labels(line: Line, monkeypatch: pytest.MonkeyPatch):
    """The second of two raters may still change its truth; it counts once, in the order in which that was known."""
    with open_label_queue("run", seed=1, per_case=2) as queue:
        answer(queue, "ann", 40)
        assert queue.list_draws().draws == ()  # type: ignore[union-attr] - there are some
        answer(queue, "bob", 25)
        two = count(queue)
    with open_label_queue("run", per_case=1) as queue:
        one = count(queue)

    assert (two.labels, one.labels) == (25, 40)
    shown = read_line(line, monkeypatch, "--per-case", "2")
    assert shown is not None
    assert shown[:2] == show(two)


def test_a_case_that_was_settled_counts(line: Line):
    """However many labels it has: an adjudication decides over them."""
    del line
    with open_label_queue("run", seed=1, per_case=3) as queue:
        answer(queue, "ann", 1)
        case = next(iter(queue.truths()))
        assert queue.list_draws().draws == ()  # type: ignore[union-attr]
        queue.adjudicate("zoe", case, value=False)
        listed = queue.list_draws()

    assert listed is not None
    assert [good for _, good in listed.draws] == [False]


def test_what_was_labelled_before_the_plan_counts_at_its_place(line: Line):
    """Somebody brought labels of bad cases: those that the plan draws are neither first nor left out."""
    line("plan", "run", "--within", "8", "--seed", "1")
    with open_run("run") as run:
        plan = load_plan(run)
        assert plan is not None
        chosen = [item.case for item in plan.order if not is_good(item.case)]
        with open_label_queue("run") as queue:
            early = [Label(case=case, rater="ann", value=False, at=plan.at - DAY) for case in chosen]
            queue.import_labels(bind_labels(run, early))
            first = queue.list_draws()
            answer(queue, "ann", 25)
            some = count(queue, plan)
            answer(queue, "ann", len(plan.order) - len(chosen) - 25)
            whole, status = count(queue, plan), find_plan_status(plan, queue.labels())

    assert first is not None
    assert len(first.draws) <= 3
    assert 25 < some.labels <= 25 + len(chosen)
    assert whole == status.live
    assert whole.labels == len(plan.order)


@pytest.mark.parametrize("planned", [True, False])
def test_ignored_groups_are_named(line: Line, monkeypatch: pytest.MonkeyPatch, planned: bool):
    """Single cases of groups are a random sample of these cases, and of nothing else; the line says so."""
    import shutil

    shutil.rmtree("run")
    keep(Path("run"), group=4)
    if planned:
        line("plan", "run", "--ignore-groups")
    with open_label_queue("run") as queue:
        answer(queue, "ann", 20)
        listed = queue.list_draws()
    shown = read_line(line, monkeypatch)

    assert listed is not None
    assert listed.ignored_groups == CASES // 4
    assert shown is not None
    assert "groups ignored" in shown[2]


def test_groups_of_a_data_set_are_named_too(line: Line):
    """Where no run judged the cases."""
    del line
    Path("d.jsonl").write_text("".join(f'{{"id": "c{n}", "content": "x", "group": "q{n // 2}"}}\n' for n in range(6)))
    with open_label_queue("d.jsonl") as queue:
        assert queue.list_draws().ignored_groups == 3  # type: ignore[union-attr]
