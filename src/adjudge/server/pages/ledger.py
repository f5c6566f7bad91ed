"""``/ledger``: whether the record is as it was written, its entries, and one entry with all that it says."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query
from starlette.requests import Request
from starlette.responses import Response

from adjudge.errors import UsageError
from adjudge.guards.approval.listed import verify_listed
from adjudge.ledger.entry import KINDS, NO_PREV, Entry
from adjudge.ledger.recorded import read_recorded
from adjudge.server.caller import AnyCaller, Caller, require
from adjudge.server.database import get_now
from adjudge.server.entry_search import find_gate, read_newest
from adjudge.server.pages.ledger_check import Checked
from adjudge.server.pages.page import add_page, redirect
from adjudge.server.problem import Problem
from adjudge.server.state import CurrentState

router = APIRouter()

ON_PAGE = 50
"""Entries in one list."""

Word = Annotated[str, Query(max_length=200)]

Reader = Annotated[Caller, Depends(require("read"))]


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """An entry in short."""

    seq: int
    at: datetime
    kind: str
    state: str
    """One of the states of a page, or empty for an entry that has none."""
    says: str
    hash: str
    is_readable: bool
    """Whether it is a decision or result that has a page of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerView:
    """The state of the ledger, and its newest entries."""

    head: str
    entries: int
    checked: Checked | None
    """``None`` until somebody has it checked: showing entries proves nothing."""
    kept: str
    signed: bool
    kind: str
    gate: str
    subject: str
    kinds: tuple[str, ...]
    gates: tuple[str, ...]
    rows: tuple[LedgerRow, ...]
    older: str
    newest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryView:
    """One entry, all of it."""

    entry: Entry
    payload: str
    """The payload as indented JSON; empty where it was erased."""
    has_page: bool
    first: bool
    entries: int


async def view_ledger(
    request: Request,
    state: CurrentState,
    *,
    kind: Word = "",
    gate: Word = "",
    subject: Word = "",
    before: Annotated[int | None, Query(ge=1, lt=2**62)] = None,
) -> LedgerView:
    """List the entries that match all filters, the newest first."""
    kinds = (kind,) if kind in KINDS else ()
    plain = subject.strip().lower().removeprefix("sha256:")
    newest_entries = await read_newest(
        state.ledger, kinds=kinds, gate=gate, subject=plain, before=before, most=ON_PAGE + 1
    )
    rows = [make_ledger_row(entry) for entry in newest_entries[:ON_PAGE]]
    head = await state.ledger.head()
    genesis = await state.ledger.read(1)
    filters = {name: text for name, text in (("kind", kind), ("gate", gate), ("subject", subject)) if text}
    return LedgerView(
        head=str(head),
        entries=head.seq,
        checked=getattr(request.app.state, "ledger_checked", None),
        kept=str((genesis.payload or {}).get("store_content", "hash")),
        signed=bool((genesis.payload or {}).get("public_key")),
        kind=kind,
        gate=gate,
        subject=subject,
        kinds=KINDS,
        gates=tuple(sorted({*state.config.gates, gate} - {""})),
        rows=tuple(rows),
        older=f"?{urlencode({**filters, 'before': rows[-1].seq})}" if len(newest_entries) > ON_PAGE else "",
        newest=(f"?{urlencode(filters)}" if filters else "?") if before is not None else "",
    )


@router.post("/ledger/verify", include_in_schema=False)
async def verify_ledger(request: Request, state: CurrentState, _caller: Reader) -> Response:
    """Check every entry, keep the verification for the page, and go back to it."""
    begun = get_now()
    verification = await verify_listed(state.ledger, await state.ledger.verify())
    now = get_now()
    request.app.state.ledger_checked = Checked(found=verification, at=now, seconds=(now - begun).total_seconds())
    return redirect("/ledger")


async def view_entry(seq: int, state: CurrentState, caller: AnyCaller) -> EntryView:
    """Show one entry by its place."""
    try:
        entry = await state.ledger.read(seq)
    except UsageError:
        raise Problem(404, "the ledger has no entry at this place") from None
    if not caller.covers("read", find_gate(entry)):
        raise Problem(403, "this entry is not of your gates", code="forbidden")
    payload = "" if entry.payload is None else json.dumps(entry.payload, indent=2, ensure_ascii=False)
    return EntryView(
        entry=entry,
        payload=payload,
        has_page=read_recorded(entry) is not None,
        first=entry.prev == NO_PREV,
        entries=(await state.ledger.head()).seq,
    )


def make_ledger_row(entry: Entry) -> LedgerRow:
    """Summarise an entry of any kind in a line."""
    row = read_recorded(entry)
    if row is not None:
        did = "" if row.allowed is None else ", let through" if row.allowed else ", blocked"
        summary = f"{row.gate}{did}, decided by {row.decided_by}" if row.gate else f"by {row.judge or 'a judge'}"
        state, says = (row.state if row.state != "info" else ""), summary
    else:
        state, says = "", _describe(entry)
    return LedgerRow(
        seq=entry.seq,
        at=entry.at,
        kind=entry.kind,
        state=state,
        says=says,
        hash=entry.hash,
        is_readable=row is not None,
    )


def _describe(entry: Entry) -> str:
    payload: dict[str, Any] = entry.payload or {}
    if entry.payload is None:
        return "the payload was erased"
    parts = [payload.get(name) for name in ("gate", "by", "status", "reason", "run", "name", "detail")]
    return ", ".join(str(part) for part in parts if isinstance(part, str) and part)[:200] or entry.subject[:80]


add_page(router, "/ledger", view_ledger, template="ledger.html", scope="read")
add_page(router, "/ledger/{seq}", view_entry, template="ledger_entry.html", scope="read", by_gate=True)
