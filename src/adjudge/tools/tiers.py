"""Who may do what with a tool, and why not: pure decisions over what a registry knows.

Each function names the first thing that stands in the way, or returns ``None``. Nothing here waits, asks or writes, so
what is decided for a registry in memory is decided for one in a database.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Literal, Self, get_args

from adjudge.errors import ToolRefused, UsageError
from adjudge.formats.arguments import check_choice, check_whole_number
from adjudge.formats.text import show
from adjudge.tools.tool import TIERS, EmergentTool, ToolCandidate, ToolTier, tool_digest

ToolStatus = Literal["active", "unreviewed", "demoted"]

STATUSES: tuple[ToolStatus, ...] = get_args(ToolStatus)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cooling:
    """What refused promotions have left behind; it stays with the tool's id, whatever the tool is changed to."""

    refusals: int = 0
    """Refusals since the tool last rose."""
    uses: int = 0
    """Uses since the last refusal."""
    since: datetime | None = None
    """When the last refusal was recorded, in aware UTC."""

    def __post_init__(self) -> None:
        for name in ("refusals", "uses"):
            check_whole_number(f"{name} of a tool that cools down", getattr(self, name), least=0)
        if self.refusals and self.since is None:
            raise UsageError("where promotions were refused, the time of the last refusal is known")


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """That somebody is having a tool reviewed right now; it ends by itself, so a killed process blocks nobody."""

    token: str
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRecord:
    """A tool in a registry, and its standing there; a value, so a registry gives a new one after every change."""

    schema: ClassVar[str] = "adjudge/tool-record/1"

    tool: EmergentTool
    status: ToolStatus = "active"
    """``active`` tools run. ``unreviewed`` ones were loaded or changed, ``demoted`` ones taken out of use."""
    registered_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    """Aware UTC."""
    approved_by: str | None = None
    """Who approved that it is shared."""
    reason: str = ""
    """Why it was demoted; empty for any other."""
    cooling: Cooling = field(default_factory=Cooling)
    claim: Claim | None = None

    def __post_init__(self) -> None:
        check_choice("a tool's status", self.status, STATUSES)
        # Held here: whatever a registry of today or tomorrow does, a tier is a review's, and ends with it.
        if self.status != "active" and self.tier != "session":
            raise UsageError(f"a tool that is {self.status} has no tier above session, got {self.tier}")
        if (self.tier == "shared") != (self.approved_by is not None):
            raise UsageError("a tool is shared exactly when somebody approved that by name")

    @property
    def id(self) -> str:
        """The tool's id."""
        return self.tool.id

    @property
    def name(self) -> str:
        """The name in the candidate, which a model may have chosen."""
        return self.tool.candidate.name

    @property
    def tier(self) -> ToolTier:
        """The tool's tier."""
        return self.tool.tier

    @property
    def digest(self) -> str:
        """What its verdicts are bound to."""
        return self.tool.digest

    def to_dict(self) -> dict[str, Any]:
        """This record as plain data; ``from_dict`` reads it back."""
        return {
            "schema": self.schema,
            "tool": self.tool.to_dict(),
            "status": self.status,
            "registered_at": self.registered_at.isoformat(),
            "approved_by": self.approved_by,
            "reason": self.reason,
            **write_standing(self),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back what ``to_dict`` wrote; raises ``UsageError`` for anything else."""
        if not isinstance(data, Mapping) or data.get("schema") != cls.schema:
            raise UsageError(f"a tool's record is read from a dictionary of schema {cls.schema!r} that to_dict wrote")
        try:
            given = {name: data[name] for name in ("status", "approved_by", "reason")}
            given |= {"registered_at": datetime.fromisoformat(data["registered_at"]), **read_standing(data)}
            return cls(tool=EmergentTool.from_dict(data["tool"]), **given)
        except (KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"this is not a dictionary that ToolRecord.to_dict wrote: {show(error)}") from None


def write_standing(record: ToolRecord) -> dict[str, Any]:
    """What changes with every use and every review under way."""
    cooling, claim = record.cooling, record.claim
    since = cooling.since.isoformat() if cooling.since else None
    return {
        "cooling": {"refusals": cooling.refusals, "uses": cooling.uses, "since": since},
        "claim": {"token": claim.token, "until": claim.until.isoformat()} if claim else None,
    }


def read_standing(data: Mapping[str, Any]) -> dict[str, Any]:
    """Read back what ``write_standing`` wrote."""
    cooling, claim = data["cooling"], data["claim"]
    since = datetime.fromisoformat(cooling["since"]) if cooling["since"] else None
    found: dict[str, Any] = {"cooling": Cooling(refusals=cooling["refusals"], uses=cooling["uses"], since=since)}
    until = datetime.fromisoformat(claim["until"]) if claim else None
    return found | {"claim": Claim(token=claim["token"], until=until) if claim and until else None}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSummary:
    """The little of a tool that caps and names are about."""

    id: str
    name: str
    tier: str
    status: str
    agent: str
    session: str
    digest: str
    claimed_until: datetime | None = None


def make_card(record: ToolRecord) -> ToolSummary:
    """The card of a record."""
    tool = record.tool
    return ToolSummary(
        id=tool.id,
        name=record.name,
        tier=tool.tier,
        status=record.status,
        agent=tool.agent,
        session=tool.session,
        digest=tool.digest,
        claimed_until=record.claim.until if record.claim else None,
    )


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
class Limits:
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


def find_use_hindrance(
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


def find_room_hindrance(
    card: ToolSummary, near: Iterable[ToolSummary], limits: Limits, now: datetime
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


def find_rise_hindrance(
    record: ToolRecord,
    to: ToolTier,
    *,
    approved_by: str | None,
    near: Iterable[ToolSummary],
    limits: Limits,
    now: datetime,
) -> Obstacle | None:
    """Why a tool may not be put before the panel now; where something is to be mended first, that comes first."""
    return (
        _find_step_fault(record, to, approved_by)
        or find_room_hindrance(raise_card(record, to), near, limits, now)
        or _find_usage_fault(record, limits)
        or _find_cooling(record, now)
        or find_claim(record, now)
    )


def raise_card(record: ToolRecord, to: ToolTier) -> ToolSummary:
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


def _find_usage_fault(record: ToolRecord, limits: Limits) -> Obstacle | None:
    usage = record.tool.usage
    uses, rate = (usage.uses, usage.success_rate) if usage is not None else (0, 0.0)
    if uses >= limits.min_uses and rate >= limits.min_success_rate:
        return None
    return Obstacle(
        because="usage",
        detail=f"{_name(record)} has {uses} uses with a success rate of {rate:.2f}, and needs {limits.min_uses} "
        f"with {limits.min_success_rate:g}",
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


def _find_full(card: ToolSummary, present: list[ToolSummary], limits: Limits, now: datetime) -> Obstacle | None:
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
