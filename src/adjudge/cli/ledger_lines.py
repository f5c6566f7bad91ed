"""Entries of a ledger in a few words: who did what to what was judged.

A ledger holds whatever was appended to it, so nothing here trusts the form of a payload.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adjudge.ledger.entry import Entry


def describe_entry(entry: Entry) -> str:
    """Describe what happened, as far as the entry says; empty for kinds that say it with their outcome."""
    if entry.payload is None:
        return "(erased)"
    member, describe = _DESCRIPTIONS.get(entry.kind, ("", None))
    return describe(entry.payload) if describe is not None and member in entry.payload else ""


def _describe_decision(payload: Mapping[str, Any]) -> str:
    if payload.get("pending") is True:
        return "pending"
    return f"{'allowed' if payload.get('allowed') is True else 'blocked'} by {payload.get('decided_by')}"


def _describe_voted(payload: Mapping[str, Any]) -> str:
    if payload.get("voter") == "judge":
        return str(payload.get("reason"))
    word = "approves" if payload.get("approved") is True else "denies"
    counts = "" if payload.get("accepted") is True else f" (does not count: {payload.get('refused_because')})"
    way = f" by {payload['channel']}" if payload.get("channel") else ""
    return f"{payload.get('by')} {word}{way}{counts}" + (f": {payload['reason']}" if payload.get("reason") else "")


def _describe_pending_vote(payload: Mapping[str, Any]) -> str:
    word = "approves" if payload.get("approved") is True else "denies"
    reason = f": {payload['reason']}" if payload.get("reason") else ""
    return f"{payload.get('by')} {word}, and can take it back until {payload.get('final_at')}{reason}"


def _describe_withdrawn(payload: Mapping[str, Any]) -> str:
    return f"{payload.get('by')} takes back the vote of entry {payload.get('vote')}"


def _describe_comment(payload: Mapping[str, Any]) -> str:
    return f"{payload.get('by')}: {payload.get('text')}"


def _describe_override(payload: Mapping[str, Any]) -> str:
    what = f"audit is {payload.get('opinion')}, says" if "audit" in payload else "overruled by"
    return f"{what} {_list_names(payload, 'by')}"


def _describe_requested(payload: Mapping[str, Any]) -> str:
    return f"asked {_list_names(payload, 'approvers')}; needs {payload.get('required')}"


def _describe_closed(payload: Mapping[str, Any]) -> str:
    return f"{payload.get('status')} by {_list_names(payload, 'closed_by')}"


def _describe_audit(payload: Mapping[str, Any]) -> str:
    if payload.get("decided_by") != "human":
        return "nobody answered"
    was = "was right to let through" if payload.get("status") == "approved" else "should have been stopped"
    return f"{was}, says {_list_names(payload, 'closed_by')}"


def _describe_erasure(payload: Mapping[str, Any]) -> str:
    bodies = payload.get("bodies")
    what = f"entry {payload.get('seq')}" if bodies is None else f"{bodies} payloads and what belongs to them"
    return f"of {what} by {payload.get('by')}"


def _list_names(payload: Mapping[str, Any], name: str) -> str:
    value = payload.get(name)
    names = ", ".join(map(str, value)) if isinstance(value, list) else str(value or "")
    return names or str(payload.get("decided_by") or "nobody")


_DESCRIPTIONS: dict[str, tuple[str, Callable[[Mapping[str, Any]], str]]] = {
    "decision": ("allowed", _describe_decision),
    "approval.requested": ("approvers", _describe_requested),
    "approval.voted": ("by", _describe_voted),
    "approval.vote_pending": ("by", _describe_pending_vote),
    "approval.vote_withdrawn": ("by", _describe_withdrawn),
    "approval.commented": ("by", _describe_comment),
    "approval.closed": ("status", _describe_closed),
    "audit.requested": ("approvers", _describe_requested),
    "audit.closed": ("status", _describe_audit),
    "audit.failed": ("problem", lambda payload: f"nobody could be asked: {payload['problem']}"),
    "audit.planted": ("by", lambda payload: f"{payload['by']} made it up: {payload.get('reason')}"),
    "model.changed": ("model", lambda payload: f"{payload['model']} answers for {payload.get('gate')}"),
    "monitor.reset": ("by", lambda payload: f"{payload['by']} begins anew: {payload.get('reason')}"),
    "override": ("by", _describe_override),
    "erasure": ("by", _describe_erasure),
}
"""By kind: the member without which an entry says nothing, and the function that describes it."""
