"""Retries of requests to a server, and the wait before each: arithmetic alone, no clock and no network.

What counts as a broken connection, and the waiting itself, is in ``providers/http.py``. Requests about batches have a
loop over these functions in ``batch/batch_http.py``, and a webhook has one in ``guards/approval/webhook.py``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from email.utils import mktime_tz, parsedate_tz

LONGEST_WAIT = 60.0
"""Seconds. A server that asks for more is given up at once: the caller's timeout would pass in silence."""


ATTEMPTS_THROTTLED = 10
"""Requests in all while a server answers 429: it is up, and says when to come back."""


ATTEMPTS_BROKEN = 4
"""Requests in all for 408, 5xx and connections that fail."""


_FIRST_WAIT, _LAST_WAIT = 0.5, 16.0

_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


def may_retry(status: int, headers: Mapping[str, str], body: bytes) -> bool:
    """Return whether an answer is worth another request: 429, 408 and 5xx, unless the provider says it is not."""
    if status not in (408, 429) and not 500 <= status < 600:
        return False
    if headers.get("x-should-retry", "").lower() == "false":
        return False
    # OpenAI answers an empty account with 429; waiting does not fill it, and hides the reason behind a timeout.
    return status != 429 or b"insufficient_quota" not in body


def count_attempts(status: int | None) -> int:
    """Return how many requests in all a fault is worth; ``status`` is ``None`` for a connection that failed."""
    return ATTEMPTS_THROTTLED if status == 429 else ATTEMPTS_BROKEN


def read_wait(headers: Mapping[str, str], wall: Callable[[], float]) -> float | None:
    """Read the seconds that a server asks to wait (``retry-after-ms``; ``Retry-After`` as seconds or an HTTP date).

    Returns ``None`` where it asks for none, for a text that cannot be read, and for a time that has passed: the caller
    then chooses the wait.
    """
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if _SECONDS.fullmatch(value):
            return float(value) / unit or None  # a wait of 0 is none, and the caller chooses one
    date = parsedate_tz(headers.get("retry-after", ""))
    try:
        seconds = mktime_tz(date) - wall() if date else 0.0
    except (OverflowError, ValueError):
        return None
    return seconds if seconds > 0 and math.isfinite(seconds) else None


def back_off(attempt: int, random: Callable[[], float]) -> float:
    """Return the seconds to wait before the next request: they grow exponentially, and are random up to that limit.

    So many clients that failed together do not come back together.
    """
    return random() * min(_LAST_WAIT, _FIRST_WAIT * 2.0 ** min(attempt - 1, 10))
