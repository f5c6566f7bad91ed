"""Requests that a gate holds back, and that an approval lets through once: HTTP requests and tool calls. Pure.

A gate binds an approval to such a request by the basis of its pending decision, which has the request's description
under its kind. All kinds are listed here, because an approval of any of them can be used only once.

Everything that a resumed decision has to match is decided in ``gate.py`` (``Check.resume``), and which contents an
approval is bound to in ``approval_digest.py`` (``find_mismatch``). A request that is sent again is compared and
resumed in ``repeated_request.py`` (``repeat_request``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Protocol

Kind = Literal["http", "call"]

KINDS: tuple[Kind, ...] = ("http", "call")
"""Members of a basis that describe a request."""


class HeldRequest(Protocol):
    """A request that a gate may hold back for people, and that is sent again once they have answered."""

    kind: ClassVar[Kind]
    """The member of the basis that describes it."""
    joins: ClassVar[bool]
    """True if another request with its key is this very request, so that both wait for one approval."""

    def describe(self, gate: str, /) -> dict[str, Any]:
        """Describe the request for the pending decision; the member ``key`` is what ``digest_key`` returns."""
        ...

    def list_differences(self, described: object, /) -> list[str]:
        """List the parts of this request that differ from a stored description."""
        ...

    def digest_key(self, gate: str, /) -> str | None:
        """Digest the key by which the request is found again; ``None`` for a request without a key."""
        ...

    def limit_open(self) -> Mapping[str, int]:
        """Return the most requests that may wait for people, by ``run``, ``key`` and ``gate``; empty for no limit."""
        ...


def is_single_use(basis: Mapping[str, Any]) -> bool:
    """Return whether an approval with this basis can be used once only."""
    return any(basis.get(kind) is not None for kind in KINDS)


def find_key(basis: Mapping[str, Any]) -> str | None:
    """Return the digest of the key by which the request in a basis is found again; ``None`` without one."""
    for kind in KINDS:
        description = basis.get(kind)
        if isinstance(description, Mapping):
            key = description.get("key")
            return key if isinstance(key, str) else None
    return None


def copy_request_description(basis: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a basis that describe a request (``KINDS``)."""
    return {kind: basis[kind] for kind in KINDS if kind in basis}
