"""The queue of labelling: who gets which case, what is kept, and that nothing is lost or told."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import subprocess
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from adjudge import Case, Dataset, UsageError, open_run
from adjudge.dataset import Label, LabelDesign, digest_content, load_labels, make_content_set, write_labels
from adjudge.labels import LabelQueue, compute_label_agreement, open_label_queue
from kit.labels import POLITE, label_all, make_criteria_run, make_pairs_run, make_run, write_dataset
from kit.patience import HANG
from kit.process import kill_and_read, start_module
from kit.runs import make_cases

posix = pytest.mark.skipif(os.name != "posix", reason="of POSIX")

HOSTILE = "'); DROP TABLE events;--"


@pytest.fixture(autouse=True)
def work_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def folder(tmp_path) -> Path:
    """A run of six cases."""
    return make_run(tmp_path / "R")


@pytest.fixture
def queue(folder):
    with open_label_queue(folder, seed=1) as opened:
        yield opened


def start(folder: Path, rater: str, most: int = 1000) -> subprocess.Popen[str]:
    """A rater in another process."""
    return start_module("labels", str(folder), rater, str(most))


# ---------------------------------------------------------------- one rater


def test_what_is_left_is_what_needs_another_answer(folder):
    """Of each case a rater has not answered, unless enough others have."""
    with open_label_queue(folder, seed=1, per_case=2) as queue:
        assert queue.count_left("ann") == 6
        for rater in ("ann", "bea", "cem"):
            task = queue.next(rater)
            queue.record(rater, task.case, True)
        assert queue.count_left("ann") == 5
        label_all(queue, "ann")
        assert queue.count_left("ann") == 0
        label_all(queue, "bea")
        assert (queue.count_left("bea"), queue.count_left("dan")) == (0, 0)


def test_every_case_comes_once(queue):
    """Then there is nothing left, and every answer is a label."""
    seen = label_all(queue, "ann")

    assert sorted(seen) == [f"case-{n}" for n in range(6)]
    assert queue.next("ann") is None
    assert [label.case for label in queue.labels()] == seen


def test_a_label_says_who_when_and_how(queue):
    """Blind, without a run, with its time and the design that the random order gives it."""
    task = queue.next("ann")
    label = queue.record("ann", task.case, False, comment="Too short.")
    (kept,) = queue.labels()

    assert (kept.rater, kept.value, kept.kind, kept.comment, kept.blind) == ("ann", False, "person", "Too short.", True)
    assert (kept.run, kept.order, kept.at) == (None, None, label.at)
    contents = make_content_set(digest_content(case.content) for case in make_cases(6))
    drawn: Any = {"size": 6, "contents": contents.digest, "cases": 6}
    assert kept.design == LabelDesign(plan="random order, seed 1", stratum="all", p=1 / 6, **drawn)
    assert kept.subject == task.subject == digest_content(task.content)


def test_the_same_question_comes_until_it_is_answered(queue):
    """Whoever loads a page again sees the same case."""
    first, again = queue.next("ann"), queue.next("ann")

    assert first.case == again.case


def test_a_task_tells_nothing_of_the_judge_or_of_others(tmp_path):
    """Neither the verdict, nor labels, metadata or group of the case, nor what another rater said."""
    case = Case(id="a", content="good", label=True, labels={"SECRET": True}, group="SECRET", metadata={"x": "SECRET"})
    folder = make_run(tmp_path / "R", [case])
    with open_label_queue(folder, per_case=2) as queue:
        queue.next("SECRET")
        queue.record("SECRET", "a", True, comment="SECRET")
        task = queue.next("ann")

    assert (task.results, task.others, task.comment) == ((), (), None)
    assert "SECRET" not in json.dumps(task.to_dict())
    assert "SECRET" not in repr(task)
    assert not any(word in json.dumps(task.to_dict()) for word in ("passed", "failed", "score"))


def test_who_saw_the_verdict_is_never_blind_to_the_case_again(queue, folder):
    """The label says of which run; and a later blind hand-out of the same case changes nothing."""
    shown = queue.next("ann", blind=False)
    assert shown.results[0].outcome in ("passed", "failed")
    blind = queue.next("ann")
    assert (blind.case, blind.results) == (shown.case, ())
    label = queue.record("ann", shown.case, True)
    other = queue.record("ann", queue.next("ann").case, True)

    assert (label.blind, label.run) == (False, open_run(folder).id)
    assert (other.blind, other.run) == (True, None)


def test_an_answer_replaces_the_one_before(queue):
    """One rater has one answer to a case."""
    case = queue.next("ann").case
    queue.record("ann", case, True)
    queue.record("ann", case, False)

    assert [label.value for label in queue.labels()] == [False]


def test_a_case_that_was_skipped_comes_at_the_end(queue):
    """When what was skipped is asked for; the one skipped longest ago first."""
    skipped = []
    for _ in range(2):
        skipped.append(queue.next("ann").case)
        queue.skip("ann", skipped[-1])
    others = label_all(queue, "ann")

    assert set(others).isdisjoint(skipped)
    assert queue.next("ann") is None
    assert queue.progress("ann").skipped == 2
    task = queue.next("ann", skipped=True)
    assert (task.case, task.skipped) == (skipped[0], True)
    queue.record("ann", task.case, True)
    assert queue.progress("ann").skipped == 1


def test_undo_takes_back_the_last_answer_or_skip(queue):
    """And hands the same case out again; then the one before."""
    first = queue.next("ann").case
    queue.record("ann", first, True)
    second = queue.next("ann").case
    queue.skip("ann", second)

    assert (queue.undo("ann").case, queue.next("ann").case) == (second, second)
    undone = queue.undo("ann")
    assert (undone.case, undone.label.value) == (first, True)
    assert queue.next("ann").case == first
    assert queue.undo("ann") is None
    assert list(queue.labels()) == []


def test_undo_takes_back_no_answer_of_others(queue):
    """However much later they gave it."""
    queue.record("ann", queue.next("ann").case, True)
    queue.record("bob", queue.next("bob").case, True)
    queue.undo("ann")

    assert [label.rater for label in queue.labels()] == ["bob"]


def test_what_was_taken_back_stays_in_the_file(queue):
    """With a mark, so that nobody can make a label go without a trace."""
    queue.record("ann", queue.next("ann").case, True)
    queue.undo("ann")
    with sqlite3.connect(queue.path) as file:
        actions = [row[0] for row in file.execute("SELECT action FROM events ORDER BY seq")]
        for statement in ("DELETE FROM events", "UPDATE events SET rater = 'bob'"):
            with pytest.raises(sqlite3.IntegrityError):
                file.execute(statement)
    file.close()

    assert actions == ["label", "undo"]


@pytest.mark.parametrize("before", [True, False])
def test_a_comment_goes_with_the_answer(queue, before):
    """Written before it or after it; an empty one takes it away."""
    case = queue.next("ann").case
    if before:
        queue.comment("ann", case, "Hm.")
        assert queue.next("ann").comment == "Hm."
    queue.record("ann", case, True)
    if not before:
        queue.comment("ann", case, "Hm.")
    assert [(label.value, label.comment) for label in queue.labels()] == [(True, "Hm.")]

    queue.comment("ann", case, "")
    assert [label.comment for label in queue.labels()] == [None]


def test_a_comment_outlives_an_undo(queue):
    """It is the answer that was wrong."""
    case = queue.next("ann").case
    queue.comment("ann", case, "Hm.")
    queue.record("ann", case, True)
    queue.undo("ann")

    assert queue.next("ann").comment == "Hm."


@pytest.mark.parametrize(
    ("value", "message"), [("first", "cannot_tell"), ("yes", "'yes'"), (None, "None"), (float("nan"), "nan")]
)
def test_a_value_that_is_no_answer_is_refused(queue, value, message):
    """Nothing is kept."""
    case = queue.next("ann").case
    with pytest.raises(UsageError) as caught:
        queue.record("ann", case, value)

    assert message in str(caught.value)
    assert list(queue.labels()) == []


def test_a_case_that_is_not_there_is_refused(queue):
    """By its name."""
    for ask in (lambda: queue.record("ann", "nope", True), lambda: queue.skip("ann", "nope")):
        with pytest.raises(UsageError) as caught:
            ask()
        assert "'nope'" in str(caught.value)


def test_progress_counts_everybody_and_one(folder):
    """Cases that have all their raters, and those of one rater; the pace when it is known."""
    with open_label_queue(folder, per_case=2) as queue:
        assert queue.progress("ann").seconds_per_answer is None
        label_all(queue, "ann")
        label_all(queue, "bob", most=2)
        progress = queue.progress("bob")

    assert (progress.total, progress.per_case, progress.complete, progress.mine, progress.skipped) == (6, 2, 2, 2, 0)
    assert queue_pace(folder) > 0
    assert progress.to_dict()["schema"] == "adjudge/label-progress/1"


def queue_pace(folder: Path) -> float:
    with open_label_queue(folder) as queue:
        return queue.progress("ann").seconds_per_answer or 0.0


# ---------------------------------------------------------------- several raters


def test_no_case_is_with_more_raters_than_it_is_to_have(queue):
    """Those that somebody has are passed over."""
    assert len({queue.next(rater).case for rater in ("ann", "bob", "cy", "di", "eve", "flo")}) == 6
    assert queue.next("gus") is None


def test_per_case_raters_share_each_case(folder):
    """Two each, never the same person twice."""
    with open_label_queue(folder, per_case=2) as queue:
        for rater in ("ann", "bob", "cy"):
            label_all(queue, rater)
        labels = list(queue.labels())

    assert Counter(label.case for label in labels) == {f"case-{n}": 2 for n in range(6)}
    assert len({(label.case, label.rater) for label in labels}) == 12


@pytest.mark.timed
def test_a_case_is_free_again_when_its_time_is_over(folder):
    """A rater who went home keeps nobody; what they say later counts all the same."""
    with open_label_queue(folder, seed=1) as queue:
        case = queue.next("ann").case
        assert queue.next("bob").case != case
    with open_label_queue(folder, lease_seconds=0.05) as queue:
        assert queue.next("ann").case == case
        time.sleep(0.06)
        assert queue.next("cy").case == case
        queue.record("cy", case, True)
        queue.record("ann", case, False)

        assert {label.rater for label in queue.labels()} == {"cy", "ann"}


def test_a_queue_that_is_closed_gives_its_cases_back(folder):
    """Whoever comes next gets the first of them."""
    with open_label_queue(folder, seed=1) as queue:
        case = queue.next("ann").case
    with open_label_queue(folder) as queue:
        assert queue.next("bob").case == case


def test_one_rater_in_two_places_gets_two_cases(folder):
    """Each place keeps its own, and undo begins with what was done there."""
    with open_label_queue(folder) as queue:
        one, two = queue.next("ann", session="1").case, queue.next("ann", session="2").case
        queue.record("ann", one, True, session="1")
        queue.record("ann", two, True, session="2")

        assert one != two
        assert queue.undo("ann", session="1").case == one


@pytest.mark.integration
@posix
def test_processes_share_the_work(folder):
    """Nothing is labelled twice, and nothing is lost, whoever is faster."""
    make_run(folder.with_name("S"), 60)
    processes = [start(folder.with_name("S"), rater) for rater in ("ann", "bob")]
    seen = [process.communicate(timeout=HANG)[0].split() for process in processes]
    with open_label_queue(folder.with_name("S")) as queue:
        labels = list(queue.labels())

    assert [process.returncode for process in processes] == [0, 0]
    assert Counter(label.case for label in labels) == {f"case-{n}": 1 for n in range(60)}
    assert sorted([*seen[0], *seen[1]]) == sorted(label.case for label in labels)


@pytest.mark.integration
@posix
def test_a_process_that_is_killed_loses_nothing(folder):
    """What it had recorded is there, and others go on; its case is free when its time is over."""
    make_run(folder.with_name("S"), 60)
    process = start(folder.with_name("S"), "ann")
    assert process.stdout is not None
    seen = [process.stdout.readline().strip() for _ in range(5)]
    seen += kill_and_read(process).split()
    with open_label_queue(folder.with_name("S")) as queue:
        kept = [label.case for label in queue.labels()]
        rest = label_all(queue, "bob")

    assert kept[: len(seen)] == seen
    assert len(kept) - len(seen) <= 1  # recorded, and killed before it was said
    assert len({*kept, *rest}) >= 59


# ---------------------------------------------------------------- criteria and pairs


def test_criteria_are_asked_one_by_one(tmp_path):
    """A criterion that a rule decides is not asked; one rater answers all of a case before the next."""
    with open_label_queue(make_criteria_run(tmp_path / "C"), by_criterion=True) as queue:
        first, criterion = queue.next("ann").case, queue.next("ann").criterion
        seen = label_all(queue, "ann", lambda task: task.criterion.name == "polite")
        labels = list(queue.labels())

    assert (criterion.name, criterion.description) == ("polite", POLITE["polite"])
    assert seen == [case for case in dict.fromkeys(seen) for _ in POLITE]
    assert seen[0] == first
    assert [(label.criterion, label.value) for label in labels[:2]] == [("polite", True), ("right", False)]


def test_undo_steps_back_through_criteria(tmp_path):
    """Into the case before, too."""
    with open_label_queue(make_criteria_run(tmp_path / "C"), by_criterion=True) as queue:
        case = queue.next("ann").case
        for name in POLITE:
            queue.record("ann", case, True, criterion=name)
        assert queue.next("ann").case != case
        assert queue.undo("ann").criterion == "right"
        assert (queue.next("ann").case, queue.next("ann").criterion.name) == (case, "right")


@pytest.mark.parametrize("criterion", [None, "short", "nope"])
def test_only_criteria_that_are_asked_get_answers(tmp_path, criterion):
    """Not one that a rule decides, and not the whole where criteria are asked."""
    with open_label_queue(make_criteria_run(tmp_path / "C"), by_criterion=True) as queue:
        case = queue.next("ann").case
        with pytest.raises(UsageError) as caught:
            queue.record("ann", case, True, criterion=criterion)

    assert repr(criterion) in str(caught.value)
    assert "'polite'" in str(caught.value)


def test_criteria_need_a_rubric(tmp_path):
    """A data set that says nothing of them names the remedy."""
    path = write_dataset(tmp_path / "d.jsonl", {"id": "a", "content": "x"})
    with open_label_queue(path, by_criterion=True) as queue, pytest.raises(UsageError) as caught:
        queue.next("ann")

    assert "name one with rubric" in str(caught.value)


def test_a_pair_is_shown_in_either_order_and_named_by_its_own_sides(tmp_path):
    """By chance for each rater and case, and the same when it is seen again; the label records it."""
    folder = make_pairs_run(tmp_path / "P", 40)
    orders = set()
    with open_label_queue(folder) as queue:
        while (task := queue.next("ann")) is not None:
            shown = {name: text for name, text in task.parts if name in ("A", "B")}
            left = "A" if shown["A"].startswith("left") else "B"
            place: Any = "first" if left == "A" else "second"
            assert queue.next("ann").order == task.order
            label = queue.record("ann", task.case, task.name_shown(place))
            assert (label.value, label.order) == ("first", "ab" if left == "A" else "ba")
            orders.add(label.order)

    assert orders == {"ab", "ba"}


@pytest.mark.parametrize("value", [True, 0.5, "good"])
def test_a_pair_takes_a_preference_only(tmp_path, value):
    """True would be read as the first."""
    with open_label_queue(make_pairs_run(tmp_path / "P", 1)) as queue, pytest.raises(UsageError) as caught:
        queue.record("ann", "pair-0", value)

    assert "tie" in str(caught.value)


# ---------------------------------------------------------------- the order


@pytest.mark.slow
def test_the_order_is_random_by_its_seed(tmp_path):
    """The same for the same seed, another for another; drawn anew for a new file unless it is named."""
    orders = []
    for number, seed in enumerate((7, 7, 8, None, None)):
        with open_label_queue(make_run(tmp_path / f"R{number}", 30), seed=seed) as queue:
            orders.append(label_all(queue, "ann"))

    assert orders[0] == orders[1]
    assert len({tuple(order) for order in orders[1:]}) == 4


def test_another_seed_is_refused_once_labelling_began(folder):
    """Half of one order and half of another is no random sample."""
    open_label_queue(folder, seed=1).close()
    with pytest.raises(UsageError) as caught:
        open_label_queue(folder, seed=2)

    assert "seed 1" in str(caught.value)


def test_labels_in_random_order_are_a_random_sample(tmp_path):
    """Over many seeds every case is as often among the first two as any other."""
    first = Counter()
    for seed in range(60):
        rows = [{"id": f"c{n}", "content": "x"} for n in range(6)]
        path = write_dataset(tmp_path / f"{seed}.jsonl", *rows)
        with open_label_queue(path, seed=seed) as queue:
            first.update(label_all(queue, "ann", most=2))

    assert set(first) == {f"c{n}" for n in range(6)}
    assert min(first.values()) >= 8  # 20 expected


def test_only_cases_that_came_up_by_themselves_have_a_design(queue):
    """One that somebody picked is no part of the sample."""
    drawn = queue.next("ann").case
    picked = next(f"case-{n}" for n in range(6) if f"case-{n}" != drawn)
    queue.record("bob", picked, True)
    queue.record("ann", drawn, True)
    designs = {label.case: label.design for label in queue.labels()}

    assert designs[picked] is None
    assert designs[drawn].p == pytest.approx(1 / 6)


def test_a_run_that_grows_keeps_its_order(tmp_path):
    """New cases find their places in the same random order."""
    folder = make_run(tmp_path / "R", 4)
    with open_label_queue(folder, seed=3) as queue:
        label_all(queue, "ann")
    with open_label_queue(make_run(tmp_path / "T", 9), seed=3) as queue:
        expected = [case for case in label_all(queue, "ann") if int(case[-1]) >= 4]
    make_run(folder, 9, resume=True)
    with open_label_queue(folder) as queue:
        assert queue.progress("ann").total == 9
        assert label_all(queue, "ann") == expected


def plan(folder: Path, *order: Any, **more: Any) -> None:
    """A plan as it is kept in a run's folder."""
    document = {"schema": "adjudge/plan/1", "id": "p1", "seed": 1, "strata": [], "order": list(order)} | more
    (folder / "plan.json").write_text(json.dumps(document), "utf-8")


