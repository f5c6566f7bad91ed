"""Checks around every request: its host, its origin, its size and its duration; and headers of every answer.

The numbers are in ``config/server.py``, and the check of the origin in ``csrf.py``.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Protocol

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response

from adjudge.config.server import ServerSettings
from adjudge.server.csrf import IS_HEAD, check_origin
from adjudge.server.metrics import Metrics
from adjudge.server.pages.errors import render_refusal
from adjudge.server.pages.page import wants_page
from adjudge.server.pages.static_files import is_static
from adjudge.server.problem import Problem, render_crash, render_problem
from adjudge.server.state import STATE, PageState

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
"""No inline script or style: judged content that got into a page as markup could still do nothing."""

_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not no-referrer: a browser would then send `Origin: null` with our own forms, which is refused.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}

_OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""Paths that answer to any host name, because load balancers ask by address. They tell nothing secret."""


class StateSource(Protocol):
    """A holder of the state that requests begin with."""

    def enter(self) -> PageState:
        """Return the current state, which stays open until ``leave``."""
        ...

    def leave(self, state: Any) -> None:
        """End the use of a state."""
        ...


class RequestProtection:
    """An ASGI application behind the checks that hold for every address."""

    def __init__(self, app: ASGIApp, holder: StateSource, metrics: Metrics) -> None:
        self._app, self._holder, self._metrics = app, holder, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection; a websocket is refused, for nothing here speaks it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1003})
            return
        state, started = self._holder.enter(), time.perf_counter()
        sender = _HeaderSender(send, state.settings, is_head=scope["method"] == "HEAD")
        method = _name_method(scope)
        if sender.is_head:
            # It is answered as a GET request, and the sender leaves out the body.
            scope = {**scope, "method": "GET", IS_HEAD: True}
        try:
            scope[STATE] = state
            await self._serve(scope, receive, sender, state.settings)
        finally:
            self._holder.leave(state)
            # Unknown addresses are counted together: otherwise a client could create any number of labels.
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.count_request(route, method, sender.status, time.perf_counter() - started)

    async def _serve(self, scope: Scope, receive: Receive, send: _HeaderSender, settings: ServerSettings) -> None:
        """Check a request, pass it on within the deadline, and answer every error as a problem."""
        request = Request(scope)
        try:
            try:
                _check_host(request, settings)
                _check_charset(request)
                check_origin(request, settings)
            except Problem as problem:
                # A page for a browser: most often it is somebody who opened the server under another address.
                await (await render_refusal(request, problem))(scope, receive, send)
                return
            async with asyncio.timeout(settings.deadline) as timer:
                # The deadline ends with the first byte of the answer, because an event stream may go on for long. One
                # that has passed already cannot be changed: the answer that says so is sent through here as well.
                send.on_start = lambda: None if timer.expired() else timer.reschedule(None)
                await self._app(scope, _BodyReceiver(receive, request, settings.largest_body), send)
        except Problem as problem:
            await _refuse(problem, scope, receive, send)
        except TimeoutError:
            late = Problem(
                504, f"this took longer than {settings.deadline:g} s, so nothing was decided", code="deadline"
            )
            await _refuse(late, scope, receive, send)
        except Exception as error:
            if send.started:
                raise
            # Answered here and not by the framework around this: its answer would lack the headers and not be counted.
            await _send(render_crash(error), scope, receive, send)


async def _refuse(problem: Problem, scope: Scope, receive: Receive, send: _HeaderSender) -> None:
    """Answer with a problem, unless an answer has begun."""
    if not send.started:
        await _send(render_problem(problem), scope, receive, send)


async def _send(response: Response, scope: Scope, receive: Receive, send: _HeaderSender) -> None:
    """Send an answer after the deadline's block has ended."""
    send.on_start = lambda: None  # the timer of the deadline is over, and cannot be rescheduled
    await response(scope, receive, send)


class _HeaderSender:
    """Sends the messages of an answer, with the headers that every answer has; to a HEAD request, without the body."""

    def __init__(self, send: Send, settings: ServerSettings, *, is_head: bool = False) -> None:
        self._send, self._settings, self.is_head = send, settings, is_head
        self.started = False
        self.status = 0
        self.on_start = lambda: None
        """Called when the answer begins."""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started, self.status = True, message["status"]
            self.on_start()
            headers = MutableHeaders(raw=message.setdefault("headers", []))
            for name, value in _HEADERS.items():
                headers[name] = value
            headers.setdefault("cache-control", "no-store")
            if self._settings.is_secure:
                headers["strict-transport-security"] = "max-age=31536000"
        elif self.is_head:
            return
        await self._send(message)
        if self.is_head:
            # The body is ended at once, because an answer such as an event stream would not end by itself.
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})


class _BodyReceiver:
    """Receives a body, and refuses one of more than ``most`` bytes: by its Content-Length, or once that many came."""

    def __init__(self, receive: Receive, request: Request, most: int) -> None:
        self._receive, self._most, self._received = receive, most, 0
        length = request.headers.get("content-length", "0")
        self._is_refused = not length.isdecimal() or int(length[:20]) > most

    async def __call__(self) -> Message:
        if self._is_refused:
            raise self._make_problem()
        message = await self._receive()
        self._received += len(message.get("body", b""))
        if self._received > self._most:
            self._is_refused = True
            raise self._make_problem()
        return message

    def _make_problem(self) -> Problem:
        """Make the problem (413) for a body that is too large."""
        # The remaining bytes are not read, so the connection has to end with the answer.
        return Problem(
            413, f"the body is larger than {self._most:,} bytes", code="too_large", headers={"Connection": "close"}
        )


def _name_method(scope: Scope) -> str:
    """Return the method for the metrics; rare ones are counted together, so that clients cannot create any number."""
    method: str = scope["method"]
    return method if method in ("GET", "HEAD", "POST", "OPTIONS") else "other"


def _check_host(request: Request, settings: ServerSettings) -> None:
    """Raise ``Problem`` (421) for a request whose header ``Host`` is not a name of this server.

    A site can have its name point to this machine (DNS rebinding). The browser then takes the site's pages and this
    server for one origin, and without this check the pages could read everything that needs no key.
    """
    path: str = request.scope["path"]
    # Static files are open: the page of this very error, which says the right address, needs its style sheet.
    if path in _OPEN_PATHS or is_static(path) or is_unix(request.scope):
        return
    hosts = request.headers.getlist("host")
    name = _drop_port(hosts[0]).lower() if len(hosts) == 1 else ""
    # Pages have fewer names than the API, so that a person is told the right address before they type a password.
    names = settings.page_hosts if wants_page(request) else settings.allowed_hosts
    if name not in names:
        raise Problem(
            421, "this server is not asked by that name; add it to hosts under [server] of adjudge.toml", code="host"
        )


def is_unix(scope: Scope) -> bool:
    """Return whether a request came over a Unix socket, which no browser can use: its server has no port."""
    server = scope.get("server")
    return server is not None and server[1] is None


def _check_charset(request: Request) -> None:
    """Raise ``Problem`` (415) for a form that names a charset, which no browser does.

    The framework would decode the form with any codec of Python that it names. Some of them raise errors, some return
    lone surrogates, and some are slow.
    """
    content_type = request.headers.get("content-type", "").lower()
    if content_type.startswith("multipart/") and "charset" in content_type:
        raise Problem(415, "a form is read as UTF-8; leave the charset out of its Content-Type", code="charset")


def _drop_port(host: str) -> str:
    """Return a header ``Host`` without its port."""
    if host.startswith("["):  # an IPv6 address
        return host[1:].partition("]")[0]
    return host.partition(":")[0]
