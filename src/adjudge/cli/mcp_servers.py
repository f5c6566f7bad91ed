"""Connections to the MCP servers that a command line names, by their address or by the command that starts them."""

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
from adjudge.models.providers.proxy import find_proxy

if TYPE_CHECKING:
    import httpx2
    from mcp import Client

    from adjudge.mcp.pins import Pins


async def read_server(words: list[str], timeout: float) -> Pins:
    """Connect to a server, read its instructions, tools and prompts, and disconnect.

    ``words`` are the server's address, or the words of the command that starts it. Raises ``UsageError`` for a server
    that cannot be read within ``timeout`` seconds.
    """
    check_installed()
    from adjudge.mcp.client import read_pins

    transport, source = _make_transport(words)
    try:
        async with asyncio.timeout(timeout), _make_client(transport) as client:
            return await read_pins(client, source=source)
    except Exception as error:  # noqa: BLE001 - a transport raises errors of its own, which may come in a group
        raise _describe_failure(source, _find_first(error)) from None


@asynccontextmanager
async def open_server(words: list[str], timeout: float) -> AsyncIterator[tuple[Client, str]]:
    """Connect to a server, and yield a client, and the server's address or command as pins record it.

    ``words`` are the server's address, or the words of the command that starts it. ``timeout`` is for connecting, in
    seconds. Raises ``UsageError`` for a server that cannot be reached. If the connection is lost later, only calls of
    the client raise.
    """
    check_installed()
    transport, source = _make_transport(words)
    connected: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
    block_has_ended = asyncio.Event()

    async def keep_connection_open() -> None:
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(timeout):
                client = await stack.enter_async_context(_make_client(transport))
            connected.set_result(client)
            await block_has_ended.wait()

    # A bare task: a transport that fails cancels the task that opened it, which must not be the one that calls tools.
    connection_task = asyncio.create_task(keep_connection_open())
    try:
        await asyncio.wait([connection_task, connected], return_when=asyncio.FIRST_COMPLETED)
        if not connected.done():
            raise _describe_failure(source, _find_first(connection_task.exception() or ConnectionError()))
        yield connected.result(), source
    finally:
        block_has_ended.set()
        if not connected.done():
            connection_task.cancel()
        await asyncio.wait([connection_task])  # until a server that was started has ended
        if not connection_task.cancelled():
            connection_task.exception()  # retrieved, or asyncio would report the error that the calls have raised


def _make_transport(words: list[str]) -> tuple[Any, str]:
    """Make the transport to a server; also return its address (as pins record it) or the command that starts it."""
    from mcp import StdioServerParameters
    from mcp.client.stdio import stdio_client

    if len(words) == 1 and words[0].startswith(("http://", "https://")):
        return _open_http(words[0]), name_source(words[0])
    # The transport, and not the parameters: a client of one version of the SDK does not take these.
    return stdio_client(StdioServerParameters(command=words[0], args=words[1:])), shlex.join(words)


@asynccontextmanager
async def _open_http(address: str) -> AsyncIterator[Any]:
    """Open the streams to a server at an address.

    The HTTP client is made here, because the SDK's own one would follow the proxy variables of the environment, and
    adjudge has rules of its own for proxies.
    """
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
            event_hooks={"request": [_keep_on_this_machine]},
        ) as client,
        streamable_http_client(str(url), http_client=client) as streams,
    ):
        yield streams


async def _keep_on_this_machine(request: httpx2.Request) -> None:
    """Send a request for a name of this machine, such as ``app.localhost``, to its loopback address.

    Else a name server could send it to another machine. The certificate is still checked for the name.
    """
    host = request.url.host
    loopback_host = normalise_loopback(host)
    if loopback_host is not None:
        request.extensions = {**request.extensions, "sni_hostname": host}
        request.url = request.url.copy_with(host=loopback_host)


def _make_client(transport: Any) -> Client:
    from mcp import Client

    return Client(transport)


def _describe_failure(source: str, error: BaseException) -> UsageError:
    """Make the error to raise for a server that cannot be read, from the error that its transport raised."""
    reason = str(error) if isinstance(error, UsageError) else type(error).__name__
    return UsageError(f"the MCP server {show(flatten(source, 200))} cannot be read: {reason}", argument="server")


def _find_first(error: BaseException) -> BaseException:
    """Return the first error of a group of errors, however deep it is nested, or the error itself."""
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
