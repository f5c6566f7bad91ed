"""Bringing the cases and the order of labelling into a file of labels: the order of the run's plan, else a random one.

The position of a case in the random order is computed in ``store.py`` (``find_position``).
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping

from adjudge.dataset.contents import ContentSet
from adjudge.errors import UsageError
from adjudge.formats.text import show
from adjudge.labels.planned_order import PlannedOrder, load_order
from adjudge.labels.source import LabelSource
from adjudge.labels.store import LabelStore, find_position


def update_cases(store: LabelStore, source: LabelSource, *, seed: int | None) -> None:
    """Bring the cases and the order of labelling in a file of labels up to date with their source.

    The order is that of the plan in the run's folder, else a random one by ``seed``. A plan that was not drawn from
    these cases is not followed: its labels would say nothing of them. Raises ``UsageError``.
    """
    planned_order = load_order(source.folder)
    with store.change():
        chosen_seed = _read_or_keep_seed(store, seed)
        contents = source.find_contents(store)
        changed = source.has_changed(store) or store.find_contents() != contents
        plan_digest = "" if planned_order is None else planned_order.digest
        if not changed and (store.find_fact("plan") or "") == plan_digest:
            return
        followed_plan = _choose_plan(store, source, planned_order, contents)
        if changed or followed_plan is None:
            store.clear_order()
            case_rows = source.list_cases()
            store.add_cases(
                (name, subject, find_position(chosen_seed, name), body) for name, subject, body in case_rows
            )
            source.remember(store)
            store.set_fact("groups", str(source.count_groups()))
            contents = source.find_contents(store)
        store.set_fact("contents", "" if contents is None else json.dumps(contents.to_dict()))
        if followed_plan is not None:
            _set_order(store, followed_plan)
        store.set_fact("plan", plan_digest)
        store.set_fact("plan_id", followed_plan.plan if followed_plan is not None else "")
        # Without the contents that the plan was drawn from, the design of a label has neither these nor a size.
        sizes = followed_plan.sizes if followed_plan is not None and followed_plan.contents is not None else {}
        store.set_fact("sizes", json.dumps(dict(sizes)))


def read_sizes(store: LabelStore) -> Mapping[str, int]:
    """Read the number of cases in each stratum of the plan that is followed; empty without a plan."""
    return json.loads(store.find_fact("sizes") or "{}")


def _choose_plan(
    store: LabelStore, source: LabelSource, planned: PlannedOrder | None, contents: ContentSet | None
) -> PlannedOrder | None:
    """Return the plan if it was drawn from the present contents of the cases, else ``None``.

    The reason why a plan is not followed is kept in the file of labels.
    """
    problem = None
    if planned is not None and planned.contents is not None:
        problem = source.find_plan_problem(planned.contents, contents)
    store.set_fact("plan_problem", problem or "")
    return None if problem else planned


def _set_order(store: LabelStore, planned: PlannedOrder) -> None:
    """Replace the order of labelling by that of a plan.

    Raises ``UsageError`` for a case that the run does not have.
    """
    store.clear_order()
    for drawn in planned.drawn:
        if not store.set_order(drawn):
            raise UsageError(
                f"the plan {show(planned.plan)} names the case {show(drawn.case)}, which the run does not have; draw "
                "the plan again (adjudge plan)"
            )


def _read_or_keep_seed(store: LabelStore, seed: int | None) -> int:
    """Return the seed that the file of labels has; a file without one gets ``seed``, or a new one.

    Raises ``UsageError`` for another seed than the file has.
    """
    recorded_seed = store.find_fact("seed")
    if recorded_seed is not None and seed is not None and recorded_seed != str(seed):
        raise UsageError(
            f"the labels in {store.path} were begun with seed {recorded_seed}, got {seed}; leave the seed out",
            argument="seed",
        )
    if recorded_seed is not None:
        return int(recorded_seed)
    # Not a fixed one: whoever names the cases could otherwise choose which of them people look at first.
    new_seed = secrets.randbits(32) if seed is None else seed
    store.set_fact("seed", str(new_seed))
    return new_seed
