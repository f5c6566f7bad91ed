"""A model that is not asked again what it has answered.

The file of the kept replies is in ``cache_file.py``; under which key one is kept, in ``key.py`` (``make_call_key``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

from adjudge.errors import UsageError
from adjudge.formats.model_name import LONGEST_NAME
from adjudge.models.model import Model, Reply, Request
from adjudge.models.replies.cache_file import ReplyCache
from adjudge.models.replies.key import describe_call, find_identity, make_call_key, make_source
from adjudge.models.replies.row import CACHED, Row, check_text, decode_row, describe_reply, read_answer
from adjudge.models.wrapper import WrapperModel
from adjudge.result import Usage

NOTHING_USED = Usage(calls=0, cost_usd=0.0)
"""The usage of a reply that was not asked for: no call, no token, no cost."""


_WHERE = "a cached reply"

_log = logging.getLogger("adjudge.cache")


class CachedModel(WrapperModel):
    """A model whose finished replies are kept in a cache and given again for the very same request.

    ``seat`` tells several seats of one model apart, which are to be asked separately. ``identity`` is for functions:
    a text that changes whenever their code does. Requests that are under way are joined: the same request is made once,
    however many wait for it.

    A reply out of the cache has a ``usage`` of no calls, tokens and cost. Kept are replies that ended by themselves
    (``stop``); what was cut off, refused or failed is asked again. So is everything once a reply that was asked for
    reports another model's name than those that are kept: it is not known what that model would say.
    """

    def __init__(self, model: Model, cache: ReplyCache, *, seat: int = 0, identity: str | None = None) -> None:
        super().__init__(model)
        self.cache = cache
        self.seat = seat
        self._stated_identity = identity

    @property
    def identity(self) -> Mapping[str, Any] | None:
        """The identity that tells the model's answers from another's, besides its name; ``None`` is unknown."""
        return {"given": self._stated_identity} if self._stated_identity is not None else super().identity

    def around(self, model: Model) -> Model:
        """The same layers around another model; no cache around one that has no identity, such as a recording."""
        wrapped = super().around(model)
        return wrapped if getattr(model, "identity", None) is not None else getattr(wrapped, "model", wrapped)

    def check(self) -> None:
        """Raise ``UsageError`` when the cache cannot be used, or for what the model's own ``check`` finds."""
        super().check()
        find_identity(self)  # raises for a model that cannot be told from others
        self.cache.check()

    async def complete(self, request: Request, /) -> Reply:
        """The reply that is kept, else the one that is under way, else that of the model."""
        described = describe_call(self, request, seat=self.seat)
        key, source = make_call_key(described), make_source(described)
        flights: dict[str, _Flight] = self.cache.under_way.get()
        while True:
            reply = None if request.call.anew else self._find_kept_reply(key, source, request)
            if reply is not None:
                return self.compare_names(reply)
            flight = flights.get(key)
            if flight is None:
                return await self._ask_model(key, source, request, flights)
            await flight.over.wait()
            if flight.error is not None:
                raise flight.error
            joined = None if flight.row is None else self._read_row(_decode_cached(flight.row), request)
            if joined is not None:
                return self.compare_names(joined)
            # The task that asked was cancelled, and it alone: one of those that waited asks in its place.

    async def aclose(self) -> None:
        """Close the model's connections, and wait until what is kept is in the file; the cache stays open."""
        await super().aclose()
        await asyncio.to_thread(self.cache.flush)

    def explain(self, request: Request) -> dict[str, Any]:
        """The key of a request, everything it is made of, and whether a reply is kept under it; nothing is asked."""
        described = describe_call(self, request, seat=self.seat)
        key = make_call_key(described)
        is_kept = self._find_kept_reply(key, make_source(described), request) is not None
        return {"schema": "adjudge/cache-explanation/1", "key": key, "found": is_kept, "ingredients": described}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} in {str(self.cache.path)!r}>"

    def _make_around(self, model: Model) -> Self:
        # The identity that was given is that of this model alone.
        return type(self)(model, self.cache, seat=self.seat)

    def _find_kept_reply(self, key: str, source: str, request: Request) -> Reply | None:
        """Find the kept reply; ``None`` for none, a damaged one, or one of another model than the name means now."""
        body = self.cache.find(key, source)
        if body is None:
            return None
        try:
            row = _decode_cached(body)
            check_text(row, where=_WHERE)
        except UsageError as error:
            # Not what we wrote. Nothing of it is used.
            _log.warning("the cache %s has no reply of ours under %s; the model is asked", self.cache.path, key)
            _log.debug("%s", error)
            return None
        reply = self._read_row(row, request)
        if reply is None or reply.model is None:
            return reply
        # Compared here as well as by time: another process may have written it after it met the change.
        return reply if self.cache.find_name(source) in (None, _cut_name(reply.model)) else None

    def _read_row(self, row: Row, request: Request) -> Reply | None:
        """The reply of a row with the present token; ``None`` where it is of another judge in code, or of none."""
        reply = read_answer(row, request, key=None, function=self.function_identity)
        # The name is that of the reply alone: what reported none must not be compared by the name in the row.
        return None if reply is None else replace(reply, model=row.reply.model, usage=NOTHING_USED)

    async def _ask_model(self, key: str, source: str, request: Request, flights: dict[str, _Flight]) -> Reply:
        """Ask the model, and let those who wait for the same reply have it, or the error."""
        flight = flights[key] = _Flight()
        try:
            reply = await self.model.complete(request)
            if reply.model:  # before the reply is kept, which is not older than what it reports
                self.cache.note_name(source, _cut_name(reply.model))
            flight.row = _encode_reply(self.name, request, reply)
            if flight.row is not None and _is_finished(reply):
                self.cache.keep(key, self.name, flight.row)
        except Exception as error:
            # Not CancelledError: that the one who asked gave up says nothing to those who wait.
            flight.error = error
            raise
        else:
            return reply
        finally:
            del flights[key]
            flight.over.set()


def _decode_cached(body: bytes) -> Row:
    return decode_row(body, where=_WHERE, schema=CACHED)


def _cut_name(name: str | None) -> str:
    # A server may report a megabyte, and half a character, which SQLite does not take.
    return (name or "")[:LONGEST_NAME].encode("utf-8", "replace").decode()


class _Flight:
    """A request under way, for those who wait for the same."""

    __slots__ = ("error", "over", "row")

    def __init__(self) -> None:
        self.over = asyncio.Event()
        self.row: bytes | None = None
        self.error: Exception | None = None


def _is_finished(reply: Reply) -> bool:
    return reply.finish_reason == "stop" and bool(reply.text)


def _encode_reply(model: str, request: Request, reply: Reply) -> bytes | None:
    """A reply as it is kept, with the token masked and without the prompt; ``None`` where it has no JSON."""
    import msgspec

    try:
        about = {} if request.subject is None else {"subject": request.subject}
        return msgspec.json.encode({"schema": CACHED, "model": model, **about, "reply": describe_reply(request, reply)})
    except (TypeError, UnicodeEncodeError):
        return None
