"""Writing cases, in every format they are read from."""

from __future__ import annotations

import csv
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from errno import ENOENT
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TextIO, cast

from adjudge.content import check_extent
from adjudge.dataset.case import KEYS, OWN_KEYS, Case, check_text
from adjudge.dataset.formats import LARGEST_YAML, MOST_YAML, PAGE, find_format, import_parquet
from adjudge.errors import UsageError
from adjudge.formats.json import to_json_value
from adjudge.formats.text import show

# Spreadsheets pass over blanks, quotes and invisible characters before a formula, and some take wide forms for the
# plain ones.
_FORMULA = re.compile(r"'*[\t\r\n]|[\s\x00-\x20\"'\u200b-\u200f\u2060\ufeff]*[=+\-@\uff0b\uff0d\uff1d\uff20\u2212]")

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)


_TEXTS = ("id", "content", "reference", "task", "context", "group", "criteria", "rubric", "rules")
"""Keys that are a column of text where every case has text there, else one of JSON, ``content.json``."""


def write_cases(
    path: str | os.PathLike[str],
    cases: Iterable[Case],
    *,
    format: str | None = None,  # noqa: A002 - as open_dataset has it
    for_spreadsheet: bool = False,
) -> int:
    """Write cases to a new file and return how many; reading it gives equal cases.

    If cases bring criteria, rubrics, rules or thresholds of their own, read the file with ``case_criteria=True``. The
    formats are those of ``open_dataset``. In tables, values that are not text are JSON in a column whose name ends in
    ``.json``. Raises ``UsageError`` if the file exists, if a case has a value that JSON cannot express, and for more
    than 10 MB of YAML, which could not be read; no file is left then.

    Args:
        path: The new file.
        cases: What is written, such as a ``Dataset``.
        format: The format; by default the suffix of the file tells.
        for_spreadsheet: Write an apostrophe before cells of CSV and TSV that a spreadsheet would run as formulas. The
            apostrophe is read back as text. Raises ``UsageError`` for other formats.
    """
    name = os.fspath(path)
    form, gz = find_format(name, format)
    if for_spreadsheet and form not in _SPREADSHEET_WRITERS:
        raise UsageError(
            f"for_spreadsheet is for .csv and .tsv, and {name} is {form}; leave it out", argument="for_spreadsheet"
        )
    file_path, rows = Path(name), map(_make_case_row, cases)
    with begin_file(file_path):
        if form == "parquet":
            return _write_parquet(file_path, rows)
        writers = _SPREADSHEET_WRITERS if for_spreadsheet else _WRITERS
        with open_text(file_path, gz=gz) as file:
            return writers[form](file, rows)


def encode_case(case: Case) -> str:
    """Encode a case as one line of JSON in ASCII, which every terminal and locale can show, without a line end."""
    return json.dumps(_make_case_row(case))


def check_new_file(path: Path) -> None:
    """Raise ``UsageError`` for a path that ``begin_file`` would refuse, before the work whose result goes there."""
    if os.path.lexists(path):
        raise UsageError(f"{path} exists already; name a new file")
    if not path.parent.is_dir():
        raise UsageError(f"cannot write {path}: {os.strerror(ENOENT)}; name another file")


@contextmanager
def begin_file(path: Path, *, mode: int = 0o666) -> Iterator[None]:
    """Create an empty file for the block to write, with the permissions ``mode``; delete it if the block raises.

    Raises ``UsageError`` where there is a file already, and in place of an ``OSError`` of the block.
    """
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
    except FileExistsError:
        raise UsageError(f"{path} exists already; name a new file") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot write {path}: {getattr(error, 'strerror', error)}; name another file") from None
    try:
        yield
    except BaseException as error:
        with suppress(OSError):
            path.unlink()
        if isinstance(error, OSError):
            raise UsageError(f"cannot write {path}: {error.strerror}; name another file") from None
        raise


