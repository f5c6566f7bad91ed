"""Reports and comparisons of runs whose cases bring their own criteria: what applied is said wherever an outcome is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adjudge import Case, Judge, run
from adjudge.report import diff, make_report, render_html, render_junit, render_markdown
from kit.case_criteria import STRICT, Scores
from kit.cli import Line, feed, isolate

EVIL = "</td><script>alert(1)</script>\x1b[31m| @somebody"


@pytest.fixture(name="line")
def provide_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    """The command line in an empty directory."""
    isolate(monkeypatch, tmp_path)
    feed(monkeypatch)
    return Line(capsys)


CASES = [
    Case(id="none", content="x"),
    Case(id="twin", content="y"),
    Case(id="lower", content="x", threshold=0.1),
    Case(id="words", content="x", criteria={"tone": "Is polite."}),
    Case(id="strict", content="x", rubric=STRICT, rules=[{"length": 9}]),
]


def judge_cases(cases: list[Case], *, out: Path | None = None, score: float = 0.8, **terms: Any) -> Any:
    options: Any = {"criteria": {"tone": "Is kind."}, "threshold": 0.85, **terms}
    return run(cases, Judge(Scores(score)), out=out, **options).finish_sync()


def test_a_report_counts_what_cases_bring_and_what_is_below_the_run():
    """A threshold that a case lowers stands in the summary, with how many passed by it."""
    report = make_report(judge_cases(CASES)).own

    assert report is not None
    assert (report.criteria, report.rules, report.threshold, report.below) == (2, 1, 1, 1)
    assert (report.below_passed, report.needed) == (1, 0.85)
    assert make_report(judge_cases(CASES[:2])).own is None


def test_a_report_has_a_table_of_criteria_for_each_rubric():
    """Criteria of one name in two rubrics are two things, so they are never added up."""
    done = make_report(judge_cases(CASES))
    [first, *others] = done.rubrics

    assert (first.own, first.cases, first.threshold) == (False, 2, 0.85)
    assert [item.passed.of for item in done.criteria] == [2]
    assert {(item.about, item.threshold, item.cases) for item in others} == {
        ("Is kind.", 0.1, 1),
        ("Is polite.", 0.85, 1),
        ("Is exact.", 0.85, 1),
    }
    assert all(item.own and len(item.digest) == 64 for item in others)
    assert [item.name for item in others[-1].criteria] in (["exact"], ["tone"])
    assert {case.id: case.own for case in done.shown}["strict"] == ("rubric", "rules")


def test_every_case_with_a_rubric_of_its_own_takes_bounded_room():
    """A suite may word each case by itself; what is too many to tell apart is counted."""
    done = make_report(judge_cases([Case(id=str(n), content="x", criteria=f"Is {n}.") for n in range(60)]))

    assert len(done.rubrics) == 50
    assert done.left_out["rubrics"] == 10
    assert done.own is not None
    assert done.own.criteria == 60


def test_every_form_of_a_report_says_it(tmp_path: Path, line: Line):
    """Terminal, JSON, HTML, Markdown and JUnit name the rubrics and the lowered threshold."""
    done = judge_cases(CASES, out=tmp_path / "run")
    report = make_report(done)
    shown, document = line("report", "run"), line("report", "run", "--json").document
    junit = "".join(render_junit(report, done.items()))

    for text in (shown.out, render_html(report), render_markdown(report)):
        assert "1 case needs less than the 0.85" in text
    for text in (shown.out, render_html(report), render_markdown(report), junit):
        assert "Is exact." in text
    assert document["own"]["below"] == 1
    assert {item["about"] for item in document["rubrics"]} == {"Is kind.", "Is polite.", "Is exact."}
    assert '"adjudge.threshold_below_the_run" value="1"' in junit


def test_names_of_criteria_from_a_file_are_text_in_every_form(tmp_path: Path, line: Line):
    """Whoever wrote the suite may be anybody: nothing of it becomes code, a control character or a mention."""
    hostile = {"name": EVIL, "criteria": [{"name": EVIL, "description": EVIL}]}
    done = judge_cases([CASES[0], Case(id="evil", content="x", rubric=hostile)], out=tmp_path / "run")
    report, shown = make_report(done), line("report", "run")

    assert "<script>alert" not in render_html(report)
    assert "<script>" not in "".join(render_junit(report, done.items()))
    assert "\x1b" not in shown.out + shown.err + render_html(report) + render_markdown(report)
    for row in render_markdown(report).splitlines():
        assert "@somebody" not in row or "`" in row


def test_a_diff_does_not_call_other_criteria_a_regression():
    """A case that brought other words is counted by itself, and a lowered threshold is no improvement."""
    before = judge_cases([Case(id="a", content="x", threshold=0.1), CASES[0], CASES[3]])
    after = judge_cases([Case(id="a", content="x"), CASES[0], CASES[3]])
    comparison = diff(before, after)

    assert (comparison.cases, comparison.criteria_changed, comparison.content_changed) == (2, 1, 0)
    assert (comparison.lost, comparison.gained, comparison.unmatched_passes) == (0, 0, 1)
    assert comparison.to_dict()["criteria_changed"] == 1


def test_the_command_line_says_that_criteria_changed(tmp_path: Path, line: Line):
    """``--no-regressions`` cannot vouch for a case whose own criteria are others now."""
    judge_cases([Case(id="a", content="x", threshold=0.1), CASES[0]], out=tmp_path / "one")
    judge_cases([Case(id="a", content="x", threshold=0.2), CASES[0]], out=tmp_path / "two")
    ran = line("diff", "one", "two", "--no-regressions")

    assert ran.status == 3
    assert "1 case with other criteria" in ran.out
    assert json.loads(line("diff", "one", "two", "--json").out)["criteria_changed"] == 1


def test_two_runs_without_one_case_of_the_same_criteria_are_not_compared(tmp_path: Path, line: Line):
    """And what would make them comparable is named."""
    judge_cases([Case(id="a", content="x", threshold=0.1)], out=tmp_path / "one")
    judge_cases([Case(id="a", content="x")], out=tmp_path / "two")

    assert "--case-criteria" in line("diff", "one", "two").sentence
