"""MCP servers whose tools a guard checks, in this process and in others, and the official client that calls them."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from adjudge import Gate
from adjudge.guards import InputFirewall
from kit.firewalls import chain, script, threaten
from kit.house import TESTS
from kit.listening import listen
from kit.tool_guards import Shop, open_shop

KEY = "a key of the tests, which is long enough"
"""Seals what clients keep of held calls, so that another process of the same server can open it."""

TOKENS = {"token-of-ana": "ana", "token-of-eve": "eve"}


def make_server(shop: Shop, *, run: Callable[[str], None] | None = None, **options: Any) -> Any:
    """A server of the official SDK with the guard in front of its tools."""
    from mcp.server.mcpserver import MCPServer
    from mcp.server.request_state import RequestStateSecurity

    from adjudge.integrations.mcp import GateExtension

    note = shop.ran.append if run is None else run
    description = options.pop("description", "Run a command.")
    gate = {name: options.pop(name) for name in ("identify", "media", "server", "principal") if name in options}
    options.setdefault("extensions", [GateExtension(shop.guard, **gate)])
    security = RequestStateSecurity(keys=[KEY])
    server = MCPServer("files", log_level="CRITICAL", request_state_security=security, **options)

    @server.tool()
    def delete_file(path: str) -> str:
        """Delete a file."""
        note(f"delete {path}")
        return f"deleted {path}"

    @server.tool(description=description)
    def shell(cmd: str) -> str:
        note(f"shell {cmd}")
        return f"ran {cmd}"

    @server.tool()
    def unlisted() -> str:
        """A tool that the guard does not name."""
        note("unlisted")
        return "ran"

    return server


class User:
    """The user of a client, who answers what the server asks, and what happens before the answer."""

    def __init__(
        self,
        action: str = "accept",
        *,
        before: Callable[[], Awaitable[Any]] | None = None,
        content: Mapping[str, Any] | None = None,
    ) -> None:
        self.action = action
        self.before = before
        self.content = {"approve": True} if content is None else dict(content)
        self.questions: list[str] = []

    async def answer(self, _: Any, params: Any) -> Any:
        import mcp_types

        self.questions.append(params.message)
        if self.before is not None and len(self.questions) == 1:
            await self.before()
        # Whatever the action is: some clients send what was filled in along with "decline".
        return mcp_types.ElicitResult(action=self.action, content=self.content)


def open_client(server: Any, user: User | None = None, **options: Any) -> Any:
    """The official client of a server; without a user it cannot be asked anything."""
    from mcp import Client

    callbacks = {} if user is None else {"elicitation_callback": user.answer}
    return Client(server, **callbacks, **options)


def read_text(result: Any) -> str:
    """Read what the model reads."""
    return " ".join(block.text for block in result.content if block.type == "text")


def use(work: Callable[[Shop], Awaitable[Any]], url: str | None = None, **options: Any) -> Any:
    """Return what an async function makes of a shop."""

    async def go(url: str) -> Any:
        async with open_shop(url, **options) as shop:
            return await work(shop)

    with TemporaryDirectory() as folder:
        return asyncio.run(go(url or f"sqlite:///{folder}/adjudge.db"))


# ---------------------------------------------------------------- servers in processes of their own


@dataclass(frozen=True)
class Verifier:
    """Knows two principals by their tokens, and says of each what a token's claims say."""

    claims: Mapping[str, Any] | None

    async def verify_token(self, token: str) -> Any:
        from mcp.server.auth.provider import AccessToken

        if token not in TOKENS:
            return None
        claims = None if self.claims is None else dict(self.claims)
        return AccessToken(token=token, client_id="agent", scopes=[], subject=TOKENS[token], claims=claims)


SIGNED_IN = {"auth_time": 1_764_460_800}
"""The claims of the token of somebody who signed in in a browser."""


def require_sign_in(claims: Mapping[str, Any] | None = SIGNED_IN) -> dict[str, Any]:
    """Options of a server whose clients sign in, with tokens that have these claims."""
    from mcp.server.auth.settings import AuthSettings

    place = "http://127.0.0.1:1/"
    # Older versions have no validate_token_resource, and newer ones warn without it.
    known = {"validate_token_resource": False} if "validate_token_resource" in AuthSettings.model_fields else {}
    settings = AuthSettings.model_validate({"issuer_url": place, "resource_server_url": place, **known})
    return {"auth": settings, "token_verifier": Verifier(claims)}


def main() -> None:
    """Serve over stdio, or over HTTP on a port that the system chooses and this prints."""
    settings = json.loads(sys.argv[1])
    asyncio.run(serve(settings))


def prepare(folder: Path, **more: Any) -> dict[str, Any]:
    """Settings of a server that keeps its ledger and its list of calls in a folder."""
    return {"url": f"sqlite:///{folder / 'adjudge.db'}", "ran": str(folder / "ran"), **more}


