"""The reasons for which a tool may not run, or finds no room; pure functions of what a registry knows.

Each function returns the first obstacle, or ``None`` without one. Nothing here waits, asks or writes.
The obstacles to a promotion are in ``promotion.py``, and the faults of a candidate in ``candidate_check.py``
(``find_fault``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from adjudge.errors import ToolRefused
from adjudge.formats.text import show
from adjudge.tools.record import ToolRecord, ToolSummary
from adjudge.tools.tool import ToolCandidate, tool_digest

Because = Literal[
    "unknown", "unreviewed", "demoted", "changed", "removed", "scope", "arguments",
    "session_cap", "agent_cap", "name", "tier", "approver", "already", "usage", "cool_down", "busy",
    "rejected", "sandbox", "empty", "untested",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryLimits:
    """The limits of a registry, as ``ToolRegistry`` describes them."""

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
        """Make the exception that refuses a tool for this reason."""
        return ToolRefused(self.detail, because=self.because)


def find_use_obstacle(
    record: ToolRecord, *, agent: str, session: str, candidate: ToolCandidate | None = None
) -> Obstacle | None:
    """Find the reason why a tool may not run for an agent in a session; ``None`` without one.

    ``candidate`` is what the caller is about to run, if it wants that to be compared with the reviewed candidate.
    """
    if record.status != "active":
        return explain_status(record)
    # Names are compared as a whole: the session s10 may not use tools of the session s1.
    is_of_agent = agent == record.tool.agent
    is_of_session = is_of_agent and session == record.tool.session
    may_use = {"session": is_of_session, "agent": is_of_agent, "shared": True}[record.tier]
    if not may_use:
        owner = "session" if record.tier == "session" else "agent"
        return Obstacle(because="scope", detail=f"{describe_tool(record)} belongs to another {owner}; it is not shared")
    if candidate is not None and tool_digest(candidate) != record.digest:
        return Obstacle(
            because="changed",
            detail=f"{describe_tool(record)} was reviewed as something else; have it reviewed again",
        )
    return None


def find_room_obstacle(
    summary: ToolSummary, neighbours: Iterable[ToolSummary], limits: RegistryLimits, now: datetime
) -> Obstacle | None:
    """Find the reason why a registry has no room for a tool; ``None`` without one.

    Its code may have been demoted under another id, a cap may be full, or its name taken where it would be used.
    ``neighbours`` are the summaries of all tools that can matter for that.
    """
    others = [other for other in neighbours if other.id != summary.id]
    if any(other.status == "demoted" and other.digest == summary.digest for other in others):
        return Obstacle(because="demoted", detail=f"what {show(summary.name)} does was demoted, under another id")
    present = [other for other in others if other.status != "demoted"]
    cap_obstacle = _find_cap_obstacle(summary, present, limits, now)
    if cap_obstacle is not None:
        return cap_obstacle
    same_named = [other for other in present if other.name == summary.name and _is_usable_beside(other, summary)]
    if same_named:
        # With two tools of one name, somebody who asks for the reviewed one could be given the other.
        return Obstacle(
            because="name", detail=f"there is a tool {show(summary.name)} there already: {same_named[0].id}"
        )
    return None


def find_claim_obstacle(record: ToolRecord, now: datetime) -> Obstacle | None:
    """Return the obstacle that another review of a tool is under way; ``None`` if none is."""
    if record.claim is None or now >= record.claim.until:
        return None
    return Obstacle(because="busy", detail=f"{describe_tool(record)} is being reviewed already")


def explain_status(record: ToolRecord) -> Obstacle:
    """Return the obstacle that a tool is not active: it is demoted, or not reviewed."""
    if record.status == "demoted":
        return Obstacle(
            because="demoted", detail=f"{describe_tool(record)} is demoted and does not run: {record.reason}"
        )
    return Obstacle(
        because="unreviewed", detail=f"{describe_tool(record)} has no review of what it is now; have it reviewed"
    )


def _find_cap_obstacle(
    summary: ToolSummary, present: list[ToolSummary], limits: RegistryLimits, now: datetime
) -> Obstacle | None:
    """Return the obstacle that the session of a tool, or its agent, has as many tools as it may have; else ``None``."""
    if summary.tier == "session":
        count = sum(other.tier == "session" and other.session == summary.session for other in present)
        if count >= limits.session_cap:
            return Obstacle(
                because="session_cap", detail=f"the session has {count} tools, and may have {limits.session_cap}"
            )
    if summary.tier == "agent":
        count = sum(other.agent == summary.agent and _counts_for_agent_cap(other, now) for other in present)
        if count >= limits.agent_cap:
            return Obstacle(
                because="agent_cap",
                detail=f"the agent has {count} tools, those under review included, and may have {limits.agent_cap}",
            )
    return None


def _counts_for_agent_cap(tool: ToolSummary, now: datetime) -> bool:
    """Return whether a tool counts for the cap of its agent: it has that tier, or is under review for it."""
    # A tool under review counts too: else its panel might be paid for, and there be no room for the tool afterwards.
    may_be_promoted = tool.tier == "session" and tool.status == "active"
    is_claimed = tool.claimed_until is not None and now < tool.claimed_until
    return tool.tier == "agent" or (may_be_promoted and is_claimed)


def _is_usable_beside(other: ToolSummary, summary: ToolSummary) -> bool:
    """Return whether somebody who may use a tool with this ``summary`` may use the ``other`` tool too."""
    if other.tier == "shared":
        return True
    if other.tier == "agent":
        return summary.tier != "shared" and other.agent == summary.agent
    return summary.tier == "session" and other.session == summary.session


def describe_tool(record: ToolRecord) -> str:
    """Name a tool in a message, by its name and its id."""
    return f"the tool {show(record.name)} ({record.id})"
