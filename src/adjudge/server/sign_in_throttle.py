"""A limit of failed attempts to sign in, against guessing passwords."""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from adjudge.server.problem import Problem


@dataclass(slots=True, kw_only=True)
class SignInThrottle:
    """Three limits of failed sign-ins: from one address with one name, from one address, and with one name.

    The limit for a name is the loosest, because a stranger could keep somebody out by failing with their name. Failures
    are counted in this process alone.
    """

    clock: Callable[[], float] = time.monotonic
    window: float = 900.0
    """Seconds for which a failure counts."""
    _failures: OrderedDict[str, deque[float]] = field(default_factory=OrderedDict)

    def count_attempt(self, address: str, name: str) -> None:
        """Count an attempt to sign in as failed; ``forget`` takes it back once the attempt has succeeded.

        Raises ``Problem`` (429), and counts nothing, if too many have failed. Called before the password is checked,
        because that takes time: otherwise any number of attempts at once would pass before the first has failed.
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
        """Raise ``Problem`` (429) if ``most`` attempts have failed in the window, and drop failures before it."""
        failed_at = self._failures.get(key)
        while failed_at and failed_at[0] <= now - self.window:
            failed_at.popleft()
        if failed_at and len(failed_at) >= most:
            wait = max(1, int(failed_at[-most] + self.window - now) + 1)
            detail = "too many attempts to sign in have failed; wait, or ask the administrator of this server"
            raise Problem(429, detail, code="throttled", headers={"Retry-After": str(wait)})

    def forget(self, address: str, name: str) -> None:
        """Take back the attempt of somebody who has signed in, and their earlier failures from this address.

        The limits for the address and for the name lose only this attempt: their other failures may be a guesser's.
        """
        address_and_name, *wider_keys = (key for key, _ in _list_limits(address, name))
        self._failures.pop(address_and_name, None)
        for key in wider_keys:
            if self._failures.get(key):
                self._failures[key].pop()


_MOST_COUNTED = 10_000


def _list_limits(address: str, name: str) -> list[tuple[str, int]]:
    """List the limits of an attempt: the key under which its failures are counted, and how many may fail."""
    network = _find_network(address)
    return [(f"both {network} {name}", 5), (f"address {network}", 30), (f"name {name}", 100)]


def _find_network(address: str) -> str:
    """Find the network that counts as one address.

    It is the first 64 bits of an IPv6 address, because one machine has all addresses that begin so. An IPv4 address
    counts alone, and so does a text that is no address.
    """
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(ip, ipaddress.IPv6Address):
        return str(ip)
    return str(ip.ipv4_mapped or ipaddress.ip_network((int(ip), 64), strict=False))
