"""What a report counts: shares with intervals, spreads, disagreements, and which cases are shown."""

from __future__ import annotations

import gc
import math
import statistics
import tracemalloc
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import CriterionResult, JudgeChainResult, PairResult, RuleResult, Usage, UsageError
from adjudge.judges import PairOrder
from adjudge.report import Report, make_report
from adjudge.runs import RunItem
from kit.reports import keep_run, list_example, make_item, make_manifest_of, make_result, report_of


def report(*items: RunItem, **options: Any) -> Report:
    """A report of items, finished and with nothing said of the run."""
    return report_of(items, {"status": "finished"}, **options)


def chain(*seats: Any, outcome: str = "failed") -> JudgeChainResult:
    """What a chain came to, with the outcomes of its seats."""
    because = "split" if outcome == "undecided" else None
    results = tuple(make_result(seat, judge=f"seat {place}") for place, seat in enumerate(seats))
    return JudgeChainResult(
        outcome=outcome, undecided_because=because, judge="chain", strategy="majority", results=results
    )


def pair(first: str, second: str | None = None, preferred: str | None = None) -> PairResult:
    """A comparison: what is said of the place in either order, and what it comes to."""
    preferences = [("ab", first)] if second is None else [("ab", first), ("ba", second)]
    orders = tuple(
        PairOrder(order=name, result=make_result("passed", value=place, score=1.0)) for name, place in preferences
    )
    return PairResult(preferred=preferred or "tie", judge="careful", orders=orders)


def test_outcomes_reasons_and_who_decided_are_counted():
    """Every judgement is one outcome; the undecided ones have a reason each, the most frequent first."""
    silent = [make_result("undecided", undecided_because=because) for because in ("error", "timeout", "timeout")]
    summary = report(
        make_item(0),
        make_item(1, make_result("failed", decided_by="rule")),
        *[make_item(place, result) for place, result in enumerate(silent, 2)],
    )

    assert summary.outcomes == {"passed": 1, "failed": 1, "undecided": 3}
    assert list(summary.undecided_because.items()) == [("timeout", 2), ("error", 1)]
    assert summary.decided_by == {"judge": 4, "rule": 1}
    assert (summary.cases, summary.judgements) == (5, 5)


def test_the_share_that_passed_has_an_interval():
    """Undecided is not passed; 8 of 10 is 80 %, and Wilson's interval of it is known from its own paper's formula."""
    summary = report(*[make_item(place, make_result("passed" if place < 8 else "failed")) for place in range(10)])

    assert summary.passed.rate == 0.8
    assert summary.passed.interval == pytest.approx((0.4901625, 0.9433178), abs=1e-6)


def test_a_case_judged_repeatedly_counts_once():
    """Its share of passes counts, so asking the same case again does not make the interval narrower."""
    outcomes = (("passed", "passed", "failed"), ("passed",) * 3, ("failed",) * 3)
    items = [
        make_item(place, make_result(outcome), sample=sample)
        for place, many in enumerate(outcomes)
        for sample, outcome in enumerate(many)
    ]
    summary = report(*items)

    assert (summary.passed.of, summary.judgements) == (3, 9)
    assert summary.passed.rate == pytest.approx(5 / 9)
    assert summary.case_outcomes == {"passed": 1, "failed": 2, "undecided": 0}
    assert summary.repeats is not None
    assert (summary.repeats.cases, summary.repeats.flipped.count) == (3, 1)
    assert summary.repeats.mean_range == pytest.approx(0.2)


def test_criteria_are_summed_up_the_lowest_mean_first():
    """Each with its spread, the share that reached it, and the threshold that gates; no score is not a zero."""
    scored = [("weak", 0.2, False), ("strong", 0.9, True), ("weak", 0.4, False), ("strong", None, False)]
    items = [
        make_item(place, make_result(criteria=(
            CriterionResult(name=name, score=score, passed=passed, threshold=0.5 if name == "weak" else None),)))
        for place, (name, score, passed) in enumerate(scored)
    ]  # fmt: skip
    weak, strong = report(*items).criteria

    assert (weak.name, weak.threshold, weak.passed.count, weak.passed.of) == ("weak", 0.5, 0, 2)
    assert weak.scores is not None
    assert weak.scores.mean == pytest.approx(0.3)
    assert strong.scores is not None
    assert (strong.scores.count, strong.passed.of) == (1, 2)


