"""The tool that ``adjudge probe`` calls: a program, a Python function, or a tool of an MCP server."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import shlex
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from adjudge.cli.mcp_servers import open_server
from adjudge.config.modules import importing
from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.json import read_json
from adjudge.formats.text import flatten, show
from adjudge.guards.probe.baseline_file import ProbeBaseline
from adjudge.guards.probe.evaluate import Tool
from adjudge.mcp.pins import Pins

if TYPE_CHECKING:
    from mcp_types import CallToolResult

LARGEST_OUTPUT = 1_000_000
"""Bytes of output; a program that writes more is stopped."""

_ERROR_TAIL = 2_000
"""Bytes that are kept of the end of a program's standard error."""

_SECONDS_TO_END = 5.0
"""Seconds that are waited for the end of a program that was killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOptions:
    """The tool that is probed, and how long it may take."""

    heading: ClassVar[str] = "Tool"
    command: Annotated[
        str | None,
        typer.Option("--command", metavar="CMD", help="The program to probe, with arguments; no shell reads them."),
    ] = None
    function: Annotated[
        str | None,
        typer.Option("--function", metavar="SPEC", help="The function to probe: python:package.module:name."),
    ] = None
    mcp: Annotated[
        str | None,
        typer.Option("--mcp", metavar="SERVER", help="The MCP server to probe: its address, or its command."),
    ] = None
    mcp_tool: Annotated[
        str | None, typer.Option("--mcp-tool", metavar="NAME", help="With --mcp, the server's tool to probe.")
    ] = None
    mcp_pins: Annotated[
        str | None,
        typer.Option("--mcp-pins", metavar="FILE", help="With --mcp, call only what is still as it was pinned."),
    ] = None
    tool_timeout: Annotated[
        float, typer.Option("--tool-timeout", metavar="SEC", help="Seconds for the tool, for each input.")
    ] = 60.0


def open_tool(options: ToolOptions, entries: Sequence[ProbeBaseline]) -> AbstractAsyncContextManager[Tool]:
    """Make a context manager that opens the tool named by the options, and gives a function that calls it.

    ``entries`` are the probes whose inputs the tool will be called with. Raises ``UsageError`` unless the options name
    exactly one tool, and it can be found and called with these inputs.
    """
    if [options.command, options.function, options.mcp].count(None) != 2:
        raise UsageError(
            "say what is probed: --command 'PROGRAM ARGUMENT ...', --function python:MODULE:NAME, or --mcp SERVER with "
            "--mcp-tool NAME, one of the three"
        )
    if options.mcp is not None:
        return _find_mcp_tool(options, options.mcp, entries)
    if options.mcp_tool is not None or options.mcp_pins is not None:
        raise UsageError("--mcp-tool and --mcp-pins are for a tool of an MCP server; name it with --mcp")
    if options.function is not None:
        return nullcontext(_open_function_tool(options.function))
    return nullcontext(_make_program_tool(options.command or ""))


def _split_command(option: str, command: str) -> list[str]:
    """Split a command into words; raises ``UsageError`` where it has none, or a quotation mark is not closed."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"{option} {show(command)} cannot be taken apart: {error}; close the quotes") from None
    if not words:
        raise UsageError(f"{option} is empty; name a program and its arguments")
    return words


def _open_function_tool(name: str) -> Callable[[Any], Any]:
    """Import the function that ``--function`` names.

    Raises ``UsageError`` for a name of another form, and for what cannot be imported or called.
    """
    module, colon, qualified_name = name.removeprefix("python:").partition(":")
    if not name.startswith("python:") or not module or not colon or not qualified_name:
        raise UsageError(f"--function must be like python:package.module:name, got {show(name)}")
    with importing(f"--function {name}", name):
        function: Any = importlib.import_module(module)
        for attribute in qualified_name.split("."):
            function = getattr(function, attribute)
    if not callable(function):
        raise UsageError(f"--function {name} is {type(function).__name__}, not a function; name one")
    return function


def _make_program_tool(command: str) -> Callable[[Any], Any]:
    """Make a function that runs a program on an input, and returns its output.

    Raises ``UsageError`` for a program that is not there.
    """
    words = _split_command("--command", command)
    if shutil.which(words[0]) is None:
        raise UsageError(f"--command: there is no program {show(words[0])} that can be started; name one by its path")

    async def run(value: Any) -> Any:
        return await run_program(words, value)

    return run


async def run_program(words: Sequence[str], value: Any) -> Any:
    """Run a program on an input: JSON on its standard input, JSON or text on its standard output.

    Raises ``AdjudgeError`` when the program ends with another status than 0, writes too much, or writes something that
    is not UTF-8. If this call is cancelled, the program is killed, and on POSIX also the programs that it started.
    """
    options: dict[str, Any] = {} if sys.platform == "win32" else {"start_new_session": True}
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(*words, stdin=pipe, stdout=pipe, stderr=pipe, **options)
    except OSError as error:
        raise AdjudgeError(f"the command cannot be started: {error.strerror or error}") from None
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_write_input(process, json.dumps(value).encode() + b"\n"))
            output = group.create_task(_read_output(process))
            error_tail = group.create_task(_read_error_tail(process))
        status = await process.wait()
    except BaseException:
        await _end_process(process)
        raise
    if len(output.result()) > LARGEST_OUTPUT:
        raise AdjudgeError(f"the command wrote more than {LARGEST_OUTPUT:,} bytes")
    if status != 0:
        lines = error_tail.result().decode(errors="replace").split("\n")
        last_line = next((line for line in reversed(lines) if line.strip()), "it said nothing")
        raise AdjudgeError(f"the command ended with status {status}: {flatten(last_line, 300)}")
    return _decode_output(output.result())


