"""What an entry of a ledger says, in a few words: who did what to what was judged.

A ledger holds whatever was appended to it, so nothing here trusts the form of a payload.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adjudge.ledger import Entry


def tell_entry(entry: Entry) -> str:
    """What happened, as far as the entry says; nothing for kinds that say it with their outcome."""
    said: Mapping[str, Any] | None = entry.payload
    if said is None:
        return "(erased)"
    told = ""
    if entry.kind == "decision":
        told = _tell_decision(said)
    elif entry.kind == "approval.requested":
        told = f"{said.get('required')} of {_list_names(said, 'approvers')} asked"
    elif entry.kind == "approval.voted":
        told = _tell_voted(said)
    elif entry.kind == "approval.closed":
        told = f"{said.get('status')} by {_list_names(said, 'closed_by')}"
    elif entry.kind == "override":
        what = f"audit is {said.get('opinion')}, says" if "audit" in said else "overruled by"
        told = f"{what} {_list_names(said, 'by')}"
    elif entry.kind == "erasure":
        told = f"of entry {said.get('seq')} by {said.get('by')}"
    return told


def _tell_decision(said: Mapping[str, Any]) -> str:
    if said.get("pending") is True:
        return "pending"
    return f"{'allowed' if said.get('allowed') is True else 'blocked'} by {said.get('decided_by')}"


def _tell_voted(said: Mapping[str, Any]) -> str:
    if said.get("voter") == "judge":
        return str(said.get("reason"))
    word = "approves" if said.get("approved") is True else "denies"
    counts = "" if said.get("accepted") is True else f" (does not count: {said.get('refused_because')})"
    return f"{said.get('by')} {word}{counts}" + (f": {said['reason']}" if said.get("reason") else "")


def _list_names(said: Mapping[str, Any], name: str) -> str:
    found = said.get(name)
    names = ", ".join(map(str, found)) if isinstance(found, list) else str(found or "")
    return names or str(said.get("decided_by") or "nobody")
