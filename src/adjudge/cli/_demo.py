"""``adjudge demo``: the whole road on an example that is shipped, without a key and without a network."""

from __future__ import annotations

import asyncio
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

from adjudge import Judge, JudgeResult, Row, Rubric, load_rubric, read_rows
from adjudge.cli import _options as option
from adjudge.cli._output import add_row, draws, make_table, say, show, write_json

if TYPE_CHECKING:
    from rich.table import Table


def demo(as_json: option.AsJson = False) -> None:
    """Judge an example data set with a rubric of rules: no key, no network."""
    with as_file(files("adjudge.demo")) as folder:
        rubric = load_rubric(folder / "rubric.yaml")
        rows = list(read_rows(folder / "answers.jsonl"))
    results = asyncio.run(_judge_rows(rows, rubric))
    if as_json:
        both = zip(rows, results, strict=True)
        named = [{"input": "answers.jsonl", "row": row.id, **result.to_dict()} for row, result in both]
        write_json({"schema": "adjudge/results/1", "results": named})
        return
    show(_draw_table(rows, results, rubric))
    passed = sum(result.passed for result in results)
    needed = f"{rubric.passing_threshold:g}"
    say(f"{passed} of {len(results)} answers pass the rubric {rubric.name!r}, which needs {needed}.")
    _explain_one(rows, results)
    say("\nNo model was asked: every criterion of this rubric is a rule. Next, with a model that reads:")
    say('  adjudge judge answer.txt --criteria "Answers the question and invents nothing." --judge openai:gpt-5-mini')


async def _judge_rows(rows: list[Row], rubric: Rubric) -> list[JudgeResult]:
    return [result async for result in Judge("rules").evaluate_many(rows, rubric)]


def _draw_table(rows: list[Row], results: list[JudgeResult], rubric: Rubric) -> Table:
    from adjudge._display import COLOURS, SIGNS

    # On a terminal a name breaks at its hyphens, or the marks below it would leave no room for the answers' names.
    names = tuple(item.name.replace("-", "-\n") if draws() else item.name for item in rubric.criteria)
    table = make_table("Answers of a support agent", ("answer", "verdict", "score", *names), whole=3)
    for row, result in zip(rows, results, strict=True):
        marks = [SIGNS["passed" if item.passed else "failed"] for item in result.criteria] or [""] * len(names)
        score = "-" if result.score is None else f"{result.score:.2f}"
        verdict = f"{SIGNS[result.outcome]} {result.outcome}"
        add_row(table, row.id, verdict, score, *marks, style=COLOURS[result.outcome])
    return table


def _explain_one(rows: list[Row], results: list[JudgeResult]) -> None:
    failed = [(row, result) for row, result in zip(rows, results, strict=True) if result.outcome == "failed"]
    if not failed:
        return
    # The most telling one: it would have passed on its score, and a threshold of one criterion held it back.
    row, result = max(failed, key=lambda pair: pair[1].score or 0.0)
    say(f"\nWhy {row.id!r} failed: {result.explain()}")
    say(f"  the customer wrote: {row.task}")
    say(f"  the agent answered: {row.content}")
    for item in result.criteria:
        if not item.passed:
            gate = f", and it needs {item.threshold:g}" if item.threshold is not None else ""
            say(f"  {item.name}: {item.score:g}{gate}; {item.reasoning}")