def _decode_output(raw: bytes) -> Any:
    """Decode the output of a program and parse it; raises ``AdjudgeError`` for output that is not UTF-8."""
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise AdjudgeError(f"the command's output is not UTF-8 text (byte {error.start:,})") from None
    return _parse_output(text)


async def _write_input(process: asyncio.subprocess.Process, data: bytes) -> None:
    """Write the input of a program and close it; a program that ends without reading it is no error."""
    assert process.stdin is not None  # noqa: S101 - for the type checker; the process was started with pipes
    with suppress(BrokenPipeError, ConnectionResetError):  # a program need not read its input
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()
    with suppress(BrokenPipeError, ConnectionResetError):
        await process.stdin.wait_closed()


async def _read_output(process: asyncio.subprocess.Process) -> bytes:
    """Read the output of a program, and kill the program once it has written more than ``LARGEST_OUTPUT`` bytes.

    The bytes returned are then more than ``LARGEST_OUTPUT``, by which the caller sees it; further ones are dropped.
    """
    assert process.stdout is not None  # noqa: S101 - as above
    output = b""
    while chunk := await process.stdout.read(65_536):
        if len(output) <= LARGEST_OUTPUT:
            output += chunk
            if len(output) > LARGEST_OUTPUT:
                _kill(process)
    return output


async def _read_error_tail(process: asyncio.subprocess.Process) -> bytes:
    """Read the standard error of a program to its end, and return the last ``_ERROR_TAIL`` bytes."""
    assert process.stderr is not None  # noqa: S101 - as above
    tail = b""
    while chunk := await process.stderr.read(65_536):
        tail = (tail + chunk)[-_ERROR_TAIL:]
    return tail


async def _end_process(process: asyncio.subprocess.Process) -> None:
    """Kill a process, and wait for its end for some seconds."""
    _kill(process)
    with suppress(TimeoutError):  # a program that it started may have left its session, and keep the pipes open
        async with asyncio.timeout(_SECONDS_TO_END):
            await process.wait()


def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill a process, and on POSIX the programs that it started; one that has ended already is no error."""
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            # It was started in a session of its own, so that its group has only it and the programs it started.
            os.killpg(process.pid, signal.SIGKILL)


# ---------------------------------------------------------------- a tool of an MCP server


def _find_mcp_tool(
    options: ToolOptions, server: str, entries: Sequence[ProbeBaseline]
) -> AbstractAsyncContextManager[Tool]:
    """Make a context manager that connects to an MCP server, and gives a function that calls one of its tools.

    Raises ``UsageError`` where no tool is named, and for an entry whose input is not an object.
    """
    if options.mcp_tool is None:
        raise UsageError("--mcp names a server; name the tool of it with --mcp-tool")
    for entry in entries:
        if not isinstance(entry.input, Mapping):
            raise UsageError(
                f"probe {show(entry.name)}: the input for a tool of an MCP server is an object of its arguments, got "
                f"{show(entry.input)}"
            )
    pins = None if options.mcp_pins is None else Pins.read(options.mcp_pins)
    return _open_mcp_tool(_split_command("--mcp", server), options.mcp_tool, pins, options.tool_timeout)


@asynccontextmanager
async def _open_mcp_tool(words: list[str], name: str, pins: Pins | None, timeout: float) -> AsyncIterator[Tool]:
    """Connect to a server once, and yield a function that calls its tool; each call checks the pins first."""
    async with open_server(words, timeout) as (client, source):

        async def call(arguments: Any) -> Any:
            from adjudge.mcp.client import read_pins

            if pins is not None:  # before every call, because a server may change between two calls
                _check_pinned(pins, await read_pins(client, source=source), name)
            return _parse_result(await client.call_tool(name, arguments))

        yield call


def _check_pinned(pins: Pins, offered: Pins, name: str) -> None:
    """Raise ``AdjudgeError`` unless the server and its tool are as they were pinned."""
    changes = list(pins.list_changes(offered))
    tool = offered.find_tool(name)
    if tool is None or not pins.has_tool(tool):
        changes.append(f"tool {show(name)}")
    if changes:
        raise AdjudgeError(f"the tool was not called, because this is not as it was pinned: {', '.join(changes)}")


def _parse_result(result: CallToolResult) -> Any:
    """Return the text of an MCP tool's result, parsed as JSON if it is JSON: an agent reads the text.

    Raises ``AdjudgeError`` where the tool failed, or its answer has no text, or too long a text.
    """
    texts = [block.text for block in result.content if block.type == "text"]
    text = "\n".join(texts)
    if result.is_error:
        raise AdjudgeError(f"the tool ended with an error: {flatten(text, 300) or 'it said nothing'}")
    if not texts:
        raise AdjudgeError("the tool answered without a text")
    if len(text.encode()) > LARGEST_OUTPUT:
        raise AdjudgeError(f"the tool answered with more than {LARGEST_OUTPUT:,} bytes")
    return _parse_output(text)


def _parse_output(text: str) -> Any:
    """Parse a tool's output as JSON; a text that is not JSON is returned without its last line break."""
    try:
        return read_json(text)
    except ValueError:
        return text.removesuffix("\n").removesuffix("\r")
