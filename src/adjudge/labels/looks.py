"""The record of looks: each time somebody saw a rate or a test that was computed from the labels of a run.

A limit for one look keeps its promise once. Somebody who looks, labels more and looks again, or draws another plan
because the first one came out badly, needs a limit that holds for all these looks together. The file in the run's
folder says which it is. A draw is a plan, or without one a set of labelled cases that only grows.

Which limits a look gets is decided in ``measurement/gate_limit.py``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.files import read_text
from adjudge.formats.record import Layout, read_record, write_record

LOOKS_FILE = "looks.jsonl"

_LARGEST = 500_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationLook:
    """The part of a look at which thresholds were tested. What is equal is the same look, however often it is taken."""

    promise: str
    """The promise that was tested, such as ``wrong_pass<=0.05``."""
    confidence: float
    """The share of calibrations in which it is kept."""
    grid: str
    """SHA-256 of the thresholds, which were fixed before any label was read."""
    labels: str
    """SHA-256 of the labelled cases and what people found of each."""

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One look at what the labels of a run come to."""

    schema: ClassVar[str] = "adjudge/look/1"
    _layout: ClassVar[Layout] = Layout(
        last=("added",), omitted=("calibration", "of"), computed={"at": lambda look: look.at.astimezone(UTC)}
    )

    at: datetime
    """The time at which somebody looked, in UTC."""
    by: str
    """The command, ``server`` or ``python``."""
    labels: int
    """The number of labelled cases."""
    draw: str
    """The draw of these: the id of the plan, or ``labels 1``, ``labels 2`` for sets of labels without one."""
    planned: bool = False
    """True if a plan drew them."""
    complete: bool = False
    """True if exactly the planned labels were there."""
    truths: str | None = None
    """SHA-256 of the planned cases and what people said of them, once all of them are labelled."""
    added: tuple[str, ...] = ()
    """Without a plan: digests of the cases that no earlier look at this draw had."""
    limit: str | None = None
    """The limit that was shown: ``one look`` or ``every look``."""
    bar: float | None = None
    """The bar that the lower limit had to reach, where somebody asked."""
    outcome: str | None = None
    """The outcome of that."""
    calibration: CalibrationLook | None = None
    """The test of thresholds, if the look was one."""
    of: str = "rate"
    """The estimate that was looked at: the ``rate`` of this run, or its ``difference`` from another."""

    def to_dict(self) -> dict[str, Any]:
        """This value as a row of the record."""
        return write_record(self)


def load_looks(folder: Path) -> tuple[Look, ...]:
    """The looks at a run so far, the first one first; raises ``UsageError`` for a record that cannot be read.

    Args:
        folder: The folder of the run.
    """
    path = folder / LOOKS_FILE
    if not path.exists():
        return ()
    rows = read_text(path, noun="a record of looks", most=_LARGEST).splitlines()
    return tuple(_read_look(path, number, row) for number, row in enumerate(rows, 1) if row.strip())


def _read_look(path: Path, number: int, row: str) -> Look:
    """Read one row of the record. Raises ``UsageError`` for one that is damaged."""
    try:
        return read_record(Look, json.loads(row))
    except (ValueError, RecursionError) as error:
        # To read on without this line would give a limit for one look to somebody who looked before.
        raise UsageError(
            f"{path}, line {number}, is damaged ({error}), so nobody knows which looks were taken; restore the file "
            "from a copy"
        ) from None


def write_look(folder: Path, look: Look) -> None:
    """Add a look to the record of a run, readable by its owner alone. Raises ``AdjudgeError``."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    path = folder / LOOKS_FILE
    try:
        with os.fdopen(os.open(path, flags, 0o600), "ab") as file:
            file.write(json.dumps(look.to_dict()).encode() + b"\n")
    except OSError as error:
        raise AdjudgeError(f"the look cannot be recorded in {path}: {error.strerror}; make it writable") from None


def find_draw(looks: Sequence[Look], cases: Collection[str]) -> tuple[str, tuple[str, ...]]:
    """Find the name of the draw that labelled cases without a plan are, and those cases that no earlier look had.

    They are the draw of an earlier look if they include all cases that looks at this draw had. Otherwise they are a new
    draw, such as ``labels 2``: whoever draws samples until one of them comes out well takes a chance with each.
    """
    cases_by_draw: dict[str, set[str]] = {}
    for look in looks:
        if not look.planned:
            cases_by_draw.setdefault(look.draw, set()).update(look.added)
    case_ids = set(cases)
    for draw, earlier_cases in reversed(cases_by_draw.items()):
        if earlier_cases <= case_ids:
            return draw, tuple(sorted(case_ids - earlier_cases))
    return f"labels {len(cases_by_draw) + 1}", tuple(sorted(case_ids))


def have_changed(looks: Sequence[Look], draw: str, truths: str | None, *, of: str = "rate") -> bool:
    """Return whether the labels of a plan changed after somebody looked at all of them.

    ``truths`` is the digest of what people say of the planned cases now, and ``of`` the estimate that was looked at:
    ``rate`` or ``difference``.
    """
    return any((look.draw, look.of) == (draw, of) and look.truths not in (None, truths) for look in looks)


def find_first_plan(looks: Sequence[Look]) -> str | None:
    """Find the first plan that anybody looked at, which has the limit for one look; ``None`` if there is none."""
    return next((look.draw for look in looks if look.planned), None)


def has_look(looks: Sequence[Look], draw: str, truths: str | None) -> bool:
    """Return whether somebody looked at exactly these labels of a plan before, so that a new look shows nothing new.

    ``truths`` is the digest of what people said of the planned cases; ``None`` until all of them are labelled.
    """
    return truths is not None and any((look.draw, look.truths) == (draw, truths) for look in looks)


def count_earlier_draws(looks: Sequence[Look], draw: str) -> int:
    """Count the other draws that were looked at before this one, without the first plan.

    That one has the limit for one look; all others share the limit for every look.
    """
    draws = list(dict.fromkeys(look.draw for look in looks))
    earlier_draws = draws[: draws.index(draw)] if draw in draws else draws
    return len(set(earlier_draws) - {find_first_plan(looks)})


def find_calibration(looks: Sequence[Look], calibration: CalibrationLook) -> tuple[int, bool]:
    """Find the number of a test of thresholds among those of a run, from 1, and whether it was recorded before."""
    recorded = list(dict.fromkeys(look.calibration for look in looks if look.calibration is not None))
    if calibration in recorded:
        return recorded.index(calibration) + 1, True
    return len(recorded) + 1, False
