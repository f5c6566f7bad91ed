"""Unfinished calls: people approved them, and no entry of the ledger says that they were made, as after a crash.

Such a call is not repeated automatically, because it may have run. It is listed for people who can find out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from adjudge.formats.text import flatten
from adjudge.ledger.columns import CALL_PASSED, CALL_RAN, CALL_UNCHECKED, find_run, is_about_no_call
from adjudge.ledger.entry import Entry
from adjudge.ledger.ledger import Ledger

AT_WORK = 600.0
"""Seconds after its approval was used for which a call counts as still running."""

CONTENT = "content"
"""The ``kind`` of a text that was checked like a call, and of which no entry says later that it was used."""

_LONGEST_NAME = 200


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
        members = {"seq": self.seq, "at": self.at.isoformat(), "run": self.run_id, "call": self.call_id}
        return {**members, "tool": self.tool, "server": self.server, "approval": self.approval_id}


async def list_unfinished_calls(
    ledger: Ledger, *, run: str | None = None, since: datetime | None = None, at_work: float = AT_WORK
) -> tuple[UnfinishedCall, ...]:
    """List calls that people approved and of which no entry says that they were made, the oldest first.

    Only calls of ``run`` and calls that were allowed ``since`` a time are listed (``None``: all). Calls that were
    allowed in the last ``at_work`` seconds are left out, because they may be running. Raises ``UsageError`` if there is
    no ledger, and ``LedgerError``.
    """
    until = datetime.now(UTC) - timedelta(seconds=at_work)
    calls_by_decision: dict[str, UnfinishedCall] = {}
    async for entry in ledger.query(kind="decision", run=run, since=since, until=until):
        call = _read_approved_call(entry)
        if call is not None:
            calls_by_decision[str((entry.payload or {}).get("id"))] = call
    if not calls_by_decision:
        return ()
    first_seq = min(call.seq for call in calls_by_decision.values())
    # A hook records that it let a call pass, with the decision, and later that the call was made, without it.
    decision_by_call: dict[tuple[object, ...], str] = {}
    async for entry in ledger.query(kind=CALL_PASSED, run=run, after=first_seq):
        decision = (entry.payload or {}).get("decision")
        if decision in calls_by_decision:
            decision_by_call[_identify_call(entry)] = decision
    for kind in (CALL_RAN, CALL_UNCHECKED):
        async for entry in ledger.query(kind=kind, run=run, after=first_seq):
            made_by = (entry.payload or {}).get("decision") or decision_by_call.get(_identify_call(entry))
            calls_by_decision.pop(str(made_by), None)
    return tuple(calls_by_decision.values())


def _identify_call(entry: Entry) -> tuple[object, ...]:
    """Return run, call and subject of an entry, which are the same when a call is let pass and when it was made."""
    payload = entry.payload or {}
    return payload.get("run"), payload.get("call"), entry.subject


def _read_approved_call(entry: Entry) -> UnfinishedCall | None:
    """Read the call from a decision that used the approval of a call; ``None`` for any other decision."""
    payload = entry.payload or {}
    metadata, approval = payload.get("metadata"), payload.get("approval_id")
    run = find_run(metadata)
    is_used = payload.get("allowed") is True and payload.get("pending") is not True and isinstance(approval, str)
    if not is_used or run is None or not isinstance(metadata, Mapping) or is_about_no_call(metadata):
        return None
    call = metadata["call"]
    if call.get("kind") == CONTENT:
        return None
    return UnfinishedCall(
        seq=entry.seq,
        at=entry.at,
        run_id=run,
        call_id=_read_text(call.get("call_id")),
        tool=_read_text(call.get("tool")) or "",
        server=_read_text(call.get("server")),
        approval_id=str(approval),
    )


def _read_text(value: object) -> str | None:
    """Return a text in one short line; ``None`` for an empty one, and for any other value."""
    return flatten(value, _LONGEST_NAME) if isinstance(value, str) and value else None
