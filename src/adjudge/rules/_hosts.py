"""Whether an address leads where it is allowed to: scheme and host, read so that no browser can read them otherwise.

Programs disagree about addresses that are oddly written, and whoever writes content chooses the oddest. So only the
plain form is read, ``scheme://host`` with an optional port and then ``/``, ``?``, ``#`` or the end, and all others are
refused, whatever host somebody could find in them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from adjudge.errors import UsageError
from adjudge.rules._texts import read_words
from adjudge.rules._words import QUOTED, quote, show

LONGEST_HOST = 253
"""Characters of a name in DNS; what is longer is refused before it is converted."""

_PORTS = {"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21"}
_LABEL = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """Where addresses may lead."""

    schemes: frozenset[str]
    hosts: frozenset[str]
    """Names, with a port where only that port is allowed."""
    parents: tuple[str, ...]
    """What every name below ends with, beginning with a dot."""

    def explain(self, scheme: str, rest: str) -> str | None:
        """Why ``scheme:rest`` is not allowed; ``None`` when it is."""
        if scheme not in self.schemes:
            return f"the scheme {quote(scheme, 20)} is not allowed"
        if scheme not in _PORTS and not rest.startswith(("/", "\\")):
            return None  # it names no host (mailto:, tel:), and was allowed by name
        if not rest.startswith("//") or rest[2:3] in {"/", "\\", ""}:
            return "it is not written as scheme://host"
        return self.explain_host(scheme, cut_authority(rest[2:]))

    def explain_host(self, scheme: str | None, authority: str) -> str | None:
        """Why host and port are not allowed; ``scheme`` is ``None`` where the page around the address decides it."""
        if "@" in authority:
            return "it carries a user name or password"
        try:
            host, port = read_authority(authority)
        except ValueError as error:
            return str(error)
        default = port is None or port == _PORTS.get(scheme or "https")
        if default and (host in self.hosts or host.endswith(self.parents)):
            return None
        if f"{host}:{port or _PORTS.get(scheme or 'https')}" in self.hosts:
            return None
        return f"the host {quote(host if default else f'{host}:{port}', QUOTED)} is not allowed"


def make_allowed(allow: Any, schemes: Any) -> Allowed:
    """The allowlist a rule was given; raises ``UsageError`` for an entry that could never match or always would."""
    names = [_read_entry(item) for item in read_words("urls", "allow", allow)]
    parents = tuple(name.removeprefix("*") for name in names if name.startswith("*."))
    chosen = frozenset(item.lower() for item in read_words("urls", "schemes", schemes))
    for item in chosen:
        if not item.isascii() or not item[0].isalpha() or not all(char.isalnum() or char in "+-." for char in item):
            raise UsageError(f"rule urls: a scheme is written like https, without ://; got {show(item)}")
    return Allowed(schemes=chosen, hosts=frozenset(name for name in names if name[0] != "*"), parents=parents)


def cut_authority(text: str) -> str:
    """What stands before the path."""
    return text.partition("/")[0].partition("?")[0].partition("#")[0]


def read_authority(authority: str) -> tuple[str, str | None]:
    """Host and port, in one form; raises ``ValueError`` saying what cannot be read for certain."""
    host, port = authority, None
    if authority.startswith("["):
        host, closed, after = authority.partition("]")
        port = after.removeprefix(":") or None
        if not closed or (after and not after.startswith(":")):
            raise ValueError("its host cannot be read for certain")
        host = f"[{_read_ip(host[1:], ipaddress.IPv6Address)}]"
    elif ":" in authority:
        host, _, port = authority.partition(":")
        port = port or None
    if port is not None and not (port.isascii() and port.isdigit() and len(port) <= 5):
        raise ValueError("its port cannot be read for certain")
    return (host if host.startswith("[") else _read_name(host)), port and (port.lstrip("0") or "0")


def _read_name(host: str) -> str:
    if not 0 < len(host) <= LONGEST_HOST:
        raise ValueError("its host cannot be read for certain")
    name = (host if host.isascii() else _to_ascii(host)).lower().removesuffix(".")
    labels = name.split(".")
    if not all(0 < len(label) <= 63 and _LABEL.issuperset(label) for label in labels):
        raise ValueError("its host cannot be read for certain")
    # 2130706433, 0x7f.1 and 0177.0.0.1 are 127.0.0.1 to a browser; only the usual form is read.
    if labels[-1].isdigit() or labels[-1].startswith("0x"):
        return _read_ip(name, ipaddress.IPv4Address)
    return name


def _to_ascii(host: str) -> str:
    """A name as DNS has it (UTS #46, as browsers do)."""
    import idna

    try:
        return idna.encode(host, uts46=True, std3_rules=True).decode("ascii")
    except UnicodeError:  # idna's own errors are among these
        raise ValueError("its host cannot be read for certain") from None


def _read_ip(text: str, kind: Callable[[str], Any]) -> str:
    try:
        address = kind(text)
    except ValueError:
        raise ValueError("its host is a number that can be read in several ways") from None
    if "%" in text:
        raise ValueError("its host is an address with a zone")
    return str(address)


def _read_entry(entry: str) -> str:
    if "/" in entry or "@" in entry:
        raise UsageError(f"rule urls: allow lists hosts, like example.org or *.example.org; got {show(entry)}")
    star = "*." if entry.startswith("*.") else ""
    try:
        host, port = read_authority(entry.strip().removeprefix(star))
    except ValueError:
        host, port = "", None
    # With a star, a whole top-level domain or every port would be more than somebody meant to write.
    if not host or (star and ("." not in host or port is not None or host[-1].isdigit())):
        raise UsageError(
            f"rule urls: {show(entry)} is not a host; write example.org, example.org:8443, *.example.org for all names "
            "below it, or an IP address in its usual form"
        )
    return f"{star}{host}" + (f":{port}" if port else "")
