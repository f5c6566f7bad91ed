"""Decisions on who may do what with a tool, and why not; pure functions of what a registry knows.

Each function names the first thing that stands in the way, or returns ``None``. Nothing here waits, asks or writes, so
what is decided for a registry in memory is decided for one in a database. What a panel says of a promotion is asked in
``review.py`` (``review_promotion``) and counted in ``lifecycle.py`` (``end_promotion``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from adjudge.errors import ToolRefused
from adjudge.formats.numbers import format_apart
from adjudge.formats.text import show
from adjudge.tools.record import ToolRecord, ToolSummary
from adjudge.tools.tool import TIERS, ToolCandidate, ToolTier, tool_digest


def is_near(summary: ToolSummary, other: ToolSummary) -> bool:
    """Return whether another tool can matter for the caps and names of this one; a store may return more than these."""
    return other.id != summary.id and (
        other.session == summary.session or other.agent == summary.agent or other.name == summary.name
        or other.digest == summary.digest
    )  # fmt: skip


Because = Literal[
    "unknown", "unreviewed", "demoted", "changed", "removed", "scope", "arguments",
    "session_cap", "agent_cap", "name", "tier", "approver", "already", "usage", "cool_down", "busy",
    "rejected", "sandbox", "empty", "untested",
]  # fmt: skip


COOL_USES, COOL_SECONDS = 10, 600.0
"""Uses and seconds that have to pass, both of them, after the first refusal of a promotion; twice as many after each
further one."""


_MOST_DOUBLINGS = 20
"""After this many nobody waits any more, and a date must stay one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionLimits:
    """The numbers of a registry."""

    session_cap: int = 10
    agent_cap: int = 50
    min_uses: int = 5
    min_success_rate: float = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """The reason why something is refused, in a word and in a sentence."""

    because: Because
    detail: str

    def make_error(self) -> ToolRefused:
        """Make an exception of it."""
        return ToolRefused(self.detail, because=self.because)


def find_use_obstacle(
    record: ToolRecord, *, agent: str, session: str, candidate: ToolCandidate | None = None
) -> Obstacle | None:
    """Find out why a tool may not run for an agent in a session, or as a candidate that a caller holds."""
    if record.status != "active":
        return _explain_status(record)
    # Whole names are compared, never parts: a session called s1 is not the beginning of s10, and "" is nobody's.
    is_of_agent = agent == record.tool.agent
    is_of_session = is_of_agent and session == record.tool.session
    in_scope = {"session": is_of_session, "agent": is_of_agent, "shared": True}[record.tier]
    if not in_scope:
        owner = "session" if record.tier == "session" else "agent"
        return Obstacle(because="scope", detail=f"{_describe(record)} belongs to another {owner}; it is not shared")
    if candidate is not None and tool_digest(candidate) != record.digest:
        return Obstacle(
            because="changed",
            detail=f"{_describe(record)} was reviewed as something else; have it reviewed again",
        )
    return None


def find_room_obstacle(
    summary: ToolSummary, neighbours: Iterable[ToolSummary], limits: PromotionLimits, now: datetime
) -> Obstacle | None:
    """Find out why the other tools leave no room for this one: caps, names, and what was demoted."""
    others = [other for other in neighbours if other.id != summary.id]
    if any(other.status == "demoted" and other.digest == summary.digest for other in others):
        return Obstacle(because="demoted", detail=f"what {show(summary.name)} does was demoted, under another id")
    present = [other for other in others if other.status != "demoted"]
    full = _find_cap_obstacle(summary, present, limits, now)
    if full is not None:
        return full
    visible = [other for other in present if other.name == summary.name and _is_visible(other, summary)]
    if visible:
        # Two tools of one name in one place: whoever asks for the reviewed one could be given the other.
        return Obstacle(because="name", detail=f"there is a tool {show(summary.name)} there already: {visible[0].id}")
    return None


