"""Who lets what through: harness, rules and judge beside what people say of the same calls."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adjudge import Case, Judge, Rubric, UsageError, open_run, run
from adjudge.dataset import Label
from adjudge.labels import find_plan_status, make_plan, open_label_queue, write_plan
from adjudge.measurement import CallRates, DeciderRates, make_call_rates
from adjudge.trust import Estimate
from kit.labels import label_all
from kit.observed_calls import judge_calls, judge_words, make_call_case

pytest.importorskip("scipy", reason="measuring needs the extra trust")

SHARES = ("wrong_passes", "wrong_passes_of_bad", "wrong_stops", "wrong_stops_of_good")


def make_label(case: Case, rater: str = "ann", value: Any = None, **more: Any) -> Label:
    said = "good" in case.content["arguments"]["command"] if value is None else value
    return Label(case=case.id, rater=rater, value=said, subject=case.id, blind=True, **more)


def find(rates: CallRates, name: str) -> DeciderRates:
    return next(decider for decider in rates.deciders if decider.name == name)


def list_values(decider: DeciderRates) -> list[float | None]:
    return [getattr(decider, name).value for name in SHARES]


# Of 20 calls people would stop 5. The harness makes all but one good and one bad call, the rules stop three bad ones
# and one good one, and the judge lets through one bad one and stops two good ones.
EVERY = [
    *[make_call_case(n, bad=False) for n in range(11)],
    make_call_case(11, bad=False, harness="refused"),
    make_call_case(12, bad=False, rules="failed"),
    *[make_call_case(n, bad=False, judge=False) for n in (13, 14)],
    make_call_case(15, bad=True, judge=True),
    make_call_case(16, bad=True, judge=False),
    *[make_call_case(n, bad=True, rules="failed", judge=False) for n in (17, 18)],
    make_call_case(19, bad=True, rules="failed", judge=False, harness="asked"),
]


def test_with_a_label_on_every_call_the_rates_are_counts(tmp_path: Path):
    """Each against the same labels: shares of all calls, of those to stop, and of those to allow."""
    rates = make_call_rates(judge_calls(tmp_path / "run", EVERY), labels=[make_label(case) for case in EVERY])

    assert (rates.calls, rates.labelled, rates.limit) == (20, {"allow": 15, "stop": 5, "open": 0}, "count")
    assert list_values(find(rates, "harness")) == pytest.approx([4 / 20, 4 / 5, 1 / 20, 1 / 15])
    assert list_values(find(rates, "rules")) == pytest.approx([2 / 20, 2 / 5, 1 / 20, 1 / 15])
    assert list_values(find(rates, "judge")) == pytest.approx([1 / 20, 1 / 5, 2 / 20, 2 / 15])
    for decider in rates.deciders:
        for name in SHARES:
            estimate: Estimate = getattr(decider, name)
            assert estimate.interval == (estimate.value, estimate.value)
    assert rates.bad.value == pytest.approx(1 / 4)


def test_no_interval_has_zero_width_except_a_census(tmp_path: Path):
    """With all calls of a decision labelled, its rate is counted; with any fewer, or one not settled, it is not."""
    place = judge_calls(tmp_path / "run", EVERY)
    for chosen in (EVERY[:-1], EVERY[:15] + EVERY[16:], EVERY[:1] + EVERY[-1:], EVERY):
        for opened in (0, 1):
            labels = [make_label(case, value="cannot_tell" if n < opened else None) for n, case in enumerate(chosen)]
            settled = {case.id for case in chosen[opened:]}
            rates = make_call_rates(place, labels=labels, labels_are_random=True)
            assert_counted(rates.bad, settled.issuperset(case.id for case in EVERY))
            for decider in rates.deciders:
                for name, step in (("wrong_passes", "passed"), ("wrong_stops", "stopped")):
                    number = sum(decider.labelled[step][word] for word in ("allow", "stop"))
                    assert_counted(getattr(decider, name), number == decider.calls[step])


def assert_counted(estimate: Estimate, is_census: bool) -> None:
    if estimate.value is not None:
        assert estimate.low is not None
        assert estimate.high is not None
        assert (estimate.low == estimate.high) == (estimate.method == "counted") == is_census, estimate


def test_a_harness_that_stopped_no_call_stopped_none_wrongly(tmp_path: Path):
    """That is counted however few labels there are, for both shares of it, and all that is bad got through."""
    cases = [make_call_case(n, bad=n % 4 == 0) for n in range(40)]
    labels = [make_label(case) for case in cases[:12]]
    rates = make_call_rates(judge_calls(tmp_path / "run", cases), labels=labels, labels_are_random=True)
    harness = find(rates, "harness")

    for name, value in (("wrong_stops", 0), ("wrong_stops_of_good", 0), ("wrong_passes_of_bad", 1)):
        estimate: Estimate = getattr(harness, name)
        assert (estimate.value, estimate.low, estimate.high, estimate.method) == (value, value, value, "counted"), name
    assert_counted(harness.wrong_passes, is_census=False)


def test_calls_of_which_nobody_knows_what_the_harness_did_are_shown_and_in_no_rate_of_it(tmp_path: Path):
    """They count for the rules and the judge."""
    cases = [
        *EVERY,
        make_call_case(20, bad=True, harness="unknown", rules=None),
        make_call_case(21, bad=False, harness="unknown"),
    ]
    rates = make_call_rates(judge_calls(tmp_path / "run", cases), labels=[make_label(case) for case in cases])

    assert find(rates, "harness").calls == {"passed": 18, "stopped": 2, "unknown": 2}
    assert find(rates, "harness").labelled["unknown"] == {"allow": 1, "stop": 1, "open": 0}
    assert list_values(find(rates, "harness"))[:2] == pytest.approx([4 / 20, 4 / 5])
    assert find(rates, "rules").calls["unknown"] == 1
    assert find(rates, "judge").wrong_passes_of_bad.value == pytest.approx(2 / 6)


def test_of_a_run_with_rules_the_judge_was_not_asked_what_they_stop(tmp_path: Path):
    """The run's own rules count then, and not those of when the calls were collected."""
    place = judge_calls(tmp_path / "run", EVERY, rules=[{"not_contains": "17"}])
    rates = make_call_rates(place, labels=[make_label(case) for case in EVERY])

    assert find(rates, "rules").calls == {"passed": 19, "stopped": 1, "unknown": 0}
    assert find(rates, "judge").calls["unknown"] == 1
    assert find(rates, "judge").wrong_passes_of_bad.value == pytest.approx(1 / 4)


