"""The pages *Labels* and *Disagreements*: people label cases blind, and settle what they differ about.

Which cases somebody who labels is not to read yet is decided in ``server/blind_cases.py`` (``find_withheld``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Literal, TypeVar

from fastapi import APIRouter, Depends, Form, Query
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response

from adjudge.errors import UsageError
from adjudge.labels.live_estimate import estimate_live
from adjudge.labels.queue import LONGEST_COMMENT, LabelQueue
from adjudge.labels.source import find_store
from adjudge.labels.task import LabelTask, UndoneAnswer
from adjudge.server.api.labels import name_rater
from adjudge.server.blind_cases import note_earlier_read, note_read
from adjudge.server.caller import Caller, require
from adjudge.server.pages.label_view import (
    ANSWER_SIDES,
    ANSWERS,
    LabelledRun,
    asks_about_call,
    describe_question,
    describe_undoable_answer,
    estimate_seconds_left,
    explain_no_case,
    list_answered,
)
from adjudge.server.pages.opened_query import OpenedQuery
from adjudge.server.pages.page import Context, add_page, redirect, show_page
from adjudge.server.problem import Problem
from adjudge.server.run_folders import scan_folder
from adjudge.server.state import CurrentState, ServerState
from adjudge.templates.environment import quote_segment

router = APIRouter()

T = TypeVar("T")

Labelling = Annotated[Caller, Depends(require("label"))]

Settling = Annotated[Caller, Depends(require("adjudicate"))]

LabellingOrSettling = Annotated[Caller, Depends(require("label", "adjudicate"))]

_MOST_COUNTED = 8
"""Runs whose progress is looked up for the list: each takes its file of labels being opened."""

_MOST_OPEN = 20
"""Open differences that are listed beside the one that is shown."""

_MOST_OTHERS = 500
"""Labelled cases of a rater that are listed with everybody's labels: the last ones."""

RUBRIC_SILENT_PREFIX = "rubric silent: "
"""The beginning of a comment on a case that the rubric does not decide; measuring groups the case by it."""


class AnswerForm(BaseModel):
    """The form of a case."""

    case: str = Field(max_length=1_000)
    label: Literal["good", "bad", "cannot-tell", "a", "b", "equal", "skip"]
    criterion: str = Field(default="", max_length=1_000)
    subject: str = Field(default="", max_length=64)
    comment: str = Field(default="", max_length=LONGEST_COMMENT)


class OthersQuery(OpenedQuery):
    """The query of what others said: the case, or none for the list of them."""

    case: str | None = None


class DifferencesQuery(OpenedQuery):
    """The query of a difference: the case and criterion, and whether the judge's results are shown too."""

    verdict: bool = False
    case: str | None = Field(default=None, max_length=1_000)
    criterion: str | None = Field(default=None, max_length=1_000)


class SettleForm(AnswerForm):
    """The form of a difference."""

    silent: bool = False


# ---------------------------------------------------------------- the runs


async def view_runs(state: CurrentState, caller: LabellingOrSettling) -> Context:
    """List the runs that can be labelled, the newest first."""
    folders = (await asyncio.to_thread(scan_folder, state.run_folder)).values()
    rows: list[LabelledRun] = []
    counted = 0
    for folder in folders:
        # Opening a queue would begin a file of labels and draw an order of cases, which a mere look must not do.
        started = await asyncio.to_thread(find_store(folder).is_file)
        row = LabelledRun(name=folder.name, started=started)
        if started and counted < _MOST_COUNTED and caller.rater is not None:
            counted += 1
            row = await _count_labels(state, caller, row)
        rows.append(row)
    is_named = caller.rater is not None
    return {
        "runs": rows,
        "is_configured": state.run_folder is not None,
        "is_named": is_named,
        "can_label": is_named and caller.may("label"),
        "can_settle": is_named and caller.may("adjudicate"),
    }


async def _count_labels(state: ServerState, caller: Caller, row: LabelledRun) -> LabelledRun:
    """Add to a row how much of a run is labelled, what is left for the caller, and how many labels differ.

    The number of differences is left out for somebody who still labels cases of the run that others label too.
    """
    rater, settles = name_rater(caller), caller.may("adjudicate")

    def count(queue: LabelQueue) -> LabelledRun:
        """Read the counts from the queue of the run."""
        progress = queue.progress(rater)
        # Somebody who still labels would see from the number whether another person agreed on their last case.
        is_labelling = caller.may("label") and progress.mine > 0 and progress.complete < progress.total
        may_show = settles and not (is_labelling and progress.per_case > 1)
        if may_show:
            queue.note_shown(rater)
        left = queue.count_left(rater)
        differences = len(queue.list_differences()) if may_show else None
        return replace(row, progress=progress, left=left, differences=differences)

    try:
        return await state.use_queue(row.name, count)
    except Problem:  # a folder that is damaged, which opening it says
        return row


