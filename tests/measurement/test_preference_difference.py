"""Pairs beside what people say: which of the two sides they would prefer more often, and how many labels it takes."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("scipy", reason="measuring needs the extra trust")

from scipy import stats

from adjudge import Case, Judge, UsageError, open_run, run
from adjudge.dataset import Label
from adjudge.labels import continue_plan, find_plan_status, load_plan, make_paired_plans, make_plan, open_label_queue
from adjudge.labels import write_plan as keep_plan
from adjudge.measurement import make_measurement
from adjudge.models import Request
from adjudge.runs import Run
from adjudge.testing import make_scripted_reply
from kit import cli
from kit.cli import Line
from kit.differences import is_good

pytestmark = pytest.mark.timed

PAIRS = 160

SIDES = ("second", "second", "first", "tie")
"""What people prefer, by the last two bits of a pair's number: the second in a half, the first in a quarter."""


class Model:
    """A judge that prefers what people prefer, and in a tenth of the pairs the other side."""

    name = "judge"

    async def complete(self, request: Request, /) -> Any:
        number = int(re.search(r"left (\d+)", request.user)[1])  # type: ignore[index]
        side = SIDES[number % 4]
        side = {"first": "second", "second": "first"}.get(side, side) if number % 10 == 7 else side
        is_turned = request.user.index("left") > request.user.index("right")
        shown = {"first": "second", "second": "first"}.get(side, side) if is_turned else side
        return make_scripted_reply({"reasoning": "r", "preferred": shown}, request, "judge")


@pytest.fixture(name="line")
def make_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Line:
    cli.isolate(monkeypatch, tmp_path)
    return Line(capsys)


@pytest.fixture(scope="module", name="judged")
def judge_pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("judged") / "pairs"
    cases = [Case(id=f"pair-{n}", content={"a": f"left {n}", "b": f"right {n}"}) for n in range(PAIRS)]
    run(cases, Judge(Model()), criteria="Is good.", out=folder, pairs=True).finish_sync().close()
    return folder


@pytest.fixture(name="pairs")
def keep_pairs(judged: Path, tmp_path: Path) -> Iterator[Run]:
    shutil.copytree(judged, tmp_path / "pairs")
    with open_run(tmp_path / "pairs") as pairs:
        yield pairs


def label(pairs: Run, *, most: int = PAIRS) -> None:
    """Somebody labels what comes next, and is right."""
    plan = load_plan(pairs)
    drawn = None if plan is None else {planned.case for planned in plan.order}
    with open_label_queue(pairs, seed=1) as queue:
        for _ in range(most):
            task = queue.next("ann")
            if task is None or (drawn is not None and task.case not in drawn):
                break
            queue.record("ann", task.case, SIDES[int(task.case[5:]) % 4])


def test_a_plan_of_pairs_is_a_random_sample_drawn_at_once(pairs: Run):
    """Of all pairs, without strata, as many as its width takes; the better the judge is, the fewer."""
    plan = make_plan(pairs, within=0.1, seed=1)
    wide, sure = make_plan(pairs, within=0.2, seed=1), make_plan(pairs, within=0.1, expect=0.95, seed=1)

    assert plan.pairs
    assert plan.sizes == (PAIRS,)
    assert len(plan.order) == 97
    assert max(len(wide.order), len(sure.order)) < len(plan.order)
    assert {planned.p for planned in plan.order} == {97 / PAIRS}
    labels = [
        Label(case=planned.case, rater="ann", value=SIDES[int(planned.case[5:]) % 4], subject=planned.subject)
        for planned in plan.order
    ]
    status = find_plan_status(plan, labels)
    assert (status.planned, status.left, status.complete) == (97, 0, True)
    assert continue_plan(plan, pairs, status) is plan


def test_a_tie_for_the_second_is_another_truth(pairs: Run):
    """A plan's digest of truths holds the side, so labels that changed after a look are noticed."""
    plan = make_plan(pairs, within=0.2, seed=1)
    labels = [Label(case=planned.case, rater="ann", value="second", subject=planned.subject) for planned in plan.order]
    changed = [*labels[1:], Label(case=labels[0].case, rater="ann", value="tie", subject=labels[0].subject)]

    assert find_plan_status(plan, labels).truths != find_plan_status(plan, changed).truths


