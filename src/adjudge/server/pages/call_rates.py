"""``/runs/{run}/calls``: errors in letting calls of a run through; the same figures as ``adjudge calls rates``."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from adjudge.report.call_rates_document import make_call_rates_document
from adjudge.server.blind_cases import find_withheld, note_listed
from adjudge.server.pages.page import Context, show_page
from adjudge.server.pages.runs import Reader
from adjudge.server.state import CurrentPageState

router = APIRouter()


@router.get("/runs/{run}/calls", include_in_schema=False)
async def show_call_rates(request: Request, run: str, state: CurrentPageState, caller: Reader) -> Response:
    """Show how often harness, rules and judge let through calls that people would stop.

    It is not shown to somebody who still has cases of the run to label, because the figures would tell verdicts.
    """
    withheld = await find_withheld(request, caller, run)
    context: Context = {"name": run, "withheld": len(withheld), "document": None, "remark": ""}
    if not withheld:
        rates, remark = await asyncio.to_thread(state.library.load_call_rates, run)
        context["remark"] = remark
        if rates is not None:
            await note_listed(request, caller, run, (), withheld=withheld, tells_verdicts=False)
            context["document"] = make_call_rates_document(rates)
    return await show_page(request, "call_rates.html", context, caller=caller)
