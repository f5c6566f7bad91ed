"""``/approvals/mine``: a person's decisions, with time and reason, and what the judge and the other approvers said."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Depends, Query

from adjudge.formats.numbers import format_score
from adjudge.formats.times import get_now
from adjudge.guards.approval.approval import Vote
from adjudge.guards.approval.queue import RequestSummary
from adjudge.server.caller import Caller, require
from adjudge.server.pages.approval_view import find_vote, make_title
from adjudge.server.pages.page import Context, add_page
from adjudge.server.pages.paging import Word, choose_word, write_address
from adjudge.server.problem import Problem
from adjudge.server.state import CurrentState

router = APIRouter()

Approver = Annotated[Caller, Depends(require("approve", by_gate=True))]

_ON_PAGE = 50

_PERIODS = {"day": 1, "two": 2, "week": 7, "month": 30, "all": None}
"""The periods of the list, in days."""

_PERIOD_WORDS = {"day": "24 hours", "two": "2 days", "week": "7 days", "month": "30 days", "all": "any time"}

_VOTES = {"approved": True, "denied": False}

_VOTE_WORDS = (("", "all"), ("denied", "denied"), ("approved", "approved"))


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedRequest:
    """One decision of the reader, beside what the judge and others said; made only of a vote that counts already."""

    id: str
    is_audit: bool
    """True if it was asked about something that had gone through."""
    title: str
    gate: str
    vote: Vote
    outcome: str
    detail: str
    """The score or the reason, after the outcome; empty where there is none."""
    agrees: bool | None
    """True if the judge said the same; ``None`` where it was undecided."""
    others: tuple[Vote, ...]
    differs: bool
    """True if another approver decided otherwise."""
    status: str


async def view_decisions(
    state: CurrentState,
    caller: Approver,
    did: Word = "",
    when: Word = "month",
    page: Annotated[int, Query(ge=1, le=10_000)] = 1,
) -> Context:
    """List the reader's own decisions, the last one first. Nobody else's list is ever shown."""
    if caller.approver is None:
        raise Problem(403, "this account has no approver's name, so it has decided nothing", code="no_approver")
    period, did = choose_word(when, _PERIODS, "month"), choose_word(did, _VOTES, "")
    days = _PERIODS[period]
    ids, total = await state.approvals.list_decided(
        caller.approver,
        approved=_VOTES.get(did),
        since=None if days is None else get_now() - timedelta(days=days),
        gates=caller.permissions.gates,
        skip=(page - 1) * _ON_PAGE,
        most=_ON_PAGE,
    )
    summaries = await state.approvals.summarise(ids)
    rows = [row for row in (make_decided_request(summary, caller.approver) for summary in summaries) if row is not None]
    return {
        "rows": rows,
        "total": total,
        "first": (page - 1) * _ON_PAGE + 1,
        "votes": [(write_query(word, period), words, word == did) for word, words in _VOTE_WORDS],
        "periods": [(write_query(did, name), words, name == period) for name, words in _PERIOD_WORDS.items()],
        "newer": write_query(did, period, page - 1) if page > 1 else "",
        "older": write_query(did, period, page + 1) if page * _ON_PAGE < total else "",
    }


def write_query(did: str, when: str, page: int = 1) -> str:
    """Write the address of the list with these filters."""
    return write_address("/approvals/mine", {"did": did, "when": "" if when == "month" else when, "page": page})


def make_decided_request(summary: RequestSummary, name: str) -> DecidedRequest | None:
    """Make a row of the list; ``None`` if the reader's vote can still be undone, or is gone."""
    vote = find_vote(summary, name)
    if vote is None or vote.final_at is not None:
        return None
    others = tuple(other for other in summary.votes if other.by != name)
    judge_passed = {"passed": True, "failed": False}.get(summary.outcome)  # ``None`` where it was undecided
    return DecidedRequest(
        id=summary.id,
        is_audit=bool(summary.audit),
        title=make_title(summary),
        gate=summary.gate or "no gate",
        vote=vote,
        outcome=summary.outcome,
        detail=summary.undecided_because or ("" if summary.score is None else format_score(summary.score)),
        agrees=None if judge_passed is None else judge_passed == vote.approved,
        others=others,
        differs=any(other.approved != vote.approved for other in others),
        status=summary.status,
    )


# In front of the page of a request: the name would otherwise be an id.
add_page(router, "/approvals/mine", view_decisions, template="decisions.html", scope="approve", by_gate=True)
