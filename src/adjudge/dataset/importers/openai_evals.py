"""Exports of OpenAI's evals platform, which ends on 2026-11-30, as cases.

Read are the file that the dashboard exports of a run (JSON lines with ``run_id``, ``data_source_idx``, ``item``,
``sample``, ``grades``, ``passes``), the output items of a run as the API lists them, and the data of a run (``item``,
``sample``). Sources: ``openai.types.evals``, and promptfoo 0.121.20, which reads the dashboard's file. Logs of the
open-source framework of the same name are read as well.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from adjudge.dataset.case import Case, make_case
from adjudge.dataset.dataset import Dataset, Notes, OnBadRow, add_note
from adjudge.dataset.fields import Fields, find_field, read_fields, select_mapped
from adjudge.dataset.formats import LARGEST_JSON, check_path, find_format, read_rows, read_whole
from adjudge.dataset.importers.openai_graders import SAMPLED, Graders, apply_graders, read_graders
from adjudge.dataset.importers.openai_logs import group_events, is_log
from adjudge.dataset.label_map import LabelMap, check_label_map, map_labels
from adjudge.errors import Argument, UsageError
from adjudge.formats.json import read_json
from adjudge.formats.text import flatten, list_names, show

DEFINITION = "eval.json"
"""The file beside the data in which the eval itself is looked for."""

NumberedCase = tuple[int, "Case | UsageError"]
"""The number of an item, from 1, and its case or its error."""

_RECORDED = ("results", "grades", "passes", "status", "run_id", "eval_id")
"""The members of a row with the platform's own verdicts; a grader is no person, so they are no labels."""


def import_openai_evals(
    path: str | os.PathLike[str],
    *,
    graders: str | os.PathLike[str] | None = None,
    fields: Mapping[str, str | None] | None = None,
    on_bad_row: OnBadRow = "fail",
    label_map: LabelMap | None = None,
) -> Dataset:
    """Import the items of an eval on OpenAI's platform: the dashboard's export, a run's output items, or a run's data.

    The content is the answer of the sample, or what ``fields`` names. The ``string_check``, ``label_model`` and
    ``score_model`` graders of the eval become the rubric of each case; ``dataset.notes`` counts those that do not, with
    the reason. The platform's own verdicts are in ``metadata["openai_evals"]``. Raises ``UsageError`` naming file and
    remedy: at once for a file that cannot be read, while iterating for a bad row.

    Args:
        path: The file to read.
        graders: The JSON file of the eval itself (``evals.retrieve``); by default ``eval.json`` in the same folder if
            there is one.
        fields: Which field is which part of a case, as for ``open_dataset``: ``{"content": "item.answer"}``.
        on_bad_row: ``"fail"`` raises for a row that cannot be read, ``"skip"`` counts and lists it.
        label_map: What the words of labels mean, as for ``open_dataset``: ``{"yes": True, "no": False}``.
    """
    name = os.fspath(path)
    once = check_path(name)
    field_options = read_fields(fields, table=False)
    suite, checked_map = _find_suite(name, graders), check_label_map(label_map)
    return Dataset(
        lambda notes: _read_cases(name, field_options, suite, checked_map, notes),
        name=name,
        path=None if name == "-" else name,
        unit="item",
        on_bad_row=on_bad_row,
        is_suite=True,
        once=once,
    )


def _find_suite(name: str, path: str | os.PathLike[str] | None) -> Graders:
    """Read the graders from the file that was named, else from ``eval.json`` in the folder of the items; else none.

    Raises ``UsageError`` for a file that holds no eval.
    """
    default_path = Path(name).parent / DEFINITION
    if path is not None:
        graders_path = os.fspath(path)
    elif name != "-" and default_path.is_file() and default_path != Path(name):
        graders_path = str(default_path)
    else:
        return Graders()
    check_path(graders_path)
    return read_graders(_read_document(graders_path), graders_path)


def _read_document(name: str) -> Any:
    """Read a file of JSON. Raises ``UsageError``."""
    try:
        return read_json(read_whole(name, LARGEST_JSON))
    except UsageError:
        raise
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name} is not JSON ({flatten(str(error))})") from None


