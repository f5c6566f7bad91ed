"""The page *Approvals*: the queue, one request with all that is needed to decide it, and the forms that decide.

Nothing here decides by GET, and nothing approves several requests at once. A vote that is given here takes effect once
it can no longer be taken back.

What a reader is not to see of a request yet is decided in ``approval_view.py`` (``is_judge_hidden``), and whose vote
counts in ``guards/approval/votes.py`` (``find_refusal``).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Form, Query
from pydantic import BaseModel, BeforeValidator, Field
from starlette.requests import Request
from starlette.responses import Response

from adjudge.errors import DecisionRefused, LedgerError, UsageError
from adjudge.formats.times import get_now
from adjudge.guards.approval.approval import Approval
from adjudge.guards.approval.completeness import Gap
from adjudge.guards.approval.figures import ReviewerFigures
from adjudge.guards.approval.pending_decisions import PendingDecision, list_judged_with
from adjudge.guards.approval.queue import (
    LONGEST_BEGINNING,
    QUEUE_ORDERS,
    QueueChoices,
    QueueOrder,
    QueuePlaces,
    QueueReader,
)
from adjudge.guards.approval.request_terms import LONGEST_ANSWER, LONGEST_REASON
from adjudge.guards.approval.vote_casting import cast_vote
from adjudge.guards.tool_guard.history import read_call_history
from adjudge.hooks import logger
from adjudge.ledger.search_text import LONGEST_QUERY
from adjudge.server.api.approvals import MOST_CLOSED, can_see
from adjudge.server.api.endpoint import explaining_usage
from adjudge.server.caller import Caller, require
from adjudge.server.csrf import is_opened_by_person
from adjudge.server.links import check_link
from adjudge.server.pages.approval_view import (
    Reader,
    RequestView,
    UndoableVote,
    find_link,
    find_metadata,
    find_next_request,
    fits_into_button,
    is_judge_hidden,
    list_undoable,
    make_queue_item,
    make_request_view,
    may_decide,
)
from adjudge.server.pages.opened_query import OpenedQuery
from adjudge.server.pages.page import Context, add_page, find_local_path, redirect, render_page, send_text, show_page
from adjudge.server.pages.read_windows import find_read_windows, set_read_cookie
from adjudge.server.pages.stopped_run import find_stopped_run
from adjudge.server.problem import Problem
from adjudge.server.sessions import YEAR, set_cookie
from adjudge.server.state import CurrentState, ServerState
from adjudge.templates.opened_parts import count_windows, is_long

router = APIRouter()

Approver = Annotated[Caller, Depends(require("approve", by_gate=True))]

LookingApprover = Annotated[Caller, Depends(require("approve", by_gate=True, decides_nothing=True))]
"""Somebody who may decide, and who asks only to see more, or to see the judge later."""

Looking = Annotated[Caller, Depends(require("approve", "read", by_gate=True))]
"""The caller who may look at requests, as over HTTP: those they are asked about, and with ``read`` all of their gates.
"""

HIDES_JUDGE = "judge"
"""The cookie of somebody who chose to decide without the judge (``hide``), or to see it at once (``show``)."""

_FIGURES_PERIOD = timedelta(days=30)

_MOST_DENIED = 100
"""Requests that one form denies, each with the beginning of its content on the page."""

_ROWS_ON_PAGE = 50
"""Requests of the queue that one page shows."""

_MOST_REASONS = 6
"""Reasons used before that one page offers."""


def _join_line_ends(text: object) -> object:
    """Return a typed text with line feeds alone as line ends: a browser sends a carriage return before each."""
    return text.replace("\r\n", "\n") if isinstance(text, str) else text


Typed = Annotated[str, BeforeValidator(_join_line_ends)]

JudgeSwitch = Literal["hide", "show"]
"""The choice to hide or show the judge until one has decided."""


class DecideForm(BaseModel):
    """The form of a request."""

    vote: Literal["approve", "deny", "comment"]
    reason: Typed = Field(default="", max_length=LONGEST_REASON)
    answer: str = Field(default="", max_length=LONGEST_ANSWER)
    seen: str = Field(default="", max_length=100)


class MoreForm(BaseModel):
    """The text that was typed into the form of a request by somebody who has more of it shown, or the judge hidden."""

    reason: Typed = Field(default="", max_length=LONGEST_REASON)
    answer: str = Field(default="", max_length=LONGEST_ANSWER)
    judge: JudgeSwitch | None = None


class DenyForm(BaseModel):
    """Several requests to deny."""

    ids: list[str] = Field(default_factory=list, max_length=_MOST_DENIED)
    reason: str = Field(default="", max_length=LONGEST_REASON)


class QueueQuery(BaseModel):
    """The part of an address that filters and orders the queue; an empty text is no condition."""

    q: str = Field(default="", max_length=LONGEST_QUERY)
    gate: str = Field(default="", max_length=1_000)
    agent: str = Field(default="", max_length=1_000)
    customer: str = Field(default="", max_length=1_000)
    sort: str = Field(default="", max_length=20)
    """One of ``QUEUE_ORDERS``; anything else is the first."""

    @property
    def order(self) -> QueueOrder:
        """The order of the queue."""
        return next((order for order in QUEUE_ORDERS if order == self.sort), QUEUE_ORDERS[0])

    @property
    def is_filtered(self) -> bool:
        """Return True if it leaves requests out."""
        return any((self.q, self.gate, self.agent, self.customer))

    @property
    def members(self) -> tuple[tuple[str, str], ...]:
        """The filters and the order that are set, as members of the query of an address."""
        members = {"q": self.q, "gate": self.gate, "agent": self.agent, "customer": self.customer}
        members |= {"sort": "" if self.order == QUEUE_ORDERS[0] else self.order}
        return tuple((name, text) for name, text in members.items() if text)

    def write(self, **more: str | int) -> str:
        """Write it as the query of an address, behind ``more`` members; empty where there is none."""
        members = more | dict(self.members)
        return f"?{urlencode(members)}" if members else ""


class QueuePageQuery(QueueQuery):
    """The query of the queue's own page, with what became of a form that denied several."""

    denied: int = 0
    late: int = 0


