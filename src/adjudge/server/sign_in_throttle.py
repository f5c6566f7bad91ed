"""A limit of failed attempts to sign in, which a guesser of passwords meets."""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from adjudge.server.problem import Problem


@dataclass(slots=True, kw_only=True)
class SignInThrottle:
    """A limit of failed passwords: by one address for one name, by one address, and for one name by all.

    The last is the loosest, or a stranger could keep somebody out by failing in their name. It counts in this process.
    """

    clock: Callable[[], float] = time.monotonic
    window: float = 900.0
    """Seconds for which a failure counts."""
    _failures: OrderedDict[str, deque[float]] = field(default_factory=OrderedDict)

    def count_attempt(self, address: str, name: str) -> None:
        """Count an attempt to sign in as failed, until ``forget`` is told that it was not.

        Raises ``Problem`` (429), and counts nothing, where too many have failed. Called before the password is looked
        at, which takes its time: else any number of attempts that come at once would all be let through before the
        first of them has failed.
        """
        now = self.clock()
        limits = _list_limits(address, name)
        for key, most in limits:
            self._check_failures(key, most, now)
        for key, most in limits:
            failed_at = self._failures.setdefault(key, deque(maxlen=most))
            failed_at.append(now)
            self._failures.move_to_end(key)
        while len(self._failures) > _MOST_COUNTED:
            self._failures.popitem(last=False)

    def _check_failures(self, key: str, most: int, now: float) -> None:
        """Raise ``Problem`` where as many as ``most`` have failed in the window."""
        failed_at = self._failures.get(key)
        while failed_at and failed_at[0] <= now - self.window:
            failed_at.popleft()
        if failed_at and len(failed_at) >= most:
            wait = max(1, int(failed_at[-most] + self.window - now) + 1)
            detail = "too many attempts to sign in have failed; wait, or ask the administrator of this server"
            raise Problem(429, detail, code="throttled", headers={"Retry-After": str(wait)})

    def forget(self, address: str, name: str) -> None:
        """Forget the failures of somebody who has signed in from there, whose attempt was no failure."""
        both, *others = (key for key, _ in _list_limits(address, name))
        self._failures.pop(both, None)
        for key in others:
            if self._failures.get(key):
                self._failures[key].pop()


_MOST_COUNTED = 10_000


def _list_limits(address: str, name: str) -> list[tuple[str, int]]:
    network = _find_network(address)
    return [(f"both {network} {name}", 5), (f"address {network}", 30), (f"name {name}", 100)]


def _find_network(address: str) -> str:
    """Find what counts as one address: of IPv6 the first 64 bits, because one machine has all addresses below them."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(ip, ipaddress.IPv6Address):
        return str(ip)
    return str(ip.ipv4_mapped or ipaddress.ip_network((int(ip), 64), strict=False))
