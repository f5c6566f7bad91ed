"""``adjudge probe``: compare a tool's outputs with the baselines in a file, or record its outputs as new baselines.

When a tool has drifted is decided in ``guards/probe/evaluate.py`` (``_decide``).
"""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Annotated, Any

import typer

from adjudge.cli import options as option
from adjudge.cli.exit_status import DONE, FAILED
from adjudge.cli.judging import make_panel
from adjudge.cli.option_sets import Only
from adjudge.cli.output import add_row, complain, make_table, note, print_line, show_drawing, show_progress, write_json
from adjudge.cli.probed_tools import ToolOptions, open_tool
from adjudge.concurrency import map_concurrently
from adjudge.config.file import read_config
from adjudge.config.judges import Choice, choose
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_seconds, check_whole_number
from adjudge.formats.display import COLOURS
from adjudge.formats.numbers import format_score
from adjudge.formats.text import flatten, show, suggest
from adjudge.guards.probe.baseline_file import (
    ProbeBaseline,
    ProbeFile,
    convert_output,
    load_probes,
    render_outputs,
    replace_file,
)
from adjudge.guards.probe.evaluate import Tool, call_tool, evaluate_probes
from adjudge.guards.probe.result import ProbeReport, ProbeResult

OnlyNames = Annotated[
    list[str] | None, typer.Option("--only", metavar="NAME", help="This probe and no other; repeatable.")
]

RecordNew = Annotated[
    bool, typer.Option("--record", help="Write outputs into FILE where it has none, or those of --only; ask nobody.")
]


def probe(
    file: Annotated[Path, typer.Argument(metavar="FILE", hidden=True)],
    judging: Annotated[option.JudgeOptions, Only("judges", "strategy", "timeout")],
    probed: ToolOptions,
    only: OnlyNames = None,
    record: RecordNew = False,
    as_json: option.AsJson = False,
    concurrency: option.Concurrency = 3,
    config: option.ConfigFile = None,
) -> int:
    """Compare a tool's outputs today with its baselines.

    $ adjudge probe probes.yaml --command "python shop.py" -j openai:gpt-6.1-terra

    FILE holds inputs and outputs that are known to be good, in YAML, JSON or TOML. The tool is called with each
    input: a program gets it as JSON on standard input and writes JSON or text; a function gets it as its argument; a
    tool of an MCP server gets its members as arguments. Name the tool here: FILE cannot, so it is safe to read a file
    from somebody else.

    Exit status: 0 every probe passed, 1 one failed or the tool gave no output, 2 wrong usage or unreadable input,
    3 one is undecided.
    """
    check_whole_number("concurrency", concurrency, least=1)
    check_seconds("tool_timeout", probed.tool_timeout)
    baselines = load_probes(file)
    selected = _select_entries(baselines, only or ())
    if record:
        if judging != option.JudgeOptions():
            raise UsageError("--record asks nobody, so leave out --judge, --strategy and --timeout")
        to_record = selected if only else [baseline for baseline in selected if not baseline.recorded]
        tool = open_tool(probed, to_record)
        render_outputs(baselines, {})  # raises for a file that cannot be written to, before the tool runs
        outputs, failures = asyncio.run(_call_tool_with_all(to_record, tool, probed.tool_timeout, concurrency))
        return _write_baselines(baselines, outputs, failures, as_json=as_json)
    probes = [baseline.make_probe() for baseline in selected]
    tool = open_tool(probed, selected)
    choice = choose(make_panel(judging), read_config(config))
    if choice.reason and not as_json:
        note(f"judging with {choice.judge.name}, because {choice.reason}; name another with --judge")
    arguments = {
        "tool_timeout": probed.tool_timeout,
        "concurrency": concurrency,
        "thresholds": baselines.thresholds,
    }
    # Not the library's sync door: an interrupt has to end here only when every call that was under way has ended.
    report = asyncio.run(_evaluate(probes, tool, choice, arguments))
    if as_json:
        write_json(report.to_dict() | {"input": str(file)})
    else:
        _print_report(report)
    return {"passed": 0, "failed": 1, "undecided": 3}[report.outcome]


def _select_entries(file: ProbeFile, names: Sequence[str]) -> list[ProbeBaseline]:
    """Select the entries of a file by their names, in the order of the file; without names, all of them.

    Raises ``UsageError`` for a name that the file does not have.
    """
    entry_names = [entry.name for entry in file.entries]
    for name in names:
        if name not in entry_names:
            raise UsageError(f"--only: {file.path} has no probe {show(name)}{suggest(name, entry_names)}")
    return [entry for entry in file.entries if not names or entry.name in names]


