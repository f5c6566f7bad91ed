"""What the ledger recorded of gates and judges, newest first and in short: for lists and figures on pages.

A ledger is written by programs too, so an entry may say anything: what is none of ours becomes a row that says so, and
is in no figure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from adjudge.formats.text import flatten
from adjudge.formats.typed import read_typed_json
from adjudge.ledger.entry import Entry, format_time
from adjudge.ledger.ledger import Ledger
from adjudge.ledger.store import make_table
from adjudge.result import Outcome

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

MOST_READ = 20_000
"""Entries that one page reads at most."""

STATES = ("passed", "failed", "undecided", "held")
"""How something that was judged came out, or that it waits for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Usage:
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """The members of a result that a list shows."""

    id: str = ""
    judge: str = ""
    outcome: Outcome = "undecided"
    undecided_because: str | None = None
    score: float | None = None
    threshold: float | None = None
    reasoning: str = ""
    detail: str = ""
    duration_ms: float = 0.0
    decided_by: str = "judge"
    usage: _Usage | None = None
    gate: str | None = None
    content: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decided:
    """The members of a decision that a list shows."""

    id: str
    gate: str
    allowed: bool
    pending: bool
    decided_by: str
    result: _Judged | None = None
    detail: str = ""
    duration_ms: float = 0.0
    approval_id: str | None = None
    content: str | None = None
    metadata: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One recorded decision of a gate, or one recorded result."""

    seq: int
    at: datetime
    kind: str
    id: str
    result_id: str
    subject: str
    gate: str | None
    allowed: bool | None
    """What the gate did; ``None`` for a result without a gate, and while a person is asked."""
    outcome: Outcome | None
    """What the judge said; ``None`` where nothing was judged."""
    held: bool
    """Whether it waits, or waited, for a person when this was recorded."""
    because: str | None
    score: float | None
    threshold: float | None
    decided_by: str
    judge: str
    why: str
    content: str | None
    duration_ms: float
    cost_usd: float | None
    approval_id: str | None
    title: str
    """What the program called it; empty where it did not."""

    @property
    def state(self) -> str:
        """One of ``STATES``, or ``info`` where nothing was judged."""
        return "held" if self.held else self.outcome or "info"

    @property
    def about(self) -> str:
        """A line that says what it is about: its title, else how the content begins if it is kept, else the reason."""
        lines = (self.title or self.content or self.why).strip().splitlines()
        return lines[0][:300] if lines else ""


async def read_recorded(
    ledger: Ledger, *, since: datetime | None = None, before: int | None = None, most: int = MOST_READ
) -> tuple[tuple[Recorded, ...], int | None]:
    """Decisions and results, the newest first, and the place of the last one if there are older ones, else ``None``.

    ``before`` is the place of an entry; only those in front of it are read.
    """
    table = make_table()
    statement = (
        table.select().where(table.c.kind.in_(("decision", "result"))).order_by(table.c.seq.desc()).limit(most + 1)
    )
    if since is not None:
        statement = statement.where(table.c.at >= format_time(since))
    if before is not None:
        statement = statement.where(table.c.seq < before)

    def work(connection: Connection) -> tuple[tuple[Recorded, ...], int | None]:
        rows = connection.execute(statement).all()
        return tuple(_list_recorded(rows[:most])), int(rows[most - 1][0]) if len(rows) > most else None

    return await ledger.look(work, tables=table.metadata) or ((), None)


def read_row(entry: Entry) -> Recorded | None:
    """An entry as a row; ``None`` for one of another kind, or that says nothing a row could show."""
    import msgspec

    payload = None if entry.payload is None else msgspec.json.encode(entry.payload)
    return _make(entry.seq, entry.at, entry.kind, entry.subject, payload)


def _list_recorded(rows: Sequence[Row[Any]]) -> Iterator[Recorded]:
    for row in rows:
        seq, _, at, kind, subject, payload = tuple(row)[:6]
        found = _make(seq, datetime.fromisoformat(at), kind, subject, None if payload is None else bytes(payload))
        if found is not None:
            yield found


def _make(seq: int, at: datetime, kind: str, subject: str, payload: bytes | None) -> Recorded | None:
    import msgspec

    if payload is None:
        return None
    try:
        if kind == "decision":
            return _make_decided(seq, at, subject, read_typed_json(payload, _Decided))
        if kind == "result":
            return _make_judged(seq, at, subject, read_typed_json(payload, _Judged))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return None


def _make_decided(seq: int, at: datetime, subject: str, said: _Decided) -> Recorded:
    judged = said.result
    usage = judged.usage if judged else None
    title = said.metadata.get("title")
    return Recorded(
        seq=seq,
        at=at,
        kind="decision",
        id=said.id,
        result_id=judged.id if judged else "",
        subject=subject,
        gate=said.gate,
        allowed=None if said.pending else said.allowed,
        outcome=judged.outcome if judged else None,
        held=said.pending,
        because=judged.undecided_because if judged else None,
        score=judged.score if judged else None,
        threshold=judged.threshold if judged else None,
        decided_by=said.decided_by,
        judge=judged.judge if judged else "",
        why=(judged.reasoning or judged.detail if judged else "") or said.detail,
        content=said.content or (judged.content if judged else None),
        duration_ms=said.duration_ms,
        cost_usd=usage.cost_usd if usage else None,
        approval_id=said.approval_id,
        title=flatten(title, 300).strip() if isinstance(title, str) else "",
    )


def _make_judged(seq: int, at: datetime, subject: str, said: _Judged) -> Recorded:
    return Recorded(
        seq=seq,
        at=at,
        kind="result",
        id=said.id,
        result_id=said.id,
        subject=subject,
        gate=said.gate,
        allowed=None,
        outcome=said.outcome,
        held=False,
        because=said.undecided_because,
        score=said.score,
        threshold=said.threshold,
        decided_by=said.decided_by,
        judge=said.judge,
        why=said.reasoning or said.detail,
        content=said.content,
        duration_ms=said.duration_ms,
        cost_usd=said.usage.cost_usd if said.usage else None,
        approval_id=None,
        title="",
    )
