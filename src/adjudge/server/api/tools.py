"""``/v1/tools``: reviewing forged tools, and checking what they return. Nothing that is sent here is run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any

from fastapi import Depends
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from adjudge.server.api.endpoint import StrictModel, answer, check_content, explaining_usage, make_router
from adjudge.server.caller import Caller, require
from adjudge.server.idempotency import answer_once
from adjudge.server.state import CurrentState, ServerState
from adjudge.tools.reuse import ToolHistory, digest_reuse, validate_reuse
from adjudge.tools.review import EmergentJudge
from adjudge.tools.tool import EmergentTool, ToolCandidate
from adjudge.tools.verdict import ToolReviewVerdict

router = make_router("tools", judges=True)

Judging = Annotated[Caller, Depends(require("judge"))]


class ReviewBody(StrictModel):
    """A candidate, as ``ToolCandidate.to_dict`` writes it."""

    candidate: dict[str, Any]
    judge: str | None = None


class PromotionBody(StrictModel):
    """A tool, as ``EmergentTool.to_dict`` writes it."""

    tool: dict[str, Any]
    judge: str | None = None


class ReuseBody(StrictModel):
    """An output of a tool, and the JSON Schema that it has to fit."""

    tool_id: str = Field(max_length=200)
    output: Any
    output_schema: Any
    history: dict[str, Any] | None = Field(default=None, description="As ToolHistory.to_dict writes it.")
    strict_properties: bool = False


@router.post("/tools/review")
async def review_candidate(request: Request, body: ReviewBody, state: CurrentState, caller: Judging) -> Response:
    """Review whether a candidate may become a tool; ``approved`` says so."""
    check_content(state.settings, {"candidate": body.candidate})
    with explaining_usage():
        candidate = ToolCandidate.from_dict(body.candidate)
        reviewer = EmergentJudge(state.judges.find_judge(body.judge))

    return await answer_once(
        request, state, caller, _make_review_in_turn(state, caller, lambda: reviewer.review_creation(candidate))
    )


@router.post("/tools/promotion")
async def review_promotion(request: Request, body: PromotionBody, state: CurrentState, caller: Judging) -> Response:
    """Review, by two reviewers, whether a tool may rise one tier; ``approved`` says so. Nothing is promoted by this."""
    check_content(state.settings, {"tool": body.tool})
    with explaining_usage():
        tool = EmergentTool.from_dict(body.tool)
        reviewer = EmergentJudge(state.judges.find_judge(body.judge))

    return await answer_once(
        request, state, caller, _make_review_in_turn(state, caller, lambda: reviewer.review_promotion(tool))
    )


@router.post("/tools/reuse")
async def check_reuse(body: ReuseBody, state: CurrentState, caller: Judging) -> Response:
    """Check whether an output fits its schema, without asking anybody. ``request`` is the digest of the body."""
    check_content(state.settings, {"output": body.output, "output_schema": body.output_schema})
    with explaining_usage():
        history = None if body.history is None else ToolHistory.from_dict(body.history)
    work = partial(
        validate_reuse,
        body.tool_id,
        body.output,
        body.output_schema,
        history=history,
        strict_properties=body.strict_properties,
    )
    async with state.queue.enter(caller.identity):  # in a thread: a hostile schema may take its time
        verdict = await asyncio.to_thread(work)
    return answer({**verdict.to_dict(), "request": digest_reuse(body.model_dump())})


def _make_review_in_turn(
    state: ServerState, caller: Caller, review: Callable[[], Awaitable[ToolReviewVerdict]]
) -> Callable[[], Awaitable[Response]]:
    """Make a function that waits for a place in the queue, runs a review, records its verdict, and answers with it."""

    async def review_in_turn() -> Response:
        """Run the review when the caller has a place in the queue, record the verdict, and answer with it."""
        async with state.queue.enter(caller.identity):
            with explaining_usage():
                verdict = await review()
            await state.ledger.append(verdict, kind="tool.reviewed", subject=verdict.tool_digest)
        return answer(verdict.to_dict())

    return review_in_turn
