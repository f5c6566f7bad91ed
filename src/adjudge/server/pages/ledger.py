"""``/ledger``: checking that the ledger was not changed, and ``/ledger/{seq}``: one entry with all that it says."""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from adjudge.errors import UsageError
from adjudge.formats.times import get_now
from adjudge.guards.approval.request_columns import verify_listed
from adjudge.ledger.entry import NO_PREV
from adjudge.ledger.short_results import read_recorded
from adjudge.server.caller import AnyCaller, Caller, require
from adjudge.server.entry_lookup import find_gate
from adjudge.server.pages.ledger_check import Checked
from adjudge.server.pages.page import Context, add_page, redirect
from adjudge.server.problem import Problem
from adjudge.server.state import CurrentState

router = APIRouter()

Reader = Annotated[Caller, Depends(require("read", decides_nothing=True))]


async def view_ledger(request: Request, state: CurrentState) -> Context:
    """Show the head of the ledger, and what the last check found."""
    genesis = (await state.ledger.read(1)).payload or {}
    return {
        "head": await state.ledger.head(),
        "checked": getattr(request.app.state, "ledger_checked", None),
        "kept": state.ledger.store_content,
        "signed": bool(genesis.get("public_key")),
    }


@router.post("/ledger/verify", include_in_schema=False)
async def verify_ledger(request: Request, state: CurrentState, _caller: Reader) -> Response:
    """Check every entry of the ledger, keep the result in the application's state for all pages, and go back."""
    start = get_now()
    verification = await verify_listed(state.ledger, await state.ledger.verify())
    end = get_now()
    request.app.state.ledger_checked = Checked(verification=verification, at=end, seconds=(end - start).total_seconds())
    return redirect("/ledger")


async def view_entry(seq: int, state: CurrentState, caller: AnyCaller) -> Context:
    """Show the entry of the ledger with this number."""
    try:
        entry = await state.ledger.read(seq)
    except UsageError:
        raise Problem(404, "the ledger has no entry at this place") from None
    if not caller.covers("read", find_gate(entry)):
        raise Problem(403, "this entry is not of your gates", code="forbidden")
    payload = "" if entry.payload is None else json.dumps(entry.payload, indent=2, ensure_ascii=False)
    return {
        "entry": entry,
        "payload": payload,
        "has_page": read_recorded(entry) is not None,
        "is_first": entry.prev == NO_PREV,
        "head": await state.ledger.head(),
    }


add_page(router, "/ledger", view_ledger, template="ledger.html", scope="read")
add_page(router, "/ledger/{seq}", view_entry, template="ledger_entry.html", scope="read", by_gate=True)
