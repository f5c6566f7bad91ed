"""The page ``/signin`` and the form that signs out."""

from __future__ import annotations

import hmac
import secrets
from typing import Annotated

from fastapi import APIRouter, Depends, Form
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response

from adjudge.server.caller import Caller, check_sign_in, require
from adjudge.server.pages.page import SIGN_IN, OptionalCaller, find_local_path, redirect, render_page
from adjudge.server.pages.shell import choose_page
from adjudge.server.sessions import begin_session, delete_cookie, end_session, name_cookie, set_cookie
from adjudge.server.state import CurrentState
from adjudge.templates.figures import format_left

router = APIRouter()

_SHORTEST_KEY = 43
"""Characters of 256 bits in base64url; a shorter key is not taken from a browser."""


class SignInForm(BaseModel):
    """The form of the sign-in."""

    name: str = Field(default="", max_length=200)
    password: str = Field(default="", max_length=1_000)
    csrf_token: str = Field(default="", max_length=200)
    browser_key: str = Field(default="", max_length=200)
    next: str = Field(default="/", max_length=2_000)


@router.get(SIGN_IN, include_in_schema=False)
async def show_form(request: Request, state: CurrentState, caller: OptionalCaller, next: str = "/") -> Response:  # noqa: A002 - the name in the address
    """Show the form to sign in; somebody who is signed in already is redirected to where it would lead."""
    target = find_local_path(next)
    if caller is not None and caller.session is not None:
        return redirect(choose_page(caller.permissions, target))
    return _render(request, state, target)


@router.post(SIGN_IN, include_in_schema=False)
async def sign_in(request: Request, state: CurrentState, form: Annotated[SignInForm, Form()]) -> Response:
    """Begin a session if the name and the password are right, and lead on to the page that was asked for."""
    target = find_local_path(form.next)
    cookie_token = request.cookies.get(_name_form_cookie(state), "")
    if not cookie_token or not hmac.compare_digest(cookie_token.encode(), form.csrf_token.encode()):
        return _render(request, state, target, form.name, "This form is too old. Nothing was sent on; try again.")
    checked = await check_sign_in(request, state, form.name, form.password)
    previous, key = request.cookies.get(name_cookie(state.settings)), _choose_browser_key(state, form.browser_key)
    ident = None
    if checked is not None:
        ident = await begin_session(state.ledger, checked, browser_key=key, previous=previous)
    if checked is None or ident is None:
        # The same for an unknown name, a wrong password, an account that is disabled, and one that has just changed.
        return _render(request, state, target, form.name, "Name and password do not belong together.")
    response = redirect(choose_page(checked.account.permissions, target))
    set_cookie(response, name_cookie(state.settings), ident, state.settings)
    delete_cookie(response, _name_form_cookie(state), state.settings)
    return response


@router.post("/signout", include_in_schema=False)
async def sign_out(
    request: Request, state: CurrentState, _: Annotated[Caller, Depends(require(decides_nothing=True))]
) -> Response:
    """End the session: its row is deleted, so that a copy of the cookie is worth nothing."""
    ident = request.cookies.get(name_cookie(state.settings))
    if ident:
        await end_session(state.ledger, ident)
    response = redirect(SIGN_IN)
    delete_cookie(response, name_cookie(state.settings), state.settings)
    return response


def _choose_browser_key(state: CurrentState, key: str) -> str | None:
    """Return the key that forms of the session will need; ``None`` where forms need no key.

    It is the key that the browser made. A browser that runs no scripts makes none; then it is a random key that nobody
    knows, because without a key every program that gets the session's cookie could send forms.
    """
    if not state.settings.needs_browser_key:
        return None
    return key if len(key) >= _SHORTEST_KEY and key.isascii() else secrets.token_urlsafe(32)


def _render(request: Request, state: CurrentState, target: str, name: str = "", error: str = "") -> Response:
    """Render the form to sign in, with a new token, which is set as a cookie too; with an error, the status is 403."""
    # There is no session yet to hold a token. So the form's token is compared with the cookie: another site can set
    # neither, and cannot sign a browser in as somebody else.
    token = secrets.token_urlsafe(32)
    lifetime = format_left(state.settings.session_lifetime)
    context = {"target": target, "name": name, "error": error, "lifetime": lifetime, "csrf_token": token}
    context |= {"makes_key": state.settings.needs_browser_key}
    response = render_page(request, "signin.html", context, status=403 if error else 200)
    set_cookie(response, _name_form_cookie(state), token, state.settings)
    return response


def _name_form_cookie(state: CurrentState) -> str:
    """Return the name of the cookie that holds the token of the form to sign in."""
    return f"{name_cookie(state.settings)}-form"
