"""Two runs beside what people say: which system they would pass more often, and which judge is right more often."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from statistics import NormalDist

import pytest

pytest.importorskip("scipy", reason="measuring needs the extra trust")

from adjudge import Case, Judge, UsageError, run
from adjudge.dataset import Label, write_labels
from adjudge.labels import (
    find_plan_status,
    load_looks,
    make_paired_plans,
    make_plan,
    open_label_queue,
    write_plan,
)
from adjudge.measurement import compare_judges, compare_systems, record_difference_look
from adjudge.runs import Run
from adjudge.trust import PairedCounts, estimate_labels_of_judges, find_stratified_difference
from kit import cli
from kit.cli import Line
from kit.differences import (
    QUESTIONS,
    answer,
    draw,
    is_good,
    label_cases,
    label_planned,
    load_order,
    make_judges,
    make_systems,
)
from kit.labels import label_all
from kit.reports import keep_run, make_item, make_result

pytestmark = pytest.mark.timed


@pytest.fixture(name="line")
def make_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Line:
    cli.isolate(monkeypatch, tmp_path)
    return Line(capsys)


@pytest.fixture(name="systems")
def provide_systems(tmp_path: Path) -> tuple[Run, Run]:
    return make_systems(tmp_path)


# ---------------------------------------------------------------- systems


def test_a_plan_draws_the_same_cases_of_both_runs(systems: tuple[Run, Run]):
    """The cases, their order and the plan's id are one; each run's plan has its own contents, and names the other."""
    first, second = make_paired_plans(*systems, within=0.1, seed=1)

    assert first.id == second.id
    assert [case.case for case in first.order] == [case.case for case in second.order]
    assert [case.subject for case in first.order] != [case.subject for case in second.order]
    assert (first.against, second.against) == (systems[1].id, systems[0].id)
    assert 30 <= len(first.order) < QUESTIONS


def test_the_difference_is_known_once_both_answers_of_all_planned_questions_are_labelled(systems: tuple[Run, Run]):
    """Before that it says how many are left; then it is there, for one look."""
    draw(*systems, within=0.1)
    planned = len(load_order(systems[0]))
    nothing = compare_systems(*systems)
    label_planned(systems[0])
    label_planned(systems[1], most=5)
    some = compare_systems(*systems)
    label_planned(systems[1])
    done = compare_systems(*systems)

    assert (nothing.rate, nothing.left) == (None, planned)
    assert (some.rate, some.left, some.questions) == (None, planned - 5, 5)
    assert f"{planned - 5} of the {planned} planned questions" in some.because
    assert done.rate is not None
    assert (done.limit, done.left, done.rate.labels) == ("one look", 0, planned)
    assert done.rate.low <= 0.25 <= done.rate.high
    assert done.standing == "better"


def test_the_other_way_round_is_worse_and_no_further_look(systems: tuple[Run, Run]):
    """The later run is compared with the earlier; the labels, and so the look at them, are the same either way."""
    before, after = systems
    draw(before, after, within=0.1)
    label_planned(*systems)
    record_difference_look(before, compare_systems(before, after), by="test")
    difference = compare_systems(after, before)

    assert (difference.standing, difference.limit) == ("worse", "one look")


def test_a_look_is_recorded_and_labels_that_change_after_it_take_the_wider_limits(systems: tuple[Run, Run]):
    """Looking again at the same labels is the same look; other labels are another."""
    draw(*systems, within=0.1)
    label_planned(*systems)
    first = compare_systems(*systems)
    record_difference_look(systems[0], first, by="test")
    again = compare_systems(*systems)
    with open_label_queue(systems[0]) as queue:
        case = load_order(systems[0])[0].case
        queue.adjudicate("cyd", case, int(case.removeprefix("q-")) % 4 >= 2)
    changed = compare_systems(*systems)

    assert load_looks(systems[0].folder)[0].limit == "one look"
    assert again == first
    assert changed.rate is not None
    assert first.rate is not None
    assert changed.limit == "every look"
    assert changed.rate.high - changed.rate.low > first.rate.high - first.rate.low


def test_labels_that_somebody_chose_give_no_difference(systems: tuple[Run, Run]):
    """Without a draw they say nothing of the others; if the user calls them random, the limits hold at every look."""
    chosen = [label for one in systems for label in label_cases(one, range(60))]

    assert compare_systems(*systems, labels=chosen).rate is None
    claimed = compare_systems(*systems, labels=chosen, labels_are_random=True)
    assert claimed.limit == "every look"
    assert claimed.rate is not None
    few = [label for one in systems for label in label_cases(one, range(12))]
    asked = compare_systems(*systems, labels=few, labels_are_random=True)
    assert asked.rate is None
    assert "label 18 more" in asked.because


def test_a_label_that_does_not_say_which_answer_was_read_counts_for_neither(systems: tuple[Run, Run]):
    """One case has two answers, so the id alone is not enough; a label of one run counts for that answer alone."""
    unbound = [Label(case=f"q-{place}", rater="ann", value=True) for place in range(QUESTIONS)]
    of_one = label_cases(systems[0], range(QUESTIONS))

    assert compare_systems(*systems, labels=unbound, labels_are_random=True).questions == 0
    assert compare_systems(*systems, labels=of_one, labels_are_random=True).questions == 0


def test_every_answer_labelled_is_counted(systems: tuple[Run, Run]):
    """A census has no width."""
    every = [label for one in systems for label in label_cases(one, range(QUESTIONS))]
    difference = compare_systems(*systems, labels=every)

    assert difference.limit == "count"
    assert difference.rate is not None
    assert difference.rate.interval == (0.25, 0.25)


def test_open_answers_widen_both_limits(systems: tuple[Run, Run]):
    """Whether an answer that nobody could tell is good or bad, the limits hold."""
    draw(*systems, within=0.1)
    label_planned(systems[0])
    label_planned(systems[1], decide=lambda content: "cannot_tell" if content.endswith("7") else is_good(content))
    difference = compare_systems(*systems)

    assert difference.rate is not None
    assert difference.rate.unresolved > 0
    assert difference.rate.low <= 0.25 <= difference.rate.high


def judge_alike(folder: Path) -> list[Run]:
    """Two judges of the same answers with the same verdicts."""
    cases = [Case(id=f"q-{n}", content=f"{'good' if n % 3 else 'bad'} {n}") for n in range(40)]
    names = ("one", "two")
    return [
        run(cases, Judge(is_good, name=name), criteria="Is good.", out=folder / name).finish_sync() for name in names
    ]


def test_what_cannot_be_compared_is_refused(tmp_path: Path, systems: tuple[Run, Run]):
    """Runs of other questions, one run twice, groups, and judges that decide every case alike have no paired plan."""
    before, after = systems
    other = run([Case(id="x", content="good 1")], Judge(is_good), criteria="Is good.", out=tmp_path / "x").finish_sync()
    grouped = [Case(id=f"q-{n}", content=f"good {n}", group="one") for n in range(QUESTIONS)]
    groups = run(grouped, Judge(is_good), criteria="Is good.", out=tmp_path / "groups").finish_sync()

    for pair, words in (
        ((before, before), "one run"),
        ((before, other), "different cases"),
        ((groups, after), "groups"),
        (judge_alike(tmp_path), r"no labels can tell .*one and .*two apart: both judges decide every case alike"),
    ):
        with pytest.raises(UsageError, match=words):
            make_paired_plans(*pair)
    with pytest.raises(UsageError, match="no case in common"):
        compare_systems(before, other)


# ---------------------------------------------------------------- judges


def count_change(counts: Callable[[bool, bool], bool], place: int) -> int:
    """By how much a case counts more for the careful judge than for the careless one, from truth and verdict alone."""
    good = place % 3 > 0
    before, after = [counts(good, good != (place % every == 0)) for every in (5, 20)]
    return after - before


COUNTED: Mapping[str, Callable[[bool, bool], bool]] = {
    "agreement": lambda good, passed: good == passed,
    "wrong_passes": lambda good, passed: passed and not good,
    "wrong_fails": lambda good, passed: good and not passed,
}
"""The cases that are counted by each share, from the truth and a judge's verdict."""


