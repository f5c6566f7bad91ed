"""Phoenix: spans and examples of its data sets as cases; its annotations as labels."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any

from adjudge.dataset.dataset import Dataset, Notes, OnBadRow, add_note
from adjudge.dataset.formats import Row
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
from adjudge.formats.json import read_json
from adjudge.formats.observability_rows import find_members, find_part, read_time
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
    """Find the id of the span that a row is; ``None`` for any other row."""
    return read_text(_find_context(row, "span_id"))


def _find_context(row: Mapping[str, Any], name: str) -> Any:
    """Find a member of a span's context: an object in JSON, and columns such as ``context.span_id`` in a table."""
    context = row.get("context")
    return context.get(name) if isinstance(context, dict) else row.get(f"context.{name}")


def _find_parts(rows: Iterator[Row]) -> Callable[[Mapping[str, Any]], bool]:
    """Return a function that tells whether a row is a span within another: its parent is among these rows.

    Spans that are parents of each other in a circle are not within another; otherwise all of them would be left out.
    """
    parents: dict[str, str | None] = {}  # the id of each span's parent
    for _, row in rows:
        if isinstance(row, UsageError):
            continue
        span = _find_span(row)
        if span is not None:
            parents[span] = read_text(row.get("parent_id"))
    return partial(_is_within_another, parents=parents, in_circles=_find_circles(parents))


def _is_within_another(
    row: Mapping[str, Any], *, parents: Mapping[str, str | None], in_circles: Collection[str]
) -> bool:
    """Return whether a row is a span whose parent is among ``parents``, and which is in no circle of spans."""
    span = _find_span(row)
    return span is not None and span not in in_circles and read_text(row.get("parent_id")) in parents


def _find_circles(parents: Mapping[str, str | None]) -> set[str]:
    """Find the spans that are their own ancestors; ``parents`` has the id of each span's parent."""
    in_circles: set[str] = set()
    visited: set[str] = set()
    for start in parents:
        path: dict[str, None] = {}  # the spans from this one upward, as a set that keeps its order
        span: str | None = start
        while span is not None and span in parents and span not in visited:
            visited.add(span)
            path[span] = None
            span = parents[span]
        if span in path:
            spans = list(path)
            in_circles.update(spans[spans.index(span) :])
    return in_circles


def _make_case_row(row: Mapping[str, Any], notes: Notes) -> dict[str, Any] | None:
    """Make the row of a case from a span or an example; ``None`` for an annotation.

    Raises ``UsageError`` for any other row.
    """
    if "annotator_kind" in row:
        return None
    span = _find_span(row)
    if span is not None:
        return _make_span_row(row, span)
    task = find_part(row, "input", ".", "_")
    name = read_text(row.get("id")) or read_text(row.get("example_id"))
    if name is None or task is None:
        raise UsageError(f"it is no span, annotation or example of Phoenix; it has {list_names(row)}")
    add_note(notes, "example without an answer: its input is the content")
    case = {"id": name, "content": unwrap_single(task), "reference": unwrap_single(find_part(row, "output", ".", "_"))}
    return case | {"metadata": make_metadata("phoenix", find_part(row, "metadata", ".", "_"), {})}


def _make_span_row(row: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Make the row of a case from a span; ``name`` is its id.

    Raises ``UsageError`` for a span that ended with an error, or that has no answer.
    """
    attributes = find_members(row, "attributes", ".")
    if row.get("status_code") == "ERROR":
        reason = flatten(str(row.get("status_message") or "no message"))[:200]
        raise UsageError(f"the span {show(name)} ended with an error ({reason}); run it again")
    extras = select_members(row, ("name", "span_kind", "start_time", "annotations"))
    trace_id = read_text(_find_context(row, "trace_id"))
    if trace_id:
        extras["trace_id"] = trace_id
    return {
        "id": name,
        "content": check_answer(find_answer(_read_input_or_output(attributes, "output")), f"span {show(name)}"),
        "task": unwrap_single(_read_input_or_output(attributes, "input")),
        "metadata": make_metadata("phoenix", _read_json(attributes.get("metadata")), extras),
    }


def _list_annotations(row: Mapping[str, Any]) -> Iterator[Annotation]:
    """Yield the annotations of a row, which is itself an annotation, or a span that holds some."""
    annotations = [row] if "annotator_kind" in row else row.get("annotations")
    for annotation in annotations if isinstance(annotations, list) else ():
        if isinstance(annotation, dict) and "annotator_kind" in annotation:
            yield _read_annotation(annotation, _find_span(row))


def _read_input_or_output(attributes: Mapping[str, Any], name: str) -> Any:
    """Read the ``input`` or the ``output`` of a span, which may be JSON in a text.

    Its value and type are attributes such as ``input.value``, or members of the attribute ``input``.
    """
    nested = attributes.get(name)
    nested = nested if isinstance(nested, dict) else {}
    value, mime_type = (attributes.get(f"{name}.{key}", nested.get(key)) for key in ("value", "mime_type"))
    return _read_json(value) if mime_type == _JSON else value


def _read_json(value: Any) -> Any:
    """Read the JSON in a text; return a text that is no JSON, and any other value, as it is."""
    if not isinstance(value, str):
        return value
    try:
        return read_json(value, nan_is_null=True)
    except (ValueError, RecursionError):
        return value


def _read_annotation(row: Mapping[str, Any], span: str | None) -> Annotation:
    """Read an annotation of a span, or of a passage that a span found; ``span`` is the id of the span that contains it.

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
    """Read a score: a number, or the number in a text; ``None`` for anything else."""
    from adjudge.dataset.label_map import read_number

    return read_number(value.strip()) if isinstance(value, str) else value if isinstance(value, int | float) else None


PHOENIX = Tool(
    shape=Shape(
        tool="phoenix",
        lists=("data.examples", "examples", "data", "spans", "annotations"),
        cells=("input", "output"),
    ),
    make_case_row=_make_case_row,
    list_annotations=_list_annotations,
    find_parts=_find_parts,
)
