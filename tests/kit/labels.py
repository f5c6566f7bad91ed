"""Runs and data sets for labelling, and raters who work in processes of their own."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from adjudge import Case, Judge, run
from adjudge.dataset import Label, digest_content
from adjudge.labels import LabelQueue, LabelTask, open_label_queue
from adjudge.runs import Run
from adjudge.testing import make_scripted_reply
from kit.runs import do, make_cases

POLITE = {"polite": "Greets the customer.", "right": "Says when it left."}


def make_run(place: Path, cases: int | Sequence[Case] = 6, **options: Any) -> Path:
    """A run of a judge of words in a folder."""
    do(make_cases(cases) if isinstance(cases, int) else cases, out=place, **options)
    return place


def make_criteria_run(place: Path, cases: int = 3) -> Path:
    """A run of a rubric with two criteria for people, and one that a rule decides."""
    rubric: Any = {
        "name": "Reply",
        "criteria": [
            *[{"name": name, "description": text} for name, text in POLITE.items()],
            {"name": "short", "description": "At most 50 characters.", "rule": {"length": 50}},
        ],
    }

    def answer(request: Any) -> Any:
        criteria = [{"name": name, "reasoning": "SECRET", "score": 1.0} for name in POLITE]
        return make_scripted_reply({"criteria": criteria}, request, "judge")

    class Model:
        name = "judge"

        async def complete(self, request: Any, /) -> Any:
            return answer(request)

    run(make_cases(cases), Judge(Model()), rubric=rubric, out=place).finish_sync()
    return place


def make_pairs_run(place: Path, cases: int = 8) -> Path:
    """A run of pairs."""

    class Model:
        name = "judge"

        async def complete(self, request: Any, /) -> Any:
            return make_scripted_reply({"reasoning": "r", "preferred": "first"}, request, "judge")

    pairs = [Case(id=f"pair-{n}", content={"a": f"left {n}", "b": f"right {n}"}) for n in range(cases)]
    run(pairs, Judge(Model()), criteria="Is good.", out=place, pairs=True).finish_sync()
    return place


def bind_labels(run: Run, labels: Iterable[Label]) -> list[Label]:
    """These labels as somebody gave them who read the contents of a run; a design says that they were drawn from it."""
    contents = run.find_contents()
    assert contents is not None
    subjects = {item.case.id: digest_content(item.case.content) for item in run.items()}
    drawn: Any = {"contents": contents.digest, "cases": contents.cases}
    bound = []
    for label in labels:
        design = label.design
        if design is not None:
            size = contents.cases if design.stratum == "all" else design.size
            design = replace(design, size=size, **drawn)
        bound.append(replace(label, subject=subjects.get(label.case), design=design))
    return bound


def write_dataset(path: Path, *rows: dict[str, Any]) -> Path:
    """A data set of lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def label_all(
    queue: LabelQueue, rater: str, decide: Callable[[LabelTask], Any] = lambda _: True, most: int = 1000
) -> list[str]:
    """A rater answers until nothing is left; the ids in the order in which they came."""
    seen = []
    while len(seen) < most and (task := queue.next(rater)) is not None:
        seen.append(task.case)
        name = None if task.criterion is None else task.criterion.name
        queue.record(rater, task.case, decide(task), criterion=name)
    return seen


def main() -> None:
    """A rater in a process of its own: prints each case when its answer is kept."""
    folder, rater, most = sys.argv[1:]
    with open_label_queue(folder) as queue:
        for _ in range(int(most)):
            task = queue.next(rater)
            if task is None:
                break
            queue.record(rater, task.case, True)
            print(task.case, flush=True)  # noqa: T201 - to whoever started this
