"""A judge measured against people: what is counted where, which labels make a rate, and what is said of it."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from adjudge import Case, CriterionResult, UsageError
from adjudge.dataset import Label, LabelDesign, write_cases, write_labels
from adjudge.judges import PairOrder, PairResult
from adjudge.labels import make_plan, write_plan
from adjudge.measurement import Measurement, make_measurement, measure_file
from adjudge.report import render_measurement_markdown
from adjudge.runs import Run, RunItem
from adjudge.trust import CorrectedRate, Refusal
from kit.labels import bind_labels
from kit.reports import keep_run, make_item, make_result

pytest.importorskip("scipy", reason="measuring needs the extra trust")

AT = datetime(2026, 11, 22, tzinfo=UTC)


def label(case: str, value: Any, rater: str = "ann", **more: Any) -> Label:
    """What one rater said."""
    return Label(case=case, rater=rater, value=value, at=AT, **more)


def keep(place: Path, verdicts: Iterable[str], **case: Any) -> Run:
    """A run of cases with these verdicts: ``p``, ``f`` or ``u``."""
    outcomes = {"p": "passed", "f": "failed", "u": "undecided"}
    return keep_run(place, [make_item(at, make_result(outcomes[letter]), **case) for at, letter in enumerate(verdicts)])


def say(values: Iterable[Any], rater: str = "ann", **more: Any) -> list[Label]:
    """The labels of one rater for the cases of ``keep``, in order; ``None`` is no label."""
    return [label(f"case-{at}", value, rater, **more) for at, value in enumerate(values) if value is not None]


# ---------------------------------------------------------------- heaps


def test_each_verdict_and_each_truth_is_a_heap(tmp_path: Path):
    """Undecided verdicts, people who cannot tell and people who differ are counted, and never dropped."""
    labels = say([True, False, True, "cannot_tell", True, False]) + say([None, None, None, None, False], "bob")
    measurement = make_measurement(keep(tmp_path / "run", "ppfpup" + "f"), labels=labels)

    assert measurement.table == {
        "passed": {"good": 1, "bad": 2, "cannot_tell": 1},
        "failed": {"good": 1},
        "undecided": {"unresolved": 1},
    }
    assert (measurement.cases, measurement.labelled, measurement.settled) == (7, 6, 4)
    assert measurement.verdicts == {"passed": 4, "failed": 2, "undecided": 1}


def test_an_adjudication_settles_what_people_differ_on(tmp_path: Path):
    """Who settles a case decides over the others, and is no rater of it."""
    labels = [*say([True]), *say([False], "bob"), label("case-0", True, "eve", kind="adjudication")]
    measurement = make_measurement(keep(tmp_path / "run", "p"), labels=labels)

    assert measurement.count("passed", "good") == 1
    assert measurement.people == ("ann", "bob")


def test_overrides_are_in_no_figure(tmp_path: Path):
    """A gate asks only about what it held back, so those labels say nothing of the rate."""
    measurement = make_measurement(keep(tmp_path / "run", "fp"), labels=say([True], kind="override"))

    assert (measurement.overrides, measurement.labelled, measurement.agreement) == (1, 0, None)
    assert "rate" not in measurement.left_out


def test_labels_of_other_cases_are_counted_apart(tmp_path: Path):
    """A labelled case that was not judged here is in no figure, and is said to be so."""
    measurement = make_measurement(keep(tmp_path / "run", "p"), labels=[*say([True]), label("of another run", False)])

    assert (measurement.labelled, measurement.elsewhere) == (1, 1)
    assert "1 labelled case was not judged here and is in no figure." in render_measurement_markdown(
        [measurement], most=9
    )


def test_a_data_set_s_own_labels_count_where_no_file_says_otherwise(tmp_path: Path):
    """A case goes by its label, else by most of its labels; a file of labels has precedence."""
    cases = [{"label": False}, {"labels": {"ann": True, "bob": True, "cy": False}}, {"labels": {"ann": None}}, {}]
    items = [make_item(at, **case) for at, case in enumerate(cases)]
    run = keep_run(tmp_path / "run", items)

    assert make_measurement(run).table == {"passed": {"good": 1, "bad": 1, "cannot_tell": 1}}
    assert make_measurement(run, labels=say([True])).table == {"passed": {"good": 2, "cannot_tell": 1}}


def test_repeated_judgements_are_one_verdict(tmp_path: Path):
    """More than half decide; without that the case is undecided, and differing judgements are counted."""
    outcome_sets = [("passed", "passed", "failed"), ("passed", "failed", "undecided")]
    items = [
        make_item(at, make_result(outcome), sample=sample)
        for at, outcomes in enumerate(outcome_sets)
        for sample, outcome in enumerate(outcomes)
    ]
    measurement = make_measurement(keep_run(tmp_path / "run", items), labels=say([True, True]))

    assert measurement.table == {"passed": {"good": 1}, "undecided": {"good": 1}}
    assert measurement.flipped is not None
    assert (measurement.flipped.count, measurement.flipped.of) == (2, 2)


# ---------------------------------------------------------------- figures


def make_hundred(tmp_path: Path) -> tuple[Run, list[Label]]:
    """100 cases: 60 good, of which the judge passes 54, and 40 bad, of which it fails 30."""
    run = keep(tmp_path / "run", "p" * 54 + "f" * 6 + "p" * 10 + "f" * 30)
    return run, say([True] * 60 + [False] * 40)


def test_sensitivity_is_of_good_ones_and_specificity_of_bad_ones(tmp_path: Path):
    """Kept of the good, caught of the bad, and how often a judge is right that always passes."""
    run, labels = make_hundred(tmp_path)
    agreement = make_measurement(run, labels=labels).agreement

    assert agreement is not None
    assert agreement.sensitivity.value == 54 / 60
    assert agreement.specificity.value == 30 / 40
    assert agreement.baselines[0].accuracy.rate == 0.6


def test_people_who_labelled_the_same_cases_are_the_ceiling(tmp_path: Path):
    """How often people agree with each other stands beside the judge; without a second rater it is said why not."""
    run, labels = make_hundred(tmp_path)
    twice = [*labels, *say([True] * 55 + [False] * 45, "bob")]

    ceiling = make_measurement(run, labels=twice).ceiling
    assert ceiling is not None
    assert ceiling.agreement.value == 0.95
    assert "two people" in make_measurement(run, labels=labels).left_out["ceiling"]


def test_kinds_of_cases_are_compared_and_the_worst_is_named(tmp_path: Path):
    """``by`` takes a key of the metadata; a kind that is worse by more than chance says so."""
    items = [
        make_item(
            at, make_result("passed" if at % 2 or at < 40 else "failed"), metadata={"lang": "de" if at < 40 else "en"}
        )
        for at in range(120)
    ]
    labels = say(at % 2 == 1 for at in range(120))
    slices = make_measurement(keep_run(tmp_path / "run", items), labels=labels, by="lang").slices

    assert slices is not None
    assert slices.worst is not None
    assert (slices.worst.name, slices.worst.is_worse) == ("de", True)


def test_each_labelled_criterion_has_a_table_of_its_own(tmp_path: Path):
    """Criteria are compared by what the judge said of each, and one of them alone with ``criterion``."""
    criteria = (
        CriterionResult(name="polite", score=0.9, passed=True, reasoning="", weight=1.0),
        CriterionResult(name="true", score=0.1, passed=False, reasoning="", weight=1.0),
    )
    run = keep_run(tmp_path / "run", [make_item(at, make_result(criteria=criteria)) for at in range(4)])
    labels = say([True] * 4, criterion="polite") + say([True, True, False, False], criterion="true")

    measurement = make_measurement(run, labels=labels)
    assert {item.criterion: item.table for item in measurement.criteria} == {
        "polite": {"passed": {"good": 4}},
        "true": {"failed": {"good": 2, "bad": 2}},
    }
    assert make_measurement(run, labels=labels, criterion="true").table == {"failed": {"good": 2, "bad": 2}}
    with pytest.raises(UsageError, match="polite"):
        make_measurement(run, labels=labels, criterion="short")


def make_pair(side: str) -> PairResult:
    """A comparison in one order."""
    order = PairOrder(order="ab", result=make_result(value=side))
    return PairResult(preferred=side, judge="j", orders=(order,))  # type: ignore[arg-type] - one of the three


def test_comparisons_are_measured_by_preference(tmp_path: Path):
    """Pairs have three categories, and the rate is of those in which the first is preferred."""
    sides = ["first", "second", "tie", "first"]
    results = [make_pair(side) for side in sides]
    items = [make_item(at, result, content={"a": "x", "b": "y"}) for at, result in enumerate(results)]
    measurement = make_measurement(
        keep_run(tmp_path / "run", items), labels=say(["first", "second", "first", "second"])
    )

    assert measurement.kind == "preference"
    assert measurement.agreement is not None
    assert measurement.agreement.confusion.agreed == 2
    assert measurement.rate is not None
    assert measurement.rate.naive is not None
    assert measurement.rate.naive.rate == 0.5
    assert "People prefer the first in 50 % of these 4 pairs; the judge prefers the first in 50 %." in show(measurement)


def test_labels_that_are_numbers_are_compared_by_correlation(tmp_path: Path):
    """Scores and numbers correlate; a rate does not follow from them."""
    scores = [0.1, 0.4, 0.5, 0.9, 0.7, 0.2]
    run = keep_run(tmp_path / "run", [make_item(at, make_result(score=score)) for at, score in enumerate(scores)])
    measurement = make_measurement(run, labels=say([1, 2, 3, 5, 4, 1]))

    assert measurement.kind == "number"
    assert measurement.correlation is not None
    assert (measurement.correlation.per_item.spearman.value or 0) > 0.9
    assert measurement.rate is None
    assert "numbers" in measurement.left_out["rate"]


# ---------------------------------------------------------------- the corrected rate


def draw(labels: Iterable[Label], every: int, **design: Any) -> list[Label]:
    """Every so-many-th label, as drawn by a plan or not."""
    kept = list(labels)[::every]
    return [Label.from_dict(item.to_dict() | design) for item in kept] if design else kept


PLAN = LabelDesign(plan="p", stratum="all", p=0.5).to_dict()


def test_labels_that_nobody_drew_give_counts_and_no_rate(tmp_path: Path):
    """Somebody chose them, so they say how often the judge was right on them and nothing of the other cases."""
    run, labels = make_hundred(tmp_path)
    measurement = make_measurement(run, labels=draw(labels, 2))

    assert measurement.sampling == "unknown"
    assert isinstance(measurement.rate, Refusal)
    assert measurement.rate.because == "not_random"
    assert (measurement.count("failed", "bad"), measurement.labelled) == (15, 50)


@pytest.mark.parametrize("sampling", ["said", "plan"])
def test_a_random_sample_of_the_run_assumes_nothing_about_the_judge(tmp_path: Path, sampling: str):
    """A draw that is recorded, or said to be random, gives the rate by double sampling; it covers the truth here."""
    run, labels = make_hundred(tmp_path)
    drawn = draw(labels, 2, **({"design": PLAN} if sampling == "plan" else {}))
    measurement = make_measurement(run, labels=bind_labels(run, drawn), labels_are_random=sampling == "said")

    assert measurement.sampling == ("random" if sampling == "said" else "plan")
    rate = measurement.rate
    assert rate is not None
    assert rate.to_dict()["low"] < 0.6 < rate.to_dict()["high"]


def test_a_census_has_no_uncertainty(tmp_path: Path):
    """Where every case is labelled, the rate of the run is a count."""
    run, labels = make_hundred(tmp_path)
    measurement = make_measurement(run, labels=labels)

    assert measurement.sampling == "census"
    assert measurement.rate is not None
    assert [measurement.rate.to_dict()[name] for name in ("value", "low", "high")] == pytest.approx([0.6] * 3)


@pytest.mark.slow
def test_labels_beside_a_plan_are_left_out_of_the_rate(tmp_path: Path):
    """Cases that somebody picked are no part of the sample; they count for agreement, and it is said."""
    run, labels = make_hundred(tmp_path)
    drawn = draw(labels, 2, design=PLAN)
    measurement = make_measurement(run, labels=bind_labels(run, [*drawn, *labels[1:20:2]]))

    assert measurement.labelled == 60
    assert measurement.rate is not None
    assert measurement.rate.to_dict()["labels"] == 50
    assert any("10 labels" in note for note in measurement.notes)


@pytest.mark.parametrize(("before", "sampled"), [(50, 10), (4, 10)])
def test_of_a_random_order_and_a_plan_the_one_that_drew_more_labels_counts(tmp_path: Path, before: int, sampled: int):
    """A plan that is drawn after people began to label has strata that the earlier labels are not in."""
    run, labels = make_hundred(tmp_path)
    plan = make_plan(run, within=0.05, seed=3)
    write_plan(plan, run.folder)
    truths = {item.case: item.value for item in labels}
    taken = [item for item in plan.order if int(item.case[5:]) % 2][:sampled]
    planned = [
        replace(label(item.case, truths[item.case], design=plan.make_design(item)), at=plan.at + timedelta(minutes=1))
        for item in taken
    ]
    earlier = draw(labels[: 2 * before], 2, design=PLAN)
    measurement = make_measurement(run, labels=bind_labels(run, [*earlier, *planned]))

    assert len(plan.strata) > 1
    assert measurement.sampling == "plan"
    assert measurement.rate is not None
    assert measurement.rate.to_dict()["labels"] == max(before, len(taken))
    assert measurement.is_weighted == (len(taken) > before)


def test_labels_that_do_not_look_random_are_not_taken_for_it(tmp_path: Path):
    """Labels of passes alone are no random sample, whatever somebody says."""
    run, labels = make_hundred(tmp_path)
    measurement = make_measurement(run, labels=labels[:50], labels_are_random=True)

    assert isinstance(measurement.rate, Refusal)
    assert "do not look like a random sample" in measurement.rate.reason


def show(measurement: Measurement) -> str:
    """What a reader is told, in Markdown."""
    return render_measurement_markdown([measurement], most=0)


def make_other(tmp_path: Path, truths: Iterable[Any] = (True,) * 60 + (False,) * 40) -> Run:
    """Another run of the same judge, whose cases have these labels in its data set."""
    items = [
        make_item(at, make_result("passed" if at < 54 or 60 <= at < 70 else "failed"), label=truth)
        for at, truth in enumerate(truths)
    ]
    return keep_run(tmp_path / "other", items)


@pytest.mark.parametrize("labelled", ["nothing", "chosen"])
def test_what_was_measured_on_another_run_is_words_and_no_rate(tmp_path: Path, labelled: str):
    """The counts of the other run are shown; the rate of this one is not known without random labels of it."""
    run, labels = make_hundred(tmp_path)
    mine = [] if labelled == "nothing" else labels[:20]
    measurement = make_measurement(run, labels=mine, measured_on=make_other(tmp_path))
    text = show(measurement)

    assert isinstance(measurement.rate, Refusal)
    assert (
        "On run other it caught 30 of 40 bad answers and kept 54 of 60 good ones; how often it errs on this run is not "
        "known: label 50 cases of this run at random."
    ) in text
    assert measurement.to_dict()["measured_on"] == {
        "name": "other",
        "run": measurement.measured_on.measurement.run if measurement.measured_on else None,
        "kind": "verdict",
        "labelled": 100,
        "table": {"passed": {"good": 54, "bad": 10}, "failed": {"good": 6, "bad": 30}},
    }


@pytest.mark.slow
def test_labels_of_another_run_change_no_rate(tmp_path: Path):
    """With random labels of the run itself the rate is theirs, to the last digit; the other's counts are words."""
    run, labels = make_hundred(tmp_path)
    alone = make_measurement(run, labels=draw(labels, 2), labels_are_random=True)
    both = make_measurement(run, labels=draw(labels, 2), labels_are_random=True, measured_on=make_other(tmp_path))

    assert both.rate == alone.rate
    assert "On run other it caught 30 of 40 bad answers and kept 54 of 60 good ones." in show(both)
    assert "how often it errs on this run" not in show(both)


