"""A threshold with a promise: which labels it may rest on, what it releases, and what a look costs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("scipy", reason="measuring needs the extra trust")

from adjudge import AdjudgeError, JudgeChainResult, UsageError
from adjudge.dataset import Label, LabelDesign
from adjudge.labels import load_looks, make_plan, open_label_queue, write_plan
from adjudge.measurement import (
    Calibration,
    ReleasePolicy,
    calibrate,
    find_release_score,
    make_measurement,
    read_release_policy,
    write_release_policy,
)
from adjudge.runs import Run
from kit.labels import bind_labels
from kit.reports import keep_run, make_item, make_manifest_of, make_result

CASES = 300
DIGESTS = {"judge": "1" * 64, "rubric": "2" * 64, "asked": "3" * 64}
WRONG_PASS = "wrong_pass<=0.05"


def find_score(place: int) -> float:
    """Scores of 0.5 to 0.9, as many of each."""
    return 0.5 + 0.1 * (place % 5)


def is_good(place: int) -> bool:
    """The truth: passes with 0.8 and more are right, three in ten of the others are wrong."""
    return place % 5 >= 3 or place % 10 < 7


def keep(folder: Path, results: Iterable[Any] | None = None, **case: Any) -> Run:
    """A run whose judge passes everything with the scores above."""
    given = [make_result(score=find_score(place)) for place in range(CASES)] if results is None else list(results)
    items = [make_item(place, result, **case) for place, result in enumerate(given)]
    return keep_run(folder, items, make_manifest_of(len(items), digests=DIGESTS))


def say(places: Iterable[int], values: Sequence[Any] = (), **more: Any) -> list[Label]:
    """The truth of these cases, or these values."""
    return [
        Label(case=f"case-{place}", rater="ann", value=values[at] if values else is_good(place), blind=True, **more)
        for at, place in enumerate(places)
    ]


@pytest.fixture(name="run")
def make_run(tmp_path: Path) -> Run:
    return keep(tmp_path / "run")


def calibrate_all(run: Run, promise: str = WRONG_PASS, **options: Any) -> Calibration:
    """Calibrate with a label of every case."""
    return calibrate(run, promise, labels=say(range(CASES)), **options)


def get_policy(calibration: Calibration) -> ReleasePolicy:
    assert calibration.policy is not None
    return calibration.policy


# ---------------------------------------------------------------- what is released


def test_the_threshold_is_the_lowest_that_keeps_the_promise(run: Run):
    """From 0.8 on nothing is wrong; with 0.7 released as well, too many of all cases would be."""
    calibration = calibrate_all(run)
    policy = get_policy(calibration)

    assert (calibration.outcome, calibration.sample, calibration.labels) == ("kept", "census", CASES)
    assert policy.threshold == pytest.approx(0.8)
    assert (policy.released, policy.labels_released, policy.wrong) == (120, 120, 0)
    assert calibration.released_share == pytest.approx(0.4)
    assert [test.threshold for test in calibration.tests] == pytest.approx([0.9, 0.8, 0.7])


def test_a_policy_names_what_it_was_measured_on(run: Run):
    """Judge, rubric, question, contents, labels, run and dates."""
    policy = get_policy(calibrate_all(run))
    contents = run.find_contents()
    assert contents is not None

    assert (policy.judge_digest, policy.rubric_digest, policy.asked_digest) == ("1" * 64, "2" * 64, "3" * 64)
    assert (policy.run, policy.contents_digest) == (run.id, contents.digest)
    assert policy.measured_from <= policy.measured_to <= policy.at
    assert policy.promise == WRONG_PASS


def test_a_policy_says_first_which_contents_and_dates_it_speaks_of(run: Run, policy_file: Path):
    """As a certificate does: what is carried elsewhere says nothing there."""
    policy = read_release_policy(policy_file)
    members = json.loads(policy_file.read_text())
    day = policy.measured_from.date()

    assert list(members)[:2] == ["schema", "statement"]
    assert members["statement"] == policy.statement
    assert f"speaks of the 300 contents with the digest {policy.contents_digest} as " in policy.statement
    assert f"{policy.judge} judged them on {day}, and of no other contents, judge or time." in policy.statement


def test_a_policy_names_every_day_on_which_its_contents_were_judged(run: Run):
    """From the first to the last."""
    policy = get_policy(calibrate_all(run))
    longer = replace(policy, measured_from=policy.measured_to - timedelta(days=2))
    first, last = (policy.measured_to - timedelta(days=2)).date(), policy.measured_to.date()

    assert f"judged them from {first} to {last}" in longer.statement


def test_a_policy_whose_sentence_was_changed_is_refused(policy_file: Path):
    """People read the sentence, and programs the figures: both have to say the same."""
    members = json.loads(policy_file.read_text())
    members["statement"] = members["statement"].replace("300 contents", "all contents")
    policy_file.write_text(json.dumps(members))

    with pytest.raises(UsageError, match=r"policy\.json is no release policy: .*first sentence"):
        read_release_policy(policy_file)


def test_a_policy_without_the_sentence_is_the_same_policy(policy_file: Path):
    """Earlier files have none; the digest by which a certificate names a policy is of its figures."""
    import rfc8785

    policy = read_release_policy(policy_file)
    members = json.loads(policy_file.read_text())
    del members["statement"]
    policy_file.write_text(json.dumps(members))
    earlier = read_release_policy(policy_file)

    assert earlier == policy
    assert earlier.digest == policy.digest == sha256(rfc8785.dumps(members)).hexdigest()


def test_a_policy_releases_passes_with_its_score_and_nothing_else(run: Run):
    """It makes a gate stricter and never laxer: no failed and no undecided result, however high its score."""
    policy = get_policy(calibrate_all(run))

    assert policy.releases(make_result(score=0.8))
    assert not policy.releases(make_result(score=0.79))
    assert not policy.releases(make_result("failed", score=1.0))
    assert not policy.releases(make_result("undecided"))
    assert not policy.releases(make_result(score=None))
    assert not policy.releases(make_result(score=1.0, decided_by="policy"))


def test_a_chain_that_counts_votes_is_released_by_the_share_of_its_seats():
    """Its score is that of one seat."""
    members = {"outcome": "passed", "judge": "chain", "score": 1.0, "confidence": 0.6}

    assert find_release_score(JudgeChainResult(strategy="majority", **members)) == 0.6
    assert find_release_score(JudgeChainResult(strategy="fallback", **members)) == 1.0


def test_what_people_could_not_settle_counts_as_wrong(run: Run):
    """A case that nobody can tell about is not released as a right one."""
    values = [is_good(place) if find_score(place) < 0.85 else "cannot_tell" for place in range(CASES)]
    calibration = calibrate(run, WRONG_PASS, labels=say(range(CASES), values))

    assert calibration.outcome == "none can"
    assert calibration.tests[0].wrong == calibration.tests[0].labels_released == 60


def test_the_first_judgement_of_a_repeated_case_counts(tmp_path: Path):
    """A gate judges once."""
    items = [
        make_item(place, make_result(score=score), sample=sample)
        for place in range(CASES)
        for sample, score in enumerate((find_score(place), 1.0, 1.0))
    ]
    run = keep_run(tmp_path / "run", items, make_manifest_of(CASES, digests=DIGESTS))

    assert get_policy(calibrate_all(run)).threshold == pytest.approx(0.8)


def test_failed_cases_and_passes_without_a_score_are_never_released(tmp_path: Path):
    """They are counted, because the share is of all cases."""
    results = [
        make_result("failed") if place < 100 else make_result(score=None if place < 150 else find_score(place))
        for place in range(CASES)
    ]
    calibration = calibrate_all(keep(tmp_path / "run", results))

    assert (calibration.passed, calibration.without_score) == (200, 50)
    assert get_policy(calibration).released == 60


def test_a_share_of_the_released_cases_may_be_promised(run: Run):
    """The tests begin where labels can certify a threshold at all."""
    calibration = calibrate_all(run, "wrong_given_pass<=0.1")

    assert get_policy(calibration).threshold == pytest.approx(0.8)
    assert calibration.tests[0].threshold == pytest.approx(0.8)  # 60 of 300 are too few for twice 34


def test_a_judge_of_which_no_threshold_can_is_told_apart_from_too_few_labels(tmp_path: Path):
    """The first needs another judge, the second more labels."""
    run = keep(tmp_path / "run")
    bad = calibrate(run, "wrong_given_pass<=0.1", labels=say(range(CASES), [False] * CASES))
    few = calibrate(run, WRONG_PASS, labels=say(range(40)), labels_are_random=True)

    assert (bad.outcome, bad.policy, bad.needed) == ("none can", None, None)
    assert (few.outcome, few.policy) == ("cannot tell", None)
    assert few.needed is not None
    assert few.needed > 59


# ---------------------------------------------------------------- which labels


def test_labels_in_the_random_order_of_the_queue_are_a_sample(run: Run):
    """Nothing has to be said about them."""
    with open_label_queue(run) as queue:
        for _ in range(30):
            task = queue.next("ann")
            assert task is not None
            queue.record("ann", task.case, is_good(int(task.case.removeprefix("case-"))))
    calibration = calibrate(run, WRONG_PASS)

    assert (calibration.sample, calibration.labels) == ("random order", 30)


def test_labels_may_be_said_to_be_random(run: Run):
    """Otherwise nobody knows how they were chosen."""
    labels = say(range(100))

    assert calibrate(run, WRONG_PASS, labels=labels, labels_are_random=True).sample == "said random"
    with pytest.raises(UsageError, match=r"nobody knows how the labelled cases .* were drawn"):
        calibrate(run, WRONG_PASS, labels=labels)


def test_labels_in_strata_are_refused_with_the_remedy(tmp_path: Path):
    """A plan draws more of some cases than of others, whatever somebody says of it."""
    results = [make_result("passed" if place % 3 else "failed") for place in range(CASES)]
    run = keep(tmp_path / "run", results)
    plan = make_plan(run, within=0.1, seed=1)
    write_plan(plan, run.folder)
    labels = [
        replace(label, design=plan.find_design(label.case), subject=drawn.subject)
        for drawn in plan.order
        for label in say([int(drawn.case.removeprefix("case-"))])
    ]

    assert len(plan.strata) > 1
    for said in (False, True):
        with pytest.raises(UsageError, match=r"drawn in strata .* random order"):
            calibrate(run, WRONG_PASS, labels=labels, labels_are_random=said)


def test_a_plan_drawn_afterwards_takes_nothing_from_labels_in_random_order(tmp_path: Path):
    """The cases that both drew are in the random sample; what the plan alone drew makes a hole in the order."""
    results = [make_result("passed" if place % 3 else "failed") for place in range(CASES)]
    run = keep(tmp_path / "run", results)
    plan = make_plan(run, within=0.1, seed=1)
    write_plan(plan, run.folder)
    planned = [int(drawn.case.removeprefix("case-")) for drawn in plan.order]
    design = LabelDesign(plan="random order, seed 1", stratum="all", p=0.5, size=CASES)
    both = bind_labels(run, say([*planned[:20], *sorted(set(range(CASES)) - set(planned))[:80]], design=design))
    alone = replace(both[0], case=f"case-{planned[20]}", subject=plan.order[20].subject)
    alone = replace(alone, design=plan.find_design(alone.case))

    assert calibrate(run, WRONG_PASS, labels=both).sample == "random order"
    with pytest.raises(UsageError, match="drawn in strata"):
        calibrate(run, WRONG_PASS, labels=[*both, alone])


def test_a_draw_from_other_contents_is_no_sample_of_these(run: Run):
    """The labels of a draw count for the contents that it was made from."""
    design = LabelDesign(plan="random order, seed 1", stratum="all", p=0.5, size=CASES)
    bound = bind_labels(run, say(range(100), design=design))
    elsewhere = [replace(label, design=replace(label.design, contents="9" * 64)) for label in bound]  # type: ignore[type-var]

    assert calibrate(run, WRONG_PASS, labels=bound).sample == "random order"
    with pytest.raises(UsageError, match="nobody knows"):
        calibrate(run, WRONG_PASS, labels=elsewhere)


def test_labels_beside_the_draw_are_left_out_and_said_to_be(run: Run):
    """Somebody picked them."""
    design = LabelDesign(plan="random order, seed 1", stratum="all", p=0.5, size=CASES)
    labels = [*bind_labels(run, say(range(100), design=design)), *say(range(100, 120))]
    calibration = calibrate(run, WRONG_PASS, labels=labels)

    assert calibration.labels == 100
    assert any(warning.startswith("20 labelled cases are left out") for warning in calibration.warnings)


def test_labels_of_another_content_are_not_counted_and_said_not_to_be(run: Run):
    """People read last week's answer."""
    design = LabelDesign(plan="random order, seed 1", stratum="all", p=0.5, size=CASES)
    bound = bind_labels(run, say(range(100), design=design))
    others = [replace(label, rater="zoe", subject="9" * 64, design=None) for label in bound[80:]]
    calibration = calibrate(run, WRONG_PASS, labels=[*bound, *others])

    assert calibration.labels == 100
    assert calibration.warnings[0].startswith("20 labels are not counted: they are of another content")
    with pytest.raises(UsageError, match="20 labels are not counted: they are of another content"):
        calibrate(run, WRONG_PASS, labels=[*bind_labels(run, say(range(80))), *others], labels_are_random=True)


