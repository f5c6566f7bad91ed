"""A model that is not asked again what it has answered.

The key of a reply is SHA-256 of the canonical JSON of everything that determines it; ``describe_call`` is the whole
list. The token is masked, so the key is the same on every machine.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

from adjudge.errors import UsageError
from adjudge.formats.model_name import LONGEST_NAME
from adjudge.models.cache_store import ReplyCache
from adjudge.models.model import Model, Reply, Request
from adjudge.models.recording import describe_request, reply_to_dict
from adjudge.models.wrapper import WrapperModel
from adjudge.result import Usage

KEY_SCHEMA = "adjudge/reply-key/1"
"""Goes up when the way a request reaches a provider changes so that the answer may; old replies are then not found."""


ROW_SCHEMA = "adjudge/cached-reply/1"


NOTHING_USED = Usage(calls=0, cost_usd=0.0)
"""The usage of a reply that was not asked for: no call, no token, no cost."""


_log = logging.getLogger("adjudge.cache")


def find_identity(model: Model) -> Mapping[str, Any]:
    """What tells a model from others of its name; raises ``UsageError`` for a function, of which nothing is known."""
    known: Mapping[str, Any] | None = getattr(model, "identity", None)
    if known is None:
        raise UsageError(
            f"replies of {model.name} cannot be cached: nothing but its name tells it from another function; "
            "give an identity that you change whenever its code does"
        )
    return known


def describe_call(model: Model, request: Request, *, seat: int = 0) -> dict[str, Any]:
    """Everything that determines a reply, with the two parts of the prompt as SHA-256.

    Raises ``UsageError`` for a model that has no identity.
    """
    described = describe_request(request)
    return {
        "schema": KEY_SCHEMA,
        "model": model.name,
        "identity": dict(find_identity(model)),
        "system": _digest(described["system"]),
        "user": _digest(described["user"]),
        "form": described["form"],
        "parameters": described["parameters"],
        "attempt": request.attempt,
        "sample": request.sample,
        "seat": seat,
    }


def make_source(described: Mapping[str, Any]) -> str:
    """Of a described call, whom it asks: the model's name and its identity. For what its replies report."""
    import msgspec

    return msgspec.json.encode([described["model"], described["identity"]], order="sorted").decode()


def make_reply_key(described: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON (RFC 8785) of a described call."""
    import rfc8785

    try:
        return hashlib.sha256(rfc8785.dumps(dict(described))).hexdigest()
    except rfc8785.CanonicalizationError as error:
        raise UsageError(f"a request to {described['model']} cannot be looked up in a cache: {error}") from None


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
        self._own_identity = identity

    @property
    def identity(self) -> Mapping[str, Any] | None:
        """What tells the model's answers from another's, besides its name; ``None`` where that is not known."""
        return {"given": self._own_identity} if self._own_identity is not None else super().identity

    def around(self, model: Model) -> Model:
        """The same layers around another model; no cache around one that has no identity, such as a recording."""
        wrapped = super().around(model)
        return wrapped if getattr(model, "identity", None) is not None else getattr(wrapped, "model", wrapped)

    def check(self) -> None:
        """Raise ``UsageError`` when the cache cannot be used, or for what the model's own ``check`` finds."""
        super().check()
        find_identity(self)
        self.cache.check()

    async def complete(self, request: Request, /) -> Reply:
        """The reply that is kept, else the one that is under way, else that of the model."""
        described = describe_call(self, request, seat=self.seat)
        key, source = make_reply_key(described), make_source(described)
        flights: dict[str, _Flight] = self.cache.under_way.get()
        while True:
            reply = None if request.call.anew else self._recall(key, source, request)
            if reply is not None:
                return self.compare_names(reply)
            flight = flights.get(key)
            if flight is None:
                return await self._ask(key, source, request, flights)
            await flight.over.wait()
            if flight.error is not None:
                raise flight.error
            if flight.row is not None:
                return self.compare_names(_read_row(flight.row, request))
            # The task that asked was cancelled, and it alone: one of those that waited asks in its place.

    async def aclose(self) -> None:
        """Close the model's connections, and wait until what is kept is in the file; the cache stays open."""
        await super().aclose()
        await asyncio.to_thread(self.cache.flush)

    def explain(self, request: Request) -> dict[str, Any]:
        """The key of a request, everything it is made of, and whether a reply is kept under it; nothing is asked."""
        described = describe_call(self, request, seat=self.seat)
        key = make_reply_key(described)
        found = self._recall(key, make_source(described), request) is not None
        return {"schema": "adjudge/cache-explanation/1", "key": key, "found": found, "ingredients": described}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} in {str(self.cache.path)!r}>"

    def _again(self, model: Model) -> Self:
        # The identity that was given is that of this model alone.
        return type(self)(model, self.cache, seat=self.seat)

    def _recall(self, key: str, source: str, request: Request) -> Reply | None:
        row = self.cache.find(key, source)
        if row is None:
            return None
        try:
            reply = _read_row(row, request)
            # A function's answer has no token, and this file may say of any reply that it is one.
            if reply.function != self.function_identity:
                return None
            # Compared here as well as by time: another process may have written it after it met the change.
            now = None if reply.model is None else self.cache.find_name(source)
            return reply if now in (None, _cut_name(reply.model)) else None
        except UsageError as error:
            # Not what we wrote. Nothing of it is used.
            _log.warning("the cache %s has no reply of ours under %s; the model is asked", self.cache.path, key)
            _log.debug("%s", error)
            return None

    async def _ask(self, key: str, source: str, request: Request, flights: dict[str, _Flight]) -> Reply:
        flight = flights[key] = _Flight()
        try:
            reply = await self.model.complete(request)
            if reply.model:  # before the reply is kept, which is not older than what it reports
                self.cache.note_name(source, _cut_name(reply.model))
            flight.row = _encode(self.name, request, reply)
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


def _encode(model: str, request: Request, reply: Reply) -> bytes | None:
    """A reply as it is kept, with the token masked and without the prompt; ``None`` where it has no JSON."""
    import msgspec

    try:
        return msgspec.json.encode({"schema": ROW_SCHEMA, "model": model, "reply": reply_to_dict(request, reply)})
    except (TypeError, UnicodeEncodeError):
        return None


def _read_row(row: bytes, request: Request) -> Reply:
    """The reply of a row with the present token; raises ``UsageError`` for what is no row of ours."""
    from adjudge.models.replay import decode_row, make_reply

    found = decode_row(row, where="a cached reply", schema=ROW_SCHEMA)
    # The name is that of the reply alone: what reported none must not be compared by the name in the row.
    return replace(make_reply(found, request.token), model=found.reply.model, usage=NOTHING_USED)


def _digest(text: str) -> str:
    # Half a surrogate pair has no UTF-8; providers refuse it, but a key it must have.
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
