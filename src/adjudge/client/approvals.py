"""A server's approvals: what people are asked, and deciding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adjudge.client.connection import Connection
from adjudge.client.payload import read_answer
from adjudge.errors import ServerError
from adjudge.guards.approval.approval import Approval, Status
from adjudge.sync import run_sync


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RemoteApprovals:
    """What people are asked at a server. The key's own name as an approver is who decides."""

    connection: Connection

    async def list(self, *, status: Status | None = "open", limit: int = 1_000) -> tuple[Approval, ...]:
        """Requests that the key may look at, the oldest first; ``None`` is any status."""
        said = await self.connection.get("v1", "approvals", status=status or "all", limit=limit)
        return read_answer(_read_list, said, self.connection.url, "list of approvals")

    async def get(self, id: str) -> Approval:  # noqa: A002 - as in Approvals
        """One request. Raises ``UsageError`` for an id that is unknown to the key."""
        return self._read(await self.connection.get("v1", "approvals", id), id)

    async def decide(
        self,
        id: str,  # noqa: A002 - as in Approvals
        approved: bool,  # noqa: FBT001
        reason: str = "",
        *,
        seen: str | None = None,
        complete: bool = True,
    ) -> Approval:
        """Decide about a request. Raises ``UsageError`` where that does not count: decided before, or too late.

        To approve, give ``seen=digest_shown(approval)`` for the request that your person was shown, and a reason if the
        judge did not pass it.

        With ``complete``, a request that does not keep all that would be approved can be denied only. Give false where
        your program shows its people all of it by itself.
        """
        body = {"approved": approved, "reason": reason, "seen": seen, "complete": complete}
        said = await self.connection.post("v1", "approvals", id, "votes", body=body, once=False)
        return self._read(said, id)

    def _read(self, said: object, ident: str) -> Approval:
        approval = read_answer(_read_one, said, self.connection.url, "approval")
        if approval.id != ident:
            url = self.connection.url
            raise ServerError(f"{url} answered about another approval than was asked about, so the answer is not used")
        return approval

    def list_sync(self, *, status: Status | None = "open", limit: int = 1_000) -> tuple[Approval, ...]:
        """``list`` without an event loop. It also works inside a running loop, and blocks it."""
        return run_sync(self.list(status=status, limit=limit))

    def get_sync(self, id: str) -> Approval:  # noqa: A002 - as in Approvals
        """``get`` without an event loop. It also works inside a running loop, and blocks it."""
        return run_sync(self.get(id))

    def decide_sync(
        self,
        id: str,  # noqa: A002 - as in Approvals
        approved: bool,  # noqa: FBT001
        reason: str = "",
        *,
        seen: str | None = None,
        complete: bool = True,
    ) -> Approval:
        """``decide`` without an event loop. It also works inside a running loop, and blocks it."""
        return run_sync(self.decide(id, approved, reason, seen=seen, complete=complete))


def _read_list(said: Mapping[str, Any]) -> tuple[Approval, ...]:
    return tuple([Approval.from_dict(item) for item in said["approvals"]])


def _read_one(said: Mapping[str, Any]) -> Approval:
    # Not the server's word for what it shows: whoever votes computes the digest of what they have got.
    return Approval.from_dict({name: value for name, value in said.items() if name != "shown"})
