"""A repeated web request: one that a gate held back for a person, sent again by its client.

It is not judged again. It is compared with what was held back, and once people have approved it, its approval is used
in one transaction with the ledger's entry. This is for applications with a gate; how the server answers a repeated
``Idempotency-Key`` is in ``server/idempotency.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from adjudge.content import content_text, digest_text
from adjudge.errors import AdjudgeError, UsageError
from adjudge.guards.approval.pending import PendingDecision
from adjudge.guards.decision import Decision
from adjudge.guards.gate import Gate
from adjudge.guards.http_request import HttpRequest
from adjudge.hooks import call_safely, logger

RepetitionStatus = Literal["allowed", "waiting", "denied", "expired", "changed", "used", "blocked", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repetition:
    """What happens to a request that was sent again.

    ``unknown``: there is no approval with this id, or it belongs to another caller, gate, method, address or body. The
    client must not learn which.
    """

    status: RepetitionStatus
    approval_id: str | None = None
    decision: Decision | None = None
    """The pending decision, or the one that replaced it."""


async def check_request(gate: Gate, content: object, request: HttpRequest, metadata: Mapping[str, Any]) -> Decision:
    """Check the content of a request; if people are asked, their approval is bound to this request."""
    return await gate._start({}, metadata, request=request).run(content)  # noqa: SLF001 - check, with what is sent


def can_repeat(gate: Gate) -> bool:
    """Whether a request that this gate holds back can be sent again, because its approvals store pending decisions."""
    keeps = all(callable(getattr(gate.approvals, name, None)) for name in ("pending", "find_pending", "use"))
    return gate.mode == "enforce" and gate.policy.asks and keeps


async def find_repeated(gate: Gate, request: HttpRequest) -> str | None:
    """The id of the approval that this caller's idempotency key belongs to, if any; raises what the store raises."""
    approvals: Any = gate.approvals
    key = request.digest_key(gate.name)
    return None if key is None else await approvals.find_pending(key)


async def repeat_request(
    gate: Gate, ident: str, request: HttpRequest, content: object, *, within: float | None
) -> Repetition:
    """Resume a request that was held back, if it is the same request and was approved; ``content`` is its body.

    ``within`` is the number of seconds after the approval in which it can be resumed; ``None`` is no limit. A store
    that fails, or that the ledger does not confirm, blocks the request, and that decision is recorded.
    """
    approvals: Any = gate.approvals
    stored, error = await call_safely(approvals.pending, ident)
    if isinstance(error, UsageError):  # there is none
        return Repetition(status="unknown")
    if error is not None:
        logger.error("gate %r: a held request could not be resumed: %s", gate.name, type(error).__name__)
        return Repetition(status="blocked", decision=await gate.refuse(f"{type(error).__name__}: {error}"))
    if stored is None or _is_other(gate, stored, request, content):
        return Repetition(status="unknown")
    return await _go_on(gate, stored, within)


def _is_other(gate: Gate, stored: PendingDecision, request: HttpRequest, content: object) -> bool:
    """Whether this is another request than the one that was held back; only the log says which part differs."""
    waits = stored.decision
    differs = ["gate"] * (waits.gate != gate.name) + request.differs(waits.basis.get("http"))
    # The same bytes and headers are read alike, unless another version of adjudge held them back.
    differs += ["content"] * (not differs and _digest(content) != waits.subject)
    if differs:
        said = ", ".join(differs)
        logger.warning("gate %r: a request named approval %s of another one (%s)", gate.name, stored.approval.id, said)
    return bool(differs)


def _digest(content: object) -> str | None:
    try:
        return digest_text(content_text(content))
    except AdjudgeError:  # unreadable content is never held back
        return None


async def _go_on(gate: Gate, stored: PendingDecision, within: float | None) -> Repetition:
    waits = stored.decision
    # Tell the client at once: an approval that is still to come could not be used either.
    changed = gate._start({}, waits.metadata)._find_doubt(waits) is not None  # noqa: SLF001 - as resume asks
    status = _find_status(stored, within, changed=changed)
    if status is not None:
        return Repetition(status=status, approval_id=stored.approval.id, decision=waits)
    decision = await gate.resume(waits)
    status = "allowed" if decision.allowed else "changed" if changed else await _explain_blocked(gate, stored)
    return Repetition(status=status, approval_id=stored.approval.id, decision=decision)


def _find_status(stored: PendingDecision, within: float | None, *, changed: bool) -> RepetitionStatus | None:
    """The status if there is nothing to resume; ``None`` if the gate has to decide."""
    if stored.used_at is not None:
        return "used"
    if changed:
        return None
    if stored.approval.status == "open":
        return "waiting"
    # Without a number nobody knows how old the approval is, so it counts as too old.
    late = within is not None and not (stored.answered_for is not None and stored.answered_for <= within)
    return "expired" if stored.approval.status == "approved" and late else None


async def _explain_blocked(gate: Gate, stored: PendingDecision) -> RepetitionStatus:
    """Why an approved or denied request was blocked, given that the gate has not changed."""
    if stored.approval.status == "denied":
        return "expired" if stored.approval.decided_by == "policy" else "denied"
    approvals: Any = gate.approvals
    again, _ = await call_safely(approvals.pending, stored.approval.id)  # another client may have been faster
    return "used" if isinstance(again, PendingDecision) and again.used_at is not None else "blocked"
