"""Decisions and results of the ledger in short, as lists show them.

A ledger is written by programs too, so an entry may say anything: what is none of ours becomes no row.

Which of them a list has is decided in ``server/result_lists.py`` (``list_results``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Literal, Self

from adjudge.formats.json_places import describe_call
from adjudge.formats.record import Layout, read_record, write_record
from adjudge.ledger.columns import DecidedMembers, JudgedMembers, read_members
from adjudge.ledger.entry import Entry
from adjudge.ledger.payload import is_digest
from adjudge.result import Outcome

ResultState = Literal["passed", "failed", "undecided", "held"]
"""The outcome of what was judged, or ``held`` while it waits for a person."""

ResultPeriod = Literal["day", "week", "month", "quarter", "all"]
"""The last 1, 7, 30 or 90 days, or all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedResult:
    """One recorded decision of a gate, or one recorded result."""

    _layout: ClassVar[Layout] = Layout(last=("state",))

    seq: int
    """The entry's place in the ledger."""
    at: datetime
    """The time at which it was recorded."""
    kind: str
    """The kind of the entry."""
    id: str
    """The id of the decision, or of the result where there is no gate."""
    result_id: str
    """The id of the result; empty where nothing was judged."""
    subject: str
    """Digest of the content."""
    gate: str | None
    """The name of the gate; ``None`` for a result without one."""
    allowed: bool | None
    """True if the gate allowed it; ``None`` for a result without a gate, and while a person is asked."""
    outcome: Outcome | None
    """The outcome that the judge gave; ``None`` where nothing was judged."""
    held: bool
    """True if it waits, or waited, for a person when this was recorded."""
    undecided_because: str | None
    """The reason why it is undecided; ``None`` if it is not."""
    score: float | None
    """The score, in 0 to 1; ``None`` without one."""
    threshold: float | None
    """The passing threshold that was in force."""
    decided_by: str
    """The one who decided: ``judge``, ``rule``, ``human`` or ``policy``."""
    judge: str
    """The name of the judge; empty where none answered."""
    reason: str
    """The reason, in the judge's words where there are any."""
    content: str | None
    """The content, if the ledger stores it."""
    duration_ms: float
    """The time that it took, in milliseconds."""
    cost_usd: float | None
    """The cost, in dollars; ``None`` is unknown."""
    approval_id: str | None
    """The id of its request to people; ``None`` without one."""
    title: str
    """The program's name for it; empty where there is none."""
    people: tuple[str, ...] | None = None
    """The people who decided its request for approval, if that was looked up; ``None`` where there is none that is
    closed."""

    @property
    def state(self) -> str:
        """One of ``STATES``, or ``info`` where nothing was judged."""
        return "held" if self.held else self.outcome or "info"

    @property
    def about(self) -> str:
        """A line that says what it is about: its title, else how the content begins if it is kept, else the reason.

        Empty where none of them says anything: that somebody was asked, its state says already.
        """
        beginning = _describe_beginning((self.content or "")[:_LONGEST_BEGINNING])
        texts = (self.title, beginning, "" if self.reason.startswith(PERSON_ASKED) else self.reason)
        for text in texts:
            # A digest is kept in place of a text, and says nothing to a reader.
            if text.strip() and not is_digest(text):
                return text.strip().splitlines()[0][:_LONGEST_LINE]
        return ""

    def to_dict(self) -> dict[str, Any]:
        """Write this value as plain data."""
        return write_record(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back ``data`` that ``to_dict`` wrote; anything else raises ``UsageError``.

        Args:
            data: What ``to_dict`` wrote.
        """
        return read_record(cls, data)


PERSON_ASKED = "a person was asked"
"""The beginning of the reason that a gate gives for what it holds."""

_LONGEST_LINE = 300

_LONGEST_BEGINNING = 4_000
"""Characters of a content that are looked at for a line about it."""


def _describe_beginning(text: str) -> str:
    """Describe a content by its beginning: a call of a tool, or other JSON, on one line; any other text as it is."""
    call, stripped = describe_call(text), text.strip()
    is_json = stripped[:1] in ("{", "[")
    return " ".join((call or stripped).split()) if call or is_json else stripped


def read_recorded(entry: Entry) -> RecordedResult | None:
    """Read an entry as the row of a list; ``None`` if it is no decision and no result, or cannot be read as one."""
    import msgspec

    payload = None if entry.payload is None else msgspec.json.encode(entry.payload)
    return make_recorded(entry.seq, entry.at, entry.kind, entry.subject, payload)


def make_recorded(seq: int, at: datetime, kind: str, subject: str, payload: bytes | None) -> RecordedResult | None:
    """Make the row of a list for an entry, from its columns and the bytes of its payload.

    ``None`` if it is no decision and no result, or cannot be read as one.
    """
    members = read_members(kind, payload)
    if isinstance(members, DecidedMembers):
        return _make_decision_row(seq, at, subject, members)
    return None if members is None else _make_result_row(seq, at, subject, members)


def _make_decision_row(seq: int, at: datetime, subject: str, members: DecidedMembers) -> RecordedResult:
    """Make the row of a list for a decision and the result in it."""
    judged = members.result
    usage = judged.usage if judged else None
    return RecordedResult(
        seq=seq,
        at=at,
        kind="decision",
        id=members.id,
        result_id=judged.id if judged else "",
        subject=subject,
        gate=members.gate,
        allowed=None if members.pending else members.allowed,
        outcome=judged.outcome if judged else None,
        held=members.pending,
        undecided_because=judged.undecided_because if judged else None,
        score=judged.score if judged else None,
        threshold=judged.threshold if judged else None,
        decided_by=members.decided_by,
        judge=judged.judge if judged else "",
        reason=members.why,
        content=members.content or (judged.content if judged else None),
        duration_ms=members.duration_ms,
        cost_usd=usage.cost_usd if usage else None,
        approval_id=members.approval_id,
        title=members.title,
    )


def _make_result_row(seq: int, at: datetime, subject: str, members: JudgedMembers) -> RecordedResult:
    """Make the row of a list for a result."""
    return RecordedResult(
        seq=seq,
        at=at,
        kind="result",
        id=members.id,
        result_id=members.id,
        subject=subject,
        gate=members.gate,
        allowed=None,
        outcome=members.outcome,
        held=False,
        undecided_because=members.undecided_because,
        score=members.score,
        threshold=members.threshold,
        decided_by=members.decided_by,
        judge=members.judge,
        reason=members.reasoning or members.detail,
        content=members.content,
        duration_ms=members.duration_ms,
        cost_usd=members.usage.cost_usd if members.usage else None,
        approval_id=None,
        title="",
    )
