"""The frame around a page for one caller: the navigation, the person who is signed in, and their preferences.

This decides which pages are linked to. Whether a page is shown is decided by the scope that it was added with:
``page.py`` (``add_page``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import get_args
from urllib.parse import unquote, urlsplit

from starlette.requests import Request

from adjudge.server.caller import Caller
from adjudge.server.pages.ledger_check import Checked
from adjudge.server.pages.static_files import find_static
from adjudge.server.permissions import Permissions, PermissionScope
from adjudge.server.state import ServerState, get_page_state
from adjudge.templates.figures import format_count, format_short
from adjudge.templates.shell import LedgerNotice, NavLink, NavSection, Shell, Theme


@dataclass(frozen=True, slots=True)
class _NavEntry:
    """A page of the navigation: its path, its name, its shortcut key, and the scopes of which a caller needs one."""

    path: str
    name: str
    key: str
    scopes: tuple[PermissionScope, ...]


_SECTIONS: tuple[tuple[str, tuple[_NavEntry, ...]], ...] = (
    (
        "Waiting for you",
        (
            _NavEntry("/approvals", "Approvals", "a", ("approve", "read")),
            _NavEntry("/labels", "Labels", "l", ("label", "adjudicate")),
            _NavEntry("/audits", "Audits", "d", ("approve",)),
        ),
    ),
    (
        "What was decided",
        (
            _NavEntry("/", "Overview", "o", ("read",)),
            _NavEntry("/results", "Results", "r", ("read",)),
            _NavEntry("/runs", "Runs", "u", ("read",)),
        ),
    ),
    (
        "Why believe it",
        (
            _NavEntry("/monitors", "Monitors", "m", ("read",)),
            _NavEntry("/ledger", "Ledger", "k", ("read",)),
        ),
    ),
)
"""The sections of the navigation, each with its title."""

_ENTRIES = tuple(entry for _, entries in _SECTIONS for entry in entries)

_OVERVIEW = "/"

_RUNS = "/runs"
"""The only page of ``adjudge view``, and of those below it."""

_URGENT_PAGES = frozenset({"/approvals"})

_COUNTED_PAGES = frozenset({"/approvals", "/labels"})

_APPROVER_PAGES = frozenset({"/approvals/mine", "/approvals/deny", "/audits"})
"""Pages about what somebody decides by their own name, and not for those who only look."""

THEME = "theme"
"""The cookie with the colours that somebody chose."""

LETTERS = "letters"
"""The cookie of somebody who switched the letters off that are keys."""

TIMES = "times"
"""The cookie of somebody who reads times in UTC."""

_ROLES = {"approve": "approver", "label": "labeller", "adjudicate": "adjudicator"}


def make_shell(
    request: Request,
    caller: Caller | None = None,
    *,
    waiting: Mapping[str, int] | None = None,
) -> Shell:
    """Make the shell of a page; ``waiting`` has the number of things that wait on a page, by its path."""
    counts = waiting or {}
    settings = get_page_state(request).settings
    is_viewer = caller is not None and caller.kind == "viewer"
    sections = [
        NavSection(
            title=title,
            links=tuple(
                NavLink(
                    path=entry.path,
                    name=entry.name,
                    key=entry.key,
                    waiting=counts.get(entry.path),
                    urgent=entry.path in _URGENT_PAGES,
                    counts=entry.path in _COUNTED_PAGES,
                )
                for entry in entries
                if caller is not None and _may_open(caller.permissions, entry.path, entry.scopes)
                if entry.path == _RUNS or not is_viewer
            ),
        )
        for title, entries in _SECTIONS
    ]
    checked: Checked | None = getattr(request.app.state, "ledger_checked", None)
    person = caller.name if caller is not None and caller.session is not None else None
    home: NavLink | None = None
    if caller is not None:
        home = NavLink(path=_RUNS, name="Runs") if is_viewer else find_home(caller.permissions)
    return Shell(
        place=urlsplit(settings.base_url).netloc,
        current=_find_current(request.url.path),
        home=home,
        sections=tuple(section for section in sections if section.links),
        person=person,
        roles=", ".join(word for scope, word in _ROLES.items() if caller is not None and scope in _list_scopes(caller)),
        csrf=caller.session.page_token if caller is not None and caller.session is not None else "",
        theme=read_theme(request.cookies.get(THEME, "")),
        keys=request.cookies.get(LETTERS) != "off",
        local_times=request.cookies.get(TIMES) != "utc",
        waits=sum(counts.get(path, 0) for path in _URGENT_PAGES),
        notifies=any(path in counts for path in _URGENT_PAGES),
        has_accounts=get_page_state(request).library.writes,
        ledger=_describe_ledger(checked) if caller is not None and caller.may("read") else None,
        static=find_static(),
    )


def find_home(permissions: Permissions) -> NavLink | None:
    """Find the first page that somebody may open: the overview, else the first of the navigation, or ``None``."""
    for entry in sorted(_ENTRIES, key=lambda entry: entry.path != _OVERVIEW):
        if _may_open(permissions, entry.path, entry.scopes):
            return NavLink(path=entry.path, name=entry.name, key=entry.key)
    return None


def choose_page(permissions: Permissions, target: str) -> str:
    """Choose the page that follows the sign-in: the target if the person may open it, else their first page.

    A target that belongs to no page of the navigation is kept: it refuses them itself if they may not open it.
    """
    path = unquote(urlsplit(target).path)
    current = _find_current(path)
    scopes = next((entry.scopes for entry in _ENTRIES if entry.path == current), ())
    if current == "/labels" and path != current:
        # One run: to label its cases, or to settle on what people differ.
        scopes = ("adjudicate",) if path.endswith("/differences") else ("label",)
    if path in _APPROVER_PAGES:
        scopes = ("approve",)
    home = find_home(permissions)
    may_stay = not current or _may_open(permissions, path, scopes)
    return target if home is None or may_stay else home.path


def _may_open(permissions: Permissions, path: str, scopes: Iterable[PermissionScope]) -> bool:
    """Return whether somebody may open a page that needs one of some scopes.

    An account that is limited to gates may open only pages that show what is of single gates. Some pages need the
    person's name as a rater or as an approver.
    """
    is_about_gates = path == _OVERVIEW or path.startswith(
        ("/approvals", "/audits", "/monitors", "/results", "/ledger/")
    )
    has_rater_name = not path.startswith("/labels/") or permissions.rater is not None
    has_approver_name = path not in _APPROVER_PAGES or permissions.approver is not None
    has_names = has_rater_name and has_approver_name
    return any(map(permissions.may, scopes)) and (is_about_gates or permissions.gates is None) and has_names


async def count_waiting(state: ServerState, caller: Caller) -> Mapping[str, int]:
    """Count the requests and the cases that wait for a person who is signed in, by the path of their page."""
    if caller.session is None:
        return {}
    counts = {}
    if caller.may("approve") and caller.approver is not None:
        counts["/approvals"] = await state.approvals.count_open(caller.approver, gates=caller.permissions.gates)
    may_label = state.run_folder is not None and caller.may("label") and caller.permissions.gates is None
    if may_label and caller.rater is not None:
        counts["/labels"] = await state.labels.count_left(caller.rater)
    return counts


def _describe_ledger(checked: Checked | None) -> LedgerNotice | None:
    """Make the notice about the last check of the ledger; ``None`` if this server has not checked it."""
    if checked is None:
        return None
    details = f"{format_count(checked.verification.entries, 'entry', 'entries')}, {format_short(checked.at)} UTC"
    if checked.verification.valid:
        return LedgerNotice(state="verified", word="Ledger verified", more=details)
    return LedgerNotice(state="failed", word="Ledger not as it was", more=details)


def read_theme(text: str) -> Theme:
    """Read the theme that a form or a cookie names; ``auto`` for anything else."""
    themes: dict[str, Theme] = {theme: theme for theme in get_args(Theme)}
    return themes.get(text, "auto")


def _list_scopes(caller: Caller) -> frozenset[PermissionScope]:
    """Return the scopes of a caller."""
    return caller.permissions.scopes


def _find_current(path: str) -> str:
    """Find the navigation's entry that a page belongs to: the longest path that its path begins with, or ``""``."""
    if path == "/compare":
        return _RUNS
    pages = [entry.path for entry in _ENTRIES]
    matches = [page for page in pages if path == page or (page != "/" and path.startswith(f"{page}/"))]
    return max(matches, key=len, default="")
