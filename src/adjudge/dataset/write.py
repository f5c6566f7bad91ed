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
    if for_spreadsheet and form not in _FOR_SPREADSHEETS:
        raise UsageError(
            f"for_spreadsheet is for .csv and .tsv, and {name} is {form}; leave it out", argument="for_spreadsheet"
        )
    place, dicts = Path(name), map(_make_case_row, cases)
    with begin_file(place):
        if form == "parquet":
            return _write_parquet(place, dicts)
        with open_text(place, gz=gz) as file:
            return (_FOR_SPREADSHEETS if for_spreadsheet else _WRITERS)[form](file, dicts)


def encode_case(case: Case) -> str:
    """Encode a case as one line of JSON, without its end, in characters that every terminal and locale can show."""
    return json.dumps(_make_case_row(case))


def check_new_file(path: Path) -> None:
    """Raise ``UsageError`` for a name that ``begin_file`` refuses: before the work whose outcome is to go there."""
    if os.path.lexists(path):
        raise UsageError(f"{path} exists already; name a new file")
    if not path.parent.is_dir():
        raise UsageError(f"cannot write {path}: {os.strerror(ENOENT)}; name another file")


@contextmanager
def begin_file(path: Path, *, mode: int = 0o666) -> Iterator[None]:
    """Take a name that is free, and give it back when writing goes wrong; ``mode`` is who may read and write it.

    Raises ``UsageError``.
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


def write_lines(file: TextIO, dicts: Iterator[dict[str, Any]]) -> int:
    """Write a line of JSON for each row, and return how many there were."""
    count = 0
    for count, row in enumerate(dicts, 1):  # noqa: B007 - how many there were
        file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return count


def write_array(file: TextIO, dicts: Iterator[dict[str, Any]]) -> int:
    """Write a list in JSON, and return how many were in it."""
    count = 0
    for count, row in enumerate(dicts, 1):
        file.write(("[\n" if count == 1 else ",\n") + json.dumps(row, ensure_ascii=False))
    file.write("\n]\n" if count else "[]\n")
    return count


def _write_sequence(file: TextIO, dicts: Iterator[dict[str, Any]]) -> int:
    """Write a list in YAML, and return how many were in it.

    Raises ``UsageError`` as soon as it is more than is read again; what was written stays for ``begin_file`` to remove.
    """
    import yaml

    dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    count = written = values = 0
    for count, row in enumerate(dicts, 1):  # noqa: B007
        text = yaml.dump([row], Dumper=dumper, sort_keys=False, allow_unicode=True, width=100)
        written, values = written + len(text.encode()), values + _count_values(row)
        if written > LARGEST_YAML or values > MOST_YAML:
            raise UsageError("that is more YAML than would be read again; write a .jsonl file")
        file.write(text)
    file.write("" if count else "[]\n")
    return count


def _count_values(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    # A key of a mapping is an event of its own, so it counts here as well.
    return 1 + sum(map(_count_values, inner)) + (len(value) if isinstance(value, dict) else 0)


# ---------------------------------------------------------------- tables


@contextmanager
def _spool_rows(dicts: Iterator[dict[str, Any]]) -> Iterator[tuple[Iterator[list[str | None]], list[str], int]]:
    """Yield rows of texts, their columns, and how many there are.

    Which columns there are is known when the last case was seen, so all of them wait in a file and not in memory.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8", newline="\n") as file:
        used, as_json, count = {"id", "content"}, set[str](), 0
        for count, row in enumerate(dicts, 1):  # noqa: B007
            row.pop("schema")
            used |= row.keys()
            as_json |= {key for key in _TEXTS if key in row and not _fits_text(key, row[key])}
            file.write(json.dumps(row) + "\n")
        file.seek(0)
        keys = [key for key in (*KEYS, *OWN_KEYS) if key in used]
        columns = [f"{key}.json" if key in as_json else key for key in keys]
        yield (_render_cells(json.loads(line), keys, as_json) for line in file), columns, count


def _fits_text(key: str, value: Any) -> bool:
    # An empty cell says that there is nothing, except as content; a NUL would make the file binary.
    return isinstance(value, str) and "\x00" not in value and (bool(value) or key == "content")


def _render_cells(row: dict[str, Any], keys: list[str], as_json: set[str]) -> list[str | None]:
    return [None if key not in row else _render_cell(key, row[key], key in as_json) for key in keys]


def _render_cell(key: str, value: Any, as_json: bool) -> str:  # noqa: FBT001
    if key == "label":
        return value if isinstance(value, str) else json.dumps(value)
    return value if key in _TEXTS and not as_json else json.dumps(value, ensure_ascii=False)


def _write_table(file: TextIO, dicts: Iterator[dict[str, Any]], *, delimiter: str = ",", escapes: bool = False) -> int:
    """Write a table and return how many rows; with ``escapes``, cells that are formulas are written as text."""
    with _spool_rows(dicts) as (rows, columns, count):
        # Quoted throughout where a spreadsheet reads it: one of another language takes ; for the separator, and what
        # stands behind it would begin a cell of its own.
        quoting = csv.QUOTE_ALL if escapes else csv.QUOTE_MINIMAL
        writer = csv.writer(file, delimiter=delimiter, quoting=quoting)
        writer.writerow(columns)
        writer.writerows([escape_formula(cell) for cell in row] for row in rows) if escapes else writer.writerows(rows)
    return count


def _write_tabs(file: TextIO, dicts: Iterator[dict[str, Any]]) -> int:
    return _write_table(file, dicts, delimiter="\t")


def escape_formula(cell: str | None) -> str | None:
    """Put an apostrophe before a cell that a spreadsheet would run as a formula; a number stays one."""
    if not cell or _NUMBER.fullmatch(cell) or not _FORMULA.match(cell):
        return cell
    return f"'{cell}"


def unescape_cell(cell: str) -> str:
    """Return the text of a cell that ``escape_formula`` or ``escape_apostrophe`` wrote."""
    return cell[1:] if cell[:1] == "'" and escape_formula(cell[1:]) == cell else cell


def escape_apostrophe(cell: str | None) -> str | None:
    """Double a leading apostrophe of a plain table's cell that ``unescape_cell`` would take away."""
    return escape_formula(cell) if cell and unescape_cell(cell) != cell else cell


_WRITERS: dict[str, Callable[[TextIO, Iterator[dict[str, Any]]], int]] = {
    "jsonl": write_lines,
    "json": write_array,
    "yaml": _write_sequence,
    "csv": _write_table,
    "tsv": _write_tabs,
}

_FOR_SPREADSHEETS: dict[str, Callable[[TextIO, Iterator[dict[str, Any]]], int]] = {
    "csv": partial(_write_table, escapes=True),
    "tsv": partial(_write_table, escapes=True, delimiter="\t"),
}


def _write_parquet(path: Path, dicts: Iterator[dict[str, Any]]) -> int:
    """Write a Parquet file whose columns are all text, page by page, and return how many rows."""
    pa, parquet = import_parquet(str(path))
    with _spool_rows(dicts) as (rows, columns, count):
        schema = pa.schema([(name, pa.string()) for name in columns])
        with parquet.ParquetWriter(path, schema) as writer:
            while page := list(islice(rows, PAGE)):
                cells = [pa.array(list(column), pa.string()) for column in zip(*page, strict=True)]
                writer.write_batch(pa.record_batch(cells, schema=schema))
    return count
