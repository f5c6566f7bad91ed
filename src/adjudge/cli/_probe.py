"""``adjudge probe``: run a file of baselines against a tool, or record its outputs as new ones."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from adjudge import ProbeReport, ProbeResult, UsageError
from adjudge._display import COLOURS
from adjudge.cli import _options as option
from adjudge.cli._choose import Choice, Panel, choose
from adjudge.cli._config import read_config
from adjudge.cli._output import add_row, complain, make_table, note, say, show, show_progress, write_json
from adjudge.cli._tool import open_tool
from adjudge.probe import Baseline, ProbeFile, evaluate_probes, load_probes
from adjudge.probe._record import plain_output, put_outputs, replace_file
from adjudge.probe._tool import call_tool
from adjudge.rules._words import flatten, suggest
from adjudge.rules._words import show as write_value

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
Only = Annotated[list[str] | None, typer.Option("--only", metavar="NAME", help="This probe and no other; repeatable.")]
RecordNew = Annotated[
    bool, typer.Option("--record", help="Write outputs into FILE where it has none, or those of --only; ask nobody.")
]


def probe(
    file: Annotated[Path, typer.Argument(metavar="FILE", hidden=True)],
    command: Command = None,
    function: Function = None,
    only: Only = None,
    record: RecordNew = False,
    judges: option.Judges = None,
    strategy: option.StrategyName = None,
    timeout: option.Timeout = None,
    tool_timeout: ToolTimeout = 60.0,
    as_json: option.AsJson = False,
    concurrency: option.Concurrency = 3,
    config: option.ConfigFile = None,
) -> int:
    """Compare what a tool says today with its baselines.

    FILE holds inputs and the outputs that were good for them, in YAML, JSON or TOML. The tool is called with each
    input: a program gets it as JSON on standard input and writes JSON or text; a function gets it as its argument.
    A file runs nothing by itself, so the tool is named here and never in FILE.

    Exit status: 0 every probe passed, 1 one failed or the tool gave no output, 2 wrong usage or unreadable input,
    3 one could not be judged.
    """
    if concurrency < 1:
        raise UsageError(f"--concurrency must be a whole number of at least 1, got {concurrency}")
    if not 0 < tool_timeout < float("inf"):
        raise UsageError(f"--tool-timeout must be a finite number of seconds above 0, got {tool_timeout:g}")
    found = load_probes(file)
    chosen = _select(found, only or ())
    if record:
        if judges or strategy or timeout:
            raise UsageError("--record asks nobody, so leave out --judge, --strategy and --timeout")
        wanted = chosen if only else [item for item in chosen if not item.recorded]
        tool = open_tool(command, function)
        put_outputs(found, {})  # a file that cannot be written to is said before the tool runs
        outputs, broken = asyncio.run(_call_all(wanted, tool, tool_timeout, concurrency))
        return _write_baselines(found, outputs, broken, as_json=as_json)
    probes = [item.make_probe() for item in chosen]
    tool = open_tool(command, function)
    chain = (("strategy", strategy),) if strategy is not None else ()
    who = choose(Panel(judges=tuple(judges or ()), timeout=timeout, chain=chain), read_config(config))
    if who.reason and not as_json:
        note(f"judging with {who.judge.name}, because {who.reason}; name another with --judge")
    how = {"tool": tool, "tool_timeout": tool_timeout, "concurrency": concurrency, "thresholds": found.thresholds}
    # Not the library's sync door: an interrupt has to end here only when every call that was under way has ended.
    report = asyncio.run(_evaluate(probes, who, how))
    if as_json:
        write_json(report.to_dict() | {"input": str(file)})
    else:
        _print(report)
    return {"passed": 0, "failed": 1, "undecided": 3}[report.outcome]


def _select(file: ProbeFile, names: Sequence[str]) -> list[Baseline]:
    """The entries of these names, in the order of the file; all of them without names."""
    known = [item.name for item in file.entries]
    for name in names:
        if name not in known:
            raise UsageError(f"--only: {file.path} has no probe {write_value(name)}{suggest(name, known)}")
    return [item for item in file.entries if not names or item.name in names]


async def _evaluate(probes: Sequence[Any], who: Choice, how: dict[str, Any]) -> ProbeReport:
    try:
        with show_progress("probed", len(probes)) as progress:
            return await evaluate_probes(probes, who.judge, on_result=lambda _: progress.step(), **how)
    finally:
        await who.judge.aclose()


def _print(report: ProbeReport) -> None:
    table = make_table("", ("probe", "outcome", "similarity", "drift", "contract", "why"))
    for item in report.results:
        outcome = f"{item.outcome} (by {item.decided_by})" if item.decided_by != "judge" else str(item.outcome)
        contract = "violated" if item.contract_violated else "kept" if item.drift is not None else "-"
        similarity = "-" if item.similarity is None else f"{item.similarity:.2f}"
        cells = (item.name, outcome, similarity, item.drift or "-", contract, _explain(item))
        add_row(table, *(flatten(cell, 300) for cell in cells), style=COLOURS[item.outcome])
    show(table)
    say(report.explain())


def _explain(result: ProbeResult) -> str:
    said = [f"{result.undecided_because}: {result.detail}" if result.undecided_because else result.detail]
    said += result.violations or ([result.reasoning] if not result.detail and not result.passed else [])
    return "; ".join(text for text in said if text) or "-"


# ---------------------------------------------------------------- recording


async def _call_all(
    entries: Sequence[Baseline], tool: Callable[[Any], Any], timeout: float, concurrency: int
) -> tuple[dict[str, Any], dict[str, str]]:
    """The tool's output for every entry by its name, and why there is none for the others."""
    outputs: dict[str, Any] = {}
    broken: dict[str, str] = {item.name: "it ended without an output" for item in entries}
    waiting = iter(entries)

    async def work() -> None:
        for item in waiting:
            output, why = await _call_one(item, tool, timeout)
            broken[item.name] = why
            if not why:
                outputs[item.name] = output
                del broken[item.name]
            progress.step()

    with show_progress("recorded", len(entries)) as progress:
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(work())
    return outputs, broken


async def _call_one(item: Baseline, tool: Callable[[Any], Any], timeout: float) -> tuple[Any, str]:
    """The tool's output as a baseline holds it and nothing, or nothing and why there is none."""
    output, why = await call_tool(tool, item.input, timeout=timeout)
    try:
        return (None, why) if why else (plain_output(output), "")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - an object of anybody's may raise anything when it is opened
        return None, str(error) or type(error).__name__


def _write_baselines(file: ProbeFile, outputs: dict[str, Any], broken: dict[str, str], *, as_json: bool) -> int:
    text = put_outputs(file, outputs) if outputs else file.text
    if text != file.text:
        replace_file(file, text)
    names = [item.name for item in file.entries if item.name in outputs]
    if as_json:
        write_json(
            {"schema": "adjudge/probe-recording/1", "input": str(file.path), "recorded": names, "failed": broken}
        )
    else:
        lines = (file.text.splitlines(), text.splitlines())
        for line in difflib.unified_diff(*lines, str(file.path), str(file.path), "before", "now", n=1, lineterm=""):
            say(line)
        note(f"{file.path}: {len(names)} recorded" if names or broken else f"{file.path}: nothing to record")
    for name, why in broken.items():
        complain(f"{name}: not recorded: {why}")
    return 1 if broken else 0
