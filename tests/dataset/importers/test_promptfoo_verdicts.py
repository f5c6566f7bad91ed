"""A suite of promptfoo, moved: the verdicts that promptfoo 0.121.20 itself gave, assertion by assertion.

``tests/data/promptfoo/recorded.json`` is what ``research/promptfoo.py --record`` kept of promptfoo's own results,
with one mock server behind both; here a function answers as that server does.
"""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from adjudge import CriterionResult, Judge, JudgeResult
from adjudge.dataset import import_promptfoo
from kit import house

RECORDED = json.loads((house.ROOT / "tests" / "data" / "promptfoo" / "recorded.json").read_text("utf-8"))

EXAMPLE = house.ROOT / "examples" / "promptfoo" / "promptfooconfig.yaml"

AGGREGATES = house.ROOT / "tests" / "data" / "promptfoo" / "aggregates.json"

RESULTS = house.ROOT / "tests" / "data" / "promptfoo" / "results.jsonl"
"""What ``promptfoo eval -o results.jsonl`` wrote for the same suite."""

TABLE = house.ROOT / "tests" / "data" / "promptfoo" / "verdicts.json"

STRICTER = {("not-equals", '\ufeff{"a":1}'), ("not-is-json", '\ufeff{"a":1}'), ("not-is-json", "NaN")}
"""Where a rule that refuses JSON also refuses what only some programs read as JSON; promptfoo lets it pass."""

BLANKS = ("a\ufeffb", "a\u0085b")
"""What ``word-count`` counts otherwise: JavaScript and Python differ in whether these two end a word."""


def answer(system: str, user: str) -> str:
    """As the mock of ``research/promptfoo.py``: the score stands in what is judged."""
    moods = re.findall(r"Mood: ([01](?:\.\d+)?)", user)
    token = re.findall(r'"token": "([a-z2-7]{8})"', user)[-1]
    names = re.findall(r"^\d+\. (.+?): ", system + "\n" + user, re.MULTILINE)
    scores = [{"name": name, "reasoning": "", "score": float(moods[-1]) if moods else 1.0} for name in names]
    return json.dumps({"token": token, "criteria": scores, "reasoning": "", "suggestions": []})


def judge(path: Path) -> tuple[dict[str, JudgeResult], dict[str, int]]:
    dataset = import_promptfoo(path)

    async def collect() -> list[JudgeResult]:
        return [result async for result in Judge(answer, name="mock").evaluate_many(cases)]

    cases = [case for case in dataset if case.rubric is not None]
    return {str(result.metadata["case"]): result for result in asyncio.run(collect())}, dict(dataset.notes)


def read_passed(mine: CriterionResult) -> bool:
    least = 0.7 if mine.threshold is None else mine.threshold
    return mine.weight == 0 or (mine.score or 0.0) >= least - 1e-9


def compare(theirs: dict[str, Any], ours: dict[str, JudgeResult]) -> tuple[int, list[tuple[str, str]]]:
    """How many verdicts are equal, and the test and assertion of each that is not."""
    equal, others = 0, []
    for number, result in ours.items():
        verdicts = theirs[number]
        for mine in result.criteria:
            verdict = verdicts["assertions"][mine.name.rpartition(" ")[2]]
            passed, score = verdict if isinstance(verdict, list) else (verdict, int(verdict))
            # Of a set that is one rule the verdict is compared; its score there is the mean of its parts.
            if read_passed(mine) == passed and (mine.rule == "some_of" or mine.score == score):
                equal += 1
            else:
                others.append((number, mine.name))
    return equal, others


def test_a_suite_moved_gives_the_same_verdicts():
    """Every deterministic assertion, ``llm-rubric``, weights, thresholds, sets and what ``defaultTest`` adds."""
    theirs = RECORDED["promptfooconfig.yaml"]
    ours, notes = judge(EXAMPLE)
    equal, others = compare(theirs, ours)

    assert equal >= 35
    assert others == []
    assert [ours[number].passed for number in theirs] == [verdict["passed"] for verdict in theirs.values()]
    assert sum("llm-rubric" in mine.name for result in ours.values() for mine in result.criteria) == 2
    assert all("not applied" in note for note in notes)


def test_the_results_of_a_suite_give_the_same_verdicts():
    """A run of promptfoo that is over is judged by what it asserted, defaults included."""
    theirs = RECORDED["promptfooconfig.yaml"]
    ours, _ = judge(RESULTS)
    ours = {name.partition(",")[0].removeprefix("test "): result for name, result in ours.items()}

    assert compare(theirs, ours)[1] == []
    assert [ours[number].passed for number in theirs] == [verdict["passed"] for verdict in theirs.values()]


def test_the_score_is_promptfoo_s_weighted_mean():
    """Where everything of a test is applied and no rule has ended it before the model was asked."""
    theirs = RECORDED["promptfooconfig.yaml"]
    ours, _ = judge(EXAMPLE)
    whole = [key for key, verdict in theirs.items() if ours[key].score is not None and key in "1345"]

    assert whole == ["1", "3", "4", "5"]
    assert [ours[key].score for key in whole] == pytest.approx([theirs[key]["score"] for key in whole])


def test_weights_thresholds_and_sets_come_to_the_same():
    """160 drawn tests; of the score too, where all of a test is applied and no set is one rule."""
    theirs = RECORDED["aggregates.json"]
    ours, notes = judge(AGGREGATES)
    whole = [
        number
        for number, result in ours.items()
        if result.score is not None and all(item.rule != "some_of" for item in result.criteria)
        if count_parts(theirs[number]) == len(result.criteria)
    ]

    assert len(ours) >= 150
    assert compare(theirs, ours)[1] == []
    assert [number for number in ours if ours[number].passed is not theirs[number]["passed"]] == []
    assert len(whole) >= 80
    assert [ours[number].score for number in whole] == pytest.approx([theirs[number]["score"] for number in whole])
    assert all("not applied" in note or "none of whose" in note for note in notes)


def count_parts(verdicts: dict[str, Any]) -> int:
    """The assertions of a test, those in sets and not the sets."""
    places = list(verdicts["assertions"])
    return sum(not any(other.startswith(f"{place}.") for other in places) for place in places)


def test_deterministic_assertions_agree_on_what_programs_read_differently():
    """70 assertions on each of 63 outputs: escapes, line ends, blanks, case, JSON that only some read."""
    suite = json.loads(TABLE.read_text("utf-8"))
    ours, notes = judge(TABLE)
    equal, others = compare(RECORDED["verdicts.json"], ours)
    known = []
    for number, name in others:
        output, kind = suite["tests"][int(number) - 1]["providerOutput"], name.partition(" ")[0]
        known.append((kind, output) in STRICTER or (kind == "word-count" and output in BLANKS))

    assert notes == {}
    assert all(known)
    assert equal + len(known) == 70 * 63
    assert len(known) == 10
