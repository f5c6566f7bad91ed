"""LangSmith: examples of its data sets and runs as cases; its feedback as labels."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from adjudge.dataset.dataset import Dataset, Notes, OnBadRow, add_note
from adjudge.dataset.importers.annotation import Annotation, Tool, open_annotated
from adjudge.dataset.importers.export_rows import (
    Shape,
    check_answer,
    find_answer,
    make_metadata,
    read_text,
    select_members,
    unwrap_single,
)
from adjudge.dataset.label_map import LabelMap
from adjudge.errors import UsageError
from adjudge.formats.observability_rows import find_members, find_part, read_time
from adjudge.formats.text import flatten, list_names, show

_METADATA_KEYS = (
    *("name", "run_type", "dataset_id", "source_run_id", "split", "reference_example_id", "example_id", "session_id"),
    *("trace_id", "tags", "start_time", "end_time", "execution_time", "feedback", "feedback_stats", "created_at"),
)


def import_langsmith(
    path: str | os.PathLike[str],
    *,
    fields: Mapping[str, str | None] | None = None,
    on_bad_row: OnBadRow = "fail",
    label_map: LabelMap | None = None,
    label_name: str | None = None,
) -> Dataset:
    """Import examples, runs, or the table of an experiment of LangSmith, in JSON, JSON lines or CSV.

    The content is the ``outputs`` of a run. An example has no answer: without ``fields`` to name one, its ``inputs``
    are the content, which ``dataset.notes`` counts, and its ``outputs`` the reference. To read exported feedback, use
    ``import_labels``, and join it with ``Dataset.with_labels``.

    Args:
        path: The file to read.
        fields: Which field is which part of a case, as for ``open_dataset``.
        on_bad_row: ``"fail"`` raises for a row that cannot be read, ``"skip"`` counts and lists it.
        label_map: What the words of labels mean, as for ``open_dataset``: ``{"yes": True, "no": False}``.
        label_name: The key of the feedback that becomes the label if a person gave it in the app and the run has its
            ``feedback``. ``None`` takes none.
    """
    return open_annotated(
        os.fspath(path), LANGSMITH, fields=fields, on_bad_row=on_bad_row, label_map=label_map, label_name=label_name
    )


def _make_case_row(row: Mapping[str, Any], notes: Notes) -> dict[str, Any] | None:
    """Make the row of a case from an example or a run; ``None`` for feedback, which is an annotation.

    Raises ``UsageError`` for any other row, and for one that ended with an error or has no answer.
    """
    if _is_feedback(row):
        return None
    name = read_text(row.get("id")) or read_text(row.get("example_id"))
    inputs, outputs = find_part(row, "inputs", "."), find_part(row, "outputs", ".")
    if name is None or (inputs is None and outputs is None):
        raise UsageError(f"it is no example, run or feedback of LangSmith with an 'id'; it has {list_names(row)}")
    extra = row.get("extra")
    metadata = row.get("metadata") or (extra.get("metadata") if isinstance(extra, dict) else None)
    extras = select_members(row, (*_METADATA_KEYS, *(key for key in row if key.startswith("feedback."))))
    case: dict[str, Any] = {"id": name, "metadata": make_metadata("langsmith", metadata, extras)}
    if not _is_run(row):
        add_note(notes, "example without an answer: its input is the content")
        content = check_answer(unwrap_single(inputs), f"example {show(name)} without an input")
        return case | {"content": content, "reference": unwrap_single(outputs)}
    if row.get("error"):
        reason = flatten(str(row["error"]))[:200]
        raise UsageError(f"the run {show(name)} ended with an error ({reason}); run it again")
    answer = check_answer(find_answer(outputs), f"run {show(name)}")
    return case | {"content": answer, "task": unwrap_single(inputs), "reference": unwrap_single(_find_reference(row))}


def _is_feedback(row: Mapping[str, Any]) -> bool:
    """Return whether a row is feedback, by its members."""
    return "key" in row and "run_id" in row


def _list_annotations(row: Mapping[str, Any]) -> Iterator[Annotation]:
    """Yield the feedback of a row, which is itself feedback, or a run that holds some."""
    feedbacks = [row] if _is_feedback(row) else row.get("feedback")
    for feedback in feedbacks if isinstance(feedbacks, list) else ():
        if isinstance(feedback, dict) and "key" in feedback:
            yield _read_feedback(feedback, None if feedback is row else read_text(row.get("id")))


def _is_run(row: Mapping[str, Any]) -> bool:
    """Return whether a row is a run, whose outputs are an answer, and no example, whose outputs are expected ones."""
    has_run_key = any(key in row for key in ("run_type", "error", "execution_time", "start_time"))
    return has_run_key or any(key.startswith("reference.") for key in row)


def _find_reference(row: Mapping[str, Any]) -> Any:
    """Find the expected outputs of a run, under either name that exports have for them."""
    reference = find_part(row, "reference", ".")
    return row.get("reference_outputs") if reference is None else reference


def _read_feedback(feedback: Mapping[str, Any], run: str | None) -> Annotation:
    """Read feedback as an annotation of its run; ``run`` is the id of the run that contains it.

    Raises ``UsageError``.
    """
    case, name = read_text(feedback.get("run_id")) or run, read_text(feedback.get("key"))
    if case is None or name is None:
        raise UsageError(f"the feedback {show(feedback.get('id'))} has no key, or is of no run; leave it out")
    source = find_members(feedback, "feedback_source", ".")
    # Feedback that came by the API may be an end user's or a program's: nothing tells, so it is no person's.
    person = source.get("type") == "app"
    rater = source.get("user_name") or source.get("user_id") or source.get("ls_user_id")
    score, value = feedback.get("score"), feedback.get("value")
    number: bool | float | None = None
    if isinstance(score, bool | int | float):
        number = score
    elif isinstance(value, bool | int | float):
        number = value
    return Annotation(
        case=case,
        name=name,
        person=person,
        rater=read_text(rater) if person else None,
        word=value if isinstance(value, str) and value else None,
        number=number,
        at=read_time(feedback.get("modified_at") or feedback.get("created_at")),
        comment=read_text(feedback.get("comment")),
    )


LANGSMITH = Tool(
    shape=Shape(
        tool="langsmith",
        lists=("examples", "runs", "feedback", "data"),
        cells=("inputs", "outputs", "reference", "metadata", "extra", "feedback"),
    ),
    make_case_row=_make_case_row,
    list_annotations=_list_annotations,
)
