"""``adjudge view``: the pages of runs for one person on this machine, read-only, without a ledger and accounts.

The first browser that opens the printed address gets in: the secret in it is exchanged for a cookie. Other users of the
machine can connect to the port, and see nothing. The secret is on no command line, because other users of the
machine can read those: a browser is given a file that only this user can read, and that leads to the address.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import signal
import webbrowser
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import uvicorn
from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from adjudge.config.server import ServerSettings
from adjudge.errors import UsageError
from adjudge.formats.private_file import write_private
from adjudge.server.caller import preset_caller
from adjudge.server.csrf import is_opened_by_person
from adjudge.server.listening import listen, make_uvicorn_config
from adjudge.server.metrics import Metrics
from adjudge.server.pages.call_rates import router as call_rates_router
from adjudge.server.pages.compare import router as compare_router
from adjudge.server.pages.environment import find_template
from adjudge.server.pages.errors import add_page_handlers, render_refusal
from adjudge.server.pages.preferences import router as preferences_router
from adjudge.server.pages.run_case import router as case_router
from adjudge.server.pages.runs import router as runs_router
from adjudge.server.pages.static_files import find_static, is_static
from adjudge.server.pages.static_files import router as static_router
from adjudge.server.problem import Problem, add_handlers
from adjudge.server.protection import RequestProtection
from adjudge.server.run_folders import is_run
from adjudge.server.run_library import RunLibrary

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

HOST = "127.0.0.1"

OPEN = "/open/"
"""The beginning of the path that holds the secret."""

_SHUTDOWN = 2.0
"""Seconds that pages under way have once it is interrupted."""

_NOT_OPENED = (
    "this address works once, and only in the browser that opened it; end adjudge view with Ctrl-C, start it again, "
    "and open the address that it prints"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewState:
    """The state of ``adjudge view``, which its requests have in place of a server's state."""

    settings: ServerSettings
    library: RunLibrary


@dataclass(slots=True, kw_only=True)
class ViewHolder:
    """Holds the one state of ``adjudge view`` and the secret that lets one browser in.

    In place of a server's ``StateHolder``, which may hold several states after a reload.
    """

    state: ViewState
    secret: str | None = field(default_factory=partial(secrets.token_urlsafe, 32))
    """The secret in the printed address; ``None`` once it was used."""
    cookie: str = field(default_factory=partial(secrets.token_urlsafe, 32), repr=False)

    def enter(self) -> ViewState:
        """Return the state."""
        return self.state

    def leave(self, state: ViewState) -> None:
        """End the use of the state."""

    def exchange(self, secret: str) -> bool:
        """Return whether a secret is the right one; the right one cannot be used again."""
        if self.secret is None or not hmac.compare_digest(secret.encode(), self.secret.encode()):
            return False
        self.secret = None
        return True


