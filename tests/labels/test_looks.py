"""How often the labels of a run were looked at, and which limits a gate on the corrected rate goes by."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("scipy", reason="needs numpy and scipy: pip install 'adjudge[trust]'")

from scipy.stats import binom

from adjudge import UsageError
from adjudge.dataset import Label, digest_content
from adjudge.labels import LabelPlan, continue_plan, find_plan_status, load_looks, make_plan, write_plan
from adjudge.measurement import RateDecision, decide_rate, make_measurement
from adjudge.runs import Run
from adjudge.trust import CorrectedRate, Target
from kit.reports import keep_run, make_item, make_result

CASES = 240

Truths = dict[str, bool]


def draw_truths(seed: int, share: float, cases: int = CASES) -> Truths:
    """Cases of which exactly this share is good."""
    good = [True] * round(share * cases) + [False] * (cases - round(share * cases))
    random.Random(seed).shuffle(good)
    return {f"case-{at}": value for at, value in enumerate(good)}


def keep(folder: Path, truths: Truths, *, right: float = 0.9, groups: bool = False) -> Run:
    """A run of a judge that is right in this share of the cases; two of each group, if it has groups."""
    chance = random.Random(1)
    verdicts = ["passed" if good == (chance.random() < right) else "failed" for good in truths.values()]
    return keep_run(
        folder,
        [
            make_item(at, make_result(verdict), group=f"q{at // 2}" if groups else None)
            for at, verdict in enumerate(verdicts)
        ],
    )


def say(cases: Iterable[str], truths: Truths, plan: LabelPlan | None = None) -> list[Label]:
    """What a person says of these cases: the truth."""
    return [
        Label(
            case=case,
            rater="ann",
            value=truths[case],
            blind=True,
            subject=digest_content(f"content {case.removeprefix('case-')}"),
            design=plan.find_design(case) if plan else None,
        )
        for case in cases
    ]


@dataclass
class Planning:
    """A run, its plan, and the labels so far."""

    run: Run
    truths: Truths
    plan: LabelPlan
    labels: list[Label]

    @classmethod
    def begin(cls, run: Run, truths: Truths, *, within: float = 0.06, seed: int = 1) -> Planning:
        (run.folder / "plan.json").unlink(missing_ok=True)
        plan = make_plan(run, within=within, seed=seed)
        write_plan(plan, run.folder)
        return cls(run, truths, plan, [])

    def label(self, most: int | None = None) -> None:
        """Label the next cases of the plan."""
        pending = find_plan_status(self.plan, self.labels).pending[:most]
        self.labels += say([item.case for item in pending], self.truths, self.plan)

    def draw(self) -> None:
        """Draw the next cases of the plan."""
        self.plan = continue_plan(self.plan, self.run, find_plan_status(self.plan, self.labels))
        write_plan(self.plan, self.run.folder)

    def complete(self) -> None:
        """Label exactly what is planned."""
        self.label()
        if find_plan_status(self.plan, self.labels).planned is None:
            self.draw()
            self.label()
        assert find_plan_status(self.plan, self.labels).complete

    def decide(self, bar: float) -> RateDecision:
        return decide_rate(self.run, bar, labels=self.labels)


@pytest.fixture(name="planning")
def make_planning(tmp_path: Path) -> Iterator[Planning]:
    """A run of which 80 % are good, with a plan and no labels."""
    truths = draw_truths(1, 0.8)
    with keep(tmp_path / "run", truths) as run:
        yield Planning.begin(run, truths)


# ---------------------------------------------------------------- a plan


def test_a_plan_that_is_complete_decides_by_the_limits_for_one_look(planning: Planning):
    """And the same labels give the same answer again, because they are the same look."""
    planning.complete()
    rate = make_measurement(planning.run, labels=planning.labels).rate
    assert rate is not None
    passed, missed = planning.decide(rate.low - 0.001), planning.decide(rate.low + 0.001)

    assert (passed.outcome, missed.outcome) == ("passed", "failed")
    for decision in (passed, missed):
        assert decision.limit is not None
        assert (decision.limit.kind, decision.limit.low, decision.left) == ("one look", rate.low, 0)
        assert "one look" in decision.reason
    assert planning.decide(rate.low - 0.001).outcome == "passed"


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_before_a_plan_is_complete_nothing_is_decided(planning: Planning, share: float):
    """However good the labels so far are, the answer is how many are left."""
    planning.label(round(share * len(planning.plan.order)))
    decision = planning.decide(0.01)

    assert decision.outcome == "undecided"
    assert decision.left == len(planning.plan.order) - len(planning.labels) > 0
    assert f"{decision.left} label{'s' * (decision.left != 1)} of the plan's pilot" in decision.reason


def test_one_label_that_is_missing_is_one(planning: Planning):
    """And not ``1 labels``."""
    planning.label(len(planning.plan.order) - 1)

    assert "1 label of the plan's pilot is missing; label it" in planning.decide(0.01).reason


def test_after_the_pilot_the_rest_is_counted(planning: Planning):
    """What is not drawn yet is left as well; then one label less each time."""
    planning.label()
    undrawn = planning.decide(0.01)
    planning.draw()
    drawn = planning.decide(0.01)
    planning.label(3)

    assert undrawn.outcome == drawn.outcome == "undecided"
    assert undrawn.left == drawn.left
    assert "adjudge plan" in undrawn.reason
    assert planning.decide(0.01).left == (drawn.left or 0) - 3


def test_labels_beyond_the_planned_ones_need_the_limits_for_every_look(planning: Planning):
    """A plan that was extended decides by them, with or without a record of the look before."""
    planning.complete()
    once = planning.decide(0.99)
    planning.draw()
    assert planning.plan.phases[-1].kind == "more"
    assert planning.decide(0.99).limit == once.limit, "nothing of the extension is labelled yet"
    planning.label(5)
    live = find_plan_status(planning.plan, planning.labels).live
    first = planning.decide(live.low)
    (planning.run.folder / "looks.jsonl").unlink()

    for decision in (first, planning.decide(live.low)):
        assert decision.outcome == "passed"
        assert decision.limit is not None
        assert (decision.limit.kind, decision.limit.low) == ("every look", live.low)
        assert "5 labels beyond" in decision.reason


def test_a_plan_that_was_replaced_after_a_look_needs_the_limits_for_every_look(planning: Planning):
    """The first plan that somebody looked at has the one look, complete or not."""
    planning.label(10)
    assert planning.decide(0.5).outcome == "undecided"
    other = Planning.begin(planning.run, planning.truths, seed=2)
    other.complete()
    decision = other.decide(0.5)

    assert decision.limit is not None
    assert decision.limit.kind == "every look"
    assert "another plan" in decision.reason


def test_a_plan_that_was_replaced_before_any_look_keeps_its_one_look(planning: Planning):
    """Nobody saw what the first one came to."""
    other = Planning.begin(planning.run, planning.truths, seed=2)
    other.complete()
    decision = other.decide(0.5)

    assert decision.limit is not None
    assert (decision.outcome, decision.limit.kind) == ("passed", "one look")


def test_labels_of_another_plan_tell_of_it_where_the_record_is_gone(planning: Planning):
    """A folder may be copied without its record; labels that name another plan are enough to be careful."""
    planning.label(10)
    before = planning.labels
    other = Planning.begin(planning.run, planning.truths, seed=2)
    other.complete()
    other.labels += [label for label in before if label.case not in {item.case for item in other.plan.order}]
    decision = other.decide(0.5)

    assert decision.limit is not None
    assert decision.limit.kind == "every look"
    assert "another plan" in decision.reason


def test_labels_that_changed_after_the_look_need_the_limits_for_every_look(planning: Planning):
    """Otherwise whoever mends labels until the bar is reached has many looks; a look that was undecided is none."""
    planning.complete()
    planning.decide(0.99)
    first = planning.labels[0]
    planning.labels[0] = replace(first, value=not first.value)
    decision = planning.decide(0.5)

    assert decision.limit is not None
    assert decision.limit.kind == "every look"
    assert "changed" in decision.reason


def test_a_look_that_cannot_be_recorded_is_not_the_one_look(planning: Planning, monkeypatch: pytest.MonkeyPatch):
    """Where a folder is read-only, the next look would be the first one again."""
    planning.complete()
    monkeypatch.setattr("os.access", lambda *_args, **_more: False)
    decision = planning.decide(0.5)

    assert decision.limit is not None
    assert decision.limit.kind == "every look"
    assert "cannot be recorded" in decision.reason


def test_a_damaged_record_is_an_error(planning: Planning):
    """To read on without it would give the one look again."""
    planning.complete()
    planning.decide(0.5)
    record = planning.run.folder / "looks.jsonl"
    record.write_text(record.read_text() + '{"schema": "adjudge/look/1"}\n')

    with pytest.raises(UsageError, match=r"looks\.jsonl, line 2"):
        planning.decide(0.5)


def test_each_look_is_recorded(planning: Planning):
    """When, how many labels, which plan, by which limits, and what it came to."""
    planning.label(3)
    planning.decide(0.7)
    planning.complete()
    planning.decide(0.01)
    first, last = load_looks(planning.run.folder)

    assert (first.labels, first.draw, first.limit, first.outcome) == (3, planning.plan.id, None, "undecided")
    assert (last.labels, last.complete, last.limit, last.bar) == (len(planning.labels), True, "one look", 0.01)
    assert (last.outcome, last.by, last.planned) == ("passed", "python", True)
    assert first.at < last.at
    assert (planning.run.folder / "looks.jsonl").stat().st_mode & 0o077 == 0


@pytest.mark.slow
def test_plan_and_agree_give_the_same_limits(tmp_path: Path):
    """For the same labels, near the end of the scale as well, where Wilson's limits alone are too narrow."""
    for share, right in ((0.8, 0.9), (0.985, 0.99), (0.5, 0.5), (1.0, 1.0), (0.02, 0.9)):
        truths = draw_truths(3, share)
        with keep(tmp_path / f"{share}", truths, right=right) as run:
            planning = Planning.begin(run, truths)
            planning.complete()
            once = find_plan_status(planning.plan, planning.labels).once
            rate = make_measurement(run, labels=planning.labels).rate

        assert once is not None
        assert (once.value, once.low, once.high) == (rate.value, rate.low, rate.high)