def test_a_run_whose_labels_are_all_open_says_so_of_another(tmp_path: Path):
    """Labels that settle nothing are no measurement of anything."""
    run, _ = make_hundred(tmp_path)
    measurement = make_measurement(run, labels=[], measured_on=make_other(tmp_path, ["cannot_tell"] * 100))

    assert "On run other no label is settled" in show(measurement)


@pytest.mark.parametrize("kind", ["all good", "all bad", "mixed"])
@pytest.mark.parametrize("labelled", [1, 10, 99, 100])
@pytest.mark.parametrize("sampling", ["census or chosen", "random", "plan"])
def test_only_a_census_is_worded_as_a_count(tmp_path: Path, kind: str, labelled: int, sampling: str):
    """No interval without width, and no "counting", unless every case has a label."""
    run, labels = make_hundred(tmp_path)
    values = {"all good": [True] * 100, "all bad": [False] * 100, "mixed": [item.value for item in labels]}[kind]
    kept = [
        label(
            f"case-{at}",
            values[at],
            **({"design": LabelDesign(plan="p", stratum="all", p=0.5)} if sampling == "plan" else {}),
        )
        for at in random.Random(5).sample(range(100), labelled)
    ]
    measurement = make_measurement(run, labels=bind_labels(run, kept), labels_are_random=sampling == "random")
    text = show(measurement)

    census = labelled == 100
    assert measurement.is_counted == census
    assert ("| computed by | counting" in text) == census
    if isinstance(measurement.rate, CorrectedRate):
        assert (measurement.rate.low == measurement.rate.high) == census
        assert ("would pass" in text) != census
        assert bool(re.search(r"corrected rate, of this run \|.* to .*%", text)) != census