class ViewSession:
    """An ASGI application that only answers a browser with the cookie."""

    def __init__(self, app: ASGIApp, holder: ViewHolder) -> None:
        self._app, self._holder = app, holder

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request without the cookie; pass on one with it, and any for a static file, to the application."""
        if scope["type"] != "http" or is_static(scope["path"]):
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        response = await self._answer(request)
        if response is not None:
            await response(scope, receive, send)
            return
        preset_caller(scope)
        await self._app(scope, receive, send)

    async def _answer(self, request: Request) -> Response | None:
        """Answer a request that does not reach the pages: one that is refused, or that opens the printed address.

        ``None`` if the request may go on to a page.
        """
        origin = request.headers.get("origin")
        # This holds for requests that only read, too: another site's script has no business with these pages.
        if origin is not None and origin != self._holder.state.settings.base_url:
            return await render_refusal(
                request, Problem(403, "this request comes from another site", code="cross_site")
            )
        path: str = request.scope["path"]
        has_cookie = self._has_cookie(request)
        if path.startswith(OPEN):
            return await self._open(request, path.removeprefix(OPEN), has_cookie=has_cookie)
        if not has_cookie:
            return await render_refusal(request, Problem(403, _NOT_OPENED, code="not_opened"))
        return _make_lead_page("/runs") if path == "/" else None

    async def _open(self, request: Request, secret: str, *, has_cookie: bool) -> Response:
        """Exchange the secret in an address for the cookie.

        Only a person who opens the page uses the secret up, and not a browser that prefetches it.
        """
        if has_cookie:
            return _make_lead_page("/runs")
        if not is_opened_by_person(request) or not self._holder.exchange(secret):
            return await render_refusal(request, Problem(403, _NOT_OPENED, code="not_opened"))
        response = _make_lead_page("/runs")
        response.set_cookie(
            name_cookie(self._holder.state.settings.port),
            self._holder.cookie,
            path="/",
            httponly=True,
            samesite="strict",
        )
        return response

    def _has_cookie(self, request: Request) -> bool:
        """Return whether a request has the cookie that the secret was exchanged for."""
        cookie = request.cookies.get(name_cookie(self._holder.state.settings.port), "")
        return hmac.compare_digest(cookie.encode(), self._holder.cookie.encode())


def name_cookie(port: int) -> str:
    """Name the cookie of a port: browsers keep the cookies of all ports of a machine together."""
    return f"adjudge-view-{port}"


def _make_lead_page(path: str) -> Response:
    """Make a page that leads the browser on to a path, in place of a redirect.

    A browser does not send a ``SameSite=Strict`` cookie along a redirect that began elsewhere, such as in the file that
    opened the browser.
    """
    return HTMLResponse(find_template("lead.html").render(path=path, static=find_static()))


def make_view_app(library: RunLibrary, port: int) -> tuple[FastAPI, ViewHolder]:
    """Make the application that shows these runs at a port of this machine; return it with the holder of its secret."""
    settings = ServerSettings(host=HOST, port=port, shutdown=_SHUTDOWN)
    holder = ViewHolder(state=ViewState(settings=settings, library=library))
    app = FastAPI(
        title="adjudge view",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        middleware=[
            Middleware(RequestProtection, holder=holder, metrics=Metrics()),
            Middleware(ViewSession, holder=holder),
        ],
        redirect_slashes=False,
    )
    add_handlers(app)
    add_page_handlers(app)
    for router in (static_router, preferences_router, runs_router, compare_router, case_router, call_rates_router):
        app.include_router(router)
    return app, holder


# ---------------------------------------------------------------- which runs


def find_named_runs(folders: Sequence[Path]) -> Mapping[str, Path]:
    """Find the runs in the folders that the user named; raises ``UsageError`` for a folder that holds no run."""
    for folder in folders:
        if not is_run(folder.resolve()):
            raise UsageError(f"{folder} holds no run; name folders that adjudge run wrote (--out)")
    # Resolved once: a link that the user named is followed, but none that is put in its place afterwards.
    return _name_folders(dict.fromkeys(folder.resolve() for folder in folders))


def find_runs_below(folder: Path) -> Mapping[str, Path]:
    """Find the runs in a folder and in its folder ``runs``, the newest first by their names."""
    parents = [parent for parent in (folder, folder / "runs") if parent.is_dir() and not parent.is_symlink()]
    folders = [path for parent in parents for path in parent.iterdir() if path.is_dir() and is_run(path)]
    return _name_folders(sorted(folders, key=lambda path: (path.name, str(path)), reverse=True))


def _name_folders(folders: Sequence[Path] | Mapping[Path, object]) -> Mapping[str, Path]:
    """Give each folder a name of its own: the folder's name, with a number if an earlier folder has the same name."""
    name_counts: Counter[str] = Counter()
    folders_by_name = {}
    for folder in folders:
        name_counts[folder.name] += 1
        number = name_counts[folder.name]
        folders_by_name[folder.name if number == 1 else f"{folder.name} ({number})"] = folder
    return folders_by_name


# ---------------------------------------------------------------- running


async def view(
    scan: Callable[[], Mapping[str, Path]], *, opens: bool, on_ready: Callable[[str], None], port: int = 0
) -> None:
    """Show runs until SIGINT or SIGTERM, at a port that is free.

    ``on_ready`` gets the address with its secret; ``opens`` opens a browser too. Raises ``UsageError`` where the
    machine lets nobody listen.
    """
    listener = listen(ServerSettings(host=HOST, port=port))
    app, holder = make_view_app(RunLibrary(scan=scan, writes=False), listener.getsockname()[1])
    settings = holder.state.settings
    server = uvicorn.Server(make_uvicorn_config(app, settings))
    address = f"{settings.base_url}{OPEN}{holder.secret}"
    # As in serving.py: a signal may come before uvicorn sets its handlers, and uvicorn raises it again at its end.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, server.handle_exit)
    on_ready(address)
    with _prepare_file(address) as file:
        opening = None
        if opens:
            # A bare task: it runs beside the server, and is cancelled after it. A browser in the terminal may run long.
            opening = asyncio.create_task(asyncio.to_thread(webbrowser.open, file.as_uri()))
        await server.serve(sockets=[listener])
        if opening is not None:
            opening.cancel()


@contextmanager
def _prepare_file(address: str) -> Iterator[Path]:
    """Make a file that leads a browser to an address, and remove it at the end of the block.

    The file is given to the browser in place of the address, because other users can read its command line, and the
    address holds the secret.
    """
    with TemporaryDirectory(prefix="adjudge-view-", ignore_cleanup_errors=True) as folder:  # of mode 0700
        file = Path(folder) / "open.html"
        write_private(file, find_template("lead.html").render(path=address, static="").encode())
        yield file
