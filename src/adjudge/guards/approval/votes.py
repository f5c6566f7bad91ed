"""Votes on a request for approval: whose counts, when it is final, and what the votes add up to.

Only the list of approvers decides who may vote: a person who asked for something may approve it too, if they are on it.

Values without a store and without a clock: ``store.py`` calls these in its transactions. Whether a person saw the
request, and whether they have to give a reason, is decided in ``vote_casting.py`` (``_check_approval``) and
``store.py`` (``_find_gap``).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Literal

from adjudge.errors import RefusedBecause
from adjudge.guards.approval.approval import Approval, Vote


def find_refusal(approval: Approval, by: str) -> RefusedBecause | None:
    """Return why this person's vote would not count, or ``None`` if it would."""
    if by not in approval.approvers:
        return "unauthorised"
    if any(vote.by == by for vote in (*approval.votes, *approval.pending_votes)):
        return "double"
    if approval.status != "open":
        return "expired" if approval.decided_by == "policy" else "closed"
    return None


def count_vote(approval: Approval, vote: Vote) -> Approval:
    """Return the request after a vote that counts: one denial ends it, and so does the last approval that it needs."""
    after = replace(approval, votes=(*approval.votes, vote))
    if not vote.approved:
        return replace(_close_by_people(after, "denied", vote.at, (vote.by,), vote.reason), answer=vote.answer)
    if after.missing > 0:
        return after
    names = tuple(vote_counted.by for vote_counted in after.votes)
    reasons = "; ".join(vote_counted.reason for vote_counted in after.votes if vote_counted.reason)
    return _close_by_people(after, "approved", vote.at, names, reasons)


def find_final_at(approval: Approval, *, approved: bool, now: datetime, undo_seconds: float) -> datetime | None:
    """Find when a vote that is given now counts; ``None`` if it counts at once.

    It counts at the latest when the request expires, so a pending denial comes before an expiry that approves. An
    approval also waits until no denial is pending: otherwise it would open the gate before that denial counts.
    """
    ends_of_undo = [now + timedelta(seconds=undo_seconds)]
    if approved:
        denials = [vote for vote in approval.pending_votes if not vote.approved]
        ends_of_undo += [vote.final_at for vote in denials if vote.final_at is not None]
    final_at = max(ends_of_undo)
    if approval.expires_at is not None:
        final_at = min(final_at, approval.expires_at)
    return final_at if final_at > now else None


def find_final_vote(approval: Approval, now: datetime) -> Vote | None:
    """Find the next pending vote that is final by now: denials first, approvals once no denial is pending."""
    if approval.status != "open":
        return None
    denials = [vote for vote in approval.pending_votes if not vote.approved]
    for vote in denials or approval.pending_votes:
        if vote.final_at is None or now >= vote.final_at:
            return vote
    return None


def drop_pending(approval: Approval, by: str) -> Approval:
    """Return the request without the pending vote of one person."""
    return replace(approval, pending_votes=tuple([vote for vote in approval.pending_votes if vote.by != by]))


def _close_by_people(
    approval: Approval, status: Literal["approved", "denied"], at: datetime, by: tuple[str, ...], because: str
) -> Approval:
    """Return the request closed by people: with its status, the time, who decided it and their reason."""
    return replace(approval, status=status, decided_by="human", closed_at=at, closed_by=by, closed_because=because)
