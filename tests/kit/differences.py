"""Two systems judged by one judge, and two judges of the same answers, with people who label what a plan drew."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from adjudge import Case, Judge, run
from adjudge.dataset import Label, digest_content
from adjudge.labels import LabelPlan, load_plan, make_paired_plans, open_label_queue, write_plan
from adjudge.runs import Run

QUESTIONS = 120


def is_good(content: str) -> bool:
    """The truth of an answer: it says so."""
    return "good" in content


def judge_systems(content: str) -> bool:
    """A judge in code that is wrong about some answers of each system."""
    name, _, place = content.split()
    return is_good(content) != (int(place) % {"a": 11, "b": 13}[name] == 0)


def judge_answer(wrong: frozenset[int], content: str) -> bool:
    """A judge in code that is wrong about some questions."""
    return is_good(content) != (int(content.rsplit(maxsplit=1)[-1]) in wrong)


def answer(folder: Path, name: str, good: Callable[[int], bool]) -> Run:
    """The run of a system that answers well where ``good`` says so."""
    cases = [
        Case(id=f"q-{place}", content=f"{name} {'good' if good(place) else 'bad'} {place}")
        for place in range(QUESTIONS)
    ]
    return run(cases, Judge(judge_systems), criteria="Is good.", out=folder / name).finish_sync()


def make_systems(folder: Path) -> tuple[Run, Run]:
    """Two systems, ``a`` and ``b``: the second is good on a quarter more of the questions; the judge errs on some."""
    return answer(folder, "a", lambda place: place % 4 < 2), answer(folder, "b", lambda place: place % 4 < 3)


def make_judges(folder: Path) -> tuple[Run, Run]:
    """Two judges of the same answers: ``careless`` errs on a fifth of them, ``careful`` on a twentieth."""
    runs = []
    for name, wrong in (("careless", range(0, QUESTIONS, 5)), ("careful", range(0, QUESTIONS, 20))):
        cases = [Case(id=f"q-{n}", content=f"{'good' if n % 3 else 'bad'} {n}") for n in range(QUESTIONS)]
        judge = Judge(partial(judge_answer, frozenset(wrong)), name=name)
        runs.append(run(cases, judge, criteria="Is good.", out=folder / name).finish_sync())
    return runs[0], runs[1]


def draw(before: Run, after: Run, **options: Any) -> None:
    """Draw the cases that compare two runs: of both, or of two judges those of the first."""
    for plan, one in zip(make_paired_plans(before, after, seed=7, **options), (before, after), strict=False):
        write_plan(plan, one.folder)


def load_order(one: Run) -> Any:
    """The cases that a run's plan drew, in their order."""
    plan = load_plan(one)
    assert isinstance(plan, LabelPlan)
    return plan.order


def label_planned(*runs: Run, most: int = 1000, decide: Callable[[str], Any] = is_good) -> None:
    """Somebody labels the next cases of each run, and is right."""
    for one in runs:
        drawn = {planned.case for planned in load_order(one)}
        with open_label_queue(one) as queue:
            for _ in range(most):
                task = queue.next("ann")
                if task is None or task.case not in drawn:
                    break
                queue.record("ann", task.case, decide(str(task.content)))


def label_cases(one: Run, places: Iterable[int]) -> list[Label]:
    """Labels of cases of a run, as somebody gave them who read the answers."""
    contents = {item.case.id: str(item.case.content) for item in one.items()}
    return [
        Label(case=f"q-{place}", rater="ann", value=is_good(text), subject=digest_content(text))
        for place in places
        if (text := contents[f"q-{place}"])
    ]
