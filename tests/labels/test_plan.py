"""The plan of a run: what it draws, what it refuses, and how it goes on with the labels gathered."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

pytest.importorskip("scipy", reason="needs numpy and scipy: pip install 'adjudge[trust]'")

from adjudge import UsageError
from adjudge.dataset import Label, load_labels
from adjudge.labels import (
    LabelPlan,
    PlannedCase,
    check_plan,
    continue_plan,
    find_plan_status,
    load_plan,
    make_plan,
    open_label_queue,
    write_case_list,
    write_plan,
)
from adjudge.runs import Run
from kit.reports import HOSTILE, keep_run, make_item, make_manifest_of, make_result

CASES = 600


def is_good(case: str) -> bool:
    """The truth of a case of the run below."""
    return int(case.removeprefix("case-")) % 3 > 0


def judge_case(place: int, chance: random.Random) -> str:
    """A verdict that is mostly right, and sometimes none."""
    right = is_good(f"case-{place}") != (chance.random() < 0.06)
    return "undecided" if place % 40 == 7 else "passed" if right else "failed"


def keep(folder: Path, cases: int = CASES, **changed: str) -> Run:
    """A run of this many cases, some of whose verdicts are changed."""
    chance = random.Random(1)
    verdicts = {f"case-{place}": judge_case(place, chance) for place in range(cases)} | changed
    return keep_run(folder, [make_item(place, make_result(verdicts[f"case-{place}"])) for place in range(cases)])


@pytest.fixture(name="run")
def make_run(tmp_path: Path) -> Iterator[Run]:
    """A run whose judge is right in 94 of 100 cases."""
    with keep(tmp_path / "run") as run:
        yield run


def label(cases: Iterable[PlannedCase], plan: LabelPlan) -> list[Label]:
    """What a person says of these cases: the truth."""
    return [
        Label(
            case=item.case,
            rater="ann",
            value=is_good(item.case),
            subject=item.subject,
            design=plan.find_design(item.case),
        )
        for item in cases
    ]


# ---------------------------------------------------------------- drawing


def test_a_plan_groups_by_verdict_and_draws_a_pilot(run: Run):
    """Each verdict is a stratum, undecided is one of its own, and each case says how likely it was drawn."""
    plan = make_plan(run, within=0.04, seed=1)

    assert [item.about for item in plan.strata] == ["failed", "passed", "undecided"]
    assert sum(plan.sizes) == CASES
    assert [phase.kind for phase in plan.phases] == ["pilot"]
    assert len(plan.order) == sum(plan.drawn) >= 60
    assert min(plan.drawn) >= 5
    for stratum, drawn in zip(plan.strata, plan.drawn, strict=True):
        assert {item.p for item in plan.order if item.stratum == stratum.name} == {drawn / stratum.size}


def test_the_same_seed_draws_the_same_cases(run: Run):
    """So anybody can draw a plan again; without a seed, nobody can know beforehand what it draws."""
    first, again = make_plan(run, seed=7), make_plan(run, seed=7)

    assert first.order == again.order
    assert make_plan(run, seed=8).order != first.order
    assert make_plan(run).seed != make_plan(run).seed


@pytest.mark.full
@pytest.mark.slow
def test_every_case_is_drawn_equally_often(tmp_path: Path):
    """Over 600 seeds, each case of a stratum is in the pilot about as often as its probability says."""
    with keep(tmp_path / "small", 150) as run:
        plans = [make_plan(run, seed=seed) for seed in range(600)]
    counts: dict[str, int] = {}
    for plan in plans:
        for item in plan.order:
            counts[item.case] = counts.get(item.case, 0) + 1
    p = {item.case: item.p for plan in plans for item in plan.order}

    assert len(counts) == 150
    # Five errors of a share over 600 draws, so that none of 150 cases leaves it by chance.
    assert all(abs(counts[case] / 600 - p[case]) < 5 * (p[case] * (1 - p[case]) / 600) ** 0.5 + 1e-9 for case in counts)


def test_few_undecided_cases_join_the_smallest_stratum(tmp_path: Path):
    """Below ten, nothing could be said of them alone."""
    with keep(tmp_path / "few", 200) as run:
        plan = make_plan(run, seed=1)

    assert sum(item.undecided for item in plan.strata) == 1
    joined = next(item for item in plan.strata if item.undecided)
    assert joined.low is not None
    assert joined.size == min(plan.sizes)
    assert sum(plan.sizes) == 200


def test_scores_make_more_strata(tmp_path: Path):
    """Where the judge gives scores, cases that it is less sure of are apart."""
    chance = random.Random(2)
    items = [
        make_item(place, make_result("passed" if score >= 0.5 else "failed", score=score))
        for place, score in enumerate(chance.random() for _ in range(400))
    ]
    with keep_run(tmp_path / "scored", items) as run:
        plan = make_plan(run, seed=1)

    assert len(plan.strata) == 4
    assert len({item.name for item in plan.strata}) == 4


def test_strata_of_one_verdict_are_told_apart_by_the_scores_of_the_judge(tmp_path: Path):
    """What a person can look up, and not the signal that cases are grouped by."""
    items = [
        make_item(place, make_result("passed" if score >= 0.7 else "failed", score=score))
        for place, score in enumerate([0.2, 0.48, 0.6, 0.8, 0.95] * 40)
    ]
    with keep_run(tmp_path / "scored", items) as run:
        plan = make_plan(run, seed=1)

    assert [item.about for item in plan.strata] == ["failed, score 0.20", "failed, score 0.48", "mixed", "passed"]


def test_the_name_of_a_stratum_tells_no_verdict(run: Run):
    """Labels have it, and so has the list that people fill in; whose cases it has differs from seed to seed."""
    plans = [make_plan(run, seed=seed) for seed in range(12)]
    about = [{item.name: item.about for item in plan.strata} for plan in plans]

    assert {frozenset(names) for names in about} == {frozenset({"s1", "s2", "s3"})}
    assert {names["s1"] for names in about} == {"failed", "passed", "undecided"}


def test_a_run_that_is_not_finished_has_no_plan(tmp_path: Path):
    """Cases that are not judged yet would have no chance to be drawn."""
    with (
        keep_run(tmp_path / "half", [make_item(0)], make_manifest_of(3, status="interrupted")) as run,
        pytest.raises(UsageError, match=r"interrupted.*--resume"),
    ):
        make_plan(run)


@pytest.mark.parametrize("changed", [{"within": 0}, {"within": float("nan")}, {"expect": 1.2}, {"seed": -1}])
def test_what_no_plan_has_is_refused(run: Run, changed: dict[str, float]):
    """Widths above 0, shares up to 1, seeds from 0."""
    with pytest.raises(UsageError):
        make_plan(run, **changed)  # type: ignore[arg-type]


# ---------------------------------------------------------------- going on


def test_nothing_changes_before_the_pilot_is_labelled(run: Run):
    """What is left of the pilot comes first."""
    plan = make_plan(run, within=0.04, seed=1)
    status = find_plan_status(plan, label(plan.order[:10], plan))

    assert status.pending == plan.order[10:]
    assert not status.enough
    assert continue_plan(plan, run, status) is plan


def test_after_the_pilot_labels_go_where_people_disagree(run: Run):
    """The second phase follows the pilot's labels; cases of the pilot are not drawn again."""
    plan = make_plan(run, within=0.03, seed=1)
    continued = continue_plan(plan, run, find_plan_status(plan, label(plan.order, plan)))
    second = continued.order[len(plan.order) :]

    assert [phase.kind for phase in continued.phases] == ["pilot", "spread"]
    assert continued.order[: len(plan.order)] == plan.order
    assert len({item.case for item in continued.order}) == len(continued.order)
    assert all(0 < item.p <= 1 for item in second)