def test_labels_that_are_not_blind_are_said_to_be(run: Run):
    """Who sees a verdict tends to agree with it."""
    labels = [replace(label, blind=False) for label in say(range(CASES))]

    assert "blind" in calibrate(run, WRONG_PASS, labels=labels).warnings[0]


def test_numbers_are_no_labels_of_a_promise(run: Run):
    """Nobody said which of them are good."""
    with pytest.raises(UsageError, match=r"numbers, .* --label-map"):
        calibrate(run, WRONG_PASS, labels=say(range(CASES), [4.0] * CASES))


@pytest.mark.parametrize(
    ("results", "problem"),
    [
        ([make_result("failed")] * 9, "passed nothing"),
        ([make_result(score=None)] * 9, "gave its passes no score"),
    ],
)
def test_a_run_with_nothing_to_release_is_refused(tmp_path: Path, results: list[Any], problem: str):
    """There is no threshold to choose."""
    with pytest.raises(UsageError, match=problem):
        calibrate(keep(tmp_path / "run", results), WRONG_PASS, labels=say(range(9)))


@pytest.mark.parametrize(
    ("promise", "problem"),
    [
        ("wrong_pass<0.05", "a promise is a risk"),
        ("wrong<=0.05", "a promise is a risk"),
        ("wrong_pass<=nan", "a promise is a risk"),
        ("wrong_pass<=5", "for 5 % write 0.05"),
        ("wrong_pass<=0", "above 0"),
        ("lost<=0.05", "cascade"),
        (0.05, "a promise is a risk"),
    ],
)
def test_a_promise_that_is_none_is_refused(run: Run, promise: Any, problem: str):
    """The sentence has an example."""
    with pytest.raises(UsageError, match=problem):
        calibrate(run, promise, labels=[])