def _list_rows(name: str) -> Iterator[Mapping[str, Any] | UsageError]:
    """Yield the items of an export, of output items or of a log, or what is wrong with each. Raises ``UsageError``."""
    form, gz = find_format(name, None)
    if form == "jsonl":
        rows = (row for _, row in read_rows(name, form, None, gz=gz))
        first = next(rows, None)
        if is_log(first):
            yield from group_events(name, rows)
        elif first is not None:
            yield first
            yield from rows
        return
    if form != "json":
        raise UsageError(f"{name} is {form}, and what OpenAI exports is JSON or JSON lines; name that file")
    document = _read_document(name)
    rows = document if isinstance(document, list) else _find_rows(document)
    if rows is None:
        remedy = "name an export or output items"
        if isinstance(document, dict) and "testing_criteria" in document:
            remedy = "that is the eval itself: name the data, and keep this beside it as eval.json"
        raise UsageError(f"{name} holds no items of OpenAI Evals; {remedy}")
    for row in rows:
        yield row if isinstance(row, dict) else UsageError(f"an item must be an object, got {show(row)}")


def _find_rows(document: Any) -> list[Any] | None:
    """Find the list of items in a page of the API, or in a run that contains its data; ``None`` where there is none."""
    for steps in (("data",), ("output_items",), ("data_source", "source", "content"), ("source", "content")):
        value = document
        for step in steps:
            value = value.get(step) if isinstance(value, dict) else None
        if isinstance(value, list):
            return value
    return None


def _read_cases(
    name: str, field_options: Fields, suite: Graders, label_map: LabelMap, notes: Notes
) -> Iterator[NumberedCase]:
    """Yield the case of each item behind its number, or its error."""
    first_run: str | None = None
    for number, row in enumerate(_list_rows(name), 1):
        if isinstance(row, UsageError):
            yield number, row
            continue
        try:
            eval_item = _read_item(row, number)
            first_run = first_run or eval_item.run
            # The first run of a file is not named in the ids, by which the files of two runs are compared.
            if eval_item.run != first_run:
                eval_item.known["id"] = f"{eval_item.known['id']}, run {eval_item.run}"
            yield number, _make_case(eval_item, field_options, suite, label_map, notes)
        except UsageError as error:
            yield number, error


@dataclass(slots=True, kw_only=True)
class _EvalItem:
    """One item of an eval, however it was exported."""

    row: Mapping[str, Any]
    """The row of the export, with its variables under ``item``."""
    variables: Mapping[str, Any]
    sample: Mapping[str, Any] | None
    """The model's input and output; ``None`` where no model was asked."""
    run: str | None
    """The id of the run."""
    known: dict[str, Any] = field(default_factory=dict)
    """The parts of the case that are known without ``fields``."""


def _read_item(row: Mapping[str, Any], number: int) -> _EvalItem:
    """Read an item: its variables, the model's sample, and the parts of the case that are known without ``fields``.

    Raises ``UsageError``.
    """
    variables = row.get("item", row.get("datasource_item"))
    if not isinstance(variables, dict):
        has = list_names(row)
        raise UsageError(f"the row has no 'item' (or 'datasource_item'); it has {has}; name an export of OpenAI Evals")
    sample = row.get("sample")
    if sample is not None and not isinstance(sample, dict):
        raise UsageError(f"'sample' must be an object, got {show(sample)}")
    index = row.get("data_source_idx")
    if index is None:
        index = row.get("datasource_item_id")
    if index is None:
        index = number
    run = row.get("run_id")
    # Under one name, so that fields and templates find the variables: the API calls them datasource_item.
    row_with_item = {**row, "item": variables}
    eval_item = _EvalItem(
        row=row_with_item, variables=variables, sample=sample, run=run if isinstance(run, str) else None
    )
    eval_item.known["id"] = str(index) if isinstance(index, int | str) else str(number)
    if sample is not None:
        task = sample.get("input")
        eval_item.known |= {"task": task} if isinstance(task, list | str) and task else {}
    if "expected" in variables and "item" in row and "results" in row:  # a row that was made from a framework's log
        eval_item.known["reference"] = variables["expected"]
    return eval_item


def _read_answer(sample: Mapping[str, Any]) -> str | None:
    """Read the model's answer; ``None`` where the sample does not have it at all.

    A sample with an error or without an answer raises ``UsageError``: judged as an empty one, a rubric that only
    forbids things would pass it.
    """
    error = sample.get("error")
    reason = error.get("message") or error.get("code") if isinstance(error, Mapping) else error
    if reason:
        raise UsageError(
            f"the sample ended with an error ({flatten(str(reason))[:200]}); run it again, or leave it out"
        )
    if "output_text" in sample:
        if not isinstance(sample["output_text"], str):
            raise UsageError("the sample's 'output_text' is no text; run it again, or leave it out")
        return sample["output_text"]
    for key in ("output", "outputs", "choices"):
        messages = sample.get(key)
        if isinstance(messages, list):
            answer = _find_last_text(messages)
            if answer is None:
                raise UsageError(f"the sample has no text in its {key!r}; run it again, or leave it out")
            return answer
    return None


