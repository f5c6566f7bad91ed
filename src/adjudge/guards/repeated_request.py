"""Repeated requests: a gate held one back for people, and a web client or an agent's harness sends it again.

The repeated request is not judged again. It is compared with the one that was held back, and once people have approved
that, the approval is used in one transaction with the ledger's entry. This is for programs with a gate; how the server
answers a repeated ``Idempotency-Key`` is in ``server/idempotency.py``.
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
    """The outcome of a request that was sent again.

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

    With ``asks_always`` people are also asked about a content that the judge passes. Content that the gate blocks is
    still blocked.
    """
    check = gate._begin_check({"task": task}, metadata, request=request, asks_always=asks_always)  # noqa: SLF001 - Gate.check has no request
    return await check.run(content)


def can_repeat(gate: Gate) -> bool:
    """Return whether this gate can hold a request back and resume it: it asks, and its approvals store decisions."""
    return gate.mode != "observe" and gate.asks and gate.pending_store is not None


async def find_repeated(gate: Gate, request: HeldRequest) -> str | None:
    """Return the id of the approval that was asked for a request with this key; ``None`` if there is none.

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

    ``task`` and ``metadata``, if given, are compared with those that people were asked with.

    These checks come before those of ``Check.resume`` in ``gate.py``, in this order:

    1. An approval with this id is stored, and the ledger confirms its pending decision; a store that fails, or a
       decision that is not confirmed, blocks the request, and that is recorded.
    2. The request is the one that was held back: same gate, same method, address, body and caller (or same run and
       call), since an id may be guessed or passed on (``_is_different_request``).
    3. The approval was not used, since it lets one request through. If the gate's terms are still those that people
       were asked under, it is not open any more, and it was given at most ``within`` seconds ago (``None`` is no
       limit), since an old approval is about an old state (``_find_status``). If the terms changed, ``Check.resume``
       blocks.
    """
    if gate.pending_store is None:
        return Repetition(status="unknown")
    stored, error = await call_safely(gate.pending_store.pending, approval_id)
    if isinstance(error, UsageError):  # there is no approval with this id
        return Repetition(status="unknown")
    if error is not None:
        logger.error("gate %r: a held request could not be resumed: %s", gate.name, type(error).__name__)
        return Repetition(status="blocked", decision=await gate.refuse(f"{type(error).__name__}: {error}"))
    if stored is None or _is_different_request(gate, stored, request, content):
        return Repetition(status="unknown")
    return await _resume_stored(gate, stored, within, {"content": content, "task": task, "metadata": metadata})


def _is_different_request(gate: Gate, stored: PendingDecision, request: HeldRequest, content: object) -> bool:
    """Return whether this is another request than the one that was held back; only the log says what differs."""
    pending = stored.decision
    differences = ["gate"] if pending.gate != gate.name else []
    differences += request.list_differences(pending.basis.get(request.kind))
    # Equal bytes and headers have the same content, unless another version of adjudge read them when it held them back.
    if not differences and _digest_content(content) != pending.subject:
        differences.append("content")
    if differences:
        parts = ", ".join(differences)
        logger.warning("gate %r: a request named approval %s of another one (%s)", gate.name, stored.approval.id, parts)
    return bool(differences)


def _digest_content(content: object) -> str | None:
    """Digest a content; ``None`` for one that cannot be read."""
    try:
        return digest_text(content_text(content))
    except AdjudgeError:  # unreadable content is never held back
        return None


async def _resume_stored(
    gate: Gate, stored: PendingDecision, within: float | None, contents: Mapping[str, Any]
) -> Repetition:
    """Resume the decision of the same request, or return at once if its approval cannot be used now.

    ``contents`` are the content, task and metadata of the repeated request, which ``Gate.resume`` compares.
    """
    pending = stored.decision
    # If the gate's terms changed, not even a later approval could be used, so the client is told without waiting.
    is_changed = gate._begin_check({}, pending.metadata)._find_changed_terms(pending) is not None  # noqa: SLF001 - as resume asks
    early_status = _find_status(stored, within, changed=is_changed)
    if early_status is not None:
        return Repetition(status=early_status, approval_id=stored.approval.id, decision=pending)
    decision = await gate.resume(pending, **contents)
    status = "allowed" if decision.allowed else "changed" if is_changed else await _explain_blocked(gate, stored)
    return Repetition(status=status, approval_id=stored.approval.id, decision=decision)


def _find_status(stored: PendingDecision, within: float | None, *, changed: bool) -> RepetitionStatus | None:
    """Return the status of a request that cannot be resumed now; ``None`` if ``Gate.resume`` has to decide.

    ``changed`` says that the gate's terms changed since people were asked; then ``Gate.resume`` blocks.
    """
    if stored.used_at is not None:
        return "used"
    if changed:
        return None
    if stored.approval.status == "open":
        return "waiting"
    seconds_since = stored.answered_for
    # An approval of unknown age counts as too old.
    is_late = within is not None and (seconds_since is None or not seconds_since <= within)
    return "expired" if stored.approval.status == "approved" and is_late else None


async def _explain_blocked(gate: Gate, stored: PendingDecision) -> RepetitionStatus:
    """Return the status of an approved or denied request that the gate blocked, though its terms are unchanged."""
    if stored.approval.status == "denied":
        return "expired" if stored.approval.decided_by == "policy" else "denied"
    if gate.pending_store is None:
        return "blocked"
    # Another client may have used the approval meanwhile.
    reloaded, _ = await call_safely(gate.pending_store.pending, stored.approval.id)
    return "used" if reloaded is not None and reloaded.used_at is not None else "blocked"
