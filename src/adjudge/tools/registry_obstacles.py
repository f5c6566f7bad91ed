"""The reasons for which a tool may not run, or finds no room; pure functions of what a registry knows.

Each function names the first thing that stands in the way, or returns ``None``. Nothing here waits, asks or writes.
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
        return explain_status(record)
    # Whole names are compared, never parts: a session called s1 is not the beginning of s10, and "" is nobody's.
    is_of_agent = agent == record.tool.agent
    is_of_session = is_of_agent and session == record.tool.session
    in_scope = {"session": is_of_session, "agent": is_of_agent, "shared": True}[record.tier]
    if not in_scope:
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


def find_claim_obstacle(record: ToolRecord, now: datetime) -> Obstacle | None:
    """Find out whether somebody else is having the tool reviewed."""
    if record.claim is None or now >= record.claim.until:
        return None
    return Obstacle(because="busy", detail=f"{describe_tool(record)} is being reviewed already")


def explain_status(record: ToolRecord) -> Obstacle:
    """Explain why a tool that is not active does not run."""
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
    """Find the cap that leaves no room for a tool, its session's or its agent's."""
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


def describe_tool(record: ToolRecord) -> str:
    """Name a tool in a sentence."""
    return f"the tool {show(record.name)} ({record.id})"
