"""A label file: labels read from rows of any format of a data set, and written to a new file."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from adjudge.dataset.case import LabelValue, check_text
from adjudge.dataset.fields import read_label
from adjudge.dataset.formats import TABLES, find_format, read_rows
from adjudge.dataset.label import DESIGN_KEYS, LABEL_KEYS, Label
from adjudge.dataset.label_map import CANNOT_TELL, LabelMap, apply_label_map, check_label_map
from adjudge.errors import UsageError
from adjudge.formats.text import show

LABEL_COLUMNS = (
    *(key for key in LABEL_KEYS if key not in {"design", "comment"}),
    *(f"design.{key}" for key in DESIGN_KEYS),
    "comment",
)
"""The columns of a table of labels."""

_NUMBERS = frozenset(("p", "size", "cases"))
"""The members of a design that are numbers."""

CASE_COLUMNS = ("content", "task", "reference", "context")
"""The columns of a case in a list of cases to label, beside those of its label."""


def load_labels(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002 - as open_dataset has it
    label_map: LabelMap | None = None,
    rater: str | None = None,
) -> tuple[Label, ...]:
    """Load the labels of a file, in its order: rows as ``Label.to_dict`` writes them, in any format of a data set.

    A table has a column for each key, such as ``design.plan``; an empty cell means nothing is given. A row with
    ``content``, ``task``, ``reference`` or ``context`` comes from a list of cases to label (``adjudge plan --out``):
    its case is passed over, and so is a row whose value nobody filled in. Raises ``UsageError`` naming file, line,
    value and remedy for the first row that is not a label, and both lines where a person gives two values about the
    same.

    Args:
        path: The file to read.
        format: The format of the file; by default its suffix tells.
        label_map: What the words of values mean, as for ``open_dataset``; a word may also mean ``cannot_tell``. A row
            whose word means ``None`` is left out.
        rater: The name of who labelled the rows that name nobody.
    """
    return tuple(stream_labels(path, format=format, label_map=label_map, rater=rater))


def stream_labels(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002 - as open_dataset has it
    label_map: LabelMap | None = None,
    rater: str | None = None,
) -> Iterator[Label]:
    """Yield the labels of a file one at a time, as ``load_labels`` loads them. Raises ``UsageError``."""
    name = os.fspath(path)
    form, gz = find_format(name, format)
    checked_map = check_label_map(label_map)
    unit = "row" if form in {"json", "parquet"} else "line"
    seen: dict[tuple[str | None, ...], tuple[int, LabelValue]] = {}
    for line, row in read_rows(name, form, None, gz=gz):
        try:
            label = _read_row(row, checked_map, rater, table=form in TABLES)
        except UsageError as error:
            raise error.within(f"{name}, {unit} {line}") from None
        if label is not None:
            _check_once(label, line, seen, name=name, unit=unit)
            yield label


def _check_once(
    label: Label, line: int, seen: dict[tuple[str | None, ...], tuple[int, LabelValue]], *, name: str, unit: str
) -> None:
    """Raise ``UsageError`` where an earlier row has another label of the same person for the same case and criterion.

    ``seen`` has the line and the value of each label so far, and gets this one.
    """
    if label.kind == "model":  # may be asked several times, and answers are compared
        return
    key = (label.case, label.subject, label.run, label.rater, label.kind, label.criterion, label.order)
    first_line, first_value = seen.setdefault(key, (line, label.value))
    if first_value != label.value or isinstance(first_value, bool) is not isinstance(label.value, bool):
        about = f" on {show(label.criterion)}" if label.criterion is not None else ""
        raise UsageError(
            f"{name}, {unit} {line}: {show(label.rater)} labels the case {show(label.case)}{about} "
            f"{show(label.value)}, and {show(first_value)} in {unit} {first_line}; keep the one that holds"
        )


def _read_row(
    row: Mapping[str, Any] | UsageError, label_map: LabelMap, rater: str | None, *, table: bool
) -> Label | None:
    """Read a row of a file of labels; ``None`` for a row that nobody filled in, or whose value the map leaves out.

    ``rater`` is the name for rows that name none. Raises ``UsageError``.
    """
    if isinstance(row, UsageError):
        raise row
    members = _read_cells(row) if table else dict(row)
    is_of_case_list = not set(CASE_COLUMNS).isdisjoint(row)
    if is_of_case_list:  # a row of cases to label, whose value may not be filled in yet
        members = {key: value for key, value in members.items() if key not in CASE_COLUMNS}
        if members.get("value") in (None, ""):
            return None
    if members.get("value") is None:
        raise UsageError(
            "a label needs 'case', 'rater' and 'value', and there is no value; a rater who cannot decide says "
            f"{CANNOT_TELL!r}, and the labels of a data set itself are read with it (adjudge run --label COLUMN)"
        )
    if rater is not None and members.get("rater") in (None, ""):
        members["rater"] = rater
    members["value"] = apply_label_map(members["value"], label_map)
    return None if members["value"] is None else Label.from_dict(members)


def _read_cells(row: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a row of a table, whose cells may be texts, to the members of a label; empty cells are left out."""
    from adjudge.dataset.write import unescape_cell

    # A cell that a spreadsheet would run as a formula was written with an apostrophe before it.
    members = {
        key: unescape_cell(cell) if isinstance(cell, str) else cell
        for key, cell in row.items()
        if cell not in (None, "")
    }
    design = {key: members.pop(f"design.{key}") for key in DESIGN_KEYS if f"design.{key}" in members}
    for key in _NUMBERS & design.keys():
        design[key] = read_label(design[key])
    if design:
        members["design"] = design
    if "value" in members:
        members["value"] = read_label(members["value"])
    if isinstance(members.get("blind"), str):
        members["blind"] = read_label(members["blind"])
    return members


