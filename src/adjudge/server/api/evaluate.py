"""``/v1/evaluate``: asking a judge of the configuration.

The judges and rubrics that a request can name are decided in ``server/server_judges.py`` (``ServerJudges``).
"""

from __future__ import annotations

from typing import Annotated, Any

from annotated_types import MaxLen
from fastapi import Depends
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from adjudge.config.server import MOST_LISTED, ServerSettings
from adjudge.ledger.judged_content import describe_judged
from adjudge.rules.shipped import as_rule
from adjudge.server.api.content import ContentBody
from adjudge.server.api.endpoint import (
    answer,
    check_content,
    check_counts,
    count_rules,
    explaining_usage,
    make_router,
)
from adjudge.server.api.gates import check_metadata
from adjudge.server.caller import Caller, require
from adjudge.server.idempotency import answer_once
from adjudge.server.state import CurrentState

router = make_router("judges", judges=True)


# The limit keeps validation quick: to say what is wrong with each of 90,000 items took a second, in which nobody else
# was answered.
Few = MaxLen(MOST_LISTED)


class EvaluateBody(ContentBody):
    """Content to judge, and its judge; ``rubric`` or ``criteria`` says what good means."""

    rubric: str | dict[str, Any] | None = Field(
        default=None, description="A rubric of the server by name, a shipped one, or the members of a rubric file."
    )
    criteria: str | Annotated[list[str], Few] | Annotated[dict[str, str], Few] | None = None
    threshold: float | None = Field(default=None, ge=0.0, le=1.0)
    reference: Any = None
    task: Any = None
    context: Any = None
    judge: str | None = Field(default=None, description="A judge of the server; by default its own default.")
    rules: Annotated[list[str | dict[str, Any]], Few] = Field(default_factory=list)
    instructions: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)


@router.get("/judges")
async def list_judges(state: CurrentState, _caller: Annotated[Caller, Depends(require("judge"))]) -> Response:
    """The judges and the rubrics that a request may name."""
    judges = state.judges
    members = {"judges": sorted(judges.judges), "default": judges.default, "rubrics": sorted(judges.rubrics)}
    return answer({"schema": "adjudge/server-judges/1", **members})


@router.post("/evaluate")
async def evaluate(
    request: Request,
    body: EvaluateBody,
    state: CurrentState,
    caller: Annotated[Caller, Depends(require("judge"))],
) -> Response:
    """Judge some content. The answer is a result, whose member ``outcome`` is passed, failed or undecided.

    It is recorded in the ledger; where that fails, the answer is 503 and there is no result.
    """
    _check_size(body, state.settings)
    check_metadata(body.metadata)
    content = body.open_content()
    with explaining_usage():
        judge = state.judges.find_judge(body.judge)
        rubric = state.judges.find_rubric(body.rubric)
        rules = [as_rule(rule) for rule in body.rules]

    async def judge_content() -> Response:
        """Judge the content, record the result, and answer with it."""
        async with state.queue.enter(caller.identity):
            with explaining_usage():
                result = await judge.evaluate(
                    content,
                    rubric,
                    criteria=body.criteria,
                    threshold=body.threshold,
                    reference=body.reference,
                    task=body.task,
                    context=body.context,
                    rules=rules,
                    instructions=body.instructions,
                    metadata=body.metadata,
                )
            context = {"task": body.task, "context": body.context, "reference": body.reference}
            await state.ledger.append(result, **describe_judged(state.ledger, content, context))
        return answer(result.to_dict())

    return await answer_once(request, state, caller, judge_content)


def _check_size(body: EvaluateBody, settings: ServerSettings) -> None:
    """Raise ``Problem`` (413) for more content, rules or criteria than the settings allow."""
    names = ("content", "task", "context", "reference", "instructions")
    check_content(settings, {"run": body.dump_run(), **{name: getattr(body, name) for name in names}})
    rubric_value = body.rubric.get("criteria") if isinstance(body.rubric, dict) else None
    rubric_criteria = rubric_value if isinstance(rubric_value, list) else []
    criterion_rules = [
        criterion["rule"]
        for criterion in rubric_criteria
        if isinstance(criterion, dict) and criterion.get("rule") is not None
    ]
    # ``criteria`` as one text is a single criterion, which is not counted.
    body_criteria = 0 if body.criteria is None or isinstance(body.criteria, str) else len(body.criteria)
    criteria_count = len(rubric_criteria) + body_criteria
    check_counts(settings, rules=count_rules(body.rules) + count_rules(criterion_rules), criteria=criteria_count)