# ---------------------------------------------------------------- without a plan


def test_without_a_plan_the_limits_hold_at_every_look(tmp_path: Path):
    """They are wider than those for one look, and the message says which they are and what further labels do."""
    truths = draw_truths(1, 0.8)
    with keep(tmp_path / "run", truths) as run:
        labels = say(random.Random(1).sample(sorted(truths), 100), truths)
        rate = make_measurement(run, labels=labels, labels_are_random=True).rate
        decision = decide_rate(run, 0.8, labels=labels, labels_are_random=True)

    assert decision.limit is not None
    assert (decision.limit.kind, decision.limit.level) == ("every look", 0.95)
    assert decision.limit.low < rate.low
    assert "no plan" in decision.reason
    assert "label more and look again" in decision.reason


def test_labels_that_are_sorted_count_in_a_random_order(tmp_path: Path):
    """A file with the good cases first is still a random sample; its order says nothing of it."""
    truths = draw_truths(1, 0.8)
    with keep(tmp_path / "run", truths) as run:
        labels = say(random.Random(1).sample(sorted(truths), 100), truths)
        ordered = sorted(labels, key=lambda label: not label.value)
        decisions = [decide_rate(run, 0.5, labels=sample, labels_are_random=True) for sample in (labels, ordered)]

    assert decisions[0] == decisions[1]


