"""Every reply of a run, kept as it came: what was answered once is not asked again by a run that goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, Self

from adjudge.formats.typed import read_typed_json
from adjudge.models.model import Model, Reply, Request
from adjudge.models.recording import SCHEMA, describe_request, make_key, reply_to_dict
from adjudge.models.wrapper import WrapperModel
from adjudge.runs.item import encode

if TYPE_CHECKING:
    from adjudge.models.replay import Row


def make_place(*, case: str | None, order: str | None, sample: int, model: str, seat: int, attempt: int) -> str:
    """The place in which a run keeps a reply: who was asked, about which case, for the how manieth time.

    It is a JSON list and no digest, so that the replies to one case stand together in the file, and can be found
    without the prompt they answer. What was asked is in the row, and compared before it answers anything.
    """
    return encode([case, order, sample, model, seat, attempt]).decode()


def make_case_prefix(case: str) -> str:
    """What the places of all replies to one case begin with."""
    return encode([case]).decode()[:-1] + ","


def read_row(body: bytes | None) -> Row | None:
    """A kept reply; ``None`` where there is none that can be read."""
    if body is None:
        return None
    import msgspec

    from adjudge.models.replay import Row

    try:
        return read_typed_json(body, Row)
    except (msgspec.DecodeError, RecursionError):  # log-probabilities of minus infinity, which JSON has no form for
        return None


class ReplyStore(Protocol):
    """Where a run keeps replies."""

    def find_reply(self, key: str) -> bytes | None:
        """The reply kept under a key."""
        ...

    def keep_reply(self, key: str, body: bytes) -> None:
        """Keep a reply under its key; it is in the file when the next item is kept."""
        ...


class KeptModel(WrapperModel):
    """A model whose replies are kept in a run's file; everything else is the model's own.

    With ``resumed``, what the file has already is answered from there.
    """

    def __init__(
        self, model: Model | Callable[..., Any], store: ReplyStore, *, seat: int = 0, resumed: bool = False
    ) -> None:
        super().__init__(model)
        self.seat = seat
        """How many seats before this one have the same model."""
        self._store = store
        self._resumed = resumed

    async def complete(self, request: Request, /) -> Reply:
        """The kept reply to this very request, else the model's, which is then kept; what it raises is not."""
        described, name = describe_request(request), self.name
        key = make_key(name, described)
        place = make_place(
            case=request.case,
            order=request.order,
            sample=request.sample,
            model=name,
            seat=self.seat,
            attempt=request.attempt,
        )
        kept = self._find(place, key, request) if self._resumed and not request.call.anew else None
        if kept is not None:
            # A model gives way to others before it answers; so does the file, or ten thousand kept cases in a row
            # would let nobody else in.
            await asyncio.sleep(0)
            return kept
        reply = await self.model.complete(request)
        if isinstance(reply, Reply):
            self._store.keep_reply(place, self._encode_row(key, described, request, reply))
        return reply

    def _again(self, model: Model) -> Self:
        return type(self)(model, self._store, seat=self.seat, resumed=self._resumed)

    def _find(self, place: str, key: str, request: Request) -> Reply | None:
        row = read_row(self._store.find_reply(place))
        if row is None or row.key != key:  # the very same request, or it is no answer to this one
            return None
        if row.identify() != self.function_identity:  # a mark in a file must not turn the token off for a model
            return None
        from adjudge.models.replay import make_reply

        return make_reply(row, request.token)

    def _encode_row(self, key: str, described: dict[str, Any], request: Request, reply: Reply) -> bytes:
        # Without the prompt, which is the longest part: the key tells it, and the case has the content.
        row = {"schema": SCHEMA, "key": key, "case": request.case, "order": request.order, "attempt": request.attempt}
        row |= {"sample": request.sample, "seat": self.seat, "model": self.name}
        return encode(row | {"request": {"form": described["form"]}, "reply": reply_to_dict(request, reply)})