def test_the_preference_is_known_once_the_planned_pairs_are_labelled(pairs: Run):
    """Before that it says how many are left; the judge's preference makes the interval narrower."""
    keep_plan(make_plan(pairs, within=0.1, seed=1), pairs.folder)
    label(pairs, most=40)
    some = make_measurement(pairs).preference
    label(pairs)
    measurement = make_measurement(pairs)
    done = measurement.preference

    assert some is not None
    assert (some.rate, some.limit) == (None, None)
    assert "57 of the 97 planned labels are missing" in some.because
    assert done is not None
    assert done.rate is not None
    assert (done.limit, done.pairs, done.rate.labels) == ("one look", 97, 97)
    assert done.rate.low <= 0.25 <= done.rate.high
    assert done.rate.is_shown
    assert done.rate.worth > 97
    assert measurement.to_dict()["preference"]["rate"]["labels"] == 97


def test_further_pairs_are_counted_by_the_limits_that_hold_for_them(pairs: Run):
    """After the one look those for every look, which are wider and take more labels."""
    plan = make_plan(pairs, within=0.2, seed=1)
    keep_plan(plan, pairs.folder)
    with open_label_queue(pairs) as queue:
        for place, planned in enumerate(plan.order):
            queue.record("ann", planned.case, "second" if place % 16 < 9 else "first")
    preference = make_measurement(pairs).preference

    assert preference is not None
    assert preference.rate is not None
    rate, number = preference.rate, len(plan.order)
    assert (preference.limit, rate.is_shown) == ("one look", False)
    square = -2 * math.log(0.05)
    mixed = number * (square + math.log(square + 1)) / 100
    wider = math.sqrt((1 + 1 / mixed) * (square + math.log1p(mixed)))
    spread = ((rate.high - rate.low) / 2 / stats.t.ppf(0.975, number - 1)) ** 2 * number / (1 - number / PAIRS)
    assert rate.more == math.ceil(1 / ((rate.value / wider) ** 2 / spread + 1 / PAIRS)) - number


def test_pairs_in_random_order_have_limits_for_every_look_and_chosen_ones_none(pairs: Run):
    """As a rate has; and if every pair is labelled, the difference is a count."""
    label(pairs, most=60)
    random = make_measurement(pairs).preference
    chosen = [Label(case=f"pair-{n}", rater="ann", value=SIDES[n % 4]) for n in range(60)]
    few = make_measurement(pairs, labels=chosen[:12], labels_are_random=True).preference
    picked = make_measurement(pairs, labels=chosen).preference
    label(pairs)
    every = make_measurement(pairs).preference

    assert random is not None
    assert random.rate is not None
    assert random.limit == "every look"
    assert few is not None
    assert "label 18 more" in few.because
    assert picked is not None
    assert (picked.rate, picked.limit) == (None, None)
    assert every is not None
    assert every.rate is not None
    assert every.rate.interval == (0.25, 0.25)


def test_a_count_has_one_number_in_place_of_two_limits(line: Line, pairs: Run):
    """Every pair is labelled, so people prefer the second by so much; nothing is estimated."""
    label(pairs)

    assert "People prefer the second 25 points more often than the first." in line("agree", "pairs").out


def test_labels_and_runs_of_another_kind_are_refused(pairs: Run, tmp_path: Path):
    """Good or bad says nothing of two sides, and a run of pairs is a comparison already."""
    plan = make_plan(pairs, within=0.2, seed=1)
    good = [Label(case=planned.case, rater="ann", value=True, subject=planned.subject) for planned in plan.order]
    cases = [Case(id=f"pair-{n}", content=f"left {n}") for n in range(PAIRS)]
    single = run(cases, Judge(is_good), criteria="Is good.", out=tmp_path / "single").finish_sync()

    with pytest.raises(UsageError, match="first, second or tie"):
        find_plan_status(plan, good)
    with pytest.raises(UsageError, match="compares pairs"):
        make_paired_plans(pairs, single)


def test_plan_says_how_many_pairs_and_agree_which_side_is_preferred(line: Line, pairs: Run):
    """``plan`` draws, ``label`` labels, ``agree`` and ``report`` say it first."""
    drawn = line("plan", "pairs", "--within", "10", "--seed", "1")
    label(pairs, most=10)
    some = line("plan", "pairs")
    label(pairs)
    done, shown = line("plan", "pairs"), line("agree", "pairs")

    assert "97 labels for how much more often people prefer one side" in drawn.out
    assert "label 97 pairs" in drawn.out
    assert "label 87 pairs" in some.out
    assert "adjudge agree pairs" in done.out
    sentence = re.search(r"People would prefer the second \d+ to \d+ points more often than the first\.", shown.out)
    assert sentence is not None
    for form in ("--markdown", "-"), ():
        assert sentence[0] in line("report", "pairs", *form).out
    line("report", "pairs", "--html", "p.html")
    assert sentence[0] in Path("p.html").read_text("utf-8")
