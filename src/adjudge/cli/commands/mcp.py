"""``adjudge mcp``: serve gates and judges to agents, pin what an MCP server offers, and list what changed since."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from adjudge.cli import options as option
from adjudge.cli.command_groups import make_group
from adjudge.cli.exit_status import DONE, FAILED
from adjudge.cli.mcp_servers import check_installed, read_server
from adjudge.cli.output import note, print_line, write_json
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_seconds
from adjudge.formats.text import show
from adjudge.mcp.pins import READ_SECONDS

if TYPE_CHECKING:
    from adjudge.mcp.pins import Pins

ServerWords = Annotated[list[str], typer.Argument(metavar="SERVER", hidden=True)]

PinFile = Annotated[str, typer.Argument(metavar="FILE", hidden=True)]

Timeout = Annotated[float, typer.Option("--timeout", metavar="SECONDS", help="Seconds for reading the server.")]


def pin(server: ServerWords, timeout: Timeout = READ_SECONDS) -> int:
    """Write all that a server offers to standard output, for GuardedClient to hold it to.

    $ adjudge mcp pin https://tools.example.com/mcp > pins.json

    SERVER is its address, or after -- the command that starts it. Read what is written before you use it: it is what
    the model will be told. Everything outside of ASCII is written as an escape, so that nothing is invisible.
    """
    check_seconds("timeout", timeout)
    write_json(asyncio.run(read_server(server, timeout)).to_dict())
    return DONE


def check(file: PinFile, server: ServerWords, timeout: Timeout = READ_SECONDS) -> int:
    """List what a server offers otherwise than it was pinned.

    $ adjudge mcp check pins.json https://tools.example.com/mcp

    FILE holds what adjudge mcp pin wrote. SERVER is the server's address, or after -- the command that starts it.

    Exit status: 0 nothing changed, 1 something did, 2 the server or the file cannot be read.
    """
    check_seconds("timeout", timeout)
    from adjudge.mcp.pins import Pins

    changes = describe_changes(Pins.read(file), asyncio.run(read_server(server, timeout)))
    for line in changes:
        print_line(line)
    return FAILED if changes else DONE


def serve(
    config: option.ConfigFile = None,
    http: Annotated[
        bool, typer.Option("--http", help="Serve over HTTP, and not to the client that starts it.")
    ] = False,
    host: Annotated[
        str | None, typer.Option("--host", metavar="H", help="With --http, where to listen.  [default: 127.0.0.1]")
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", metavar="P", help="With --http, the port.  [default: 8319]")
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

    $ adjudge mcp serve

    The tools are evaluate, check and wait_for_approval. Without --http the server talks to the client that starts it,
    over standard input and output. With --http, clients need a key with the scope judge (adjudge keys create). No tool
    approves anything.

    Exit status: 0 the client left, or the server was stopped, 2 a configuration or an address that cannot be used, 3
    the ledger cannot be used, 130 interrupted.
    """
    check_installed()
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
    return DONE


def describe_changes(pins: Pins, offered: Pins) -> list[str]:
    """Describe what a server offers now and did not offer in this way when it was pinned, in a line for each change."""
    lines = [f"changed: {name}" for name in pins.list_changes(offered)]
    for pinned_tool in pins.tools:
        offered_tool = offered.find_tool(pinned_tool["name"])
        if offered_tool is None:
            lines.append(f"gone: tool {show(pinned_tool['name'])}")
        elif not pins.has_tool(offered_tool):
            lines.append(f"changed: tool {show(pinned_tool['name'])}")
    pinned_names = {tool["name"] for tool in pins.tools}
    return lines + [f"new: tool {show(tool['name'])}" for tool in offered.tools if tool["name"] not in pinned_names]


mcp_app = make_group(
    "mcp",
    "Serve gates to agents over MCP, and pin what a server offers.",
    {"serve": serve, "pin": pin, "check": check},
)
