"""Figures about one reviewer's own decisions, from the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median
from typing import Any, ClassVar

from adjudge.formats.record import Layout, write_record
from adjudge.formats.times import read_zoned_time
from adjudge.ledger.entry import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerFigures:
    """The figures of one reviewer's decisions.

    Show them to that reviewer only: compared with others, they invite to decide fast.
    """

    schema: ClassVar[str] = "adjudge/reviewer-figures/1"
    _layout: ClassVar[Layout] = Layout(last=("denied", "since"))

    by: str
    """The reviewer's name, as the ledger has it."""
    since: datetime | None = None
    """The time from which votes are counted; ``None`` counts all."""
    decided: int = 0
    """Votes that counted."""
    approved: int = 0
    """Votes that approved."""
    with_judge: int = 0
    """Votes that said what the judge said: approved what passed, or denied what failed."""
    against_judge: int = 0
    """Votes that said the opposite. The rest are about content that was undecided."""
    withdrawn: int = 0
    """Votes that were taken back."""
    median_seconds: float | None = None
    """The median time from the request to the vote, in seconds; ``None`` where no vote says when it was requested."""

    @property
    def denied(self) -> int:
        """Votes that denied."""
        return self.decided - self.approved

    def to_dict(self) -> dict[str, Any]:
        """Write this value as plain data."""
        return write_record(self)


@dataclass(slots=True, kw_only=True)
class FigureCounter:
    """Counts one reviewer's votes and withdrawals in entries that are added in the ledger's order."""

    by: str
    since: datetime | None = None
    _counts: Counter[str] = field(default_factory=Counter)
    _seconds: list[float] = field(default_factory=list)

    def add(self, entry: Entry) -> None:
        """Count one entry if it is a vote that counts, or a withdrawal, of this reviewer; ignore every other entry."""
        payload = entry.payload or {}
        if payload.get("by") != self.by or (self.since is not None and entry.at < self.since):
            return
        if entry.kind == "approval.vote_withdrawn":
            self._counts["withdrawn"] += 1
        elif entry.kind == "approval.voted" and payload.get("voter") == "human" and payload.get("accepted") is True:
            # An answer to an audit decides nothing, and some audits are made up to see whether people look.
            if payload.get("audit") is True:
                return
            self._add_vote(payload)

    def _add_vote(self, payload: Mapping[str, Any]) -> None:
        """Count an accepted vote, and the seconds from the request to it where both times are known."""
        approved = payload.get("approved") is True
        self._counts["decided"] += 1
        self._counts["approved"] += approved
        result = payload.get("result")
        outcome = result.get("outcome") if isinstance(result, Mapping) else None
        if outcome in ("passed", "failed"):
            self._counts["with_judge" if (outcome == "passed") == approved else "against_judge"] += 1
        requested_at, at = read_zoned_time(payload.get("requested_at")), read_zoned_time(payload.get("at"))
        if requested_at is not None and at is not None:
            self._seconds.append(max(0.0, (at - requested_at).total_seconds()))

    def finish(self) -> ReviewerFigures:
        """Return the figures of the entries that were added."""
        return ReviewerFigures(
            by=self.by,
            since=self.since,
            decided=self._counts["decided"],
            approved=self._counts["approved"],
            with_judge=self._counts["with_judge"],
            against_judge=self._counts["against_judge"],
            withdrawn=self._counts["withdrawn"],
            median_seconds=median(self._seconds) if self._seconds else None,
        )
