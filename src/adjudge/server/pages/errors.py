"""Errors as pages, for people: what happened, what was not done, and where to go on."""

from __future__ import annotations

from urllib.parse import quote

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from adjudge.errors import LedgerError
from adjudge.server.caller import Caller, Unauthenticated, identify_caller
from adjudge.server.csrf import CONFIRMATION, FIELD, SAFE_METHODS
from adjudge.server.pages.page import (
    SIGN_IN,
    Context,
    add_query,
    find_local_path,
    find_way_back,
    lead_to_signin,
    name_signin,
    redirect,
    show_page,
    wants_page,
)
from adjudge.server.pages.shell import find_home
from adjudge.server.problem import Problem, explain_http, explain_invalid, explain_ledger_failure, render_problem
from adjudge.server.state import get_page_state

_TYPED_FIELDS = ("reason", "comment")
"""The fields of forms into which people write. The others are chosen, or are not to be shown, such as a password."""

_CHOSEN_FIELDS = ("vote", "label", "answer")
"""The fields of forms that say what somebody decided."""

_PAGES = {
    403: (
        "Your account cannot open this",
        "If you need it, ask the person who runs this server: they can change what your account may do.",
    ),
    404: (
        "We could not find this",
        "Check the address, or begin again below. What was here may have gone, or only others may see it.",
    ),
    405: ("This address is not a page", "It belongs to a form or a program. Go back, and use the button there."),
    409: ("This has changed since you looked", "Go back, load the page again, and look at it as it is now."),
    413: ("This is too large to send", "Go back, and send less at once."),
    422: ("Something here could not be read", "Go back and check what you wrote. The form should still hold it."),
    429: ("Let us wait a moment", "Wait for a minute, and then try again."),
    503: ("The server cannot do this right now", "Wait for a moment, and load the page again."),
    504: ("This took too long", "Load the page again. If it stays so, tell the person who runs this server."),
}
"""The name of an error, and the next step, by its status."""

_OTHER_PAGE = ("This did not work", "Go back and try again. If it stays so, tell the person who runs this server.")


def add_page_handlers(app: FastAPI) -> None:
    """Answer browsers with a page where programs get a problem."""
    app.add_exception_handler(Unauthenticated, _ask_to_sign_in)
    app.add_exception_handler(Problem, _show_problem)
    app.add_exception_handler(HTTPException, _show_http)
    app.add_exception_handler(RequestValidationError, _show_invalid)
    app.add_exception_handler(LedgerError, _show_ledger_failure)


async def _ask_to_sign_in(request: Request, error: Exception) -> Response:
    """Answer a request without a valid session or key: lead a browser to the sign-in, and give a program a problem."""
    assert isinstance(error, Unauthenticated)  # noqa: S101 - for the type checker; handlers are chosen by type
    if not wants_page(request):
        return render_problem(error)
    # A form is not redirected: what was typed would be lost, and its address is no page to come back to.
    return lead_to_signin(request) if request.method in SAFE_METHODS else await _show_ended_session(request, error)


async def _show_ended_session(request: Request, error: Problem) -> Response:
    """Answer a form whose session has ended with a page that says how to sign in, and that holds what was typed."""
    context: Context = {
        "title": "Your session has ended",
        "detail": "you were signed out before the form arrived",
        "remedy": "Sign in, and then send the form once more.",
        "signin": name_signin(find_way_back(request)),
        "typed": await _list_typed_texts(request),
    }
    return await _answer_with_page(request, error, context, None)


async def _is_about_password(request: Request, error: Problem) -> bool:
    """Return whether a form was refused because it lacks its token, or a right password in place of the token."""
    return error.code == "csrf" or (error.code == "throttled" and CONFIRMATION in await request.form())


async def _ask_for_password(request: Request, error: Problem) -> Response:
    """Answer a form without its token with the same form once more, and a field for the password.

    Its fields are hidden in the new form, so that only the password has to be typed.
    """
    form = await request.form()
    path: str = request.scope["path"]
    context: Context = {
        "typed": await _list_typed_texts(request),
        "chosen": [value for name in _CHOSEN_FIELDS if isinstance(value := form.get(name), str) and value],
        "path": path,
        "action": add_query(find_local_path(quote(path)), request.url.query),
        "fields": [
            (name, _join_line_ends(value))
            for name, value in form.multi_items()
            if isinstance(value, str) and name not in (FIELD, CONFIRMATION)
        ],
        "error": error.detail if CONFIRMATION in form else "",
    }
    return await _answer_with_page(request, error, context, await identify_caller(request), template="confirm.html")