class ShownQuery(OpenedQuery, QueueQuery):
    """The query of a request's page: how it is shown, and the signature of a link that led there."""

    json_text: bool = Field(default=False, alias="json")
    until: int = Field(default=0, ge=0, le=2**40)
    link: str | None = Field(default=None, max_length=200)
    undone: bool = False


class NewsQuery(QueueQuery):
    """The state that a page shows, from which news are told apart."""

    after: str = Field(default="", max_length=200, pattern="^[0-9a-f-]*$")
    item: str = Field(default="", max_length=200)
    version: str = Field(default="", max_length=200)
    told: str = Field(default="", max_length=50)


class JudgeForm(BaseModel):
    """The choice whether the judge is hidden until one has decided, and the page to go back to."""

    judge: JudgeSwitch
    back: str = Field(default="/approvals", max_length=2_000 + 12 * LONGEST_QUERY)


# ---------------------------------------------------------------- looking


async def view_queue(
    request: Request, state: CurrentState, caller: Looking, query: Annotated[QueuePageQuery, Query()]
) -> Context:
    """Show the queue, and the first request in it that the reader can decide."""
    queue = await _list_open_requests(state, caller, query)
    reader = make_reader(request, state, caller)
    first_id = next(iter(queue.mine or queue.ids), None)
    first = None if first_id is None else await _load_request(state, caller, first_id)
    notice = f"{query.denied:,} denied." if query.denied > 0 else ""
    notice += f" {query.late:,} had been decided by somebody else." if query.late > 0 else ""
    try:
        context = await _make_context(state, caller, reader, query, queue=queue, approval=first)
    except Exception:
        if first is None:
            raise
        # An agent wrote the content. One that cannot be drawn must not keep people from deciding all other requests.
        logger.exception("request %s cannot be drawn", first.id)
        context = await _make_context(state, caller, reader, query, queue=queue, approval=None)
        notice += f" The request {first.id} cannot be shown here; choose another one."
    return context | {"told": notice.strip()}


async def show_request(
    id: str,  # noqa: A002 - the name in the address
    request: Request,
    state: CurrentState,
    caller: Looking,
    query: Annotated[ShownQuery, Query()],
) -> Response:
    """Show one request, and the queue beside it."""
    context, approval = await _make_request_context(id, request, state, caller, query)
    return await _answer_with_page(request, state, caller, approval, context)


