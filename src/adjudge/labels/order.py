"""The order of a run's plan, read from its file, and the order in which labels of it count.

Either order of labelling, the plan's or the random one over all cases, makes the labels a sample whose probabilities
are known, so that they speak for the cases nobody looked at. Which of the two is followed is decided in ``intake.py``
(``update_cases``), a case's place in the random one in ``store.py`` (``find_position``), and which cases a plan draws
in ``plan.py``.
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
    """SHA-256 of the file, by which a plan that was continued is known."""
    drawn: tuple[Drawn, ...]
    sizes: Mapping[str, int]
    """The number of cases of each stratum, drawn or not, as far as the plan says."""
    phases: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """The phases, one for each time that cases were drawn: the first place, and the number of each stratum."""
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
    cases = tuple(_read_drawn(path, plan, place, row) for place, row in enumerate(order))
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
    """The phases; none where they cannot be read: only the width of an interval depends on them."""
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
    """The sizes of the strata; empty where they cannot be read, and then nothing is estimated from them."""
    rows = [row for row in strata if isinstance(row, Mapping)] if isinstance(strata, list) else []
    sizes = {str(row.get("name")): row.get("size") for row in rows}
    return {name: size for name, size in sizes.items() if type(size) is int and size > 0}


def _read_drawn(path: Path, plan: str, place: int, row: Any) -> Drawn:
    """Read one case of a plan's order; its index is its position.

    Raises ``UsageError`` for a row without a case, or whose stratum or probability is not valid.
    """
    if not isinstance(row, Mapping) or not isinstance(row.get("case"), str):
        raise UsageError(f"{path}: order[{place}] names no case: {show(row)}; draw the plan again (adjudge plan)")
    try:
        design = LabelDesign(plan=plan, stratum=row.get("stratum"), p=row.get("p"))  # type: ignore[arg-type] - checked
    except UsageError as error:
        raise UsageError(f"{path}: order[{place}] is no case of a plan ({error}); draw the plan again") from None
    return Drawn(case=row["case"], position=place, stratum=design.stratum, p=design.p)


def order_complete(planned: Iterable[tuple[str, str]], times: Mapping[str, Any], early: Collection[str]) -> list[str]:
    """Sort the cases of ``times`` in the order in which a rate counts them: that of their times.

    ``planned`` are case and stratum in the order of the plan. Those of ``early`` were not labelled because the plan
    handed them out: somebody chose them, perhaps the worst first. Such a case comes when all that the plan has before
    it in its stratum are there, and no sooner: the order would not be random any more.
    """
    ordered: list[tuple[Any, int, str]] = []
    latest: dict[str, Any] = {}
    waiting: set[str] = set()
    for place, (case, stratum) in enumerate(planned):
        if case not in times:
            waiting.add(stratum)
        elif case not in early or stratum not in waiting:
            time = times[case]
            if case in early:
                time = max(time, latest.get(stratum, time))
            latest[stratum] = max(time, latest.get(stratum, time))
            ordered.append((time, place, case))
    return [case for _, _, case in sorted(ordered)]
