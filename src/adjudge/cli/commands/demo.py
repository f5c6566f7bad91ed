"""``adjudge demo``: the whole road on an example that is shipped, without a key and without a network."""

from __future__ import annotations

import asyncio
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

from adjudge.cli import options as option
from adjudge.cli.output import add_row, draws, make_table, say, show_drawing, write_json
from adjudge.dataset.case import Case
from adjudge.dataset.dataset import open_dataset
from adjudge.judges.judge import Judge
from adjudge.models.defaults import EXAMPLE
from adjudge.result import JudgeResult
from adjudge.rubric.file import load_rubric
from adjudge.rubric.rubric import Rubric

if TYPE_CHECKING:
    from rich.table import Table


def demo(as_json: option.AsJson = False) -> None:
    """Judge an example data set with a rubric of rules: no key, no network."""
    with as_file(files("adjudge.cli.demo")) as folder:
        rubric = load_rubric(folder / "rubric.yaml")
        cases = list(open_dataset(folder / "answers.jsonl"))
    results = asyncio.run(_judge_cases(cases, rubric))
    if as_json:
        both = zip(cases, results, strict=True)
        named = [{"input": "answers.jsonl", "case": case.id, **result.to_dict()} for case, result in both]
        write_json({"schema": "adjudge/results/1", "results": named})
        return
    show_drawing(_draw_table(cases, results, rubric))
    passed = sum(result.passed for result in results)
    needed = f"{rubric.passing_threshold:g}"
    say(f"{passed} of {len(results)} answers pass the rubric {rubric.name!r}, which needs {needed}.")
    _explain_one(cases, results)
    say("\nNo model was asked: every criterion of this rubric is a rule. Next, with a model that reads:")
    say(f'  adjudge judge answer.txt --criteria "Answers the question and invents nothing." --judge {EXAMPLE}')


async def _judge_cases(cases: list[Case], rubric: Rubric) -> list[JudgeResult]:
    return [result async for result in Judge("rules").evaluate_many(cases, rubric)]


def _draw_table(cases: list[Case], results: list[JudgeResult], rubric: Rubric) -> Table:
    from adjudge.formats.display import COLOURS, SIGNS

    # On a terminal a name breaks at its hyphens, or the marks below it would leave no room for the answers' names.
    names = tuple(item.name.replace("-", "-\n") if draws() else item.name for item in rubric.criteria)
    table = make_table("Answers of a support agent", ("answer", "verdict", "score", *names), whole=3)
    for case, result in zip(cases, results, strict=True):
        marks = [SIGNS["passed" if item.passed else "failed"] for item in result.criteria] or [""] * len(names)
        score = "-" if result.score is None else f"{result.score:.2f}"
        verdict = f"{SIGNS[result.outcome]} {result.outcome}"
        add_row(table, case.id, verdict, score, *marks, style=COLOURS[result.outcome])
    return table


def _explain_one(cases: list[Case], results: list[JudgeResult]) -> None:
    failed = [(case, result) for case, result in zip(cases, results, strict=True) if result.outcome == "failed"]
    if not failed:
        return
    # The most telling one: it would have passed on its score, and a threshold of one criterion held it back.
    case, result = max(failed, key=lambda pair: pair[1].score or 0.0)
    say(f"\nWhy {case.id!r} failed: {result.explain()}")
    say(f"  the customer wrote: {case.task}")
    say(f"  the agent answered: {case.content}")
    for item in result.criteria:
        if not item.passed:
            gate = f", and it needs {item.threshold:g}" if item.threshold is not None else ""
            say(f"  {item.name}: {item.score:g}{gate}; {item.reasoning}")
