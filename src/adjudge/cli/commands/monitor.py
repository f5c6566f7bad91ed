"""``adjudge monitor``: show what the audits of gates found, and begin anew after an alarm.

What a monitor says is decided in ``guards/monitor.py`` (``read_monitor``).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Annotated

import typer

from adjudge.cli import options as option
from adjudge.cli.commands.ledger import LedgerPlace, find_user, use_ledger
from adjudge.cli.exit_status import DONE, FAILED, UNDECIDED
from adjudge.cli.output import add_row, can_draw_boxes, make_table, note, print_line, show_drawing, write_json
from adjudge.config.file import read_config
from adjudge.errors import UsageError
from adjudge.formats.numbers import NOTHING, format_rate
from adjudge.formats.text import show
from adjudge.guards.monitor import Monitor, MonitorVerdict, list_audited, read_monitor, reset_monitor

if TYPE_CHECKING:
    from adjudge.ledger.ledger import Ledger

_COLOURS: dict[MonitorVerdict, str] = {
    "quiet": "green",
    "too few labels": "yellow",
    "model changed": "yellow",
    "unanswered": "yellow",
    "alarm": "red",
}


def monitor(
    gate: Annotated[str | None, typer.Argument(metavar="GATE", hidden=True)] = None,
    reset: Annotated[
        str | None,
        typer.Option("--reset", metavar="REASON", help="Begin the audits of GATE anew, and record why."),
    ] = None,
    *,
    place: LedgerPlace,
    as_json: option.AsJson = False,
) -> int:
    """Say whether gates with an audit still let through what they promise.

    $ adjudge monitor

    GATE is the name of a gate; without it, all that the ledger has audits of are shown. People answer audits on the
    server's page, or with `adjudge approvals list --audits`. After an alarm, measure the judge again, or change it;
    then --reset lets the audits begin anew, in the name of this system's user.

    Exit status: 0 quiet, or --reset was recorded, 1 an alarm, 2 wrong usage, or no gate has audits, 3 it is
    not known: nothing was drawn yet, too few labels, audits that were not answered, or another model.
    """
    if reset is not None and gate is None:
        raise UsageError("--reset begins the audits of one gate anew; name it")
    configured_gates = [name for name, table in read_config(place.config).gates.items() if table.get("audit")]
    monitors, gates_without_audits = use_ledger(
        place.ledger,
        place.config,
        lambda ledger: _read_monitors(ledger, gate, reset, configured_gates),
        key=place.key,
        writes=reset is not None,
    )
    if gates_without_audits:
        names = ", ".join(map(show, gates_without_audits))
        note(f"nothing was drawn yet of {names}, so there is nothing to say of it")
    if as_json:
        write_json({"schema": "adjudge/monitors/1", "monitors": [_describe(gate_monitor) for gate_monitor in monitors]})
    else:
        _draw(monitors)
    if reset is not None:
        return DONE
    verdicts = {gate_monitor.verdict for gate_monitor in monitors}
    if "alarm" in verdicts:
        return FAILED
    return DONE if verdicts == {"quiet"} and not gates_without_audits else UNDECIDED


async def _read_monitors(
    ledger: Ledger, gate: str | None, reset: str | None, configured_gates: Collection[str]
) -> tuple[list[Monitor], list[str]]:
    """Read the monitors of the gate that is named, or of all gates of which the ledger has audits.

    Also returns the names of the configured gates of which no call was drawn for an audit yet. With ``reset``, the
    reason for it, the monitor of the gate begins anew first. Raises ``UsageError`` for a gate without audits.
    """
    gates = await list_audited(ledger)
    gates_without_audits = [
        name for name in configured_gates if name not in gates and gate in {None, name} and reset is None
    ]
    if gates_without_audits and (gate is not None or not gates):
        return [], gates_without_audits
    if gate is not None and gate not in gates:
        other_gates = f"; it has some of {', '.join(map(show, gates))}" if gates else ""
        raise UsageError(f"the ledger has no audits of gate {show(gate)}{other_gates}")
    if not gates:
        raise UsageError("the ledger has no audits; give a gate audit = 0.02, so that people look at some of its calls")
    if gate is not None and reset is not None:
        seq = await reset_monitor(ledger, gate, by=find_user(), reason=reset)
        note(f"recorded as entry {seq}")
    shown_gates = gates if gate is None else (gate,)
    return [await read_monitor(ledger, name) for name in shown_gates], gates_without_audits


def _describe(monitor: Monitor) -> dict[str, object]:
    """Return a monitor as plain data, with its explanation and its advice in words."""
    return {**monitor.to_dict(), "says": monitor.explain(), "advice": monitor.advice}


def _draw(monitors: list[Monitor]) -> None:
    """Print each monitor in a sentence with its advice, and on a terminal all of them in a table."""
    for monitor in monitors:
        print_line(f"{monitor.explain()}.")
        if monitor.advice:
            print_line(f"  What to do: {monitor.advice}.")
    if not can_draw_boxes():
        return
    table = make_table(
        "", ("gate", "state", "promise", "audits", "answered", "bad", "open", "not answered", "evidence")
    )
    for monitor in monitors:
        promise = NOTHING if monitor.promise is None else format_rate(monitor.promise)
        numbers = (monitor.audits, monitor.labels, monitor.bad, monitor.open, monitor.unanswered)
        counts = [f"{number:,}" for number in numbers]
        evidence = f"{monitor.wealth:.3g}"
        add_row(table, monitor.gate, monitor.verdict, promise, *counts, evidence, style=_COLOURS[monitor.verdict])
    show_drawing(table)