def find_every_look_level(labels: int) -> float:
    """The level of limits that hold at every look: Robbins' normal mixture, narrowest at 100 labels, for 95 %."""
    square = -2 * math.log(0.05)
    spread = labels * (square + math.log(square + 1)) / 100
    return 2 * NormalDist().cdf(math.sqrt((1 + 1 / spread) * (square + math.log1p(spread)))) - 1


def add_strata(counts: Iterable[PairedCounts]) -> tuple[float, float, float]:
    """MOVER by hand: Bonett's and Price's limits of each stratum, narrower by its labelled share, weighed by size."""
    value = below = above = 0.0
    for stratum in counts:
        weight, number = stratum.size / QUESTIONS, stratum.of + 2
        won, missed = (stratum.gained + 1) / number, (stratum.lost + 1) / number
        reach = 1.959964 * math.sqrt((won + missed - (won - missed) ** 2) / number)
        middle, rest = (stratum.gained - stratum.lost) / stratum.of, 1 - stratum.of / stratum.size
        value += weight * middle
        below += rest * (weight * (middle - (won - missed) + reach)) ** 2
        above += rest * (weight * (won - missed + reach - middle)) ** 2
    return value, value - math.sqrt(below), value + math.sqrt(above)


def label_in_order(one: Run, most: int) -> list[int]:
    """Somebody labels the first cases of a run's random order, and is right; their numbers.

    The order is fixed: one in a hundred, by chance, is refused for not looking random.
    """
    with open_label_queue(one, seed=1) as queue:
        seen = label_all(queue, "ann", lambda task: is_good(str(task.content)), most=most)
    return [int(case.removeprefix("q-")) for case in seen]