def test_a_run_without_labels_says_how_to_get_them(run: Run):
    """It is no error of the judge."""
    with pytest.raises(UsageError, match="adjudge label"):
        calibrate(run, WRONG_PASS)


# ---------------------------------------------------------------- looks


def test_a_further_look_is_stricter_and_the_same_look_is_not(run: Run):
    """The same labels and the same promise are one look, however often it is taken."""
    first = calibrate_all(run)
    again = calibrate_all(run)
    other = calibrate(run, "wrong_pass<=0.1", labels=say(range(CASES)))
    more = calibrate(run, WRONG_PASS, labels=say(range(200)), labels_are_random=True)
    back = calibrate_all(run)

    assert [look.look for look in (first, again, other, more, back)] == [1, 1, 2, 3, 1]
    assert first.level == again.level == back.level < other.level < more.level
    assert len(load_looks(run.folder)) == 3


def test_a_look_is_recorded_with_the_digest_of_the_thresholds(run: Run):
    """They do not depend on the labels, and anybody can compute them again."""
    one, other = calibrate_all(run), calibrate(run, WRONG_PASS, labels=say(range(60)), labels_are_random=True)
    looks = load_looks(run.folder)

    assert one.grid_digest == other.grid_digest
    assert [look.calibration.grid for look in looks if look.calibration] == [one.grid_digest] * 2
    assert [(look.by, look.outcome, look.bar) for look in looks] == [
        ("python", "passed", 0.05),
        ("python", "undecided", 0.05),
    ]


