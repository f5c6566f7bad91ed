"""Which audits are looked for."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from adjudge.audit._entry import AuditEntry
from adjudge.audit._opinion import OPINIONS, Opinion
from adjudge.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuery:
    """What an audit has to be like; everything given must hold, and every bound is included."""

    opinion: Opinion | Collection[Opinion] | None = None
    """One, or any of several."""
    min_critical: int | None = None
    min_major: int | None = None
    agent_id: str | None = None
    execution_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def __post_init__(self) -> None:
        # A word that no audit has would find nothing, and "no adverse audit" is what somebody reads out of that.
        for said in self._opinions or ():
            if said not in OPINIONS:
                raise UsageError(f"an opinion is one of {', '.join(OPINIONS)}; got {said!r}")
        for name in ("min_critical", "min_major"):
            least = getattr(self, name)
            if least is not None and (type(least) is not int or least < 0):
                raise UsageError(f"{name} is a whole number from 0 up, got {least!r}")
        for name in ("since", "until"):
            moment = getattr(self, name)
            if moment is not None and (not isinstance(moment, datetime) or moment.utcoffset() is None):
                raise UsageError(f"{name} must be a time with a zone, got {moment!r}; use datetime.now(timezone.utc)")

    @property
    def _opinions(self) -> Collection[str] | None:
        return (self.opinion,) if isinstance(self.opinion, str) else self.opinion

    def matches(self, entry: AuditEntry) -> bool:
        """Whether an audit is one of those looked for."""
        if self._opinions is not None and entry.opinion not in self._opinions:
            return False
        if entry.findings.critical < (self.min_critical or 0) or entry.findings.major < (self.min_major or 0):
            return False
        for name in ("agent_id", "execution_id"):
            if getattr(self, name) is not None and getattr(self, name) != getattr(entry, name):
                return False
        early = self.since is not None and entry.created_at < self.since
        return not early and (self.until is None or entry.created_at <= self.until)