def test_a_sample_that_lacks_earlier_labels_is_another_one(tmp_path: Path):
    """One that grew is the same; each further one gets wider limits, so that ten samples are not ten chances."""
    truths = draw_truths(1, 0.8)
    cases = random.Random(1).sample(sorted(truths), 200)
    with keep(tmp_path / "run", truths) as run:
        samples = [cases[:50], cases[:80], cases[100:180], cases[120:]]
        limits = [decide_rate(run, 0.5, labels=say(some, truths), labels_are_random=True).limit for some in samples]
        looks = load_looks(run.folder)

    levels = [item.level for item in limits if item is not None]
    assert levels[0] == levels[1] == 0.95 < levels[2] < levels[3]
    assert [look.draw for look in looks] == ["labels 1", "labels 1", "labels 2", "labels 3"]
    assert [len(look.added) for look in looks] == [50, 30, 80, 80]


def test_every_case_labelled_is_counted(tmp_path: Path):
    """Nothing is estimated, so there is no look to be careful about."""
    truths = draw_truths(1, 0.8)
    with keep(tmp_path / "run", truths) as run:
        decisions = [decide_rate(run, bar, labels=say(truths, truths)) for bar in (0.8, 0.81)]

    assert [item.outcome for item in decisions] == ["passed", "failed"]
    assert all(item.limit is not None and item.limit.kind == "count" for item in decisions)


