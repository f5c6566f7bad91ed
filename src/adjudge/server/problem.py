"""Errors as ``application/problem+json`` (RFC 9457): what happened and what to do, without internals of the server."""

from __future__ import annotations

import http
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Match

from adjudge.errors import FunctionError, LedgerError
from adjudge.formats.text import flatten, suggest

if TYPE_CHECKING:
    from fastapi import FastAPI

logger = logging.getLogger("adjudge.server")

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")

PROBLEM_JSON = "application/problem+json"


class Problem(HTTPException):
    """An answer to a request that is refused."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
        argument: str | None = None,
        errors: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """``code`` names the reason in a word that programs can go by.

        ``argument`` is the member that is at fault, as ``UsageError`` names it; ``errors`` are those of a body that has
        not the form that the address takes.
        """
        super().__init__(status, detail, headers)
        self.code = code
        self.argument = argument
        self.errors = tuple(errors)


def render_problem(problem: Problem) -> Response:
    """Render the answer to a request that is refused."""
    members: dict[str, Any] = {"type": "about:blank", "title": http.HTTPStatus(problem.status_code).phrase}
    members |= {"status": problem.status_code, "detail": problem.detail}
    members |= {} if problem.code is None else {"code": problem.code}
    members |= {} if problem.argument is None else {"argument": problem.argument}
    members |= {"errors": list(problem.errors)} if problem.errors else {}
    return JSONResponse(
        jsonable_encoder(members), problem.status_code, headers=problem.headers, media_type=PROBLEM_JSON
    )


def explain_http(request: Request, error: HTTPException) -> Problem:
    """Make the problem for an error of the framework's own, such as an address that is not there."""
    details = {404: "there is nothing at this address", 405: "this address does not take this method"}
    detail = details.get(error.status_code, http.HTTPStatus(error.status_code).phrase)
    headers = {**(error.headers or {}), "Allow": _list_methods(request)} if error.status_code == 405 else error.headers
    return Problem(error.status_code, detail, headers=headers)


def add_handlers(app: FastAPI) -> None:
    """Have every error of an application answered as a problem."""
    app.add_exception_handler(Problem, _handle_problem)
    app.add_exception_handler(HTTPException, _handle_http)
    app.add_exception_handler(RequestValidationError, _handle_invalid)
    app.add_exception_handler(LedgerError, _handle_ledger)
    app.add_exception_handler(FunctionError, _handle_function)
    app.add_exception_handler(Exception, _handle_crash)


async def _handle_problem(_request: Request, error: Exception) -> Response:
    """Answer with a ``Problem`` that was raised."""
    assert isinstance(error, Problem)  # noqa: S101 - for the type checker; handlers are chosen by type
    return render_problem(error)


async def _handle_http(request: Request, error: Exception) -> Response:
    """Answer with an error of the framework, such as 404, as a problem."""
    assert isinstance(error, HTTPException)  # noqa: S101 - for the type checker; handlers are chosen by type
    return render_problem(explain_http(request, error))


def _list_methods(request: Request) -> str:
    """List the methods of an address. The framework names those of one route, and an address can have several."""
    routes = request.app.routes
    methods = [method for method in _METHODS if any(_accepts_method(route, request, method) for route in routes)]
    return ", ".join(["HEAD", *methods] if "GET" in methods else methods)


def _accepts_method(route: BaseRoute, request: Request, method: str) -> bool:
    """Return whether a route would answer a request if it had this method."""
    return route.matches({**request.scope, "method": method})[0] is Match.FULL


async def _handle_invalid(request: Request, error: Exception) -> Response:
    """Answer a request of the wrong form with a problem."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 - for the type checker; handlers are chosen by type
    return render_problem(explain_invalid(request, error))


def explain_invalid(request: Request, error: RequestValidationError) -> Problem:
    """Explain a request that has not the form which its address takes."""
    if _is_body_unread(request):
        return Problem(422, "the body is not sent as JSON; send it with Content-Type: application/json", code="invalid")
    # The member and its error, but not its value: a client's log would then hold the content that was to be judged.
    errors = [
        {"at": _name_member(invalid["loc"]), "what": _explain_member(request, invalid)}
        for invalid in error.errors()[:20]
    ]
    return Problem(422, "the request is not what this address takes", code="invalid", errors=errors)


def _is_body_unread(request: Request) -> bool:
    """Return whether a request for ``/v1/`` has a body that was not read, because it is not declared to be JSON."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    has_body = request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers
    is_json = media_type == "application/json" or (
        media_type.startswith("application/") and media_type.endswith("+json")
    )
    return request.url.path.startswith("/v1/") and has_body and not is_json


def _explain_member(request: Request, invalid: Mapping[str, Any]) -> str:
    """Explain what is wrong with a member of a body; for an unknown member, suggest the known one of the nearest name.

    ``invalid`` is an error of Pydantic.
    """
    if invalid["type"] != "extra_forbidden":
        return flatten(str(invalid["msg"]), 200)
    # The first step of the path is "body".
    *path, name = invalid["loc"]
    return f"there is no such member{suggest(name, _list_members(request, path[1:]))}"


def _list_members(request: Request, path: Sequence[object]) -> list[str]:
    """List the names of the members that an address takes in an object of its body.

    ``path`` leads to the object: names of members, and also numbers of list elements and names of a union's variants.
    """
    body = getattr(request.scope.get("route"), "body_field", None)
    models = [] if body is None else list(_find_models(body.field_info.annotation))
    for step in path:
        # A step that is no name of a member leads to no other model.
        models = _find_member_models(models, step) or models
    return [field.alias or name for model in models for name, field in model.model_fields.items()]


def _find_member_models(models: Sequence[type[BaseModel]], member: object) -> list[type[BaseModel]]:
    """Find the models in the type of a member that some models have; none if no model has such a member."""
    return [
        member_model
        for model in models
        for name, field in model.model_fields.items()
        if member in {name, field.alias}
        for member_model in _find_models(field.annotation)
    ]


def _find_models(annotation: object) -> Iterator[type[BaseModel]]:
    """Yield the models in a type, also inside of lists, unions and other generic types."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _find_models(argument)


def _name_member(path: Sequence[object]) -> str:
    """Name a member by its path, such as ``body.rules.0.name``."""
    return flatten(".".join(str(step) for step in path), 200)


async def _handle_ledger(_request: Request, error: Exception) -> Response:
    """Answer that the ledger failed with a problem."""
    return render_problem(explain_ledger_failure(error))


def explain_ledger_failure(error: Exception) -> Problem:
    """Log why the ledger failed, and make the problem that says so without the reason."""
    logger.error("the ledger failed: %s", error)
    return Problem(503, "the database failed, so nothing was decided", code="store", headers={"Retry-After": "1"})


async def _handle_function(_request: Request, error: Exception) -> Response:
    """Answer that a Python function, which the configuration uses as a judge, returned what no judge may return."""
    # The reason is only in the log: it is the operator's mistake, and the message may quote judged content.
    logger.error("a function that judges is wrong: %s", error)
    message = "a function of this server returned what no judge may return, so nothing was decided; its log says what"
    return render_problem(Problem(500, message, code="function"))


async def _handle_crash(_request: Request, error: Exception) -> Response:
    """Answer that the server failed with a problem."""
    return render_crash(error)


def render_crash(error: Exception) -> Response:
    """Render the answer to a failure of the server; its reason is in the log alone."""
    logger.error("a request failed: %s", type(error).__name__, exc_info=error)
    return render_problem(Problem(500, "the server failed, so nothing was decided; its log says why", code="crash"))
