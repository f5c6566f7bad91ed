"""Langfuse: items of its data sets, traces and observations as cases; its scores as labels."""

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
    unwrap_single,
)
from adjudge.dataset.label_map import LabelMap
from adjudge.errors import UsageError
from adjudge.formats.observability_rows import read_time
from adjudge.formats.text import flatten, list_names, show

_ITEM_KEYS = ("expectedOutput", "datasetId", "datasetName")
"""Members that only items of data sets have."""

_NOT_METADATA = frozenset(("id", "input", "output", "expectedOutput", "metadata", "observations"))
"""Members that are parts of the case, or left out; all others are kept in its metadata."""


def import_langfuse(
    path: str | os.PathLike[str],
    *,
    fields: Mapping[str, str | None] | None = None,
    on_bad_row: OnBadRow = "fail",
    label_map: LabelMap | None = None,
    label_name: str | None = None,
) -> Dataset:
    """Import items of a data set, traces or observations of Langfuse, as its pages and its API export them.

    The content is the ``output`` of a trace or observation. An item of a data set has no answer: without ``fields`` to
    name one, its input is the content, which ``dataset.notes`` counts. ``expectedOutput`` is the reference, ``input``
    the task. To read exported scores, use ``import_labels``, and join them with ``Dataset.with_labels``.

    Args:
        path: The file to read.
        fields: Which field is which part of a case, as for ``open_dataset``.
        on_bad_row: ``"fail"`` raises for a row that cannot be read, ``"skip"`` counts and lists it.
        label_map: What the words of labels mean, as for ``open_dataset``: ``{"yes": True, "no": False}``.
        label_name: The score that becomes the label if a person gave it (``source`` is ``ANNOTATION``); the file must
            have scores with their source, as a trace has. ``None`` takes none.
    """
    return open_annotated(
        os.fspath(path), LANGFUSE, fields=fields, on_bad_row=on_bad_row, label_map=label_map, label_name=label_name
    )


def _make_case_row(row: Mapping[str, Any], notes: Notes) -> dict[str, Any] | None:
    """Make the row of a case from an item, trace or observation; ``None`` for a score, which is an annotation.

    Raises ``UsageError`` for any other row, and for one that ended with an error or has no answer.
    """
    row = _unwrap_trace(row)
    if _is_score(row):
        return None
    name = read_text(row.get("id"))
    if name is None or not ("input" in row or "output" in row):
        raise UsageError(f"it is no item, trace, observation or score of Langfuse; it has {list_names(row)}")
    extras = {key: row[key] for key in row if key not in _NOT_METADATA and row[key] not in (None, "", [], {})}
    case: dict[str, Any] = {"id": name, "metadata": make_metadata("langfuse", row.get("metadata"), extras)}
    case["reference"] = unwrap_single(row.get("expectedOutput"))
    task = unwrap_single(row.get("input"))
    if row.get("output") is None and any(key in row for key in _ITEM_KEYS):
        add_note(notes, "item without an answer: its input is the content")
        return case | {"content": check_answer(task, f"item {show(name)} without an input")}
    if row.get("level") == "ERROR" and row.get("type"):
        reason = flatten(str(row.get("statusMessage") or "no message"))[:200]
        raise UsageError(f"the observation {show(name)} ended with an error ({reason}); run it again")
    answer = check_answer(find_answer(row.get("output")), f"trace or observation {show(name)}")
    return case | {"content": answer, "task": task}


def _unwrap_trace(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the trace within a row, as the page saves a trace beside its observations; any other row as it is."""
    trace = row.get("trace")
    return {**trace, "scores": trace.get("scores") or row.get("scores")} if isinstance(trace, dict) else row


def _is_score(row: Mapping[str, Any]) -> bool:
    """Return whether a row is a score, by its members."""
    return "dataType" in row and "source" in row


def _list_annotations(row: Mapping[str, Any]) -> Iterator[Annotation]:
    """Yield the scores of a row, which is itself a score, or a trace that holds some."""
    trace = _unwrap_trace(row)
    if _is_score(trace):
        yield _read_score(trace, None)
        return
    # The table of traces has a column for each score, which does not say who gave it: that is no label.
    scores = trace.get("scores")
    for score in scores if isinstance(scores, list) else ():
        if isinstance(score, dict) and _is_score(score):
            yield _read_score(score, read_text(trace.get("id")))


def _read_score(score: Mapping[str, Any], trace: str | None) -> Annotation:
    """Read a score as an annotation of a trace or observation; ``trace`` is the id of the trace that contains it.

    Raises ``UsageError``.
    """
    case = _find_subject(score) or trace
    name = read_text(score.get("name"))
    if case is None or name is None:
        raise UsageError(
            f"the score {show(score.get('id'))} has no name, or is of no trace or observation; leave it out"
        )
    kind, value = score.get("dataType"), score.get("value")
    word: Any = None
    number: Any = None
    if kind == "CATEGORICAL":
        # Beside the word, an older export has a number: a place in a list of categories, and 0 where there is none.
        word = score.get("stringValue") or (value if isinstance(value, str) else None)
    elif kind == "BOOLEAN":
        truth = score.get("stringValue") or value
        number = {"true": True, "false": False, "1": True, "0": False, "1.0": True, "0.0": False}.get(
            str(truth).lower()
        )
    elif kind == "NUMERIC":
        number = _read_number(value)
    person = score.get("source") == "ANNOTATION"
    rater = score.get("authorUserName") or score.get("authorUserId")
    return Annotation(
        case=case,
        name=name,
        person=person,
        rater=read_text(rater) if person else None,
        word=read_text(word),
        number=number,
        at=read_time(score.get("timestamp") or score.get("createdAt")),
        comment=read_text(score.get("comment")),
    )


def _read_number(value: Any) -> Any:
    """Read the number in a text; return any other value as it is."""
    from adjudge.dataset.label_map import read_number

    return read_number(value.strip()) if isinstance(value, str) else value


def _find_subject(score: Mapping[str, Any]) -> str | None:
    """Find the id of the trace or observation that a score is about; ``None`` for a whole session or experiment."""
    subject = score.get("subject")
    if isinstance(subject, dict):
        return read_text(subject.get("id")) if subject.get("kind") in ("trace", "observation") else None
    return read_text(score.get("observationId")) or read_text(score.get("traceId"))


LANGFUSE = Tool(
    shape=Shape(
        tool="langfuse",
        lists=("data",),
        cells=("input", "output", "expectedOutput", "metadata"),
        framed=False,
    ),
    make_case_row=_make_case_row,
    list_annotations=_list_annotations,
)