def test_labels_give_a_confusion_table_and_a_floor():
    """An undecided judgement is never right, and a judge that passes everything is the floor to compare with."""
    rows = [("passed", True), ("failed", True), ("undecided", False), ("failed", False), ("passed", None)]
    summary = report(*[make_item(place, make_result(out), label=label) for place, (out, label) in enumerate(rows)])

    assert summary.labels is not None
    assert summary.labels.confusion == {
        "true": {"passed": 1, "failed": 1, "undecided": 0},
        "false": {"passed": 0, "failed": 1, "undecided": 1},
    }
    assert (summary.labels.accuracy.count, summary.labels.accuracy.of) == (2, 4)
    assert summary.labels.always_passing.rate == 0.5


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=30))
def test_numbers_as_labels_are_correlated_as_the_standard_library_does(pairs: list[tuple[float, float]]):
    """Pearson's correlation in one pass; where either does not vary there is none."""
    summary = report(*[make_item(n, make_result(score=score), label=label) for n, (score, label) in enumerate(pairs)])
    scores, labels = zip(*pairs, strict=True)

    assert summary.numbers is not None
    assert summary.numbers.mean_difference == pytest.approx(sum(abs(a - b) for a, b in pairs) / len(pairs))
    if statistics.pstdev(scores) > 1e-3 and statistics.pstdev(labels) > 1e-3:
        assert summary.numbers.correlation == pytest.approx(statistics.correlation(scores, labels), abs=1e-6)
    if len(set(scores)) == 1:
        assert summary.numbers.correlation is None


def test_labels_on_another_scale_have_no_difference():
    """Stars from 1 to 5 go together with scores; their difference means nothing. A label that is NaN is none."""
    summary = report(
        *[make_item(n, make_result(score=n / 5), label=float(n)) for n in range(1, 6)],
        make_item(9, label=math.nan),
    )

    assert summary.numbers is not None
    assert (summary.numbers.labelled, summary.numbers.mean_difference) == (5, None)
    assert summary.numbers.correlation == pytest.approx(1.0)


def test_seats_and_their_disagreements_are_counted():
    """A pair of judges disagrees where both decided and not alike; an undecided seat disagrees with nobody."""
    summary = report(
        make_item(0, chain("passed", "failed", "failed")),
        make_item(1, chain("passed", "passed", "undecided", outcome="passed")),
        make_item(2, chain("failed", outcome="failed")),
    )

    assert [seat.asked for seat in summary.seats] == [3, 2, 2]
    assert summary.seats[2].outcomes == {"passed": 0, "failed": 1, "undecided": 1}
    assert {(pair.first, pair.second): (pair.disagreed.count, pair.disagreed.of) for pair in summary.seat_pairs} == {
        ("seat 0", "seat 1"): (1, 2),
        ("seat 0", "seat 2"): (1, 1),
        ("seat 1", "seat 2"): (0, 1),
    }
    assert summary.split is not None
    assert (summary.split.count, summary.split.of) == (1, 3)


def test_groups_and_rules_are_told_apart():
    """The group with the lowest share comes first, the rule that found most too; without groups there is no table."""
    rules = (RuleResult(name="length", passed=True), RuleResult(name="secrets", passed=False))
    summary = report(
        make_item(0, group="b"),
        make_item(1, make_result("failed", rule_results=rules), group="a"),
        make_item(2),
    )

    assert [(item.name, item.passed.rate) for item in summary.groups] == [("a", 0), ("b", 1), (None, 1)]
    assert [(item.name, item.failed, item.checked) for item in summary.rules] == [("secrets", 1, 1), ("length", 0, 1)]
    assert report(make_item(0)).groups == ()


def test_an_unknown_cost_is_not_zero():
    """What is known is summed up, what is not is counted; where nobody said anything, nothing is known."""
    used = Usage(input_tokens=10, output_tokens=2, cost_usd=0.5)
    priced = [make_item(n, make_result(usage=used)) for n in range(2)]
    summary = report(*priced, make_item(2, make_result(usage=Usage(input_tokens=5))), make_item(3))

    assert (summary.cost.known_usd, summary.cost.unknown) == (1.0, 2)
    assert (summary.cost.input_tokens, summary.cost.output_tokens, summary.cost.calls) == (25, 4, 3)
    assert report(make_item(0)).cost.input_tokens is None


