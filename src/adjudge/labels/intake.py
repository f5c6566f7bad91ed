"""The cases and their order, brought into a file of labels: that of the run's plan, else a random one."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping

from adjudge.dataset.contents import ContentSet
from adjudge.errors import UsageError
from adjudge.formats.text import show
from adjudge.labels.order import PlannedOrder, load_order
from adjudge.labels.source import LabelSource
from adjudge.labels.store import LabelStore, find_position


def take_in(store: LabelStore, source: LabelSource, *, seed: int | None) -> None:
    """Bring the cases and their order in the file of labels up to date; raises ``UsageError``.

    A plan that was not drawn from these cases is not followed: its labels would say nothing of them.
    """
    planned = load_order(source.folder)
    with store.change():
        chosen = _choose_seed(store, seed)
        contents = source.find_contents(store)
        changed = source.has_changed(store) or store.find_contents() != contents
        state = "" if planned is None else planned.digest
        if not changed and (store.find_fact("plan") or "") == state:
            return
        followed = _keep_problem(store, source, planned, contents)
        if changed or followed is None:
            store.clear_order()
            found = source.list_cases()
            store.add_cases((name, subject, find_position(chosen, name), body) for name, subject, body in found)
            source.remember(store)
            store.keep_fact("groups", str(source.count_groups()))
            contents = source.find_contents(store)
        store.keep_fact("contents", "" if contents is None else json.dumps(contents.to_dict()))
        if followed is not None:
            _set_order(store, followed)
        store.keep_fact("plan", state)
        store.keep_fact("plan_id", followed.plan if followed is not None else "")
        # Of a plan that does not say what it was drawn from, no label says it either.
        sizes = followed.sizes if followed is not None and followed.contents is not None else {}
        store.keep_fact("sizes", json.dumps(dict(sizes)))


def read_sizes(store: LabelStore) -> Mapping[str, int]:
    """How many cases each stratum of the plan has that is followed."""
    return json.loads(store.find_fact("sizes") or "{}")


def _keep_problem(
    store: LabelStore, source: LabelSource, planned: PlannedOrder | None, contents: ContentSet | None
) -> PlannedOrder | None:
    """The plan, if it is followed; why it is not is kept."""
    problem = None
    if planned is not None and planned.contents is not None:
        problem = source.find_plan_problem(planned.contents, contents)
    store.keep_fact("plan_problem", problem or "")
    return None if problem else planned


def _set_order(store: LabelStore, planned: PlannedOrder) -> None:
    store.clear_order()
    for drawn in planned.drawn:
        if not store.set_order(drawn):
            raise UsageError(
                f"the plan {show(planned.plan)} names the case {show(drawn.case)}, which the run does not have; draw "
                "the plan again (adjudge plan)"
            )


def _choose_seed(store: LabelStore, seed: int | None) -> int:
    kept = store.find_fact("seed")
    if kept is not None and seed is not None and kept != str(seed):
        raise UsageError(f"the labels in {store.path} were begun with seed {kept}, got {seed}; leave the seed out")
    if kept is not None:
        return int(kept)
    # Not a fixed one: whoever names the cases could otherwise choose which of them people look at first.
    chosen = secrets.randbits(32) if seed is None else seed
    store.keep_fact("seed", str(chosen))
    return chosen