async def show_more(  # noqa: PLR0917 - each is a part of the request
    id: str,  # noqa: A002 - the name in the address
    request: Request,
    state: CurrentState,
    caller: LookingApprover,
    query: Annotated[ShownQuery, Query()],
    form: Annotated[MoreForm, Form()],
) -> Response:
    """Show more of a request, or hide the judge, with what somebody has typed so far; nothing is recorded."""
    context, approval = await _make_request_context(id, request, state, caller, query, judge=form.judge)
    context |= {"typed": form.reason, "typed_answer": form.answer}
    response = await _answer_with_page(request, state, caller, approval, context)
    if form.judge is not None:
        set_cookie(response, HIDES_JUDGE, form.judge, state.settings, max_age=YEAR)
    return response


async def _answer_with_page(
    request: Request, state: ServerState, caller: Caller, approval: Approval, context: Context, *, status: int = 200
) -> Response:
    """Answer with the page of a request, and a cookie that says which windows of its long texts were shown.

    The cookie is needed later, because a request cannot be approved before all of it was shown.
    """
    response = await show_page(request, "approvals.html", context, caller=caller, status=status)
    item = context["item"]
    if isinstance(item, RequestView):
        set_read_cookie(response, caller, approval, item.context.read, state.settings)
    return response


async def _make_request_context(
    id: str,  # noqa: A002 - the name in the address
    request: Request,
    state: ServerState,
    caller: Caller,
    query: ShownQuery,
    *,
    judge: JudgeSwitch | None = None,
) -> tuple[Context, Approval]:
    """Make the context of a request's page, and return it with the request.

    Raises ``Problem`` for a signed link that is not valid (403), and for a request that the caller may not see (404).
    """
    if query.link is not None:
        try:
            await check_link(state.ledger, id, until=query.until, signature=query.link, now=get_now())
        except UsageError as error:
            raise Problem(403, str(error), code="link") from None
    reader = replace(make_reader(request, state, caller, judge), shows_all=query.whole, shows_json=query.json_text)
    approval = await _load_request(state, caller, id)
    read_windows = find_read_windows(request, caller, approval)
    reader = replace(reader, opened=query.opened, part=query.part, read_windows=read_windows, filters=query.members)
    queue = await _list_open_requests(state, caller, query)
    context = await _make_context(state, caller, reader, query, queue=queue, approval=approval)
    return context | {"undone": query.undone}, approval


async def view_deny_several(
    request: Request, state: CurrentState, caller: Approver, query: Annotated[QueueQuery, Query()]
) -> Context:
    """List the requests that the reader can deny, to choose from."""
    _check_approver(caller)
    reader, now = make_reader(request, state, caller), get_now()
    mine = (await _list_open_requests(state, caller, query)).mine
    summaries = await state.approvals.summarise(mine[:_MOST_DENIED])
    return {
        "queue": [(make_queue_item(summary, reader, now), summary.content) for summary in summaries],
        "beginning": LONGEST_BEGINNING,
        "more": max(0, len(mine) - _MOST_DENIED),
        "undo_seconds": state.settings.undo_seconds,
        "query": query.write(),
        "is_filtered": query.is_filtered,
    }


@router.get("/approvals/news", include_in_schema=False)
async def show_news(
    request: Request, state: CurrentState, caller: Looking, query: Annotated[NewsQuery, Query()]
) -> Response:
    """Show what changed since a page was made, as a line that links to it; 204 where that is known already.

    The queue itself is never re-ordered under somebody's pointer, and the form is never replaced.
    """
    new_requests = await _list_open_requests(state, caller, query, after=query.after)
    has_changed = False
    if query.item:
        approval = await _load_request(state, caller, query.item)
        has_changed = make_version(approval, make_reader(request, state, caller)) != query.version
    # The news in short. ``told`` is the token of the news that the page shows already.
    token = f"{len(new_requests.ids)}-{int(has_changed)}"
    if token == (query.told or "0-0"):
        return Response(status_code=204)
    known = query.model_copy(update={"told": token})
    context: Context = {
        "known": known,
        "new": new_requests.ids,
        "changed": has_changed,
        "query": QueueQuery.write(query),
    }
    return render_page(request, "approval_news.html", context, caller=caller)