def write_labels(
    path: str | os.PathLike[str],
    labels: Iterable[Label],
    *,
    format: str | None = None,  # noqa: A002 - as open_dataset has it
    for_spreadsheet: bool = False,
) -> int:
    """Write labels to a new file that its owner alone can read, and return how many; reading it gives equal labels.

    The formats are ``jsonl``, ``json``, ``csv`` and ``tsv``. Raises ``UsageError`` if the file exists. If something
    goes wrong, no file is left.

    Args:
        path: The new file.
        labels: What is written.
        format: The format; by default the suffix of the file tells.
        for_spreadsheet: As for ``write_cases``, because anybody may have written the comments.
    """
    name = os.fspath(path)
    form, gz = find_format(name, format)
    if form not in {"jsonl", "json", "csv", "tsv"}:
        raise UsageError(f"{name}: labels are written as jsonl, json, csv or tsv, not as {form}; name such a file")
    if for_spreadsheet and form not in TABLES:
        raise UsageError(
            f"for_spreadsheet is for .csv and .tsv, and {name} is {form}; leave it out", argument="for_spreadsheet"
        )
    from adjudge.dataset.write import begin_file, open_text, write_array, write_lines

    file_path = Path(name)
    with begin_file(file_path, mode=0o600), open_text(file_path, gz=gz) as file:
        rows = (_make_label_row(label) for label in labels)
        if form in TABLES:
            return _write_table(file, rows, "\t" if form == "tsv" else ",", escapes=for_spreadsheet)
        return (write_lines if form == "jsonl" else write_array)(file, rows)


def _make_label_row(label: Label) -> dict[str, Any]:
    """Return the row of a label. Raises ``UsageError`` for a text that no encoding can write, naming rater and case."""
    row = label.to_dict()
    try:
        check_text(row)
    except UsageError as error:
        raise UsageError(
            f"the label of {show(label.rater)} for {show(label.case)} cannot be written: {error}"
        ) from None
    return row


def _write_table(file: TextIO, rows: Iterator[dict[str, Any]], delimiter: str, *, escapes: bool) -> int:
    """Write labels as a table and return how many; each member of a design has a column of its own.

    With ``escapes``, cells that a spreadsheet would run as formulas are written as text.
    """
    from adjudge.dataset.write import escape_apostrophe, escape_formula

    writer = csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL if escapes else csv.QUOTE_MINIMAL)
    writer.writerow(LABEL_COLUMNS)
    count = 0
    for count, row in enumerate(rows, 1):  # noqa: B007 - how many there were
        cells = row | {f"design.{key}": value for key, value in row.get("design", {}).items()}
        texts = [_write_cell(key, cells.get(key)) for key in LABEL_COLUMNS]
        writer.writerow([escape_formula(cell) if escapes else escape_apostrophe(cell) for cell in texts])
    return count


def _write_cell(key: str, value: Any) -> str | None:
    """Write a value as the text of a cell: a text as it is, anything else as JSON; ``None`` is an empty cell.

    Raises ``UsageError`` for a text with a NUL character.
    """
    if value is None or isinstance(value, str):
        if value is not None and "\x00" in value:
            raise UsageError(f"{key} holds a NUL character, which no table can; write a .jsonl file")
        return value
    return json.dumps(value)
