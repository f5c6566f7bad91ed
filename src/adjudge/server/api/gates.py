"""``/v1/gates``: putting content through the gates of the configuration.

What a gate decides is decided in ``guards/gate.py`` (``Check``), and which gates a caller may name in
``server/permissions.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Depends
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from adjudge.formats.text import show
from adjudge.guards.decision import Decision
from adjudge.guards.gate import Gate
from adjudge.server.api.content import ContentBody
from adjudge.server.api.endpoint import (
    answer,
    check_content,
    explaining_usage,
    log_troubles,
    make_router,
    wait_until_decided,
)
from adjudge.server.caller import Caller, require
from adjudge.server.idempotency import answer_once
from adjudge.server.metrics import get_metrics
from adjudge.server.problem import Problem
from adjudge.server.state import CurrentState, ServerState

router = make_router("gates", judges=True)

CALL = "call"
"""The member of a decision's metadata that assigns it to an agent's run. A request may not set it: with refusals, a
client could stop the run of another client."""

CALLER = "adjudge_caller"
"""The member of a decision's metadata that says who sent the request. A request may not set it."""

Judging = Annotated[Caller, Depends(require("judge", by_gate=True))]


class CheckBody(ContentBody):
    """Content for a gate, or a run; the other members may be any JSON value."""

    task: Any = Field(default=None, description="What was asked for.")
    context: Any = Field(default=None, description="What may be relied on.")
    reference: Any = Field(default=None, description="A known good answer.")
    metadata: dict[str, Any] = Field(default_factory=dict, description="Copied to the decision; never sent to a model.")


class ResumeBody(ContentBody):
    """A decision that waits for people. What is given beside it has to be what was held back."""

    approval: str = Field(max_length=200, description="The approval_id of the pending decision.")
    task: Any = None
    context: Any = None
    reference: Any = None
    wait: float = Field(default=0.0, ge=0.0, le=3_600.0, description="Seconds to wait for people, up to the deadline.")


@router.get("/gates")
async def list_gates(state: CurrentState, caller: Judging) -> Response:
    """The gates that the caller may use, and what is done with what does not pass."""
    gates = [_describe_gate(gate) for name, gate in state.gates.items() if caller.may("judge", name)]
    return answer({"schema": "adjudge/server-gates/1", "gates": gates})


@router.post("/gates/{gate}/check")
async def check_gate(request: Request, gate: str, body: CheckBody, state: CurrentState, caller: Judging) -> Response:
    """Decide whether some content may go through. The answer is a decision, whose member ``allowed`` says so.

    With an ``Idempotency-Key``, a request that is sent again is not judged again, and gets the same decision.
    """
    opened = find_gate(gate, state)
    context = {"task": body.task, "context": body.context, "reference": body.reference}
    check_content(state.settings, {"content": body.content, "run": body.dump_run(), **context})
    content = body.open_content()

    async def check() -> Response:
        """Check the content when the caller has a place in the queue, and answer with the decision."""
        async with state.queue.enter(caller.identity):
            decision = await opened.check(content, **context, metadata=_add_caller(body.metadata, caller))
        log_troubles(state)
        get_metrics(request).count_decision(decision)
        return answer(decision.to_dict())

    return await answer_once(request, state, caller, check)


@router.post("/gates/{gate}/resume")
async def resume_gate(request: Request, gate: str, body: ResumeBody, state: CurrentState, _caller: Judging) -> Response:
    """Return the decision that replaces a pending one, once people have decided; until then the pending one."""
    opened = find_gate(gate, state)
    pending = await _find_pending(opened, body.approval, state)
    names = ("task", "context", "reference")
    parts = {name: getattr(body, name) for name in names if name in body.model_fields_set}
    parts |= {"content": body.open_content()} if body.has_content else {}
    decision = pending
    # Half of the deadline is left for what follows: a decision that comes too late would be recorded, but never arrive.
    wait_seconds = min(body.wait, state.settings.deadline / 2)
    if await wait_until_decided(state, body.approval, seconds=wait_seconds):
        with explaining_usage():
            decision = await opened.resume(pending, **parts)
        log_troubles(state)
        get_metrics(request).count_decision(decision)
    return answer(decision.to_dict())


@router.get("/gates/{gate}/pending")
async def list_pending(gate: str, state: CurrentState, _caller: Judging) -> Response:
    """The gate's pending decisions that have not been resumed, the oldest first."""
    opened = find_gate(gate, state)
    decisions = await opened.pending() if opened.approvals is not None else ()
    return answer({"schema": "adjudge/decisions/1", "decisions": [decision.to_dict() for decision in decisions]})


def find_gate(name: str, state: ServerState) -> Gate:
    """Find the gate of a name; raises ``Problem`` (404) where there is none."""
    gate = state.gates.get(name)
    if gate is None:
        raise Problem(404, f"there is no gate {show(name)} here", code="unknown_gate")
    return gate


def _describe_gate(gate: Gate) -> dict[str, Any]:
    """Describe a gate's settings as plain data."""
    names = ("name", "mode", "on_failed", "on_undecided", "on_tampering")
    return {name: getattr(gate, name) for name in names} | {"on_rule": gate.policy.on_rule, "asks": gate.asks}


def _add_caller(metadata: dict[str, Any], caller: Caller) -> dict[str, Any]:
    """Add to a request's metadata who sent it; raises ``Problem`` (422) if the request says so itself."""
    check_metadata(metadata)
    return {**metadata, CALLER: caller.identity}


def check_metadata(metadata: Mapping[str, Any]) -> None:
    """Raise ``Problem`` (422) for a member that only the server writes: a request could name another sender."""
    for name in (CALLER, CALL):
        if name in metadata:
            raise Problem(422, f"metadata cannot have the member {name}, which the server writes", code="usage")


async def _find_pending(gate: Gate, ident: str, state: ServerState) -> Decision:
    """Find the decision of a gate that waits for this approval; raises ``Problem`` (404) where there is none."""
    with explaining_usage(404, code="unknown_approval"):
        pending = await state.approvals.pending(ident)
    if pending is None or pending.decision.gate != gate.name or gate.approvals is None:
        raise Problem(404, f"gate {show(gate.name)} has no pending decision of that id", code="unknown_approval")
    return pending.decision