@router.get("/approvals/{id}/content", include_in_schema=False)
async def send_content(
    id: str,  # noqa: A002 - the name in the address
    request: Request,
    state: CurrentState,
    caller: Looking,
    part: Literal["content", "task", "context", "reference"] = "content",
) -> Response:
    """Send the exact bytes of what was judged, or of what it was judged with, as a file; it counts as shown then."""
    approval = await _load_request(state, caller, id)
    text = approval.content if part == "content" else approval.texts.get(part)
    if text is None:
        raise Problem(404, f"the {part} was not kept with this request", code="not_kept")
    response = send_text(text, part)
    if is_long(text) and is_opened_by_person(request):
        all_windows = frozenset(range(1, count_windows(text) + 1))
        read_windows = {**find_read_windows(request, caller, approval), part: all_windows}
        set_read_cookie(response, caller, approval, read_windows, state.settings)
    return response


# ---------------------------------------------------------------- deciding


@router.post("/approvals/judge", include_in_schema=False)
async def store_judge_choice(state: CurrentState, _: LookingApprover, form: Annotated[JudgeForm, Form()]) -> Response:
    """Store in a cookie whether the judge is hidden until one has decided, and go back."""
    response = redirect(find_local_path(form.back, "/approvals"))
    set_cookie(response, HIDES_JUDGE, form.judge, state.settings, max_age=YEAR)
    return response


@router.post("/approvals/deny", include_in_schema=False)
async def deny_several(
    state: CurrentState,
    caller: Approver,
    form: Annotated[DenyForm, Form()],
    query: Annotated[QueueQuery, Query()],
) -> Response:
    """Deny the requests that were chosen; no form approves several."""
    name = _check_approver(caller)
    denied = late = 0
    for ident in dict.fromkeys(form.ids):
        await _load_request(state, caller, ident)
        try:
            await _cast_form_vote(state, ident, name, DecideForm(vote="deny", reason=form.reason))
            denied += 1
        except DecisionRefused as error:
            if error.because == "unauthorised":
                raise Problem(403, str(error), code=error.because) from None
            late += 1
        except UsageError as error:  # a reason that no store can hold
            raise Problem(422, str(error), code="usage") from None
    return redirect(f"/approvals{query.write(denied=denied, late=late)}")


@router.post("/approvals/{id}/decide", include_in_schema=False)
async def decide(  # noqa: PLR0917 - each is a part of the request
    id: str,  # noqa: A002 - the name in the address
    request: Request,
    state: CurrentState,
    caller: Approver,
    form: Annotated[DecideForm, Form()],
    query: Annotated[QueueQuery, Query()],
) -> Response:
    """Take a vote or a comment, and go on to the next request."""
    name = _check_approver(caller)
    approval = await _load_request(state, caller, id)
    old_queue = await _list_open_requests(state, caller, query)
    try:
        if form.vote == "comment":
            if not form.reason.strip():
                problem = "Write the comment first."
                return await _show_form_again(request, state, caller, form, query, ident=approval.id, error=problem)
            await state.approvals.comment(approval.id, name, form.reason)
            return redirect(f"/approvals/{approval.id}{query.write()}")
        # A vote on a closed request is refused below, with a message that says who was first.
        if form.vote == "approve" and approval.status == "open":
            gaps = await _list_gaps(state, approval)
            if gaps or not form.seen:
                problem = "It cannot be approved while the page does not show all of it. You can deny it."
                return await _show_form_again(request, state, caller, form, query, ident=approval.id, error=problem)
        await _cast_form_vote(state, approval.id, name, form)
    except DecisionRefused as error:
        if error.because == "unauthorised":
            raise Problem(403, str(error), code=error.because) from None
        conflict = _CONFLICTS.get(error.because, str(error))
        return await _show_form_again(request, state, caller, form, query, ident=approval.id, late=conflict)
    except UsageError as error:  # a reason that is missing, or that no store can hold
        problem = f"{str(error)[:1].upper()}{str(error)[1:]}."
        return await _show_form_again(request, state, caller, form, query, ident=approval.id, error=problem)
    new_queue = await _list_open_requests(state, caller, query)
    next_id = find_next_request(old_queue, approval.id, new_queue)
    return redirect(f"/approvals/{next_id or approval.id}{query.write()}")


