"""What belongs to a run: the labels of its own queue, and the strata of its plan."""

from __future__ import annotations

from collections.abc import Mapping

from adjudge.dataset.label import Label
from adjudge.runs.folder import Run


def read_queue(run: Run) -> tuple[Label, ...]:
    """The labels that were given to the cases of a run with ``adjudge label``; none where nobody did."""
    return ()


def find_strata(run: Run) -> Mapping[str, str]:
    """The stratum of each case by the run's plan; empty where there is none."""
    return {}