def test_judges_of_the_same_answers_are_compared_by_what_they_get_right(tmp_path: Path):
    """Labels of the contents count for both, and the interval is over the strata of the plan that drew them."""
    before, after = make_judges(tmp_path)
    plan = make_plan(before, within=0.1, seed=3)
    write_plan(plan, before.folder)
    label_planned(before)
    with open_label_queue(before) as queue:
        assert find_plan_status(plan, tuple(queue.labels())).complete
    difference = compare_judges(before, after)

    assert difference.limit == "one look"
    assert len(plan.strata) == 2
    assert difference.agreement.of == len(plan.order) < QUESTIONS
    for name, counts in COUNTED.items():
        strata = []
        for stratum in plan.strata:
            drawn = [case.case for case in plan.order if case.stratum == stratum.name]
            changes = [count_change(counts, int(case.removeprefix("q-"))) for case in drawn]
            number = {"of": len(drawn), "gained": changes.count(1), "lost": changes.count(-1)}
            strata.append(PairedCounts(size=stratum.size, **number))
        share = getattr(difference, name)
        assert (share.value, share.low, share.high) == pytest.approx(add_strata(strata), abs=1e-6)
    # It cannot tell of these, and who labels on after the one look goes by limits for every look.
    open_share, later = difference.wrong_passes, NormalDist().inv_cdf((1 + find_every_look_level(60)) / 2)
    assert open_share.value is not None
    assert open_share.low is not None
    assert open_share.high is not None
    assert open_share.low < 0 < open_share.high
    reach = (open_share.high - open_share.low) / 2 * later / 1.959964
    assert open_share.more == min(math.ceil(60 * (reach / open_share.value) ** 2), QUESTIONS) - 60
    counted = compare_judges(before, after, labels=label_cases(before, range(QUESTIONS)))
    assert counted.limit == "count"
    assert counted.agreement.value == pytest.approx((24 - 6) / QUESTIONS)
    assert counted.agreement.low == pytest.approx(counted.agreement.high)
    wrong = counted.wrong_passes
    assert (wrong.before, wrong.after, wrong.of) == (8, 2, QUESTIONS)
    assert (counted.wrong_fails.before, counted.wrong_fails.after) == (16, 4)


