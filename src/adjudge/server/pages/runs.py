"""``/runs`` and ``/runs/{run}``: data sets that were judged, and the report of each."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from adjudge.labels.source import find_store
from adjudge.report.document import Document
from adjudge.report.render import render_html
from adjudge.report.run_document import make_run_document
from adjudge.server.caller import Caller, require
from adjudge.server.pages.page import Context, add_page, show_page
from adjudge.server.run_folders import list_run_folders, load_report, summarise_run
from adjudge.server.state import CurrentState

router = APIRouter()

_ON_PAGE = 100
"""Cases of a run that its page lists; the file has up to 2,000."""

Reader = Annotated[Caller, Depends(require("read"))]


async def view_runs(state: CurrentState) -> Context:
    """List the runs, the newest first by their names."""
    folders = await asyncio.to_thread(list_run_folders, state.run_folder)
    runs = [await asyncio.to_thread(summarise_run, folder) for folder in folders]
    return {"is_configured": state.run_folder is not None, "runs": runs}


@router.get("/runs/{run}/report.html", include_in_schema=False)
async def send_report(run: str, state: CurrentState, _caller: Reader) -> Response:
    """Send the report as one file to keep. It is saved and not shown: its own style would not be let in here."""
    _, report = await load_report(state.run_folder, run, most_cases=2_000)
    text = await asyncio.to_thread(render_html, report)
    return HTMLResponse(text, headers={"Content-Disposition": f'attachment; filename="{run}.html"'})


@router.get("/runs/{run}", include_in_schema=False)
async def show_run(request: Request, run: str, state: CurrentState, caller: Reader) -> Response:
    """Show the report of a run as a page."""
    folder, report = await load_report(state.run_folder, run, most_cases=_ON_PAGE)
    has_labels = (
        caller.may("label") and caller.rater is not None and await asyncio.to_thread(find_store(folder).is_file)
    )
    document: Document = await asyncio.to_thread(make_run_document, report)
    context: Context = {"name": run, "has_labels": has_labels, "document": document}
    return await show_page(request, "run.html", context, caller=caller)


add_page(router, "/runs", view_runs, template="runs.html", scope="read")
