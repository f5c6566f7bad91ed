"""The tools that ``adjudge probe`` asks: a program, a function, or a tool of an MCP server."""

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

LARGEST = 1_000_000
"""Bytes of output; a program that writes more is stopped."""

_LAST_WORDS = 2_000

_PATIENCE = 5.0


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


def open_tool(named: ToolOptions, entries: Sequence[ProbeBaseline]) -> AbstractAsyncContextManager[Tool]:
    """The tool that the command line names, which can be called inside the context.

    Raises ``UsageError`` unless it is exactly one, that can be found and can be called with the entries' inputs.
    """
    if [named.command, named.function, named.mcp].count(None) != 2:
        raise UsageError(
            "say what is probed: --command 'PROGRAM ARGUMENT ...', --function python:MODULE:NAME, or --mcp SERVER with "
            "--mcp-tool NAME, one of the three"
        )
    if named.mcp is not None:
        return _find_mcp_tool(named, named.mcp, entries)
    if named.mcp_tool is not None or named.mcp_pins is not None:
        raise UsageError("--mcp-tool and --mcp-pins are for a tool of an MCP server; name it with --mcp")
    if named.function is not None:
        return nullcontext(_open_function_tool(named.function))
    return nullcontext(_make_program_tool(named.command or ""))


def _split_command(option: str, command: str) -> list[str]:
    """Split a command into words. Raises ``UsageError`` where it has none or a quotation is not closed."""
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
    module, colon, path = name.removeprefix("python:").partition(":")
    if not name.startswith("python:") or not module or not colon or not path:
        raise UsageError(f"--function must be like python:package.module:name, got {show(name)}")
    with importing(f"--function {name}", name):
        target: Any = importlib.import_module(module)
        for part in path.split("."):
            target = getattr(target, part)
    if not callable(target):
        raise UsageError(f"--function {name} is {type(target).__name__}, not a function; name one")
    return target


def _make_program_tool(command: str) -> Callable[[Any], Any]:
    """Make a function that runs a program on its input.

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

    Raises ``AdjudgeError`` when it ends with another status than 0, writes too much, or what is not UTF-8. Left early,
    it takes the program along, and on POSIX what that has started.
    """
    options: dict[str, Any] = {} if sys.platform == "win32" else {"start_new_session": True}
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(*words, stdin=pipe, stdout=pipe, stderr=pipe, **options)
    except OSError as error:
        raise AdjudgeError(f"the command cannot be started: {error.strerror or error}") from None
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_feed(process, json.dumps(value).encode() + b"\n"))
            output = group.create_task(_read_output(process))
            complaint = group.create_task(_read_last(process))
        status = await process.wait()
    except BaseException:
        await _end_process(process)
        raise
    if len(output.result()) > LARGEST:
        raise AdjudgeError(f"the command wrote more than {LARGEST:,} bytes")
    if status != 0:
        lines = complaint.result().decode(errors="replace").split("\n")
        last = next((line for line in reversed(lines) if line.strip()), "it said nothing")
        raise AdjudgeError(f"the command ended with status {status}: {flatten(last, 300)}")
    return _read_answer(output.result())


def _read_answer(raw: bytes) -> Any:
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise AdjudgeError(f"the command's output is not UTF-8 text (byte {error.start:,})") from None
    return _read_text(text)


async def _feed(process: asyncio.subprocess.Process, data: bytes) -> None:
    """Write the input of a program and close it; a program that ends without reading it is no error."""
    assert process.stdin is not None  # noqa: S101 - for the type checker; it was asked for
    with suppress(BrokenPipeError, ConnectionResetError):  # a program need not read its input
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()
    with suppress(BrokenPipeError, ConnectionResetError):
        await process.stdin.wait_closed()


async def _read_output(process: asyncio.subprocess.Process) -> bytes:
    """Read the output of a program, which is killed once it wrote more than ``LARGEST`` bytes.

    What is returned is then longer than ``LARGEST``; the rest is read and dropped.
    """
    assert process.stdout is not None  # noqa: S101 - as above
    output = b""
    while chunk := await process.stdout.read(65_536):
        if len(output) <= LARGEST:
            output += chunk
            if len(output) > LARGEST:
                _kill(process)
    return output


async def _read_last(process: asyncio.subprocess.Process) -> bytes:
    assert process.stderr is not None  # noqa: S101 - as above
    last = b""
    while chunk := await process.stderr.read(65_536):
        last = (last + chunk)[-_LAST_WORDS:]
    return last


async def _end_process(process: asyncio.subprocess.Process) -> None:
    """Kill a process, and wait a moment for its end."""
    _kill(process)
    with suppress(TimeoutError):  # something it started may have left its session, and hold the pipes open
        async with asyncio.timeout(_PATIENCE):
            await process.wait()


def _kill(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)  # its own session, so this is it and what it started


# ---------------------------------------------------------------- a tool of an MCP server


def _find_mcp_tool(
    named: ToolOptions, server: str, entries: Sequence[ProbeBaseline]
) -> AbstractAsyncContextManager[Tool]:
    """Make the context in which the tool of an MCP server can be called.

    Raises ``UsageError`` where no tool is named, and for an input that is not an object.
    """
    if named.mcp_tool is None:
        raise UsageError("--mcp names a server; name the tool of it with --mcp-tool")
    for entry in entries:
        if not isinstance(entry.input, Mapping):
            raise UsageError(
                f"probe {show(entry.name)}: the input for a tool of an MCP server is an object of its arguments, got "
                f"{show(entry.input)}"
            )
    pins = None if named.mcp_pins is None else Pins.read(named.mcp_pins)
    return _open_mcp_tool(_split_command("--mcp", server), named.mcp_tool, pins, named.tool_timeout)


@asynccontextmanager
async def _open_mcp_tool(words: list[str], name: str, pins: Pins | None, timeout: float) -> AsyncIterator[Tool]:
    """Connect to a server, once for all calls of its tool."""
    async with open_server(words, timeout) as (client, source):

        async def call(arguments: Any) -> Any:
            from adjudge.mcp.client import read_pins

            if pins is not None:  # before every call: a server may change between two
                _check_pinned(pins, await read_pins(client, source=source), name)
            return _read_result(await client.call_tool(name, arguments))

        yield call


def _check_pinned(pins: Pins, offered: Pins, name: str) -> None:
    """Raise ``AdjudgeError`` unless the server and its tool are as they were pinned."""
    changes = list(pins.list_changes(offered))
    tool = offered.find_tool(name)
    if tool is None or not pins.has_tool(tool):
        changes.append(f"tool {show(name)}")
    if changes:
        raise AdjudgeError(f"the tool was not called, because this is not as it was pinned: {', '.join(changes)}")


def _read_result(result: CallToolResult) -> Any:
    """The text of a result, which is what an agent reads of it.

    Raises ``AdjudgeError`` where the tool failed, or its answer has no text or too long a one.
    """
    texts = [block.text for block in result.content if block.type == "text"]
    text = "\n".join(texts)
    if result.is_error:
        raise AdjudgeError(f"the tool ended with an error: {flatten(text, 300) or 'it said nothing'}")
    if not texts:
        raise AdjudgeError("the tool answered without a text")
    if len(text.encode()) > LARGEST:
        raise AdjudgeError(f"the tool answered with more than {LARGEST:,} bytes")
    return _read_text(text)


def _read_text(text: str) -> Any:
    try:
        return read_json(text)
    except ValueError:
        return text.removesuffix("\n").removesuffix("\r")