# ---------------------------------------------------------------- labelling


async def view_case(
    run: str, state: CurrentState, caller: Labelling, shown: Annotated[OpenedQuery, Query()]
) -> Context:
    """Show the next case to label, without anything that the judge or other people said of it."""
    rater, settles = name_rater(caller), caller.may("adjudicate")

    def show(queue: LabelQueue) -> Context:
        """Take the next task, and make what the page shows of it."""
        task = _find_task(queue, rater, caller.identity)
        progress = queue.progress(rater)
        # While somebody labels, they are not shown figures made of other people's labels: they could answer a case, see
        # how the figure moves, and undo their answer. So agreement comes only at the end, and a live estimate before it
        # only if each case is labelled by one person.
        has_one_label_per_case = progress.per_case == 1
        agreement = queue.show_agreement(rater) if task is None else None
        if task is not None and has_one_label_per_case:
            queue.note_shown(rater)  # two people may have answered a case all the same, so the estimate counts as shown
        last = queue.find_undoable(rater, session=caller.identity)
        is_call = task is not None and _is_about_call(task)
        return {
            "run": run,
            "task": task,
            "is_call": is_call,
            "opened": shown.read(f"/labels/{quote_segment(run)}"),
            "question": "" if task is None else describe_question(task, is_call=is_call),
            "why_none": "" if task is not None else explain_no_case(progress),
            "progress": progress,
            "to_go": estimate_seconds_left(progress),
            "live": estimate_live(queue) if task is None or has_one_label_per_case else None,
            # The live estimate is shown once this rater has labelled all cases.
            "is_live_later": task is not None and not has_one_label_per_case,
            "last": describe_undoable_answer(
                last, is_pair=task is not None and task.is_pair, is_call=_was_about_call(queue, rater, last)
            ),
            "agreement": agreement,
            "can_settle": settles,
            "error": "",
            "typed": "",
        }

    return await state.use_queue(run, show)


def _is_about_call(task: LabelTask) -> bool:
    """Return whether a task asks for a label of a tool call as a whole."""
    return asks_about_call(task.parts, None if task.criterion is None else task.criterion.name)


def _was_about_call(queue: LabelQueue, rater: str, last: UndoneAnswer | None) -> bool:
    """Return whether the last answer is a label of a tool call as a whole."""
    if last is None or last.label is None:
        return False
    return asks_about_call(queue.read_parts(rater, last.case), last.label.criterion)


def _find_task(queue: LabelQueue, rater: str, session: str) -> LabelTask | None:
    """Take the next task of a rater from the queue; the ones that they skipped come last."""
    task = queue.next(rater, session=session)
    return task if task is not None else queue.next(rater, session=session, skipped=True)


@router.post("/labels/{run}", include_in_schema=False)
async def take_answer(
    run: str, request: Request, state: CurrentState, caller: Labelling, form: Annotated[AnswerForm, Form()]
) -> Response:
    """Keep an answer, or put the case off, and go on to the next."""
    rater = name_rater(caller)

    def store_answer(queue: LabelQueue) -> None:
        """Write the label, or skip the task."""
        if form.label == "skip":
            queue.skip(rater, form.case, session=caller.identity)
            return
        value = _read_value(form, lambda: _find_task(queue, rater, caller.identity))
        queue.record(
            rater,
            form.case,
            value,
            criterion=form.criterion or None,
            comment=form.comment.strip() or None,
            session=caller.identity,
            subject=form.subject or None,
        )

    try:
        await note_earlier_read(state, rater, run, form.case)
        await state.use_queue(run, store_answer)
    except Problem as problem:
        context = await view_case(run, state, caller, OpenedQuery()) | {
            "error": str(problem.detail),
            "typed": form.comment,
        }
        return await show_page(request, "label.html", context, caller=caller, status=problem.status_code)
    return redirect(f"/labels/{run}")


@router.post("/labels/{run}/undo", include_in_schema=False)
async def undo_answer(run: str, state: CurrentState, caller: Labelling) -> Response:
    """Take the last answer back, and show its case again."""
    rater = name_rater(caller)
    await state.use_queue(run, lambda queue: queue.undo(rater, session=caller.identity))
    return redirect(f"/labels/{run}")


async def view_others(
    run: str, state: CurrentState, caller: Labelling, shown: Annotated[OthersQuery, Query()]
) -> Context:
    """Show everybody's labels of a case that the rater has labelled; if they label it again, that is not blind.

    Without a case, list all that the rater has labelled.
    """
    rater, case = name_rater(caller), shown.case

    def show(queue: LabelQueue) -> Context:
        """Make what the page shows of one case, or of all that the rater has labelled."""
        if case is not None:
            labels, texts = queue.show_others(rater, case), queue.read_parts(rater, case)
            opened = shown.read(f"/labels/{quote_segment(run)}/others", ("case", case))
            return {"run": run, "case": case, "texts": texts, "labels": labels, "opened": opened}
        cases = queue.list_answered(rater)
        queue.show_agreement(rater)  # called because it records that the rater was shown other people's labels
        rows = list_answered(tuple(queue.labels()), rater, cases[-_MOST_OTHERS:])
        return {"run": run, "case": None, "cases": rows}

    return await state.use_queue(run, show)


