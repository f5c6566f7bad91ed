"""What a decision, or the time, makes of a request: pure, and the only place where anything is approved."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Literal

from adjudge.approval._values import Approval, Vote
from adjudge.result import JudgeResult

Refusal = Literal["unauthorised", "double", "closed", "expired"]


def refuse(approval: Approval, by: str) -> Refusal | None:
    """Why this person's decision does not count, or ``None`` when it does."""
    if by not in approval.approvers:
        return "unauthorised"
    if any(vote.by == by for vote in approval.votes):
        return "double"
    if approval.status != "open":
        return "expired" if approval.decided_by == "policy" else "closed"
    return None


def count(approval: Approval, vote: Vote) -> Approval:
    """The request after a decision that counts: one denial ends it, and so does the last approval it needs."""
    after = replace(approval, votes=(*approval.votes, vote))
    if not vote.approved:
        return _close(after, "denied", vote.at, (vote.by,), vote.reason)
    if after.missing > 0:
        return after
    names = tuple(item.by for item in after.votes)
    reasons = "; ".join(item.reason for item in after.votes if item.reason)
    return _close(after, "approved", vote.at, names, reasons)


def is_due(approval: Approval, now: datetime) -> bool:
    """Whether a request is open and its time is over; the moment itself is over."""
    return approval.status == "open" and approval.expires_at is not None and now >= approval.expires_at


def expire(approval: Approval, now: datetime) -> Approval:
    """A request whose time is over: denied, unless approving was asked for by name."""
    if approval.on_expiry == "approve":
        said, status = "it expired, and on_expiry='approve' was asked for", "approved"
    else:
        said, status = "it expired", "denied"
    return replace(approval, status=status, decided_by="policy", closed_at=now, closed_because=said)  # type: ignore[arg-type]


def approve_by_judge(approval: Approval, judged: JudgeResult, now: datetime) -> Approval:
    """A request that the judge approved which was asked before the people."""
    closed = {"status": "approved", "decided_by": "judge", "closed_at": now, "closed_by": (judged.judge,)}
    return replace(approval, **closed, closed_because=approval.first_said)  # type: ignore[arg-type]


def _close(
    approval: Approval, status: Literal["approved", "denied"], at: datetime, by: tuple[str, ...], because: str
) -> Approval:
    return replace(approval, status=status, decided_by="human", closed_at=at, closed_by=by, closed_because=because)
