"""Calls that people approved and of which no record says that they were made: after a crash, nobody knows.

Such a call is not made again by itself, because it may have run. It is listed instead, for people who can look.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from adjudge.formats.text import flatten
from adjudge.ledger.columns import CALL_PASSED, CALL_RAN, CALL_UNCHECKED, find_run, is_part
from adjudge.ledger.entry import Entry
from adjudge.ledger.ledger import Ledger

AT_WORK = 600.0
"""Seconds for which an approved call counts as one that is being made."""

CONTENT = "content"
"""The ``kind`` of a text that was checked like a call: nobody reports whether it was used."""

_LONGEST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfinishedCall:
    """A call that was approved, and that may have run or not."""

    seq: int
    """The place in the ledger of the decision that allowed it."""
    at: datetime
    """The time at which it was allowed."""
    run_id: str
    """The id of the agent's run."""
    call_id: str | None
    """The framework's name of it; ``None`` where calls are known by their content."""
    tool: str
    """The name of the tool."""
    server: str | None
    """The MCP server that has the tool; ``None`` for one of the agent's own."""
    approval_id: str
    """The id of the request that was approved."""

    def to_dict(self) -> dict[str, Any]:
        """Return the members as plain data."""
        named = {"seq": self.seq, "at": self.at.isoformat(), "run": self.run_id, "call": self.call_id}
        return {**named, "tool": self.tool, "server": self.server, "approval": self.approval_id}


async def list_unfinished_calls(
    ledger: Ledger, *, run: str | None = None, since: datetime | None = None, at_work: float = AT_WORK
) -> tuple[UnfinishedCall, ...]:
    """List calls that people approved and of which no entry says that they were made, the oldest first.

    ``run`` and ``since`` leave out others; calls that were allowed in the last ``at_work`` seconds are left out too,
    because they may be at work. Raises ``UsageError`` where there is no ledger, and ``LedgerError``.
    """
    until = datetime.now(UTC) - timedelta(seconds=at_work)
    allowed: dict[str, UnfinishedCall] = {}
    async for entry in ledger.query(kind="decision", run=run, since=since, until=until):
        call = _read_allowed(entry)
        if call is not None:
            allowed[str((entry.payload or {}).get("id"))] = call
    if not allowed:
        return ()
    started = min(call.seq for call in allowed.values())
    passed: dict[tuple[object, ...], str] = {}
    """The decision by which each call was let pass, for hooks, which hear of the call again when it was made."""
    async for entry in ledger.query(kind=CALL_PASSED, run=run, after=started):
        decision = (entry.payload or {}).get("decision")
        if decision in allowed:
            passed[_identify_call(entry)] = decision
    for kind in (CALL_RAN, CALL_UNCHECKED):
        async for entry in ledger.query(kind=kind, run=run, after=started):
            allowed.pop(str((entry.payload or {}).get("decision") or passed.get(_identify_call(entry))), None)
    return tuple(allowed.values())


def _identify_call(entry: Entry) -> tuple[object, ...]:
    payload = entry.payload or {}
    return payload.get("run"), payload.get("call"), entry.subject


def _read_allowed(entry: Entry) -> UnfinishedCall | None:
    """Read a decision by which the approval of a call was used; ``None`` for any other."""
    payload = entry.payload or {}
    metadata, approval = payload.get("metadata"), payload.get("approval_id")
    run = find_run(metadata)
    is_used = payload.get("allowed") is True and payload.get("pending") is not True and isinstance(approval, str)
    if not is_used or run is None or not isinstance(metadata, Mapping) or is_part(metadata):
        return None
    call = metadata["call"]
    if call.get("kind") == CONTENT:
        return None
    return UnfinishedCall(
        seq=entry.seq,
        at=entry.at,
        run_id=run,
        call_id=_read_name(call.get("call_id")),
        tool=_read_name(call.get("tool")) or "",
        server=_read_name(call.get("server")),
        approval_id=str(approval),
    )


def _read_name(value: object) -> str | None:
    return flatten(value, _LONGEST) if isinstance(value, str) and value else None
