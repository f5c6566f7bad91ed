"""``/keys``: the API keys there are, and what each may do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Depends, Form
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response

from adjudge.errors import UsageError
from adjudge.server.caller import AnyCaller, Caller, require
from adjudge.server.database import get_now
from adjudge.server.keys import ApiKey, create_key, find_other_name, list_keys, revoke_key, rotate_key
from adjudge.server.pages.page import add_page, redirect, render_page
from adjudge.server.permissions import SCOPES, make_permissions
from adjudge.server.state import CurrentState

router = APIRouter()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRow:
    """A key, and whether it can be used now."""

    key: ApiKey
    is_valid: bool
    can_rotate: bool
    """Whether its new secret may be shown to the reader: not where it acts as another person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysView:
    """The keys, without their secrets, which nobody has."""

    keys: tuple[KeyRow, ...]
    scopes: tuple[str, ...] = SCOPES
    gates: tuple[str, ...] = ()
    """The gates that a new key can be limited to."""
    error: str = ""
    """What was wrong with the last form."""


async def view_keys(state: CurrentState, caller: AnyCaller) -> KeysView:
    """Show the keys, the oldest first."""
    now = get_now()
    keys = await list_keys(state.ledger)
    rows = tuple(_make_row(key, caller, now) for key in keys)
    return KeysView(keys=rows, gates=tuple(sorted(state.config.gates)))


def _make_row(key: ApiKey, caller: Caller, now: datetime) -> KeyRow:
    is_valid = key.is_valid(now)
    can_rotate = is_valid and find_other_name(key, caller.permissions) is None
    return KeyRow(key=key, is_valid=is_valid, can_rotate=can_rotate)


class KeyForm(BaseModel):
    """The form for a new key."""

    name: str = Field(default="", max_length=200)
    scopes: list[str] = Field(default=[], max_length=20)
    gates: list[str] = Field(default=[], max_length=1_000)
    days: str = Field(default="", max_length=10)


class PrefixForm(BaseModel):
    """The form about a key."""

    prefix: str = Field(default="", max_length=40)


Admin = Annotated[Caller, Depends(require("admin"))]


@router.post("/keys", include_in_schema=False)
async def add_key(request: Request, state: CurrentState, caller: Admin, form: Annotated[KeyForm, Form()]) -> Response:
    """Make a key and show it, this once: it is in no address and nowhere in the database."""
    try:
        ends = get_now() + timedelta(days=_read_days(form.days)) if form.days else None
        permissions = make_permissions(form.scopes, gates=form.gates or None)
        key, text = await create_key(
            state.ledger, name=form.name, permissions=permissions, expires_at=ends, by=caller.identity
        )
    except UsageError as error:
        return await _show_keys(request, state, caller, error=str(error))
    return await _show_keys(request, state, caller, key=key, text=text)


@router.post("/keys/rotate", include_in_schema=False)
async def rotate_old_key(
    request: Request, state: CurrentState, caller: Admin, form: Annotated[PrefixForm, Form()]
) -> Response:
    """Make a key in the place of another, which is revoked, and show it this once.

    Not one that acts under somebody else's name: who manages keys could then decide or label as that person.
    """
    try:
        key, text = await rotate_key(state.ledger, form.prefix, shown_to=caller.permissions, by=caller.identity)
        state.keys.forget()
    except UsageError as error:
        return await _show_keys(request, state, caller, error=str(error))
    return await _show_keys(request, state, caller, key=key, text=text)


@router.post("/keys/revoke", include_in_schema=False)
async def revoke_old_key(
    request: Request, state: CurrentState, caller: Admin, form: Annotated[PrefixForm, Form()]
) -> Response:
    """Revoke a key from now on."""
    try:
        await revoke_key(state.ledger, form.prefix, by=caller.identity)
        state.keys.forget()
    except UsageError as error:
        return await _show_keys(request, state, caller, error=str(error))
    return redirect("/keys")


def _read_days(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 3_650:
        raise UsageError("a key lasts 1 to 3,650 whole days; leave the field empty for one that does not end")
    return int(text)


async def _show_keys(
    request: Request, state: CurrentState, caller: Caller, *, error: str = "", key: ApiKey | None = None, text: str = ""
) -> Response:
    view = replace(await view_keys(state, caller), error=error)
    status = 422 if error else 200
    return render_page(request, "keys.html", view, caller=caller, status=status, made=key, text=text)


add_page(router, "/keys", view_keys, template="keys.html", scope="admin")
