"""The way to a host: straight to this machine, and to any other as the environment's proxy variables say."""

from __future__ import annotations

import ipaddress
import socket
from typing import TYPE_CHECKING

from adjudge.formats.loopback import normalise_loopback

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL


def find_proxy(address: URL) -> URL | None:
    """Find the proxy for an address, from ``HTTP_PROXY``, ``HTTPS_PROXY`` and ``NO_PROXY``; ``None`` for this machine.

    It is called for every request of adjudge. What is sent to this machine may be in clear text and hold a key, and a
    proxy on another machine would read both.
    """
    from urllib.request import getproxies_environment, proxy_bypass

    from yarl import URL

    host = address.host or ""
    if normalise_loopback(host) is not None or _is_unspecified(host):
        return None
    # Not with aiohttp's ``trust_env``, which looks the proxy up again, in a thread, for every request.
    proxy = getproxies_environment().get(address.scheme)
    if not proxy or proxy_bypass(f"{host}:{address.port}"):
        return None
    return URL(proxy if "://" in proxy else f"http://{proxy}")


def make_connector(*, limit: int = 100, limit_per_host: int = 0) -> aiohttp.TCPConnector:
    """Make a connector with limits of open connections, 0 for none, which never asks DNS for this machine's names."""
    import aiohttp

    class Resolver(aiohttp.ThreadedResolver):
        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
        ) -> list[aiohttp.abc.ResolveResult]:
            return await super().resolve(normalise_loopback(host) or host, port, family)

    return aiohttp.TCPConnector(limit=limit, limit_per_host=limit_per_host, ttl_dns_cache=300, resolver=Resolver())


def _is_unspecified(host: str) -> bool:
    """Return whether a host is 0.0.0.0 or ::, which a connection takes for this machine."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
