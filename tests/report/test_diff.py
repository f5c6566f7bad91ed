"""Two runs compared: which cases changed, by how much, and how surprising that is."""

from __future__ import annotations

import math
import sqlite3
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adjudge import Case, Judge, UsageError, open_run
from adjudge.report import Diff, diff
from adjudge.trust import compute_mcnemar
from kit.redecisions import Line, Told, do, make_cases, score
from kit.reports import make_run
from kit.runs import STORE

quick = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
GOOD, BAD, NONE = score(a=1.0, b=0.6), score(a=0.0, b=0.6), "no object"
shares = st.sampled_from([0.0, 0.3, 0.5, 0.6, 0.9, 1.0])
said = st.one_of(st.builds(score, a=shares, b=shares), st.just(NONE))


class Turning(Told):
    """A model that says another line each time a case is judged again."""

    async def complete(self, request: Any, /) -> Any:
        from adjudge.testing import make_scripted_reply

        several: Any = self.lines[str(request.case)]
        return make_scripted_reply(several[request.sample], request, self.name)


def compare(tmp_path: Path, before: Any, after: Any) -> Diff:
    return diff(make_run(tmp_path / "before", before), make_run(tmp_path / "after", after))


@quick
@given(lines=st.lists(said, min_size=1, max_size=5))
def test_a_run_does_not_differ_from_itself(tmp_path_factory: pytest.TempPathFactory, lines: list[Line]):
    """Nothing changed, nothing is listed, and nothing is surprising."""
    folder = make_run(tmp_path_factory.mktemp("runs") / "run", lines)
    comparison = diff(folder, folder)

    assert (comparison.cases, comparison.changed, comparison.listed, comparison.lost) == (len(lines), 0, (), 0)
    assert (comparison.p_value, comparison.score.p_value, comparison.score.delta or 0.0) == (None, None, 0.0)
    assert (comparison.only_before, comparison.only_after, comparison.content_changed) == (0, 0, 0)


@pytest.mark.slow
@quick
@given(pairs=st.lists(st.tuples(said, said), min_size=1, max_size=6))
def test_what_one_way_is_worse_is_better_the_other(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[Line, Line]]
):
    """The other way round, what was lost is gained, differences have the other sign, chances are the same."""
    folder = tmp_path_factory.mktemp("runs")
    before = make_run(folder / "before", [one for one, _ in pairs])
    after = make_run(folder / "after", [other for _, other in pairs])
    there, back = diff(before, after), diff(after, before)

    assert (there.lost, there.gained) == (back.gained, back.lost)
    assert there.transitions == {(new, old): number for (old, new), number in back.transitions.items()}
    assert (there.p_value, there.changed) == (back.p_value, back.changed)
    for one, other in [
        (there.score, back.score),
        *((there.criteria[name], back.criteria[name]) for name in back.criteria),
    ]:
        assert (one.before, one.after, one.p_value) == (other.after, other.before, other.p_value)
        assert (one.delta or 0.0) == -(other.delta or 0.0)


def test_cases_are_told_with_what_changed_in_them(tmp_path: Path):
    """Outcome, score, criteria and reason; a criterion that did not change is not among them."""
    comparison = compare(
        tmp_path, {"a": GOOD, "b": BAD, "c": GOOD, "d": GOOD}, {"a": GOOD, "b": GOOD, "c": BAD, "d": NONE}
    )

    assert [(item.case, item.before, item.after) for item in comparison.listed] == [
        ("c", "passed", "failed"),
        ("d", "passed", "undecided"),
        ("b", "failed", "passed"),
    ]
    assert comparison.listed[0].criteria == (("a", 1.0, 0.0),)
    assert (comparison.listed[0].score_before, comparison.listed[0].score_after) == (0.8, 0.3)
    assert comparison.listed[1].detail.startswith("unparseable: ")
    assert [item.lost for item in comparison.listed] == [True, True, False]
    assert (comparison.lost, comparison.gained, comparison.cases) == (2, 1, 4)
    assert comparison.transitions["passed", "undecided"] == 1


