"""The caller of a request: an API key, a person who is signed in, or, if allowed, anybody on this machine.

What a caller may do is decided in ``permissions.py`` (``Permissions``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import Depends
from starlette.requests import Request

from adjudge.server.accounts import CheckedAccount, check_password
from adjudge.server.csrf import CONFIRMATION, SAFE_METHODS, has_token, read_field
from adjudge.server.permissions import Permissions, PermissionScope, make_permissions
from adjudge.server.problem import Problem
from adjudge.server.sessions import Session, find_session, name_cookie
from adjudge.server.state import ServerState, get_state

if TYPE_CHECKING:
    from starlette.types import Scope

CallerKind = Literal["key", "person", "local", "viewer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The sender of a request, and what is allowed to them."""

    kind: CallerKind
    name: str
    """The key's prefix, the account's name, or the kind."""
    permissions: Permissions
    session: Session | None = None
    """That of a person."""

    @property
    def identity(self) -> str:
        """A text that no other caller has."""
        return f"{self.kind}:{self.name}"

    @property
    def approver(self) -> str | None:
        """The name under which the caller decides about approvals; ``None``: not at all."""
        return self.permissions.approver

    @property
    def rater(self) -> str | None:
        """The name under which the caller labels; ``None``: not at all."""
        return self.permissions.rater

    def may(self, scope: PermissionScope, gate: str | None = None) -> bool:
        """Return whether a scope, and a gate where one is named, is allowed to the caller."""
        return self.permissions.may(scope, gate)

    def covers(self, scope: PermissionScope, gate: str | None) -> bool:
        """Return whether a scope is allowed to the caller for something of a gate, or, with ``None``, of no gate."""
        return self.permissions.covers(scope, gate)

    def check(self, scope: PermissionScope, gate: str | None = None) -> None:
        """Raise ``Problem`` (403) unless a scope, and a gate where one is named, is allowed to the caller."""
        if not self.may(scope, gate):
            detail = f"this needs the scope {scope}" if not self.may(scope) else "this is not for that gate"
            raise Problem(403, detail, code="forbidden")


# The caller of a request without key and session, where these are allowed; and the one of ``adjudge view``.
_LOCAL = Caller(kind="local", name="local", permissions=make_permissions(("judge", "read")))

_VIEWER = Caller(kind="viewer", name="viewer", permissions=make_permissions(("read",)))

_CALLER_KEY, _IDENTIFIED_KEY = "adjudge_caller", "adjudge_identified"
"""The keys under which a request's scope holds its caller: after the form was checked for its token, and before."""

_LONGEST_HEADER = 200

WAITING = "/waiting"
"""Asked by every page that is open, so it does not show that somebody is there: without this, no session would ever
end because nobody uses it."""


class Unauthenticated(Problem):
    """A request without a valid key or session."""

    def __init__(self) -> None:
        # The same for every reason, so that nobody learns whether a key exists.
        super().__init__(
            401,
            "this needs a key (Authorization: Bearer ...) or a session",
            code="unauthenticated",
            headers={"WWW-Authenticate": "Bearer"},
        )


def preset_caller(scope: Scope) -> None:
    """Set the caller of a request to the person whom ``adjudge view`` shows runs, after their cookie was checked."""
    scope[_CALLER_KEY] = scope[_IDENTIFIED_KEY] = _VIEWER


async def find_caller(request: Request, *, decides_nothing: bool = False) -> Caller:
    """Find the caller of a request; raises ``Unauthenticated``, and ``Problem`` for a form without its token.

    ``decides_nothing`` is for a form that records and changes nothing: it needs only the token of the session's pages.
    """
    caller = request.scope.get(_CALLER_KEY)
    if caller is None:
        caller = await identify_caller(request)
        if caller.session is not None and request.method not in SAFE_METHODS:
            await _check_form(request, caller.session, decides_nothing=decides_nothing)
        # A caller whose form was checked less strictly is not remembered: a strict check that follows would take them.
        if not decides_nothing:
            request.scope[_CALLER_KEY] = caller
    return caller


async def identify_caller(request: Request) -> Caller:
    """Find who sends a request, by its headers alone; raises ``Unauthenticated``.

    Called before the body is read, so that nobody without a key or a session can make the server hold a large body. The
    token of a session's form is not checked yet, because it is in the body.
    """
    caller = request.scope.get(_IDENTIFIED_KEY)
    if caller is None:
        caller = await _identify(request, get_state(request))
        request.scope[_IDENTIFIED_KEY] = caller
    return caller


