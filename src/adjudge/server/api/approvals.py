"""``/v1/approvals``: the requests that people are asked about, and their decisions.

Whose vote counts is decided in ``guards/approval/votes.py`` (``find_refusal``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import Depends, Query
from pydantic import Field
from starlette.responses import Response

from adjudge.errors import DecisionRefused, UsageError
from adjudge.formats.text import flatten
from adjudge.guards.approval.approval import Approval, Status
from adjudge.guards.approval.completeness import digest_shown
from adjudge.guards.approval.queue import QueuedRequest, RequestSummary
from adjudge.guards.approval.request_terms import LONGEST_ANSWER, LONGEST_REASON
from adjudge.guards.approval.vote_casting import cast_vote
from adjudge.ledger.search_text import LONGEST_QUERY
from adjudge.server.api.endpoint import StrictModel, answer, explaining_usage, make_router
from adjudge.server.caller import Caller, require
from adjudge.server.problem import Problem
from adjudge.server.state import CurrentState, ServerState

router = make_router("approvals")

MOST = 1_000

MOST_CLOSED = 50
"""Expired requests that are closed each time that the queue is read; the next reads close the others."""

Word = Annotated[str | None, Query(max_length=1_000)]

SEARCHED = (
    "Words, an id or the beginning of a digest, all of which are in the texts; also filters on metadata, such as "
    'customer:C-20931 or title:"two words".'
)

Looking = Annotated[Caller, Depends(require("approve", "read", by_gate=True))]

Deciding = Annotated[Caller, Depends(require("approve", by_gate=True))]


class VoteBody(StrictModel):
    """A decision, in the name that the key or the account has as an approver."""

    approved: bool
    reason: str = Field(
        default="",
        max_length=LONGEST_REASON,
        description="Why. Needed to approve what the judge did not pass.",
    )
    answer: str = Field(
        default="",
        max_length=LONGEST_ANSWER,
        description="With a denial: one line for the agent whose call it is, where its guard passes answers on.",
    )
    complete: bool = Field(
        default=True,
        description="Refuse to approve a request that does not keep all that would be approved. False is for a program "
        "that shows its people all of it by itself.",
    )
    seen: str | None = Field(
        default=None,
        max_length=100,
        description="The member shown of the request that the person was shown. An approval needs it; another one is "
        "refused.",
    )


@router.get("/approvals")
async def list_approvals(  # noqa: PLR0917 - each is a member of the query
    state: CurrentState,
    caller: Looking,
    status: Literal["open", "approved", "denied", "all"] = "open",
    title: Annotated[str | None, Query(max_length=1_000, description="A part of the title.")] = None,
    agent: Word = None,
    customer: Word = None,
    gate: Word = None,
    q: Annotated[str, Query(max_length=LONGEST_QUERY, description=SEARCHED)] = "",
    limit: Annotated[int, Query(ge=1, le=MOST)] = 100,
    *,
    audits: Annotated[bool, Query(description="Audits in their place: of what went through.")] = False,
) -> Response:
    """Requests, the oldest first: those of the caller as an approver, or all of their gates with the scope ``read``.

    ``title``, ``agent`` and ``customer`` are members of the request's metadata, and ``q`` is what a person would type
    into the search of the queue.
    """
    filters = {"title": title, "agent": agent, "customer": customer, "gate": gate}
    with explaining_usage():
        if status == "open" and not audits:
            await state.approvals.close_due(most=MOST_CLOSED)
            # Only the requests of this answer are loaded in full: a queue that was flooded has thousands.
            queue = await state.approvals.list_queue(**filters, words=q)
            ids = sorted(request.id for request in queue if can_see(request, caller))
            total = len(ids)
        else:
            wanted = None if status == "all" else status
            ids, total = await _find_visible_requests(state, caller, wanted, filters, q, limit, audits=audits)
    approvals = await state.approvals.load_several(ids[:limit])
    rows = [_describe_request(approval) for approval in approvals]
    return answer({"schema": "adjudge/approvals/1", "approvals": rows, "total": total})


async def _find_visible_requests(  # noqa: PLR0917 - each is a part of the request
    state: ServerState,
    caller: Caller,
    status: Status | None,
    filters: Mapping[str, str | None],
    q: str,
    limit: int,
    *,
    audits: bool,
) -> tuple[Sequence[str], int]:
    """Find the requests that the caller can see and that match: the ids of the oldest, and the number of all.

    These are the requests for which ``can_see`` is true, found by the database so that the others need not be read.
    """
    sees_all = caller.may("read")
    if not sees_all and caller.approver is None:
        return (), 0
    approver = None if sees_all else caller.approver
    return await state.approvals.find_requests(
        status=status, approver=approver, gates=caller.permissions.gates, most=limit, words=q, audits=audits, **filters
    )


@router.get("/approvals/{approval}")
async def get_approval(approval: str, state: CurrentState, caller: Looking) -> Response:
    """One request, with the votes that counted; ``shown`` is the digest that a vote sends back as ``seen``."""
    request = await find_approval(approval, state, caller)
    return answer({**_describe_request(request), "shown": digest_shown(request)})


@router.post("/approvals/{approval}/votes")
async def vote(approval: str, body: VoteBody, state: CurrentState, caller: Deciding) -> Response:
    """Decide about a request, once. Two requests of one person are one decision; the second is answered with 409."""
    await find_approval(approval, state, caller)
    if not body.complete and caller.session is not None:
        # A person with a session approves what the page shows. Only a program can show them the rest in another way.
        raise Problem(403, "complete can be false for a key alone, and not for a session", code="forbidden")
    if caller.approver is None:
        raise Problem(
            403,
            "this key or account has no approver's name, so it cannot decide; give it one with --approver",
            code="forbidden",
        )
    try:
        request = await cast_vote(
            state.approvals,
            approval,
            caller.approver,
            approved=body.approved,
            reason=body.reason,
            seen=body.seen,
            require_complete=body.complete,
            answer=body.answer,
        )
    except DecisionRefused as error:
        status = 403 if error.because == "unauthorised" else 409
        raise Problem(status, flatten(str(error), 500), code=error.because, argument=error.argument) from None
    except UsageError as error:
        raise Problem(422, flatten(str(error), 500), code="usage", argument=error.argument) from None
    return answer(_describe_request(request))


def _describe_request(approval: Approval) -> dict[str, Any]:
    """Describe a request as plain data; an audit without the id of its result and the number of its ledger entry.

    Some audits are planted, to test whether people notice bad content. By the result and the entry, a reader could tell
    them: the result is as old as the audit itself, and no entry of a decision comes before it.
    """
    return (replace(approval, result_id="", seq=None) if approval.audit else approval).to_dict()


def can_see(approval: Approval | QueuedRequest | RequestSummary, caller: Caller) -> bool:
    """Return whether the caller may see a request: with ``read`` all of their gates, else those that they can decide.

    Somebody who approves one request of a gate has no business with the contents of the others. A closed request keeps
    its approvers, so people still see the requests that they have decided.
    """
    if caller.covers("read", approval.gate):
        return True
    return caller.covers("approve", approval.gate) and caller.approver in approval.approvers


async def find_approval(ident: str, state: ServerState, caller: Caller) -> Approval:
    """Find a request that the caller may look at; raises ``Problem`` (404) for any other, whether it exists or not."""
    with explaining_usage(404, code="unknown_approval"):
        approval = await state.approvals.get(ident)
    if not can_see(approval, caller):
        raise Problem(404, "there is no such approval for you", code="unknown_approval")
    return approval
