"""Servers of MCP that a command line names: by their address, or by the command that starts them."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from adjudge.errors import UsageError
from adjudge.formats.loopback import normalise_loopback
from adjudge.formats.text import flatten, show
from adjudge.mcp.pins import name_source
from adjudge.models.providers.route import find_proxy

if TYPE_CHECKING:
    import httpx2
    from mcp import Client

    from adjudge.mcp.pins import Pins


async def read_server(words: list[str], timeout: float) -> Pins:
    """Connect to a server, read what it offers and leave it; raises ``UsageError`` if that cannot be done."""
    check_installed()
    from adjudge.mcp.client import read_pins

    target, source = _find_server(words)
    try:
        async with asyncio.timeout(timeout), _make_client(target) as client:
            return await read_pins(client, source=source)
    except Exception as error:  # noqa: BLE001 - what a transport raises is its own, and may come in a group
        raise _describe_failure(source, _find_first(error)) from None


@asynccontextmanager
async def open_server(words: list[str], timeout: float) -> AsyncIterator[tuple[Client, str]]:
    """Connect to a server, and yield the client and where the server comes from, as pins have it.

    ``timeout`` is for connecting, in seconds. Raises ``UsageError`` for a server that cannot be reached. If the
    connection is lost later, calls by the client raise, and nothing else does.
    """
    check_installed()
    target, source = _find_server(words)
    connected: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
    is_left = asyncio.Event()

    async def hold() -> None:
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(timeout):
                client = await stack.enter_async_context(_make_client(target))
            connected.set_result(client)
            await is_left.wait()

    # A bare task: a transport that fails cancels the task that opened it, which must not be the one that calls tools.
    holding = asyncio.create_task(hold())
    try:
        await asyncio.wait([holding, connected], return_when=asyncio.FIRST_COMPLETED)
        if not connected.done():
            raise _describe_failure(source, _find_first(holding.exception() or ConnectionError()))
        yield connected.result(), source
    finally:
        is_left.set()
        if not connected.done():
            holding.cancel()
        await asyncio.wait([holding])  # until a server that was started has ended
        if not holding.cancelled():
            holding.exception()  # seen, so that the loop does not report it: the calls have


def _find_server(words: list[str]) -> tuple[Any, str]:
    """Return what a client connects to, and where that server comes from."""
    from mcp import StdioServerParameters
    from mcp.client.stdio import stdio_client

    if len(words) == 1 and words[0].startswith(("http://", "https://")):
        return _open_http(words[0]), name_source(words[0])
    # A type of its own in every version: one of them takes no parameters of a command.
    return stdio_client(StdioServerParameters(command=words[0], args=words[1:])), shlex.join(words)


@asynccontextmanager
async def _open_http(address: str) -> AsyncIterator[Any]:
    """Open the streams to a server at an address; the SDK's own client would go by the proxy variables alone."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client
    from yarl import URL

    url = URL(address)
    proxy = find_proxy(url)
    async with (
        httpx2.AsyncClient(
            trust_env=False,
            proxy=None if proxy is None else str(proxy),
            verify=httpx2.create_ssl_context(),
            timeout=httpx2.Timeout(30.0, read=300.0),  # the SDK's: a server may hold a stream open
            event_hooks={"request": [_keep_here]},
        ) as client,
        streamable_http_client(str(url), http_client=client) as streams,
    ):
        yield streams


async def _keep_here(request: httpx2.Request) -> None:
    """Look for this machine's names nowhere else; the server and its certificate are asked by the name given."""
    host = request.url.host
    if (here := normalise_loopback(host)) is not None:
        request.extensions = {**request.extensions, "sni_hostname": host}
        request.url = request.url.copy_with(host=here)


def _make_client(target: Any) -> Client:
    from mcp import Client

    return Client(target)


def _describe_failure(source: str, reason: BaseException) -> UsageError:
    kind = str(reason) if isinstance(reason, UsageError) else type(reason).__name__
    return UsageError(f"the MCP server {show(flatten(source, 200))} cannot be read: {kind}", argument="server")


def _find_first(error: BaseException) -> BaseException:
    """Return the first error of a group, or the error itself."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def check_installed() -> None:
    """Raise ``UsageError`` unless the official SDK of MCP is installed."""
    from importlib.util import find_spec

    if find_spec("mcp") is None or find_spec("mcp_types") is None:
        raise UsageError(
            "this command needs the package mcp, 2.0 or later, which this installation does not have; to have it, "
            "pip install 'adjudge[mcp]'"
        )
