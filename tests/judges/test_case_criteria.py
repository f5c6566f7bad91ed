"""Cases that say themselves how they are judged: by criteria, a rubric, rules or a threshold of their own."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from adjudge import Case, Judge, JudgeResult, Rubric, Rule, UsageError
from adjudge.rubric import load_rubric
from kit.case_criteria import STRICT, Scores
from kit.judges import complaint


def judge_all(cases: list[Any], *, model: Any = None, rubric: Any = None, **options: Any) -> list[JudgeResult]:
    """The results of ``evaluate_many``."""

    async def go() -> list[JudgeResult]:
        return [each async for each in Judge(model or Scores()).evaluate_many(cases, rubric, **options)]

    return asyncio.run(go())


def test_a_case_of_its_own_is_checked_where_it_is_made():
    """What cannot be judged by is refused at once, and criteria and a rubric say the same thing twice."""
    assert "not both" in complaint(Case, id="a", content="x", criteria="Is good.", rubric="security")
    assert "threshold" in complaint(Case, id="a", content="x", threshold=1.5)
    assert "threshold" in complaint(Case, id="a", content="x", threshold=True)
    assert "criteria" in complaint(Case, id="a", content="x", criteria=[1])
    assert "no criteria" in complaint(Case, id="a", content="x", criteria=[])
    assert "'secrts'" in complaint(Case, id="a", content="x", rules=["secrts"])
    assert "no shipped rubric" in complaint(Case, id="a", content="x", rubric="securty")
    assert "called 'length'" in complaint(Case, id="a", content="x", rules=[{"length": 3}, {"length": 4}])


def test_what_a_case_was_given_can_no_longer_be_changed():
    """A case holds copies, whole rubrics and whole rules, so that what was checked is what is judged by."""
    criteria, rules = {"tone": "Is polite."}, [{"length": 4_000}]
    case = Case(id="a", content="x", criteria=criteria, rules=rules, threshold=1)
    criteria["tone"] = "Is anything."
    rules.clear()
    other = Case(id="b", content="x", rubric=STRICT)

    assert case.criteria == {"tone": "Is polite."}
    assert [rule.name for rule in case.rules] == ["length"]
    assert (case.threshold, case.brings_own) == (1.0, True)
    assert isinstance(other.rubric, Rubric)
    assert not Case(id="c", content="x").brings_own


def test_a_case_as_data_has_what_it_brings_and_nothing_else():
    """``to_dict`` is JSON, and a case that brings nothing of its own is written as it always was."""
    case = Case(id="a", content="x", criteria=["One.", "Two."], rules={"short": {"length": 9}}, threshold=0.5)

    assert json.loads(json.dumps(case.to_dict())) == {
        "schema": "adjudge/case/1",
        "id": "a",
        "content": "x",
        "criteria": ["One.", "Two."],
        "rules": {"short": {"length": 9}},
        "threshold": 0.5,
    }
    assert Case(id="a", content="x", rubric=STRICT).to_dict()["rubric"]["criteria"][0]["name"] == "exact"
    assert Case(id="a", content="x").to_dict() == {"schema": "adjudge/case/1", "id": "a", "content": "x"}


def test_the_rubric_of_a_case_may_be_a_file(tmp_path: Path):
    """In code a path is a path: it is read when the case is made."""
    (tmp_path / "r.json").write_text(json.dumps(STRICT))
    case = Case(id="a", content="x", rubric=str(tmp_path / "r.json"))
    (tmp_path / "r.json").unlink()

    assert case.rubric == load_rubric(STRICT)


def test_criteria_and_rubrics_of_cases_replace_those_of_the_call():
    """Each case is asked by its own words, and one without any by the call's."""
    model = Scores(1.0)
    cases = [
        Case(id="a", content="x", criteria={"tone": "Is polite."}),
        Case(id="b", content="x", rubric=STRICT),
        Case(id="c", content="x"),
        "no case at all",
    ]
    results = judge_all(cases, model=model, criteria={"facts": "Is true."})

    assert [[item.name for item in each.criteria] for each in results] == [["tone"], ["exact"], ["facts"], ["facts"]]
    assert "Is polite." in model.requests[0].system
    assert "Is true." not in model.requests[0].system


def test_the_threshold_is_that_of_the_case_then_of_the_call_then_of_the_rubric():
    """The case's own goes first; its bare words are held to the threshold of the rubric that they replace."""
    strict = load_rubric(STRICT)

    def thresholds(case: Case, **options: Any) -> float | None:
        return judge_all([case], **options)[0].threshold

    own = Case(id="a", content="x", criteria="Is good.", threshold=0.2)
    words = Case(id="a", content="x", criteria="Is good.")
    whole = Case(id="a", content="x", rubric={**STRICT, "passing_threshold": 0.6})
    only = Case(id="a", content="x", threshold=0.2)
    assert [thresholds(own, rubric=strict), thresholds(only, rubric=strict)] == [0.2, 0.2]
    assert [thresholds(own, criteria="Is."), thresholds(only, criteria="Is.", threshold=0.8)] == [0.2, 0.2]
    assert [thresholds(words, rubric=strict), thresholds(words), thresholds(words, criteria="Is.")] == [0.9, 0.7, 0.7]
    assert [thresholds(words, threshold=0.8), thresholds(words, rubric=strict, threshold=0.8)] == [0.8, 0.8]
    assert [thresholds(whole, rubric=strict), thresholds(whole, threshold=0.8)] == [0.6, 0.8]


def test_the_judges_own_rubric_is_replaced_as_the_calls_is():
    """A case's words replace the rubric of the judge, whose threshold they are held to."""

    async def go() -> list[JudgeResult]:
        judge = Judge(Scores(0.8), rubric=STRICT)
        cases = [Case(id="a", content="x", criteria={"tone": "Is polite."}), Case(id="b", content="x")]
        return [each async for each in judge.evaluate_many(cases)]

    results = asyncio.run(go())
    assert [(each.criteria[0].name, each.threshold, each.outcome) for each in results] == [
        ("tone", 0.9, "failed"),
        ("exact", 0.9, "failed"),
    ]


def test_rules_of_a_case_go_beside_those_of_the_call():
    """A case adds checks and takes none away, not even one of the same name."""
    lax = Rule(name="length", evaluate=lambda _content: True)
    case = Case(id="a", content="long text", rules=[lax, {"contains": "text"}])
    [result] = judge_all([case], criteria="Is good.", rules=[{"length": 3}])

    assert [(item.name, item.passed) for item in result.rule_results] == [
        ("length", False),
        ("length", True),
        ("contains", True),
    ]
    assert (result.outcome, result.decided_by) == ("failed", "rule")


@pytest.mark.parametrize("own", [{"criteria": "Is good."}, {"rubric": STRICT}])
def test_words_of_a_case_are_enough(own: Any):
    """A call without a rubric is about cases that bring one, and others are refused."""
    assert judge_all([Case(id="a", content="x", **own)])[0].outcome in ("passed", "failed")
    with pytest.raises(UsageError, match="nothing says what good means"):
        judge_all([Case(id="a", content="x")])