@pytest.mark.parametrize(("target", "groups"), [("system", False), ("run", True), ("system", True)])
def test_groups_and_systems_have_limits_for_every_look_too(tmp_path: Path, target: Target, groups: bool):
    """They are wider than those for one look, and pass a bar that is clearly met."""
    truths = draw_truths(1, 0.8)
    items = [
        make_item(at, make_result("passed" if good else "failed"), group=f"q{at // 2}" if groups else None)
        for at, good in enumerate(truths.values())
    ]
    asked: Any = {"labels_are_random": True, "target": target}
    with keep_run(tmp_path / "run", items) as run:
        asked["labels"] = say(random.Random(1).sample(sorted(truths), 100), truths)
        rate, decision = make_measurement(run, **asked).rate, decide_rate(run, 0.5, **asked)

    assert decision.outcome == "passed"
    assert decision.limit is not None
    assert (decision.limit.kind, decision.limit.level) == ("every look", 0.95)
    assert decision.limit.low < rate.low < rate.high < decision.limit.high


# ---------------------------------------------------------------- sequences of looks


@dataclass(frozen=True)
class Seen:
    """What one look came to: by the gate, and by the ordinary limits."""

    passed: bool
    ordinary: bool


def look(run: Run, labels: list[Label], truths: Truths, **asked: bool) -> Seen:
    """A look at a bar that is just above the true rate."""
    bar = sum(truths.values()) / len(truths) + 1e-6
    rate = make_measurement(run, labels=labels, **asked).rate
    ordinary = isinstance(rate, CorrectedRate) and rate.low >= bar
    return Seen(passed=decide_rate(run, bar, labels=labels, **asked).outcome == "passed", ordinary=ordinary)