def _make_case_row(case: Case) -> dict[str, Any]:
    """Return the row of a case as plain JSON.

    Raises ``UsageError`` for a case with a rule that is a function, or with a value that JSON cannot express.
    """
    criteria = case.rubric.criteria if case.rubric is not None else ()
    criterion_rules = [criterion.rule for criterion in criteria if criterion.rule is not None]
    for rule in (*case.rules, *criterion_rules):
        if not rule.spec or "python" in rule.spec:
            raise UsageError(f"the case {show(case.id)} cannot be written: its rule {show(rule.name)} is a function")
    try:
        row = case.to_dict()
        check_extent(row, "row")
        plain: dict[str, Any] = to_json_value(row)
        check_text(plain)
    except ValueError as error:
        raise UsageError(f"the case {show(case.id)} cannot be written: {error}") from None
    return plain


def open_text(path: Path, *, gz: bool) -> TextIO:
    """Open a file to write text into, compressed if asked for."""
    if not gz:
        return path.open("w", encoding="utf-8", newline="")
    import gzip

    return cast("TextIO", gzip.open(path, "wt", encoding="utf-8", newline=""))


def write_lines(file: TextIO, rows: Iterator[dict[str, Any]]) -> int:
    """Write a line of JSON for each row, and return how many there were."""
    count = 0
    for count, row in enumerate(rows, 1):  # noqa: B007 - how many there were
        file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return count


def write_array(file: TextIO, rows: Iterator[dict[str, Any]]) -> int:
    """Write the rows as a JSON list, and return how many there were."""
    count = 0
    for count, row in enumerate(rows, 1):
        file.write(("[\n" if count == 1 else ",\n") + json.dumps(row, ensure_ascii=False))
    file.write("\n]\n" if count else "[]\n")
    return count


def _write_sequence(file: TextIO, rows: Iterator[dict[str, Any]]) -> int:
    """Write the rows as a YAML list, and return how many there were.

    Raises ``UsageError`` as soon as there is more than can be read again; ``begin_file`` then deletes the file.
    """
    import yaml

    dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    count = byte_count = value_count = 0
    for count, row in enumerate(rows, 1):  # noqa: B007
        text = yaml.dump([row], Dumper=dumper, sort_keys=False, allow_unicode=True, width=100)
        byte_count, value_count = byte_count + len(text.encode()), value_count + _count_values(row)
        if byte_count > LARGEST_YAML or value_count > MOST_YAML:
            raise UsageError("that is more YAML than would be read again; write a .jsonl file")
        file.write(text)
    file.write("" if count else "[]\n")
    return count


def _count_values(value: Any) -> int:
    """Count the values within a value, itself included, as reading YAML counts them: keys are values too."""
    if isinstance(value, dict):
        return 1 + sum(map(_count_values, value.values())) + len(value)
    if isinstance(value, list):
        return 1 + sum(map(_count_values, value))
    return 1


# ---------------------------------------------------------------- tables