def test_a_call_that_timed_out_may_have_cost_something():
    """It has no usage, so it is counted as unknown, as the run itself does; what nobody was asked for cost nothing."""
    lost = [make_result("undecided", undecided_because=reason) for reason in ("timeout", "error", "budget")]
    rule = make_result("failed", decided_by="rule")
    items = [make_item(n, result) for n, result in enumerate([*lost, rule])]

    assert report(*items).cost.unknown == 1


def test_a_report_is_made_of_a_folder_too(tmp_path):
    """As ``diff`` and ``redecide`` take one; a folder without a run is named."""
    run = keep_run(tmp_path / "run", [make_item(0)])

    assert make_report(tmp_path / "run") == make_report(str(tmp_path / "run")) == make_report(run)
    with pytest.raises(UsageError, match="holds no run"):
        make_report(tmp_path / "other")


def test_what_is_known_of_a_chains_cost_is_counted():
    """One seat has no price: the others' is known all the same, and the judgement is counted as not wholly known."""
    seats = [make_result(judge=str(cost), usage=Usage(input_tokens=5, cost_usd=cost)) for cost in (0.25, None)]
    total = Usage(input_tokens=10, calls=2)
    whole = JudgeChainResult(outcome="passed", judge="chain", strategy="majority", results=tuple(seats), usage=total)
    summary = report(make_item(0, whole)).cost

    assert (summary.known_usd, summary.unknown, summary.input_tokens) == (0.25, 1, 10)


@pytest.mark.slow
@pytest.mark.no_cover
def test_memory_does_not_grow_with_the_run():
    """Three times as many cases take about the same, once there are as many as are shown."""

    def peak(cases: int) -> int:
        example = list_example(100)
        items = (replace(example[place % 100], place=place) for place in range(cases))
        # Python collects a quarter of what lives later: beside thousands of tests that would be what is measured.
        gc.freeze()
        gc.collect()
        tracemalloc.start()
        report_of(items, {}, most_cases=30)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    for _ in range(3):
        peak(1_000)  # what is made once, by the first reports of a process
    assert peak(9_000) < 1.5 * peak(3_000)


def test_comparisons_have_a_win_rate_and_flips():
    """Their scores are codes for preferences and in no spread; labels are what a person preferred."""
    summary = report(
        make_item(0, pair("first", "second", "first"), label="first"),
        make_item(1, pair("first", "first"), label="second"),
        make_item(2, pair("second", preferred="second"), label=True),
    )

    assert summary.pairs is not None
    assert (summary.pairs.wins, summary.pairs.losses, summary.pairs.ties) == (1, 1, 1)
    assert (summary.pairs.flips.count, summary.pairs.flips.of) == (1, 2)
    assert (summary.pairs.accuracy.count, summary.pairs.labelled) == (1, 2)
    assert (summary.scores, summary.labels) == (None, None)
    assert [case.split for case in summary.shown if case.id == "case-1"] == [True]


def test_a_group_has_its_own_accuracy_and_comparisons():
    """So one run over several parts of a benchmark says how each of them came out."""
    summary = report(
        make_item(0, label=True, group="a"),
        make_item(1, make_result("failed"), label=True, group="a"),
        make_item(2, group="a"),
        make_item(3, pair("first", "second", "first"), label="first", group="b"),
        make_item(4, pair("first", "first"), label="second", group="b"),
    )
    single, compared = sorted(summary.groups, key=lambda item: str(item.name))

    assert single.accuracy is not None
    assert (single.accuracy.count, single.accuracy.of, single.pairs) == (1, 2, None)
    assert compared.pairs is not None
    assert (compared.pairs.accuracy_ab.count, compared.pairs.accuracy_ba.count) == (1, 2)
    assert (compared.pairs.agreement.count, compared.mean_score) == (1, None)


def test_failures_are_shown_first():
    """Then what nobody could decide, then what passed; in each, what the label contradicts and the lowest score."""
    rows = [
        ("passed", {"label": False}),
        ("passed", {}),
        ("undecided", {}),
        ("failed", {}),
        ("failed", {"label": True}),
    ]
    items = [make_item(place, make_result(out), **case) for place, (out, case) in enumerate(rows)]
    low = make_item(9, make_result("failed", score=0.1))

    assert [case.place for case in report(*items, low).shown] == [4, 9, 3, 2, 0, 1]


