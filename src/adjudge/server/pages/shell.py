"""What is shown around a page for one caller: the pages they may see, who they are, and how they like it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args
from urllib.parse import urlsplit

from starlette.requests import Request

from adjudge.server.caller import Caller
from adjudge.server.pages.ledger_check import Checked
from adjudge.server.pages.static_files import find_static
from adjudge.server.permissions import PermissionScope
from adjudge.server.state import ServerState, get_state
from adjudge.templates.figures import format_count, format_short
from adjudge.templates.shell import LedgerNotice, NavLink, NavSection, Shell, Theme

_SECTIONS: tuple[tuple[str, tuple[tuple[str, str, str, tuple[PermissionScope, ...]], ...]], ...] = (
    (
        "Waiting for you",
        (
            ("/approvals", "Approvals", "a", ("approve",)),
            ("/labels", "Labels", "l", ("label", "adjudicate")),
        ),
    ),
    (
        "What was decided",
        (
            ("/", "Overview", "o", ("read",)),
            ("/results", "Results", "r", ("read",)),
            ("/runs", "Runs", "u", ("read",)),
        ),
    ),
    ("Why believe it", (("/ledger", "Ledger", "k", ("read",)),)),
    ("This server", (("/keys", "API keys", "", ("admin",)),)),
)

_URGENT = frozenset({"/approvals"})

THEME = "theme"
"""The cookie with the colours that somebody chose."""

LETTERS = "letters"
"""The cookie of somebody who switched the letters off that are keys."""

_ROLES = {"approve": "approver", "label": "labeller", "adjudicate": "adjudicator", "admin": "admin"}


def make_shell(
    request: Request,
    caller: Caller | None = None,
    *,
    waiting: Mapping[str, int] | None = None,
) -> Shell:
    """The shell of a page; ``waiting`` says by path how many wait there."""
    counts = waiting or {}
    settings = get_state(request).settings
    sections = [
        NavSection(
            title=title,
            links=tuple(
                NavLink(path=path, name=name, key=key, waiting=counts.get(path), urgent=path in _URGENT)
                for path, name, key, scopes in links
                if caller is not None and any(caller.may(scope) for scope in scopes)
            ),
        )
        for title, links in _SECTIONS
    ]
    checked: Checked | None = getattr(request.app.state, "ledger_checked", None)
    person = caller.name if caller is not None and caller.session is not None else None
    return Shell(
        place=urlsplit(settings.base_url).netloc,
        current=_find_current(request.url.path),
        sections=tuple(section for section in sections if section.links),
        person=person,
        roles=", ".join(word for scope, word in _ROLES.items() if caller is not None and scope in _list_scopes(caller)),
        csrf=caller.session.csrf_token if caller is not None and caller.session is not None else "",
        theme=read_theme(request.cookies.get(THEME, "")),
        keys=request.cookies.get(LETTERS) != "off",
        ledger=_describe_ledger(checked) if caller is not None and caller.may("read") else None,
        static=find_static(),
    )


async def count_waiting(state: ServerState, caller: Caller) -> Mapping[str, int]:
    """How many wait for the caller, by the path where they do."""
    if not caller.may("approve") or caller.session is None or caller.approver is None:
        return {}
    return {"/approvals": await state.approvals.count_open(caller.approver, gates=caller.permissions.gates)}


def _describe_ledger(checked: Checked | None) -> LedgerNotice | None:
    if checked is None:
        return None
    more = f"{format_count(checked.found.entries, 'entry', 'entries')}, {format_short(checked.at)} UTC"
    if checked.found.valid:
        return LedgerNotice(state="verified", word="Ledger verified", more=more)
    return LedgerNotice(state="failed", word="Ledger not as it was", more=more)


def read_theme(text: str) -> Theme:
    """A theme that a form or a cookie names; ``auto`` for anything else."""
    themes: dict[str, Theme] = {theme: theme for theme in get_args(Theme)}
    return themes.get(text, "auto")


def _list_scopes(caller: Caller) -> frozenset[PermissionScope]:
    return caller.permissions.scopes


def _find_current(path: str) -> str:
    """The entry of the navigation that a page belongs to; ``""`` for none."""
    entries = [entry for _, links in _SECTIONS for entry, *_ in links]
    found = [entry for entry in entries if path == entry or (entry != "/" and path.startswith(f"{entry}/"))]
    return max(found, key=len, default="")
