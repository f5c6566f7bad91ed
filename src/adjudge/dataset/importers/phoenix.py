"""Phoenix: spans and examples of its data sets as cases; its annotations as labels."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from adjudge.dataset.dataset import Dataset, Notes, OnBadRow, add_note
from adjudge.dataset.formats import Row
from adjudge.dataset.importers.annotation import Annotation, Tool, open_annotated
from adjudge.dataset.importers.exported import (
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
from adjudge.formats.exported import find_members, find_part, read_time
from adjudge.formats.json import read_json
from adjudge.formats.text import flatten, list_names, show

_JSON = "application/json"


def import_phoenix(
    path: str | os.PathLike[str],
    *,
    fields: Mapping[str, str | None] | None = None,
    on_bad_row: OnBadRow = "fail",
    label_map: LabelMap | None = None,
    label_name: str | None = None,
) -> Dataset:
    """Import spans of Phoenix (``get_spans``, or a frame as JSON lines, CSV or Parquet), or examples of a data set.

    The content is a span's ``output.value``, the task its ``input.value``. A trace is one case: a span whose parent is
    in the file is part of its parent's case, and counted in ``dataset.notes``, unless both hold each other. An example
    has no answer: its input is the content, its output the reference. Phoenix exports annotations separately: read them
    with ``import_labels`` and join them with ``Dataset.with_labels``.

    Args:
        path: The file to read.
        fields: Which field is which part of a case, as for ``open_dataset``.
        on_bad_row: ``"fail"`` raises for a row that cannot be read, ``"skip"`` counts and lists it.
        label_map: What the words of labels mean, as for ``open_dataset``: ``{"yes": True, "no": False}``.
        label_name: The annotation that becomes the label, for spans that contain their annotations. ``None`` takes
            none.
    """
    return open_annotated(
        os.fspath(path), PHOENIX, fields=fields, on_bad_row=on_bad_row, label_map=label_map, label_name=label_name
    )


def _find_span(row: Mapping[str, Any]) -> str | None:
    return read_text(_find_context(row, "span_id"))


def _find_context(row: Mapping[str, Any], name: str) -> Any:
    context = row.get("context")
    return context.get(name) if isinstance(context, dict) else row.get(f"context.{name}")


def _find_parts(rows: Iterator[Row]) -> Callable[[Mapping[str, Any]], bool]:
    """Return a function that tells which spans are below a case: their parent is in the file, and not below them.

    Of spans that hold each other none is below a case, and all of them would be lost.
    """
    parents = {
        span: read_text(row.get("parent_id"))
        for _, row in rows
        if not isinstance(row, UsageError) and (span := _find_span(row)) is not None
    }
    looped = _find_looped(parents)
    return lambda row: (
        (span := _find_span(row)) is not None and span not in looped and read_text(row.get("parent_id")) in parents
    )


def _find_looped(parents: Mapping[str, str | None]) -> set[str]:
    """Find the spans that hold themselves, directly or through others."""
    looped: set[str] = set()
    seen: set[str] = set()
    for start in parents:
        climbed: dict[str, None] = {}
        span: str | None = start
        while span is not None and span in parents and span not in seen:
            seen.add(span)
            climbed[span] = None
            span = parents[span]
        if span in climbed:
            held = list(climbed)
            looped.update(held[held.index(span) :])
    return looped


def _open_row(row: Mapping[str, Any], notes: Notes) -> dict[str, Any] | None:
    """Open a span or an example as the parts of a case; ``None`` for an annotation.

    Raises ``UsageError`` for a row that is none of them.
    """
    if "annotator_kind" in row:
        return None
    span = _find_span(row)
    if span is not None:
        return _open_span(row, span)
    task = find_part(row, "input", ".", "_")
    name = read_text(row.get("id")) or read_text(row.get("example_id"))
    if name is None or task is None:
        raise UsageError(f"it is no span, annotation or example of Phoenix; it has {list_names(row)}")
    add_note(notes, "example without an answer: its input is the content")
    case = {"id": name, "content": unwrap_single(task), "reference": unwrap_single(find_part(row, "output", ".", "_"))}
    return case | {"metadata": make_metadata("phoenix", find_part(row, "metadata", ".", "_"), {})}


def _open_span(row: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the parts of the case that a span is.

    Raises ``UsageError`` for a span that ended with an error, or that has no answer.
    """
    attributes = find_members(row, "attributes", ".")
    if row.get("status_code") == "ERROR":
        reason = flatten(str(row.get("status_message") or "no message"))[:200]
        raise UsageError(f"the span {show(name)} ended with an error ({reason}); run it again")
    extras = select_members(row, ("name", "span_kind", "start_time", "annotations"))
    extras |= {"trace_id": trace} if (trace := read_text(_find_context(row, "trace_id"))) else {}
    return {
        "id": name,
        "content": check_answer(find_answer(_read_side(attributes, "output")), f"span {show(name)}"),
        "task": unwrap_single(_read_side(attributes, "input")),
        "metadata": make_metadata("phoenix", _read_json(attributes.get("metadata")), extras),
    }


def _list_annotations(row: Mapping[str, Any]) -> Iterator[Annotation]:
    annotations = [row] if "annotator_kind" in row else row.get("annotations")
    for annotation in annotations if isinstance(annotations, list) else ():
        if isinstance(annotation, dict) and "annotator_kind" in annotation:
            yield _read_annotation(annotation, _find_span(row))


def _read_side(attributes: Mapping[str, Any], side: str) -> Any:
    inner = attributes.get(side)
    inner = inner if isinstance(inner, dict) else {}
    value, kind = (attributes.get(f"{side}.{key}", inner.get(key)) for key in ("value", "mime_type"))
    return _read_json(value) if kind == _JSON else value


def _read_json(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return read_json(value, nan_is_null=True)
    except (ValueError, RecursionError):
        return value


def _read_annotation(row: Mapping[str, Any], span: str | None) -> Annotation:
    """Read an annotation of a span, or of a passage that a span found; ``span`` is the one that it stands in.

    Raises ``UsageError``.
    """
    case = read_text(row.get("span_id")) or read_text(row.get("trace_id")) or span
    name = read_text(row.get("annotation_name")) or read_text(row.get("name"))
    if case is None or name is None:
        raise UsageError(f"the annotation {show(row.get('id'))} has no name, or is of no span; leave it out")
    if row.get("document_position") is not None:  # of one passage that a span found, and not of the span
        case = f"{case}, document {row['document_position']}"
    result = find_members(row, "result", ".")
    person = row.get("annotator_kind") == "HUMAN"
    word, score = result.get("label"), _read_score(result.get("score"))
    return Annotation(
        case=case,
        name=name,
        person=person,
        rater=read_text(row.get("user_id")) or read_text(row.get("identifier")),
        word=read_text(word),
        number=score,
        at=read_time(row.get("updated_at") or row.get("created_at")),
        comment=read_text(result.get("explanation")),
    )


def _read_score(value: Any) -> Any:
    from adjudge.dataset.label_map import read_number

    return read_number(value.strip()) if isinstance(value, str) else value if isinstance(value, int | float) else None


PHOENIX = Tool(
    shape=Shape(
        tool="phoenix",
        lists=("data.examples", "examples", "data", "spans", "annotations"),
        cells=("input", "output"),
    ),
    open=_open_row,
    annotate=_list_annotations,
    find_parts=_find_parts,
)
