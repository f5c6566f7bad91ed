"""The history of an agent's run before one of its calls, for the people who decide that call.

Each call is judged alone, and harm can be done in five steps that look harmless. People who see the steps may notice
it; no code does. Whether a run may continue after refusals is decided in ``run_trust.py``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from adjudge.formats.text import flatten
from adjudge.guards.approval.approval import Approval
from adjudge.ledger.columns import find_run, make_asked_name, split_run
from adjudge.ledger.entry import Entry
from adjudge.ledger.ledger import Ledger

HISTORY_LENGTH = timedelta(hours=1)
"""The time before a call that people are shown."""

_MOST_CALLS = 10

_LONGEST_TEXT = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedCall:
    """A call that was allowed."""

    title: str
    """The name under which people were shown the call."""
    at: datetime
    """The time at which it was allowed."""
    decided_by: str
    """The one who allowed it: ``judge``, ``rule``, ``human`` or ``policy``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallHistory:
    """The circumstances of a call, for the people who decide it."""

    run_id: str
    """The run as the ledger has it."""
    requests: int
    """Requests for approval of the run in the hour before this one, this one not counted."""
    allowed: tuple[AllowedCall, ...]
    """The last calls of the run that were allowed in that hour, at most ten, the latest last."""
    before: Mapping[str, str]
    """The fate of the request about this very call before this one, in words; empty if there was none."""
    remarks: Mapping[str, str]
    """The agent's remarks about the call."""

    @property
    def owner(self) -> str | None:
        """The key of a server that made the run, like ``key:54343b4accb3``; ``None`` for a run of no server."""
        return split_run(self.run_id).owner

    @property
    def session(self) -> str:
        """The program's own name of the run."""
        return split_run(self.run_id).name


async def read_call_history(ledger: Ledger, approval: Approval) -> CallHistory | None:
    """Read the history of the call that a request is about; ``None`` where it is about no call.

    Args:
        ledger: The ledger that the call's run is recorded in.
        approval: The request about the call.
    """
    run = find_run(dict(approval.metadata))
    if run is None:
        return None
    since, until = approval.created_at - HISTORY_LENGTH, approval.created_at
    requests = 0
    async for entry in ledger.query(run=make_asked_name(run), since=since):
        requests += approval.seq is not None and entry.seq < approval.seq
    allowed: deque[AllowedCall] = deque(maxlen=_MOST_CALLS)
    async for entry in ledger.query(run=run, kind="decision", since=since, until=until):
        payload = entry.payload or {}
        if payload.get("allowed") is True:
            allowed.append(_read_allowed_call(entry, payload))
    return CallHistory(
        run_id=run,
        requests=requests,
        allowed=tuple(allowed),
        before=read_before(approval),
        remarks=_read_texts(approval.metadata.get("remarks")),
    )


def read_before(approval: Approval) -> dict[str, str]:
    """Read what became of the previous request about the same call, by member; empty if there was none."""
    return _read_texts(approval.metadata.get("before"))


def _read_allowed_call(entry: Entry, payload: Mapping[str, Any]) -> AllowedCall:
    """Read an allowed call from the entry of the decision that allowed it."""
    metadata = payload.get("metadata")
    title = metadata.get("title") if isinstance(metadata, Mapping) else None
    return AllowedCall(
        title=flatten(str(title or "a call"), _LONGEST_TEXT), at=entry.at, decided_by=str(payload.get("decided_by"))
    )


def _read_texts(members: object) -> dict[str, str]:
    """Read a mapping in the metadata as short lines of text by name; it may hold anything that an agent wrote."""
    if not isinstance(members, Mapping):
        return {}
    texts = {name: ", ".join(map(str, value)) if isinstance(value, list) else value for name, value in members.items()}
    return {flatten(str(name), _LONGEST_TEXT): flatten(str(text), _LONGEST_TEXT) for name, text in texts.items()}