def test_a_call_that_rules_alone_pass_is_not_stopped_by_them(tmp_path: Path):
    """Where a rule decides every criterion, no judge is asked; what passes got through the rules."""
    rubric = Rubric(
        name="May run",
        criteria=[
            {"name": "harmless", "description": "It does no harm.", "rule": {"not_contains": "17"}},
        ],
    )
    place = tmp_path / "run"
    run(EVERY, Judge(judge_words), rubric=rubric, rules=[{"not_contains": "18"}], out=place).finish_sync()
    rates = make_call_rates(place, labels=[make_label(case) for case in EVERY])

    assert find(rates, "rules").calls == {"passed": 18, "stopped": 2, "unknown": 0}
    assert [decider.name for decider in rates.deciders] == ["harness", "rules"]


def test_what_the_judge_leaves_undecided_stays_out(tmp_path: Path):
    """As a gate blocks it. It is counted beside."""

    def answer(content: dict[str, Any]) -> bool:
        if content["arguments"]["command"].endswith(" 0"):
            raise RuntimeError("no answer")
        return judge_words(content)

    run(EVERY, Judge(answer), criteria="May run.", out=tmp_path / "run").finish_sync()
    judge = find(make_call_rates(tmp_path / "run", labels=[make_label(case) for case in EVERY]), "judge")

    assert judge.undecided == 1
    assert judge.wrong_stops.value == pytest.approx(3 / 20)


def test_labels_that_somebody_chose_give_counts_alone(tmp_path: Path):
    """Labels that somebody chose give counts alone."""
    rates = make_call_rates(judge_calls(tmp_path / "run", EVERY), labels=[make_label(case) for case in EVERY[10:]])

    assert rates.limit is None
    assert rates.because
    assert rates.labelled == {"allow": 5, "stop": 5, "open": 0}
    assert find(rates, "judge").labelled["passed"] == {"allow": 3, "stop": 1, "open": 0}
    assert list_values(find(rates, "judge")) == [None] * 4


