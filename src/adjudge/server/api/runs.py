"""``/v1/runs``: the runs of the configured folder, and their reports."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends
from starlette.responses import Response

from adjudge.errors import UsageError
from adjudge.runs.folder import open_run
from adjudge.server.api.endpoint import answer, make_router
from adjudge.server.caller import Caller, require
from adjudge.server.problem import logger
from adjudge.server.run_folders import list_run_folders, load_report
from adjudge.server.state import CurrentState

router = make_router("runs")

Reading = Annotated[Caller, Depends(require("read"))]


@router.get("/runs")
async def list_runs(state: CurrentState, _caller: Reading) -> Response:
    """The runs, by name, with their status and how many cases passed, failed and are undecided."""
    folders = await asyncio.to_thread(list_run_folders, state.run_folder)
    rows = [await asyncio.to_thread(_describe, folder) for folder in folders]
    return answer({"schema": "adjudge/runs/1", "runs": [row for row in rows if row is not None]})


@router.get("/runs/{run}")
async def report_run(run: str, state: CurrentState, _caller: Reading) -> Response:
    """The report of a run, as ``adjudge report RUN --json`` writes it."""
    _, report = await load_report(state.run_folder, run)
    return answer(report.to_dict())


def _describe(folder: Path) -> dict[str, Any] | None:
    try:
        with open_run(folder) as run:
            return {"name": folder.name, "status": run.status, "counts": dict(run.counts)}
    except UsageError as error:
        logger.warning("a run folder cannot be read: %s", error)
        return None
