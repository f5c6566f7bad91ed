"""Protection against requests that no person asked for: cross-site request forgery, and pages that are prefetched.

Forged requests are refused by their origin, and by a token that another site cannot know.
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


def is_opened_by_person(request: Request) -> bool:
    """Return whether a person opened this page, so that it counts as shown.

    A browser prefetches pages that nobody opened yet, and the preview of a mail sends a HEAD request.
    """
    is_prefetch = "prefetch" in request.headers.get("sec-purpose", request.headers.get("purpose", ""))
    return request.method == "GET" and IS_HEAD not in request.scope and not is_prefetch


def check_origin(request: Request, settings: ServerSettings) -> None:
    """Raise ``Problem`` for an unsafe request that a browser says another site has made.

    Programs send neither header. A browser sends one of them with every unsafe request, and a page cannot forge them.
    """
    if request.method in SAFE_METHODS:
        return
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    is_foreign = site is not None and site not in ("same-origin", "none")
    # Another name of this machine counts as another site, because another program may serve pages under it.
    if is_foreign or (origin is not None and origin != settings.base_url):
        raise Problem(
            403,
            "this request comes from another site, or from this server under another address than its own, "
            f"{settings.base_url}, so nothing was done; open {settings.base_url}",
            code="cross_site",
        )


async def has_token(request: Request, expected: str) -> bool:
    """Return whether a header or a field of the form holds the expected token of the session.

    A token is the part that pages hold, or that part, a full stop and the key of the browser
    (``ServerSettings.needs_browser_key``). ``expected`` has no key where none is needed, as for a form
    that decides nothing; a page may send its key all the same, which is ignored then.
    """
    token = request.headers.get(HEADER)
    if token is None:
        token = await read_field(request, FIELD) or ""
    if "." not in expected:
        token = token.partition(".")[0]
    return hmac.compare_digest(token.encode(), expected.encode())


async def read_field(request: Request, name: str) -> str | None:
    """Read a field of the form that a request sends; ``None`` where there is none."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in ("application/x-www-form-urlencoded", "multipart/form-data"):
        return None
    field = (await request.form()).get(name)
    return field if isinstance(field, str) else None
