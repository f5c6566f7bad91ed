"""The row of a recording that answers a request: by its case, else by its key; each once, in the file's order.

A reply that the cache keeps is found in ``cache.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from adjudge.models.model import FunctionIdentity, Request
from adjudge.models.replies.row import Row


class RecordingIndex:
    """The rows of a recording, indexed by their case and by their key."""

    def __init__(self, all_rows: list[Row]) -> None:
        self.erased = sum(row.erased or 0 for row in all_rows)
        """The number of rows that were deleted by ``adjudge forget``."""
        # A row with ``erased`` says only how many rows were deleted.
        rows = [row for row in all_rows if row.erased is None]
        self.recorded = tuple(dict.fromkeys(row.model for row in rows))
        self.models = tuple(dict.fromkeys(row.model for row in rows if row.model and row.key))
        self.structured = any(row.request is not None and row.request.form is not None for row in rows)
        self.first_row_by_function = {row.identify(): row for row in reversed(rows)}
        """The first row of each judge in code, by its identity, and of models by ``None``."""
        self.by_case: dict[str, list[Row]] = {}
        self.by_key: dict[str, list[Row]] = {}
        for row in rows:
            if row.case is not None:
                self.by_case.setdefault(row.case, []).append(row)
            if row.key is not None:
                self.by_key.setdefault(row.key, []).append(row)

    def find(self, request: Request, keys: list[str], function: FunctionIdentity | None) -> Row | None:
        """Find an unused row that answers a request; ``None`` if there is none.

        Rows of the request's case come first, and among them one with the request's key. Then come rows with its key
        and without a case. ``keys`` are the request's, one for each recorded model; ``function`` is the judge in code
        that is asked.

        A row that was written by hand answers its case whatever was asked. A recorded row has its request, and must
        have this key: found by its case alone, the reply about the old content would be given for a content that was
        changed since.
        """
        if request.case is not None:
            case_rows = [
                row
                for row in self._list_unused(self.by_case, [request.case])
                if (row.request is None or row.key in (None, *keys)) and _can_answer(row, request, function)
            ]
            row_with_key = next((row for row in case_rows if row.key in keys), None)
            if case_rows:
                return row_with_key or case_rows[0]
        for row in self._list_unused(self.by_key, keys):
            if _can_answer(row, request, function) and (row.case is None or request.case is None):
                return row
        return None

    def find_other(self, request: Request, keys: list[str], function: FunctionIdentity | None) -> Row | None:
        """Find a row that would answer the request, if it were of the judge that is asked; for the error message.

        If the recording has no row of this judge at all, it is any row.
        """
        if function not in self.first_row_by_function:
            return next(iter(self.first_row_by_function.values()), None)
        cases = [request.case] if request.case is not None else []
        return next(chain(self._list_unused(self.by_case, cases), self._list_unused(self.by_key, keys)), None)

    def _list_unused(self, rows: dict[str, list[Row]], names: list[str]) -> Iterator[Row]:
        """Yield the rows under these names that were not used yet.

        Used rows at the beginning are removed from ``rows``, so that a file with a million equal keys is still read
        once.
        """
        for name in names:
            while rows.get(name) and rows[name][0].used:
                rows[name].pop(0)
            yield from (row for row in rows.get(name, ()) if not row.used)


def _can_answer(row: Row, request: Request, function: FunctionIdentity | None) -> bool:
    """Return whether a row is of the judge asked, and of the request's order and attempt where it states them."""
    if row.order not in (None, request.order) or row.attempt not in (None, request.attempt):
        return False
    return row.identify() == function
