"""The HTTP request that an approval is bound to, so that the approval cannot be used for another request. Pure.

That an approval of it is good for one use is decided in ``held_request.py`` (``is_single_use``).
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, ClassVar

from adjudge.guards.held_request import Kind

PARTS = ("method", "target", "query", "body", "caller")
"""The parts that are compared. Each has its own digest, so that the log can say which one differs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """The parts of a request that an application acts on."""

    kind: ClassVar[Kind] = "http"
    joins: ClassVar[bool] = False
    """False, since a client may use its idempotency key for a request with another body."""

    method: Sequence[str]
    """The method, and the headers with which some frameworks override it."""
    target: Sequence[str]
    """Path (raw and decoded) and host; many applications choose a tenant by the host."""
    query: bytes
    body: Sequence[bytes]
    """The headers that say how to read the body, then the whole body."""
    caller: str | None = None
    """The sender of the request; ``None`` when unknown."""
    key: bytes | None = None
    """The client's ``Idempotency-Key``."""

    def describe(self, gate: str) -> dict[str, str | None]:
        """Return salted digests of the parts, and the digest of the key, to be stored with the pending decision."""
        salt = secrets.token_hex(16)
        return {"salt": salt, **self._digest_parts(salt), "key": self.digest_key(gate)}

    def list_differences(self, described: object) -> list[str]:
        """List the parts that differ from a stored description; all parts if that is no description."""
        salt = described.get("salt") if isinstance(described, Mapping) else None
        if not isinstance(described, Mapping) or not isinstance(salt, str):
            return list(PARTS)
        digests = self._digest_parts(salt)
        return [name for name in PARTS if name not in described or described[name] != digests[name]]

    def digest_key(self, gate: str) -> str | None:
        """Digest gate, caller and idempotency key; ``None`` without a key, or when the caller is unknown.

        Clients choose their own keys, so two may choose the same. Without the caller, another user could send the same
        key and body and use somebody else's approval.
        """
        if self.key is None or self.caller is None:
            return None
        return sha256(_encode_json([gate, self.caller, self.key.decode("latin-1")])).hexdigest()

    def limit_open(self) -> Mapping[str, int]:
        """Return no limit: web applications limit their clients themselves."""
        return {}

    def _digest_parts(self, salt: str) -> dict[str, str | None]:
        """Digest each part with the salt; the result has the digests by the parts' names.

        The digest of ``caller`` is ``None`` if the caller is unknown.
        """
        # Salted, because a query or a caller's name is often short enough to be found by trying.
        lists: dict[str, Any] = {"method": list(self.method), "target": list(self.target)}
        raw_parts = {name: _encode_json(value) for name, value in lists.items()}
        # With the lengths, since the same bytes split otherwise into headers and body are another request.
        lengths = _encode_json([len(chunk) for chunk in self.body])
        raw_parts |= {"query": self.query, "body": b"".join((lengths, *self.body))}
        digests: dict[str, str | None] = {name: _digest_part(salt, name, raw) for name, raw in raw_parts.items()}
        caller = None if self.caller is None else _digest_part(salt, "caller", _encode_json(self.caller))
        return digests | {"caller": caller}


def _digest_part(salt: str, name: str, raw: bytes) -> str:
    """Digest the bytes of a part, keyed by the salt and the part's name."""
    return hmac.digest(f"{salt}\n{name}".encode(), raw, "sha256").hex()


def _encode_json(value: object) -> bytes:
    return json.dumps(value).encode()
