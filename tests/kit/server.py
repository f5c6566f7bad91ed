"""A real server on 127.0.0.1 with a configuration and a ledger of its own, and people and programs that ask it."""

from __future__ import annotations

import asyncio
import re
import secrets
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pytest

import adjudge.server as serving
from adjudge import Ledger
from kit.http_client import open_http_client
from kit.listening import listen
from kit.patience import HANG, wait_for

httpx = pytest.importorskip("httpx")
uvicorn = pytest.importorskip("uvicorn")
argon2 = pytest.importorskip("argon2")
for needed in ("fastapi", "prometheus_client"):
    pytest.importorskip(needed)

PASSWORD = "correct horse battery staple"

QUICK = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
"""Of the same kind as the server's own, which takes a tenth of a second, several times in a test."""

CONFIG = """
[gates.publish]
rules = [{name = "length", max = 40}]

[gates.held]
rules = [{name = "length", max = 40}]
on_failed = "ask"
ask = {approvers = ["Ana", "Ben"], show_content = true}

[ledger]
url = "sqlite:///adjudge.db"
store_content = "full"
"""


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """Return what a coroutine returns, on a loop and a thread of its own: a browser's test has a loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningServer:
    """A server that answers at ``url``; ``folder`` holds its ``adjudge.toml`` and ``adjudge.db``."""

    url: str
    folder: Path
    app: Any = field(repr=False, default=None)
    ledger: str | None = None
    """Its database, where that is not ``adjudge.db``."""
    clients: list[httpx.Client] = field(repr=False, default_factory=list)
    """Closed with the server."""

    @property
    def ledger_url(self) -> str:
        return self.ledger or f"sqlite:///{self.folder / 'adjudge.db'}"

    def change(self, work: Callable[[Ledger], Coroutine[Any, Any, Any]]) -> Any:
        """Do what a function does with the server's database, from outside, as the command line does."""

        async def do() -> Any:
            async with Ledger(self.ledger_url) as ledger:
                return await work(ledger)

        return run(do())

    def make_key(self, *scopes: str, name: str = "ci", expires_at: Any = None, **limits: Any) -> str:
        """A new key, with all scopes of people where none is named."""
        permissions = serving.make_permissions(scopes or serving.ACCOUNT_SCOPES, **limits)
        return self.change(
            lambda ledger: serving.create_key(ledger, name=name, permissions=permissions, expires_at=expires_at)
        )[1]

    def add_account(self, name: str, *scopes: str, **limits: Any) -> None:
        """A new account with ``PASSWORD``; its approver's and rater's name are its own unless ``limits`` says."""
        options = {"approver": name, "rater": name} | limits
        permissions = serving.make_permissions(scopes or serving.ACCOUNT_SCOPES, **options)
        self.change(lambda ledger: serving.add_account(ledger, name=name, password=PASSWORD, permissions=permissions))

    def open_client(self, *, key: str | None = None, **more: Any) -> httpx.Client:
        """A program's client, with a key or without."""
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self.clients.append(open_http_client(self.url, headers=headers | more.pop("headers", {}), **more))
        return self.clients[-1]

    def open_browser(self, **more: Any) -> httpx.Client:
        """A client that accepts pages, without a session."""
        return self.open_client(headers={"Accept": "text/html"}, **more)

    def sign_in(self, name: str, password: str = PASSWORD, *, has_scripts: bool = True) -> httpx.Client:
        """A browser's client that holds the session of an account; it accepts pages as a browser does.

        With scripts it makes a key as they do, and ``find_token`` sends it along.
        """
        client = self.open_browser()
        page = client.get("/signin").text
        form = {"name": name, "password": password, "csrf_token": read_token(client, page)}
        if has_scripts and 'name="browser_key"' in page:
            _KEYS[client] = form["browser_key"] = secrets.token_urlsafe(32)
        answer = client.post("/signin", data=form)
        assert answer.status_code == 303, answer.text
        return client


_KEYS: WeakKeyDictionary[httpx.Client, str] = WeakKeyDictionary()
"""The keys that the scripts of browsers would have stored."""


def find_token(client: httpx.Client, path: str = "/signin") -> str:
    """The token in the forms of a page, with the key of the browser."""
    return read_token(client, client.get(path).text)


def read_token(client: httpx.Client, page: str) -> str:
    """The token in the forms of a page that was read, with the key of the browser."""
    token = read_fields(client, page).get("csrf_token")
    assert token is not None
    return token


def read_fields(client: httpx.Client, form: str) -> dict[str, str]:
    """The hidden fields of a form as a browser sends them: the token with its key, where it has one."""
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form))
    if client in _KEYS and "csrf_token" in fields:
        fields["csrf_token"] += f".{_KEYS[client]}"
    return fields


def sign_in(page: Any, name: str, path: str) -> None:
    """Sign somebody in on a page of a browser, and wait until the page that they asked for is there."""
    page.goto(f"/signin?next={path}")
    page.fill("#name", name)
    page.fill("#password", PASSWORD)
    page.click("button.main-act")
    page.wait_for_url(lambda url: "/signin" not in url)


def enter_password(page: Any) -> None:
    """Send a form once more with the password, which a server on plain http asks of a browser without scripts."""
    page.fill("#session_password", PASSWORD)
    page.get_by_role("button", name="Send it").click()


def approve(client: httpx.Client, ident: str, **changes: Any) -> httpx.Response:
    """Look at a request over HTTP, and approve it as it was shown."""
    shown = client.get(f"/v1/approvals/{ident}").json()["shown"]
    body = {"approved": True, "reason": "fine", "seen": shown, **changes}
    return client.post(f"/v1/approvals/{ident}/votes", json=body)


@contextmanager
def run_server(
    folder: Path, config: str = CONFIG, *, allow_anonymous: bool = False, ledger: str | None = None
) -> Iterator[RunningServer]:
    """A server over a configuration in a folder, on a free port, until the block ends."""
    (folder / "adjudge.toml").write_text(config, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("adjudge.server.accounts._make_hasher", lambda: QUICK)
        yield from _serve(folder, allow_anonymous=allow_anonymous, ledger=ledger)


def hash_dearly(patch: pytest.MonkeyPatch) -> None:
    """Let a server hash as it does outside the tests: for those that look at the time it takes."""
    patch.setattr("adjudge.server.accounts._make_hasher", argon2.PasswordHasher)


def _serve(folder: Path, *, allow_anonymous: bool, ledger: str | None) -> Iterator[RunningServer]:
    listener = listen()
    port = listener.getsockname()[1]
    app = serving.make_app(folder / "adjudge.toml", port=port, allow_anonymous=allow_anonymous)
    running = RunningServer(url=f"http://127.0.0.1:{port}", folder=folder, app=app, ledger=ledger)
    with serve_app(app, listener):
        try:
            yield running
        finally:
            for client in running.clients:
                client.close()


@contextmanager
def serve_app(app: Any, listener: socket.socket) -> Iterator[None]:
    """Serve an application on a thread of its own, until the block ends."""
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="on", server_header=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        wait_for(lambda: server.started or not thread.is_alive())
        assert server.started, "the server did not start"
        yield
    finally:
        server.should_exit = True
        thread.join(timeout=HANG)
        listener.close()
