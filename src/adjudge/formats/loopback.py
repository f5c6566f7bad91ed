"""Which hosts are this machine, so that nothing that is sent to them leaves it."""

from __future__ import annotations

import ipaddress


def is_this_machine(host: str) -> bool:
    """Whether a host is this machine by its very name."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
