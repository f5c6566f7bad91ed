"""``/metrics`` for Prometheus, which sends a key with the scope ``read``."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import PlainTextResponse, Response

from adjudge.server.api.endpoint import PROBLEMS
from adjudge.server.caller import Caller, require
from adjudge.server.metrics import Metrics, get_metrics
from adjudge.server.state import CurrentState

router = APIRouter(tags=["health"])


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    responses={status: PROBLEMS[status] for status in (401, 403, 421, 503, 504)},
)
async def show_metrics(
    state: CurrentState,
    _caller: Annotated[Caller, Depends(require("read"))],
    metrics: Annotated[Metrics, Depends(get_metrics)],
) -> Response:
    """Counts of requests and decisions, and how long they took."""
    return Response(metrics.render(state.queue), media_type="text/plain; version=0.0.4; charset=utf-8")
