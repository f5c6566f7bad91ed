"""MLflow: traces and records of its evaluation data sets as cases; its assessments as labels."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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
from adjudge.formats.json import read_json
from adjudge.formats.observability_rows import read_time
from adjudge.formats.text import list_names, show

_EXPECTED_RESPONSE = "expected_response"
"""The name of the expectation that MLflow's own scorers compare an answer with."""

_MISSING = object()
"""The outputs of a trace that has none; ``None`` may be an output."""

_MLFLOW_TAG = "mlflow."
"""The beginning of the names of tags that MLflow writes itself."""


def import_mlflow(
    path: str | os.PathLike[str],
    *,
    fields: Mapping[str, str | None] | None = None,
    on_bad_row: OnBadRow = "fail",
    label_map: LabelMap | None = None,
    label_name: str | None = None,
) -> Dataset:
    """Import traces of MLflow (``Trace.to_json``, a frame of ``search_traces``), or records of an evaluation data set.

    The content is the output of the root span, the task its input; a trace that ended with an error is a bad row. The
    reference is the expectation ``expected_response``, else all expectations. A record of a data set without
    ``outputs`` has no answer: its inputs are the content, which ``dataset.notes`` counts.

    Args:
        path: The file to read.
        fields: Which field is which part of a case, as for ``open_dataset``.
        on_bad_row: ``"fail"`` raises for a row that cannot be read, ``"skip"`` counts and lists it.
        label_map: What the words of labels mean, as for ``open_dataset``: ``{"yes": True, "no": False}``.
        label_name: The feedback that becomes the label if a person gave it. ``None`` takes none.
    """
    return open_annotated(
        os.fspath(path), MLFLOW, fields=fields, on_bad_row=on_bad_row, label_map=label_map, label_name=label_name
    )


def _make_case_row(row: Mapping[str, Any], notes: Notes) -> dict[str, Any] | None:
    """Make the row of a case from a trace or a record; ``None`` for an assessment, which is an annotation.

    Raises ``UsageError`` for any other row.
    """
    row = _unwrap_trace(row)
    if isinstance(row.get("info"), dict):
        return _make_trace_row(row["info"], row.get("data"))
    if "assessment_name" in row:
        return None
    if "inputs" in row and ("expectations" in row or "dataset_record_id" in row):
        return _make_record_row(row, notes)
    raise UsageError(f"it is no trace, assessment or record of MLflow; it has {list_names(row)}")


