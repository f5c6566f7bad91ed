"""What each account meets: the first page that it may see, and no link or button that leads to a refusal."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from html import unescape
from itertools import combinations
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from adjudge.labels import open_label_queue
from adjudge.server import make_permissions
from adjudge.server.permissions import write_permissions
from kit.approval_pages import CONFIG, decide, make_request
from kit.labels import label_all, make_run
from kit.server import PASSWORD, RunningServer, find_token, run_server

pytestmark = pytest.mark.timed


SCOPES = ("approve", "label", "adjudicate", "read", "judge")

LIMITS = ("none", "one gate", "no names")

SETS = [frozenset(scopes) or {"judge"} for size in range(5) for scopes in combinations(SCOPES[:4], size)]
"""Every combination of the scopes that open pages, and the one that opens none."""

NEEDS = {
    "/": {"read"}, "/approvals": {"approve", "read"}, "/labels": {"label", "adjudicate"}, "/results": {"read"},
    "/runs": {"read"}, "/ledger": {"read"},
}  # fmt: skip
"""The pages in the order of the navigation, but for the overview, which is everybody's first who may see it."""

OF_GATES = ("/", "/approvals", "/results")

WANTED = (
    *NEEDS,
    "/results?gate=replies",
    "/approvals/mine?when=all",
    "/approvals/deny",
    "/runs/monday",
    "/labels/monday",
    "/labels/monday/differences",
)


@pytest.fixture(scope="module", name="server")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """With requests, decisions, a run that two people labelled differently, and keys."""
    folder: Path = tmp_path_factory.mktemp("server")
    (folder / "runs").mkdir()
    make_run(folder / "runs" / "monday", 3)
    with open_label_queue(folder / "runs" / "monday", per_case=2) as queue:
        for name, value in (("eve", True), ("fay", False)):
            label_all(queue, name, lambda _, value=value: value)
    with run_server(
        folder, config=CONFIG.replace("[server]", '[server]\nruns = "runs"\nlabels_per_case = 3', 1)
    ) as server:
        for gate in ("replies", "other"):
            decide(server, make_request(server, gate=gate), "Ben", True)
            make_request(server, gate=gate)
        server.make_key("judge")
        server.add_account("Ana")
        yield server


@pytest.fixture(scope="module", name="client")
def open_session(server: RunningServer) -> Any:
    """The session of an account whose rights each test changes."""
    return server.sign_in("Ana")


def change_rights(server: RunningServer, scopes: Iterable[str], limit: str) -> None:
    """Give the account other scopes, limit it to a gate, or take its names of approver and rater away."""
    name = None if limit == "no names" else "Ana"
    gates = ["replies"] if limit == "one gate" else None
    row = write_permissions(make_permissions(scopes, gates=gates, approver=name, rater=name))
    with closing(sqlite3.connect(server.folder / "adjudge.db")) as database:
        columns = ", ".join(f"{column} = ?" for column in row)
        changed = database.execute(
            f"UPDATE adjudge_server_accounts SET {columns} WHERE name = 'Ana'", tuple(row.values())
        ).rowcount
        database.commit()
    assert changed == 1


def list_open(scopes: frozenset[str], limit: str) -> list[str]:
    """The pages of the navigation that an account may see, its first one first."""
    return [path for path, needs in NEEDS.items() if needs & scopes and (limit != "one gate" or path in OF_GATES)]


@pytest.mark.slow_table
@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("scopes", SETS, ids=lambda scopes: "+".join(sorted(scopes)))
def test_everybody_lands_on_a_page_that_they_may_see(
    server: RunningServer, client: Any, scopes: frozenset[str], limit: str
):
    """With ``next`` and without: on that page where they may see it, else on their first one; also from ``/``."""
    change_rights(server, scopes, limit)
    pages = list_open(scopes, limit)
    landed = set()
    for target in (None, *WANTED):
        query = "" if target is None else f"?next={quote(target)}"
        location = client.get(f"/signin{query}").headers["location"]
        landed.add(location)
        if pages and (target is None or urlsplit(target).path in NEEDS):
            assert location == (target if urlsplit(target or "").path in pages else pages[0]), target
    for location in landed if pages else ():
        assert client.get(location).status_code == 200, location
    first = client.get("/")
    if pages:
        assert (first.status_code, first.headers.get("location", "/")) == (200 if "/" in pages else 303, pages[0])
    else:
        assert first.status_code == 403
        assert "No page is open to the account" in first.text
        assert '<form method="post" action="/signout">' in first.text


@pytest.mark.parametrize("scope", SCOPES)
def test_signing_in_leads_to_what_was_wanted_or_to_the_first_page(server: RunningServer, scope: str):
    """By the form itself, for an account with one scope."""
    server.add_account(f"Only {scope}", scope)
    pages = list_open(frozenset([scope]), "none")
    for target in ("", "/results?gate=replies", "/approvals/x", "//evil.example/"):
        client = server.open_browser()
        form = {"name": f"Only {scope}", "password": PASSWORD, "csrf_token": find_token(client)}
        landed = client.post("/signin", data=form | ({"next": target} if target else {}), follow_redirects=True)
        if pages:
            missing = target == "/approvals/x" and scope in ("approve", "read")
            assert landed.status_code == (404 if missing else 200), (target, landed.url)
        else:
            assert (landed.status_code, "No page is open" in landed.text) == (403, True)


@pytest.mark.slow_table
@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("scopes", SETS, ids=lambda scopes: "+".join(sorted(scopes)))
def test_no_link_leads_to_a_refusal(server: RunningServer, client: Any, scopes: frozenset[str], limit: str):
    """From the first page on, through every page that is linked; and a page that is refused leads back."""
    change_rights(server, scopes, limit)
    pages = list_open(scopes, limit)
    left, seen = list(pages[:1]), {"/signin"}
    while left and len(seen) < 40 and pages:
        path = left.pop()
        if path in seen:
            continue
        seen.add(path)
        page = client.get(path)
        assert page.status_code in (200, 303), (path, page.status_code)
        if "html" in page.headers.get("content-type", ""):
            left += [link for link in list_links(page.text) if link not in seen]
    assert set(pages) <= seen or len(seen) >= 40
    for path in set(NEEDS) - set(pages) - {"/"}:
        refused = client.get(path)
        assert refused.status_code == 403, path
        if pages:
            assert f'<a class="btn main-act" href="{pages[0]}">Go to ' in refused.text


def list_links(text: str) -> list[str]:
    """The addresses on this server that a page links to, each kind a few times; nothing that is only a place in it."""
    links_by_kind: dict[str, list[str]] = {}
    for link in map(unescape, re.findall(r'<a [^>]*href="([^"#][^"]*)"', text)):
        path = urlsplit(link).path
        if path.startswith("/") and not path.startswith("/static"):
            links_by_kind.setdefault(re.sub(r"[0-9a-f-]{8,}|\d+", "N", path), []).append(link)
    return [link for links in links_by_kind.values() for link in links[:4]]
