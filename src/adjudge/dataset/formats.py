"""Reading the files of data sets, in every format: rows with their numbers, or an error for a row that is none.

They are written in ``write.py``.
"""

from __future__ import annotations

import csv
import os
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from adjudge.dataset.case import check_text
from adjudge.dataset.fields import Fields, check_names, convert_cell
from adjudge.errors import Argument, UsageError
from adjudge.formats.files import check_regular, open_regular
from adjudge.formats.json import read_json, to_json_value
from adjudge.formats.text import flatten
from adjudge.formats.yaml import read_yaml

LONGEST = 50_000_000
"""Bytes of the longest line: a file without line breaks must not fill the memory before anybody looks at it."""


_BOM = b"\xef\xbb\xbf"

Line = tuple[int, str | UsageError]
"""The number of a line, from 1, and its text, or the error for a line that is no text."""


def check_path(path: str) -> bool:
    """Return whether a path is ``-``, standard input; raise ``UsageError`` for any other that is no regular file."""
    if path == "-":
        return True
    try:
        check_regular(path)
    except IsADirectoryError:
        raise UsageError(f"{path} is a directory; name one data set in it") from None
    except (OSError, ValueError) as error:
        raise _make_unreadable_error(path, error) from None
    return False


@contextmanager
def open_bytes(path: str, *, gz: bool = False) -> Iterator[BinaryIO]:
    """Open a file to read its bytes, decompressed if it is gzipped (``gz``); ``-`` is standard input.

    Raises ``UsageError`` for a file that cannot be read, also while it is read.
    """
    try:
        if path == "-":
            if sys.stdin is None:
                raise UsageError("standard input is closed; name a file")
            yield sys.stdin.buffer
            return
        with open_regular(path) as file:
            if not gz:
                yield file
                return
            import gzip

            with gzip.GzipFile(fileobj=file) as unpacked:
                yield cast("BinaryIO", _BoundedReader(unpacked, compute_unpacked_limit(file), path))
    except OSError as error:
        raise _make_unreadable_error(path, error) from None
    except (EOFError, zlib.error):
        raise UsageError(f"cannot read {path}: the compressed data are broken or cut off; compress it again") from None


LEAST_UNPACKED, MOST_EXPANDED = 100_000_000, 200
"""A packed file may hold so many bytes, or so many times its own size, whichever is more."""


def compute_unpacked_limit(file: BinaryIO) -> int:
    """Compute how many bytes a compressed file may hold, because a megabyte of it can expand to a thousand."""
    return max(LEAST_UNPACKED, MOST_EXPANDED * os.fstat(file.fileno()).st_size)


def make_expanding_error(path: str) -> UsageError:
    """Make the error for a compressed file that holds more than ``compute_unpacked_limit`` allows."""
    return UsageError(
        f"{path} holds more than {LEAST_UNPACKED // 1_000_000} MB and {MOST_EXPANDED} times its own size, as no data "
        "set does; unpack it, and look at what is in it"
    )


class _BoundedReader:
    """Reads from a file, up to a number of bytes; raises ``UsageError`` beyond."""

    def __init__(self, file: Any, most: int, path: str) -> None:
        self._file, self._bytes_left, self._path = file, most, path

    def read(self, size: int = -1) -> bytes:
        return self._count_bytes(self._file.read(size))

    def readline(self, size: int = -1) -> bytes:
        return self._count_bytes(self._file.readline(size))

    def _count_bytes(self, chunk: bytes) -> bytes:
        """Return bytes that were read; raise ``UsageError`` if there are more of them by now than allowed."""
        self._bytes_left -= len(chunk)
        if self._bytes_left < 0:
            raise make_expanding_error(self._path)
        return chunk


MOST_BLANK = 100_000
"""Blank lines after one another: reading a thousand million of them would take a minute and find nothing."""


def read_lines(file: BinaryIO, path: str) -> Iterator[Line]:
    """Yield the lines with their numbers, from 1; for a line that is no text, the error.

    Lines end at a line feed alone: JSON texts and cells may hold every other character that ends a line somewhere.
    """
    number = blank = 0
    while line := file.readline(LONGEST + 1):
        number += 1
        blank = blank + 1 if line.isspace() else 0
        if blank > MOST_BLANK:
            raise UsageError(
                f"{path}: line {number:,} ends {MOST_BLANK:,} blank lines; is this a data set? take them out"
            )
        if number == 1 and line.startswith(_BOM):
            line = line[len(_BOM) :]
        if len(line) > LONGEST:
            while line and not line.endswith(b"\n"):  # skip to the end of the line
                line = file.readline(LONGEST)
            yield number, UsageError(f"the line is longer than {LONGEST // 1_000_000} MB; split what it holds")
            continue
        try:
            yield number, line.decode()
        except UnicodeDecodeError as error:
            yield number, UsageError(f"the line is not UTF-8 text (byte {error.start:,}); write the file as UTF-8")