def test_the_plan_gives_order_and_design(folder):
    """Cases that it did not draw are not handed out."""
    plan(folder, {"case": "case-4", "stratum": "failed", "p": 0.5}, {"case": "case-1", "stratum": "passed", "p": 0.2})
    with open_label_queue(folder) as queue:
        seen = label_all(queue, "ann")
        labels = list(queue.labels())
        progress = queue.progress("ann")
        assert queue.plan == "p1"

    assert seen == ["case-4", "case-1"]
    assert labels[1].design == LabelDesign(plan="p1", stratum="passed", p=0.2)
    assert (progress.total, progress.complete) == (2, 2)


def test_what_the_plan_did_not_draw_is_no_progress(folder):
    """Labels of other cases are kept, and do not make more cases done than there are to do."""
    plan(folder, {"case": "case-4", "stratum": "failed", "p": 0.5})
    with open_label_queue(folder) as queue:
        for case in ("case-0", "case-1", "case-4"):
            queue.record("ann", case, True)
        progress = queue.progress("ann")

        assert (progress.total, progress.complete, progress.mine) == (1, 1, 1)
        assert len(list(queue.labels())) == 3


@pytest.fixture
def planned(folder) -> Path:
    plan(folder, {"case": "case-4", "stratum": "failed", "p": 0.5})
    return folder


