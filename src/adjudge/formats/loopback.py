"""Recognition of hosts that are this machine (loopback): what is sent to them does not leave it."""

from __future__ import annotations

import ipaddress
import re
import socket
import unicodedata

_NUMBERS = re.compile(r"[0-9a-fx]+(\.[0-9a-fx]+){0,3}")


def is_this_machine(host: str) -> bool:
    """Return whether a host is this machine by its very name: 127.0.0.0/8, ::1, localhost and every name below it.

    What may be sent to this machine in clear text goes by this. Old spellings of an address, such as ``127.1``, do not
    count: not everybody reads them alike.
    """
    return _read_name(_normalise_host(host)) is not None


def normalise_loopback(host: str) -> str | None:
    """Find the address or name under which every system knows a host that may be this machine, or ``None``.

    Reads what any resolver reads: ``127.1``, ``0x7f.1`` and ``2130706433`` are 127.0.0.1, and letters and digits may be
    of any width and case. ``app.localhost.`` is ``localhost``, which RFC 6761 keeps for this machine; some resolvers
    would ask another machine for it.
    """
    name = _normalise_host(host)
    return _read_name(name) or _read_numbers(name)


def _normalise_host(host: str) -> str:
    """Write a host in lower case and with plain letters and dots, without a last dot or the brackets of IPv6."""
    name = unicodedata.normalize("NFKC", host).replace("\u3002", ".").lower().removesuffix(".")
    return name[1:-1] if name.startswith("[") and name.endswith("]") else name


def _read_name(name: str) -> str | None:
    """Return ``localhost`` or the address if a name is of this machine by itself, else ``None``.

    An IPv6 address that contains a loopback address of IPv4 (``::ffff:127.0.0.1``) counts as well.
    """
    if name == "localhost" or name.endswith(".localhost"):
        return "localhost"
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return name if (mapped or address).is_loopback else None


def _read_numbers(name: str) -> str | None:
    """Return the loopback address that one to four decimal, octal or hexadecimal numbers mean; ``None`` for others."""
    try:
        packed = socket.inet_aton(name) if _NUMBERS.fullmatch(name) else b""
    except OSError:
        return None
    is_loopback = packed[:1] == b"\x7f"  # 127.0.0.0/8
    return socket.inet_ntoa(packed) if is_loopback else None
