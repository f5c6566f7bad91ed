"""The part of approvals that keep a gate's pending decisions, beyond asking people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from adjudge.guards.decision import Asker, Decision

if TYPE_CHECKING:
    from adjudge.guards.approval.approval import Status
    from adjudge.guards.approval.pending_decisions import PendingDecision
    from adjudge.guards.monitor import Monitor


@runtime_checkable
class PendingStore(Asker, Protocol):
    """An asker that stores pending decisions, as ``Approvals`` does: they can be listed, resumed and used once."""

    @property
    def ledger(self) -> Any:
        """The ledger that holds every decision that ``use`` records."""
        ...

    def check_request(self, *, has_content: bool = False, **ask: Any) -> None:
        """Raise ``UsageError`` for arguments that ``request`` would refuse for any content."""
        ...

    async def is_open(self, id: str, /) -> bool:  # noqa: A002 - as in Approvals
        """Return whether people have still to decide a request."""
        ...

    async def pending(self, id: str, /) -> PendingDecision | None:  # noqa: A002 - as in Approvals
        """Return the decision that waits for a request, or ``None``."""
        ...

    async def find_pending(self, key: str, /) -> str | None:
        """Return the request that an idempotency key belongs to, or ``None``."""
        ...

    async def list_pending(
        self, *, gate: str | None = None, status: Status | None = "open"
    ) -> tuple[PendingDecision, ...]:
        """Return the pending decisions that have not been resumed, oldest first."""
        ...

    async def use(self, decision: Decision, /) -> int | None:
        """Record a decision and mark its approval as used, in one transaction; ``None`` if it was used before."""
        ...

    def announce_monitor(self, monitor: Monitor, /) -> None:
        """Notify the webhook, if there is one, of what the audits of a gate show now."""
        ...
