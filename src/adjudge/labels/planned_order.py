"""The order of labelling by a run's plan, read from the plan's file, and the order in which its labels count.

Either order of labelling, the plan's or the random one over all cases, makes the labels a sample whose probabilities
are known, so that rates follow from it for all cases. Which of the two is followed is decided in ``intake.py``
(``update_cases``), a case's position in the random one in ``store.py`` (``find_position``), and which cases a plan
draws in ``plan.py``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adjudge.dataset.contents import ContentSet, read_content_set
from adjudge.dataset.label import LabelDesign
from adjudge.errors import UsageError
from adjudge.formats.arguments import is_finite
from adjudge.formats.files import read_text
from adjudge.formats.text import show
from adjudge.labels.store import Drawn

PLAN_FILE = "plan.json"

PLAN_SCHEMA = "adjudge/plan/1"

_LARGEST = 500_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedOrder:
    """The order of a plan."""

    plan: str
    """The plan's id."""
    digest: str
    """SHA-256 of the plan's file: another one means that the plan was continued or replaced."""
    drawn: tuple[Drawn, ...]
    """The cases that the plan drew, in the order in which to label them."""
    sizes: Mapping[str, int]
    """The number of cases of each stratum, drawn or not, as far as the plan says."""
    phases: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """The phases, one for each time that cases were drawn: the index of the first one, and how many of each stratum."""
    within: float | None = None
    """The half-width that the plan is for."""
    contents: ContentSet | None = None
    """The contents that it was drawn from; ``None`` where the plan does not say it."""


def load_order(folder: Path | None) -> PlannedOrder | None:
    """Load the order of the plan in a run's folder, or ``None`` where there is none; raises ``UsageError``."""
    path = None if folder is None else folder / PLAN_FILE
    if path is None or not path.exists():
        return None
    text = read_text(path, noun="a plan", most=_LARGEST)
    try:
        plan_members = json.loads(text)
    except (ValueError, RecursionError):
        raise UsageError(f"{path} is not JSON; draw the plan again (adjudge plan)") from None
    if not isinstance(plan_members, dict) or plan_members.get("schema") != PLAN_SCHEMA:
        schema = plan_members.get("schema") if isinstance(plan_members, dict) else plan_members
        raise UsageError(f"{path} is of the schema {show(schema)}, not {PLAN_SCHEMA!r}; draw the plan again")
    plan, order = plan_members.get("id"), plan_members.get("order")
    if not isinstance(plan, str) or not plan or not isinstance(order, list):
        raise UsageError(f"{path} has no id or no order; draw the plan again (adjudge plan)")
    cases = tuple(_read_drawn(path, plan, index, row) for index, row in enumerate(order))
    if len({row.case for row in cases}) != len(cases):
        raise UsageError(f"{path} names a case twice in its order; draw the plan again (adjudge plan)")
    sizes, within = _read_sizes(plan_members.get("strata")), plan_members.get("within")
    return PlannedOrder(
        plan=plan,
        digest=hashlib.sha256(text.encode()).hexdigest(),
        drawn=cases,
        sizes=sizes,
        phases=_read_phases(plan_members.get("phases"), len(sizes)),
        within=float(within) if isinstance(within, int | float) and is_finite(within) and within > 0 else None,
        contents=read_content_set(plan_members.get("contents")),
    )


def _read_phases(phases: Any, strata: int) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Read the phases of a plan: for each, the index of its first case, and how many cases of each stratum were drawn.

    None are returned where one cannot be read: only the width of an interval depends on them.
    """
    read_phases = []
    for phase in phases if isinstance(phases, list) else []:
        first, counts = (phase.get("first"), phase.get("labels")) if isinstance(phase, Mapping) else (None, None)
        if type(first) is not int or not isinstance(counts, list) or len(counts) != strata:
            return ()
        if first < 0 or any(type(count) is not int or count < 0 for count in counts) or not sum(counts):
            return ()
        read_phases.append((first, tuple(counts)))
    return tuple(read_phases)


def _read_sizes(strata: Any) -> Mapping[str, int]:
    """Read the sizes of a plan's strata by their names; those that cannot be read are left out."""
    rows = [row for row in strata if isinstance(row, Mapping)] if isinstance(strata, list) else []
    sizes = {str(row.get("name")): row.get("size") for row in rows}
    return {name: size for name, size in sizes.items() if type(size) is int and size > 0}


def _read_drawn(path: Path, plan: str, index: int, row: Any) -> Drawn:
    """Read one case of a plan's order, which is at the index ``index``.

    Raises ``UsageError`` for a row without a case, or whose stratum or probability is not valid.
    """
    if not isinstance(row, Mapping) or not isinstance(row.get("case"), str):
        raise UsageError(f"{path}: order[{index}] names no case: {show(row)}; draw the plan again (adjudge plan)")
    try:
        design = LabelDesign(plan=plan, stratum=row.get("stratum"), p=row.get("p"))  # type: ignore[arg-type] - checked
    except UsageError as error:
        raise UsageError(f"{path}: order[{index}] is no case of a plan ({error}); draw the plan again") from None
    return Drawn(case=row["case"], position=index, stratum=design.stratum, p=design.p)


def order_complete(planned: Iterable[tuple[str, str]], times: Mapping[str, Any], early: Collection[str]) -> list[str]:
    """List the completely labelled cases of a plan in the order in which a rate counts them: by their times.

    ``planned`` are case and stratum in the order of the plan, ``times`` has the time at which each case was complete.
    The cases in ``early`` were not labelled because the plan handed them out: somebody chose them, perhaps the worst
    first. So such a case counts only when all cases that the plan has before it in its stratum are complete too, and
    then not before these; otherwise the order would not be random any more.
    """
    ordered: list[tuple[Any, int, str]] = []
    latest_times: dict[str, Any] = {}
    incomplete_strata: set[str] = set()  # with a case so far that is not complete
    for index, (case, stratum) in enumerate(planned):
        if case not in times:
            incomplete_strata.add(stratum)
        elif case not in early or stratum not in incomplete_strata:
            time = times[case]
            if case in early:
                time = max(time, latest_times.get(stratum, time))
            latest_times[stratum] = max(time, latest_times.get(stratum, time))
            ordered.append((time, index, case))
    return [case for _, _, case in sorted(ordered)]