def _unwrap_trace(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the trace that a row of a frame has as the text of a column; any other row as it is."""
    trace = _read_attribute(row.get("trace"))
    return trace if isinstance(trace, dict) else row


def _make_trace_row(info: Mapping[str, Any], trace_data: Any) -> dict[str, Any]:
    """Make the row of a case from a trace: the inputs and outputs of its root span. Raises ``UsageError``."""
    name = _find_name(info)
    state = info.get("state") or info.get("status")
    if state not in ("OK", None):
        raise UsageError(f"the trace {show(name)} ended with {show(state)}; run it again")
    root = _find_root(trace_data)
    if root.outputs is _MISSING:
        # The answer in the info is cut off after some hundred characters, so it is not used.
        raise UsageError(f"the trace {show(name)} has no root span, so its answer is unknown; export it with its spans")
    tags = _find_tags(info)
    extras = select_members(info, ("request_time", "assessments")) | select_members(tags, ("mlflow.traceName",))
    return {
        "id": name,
        "content": check_answer(find_answer(root.outputs), f"trace {show(name)}"),
        "task": unwrap_single(root.inputs),
        "reference": _find_reference(_list_assessments(info)),
        "metadata": make_metadata("mlflow", _select_user_tags(tags), extras),
    }


def _find_name(info: Mapping[str, Any]) -> str:
    """Find the id of a trace in its info; raise ``UsageError`` where there is none."""
    name = read_text(info.get("trace_id")) or read_text(info.get("request_id"))
    if name is None:
        raise UsageError("the trace has no 'trace_id'; export it with Trace.to_json")
    return name


def _list_assessments(info: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List the assessments of a trace, without those that were replaced."""
    assessments = info.get("assessments")
    assessments = assessments if isinstance(assessments, list) else []
    return [
        assessment
        for assessment in assessments
        if isinstance(assessment, dict) and assessment.get("valid") is not False
    ]


def _list_annotations(row: Mapping[str, Any]) -> Iterator[Annotation]:
    """Yield the annotations of a trace, or the one that a row is by itself."""
    row = _unwrap_trace(row)
    info = row.get("info")
    if isinstance(info, dict):
        name, root = _find_name(info), _find_root(row.get("data"))
        annotations = (_read_feedback(assessment, name, root.span_id) for assessment in _list_assessments(info))
    else:
        annotations = iter((_read_feedback(row, read_text(row.get("trace_id")), None),))
    yield from (annotation for annotation in annotations if annotation is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _RootSpan:
    """The span of a trace that holds all others."""

    inputs: Any
    outputs: Any
    """The outputs, ``_MISSING`` where the trace has no root span."""
    span_id: str | None


def _find_root(trace_data: Any) -> _RootSpan:
    """Find the root span of a trace."""
    members = trace_data if isinstance(trace_data, dict) else {}
    spans = members.get("spans")
    for span in spans if isinstance(spans, list) else ():
        if isinstance(span, dict) and not (span.get("parent_span_id") or span.get("parent_id")):
            attributes = span.get("attributes")
            attributes = attributes if isinstance(attributes, dict) else {}
            inputs, outputs = (
                _read_attribute(attributes.get(key)) for key in ("mlflow.spanInputs", "mlflow.spanOutputs")
            )
            return _RootSpan(inputs=inputs, outputs=outputs, span_id=read_text(span.get("span_id")))
    # Traces of MLflow 2 have request and response beside the spans.
    inputs, outputs = _read_attribute(members.get("request")), _read_attribute(members.get("response", _MISSING))
    return _RootSpan(inputs=inputs, outputs=outputs, span_id=None)


def _read_attribute(value: Any) -> Any:
    """Read the JSON in a text; return a text that is no JSON, and any other value, as it is."""
    if not isinstance(value, str):
        return value
    try:
        return read_json(value, nan_is_null=True)
    except (ValueError, RecursionError):
        return value


def _find_reference(assessments: list[dict[str, Any]]) -> Any:
    """Find the expected response among the expectations of a trace, else all of them by name; ``None`` for none."""
    expectations = {
        str(assessment.get("assessment_name")): _read_expectation(assessment["expectation"])
        for assessment in assessments
        if isinstance(assessment.get("expectation"), dict) and assessment.get("valid") is not False
    }
    return expectations.get(_EXPECTED_RESPONSE, expectations or None)


def _read_expectation(expectation: Mapping[str, Any]) -> Any:
    """Read the value of an expectation, which may be JSON in a text."""
    serialized = expectation.get("serialized_value")
    return _read_attribute(serialized.get("value")) if isinstance(serialized, dict) else expectation.get("value")


def _read_feedback(assessment: Mapping[str, Any], trace: str | None, root: str | None) -> Annotation | None:
    """Read a feedback as an annotation; ``None`` for an expectation, and for a feedback that was replaced.

    ``trace`` is the id of its trace, and ``root`` that of the trace's root span: feedback on another span is about a
    case of its own. Raises ``UsageError``.
    """
    feedback, name = assessment.get("feedback"), read_text(assessment.get("assessment_name"))
    span = read_text(assessment.get("span_id"))
    case = span if span is not None and span != root else trace
    if not isinstance(feedback, dict) or assessment.get("valid") is False:
        return None
    if name is None or case is None:
        raise UsageError(f"the assessment {show(assessment.get('assessment_id'))} has no name, or is of no trace")
    source = assessment.get("source")
    source = source if isinstance(source, dict) else {}
    value = feedback.get("value")  # null where a judge failed
    return Annotation(
        case=case,
        name=name,
        person=source.get("source_type") == "HUMAN",
        rater=read_text(source.get("source_id")),
        word=value if isinstance(value, str) else None,
        number=value if isinstance(value, bool | int | float) else None,
        at=read_time(assessment.get("last_update_time") or assessment.get("create_time")),
        comment=read_text(assessment.get("rationale")),
    )


def _make_record_row(row: Mapping[str, Any], notes: Notes) -> dict[str, Any]:
    """Make the row of a case from a record of an evaluation data set; raise ``UsageError`` for one without inputs."""
    inputs, outputs = unwrap_single(row["inputs"]), row.get("outputs")
    expected = row.get("expectations")
    expected = expected if isinstance(expected, dict) else {}
    case: dict[str, Any] = {
        "id": read_text(row.get("dataset_record_id")),
        "reference": expected.get(_EXPECTED_RESPONSE, expected or None),
        "metadata": make_metadata(
            "mlflow",
            _select_user_tags(_find_tags(row)),
            select_members(row, ("source_type", "source_id", "dataset_id")),
        ),
    }
    if outputs in (None, {}, [], ""):
        add_note(notes, "record without an answer: its input is the content")
        return case | {"content": check_answer(inputs, "record without inputs")}
    return case | {"content": find_answer(outputs), "task": inputs}


def _find_tags(row: Mapping[str, Any]) -> dict[str, Any]:
    """Find the tags of a trace or a record; empty where there are none."""
    tags = row.get("tags")
    return tags if isinstance(tags, dict) else {}


def _select_user_tags(tags: Mapping[str, Any]) -> dict[str, Any]:
    """Select the tags that users set, and not those that MLflow writes itself."""
    return {key: tag for key, tag in tags.items() if not key.startswith(_MLFLOW_TAG)}


MLFLOW = Tool(
    shape=Shape(
        tool="mlflow",
        lists=("traces", "records", "assessments"),
        cells=("inputs", "outputs", "expectations"),
    ),
    make_case_row=_make_case_row,
    list_annotations=_list_annotations,
)
