"""Promotion: a tool rises one tier, if it is due, a panel of two reviewers approves, and its tier has room.

``begin_promotion`` claims the tool, ``ask_promotion`` asks the panel (``review.py``), and ``end_promotion`` writes the
verdict, its entry and the new tier in one transaction. ``ToolRegistry.promote`` calls them in this order.

Whether a tool may run at all is decided in ``registry_obstacles.py`` (``find_use_obstacle``), and what a review of it
finds in ``review.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from adjudge.concurrency import Timeout
from adjudge.errors import UsageError
from adjudge.formats.numbers import format_apart
from adjudge.formats.text import show
from adjudge.tools.lifecycle import (
    REVIEW_SHARE,
    Outcome,
    ToolJudge,
    ToolTransaction,
    add_verdict,
    describe_late,
    drop_claim,
    find_expired_claim,
    find_rejection,
)
from adjudge.tools.record import Claim, Cooldown, ToolRecord, ToolSummary, make_summary
from adjudge.tools.registry_obstacles import (
    Because,
    Obstacle,
    RegistryLimits,
    describe_tool,
    explain_status,
    find_claim_obstacle,
    find_room_obstacle,
)
from adjudge.tools.store import make_promoted_entry, make_reviewed_entry
from adjudge.tools.tool import TIERS, EmergentTool, ToolTier
from adjudge.tools.verdict import PromotionVerdict, ReviewVerdict

COOL_USES, COOL_SECONDS = 10, 600.0
"""Uses and seconds that have to pass, both of them, after the first refusal of a promotion; twice as many after each
further one."""


_MOST_DOUBLINGS = 20
"""After this many nobody waits any more, and a date must stay one."""


TEMPORARY: tuple[Because, ...] = ("already", "usage", "cool_down", "busy")
"""Obstacles that go away by waiting or by using the tool more. They are outcomes; any other is an error to mend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """The result of ``promote``; true exactly when the tool was promoted."""

    promoted: bool
    """True if the tool was promoted."""
    record: ToolRecord | None
    """The tool in its current state; ``None`` if it was removed meanwhile."""
    verdict: PromotionVerdict | None = None
    """The panel's verdict; ``None`` if nobody was asked."""
    because: str | None = None
    """The reason for which it was not promoted, in a word: ``usage``, ``cool_down``, ``busy``, ``already``,
    ``rejected``, ``changed``...
    """
    detail: str = ""
    """The same in a sentence; it may quote what the reviewers said."""

    def __bool__(self) -> bool:
        return self.promoted


def make_promotion(outcome: Outcome, verdict: PromotionVerdict | None) -> Promotion:
    """Make the result of ``promote`` from an outcome."""
    obstacle = outcome.obstacle
    return Promotion(
        promoted=obstacle is None and verdict is not None,
        record=outcome.record,
        verdict=verdict,
        because=obstacle.because if obstacle is not None else None,
        detail=obstacle.detail if obstacle is not None else "",
    )


def begin_promotion(
    transaction: ToolTransaction, tool_id: str, to: ToolTier, approved_by: str | None, claim: Claim
) -> Outcome:
    """Claim a tool whose promotion may be reviewed now."""
    record = transaction.find(tool_id)
    neighbours = transaction.view.list_neighbours(make_raised_summary(record, to))
    obstacle = find_promotion_obstacle(
        record, to, approved_by=approved_by, neighbours=neighbours, limits=transaction.limits, now=transaction.now
    )
    if obstacle is None:
        return transaction.claim(record, claim)
    if obstacle.because in TEMPORARY:
        return Outcome(record=record, obstacle=obstacle)
    raise obstacle.make_error()


async def ask_promotion(judge: ToolJudge, tool: EmergentTool, seconds: float) -> PromotionVerdict:
    """Ask for the panel's verdict on a tool; a late one is a rejection.

    Raises ``UsageError`` for what is no verdict on this tool.
    """
    try:
        verdict = await Timeout(seconds * REVIEW_SHARE).run(judge.review_promotion(tool), name="review_promotion")
    except TimeoutError:
        review = ReviewVerdict(approved=False, confidence=0.0, reasoning=describe_late(seconds))
        return PromotionVerdict(
            approved=False, confidence=0.0, safety=review, correctness=review, tool_digest=tool.digest
        )
    if not isinstance(verdict, PromotionVerdict) or verdict.tool_digest != tool.digest:
        raise UsageError(f"review_promotion returns a PromotionVerdict on what it was given, got {show(verdict)}")
    return verdict


