"""``/monitors``: the check that the gates that are audited still let through what they promise.

What a monitor's verdict is, is decided in ``guards/monitor.py`` (``read_monitor``).
"""

from __future__ import annotations

from collections.abc import Collection

from fastapi import APIRouter

from adjudge.errors import UsageError
from adjudge.guards.monitor import Monitor, list_audited, read_monitor
from adjudge.server.caller import AnyCaller
from adjudge.server.pages.page import Context, add_page
from adjudge.server.state import CurrentState, ServerState

router = APIRouter()

STATES = {
    "quiet": "passed",
    "too few labels": "open",
    "model changed": "warning",
    "unanswered": "warning",
    "alarm": "failed",
}
"""The look of each verdict of a monitor."""


async def view_monitors(state: CurrentState, caller: AnyCaller) -> Context:
    """Show the monitor of each gate that the caller may see, the worst verdict first."""
    monitors = await read_monitors(state, caller.permissions.gates)
    return {"monitors": monitors, "states": STATES, "answers": caller.may("approve") and caller.approver is not None}


async def read_monitors(state: ServerState, gates: Collection[str] | None) -> list[Monitor]:
    """Read the monitors of these gates, or of all with ``None``: what their audits show; the worst verdict first."""
    monitors = [await _read_monitor(state, gate) for gate in await _list_gates(state) if gates is None or gate in gates]
    verdicts = list(STATES)  # from the best to the worst
    return sorted(monitors, key=lambda monitor: (-verdicts.index(monitor.verdict), monitor.gate))


async def _list_gates(state: ServerState) -> list[str]:
    """List the gates that have audits in the ledger, and those whose configuration asks for audits."""
    configured = {name for name, gate in state.gates.items() if gate.audit is not None}
    try:
        return sorted(configured.union(await list_audited(state.ledger)))
    except UsageError:  # there is no ledger yet
        return sorted(configured)


async def _read_monitor(state: ServerState, name: str) -> Monitor:
    """Read the monitor of one gate."""
    gate = state.gates.get(name)
    # A gate of this server's configuration remembers its monitor, and reads only new entries. The audits of any other
    # gate are read from the beginning.
    if gate is None or gate.audit is None:
        return await read_monitor(state.ledger, name)
    return await gate.read_monitor()


add_page(router, "/monitors", view_monitors, template="monitors.html", scope="read", by_gate=True)