def test_a_plan_that_is_continued_is_followed(planned):
    """What was labelled by the earlier part stays as it was drawn."""
    with open_label_queue(planned) as queue:
        label_all(queue, "ann")
    rows = [{"case": "case-4", "stratum": "failed", "p": 0.9}, {"case": "case-0", "stratum": "failed", "p": 0.9}]
    plan(planned, *rows)
    with open_label_queue(planned) as queue:
        assert label_all(queue, "ann") == ["case-0"]
        assert [label.design.p for label in queue.labels()] == [0.5, 0.9]


@pytest.mark.parametrize(
    ("order", "more", "message"),
    [
        ([{"case": "nope", "stratum": "a", "p": 0.5}], {}, "'nope'"),
        ([{"case": "case-1", "stratum": "a", "p": 0}], {}, "order[0]"),
        ([{"case": "case-1", "stratum": "a"}], {}, "order[0]"),
        ([{"case": 3, "stratum": "a", "p": 1}], {}, "order[0]"),
        (["case-1"], {}, "order[0]"),
        ([{"case": "case-1", "stratum": "a", "p": 1}] * 2, {}, "twice"),
        ([], {"schema": "adjudge/plan/9"}, "adjudge/plan/9"),
        ([], {"id": 3}, "no id"),
        ([], {"order": {}}, "no order"),
    ],
)
def test_a_plan_that_was_edited_by_hand_is_refused(folder, order, more, message):
    """A wrong probability would make every rate wrong without a word; nothing is begun."""
    plan(folder, *order, **more)
    with pytest.raises(UsageError) as caught:
        open_label_queue(folder)

    assert message in str(caught.value)
    assert "again" in str(caught.value)