@router.post("/approvals/{id}/undo", include_in_schema=False)
async def undo(
    id: str,  # noqa: A002 - the name in the address
    request: Request,
    state: CurrentState,
    caller: Approver,
    query: Annotated[QueueQuery, Query()],
) -> Response:
    """Take back one's own vote while it does not count yet."""
    name = _check_approver(caller)
    approval = await _load_request(state, caller, id)
    try:
        await state.approvals.withdraw(approval.id, name)
    except DecisionRefused:
        conflict = "It was too late to undo: the vote counts, and the gate may have been told."
        context, approval = await _make_request_context(
            approval.id, request, state, caller, ShownQuery(**query.model_dump())
        )
        return await _answer_with_page(request, state, caller, approval, context | {"conflict": conflict}, status=409)
    return redirect(f"/approvals/{approval.id}{query.write(undone='true')}")


async def _cast_form_vote(state: ServerState, ident: str, name: str, form: DecideForm) -> None:
    """Cast the vote of a form, which can be taken back for ``undo_seconds``; raises as ``cast_vote`` does."""
    await cast_vote(
        state.approvals,
        ident,
        name,
        approved=form.vote == "approve",
        reason=form.reason,
        seen=form.seen or None,
        require_complete=True,
        undo_seconds=state.settings.undo_seconds,
        answer=form.answer,
    )


_CONFLICTS = {
    "closed": "Somebody decided this first. Your vote was not recorded.",
    "expired": "Its time was over before your vote came. Your vote was not recorded.",
    "double": "You had decided this already, perhaps in another tab. This vote was not recorded.",
    "changed": "It is not what your page showed, so it was not approved. Look at it again.",
    "incomplete": "It does not show all that would be approved, so it was not approved. You can deny it.",
}


async def _show_form_again(
    request: Request,
    state: ServerState,
    caller: Caller,
    form: DecideForm,
    query: QueueQuery,
    *,
    ident: str,
    error: str = "",
    late: str = "",
) -> Response:
    """Show the page of a request again after its form was refused, with what was typed.

    Either ``error`` says what is wrong with the form (422), or ``late`` says what happened to the request meanwhile
    (409).
    """
    # A form with ``seen`` came from a page that showed all of the request, so this one shows all of it too.
    page_query = ShownQuery(**query.model_dump(), whole=bool(form.seen))
    context, approval = await _make_request_context(ident, request, state, caller, page_query)
    context |= {"error": error, "conflict": late, "typed": form.reason, "typed_answer": form.answer}
    return await _answer_with_page(request, state, caller, approval, context, status=409 if late else 422)


# ---------------------------------------------------------------- reading


def make_reader(request: Request, state: ServerState, caller: Caller, judge: JudgeSwitch | None = None) -> Reader:
    """Make the reader of a page. They decide without the judge if they chose so, else if ``[server]`` says so."""
    choice = judge or request.cookies.get(HIDES_JUDGE)
    hides_judge = choice == "hide" if choice in ("hide", "show") else state.settings.hide_judge
    return Reader(approver=_find_approver_name(caller), hides_judge=hides_judge)


def make_version(approval: Approval, reader: Reader) -> str:
    """Make a short text that changes when a request does, so that a page can be told that it is out of date.

    For a reader who does not see the votes yet, it changes with the status alone.
    """
    if is_judge_hidden(approval, reader):
        return approval.status
    # Counted together, because a vote that can be undone becomes one that counts by itself, which is no news.
    return f"{approval.status}-{len(approval.votes) + len(approval.pending_votes)}"


def _find_approver_name(caller: Caller) -> str | None:
    """Find the name under which the caller decides; ``None`` for somebody who may only read."""
    return caller.approver if caller.may("approve") else None


def _make_queue_reader(caller: Caller) -> QueueReader:
    """Make the conditions by which the store finds the requests that the caller can see, as ``can_see`` says."""
    return QueueReader(name=_find_approver_name(caller), sees_all=caller.may("read"), gates=caller.permissions.gates)