def test_a_criterion_that_differs_in_its_last_digits_is_not_listed(tmp_path: Path):
    """Sums of floats differ so; the case is listed for what else changed in it."""
    comparison = compare(tmp_path, {"a": score(a=1.0, b=0.3)}, {"a": score(a=0.0, b=0.1 + 0.2)})

    assert [(item.case, item.criteria) for item in comparison.listed] == [("a", (("a", 1.0, 0.0),))]


def test_undecided_is_not_passed_and_has_no_score(tmp_path: Path):
    """A case that nobody could decide any more has lost its pass; means are of cases that have a score in both."""
    comparison = compare(tmp_path, [GOOD, GOOD, NONE], [GOOD, NONE, NONE])

    assert (comparison.lost, comparison.score.cases, comparison.score.delta) == (1, 1, 0.0)
    assert comparison.criteria["a"].cases == 1
    assert comparison.p_value == 1.0


def test_criteria_are_compared_each(tmp_path: Path):
    """The mean before and after, over the cases that have it in both, and its own chance."""
    before = [score(a=0.5, b=0.9)] * 6
    comparison = compare(tmp_path, before, [score(a=1.0, b=0.9)] * 6)

    assert (comparison.criteria["a"].before, comparison.criteria["a"].after, comparison.criteria["a"].delta) == (
        0.5,
        1.0,
        0.5,
    )
    assert comparison.criteria["a"].p_value == 2 / 2**6
    assert (comparison.criteria["b"].delta, comparison.criteria["b"].p_value) == (0.0, None)


def test_cases_are_paired_by_their_ids(tmp_path: Path):
    """Whatever their order; those of one run only are counted, and a pass among them is not lost sight of."""
    comparison = compare(tmp_path, {"a": GOOD, "b": BAD, "gone": GOOD}, {"new": BAD, "b": BAD, "a": GOOD})

    assert (comparison.cases, comparison.only_before, comparison.only_after, comparison.unmatched_passes) == (
        2,
        1,
        1,
        1,
    )
    assert comparison.changed == 0


def test_another_reference_is_another_case(tmp_path: Path):
    """What was not judged by the same reference, task or context is not compared; content and labels may change."""
    cases = make_cases(4)
    changed = [
        replace(cases[0], content="other"),
        replace(cases[1], reference="gold"),
        replace(cases[2], label=True, labels={"ann": False}, metadata={"n": 1}, group="g"),
        cases[3],
    ]
    one = make_run(tmp_path / "one", [GOOD, BAD, GOOD, GOOD], cases=cases)
    comparison = diff(one, make_run(tmp_path / "other", [BAD, BAD, BAD, GOOD], cases=changed))

    assert (comparison.cases, comparison.content_changed, comparison.inputs_changed, comparison.unmatched_passes) == (
        3,
        1,
        1,
        0,
    )
    assert [(item.case, item.content_changed) for item in comparison.listed] == [("0", True), ("2", False)]
    assert comparison.flips == 1


def test_a_case_judged_several_times_counts_once(tmp_path: Path):
    """It is what more than half of its judgements are, else undecided; its score is the mean of those decided."""
    before = {"a": [GOOD, GOOD, BAD], "b": [GOOD, BAD, NONE], "c": [BAD, NONE, NONE]}
    after = {"a": [GOOD, BAD, BAD], "b": [GOOD, BAD, NONE], "c": [NONE, NONE, NONE]}
    runs = []
    for name, lines in (("before", before), ("after", after)):
        cases = [Case(id=case, content=case) for case in lines]
        do(cases, Judge(Turning("x", lines), reask=0), repeat=3, out=tmp_path / name)
        runs.append(tmp_path / name)
    comparison = diff(*runs)

    assert comparison.transitions == {("passed", "failed"): 1, ("undecided", "undecided"): 2}
    assert comparison.listed[0].score_before == pytest.approx((0.8 + 0.8 + 0.3) / 3)
    assert comparison.score.cases == 2  # c has no score any more
    assert comparison.cases == 3


def test_an_even_split_is_undecided(tmp_path: Path):
    """One of two is not more than half."""
    case = Case(id="a", content="x")
    do([case], Judge(Turning("x", {"a": [GOOD, BAD]})), repeat=2, out=tmp_path / "run")

    assert diff(tmp_path / "run", tmp_path / "run").transitions == {("undecided", "undecided"): 1}


