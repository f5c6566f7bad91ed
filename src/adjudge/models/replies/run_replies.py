"""Every reply of a run, kept as it came: what was answered once is not asked again when the run is resumed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol, Self

from adjudge.errors import UsageError
from adjudge.formats.plain_data import encode
from adjudge.models.model import Model, Reply, Request
from adjudge.models.replies.key import describe_request, make_key, make_reply_key
from adjudge.models.replies.row import RECORDING, Row, decode_row, describe_reply, read_answer
from adjudge.models.wrapper import WrapperModel


def read_row(body: bytes | None) -> Row | None:
    """Read a kept reply; ``None`` where there is none that can be read."""
    if body is None:
        return None
    try:
        return decode_row(body, where="a kept reply", schema=RECORDING)
    except UsageError:  # log-probabilities of minus infinity, which JSON has no form for
        return None


class ReplyStore(Protocol):
    """A store in which a run keeps replies."""

    def find_reply(self, key: str) -> bytes | None:
        """Return the reply that is kept under a key."""
        ...

    def keep_reply(self, key: str, body: bytes) -> None:
        """Keep a reply under its key; it is in the file at the latest when the next item of the run is."""
        ...


class RunReplyModel(WrapperModel):
    """A model whose replies are kept in a run's file; everything else is the model's own.

    With ``resumed``, what the file has already is answered from there.
    """

    def __init__(
        self, model: Model | Callable[..., Any], store: ReplyStore, *, seat: int = 0, resumed: bool = False
    ) -> None:
        super().__init__(model)
        self.seat = seat
        """The number of seats before this one that have the same model."""
        self._store = store
        self._resumed = resumed

    async def complete(self, request: Request, /) -> Reply:
        """Return the kept reply to this very request, else the model's, which is then kept.

        Errors of the model are not kept.
        """
        described, name = describe_request(request), self.name
        key = make_key(name, described)
        place = make_reply_key(
            case=request.case,
            order=request.order,
            sample=request.sample,
            model=name,
            seat=self.seat,
            attempt=request.attempt,
        )
        kept_reply = self._find_reply(place, key, request) if self._resumed and not request.call.anew else None
        if kept_reply is not None:
            # Let other tasks run, as they do while a model is asked: ten thousand kept cases in a row would block the
            # event loop.
            await asyncio.sleep(0)
            return kept_reply
        reply = await self.model.complete(request)
        if isinstance(reply, Reply):
            self._store.keep_reply(place, self._encode_row(key, described, request, reply))
        return reply

    def _make_around(self, model: Model) -> Self:
        """Return another model whose replies are kept in the same file."""
        return type(self)(model, self._store, seat=self.seat, resumed=self._resumed)

    def _find_reply(self, place: str, key: str, request: Request) -> Reply | None:
        """Find the reply that is kept at a place, if it answers this very request."""
        row = read_row(self._store.find_reply(place))
        return read_answer(row, request, key=key, function=self.function_identity)

    def _encode_row(self, key: str, described: dict[str, Any], request: Request, reply: Reply) -> bytes:
        """Encode a reply as a row of the run, without the prompt, of which the key is a digest."""
        row = {"schema": RECORDING, "key": key, "case": request.case, "order": request.order}
        row |= {"attempt": request.attempt, "sample": request.sample, "seat": self.seat, "model": self.name}
        return encode(row | {"request": {"form": described["form"]}, "reply": describe_reply(request, reply)})
