"""What one person did about a request for approval, as a line of a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from adjudge.guards.approval.approval import Vote
from adjudge.ledger.entry import Entry
from adjudge.templates.figures import format_clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """A vote, a comment, or that there is no vote yet.

    It is made of a vote or of an entry of the ledger, which anybody may have written, and the macro ``votes`` shows
    both alike. A vote that its reader is not to see yet is made as none.
    """

    name: str
    state: str
    """``approved``, ``denied``, ``open`` for no vote, or ``info``."""
    did: str
    at: datetime | None = None
    reason: str = ""


def make_vote_act(name: str, vote: Vote | None, *, otherwise: str = "not yet") -> Act:
    """Describe somebody's vote; ``otherwise`` is what is said where there is none to show."""
    if vote is None:
        return Act(name=name, state="open", did=otherwise)
    word = "approved" if vote.approved else "denied"
    did = word if vote.final_at is None else f"{word}; counts from {format_clock(vote.final_at)} UTC"
    return Act(name=name, state=word, did=did, at=vote.at, reason=vote.reason)


def list_acts(entries: Iterable[Entry], *kinds: str) -> Iterator[Act]:
    """Yield what people did, by the entries of these kinds in their order."""
    for entry in entries:
        if entry.kind in kinds:
            yield _read_act(entry)


def _read_act(entry: Entry) -> Act:
    payload = entry.payload or {}
    name = str(payload.get("by", ""))
    if entry.kind == "approval.voted":
        word = "approved" if payload.get("approved") is True else "denied"
        counts = payload.get("accepted") is True
        did = word if counts else f"{word}, which did not count"
        reason = str(payload.get("reason") or "")
        return Act(name=name, state=word if counts else "info", did=did, at=entry.at, reason=reason)
    if entry.kind == "approval.commented":
        return Act(name=name, state="info", did="commented", at=entry.at, reason=str(payload.get("text") or ""))
    return Act(name=name, state="info", did="took the vote back", at=entry.at)