def test_few_failures_are_not_hidden_by_many():
    """A tenth of the room is kept for each outcome; the rest is for failures."""
    items = [make_item(place, make_result("failed")) for place in range(60)]
    items += [make_item(place, make_result("undecided")) for place in range(60, 64)]
    items += [make_item(place) for place in range(64, 90)]
    shown = report(*items, most_cases=30).shown

    assert [case.outcome for case in shown] == ["failed"] * 24 + ["undecided"] * 3 + ["passed"] * 3


def test_at_most_2000_cases_are_shown():
    """Whoever asks for more is told; all of them are in the figures."""
    summary = report(*[make_item(place) for place in range(2_100)])

    assert (len(summary.shown), summary.cases) == (2_000, 2_100)
    with pytest.raises(UsageError, match="0 to 2000 cases, and 2001 were asked for"):
        report(most_cases=2_001)


def test_what_is_shown_is_bounded_in_size():
    """Texts are cut and say so, and of many judgements the worst ten are shown."""
    long = make_result("failed", reasoning="r" * 10_000, detail="d" * 10_000)
    items = [make_item(0, make_result(), sample=sample, content="c" * 10_000) for sample in range(12)]
    items += [make_item(0, long, sample=12, content="c" * 10_000, metadata={str(n): "m" for n in range(99)})]
    case = report(*items).shown[0]

    assert (case.judgements, case.passed, len(case.results), case.flipped) == (13, 12, 10, True)
    assert case.results[0].outcome == case.worst.outcome == "failed"
    assert [len(text) for text in (case.content, case.worst.reasoning, case.worst.detail)] == [2_000, 2_000, 500]
    assert case.content.endswith("…")
    assert len(items[-1].case.metadata) == 99


def test_a_group_for_every_case_does_not_fill_the_memory():
    """Names beyond 200 are counted together, and the report says how many there were."""
    summary = report(*[make_item(place, group=f"group {place}") for place in range(250)])

    assert len(summary.groups) == 200
    assert summary.left_out == {"groups": 50}


def test_content_that_is_no_text_is_shown_as_json():
    """And content that no judge could see says why."""
    summary = report(
        make_item(0, content={"a": 1, "b": [2]}),
        make_item(1, content=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]),
    )

    assert summary.shown[0].content == '{\n  "a": 1,\n  "b": [\n    2\n  ]\n}'
    assert summary.shown[1].content.startswith("(the content holds a message part of type 'image_url'")


def test_a_run_on_disk_is_reported(tmp_path):
    """``make_report`` takes an open run: manifest, items and status."""
    run = keep_run(tmp_path / "run", list_example(40))
    with run:
        summary = make_report(run)
        kept = run.store.count()

    assert summary.about.title.startswith("support.jsonl judged by majority(")
    assert (summary.about.status, summary.about.rubric, summary.about.threshold) == ("finished", "Support answers", 0.7)
    assert summary.about.models == ("openai:gpt-6.1-terra", "anthropic:claude-haiku-5-5", "local:qwen3-8b")
    assert {name: number for name, number in summary.outcomes.items() if number} == kept


def test_a_manifest_need_not_be_whole():
    """What it does not say, or says in another type, is left empty; the path of a data set is nobody's business."""
    manifest = {"id": 5, "dataset": {"path": "/home/ada/secret/answers.jsonl", "cases": True}, "judge": [], "rubric": 1}
    about = report_of([], manifest | {"options": {"repeat": "x"}, "command": "adjudge"}).about

    assert (about.id, about.dataset, about.expected, about.judge, about.repeat) == ("", "answers.jsonl", None, "", 1)
    assert (about.command, about.title) == ((), "answers.jsonl")


def test_nothing_judged_is_no_share():
    """An empty run has no rate, no interval and no spread, and says none."""
    summary = report()

    assert (summary.passed.rate, summary.passed.interval, summary.scores, summary.durations) == (None, None, None, None)
    assert summary.outcomes == {"passed": 0, "failed": 0, "undecided": 0}


def test_a_drawn_sample_is_what_is_expected():
    """Of a sample, the number drawn is what a whole run has."""
    manifest = make_manifest_of(100, options={"sample": 10, "repeat": 2})

    assert report_of([], manifest).about.expected == 10
