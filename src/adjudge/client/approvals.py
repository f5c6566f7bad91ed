"""A server's approvals: what people are asked, and deciding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adjudge.client.connection import Connection
from adjudge.client.request_members import read_answer
from adjudge.errors import ServerError
from adjudge.guards.approval.approval import Approval, Status
from adjudge.sync import make_sync_method


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RemoteApprovals:
    """A server's requests for approval. The key's own name as an approver is who decides."""

    connection: Connection
    """The way to the server."""

    async def list(
        self,
        *,
        status: Status | None = "open",
        title: str | None = None,
        agent: str | None = None,
        customer: str | None = None,
        gate: str | None = None,
        words: str | None = None,
        limit: int = 1_000,
        audits: bool = False,
    ) -> tuple[Approval, ...]:
        """List the requests that the key may look at, the oldest first; ``None`` is any status.

        Args:
            status: Only requests of this status.
            title: Only requests with this text in their title; ``None`` is all.
            agent: Only requests whose metadata name this ``agent``; ``None`` is all.
            customer: Only requests whose metadata name this ``customer``; ``None`` is all.
            gate: Only requests of the gate of this name.
            words: What a person would type into the search of the queue, such as ``refund customer:C-20931``; ``None``
                is all.
            limit: The most requests that are returned.
            audits: List audits in their place.
        """
        filters = {"title": title, "agent": agent, "customer": customer, "gate": gate, "q": words}
        filters |= {"audits": "true"} if audits else {}
        reply = await self.connection.get("v1", "approvals", status=status or "all", limit=limit, **filters)
        return read_answer(_read_approvals, reply, self.connection.url, "list of approvals")

    async def get(self, id: str) -> Approval:  # noqa: A002 - as in Approvals
        """Return a request. Raises ``UsageError`` for an id that is unknown to the key.

        Args:
            id: The id of the request.
        """
        return self._read_approval(await self.connection.get("v1", "approvals", id), id)

    async def decide(
        self,
        id: str,  # noqa: A002 - as in Approvals
        approved: bool,  # noqa: FBT001
        reason: str = "",
        *,
        seen: str | None = None,
        complete: bool = True,
        answer: str = "",
    ) -> Approval:
        """Decide about a request. Raises ``UsageError`` where that does not count: decided before, or too late.

        To approve, give ``seen=digest_shown(approval)`` for the request that your person was shown, and a reason if the
        judge did not pass it.

        Args:
            id: The id of the request.
            approved: True approves, false denies.
            reason: The person's reason.
            seen: ``digest_shown(approval)`` of the request that your person was shown; needed to approve.
            complete: Whether a request that does not keep all that would be approved can be denied only. Give false
                where your program shows its people all of it by itself.
            answer: A line for the agent whose call is denied, of at most 300 characters; only with a denial.
        """
        body: dict[str, Any] = {"approved": approved, "reason": reason, "seen": seen, "complete": complete}
        body |= {"answer": answer} if answer else {}
        reply = await self.connection.post("v1", "approvals", id, "votes", body=body, once=False)
        return self._read_approval(reply, id)

    def _read_approval(self, reply: object, approval_id: str) -> Approval:
        """Read a reply that is about one request; raises ``ServerError`` where it is about another one."""
        approval = read_answer(_read_one_approval, reply, self.connection.url, "approval")
        if approval.id != approval_id:
            url = self.connection.url
            raise ServerError(f"{url} answered about another approval than was asked about, so the answer is not used")
        return approval

    list_sync = make_sync_method(list)  # noqa: A003 - the method above

    get_sync = make_sync_method(get)

    decide_sync = make_sync_method(decide)


def _read_approvals(reply: Mapping[str, Any]) -> tuple[Approval, ...]:
    """Read the reply with a list of requests."""
    return tuple([Approval.from_dict(row) for row in reply["approvals"]])


def _read_one_approval(reply: Mapping[str, Any]) -> Approval:
    """Read the reply with one request."""
    # ``shown``, the server's digest of the request, is dropped: a voter computes the digest of what was received.
    return Approval.from_dict({name: value for name, value in reply.items() if name != "shown"})