# ---------------------------------------------------------------- differences


@pytest.fixture
def differing(folder):
    """Two raters who differ on two of six cases."""
    with open_label_queue(folder, per_case=2, seed=1) as queue:
        label_all(queue, "ann")
        label_all(queue, "bob", lambda task: task.case not in ("case-1", "case-2"))
        yield queue


def test_differences_are_handed_out_with_what_everybody_said(differing):
    """Here nobody is blind to the others; the verdict is still not shown."""
    task = differing.next_difference("zoe")

    assert task.case in ("case-1", "case-2")
    assert [(label.rater, label.value) for label in task.others] == [("ann", True), ("bob", False)]
    assert task.results == ()


def test_settling_decides_the_truth(differing):
    """As a label of its own kind; the others stay."""
    label = differing.adjudicate("zoe", "case-1", False, comment="As agreed.")
    truth = differing.truths()["case-1"]

    assert (label.kind, label.blind, label.comment) == ("adjudication", True, "As agreed.")
    assert (truth.value, truth.settled_by, len(truth.labels)) == (False, "adjudication", 2)
    assert [truth.case for truth in differing.list_differences()] == ["case-2"]


def test_a_difference_can_be_left_open_and_a_settlement_taken_back(differing):
    """Then it comes again."""
    case = differing.next_difference("zoe").case
    differing.skip_difference("zoe", case)
    other = differing.next_difference("zoe").case
    differing.adjudicate("zoe", other, True)

    assert other != case
    assert differing.next_difference("zoe") is None
    assert differing.undo("zoe") is None
    assert differing.undo_difference("zoe").label.kind == "adjudication"
    assert differing.next_difference("zoe").case == other
    assert differing.next_difference("zoe", session="tomorrow") is not None


