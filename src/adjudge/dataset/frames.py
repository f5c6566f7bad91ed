"""Rows of what a program hands in: frames of pandas and polars, Arrow tables, Hugging Face data sets, and lists.

They are known by what they can do. None of those libraries is imported here.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

from adjudge.content import check_extent
from adjudge.dataset.case import Case, check_text, make_id
from adjudge.dataset.formats import PAGE, read_record
from adjudge.errors import UsageError
from adjudge.formats.text import flatten, show

NumberedRow = tuple[int, Mapping[str, Any] | Case | UsageError]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A source of rows in memory: a frame or table of a library, a list, or a function that makes one."""

    rows: Callable[[], Iterable[Any]]
    """Returns the rows, from the first."""
    table: bool
    """True if it has columns, so that columns which are no part of a case are metadata."""
    size: int | None = None
    """The number of rows; ``None`` is unknown."""
    once: bool = False
    """True if it can be read once only."""
    columns: tuple[str, ...] | None = None
    """The names of the columns; ``None`` where there are none, or they are not known before reading."""

    def read(self) -> Iterator[NumberedRow]:
        """Yield the rows with their numbers, from 1."""
        for number, row in enumerate(self.rows(), 1):
            yield number, read_record(row) if self.table and isinstance(row, Mapping) else read_case_value(row)


def open_frame(source: Any) -> Frame:
    """Open a source of rows, recognised by its methods; raise ``UsageError`` with the remedy for any other value."""
    if isinstance(source, str | bytes | PathLike):
        raise UsageError(f"{show(source)} is no set of cases; to read a file, use open_dataset")
    if isinstance(source, Mapping):
        names = flatten(", ".join(map(str, source)), 200)
        raise UsageError(f"a mapping is no set of cases; hand in one of its parts ({names}), or a list")
    if hasattr(source, "iter_rows") and hasattr(source, "columns"):  # polars
        columns, size = tuple(source.columns), len(source)
        return Frame(rows=lambda: source.iter_rows(named=True), table=True, size=size, columns=columns)
    if hasattr(source, "itertuples") and hasattr(source, "columns"):  # pandas
        columns = tuple(map(str, source.columns))
        return Frame(rows=lambda: _read_pandas(source, columns), table=True, size=len(source), columns=columns)
    if hasattr(source, "to_batches") and hasattr(source, "column_names"):  # an Arrow table
        columns, size = tuple(source.column_names), len(source)
        return Frame(rows=lambda: _read_batches(source), table=True, size=size, columns=columns)
    if hasattr(source, "features"):  # Hugging Face; a stream has no length
        columns = tuple(source.features) if source.features else None
        return Frame(rows=lambda: source, table=True, size=_find_size(source), columns=columns)
    return _open_other(source)


def _open_other(source: Any) -> Frame:
    """Open a source that is no known frame: an iterable, or a function that returns one for each reading.

    Raises ``UsageError`` for anything else, with the remedy.
    """
    if hasattr(source, "collect_schema"):
        raise UsageError("a lazy frame holds no rows yet; hand in what its collect returns")
    if isinstance(source, AsyncIterable):
        raise UsageError("cases are read without an event loop; collect them into a list first")
    if isinstance(source, Iterable):
        return Frame(rows=lambda: source, table=False, size=_find_size(source), once=iter(source) is source)
    if callable(source):
        return Frame(rows=source, table=False)
    raise UsageError(f"{show(source)} holds no cases; hand in a list, a frame, or a function that makes one")


def _find_size(source: Any) -> int | None:
    """Return the length of a source, ``None`` where it has none."""
    return len(source) if hasattr(source, "__len__") else None


def _read_pandas(source: Any, columns: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a pandas frame as dictionaries."""
    for cells in source.itertuples(index=False, name=None):
        yield dict(zip(columns, cells, strict=True))


def _read_batches(source: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of an Arrow table as dictionaries, converted page by page."""
    for batch in source.to_batches(max_chunksize=PAGE):
        yield from batch.to_pylist()


def read_case_value(value: Any) -> Mapping[str, Any] | Case | UsageError:
    """Read one element of a list: a case, a mapping with the keys of one, or a content (a text, a list of messages).

    An element that cannot be one is returned as its error.
    """
    try:
        if isinstance(value, Case):
            case = show(value.id)
            for name in ("content", "reference", "task", "context", "metadata"):
                check_extent(getattr(value, name), f"{name} of case {case}")
            return value
        if not isinstance(value, Mapping):
            return Case(content=value, id=make_id(_check_not_none(value)))
        for key in value:
            if not isinstance(key, str):
                return UsageError(f"the key {show(key)} is {type(key).__name__}; make all of them text")
        check_text(value)
    except UsageError as error:
        return error
    return value


def _check_not_none(content: Any) -> Any:
    """Return a content; raise ``UsageError`` for ``None``."""
    if content is None:
        raise UsageError("there is None where a case should be")
    return content
