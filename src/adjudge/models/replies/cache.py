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

NO_USAGE = Usage(calls=0, cost_usd=0.0)
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
        has_identity = getattr(model, "identity", None) is not None
        return wrapped if has_identity else getattr(wrapped, "model", wrapped)  # the model inside this cache

    def check(self) -> None:
        """Raise ``UsageError`` when the cache cannot be used, or for what the model's own ``check`` finds."""
        super().check()
        find_identity(self)  # raises for a model that cannot be told from others
        self.cache.check()

    async def complete(self, request: Request, /) -> Reply:
        """Return the kept reply, else that of an equal request that is under way, else that of the model."""
        description = describe_call(self, request, seat=self.seat)
        key, source = make_call_key(description), make_source(description)
        under_way: dict[str, _RequestUnderWay] = self.cache.under_way.get()
        while True:
            reply = None if request.call.anew else self._find_kept_reply(key, source, request)
            if reply is not None:
                return self.compare_names(reply)
            equal_request = under_way.get(key)
            if equal_request is None:
                return await self._ask_model(key, source, request, under_way)
            await equal_request.finished.wait()
            if equal_request.error is not None:
                raise equal_request.error
            row = equal_request.row
            joined_reply = None if row is None else self._read_row(_decode_cached(row), request)
            if joined_reply is not None:
                return self.compare_names(joined_reply)
            # Only the task that asked was cancelled: one of the tasks that waited for it asks now.

    async def aclose(self) -> None:
        """Close the model's connections, and wait until all kept replies are in the file; the cache stays open."""
        await super().aclose()
        await asyncio.to_thread(self.cache.flush)

    def explain(self, request: Request) -> dict[str, Any]:
        """Return a request's key, everything that it is made of, and whether a reply is kept under it; ask nobody."""
        description = describe_call(self, request, seat=self.seat)
        key = make_call_key(description)
        is_kept = self._find_kept_reply(key, make_source(description), request) is not None
        return {"schema": "adjudge/cache-explanation/1", "key": key, "found": is_kept, "ingredients": description}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} in {str(self.cache.path)!r}>"

    def _make_around(self, model: Model) -> Self:
        """Return another model with the same cache and seat."""
        # Without the stated identity, which is that of this model alone.
        return type(self)(model, self.cache, seat=self.seat)

    def _find_kept_reply(self, key: str, source: str, request: Request) -> Reply | None:
        """Find the kept reply to a request; ``None`` for none or a damaged one.

        Also ``None`` for a reply of another model than answers under this name now.
        """
        body = self.cache.find(key, source)
        if body is None:
            return None
        try:
            row = _decode_cached(body)
            check_text(row, where=_WHERE)
        except UsageError as error:
            # Somebody else wrote it, or it is damaged: nothing of it is used.
            _log.warning("the cache %s has no reply of ours under %s; the model is asked", self.cache.path, key)
            _log.debug("%s", error)
            return None
        reply = self._read_row(row, request)
        if reply is None or reply.model is None:
            return reply
        # ``find`` leaves out replies from before the name changed. Another process may have kept one of the old model
        # later than that.
        return reply if self.cache.find_name(source) in (None, _cut_name(reply.model)) else None

    def _read_row(self, row: Row, request: Request) -> Reply | None:
        """Read the reply in a row, with this request's token; ``None`` if it is of another judge in code or of none."""
        reply = read_answer(row, request, key=None, function=self.function_identity)
        # The model's name is the one in the reply: a reply that reports none must not get the name in the row.
        return None if reply is None else replace(reply, model=row.reply.model, usage=NO_USAGE)

    async def _ask_model(
        self, key: str, source: str, request: Request, under_way: dict[str, _RequestUnderWay]
    ) -> Reply:
        """Ask the model and keep its reply; the tasks that wait for an equal request get the reply, or the error."""
        this_request = under_way[key] = _RequestUnderWay()
        try:
            reply = await self.model.complete(request)
            if reply.model:  # noted before the reply is kept: a reply older than a change of the name is not used
                self.cache.note_name(source, _cut_name(reply.model))
            this_request.row = _encode_reply(self.name, request, reply)
            if this_request.row is not None and _is_finished(reply):
                self.cache.keep(key, self.name, this_request.row)
        except Exception as error:
            # Not CancelledError: if only this task is cancelled, one of the others asks.
            this_request.error = error
            raise
        else:
            return reply
        finally:
            del under_way[key]
            this_request.finished.set()


def _decode_cached(body: bytes) -> Row:
    """Decode a row of a cache. Raises ``UsageError`` for anything else."""
    return decode_row(body, where=_WHERE, schema=CACHED)


def _cut_name(name: str | None) -> str:
    """Return a reported name as SQLite can hold it: a server may report a megabyte, or half of a surrogate pair."""
    return (name or "")[:LONGEST_NAME].encode("utf-8", "replace").decode()


class _RequestUnderWay:
    """A request under way, with its reply or its error at the end, for tasks that wait for an equal request."""

    __slots__ = ("error", "finished", "row")

    def __init__(self) -> None:
        self.finished = asyncio.Event()
        self.row: bytes | None = None
        """The reply as it is kept; ``None`` if there is none, or none that has JSON."""
        self.error: Exception | None = None


def _is_finished(reply: Reply) -> bool:
    """Return whether a reply has a text and ended by itself."""
    return reply.finish_reason == "stop" and bool(reply.text)


def _encode_reply(model: str, request: Request, reply: Reply) -> bytes | None:
    """Encode a reply as a row of a cache, with the token masked and without the prompt; ``None`` if it has no JSON."""
    import msgspec

    try:
        subject = {} if request.subject is None else {"subject": request.subject}
        reply_members = describe_reply(request, reply)
        return msgspec.json.encode({"schema": CACHED, "model": model, **subject, "reply": reply_members})
    except (TypeError, UnicodeEncodeError):
        return None
