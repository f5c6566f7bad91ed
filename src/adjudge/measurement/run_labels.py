"""What belongs to a run: the labels of its own queue, and the strata of its plan."""

from __future__ import annotations

from adjudge.dataset.label import Label
from adjudge.labels.plan import load_plan
from adjudge.labels.queue import open_label_queue
from adjudge.labels.source import STORE_FILE
from adjudge.measurement.rate import Planned
from adjudge.runs.folder import Run


def read_queue(run: Run) -> tuple[Label, ...]:
    """The labels that were given to the cases of a run with ``adjudge label``; none where nobody did."""
    if not (run.folder / STORE_FILE).is_file():
        return ()
    with open_label_queue(run) as queue:
        return tuple(queue.labels())


def find_planned(run: Run) -> Planned | None:
    """The strata of the run's plan; ``None`` where there is none."""
    plan = load_plan(run)
    if plan is None:
        return None
    return Planned(plan=plan.id, sizes={stratum.name: stratum.size for stratum in plan.strata})