async def _evaluate(
    probes: Sequence[Any], tool: AbstractAsyncContextManager[Tool], choice: Choice, arguments: dict[str, Any]
) -> ProbeReport:
    """Open the tool, run the probes with it and with the chosen judge, and close both."""
    try:
        async with tool as opened:
            with show_progress("probed", len(probes)) as progress:
                arguments |= {"tool": opened, "on_result": lambda _: progress.step()}
                return await evaluate_probes(probes, choice.judge, **arguments)
    finally:
        await choice.judge.aclose()


def _print_report(report: ProbeReport) -> None:
    """Print the results of probes as a table, and a sentence about all of them."""
    table = make_table("", ("probe", "outcome", "similarity", "drift", "contract", "why"))
    for result in report.results:
        outcome = f"{result.outcome} (by {result.decided_by})" if result.decided_by != "judge" else str(result.outcome)
        contract = "violated" if result.contract_violated else "kept" if result.drift is not None else "-"
        similarity = "-" if result.similarity is None else format_score(result.similarity)
        cells = (result.name, outcome, similarity, result.drift or "-", contract, _explain_result(result))
        add_row(table, *(flatten(cell, 300) for cell in cells), style=COLOURS[result.outcome])
    show_drawing(table)
    print_line(report.explain())


def _explain_result(result: ProbeResult) -> str:
    """Explain a result: its detail or reasoning, and what violated the contract; "-" where there is nothing to say."""
    reasons = [f"{result.undecided_because}: {result.detail}" if result.undecided_because else result.detail]
    reasons += result.violations or ([result.reasoning] if not result.detail and not result.passed else [])
    return "; ".join(text for text in reasons if text) or "-"


# ---------------------------------------------------------------- recording


async def _call_tool_with_all(
    entries: Sequence[ProbeBaseline], tool: AbstractAsyncContextManager[Tool], timeout: float, concurrency: int
) -> tuple[dict[str, Any], dict[str, str]]:
    """Call the tool with the input of every entry.

    Returns the outputs by the names of their entries, and, for the entries without an output, the reasons.
    """

    async def work(entry: ProbeBaseline) -> _ToolOutput:
        try:
            return await _call_tool_with(entry, opened, timeout)
        finally:
            progress.step()

    async with tool as opened:
        with show_progress("recorded", len(entries)) as progress:
            tool_outputs = await map_concurrently(
                entries, work, concurrency, give_up=lambda _: (None, "it ended without an output")
            )
    outputs: dict[str, Any] = {}
    failures: dict[str, str] = {}
    for entry, (output, reason) in zip(entries, tool_outputs, strict=True):
        if reason:
            failures[entry.name] = reason
        else:
            outputs[entry.name] = output
    return outputs, failures


_ToolOutput = tuple[Any, str]
"""A tool's output and an empty text, or ``None`` and the reason why there is no output."""


async def _call_tool_with(entry: ProbeBaseline, tool: Tool, timeout: float) -> _ToolOutput:
    """Call the tool with the input of an entry.

    Returns the output as a baseline holds it and an empty text, or ``None`` and the reason why there is no output.
    """
    output, reason = await call_tool(tool, entry.input, timeout=timeout)
    try:
        return (None, reason) if reason else (convert_output(output), "")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - an object of anybody's may raise anything when it is opened
        return None, str(error) or type(error).__name__


def _write_baselines(file: ProbeFile, outputs: dict[str, Any], failures: dict[str, str], *, as_json: bool) -> int:
    """Write outputs as baselines into the file, print the change, and return the exit status: 1 if any is missing.

    ``failures`` has the reasons for which entries have no output.
    """
    text = render_outputs(file, outputs) if outputs else file.text
    if text != file.text:
        replace_file(file, text)
    names = [entry.name for entry in file.entries if entry.name in outputs]
    if as_json:
        write_json(
            {"schema": "adjudge/probe-recording/1", "input": str(file.path), "recorded": names, "failed": failures}
        )
    else:
        lines = (file.text.splitlines(), text.splitlines())
        for line in difflib.unified_diff(*lines, str(file.path), str(file.path), "before", "now", n=1, lineterm=""):
            print_line(line)
        note(f"{file.path}: {len(names)} recorded" if names or failures else f"{file.path}: nothing to record")
    for name, reason in failures.items():
        complain(f"{name}: not recorded: {reason}")
    return FAILED if failures else DONE