def draw(place: Path, cases: list[Case], **changed: Any) -> list[Label]:
    """A plan of a run, and a label of each call that it drew."""
    by_id = {case.id: case for case in cases}
    with open_run(place) as opened:
        plan = make_plan(opened, within=0.2, expect=0.9, seed=3)
        write_plan(plan, place)
        labels = [make_label(by_id[drawn.case], **changed) for drawn in plan.order]
        assert find_plan_status(plan, labels).left == 0
    return labels


MANY = [
    make_call_case(n, bad=n % 5 == 0, harness="refused" if n % 15 == 0 else "ran", judge=n % 5 != 0 or n % 4 == 0)
    for n in range(400)
]


def test_planned_labels_give_intervals_that_hold_for_one_look(tmp_path: Path):
    """Over the strata of the plan, and about all calls."""
    place = judge_calls(tmp_path / "run", MANY)
    rates = make_call_rates(place, labels=draw(place, MANY))
    truth = make_call_rates(place, labels=[make_label(case) for case in MANY])

    assert sum(rates.labelled.values()) < 200
    for found, true in zip(rates.deciders, truth.deciders, strict=True):
        for name in SHARES:
            estimate = getattr(found, name)
            assert estimate.interval is not None
            assert estimate.low <= getattr(true, name).value <= estimate.high
            assert 0 < estimate.high - estimate.low < 1 or getattr(true, name).value in (0, 1)


def test_labels_that_were_drawn_for_another_judge_are_a_sample_for_this_one(tmp_path: Path):
    """Of the same calls. By whose verdicts the strata were made is then not known of the calls without a label."""
    place, other = judge_calls(tmp_path / "run", MANY), tmp_path / "other"
    draw(place, MANY)
    with open_label_queue(place) as queue:
        label_all(queue, "ann", lambda task: "good" in str(task.content))
        labels = queue.labels()
    run(MANY, Judge(lambda content: "1" in str(content)), criteria="May run.", out=other).finish_sync()
    found, true = (
        find(make_call_rates(other, labels=given), "judge") for given in (labels, [make_label(case) for case in MANY])
    )

    for name in SHARES:
        estimate = getattr(found, name)
        assert estimate.low <= getattr(true, name).value <= estimate.high
        assert 0 < estimate.high - estimate.low < 1


def test_limits_hold_whatever_is_true_of_calls_that_people_did_not_settle(tmp_path: Path):
    """They are wider then, and the value is that of the others."""
    place = judge_calls(tmp_path / "run", MANY)
    labels = draw(place, MANY)
    settled = find(make_call_rates(place, labels=labels), "judge").wrong_passes
    open_ones = [
        make_label(next(case for case in MANY if case.id == label.case), value="cannot_tell") for label in labels[:6]
    ]
    rates = make_call_rates(place, labels=[*open_ones, *labels[6:]])
    found = find(rates, "judge").wrong_passes

    assert rates.labelled["open"] == 6
    assert settled.high is not None
    assert found.high is not None
    assert found.high > settled.high


def test_it_says_how_far_two_people_agree(tmp_path: Path):
    """Of the calls that both labelled; a third person settles where they differ."""
    labels = [make_label(case, rater) for case in EVERY for rater in ("ann", "ben")]
    labels[1] = make_label(EVERY[0], "ben", value=False)
    settled = make_label(EVERY[0], "zoe", value=True, kind="adjudication")
    rates = make_call_rates(judge_calls(tmp_path / "run", EVERY), labels=[*labels, settled])

    assert (rates.agreed.count, rates.agreed.of) == (19, 20)
    assert rates.labelled["open"] == 0
    assert rates.people == ("ann", "ben")


def test_labels_of_another_content_are_in_no_rate_and_counted_apart(tmp_path: Path):
    """People read another call with the same id."""
    labels = [make_label(case) for case in EVERY]
    read_other = [replace(label, subject="9" * 64) for label in labels[15:]]
    rates = make_call_rates(judge_calls(tmp_path / "run", EVERY), labels=[*labels[:15], *read_other])

    assert (rates.other_contents, rates.labelled) == (5, {"allow": 15, "stop": 0, "open": 0})
    assert rates.to_dict()["other_contents"] == 5


def test_a_run_of_other_cases_is_refused(tmp_path: Path):
    """A run of other cases is refused."""
    place = judge_calls(tmp_path / "run", [Case(id="a", content="pass", metadata={"call": "x"})])

    with pytest.raises(UsageError):
        make_call_rates(place, labels=[Label(case="a", rater="ann", value=True)])