def test_labelling_ends_within_the_width_that_was_asked_for(run: Run):
    """Phase after phase, until it is enough; the interval then has the true rate here, and the width."""
    plan, labels = make_plan(run, within=0.05, seed=3), []
    for _ in range(12):
        status = find_plan_status(plan, labels)
        if status.enough:
            break
        labels += label(status.pending, plan)
        plan = continue_plan(plan, run, find_plan_status(plan, labels))
    rate = sum(is_good(f"case-{place}") for place in range(CASES)) / CASES

    assert status.enough
    assert status.live.low <= rate <= status.live.high
    assert status.live.half_width <= 0.05
    assert status.once is not None
    assert len(labels) < CASES


def test_only_the_live_interval_says_enough(run: Run):
    """The ordinary interval is narrow enough at the planned number, and that ends nothing: it is said, and kept."""
    plan = make_plan(run, within=0.03, seed=1)
    assert find_plan_status(plan, []).planned is None
    plan = continue_plan(plan, run, find_plan_status(plan, label(plan.order, plan)))
    planned = replace(plan, within=0.035)
    status = find_plan_status(planned, label(plan.order, plan))

    assert status.once is not None
    assert (status.once.high - status.once.low) / 2 < 0.035 < status.live.half_width
    assert (status.enough, status.planned) == (False, len(plan.order))

    later = continue_plan(planned, run, status)
    after = find_plan_status(later, label(later.order[:-1], later))

    assert [phase.kind for phase in later.phases] == ["pilot", "spread", "more"]
    assert (after.once, after.planned) == (status.once, status.planned), "one look, whatever was labelled since"


