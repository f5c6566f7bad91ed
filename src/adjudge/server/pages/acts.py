"""The act of one person on a request for approval, as a line of a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from adjudge.guards.approval.approval import Vote
from adjudge.ledger.entry import Entry


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
    counts_at: datetime | None = None
    """The time from which a vote counts that can still be taken back; ``None`` for any other."""
    answer: str = ""
    """The line for the agent that came with a denial."""


def make_vote_act(name: str, vote: Vote | None, *, otherwise: str = "not yet", answer: str = "") -> Act:
    """Describe somebody's vote and the line for the agent; ``otherwise`` is said where there is no vote to show."""
    if vote is None:
        return Act(name=name, state="open", did=otherwise)
    word = "approved" if vote.approved else "denied"
    return Act(name=name, state=word, did=word, at=vote.at, reason=vote.reason, counts_at=vote.final_at, answer=answer)


def read_answers(entries: Iterable[Entry]) -> dict[int, str]:
    """Read the lines for the agent that came with votes, by the place of the vote's entry."""
    answers = {entry.seq: (entry.payload or {}).get("answer") for entry in entries if entry.kind in _VOTES}
    return {seq: answer for seq, answer in answers.items() if isinstance(answer, str) and answer}


def find_withdrawn(entries: Sequence[Entry], name: str | None) -> Vote | None:
    """Find the vote that somebody took back last, with its texts; ``None`` where they have voted again since."""
    mine = [entry for entry in entries if entry.kind in (*_VOTES, _WITHDRAWN) and _read_member(entry, "by") == name]
    last = mine[-1] if name is not None and mine else None
    if last is None or last.kind != _WITHDRAWN:
        return None
    entry = next((one for one in mine if one.seq == (last.payload or {}).get("vote")), None)
    if entry is None:
        return None
    approved = (entry.payload or {}).get("approved") is True
    return Vote(
        by=name or "",
        approved=approved,
        at=last.at,
        reason=_read_member(entry, "reason"),
        answer=_read_member(entry, "answer"),
    )


_VOTES = ("approval.vote_pending", "approval.voted")

_WITHDRAWN = "approval.vote_withdrawn"


def _read_member(entry: Entry, member: str) -> str:
    text = (entry.payload or {}).get(member)
    return text if isinstance(text, str) else ""


def list_acts(entries: Iterable[Entry], *kinds: str) -> Iterator[Act]:
    """Yield what people did, by the entries of these kinds in their order."""
    for entry in entries:
        if entry.kind in kinds:
            yield _read_act(entry)


def _read_act(entry: Entry) -> Act:
    """Make the act of an entry; a vote that was not accepted is shown as one that did not count."""
    payload = entry.payload or {}
    name = str(payload.get("by", ""))
    if entry.kind == "approval.voted":
        word = "approved" if payload.get("approved") is True else "denied"
        counts = payload.get("accepted") is True
        did = word if counts else f"{word}, which did not count"
        state, answer = word if counts else "info", _read_member(entry, "answer")
        return Act(name=name, state=state, did=did, at=entry.at, reason=_read_member(entry, "reason"), answer=answer)
    if entry.kind == "approval.commented":
        return Act(name=name, state="info", did="commented", at=entry.at, reason=str(payload.get("text") or ""))
    return Act(name=name, state="info", did="took the vote back", at=entry.at)