def look_without_plan(run: Run, truths: Truths, seed: int, looks: int) -> Iterator[Seen]:
    """Label a few more random cases each time and look."""
    order = random.Random(seed).sample(sorted(truths), len(truths))
    for number in range(1, looks + 1):
        labels = say(order[: number * len(order) // (looks + 1)], truths)
        yield look(run, labels, truths, labels_are_random=True)


def look_at_groups(run: Run, truths: Truths, seed: int, looks: int) -> Iterator[Seen]:
    """Label all cases of a few more groups each time and look."""
    groups = [list(truths)[at : at + 2] for at in range(0, len(truths), 2)]
    random.Random(seed).shuffle(groups)
    for number in range(1, looks + 1):
        some = groups[: 12 + number * (len(groups) - 12) // (looks + 1)]
        yield look(run, say([case for group in some for case in group], truths), truths, labels_are_random=True)


def look_at_extended_plan(run: Run, truths: Truths, seed: int, looks: int) -> Iterator[Seen]:
    """Look at a plan while it is labelled and when it is complete, and go on labelling and looking."""
    planning = Planning.begin(run, truths, within=0.1, seed=seed)
    for _ in range(looks):
        planning.label(len(truths) // (looks + 1))
        if not find_plan_status(planning.plan, planning.labels).pending:
            planning.draw()
        yield look(run, planning.labels, truths)


def look_at_replaced_plans(run: Run, truths: Truths, seed: int, looks: int) -> Iterator[Seen]:
    """Draw another plan whenever one does not reach the bar."""
    for number in range(looks):
        planning = Planning.begin(run, truths, within=0.1, seed=seed * 1_000 + number)
        planning.complete()
        yield look(run, planning.labels, truths)


SEQUENCES = {
    "no plan": look_without_plan,
    "groups": look_at_groups,
    "extended": look_at_extended_plan,
    "replaced": look_at_replaced_plans,
}


def count_passes(
    folder: Path, way: str, truths: Truths, *, right: float, looks: int, seeds: Iterable[int]
) -> tuple[int, int]:
    """In how many sequences of looks a bar is passed that is not met: by the gate, and by the ordinary limits."""
    outcomes = []
    with keep(folder, truths, right=right, groups=way == "groups") as run:
        for seed in seeds:
            for name in ("looks.jsonl", "plan.json"):
                (folder / name).unlink(missing_ok=True)
            seen = list(SEQUENCES[way](run, truths, seed, looks))
            outcomes.append((any(item.passed for item in seen), any(item.ordinary for item in seen)))
    return sum(passed for passed, _ in outcomes), sum(ordinary for _, ordinary in outcomes)


UNLUCKY = {"no plan": (38, 46, 54, 59), "extended": (30, 33, 34, 46), "replaced": (19, 31, 48)}
"""Seeds of sequences in which the ordinary limits pass a bar that is not met: about one in fifteen."""


@pytest.mark.slow
@pytest.mark.slow_table
@pytest.mark.parametrize("way", UNLUCKY)
def test_looking_until_a_bar_is_passed_does_not_pass_it(tmp_path: Path, way: str):
    """Whoever looks again and again, or draws plan after plan, would be lucky by the ordinary limits."""
    truths = draw_truths(5, 0.5, 160)
    passes, ordinary = count_passes(tmp_path / "run", way, truths, right=0.6, looks=6, seeds=UNLUCKY[way])

    # A plan that is extended later has its one look before, which may be unlucky as well.
    assert ordinary == len(UNLUCKY[way])
    assert passes <= (way == "extended")


SEEDS = range(4)
"""Sequences of each sort: so few because one of 24 looks takes seconds."""


@pytest.mark.timeout(3600)
@pytest.mark.full
def test_a_bar_that_is_not_met_is_seldom_passed_in_24_looks(tmp_path: Path):
    """The same with 24 looks, for good and bad judges and for rates near the end, all sequences together."""
    counts_by_way = {}
    for way, (share, right) in itertools.product(SEQUENCES, [(0.5, 0.6), (0.8, 0.9), (0.95, 0.9)]):
        folder, truths = tmp_path / f"{way} {share}", draw_truths(5, share)
        counts_by_way[way, share] = count_passes(folder, way, truths, right=right, looks=24, seeds=SEEDS)
    passes, ordinary = (sum(counts) for counts in zip(*counts_by_way.values(), strict=True))

    sequences = len(counts_by_way) * len(SEEDS)
    # The figures of docs/plan.md, with -s.
    print(f"of {sequences} sequences the gate passed {passes}, and the ordinary limits {ordinary}")  # noqa: T201
    # More than this many are seen in one of 1,000 such tables where the promise is just kept.
    assert passes <= binom.ppf(0.999, sequences, 0.05), counts_by_way
    assert passes < ordinary, counts_by_way


@pytest.mark.slow
@pytest.mark.slow_table
@pytest.mark.parametrize("share", [0.6, 0.8, 0.95])
def test_a_bar_that_is_met_is_passed_by_a_complete_plan(tmp_path: Path, share: float):
    """Ten points above the bar, a plan within 6 points shows it at its one look, nearly always."""
    truths = draw_truths(5, share)
    outcomes = []
    with keep(tmp_path / "run", truths) as run:
        for seed in range(20):
            (run.folder / "looks.jsonl").unlink(missing_ok=True)
            planning = Planning.begin(run, truths, seed=seed)
            planning.complete()
            outcomes.append(planning.decide(share - 0.1).outcome)

    assert outcomes.count("passed") >= 18