def test_two_judges_have_one_plan_whose_size_follows_from_how_often_they_differ(tmp_path: Path):
    """Of the first run; cases are drawn from all alike, and those that people label compare both for one look."""
    before, after = make_judges(tmp_path)
    (plan,) = make_paired_plans(before, after, within=0.08, seed=7)
    write_plan(plan, before.folder)
    label_planned(before)
    difference = compare_judges(before, after)
    numbers = [int(planned.case.removeprefix("q-")) for planned in plan.order]

    assert (plan.run, plan.against, len(plan.strata)) == (before.id, after.id, 1)
    # 24 cases are wrong by one judge, and 6 of these by both.
    assert len(plan.order) == estimate_labels_of_judges(QUESTIONS, disagreement=18 / QUESTIONS, within=0.08)
    assert (difference.limit, difference.agreement.of) == ("one look", len(plan.order))
    changes = [count_change(COUNTED["agreement"], number) for number in numbers]
    counts = PairedCounts(size=QUESTIONS, of=len(numbers), gained=changes.count(1), lost=changes.count(-1))
    share = difference.agreement
    assert (share.value, share.low, share.high) == pytest.approx(find_stratified_difference([counts]))
    assert share.low is not None
    assert share.high is not None
    assert (share.high - share.low) / 2 <= 0.08


def test_an_undecided_verdict_differs_from_any_other(tmp_path: Path):
    """By the majority of a case's judgements, as they are compared; undecided in both is alike."""
    verdicts = {"one": ("passed", "failed", "undecided"), "two": ("passed", "undecided", "undecided")}
    runs = []
    for name, given in verdicts.items():
        # The second run judged each case three times, and its first judgement is that of no other.
        samples = {"one": 1, "two": 3}[name]
        items = [
            make_item(place, make_result("failed" if samples - sample == 3 else given[place % 3]), sample=sample)
            for place in range(60)
            for sample in range(samples)
        ]
        runs.append(keep_run(tmp_path / name, items))
    (plan,) = make_paired_plans(*runs, within=0.12, seed=7)

    assert len(plan.order) == estimate_labels_of_judges(60, disagreement=1 / 3, within=0.12)


def test_judges_are_compared_by_labels_in_random_order_of_either_run(tmp_path: Path):
    """Whoever labels without a plan draws at random too; the contents are the same, so it is no matter of which run."""
    before, after = make_judges(tmp_path)
    labelled = label_in_order(after, 50)
    difference = compare_judges(before, after)

    assert (difference.agreement.of, difference.limit) == (50, "every look"), difference.because
    level = find_every_look_level(50)
    for name, counts in COUNTED.items():
        changes = [count_change(counts, place) for place in labelled]
        number = {"of": 50, "gained": changes.count(1), "lost": changes.count(-1)}
        limits = find_stratified_difference([PairedCounts(size=QUESTIONS, **number)], level=level)
        share = getattr(difference, name)
        assert (share.value, share.low, share.high) == pytest.approx(limits)


def test_judges_by_labels_that_somebody_chose_are_counted_and_no_more(tmp_path: Path):
    """Counts, no interval, and the reason."""
    before, after = make_judges(tmp_path)
    difference = compare_judges(before, after, labels=label_cases(before, range(40)))

    assert (difference.agreement.of, difference.agreement.value, difference.limit) == (40, None, None)
    claimed = compare_judges(before, after, labels=label_cases(before, range(40)), labels_are_random=True)
    assert claimed.limit == "every look"
    assert claimed.agreement.low is not None
    assert claimed.agreement.more is not None
    assert claimed.agreement.high is not None
    assert claimed.agreement.value is not None
    assert claimed.agreement.low <= 0 <= claimed.agreement.high
    reach = (claimed.agreement.high - claimed.agreement.low) / 2
    needed = math.ceil(40 * (reach / claimed.agreement.value) ** 2)
    assert claimed.agreement.more == min(needed, QUESTIONS) - 40 > 0


# ---------------------------------------------------------------- on the command line