def test_before_the_planned_labels_are_in_there_is_no_interval_for_one_look(run: Run):
    """After the pilot alone somebody would look once more than was planned."""
    plan = make_plan(run, within=0.03, seed=1)
    pilot = find_plan_status(plan, label(plan.order, plan))
    plan = continue_plan(plan, run, pilot)
    half = find_plan_status(plan, label(plan.order[:-1], plan))

    assert (pilot.once, pilot.planned) == (None, None)
    assert (half.once, half.planned) == (None, len(plan.order))


def test_a_case_counts_when_it_has_all_its_labels(run: Run):
    """Until then the next rater might still change what was counted; an adjudication settles it before."""
    plan = make_plan(run, within=0.04, seed=1)
    first = label(plan.order[:10], plan)
    second = [replace(item, rater="bob") for item in first[:4]]
    settled = replace(first[9], rater="zoe", kind="adjudication", design=None)
    status = find_plan_status(plan, [*first, *second, settled], per_case=2)

    assert sum(status.labelled) == status.live.labels == 5
    assert {item.case for item in plan.order} - {item.case for item in status.pending} == {
        *(item.case for item in plan.order[:4]),
        plan.order[9].case,
    }
    with pytest.raises(UsageError, match="per_case"):
        find_plan_status(plan, first, per_case=0)


def test_a_case_counts_at_the_time_of_its_last_label(run: Run):
    """Only then is its truth known; with one label for each case, the first one would be enough."""
    plan = make_plan(run, within=0.04, seed=1)
    start = plan.at + timedelta(hours=1)
    first = [replace(item, at=start + timedelta(minutes=n)) for n, item in enumerate(label(plan.order[:20], plan))]
    # Bob goes through them from the last to the first, an hour later.
    second = [replace(item, rater="bob", at=start + timedelta(hours=2, minutes=-n)) for n, item in enumerate(first)]
    one = find_plan_status(plan, first)
    turned = [replace(item, at=start + timedelta(hours=2, minutes=-n)) for n, item in enumerate(first)]

    assert find_plan_status(plan, [*first, *second], per_case=2).live == find_plan_status(plan, turned).live
    assert find_plan_status(plan, [*first, *second]).live == one.live


