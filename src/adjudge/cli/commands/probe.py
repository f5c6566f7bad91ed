"""``adjudge probe``: run a file of baselines against a tool, or record its outputs as new ones."""

from __future__ import annotations

import asyncio
import difflib
import importlib
import json
import os
import shlex
import shutil
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from adjudge.cli import options as option
from adjudge.cli.judging import make_panel
from adjudge.cli.option_sets import Only
from adjudge.cli.output import add_row, complain, make_table, note, print_line, show_drawing, show_progress, write_json
from adjudge.concurrency import map_concurrently
from adjudge.config.file import read_config
from adjudge.config.judges import Choice, choose
from adjudge.config.modules import importing
from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.arguments import check_seconds, check_whole_number
from adjudge.formats.display import COLOURS
from adjudge.formats.json import read_json
from adjudge.formats.numbers import format_score
from adjudge.formats.text import flatten, show, suggest
from adjudge.formats.text import show as write_value
from adjudge.guards.probe.baseline import (
    ProbeBaseline,
    ProbeFile,
    convert_output,
    load_probes,
    render_outputs,
    replace_file,
)
from adjudge.guards.probe.evaluate import call_tool, evaluate_probes
from adjudge.guards.probe.result import ProbeReport, ProbeResult

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
    with importing(f"--function {name}", name):
        target: Any = importlib.import_module(module)
        for part in path.split("."):
            target = getattr(target, part)
    if not callable(target):
        raise UsageError(f"--function {name} is {type(target).__name__}, not a function; name one")
    return target


def _find_program(command: str) -> Callable[[Any], Any]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--command {show(command)} cannot be taken apart: {error}; close the quotes") from None
    if not words:
        raise UsageError("--command is empty; name a program and its arguments")
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
    options: dict[str, Any] = {"start_new_session": True} if os.name == "posix" else {}
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
        await _end(process)
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


Command = Annotated[
    str | None,
    typer.Option("--command", metavar="CMD", help="The program to probe, with arguments; no shell reads them."),
]

Function = Annotated[
    str | None, typer.Option("--function", metavar="SPEC", help="The function to probe: python:package.module:name.")
]

ToolTimeout = Annotated[
    float, typer.Option("--tool-timeout", metavar="SEC", help="Seconds for the program or function, for each input.")
]

OnlyNames = Annotated[
    list[str] | None, typer.Option("--only", metavar="NAME", help="This probe and no other; repeatable.")
]

RecordNew = Annotated[
    bool, typer.Option("--record", help="Write outputs into FILE where it has none, or those of --only; ask nobody.")
]


def probe(
    file: Annotated[Path, typer.Argument(metavar="FILE", hidden=True)],
    judging: Annotated[option.JudgeOptions, Only("judges", "strategy", "timeout")],
    command: Command = None,
    function: Function = None,
    only: OnlyNames = None,
    record: RecordNew = False,
    tool_timeout: ToolTimeout = 60.0,
    as_json: option.AsJson = False,
    concurrency: option.Concurrency = 3,
    config: option.ConfigFile = None,
) -> int:
    """Compare a tool's outputs today with its baselines.

    FILE holds inputs and outputs that are known to be good, in YAML, JSON or TOML. The tool is called with each
    input: a program gets it as JSON on standard input and writes JSON or text; a function gets it as its argument.
    Name the tool here: FILE cannot, so it is safe to read a file from somebody else.

    Exit status: 0 every probe passed, 1 one failed or the tool gave no output, 2 wrong usage or unreadable input,
    3 one is undecided.
    """
    check_whole_number("concurrency", concurrency, least=1)
    check_seconds("tool_timeout", tool_timeout)
    baselines = load_probes(file)
    selected = _select(baselines, only or ())
    if record:
        if judging != option.JudgeOptions():
            raise UsageError("--record asks nobody, so leave out --judge, --strategy and --timeout")
        wanted = selected if only else [baseline for baseline in selected if not baseline.recorded]
        tool = open_tool(command, function)
        render_outputs(baselines, {})  # a file that cannot be written to is said before the tool runs
        outputs, broken = asyncio.run(_call_all(wanted, tool, tool_timeout, concurrency))
        return _write_baselines(baselines, outputs, broken, as_json=as_json)
    probes = [baseline.make_probe() for baseline in selected]
    tool = open_tool(command, function)
    choice = choose(make_panel(judging), read_config(config))
    if choice.reason and not as_json:
        note(f"judging with {choice.judge.name}, because {choice.reason}; name another with --judge")
    arguments = {
        "tool": tool,
        "tool_timeout": tool_timeout,
        "concurrency": concurrency,
        "thresholds": baselines.thresholds,
    }
    # Not the library's sync door: an interrupt has to end here only when every call that was under way has ended.
    report = asyncio.run(_evaluate(probes, choice, arguments))
    if as_json:
        write_json(report.to_dict() | {"input": str(file)})
    else:
        _print(report)
    return {"passed": 0, "failed": 1, "undecided": 3}[report.outcome]