async def _list_open_requests(state: ServerState, caller: Caller, query: QueueQuery, *, after: str = "") -> QueuePlaces:
    """List the ids of the open requests that the caller may see and that match the query, in the queue's order.

    With ``after``, only those with a later id. Expired requests are closed first.
    """
    await state.approvals.close_due(most=MOST_CLOSED)
    with explaining_usage():  # a filter that no store can hold
        return await state.approvals.list_places(
            _make_queue_reader(caller),
            order=query.order,
            after=after,
            gate=query.gate or None,
            agent=query.agent or None,
            customer=query.customer or None,
            words=query.q,
        )


async def _load_request(state: ServerState, caller: Caller, ident: str) -> Approval:
    """Load a request that the caller may see; raises ``Problem`` (404) for any other, whether it exists or not."""
    try:
        approval = await state.approvals.get(ident)
    except UsageError:
        approval = None
    # Audits have a page of their own, /audits/ID, which asks something else.
    if approval is None or approval.audit or not can_see(approval, caller):
        raise Problem(404, "there is no such request for approval, or it is not for you", code="unknown")
    return approval


async def _list_gaps(state: ServerState, approval: Approval) -> Sequence[Gap]:
    """List the reasons why a request cannot be approved as it is stored."""
    gaps, _ = await _find_gaps_and_digests(state, approval)
    return gaps


async def _find_gaps_and_digests(
    state: ServerState, approval: Approval
) -> tuple[Sequence[Gap], Mapping[str, str] | None]:
    """Find why a request cannot be approved as it is stored, and with what its content was judged.

    Returns the gaps, and the digests of the task, context and reference by name; ``None`` if these are not known.
    """
    gaps = list(await state.approvals.find_gaps(approval)) if approval.status == "open" else []
    pending: PendingDecision | None = None
    try:
        pending = await state.approvals.pending(approval)
    except LedgerError:
        sentence = "What the gate holds back is not what the ledger says: one of them was changed or erased."
        again = "Deny it, and put the content through the gate again."
        gaps += [Gap(kind="changed", what=sentence, remedy=again)] if approval.status == "open" else []
    return gaps, None if pending is None else list_judged_with(pending.decision.basis)


_NO_FORM: Context = {
    "conflict": "",
    "error": "",
    "typed": None,
    "typed_answer": None,
    "told": "",
    "undone": False,
}
"""The part of the context that tells the result of a form, for a page that no form led to."""


async def _make_context(
    state: ServerState,
    caller: Caller,
    reader: Reader,
    query: QueueQuery,
    *,
    queue: QueuePlaces,
    approval: Approval | None,
) -> Context:
    """Make the context of the page: the queue, and the request that is shown beside it, if there is one."""
    now = get_now()
    undoable = await _list_undoable_votes(state, caller, reader, now)
    context: Context = {
        "item": None if approval is None else await _load_request_view(state, caller, reader, approval, now),
        "call": None if approval is None else await read_call_history(state.approvals.ledger, approval),
        "stopped": None if approval is None else await find_stopped_run(state, caller, approval.metadata),
        "customer": "" if approval is None else find_metadata(approval, "customer"),
        "link": "" if approval is None else find_link(approval),
        "version": "" if approval is None else make_version(approval, reader),
        "undoable": undoable,
        # Seconds until the next vote counts, when the page has to be loaded again.
        "renews_in": math.ceil(min(((vote.counts_at - now).total_seconds() for vote in undoable), default=0)) + 1,
        "undo_seconds": state.settings.undo_seconds,
        "hides_judge": reader.hides_judge,
        "figures": await _compute_figures(state, reader, now),
        "reasons": await _list_reasons(state, reader, approval),
        "passes_answers": None if state.hooks is None else state.hooks.settings.pass_answers,
        "decides": reader.approver is not None,
    }
    filters: Context = {
        "filters": query,
        "query": QueueQuery.write(query),
        "more_query": QueueQuery.write(query).replace("?", "&", 1),
        "choices": await _list_choices(state, caller, query),
    }
    return _NO_FORM | context | filters | await _make_queue_context(state, reader, queue, approval, now)


async def _list_choices(state: ServerState, caller: Caller, query: QueueQuery) -> QueueChoices:
    """List the gates and agents that the queue can be filtered by.

    Those of the present filter are among them, even if no request has them any more.
    """
    choices = await state.approvals.list_choices(_make_queue_reader(caller))
    return QueueChoices(
        gates=tuple(sorted({*choices.gates, query.gate} - {""})),
        agents=tuple(sorted({*choices.agents, query.agent} - {""})),
    )