def test_runs_may_be_handed_in_open(tmp_path: Path):
    """A ``Run`` is as good as its folder, and stays open."""
    one = open_run(make_run(tmp_path / "one", [GOOD]))
    with one:
        assert diff(one, one).cases == 1
        assert len(list(one.items())) == 1


def test_what_is_no_run_is_said(tmp_path: Path):
    """A folder without a run, on either side."""
    folder = make_run(tmp_path / "run", [GOOD])
    with pytest.raises(UsageError, match="holds no run"):
        diff(folder, tmp_path / "none")
    with pytest.raises(UsageError, match="holds no run"):
        diff(tmp_path / "none", folder)


@pytest.mark.parametrize("body", [b"", b"[]", b'{"criteria": 7}', b'{"criteria": [{"score": "1"}]}'])
def test_a_result_that_cannot_be_read_is_said(tmp_path: Path, body: bytes):
    """A file that somebody changed is an error, and no result that looks like one."""
    folder = make_run(tmp_path / "run", [GOOD])
    with closing(sqlite3.connect(folder / STORE)) as connection, connection:
        connection.execute("UPDATE results SET body = ?", (body,))

    with pytest.raises(UsageError, match="a result of the run cannot be read"):
        diff(folder, folder)


def test_odd_characters_are_compared(tmp_path: Path):
    """Half a surrogate pair in a case or in what was said of it stops nothing."""
    cases = [Case(id="a", content="\ud800"), Case(id="b", content="x", metadata={"note": "\ud800"})]
    folder = make_run(tmp_path / "run", {"a": GOOD, "b": GOOD}, cases=cases)

    assert diff(folder, folder).transitions == {("passed", "passed"): 1, ("undecided", "undecided"): 1}


# ---------------------------------------------------------------- chance


@given(worse=st.integers(0, 60), better=st.integers(0, 60))
def test_mcnemar_is_the_exact_binomial(worse: int, better: int):
    """Twice the tail of a fair coin's throws, at most 1, computed in whole numbers."""
    total, fewer = worse + better, min(worse, better)
    tail = Fraction(sum(math.comb(total, place) for place in range(fewer + 1)), 2**total)

    p_value = compute_mcnemar(worse, better)
    assert p_value == (pytest.approx(float(min(Fraction(1), 2 * tail)), rel=1e-12) if total else None)


@pytest.mark.parametrize("wrong", [-1, 1.5, True, math.nan, 10**15, "3"])
def test_mcnemar_of_what_is_no_count_is_refused(wrong):
    """Numbers beyond a billion would lose their digits in the logarithm of a factorial; it is no p-value then."""
    for pair in ((wrong, 5), (5, wrong)):
        with pytest.raises(UsageError, match=r"worse|better"):
            compute_mcnemar(*pair)


def test_mcnemar_as_published():
    """Known values: 1 against 9 is 0.0215, 5 against 15 is 0.0414; a million cases take no longer than ten."""
    assert compute_mcnemar(1, 9) == pytest.approx(22 / 1024)
    assert compute_mcnemar(5, 15) == pytest.approx(0.04138947)
    assert compute_mcnemar(500_000, 500_000) == pytest.approx(1.0)
    # At this size the normal with continuity correction is as good: z = 1999 / 1000.
    assert compute_mcnemar(499_000, 501_000) == pytest.approx(math.erfc(1.999 / math.sqrt(2)), rel=1e-5)


# ---------------------------------------------------------------- forms


def test_as_plain_data(tmp_path: Path):
    """One document with everything a program asks for."""
    document = compare(tmp_path, [GOOD, GOOD], [GOOD, BAD]).to_dict()

    assert (document["schema"], document["lost"], document["gained"], document["p_value"]) == (
        "adjudge/diff/1",
        1,
        0,
        1.0,
    )
    assert document["transitions"] == [
        {"before": "passed", "after": "failed", "cases": 1},
        {"before": "passed", "after": "passed", "cases": 1},
    ]
    assert document["listed"][0]["criteria"] == [{"name": "a", "before": 1.0, "after": 0.0}]
    assert document["before"]["counts"] == {"passed": 2, "failed": 0, "undecided": 0}
