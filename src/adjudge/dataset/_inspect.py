"""Samples of Inspect as cases: its data sets, and its logs, which have the answers too."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from adjudge.dataset._case import check_text
from adjudge.dataset._dataset import Dataset, Notes, OnBadRow, add_note
from adjudge.dataset._fields import Fields, read_fields, take_mapped
from adjudge.dataset._formats import LARGEST_JSON, Row, find_format, read_rows
from adjudge.dataset._inspect_log import open_logged, read_log, read_packed
from adjudge.dataset._source import check_path, read_whole
from adjudge.errors import UsageError
from adjudge.rules._json import read_json
from adjudge.rules._words import flatten, show

_SAMPLE = ("id", "input", "target", "choices", "metadata", "output")


def import_inspect(
    path: str | os.PathLike[str],
    *,
    fields: Mapping[str, str | None] | None = None,
    on_bad_row: OnBadRow = "fail",
) -> Dataset:
    """The samples of Inspect in a data set (CSV, JSON, JSON lines) or in a log (JSON, or packed as ``.eval``).

    In a log the content is the answer and the task is the ``input``, with lettered ``choices`` where there are some. A
    data set has no answers: without ``fields`` to name one, the content is the input, which ``dataset.notes`` counts.
    ``target`` is the reference, ``id`` the id, without one the place in the file; with several epochs the epoch is
    added to it. ``metadata`` stays, and everything else, the log's scores included, stands in ``metadata["inspect"]``.
    """
    name = os.fspath(path)
    if check_path(name) and name.lower().endswith(".eval"):
        raise UsageError(f"{name} is no regular file; a packed log is read from one")
    spec = read_fields(fields, table=False)
    how: dict[str, Any] = {"name": name, "path": name, "unit": "sample", "on_bad_row": on_bad_row}
    return Dataset(lambda notes: _read_cases(name, spec, notes), **how)


def _read_cases(name: str, spec: Fields, notes: Notes) -> Iterator[Row]:
    for number, sample in enumerate(_list_samples(name), 1):
        try:
            if isinstance(sample, UsageError):
                raise sample
            yield number, _make_row(sample, spec, notes, str(number))
        except UsageError as error:
            yield number, error


def _list_samples(name: str) -> Iterator[Mapping[str, Any] | UsageError]:
    if name.lower().endswith(".eval"):
        yield from map(_check_sample, read_packed(name))
        return
    form, gz = find_format(name, None)
    if form == "json":
        yield from _read_json(name)
        return
    for line, row in read_rows(name, form, None, gz=gz):
        yield UsageError(f"line {line}: {row}") if isinstance(row, UsageError) else _open_texts(row, form)


def _read_json(name: str) -> Iterator[Mapping[str, Any] | UsageError]:
    if Path(name).is_file() and Path(name).stat().st_size > LARGEST_JSON:
        raise UsageError(
            f"{name} is larger than {LARGEST_JSON // 1_000_000} MB; write a data set as JSON lines, and a log with "
            "`inspect log convert LOG --to eval --output-dir DIR`, which are read one sample at a time"
        )
    try:
        data = read_log(read_whole(name, LARGEST_JSON))
    except UsageError:
        raise
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name} is not JSON ({flatten(str(error))})") from None
    logged = isinstance(data, dict) and isinstance(data.get("samples"), list)
    samples = data["samples"] if logged else data
    if not isinstance(samples, list):
        raise UsageError(f"{Path(name).name} holds no samples; name a data set of Inspect, or a whole log")
    epochs = logged and any(isinstance(item, dict) and item.get("epoch", 1) != 1 for item in samples)
    for item in samples:
        try:
            check_text(item)
            yield _check_sample(open_logged(item, epochs=epochs) if logged else item)
        except UsageError as error:
            yield error


def _check_sample(item: Any) -> Mapping[str, Any] | UsageError:
    fits = isinstance(item, dict | UsageError)
    return item if fits else UsageError(f"a sample must be an object, got {show(item)}")


def _open_texts(row: Mapping[str, Any], form: str) -> Mapping[str, Any] | UsageError:
    """A row of a table, whose choices and metadata are texts."""
    if form not in {"csv", "tsv"}:
        return row
    sample = {key: cell for key, cell in row.items() if cell != ""}
    if "choices" in sample:
        between = "," if "," in sample["choices"] else None
        sample["choices"] = [item.strip() for item in sample["choices"].split(between) if item.strip()]
    if "metadata" in sample:
        try:
            sample["metadata"] = read_json(sample["metadata"])
        except (ValueError, RecursionError) as error:
            return UsageError(f"the metadata are not JSON ({flatten(str(error))})")
    return sample


def _make_row(sample: Mapping[str, Any], spec: Fields, notes: Notes, place: str) -> dict[str, Any]:
    row, used = take_mapped(sample, spec)
    asked = _find_asked(sample, row)
    # By its place, as Inspect numbers samples itself: two of them may hold the same text.
    row.setdefault("id", place if sample.get("id") is None else sample["id"])
    if "content" not in row:
        if sample.get("output") is None:
            add_note(notes, "sample without an answer: its input is the content")
            row.pop("task", None)
        row["content"] = asked if sample.get("output") is None else sample["output"]
    if row["content"] is not asked and "input" not in used:
        row.setdefault("task", asked)
    if sample.get("target") not in (None, "", []):
        row.setdefault("reference", sample["target"])
    _note_losses(sample, notes)
    return row | {"metadata": {**_write_metadata(sample, used), **(row.get("metadata") or {})}}


def _note_losses(sample: Mapping[str, Any], notes: Notes) -> None:
    if "output" in sample and sample.get("limit"):
        add_note(notes, "sample that a limit stopped: its answer is the last that was said")
    if isinstance(sample.get("input"), list) and "attachment://" in str(sample["input"]):
        add_note(notes, "image or file in an input, which was not read")


def _find_asked(sample: Mapping[str, Any], row: Mapping[str, Any]) -> Any:
    if sample.get("input") not in (None, "", []):
        return _write_input(sample)
    if row.get("task") is not None:
        return row["task"]
    raise UsageError(
        f"the sample has no 'input'; it has {flatten(', '.join(map(repr, sample)))}; "
        "say which of them is asked (fields={'task': ...}, or --task)"
    )


def _write_input(sample: Mapping[str, Any]) -> Any:
    choices = sample.get("choices")
    if not isinstance(choices, list) or not choices:
        return sample["input"]
    # The target of a multiple choice is a letter, which says nothing without the answers it stands before.
    letters = dict(zip(ascii_uppercase, choices, strict=False)) if len(choices) <= len(ascii_uppercase) else choices
    return {"input": sample["input"], "choices": letters}


def _write_metadata(sample: Mapping[str, Any], used: set[str]) -> dict[str, Any]:
    own = sample.get("metadata") or {}
    if not isinstance(own, dict):
        raise UsageError(f"the metadata of a sample must be an object, got {show(own)}")
    others = {key: sample[key] for key in sample if key not in _SAMPLE and key not in used and sample[key] is not None}
    return {**own} | ({"inspect": others} if others else {})