def test_a_look_that_cannot_be_recorded_is_not_taken(run: Run, tmp_path: Path):
    """The next one would be taken for the first. A link is not followed."""
    (run.folder / "looks.jsonl").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(AdjudgeError, match="cannot be recorded"):
        calibrate_all(run)


def test_a_measurement_goes_on_as_before_after_a_calibration(run: Run):
    """The looks of both are in one record, and a calibration is no other draw."""
    labels = say(range(100))
    before = make_measurement(run, labels=labels, labels_are_random=True)
    calibrate(run, WRONG_PASS, labels=labels, labels_are_random=True)
    after = make_measurement(run, labels=labels, labels_are_random=True)

    assert before.limit == after.limit


@pytest.mark.parametrize(("confidence", "threshold"), [(0.8, 0.8), (0.99, 0.8), (0.9999999, None)])
def test_the_confidence_is_that_of_the_tests_and_of_the_policy(run: Run, confidence: float, threshold: float | None):
    """The first look has 61 % of what may go wrong; a promise that is to be kept more often takes more labels."""
    labels = [*say(range(CASES))]
    calibration = calibrate(run, WRONG_PASS, labels=labels, confidence=confidence)

    assert calibration.confidence == confidence
    assert calibration.level == pytest.approx(1 - (1 - confidence) * 6 / math.pi**2)
    if threshold is None:
        assert (calibration.outcome, calibration.policy) == ("cannot tell", None)
        return
    policy = get_policy(calibration)
    assert (policy.confidence, policy.level) == (confidence, calibration.level)
    assert policy.threshold == pytest.approx(threshold)
    assert policy.p_value <= 1 - policy.level


