"""What belongs to a run: the labels of its own queue, and the strata of its plan."""

from __future__ import annotations

from collections.abc import Mapping

from adjudge.dataset.label import Label
from adjudge.labels.order import load_order
from adjudge.labels.queue import open_label_queue
from adjudge.labels.source import STORE_FILE
from adjudge.runs.folder import Run


def read_queue(run: Run) -> tuple[Label, ...]:
    """The labels that were given to the cases of a run with ``adjudge label``; none where nobody did."""
    if not (run.folder / STORE_FILE).is_file():
        return ()
    with open_label_queue(run) as queue:
        return tuple(queue.labels())


def find_strata(run: Run) -> Mapping[str, str]:
    """The stratum of each case by the run's plan; empty where there is none, or a single stratum."""
    planned = load_order(run.folder)
    found = (
        {} if planned is None else {drawn.case: drawn.stratum for drawn in planned.drawn if drawn.stratum is not None}
    )
    return found if len(set(found.values())) > 1 else {}