def test_labels_from_before_the_plan_are_named(run: Run):
    """They are left out, because nobody knows how likely these cases were to be labelled."""
    plan = make_plan(run, within=0.04, seed=1)
    drawn = {item.case for item in plan.order}
    others = [f"case-{place}" for place in range(CASES) if f"case-{place}" not in drawn][:5]
    labels = [
        Label(case=case, rater="ann", value=True, at=plan.at + timedelta(hours=1 if place < 2 else -1))
        for place, case in enumerate(others)
    ]
    status = find_plan_status(plan, labels)

    assert (status.elsewhere, status.before, sum(status.labelled)) == (5, 3, 0)
    assert status.to_dict()["before"] == 3


def test_cases_labelled_before_the_plan_count_at_their_place_in_it(run: Run):
    """Somebody labelled the bad cases first: they may not come first in the interval, or it would miss the rate."""
    plan = make_plan(run, within=0.04, seed=1)
    early = [item for item in plan.order[10:] if not is_good(item.case)]
    before = [replace(item, at=plan.at - timedelta(days=1)) for item in label(early, plan)]
    rest = [item for item in plan.order if item not in early]
    after = [replace(item, at=plan.at + timedelta(minutes=1 + place)) for place, item in enumerate(label(rest, plan))]

    assert find_plan_status(plan, before).live.labels == 0
    assert sum(find_plan_status(plan, before).labelled) == len(before)
    some, whole = find_plan_status(plan, [*before, *after[:30]]), find_plan_status(plan, [*before, *after])
    assert 0.5 < some.live.value < 0.8
    assert whole.live.labels == len(plan.order)
    assert whole.live.in_random_order


def keep_groups(folder: Path) -> Run:
    """A run of 40 questions with 5 answers each."""
    return keep_run(
        folder,
        [
            make_item(place, make_result(judge_case(place, random.Random(place))), group=f"q{place // 5}")
            for place in range(200)
        ],
    )


def test_cases_in_groups_need_a_word(tmp_path: Path):
    """A number of labels for single cases is too small for other questions; the plan says what was ignored."""
    with keep_groups(tmp_path / "run") as run:
        with pytest.raises(UsageError, match=r"groups.*40.*ignore_groups"):
            make_plan(run, seed=1)
        plan = make_plan(run, seed=1, ignore_groups=True)
        write_plan(plan, run.folder)

        assert plan.ignored_groups == 40
        assert load_plan(run) == plan
        assert plan.to_dict()["ignored_groups"] == 40


def test_a_group_for_each_case_is_no_group(tmp_path: Path):
    """Nothing is ignored there."""
    with keep_run(tmp_path / "run", [make_item(place, group=f"q{place}") for place in range(30)]) as run:
        assert make_plan(run, seed=1).ignored_groups == 0


def test_a_second_plan_does_not_overwrite_the_first(run: Run):
    """Cases of the first may be labelled already; only a continuation takes its place."""
    first, second = make_plan(run, seed=1), make_plan(run, seed=2)
    path = write_plan(first, run.folder)
    with pytest.raises(UsageError, match=r"plan\.json.*overwritten"):
        write_plan(second, run.folder)
    assert load_plan(run) == first

    longer = continue_plan(first, run, find_plan_status(first, label(first.order, first)))
    write_plan(longer, run.folder)
    with pytest.raises(UsageError, match="overwritten"):
        write_plan(first, run.folder)
    assert load_plan(run) == longer
    assert sorted(item.name for item in run.folder.glob("plan.json*")) == ["plan.json", "plan.json.lock"]
    assert path.name == "plan.json"


def test_of_plans_that_are_written_at_once_one_is_kept(run: Run):
    """Everybody else is told so."""
    plans = [make_plan(run, seed=seed) for seed in range(8)]

    def write(plan: LabelPlan) -> bool:
        try:
            write_plan(plan, run.folder)
        except UsageError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        kept = [plan for plan, done in zip(plans, pool.map(write, plans), strict=True) if done]

    assert len(kept) == 1
    assert load_plan(run) == kept[0]


