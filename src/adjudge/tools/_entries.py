"""What the ledger is told of a tool, and whether it confirms what the tables beside it say."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from adjudge.content import digest_text
from adjudge.ledger import Entry
from adjudge.tools._record import ToolRecord
from adjudge.tools._types import ToolCandidate
from adjudge.tools._verdicts import ToolVerdict

SCHEMA = "adjudge/tool-entry/1"
KINDS = ("tool.reviewed", "tool.promoted", "tool.demoted")
_COMPARED = ("tool", "name", "description", "agent", "session", "tier", "status", "approved_by")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """An entry to be: its kind, which tool it is about by its digest, and what it says."""

    kind: str
    subject: str
    payload: dict[str, Any]


def tell_reviewed(record: ToolRecord, verdict: ToolVerdict, *, by: str | None = None) -> Said:
    """That a tool was reviewed, what was said, and as what it goes on."""
    more = {"verdict": verdict.to_dict()} | ({"by": by} if by is not None else {})
    return Said(kind="tool.reviewed", subject=verdict.tool_digest, payload=_about(record) | more)


def tell_rejected(candidate: ToolCandidate, verdict: ToolVerdict, agent: str, session: str) -> Said:
    """That a candidate did not become a tool."""
    payload = {"schema": SCHEMA, "tool": None, "name": candidate.name, "agent": agent, "session": session}
    payload |= {"description": digest_text(candidate.description), "status": "rejected"}
    return Said(kind="tool.reviewed", subject=verdict.tool_digest, payload=payload | {"verdict": verdict.to_dict()})


def tell_lost(ident: str, verdict: ToolVerdict, why: str) -> Said:
    """What was said of a tool that is gone, or is another one, by now: paid for, recorded, and without effect."""
    payload = {"schema": SCHEMA, "tool": ident, "status": "unchanged", "why": why, "verdict": verdict.to_dict()}
    return Said(kind="tool.reviewed", subject=verdict.tool_digest, payload=payload)


def tell_promoted(record: ToolRecord, verdict: ToolVerdict) -> Said:
    """That a tool rose, by which verdict, and who approved."""
    return Said(kind="tool.promoted", subject=record.digest, payload=_about(record) | {"verdict": verdict.to_dict()})


def tell_demoted(before: ToolRecord, status: str, reason: str, by: str | None) -> Said:
    """That a tool does not run any more: demoted, changed or removed; a person's reason is kept as it is."""
    payload = _about(before) | {"status": status, "tier": "session", "approved_by": None, "was": before.tier}
    return Said(kind="tool.demoted", subject=before.digest, payload=payload | {"reason": reason, "by": by})


def find_doubt(record: ToolRecord, entries: Iterable[Entry]) -> str | None:
    """What the ledger does not say as the table does, or ``None``; ``entries`` are those about the tool's digest.

    Whoever has the database can write its tables, and nothing protects those. So a tool is what the last entry about
    it says, and its tier, its scope and its being in use count only as the ledger holds them.
    """
    last: dict[str, Any] | None = None
    for entry in entries:
        if entry.kind not in KINDS:
            continue
        if entry.payload is None:
            # It may have been the one that demoted this tool.
            return f"entry {entry.seq}, which was erased"
        if entry.payload.get("tool") == record.id and entry.payload.get("status") != "unchanged":
            last = entry.payload
    if record.status != "active":
        # It does not run. But what a person took out of use must not come back as merely unreviewed.
        demoted = last is not None and last.get("status") == "demoted"
        return "that it was never demoted" if demoted and record.status == "unreviewed" else None
    if last is None:
        return "that it was ever reviewed"
    wanted = _about(record)
    odd = [name for name in _COMPARED if last.get(name) != wanted[name]]
    return f"its {', '.join(odd)}" if odd else None


def _about(record: ToolRecord) -> dict[str, Any]:
    tool = record.tool
    return {
        "schema": SCHEMA,
        "tool": tool.id,
        "name": record.name,
        "description": digest_text(tool.candidate.description),
        "agent": tool.agent,
        "session": tool.session,
        "status": record.status,
        "tier": tool.tier,
        "approved_by": record.approved_by,
    }
