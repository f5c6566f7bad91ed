"""The cases that somebody who labels is not to read yet, and those they have read: labels of these are not blind.

What was read is kept in two places: in the files of labels of the runs that are being labelled, which a terminal reads
too, and in the server's own table, which also knows what was read before anybody labelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from starlette.requests import Request

from adjudge.labels.order import PLAN_FILE
from adjudge.labels.source import STORE_FILE
from adjudge.server.caller import Caller
from adjudge.server.run_library import RunLibrary
from adjudge.server.state import ServerState, get_page_state, get_state
from adjudge.server.verdict_reads import ALL, find_reads, keep_reads


async def find_withheld(request: Request, caller: Caller, run: str) -> frozenset[str]:
    """Find the cases of a run whose verdicts the caller is not shown, because they are to label them blind.

    A case counts that they are to label in any run of the data set: what one judge said of it would tell of another's.
    """
    withheld: frozenset[str] = frozenset()
    if caller.rater is None or not caller.may("label"):
        return withheld
    rater = caller.rater
    for name in await asyncio.to_thread(_list_begun, get_page_state(request).library, run):
        withheld |= await get_state(request).use_queue(name, lambda queue: queue.list_open(rater))
    return withheld


async def note_read(
    request: Request, caller: Caller, run: str, cases: Collection[str], *, labels: bool = False, whole: bool = False
) -> None:
    """Remember that the caller has read the verdicts of some cases, so that later labels of theirs are not blind.

    ``labels`` is true if they read what people said too, and ``whole`` if they can tell the verdict of every case.
    """
    if caller.rater is None or not (cases or whole):
        return
    state, rater = get_state(request), caller.rater
    alike = await asyncio.to_thread(state.library.list_alike, run)
    # Of everybody with a rater's name: who cannot label now may be let to later, or does with another key.
    for ident in {summary.id for summary in alike if summary.name == run}:
        await keep_reads(state.ledger, rater, ident, cases, whole=whole)
    if cases and (caller.may("label") or caller.may("adjudicate")):
        for name in await asyncio.to_thread(_list_begun, state.library, run):
            await state.use_queue(name, lambda queue: queue.note_read(rater, cases, labels=labels))


async def note_listed(
    request: Request, caller: Caller, run: str, cases: Collection[str], *, withheld: frozenset[str], tells: bool
) -> None:
    """Remember what a page with a list of cases, or with a figure of labels and verdicts, tells beyond its rows.

    A figure, or the length of a filtered list, tells the verdict of a case that somebody labelled: who labels it
    otherwise sees it move. ``tells`` is true if being in the list, or one's place in it, depends on the verdict: then a
    case that is not in it is told as well.
    """
    if caller.rater is None:
        return
    labelled = await asyncio.to_thread(get_page_state(request).library.list_labelled, run)
    read_cases = (labelled | frozenset(cases)) - withheld
    await note_read(request, caller, run, read_cases, whole=tells and not withheld)


async def note_earlier(state: ServerState, rater: str, run: str, case: str) -> None:
    """Have the queue of a run know, before a label is given, that its rater has read the verdict of the case."""
    runs = {alike.id: alike.name for alike in await asyncio.to_thread(state.library.list_alike, run)}
    reads = await find_reads(state.ledger, rater, case, runs)

    def has_read() -> bool:
        # All cases of another run are not all cases of the data set.
        return any(kept != {ALL} or _has_case(state.library, runs[ident], case) for ident, kept in reads.items())

    if reads and await asyncio.to_thread(has_read):
        await state.use_queue(run, lambda queue: queue.note_read(rater, [case]))


def _has_case(library: RunLibrary, run: str, case: str) -> bool:
    with library.open(run) as opened:
        return opened.store.find_place(case) is not None


def _list_begun(library: RunLibrary, run: str) -> list[str]:
    """List the runs of the data set in which labelling has begun: looking begins none."""
    library.find(run)
    names = [alike.name for alike in library.list_alike(run)]
    return [name for name in names if any((library.find(name) / file).is_file() for file in (STORE_FILE, PLAN_FILE))]