async def _list_typed_texts(request: Request) -> list[str]:
    """List the texts that a person wrote into a form."""
    form = await request.form()
    values = (form.get(name) for name in _TYPED_FIELDS)
    return [_join_line_ends(text) for text in values if isinstance(text, str) and text.strip()]


def _join_line_ends(text: str) -> str:
    """Return a typed text with line feeds alone as line ends.

    A browser sends a carriage return before each, which a page would mark as an unusual character.
    """
    return text.replace("\r\n", "\n")


async def render_refusal(request: Request, problem: Problem) -> Response:
    """Answer a request that is refused before its caller is known: a browser with a page, a program with a problem."""
    return await _render_error(request, problem, None) if wants_page(request) else render_problem(problem)


async def _show_problem(request: Request, error: Exception) -> Response:
    """Answer with a ``Problem``: a browser with a page, or with the form for its password, and a program with JSON."""
    assert isinstance(error, Problem)  # noqa: S101 - for the type checker; handlers are chosen by type
    if not wants_page(request):
        return render_problem(error)
    if get_page_state(request).settings.needs_browser_key and await _is_about_password(request, error):
        return await _ask_for_password(request, error)
    return await _show_error(request, error)


async def _show_http(request: Request, error: Exception) -> Response:
    """Answer with an error of the framework, such as 404: a browser with a page, and a program with JSON."""
    assert isinstance(error, HTTPException)  # noqa: S101 - for the type checker; handlers are chosen by type
    problem = explain_http(request, error)
    return await _show_error(request, problem) if wants_page(request) else render_problem(problem)


async def _show_invalid(request: Request, error: Exception) -> Response:
    """Answer a request of the wrong form: a browser with a page, and a program with JSON."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 - for the type checker; handlers are chosen by type
    problem = explain_invalid(request, error)
    return await _show_error(request, problem) if wants_page(request) else render_problem(problem)


async def _show_ledger_failure(request: Request, error: Exception) -> Response:
    """Answer that the ledger failed: a browser with a page, and a program with JSON."""
    # Shown without the caller: the database in which they would be looked up has failed.
    problem = explain_ledger_failure(error)
    return await _render_error(request, problem, None) if wants_page(request) else render_problem(problem)


async def _show_error(request: Request, problem: Problem) -> Response:
    """Answer with the page of an error, for its caller if they are known.

    A caller who may not open ``/`` is redirected to the first page that they may open.
    """
    try:
        caller = await identify_caller(request)
    except Problem:
        caller = None
    home = None if caller is None else find_home(caller.permissions)
    if problem.code == "forbidden" and request.method in SAFE_METHODS and request.url.path == "/" and home is not None:
        return redirect(home.path)  # because people open "/" first, whatever they may do
    return await _render_error(request, problem, caller)


async def _render_error(request: Request, problem: Problem, caller: Caller | None) -> Response:
    """Render an error as a page; for one about another host or site, it shows the address of this server."""
    title, remedy = _PAGES.get(problem.status_code, _OTHER_PAGE)
    address = ""
    if problem.code in ("cross_site", "host"):
        title, remedy = "The server has another address", "Open it by the address below."
        address = get_page_state(request).settings.base_url
    context: Context = {"title": title, "detail": problem.detail, "remedy": remedy, "address": address}
    return await _answer_with_page(request, problem, context, caller)


async def _answer_with_page(
    request: Request, problem: Problem, context: Context, caller: Caller | None, *, template: str = "error.html"
) -> Response:
    """Answer with the page of an error, its status and its headers."""
    status = problem.status_code
    defaults: Context = {"status": status, "address": "", "signin": SIGN_IN, "typed": ()}
    response = await show_page(request, template, defaults | context, caller=caller, status=status)
    for name, value in (problem.headers or {}).items():
        response.headers[name] = value
    return response
