"""A model that counts the requests it is given, and sends none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from adjudge.errors import ReplyError
from adjudge.models.model import Model, Reply, Request
from adjudge.models.wrapper import WrapperModel

Meter = Callable[[Model, int, Request], None]
"""A callback for each request, with its model and the number of seats before this one that have the same model."""


class MeteredModel(WrapperModel):
    """A model in whose place a request is counted. Each judgement that reaches it is undecided and not asked again."""

    def __init__(self, model: Model, meter: Meter, *, seat: int = 0) -> None:
        super().__init__(model)
        self.seat = seat
        self._meter = meter

    async def complete(self, request: Request, /) -> Reply:
        """Count the request, and raise ``ReplyError``."""
        # A judge in code makes no request, so nothing is counted. It is not called either, because it may do anything.
        if self.function_identity is None:
            self._meter(self.model, self.seat, request)
        raise ReplyError("error", "an estimate asks nobody")

    def check(self) -> None:
        """Do nothing: no model is asked for an estimate, so no key is needed."""

    def _make_around(self, model: Model) -> Self:
        """Make the same wrapper around another model."""
        return type(self)(model, self._meter, seat=self.seat)
