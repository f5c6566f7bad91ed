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
from adjudge.formats.numbers import format_distinct
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
"""The most times that the cool-down is doubled: nobody waits longer, and a date has to stay within its range."""


TEMPORARY: tuple[Because, ...] = ("already", "usage", "cool_down", "busy")
"""Obstacles that go away by waiting, or by using the tool more. They are outcomes; any other obstacle is raised."""


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
    """Make the result of ``ToolRegistry.promote`` from the outcome of a transaction."""
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
    """Claim a tool for the review of its promotion, if it may be reviewed now.

    An obstacle that goes away by itself is in the outcome. Raises ``ToolRefused`` for any other.
    """
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
    """Ask the panel for its verdict on a tool that is claimed for so many seconds; a late verdict is a rejection.

    Raises ``UsageError`` if the panel returns no verdict on this tool.
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
    """Write the verdict of the panel, and promote the tool if it is approved; all of that is written, or nothing.

    The tool keeps its tier if it changed meanwhile, the panel rejects it, the review took longer than its claim, or an
    obstacle arose during the review.
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
    """Find an obstacle to a promotion that arose while the panel was asked; ``None`` without one.

    Uses, success rate, cool-down and claim are left out, because they were checked before the panel was asked.
    """
    neighbours = transaction.view.list_neighbours(make_raised_summary(record, to))
    unlimited = replace(transaction.limits, min_uses=0, min_success_rate=0.0)
    without_cooldown = replace(record, cooling=Cooldown(), claim=None)
    return find_promotion_obstacle(
        without_cooldown, to, approved_by=approved_by, neighbours=neighbours, limits=unlimited, now=transaction.now
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
    """Find the first reason why a promotion may not be reviewed now; ``None`` without one.

    Reasons that somebody has to mend come before those that go away by themselves.
    """
    return (
        _find_step_obstacle(record, to, approved_by)
        or find_room_obstacle(make_raised_summary(record, to), neighbours, limits, now)
        or _find_usage_obstacle(record, limits)
        or _find_cooling_obstacle(record, now)
        or find_claim_obstacle(record, now)
    )


def make_raised_summary(record: ToolRecord, to: ToolTier) -> ToolSummary:
    """Make the summary that a tool would have after it was promoted to a tier."""
    return replace(make_summary(record), tier=to, status="active", claimed_until=None)


def _find_step_obstacle(record: ToolRecord, to: ToolTier, approved_by: str | None) -> Obstacle | None:
    """Find the reason why a tool cannot be promoted to this tier at all, however well it does; ``None`` without one."""
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
    """Return the obstacle that a tool has too few uses, or too low a success rate; ``None`` if both suffice."""
    usage = record.tool.usage
    uses, rate = (usage.uses, usage.success_rate) if usage is not None else (0, 0.0)
    if uses >= limits.min_uses and rate >= limits.min_success_rate:
        return None
    shown_rate, needed_rate = format_distinct(rate, limits.min_success_rate)
    return Obstacle(
        because="usage",
        detail=f"{describe_tool(record)} has {uses} uses with a success rate of {shown_rate}, and needs "
        f"{limits.min_uses} with {needed_rate}",
    )


def _find_cooling_obstacle(record: ToolRecord, now: datetime) -> Obstacle | None:
    """Return the obstacle that a tool cools down after a refused promotion; ``None`` if that is over."""
    uses, pause = compute_cool_down(record.cooling.refusals)
    uses_left = max(0, uses - record.cooling.uses)
    # Both have to pass: uses can be produced in a second, and time passes without any new evidence.
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
    """Compute how many uses and how much time both have to pass after so many refusals of a promotion."""
    if refusals < 1:
        return 0, timedelta()
    factor = 2 ** min(refusals - 1, _MOST_DOUBLINGS)
    return COOL_USES * factor, timedelta(seconds=COOL_SECONDS * factor)
