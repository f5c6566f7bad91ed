"""Requests that nobody asked for: another site had a browser send them, or a browser sent them by itself.

The first are refused by where they come from, and by a token that another site cannot know.
"""

from __future__ import annotations

import hmac

from starlette.requests import Request

from adjudge.config.server import ServerSettings
from adjudge.server.problem import Problem

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

FIELD, HEADER = "csrf_token", "x-csrf-token"
"""The field of a form, and the header of a script of ours, that hold the token of the session."""

CONFIRMATION = "session_password"
"""The field of a form without the token that holds the password of the session's account instead."""

IS_HEAD = "adjudge_head"
"""The key in the scope of a request that asked for the head alone, and is answered as if it had asked for all."""


def is_asked_for(request: Request) -> bool:
    """Return whether somebody asked for a page, so that it counts as shown.

    A browser fetches some pages before anybody asks for them, and a mail's preview asks for the head alone.
    """
    is_early = "prefetch" in request.headers.get("sec-purpose", request.headers.get("purpose", ""))
    return request.method == "GET" and IS_HEAD not in request.scope and not is_early


def check_origin(request: Request, settings: ServerSettings) -> None:
    """Raise ``Problem`` for an unsafe request that a browser says another site has made.

    Programs send neither header. A browser sends one of them with every unsafe request, and a page cannot forge them.
    """
    if request.method in SAFE_METHODS:
        return
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    is_foreign = site is not None and site not in ("same-origin", "none")
    # Another name of this machine is another site: what answers there need not be this server.
    if is_foreign or (origin is not None and origin != settings.base_url):
        raise Problem(
            403,
            "this request comes from another site, or from this server under another address than its own, "
            f"{settings.base_url}, so nothing was done; open {settings.base_url}",
            code="cross_site",
        )


async def has_token(request: Request, expected: str) -> bool:
    """Return whether a header or a field of the form holds the session's token.

    Where only the token of the session's pages is expected, the key of a browser may follow it.
    """
    token = request.headers.get(HEADER)
    if token is None:
        token = await read_field(request, FIELD) or ""
    if "." not in expected:
        token = token.partition(".")[0]
    return hmac.compare_digest(token.encode(), expected.encode())


async def read_field(request: Request, name: str) -> str | None:
    """Read a field of the form that a request sends; ``None`` where there is none."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("application/x-www-form-urlencoded", "multipart/form-data"):
        return None
    field = (await request.form()).get(name)
    return field if isinstance(field, str) else None