def test_diff_says_first_which_system_people_would_pass_more_often(line: Line, systems: tuple[Run, Run]):
    """``plan --against`` draws, ``label`` labels, ``diff`` tells, and ``--fail-if-worse`` is 0, 1 or 3."""
    drawn = line("plan", "a", "--against", "b", "--within", "10", "--seed", "7")
    waiting = line("diff", "a", "b", "--fail-if-worse")
    label_planned(*systems)
    better, worse = line("diff", "a", "b", "--fail-if-worse"), line("diff", "b", "a", "--fail-if-worse")

    assert drawn.status == 0
    assert re.search(r"label both answers of \d+ of 120 cases", drawn.out)
    assert waiting.status == 3
    assert "planned questions lack a label" in waiting.err
    assert better.status == 0
    assert re.search(r"People would pass b \d+ to \d+ points more often than a\.", better.out)
    assert better.out.index("People would pass") < better.out.index("improved")
    assert worse.status == 1
    document = line("diff", "a", "b", "--json").document
    assert document["systems"]["rate"]["labels"] == document["systems"]["questions"]
    for form in ("--markdown",):
        assert "People would pass b" in line("diff", "a", "b", form).out
    line("diff", "a", "b", "--html", "d.html")
    assert "People would pass b" in Path("d.html").read_text("utf-8")


def test_a_worse_system_fails_and_a_margin_lets_it_be_a_little_worse(line: Line, systems: tuple[Run, Run]):
    """Exit 1 where the labels show it; with a margin that covers the interval, 0."""
    line("plan", "a", "--against", "b", "--within", "10", "--seed", "7")
    label_planned(*systems)

    assert line("diff", "b", "a", "--fail-if-worse").status == 1
    allowed = line("diff", "b", "a", "--fail-if-worse", "--margin", "60")
    assert allowed.status == 0
    assert re.search(r"People would pass a .* points less often than b: not more than 60 points worse\.", allowed.out)
    assert line("diff", "b", "a", "--margin", "5").status == 2