def end_promotion(
    transaction: ToolTransaction, reviewed: ToolRecord, to: ToolTier, approved_by: str | None, verdict: PromotionVerdict
) -> Outcome:
    """Write the panel's verdict; the verdict, its entry and the new tier are written together or not at all.

    The tool keeps its tier where something stands in the way: it is not what was reviewed any more, the panel rejects
    it, the review took longer than its claim, or an obstacle arose meanwhile.
    """
    current = transaction.load_reviewed(reviewed, verdict)
    if isinstance(current, Outcome):
        return current
    updated = add_verdict(drop_claim(current, reviewed), verdict)
    rejection = find_rejection(verdict)
    if rejection is not None:
        cooling = Cooldown(refusals=current.cooling.refusals + 1, since=transaction.now)
        updated = replace(updated, cooling=cooling)
    obstacle = (
        rejection or find_expired_claim(current, reviewed) or _find_new_obstacle(transaction, updated, to, approved_by)
    )
    if obstacle is not None:
        transaction.view.save(updated)
        transaction.view.append_entry(make_reviewed_entry(updated, verdict))
        return Outcome(record=updated, obstacle=obstacle)
    shared_by = approved_by if to == "shared" else None
    promoted = replace(updated, tool=replace(updated.tool, tier=to), approved_by=shared_by, cooling=Cooldown())
    transaction.view.save(promoted)
    transaction.view.append_entry(make_promoted_entry(promoted, verdict))
    return Outcome(record=promoted)


def _find_new_obstacle(
    transaction: ToolTransaction, record: ToolRecord, to: ToolTier, approved_by: str | None
) -> Obstacle | None:
    """Find an obstacle that arose while the panel was asked."""
    neighbours = transaction.view.list_neighbours(make_raised_summary(record, to))
    unlimited = replace(transaction.limits, min_uses=0, min_success_rate=0.0)
    rested = replace(record, cooling=Cooldown(), claim=None)
    return find_promotion_obstacle(
        rested, to, approved_by=approved_by, neighbours=neighbours, limits=unlimited, now=transaction.now
    )


# ---------------------------------------------------------------- what stands in the way


def find_promotion_obstacle(
    record: ToolRecord,
    to: ToolTier,
    *,
    approved_by: str | None,
    neighbours: Iterable[ToolSummary],
    limits: RegistryLimits,
    now: datetime,
) -> Obstacle | None:
    """Find out why a promotion may not be reviewed now; an obstacle that somebody has to mend comes first."""
    return (
        _find_step_obstacle(record, to, approved_by)
        or find_room_obstacle(make_raised_summary(record, to), neighbours, limits, now)
        or _find_usage_obstacle(record, limits)
        or _find_cooling_obstacle(record, now)
        or find_claim_obstacle(record, now)
    )


def make_raised_summary(record: ToolRecord, to: ToolTier) -> ToolSummary:
    """Make the summary that a tool would have on a tier, once nobody reviews it any more."""
    return replace(make_summary(record), tier=to, status="active", claimed_until=None)


def _find_step_obstacle(record: ToolRecord, to: ToolTier, approved_by: str | None) -> Obstacle | None:
    """Find why a tool cannot rise to this tier, whatever its uses are."""
    if record.status != "active":
        return explain_status(record)
    if to == record.tier:
        return Obstacle(because="already", detail=f"{describe_tool(record)} has the tier {to} already")
    if TIERS.index(to) != TIERS.index(record.tier) + 1:
        return Obstacle(
            because="tier",
            detail=f"{describe_tool(record)} rises one tier at a time, and {to} does not follow {record.tier}",
        )
    if to == "shared" and approved_by is None:
        return Obstacle(
            because="approver", detail=f"{describe_tool(record)} is shared only when somebody approves it by name"
        )
    return None


def _find_usage_obstacle(record: ToolRecord, limits: RegistryLimits) -> Obstacle | None:
    """Return the obstacle of too few uses or too low a success rate; ``None`` where both suffice."""
    usage = record.tool.usage
    uses, rate = (usage.uses, usage.success_rate) if usage is not None else (0, 0.0)
    if uses >= limits.min_uses and rate >= limits.min_success_rate:
        return None
    shown, needed = format_apart(rate, limits.min_success_rate)
    return Obstacle(
        because="usage",
        detail=f"{describe_tool(record)} has {uses} uses with a success rate of {shown}, and needs {limits.min_uses} "
        f"with {needed}",
    )


def _find_cooling_obstacle(record: ToolRecord, now: datetime) -> Obstacle | None:
    """Return the obstacle of a cool-down after a refused promotion; ``None`` where it is over."""
    uses, pause = compute_cool_down(record.cooling.refusals)
    uses_left = max(0, uses - record.cooling.uses)
    # Both have to pass: uses alone can be made up in a second, and time alone passes without any evidence.
    time_left = (record.cooling.since + pause - now) if record.cooling.since is not None else timedelta()
    if uses_left == 0 and time_left <= timedelta():
        return None
    seconds = max(0.0, time_left.total_seconds())
    return Obstacle(
        because="cool_down",
        detail=f"{describe_tool(record)} was refused and cools down: {uses_left} more uses and {seconds:.0f} more "
        "seconds",
    )


def compute_cool_down(refusals: int) -> tuple[int, timedelta]:
    """Compute how many uses, and how much time, have to pass after so many refusals: both of them."""
    if refusals < 1:
        return 0, timedelta()
    factor = 2 ** min(refusals - 1, _MOST_DOUBLINGS)
    return COOL_USES * factor, timedelta(seconds=COOL_SECONDS * factor)
