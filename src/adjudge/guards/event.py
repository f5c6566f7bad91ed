"""Guard events, which report the outcome of a check, and the making of a guard's question to a judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Literal

from adjudge.formats.record import write_record
from adjudge.formats.times import get_now
from adjudge.question.question import Answer, Part, Question, Wording, digest_question
from adjudge.result import DecidedBy

GuardKind = Literal["prompt", "input", "probe", "creation", "promotion"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardEvent:
    """The outcome of one check of a guard; there is one event for each check that asked a judge."""

    schema: ClassVar[str] = "adjudge/guard-event/1"

    kind: GuardKind
    """The kind of thing that was checked: ``prompt``, ``input``, ``probe``, ``creation`` or ``promotion``."""
    guard: str
    """The guard's name, or the name of the tool that it protects."""
    subject: str
    """SHA-256 of what was checked."""
    passed: bool
    """True if everything that was checked passed."""
    allowed_count: int
    """The number of parts (rules, arguments, probes) that were allowed."""
    rejected_count: int
    """The number of parts that were not."""
    decided_by: DecidedBy
    """The one who decided: ``judge``, ``rule``, ``human`` or ``policy``."""
    duration_ms: float
    """The time that the check took, in milliseconds."""
    at: datetime = field(default_factory=get_now)
    """The time at which it ended, in UTC."""

    def to_dict(self) -> dict[str, Any]:
        """Write the event as plain data."""
        return write_record(self)


def make_guard_question(
    wording: Wording,
    parts: Sequence[Part],
    answer: Callable[[Mapping[str, Any], Question], Answer],
    *,
    subject: str,
    metadata: Mapping[str, Any] | None = None,
    wants_everybody: bool = False,
) -> Question:
    """Make a guard's question to a judge from its wording, the checked data (``parts``) and the reader of replies.

    ``answer`` reads the reply. ``subject`` is the SHA-256 of the checked data. With ``wants_everybody``, chains that
    count votes wait for every seat.
    """
    all_parts = tuple(parts)
    digest = digest_question(wording, all_parts)
    return Question(
        wording=wording,
        parts=all_parts,
        answer=answer,
        digest=digest,
        subject=subject,
        wants_everybody=wants_everybody,
        metadata=dict(metadata or {}),
    )