def read_whole(path: str, largest: int) -> str:
    """Read the text of a whole file; raise ``UsageError`` for one of more than ``largest`` bytes, or not in UTF-8."""
    with open_bytes(path) as file:
        content = file.read(largest + 1)
    if len(content) > largest:
        raise UsageError(f"{path} is larger than {largest // 1_000_000} MB; write it as JSON lines, which are streamed")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text (byte {error.start:,}); write it as UTF-8") from None


def _make_unreadable_error(path: str, error: OSError | ValueError) -> UsageError:
    """Make the error for a file that cannot be opened or read."""
    reason = getattr(error, "strerror", None) or ("broken compressed data" if Path(path).exists() else str(error))
    return UsageError(f"cannot read {path}: {reason}; name a file that can be read")


Row = tuple[int, Mapping[str, Any] | UsageError]
"""The place of a row, from 1, and its content or the error for it."""


SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".json": "json",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".parquet": "parquet",
}

FORMATS = ("jsonl", "csv", "tsv", "json", "yaml", "parquet")

TABLES = ("csv", "tsv", "parquet")

LINES = ("jsonl", "csv", "tsv")
"""Formats that are read line by line, and may be compressed."""


LARGEST_JSON = 100_000_000
"""Bytes of the largest file that is read as one JSON document."""

LARGEST_YAML = 10_000_000
"""Bytes of the largest YAML file."""

MOST_YAML = 200_000
"""Values in a YAML file: each one costs some hundred bytes while the file is checked."""

PAGE = 1_000
"""Rows of a Parquet file that are in memory together."""


def find_format(path: str, name: str | None) -> tuple[str, bool]:
    """Find the format of a data set, which is ``name`` if given, and whether its file is compressed.

    Otherwise the end of the path tells. Raises ``UsageError`` where it does not, and for a format that cannot be read.
    """
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    gz = suffixes[-1:] == [".gz"]
    suffix = suffixes[-1 - gz] if len(suffixes) > gz else ""  # the one before .gz, if that is the last
    form = name or ("jsonl" if path == "-" else SUFFIXES.get(suffix))
    known = ", ".join(FORMATS)
    if form is None and suffix == ".eval":
        raise UsageError(f"{path} is a log of Inspect; read it with import_inspect, or --from inspect")
    if form is None:
        raise UsageError(
            f"the format of {path!r} cannot be told from its name; give ",
            Argument("format"),
            f" as one of {known}, or end the name with one",
            argument="format",
        )
    if form not in FORMATS:
        raise UsageError(f"there is no format {form!r} of data sets; there are {known}", argument="format")
    if gz and form not in LINES:
        raise UsageError(f"{path}: a compressed data set must be one of {', '.join(LINES)}; unpack it first")
    if form == "parquet" and path == "-":
        raise UsageError("a Parquet file cannot be read from standard input; name the file")
    return form, gz


def read_rows(path: str, form: str, fields: Fields | None, *, gz: bool = False) -> Iterator[Row]:
    """Yield the rows of a file, one at a time; with ``fields``, a table must have a column for the content."""
    if form in LINES:
        with open_bytes(path, gz=gz) as file:
            lines = read_lines(file, path)
            yield from _read_objects(lines) if form == "jsonl" else _read_table(lines, path, form, fields)
    else:
        document_readers: Mapping[str, Callable[..., Iterator[Row]]] = {"json": _read_array, "yaml": _read_sequence}
        yield from document_readers[form](path) if form in document_readers else _read_parquet(path, fields)


COUNTED = {"jsonl": 256_000_000, "csv": 256_000_000, "tsv": 256_000_000, "json": 10_000_000}
"""Bytes of the largest file whose rows are counted before they are read, which takes about a second."""


MOST_COUNTED = 2_000_000
"""The most lines that are counted: each takes its time, however short it is."""


def count_rows(path: str, form: str | None = None) -> int | None:
    """Count the rows of a file, where that takes no more than about a second; else ``None``.

    Rows that are no cases are counted too. Nothing is raised for a file that cannot be read: reading it will.
    """
    try:
        kind, gz = find_format(path, form)
        size = Path(path).stat().st_size if path != "-" and Path(path).is_file() else None
        if size is None:
            return None
        if kind == "parquet":
            return int(import_parquet(path)[1].read_metadata(path).num_rows)
        most = COUNTED.get(kind, -1)
        if size > most:
            return None
        if kind == "json":
            rows = read_json(read_whole(path, LARGEST_JSON))
            return len(rows) if isinstance(rows, list) else None
        with open_bytes(path, gz=gz) as file:
            lines = _read_bounded_lines(file, most)
            return sum(1 for line in lines if not line.isspace()) if kind == "jsonl" else _count_records(lines)
    except (UsageError, OSError, ValueError, RecursionError):
        return None