def test_open_cases_count_both_ways(run: Run):
    """What people cannot tell or do not agree on is no label that is missing, and widens the interval."""
    plan = make_plan(run, within=0.04, seed=1)
    answers = label(plan.order, plan)
    unsure = [replace(item, value="cannot_tell") if place < 10 else item for place, item in enumerate(answers)]
    split = [*answers, *(replace(item, rater="bob", value=not item.value) for item in answers[:10])]

    for labels in (unsure, split):
        status = find_plan_status(plan, labels)
        assert (sum(status.open), status.pending) == (10, ())
        assert status.live.half_width > find_plan_status(plan, answers).live.half_width


def test_labels_of_other_cases_and_overrides_are_left_out(run: Run):
    """They were not drawn: somebody chose them, perhaps because they are bad."""
    plan = make_plan(run, within=0.04, seed=1)
    drawn = {item.case for item in plan.order}
    other = next(f"case-{place}" for place in range(CASES) if f"case-{place}" not in drawn)
    labels = [
        Label(case=other, rater="ann", value=True),
        Label(case=plan.order[0].case, rater="ann", value=True, kind="override"),
    ]
    status = find_plan_status(plan, labels)

    assert (status.elsewhere, sum(status.labelled), len(status.pending)) == (1, 0, len(plan.order))


def test_labels_that_are_not_good_or_bad_are_refused(run: Run):
    """A number has to be said to be good or bad first."""
    plan = make_plan(run, seed=1)
    labels = [Label(case=plan.order[0].case, rater="ann", value=4, subject=plan.order[0].subject)]

    with pytest.raises(UsageError, match=r"4.*true or false"):
        find_plan_status(plan, labels)


# ---------------------------------------------------------------- the file


def test_a_plan_is_kept_with_its_run(run: Run):
    """Reading it gives the same plan, and its owner alone can read it."""
    plan = make_plan(run, within=0.04, seed=1)
    path = write_plan(plan, run.folder)

    assert load_plan(run) == plan
    assert json.loads(path.read_text())["schema"] == "adjudge/plan/1"
    if os.name != "nt":
        assert path.stat().st_mode & 0o077 == 0


def test_a_run_without_a_plan_has_none(run: Run):
    """Nothing is made up."""
    assert load_plan(run) is None


def test_a_run_that_changed_is_refused(run: Run, tmp_path: Path):
    """With other verdicts, the strata are others, and the probabilities of the plan are not true any more."""
    plan = make_plan(run, within=0.04, seed=1)
    check_plan(plan, run)
    with keep(tmp_path / "other", **{"case-1": "failed", "case-2": "failed"}) as other:
        manifest = {**other.manifest, "id": run.id}
        with pytest.raises(UsageError, match=r"changed.*plan\.json"):
            check_plan(plan, replace(other, manifest=manifest))
        write_plan(plan, other.folder)
        with pytest.raises(UsageError, match="is the plan of the run"):
            load_plan(other)


@pytest.mark.parametrize(
    "changed",
    [
        {"schema": "adjudge/plan/2"},
        {"strata": "many"},
        {"order": []},
        {"seed": "x"},
        {"digests": None},
        {"phases": [{"kind": "pilot", "first": 0, "labels": [1]}]},
        {"within": -1},
    ],
)
def test_a_damaged_plan_is_refused(run: Run, changed: dict[str, object]):
    """A file that somebody edited is no plan: its probabilities would be made up."""
    path = write_plan(make_plan(run, seed=1), run.folder)
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))

    with pytest.raises(UsageError, match=r"plan\.json"):
        load_plan(run)


@pytest.mark.parametrize("text", ["", "[]", "null", "{", "[" * 100_000])
def test_a_file_that_is_no_plan_is_refused(run: Run, text: str):
    """Whatever is in it."""
    (run.folder / "plan.json").write_text(text)

    with pytest.raises(UsageError, match=r"plan\.json"):
        load_plan(run)


# ---------------------------------------------------------------- the queue and lists


