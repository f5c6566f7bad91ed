"""The answer of ``/waiting``: the amount of work that waits for a person, which the scripts of open pages ask for.

What waits is counted in ``shell.py`` (``count_waiting``).
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import JSONResponse, Response

from adjudge.formats.text import clean
from adjudge.server.caller import WAITING, Caller, require
from adjudge.server.pages.shell import count_waiting
from adjudge.server.problem import Problem
from adjudge.server.state import CurrentState, ServerState

router = APIRouter()

_MOST_GATES = 100

_LONGEST_GATE = 80


@router.get(WAITING, include_in_schema=False)
async def show_waiting(state: CurrentState, caller: Annotated[Caller, Depends(require())]) -> Response:
    """Answer with how many requests and cases wait for the person who is signed in, by page, and the requests by gate.

    It has nothing of the requests themselves, because a notification of the browser is read on a lock screen too.
    """
    if caller.session is None:
        raise Problem(403, "this is for somebody who is signed in", code="forbidden")
    counts = await count_waiting(state, caller)
    gates = await _count_by_gate(state, caller) if "/approvals" in counts else {}
    return JSONResponse({"pages": dict(counts), "gates": gates})


async def _count_by_gate(state: ServerState, caller: Caller) -> dict[str, int]:
    """Count the requests that wait for the caller, by the name of the gate, for the gates with most of them."""
    counts = await state.approvals.count_open_by_gate(caller.approver or "", gates=caller.permissions.gates)
    by_name = Counter({clean(gate or "no gate", keep_lines=False)[:_LONGEST_GATE]: counts[gate] for gate in counts})
    return dict(by_name.most_common(_MOST_GATES))
