"""What the ledger is told of a request: the entries of each step, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from adjudge._plain import to_plain
from adjudge.approval._values import Approval, Vote
from adjudge.result import JudgeResult

REQUEST_SCHEMA = "adjudge/approval-request/1"
VOTE_SCHEMA = "adjudge/vote/1"
CLOSING_SCHEMA = "adjudge/approval-closing/1"
OVERRIDE_SCHEMA = "adjudge/override/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """An entry to be: its kind, what it says, and its texts that can quote what was judged."""

    kind: str
    payload: dict[str, Any]
    quoting: dict[str, str] = field(default_factory=dict)


def tell_requested(approval: Approval, result: JudgeResult) -> Said:
    """That people are asked, whom, and about which result, which stands there whole."""
    names = ("approvers", "required", "created_at", "expires_at", "on_expiry", "metadata")
    payload = {"schema": REQUEST_SCHEMA, **_about(approval), "result": result.to_dict()}
    payload |= {name: to_plain(getattr(approval, name)) for name in names}
    payload |= {"request": approval.request, "has_content": approval.content is not None}
    return Said(kind="approval.requested", payload=payload, quoting={"message": approval.message})


def tell_voted(approval: Approval, vote: Vote, refused: str | None) -> Said:
    """That somebody decided, and whether it counts; the reason a person gives is kept as it is."""
    payload = {"schema": VOTE_SCHEMA, **_about(approval), "by": vote.by, "approved": vote.approved}
    payload |= {
        "at": to_plain(vote.at),
        "reason": vote.reason,
        "voter": "human",
        "accepted": refused is None,
        "refused_because": refused,
    }
    return Said(kind="approval.voted", payload=payload)


def tell_judged(approval: Approval, judged: JudgeResult) -> Said:
    """What the judge said that was asked before the people; the entry is about that judge's result."""
    accepted = approval.decided_by == "judge"
    payload = {"schema": VOTE_SCHEMA, **_about(approval), "result": judged.to_dict(), "by": judged.judge}
    payload |= {"voter": "judge", "approved": judged.passed, "accepted": accepted, "reason": approval.first_said}
    return Said(kind="approval.voted", payload=payload)


def tell_closed(approval: Approval) -> Said:
    """That it has ended, how, and who ended it."""
    names = ("status", "decided_by", "closed_at", "closed_by", "closed_because")
    payload = {"schema": CLOSING_SCHEMA, **_about(approval)}
    payload |= {name: to_plain(getattr(approval, name)) for name in names}
    return Said(kind="approval.closed", payload=payload)


def tell_override(approval: Approval) -> Said:
    """That people decided otherwise than the judge."""
    payload = {"schema": OVERRIDE_SCHEMA, **_about(approval), "label": approval.status == "approved"}
    payload |= {"by": list(approval.closed_by), "reason": approval.closed_because, "closed_seq": approval.closed_seq}
    return Said(kind="override", payload=payload)


def _about(approval: Approval) -> dict[str, Any]:
    """What every entry says of its request; ``result`` is what ``query`` finds outcome and judge in."""
    result = {"id": approval.result_id, "outcome": approval.outcome, "judge": approval.judge}
    result |= {"score": approval.score, "undecided_because": approval.undecided_because}
    about: dict[str, Any] = {"approval": approval.id, "result": result}
    more = {"gate": approval.gate, "execution": approval.execution}
    return about | {name: text for name, text in more.items() if text is not None}
