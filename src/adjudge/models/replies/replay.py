"""Answering from a recording: no request is ever made.

Which row answers a request is decided in ``recording_index.py``; the error if none does is in
``missing_recording.py``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from adjudge.errors import UsageError
from adjudge.models.model import FunctionIdentity, Model, Reply, Request, find_function
from adjudge.models.replies.key import describe_request, make_key
from adjudge.models.replies.missing_recording import describe_nearest, explain_other_judge, make_missing_recording
from adjudge.models.replies.recording import read_rows
from adjudge.models.replies.recording_index import RecordingIndex
from adjudge.models.replies.row import make_reply

MAX_MODELS = 64
"""The most models whose rows one recording may have: a request is looked up under the name of each."""

MOST_COMPARED = 20
"""Misses of one model that say what the nearest recorded request was."""


class ReplayModel:
    """A model that answers from a recording (JSON lines), read at first use.

    A row with ``case`` answers that case (and ``order``, if the row has one) with any prompt. If the row contains the
    recorded request, it answers that request alone, by its ``key``. Rows that answer the same are used up in the order
    of the file. By hand, ``{"case": "...", "reply": {"text": "..."}}`` is a whole row.

    Args:
        path: The recording.
        model: The model whose rows are used, in a file in which several were recorded.
        function: The judge in code whose recorded answers are given again; it is not called. Only the rows of that
            very function are used then, and without it none of any function: such a row has no token, and what a file
            says of itself must not turn the token off for a model.
    """

    hosts: tuple[str, ...] = ()
    """No host is contacted."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        model: str | None = None,
        function: Model | Callable[..., Any] | None = None,
    ) -> None:
        self.path = Path(path)
        self._path_as_named = str(self.path)
        self.only = model
        """The one recorded model whose rows are used; ``None`` uses them all."""
        self.function_identity = None if function is None else _identify_function(function)
        """The judge in code whose answers these are; ``None`` for those of models."""
        self._index: RecordingIndex | None = None
        self._missed = 0

    @property
    def name(self) -> str:
        """``replay:`` and the file as it was named; a reply says which model it is of."""
        # Not ``path``, to which a configuration adds its folder: a judge would have another name on each machine.
        return f"replay:{self._path_as_named}" + (f"?model={self.only}" if self.only else "")

    @property
    def structured(self) -> bool:
        """Return whether the recording was made with structured output, so that the same questions are asked again."""
        return self._open_index().structured

    def check(self) -> None:
        """Raise ``UsageError`` naming file, line and fault when the recording cannot be read."""
        self._open_index()

    async def complete(self, request: Request, /) -> Reply:
        """The recorded reply; raises ``MissingRecording`` when no unused row answers the request.

        Args:
            request: The request that a judge makes.
        """
        index = self._open_index()
        described = describe_request(request)
        keys = [make_key(name, described) for name in index.models]
        row = index.find(request, keys, self.function_identity)
        if row is None:
            other = explain_other_judge(index.find_other(request, keys, self.function_identity), self.function_identity)
            nearest = "" if other else self._describe_nearest(request, described, keys)
            key = keys[0] if keys else make_key("", described)
            raise make_missing_recording(self.path, request, key, other=other, nearest=nearest, erased=index.erased)

        row.used = True
        return make_reply(row, request.token)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    def _describe_nearest(self, request: Request, described: Mapping[str, Any], keys: Iterable[str]) -> str:
        """Describe how the most similar recorded request differs from one, for the error message; may be empty.

        It is left out for a second attempt, after many misses, and where the file cannot be read any more.
        """
        if request.attempt > 1:  # a second attempt is rarely recorded; without one, the first reply counts
            return ""
        self._missed += 1
        if self._missed > MOST_COMPARED:  # the file is read each time, and so many misses have one cause
            return ""
        try:
            return describe_nearest(
                self.path, described, keys=keys, case=request.case, order=request.order, only=self.only
            )
        except (OSError, UsageError):  # the file was changed meanwhile; the error says without it that no row answers
            return ""

    def _open_index(self) -> RecordingIndex:
        """Return the rows that are used. Raises ``UsageError`` where there are none, or where they cannot be read."""
        index = self._find_index()
        if index is None:
            of_model = f" of {self.only}" if self.only else ""
            raise UsageError(f"the recording {str(self.path)!r} has no rows{of_model}")
        return index

    def _find_index(self) -> RecordingIndex | None:
        """Return the rows that are used, read at the first call; ``None`` if there are none. Raises ``UsageError``."""
        if self._index is None:
            rows = [row for row in read_rows(self.path) if self.only in (None, row.model) or row.erased is not None]
            if not rows:
                return None
            index = RecordingIndex(rows)
            if len(index.models) > MAX_MODELS:
                raise UsageError(
                    f"the recording {str(self.path)!r} has rows of {len(index.models):,} models, and at most "
                    f"{MAX_MODELS} are looked up; pick one with replay:FILE?model=NAME"
                )
            self._index = index
        return self._index


def _identify_function(function: Model | Callable[..., Any]) -> FunctionIdentity:
    """Return the identity of a judge in code. Raises ``UsageError`` for a model, which has none."""
    from adjudge.models.function import as_model

    identity = find_function(as_model(function))
    if identity is None:
        raise UsageError(
            "function of a replay is a judge in code; for what a model said, leave it out", argument="function"
        )
    return identity
