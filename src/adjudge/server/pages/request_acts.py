"""Acts of people on a request for approval, such as votes and comments, as the lines of a page."""

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


def make_vote_act(name: str, vote: Vote | None, *, no_vote_text: str = "not yet", answer: str = "") -> Act:
    """Make the act of somebody's vote, with the line for the agent; ``no_vote_text`` is shown if there is no vote."""
    if vote is None:
        return Act(name=name, state="open", did=no_vote_text)
    word = "approved" if vote.approved else "denied"
    return Act(name=name, state=word, did=word, at=vote.at, reason=vote.reason, counts_at=vote.final_at, answer=answer)


def read_answers(entries: Iterable[Entry]) -> dict[int, str]:
    """Read the lines for the agent that came with votes, by the number of the vote's entry in the ledger."""
    answers = {entry.seq: (entry.payload or {}).get("answer") for entry in entries if entry.kind in _VOTES}
    return {seq: answer for seq, answer in answers.items() if isinstance(answer, str) and answer}


def find_withdrawn_vote(entries: Sequence[Entry], name: str | None) -> Vote | None:
    """Find the vote that a person took back last, with its texts, to fill the form with it.

    ``None`` if they have taken none back, or have voted again since.
    """
    kinds = (*_VOTES, _WITHDRAWN)
    own_entries = [entry for entry in entries if entry.kind in kinds and _read_member(entry, "by") == name]
    last = own_entries[-1] if name is not None and own_entries else None
    if last is None or last.kind != _WITHDRAWN:
        return None
    # The entry of a withdrawal has the number of the vote's entry.
    vote_entry = next((entry for entry in own_entries if entry.seq == (last.payload or {}).get("vote")), None)
    if vote_entry is None:
        return None
    approved = (vote_entry.payload or {}).get("approved") is True
    return Vote(
        by=name or "",
        approved=approved,
        at=last.at,
        reason=_read_member(vote_entry, "reason"),
        answer=_read_member(vote_entry, "answer"),
    )


_VOTES = ("approval.vote_pending", "approval.voted")

_WITHDRAWN = "approval.vote_withdrawn"


def _read_member(entry: Entry, member: str) -> str:
    """Read a text of an entry's payload; empty if it has no such text."""
    text = (entry.payload or {}).get(member)
    return text if isinstance(text, str) else ""


def list_acts(entries: Iterable[Entry], *kinds: str) -> Iterator[Act]:
    """Yield the acts that the entries of these kinds record, in the order of the entries."""
    for entry in entries:
        if entry.kind in kinds:
            yield _read_act(entry)


def _read_act(entry: Entry) -> Act:
    """Make the act that an entry records: a vote, a comment, or the withdrawal of a vote."""
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