def test_the_queue_follows_the_plan(run: Run):
    """Raters get the planned cases in their order, and labels carry how the case was drawn."""
    plan = make_plan(run, within=0.04, seed=1)
    write_plan(plan, run.folder)
    with open_label_queue(run) as queue:
        for item in plan.order[:5]:
            task = queue.next("ann")
            assert task is not None
            assert task.case == item.case
            queue.record("ann", task.case, is_good(task.case))
        labels = list(queue.labels())

    assert [item.design for item in labels] == [plan.find_design(item.case) for item in plan.order[:5]]
    assert sum(find_plan_status(plan, labels).labelled) == 5


@pytest.mark.parametrize("name", ["cases.csv", "cases.tsv", "cases.jsonl"])
def test_a_list_that_is_filled_in_is_read_as_labels(run: Run, tmp_path: Path, name: str):
    """Rows without a value are not labels yet; the others carry how the case was drawn."""
    plan, path = make_plan(run, within=0.04, seed=1), tmp_path / name
    assert write_case_list(path, plan, run, plan.order[:3], rater="ann") == 3
    assert load_labels(path) == ()
    fill(path)
    labels = load_labels(path)

    assert [item.case for item in labels] == [item.case for item in plan.order[:2]]
    assert [item.design for item in labels] == [plan.find_design(item.case) for item in plan.order[:2]]
    assert {item.rater for item in labels} == {"ann"}


def fill(path: Path, rows: int = 2) -> None:
    """Write true into the first rows, as a program for tables would."""
    import csv

    if path.suffix == ".jsonl":
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        path.write_text(
            "".join(json.dumps(row | ({"value": True} if n < rows else {})) + "\n" for n, row in enumerate(lines))
        )
        return
    delimiter = "\t" if path.suffix == ".tsv" else ","
    with path.open(newline="") as file:
        listed = list(csv.DictReader(file, delimiter=delimiter))
    for row in listed[:rows]:
        row["value"] = "TRUE"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(listed[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(listed)


def test_a_list_shows_no_verdict_and_runs_no_formula(tmp_path: Path):
    """What a rater sees does not sway them, and what somebody wrote into a case is text in a spreadsheet."""
    items = [make_item(0, content='=HYPERLINK("http://evil.example")', task=HOSTILE, id="=cmd")]
    with keep_run(tmp_path / "run", items) as run:
        plan = make_plan(run, seed=1)
        write_case_list(tmp_path / "cases.csv", plan, run, plan.order)
        text = (tmp_path / "cases.csv").read_text()

    assert "\"'=HYPERLINK" in text
    assert '"\'=cmd"' in text
    assert "0.9" not in text
    assert not any(word in text for word in ("passed", "failed", "undecided"))


@pytest.mark.parametrize("name", ["cases.csv", "cases.tsv", "cases.jsonl"])
def test_names_that_look_like_formulas_come_back_as_they_were(tmp_path: Path, name: str):
    """The apostrophe before them is ours, and no part of the name; one that is part of it stays."""
    ids = ["=cmd", "'=cmd", "''=cmd", "-5", "'-5", "+a", "@b", "'", "'plain", "\t=x", "'\ty", "plain"]
    path = tmp_path / name
    with keep_run(tmp_path / "run", [make_item(place, id=text) for place, text in enumerate(ids)]) as run:
        plan = make_plan(run, seed=1)
        write_case_list(path, plan, run, plan.order, rater="=ann")
        fill(path, rows=len(ids))
        labels = load_labels(path)

        assert sorted(item.case for item in labels) == sorted(ids)
        assert {item.rater for item in labels} == {"=ann"}
        assert find_plan_status(plan, labels).pending == ()


def test_a_list_overwrites_nothing(run: Run, tmp_path: Path):
    """A file that is there may hold somebody's labels."""
    plan, path = make_plan(run, seed=1), tmp_path / "cases.csv"
    path.write_text("mine")

    with pytest.raises(UsageError, match="exists"):
        write_case_list(path, plan, run, plan.order)
    with pytest.raises(UsageError, match="xlsx"):
        write_case_list(tmp_path / "cases.xlsx", plan, run, plan.order)
    assert path.read_text() == "mine"