def _read_bounded_lines(file: BinaryIO, most: int) -> Iterator[bytes]:
    """Yield the lines of a file; raise ``ValueError`` for more than ``most`` bytes, because a packed one may hold any.

    It is raised for too many lines too, and for too many blank ones.
    """
    byte_count = line_count = blank_count = 0
    while line := file.readline(LONGEST):
        byte_count += len(line)
        line_count += 1
        blank_count = blank_count + 1 if line.isspace() else 0
        if byte_count > most or line_count > MOST_COUNTED or blank_count > MOST_BLANK:
            raise ValueError(f"more than {most:,} bytes or {MOST_COUNTED:,} lines, or too many blank ones")
        yield line


def _count_records(lines: Iterator[bytes]) -> int:
    """Count the rows of a table below its header; a row of empty cells is none.

    A line that begins between quotes continues the row before it.
    """
    records, is_quoted = 0, False
    for line in lines:
        is_continuation = is_quoted
        is_quoted ^= bool(line.count(b'"') & 1)
        records += not is_continuation and bool(line.strip(b",\t\r\n "))
    return max(records - 1, 0)


def _read_objects(lines: Iterator[Line]) -> Iterator[Row]:
    """Yield the rows of lines of JSON, each behind the number of its line; blank lines are passed over."""
    for number, line in lines:
        if isinstance(line, UsageError):
            yield number, line
        elif line.strip():
            yield number, read_object_line(line)


def read_object_line(line: str) -> Mapping[str, Any] | UsageError:
    """Read one row from one line of JSON; a line that is none is returned as its error.

    Reading is strict, so that whatever a row holds can be written as JSON again.
    """
    try:
        row = read_json(line)
        may_hold_half_character = not line.isascii() or "\\u" in line
        if may_hold_half_character:
            check_text(row)
    except (ValueError, RecursionError) as error:
        return UsageError(f"not a line of JSON ({flatten(str(error))}); write one object per line")
    return _check_row(row)


def _check_row(value: Any) -> Mapping[str, Any] | UsageError:
    """Return a row that is an object, or the error for any other value."""
    return value if isinstance(value, dict) else UsageError(f"a row must be an object, got {type(value).__name__}")


class _TextLines:
    """The lines of a table for ``csv.reader``; a line that is no text raises its error.

    Not a generator, which would be at its end after an error: the reader resumes with the next line.
    """

    def __init__(self, lines: Iterator[Line]) -> None:
        self._lines = lines
        self.number = 0
        """The number of the line that was read last."""

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        self.number, line = next(self._lines)
        if isinstance(line, UsageError):
            raise line
        if "\x00" in line:
            raise UsageError("the line holds a NUL character, so it looks binary; write the file as UTF-8 text")
        return line


def _read_table(lines: Iterator[Line], path: str, form: str, fields: Fields | None) -> Iterator[Row]:
    """Yield the rows of a table of texts, each under the names of the header and behind its line's number.

    Raises ``UsageError``.
    """
    text_lines = _TextLines(lines)
    records = _read_records(text_lines, "\t" if form == "tsv" else ",")
    header: list[str] | None = None
    for number, cells in records:
        if isinstance(cells, UsageError) and header is None:
            raise UsageError(f"{path}, line {number}: {cells}")
        if isinstance(cells, UsageError):
            yield number, cells
        elif header is None:
            header = _check_header(cells, path, form, fields)
        elif len(cells) != len(header):
            yield (
                number,
                UsageError(
                    f"{len(cells)} cells under {len(header)} columns; put quotes around a cell that holds a separator"
                ),
            )
        elif any(cells) or len(cells) == 1:  # spreadsheets end with rows of empty cells
            yield number, dict(zip(header, cells, strict=True))


