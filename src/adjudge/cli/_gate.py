"""``adjudge gate``: list the gates of a project, and put contents through one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

import typer

from adjudge import Case, Decision, Gate
from adjudge.cli import _options as option
from adjudge.cli._config import read_config
from adjudge.cli._gates import open_gate
from adjudge.cli._input import Inputs, Item, list_inputs, read_text_file
from adjudge.cli._output import add_row, complain, make_table, note, say, show, show_progress, write_json
from adjudge.cli._show import list_leaves, name_item
from adjudge.errors import UsageError

gate_app = typer.Typer(
    help="List gates, and put contents through one.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

Decided = tuple[Item, Decision | None]
"""An item and what was decided; ``None`` where it could not be read, and the item says why."""


@gate_app.command("list")
def list_gates(config: option.ConfigFile = None, as_json: option.AsJson = False) -> int:
    """List the gates of adjudge.toml, and whether they can be opened."""
    found = read_config(config)
    gates: dict[str, Gate] = {}
    status = 0
    for name in found.gates:
        try:
            gates[name] = open_gate(name, found)
        except UsageError as error:
            complain(str(error))
            status = 2
    if as_json:
        if status == 0:
            described = {name: _describe(item) for name, item in gates.items()}
            write_json({"schema": "adjudge/gates/1", "config_digest": found.digest, "gates": described})
        return status
    if not found.gates:
        note(f"no gates: write [gates.NAME] into {found.path or 'adjudge.toml'}")
        return status
    table = make_table("", ("gate", "rules", "rubric", "judge", "failed", "undecided", "tampering", "mode", "sample"))
    for name, item in gates.items():
        add_row(table, name, *[str(value if value is not None else "-") for value in _list_fields(item)])
    show(table)
    return status


@gate_app.command("check")
def check_gate(
    name: Annotated[str, typer.Argument(metavar="NAME", hidden=True)],
    paths: option.Contents = None,
    reference: option.Reference = None,
    task: option.Task = None,
    context: option.Context = None,
    as_json: option.AsJson = False,
    concurrency: option.Concurrency = 8,
    config: option.ConfigFile = None,
) -> int:
    """Put contents through a gate of adjudge.toml.

    PATH is a file with one content, or, ending in .jsonl or .parquet, a data set with one in each case; - is standard
    input, and so is no PATH at all.

    Exit status: 0 allowed, 1 blocked because it failed, 2 wrong usage or unreadable input, 3 blocked because nobody
    could decide or a person has to. Of several inputs, 2 beats 1 beats 3 beats 0.
    """
    if concurrency < 1:
        raise UsageError(f"--concurrency must be a whole number of at least 1, got {concurrency}")
    gate = open_gate(name, read_config(config))
    files = {"reference": reference, "task": task, "context": context}
    how = {key: read_text_file(path, what=f"--{key}") for key, path in files.items() if path is not None}
    inputs = list_inputs(paths)
    # Not the library's sync door: an interrupt has to end here only when every call that was under way has ended.
    done = asyncio.run(_check_all(gate, inputs, how, concurrency))
    (_write if as_json else _print)(done, single=inputs.single)
    for said in {item.error: None for item, _ in done if item.error is not None}:
        complain(said)
    return find_status([decision for _, decision in done])


def find_status(decisions: Sequence[Decision | None]) -> int:
    """The exit status of several inputs: unreadable beats failed beats held back beats allowed."""
    if not decisions or any(item is None for item in decisions):
        return 2
    stopped = [item for item in decisions if item is not None and not item.allowed]
    if any(_failed(item) for item in stopped):
        return 1
    return 3 if stopped else 0


def _failed(decision: Decision) -> bool:
    """Whether somebody said no, and not merely nobody yes."""
    return not decision.pending and decision.result is not None and decision.result.outcome == "failed"


async def _check_all(gate: Gate, inputs: Inputs, how: dict[str, Any], concurrency: int) -> list[Decided]:
    """Every input with its decision, in order."""
    numbered = enumerate(inputs.items)
    done: dict[int, Decided] = {}

    async def work() -> None:
        for number, item in numbered:
            done[number] = replace(item, error=item.error or f"{item.label}: the gate ended without a decision"), None
            done[number] = await _check_one(gate, item, how)
            progress.step()

    try:
        _check_judge(gate)
        with show_progress("checked", inputs.total) as progress:
            async with asyncio.TaskGroup() as group:
                for _ in range(concurrency):
                    group.create_task(work())
    finally:
        await gate.aclose()
    return [done[number] for number in sorted(done)]


def _check_judge(gate: Gate) -> None:
    """Raise ``UsageError`` for a judge that cannot be asked at all (no key): every content would be blocked by it."""
    if gate.rubric is None or all(item.rule for item in gate.rubric.criteria):
        return
    for leaf in list_leaves(gate.judge):
        ready = getattr(leaf.model, "check", None)
        if ready is not None:
            ready()


async def _check_one(gate: Gate, item: Item, how: dict[str, Any]) -> Decided:
    if item.error is not None:
        return item, None
    if not isinstance(item.content, Case):
        return item, await gate.check(item.content, **how)
    case = item.content
    own = {name: getattr(case, name) for name in ("reference", "task", "context")}
    merged = {**how, **{name: value for name, value in own.items() if value is not None}}
    return item, await gate.check(case.content, **merged, metadata={**case.metadata, "case": case.id})


def _write(done: Sequence[Decided], *, single: bool) -> None:
    entries = [
        name_item(item) | (decision.to_dict() if decision is not None else {"error": item.error})
        for item, decision in done
    ]
    if not single:
        write_json({"schema": "adjudge/decisions/1", "decisions": entries})
    elif done[0][1] is not None:
        write_json(entries[0])


def _print(done: Sequence[Decided], *, single: bool) -> None:
    for item, decision in done:
        if decision is not None:
            # On one line, whatever a judge or a rule wrote.
            said = " ".join(decision.explain().split())
            say(said if single else f"{item.label}: {said}")


def _list_fields(gate: Gate) -> tuple[Any, ...]:
    described = _describe(gate)
    return (", ".join(described.pop("rules")) or None, *described.values())


def _describe(gate: Gate) -> dict[str, Any]:
    return {
        "rules": [item.name for item in gate.rules],
        "rubric": gate.rubric.name if gate.rubric is not None else None,
        "judge": gate.judge.name if gate.judge is not None else None,
        "on_failed": gate.on_failed,
        "on_undecided": gate.on_undecided,
        "on_tampering": gate.on_tampering,
        "mode": gate.mode,
        "sample": gate.sample,
    }
