"""Whether the ledger says of a request what its table says: pure, over entries that were read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adjudge._plain import to_plain
from adjudge.approval._values import Approval
from adjudge.ledger import Entry


def list_places(approval: Approval) -> list[int]:
    """Where the ledger must be read to prove how a request ended."""
    return [seq or 0 for seq in (approval.seq, *[vote.seq for vote in approval.votes], approval.closed_seq)]


def find_doubt(approval: Approval, entries: Mapping[int, Entry]) -> str | None:
    """What the ledger does not say as the table does, or ``None`` where they agree.

    The table can be written by whoever has the database, and nothing protects it; so whom it took, how many of them,
    what each said and how it ended count only as the ledger holds them.
    """
    names = ("approvers", "required", "on_expiry", "expires_at", "created_at", "gate", "request")
    asked = entries.get(approval.seq or 0)
    about = (asked.payload or {}).get("result") if asked is not None else None
    same = isinstance(about, Mapping) and about.get("id") == approval.result_id
    if not same or not _says(entries, approval.seq, "approval.requested", approval, names):
        return "who was asked, and how many have to approve"
    for vote in approval.votes:
        wanted = {"by": vote.by, "approved": vote.approved, "accepted": True, "voter": "human"}
        if not _holds(entries, vote.seq, "approval.voted", approval, wanted):
            return f"what {vote.by} decided"
    names = ("status", "decided_by", "closed_by")
    return None if _says(entries, approval.closed_seq, "approval.closed", approval, names) else "how it ended"


def _says(entries: Mapping[int, Entry], seq: int | None, kind: str, approval: Approval, names: tuple[str, ...]) -> bool:
    wanted = {name: to_plain(getattr(approval, name)) for name in names}
    return _holds(entries, seq, kind, approval, wanted)


def _holds(
    entries: Mapping[int, Entry], seq: int | None, kind: str, approval: Approval, wanted: Mapping[str, Any]
) -> bool:
    entry = entries.get(seq or 0)
    if entry is None or entry.payload is None or (entry.kind, entry.subject) != (kind, approval.subject):
        return False
    said = entry.payload
    return said.get("approval") == approval.id and all(said.get(name) == value for name, value in wanted.items())