def test_a_difference_that_somebody_chose_comes_first(differing):
    """Also one that they left open; where another session has it, the next one comes."""
    first = differing.next_difference("zoe").case
    other = next(truth.case for truth in differing.list_differences() if truth.case != first)
    assert differing.next_difference("zoe", case=other).case == other
    differing.skip_difference("zoe", other)
    assert differing.next_difference("zoe").case == first
    assert differing.next_difference("zoe", case=other).case == other
    assert differing.next_difference("yan", session="elsewhere", case=other) is None  # both are with zoe
    assert differing.next_difference("zoe", case="unknown").case == first


def test_settling_takes_back_no_answer(differing):
    """Whoever settles what they labelled themselves keeps their label."""
    differing.adjudicate("ann", "case-1", False)
    assert differing.undo_difference("ann").case == "case-1"
    assert differing.undo_difference("ann") is None
    assert len(list(differing.labels())) == 12


def test_two_people_settle_different_cases(differing):
    """As with labels, nobody gets what another has."""
    one, two = differing.next_difference("zoe", session="1"), differing.next_difference("yan", session="2")

    assert {one.case, two.case} == {"case-1", "case-2"}


def test_who_saw_what_others_said_is_not_asked_any_more(folder):
    """Their label would not be their own."""
    with open_label_queue(folder, per_case=3, seed=1) as queue:
        label_all(queue, "ann")
        label_all(queue, "bob", lambda task: task.case != "case-1")
        queue.next_difference("zoe")
        seen = label_all(queue, "zoe")

    assert len(seen) == 5
    assert "case-1" not in seen


def test_there_is_nothing_to_settle_where_nobody_labelled(queue):
    """A settlement of nothing would be a label that says it is more."""
    with pytest.raises(UsageError) as caught:
        queue.adjudicate("zoe", "case-1", True)

    assert "'case-1'" in str(caught.value)


def test_criteria_are_settled_one_by_one(tmp_path):
    """A difference about one of them leaves the others alone."""
    with open_label_queue(make_criteria_run(tmp_path / "C", 1), by_criterion=True, per_case=2) as queue:
        label_all(queue, "ann")
        label_all(queue, "bob", lambda task: task.criterion.name == "polite")
        task = queue.next_difference("zoe")
        queue.adjudicate("zoe", task.case, False, criterion=task.criterion.name)

        assert task.criterion.name == "right"
        assert queue.list_differences() == ()
        assert queue.truths(criterion="right")["case-0"].settled_by == "adjudication"


# ---------------------------------------------------------------- in and out


@pytest.mark.parametrize("name", ["l.jsonl", "l.csv"])
def test_labels_come_back_from_a_file_without_doubling(differing, name):
    """Importing what was exported here changes nothing, twice; into another file it brings all of it."""
    differing.adjudicate("zoe", "case-1", False, comment="=HYPERLINK(0)")
    write_labels(name, differing.labels())
    exported = load_labels(name)
    before = list(differing.labels())

    assert differing.import_labels(exported).to_dict() == {
        "added": 0,
        "known": 13,
        "elsewhere": [],
        "other_contents": [],
    }
    assert list(differing.labels()) == before
    with open_label_queue(make_run(Path("other")), store="other.sqlite") as other:
        assert (other.import_labels(exported).added, other.import_labels(exported).added) == (13, 0)
        assert list(other.labels()) == list(exported)
        assert other.truths()["case-1"].value is False