async def _list_reasons(state: ServerState, reader: Reader, approval: Approval | None) -> Sequence[str]:
    """List the reasons that a reader gave before, as buttons beside the form; none for a reader who cannot decide."""
    if approval is None or reader.approver is None or not may_decide(approval, reader.approver):
        return ()
    reasons = await state.approvals.list_reasons(reader.approver, id=approval)
    return [reason for reason in reasons if fits_into_button(reason)][:_MOST_REASONS]


async def _make_queue_context(
    state: ServerState, reader: Reader, queue: QueuePlaces, approval: Approval | None, now: datetime
) -> Context:
    """Make the context of the queue: the rows around the request that is shown, and its position in the queue."""
    ids = queue.ids
    index = ids.index(approval.id) if approval is not None and approval.id in ids else None
    # The queue is shown in parts of ``_ROWS_ON_PAGE``, and this is the part with the request.
    begin = (index or 0) // _ROWS_ON_PAGE * _ROWS_ON_PAGE
    rows = await state.approvals.summarise(ids[begin : begin + _ROWS_ON_PAGE])
    return {
        # The part of the queue that is shown, and the requests that open the parts before and after it.
        "queue": [make_queue_item(request, reader, now) for request in rows],
        "first": begin + 1,
        "previous_part": ids[begin - _ROWS_ON_PAGE] if begin else None,
        "next_part": ids[begin + _ROWS_ON_PAGE] if begin + _ROWS_ON_PAGE < len(ids) else None,
        "waiting": len(ids),
        "mine": len(queue.waiting),
        # Ids sort by time. The page asks for requests after this one, and announces them without moving the rows.
        "newest": max(ids, default=""),
        "position": 0 if index is None else index + 1,
        "before": ids[index - 1] if index else None,
        "after": ids[index + 1] if index is not None and index + 1 < len(ids) else None,
    }


async def _load_request_view(
    state: ServerState, caller: Caller, reader: Reader, approval: Approval, now: datetime
) -> RequestView:
    """Load what the page shows of a request: its gaps, its history, and an earlier request like it."""
    earlier = await state.approvals.find_earlier(approval)
    gaps, judged_with = await _find_gaps_and_digests(state, approval)
    # In a thread, as the page is: reading a long context, and comparing it, takes seconds.
    return await asyncio.to_thread(
        make_request_view,
        approval,
        reader,
        now,
        gaps=gaps,
        judged_with=judged_with,
        earlier=earlier if earlier is not None and can_see(earlier, caller) else None,
        history=await state.approvals.history(approval),
    )


async def _list_undoable_votes(state: ServerState, caller: Caller, reader: Reader, now: datetime) -> list[UndoableVote]:
    """List the caller's own votes that can still be taken back, as ``approval_view.list_undoable`` does."""
    if reader.approver is None:
        return []
    ids = await state.approvals.list_undoable(reader.approver)
    summaries = await state.approvals.summarise(ids)
    requests = [request for request in summaries if can_see(request, caller) and not request.audit]
    return list_undoable(requests, reader, now)


async def _compute_figures(state: ServerState, reader: Reader, now: datetime) -> ReviewerFigures | None:
    """Compute the figures of a reader's own decisions; ``None`` for a reader who decides nothing."""
    if reader.approver is None:
        return None
    return await state.approvals.compute_figures(reader.approver, since=now - _FIGURES_PERIOD)


def _check_approver(caller: Caller) -> str:
    """Return the caller's name as an approver; raises ``Problem`` (403) if they have none."""
    if caller.approver is None:
        raise Problem(403, "this account has no approver's name, so it cannot decide", code="no_approver")
    return caller.approver


# In this order: "/approvals/deny" would otherwise be the page of a request of that name.
add_page(router, "/approvals/deny", view_deny_several, template="approvals_deny.html", scope="approve", by_gate=True)
add_page(router, "/approvals", view_queue, template="approvals.html", scope=("approve", "read"), by_gate=True)
router.add_api_route("/approvals/{id}", show_request, methods=["GET"], include_in_schema=False)
router.add_api_route("/approvals/{id}", show_more, methods=["POST"], include_in_schema=False)
