"""``adjudge monitor``: the results of the audits of gates, and beginning anew after an alarm.

What a monitor says is decided in ``guards/monitor.py`` (``read_monitor``).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Annotated

import typer

from adjudge.cli import options as option
from adjudge.cli.commands.ledger import LedgerPlace, find_user, use_ledger
from adjudge.cli.exit_status import DONE, FAILED, UNDECIDED
from adjudge.cli.output import add_row, draws, make_table, note, print_line, show_drawing, write_json
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
    audited = [name for name, members in read_config(place.config).gates.items() if members.get("audit")]
    monitors, fresh = use_ledger(
        place.ledger,
        place.config,
        lambda ledger: _read_monitors(ledger, gate, reset, audited),
        key=place.key,
        writes=reset is not None,
    )
    if fresh:
        note(f"nothing was drawn yet of {', '.join(map(show, fresh))}, so there is nothing to say of it")
    if as_json:
        write_json({"schema": "adjudge/monitors/1", "monitors": [_describe(each) for each in monitors]})
    else:
        _draw(monitors)
    if reset is not None:
        return DONE
    verdicts = {each.verdict for each in monitors}
    if "alarm" in verdicts:
        return FAILED
    return DONE if verdicts == {"quiet"} and not fresh else UNDECIDED


async def _read_monitors(
    ledger: Ledger, gate: str | None, reset: str | None, audited: Collection[str]
) -> tuple[list[Monitor], list[str]]:
    """Read the monitors of the gates, and list those of ``audited`` of which nothing was drawn yet.

    Begins anew after an alarm first, where that was asked for. Raises ``UsageError`` for a gate without audits.
    """
    gates = await list_audited(ledger)
    fresh = [name for name in audited if name not in gates and gate in {None, name} and reset is None]
    if fresh and (gate is not None or not gates):
        return [], fresh
    if gate is not None and gate not in gates:
        known = f"; it has some of {', '.join(map(show, gates))}" if gates else ""
        raise UsageError(f"the ledger has no audits of gate {show(gate)}{known}")
    if not gates:
        raise UsageError("the ledger has no audits; give a gate audit = 0.02, so that people look at some of its calls")
    if gate is not None and reset is not None:
        seq = await reset_monitor(ledger, gate, by=find_user(), reason=reset)
        note(f"recorded as entry {seq}")
    return [await read_monitor(ledger, name) for name in (gates if gate is None else (gate,))], fresh


def _describe(monitor: Monitor) -> dict[str, object]:
    return {**monitor.to_dict(), "says": monitor.explain(), "advice": monitor.advice}


def _draw(monitors: list[Monitor]) -> None:
    """Print each monitor in a sentence, and on a terminal as a table."""
    for each in monitors:
        print_line(f"{each.explain()}.")
        if each.advice:
            print_line(f"  What to do: {each.advice}.")
    if not draws():
        return
    table = make_table(
        "", ("gate", "state", "promise", "audits", "answered", "bad", "open", "not answered", "evidence")
    )
    for each in monitors:
        promise = NOTHING if each.promise is None else format_rate(each.promise)
        counts = [f"{count:,}" for count in (each.audits, each.labels, each.bad, each.open, each.unanswered)]
        add_row(table, each.gate, each.verdict, promise, *counts, f"{each.wealth:.3g}", style=_COLOURS[each.verdict])
    show_drawing(table)
