"""The tool that is probed: a program that is started for each input, or a function of a module.

Either is named on the command line and nowhere else. A program is started from a list of arguments, without a shell,
so that nothing in an input or in a file of baselines is ever read as a command.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import shlex
import shutil
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from adjudge.cli._seats import importing
from adjudge.errors import AdjudgeError, UsageError
from adjudge.rules._json import read_json
from adjudge.rules._words import flatten, show

LARGEST = 1_000_000
"""Bytes of output; a program that writes more is stopped."""
_LAST_WORDS = 2_000
_PATIENCE = 5.0


def open_tool(command: str | None, function: str | None) -> Callable[[Any], Any]:
    """The tool that the command line names; raises ``UsageError`` unless it is exactly one that can be found."""
    if (command is None) == (function is None):
        raise UsageError("say what is probed: --command 'PROGRAM ARGUMENT ...' or --function python:MODULE:NAME, one")
    return _find_function(function) if function is not None else _find_program(command or "")


def _find_function(name: str) -> Callable[[Any], Any]:
    module, colon, path = name.removeprefix("python:").partition(":")
    if not name.startswith("python:") or not module or not colon or not path:
        raise UsageError(f"--function must be like python:package.module:name, got {show(name)}")
    with importing(f"--function {name}"):
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    if not callable(found):
        raise UsageError(f"--function {name} is {type(found).__name__}, not a function; name one")
    return found


def _find_program(command: str) -> Callable[[Any], Any]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--command {show(command)} cannot be taken apart: {error}; close the quotes") from None
    if not words:
        raise UsageError("--command is empty; name a program and its arguments")
    if shutil.which(words[0]) is None:
        raise UsageError(f"--command: there is no program {show(words[0])} that can be started; name one by its path")

    async def run(given: Any) -> Any:
        return await run_program(words, given)

    return run


async def run_program(words: Sequence[str], given: Any) -> Any:
    """What a program answers to an input: JSON on its standard input, JSON or text on its standard output.

    Raises ``AdjudgeError`` when it ends with another status than 0, writes too much, or what is not UTF-8. Left early,
    it takes the program along, and on POSIX what that has started.
    """
    options: dict[str, Any] = {"start_new_session": True} if os.name == "posix" else {}
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(*words, stdin=pipe, stdout=pipe, stderr=pipe, **options)
    except OSError as error:
        raise AdjudgeError(f"the command cannot be started: {error.strerror or error}") from None
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_feed(process, json.dumps(given).encode() + b"\n"))
            said = group.create_task(_read_output(process))
            complaint = group.create_task(_read_last(process))
        status = await process.wait()
    except BaseException:
        await _end(process)
        raise
    if len(said.result()) > LARGEST:
        raise AdjudgeError(f"the command wrote more than {LARGEST:,} bytes")
    if status != 0:
        lines = complaint.result().decode(errors="replace").split("\n")
        last = next((line for line in reversed(lines) if line.strip()), "it said nothing")
        raise AdjudgeError(f"the command ended with status {status}: {flatten(last, 300)}")
    return _read_answer(said.result())


def _read_answer(raw: bytes) -> Any:
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise AdjudgeError(f"the command's output is not UTF-8 text (byte {error.start:,})") from None
    try:
        return read_json(text)
    except ValueError:
        return text.removesuffix("\n").removesuffix("\r")


async def _feed(process: asyncio.subprocess.Process, data: bytes) -> None:
    assert process.stdin is not None  # noqa: S101 - for the type checker; it was asked for
    with suppress(BrokenPipeError, ConnectionResetError):  # a program need not read its input
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()
    with suppress(BrokenPipeError, ConnectionResetError):
        await process.stdin.wait_closed()


async def _read_output(process: asyncio.subprocess.Process) -> bytes:
    assert process.stdout is not None  # noqa: S101 - as above
    found = b""
    while chunk := await process.stdout.read(65_536):
        if len(found) <= LARGEST:
            found += chunk
            if len(found) > LARGEST:
                _kill(process)
    return found


async def _read_last(process: asyncio.subprocess.Process) -> bytes:
    assert process.stderr is not None  # noqa: S101 - as above
    last = b""
    while chunk := await process.stderr.read(65_536):
        last = (last + chunk)[-_LAST_WORDS:]
    return last


async def _end(process: asyncio.subprocess.Process) -> None:
    _kill(process)
    with suppress(TimeoutError):  # something it started may have left its session, and hold the pipes open
        async with asyncio.timeout(_PATIENCE):
            await process.wait()


def _kill(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)  # its own session, so this is it and what it started
        else:
            process.kill()
