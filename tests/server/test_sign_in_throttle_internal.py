"""How often passwords may be tried."""

from __future__ import annotations

import pytest

pytest.importorskip("fastapi")


def count_tries(addresses: list[str]) -> int:
    """How many attempts in one name are let through, one from each address."""
    from adjudge.server.problem import Problem
    from adjudge.server.sign_in_throttle import SignInThrottle

    throttle, tries = SignInThrottle(), 0
    for address in addresses:
        try:
            throttle.count_attempt(address, "ana")
        except Problem:
            continue
        tries += 1
    return tries


def test_all_addresses_of_an_ipv6_network_are_one_address():
    """A machine has 2 to the power of 64 of them: it could try as often as it likes, and lock anybody out."""
    assert count_tries([f"2001:db8:1:2::{place:x}" for place in range(1, 60)]) == 5
    assert count_tries([f"fe80::{place:x}%eth0" for place in range(1, 60)]) == 5
    assert count_tries([f"2001:db8:1:{place:x}::1" for place in range(1, 60)]) == 59


def test_other_addresses_are_each_their_own():
    """IPv4, also where it is written as IPv6, and what is no address."""
    assert count_tries([f"192.0.2.{place}" for place in range(1, 60)]) == 59
    assert count_tries([f"::ffff:192.0.2.{place}" for place in range(1, 60)]) == 59
    assert count_tries(["192.0.2.1", "::ffff:192.0.2.1"] * 10) == 5
    assert count_tries(["unix", ""] * 10) == 10
