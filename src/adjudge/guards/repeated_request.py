"""A repeated request: one that a gate held back for a person, sent again by a web client or an agent's harness.

It is not judged again. It is compared with what was held back, and once people have approved it, its approval is used
in one transaction with the ledger's entry. This is for programs with a gate; how the server answers a repeated
``Idempotency-Key`` is in ``server/idempotency.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from adjudge.content import content_text, digest_text
from adjudge.errors import AdjudgeError, UsageError
from adjudge.guards.approval.pending_decisions import PendingDecision
from adjudge.guards.decision import Decision
from adjudge.guards.gate import Gate
from adjudge.guards.held_request import HeldRequest
from adjudge.hooks import call_safely, logger

RepetitionStatus = Literal["allowed", "waiting", "denied", "expired", "changed", "used", "blocked", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repetition:
    """The fate of a request that was sent again.

    ``unknown``: there is no approval with this id, or it belongs to another caller, gate, method, address or body. The
    client must not learn which.
    """

    status: RepetitionStatus
    approval_id: str | None = None
    decision: Decision | None = None
    """The pending decision, or the one that replaced it."""


async def check_request(
    gate: Gate,
    content: object,
    request: HeldRequest,
    metadata: Mapping[str, Any],
    *,
    task: object = None,
    asks_always: bool = False,
) -> Decision:
    """Check the content of a request; if people are asked, their approval is bound to this request.

    With ``asks_always`` people are asked about what the judge passes too; what is blocked is blocked.
    """
    check = gate._begin_check({"task": task}, metadata, request=request, asks_always=asks_always)  # noqa: SLF001 - check, with what is sent
    return await check.run(content)


def can_repeat(gate: Gate) -> bool:
    """Return whether a request that this gate holds back can be sent again: its approvals store pending decisions."""
    return gate.mode != "observe" and gate.asks and gate.pending_store is not None


async def find_repeated(gate: Gate, request: HeldRequest) -> str | None:
    """Return the id of the approval that the request's key belongs to, if any.

    Raises what the store raises.
    """
    key = request.digest_key(gate.name)
    return None if key is None or gate.pending_store is None else await gate.pending_store.find_pending(key)


async def repeat_request(
    gate: Gate,
    approval_id: str,
    request: HeldRequest,
    content: object,
    *,
    within: float | None,
    task: object = ...,
    metadata: Mapping[str, Any] | None = None,
) -> Repetition:
    """Resume a request that was held back, if it is the same request and was approved; ``content`` is its body.

    ``task`` and ``metadata`` are compared with those that people were asked with, where they are given.

    These checks come before those of ``Check.resume`` in ``gate.py``, in this order:

    1. An approval with this id is stored, and the ledger confirms its pending decision; a store that fails, or a
       decision that is not confirmed, blocks the request, and that is recorded.
    2. The request is the one that was held back: same gate, same method, address, body and caller (or same run and
       call), since an id may be guessed or passed on (``_is_other``).
    3. The approval was not used, since it is good for one request. Where the gate's terms are still those that people
       were asked under, it is not open any more, and it was given at most ``within`` seconds ago (``None`` is no
       limit), since an old yes is about an old state (``_find_status``). Where they changed, ``Check.resume`` blocks.
    """
    if gate.pending_store is None:
        return Repetition(status="unknown")
    stored, error = await call_safely(gate.pending_store.pending, approval_id)
    if isinstance(error, UsageError):  # there is none
        return Repetition(status="unknown")
    if error is not None:
        logger.error("gate %r: a held request could not be resumed: %s", gate.name, type(error).__name__)
        return Repetition(status="blocked", decision=await gate.refuse(f"{type(error).__name__}: {error}"))
    if stored is None or _is_other(gate, stored, request, content):
        return Repetition(status="unknown")
    return await _resume(gate, stored, within, {"content": content, "task": task, "metadata": metadata})


def _is_other(gate: Gate, stored: PendingDecision, request: HeldRequest, content: object) -> bool:
    """Return whether this is another request than the one that was held back; only the log says what differs."""
    pending = stored.decision
    different = ["gate"] * (pending.gate != gate.name) + request.list_differences(pending.basis.get(request.kind))
    # The same bytes and headers are read alike, unless another version of adjudge held them back.
    different += ["content"] * (not different and _digest(content) != pending.subject)
    if different:
        parts = ", ".join(different)
        logger.warning("gate %r: a request named approval %s of another one (%s)", gate.name, stored.approval.id, parts)
    return bool(different)


def _digest(content: object) -> str | None:
    try:
        return digest_text(content_text(content))
    except AdjudgeError:  # unreadable content is never held back
        return None


async def _resume(gate: Gate, stored: PendingDecision, within: float | None, present: Mapping[str, Any]) -> Repetition:
    """Resume the decision of the same request, or return at once where its approval cannot be used now."""
    pending = stored.decision
    # Tell the client at once: an approval that is still to come could not be used either.
    is_changed = gate._begin_check({}, pending.metadata)._find_changed_terms(pending) is not None  # noqa: SLF001 - as resume asks
    early_status = _find_status(stored, within, changed=is_changed)
    if early_status is not None:
        return Repetition(status=early_status, approval_id=stored.approval.id, decision=pending)
    decision = await gate.resume(pending, **present)
    status = "allowed" if decision.allowed else "changed" if is_changed else await _explain_blocked(gate, stored)
    return Repetition(status=status, approval_id=stored.approval.id, decision=decision)


def _find_status(stored: PendingDecision, within: float | None, *, changed: bool) -> RepetitionStatus | None:
    """Return the status if there is nothing to resume; ``None`` if the gate has to decide."""
    if stored.used_at is not None:
        return "used"
    if changed:
        return None
    if stored.approval.status == "open":
        return "waiting"
    # Without a number nobody knows how old the approval is, so it counts as too old.
    is_late = within is not None and not (stored.answered_for is not None and stored.answered_for <= within)
    return "expired" if stored.approval.status == "approved" and is_late else None


async def _explain_blocked(gate: Gate, stored: PendingDecision) -> RepetitionStatus:
    """Return why an approved or denied request was blocked, given that the gate has not changed."""
    if stored.approval.status == "denied":
        return "expired" if stored.approval.decided_by == "policy" else "denied"
    if gate.pending_store is None:
        return "blocked"
    again, _ = await call_safely(gate.pending_store.pending, stored.approval.id)  # another client may have been faster
    return "used" if again is not None and again.used_at is not None else "blocked"
