"""What an entry of a ledger says, in a few words: who did what to what was judged.

A ledger holds whatever was appended to it, so nothing here trusts the form of a payload.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adjudge.ledger.entry import Entry


def describe_entry(entry: Entry) -> str:
    """What happened, as far as the entry says; nothing for kinds that say it with their outcome."""
    if entry.payload is None:
        return "(erased)"
    member, tell = _TOLD.get(entry.kind, ("", None))
    return tell(entry.payload) if tell is not None and member in entry.payload else ""


def _describe_decision(said: Mapping[str, Any]) -> str:
    if said.get("pending") is True:
        return "pending"
    return f"{'allowed' if said.get('allowed') is True else 'blocked'} by {said.get('decided_by')}"


def _describe_voted(said: Mapping[str, Any]) -> str:
    if said.get("voter") == "judge":
        return str(said.get("reason"))
    word = "approves" if said.get("approved") is True else "denies"
    counts = "" if said.get("accepted") is True else f" (does not count: {said.get('refused_because')})"
    return f"{said.get('by')} {word}{counts}" + (f": {said['reason']}" if said.get("reason") else "")


def _describe_pending_vote(said: Mapping[str, Any]) -> str:
    word = "approves" if said.get("approved") is True else "denies"
    why = f": {said['reason']}" if said.get("reason") else ""
    return f"{said.get('by')} {word}, and can take it back until {said.get('final_at')}{why}"


def _describe_withdrawn(said: Mapping[str, Any]) -> str:
    return f"{said.get('by')} takes back the vote of entry {said.get('vote')}"


def _describe_comment(said: Mapping[str, Any]) -> str:
    return f"{said.get('by')}: {said.get('text')}"


def _describe_override(said: Mapping[str, Any]) -> str:
    what = f"audit is {said.get('opinion')}, says" if "audit" in said else "overruled by"
    return f"{what} {_list_names(said, 'by')}"


def _describe_requested(said: Mapping[str, Any]) -> str:
    return f"{said.get('required')} of {_list_names(said, 'approvers')} asked"


def _describe_closed(said: Mapping[str, Any]) -> str:
    return f"{said.get('status')} by {_list_names(said, 'closed_by')}"


def _describe_erasure(said: Mapping[str, Any]) -> str:
    return f"of entry {said.get('seq')} by {said.get('by')}"


def _list_names(said: Mapping[str, Any], name: str) -> str:
    found = said.get(name)
    names = ", ".join(map(str, found)) if isinstance(found, list) else str(found or "")
    return names or str(said.get("decided_by") or "nobody")


_TOLD: dict[str, tuple[str, Callable[[Mapping[str, Any]], str]]] = {
    "decision": ("allowed", _describe_decision),
    "approval.requested": ("approvers", _describe_requested),
    "approval.voted": ("by", _describe_voted),
    "approval.vote_pending": ("by", _describe_pending_vote),
    "approval.vote_withdrawn": ("by", _describe_withdrawn),
    "approval.commented": ("by", _describe_comment),
    "approval.closed": ("status", _describe_closed),
    "override": ("by", _describe_override),
    "erasure": ("seq", _describe_erasure),
}
"""Of each kind the member without which an entry says nothing, and how it is told."""