def test_unresolved_cases_count_both_ways(tmp_path: Path):
    """The interval holds whether the cases that people could not settle are good or bad."""
    run, labels = make_hundred(tmp_path)
    open_ones = [label(f"case-{at}", "cannot_tell", kind="adjudication") for at in range(0, 20, 2)]
    measurement = make_measurement(run, labels=[*labels, *open_ones])
    rate = measurement.rate.to_dict() if measurement.rate is not None else {}

    assert rate["unresolved"] == 10
    assert rate["bounds"] == pytest.approx([0.5, 0.6])
    assert rate["low"] == pytest.approx(0.5)
    assert 0.6 <= rate["high"] < 0.61


def test_the_target_is_named(tmp_path: Path):
    """The rate of the system is wider than that of the run, even where every case is labelled."""
    run, labels = make_hundred(tmp_path)
    rate = make_measurement(run, labels=labels, target="system").rate

    assert rate is not None
    assert rate.to_dict()["target"] == "system"
    assert rate.to_dict()["low"] < 0.6 < rate.to_dict()["high"]
    with pytest.raises(UsageError, match="target"):
        make_measurement(run, labels=labels, target="week")  # type: ignore[arg-type]


# ---------------------------------------------------------------- disagreements


def sort_of(measurement: Measurement) -> Mapping[str, str]:
    """The sort of each disagreement."""
    return {item.case: item.sort for item in measurement.disagreements}


