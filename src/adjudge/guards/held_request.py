"""A request that an approval opens once: an HTTP request, or an agent's call of a tool. Pure.

A gate binds an approval to such a request through the basis of its pending decision, where ``describe`` stands under
the request's kind. The kinds are few, and stand here, because each of them makes an approval good for one use.

Everything that a resumed decision has to match is decided in ``gate.py`` (``Check.resume``), and which terms of the
gate an approval is bound to in ``approval_digest.py`` (``find_other``). A request that is sent again is taken up in
``repeated_request.py`` (``repeat_request``).
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
        """Describe it for the pending decision; ``key`` is what ``digest_key`` returns."""
        ...

    def list_differences(self, described: object, /) -> list[str]:
        """List what differs from the request that ``describe`` was about."""
        ...

    def digest_key(self, gate: str, /) -> str | None:
        """Digest what finds it again; ``None`` for a request that nobody can name."""
        ...

    def limit_open(self) -> Mapping[str, int]:
        """Return the most requests that may be open: of its ``run``, ``key`` and ``gate``; empty for no limit."""
        ...


def is_single_use(basis: Mapping[str, Any]) -> bool:
    """Return whether an approval with this basis can be used once only."""
    return any(basis.get(kind) is not None for kind in KINDS)


def find_key(basis: Mapping[str, Any]) -> str | None:
    """Find the key by which the request is found again; ``None`` without one."""
    for kind in KINDS:
        described = basis.get(kind)
        if isinstance(described, Mapping):
            key = described.get("key")
            return key if isinstance(key, str) else None
    return None


def copy_request_description(basis: Mapping[str, Any]) -> dict[str, Any]:
    """Copy the members of a basis that describe a request (``KINDS``)."""
    return {kind: basis[kind] for kind in KINDS if kind in basis}
