"""The common part of all endpoints: strict reading of bodies, exact types of their members, and plain JSON answers.

How many contents are judged at once is decided in ``server/work_queue.py``, and what an error says in
``server/problem.py``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from fastapi import APIRouter
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict
from starlette.requests import Request
from starlette.responses import Response

from adjudge.config.server import ServerSettings
from adjudge.errors import FunctionError, UsageError
from adjudge.formats.json import read_json
from adjudge.formats.text import flatten
from adjudge.server.caller import identify_caller
from adjudge.server.problem import Problem, logger
from adjudge.server.state import ServerState, get_state

JSON = "application/json"

MOST_VALUES = 100_000
"""JSON values in one body. Each is copied, written and hashed several times while nobody else is answered, so that the
400,000 that fit into a body took 8 s. A text is one value, however long."""

LARGE = 16_384
"""Bytes of a body from which on it is handled in the thread for much work."""

LARGEST_FORM = 200_000
"""Bytes of a body that holds no content: a vote, a label."""

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
"""The errors that any endpoint may answer with."""


class StrictModel(BaseModel):
    """A body whose members are of exactly their types, without any that is not known."""

    model_config = ConfigDict(extra="forbid", strict=True)


class StrictRequest(Request):
    """A request whose JSON has one reading: no member twice, no NaN, not nested without end."""

    async def json(self) -> Any:
        """Read the body; raises ``Problem`` (400)."""
        if not hasattr(self, "_strict"):
            try:
                self._strict = read_json((await self.body()).decode("utf-8"))
            except (ValueError, RecursionError) as error:
                problem = flatten(str(error), 200)
                raise Problem(400, f"the body is not one JSON value: {problem}", code="json") from None
            _check_count(self._strict)
        return self._strict


def _check_count(body: Any) -> None:
    """Raise ``Problem`` (413) for a body of more than ``MOST_VALUES`` values."""
    count, stack = 0, [[body]]
    while stack:
        container = stack.pop()
        count += len(container)
        if count > MOST_VALUES:
            problem = f"the body holds more than {MOST_VALUES:,} JSON values; send large content as one text"
            raise Problem(413, problem, code="too_large")
        members = container.values() if isinstance(container, dict) else container
        stack += [member for member in members if isinstance(member, dict | list)]


class StrictRoute(APIRoute):
    """An address whose handler gets a ``StrictRequest``, of a size that is read at once."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap the handler of the framework in the strict reading."""
        handle = super().get_route_handler()

        async def handle_strictly(request: Request) -> Response:
            """Answer a request of a known caller and of limited size, with strict reading of its JSON."""
            await identify_caller(request)  # before the body is read, so that nobody without a key can send a large one
            strict = StrictRequest(request.scope, request.receive)
            if len(await strict.body()) > LARGEST_FORM:
                raise Problem(413, f"the body is larger than {LARGEST_FORM:,} bytes", code="too_large")
            return await handle(strict)

        return handle_strictly


class JudgingRoute(APIRoute):
    """An address that judges: a request that would keep all others waiting is handled in a thread of its own."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Run the handler of the framework on the loop of the server or, for much work, on that of its thread."""
        handle = super().get_route_handler()

        async def handle_by_cost(request: Request) -> Response:
            """Answer a request of a known caller; one that takes much work is answered in the work thread."""
            await identify_caller(request)  # before the body is read, so that nobody without a key can send a large one
            strict = request if isinstance(request, StrictRequest) else StrictRequest(request.scope, request.receive)
            if await _is_expensive(strict):
                return await get_state(request).work.run(handle(strict))
            return await handle(strict)

        return handle_by_cost


async def _is_expensive(request: StrictRequest) -> bool:
    """Return whether a request has a large body, or rules or a rubric that have to be compiled. Reads the body."""
    if len(await request.body()) >= LARGE:
        return True
    with suppress(Problem):  # a body that is no JSON: the handler reads it again, and raises the same problem
        body = await request.json()
        return isinstance(body, dict) and (bool(body.get("rules")) or isinstance(body.get("rubric"), dict))
    return False