def test_disagreements_are_sorted_by_what_to_do_about_them(tmp_path: Path):
    """People agree against the judge, differ among themselves, or could not tell."""
    labels = [*say([False, False, "cannot_tell", True]), *say([False, True, False, True], "bob")]
    labels += [label("case-1", False, "eve", kind="adjudication")]
    measurement = make_measurement(keep(tmp_path / "run", "pppp"), labels=labels)

    assert sort_of(measurement) == {
        "case-0": "judge wrong",
        "case-1": "people disagree",
        "case-2": "rubric silent",
    }
    assert measurement.sorts == {"judge wrong": 1, "people disagree": 1, "rubric silent": 1}


def test_a_rubric_is_silent_where_every_criterion_agrees_and_the_whole_does_not(tmp_path: Path):
    """The criteria leave out what people minded."""
    criteria = (CriterionResult(name="polite", score=0.9, passed=True, reasoning="", weight=1.0),)
    run = keep_run(tmp_path / "run", [make_item(at, make_result(criteria=criteria)) for at in range(2)])
    labels = [*say([False, False]), *say([True, False], criterion="polite")]

    assert sort_of(make_measurement(run, labels=labels)) == {"case-0": "rubric silent", "case-1": "judge wrong"}


def test_a_comment_chooses_the_sort(tmp_path: Path):
    """A comment that begins with the name of a sort overrules the rule, and the row says that a person chose."""
    labels = say([False], comment="Rubric silent: nothing about dates")
    disagreement = make_measurement(keep(tmp_path / "run", "p"), labels=labels).disagreements[0]

    assert (disagreement.sort, disagreement.by_hand) == ("rubric silent", True)


