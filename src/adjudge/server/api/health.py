"""``/healthz`` and ``/readyz``: whether the process runs, and whether it can decide."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel

from adjudge.errors import AdjudgeError
from adjudge.server.problem import Problem, logger
from adjudge.server.state import CurrentState

router = APIRouter(tags=["health"])


class HealthReply(BaseModel):
    """The answer to a probe."""

    status: Literal["ok"] = "ok"


@router.get("/healthz")
async def get_health() -> HealthReply:
    """Answer that the process runs. A failure means that it should be started anew."""
    return HealthReply()


@router.get(
    "/readyz",
    responses={503: {"description": "The ledger cannot be reached.", "content": {"application/problem+json": {}}}},
)
async def get_readiness(state: CurrentState) -> HealthReply:
    """Check that the ledger can be reached. A failure means that requests should go to another server."""
    if state.stopping.is_set():
        raise Problem(503, "the server is stopping", code="stopping", headers={"Retry-After": "1"})
    try:
        await state.ledger.head()
    except AdjudgeError as error:
        logger.warning("not ready: %s", error)
        raise Problem(503, "the ledger cannot be reached", code="store", headers={"Retry-After": "1"}) from None
    return HealthReply()