async def _check_form(request: Request, session: Session, *, decides_nothing: bool) -> None:
    """Raise ``Problem`` unless the form of a request has the session's token, or the password of its account.

    The password counts only where forms need the key of the browser (``needs_browser_key``): a browser that lost the
    key has no other way. Elsewhere every page holds the whole token, so a form without it is not of this session.
    """
    if await has_token(request, session.page_token if decides_nothing else session.csrf_token):
        return
    state = get_state(request)
    password = await read_field(request, CONFIRMATION) if state.settings.needs_browser_key else None
    if not password:
        raise Problem(403, "this form is not of your session; load the page again", code="csrf")
    if await check_sign_in(request, state, session.account, password) is None:
        raise Problem(403, "the password is not that of your account", code="csrf")


async def check_sign_in(request: Request, state: ServerState, name: str, password: str) -> CheckedAccount | None:
    """Check a name and a password; ``None`` where they do not belong together.

    Raises ``Problem`` (429) after too many failures.
    """
    address = request.client.host if request.client is not None else ""
    state.throttle.count_attempt(address, name)
    checked = await check_password(state.ledger, name, password)
    if checked is not None:
        state.throttle.forget(address, name)
    return checked


async def find_caller_or_none(request: Request) -> Caller | None:
    """Find the caller of a request; ``None`` for a request without a valid key or session."""
    try:
        return await find_caller(request)
    except Unauthenticated:
        return None


async def _identify(request: Request, state: ServerState) -> Caller:
    """Find the caller by the key in the header, else by the session, else as anybody on this machine if allowed.

    A request for ``WAITING`` does not count as use of the session. Raises ``Unauthenticated``.
    """
    header = request.headers.get("authorization")
    if header is not None:
        # A wrong key is refused, even if the request has the cookie of a session too.
        return await _find_by_key(header, state)
    cookie = request.cookies.get(name_cookie(state.settings))
    is_used = request.url.path != WAITING
    session = await find_session(state.ledger, cookie, state.settings, is_used=is_used) if cookie else None
    if session is not None:
        return Caller(kind="person", name=session.account, permissions=session.permissions, session=session)
    if state.allow_anonymous:
        return _LOCAL
    raise Unauthenticated


async def _find_by_key(header: str, state: ServerState) -> Caller:
    """Find the caller by an ``Authorization`` header; raises ``Unauthenticated`` if it holds no valid key."""
    scheme, _, key_text = header.partition(" ")
    if scheme.lower() != "bearer" or len(header) > _LONGEST_HEADER:
        raise Unauthenticated
    key = await state.keys.find(key_text.strip())
    if key is None:
        raise Unauthenticated
    return Caller(kind="key", name=key.prefix, permissions=key.permissions)


def require(
    *scopes: PermissionScope, by_gate: bool = False, decides_nothing: bool = False
) -> Callable[[Request], Awaitable[Caller]]:
    """Make a FastAPI dependency that returns the caller, or answers with 401, or with 403 if they lack the scope.

    The caller needs at least one of ``scopes``. Without scopes, any caller is accepted. A key with the scope ``hook``
    is accepted only where ``hook`` is one of ``scopes``.

    Where the path names a gate (``{gate}``), the scope has to cover that gate. Every other address is closed to callers
    that are limited to gates, unless ``by_gate`` is true: then the address itself leaves out or refuses what is not of
    the caller's gates. So a new address is closed to them by default.

    ``decides_nothing`` is for a form that records and changes nothing for anybody, so that it does no harm if another
    program sends it with the session's cookie. It needs the token of the page, and neither key nor password.
    """

    async def check_caller(request: Request) -> Caller:
        """Return the caller of a request; raises ``Problem`` if they may not use this address."""
        caller = await find_caller(request, decides_nothing=decides_nothing)
        gate = request.path_params.get("gate")
        if "hook" not in scopes and caller.may("hook"):
            raise Problem(403, "a key of the scope hook can ask about an agent's calls alone", code="forbidden")
        if scopes and not any(caller.may(scope, gate) for scope in scopes):
            caller.check(scopes[0], gate)  # raises, with the reason
        if scopes and gate is None and not by_gate:
            check_all_gates(caller)
        return caller

    return check_caller


def check_all_gates(caller: Caller) -> None:
    """Raise ``Problem`` (403) for a caller that is limited to gates: for addresses that are about no single gate."""
    if caller.permissions.gates is not None:
        raise Problem(
            403,
            "the key or account may use its gates alone, and this address belongs to none; ask with one without --gate",
            code="forbidden",
        )


AnyCaller = Annotated[Caller, Depends(require())]
