"""The row of a recording that answers a request: by its case, else by its key; each once, in the file's order.

A reply that the cache keeps is found in ``cache.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from adjudge.models.model import FunctionIdentity, Request
from adjudge.models.replies.row import Row


class RecordingIndex:
    """The rows of a recording by what they are found by."""

    def __init__(self, all_rows: list[Row]) -> None:
        self.erased = sum(row.erased or 0 for row in all_rows)
        """The number of rows that were deleted by ``adjudge forget``."""
        rows = [row for row in all_rows if row.erased is None]
        self.recorded = tuple(dict.fromkeys(row.model for row in rows))
        self.models = tuple(dict.fromkeys(row.model for row in rows if row.model and row.key))
        self.structured = any(row.request is not None and row.request.form is not None for row in rows)
        self.first_of = {row.identify(): row for row in reversed(rows)}
        """The first row of each function, and of models."""
        self.by_case: dict[str, list[Row]] = {}
        self.by_key: dict[str, list[Row]] = {}
        for row in rows:
            if row.case is not None:
                self.by_case.setdefault(row.case, []).append(row)
            if row.key is not None:
                self.by_key.setdefault(row.key, []).append(row)

    def find(self, request: Request, keys: list[str], function: FunctionIdentity | None) -> Row | None:
        """The row that answers: of the request's case, best with its very key, else one of its key without a case.

        A row by hand answers its case whatever was asked. One that was recorded holds its request, and has to have this
        key: by its case alone, content that was changed after the recording would pass by what was said of the old.
        """
        if request.case is not None:
            of_case = self._list_free(self.by_case, [request.case])
            rows = [
                row
                for row in of_case
                if (row.request is None or row.key in (None, *keys)) and _answers(row, request, function)
            ]
            exact = next((row for row in rows if row.key in keys), None)
            if rows:
                return exact or rows[0]
        for row in self._list_free(self.by_key, keys):
            if _answers(row, request, function) and (row.case is None or request.case is None):
                return row
        return None

    def find_other(self, request: Request, keys: list[str], function: FunctionIdentity | None) -> Row | None:
        """A row that would answer, were it of the judge that is asked; any, where none at all is."""
        if function not in self.first_of:
            return next(iter(self.first_of.values()), None)
        names = [request.case] if request.case is not None else []
        return next(chain(self._list_free(self.by_case, names), self._list_free(self.by_key, keys)), None)

    def _list_free(self, rows: dict[str, list[Row]], names: list[str]) -> Iterator[Row]:
        """Yield the rows under these names that were not used; used ones at the beginning are taken out of ``rows``."""
        for name in names:
            # Used rows go as they are met, so a file with a million equal keys is still read once.
            while rows.get(name) and rows[name][0].used:
                rows[name].pop(0)
            yield from (row for row in rows.get(name, ()) if not row.used)


def _answers(row: Row, request: Request, function: FunctionIdentity | None) -> bool:
    if row.order not in (None, request.order) or row.attempt not in (None, request.attempt):
        return False
    return row.identify() == function