@pytest.mark.parametrize("confidence", [0.4, 1, 1.5, -1, float("nan"), "0.95"])
def test_a_confidence_that_is_none_is_refused(run: Run, confidence: Any):
    """A promise is kept more often than not, and never surely; nothing is looked at."""
    with pytest.raises(UsageError) as caught:
        calibrate(run, WRONG_PASS, labels=say(range(CASES)), confidence=confidence)

    assert caught.value.argument == "confidence"
    assert load_looks(run.folder) == ()


# ---------------------------------------------------------------- the file


@pytest.fixture(name="policy_file")
def make_policy_file(run: Run, tmp_path: Path) -> Path:
    return write_release_policy(get_policy(calibrate_all(run)), tmp_path / "policy.json")


def test_a_policy_is_read_as_it_was_written(run: Run, policy_file: Path):
    """Its owner alone may read the file."""
    policy = read_release_policy(policy_file)

    assert policy.threshold == get_policy(calibrate_all(run)).threshold
    assert ReleasePolicy.from_dict(policy.to_dict()) == policy
    assert policy_file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "change",
    [
        {"threshold": 1.5},
        {"threshold": None},
        {"threshold": float("nan")},
        {"threshold": True},
        {"bound": 0.0},
        {"confidence": 0.2},
        {"level": 0.9},
        {"wrong": 500},
        {"released": 500},
        {"labels": 500},
        {"p_value": 0.5},
        {"judge_digest": "abc"},
        {"rubric_digest": ""},
        {"risk": "lost"},
        {"sample": "picked"},
        {"schema": "adjudge/release-policy/2"},
        {"measured_from": "2099-01-01T00:00:00+00:00"},
        {"measured_to": "yesterday"},
        {"allow": "everything"},
    ],
    ids=lambda change: next(f"{name} {value}" for name, value in change.items()),
)
def test_a_file_that_contradicts_itself_is_no_policy(policy_file: Path, change: dict[str, Any]):
    """Whoever reads it is told so, and releases nothing."""
    policy_file.write_text(json.dumps(json.loads(policy_file.read_text()) | change))

    with pytest.raises(UsageError, match=r"policy\.json is no release policy"):
        read_release_policy(policy_file)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"schema": 1}', '{"a": 1, "a": 2}'])
def test_a_file_of_something_else_is_no_policy(policy_file: Path, text: str):
    """Also where a member stands twice."""
    policy_file.write_text(text)

    with pytest.raises(UsageError, match=r"policy\.json is no release policy"):
        read_release_policy(policy_file)
