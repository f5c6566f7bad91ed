"""What all endpoints share: strict reading of bodies, exact types of their members, and plain JSON as answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from fastapi import APIRouter
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict
from starlette.requests import Request
from starlette.responses import Response

from adjudge.errors import UsageError
from adjudge.formats.json import read_json
from adjudge.formats.text import flatten
from adjudge.server.problem import Problem

JSON = "application/json"

MOST_VALUES = 100_000
"""JSON values in one body. Each is copied, written and hashed several times while nobody else is answered, so that the
400,000 that fit into a body took 8 s. A text is one value, however long."""

PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"description": text, "content": {"application/problem+json": {}}}
    for status, text in {
        400: "The body is not one JSON value that every reader reads alike.",
        401: "There is no valid key or session.",
        403: "The scope, or the gate, is not the caller's.",
        404: "There is no such thing.",
        409: "Something else came first.",
        413: "The body is too large, or holds too many values.",
        421: "The server is not asked by that name.",
        422: "A member is missing, unknown or of another type.",
        503: "Too much is waiting, or the ledger failed. Nothing was decided.",
        504: "It took too long. Nothing was decided.",
    }.items()
}
"""What any endpoint may answer in place of what was asked for."""


class StrictModel(BaseModel):
    """A body whose members are of exactly their types, without any that is not known."""

    model_config = ConfigDict(extra="forbid", strict=True)


class StrictRequest(Request):
    """A request whose JSON has one reading: no member twice, no NaN, not nested without end."""

    async def json(self) -> Any:
        """The body; raises ``Problem`` (400)."""
        if not hasattr(self, "_strict"):
            try:
                self._strict = read_json((await self.body()).decode("utf-8"))
            except (ValueError, RecursionError) as error:
                said = flatten(str(error), 200)
                raise Problem(400, f"the body is not one JSON value: {said}", code="json") from None
            _check_count(self._strict)
        return self._strict


def _check_count(body: Any) -> None:
    """Raise ``Problem`` (413) for a body of more than ``MOST_VALUES`` values."""
    count, waiting = 0, [[body]]
    while waiting:
        held = waiting.pop()
        count += len(held)
        if count > MOST_VALUES:
            said = f"the body holds more than {MOST_VALUES:,} JSON values; send large content as one text"
            raise Problem(413, said, code="too_large")
        items = held.values() if isinstance(held, dict) else held
        waiting += [item for item in items if isinstance(item, dict | list)]


class StrictRoute(APIRoute):
    """An address whose handler gets a ``StrictRequest``."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler of the framework, behind the strict reading."""
        handle = super().get_route_handler()

        async def read(request: Request) -> Response:
            return await handle(StrictRequest(request.scope, request.receive))

        return read


def make_router(tag: str) -> APIRouter:
    """A router of endpoints under ``/v1``."""
    return APIRouter(prefix="/v1", tags=[tag], route_class=StrictRoute, responses=PROBLEMS)


def answer(value: object, *, status: int = 200) -> Response:
    """Plain data as JSON, in ASCII: halves of characters in what was judged are escapes then."""
    return Response(json.dumps(value, allow_nan=False), status, media_type=JSON)


@contextmanager
def explaining_usage(status: int = 422, *, code: str = "usage") -> Iterator[None]:
    """A block in which a ``UsageError`` is about what the client sent, so that it is told."""
    try:
        yield
    except UsageError as error:
        raise Problem(status, flatten(str(error), 500), code=code) from None