@contextmanager
def _spool_rows(rows: Iterator[dict[str, Any]]) -> Iterator[tuple[Iterator[list[str | None]], list[str], int]]:
    """Prepare the rows of cases for a table: yield rows of texts, the names of the columns, and the number of rows.

    Columns are known only when the last case was seen, so the rows wait in a temporary file and not in memory.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8", newline="\n") as file:
        used_keys, json_keys, count = {"id", "content"}, set[str](), 0
        for count, row in enumerate(rows, 1):  # noqa: B007
            row.pop("schema")
            used_keys |= row.keys()
            json_keys |= {key for key in _TEXTS if key in row and not _fits_text(key, row[key])}
            file.write(json.dumps(row) + "\n")
        file.seek(0)
        keys = [key for key in (*KEYS, *OWN_KEYS) if key in used_keys]
        columns = [f"{key}.json" if key in json_keys else key for key in keys]
        yield (_render_cells(json.loads(line), keys, json_keys) for line in file), columns, count


def _fits_text(key: str, value: Any) -> bool:
    """Return whether a value of a case can be the text of a cell, and is not written as JSON."""
    # An empty cell says that there is nothing, except as content; a NUL would make the file binary.
    return isinstance(value, str) and "\x00" not in value and (bool(value) or key == "content")


def _render_cells(row: dict[str, Any], keys: list[str], json_keys: set[str]) -> list[str | None]:
    """Write the values of a row as texts, in the order of ``keys``; ``None`` where the row has no value."""
    return [None if key not in row else _render_cell(key, row[key], key in json_keys) for key in keys]


def _render_cell(key: str, value: Any, as_json: bool) -> str:  # noqa: FBT001
    """Write a value as the text of a cell; ``as_json`` is true in a column of JSON."""
    if key == "label":
        return value if isinstance(value, str) else json.dumps(value)
    return value if key in _TEXTS and not as_json else json.dumps(value, ensure_ascii=False)


def _write_table(file: TextIO, rows: Iterator[dict[str, Any]], *, delimiter: str = ",", escapes: bool = False) -> int:
    """Write a table and return how many rows; with ``escapes``, cells that are formulas are written as text."""
    with _spool_rows(rows) as (cell_rows, columns, count):
        # For a spreadsheet all cells are quoted: some languages' spreadsheets take ; for the separator, and would begin
        # a new cell behind one.
        quoting = csv.QUOTE_ALL if escapes else csv.QUOTE_MINIMAL
        writer = csv.writer(file, delimiter=delimiter, quoting=quoting)
        writer.writerow(columns)
        if escapes:
            writer.writerows([escape_formula(cell) for cell in cells] for cells in cell_rows)
        else:
            writer.writerows(cell_rows)
    return count


def _write_tabs(file: TextIO, rows: Iterator[dict[str, Any]]) -> int:
    """Write a table with tabs between its columns, and return how many rows."""
    return _write_table(file, rows, delimiter="\t")


def escape_formula(cell: str | None) -> str | None:
    """Put an apostrophe before a cell that a spreadsheet would run as a formula; numbers, such as -1, are left."""
    if not cell or _NUMBER.fullmatch(cell) or not _FORMULA.match(cell):
        return cell
    return f"'{cell}"


def unescape_cell(cell: str) -> str:
    """Return the text of a cell that ``escape_formula`` or ``escape_apostrophe`` wrote."""
    return cell[1:] if cell[:1] == "'" and escape_formula(cell[1:]) == cell else cell


def escape_apostrophe(cell: str | None) -> str | None:
    """Put a second apostrophe before a cell of a plain table whose own apostrophe ``unescape_cell`` would remove."""
    return escape_formula(cell) if cell and unescape_cell(cell) != cell else cell


_WRITERS: dict[str, Callable[[TextIO, Iterator[dict[str, Any]]], int]] = {
    "jsonl": write_lines,
    "json": write_array,
    "yaml": _write_sequence,
    "csv": _write_table,
    "tsv": _write_tabs,
}

_SPREADSHEET_WRITERS: dict[str, Callable[[TextIO, Iterator[dict[str, Any]]], int]] = {
    "csv": partial(_write_table, escapes=True),
    "tsv": partial(_write_table, escapes=True, delimiter="\t"),
}


def _write_parquet(path: Path, rows: Iterator[dict[str, Any]]) -> int:
    """Write a Parquet file whose columns are all text, page by page, and return how many rows."""
    pa, parquet = import_parquet(str(path))
    with _spool_rows(rows) as (cell_rows, columns, count):
        schema = pa.schema([(name, pa.string()) for name in columns])
        with parquet.ParquetWriter(path, schema) as writer:
            while page := list(islice(cell_rows, PAGE)):
                cells = [pa.array(list(column), pa.string()) for column in zip(*page, strict=True)]
                writer.write_batch(pa.record_batch(cells, schema=schema))
    return count