def test_an_unfinished_run_is_not_known_to_be_worse(line: Line, systems: tuple[Run, Run]):
    """What was not judged yet may be better: 3, with what to do; a report says it above the rest."""
    line("plan", "a", "--against", "b", "--within", "10", "--seed", "7")
    label_planned(*systems)
    path = Path("b/run.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"status": "interrupted"}))
    ran = line("diff", "a", "b", "--fail-if-worse")

    assert (ran.status, "b is interrupted: finish it" in ran.err) == (3, True)
    assert "People would pass" not in ran.out
    assert "b is interrupted" in line("report", "b", "--against", "a").out


def test_where_the_labels_cannot_tell_the_price_of_further_labels_is_said(line: Line, systems: tuple[Run, Run]):
    """After the one look they take the wider limits; those hold at every look; and nobody can label more than all."""
    line("plan", "a", "--against", "b", "--within", "20", "--seed", "7")
    label_planned(systems[0])
    label_planned(systems[1], decide=lambda content: is_good(content) and int(content.split()[-1]) % 3 > 0)
    once = line("diff", "a", "b", "--fail-if-worse")
    with open_label_queue(systems[0]) as queue:
        case = load_order(systems[0])[0].case
        queue.adjudicate("cyd", case, int(case.removeprefix("q-")) % 4 >= 2)
    again = line("diff", "a", "b", "--fail-if-worse")

    assert (once.status, again.status) == (3, 3)
    assert "with further labels, the wider limits for every look decide" in once.err
    assert "label more and look again: these limits hold however often you look" in again.err


def test_where_every_answer_is_labelled_nobody_is_told_to_label_more(line: Line, systems: tuple[Run, Run]):
    """What keeps the labels from telling are the answers that nobody could tell."""
    for one in systems:
        with open_label_queue(one) as queue:
            while (task := queue.next("ann")) is not None:
                is_open = one is systems[1] and int(str(task.content).split()[-1]) % 4 == 2
                queue.record("ann", task.case, "cannot_tell" if is_open else is_good(str(task.content)))
    ran = line("diff", "b", "a", "--fail-if-worse")

    assert ran.status == 3
    assert "every answer is labelled: settle those that nobody could tell" in ran.err
    assert "label more" not in ran.err


def test_a_second_plan_for_the_pair_is_refused(line: Line, systems: tuple[Run, Run]):
    """The plan that is there is followed; another width needs another plan, and a plan of one run is in the way."""
    line("plan", "a", "--against", "b", "--seed", "7")

    assert line("plan", "a", "--against", "b").status == 0
    assert line("plan", "a", "--against", "b", "--within", "3").status == 2
    assert line("plan", "b", "--against", "a").status == 0
    assert line("plan", "a").status == 0  # it shows how far the labels are, and draws nothing more
    before = (systems[0].folder / "plan.json").read_bytes()
    label_planned(*systems)
    line("plan", "a")
    assert (systems[0].folder / "plan.json").read_bytes() == before


def test_a_plan_that_cannot_tell_leads_to_a_larger_one(line: Line, systems: tuple[Run, Run]):
    """Its sentence and ``plan`` say that all is labelled and how to draw more; the labels count in the new plan."""
    line("plan", "a", "--against", "b", "--within", "20", "--seed", "7")
    label_planned(systems[0])
    half = line("plan", "a", "--against", "b")
    label_planned(systems[1], decide=lambda content: is_good(content) and int(content.split()[-1]) % 3 > 0)
    unclear = line("diff", "a", "b")
    stopped = line("diff", "a", "b", "--fail-if-worse")
    let_pass = line("diff", "a", "b", "--fail-if-worse", "--pass-if-unclear")
    done = line("plan", "a", "--against", "b")
    more = int(re.search(r"about (\d+) more", unclear.out)[1])  # type: ignore[index]
    for name in "ab":
        Path(name, "plan.json").unlink()
    drawn = line("plan", "a", "--against", "b", "--within", "8", "--seed", "8")

    assert "adjudge label a" not in half.out
    assert re.search(r"adjudge label b +\(\d+ left\)", half.out)
    assert "These labels cannot tell" in unclear.out
    assert (unclear.status, stopped.status, let_pass.status) == (0, 3, 0)
    for gated in (stopped, let_pass):
        assert "These labels cannot tell" in gated.out
        assert "the labels cannot tell whether RUN2 is worse" in gated.err
    assert "in a new plan: delete plan.json of both runs" in " ".join(unclear.out.split())
    assert re.search(r"both answers of \d+ of 120 cases are labelled", done.out)
    assert "adjudge label" not in done.out
    assert "a new plan with a smaller --within" in done.err
    assert 0 < more < QUESTIONS
    left = int(re.search(r"adjudge label a +\((\d+) left\)", drawn.out)[1])  # type: ignore[index]
    assert left < len(load_order(systems[0]))


def test_a_case_of_the_pair_is_left_until_enough_raters_labelled_it(line: Line, systems: tuple[Run, Run]):
    """``--per-case 2`` counts nothing that one person alone labelled."""
    line("plan", "a", "--against", "b", "--within", "20", "--seed", "7")
    label_planned(*systems)
    drawn = len(load_order(systems[0]))

    assert f"adjudge label a   ({drawn:,} left)" in line("plan", "a", "--against", "b", "--per-case", "2").out
    assert "adjudge label" not in line("plan", "a", "--against", "b").out


def test_a_baseline_is_used_again_without_its_plan(line: Line, systems: tuple[Run, Run], tmp_path: Path):
    """The plan with the earlier candidate is in the way, and the error says which file that is."""
    line("plan", "a", "--against", "b", "--seed", "7")
    answer(tmp_path / "next", "b", lambda place: place % 4 < 1)
    refused = line("plan", "a", "--against", "next/b")
    Path("a/plan.json").unlink()

    assert "a has another plan; delete its plan.json" in refused.sentence
    assert line("plan", "a", "--against", "next/b").status == 0


def test_a_look_at_one_run_alone_is_none_at_the_difference(line: Line, systems: tuple[Run, Run]):
    """Nor the other way round: the labels did not change, so both have the limits for one look."""
    line("plan", "a", "--against", "b", "--within", "10", "--seed", "7")
    label_planned(*systems)
    line("plan", "a")
    alone = [line("report", name, "--json").document["measurement"]["limit"]["kind"] for name in ("a", "b")]
    both = line("diff", "a", "b", "--json").document["systems"]["limit"]
    again = line("report", "a", "--json").document["measurement"]["limit"]["kind"]

    assert (*alone, both, again) == ("one look",) * 4
    assert [(look.by, look.of) for look in load_looks(Path("a"))] == [
        ("report", "rate"),
        ("diff", "difference"),
        ("report", "rate"),
    ]


def test_a_report_against_an_earlier_run_begins_with_the_sentence_of_the_diff(line: Line, systems: tuple[Run, Run]):
    """In every form, before what the judge passes; the figures are those of ``adjudge diff``, without its cases."""
    line("plan", "a", "--against", "b", "--within", "10", "--seed", "7")
    waiting = line("report", "b", "--against", "a")
    label_planned(*systems)
    sentence = re.search(r"People would pass b .*\.", line("diff", "a", "b").out)[0]  # type: ignore[index]
    shown = line("report", "b", "--against", "a")
    comment = line("report", "b", "--against", "a", "--markdown", "-").out
    line("report", "b", "--against", "a", "--html", "r.html")
    document = line("report", "b", "--against", "a", "--json").document

    assert "planned questions lack a label" in waiting.out
    assert shown.status == 0
    for text in (shown.out, comment, Path("r.html").read_text("utf-8")):
        assert sentence in text
        assert text.index("Compared with a") < text.index(sentence) < text.index("of 120 cases: people would pass")
    assert document["against"]["systems"] == line("diff", "a", "b", "--json").document["systems"]
    assert document["against"]["listed"] == []
    assert "against" not in line("report", "b", "--json").document


def test_a_report_against_what_cannot_be_compared_is_refused(line: Line, systems: tuple[Run, Run]):
    """A run of other cases, and one case beside a comparison of all."""
    run([Case(id="x", content="good 1")], Judge(is_good), criteria="Is good.", out="other").finish_sync()

    assert "no case in common" in line("report", "b", "--against", "other").sentence
    assert "--against" in line("report", "b", "q-1", "--against", "a").sentence


def test_diff_says_which_judge_is_right_more_often(line: Line, tmp_path: Path):
    """Of two judges on the same answers, by labels of the contents."""
    before, _ = make_judges(tmp_path)
    label_in_order(before, QUESTIONS)
    shown = line("diff", "careless", "careful", "--fail-if-worse")

    assert shown.status == 0
    assert "careful agrees with people" in shown.out
    assert line("diff", "careful", "careless", "--fail-if-worse").status == 1


def test_a_plan_of_two_judges_is_drawn_labelled_and_compared(line: Line, tmp_path: Path):
    """It says whose cases to label, the labels count as drawn at random, and it is followed from either side."""
    before, _ = make_judges(tmp_path)
    drawn = line("plan", "careless", "--against", "careful", "--within", "8", "--seed", "7")
    planned = len(load_order(before))
    waiting = line("diff", "careless", "careful", "--fail-if-worse")
    label_planned(before)
    compared = line("diff", "careless", "careful", "--fail-if-worse")
    rate = line("agree", "careless")
    done = [
        line("plan", *names) for names in (("careless", "--against", "careful"), ("careful", "--against", "careless"))
    ]

    assert f"label {planned} of 120 cases of careless, whose labels compare both judges:" in drawn.out
    assert f"adjudge label careless   ({planned} left)" in drawn.out
    assert not Path("careful/plan.json").exists()
    assert waiting.status == 3
    assert compared.status == 0
    assert re.search(r"careful agrees with people \d+ to \d+ points more often than careless\.", compared.out)
    assert f"the {planned} planned labels are there, and this is the one look at them" in compared.out
    assert "The labelled cases were drawn at random from this run." in rate.out
    for shown in done:
        assert f"{planned} of 120 cases of careless are labelled" in shown.out
        assert "adjudge diff careless careful" in shown.out
        assert "delete plan.json of careless" in shown.err


def test_a_plan_that_does_not_compare_the_two_judges_is_in_the_way(line: Line, tmp_path: Path):
    """Its labels compare them too, and the error says so; what the verdicts say already cannot be given."""
    make_judges(tmp_path)
    expected = line("plan", "careless", "--against", "careful", "--expect", "0.9")
    line("plan", "careless")
    other = line("plan", "careless", "--against", "careful")
    Path("careless/plan.json").unlink()
    line("plan", "careless", "--against", "careful")
    again = line("plan", "careful", "--against", "careless", "--within", "3")

    assert "--expect is for two systems" in expected.sentence
    assert "or compare the judges by its labels (adjudge diff careless careful)" in other.sentence
    assert "careless has a plan to compare careful with careless; leave --within out" in again.sentence


@pytest.mark.parametrize("pair", ["systems", "judges"])
def test_by_labels_that_somebody_chose_nothing_is_known_to_be_worse(pair: str, line: Line, tmp_path: Path):
    """Status 3 with the reason, and no interval, however clear the counts are; the word of the user makes it 0 or 1."""
    before, after = make_systems(tmp_path) if pair == "systems" else make_judges(tmp_path)
    write_labels("chosen.jsonl", [label for one in (before, after) for label in label_cases(one, range(100))])
    names = (before.folder.name, after.folder.name, "--labels", "chosen.jsonl")
    chosen = line("diff", *names, "--fail-if-worse")
    document = line("diff", *names, "--json").document[pair]

    assert chosen.status == 3
    assert "not known" in chosen.out
    assert re.search("(drew|drawn) .*at random", chosen.err)
    assert not re.search(r"points? (more|less)", chosen.out)
    share = document["rate"] if pair == "systems" else document["agreement"]
    assert share is None or (share["low"], share["high"]) == (None, None)
    assert line("diff", *names, "--labels-are", "random", "--fail-if-worse").status == 0


def test_labels_that_cannot_tell_two_judges_apart_are_status_3(line: Line, tmp_path: Path):
    """With how many more would tell, and that one may look again."""
    before, _ = make_judges(tmp_path)
    write_labels("few.jsonl", label_cases(before, range(12)))
    arguments = ("diff", "careless", "careful", "--labels", "few.jsonl", "--labels-are", "random", "--fail-if-worse")
    ran = line(*arguments)

    assert ran.status == 3
    assert "These labels cannot tell which judge agrees with people more often" in ran.out
    assert re.search(
        r"about \d+ more labelled cases would, by these limits, which hold at every look: label on, or draw them "
        r"\(adjudge plan RUN --against RUN2\)",
        " ".join(ran.out.split()),
    )
    assert "label more and look again: these limits hold however often you look" in ran.err
    assert line(*arguments, "--pass-if-unclear").status == 0


def test_a_report_against_another_judge_begins_with_the_sentence_of_the_diff(line: Line, tmp_path: Path):
    """As against another system: in every form, before what the judge passes."""
    _, after = make_judges(tmp_path)
    label_in_order(after, QUESTIONS)
    sentence = re.search(r"careful agrees with people .*\.", line("diff", "careless", "careful").out)[0]  # type: ignore[index]
    shown = line("report", "careful", "--against", "careless")
    comment = line("report", "careful", "--against", "careless", "--markdown", "-").out
    line("report", "careful", "--against", "careless", "--html", "r.html")
    document = line("report", "careful", "--against", "careless", "--json").document

    assert shown.status == 0
    for text in (shown.out, comment, Path("r.html").read_text("utf-8")):
        assert text.index("Compared with careless") < text.index(sentence) < text.index("of 120 cases: people pass")
    assert document["against"]["judges"] == line("diff", "careless", "careful", "--json").document["judges"]
    assert document["against"]["systems"] is None


def test_a_diff_says_once_which_labels_do_not_count(line: Line, tmp_path: Path):
    """In its first lines, in every form; of two judges it is the same for both."""
    before, _ = make_judges(tmp_path)
    elsewhere = Label(case="q-1", rater="zoe", value=True, subject="0" * 64)
    write_labels("some.jsonl", [*label_cases(before, range(QUESTIONS)), elsewhere])
    arguments = ("diff", "careless", "careful", "--labels", "some.jsonl")
    line(*arguments, "--html", "d.html")

    for text in (line(*arguments).out, line(*arguments, "--markdown").out, Path("d.html").read_text("utf-8")):
        assert text.count("1 label is not counted") == 1
        assert text.index("1 label is not counted") < text.index("agrees with people")