def test_the_worst_of_each_sort_are_kept(tmp_path: Path):
    """More people against the judge come first, then the score farthest from what they say; the rest is counted."""
    scores = [0.9, 0.71, 0.99, 0.8]
    run = keep_run(tmp_path / "run", [make_item(at, make_result(score=score)) for at, score in enumerate(scores)])
    labels = [*say([False] * 4), *say([None, False], "bob")]
    measurement = make_measurement(run, labels=labels, most_disagreements=3)

    assert [item.case for item in measurement.disagreements] == ["case-1", "case-2", "case-0"]
    assert measurement.differing == 4
    assert measurement.disagreements[0].content == "content 1"


# ---------------------------------------------------------------- files


def test_each_model_of_a_file_of_labels_is_a_judge(tmp_path: Path):
    """Rows of the kind model are verdicts, on the whole and on criteria."""
    people = say([True, False, True, False])
    models = [*say([True, True, True, False], "a", kind="model"), *say([False] * 4, "b", kind="model")]
    models += say([True, True], "a", kind="model", criterion="polite")
    write_labels(tmp_path / "labels.jsonl", [*people, *models, *say([True, False], criterion="polite")])

    first, second = measure_file(tmp_path / "labels.jsonl")
    assert (first.judge, first.table) == ("a", {"failed": {"bad": 1}, "passed": {"bad": 1, "good": 2}})
    assert [item.table for item in first.criteria] == [{"passed": {"bad": 1, "good": 1}}]
    assert (second.judge, second.count("failed", "bad")) == ("b", 2)
    assert [item.judge for item in measure_file(tmp_path / "labels.jsonl", judge="b")] == ["b"]
    with pytest.raises(UsageError, match="'c'"):
        measure_file(tmp_path / "labels.jsonl", judge="c")


