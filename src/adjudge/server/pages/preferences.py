"""A person's preferences for colours, keys and the zone of times, each stored in a cookie of the browser."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Form
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response

from adjudge.server.caller import Caller, require
from adjudge.server.pages.page import find_way_back, redirect
from adjudge.server.pages.shell import LETTERS, THEME, TIMES, read_theme
from adjudge.server.sessions import YEAR, set_cookie
from adjudge.server.state import CurrentPageState

router = APIRouter()


class ThemeForm(BaseModel):
    """The colours that were chosen."""

    theme: str = Field(default="auto", max_length=20)


class LettersForm(BaseModel):
    """The choice whether letters are keys."""

    keys: str = Field(default="on", max_length=20)


class TimesForm(BaseModel):
    """The choice of the zone in which times are shown."""

    times: str = Field(default="local", max_length=20)


Person = Annotated[Caller, Depends(require(decides_nothing=True))]


@router.post("/theme", include_in_schema=False)
async def store_theme(
    request: Request, state: CurrentPageState, _: Person, form: Annotated[ThemeForm, Form()]
) -> Response:
    """Store the choice of colours and go back to the page."""
    return _store_preference(request, state, THEME, read_theme(form.theme))


@router.post("/keyboard", include_in_schema=False)
async def store_keys(
    request: Request, state: CurrentPageState, _: Person, form: Annotated[LettersForm, Form()]
) -> Response:
    """Store whether letters are shortcuts, and go back to the page."""
    return _store_preference(request, state, LETTERS, "off" if form.keys == "off" else "on")


@router.post("/times", include_in_schema=False)
async def store_times(
    request: Request, state: CurrentPageState, _: Person, form: Annotated[TimesForm, Form()]
) -> Response:
    """Store whether times are shown in UTC or in the browser's zone, and go back to the page."""
    return _store_preference(request, state, TIMES, "utc" if form.times == "utc" else "local")


def _store_preference(request: Request, state: CurrentPageState, name: str, value: str) -> Response:
    """Answer with a cookie that holds a preference, and go back to the page of the form."""
    response = redirect(find_way_back(request))
    set_cookie(response, name, value, state.settings, max_age=YEAR)
    return response
