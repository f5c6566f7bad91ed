"""What a registry keeps of a tool: its standing, who claimed it, and the little that caps and names are about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal, Self, get_args

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice, check_whole_number
from adjudge.formats.text import show
from adjudge.tools.tool import EmergentTool, ToolTier

ToolStatus = Literal["active", "unreviewed", "demoted"]

STATUSES: tuple[ToolStatus, ...] = get_args(ToolStatus)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cooldown:
    """The counts behind a tool's cool-down after refused promotions. They stay with its id when the tool is changed."""

    refusals: int = 0
    """Refusals since the tool was last promoted."""
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
    """A mark that a tool is being reviewed. It expires by itself, so a killed process blocks nobody for long."""

    token: str
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRecord:
    """A tool in a registry, with its tier and status. It is a value: after a change, the registry returns a new one."""

    schema: ClassVar[str] = "adjudge/tool-record/1"

    tool: EmergentTool
    status: ToolStatus = "active"
    """``active`` tools run. ``unreviewed`` ones were loaded or changed, ``demoted`` ones taken out of use."""
    registered_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    """Aware UTC."""
    approved_by: str | None = None
    """The person who approved the promotion to ``shared``."""
    reason: str = ""
    """Why it was demoted; empty for any other."""
    cooling: Cooldown = field(default_factory=Cooldown)
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
        """``tool_digest`` of its candidate, to which its verdicts are bound."""
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
            **standing_to_dict(self),
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


def standing_to_dict(record: ToolRecord) -> dict[str, Any]:
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
    found: dict[str, Any] = {"cooling": Cooldown(refusals=cooling["refusals"], uses=cooling["uses"], since=since)}
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


def make_summary(record: ToolRecord) -> ToolSummary:
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
