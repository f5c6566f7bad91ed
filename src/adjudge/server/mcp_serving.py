"""Serving the tools of ``adjudge mcp serve``: over stdio to the client that started it, or over HTTP with keys.

What an agent may ask is decided in ``mcp_tools.py`` (``AgentTools``).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from adjudge.config.file import read_config
from adjudge.config.ledger import open_ledger
from adjudge.config.server import ServerSettings, check_anonymous, read_server
from adjudge.errors import UsageError
from adjudge.formats.text import show
from adjudge.server.database import make_tables
from adjudge.server.key_cache import KeyCache
from adjudge.server.listening import listen, make_uvicorn_config, name_addresses
from adjudge.server.mcp_tools import AgentCaller, identify_all_as, make_mcp_server, name_run, open_agent_tools

MCP_PORT = 8319
"""The port where nothing else is said; that of ``adjudge serve`` is one less."""

_LONGEST_RUN = 80

_CALLER = "adjudge_caller"
"""The key under which a request's scope holds who sent it."""


async def serve_mcp(
    config: Path | None,
    *,
    http: bool = False,
    host: str | None = None,
    port: int | None = None,
    allow_anonymous: bool = False,
    run: str | None = None,
    gates: Collection[str] = (),
    unsafe: Collection[str] = (),
    on_ready: Callable[[str], None],
) -> None:
    """Serve the tools until the client leaves, or over ``http`` until the process is told to stop.

    Over HTTP a request needs a key with the scope ``judge``, unless ``allow_anonymous``, which is for this machine's
    own addresses alone. ``run`` names the client where no key does; by default it is another one each time.
    ``on_ready`` gets the address. Raises ``UsageError`` for a configuration or an address that cannot be used.
    """
    is_valid_run = run is None or (0 < len(run) <= _LONGEST_RUN and run.isascii() and run.isprintable())
    if not is_valid_run:
        raise UsageError(f"run is 1 to {_LONGEST_RUN} printable ASCII characters, got {show(run)}", argument="run")
    configuration = read_config(config)
    settings = read_server(configuration, host=host or "127.0.0.1", port=MCP_PORT if port is None else port)
    if allow_anonymous:
        check_anonymous(settings, configuration)
    local = identify_all_as(f"mcp:{run or secrets.token_hex(8)}")
    async with AsyncExitStack() as stack:
        ledger = open_ledger(configuration)
        stack.push_async_callback(ledger.aclose)
        await ledger.prepare()
        tools = open_agent_tools(configuration, settings, ledger, gates=gates, unsafe=unsafe)
        stack.push_async_callback(tools.aclose)
        if not http:
            await make_mcp_server(tools, local).run_stdio_async()
            return
        await ledger.transact(lambda _: None, tables=make_tables())
        keys = None if allow_anonymous else KeyCache(ledger)
        app = make_mcp_app(make_mcp_server(tools, local if keys is None else identify_by_key), settings, keys)
        listener = listen(settings)
        stack.callback(listener.close)
        on_ready(f"{name_addresses(settings, listener.getsockname()[1])}/mcp")
        await uvicorn.Server(make_uvicorn_config(app, settings)).serve(sockets=[listener])


def make_mcp_app(server: MCPServer, settings: ServerSettings, keys: KeyCache | None) -> ASGIApp:
    """Make the application that serves the tools over HTTP; with ``keys`` a request needs one of them.

    It answers only if the header ``Host`` is a name of the settings. Otherwise a page in somebody's browser could send
    requests here, if its name points to this machine (DNS rebinding).
    """
    # An IPv6 address stands in brackets there.
    names = [f"[{name}]" if ":" in name else name for name in sorted(settings.allowed_hosts)]
    app = server.streamable_http_app(
        host=settings.host,
        max_request_body_size=settings.largest_body,
        transport_security=TransportSecuritySettings(
            allowed_hosts=[spelling for name in names for spelling in (name, f"{name}:*")], allowed_origins=[]
        ),
    )
    if keys is not None:
        app.add_middleware(RequiresKey, keys=keys)
    return app


class RequiresKey:
    """Refuses requests without a key that may judge (401 or 403), and adds the caller to the scope of all others."""

    def __init__(self, app: ASGIApp, keys: KeyCache) -> None:
        self._app, self._keys = app, keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or pass on one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scheme, _, key_text = Headers(scope=scope).get("authorization", "").partition(" ")
        key = await self._keys.find(key_text.strip()) if scheme.lower() == "bearer" else None
        if key is None or not key.permissions.may("judge"):
            status, problem = (401, "a key is needed") if key is None else (403, "this needs the scope judge")
            headers = {"WWW-Authenticate": "Bearer"} if key is None else None
            await JSONResponse({"error": problem}, status, headers)(scope, receive, send)
            return
        # By this, the SDK lets a client use only the sessions that it began itself.
        user = AuthenticatedUser(AccessToken(token="", client_id=key.prefix, scopes=["judge"]))
        caller = AgentCaller(run=name_run(key.prefix), permissions=key.permissions)
        await self._app({**scope, "user": user, _CALLER: caller}, receive, send)


async def identify_by_key(ctx: Context) -> AgentCaller:
    """Return the agent that sent a call, which ``RequiresKey`` found by its key; raises ``ToolError`` without a key."""
    request: Any = ctx.request_context.request
    caller = None if request is None else request.scope.get(_CALLER)
    if not isinstance(caller, AgentCaller):
        raise ToolError("This needs a key.")
    return caller
