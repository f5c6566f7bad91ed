"""Answering from a recording: no request is ever made."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from adjudge.errors import ModelError, UsageError
from adjudge.models._recording import describe_request, make_key, make_keys
from adjudge.models._types import Reply, Request

if TYPE_CHECKING:
    from adjudge.models._rows import Row


MAX_MODELS = 64
"""Models whose rows may stand in one recording: a request is looked up under the name of each."""


class MissingRecording(ModelError):
    """No unused row of a recording answers this request; ``key`` is what was looked for."""

    def __init__(self, message: str, *, key: str) -> None:
        super().__init__(message)
        self.key = key


class ReplayModel:
    """A model that answers from a recording (JSON lines), read at first use.

    A row with ``case`` answers that case (and ``order``, where the row has one) whatever the prompt; other rows are
    found by ``key``. Rows that answer the same are used up in the order of the file. By hand,
    ``{"case": "...", "reply": {"text": "..."}}`` is a whole row. ``model`` picks the rows of one model out of a file
    in which several were recorded.
    """

    hosts: tuple[str, ...] = ()
    """Nothing is contacted."""

    def __init__(self, path: str | os.PathLike[str], *, model: str | None = None) -> None:
        self.path = Path(path)
        self.only = model
        """The one recorded model whose rows are used; ``None`` uses them all."""
        self._index: _Index | None = None

    @property
    def name(self) -> str:
        """``replay:`` and the file; a reply says which model it is of."""
        return f"replay:{self.path}" + (f"?model={self.only}" if self.only else "")

    @property
    def structured(self) -> bool:
        """Whether the recording was made with structured output, so that the same questions are asked again."""
        return self._read().structured

    def check(self) -> None:
        """Raise ``UsageError`` naming file, line and fault when the recording cannot be read."""
        self._read()

    async def complete(self, request: Request, /) -> Reply:
        """The recorded reply; raises ``MissingRecording`` when no unused row answers the request."""
        index = self._read()
        described = describe_request(request)
        keys = make_keys(index.models, described)
        row = index.find(request, keys)
        if row is None:
            raise _miss(self.path, request, keys[0] if keys else make_key("", described))
        from adjudge.models._rows import make_reply

        row.used = True
        return make_reply(row, request.token)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    def _read(self) -> _Index:
        if self._index is None:
            from adjudge.models._rows import read_rows

            rows = [row for row in read_rows(self.path) if self.only in (None, row.model)]
            if not rows:
                of = f" of {self.only}" if self.only else ""
                raise UsageError(f"the recording {str(self.path)!r} has no rows{of}")
            index = _Index(rows)
            if len(index.models) > MAX_MODELS:
                raise UsageError(
                    f"the recording {str(self.path)!r} has rows of {len(index.models):,} models, and at most "
                    f"{MAX_MODELS} are looked up; pick one with replay:FILE?model=NAME"
                )
            self._index = index
        return self._index


class _Index:
    """The rows of a recording by what they are found by."""

    def __init__(self, rows: list[Row]) -> None:
        self.models = tuple(dict.fromkeys(row.model for row in rows if row.model and row.key))
        self.structured = any(row.request is not None and row.request.form is not None for row in rows)
        self.by_case: dict[str, list[Row]] = {}
        self.by_key: dict[str, list[Row]] = {}
        for row in rows:
            if row.case is not None:
                self.by_case.setdefault(row.case, []).append(row)
            if row.key is not None:
                self.by_key.setdefault(row.key, []).append(row)

    def find(self, request: Request, keys: list[str]) -> Row | None:
        """The row that answers: of the request's case, best with its very key, else one of its key without a case."""
        if request.case is not None:
            rows = [row for row in self._free(self.by_case, [request.case]) if _fits(row, request)]
            exact = next((row for row in rows if row.key in keys), None)
            if rows:
                return exact or rows[0]
        for row in self._free(self.by_key, keys):
            if _fits(row, request) and (row.case is None or request.case is None):
                return row
        return None

    def _free(self, rows: dict[str, list[Row]], names: list[str]) -> Iterator[Row]:
        for name in names:
            # Used rows go as they are met, so a file with a million equal keys is still read once.
            while rows.get(name) and rows[name][0].used:
                rows[name].pop(0)
            yield from (row for row in rows.get(name, ()) if not row.used)


def _fits(row: Row, request: Request) -> bool:
    return row.order in (None, request.order) and row.attempt in (None, request.attempt)


def _miss(path: Path, request: Request, key: str) -> MissingRecording:
    about = f"key {key}"
    about += f", case {request.case!r}" if request.case is not None else ""
    about += f", order {request.order}" if request.order is not None else ""
    return MissingRecording(
        f"{path} has no unused reply for {about}, attempt {request.attempt}; record it again, or add a row by hand",
        key=key,
    )