# ---------------------------------------------------------------- differences


async def view_differences(
    request: Request,
    run: str,
    state: CurrentState,
    caller: Settling,
    query: Annotated[DifferencesQuery, Query()],
) -> Context:
    """Show a case on which people differ, with their labels; with ``verdict`` the judge's results too."""
    rater, verdict = name_rater(caller), query.verdict
    case, criterion = query.case, query.criterion
    members = {"verdict": "true" if verdict else None, "case": case, "criterion": criterion}
    opened = query.read(
        f"/labels/{quote_segment(run)}/differences", *((name, text) for name, text in members.items() if text)
    )

    def show(queue: LabelQueue) -> Context:
        """Take the difference to settle, and make what the page shows of it."""
        task = queue.next_difference(rater, blind=not verdict, session=caller.identity, case=case, criterion=criterion)
        open_differences = queue.list_differences()
        shown = None if task is None else (task.case, None if task.criterion is None else task.criterion.name)
        return {
            "run": run,
            "task": task,
            "is_call": task is not None and _is_about_call(task),
            "shows_judge": verdict,
            "opened": opened,
            "others": [
                difference for difference in open_differences if (difference.case, difference.criterion) != shown
            ][:_MOST_OPEN],
            "open": len(open_differences),
            "agreement": queue.show_agreement(rater),
            "error": "",
            "typed": "",
        }

    context = await state.use_queue(run, show)
    if verdict and isinstance(context["task"], LabelTask):
        # The queue has recorded that this rater saw the verdicts in this run. Record it for the other runs of the data
        # set too, in which the same rater may have to label the case.
        await note_read(request, caller, run, [context["task"].case])
    return context


@router.post("/labels/{run}/differences", include_in_schema=False)
async def adjudicate_difference(
    run: str, request: Request, state: CurrentState, caller: Settling, form: Annotated[SettleForm, Form()]
) -> Response:
    """Settle a difference, or leave it open, and go on."""
    rater = name_rater(caller)

    def store_answer(queue: LabelQueue) -> None:
        """Write the settled value, or skip the difference."""
        if form.label == "skip":
            queue.skip_difference(rater, form.case, session=caller.identity)
            return
        criterion = form.criterion or None
        value = _read_value(
            form, lambda: queue.next_difference(rater, session=caller.identity, case=form.case, criterion=criterion)
        )
        comment = form.comment.strip()
        full_comment = f"{RUBRIC_SILENT_PREFIX}{comment}".strip() if form.silent else comment
        queue.adjudicate(
            rater,
            form.case,
            value,
            criterion=criterion,
            comment=full_comment or None,
            session=caller.identity,
            subject=form.subject or None,
        )

    try:
        await note_earlier_read(state, rater, run, form.case)
        await state.use_queue(run, store_answer)
    except Problem as problem:
        query = DifferencesQuery(case=form.case, criterion=form.criterion or None)
        context = await view_differences(request, run, state, caller, query) | {
            "error": str(problem.detail),
            "typed": form.comment,
        }
        return await show_page(request, "differences.html", context, caller=caller, status=problem.status_code)
    return redirect(f"/labels/{run}/differences")


@router.post("/labels/{run}/differences/undo", include_in_schema=False)
async def undo_settlement(run: str, state: CurrentState, caller: Settling) -> Response:
    """Take back how one last settled a difference."""
    rater = name_rater(caller)
    await state.use_queue(run, lambda queue: queue.undo_difference(rater, session=caller.identity))
    return redirect(f"/labels/{run}/differences")


def _read_value(form: AnswerForm, find_task: Callable[[], LabelTask | None]) -> bool | str:
    """Read the value of the label in a form.

    For a pair, the form says on which side of the page the better answer was. ``find_task`` returns the task that is
    shown now, which knows which answer is on which side. Raises ``UsageError`` if it is of another pair.
    """
    if form.label in ANSWERS:
        return ANSWERS[form.label]
    if form.label == "equal":
        return "tie"
    task = find_task()
    if task is None or task.case != form.case or not task.is_pair:
        raise UsageError("this is not the pair that you have now, so nothing was recorded; look at the one below")
    return task.name_shown("first" if ANSWER_SIDES[form.label] == "first" else "second")


add_page(router, "/labels", view_runs, template="labels.html", scope=("label", "adjudicate"))
add_page(router, "/labels/{run}/differences", view_differences, template="differences.html", scope="adjudicate")
add_page(router, "/labels/{run}/others", view_others, template="label_others.html", scope="label")
add_page(router, "/labels/{run}", view_case, template="label.html", scope="label")