def test_what_was_taken_back_does_not_come_back(queue):
    """From a file that was written before."""
    queue.record("ann", queue.next("ann").case, True)
    exported = list(queue.labels())
    queue.undo("ann")

    assert queue.import_labels(exported).known == 1
    assert list(queue.labels()) == []


def test_imported_labels_count_as_work_that_was_done(queue):
    """The rater is not asked again, and others not beyond what each case is to have."""
    subject = digest_content(make_cases(6)[3].content)
    queue.import_labels([Label(case="case-3", rater="ann", value=True, subject=subject)])

    assert "case-3" not in label_all(queue, "ann")
    assert queue.next("bob") is None


def test_criteria_that_were_imported_are_not_asked_again(tmp_path):
    """Those that are missing are."""
    with open_label_queue(make_criteria_run(tmp_path / "C", 2), by_criterion=True) as queue:
        rows = [("case-0", "polite"), ("case-0", "right"), ("case-1", "right")]
        subjects = {case.id: digest_content(case.content) for case in make_cases(2)}
        queue.import_labels(
            [Label(case=case, rater="ann", value=True, criterion=name, subject=subjects[case]) for case, name in rows]
        )
        task = queue.next("ann")

        assert (task.case, task.criterion.name) == ("case-1", "polite")
        assert queue.next("bob") is None


def test_overrides_and_labels_of_models_keep_their_kind(queue):
    """They are kept, and are nobody's answer to the question."""
    kinds: tuple[Any, ...] = ("model", "override")
    queue.import_labels([Label(case="case-3", rater="x", value=True, kind=kind) for kind in kinds])

    assert "case-3" in label_all(queue, "x")
    assert {label.kind for label in queue.labels()} == {"person", "model", "override"}


def test_labels_of_other_cases_are_counted_and_left_out(queue):
    """A file of another data set is a slip."""
    imported = queue.import_labels([Label(case="nope", rater="ann", value=True)])

    assert (imported.added, imported.elsewhere) == (0, ("nope",))


def test_an_import_takes_all_or_nothing(queue):
    """A row that is no label leaves none behind."""
    rows: Any = [Label(case="case-1", rater="ann", value=True), {"case": "case-2"}]
    with pytest.raises(UsageError):
        queue.import_labels(rows)

    assert list(queue.labels()) == []


# ---------------------------------------------------------------- a data set without a run


def test_a_data_set_is_labelled_without_a_run(tmp_path):
    """Its labels are beside it; the rubric is the case's own or the one that is named."""
    rows = [{"id": "a", "content": "x", "task": "t", "label": True, "metadata": {"hint": "SECRET"}}]
    path = write_dataset(tmp_path / "d.jsonl", *rows)
    with open_label_queue(path, rubric="security") as queue:
        task = queue.next("ann")
        queue.record("ann", task.case, False)

    assert (task.parts, task.rubric.name) == ((("task", "t"), ("content", "x")), "Security Review")
    assert (tmp_path / "d.jsonl.labels.sqlite").is_file()
    assert b"SECRET" not in (tmp_path / "d.jsonl.labels.sqlite").read_bytes()


def test_a_case_that_changed_after_it_was_labelled_is_refused(tmp_path):
    """Its label would pass for one of the new text; other changes are followed."""
    path = tmp_path / "d.jsonl"
    write_dataset(path, {"id": "a", "content": "x"}, {"id": "b", "content": "y"})
    with open_label_queue(path, seed=1) as queue:
        first = queue.next("ann").case
        queue.record("ann", first, True)
    rest = "b" if first == "a" else "a"
    write_dataset(path, {"id": first, "content": "x" if first == "a" else "y"}, {"id": rest, "content": "changed"})
    with open_label_queue(path) as queue:
        assert queue.next("ann").content == "changed"
    write_dataset(path, {"id": first, "content": "another"}, {"id": rest, "content": "changed"})
    with pytest.raises(UsageError) as caught:
        open_label_queue(path)

    assert repr(first) in str(caught.value)
    assert "with store" in str(caught.value)


def test_cases_in_memory_need_a_file_for_their_labels(tmp_path):
    """Which is named then."""
    dataset = Dataset.of(make_cases(2))
    with pytest.raises(UsageError) as caught:
        open_label_queue(dataset)
    assert "store" in str(caught.value)

    with open_label_queue(dataset, store=tmp_path / "l.sqlite") as queue:
        assert len(label_all(queue, "ann")) == 2


def test_pairs_of_a_data_set_are_told_so(tmp_path):
    """And a case that is none is refused."""
    path = write_dataset(tmp_path / "d.jsonl", {"id": "p", "content": {"a": "left", "b": "right"}})
    with open_label_queue(path, pairs=True) as queue:
        assert queue.next("ann").is_pair
    other = write_dataset(tmp_path / "e.jsonl", {"id": "p", "content": "x"})
    with pytest.raises(UsageError) as caught:
        open_label_queue(other, pairs=True)
    assert "'p'" in str(caught.value)


# ---------------------------------------------------------------- hostile


@posix
def test_the_file_is_its_owners_alone(queue):
    """It names people and quotes what they were shown."""
    assert stat.S_IMODE(queue.path.stat().st_mode) == 0o600


