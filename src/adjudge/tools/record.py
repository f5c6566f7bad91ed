"""A tool in a registry: its standing, who claimed it, and the summary that caps and names are decided by.

Caps and names are decided in ``registry_obstacles.py`` (``find_room_obstacle``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal, Self, get_args

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice, check_whole_number
from adjudge.formats.record import Layout, read_record, write_record
from adjudge.tools.tool import EmergentTool, ToolTier

ToolStatus = Literal["active", "unreviewed", "demoted"]

STATUSES: tuple[ToolStatus, ...] = get_args(ToolStatus)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cooldown:
    """The counts behind a tool's cool-down after refused promotions. They stay with its id when the tool is changed."""

    _layout: ClassVar[Layout] = Layout(required=("refusals", "uses", "since"))

    refusals: int = 0
    """Refusals since the tool was last promoted."""
    uses: int = 0
    """Uses since the last refusal."""
    since: datetime | None = None
    """The time at which the last refusal was recorded, in aware UTC."""

    def __post_init__(self) -> None:
        for name in ("refusals", "uses"):
            check_whole_number(name, getattr(self, name), least=0, where="a tool that cools down")
        if self.refusals and self.since is None:
            raise UsageError("where promotions were refused, the time of the last refusal is known")


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A mark that a tool is being reviewed. It expires by itself, so a killed process blocks nobody for long."""

    token: str
    """The secret by which the reviewer's process knows its own mark."""
    until: datetime
    """The time at which it expires by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRecord:
    """A tool in a registry, with its tier and status. It is a value: after a change, the registry returns a new one."""

    schema: ClassVar[str] = "adjudge/tool-record/1"
    _layout: ClassVar[Layout] = Layout(
        required=("status", "registered_at", "approved_by", "reason", "cooling", "claim")
    )

    tool: EmergentTool
    """The tool."""
    status: ToolStatus = "active"
    """``active`` tools run. ``unreviewed`` ones were loaded or changed, ``demoted`` ones taken out of use."""
    registered_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    """Aware UTC."""
    approved_by: str | None = None
    """The person who approved the promotion to ``shared``."""
    reason: str = ""
    """The reason for which it was demoted; empty for any other."""
    cooling: Cooldown = field(default_factory=Cooldown)
    """The time for which it may not be promoted, and its beginning."""
    claim: Claim | None = None
    """The mark of a review under way; ``None`` without one."""

    def __post_init__(self) -> None:
        check_choice("status", self.status, STATUSES, where="a tool")
        # Checked in the type, so that no registry can give a tier to a tool without a current review.
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
        """Write this record as plain data, which ``from_dict`` reads back."""
        return write_record(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back ``data`` that ``to_dict`` wrote; raises ``UsageError`` for anything else.

        Args:
            data: What ``to_dict`` wrote.
        """
        return read_record(cls, data)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSummary:
    """The part of a tool by which caps and names are decided."""

    id: str
    name: str
    tier: str
    status: str
    agent: str
    session: str
    digest: str
    claimed_until: datetime | None = None


def make_summary(record: ToolRecord) -> ToolSummary:
    """Make the summary of a tool, by which caps and names are decided."""
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
