"""Errors as pages, for people: what happened, what was not done, and where to go on."""

from __future__ import annotations

import http

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from adjudge.server.caller import Caller, Unauthenticated, find_caller_or_none
from adjudge.server.csrf import SAFE_METHODS
from adjudge.server.pages.page import (
    SIGN_IN,
    Context,
    find_way_back,
    lead_to_signin,
    name_signin,
    redirect,
    render_page,
    wants_page,
)
from adjudge.server.pages.shell import find_home
from adjudge.server.problem import Problem, explain_http, render_problem
from adjudge.server.state import get_state

_WRITTEN = ("reason", "comment")
"""The fields of forms into which people write. The others are chosen, or are not to be shown, such as a password."""

_TITLES = {
    403: "This is not for you",
    404: "There is nothing here",
    405: "This address is not opened like that",
    409: "It is not as it was any more",
    413: "That was too much",
    422: "This could not be read",
    429: "Too much at once",
    503: "It cannot be done just now",
    504: "This took too long",
}


def add_page_handlers(app: FastAPI) -> None:
    """Answer browsers with a page where programs get a problem."""
    app.add_exception_handler(Unauthenticated, _ask_to_sign_in)
    app.add_exception_handler(Problem, _show_problem)
    app.add_exception_handler(HTTPException, _show_http)


async def _ask_to_sign_in(request: Request, error: Exception) -> Response:
    assert isinstance(error, Unauthenticated)  # noqa: S101 - for the type checker; handlers are chosen by type
    if not wants_page(request):
        return render_problem(error)
    # A form is not led there: what was typed would be lost, and its address is no page to come back to.
    return lead_to_signin(request) if request.method in SAFE_METHODS else await _keep_form(request, error)


async def _keep_form(request: Request, error: Problem) -> Response:
    """Answer a form whose session has ended: how to sign in and come back, and what was typed."""
    form = await request.form()
    values = (form.get(name) for name in _WRITTEN)
    context: Context = {
        "title": "Your session has ended",
        "detail": "sign in again, and then send the form once more",
        "signin": name_signin(find_way_back(request)),
        "typed": [text for text in values if isinstance(text, str) and text.strip()],
    }
    return _answer(request, error, context, None)


def render_refusal(request: Request, problem: Problem) -> Response:
    """Answer a request that is refused before its caller is known: without a name."""
    return _render_error(request, problem, None) if wants_page(request) else render_problem(problem)


async def _show_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)  # noqa: S101 - as above
    return await _show_error(request, error) if wants_page(request) else render_problem(error)


async def _show_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - as above
    problem = explain_http(request, error)
    return await _show_error(request, problem) if wants_page(request) else render_problem(problem)


async def _show_error(request: Request, problem: Problem) -> Response:
    try:
        caller = await find_caller_or_none(request)
    except Problem:  # a form without its token: the page is shown without anybody's name
        caller = None
    home = None if caller is None else find_home(caller.permissions)
    if problem.code == "forbidden" and request.method in SAFE_METHODS and request.url.path == "/" and home is not None:
        return redirect(home.path)  # everybody who signs in may begin at "/"
    return _render_error(request, problem, caller)


def _render_error(request: Request, problem: Problem, caller: Caller | None) -> Response:
    title = _TITLES.get(problem.status_code, http.HTTPStatus(problem.status_code).phrase)
    address = ""
    if problem.code in ("cross_site", "host"):
        title, address = "This is another address", get_state(request).settings.base_url
    return _answer(request, problem, {"title": title, "detail": problem.detail, "address": address}, caller)


def _answer(request: Request, problem: Problem, context: Context, caller: Caller | None) -> Response:
    status = problem.status_code
    defaults: Context = {"status": status, "address": "", "signin": SIGN_IN, "typed": ()}
    response = render_page(request, "error.html", defaults | context, caller=caller, status=status)
    for name, value in (problem.headers or {}).items():
        response.headers[name] = value
    return response
