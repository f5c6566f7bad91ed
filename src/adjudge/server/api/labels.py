"""``/v1/labels``: labelling the cases of a run, blind, and settling what people differ about."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Depends
from pydantic import Field
from starlette.responses import Response

from adjudge.labels.queue import LONGEST_COMMENT, LabelQueue
from adjudge.server.api.endpoint import StrictModel, answer, make_router
from adjudge.server.blind_cases import note_earlier_read
from adjudge.server.caller import Caller, require
from adjudge.server.problem import Problem
from adjudge.server.state import CurrentState

router = make_router("labels")


Labelling = Annotated[Caller, Depends(require("label"))]

Settling = Annotated[Caller, Depends(require("adjudicate"))]

Value = bool | float | Literal["first", "second", "tie", "cannot_tell"]


class NextBody(StrictModel):
    """The choice of the next case."""

    skipped: bool = Field(default=False, description="Hand out what was skipped before.")


class LabelBody(StrictModel):
    """A label of a case."""

    case: str = Field(max_length=1_000)
    value: Value = Field(description="true, false, a number or cannot_tell; of a pair first, second, tie, cannot_tell.")
    criterion: str | None = Field(default=None, max_length=1_000)
    comment: str | None = Field(default=None, max_length=LONGEST_COMMENT)
    subject: str | None = Field(
        default=None,
        max_length=64,
        description="The subject of the task that was shown; an answer about another content is refused.",
    )


class SkipBody(StrictModel):
    """The case that is put off."""

    case: str = Field(max_length=1_000)


@router.post("/labels/{run}/next")
async def draw_next(run: str, body: NextBody, state: CurrentState, caller: Labelling) -> Response:
    """Draw the next case for the caller, kept for them for 15 minutes; ``task`` is null where nothing is left."""
    rater = name_rater(caller)
    task = await state.use_queue(run, lambda queue: queue.next(rater, skipped=body.skipped, session=caller.identity))
    return answer({"schema": "adjudge/label-next/1", "task": None if task is None else task.to_dict()})


@router.post("/labels/{run}/labels")
async def record_label(run: str, body: LabelBody, state: CurrentState, caller: Labelling) -> Response:
    """Keep what the caller says of a case; it replaces what they said before."""
    rater = name_rater(caller)
    await note_earlier_read(state, rater, run, body.case)
    label = await state.use_queue(
        run,
        lambda queue: queue.record(
            rater,
            body.case,
            body.value,
            criterion=body.criterion,
            comment=body.comment,
            session=caller.identity,
            subject=body.subject,
        ),
    )
    return answer(label.to_dict())


@router.post("/labels/{run}/skip")
async def skip_case(run: str, body: SkipBody, state: CurrentState, caller: Labelling) -> Response:
    """Put a case off."""
    rater = name_rater(caller)
    await state.use_queue(run, lambda queue: queue.skip(rater, body.case, session=caller.identity))
    return answer({"schema": "adjudge/label-skipped/1", "case": body.case})


@router.post("/labels/{run}/undo")
async def undo_label(run: str, state: CurrentState, caller: Labelling) -> Response:
    """Take back the caller's last answer; ``undone`` is null where there is none."""
    rater = name_rater(caller)
    last = await state.use_queue(run, lambda queue: queue.undo(rater, session=caller.identity))
    undone = None if last is None else {"case": last.case, "criterion": last.criterion}
    return answer({"schema": "adjudge/label-undone/1", "undone": undone})


@router.get("/labels/{run}/progress")
async def get_progress(run: str, state: CurrentState, caller: Labelling) -> Response:
    """Report the progress of labelling, for everybody and for the caller."""
    rater = name_rater(caller)
    return answer((await state.use_queue(run, lambda queue: queue.progress(rater))).to_dict())


@router.post("/labels/{run}/settle")
async def adjudicate_difference(run: str, body: LabelBody, state: CurrentState, caller: Settling) -> Response:
    """Settle what people differ about; it decides over all other labels of the case."""
    rater = name_rater(caller)
    await note_earlier_read(state, rater, run, body.case)
    label = await state.use_queue(
        run,
        lambda queue: queue.adjudicate(
            rater,
            body.case,
            body.value,
            criterion=body.criterion,
            comment=body.comment,
            session=caller.identity,
            subject=body.subject,
        ),
    )
    return answer(label.to_dict())


@router.get("/labels/{run}/labels")
async def export_labels(
    run: str, state: CurrentState, caller: Annotated[Caller, Depends(require("read", "adjudicate"))]
) -> Response:
    """Export everybody's labels, in the order in which they came. What the caller labels afterwards is not blind."""

    def export(queue: LabelQueue) -> list[dict[str, Any]]:
        """List all labels, and record that the caller as a rater was shown them."""
        if caller.rater is not None:
            queue.note_shown(caller.rater, labels=True)
        return [label.to_dict() for label in queue.labels()]

    labels = await state.use_queue(run, export)
    return answer({"schema": "adjudge/labels/1", "labels": labels})


def name_rater(caller: Caller) -> str:
    """Return the name under which the caller labels; raises ``Problem`` (403) where there is none."""
    if caller.rater is None:
        raise Problem(
            403,
            "this key or account has no rater's name, so it cannot label; give it one with --rater",
            code="forbidden",
        )
    return caller.rater
