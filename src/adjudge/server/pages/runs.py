"""``/runs`` and ``/runs/{run}``: data sets that were judged, and the report of each."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from adjudge.errors import UsageError
from adjudge.formats.text import clean, flatten
from adjudge.labels.source import find_store
from adjudge.report.document import Document
from adjudge.report.render import render_html
from adjudge.report.run_document import make_run_document
from adjudge.runs.folder import open_run
from adjudge.server.caller import Caller, require
from adjudge.server.pages.page import add_page, render_page
from adjudge.server.run_folders import explain_trouble, list_run_folders, load_report
from adjudge.server.state import CurrentState
from adjudge.trust.intervals import Share

router = APIRouter()

_ON_PAGE = 100
"""Cases of a run that its page lists; the file has up to 2,000."""

_STATES = {"finished": "done", "running": "running"}

Reader = Annotated[Caller, Depends(require("read"))]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run in short."""

    name: str
    state: str
    status: str
    judge: str
    dataset: str
    begun: str
    counts: tuple[tuple[str, int], ...]
    passed: Share
    trouble: str = ""
    """Why it cannot be read; empty where it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsView:
    """The runs of the server's folder."""

    is_configured: bool
    rows: tuple[RunRow, ...]


async def view_runs(state: CurrentState) -> RunsView:
    """List the runs, the newest first by their names."""
    folders = await asyncio.to_thread(list_run_folders, state.run_folder)
    rows = [await asyncio.to_thread(_describe, folder) for folder in folders]
    return RunsView(is_configured=state.run_folder is not None, rows=tuple(rows))


def _describe(folder: Path) -> RunRow:
    try:
        with open_run(folder) as run:
            manifest: Mapping[str, Any] = run.manifest
            status, counts = run.status, dict(run.counts)
    except UsageError as error:
        return RunRow(
            name=folder.name, state="failed", status="cannot be read", judge="", dataset="", begun="", counts=(),
            passed=Share(count=0, of=0), trouble=explain_trouble(error, folder.parent),
        )  # fmt: skip
    shown_counts = tuple((name, counts.get(name, 0)) for name in ("passed", "failed", "undecided"))
    return RunRow(
        name=folder.name,
        state=_STATES.get(status, "stopped"),
        status=status,
        judge=_read_name(manifest.get("judge")),
        dataset=_read_name(manifest.get("dataset")),
        begun=clean(str(manifest.get("created_at", "")), keep_lines=False)[:16].replace("T", " "),
        counts=shown_counts,
        passed=Share(count=counts.get("passed", 0), of=sum(number for _, number in shown_counts)),
    )


def _read_name(value: object) -> str:
    """Read the name of what a manifest describes; a manifest is a file, and may say anything."""
    name = value.get("name") if isinstance(value, Mapping) else value
    return flatten(str(name), 200) if name else ""


# By hand, because a report is the view, and its JSON is that of `adjudge report --json`.
@router.get("/runs/{run}.json", include_in_schema=False)
async def send_run(run: str, state: CurrentState, _caller: Reader) -> Response:
    """Send the report as plain data."""
    _, report = await load_report(state.run_folder, run, most_cases=_ON_PAGE)
    return JSONResponse(await asyncio.to_thread(report.to_dict))


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
    return render_page(request, "run.html", report, caller=caller, name=run, has_labels=has_labels, document=document)


add_page(router, "/runs", view_runs, template="runs.html", scope="read")