def _read_records(text_lines: _TextLines, delimiter: str) -> Iterator[tuple[int, list[str] | UsageError]]:
    """Yield the cells of each row, or its error, behind the number of the line on which the row begins."""
    # The limit of a cell is one for the whole process, so it is raised and never lowered: an answer may have more than
    # the 131,072 characters that it is by default.
    csv.field_size_limit(max(LONGEST, csv.field_size_limit()))
    reader = csv.reader(text_lines, delimiter=delimiter, strict=True)
    while True:
        previous_line = text_lines.number
        try:
            cells = next(reader)
        except StopIteration:
            return
        except UsageError as error:
            yield text_lines.number, error
        except csv.Error as error:
            message = f"not a row of a table ({error}); is a quote never closed, or not doubled?"
            yield previous_line + 1, UsageError(message)
        else:
            if cells:
                yield previous_line + 1, cells


def _check_header(cells: list[str], path: str, form: str, fields: Fields | None) -> list[str]:
    """Return the names of the columns of a table; a column without a name gets its number, such as ``column 2``.

    Raises ``UsageError`` for another delimiter, and for columns that cannot be used.
    """
    header = [cell.strip() or f"column {number}" for number, cell in enumerate(cells, 1)]
    wrong_delimiter = ";" if form == "csv" else ","
    if len(header) == 1 and wrong_delimiter in header[0]:
        needed = "commas" if form == "csv" else "tabs"
        raise UsageError(
            f"{path}: the header has {wrong_delimiter!r} between its columns; put {needed} there and in every row"
        )
    try:
        check_names(header) if fields is None else fields.check_columns(header)
    except UsageError as error:
        raise error.within(f"{path}, line 1") from None
    return header


def _read_array(path: str) -> Iterator[Row]:
    """Yield the members of a JSON list with their numbers, from 1; an empty file has none.

    Raises ``UsageError`` for a file that holds no list in JSON.
    """
    text = read_whole(path, LARGEST_JSON)
    try:
        rows = read_json(text) if text.strip() else []
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON ({flatten(str(error))}); lines of JSON are the format jsonl") from None
    if not isinstance(rows, list):
        raise UsageError(f"{path} must hold a list of objects, got {type(rows).__name__}")
    for number, row in enumerate(rows, 1):
        yield number, _convert_row(row)


def _read_sequence(path: str) -> Iterator[Row]:
    """Yield the members of a YAML list with the lines on which they begin; an empty file has none.

    Raises ``UsageError`` for a file that holds no list in YAML.
    """
    text = read_whole(path, LARGEST_YAML)
    if not text.strip():
        return
    try:
        rows, lines = read_yaml(text, most=MOST_YAML)
    except ValueError as error:
        raise UsageError(f"{path} is not YAML: {error}") from None
    if not isinstance(rows, list):
        raise UsageError(f"{path} must hold a list of mappings, got {type(rows).__name__}")
    for index, row in enumerate(rows):
        yield lines.get((index,), index + 1), _convert_row(row)


def _convert_row(value: Any) -> Mapping[str, Any] | UsageError:
    """Convert a row of JSON or YAML to plain JSON; a value that is no row is returned as its error."""
    try:
        row = to_json_value(value)
        check_text(row)
    except ValueError as error:  # a date, most often
        return UsageError(f"{error}; put it in quotes") if not isinstance(error, UsageError) else error
    return _check_row(row)


def _read_parquet(path: str, fields: Fields | None) -> Iterator[Row]:
    """Yield the rows of a Parquet file, each behind its number."""
    pa, parquet = import_parquet(path)
    check_path(path)
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            group_sizes = [file.metadata.row_group(index).total_byte_size for index in range(file.num_row_groups)]
            if max(group_sizes, default=0) > max(LEAST_UNPACKED, MOST_EXPANDED * Path(path).stat().st_size):
                raise make_expanding_error(path)
            columns = list(file.schema_arrow.names)
            check_names(columns) if fields is None else fields.check_columns(columns)
            for batch in file.iter_batches(batch_size=PAGE):
                for record in batch.to_pylist():
                    number += 1
                    yield number, read_record(record)
    except (pa.ArrowException, OSError) as error:
        raise UsageError(f"{path} cannot be read as Parquet ({flatten(str(error))}); is it complete?") from None
    except UsageError as error:
        raise error if str(error).startswith(path) else error.within(path) from None


def import_parquet(path: str) -> tuple[Any, Any]:
    """Import pyarrow and its Parquet module, which the extra brings. Raises ``UsageError``."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise UsageError(f"{path}: Parquet needs pyarrow; pip install 'adjudge[parquet]'") from None
    return pa, parquet


def read_record(record: Mapping[Any, Any]) -> Mapping[str, Any] | UsageError:
    """Convert a row of a library's table to plain JSON; a row that cannot be converted is returned as its error."""
    row: dict[str, Any] = {}
    for key, value in record.items():
        try:
            row[str(key)] = convert_cell(value)
        except UsageError as error:
            return error.within(f"column {str(key)!r}")
    return row
