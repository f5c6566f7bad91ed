"""The windows of long texts that somebody was shown on the page of a request, kept in a cookie of its address.

A page draws no more than a window of a long text, so what was shown is more than one page knows, and nobody approves
what they were not shown. The cookie is signed with the secret of the session, for this request as it is stored:
neither an address that somebody sends, nor a request that was changed meanwhile, passes for having been read. A text
that was fetched as a file counts as shown.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterator, Mapping

from starlette.requests import Request
from starlette.responses import Response

from adjudge.config.server import ServerSettings
from adjudge.guards.approval.approval import Approval
from adjudge.guards.approval.completeness import digest_shown
from adjudge.server.caller import Caller
from adjudge.server.pages.approval_view import ReadWindows
from adjudge.server.sessions import set_cookie
from adjudge.templates.environment import quote_segment

COOKIE = "read"

_MOST_WINDOWS = 10_000

_RANGE_PATTERN = re.compile(r"([a-z]{1,20}):([1-9][0-9]{0,4})-([1-9][0-9]{0,4})", re.ASCII)


def find_read_windows(request: Request, caller: Caller, approval: Approval) -> ReadWindows:
    """Find the windows of a request's texts that this session was shown before."""
    text, _, signature = request.cookies.get(COOKIE, "").rpartition(".")
    if not text or caller.session is None:
        return {}
    expected = _sign(caller.session.csrf_token, approval, text)
    if not hmac.compare_digest(expected.encode(), signature.encode("utf-8", "replace")):
        return {}
    read_windows: dict[str, frozenset[int]] = {}
    for part in text.split("_"):
        match = _RANGE_PATTERN.fullmatch(part)
        if match is None:
            continue
        name, first, last = match.groups()
        windows = range(int(first), min(int(last), _MOST_WINDOWS) + 1)
        read_windows[name] = read_windows.get(name, frozenset()) | frozenset(windows)
    return read_windows


def set_read_cookie(
    response: Response,
    caller: Caller,
    approval: Approval,
    read_windows: ReadWindows,
    settings: ServerSettings,
    *,
    path: str = "/approvals",
) -> None:
    """Set the cookie that says which windows of a request's texts this session was shown, here and before.

    ``path`` is the address below which the page of the request is.
    """
    if caller.session is None or not read_windows:
        return
    text = "_".join(_write_ranges(read_windows))
    value = f"{text}.{_sign(caller.session.csrf_token, approval, text)}"
    set_cookie(response, COOKIE, value, settings, path=f"{path}/{quote_segment(approval.id)}")


def _write_ranges(read_windows: Mapping[str, frozenset[int]]) -> Iterator[str]:
    """Yield the windows of each text as ranges of consecutive numbers, such as ``context:1-3``."""
    for name, windows in sorted(read_windows.items()):
        for first in sorted(number for number in windows if number - 1 not in windows):
            last = next(number for number in range(first, _MOST_WINDOWS + 2) if number + 1 not in windows)
            yield f"{name}:{first}-{last}"


def _sign(secret: str, approval: Approval, text: str) -> str:
    """Sign the ranges of windows for one request, with the secret of a session."""
    # The digest of all that is shown is signed too: if the request is changed, what was read before counts no more.
    message = f"windows that were read\n{approval.id}\n{digest_shown(approval)}\n{text}"
    return hmac.digest(secret.encode(), message.encode(errors="surrogatepass"), "sha256").hex()
