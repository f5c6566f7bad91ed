"""``/keys``: the API keys there are, and what each may do."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter

from adjudge.server.database import get_now
from adjudge.server.keys import ApiKey, list_keys
from adjudge.server.pages.page import add_page
from adjudge.server.state import CurrentState

router = APIRouter()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRow:
    """A key, and whether it can be used now."""

    key: ApiKey
    is_valid: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysView:
    """All keys, without their secrets, which nobody has."""

    keys: tuple[KeyRow, ...]


async def view_keys(state: CurrentState) -> KeysView:
    """The keys, the oldest first."""
    now = get_now()
    found = await list_keys(state.ledger)
    return KeysView(keys=tuple(KeyRow(key=key, is_valid=key.is_valid(now)) for key in found))


add_page(router, "/keys", view_keys, template="keys.html", scope="admin")
