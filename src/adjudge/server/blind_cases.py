"""What somebody who labels is not to read yet: the judge's verdicts on the cases that they are still asked about."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from starlette.requests import Request

from adjudge.labels.order import PLAN_FILE
from adjudge.labels.source import STORE_FILE
from adjudge.server.caller import Caller
from adjudge.server.state import get_page_state, get_state


async def find_withheld(request: Request, caller: Caller, run: str) -> frozenset[str]:
    """Find the cases of a run whose verdicts the caller is not shown, because they are to label them blind.

    A case counts that they are to label in any run of the data set: what one judge said of it would tell of another's.
    """
    withheld: frozenset[str] = frozenset()
    rater = caller.rater or ""
    for name in await _list_labelled(request, caller, run):
        withheld |= await get_state(request).use_queue(name, lambda queue: queue.list_open(rater))
    return withheld


async def note_read(
    request: Request, caller: Caller, run: str, cases: Collection[str], *, labels: bool = False
) -> None:
    """Remember that the caller has read the verdicts of some cases, so that later labels of theirs are not blind."""
    rater = caller.rater or ""
    for name in await _list_labelled(request, caller, run) if cases else ():
        await get_state(request).use_queue(name, lambda queue: queue.note_read(rater, cases, labels=labels))


async def note_figures(request: Request, caller: Caller, run: str) -> None:
    """Remember that the caller has read a figure made of everybody's labels of a run."""
    rater = caller.rater or ""
    if run in await _list_labelled(request, caller, run):
        await get_state(request).use_queue(run, lambda queue: queue.note_shown(rater))


async def _list_labelled(request: Request, caller: Caller, run: str) -> list[str]:
    """List the runs of the data set that the caller may label and in which labelling has begun: looking begins none."""
    if caller.rater is None or not caller.may("label"):
        return []
    library = get_page_state(request).library

    def find() -> list[str]:
        library.find(run)
        names = [alike.name for alike in library.list_alike(run)]
        return [
            name for name in names if any((library.find(name) / file).is_file() for file in (STORE_FILE, PLAN_FILE))
        ]

    return await asyncio.to_thread(find)
