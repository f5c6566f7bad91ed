"""Entries of a ledger in a few words: who decided, approved, commented on or erased something.

A ledger holds whatever was appended to it. So each function here reads the payload of an entry with ``get``, and shows
what is there, whatever its type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adjudge.ledger.entry import Entry


def describe_entry(entry: Entry) -> str:
    """Describe in a few words what an entry records.

    Empty for kinds that need no words beside their outcome, such as results, and for a payload without the member that
    the description needs.
    """
    if entry.payload is None:
        return "(erased)"
    needed_member, describe = _DESCRIPTIONS.get(entry.kind, ("", None))
    return describe(entry.payload) if describe is not None and needed_member in entry.payload else ""


def _describe_decision(payload: Mapping[str, Any]) -> str:
    """Describe a gate's decision: pending, or allowed or blocked, and by whom."""
    if payload.get("pending") is True:
        return "pending"
    return f"{'allowed' if payload.get('allowed') is True else 'blocked'} by {payload.get('decided_by')}"


def _describe_vote(payload: Mapping[str, Any]) -> str:
    """Describe a vote on a request for approval: by whom, through which channel, and whether it counts."""
    if payload.get("voter") == "judge":
        return str(payload.get("reason"))
    verb = "approves" if payload.get("approved") is True else "denies"
    refusal = "" if payload.get("accepted") is True else f" (does not count: {payload.get('refused_because')})"
    channel = f" by {payload['channel']}" if payload.get("channel") else ""
    reason = f": {payload['reason']}" if payload.get("reason") else ""
    return f"{payload.get('by')} {verb}{channel}{refusal}{reason}"


def _describe_pending_vote(payload: Mapping[str, Any]) -> str:
    """Describe a vote that its voter can still take back."""
    verb = "approves" if payload.get("approved") is True else "denies"
    reason = f": {payload['reason']}" if payload.get("reason") else ""
    return f"{payload.get('by')} {verb}, and can take it back until {payload.get('final_at')}{reason}"


def _describe_withdrawn_vote(payload: Mapping[str, Any]) -> str:
    return f"{payload.get('by')} takes back the vote of entry {payload.get('vote')}"


def _describe_comment(payload: Mapping[str, Any]) -> str:
    return f"{payload.get('by')}: {payload.get('text')}"


def _describe_override(payload: Mapping[str, Any]) -> str:
    """Describe who gave another opinion than the rule of an audit report, or overruled a judge."""
    override = f"audit is {payload.get('opinion')}, says" if "audit" in payload else "overruled by"
    return f"{override} {_format_names(payload, 'by')}"


def _describe_request(payload: Mapping[str, Any]) -> str:
    """Describe whom a request for approval, or an audit, asks, and how many of them have to approve."""
    return f"asked {_format_names(payload, 'approvers')}; needs {payload.get('required')}"


def _describe_closed_request(payload: Mapping[str, Any]) -> str:
    return f"{payload.get('status')} by {_format_names(payload, 'closed_by')}"


def _describe_closed_audit(payload: Mapping[str, Any]) -> str:
    """Describe what people answered in an audit of something that a gate let through."""
    if payload.get("decided_by") != "human":
        return "nobody answered"
    answer = "was right to let through" if payload.get("status") == "approved" else "should have been stopped"
    return f"{answer}, says {_format_names(payload, 'closed_by')}"


def _describe_erasure(payload: Mapping[str, Any]) -> str:
    """Describe an erasure: of one entry (``adjudge ledger erase``), or of many payloads (``adjudge forget``)."""
    erased_payloads = payload.get("bodies")
    if erased_payloads is None:
        erased = f"entry {payload.get('seq')}"
    else:
        erased = f"{erased_payloads} payloads and what belongs to them"
    return f"of {erased} by {payload.get('by')}"


def _format_names(payload: Mapping[str, Any], member: str) -> str:
    """Format the name or the list of names that a member of a payload holds; without one, who decided, or "nobody"."""
    value = payload.get(member)
    names = ", ".join(map(str, value)) if isinstance(value, list) else str(value or "")
    return names or str(payload.get("decided_by") or "nobody")


_DESCRIPTIONS: dict[str, tuple[str, Callable[[Mapping[str, Any]], str]]] = {
    "decision": ("allowed", _describe_decision),
    "approval.requested": ("approvers", _describe_request),
    "approval.voted": ("by", _describe_vote),
    "approval.vote_pending": ("by", _describe_pending_vote),
    "approval.vote_withdrawn": ("by", _describe_withdrawn_vote),
    "approval.commented": ("by", _describe_comment),
    "approval.closed": ("status", _describe_closed_request),
    "audit.requested": ("approvers", _describe_request),
    "audit.closed": ("status", _describe_closed_audit),
    "audit.failed": ("problem", lambda payload: f"nobody could be asked: {payload['problem']}"),
    "audit.planted": ("by", lambda payload: f"{payload['by']} made it up: {payload.get('reason')}"),
    "model.changed": ("model", lambda payload: f"{payload['model']} answers for {payload.get('gate')}"),
    "monitor.reset": ("by", lambda payload: f"{payload['by']} begins anew: {payload.get('reason')}"),
    "override": ("by", _describe_override),
    "erasure": ("by", _describe_erasure),
}
"""By the kind of an entry: the member that its payload needs for a description, and the function that describes it."""
