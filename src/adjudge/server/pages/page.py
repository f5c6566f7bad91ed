"""Pages: each is a view, which collects what is shown, and a template. Programs read the same from ``/v1``.

    router = APIRouter()

    async def view_runs(state: CurrentState, status: str | None = None) -> Context: ...

    add_page(router, "/runs", view_runs, template="runs.html", scope="read")

A view is a FastAPI dependency: its parameters are the state, the caller, and what the path and the query say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Annotated, Any
from urllib.parse import quote, urlsplit

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from adjudge.errors import AdjudgeError
from adjudge.server.caller import Caller, find_caller_or_none, require
from adjudge.server.pages.environment import find_template
from adjudge.server.pages.shell import count_waiting, make_shell
from adjudge.server.permissions import PermissionScope
from adjudge.server.state import ServerState, get_page_state

SIGN_IN = "/signin"

Context = dict[str, object]
"""The values that a template reads, by name: results, approvals, tasks and entries as they are."""


def add_page(
    router: APIRouter,
    path: str,
    view: Callable[..., Awaitable[Context]],
    *,
    template: str,
    scope: PermissionScope | tuple[PermissionScope, ...],
    by_gate: bool = False,
) -> None:
    """Serve a view at ``path`` as an HTML page.

    A caller needs ``scope``, or one of several; without a session, the browser is led to the sign-in. ``by_gate`` opens
    the page to callers that are limited to gates; the view then has to leave out what is not of their gates.
    """
    # Given as default values: in an annotation, FastAPI could not find these local names.
    allowed: Any = Depends(require(*((scope,) if isinstance(scope, str) else scope), by_gate=by_gate))
    provided: Any = Depends(view)

    async def show(request: Request, caller: Caller = allowed, context: Context = provided) -> Response:
        """Answer with the template, filled with the context that the view made."""
        return await show_page(request, template, context, caller=caller)

    router.add_api_route(path, show, methods=["GET"], include_in_schema=False)


def send_text(text: str, name: str) -> Response:
    """Send a text that was judged as a file to save, byte for byte. Shown as a page, HTML in it would run."""
    headers = {"content-disposition": f'attachment; filename="{name}.txt"'}
    return Response(text.encode(errors="surrogatepass"), media_type="application/octet-stream", headers=headers)


async def show_page(
    request: Request, template: str, context: Mapping[str, object], *, caller: Caller | None, status: int = 200
) -> HTMLResponse:
    """Answer with a template filled with a context, and with how much waits for the caller in the navigation."""
    waiting: Mapping[str, int] = {}
    state = get_page_state(request)
    if caller is not None and isinstance(state, ServerState):
        with suppress(AdjudgeError):  # so that the page of an error is shown even if the store has failed
            waiting = await count_waiting(state, caller)
    # In a thread, because a page may show megabytes of content, and gates must be answered meanwhile.
    return await asyncio.to_thread(
        render_page, request, template, context, caller=caller, status=status, waiting=waiting
    )


def render_page(
    request: Request,
    template: str,
    context: Mapping[str, object],
    *,
    caller: Caller | None = None,
    status: int = 200,
    waiting: Mapping[str, int] | None = None,
) -> HTMLResponse:
    """Fill a template with a context.

    The template also gets ``caller`` (``None`` before the sign-in), ``csrf_token`` (for the hidden field of that name,
    which every form needs) and ``shell``. ``waiting`` has the numbers of the navigation, by the path of the page.
    """
    shell = make_shell(request, caller, waiting=waiting)
    values: Context = {"caller": caller, "csrf_token": shell.csrf, "shell": shell}
    return HTMLResponse(find_template(template).render({**values, **context}), status)


def redirect(path: str) -> RedirectResponse:
    """Redirect to a path of this server by GET, after a form was accepted, so that reloading does not send it again."""
    return RedirectResponse(find_local_path(path), status_code=303)


def find_local_path(path: str | None, default: str = "/") -> str:
    """Return a path of this server, or the default in place of anything that could lead elsewhere."""
    if path is None or not path.startswith("/") or path.startswith(("//", "/\\")):
        return default
    # Browsers drop some control characters, and take a backslash for a slash: both could lead to another host.
    if any(ord(char) <= 32 or ord(char) == 127 or char == "\\" for char in path):
        return default
    try:
        parts = urlsplit(path)
    except ValueError:
        return default
    return default if parts.scheme or parts.netloc else path


def find_way_back(request: Request) -> str:
    """Find the path of the page that a form was sent from, by the header ``Referer``; ``/`` if it is not known."""
    try:
        referrer = urlsplit(request.headers.get("referer", "/"))
    except ValueError:
        return "/"
    # Only its path and query: whatever host the header names, the redirect stays on this server.
    return find_local_path(add_query(referrer.path, referrer.query))


def lead_to_signin(request: Request) -> RedirectResponse:
    """Send a browser without a session to the sign-in, from which it comes back."""
    return RedirectResponse(name_signin(add_query(request.url.path, request.url.query)), status_code=303)


def add_query(path: str, query: str) -> str:
    """Add a query to a path, where there is one."""
    return f"{path}?{query}" if query else path


def name_signin(path: str) -> str:
    """Make the address of the sign-in that leads on to a path afterwards."""
    return f"{SIGN_IN}?next={quote(path)}"


def wants_page(request: Request) -> bool:
    """Return whether a browser asked, by a link or by a form, so that a page is the answer and not JSON."""
    return "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/v1/")


OptionalCaller = Annotated[Caller | None, Depends(find_caller_or_none)]
