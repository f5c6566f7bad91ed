"""Who may do what with a tool, and why not: pure decisions over what a registry knows.

Each function names the first thing that stands in the way, or returns ``None``. Nothing here waits, asks or writes, so
what is decided for a registry in memory is decided for one in a database. What a panel says of a promotion is asked in
``review.py`` (``review_promotion``) and counted in ``lifecycle.py`` (``end_rise``).
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


def is_near(card: ToolSummary, other: ToolSummary) -> bool:
    """Whether another tool can matter for the caps and names of this one; a store may hand over more than these."""
    return other.id != card.id and (
        other.session == card.session or other.agent == card.agent or other.name == card.name
        or other.digest == card.digest
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
    """What stands in the way, in a word and in a sentence."""

    because: Because
    detail: str

    def make_error(self) -> ToolRefused:
        """The same as an exception."""
        return ToolRefused(self.detail, because=self.because)


def find_use_obstacle(
    record: ToolRecord, *, agent: str, session: str, candidate: ToolCandidate | None = None
) -> Obstacle | None:
    """Why a tool may not run there, or as what somebody else holds for it."""
    if record.status != "active":
        return _explain_status(record)
    # Whole names are compared, never parts: a session called s1 is not the beginning of s10, and "" is nobody's.
    own = (record.tool.agent, record.tool.session)
    here = {"session": (agent, session) == own, "agent": agent == own[0], "shared": True}[record.tier]
    if not here:
        what = "session" if record.tier == "session" else "agent"
        return Obstacle(because="scope", detail=f"{_name(record)} belongs to another {what}; it is not shared")
    if candidate is not None and tool_digest(candidate) != record.digest:
        return Obstacle(
            because="changed", detail=f"{_name(record)} was reviewed as something else; update() has it reviewed again"
        )
    return None


def find_room_obstacle(
    card: ToolSummary, near: Iterable[ToolSummary], limits: PromotionLimits, now: datetime
) -> Obstacle | None:
    """Why a tool may not be what its card says, for what else is there: caps, names, and what was demoted."""
    others = [item for item in near if item.id != card.id]
    if any(item.status == "demoted" and item.digest == card.digest for item in others):
        return Obstacle(because="demoted", detail=f"what {show(card.name)} does was demoted, under another id")
    present = [item for item in others if item.status != "demoted"]
    full = _find_full(card, present, limits, now)
    if full is not None:
        return full
    visible = [item for item in present if item.name == card.name and _is_seen(item, card)]
    if visible:
        # Two tools of one name in one place: whoever asks for the reviewed one could be given the other.
        return Obstacle(because="name", detail=f"there is a tool {show(card.name)} there already: {visible[0].id}")
    return None


def find_promotion_obstacle(
    record: ToolRecord,
    to: ToolTier,
    *,
    approved_by: str | None,
    near: Iterable[ToolSummary],
    limits: PromotionLimits,
    now: datetime,
) -> Obstacle | None:
    """Why a tool may not be put before the panel now; where something is to be mended first, that comes first."""
    return (
        _find_step_fault(record, to, approved_by)
        or find_room_obstacle(make_raised_summary(record, to), near, limits, now)
        or _find_usage_fault(record, limits)
        or _find_cooling(record, now)
        or find_claim(record, now)
    )


def make_raised_summary(record: ToolRecord, to: ToolTier) -> ToolSummary:
    """What a tool's card would say on that tier."""
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


def find_claim(record: ToolRecord, now: datetime) -> Obstacle | None:
    """That somebody else is having the tool reviewed."""
    if record.claim is None or now >= record.claim.until:
        return None
    return Obstacle(because="busy", detail=f"{_name(record)} is being reviewed already")


def cool_down(refusals: int) -> tuple[int, timedelta]:
    """How many uses and how much time have to pass after so many refusals."""
    if refusals < 1:
        return 0, timedelta()
    factor = 2 ** min(refusals - 1, _MOST_DOUBLINGS)
    return COOL_USES * factor, timedelta(seconds=COOL_SECONDS * factor)


def _find_step_fault(record: ToolRecord, to: ToolTier, approved_by: str | None) -> Obstacle | None:
    if record.status != "active":
        return _explain_status(record)
    if to == record.tier:
        return Obstacle(because="already", detail=f"{_name(record)} has the tier {to} already")
    if TIERS.index(to) != TIERS.index(record.tier) + 1:
        return Obstacle(
            because="tier", detail=f"{_name(record)} rises one tier at a time, and {to} does not follow {record.tier}"
        )
    if to == "shared" and approved_by is None:
        return Obstacle(
            because="approver", detail=f"{_name(record)} is shared only when somebody approves it: approved_by="
        )
    return None


def _find_usage_fault(record: ToolRecord, limits: PromotionLimits) -> Obstacle | None:
    usage = record.tool.usage
    uses, rate = (usage.uses, usage.success_rate) if usage is not None else (0, 0.0)
    if uses >= limits.min_uses and rate >= limits.min_success_rate:
        return None
    shown, needed = format_apart(rate, limits.min_success_rate)
    return Obstacle(
        because="usage",
        detail=f"{_name(record)} has {uses} uses with a success rate of {shown}, and needs {limits.min_uses} with "
        f"{needed}",
    )


def _find_cooling(record: ToolRecord, now: datetime) -> Obstacle | None:
    uses, pause = cool_down(record.cooling.refusals)
    left = max(0, uses - record.cooling.uses)
    # Both have to pass: uses alone can be made up in a second, and time alone passes without any evidence.
    rest = (record.cooling.since + pause - now) if record.cooling.since is not None else timedelta()
    if left == 0 and rest <= timedelta():
        return None
    seconds = max(0.0, rest.total_seconds())
    return Obstacle(
        because="cool_down",
        detail=f"{_name(record)} was refused and cools down: {left} more uses and {seconds:.0f} more seconds",
    )


def _find_full(
    card: ToolSummary, present: list[ToolSummary], limits: PromotionLimits, now: datetime
) -> Obstacle | None:
    if card.tier == "session":
        there = sum(item.tier == "session" and item.session == card.session for item in present)
        if there >= limits.session_cap:
            return Obstacle(
                because="session_cap", detail=f"the session has {there} tools, and may have {limits.session_cap}"
            )
    if card.tier == "agent":
        there = sum(item.agent == card.agent and _takes_agent_place(item, now) for item in present)
        if there >= limits.agent_cap:
            return Obstacle(
                because="agent_cap",
                detail=f"the agent has {there} tools, those under review included, and may have {limits.agent_cap}",
            )
    return None


def _takes_agent_place(item: ToolSummary, now: datetime) -> bool:
    # One whose panel is asked right now counts: else a panel would be paid for, and its tool find no place.
    rising = item.tier == "session" and item.status == "active"
    return item.tier == "agent" or (rising and item.claimed_until is not None and now < item.claimed_until)


def _is_seen(item: ToolSummary, card: ToolSummary) -> bool:
    """Whether another tool is in reach where this one comes to be."""
    if item.tier == "shared":
        return True
    if item.tier == "agent":
        return card.tier != "shared" and item.agent == card.agent
    return card.tier == "session" and item.session == card.session


def _explain_status(record: ToolRecord) -> Obstacle:
    if record.status == "demoted":
        return Obstacle(because="demoted", detail=f"{_name(record)} is demoted and does not run: {record.reason}")
    return Obstacle(
        because="unreviewed", detail=f"{_name(record)} has no review of what it is now; review() has it reviewed"
    )


def _name(record: ToolRecord) -> str:
    return f"the tool {show(record.name)} ({record.id})"