@pytest.mark.parametrize("name", [HOSTILE, "=cmd|' /C calc'!A0", "../../etc/passwd", "ann@example.org", "Ünsal", "عمر"])
def test_a_name_is_data(queue, name):
    """Whatever it looks like."""
    label_all(queue, name)
    write_labels("l.csv", queue.labels(), for_spreadsheet=True)

    assert {label.rater for label in queue.labels()} == {name}
    text = Path("l.csv").read_text("utf-8")
    assert '"=cmd' not in text


@pytest.mark.parametrize(
    "name", ["", " ", "a\x1b[31m", "a\nb", "a\u202eb", "a\x00", "x" * 201, 3, None, "\ud800", "ann "]
)
def test_a_name_that_would_deceive_is_refused(queue, name):
    """It stands in tables, terminals and reports."""
    with pytest.raises(UsageError) as caught:
        queue.next(name)

    assert "rater" in str(caught.value)


def test_a_name_is_one_however_it_is_composed(queue):
    """A letter with its mark, or the letter and then the mark."""
    queue.record("Zoe\u0308", queue.next("Zo\u00eb").case, True)

    assert queue.progress("Zo\u00eb").mine == 1
    assert next(queue.labels()).rater == "Zo\u00eb"


@pytest.mark.parametrize("case", ["../../x", "/etc/passwd", HOSTILE, "a\x1b[2J", "x" * 5000, "\u202eabc", "%s{}"])
def test_an_id_is_data(tmp_path, case):
    """It names no file and is part of no statement."""
    folder = make_run(tmp_path / "R", [Case(id=case, content="good")])
    with open_label_queue(folder) as queue:
        assert label_all(queue, "ann") == [case]
        assert queue.undo("ann").case == case
    assert sorted(item.name for item in tmp_path.iterdir()) == ["R"]


@pytest.mark.parametrize("text", ["x" * 10_001, "\ud800", 3])
def test_a_comment_that_cannot_be_kept_is_refused(queue, text):
    """Nothing of the answer is kept then."""
    case = queue.next("ann").case
    for ask in (lambda: queue.comment("ann", case, text), lambda: queue.record("ann", case, True, comment=text)):
        with pytest.raises(UsageError):
            ask()

    assert list(queue.labels()) == []


def test_a_file_that_is_no_file_of_labels_is_refused(folder):
    """Garbage, and a database of something else."""
    (folder / "labels.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(UsageError) as caught:
        open_label_queue(folder)
    assert "labels.sqlite" in str(caught.value)

    with sqlite3.connect(folder / "other.sqlite") as file:
        file.execute("CREATE TABLE x (y)")
    file.close()
    with pytest.raises(UsageError) as caught:
        open_label_queue(folder, store=folder / "other.sqlite")
    assert "--store" in str(caught.value)


def test_labels_of_another_run_are_refused(folder, tmp_path):
    """A folder that was copied over another, or a file that was named by mistake."""
    open_label_queue(folder).close()
    with pytest.raises(UsageError) as caught:
        open_label_queue(make_run(tmp_path / "S"), store=folder / "labels.sqlite")
    assert "another file" in str(caught.value)

    path = write_dataset(tmp_path / "d.jsonl", {"id": "a", "content": "x"})
    with pytest.raises(UsageError):
        open_label_queue(path, store=folder / "labels.sqlite")


def test_an_event_that_was_edited_by_hand_is_named(queue):
    """And no label is made up for it."""
    label_all(queue, "ann", most=1)
    with sqlite3.connect(queue.path) as file:
        file.execute("DROP TRIGGER events_keep")
        file.execute("UPDATE events SET body = '{\"case\": 3}'")
    file.close()
    with pytest.raises(UsageError) as caught:
        list(queue.labels())

    assert "event 1" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"per_case": 0}, "per_case"),
        ({"per_case": True}, "per_case"),
        ({"per_case": 10**30}, "per_case"),
        ({"lease_seconds": 1e300}, "lease_seconds"),
        ({"by_criterion": "yes"}, "by_criterion"),
        ({"lease_seconds": 0}, "lease_seconds"),
        ({"seed": -1}, "seed"),
        ({"rubric": "nope"}, "nope"),
    ],
)
def test_options_that_cannot_be_are_refused(folder, options, message):
    """Before a file is begun."""
    with pytest.raises(UsageError) as caught:
        open_label_queue(folder, **options)

    assert message in str(caught.value)
    assert not (folder / "labels.sqlite").exists()


@pytest.mark.timed
@pytest.mark.slow
def test_a_queue_of_many_cases_is_quick(tmp_path):
    """The next case does not wait for a look at all of them."""
    dataset = Dataset.of([Case(id=f"c{n}", content="x") for n in range(20_000)])
    with open_label_queue(dataset, store=tmp_path / "l.sqlite") as queue:
        label_all(queue, "ann", most=30)
        began = time.process_time()
        label_all(queue, "ann", most=10)
        taken = time.process_time() - began

    assert isinstance(queue, LabelQueue)
    assert taken < 2.0


def test_threads_share_a_queue(folder):
    """As the requests to a web page do: nothing is labelled twice, and nothing is lost."""
    make_run(folder.with_name("S"), 40)
    with open_label_queue(folder.with_name("S")) as queue, ThreadPoolExecutor(4) as pool:

        def work(rater: str) -> None:
            while (task := queue.next(rater, session=rater)) is not None:
                queue.record(rater, task.case, True, session=rater)

        list(pool.map(work, ["ann", "bob", "cy", "di"]))
        labels = list(queue.labels())

    assert Counter(label.case for label in labels) == {f"case-{n}": 1 for n in range(40)}


