"""``/audits``: people say whether content that has gone through should have. Nothing waits for their answer.

An audit is stored without what the judge said, so that no page can show it before the answer.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Form, Query
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response

from adjudge.errors import DecisionRefused, UsageError
from adjudge.formats.times import get_now
from adjudge.guards.approval.approval import Approval
from adjudge.guards.approval.queue import QueueReader
from adjudge.guards.approval.request_terms import LONGEST_REASON
from adjudge.guards.approval.vote_casting import cast_vote
from adjudge.server.api.approvals import MOST_CLOSED, can_see
from adjudge.server.caller import Caller, require
from adjudge.server.links import check_link
from adjudge.server.pages.approval_view import Reader, RequestView, make_request_view
from adjudge.server.pages.opened_query import OpenedQuery
from adjudge.server.pages.page import Context, add_page, redirect, send_text, show_page
from adjudge.server.pages.read_windows import find_read_windows, set_read_cookie
from adjudge.server.problem import Problem
from adjudge.server.state import CurrentState, ServerState

router = APIRouter()

Approver = Annotated[Caller, Depends(require("approve", by_gate=True))]

_PATH = "/audits"


class AnswerForm(BaseModel):
    """The form of an audit."""

    answer: Literal["right", "stop"]
    reason: str = Field(default="", max_length=LONGEST_REASON)
    seen: str = Field(default="", max_length=100)


class AuditQuery(OpenedQuery):
    """The query of an audit's page: how it is shown, which was answered before, and a signed link that led there."""

    json_text: bool = Field(default=False, alias="json")
    answered: str = Field(default="", max_length=200)
    until: int = Field(default=0, ge=0, le=2**40)
    link: str | None = Field(default=None, max_length=200)


async def view_audits(
    request: Request, state: CurrentState, caller: Approver, query: Annotated[AuditQuery, Query()]
) -> Context:
    """Show the first audit that the reader can answer."""
    first_id = next(iter(await _list_open_audits(state, caller)), None)
    approval = None if first_id is None else await _load_audit(state, caller, first_id)
    return await _make_context(request, state, caller, query, approval)


async def show_audit(
    audit: str,
    request: Request,
    state: CurrentState,
    caller: Approver,
    query: Annotated[AuditQuery, Query()],
) -> Response:
    """Show one audit, and set a cookie that says which windows of its long texts were shown."""
    if query.link is not None:
        try:
            await check_link(state.ledger, audit, until=query.until, signature=query.link, now=get_now())
        except UsageError as error:
            raise Problem(403, str(error), code="link") from None
    approval = await _load_audit(state, caller, audit)
    context = await _make_context(request, state, caller, query, approval)
    response = await show_page(request, "audits.html", context, caller=caller)
    item = context["item"]
    if isinstance(item, RequestView):
        set_read_cookie(response, caller, approval, item.context.read, state.settings, path=_PATH)
    return response


@router.get("/audits/{audit}/content", include_in_schema=False)
async def send_content(
    audit: str,
    state: CurrentState,
    caller: Approver,
) -> Response:
    """Send the exact bytes of what went through, as far as people may read it, as a file."""
    approval = await _load_audit(state, caller, audit)
    if approval.content is None:
        raise Problem(404, "the content is not kept with this audit", code="not_kept")
    return send_text(approval.content, "content")


@router.post("/audits/{audit}/answer", include_in_schema=False)
async def answer_audit(
    audit: str,
    request: Request,
    state: CurrentState,
    caller: Approver,
    form: Annotated[AnswerForm, Form()],
) -> Response:
    """Take an answer, and go on to the next audit."""
    approval = await _load_audit(state, caller, audit)
    if caller.approver is None:
        raise Problem(403, "this account has no approver's name, so it cannot answer", code="no_approver")
    problem = await _record_answer(state, approval.id, caller.approver, form)
    if problem:
        context = await _make_context(request, state, caller, AuditQuery(), await _load_audit(state, caller, audit))
        context |= {"problem": problem, "typed": form.reason}
        return await show_page(request, "audits.html", context, caller=caller, status=409)
    return redirect(f"{_PATH}?answered={approval.id}")


async def _record_answer(state: ServerState, audit: str, approver: str, form: AnswerForm) -> str:
    """Record the answer to an audit; return an empty text, or a sentence for the page that says why it was refused."""
    if not form.seen:
        return "It cannot be answered while the page does not show all of it."
    try:
        await cast_vote(
            state.approvals,
            audit,
            approver,
            approved=form.answer == "right",
            reason=form.reason,
            seen=form.seen,
            require_complete=True,
            undo_seconds=state.settings.undo_seconds,
        )
    except DecisionRefused as error:
        if error.because == "unauthorised":
            raise Problem(403, str(error), code=error.because) from None
        return "It was answered before, or its time was over. Your answer was not recorded."
    except UsageError as error:  # a reason that no store can hold
        return f"{str(error)[:1].upper()}{str(error)[1:]}."
    return ""


@router.post("/audits/{audit}/undo", include_in_schema=False)
async def undo_answer(
    audit: str,
    state: CurrentState,
    caller: Approver,
) -> Response:
    """Take back one's own answer while it does not count yet."""
    approval = await _load_audit(state, caller, audit)
    if caller.approver is not None:
        with suppress(DecisionRefused):  # it was too late, which the page shows
            await state.approvals.withdraw(approval.id, caller.approver)
    return redirect(f"{_PATH}/{approval.id}")


async def _list_open_audits(state: ServerState, caller: Caller) -> list[str]:
    """List the ids of the audits that wait for the caller."""
    await state.approvals.close_due(most=MOST_CLOSED)
    reader = QueueReader(name=caller.approver, sees_all=caller.may("read"), gates=caller.permissions.gates, audits=True)
    return (await state.approvals.list_places(reader, order="oldest")).mine


async def _load_audit(state: ServerState, caller: Caller, ident: str) -> Approval:
    """Load an audit that the caller may see; raises ``Problem`` (404) for any other, whether it exists or not."""
    try:
        approval = await state.approvals.get(ident)
    except UsageError:
        approval = None
    # Audits are stored as requests for approval with ``audit`` set.
    if approval is None or not approval.audit or not can_see(approval, caller):
        raise Problem(404, "there is no such audit, or it is not for you", code="unknown")
    return approval


async def _make_context(
    request: Request, state: ServerState, caller: Caller, query: AuditQuery, audit: Approval | None
) -> Context:
    """Make the context of the page of audits: how many are left, and the audit that is shown, if there is one."""
    left = len(await _list_open_audits(state, caller))
    context: Context = {"item": None, "left": left, "undoable": "", "problem": "", "typed": ""}
    if query.answered:
        undoable = () if caller.approver is None else await state.approvals.list_undoable(caller.approver)
        context |= {"undoable": query.answered if query.answered in undoable else ""}
    if audit is None:
        return context
    reader = Reader(
        approver=caller.approver,
        shows_all=query.whole,
        shows_json=query.json_text,
        opened=query.opened,
        part=query.part,
        read_windows=find_read_windows(request, caller, audit),
        path=_PATH,
    )
    gaps = await state.approvals.find_gaps(audit) if audit.status == "open" else ()
    history = await state.approvals.history(audit)
    view = await asyncio.to_thread(
        make_request_view, audit, reader, get_now(), gaps=gaps, earlier=None, history=history
    )
    return context | {"item": view}


add_page(router, _PATH, view_audits, template="audits.html", scope="approve", by_gate=True)
router.add_api_route(f"{_PATH}/{{audit}}", show_audit, methods=["GET"], include_in_schema=False)
