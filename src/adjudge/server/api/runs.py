"""``/v1/runs``: the runs of the configured folder, and their reports.

Which folders are runs is decided in ``server/run_folders.py`` (``is_run``).
"""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import Depends
from starlette.requests import Request
from starlette.responses import Response

from adjudge.formats.record import write_record
from adjudge.report.cases import MOST_CASES
from adjudge.server.api.endpoint import answer, make_router
from adjudge.server.blind_cases import note_read
from adjudge.server.caller import Caller, require
from adjudge.server.state import CurrentState

router = make_router("runs")

Reading = Annotated[Caller, Depends(require("read"))]


@router.get("/runs")
async def list_runs(state: CurrentState, _caller: Reading) -> Response:
    """List the runs by name: judge, data set, status, and how many cases passed, failed and are undecided.

    A run that cannot be read has ``trouble`` alone, which says why.
    """
    runs = await asyncio.to_thread(state.library.summarise)
    return answer({"schema": "adjudge/runs/1", "runs": [write_record(run) for run in runs]})


@router.get("/runs/{run}")
async def report_run(request: Request, run: str, state: CurrentState, caller: Reading) -> Response:
    """The report of a run, as ``adjudge report RUN --json`` writes it."""
    labelled = await asyncio.to_thread(state.library.load_report, run, most_cases=MOST_CASES)
    cases = {case.id for case in labelled.report.shown} | {label.case for label in labelled.labels}
    await note_read(request, caller, run, cases, labels=True, all_cases=True)
    return answer(labelled.report.to_dict())