def _find_last_text(messages: list[Any]) -> str | None:
    """Return the text of the last message; those before it are calls of tools and their like. ``None`` for no text."""
    last = messages[-1] if messages else None
    content = None
    if isinstance(last, dict):
        inner = last.get("message")  # of a choice
        message = inner if isinstance(inner, dict) else last
        content = message.get("content")
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "\n".join(text for text in texts if isinstance(text, str)) or None
    return content if isinstance(content, str) else None


def _make_case(eval_item: _EvalItem, field_options: Fields, suite: Graders, label_map: LabelMap, notes: Notes) -> Case:
    """Make the case of an item, with the rubric that its graders become. Raises ``UsageError``.

    Content and reference are the mapped fields, else what the graders name. Variables that nothing uses are the task.
    """
    if suite.evaluation is not None and eval_item.row.get("eval_id", suite.evaluation) != suite.evaluation:
        raise UsageError(
            f"the item belongs to the eval {show(eval_item.row['eval_id'])}, "
            f"and the graders to {show(suite.evaluation)}; save the eval that it belongs to"
        )
    members, _ = select_mapped(eval_item.row, field_options)
    paths = {key: path for (key, inner), path in field_options.mapped if inner is None}
    answer = _set_content(eval_item, members, paths.get("content"), suite)
    golden = paths.get("reference") or _find_golden(eval_item, suite, answer, field_options)
    if golden is not None and "reference" not in members:
        members["reference"] = find_field(eval_item.row, golden)
    used_names = {answer, golden, *paths.values()}
    others = {name: value for name, value in eval_item.variables.items() if f"item.{name}" not in used_names}
    applied = apply_graders(suite, eval_item.variables, answer=answer)
    for reason in applied.dropped:
        add_note(notes, reason)
    if suite.graders and applied.rubric is None:
        add_note(notes, "item none of whose graders is applied: only the run's own criteria judge it")
    members = eval_item.known | members
    context_values = {name: value for name, value in applied.context.items() if f"item.{name}" != golden}
    if applied.context:
        mapped = members.get("context")
        members["context"] = applied.context if mapped is None else {**applied.context, "context": mapped}
        others = {name: value for name, value in others.items() if name not in context_values}
    if others and "task" not in members:
        members["task"] = next(iter(others.values())) if len(others) == 1 else others
    recorded = {key: eval_item.row[key] for key in _RECORDED if eval_item.row.get(key) not in (None, [], {})}
    model = eval_item.sample.get("model") if eval_item.sample is not None else None
    recorded |= {"item": eval_item.variables} | ({"model": model} if model else {})
    members["metadata"] = {"openai_evals": recorded, **(members.get("metadata") or {})}
    return replace(make_case(map_labels(members, label_map)), rubric=applied.rubric)


def _find_golden(eval_item: _EvalItem, suite: Graders, answer: str, field_options: Fields) -> str | None:
    """Find the name of the variable that graders compare the answer with, if the item has it; else ``None``."""
    name = None if "reference" in field_options.taken else suite.find_reference(answer)
    if name is None:
        return None
    try:
        find_field(eval_item.row, name)  # raises where the item does not have it
    except UsageError:
        return None  # the grader is then not applied, for this reason
    return name


def _set_content(eval_item: _EvalItem, members: dict[str, Any], mapped: str | None, suite: Graders) -> str:
    """Set the content among ``members``, unless a field is mapped to it, and return its name in the graders' templates.

    ``mapped`` is the path of the field that is mapped to the content. Raises ``UsageError``.
    """
    if mapped is not None:
        return mapped if mapped.startswith("item.") else SAMPLED
    answer = _read_answer(eval_item.sample) if eval_item.sample is not None else None
    if answer is not None:
        members["content"] = answer
        return SAMPLED
    name = suite.find_answer()
    if name is None:
        names = flatten(", ".join(f"item.{key}" for key in eval_item.variables))[:200]
        raise UsageError(
            f"the item has no sample; say which variable of {names} is the answer, with ", Argument("fields['content']")
        )
    members["content"] = find_field(eval_item.row, name)
    return name