def find_promotion_obstacle(
    record: ToolRecord,
    to: ToolTier,
    *,
    approved_by: str | None,
    neighbours: Iterable[ToolSummary],
    limits: PromotionLimits,
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
    """Make the summary that a tool would have on a tier."""
    tool = record.tool
    return ToolSummary(
        id=tool.id,
        name=record.name,
        tier=to,
        status="active",
        agent=tool.agent,
        session=tool.session,
        digest=tool.digest,
    )


def find_claim_obstacle(record: ToolRecord, now: datetime) -> Obstacle | None:
    """Find out whether somebody else is having the tool reviewed."""
    if record.claim is None or now >= record.claim.until:
        return None
    return Obstacle(because="busy", detail=f"{_describe(record)} is being reviewed already")


def compute_cool_down(refusals: int) -> tuple[int, timedelta]:
    """Compute how many uses and how much time have to pass after so many refusals."""
    if refusals < 1:
        return 0, timedelta()
    factor = 2 ** min(refusals - 1, _MOST_DOUBLINGS)
    return COOL_USES * factor, timedelta(seconds=COOL_SECONDS * factor)


def _find_step_obstacle(record: ToolRecord, to: ToolTier, approved_by: str | None) -> Obstacle | None:
    if record.status != "active":
        return _explain_status(record)
    if to == record.tier:
        return Obstacle(because="already", detail=f"{_describe(record)} has the tier {to} already")
    if TIERS.index(to) != TIERS.index(record.tier) + 1:
        return Obstacle(
            because="tier",
            detail=f"{_describe(record)} rises one tier at a time, and {to} does not follow {record.tier}",
        )
    if to == "shared" and approved_by is None:
        return Obstacle(
            because="approver", detail=f"{_describe(record)} is shared only when somebody approves it by name"
        )
    return None


def _find_usage_obstacle(record: ToolRecord, limits: PromotionLimits) -> Obstacle | None:
    usage = record.tool.usage
    uses, rate = (usage.uses, usage.success_rate) if usage is not None else (0, 0.0)
    if uses >= limits.min_uses and rate >= limits.min_success_rate:
        return None
    shown, needed = format_apart(rate, limits.min_success_rate)
    return Obstacle(
        because="usage",
        detail=f"{_describe(record)} has {uses} uses with a success rate of {shown}, and needs {limits.min_uses} with "
        f"{needed}",
    )


def _find_cooling_obstacle(record: ToolRecord, now: datetime) -> Obstacle | None:
    uses, pause = compute_cool_down(record.cooling.refusals)
    uses_left = max(0, uses - record.cooling.uses)
    # Both have to pass: uses alone can be made up in a second, and time alone passes without any evidence.
    time_left = (record.cooling.since + pause - now) if record.cooling.since is not None else timedelta()
    if uses_left == 0 and time_left <= timedelta():
        return None
    seconds = max(0.0, time_left.total_seconds())
    return Obstacle(
        because="cool_down",
        detail=f"{_describe(record)} was refused and cools down: {uses_left} more uses and {seconds:.0f} more seconds",
    )


def _find_cap_obstacle(
    summary: ToolSummary, present: list[ToolSummary], limits: PromotionLimits, now: datetime
) -> Obstacle | None:
    if summary.tier == "session":
        count = sum(other.tier == "session" and other.session == summary.session for other in present)
        if count >= limits.session_cap:
            return Obstacle(
                because="session_cap", detail=f"the session has {count} tools, and may have {limits.session_cap}"
            )
    if summary.tier == "agent":
        count = sum(other.agent == summary.agent and _takes_agent_place(other, now) for other in present)
        if count >= limits.agent_cap:
            return Obstacle(
                because="agent_cap",
                detail=f"the agent has {count} tools, those under review included, and may have {limits.agent_cap}",
            )
    return None


def _takes_agent_place(tool: ToolSummary, now: datetime) -> bool:
    # One whose panel is asked right now counts: else a panel would be paid for, and its tool find no place.
    rising = tool.tier == "session" and tool.status == "active"
    return tool.tier == "agent" or (rising and tool.claimed_until is not None and now < tool.claimed_until)


def _is_visible(other: ToolSummary, summary: ToolSummary) -> bool:
    """Return whether another tool can be used where this one would be."""
    if other.tier == "shared":
        return True
    if other.tier == "agent":
        return summary.tier != "shared" and other.agent == summary.agent
    return summary.tier == "session" and other.session == summary.session


def _explain_status(record: ToolRecord) -> Obstacle:
    if record.status == "demoted":
        return Obstacle(because="demoted", detail=f"{_describe(record)} is demoted and does not run: {record.reason}")
    return Obstacle(
        because="unreviewed", detail=f"{_describe(record)} has no review of what it is now; have it reviewed"
    )


def _describe(record: ToolRecord) -> str:
    return f"the tool {show(record.name)} ({record.id})"