def read_ran(settings: Mapping[str, Any]) -> list[str]:
    """Read what the tools of a server were called with."""
    path = Path(settings["ran"])
    return path.read_text("utf-8").splitlines() if path.exists() else []


async def decide_elsewhere(settings: Mapping[str, Any], approved: bool) -> None:
    """Decide as another process does."""
    async with open_shop(settings["url"]) as shop:
        await shop.decide(approved)


@asynccontextmanager
async def open_server(settings: Mapping[str, Any]) -> AsyncIterator[Any]:
    """The server that settings describe; a tool's body adds a line to the file ``ran``."""
    from adjudge.integrations.mcp import GateMiddleware

    ran = Path(settings["ran"])

    def note(text: str) -> None:
        with ran.open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")

    options = require_sign_in() if settings.get("signs_in") else {}
    options |= {name: settings[name] for name in ("description",) if name in settings}
    if settings.get("identify"):
        options["identify"] = lambda _: settings["identify"]
    guards: dict[str, Any] = {"match": settings.get("match", "call")}
    if "poison" in settings:
        guards["prompts"] = Gate("prompts", rules=[{"not_contains": [settings["poison"]]}])
    if "threat" in settings:
        guards["tools"] = {"shell": InputFirewall(chain(script(threaten("cmd", settings["threat"]))))}
    async with open_shop(settings["url"], **guards) as shop:
        if "poison" in settings:
            options |= {"extensions": [], "middleware": [GateMiddleware(shop.guard)]}
        yield make_server(shop, run=note, **options)


async def serve(settings: Mapping[str, Any]) -> None:
    """Serve until the client leaves, or for ever."""
    logging.disable(logging.ERROR)
    async with open_server(settings) as server:
        if not settings.get("http"):
            await server.run_stdio_async()
            return
        import uvicorn

        app = server.streamable_http_app(stateless_http=bool(settings.get("stateless")))
        listener = listen()
        print(listener.getsockname()[1], flush=True)  # noqa: T201 - for whoever started this process
        await uvicorn.Server(uvicorn.Config(app, log_level="critical")).serve(sockets=[listener])


def write_command(settings: Mapping[str, Any]) -> list[str]:
    """The command of a server process."""
    spec = find_spec("adjudge")
    assert spec is not None
    assert spec.origin is not None
    roots = [str(Path(spec.origin).parents[1]), str(TESTS)]
    code = f"import sys; sys.path[:0] = {roots!r}; from kit import mcp; mcp.main()"
    return [sys.executable, "-c", code, json.dumps(dict(settings))]


def open_stdio(settings: Mapping[str, Any]) -> Any:
    """A transport to a server process over its standard input and output."""
    from mcp import StdioServerParameters
    from mcp.client.stdio import stdio_client

    command, *arguments = write_command(settings)
    return stdio_client(StdioServerParameters(command=command, args=arguments, env=dict(os.environ)))


@asynccontextmanager
async def serve_http(settings: Mapping[str, Any]) -> AsyncIterator[str]:
    """The address of a server process over HTTP, which ends with the block."""
    command = write_command({**settings, "http": True})
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        port = (await process.stdout.readline()).decode().strip()
        assert port, "the server did not start"
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        await process.communicate()


@asynccontextmanager
async def serve_script(path: Path, *arguments: str, cwd: Path, port: int = 0) -> AsyncIterator[str]:
    """The address of a script's ``server`` over HTTP, in a process of its own that ends with the block."""
    words = [sys.executable, "-c", SERVE_SCRIPT.format(path=str(path), port=port), *arguments]
    process = await asyncio.create_subprocess_exec(*words, stdout=subprocess.PIPE, cwd=cwd)
    try:
        assert process.stdout is not None
        chosen = (await process.stdout.readline()).decode().strip()
        assert chosen, "the server did not start"
        yield f"http://127.0.0.1:{chosen}/mcp"
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()


SERVE_SCRIPT = """
import runpy, socket, uvicorn

server = runpy.run_path({path!r})["server"]
listener = socket.create_server(("127.0.0.1", {port}))
print(listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="critical")).run(sockets=[listener])
"""


@asynccontextmanager
async def serve_http_here(app: Any) -> AsyncIterator[str]:
    """The address of a server's application over HTTP in this process, which ends with the block."""
    import uvicorn

    listener = listen()
    running = uvicorn.Server(uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1))
    async with asyncio.TaskGroup() as group:
        group.create_task(running.serve(sockets=[listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        finally:
            running.should_exit = True


@asynccontextmanager
async def open_http(url: str, token: str | None = None, headers: Mapping[str, str] | None = None) -> AsyncIterator[Any]:
    """A transport to an address, with a token and headers where they are given."""
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    sent = {**(headers or {}), **({} if token is None else {"Authorization": f"Bearer {token}"})}
    async with create_mcp_http_client(headers=sent) as client, streamable_http_client(url, http_client=client) as io:
        yield io