def make_router(tag: str, *, judges: bool = False, route: type[APIRoute] | None = None) -> APIRouter:
    """Make a router of endpoints under ``/v1``; ``judges`` for those that take contents of any size."""
    route = route or (JudgingRoute if judges else StrictRoute)
    return APIRouter(prefix="/v1", tags=[tag], route_class=route, responses=PROBLEMS)


def check_content(settings: ServerSettings, parts: Mapping[str, Any]) -> None:
    """Raise ``Problem`` (413) if a content, or a text that it is judged with, is longer than the settings allow."""
    for name, value in parts.items():
        size = _measure_size(value)
        if size > settings.largest_content:
            raise Problem(
                413,
                f"the {name} has {size:,} characters, and this server takes {settings.largest_content:,}; send less, "
                "or raise largest_content under [server] of adjudge.toml",
                code="too_large",
            )


def check_counts(settings: ServerSettings, *, rules: int, criteria: int) -> None:
    """Raise ``Problem`` (413) for more rules or criteria than the settings allow."""
    for name, count, most in (("rules", rules, settings.most_rules), ("criteria", criteria, settings.most_criteria)):
        if count > most:
            raise Problem(
                413,
                f"the request has {count:,} {name}, and this server takes {most:,}; send fewer, or raise most_{name} "
                "under [server] of adjudge.toml",
                code="too_large",
            )


def count_rules(rules: object) -> int:
    """Count the rules in a list of rules as plain data, with those inside ``some_of``; 0 for anything but a list."""
    rule_list = rules if isinstance(rules, list) else []
    return len(rule_list) + sum(count_rules(_find_inner_rules(rule)) for rule in rule_list if isinstance(rule, dict))


def _find_inner_rules(rule: dict[str, Any]) -> object:
    """Find the rules inside of a ``some_of``; ``None`` for any other rule.

    It is written as ``{"name": "some_of", "rules": [...]}`` or as ``{"some_of": [...]}``.
    """
    name = rule.get("name")
    if isinstance(name, str) and name.replace("-", "_") == "some_of":
        return rule.get("rules")
    return next((value for key, value in rule.items() if key.replace("-", "_") == "some_of"), None)


def _measure_size(value: object) -> int:
    """Measure plain data in characters: those of its texts and keys, and one for every other value or container."""
    size, stack = 0, [value]
    while stack:
        current = stack.pop()
        size += len(current) if isinstance(current, str) else 1
        if isinstance(current, dict):
            stack += current.keys()
            stack += current.values()
        elif isinstance(current, list):
            stack += current
    return size


async def wait_until_decided(state: ServerState, ident: str, *, seconds: float) -> bool:
    """Wait at most ``seconds`` for people to decide a request, and return whether they have.

    With 0 it looks once. It returns early when the server stops.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds or None):
            while await state.approvals.is_open(ident):
                if not seconds or state.stopping.is_set():
                    return False
                await asyncio.sleep(min(0.25, seconds))
            return True
    return False


def log_troubles(state: ServerState) -> None:
    """Log what could not be recorded in the ledger, so that the operator can repair it; the decision says so too."""
    for trouble in state.recorder.troubles:
        logger.error("%s", trouble)
    state.recorder.troubles.clear()


def answer(value: object, *, status: int = 200) -> Response:
    """Answer with plain data as JSON in ASCII: a lone surrogate in judged content could not be sent as UTF-8."""
    return Response(json.dumps(value, allow_nan=False), status, media_type=JSON)


@contextmanager
def explaining_usage(status: int = 422, *, code: str = "usage") -> Iterator[None]:
    """Turn a ``UsageError`` of the block, which is about what the client sent, into a ``Problem`` with its message."""
    try:
        yield
    except FunctionError:  # a mistake in the server's configuration, which no client can mend
        raise
    except UsageError as error:
        raise Problem(status, flatten(str(error), 500), code=code, argument=error.argument) from None
