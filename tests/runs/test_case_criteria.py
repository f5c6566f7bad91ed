"""Runs over cases that bring their own criteria, rubric, rules or threshold: what is asked, kept and gone on with."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from adjudge import Case, Judge, UsageError, load_rubric, open_dataset, open_run, run
from adjudge.dataset import import_openai_evals, import_promptfoo
from adjudge.models import ReplyCache
from adjudge.testing import ScriptedModel
from kit.case_criteria import STRICT, Scores
from kit.pairs import BAD, GOOD, prefer_good


def judge_cases(cases: Any, *, model: Any = None, rubric: Any = None, **how: Any) -> Any:
    """A run to its end."""
    return run(cases, Judge(model or Scores()), rubric, **how).finish_sync()


OWN = [
    Case(id="words", content="x", criteria={"tone": "Is polite."}),
    Case(id="rubric", content="x", rubric=STRICT),
    Case(id="lower", content="x", threshold=0.1),
    Case(id="rules", content="x", rules=[{"length": 5}, lambda _content: True]),
    Case(id="none", content="x"),
]


def test_each_item_says_by_which_rubric_it_was_judged(tmp_path: Path):
    """Live and read again, an item carries the rubric that applied, with the threshold that applied."""
    done = judge_cases(OWN, criteria={"facts": "Is true."}, threshold=0.85, out=tmp_path / "run")
    [words, rubric, lower, rules, none] = open_run(tmp_path / "run").items()

    def name(item: Any) -> Any:
        return [each.name for each in item.rubric.criteria], item.rubric.passing_threshold

    assert [name(item) for item in (words, rubric, lower)] == [(["tone"], 0.85), (["exact"], 0.85), (["facts"], 0.1)]
    assert rules.rubric == none.rubric == load_rubric(done.manifest["rubric"])
    assert [item.rubric.passing_threshold for item in done.items()] == [item.result.threshold for item in done.items()]
    assert [item.result.outcome for item in done.items()] == ["failed", "failed", "passed", "failed", "failed"]
    assert done.manifest["own"] == {"criteria": 2, "rules": 1, "threshold": 1, "below": 1}


def test_a_run_keeps_what_a_case_brought_and_runs_no_code_of_it(tmp_path: Path):
    """A case is read back with its words, rubric, threshold and shipped rules; a function is only named."""
    judge_cases(OWN, criteria="Is good.", out=tmp_path / "run")
    [words, rubric, lower, rules, none] = [item.case for item in open_run(tmp_path / "run").items()]

    assert (words, rubric, lower, none) == (OWN[0], OWN[1], OWN[2], OWN[4])
    assert rules.rules[0] == OWN[3].rules[0]
    assert "code" in asyncio.run(rules.rules[1].check("x")).message
    assert [rule.name for rule in rules.rules] == [rule.name for rule in OWN[3].rules]


def test_a_case_that_brings_nothing_is_kept_as_it_always_was(tmp_path: Path):
    """Its digest is what an earlier version made of it, so that runs go on across versions."""
    [item] = judge_cases([Case(id="a", content="x")], criteria="Is good.").items()

    kept = (
        b'{"schema":"adjudge/case/1","content":"x","id":"a","reference":null,"task":null,"context":null,"label":null,'
        b'"labels":{},"group":null,"metadata":{}}'
    )
    assert item.subject == hashlib.sha256(kept).hexdigest()


def test_a_run_needs_no_rubric_where_every_case_brings_one(tmp_path: Path):
    """The words of the cases are enough; a case without any is a bad row, said before anybody is asked."""
    done = judge_cases(OWN[:2], out=tmp_path / "run")
    model = Scores()

    assert done.counts == {"passed": 1, "failed": 1, "undecided": 0}
    assert done.manifest["rubric"] is None
    with pytest.raises(UsageError, match="nothing says what good means"):
        judge_cases([Case(id="a", content="x"), OWN[0]], model=model)
    with pytest.raises(UsageError, match="nothing says what good means"):
        judge_cases([OWN[2]], model=model)
    assert model.requests == []


def test_a_file_without_a_rubric_is_refused_at_once(tmp_path: Path):
    """A file that was not asked for criteria has none, so a run without a rubric is a mistake, whatever is in it."""
    path = tmp_path / "c.jsonl"
    path.write_text(json.dumps({"content": "x", "criteria": "Is good."}) + "\n")
    with pytest.raises(UsageError, match="nothing says what good means"):
        judge_cases(path, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()

    done = judge_cases(open_dataset(path, case_criteria=True), out=tmp_path / "run")
    assert done.counts["passed"] == 1


def test_a_case_whose_criteria_changed_keeps_a_run_from_going_on(tmp_path: Path):
    """As one whose content changed: its result would be of another question."""
    judge_cases([OWN[0]], criteria="Is good.", out=tmp_path / "run")
    again = judge_cases([OWN[0]], criteria="Is good.", out=tmp_path / "run", resume=True)

    assert again.counts["passed"] == 1
    for other in ({"criteria": {"tone": "Is rude."}}, {"criteria": {"tone": "Is polite."}, "threshold": 0.1}, {}):
        changed = [Case(id="words", content="x", **other)]
        with pytest.raises(UsageError, match="'words'"):
            judge_cases(changed, criteria="Is good.", out=tmp_path / "run", resume=True)


def test_a_run_goes_on_under_the_threshold_it_began_with(tmp_path: Path):
    """It applies to the rubrics of cases too, which the digests of the run do not show."""
    judge_cases([OWN[1]], out=tmp_path / "run", threshold=0.5)
    with pytest.raises(UsageError, match="threshold"):
        judge_cases([OWN[1]], out=tmp_path / "run", resume=True)


def test_a_cache_tells_questions_apart_by_the_words_of_the_case(tmp_path: Path):
    """The same content under other words is asked anew, and under the same words it is not."""
    model = Scores()
    with ReplyCache(tmp_path / "cache.db") as cache:
        for criteria in ("Is good.", "Is better.", "Is good."):
            [item] = judge_cases([Case(id="a", content="x", criteria=criteria)], model=model, cache=cache).items()
            assert item.result.outcome == "passed"
    assert len(model.requests) == 2


def test_pairs_take_words_of_a_case_and_refuse_what_is_for_one_content(tmp_path: Path):
    """Criteria of a pair say what better means; a threshold of it is a bad row."""
    pair, model = {"a": GOOD, "b": BAD}, ScriptedModel(prefer_good)
    done = run([Case(id="a", content=pair, criteria="Is shorter.")], Judge(model), pairs=True).finish_sync()

    assert done.counts["passed"] == 1
    assert "Is shorter." in model.requests[0].system
    with pytest.raises(UsageError, match="threshold"):
        run([Case(id="a", content=pair, threshold=0.1)], Judge(model), pairs=True, criteria="x").finish_sync()


def test_rows_of_a_stream_do_not_grade_themselves_and_one_line_says_so(caplog: pytest.LogCaptureFixture):
    """An asynchronous source is read one row at a time, and told of once."""

    async def walk() -> AsyncIterator[Any]:
        for number in range(3):
            yield {"id": str(number), "content": "x", "threshold": 0}
        yield Case(id="mine", content="x", threshold=0.0)

    with caplog.at_level(logging.WARNING, "adjudge"):
        done = judge_cases(walk(), model=Scores(0.5), criteria="Is good.")

    assert (done.counts["passed"], done.counts["failed"]) == (1, 3)
    assert len(caplog.records) == 1


PROMPTFOO = {
    "tests": [
        {"providerOutput": "Paris.", "assert": [{"type": "llm-rubric", "value": "Is right."}]},
        {"providerOutput": "Rome.", "assert": [{"type": "contains", "value": "R"}, {"type": "python", "value": "1"}]},
    ]
}

OPENAI = {
    "testing_criteria": [
        {"type": "score_model", "name": "right", "input": [{"role": "user", "content": "Is this right? {{item.a}}"}]},
        {"type": "python", "source": "def grade(sample, item): return 1"},
    ]
}


@pytest.mark.parametrize("tool", ["promptfoo", "openai"])
def test_what_a_run_does_not_apply_of_a_suite_is_listed_before_anybody_is_asked(
    tool: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    """Once, with how often: whoever pays for the calls can stop it."""
    if tool == "promptfoo":
        (tmp_path / "suite.json").write_text(json.dumps(PROMPTFOO), encoding="utf-8")
        suite, reason = import_promptfoo(tmp_path / "suite.json"), "assertion 'python' not applied: it runs code: 1"
    else:
        (tmp_path / "eval.json").write_text(json.dumps(OPENAI), encoding="utf-8")
        (tmp_path / "rows.jsonl").write_text('{"item": {"a": "Paris"}}\n' * 2, encoding="utf-8")
        suite = import_openai_evals(tmp_path / "rows.jsonl", fields={"content": "item.a"})
        reason = "grader 'python' not applied: it runs code: 2"
    listed: list[list[str]] = []

    def ask(content: str) -> bool:
        listed.append([record.getMessage() for record in caplog.records])
        return True

    with caplog.at_level(logging.WARNING, "adjudge"):
        for _ in range(2):
            run(suite, ask, criteria="Is a town.").finish_sync()

    assert listed
    assert all(reason in lines for lines in listed)
    assert sum(record.getMessage() == reason for record in caplog.records) == 1


def test_a_stream_of_cases_needs_no_rubric():
    """What cannot be looked at first is looked at case by case, and a case without criteria is said with its place."""

    async def walk(*cases: Case) -> AsyncIterator[Case]:
        for case in cases:
            yield case

    assert judge_cases(walk(*OWN[:2])).counts["undecided"] == 0
    with pytest.raises(UsageError, match="item 1 of the data set: nothing says what good means"):
        judge_cases(walk(OWN[0], OWN[4]))
