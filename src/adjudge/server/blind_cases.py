"""Blind labelling: the cases whose verdicts a rater must not read yet, and a record of those that they have read.

A label is blind if its rater had not read the case's verdict. Reads are recorded in two places: in the label files of
the runs that are being labelled, which the command line reads too, and in a table of the server, which also has the
reads from before a run was labelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from starlette.requests import Request

from adjudge.labels.planned_order import PLAN_FILE
from adjudge.labels.source import STORE_FILE
from adjudge.server.caller import Caller
from adjudge.server.run_library import RunLibrary
from adjudge.server.state import ServerState, get_page_state, get_state
from adjudge.server.verdict_reads import ALL, find_reads, record_reads


async def find_withheld(request: Request, caller: Caller, run: str) -> frozenset[str]:
    """Find the cases of a run whose verdicts the caller is not shown, because they still have to label them blind.

    A case is withheld if the caller has to label it in any run of the same data set, because the verdict in one run
    hints at the verdict in another.
    """
    withheld: frozenset[str] = frozenset()
    if caller.rater is None or not caller.may("label"):
        return withheld
    rater = caller.rater
    for name in await asyncio.to_thread(_list_started_runs, get_page_state(request).library, run):
        withheld |= await get_state(request).use_queue(name, lambda queue: queue.list_open(rater))
    return withheld


async def note_read(
    request: Request, caller: Caller, run: str, cases: Collection[str], *, labels: bool = False, all_cases: bool = False
) -> None:
    """Record that the caller has read the verdicts of some cases of a run: labels that they give later are not blind.

    ``labels`` is true if they read other people's labels too, and ``all_cases`` if they can tell the verdict of every
    case.
    """
    if caller.rater is None or not (cases or all_cases):
        return
    state, rater = get_state(request), caller.rater
    same_dataset = await asyncio.to_thread(state.library.list_same_dataset, run)
    # For every caller with a rater's name: one who may not label now may be allowed to later, or has another key.
    for run_id in {summary.id for summary in same_dataset if summary.name == run}:
        await record_reads(state.ledger, rater, run_id, cases, all_cases=all_cases)
    if cases and (caller.may("label") or caller.may("adjudicate")):
        for name in await asyncio.to_thread(_list_started_runs, state.library, run):
            await state.use_queue(name, lambda queue: queue.note_read(rater, cases, labels=labels))


async def note_listed(
    request: Request,
    caller: Caller,
    run: str,
    cases: Collection[str],
    *,
    withheld: frozenset[str],
    tells_verdicts: bool,
) -> None:
    """Record the reads of a page that lists ``cases``, or that shows figures of labels and verdicts.

    The labelled cases of the run count as read too: somebody who changes a label sees from the figures, or from the
    length of a filtered list, what the judge said. ``tells_verdicts`` is true if it depends on the verdict which cases
    are listed, or in which order. The list then tells the verdicts of cases that are not in it as well, so all count as
    read.
    """
    if caller.rater is None:
        return
    labelled = await asyncio.to_thread(get_page_state(request).library.list_labelled_cases, run)
    read_cases = (labelled | frozenset(cases)) - withheld
    await note_read(request, caller, run, read_cases, all_cases=tells_verdicts and not withheld)


async def note_earlier_read(state: ServerState, rater: str, run: str, case: str) -> None:
    """Tell the queue of a run that a rater has read the verdict of a case, if the server's table says so.

    Called before a label is stored, so that the queue does not take it for blind.
    """
    same_dataset = await asyncio.to_thread(state.library.list_same_dataset, run)
    names_by_id = {summary.id: summary.name for summary in same_dataset}
    reads = await find_reads(state.ledger, rater, case, names_by_id)

    def has_read() -> bool:
        """Return whether the recorded reads cover this case."""
        # ``ALL`` is every case of one run, and the run may lack this case though it is of the same data set.
        return any(
            case_digests != {ALL} or _has_case(state.library, names_by_id[run_id], case)
            for run_id, case_digests in reads.items()
        )

    if reads and await asyncio.to_thread(has_read):
        await state.use_queue(run, lambda queue: queue.note_read(rater, [case]))


def _has_case(library: RunLibrary, run: str, case: str) -> bool:
    """Return whether a run has a case of this id."""
    with library.open(run) as opened:
        return opened.store.find_place(case) is not None


def _list_started_runs(library: RunLibrary, run: str) -> list[str]:
    """List the runs of the same data set whose labelling has begun; raises ``Problem`` for a run that is not there.

    It looks for their files only, because opening a queue would begin its labelling.
    """
    library.find(run)
    names = [summary.name for summary in library.list_same_dataset(run)]
    return [name for name in names if any((library.find(name) / file).is_file() for file in (STORE_FILE, PLAN_FILE))]