def test_a_rater_of_a_data_set_is_the_judge_that_is_named(tmp_path: Path):
    """The others are people; without a name nobody knows who the judge is."""
    rows = [Case(id=f"c{at}", content="x", labels={"ann": at < 3, "model": at < 4}) for at in range(6)]
    write_cases(tmp_path / "data.jsonl", rows)

    (measurement,) = measure_file(tmp_path / "data.jsonl", judge="model")
    assert measurement.table == {"failed": {"bad": 2}, "passed": {"bad": 1, "good": 3}}
    assert measurement.people == ("ann",)
    for wrong in (None, "nobody"):
        with pytest.raises(UsageError, match=r"judge|nobody"):
            measure_file(tmp_path / "data.jsonl", judge=wrong)


def test_a_measurement_is_plain_data(tmp_path: Path):
    """``to_dict`` is JSON with a schema, disagreements and all."""
    run, labels = make_hundred(tmp_path)
    data = make_measurement(run, labels=labels, by="lang").to_dict()

    assert json.loads(json.dumps(data, allow_nan=False))["schema"] == "adjudge/measurement/1"
    assert (data["table"]["passed"]["bad"], data["refused"]) == (10, False)
    assert data["rate"]["value"] == pytest.approx(0.6)


def test_nothing_labelled_is_said_and_not_computed(tmp_path: Path):
    """Without labels there is no rate, and no figure is made up."""
    measurement = make_measurement(keep(tmp_path / "run", "pf"))

    assert measurement.agreement is None
    assert measurement.rate is not None
    assert measurement.rate.to_dict()["because"] == "no_labels"
    assert set(measurement.left_out) >= {"agreement", "ceiling"}


def list_items(number: int) -> list[RunItem]:
    """Items whose content has a property that the judge follows: it passes whatever is long."""
    return [
        make_item(at, make_result("passed" if at % 2 else "failed"), content="word " * (200 if at % 2 else 20))
        for at in range(number)
    ]


def test_a_judge_that_follows_length_is_found_out(tmp_path: Path):
    """The bias is read off the contents that were judged, without another call."""
    run = keep_run(tmp_path / "run", list_items(80))
    bias = make_measurement(run, labels=say(at % 4 < 2 for at in range(80))).bias

    assert bias is not None
    assert [(kind.by, kind.name, kind.is_shown) for kind in bias.kinds] == [
        ("length (characters)", "100", True),
        ("length (characters)", "1,000", True),
    ]
    assert [(kind.judge, kind.people) for kind in bias.kinds] == [(0.0, 0.5), (1.0, 0.5)]