def test_a_clock_that_goes_back_changes_no_answer(queue):
    """The later label of a rater counts, so times never go back within a file."""
    case = queue.next("ann").case
    queue.record("ann", case, True)
    first = next(queue.labels()).at
    queue.record("ann", case, False)
    second = next(queue.labels()).at

    assert second > first
    assert queue.truths()[case].value is False


@posix
@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_names_the_remedy(folder):
    """Labels of somebody else's run are kept elsewhere."""
    folder.chmod(0o500)
    try:
        with pytest.raises(UsageError) as caught:
            open_label_queue(folder)
    finally:
        folder.chmod(0o700)

    assert "--store" in str(caught.value)


@pytest.mark.parametrize("where", ["nowhere/l.sqlite", ".", "a\x00b"])
def test_a_place_that_is_none_is_refused(folder, where):
    """A folder that is not there, a folder, and a path that cannot be."""
    with pytest.raises(UsageError) as caught:
        open_label_queue(folder, store=where)

    assert "labels" in str(caught.value)


def test_a_run_without_cases_has_nothing_to_label(tmp_path):
    """And a data set without any says so."""
    with open_label_queue(make_run(tmp_path / "R", 0)) as queue:
        assert queue.next("ann") is None
        assert queue.progress("ann").total == 0


@pytest.mark.parametrize("text", ["x" * 10_000_000, "\u202e" * 1000, "{}", "🙂" * 1000])
def test_content_of_any_size_is_handed_out_as_it_is(tmp_path, text):
    """What shows it has to make it safe."""
    with open_label_queue(write_dataset(tmp_path / "d.jsonl", {"id": "a", "content": text})) as queue:
        assert queue.next("ann").parts == (("content", text),)


def test_what_a_rate_follows_from_is_listed(folder):
    """Each labelled case that came up by itself, with the judge's verdict as its stratum; what is open is none."""
    with open_label_queue(folder, per_case=2, seed=1) as queue:
        seen = label_all(queue, "ann", lambda task: task.case != "case-1")
        label_all(queue, "bob", lambda task: task.case not in ("case-1", "case-2"))
        queue.import_labels([Label(case="case-0", rater="cy", value=True)])
        draws = queue.list_draws()
    verdicts = ["failed" if case in ("case-0", "case-3") else "passed" for case in seen]
    values = {"case-1": False, "case-2": None}

    assert draws.sizes == {"passed": 4, "failed": 2}
    assert draws.draws == tuple(zip(verdicts, [values.get(case, True) for case in seen], strict=True))


def test_strata_of_a_plan_are_those_of_the_rate(planned):
    """With the sizes that the plan gives them."""
    row = {"case": "case-4", "stratum": "failed", "p": 0.5}
    strata = [{"name": "failed", "size": 2}, {"name": "passed", "size": 4}]
    plan(planned, row, strata=strata, phases=[{"first": 0, "labels": [1, 0]}], within=0.05)
    with open_label_queue(planned) as queue:
        label_all(queue, "ann")
        draws = queue.list_draws()

    assert draws.sizes == {"failed": 2, "passed": 4}
    assert draws.draws == (("failed", True),)
    assert (draws.phases, draws.within) == (((0, (1, 0)),), 0.05)


def test_criteria_and_pairs_give_no_such_rate(tmp_path):
    """Their answers are not about whether the case is good."""
    with open_label_queue(make_pairs_run(tmp_path / "P", 2)) as queue:
        assert queue.list_draws() is None
    with open_label_queue(make_criteria_run(tmp_path / "C"), by_criterion=True) as queue:
        assert queue.list_draws() is None


def test_what_others_said_is_shown_of_labelled_cases_alone(tmp_path: Path):
    """Somebody who has seen it labels the case again without being blind; undo can be announced before it happens."""
    with open_label_queue(make_run(tmp_path / "run", 2), per_case=2) as queue:
        task = queue.next("ann")
        assert task is not None
        with pytest.raises(UsageError, match="label it first"):
            queue.show_others("ann", task.case)
        assert queue.find_undoable("ann") is None
        queue.record("bob", task.case, False, comment="rude")
        assert queue.record("ann", task.case, True).blind
        undoable = queue.find_undoable("ann")
        assert undoable is not None
        assert (undoable.case, undoable.label is not None) == (task.case, True)
        assert queue.list_answered("ann") == (task.case,)
        assert [(label.rater, label.value) for label in queue.show_others("ann", task.case)] == [
            ("bob", False),
            ("ann", True),
        ]
        assert not queue.record("ann", task.case, False).blind
        assert [name for name, _ in queue.read_parts("ann", task.case)][-1] != ""


def test_people_agree_on_what_all_of_them_said_alike():
    """Of the cases that two or more people labelled; adjudications are left out."""
    rows = [("a", "ann", True), ("a", "bob", True), ("b", "ann", True), ("b", "bob", False), ("c", "ann", True)]
    labels = [Label(case=case, rater=rater, value=value) for case, rater, value in rows]
    settled = Label(case="b", rater="zoe", value=False, kind="adjudication")
    agreement = compute_label_agreement([*labels, settled])

    assert (agreement.agreed.count, agreement.agreed.of) == (1, 2)
    assert agreement.ac1 is None or agreement.ac1 == pytest.approx(0.2)
    assert compute_label_agreement([]).to_dict()["agreed"]["rate"] is None
