"""A cascade with a promise: what a cheap judge may decide before a strong one, and whether that pays."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("scipy", reason="measuring needs the extra trust")

from adjudge import Usage, UsageError
from adjudge.dataset import Label
from adjudge.labels import load_looks
from adjudge.measurement import CascadeCalibration, calibrate_cascade
from adjudge.runs import Run
from adjudge.trust import find_paired_difference
from kit.reports import keep_run, make_item, make_manifest_of, make_result

CASES = 300
LOST = "lost<=0.05"


def is_good(place: int) -> bool:
    """The truth: two cases in three are good."""
    return place % 3 > 0


def find_confidence(place: int) -> float:
    """Confidences of 0.5 to 0.9, as many of each."""
    return 0.5 + 0.1 * (place % 5)


def keep(folder: Path, errs: Callable[[int], bool], cost: float | None = None, **case: Any) -> Run:
    """A run of a judge that errs on some cases, sure of itself as above."""
    items = []
    for place in range(CASES):
        outcome = "passed" if is_good(place) != errs(place) else "failed"
        usage = None if cost is None else Usage(cost_usd=cost)
        result = make_result(outcome, confidence=find_confidence(place), usage=usage)
        items.append(make_item(place, result, **case))
    return keep_run(folder, items, make_manifest_of(CASES))


def say(places: range = range(CASES), value: Any = None) -> list[Label]:
    """The truth of these cases, or one value."""
    return [
        Label(case=f"case-{place}", rater="ann", value=is_good(place) if value is None else value, blind=True)
        for place in places
    ]


def is_unsure(place: int) -> bool:
    """The cheap judge errs where it is least sure."""
    return place % 5 == 0


@pytest.fixture(name="runs")
def make_runs(tmp_path: Path) -> tuple[Run, Run]:
    """A cheap judge that errs on the fifth of which it is least sure, and a strong one that errs seldom."""
    return (
        keep(tmp_path / "cheap", is_unsure, cost=0.001),
        keep(tmp_path / "strong", lambda place: place % 50 == 1, cost=0.01),
    )


def calibrate(runs: tuple[Run, Run], **options: Any) -> CascadeCalibration:
    return calibrate_cascade(*runs, LOST, labels=say(), **options)


def test_the_cheap_judge_decides_from_the_lowest_confidence_that_keeps_the_promise(runs: tuple[Run, Run]):
    """Below 0.6 it errs, and the strong one would not."""
    calibration = calibrate(runs)

    assert (calibration.outcome, calibration.advice) == ("kept", "cascade")
    assert calibration.threshold == pytest.approx(0.6)
    assert (calibration.decided, calibration.lost) == (240, 0)
    assert calibration.saved == pytest.approx(0.8 - 0.1)


def test_a_case_that_both_judges_decide_wrongly_is_not_lost(tmp_path: Path):
    """The strong one would not have helped."""
    runs = keep(tmp_path / "cheap", is_unsure, 0.001), keep(tmp_path / "strong", is_unsure, 0.01)

    assert calibrate(runs).threshold == pytest.approx(0.5)


def test_an_unsettled_case_is_lost_where_the_judges_differ(runs: tuple[Run, Run]):
    """People may come to say what the strong one says."""
    labels = [*say(range(200)), *say(range(200, CASES), "cannot_tell")]
    calibration = calibrate_cascade(*runs, LOST, labels=labels)

    assert calibration.threshold == pytest.approx(0.6)
    assert calibration.lost == len([place for place in range(200, CASES) if place % 50 == 1 and place % 5])


def test_the_cheap_judge_alone_may_be_better(runs: tuple[Run, Run]):
    """The labels show that it agrees with people more often, and it costs no more."""
    dearer = calibrate_cascade(runs[1], runs[0], LOST, labels=say())
    worse = keep(runs[0].folder.parent / "worse", lambda place: place % 3 == 0, 0.01)
    cheap = calibrate_cascade(runs[0], worse, LOST, labels=say())

    assert dearer.difference[0] > 0
    assert dearer.advice != "cheap alone"  # it costs more than the other
    assert cheap.difference[0] > 0
    assert cheap.advice == "cheap alone"


def test_a_few_labels_more_on_which_the_cheap_judge_is_right_do_not_show_that_it_is_better(tmp_path: Path):
    """The interval holds 0, so what the cascade loses decides: here nothing, whatever the confidence."""
    cheap = keep(tmp_path / "cheap", is_unsure, 0.001)
    calibration = calibrate((cheap, keep(tmp_path / "strong", lambda place: place % 5 == 0 or place % 100 == 7, 0.01)))

    assert calibration.right == (240, 237)
    assert calibration.difference[0] < 0
    assert (calibration.advice, calibration.threshold) == ("cascade", pytest.approx(0.5))


@pytest.mark.parametrize("right", [0, 2], ids=["a tie", "two more"])
def test_a_judge_that_did_no_worse_on_few_labels_is_not_called_better(tmp_path: Path, right: int):
    """Thirty labels cannot tell, and about how many would is what it says."""
    cheap = keep(tmp_path / "cheap", lambda place: place % 15 == 0, 0.001)
    strong = keep(tmp_path / "strong", lambda place: place % 15 == 4 or place in range(20, 20 + right), 0.01)
    calibration = calibrate_cascade(cheap, strong, LOST, labels=say(range(30)), labels_are_random=True)

    assert calibration.right == (28, 28 - right)
    assert calibration.difference[0] < 0
    assert (calibration.outcome, calibration.advice) == ("cannot tell", "more labels")
    assert calibration.needed is not None


def test_the_interval_of_the_two_judges_is_at_the_confidence_of_the_look(runs: tuple[Run, Run]):
    """Whoever labels until the cheap judge looks better needs more than whoever looks once."""
    first = calibrate(runs)
    second = calibrate_cascade(*runs, "lost<=0.06", labels=say())

    # The strong judge alone is wrong about six cases, and the cheap one alone about sixty.
    for look, calibration in enumerate((first, second), 1):
        level = 1 - 0.05 * 6 / (math.pi * look) ** 2
        assert calibration.look == look
        assert calibration.difference == pytest.approx(find_paired_difference(6, 60, CASES, level=level))


def test_a_cascade_does_not_pay_where_the_cheap_judge_errs_everywhere(tmp_path: Path):
    """However sure it is."""
    runs = keep(tmp_path / "cheap", lambda place: place % 2 == 0), keep(tmp_path / "strong", lambda _: False)
    calibration = calibrate(runs)

    assert (calibration.outcome, calibration.threshold, calibration.advice) == ("none can", None, "does not pay")


def test_a_cascade_does_not_pay_where_the_cheap_judge_is_dear(tmp_path: Path):
    """To ask both for most cases costs more than the strong one alone."""
    runs = keep(tmp_path / "cheap", is_unsure, cost=0.009), keep(tmp_path / "strong", lambda _: False, cost=0.01)
    calibration = calibrate(runs)

    assert calibration.threshold is not None
    assert calibration.advice == "does not pay"


def test_too_few_labels_cannot_tell(runs: tuple[Run, Run]):
    """It says how many could."""
    calibration = calibrate_cascade(*runs, LOST, labels=say(range(30)), labels_are_random=True)

    assert (calibration.outcome, calibration.advice) == ("cannot tell", "more labels")
    assert calibration.needed is not None


def test_looks_at_a_cascade_are_looks_at_the_cheap_judge(runs: tuple[Run, Run]):
    """Each further one is stricter; the same one is not."""
    looks = [calibrate(runs).look, calibrate(runs).look]
    more = calibrate_cascade(*runs, "lost<=0.1", labels=say())

    assert (looks, more.look) == ([1, 1], 2)
    assert len(load_looks(runs[0].folder)) == 2


def test_runs_of_other_contents_are_refused(runs: tuple[Run, Run], tmp_path: Path):
    """The judges could not be told apart from the answers."""
    with pytest.raises(UsageError, match="judge the same contents with both"):
        calibrate_cascade(runs[0], keep(tmp_path / "other", is_unsure, content="else"), LOST, labels=say())


def test_a_judge_without_a_confidence_is_refused(runs: tuple[Run, Run], tmp_path: Path):
    """With the remedy."""
    bare = keep_run(tmp_path / "bare", [make_item(place) for place in range(CASES)], make_manifest_of(CASES))

    with pytest.raises(UsageError, match="logprobs=True"):
        calibrate_cascade(bare, runs[1], LOST, labels=say())


def test_another_risk_is_no_promise_of_a_cascade(runs: tuple[Run, Run]):
    """And the loss of a cascade is none of a single judge."""
    with pytest.raises(UsageError, match=r"lost<=0\.05"):
        calibrate_cascade(*runs, "wrong_pass<=0.05", labels=say())