def _select(file: ProbeFile, names: Sequence[str]) -> list[ProbeBaseline]:
    """The entries of these names, in the order of the file; all of them without names."""
    known = [entry.name for entry in file.entries]
    for name in names:
        if name not in known:
            raise UsageError(f"--only: {file.path} has no probe {write_value(name)}{suggest(name, known)}")
    return [entry for entry in file.entries if not names or entry.name in names]


async def _evaluate(probes: Sequence[Any], choice: Choice, arguments: dict[str, Any]) -> ProbeReport:
    try:
        with show_progress("probed", len(probes)) as progress:
            return await evaluate_probes(probes, choice.judge, on_result=lambda _: progress.step(), **arguments)
    finally:
        await choice.judge.aclose()


def _print(report: ProbeReport) -> None:
    table = make_table("", ("probe", "outcome", "similarity", "drift", "contract", "why"))
    for result in report.results:
        outcome = f"{result.outcome} (by {result.decided_by})" if result.decided_by != "judge" else str(result.outcome)
        contract = "violated" if result.contract_violated else "kept" if result.drift is not None else "-"
        similarity = "-" if result.similarity is None else format_score(result.similarity)
        cells = (result.name, outcome, similarity, result.drift or "-", contract, _explain(result))
        add_row(table, *(flatten(cell, 300) for cell in cells), style=COLOURS[result.outcome])
    show_drawing(table)
    print_line(report.explain())


def _explain(result: ProbeResult) -> str:
    reasons = [f"{result.undecided_because}: {result.detail}" if result.undecided_because else result.detail]
    reasons += result.violations or ([result.reasoning] if not result.detail and not result.passed else [])
    return "; ".join(text for text in reasons if text) or "-"


# ---------------------------------------------------------------- recording


async def _call_all(
    entries: Sequence[ProbeBaseline], tool: Callable[[Any], Any], timeout: float, concurrency: int
) -> tuple[dict[str, Any], dict[str, str]]:
    """The tool's output for every entry by its name, and why there is none for the others."""

    async def work(entry: ProbeBaseline) -> _Call:
        try:
            return await _call_one(entry, tool, timeout)
        finally:
            progress.step()

    with show_progress("recorded", len(entries)) as progress:
        calls = await map_concurrently(
            entries, work, concurrency, give_up=lambda _: (None, "it ended without an output")
        )
    named_calls = {entry.name: call for entry, call in zip(entries, calls, strict=True)}
    outputs = {name: output for name, (output, why) in named_calls.items() if not why}
    return outputs, {name: why for name, (_, why) in named_calls.items() if why}


_Call = tuple[Any, str]
"""A tool's output, or nothing and why there is none."""


async def _call_one(entry: ProbeBaseline, tool: Callable[[Any], Any], timeout: float) -> _Call:
    """The tool's output as a baseline holds it and nothing, or nothing and why there is none."""
    output, why = await call_tool(tool, entry.input, timeout=timeout)
    try:
        return (None, why) if why else (convert_output(output), "")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - an object of anybody's may raise anything when it is opened
        return None, str(error) or type(error).__name__


def _write_baselines(file: ProbeFile, outputs: dict[str, Any], broken: dict[str, str], *, as_json: bool) -> int:
    text = render_outputs(file, outputs) if outputs else file.text
    if text != file.text:
        replace_file(file, text)
    names = [entry.name for entry in file.entries if entry.name in outputs]
    if as_json:
        write_json(
            {"schema": "adjudge/probe-recording/1", "input": str(file.path), "recorded": names, "failed": broken}
        )
    else:
        lines = (file.text.splitlines(), text.splitlines())
        for line in difflib.unified_diff(*lines, str(file.path), str(file.path), "before", "now", n=1, lineterm=""):
            print_line(line)
        note(f"{file.path}: {len(names)} recorded" if names or broken else f"{file.path}: nothing to record")
    for name, why in broken.items():
        complain(f"{name}: not recorded: {why}")
    return 1 if broken else 0
