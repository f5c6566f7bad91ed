"""What belongs to a run: the labels of its own queue, and the strata of its plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adjudge.dataset.label import Label
from adjudge.labels.plan import find_designs, find_plan_problem, read_plan
from adjudge.labels.queue import open_label_queue
from adjudge.labels.source import STORE_FILE
from adjudge.measurement.draw import Planned
from adjudge.runs.folder import Run


def read_queue(run: Run) -> tuple[Label, ...]:
    """The labels that were given to the cases of a run with ``adjudge label``; none where nobody did."""
    if not (run.folder / STORE_FILE).is_file():
        return ()
    with open_label_queue(run) as queue:
        return tuple(queue.labels())


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """What the plan in a run's folder is worth; nothing where there is none."""

    planned: Planned | None = None
    """The plan, if it is one of what the run holds."""
    problem: str = ""
    """Why it is not."""
    distrusted: str | None = None
    """The id of a plan that is not."""


def read_plan_file(run: Run, labels: Sequence[Label]) -> PlanFile:
    """Compare the plan in a run's folder with the run, which is read once more where there is one."""
    plan = read_plan(run.folder)
    if plan is None:
        return PlanFile()
    problem = find_plan_problem(run)
    if problem is not None:
        return PlanFile(problem=problem, distrusted=plan.id)
    sizes = {stratum.name: stratum.size for stratum in plan.strata}
    return PlanFile(planned=Planned(plan=plan.id, sizes=sizes, designs=find_designs(plan, labels)))
