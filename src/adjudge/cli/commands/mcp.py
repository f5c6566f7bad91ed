"""``adjudge mcp``: serve gates and judges to agents, pin what a server of MCP offers, and see what changed since."""

from __future__ import annotations

import asyncio
import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adjudge.cli import options as option
from adjudge.cli.command_groups import make_group
from adjudge.cli.output import note, print_line, write_json
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_seconds
from adjudge.formats.text import flatten, show

if TYPE_CHECKING:
    from adjudge.mcp.pins import Pins

ServerWords = Annotated[list[str], typer.Argument(metavar="SERVER", hidden=True)]

PinFile = Annotated[str, typer.Argument(metavar="FILE", hidden=True)]

Timeout = Annotated[float, typer.Option("--timeout", metavar="SECONDS", help="Seconds for reading the server.")]


def pin(server: ServerWords, timeout: Timeout = 30.0) -> int:
    """Write all that a server offers to standard output, for GuardedClient to hold it to.

    SERVER is its address, or after -- the command that starts it. Read what is written before you use it: it is what
    the model will be told. Everything outside of ASCII is written as an escape, so that nothing is invisible.
    """
    check_seconds("timeout", timeout)
    write_json(asyncio.run(read_server(server, timeout)).to_dict())
    return 0


def check(file: PinFile, server: ServerWords, timeout: Timeout = 30.0) -> int:
    """List what a server offers otherwise than it was pinned.

    FILE holds what adjudge mcp pin wrote. SERVER is the server's address, or after -- the command that starts it.

    Exit status: 0 nothing changed, 1 something did, 2 the server or the file cannot be read.
    """
    check_seconds("timeout", timeout)
    from adjudge.mcp.pins import Pins

    changes = describe_changes(Pins.read(file), asyncio.run(read_server(server, timeout)))
    for line in changes:
        print_line(line)
    return 1 if changes else 0


def serve(
    config: option.ConfigFile = None,
    http: Annotated[
        bool, typer.Option("--http", help="Serve over HTTP, and not to the client that starts it.")
    ] = False,
    host: Annotated[
        str | None, typer.Option("--host", metavar="H", help="With --http, where to listen; by default 127.0.0.1.")
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", metavar="P", help="With --http, the port; by default 8319.")
    ] = None,
    allow_anonymous: Annotated[
        bool,
        typer.Option("--allow-anonymous", help="With --http, ask for no key. Only on this machine's own addresses."),
    ] = False,
    gate: Annotated[
        list[str] | None, typer.Option("--gate", metavar="NAME", help="Offer this gate alone; can be repeated.")
    ] = None,
    run: Annotated[
        str | None,
        typer.Option("--run", metavar="NAME", help="Without a key, whose requests these are, also after a restart."),
    ] = None,
    unsafe: Annotated[
        list[str] | None,
        typer.Option(
            "--unsafe", metavar="GATE.OPTION", help="Offer a gate that could let an agent's content pass unseen."
        ),
    ] = None,
) -> int:
    """Serve the gates and judges of adjudge.toml to agents, as tools of MCP.

    The tools are evaluate, check and wait_for_approval. Without --http the server talks to the client that starts it,
    over standard input and output. With --http, clients need a key with the scope judge (adjudge keys create). No tool
    approves anything.

    Exit status: 0 the client left, or the server was stopped, 2 a configuration or an address that cannot be used, 3
    the ledger cannot be used, 130 interrupted.
    """
    _check_installed()
    if not http and (host is not None or port is not None or allow_anonymous):
        raise UsageError("--host, --port and --allow-anonymous are for a server over HTTP; give --http")
    from adjudge.server.mcp_serving import serve_mcp

    asyncio.run(
        serve_mcp(
            config,
            http=http,
            host=host,
            port=port,
            allow_anonymous=allow_anonymous,
            run=run,
            gates=gate or (),
            unsafe=unsafe or (),
            on_ready=lambda url: note(f"adjudge serves MCP on {url}; interrupt it to stop"),
        )
    )
    return 0


async def read_server(words: list[str], timeout: float) -> Pins:
    """Connect to a server, read what it offers and leave it; raises ``UsageError`` if that cannot be done."""
    _check_installed()
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    from adjudge.mcp.client import read_pins
    from adjudge.mcp.pins import name_source

    is_address = len(words) == 1 and words[0].startswith(("http://", "https://"))
    source = name_source(words[0]) if is_address else shlex.join(words)
    # A type of its own in every version: one of them takes no parameters of a command.
    target: Any = words[0] if is_address else stdio_client(StdioServerParameters(command=words[0], args=words[1:]))
    try:
        async with asyncio.timeout(timeout), Client(target) as client:
            return await read_pins(client, source=source)
    except Exception as error:  # noqa: BLE001 - what a transport raises is its own, and may come in a group
        reason = _find_first(error)
        kind = str(reason) if isinstance(reason, UsageError) else type(reason).__name__
        raise UsageError(
            f"the MCP server {show(flatten(source, 200))} cannot be read: {kind}", argument="server"
        ) from None


def describe_changes(pins: Pins, offered: Pins) -> list[str]:
    """Describe what a server offers otherwise than it was pinned, a line for each."""
    lines = [f"changed: {name}" for name in pins.list_changes(offered)]
    for tool in pins.tools:
        now = offered.find_tool(tool["name"])
        if now is None:
            lines.append(f"gone: tool {show(tool['name'])}")
        elif not pins.has_tool(now):
            lines.append(f"changed: tool {show(tool['name'])}")
    known = {tool["name"] for tool in pins.tools}
    return lines + [f"new: tool {show(tool['name'])}" for tool in offered.tools if tool["name"] not in known]


def _find_first(error: BaseException) -> BaseException:
    """Return the first error of a group, or the error itself."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _check_installed() -> None:
    from importlib.util import find_spec

    if find_spec("mcp") is None or find_spec("mcp_types") is None:
        raise UsageError(
            "this command needs the package mcp, 2.0 or later, which this installation does not have; to have it, "
            "pip install 'adjudge[mcp]'"
        )


mcp_app = make_group(
    "mcp",
    "Serve gates to agents over MCP, and pin what a server offers.",
    {"serve": serve, "pin": pin, "check": check},
)
