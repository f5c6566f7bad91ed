"""Redeciding runs whose cases brought their own criteria: those keep what they brought, unless all cases are meant."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adjudge import Case, Judge, Rubric, UsageError, load_rubric, open_run, run
from adjudge.runs import Redecision, Run, redecide
from kit.case_criteria import STRICT, Scores
from kit.cli import Line, feed, isolate

CASES = [
    Case(id="none", content="x"),
    Case(id="words", content="x", criteria={"tone": "Is polite."}),
    Case(id="rubric", content="x", rubric=STRICT),
    Case(id="lower", content="x", threshold=0.1),
    Case(id="rules", content="x", rules=[{"length": 9}]),
]

LAX = Rubric(name="lax", passing_threshold=0.5, criteria=[{"name": "facts", "description": "Is true."}])


@pytest.fixture(name="done")
def judge_cases(tmp_path: Path) -> Run:
    """A run that needs 0.85, of cases that all score 0.8."""
    options: Any = {"criteria": {"facts": "Is true."}, "threshold": 0.85}
    return run(CASES, Judge(Scores(0.8)), out=tmp_path / "run", **options).finish_sync()


def list_outcomes(folder: Path) -> dict[str, tuple[str, float | None]]:
    """The outcome and the threshold of each case."""
    return {item.case.id: (item.result.outcome, item.result.threshold) for item in open_run(folder).items()}


def test_nothing_changes_under_the_run_own_policy(done: Run):
    """Each case is read by what it brought, so redeciding without a policy comes to the same."""
    redecision = redecide(done)

    assert (redecision.changed, redecision.unknown, redecision.kept_own) == (0, 0, 0)
    assert redecision.before == redecision.after == {"passed": 1, "failed": 4, "undecided": 0}


def test_a_new_rubric_is_for_cases_that_brought_none(done: Run, tmp_path: Path):
    """It replaces that of the run, as if the run had begun with it; the others keep theirs, and how many is said."""
    redecision = redecide(done, rubric=LAX, out=tmp_path / "new")

    assert list_outcomes(tmp_path / "new") == {
        "none": ("passed", 0.5),
        "words": ("passed", 0.5),
        "rubric": ("failed", 0.9),
        "lower": ("passed", 0.1),
        "rules": ("passed", 0.5),
    }
    assert (redecision.changed, redecision.unknown, redecision.kept_own) == (3, 0, 2)


def test_a_redecided_run_goes_on_with_the_policy_it_was_given(done: Run, tmp_path: Path):
    """What is judged from then on stands under the same terms as what was redecided."""
    lax = replace(load_rubric(done.manifest["rubric"]), passing_threshold=0.5)
    redecide(done, rubric=lax, out=tmp_path / "new")
    more = [*CASES, Case(id="more", content="x", criteria={"tone": "Is polite."})]
    whole = run(more, Judge(Scores(0.8)), lax, out=tmp_path / "new", resume=True).finish_sync()

    assert (whole.counts["passed"], whole.counts["failed"]) == (5, 1)
    assert whole.manifest["own"] == {"criteria": 3, "rules": 1, "threshold": 1, "below": 1}


def test_a_new_threshold_leaves_those_of_cases_alone(done: Run, tmp_path: Path):
    """It is that of the run, so it applies to whatever a case brought without a threshold of its own."""
    redecision = redecide(done, threshold=0.6, out=tmp_path / "new")

    assert {name: threshold for name, (_, threshold) in list_outcomes(tmp_path / "new").items()} == {
        "none": 0.6,
        "words": 0.6,
        "rubric": 0.6,
        "lower": 0.1,
        "rules": 0.6,
    }
    assert redecision.kept_own == 1
    rubrics = [item.rubric for item in open_run(tmp_path / "new").items()]
    assert [rubric.passing_threshold for rubric in rubrics if rubric] == [0.6, 0.6, 0.6, 0.1, 0.6]


def test_all_cases_are_meant_only_where_that_is_said(done: Run, tmp_path: Path):
    """Then a threshold is for all, and a rubric too: what was not asked of a case is unknown, and never passed."""
    redecision = redecide(done, threshold=0.9, all_cases=True, out=tmp_path / "all")
    asked = redecide(done, rubric=LAX, all_cases=True, out=tmp_path / "rubric")

    assert set(list_outcomes(tmp_path / "all").values()) == {("failed", 0.9)}
    assert {item.rubric.passing_threshold for item in open_run(tmp_path / "all").items() if item.rubric} == {0.9}
    assert (redecision.kept_own, asked.kept_own) == (0, 0)
    assert {name: outcome[0] for name, outcome in list_outcomes(tmp_path / "rubric").items()} == {
        "none": "passed",
        "words": "undecided",
        "rubric": "undecided",
        "lower": "passed",
        "rules": "passed",
    }
    assert asked.unknown == 2


def test_all_cases_needs_something_that_is_for_them(done: Run):
    """Alone it would change nothing, and be mistaken for something."""
    with pytest.raises(UsageError, match="all_cases"):
        redecide(done, all_cases=True)


def test_a_run_redecided_over_its_cases_does_not_go_on(done: Run, tmp_path: Path):
    """Cases that are judged now would go by their own, and stand beside others that do not."""
    redecide(done, threshold=0.9, all_cases=True, out=tmp_path / "all")
    with pytest.raises(UsageError, match=r"redecided with all_cases.*begin another run"):
        run(
            CASES, Judge(Scores(0.8)), out=tmp_path / "all", criteria={"facts": "Is true."}, threshold=0.9, resume=True
        ).finish_sync()


def test_a_run_without_a_rubric_of_its_own_is_redecided(tmp_path: Path):
    """Where each case brought its own, a new threshold is for all that name none."""
    done = run(CASES[1:3], Judge(Scores(0.8)), out=tmp_path / "run").finish_sync()
    redecision: Redecision = redecide(done, threshold=0.85)

    assert done.counts == {"passed": 1, "failed": 1, "undecided": 0}
    assert redecision.after == {"passed": 0, "failed": 2, "undecided": 0}
    assert redecide(done).changed == 0


def test_the_command_line_says_which_cases_kept_their_own(
    done: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """And how to mean them too."""
    isolate(monkeypatch, tmp_path)
    feed(monkeypatch)
    line = Line(capsys)
    ran, whole = (
        line("redecide", "run", "--threshold", "0.9"),
        line("redecide", "run", "--threshold", "0.9", "--all-cases"),
    )

    assert "1 are of cases that keep" in ran.err
    assert "--all-cases" in ran.err
    assert (ran.status, whole.status) == (0, 0)
    assert "keep" not in whole.err
    assert done.status == "finished"
