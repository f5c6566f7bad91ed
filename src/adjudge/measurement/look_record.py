"""The record of looks in a run's folder: who saw an estimate from which sample of labels, and when.

Which limits count at which look is decided in ``gate_limit.py``.
"""

from __future__ import annotations

from datetime import UTC, datetime

from adjudge.errors import AdjudgeError
from adjudge.labels.looks import Look, has_look, load_looks, write_look
from adjudge.measurement.gate_limit import LabelDraw, LimitKind
from adjudge.result import Outcome
from adjudge.runs.folder import Run


def needs_look_record(run: Run, draw: LabelDraw | None, limit: LimitKind | None) -> bool:
    """Return whether a look has to be recorded before its figures may be shown: the first at limits for one look."""
    # Limits for every look hold without a record. Without one, each plan in turn would get limits for one look.
    if draw is None or limit != "one look":
        return False
    return not has_look(load_looks(run.folder), draw.name, draw.truths)


def write_look_record(
    run: Run,
    draw: LabelDraw | None,
    limit: LimitKind | None,
    *,
    by: str,
    labels: int,
    bar: float | None = None,
    outcome: Outcome | None = None,
) -> None:
    """Add a look to the record in a run's folder; nothing where there is no sample to look at.

    Raises ``AdjudgeError`` where a look that needs its record cannot be recorded.
    """
    if draw is None:
        return
    look = Look(
        at=datetime.now(UTC),
        by=by,
        labels=labels,
        draw=draw.name,
        planned=draw.planned,
        complete=draw.complete,
        truths=draw.truths,
        added=draw.added,
        of=draw.of,
        limit=limit,
        bar=bar,
        outcome=outcome,
    )
    try:
        write_look(run.folder, look)
    except AdjudgeError:
        if needs_look_record(run, draw, limit):
            raise
