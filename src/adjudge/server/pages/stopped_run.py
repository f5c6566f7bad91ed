"""Agents' runs that were stopped: why, for the pages of their requests and decisions, and the form to reopen them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form
from pydantic import BaseModel, Field
from starlette.responses import Response

from adjudge.errors import UsageError
from adjudge.formats.text import flatten
from adjudge.guards.approval.request_terms import LONGEST_REASON
from adjudge.guards.tool_guard.call import LONGEST_ID
from adjudge.guards.tool_guard.run_trust import TrustReader, reopen_stopped_run
from adjudge.ledger.columns import find_run
from adjudge.server.caller import Caller, require
from adjudge.server.pages.page import find_local_path, redirect
from adjudge.server.problem import Problem
from adjudge.server.state import CurrentState, ServerState

router = APIRouter()

Reopening = Annotated[Caller, Depends(require("approve"))]
"""As for ``/v1/tools/reopen``: not somebody who is limited to gates, since a run makes calls of any."""

_OTHER_LIMITS = "mcp"
"""The harness of calls that ``adjudge mcp serve`` guards. It has other limits, so its runs are not shown as stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppedRun:
    """A run whose calls are refused until people reopen it."""

    run: str
    """As the ledger has it."""
    why: str
    can_reopen: bool
    """True if the reader may let it go on."""


class ReopenForm(BaseModel):
    """The form that lets a run go on, and the page to go back to."""

    run: str = Field(max_length=LONGEST_ID)
    reason: str = Field(max_length=LONGEST_REASON)
    back: str = Field(default="/approvals", max_length=2_000)


async def find_stopped_run(state: ServerState, caller: Caller, metadata: Mapping[str, Any]) -> StoppedRun | None:
    """Find the run of an agent's call, by the metadata of a request or decision; ``None`` if it is not stopped."""
    run, call = find_run(dict(metadata)), metadata.get("call")
    if run is None or (isinstance(call, Mapping) and call.get("harness") == _OTHER_LIMITS):
        return None
    why = (await TrustReader(state.ledger).read(run)).explain_end()
    can_reopen = caller.covers("approve", None) and caller.approver is not None
    return StoppedRun(run=run, why=why, can_reopen=can_reopen) if why else None


@router.post("/approvals/reopen", include_in_schema=False)
async def reopen_run(state: CurrentState, caller: Reopening, form: Annotated[ReopenForm, Form()]) -> Response:
    """Let a run go on, under the name of the person who sent the form, and go back."""
    if caller.approver is None:
        raise Problem(403, "your account has no approver's name, so it can look and not decide", code="forbidden")
    try:
        await reopen_stopped_run(state.ledger, form.run, by=caller.approver, reason=form.reason)
    except UsageError as error:  # no reason, or somebody else was first
        raise Problem(422, flatten(str(error), 500), code="usage", argument=error.argument) from None
    return redirect(find_local_path(form.back, "/approvals"))
