"""Programs and browsers that speak to a server of a test over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from kit.patience import HANG

httpx = pytest.importorskip("httpx")


def open_http_client(url: str, **options: Any) -> Any:
    """A client of the server at ``url`` that waits as long as it takes; it reads no certificates, which take 40 ms.

    Each request has a connection of its own. A server closes a connection that was silent for five seconds, and on a
    busy machine it can do so just as a client sends its next request on it.
    """
    limits = httpx.Limits(max_keepalive_connections=0)
    return httpx.Client(base_url=url, **({"verify": False, "timeout": HANG, "limits": limits} | options))
