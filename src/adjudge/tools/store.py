"""The two tables of forged tools, beside the ledger whose entries tell of every review and every change of tier.

What is written, and when, is decided in ``lifecycle.py`` (``ToolTransaction``) and ``promotion.py``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from adjudge.content import digest_text
from adjudge.errors import LedgerError, ToolRefused, UsageError
from adjudge.formats.plain import to_plain
from adjudge.ledger.database import IN_MEMORY
from adjudge.ledger.entry import Entry
from adjudge.ledger.ledger import Ledger
from adjudge.ledger.payload import can_store
from adjudge.ledger.store import Transaction
from adjudge.tools.record import ToolRecord, ToolSummary, make_summary
from adjudge.tools.tool import ToolCandidate
from adjudge.tools.verdict import ToolReviewVerdict

if TYPE_CHECKING:
    from sqlalchemy import Connection, Executable, MetaData, Select, Table


SCHEMA = "adjudge/tool-entry/1"

KINDS = ("tool.reviewed", "tool.promoted", "tool.demoted")

_COMPARED = ("tool", "name", "description", "agent", "session", "tier", "status", "approved_by")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEntry:
    """An entry to append to the ledger: its kind, the digest of the tool that it is about, and its payload."""

    kind: str
    subject: str
    payload: dict[str, Any]


def make_reviewed_entry(record: ToolRecord, verdict: ToolReviewVerdict, *, by: str | None = None) -> ToolEntry:
    """Make the entry of a review: the verdict, and the tool as it is from now on."""
    review = {"verdict": verdict.to_dict()} | ({"by": by} if by is not None else {})
    return ToolEntry(kind="tool.reviewed", subject=verdict.tool_digest, payload=_describe_tool(record) | review)


def make_rejected_entry(candidate: ToolCandidate, verdict: ToolReviewVerdict, agent: str, session: str) -> ToolEntry:
    """Make the entry of a candidate that was rejected."""
    payload = {"schema": SCHEMA, "tool": None, "name": candidate.name, "agent": agent, "session": session}
    payload |= {"description": digest_text(candidate.description), "status": "rejected"}
    return ToolEntry(
        kind="tool.reviewed", subject=verdict.tool_digest, payload=payload | {"verdict": verdict.to_dict()}
    )


def make_lost_entry(tool_id: str, verdict: ToolReviewVerdict, reason: str) -> ToolEntry:
    """Make the entry of a verdict without effect: the tool was removed or changed while it was reviewed."""
    payload = {"schema": SCHEMA, "tool": tool_id, "status": "unchanged", "why": reason, "verdict": verdict.to_dict()}
    return ToolEntry(kind="tool.reviewed", subject=verdict.tool_digest, payload=payload)


def make_promoted_entry(record: ToolRecord, verdict: ToolReviewVerdict) -> ToolEntry:
    """Make the entry of a promotion: its verdict, and who approved it."""
    return ToolEntry(
        kind="tool.promoted", subject=record.digest, payload=_describe_tool(record) | {"verdict": verdict.to_dict()}
    )


def make_demoted_entry(before: ToolRecord, status: str, reason: str, by: str | None) -> ToolEntry:
    """Make the entry of a tool that does not run any more: demoted, changed or removed, with the person's reason."""
    payload = _describe_tool(before) | {"status": status, "tier": "session", "approved_by": None, "was": before.tier}
    return ToolEntry(kind="tool.demoted", subject=before.digest, payload=payload | {"reason": reason, "by": by})


def find_doubt(record: ToolRecord, entries: Iterable[Entry]) -> str | None:
    """Find what the ledger does not confirm of a record, or ``None``; ``entries`` are those about the tool's digest.

    Whoever has the database can write its tables, and nothing protects those. So a tool is what the last entry about
    it says, and its tier, its scope and its being in use count only as the ledger holds them.
    """
    last: dict[str, Any] | None = None
    for entry in entries:
        if entry.kind not in KINDS:
            continue
        if entry.payload is None:
            # It may have been the one that demoted this tool.
            return f"entry {entry.seq}, which was erased"
        if entry.payload.get("tool") == record.id and entry.payload.get("status") != "unchanged":
            last = entry.payload
    if record.status != "active":
        # It does not run. But what a person took out of use must not come back as merely unreviewed.
        demoted = last is not None and last.get("status") == "demoted"
        return "that it was never demoted" if demoted and record.status == "unreviewed" else None
    if last is None:
        return "that it was ever reviewed"
    expected = _describe_tool(record)
    differing = [name for name in _COMPARED if last.get(name) != expected[name]]
    return f"its {', '.join(differing)}" if differing else None


def _describe_tool(record: ToolRecord) -> dict[str, Any]:
    """Return the members that the entries about a tool have in common; of its description they hold the digest."""
    tool = record.tool
    return {
        "schema": SCHEMA,
        "tool": tool.id,
        "name": record.name,
        "description": digest_text(tool.candidate.description),
        "agent": tool.agent,
        "session": tool.session,
        "status": record.status,
        "tier": tool.tier,
        "approved_by": record.approved_by,
    }


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFilter:
    """The tools to look for; ``None`` is any. Texts are compared whole."""

    tier: str | None = None
    status: str | None = None
    agent: str | None = None
    session: str | None = None


TOOLS = "adjudge_tools"

STANDINGS = "adjudge_tool_standings"

_STANDING = ("cooling", "claim")
"""Members of a record that every use or review changes; they are written to a table of their own, with the usage."""

_LOOKED_FOR = ("tier", "status", "agent", "session", "name", "digest")


@cache
def make_tables() -> MetaData:
    """The tables' description; every database makes its own form of it."""
    from sqlalchemy import Column, ForeignKey, MetaData, Table, Text

    tables = MetaData()
    # What is looked for has a column; the rest is the record as its to_dict writes it.
    Table(
        TOOLS,
        tables,
        Column("id", Text, primary_key=True),
        *[Column(name, Text, nullable=False, index=name not in ("tier", "status")) for name in _LOOKED_FOR],
        Column("body", Text, nullable=False),
        sqlite_strict=True,
    )
    # What every use writes stands apart: a tool and what its reviewers said can be hundreds of kilobytes.
    Table(
        STANDINGS,
        tables,
        Column("tool", Text, ForeignKey(f"{TOOLS}.id"), primary_key=True),
        Column("claimed_until", Text),
        Column("body", Text, nullable=False),
        sqlite_strict=True,
    )
    return tables


@dataclass(frozen=True, slots=True)
class ToolStore:
    """Tools in tables beside a ledger: a verdict, its entry and the change of tier are one transaction."""

    ledger: Ledger
    owns: bool
    """True if the ledger was opened for this and is closed with it."""

    async def change(self, work: Callable[[ToolView], T]) -> T:
        """Do some work while every other writer of the ledger waits: all of it, durably, or nothing."""

        def run(transaction: Transaction) -> T:
            return work(ToolView(transaction.connection, self.ledger, transaction))

        return await self.ledger.transact(run, tables=make_tables())

    async def read(self, work: Callable[[ToolView], T]) -> T:
        """Return what a function reads from the tools; where there is no ledger yet, there are none."""

        def run(connection: Connection) -> tuple[Any, ToolRefused | None]:
            # A refusal is handed over as a value: raised, it would be taken for a ledger that is not there.
            try:
                return work(ToolView(connection, self.ledger)), None
            except ToolRefused as error:
                return None, error

        try:
            answer = await self.ledger.look(run, tables=make_tables())
        except UsageError:
            answer = None
        if answer is None:
            return work(ToolView(None, self.ledger))
        result, refusal = answer
        if refusal is not None:
            raise refusal
        return result

    async def find_doubt(self, record: ToolRecord) -> str | None:
        """Find what the ledger does not confirm of a record."""
        return find_doubt(record, [entry async for entry in self.ledger.query(subject=record.digest)])

    async def aclose(self) -> None:
        """Close the ledger if it was opened here."""
        if self.owns:
            await self.ledger.aclose()


def open_store(store: Ledger | str | None) -> ToolStore:
    """Open a store in a ledger: one that is given, the one at an address, or one in memory that is gone with it."""
    ledger = store if isinstance(store, Ledger) else Ledger(IN_MEMORY if store is None else store)
    return ToolStore(ledger, owns=ledger is not store)


class ToolView:
    """The tools within one transaction, or as they are at one moment; without a connection there are none."""

    def __init__(self, connection: Connection | None, ledger: Ledger, transaction: Transaction | None = None) -> None:
        self._connection, self._ledger, self._transaction = connection, ledger, transaction

    def load(self, tool_id: str) -> ToolRecord | None:
        """Return the tool of this id."""
        # What no store can hold is no id, and some raise when they are asked for it.
        is_storable = isinstance(tool_id, str) and can_store(tool_id)
        rows = self._fetch_rows(_select_tools().where(_get_tools().c.id == tool_id)) if is_storable else []
        return _read_record(rows[0]) if rows else None

    def find(self, tool_filter: ToolFilter) -> list[ToolRecord]:
        """List tools in the order in which they were registered."""
        statement = _select_tools().order_by(_get_tools().c.id)
        for name in ("tier", "status", "agent", "session"):
            if getattr(tool_filter, name) is not None:
                statement = statement.where(_get_tools().c[name] == getattr(tool_filter, name))
        return [_read_record(row) for row in self._fetch_rows(statement)]

    def list_neighbours(self, summary: ToolSummary) -> list[ToolSummary]:
        """List every tool that can matter for the caps and the name of this one, and some others."""
        from sqlalchemy import or_, select

        tools, standings = _get_tools(), _get_standings()
        conditions = [tools.c[name] == getattr(summary, name) for name in ("name", "agent", "session", "digest")]
        statement = select(*[tools.c[name] for name in ("id", *_LOOKED_FOR)], standings.c.claimed_until)
        statement = statement.join(standings, standings.c.tool == tools.c.id).where(
            or_(*conditions), tools.c.id != summary.id
        )
        return [_read_summary(row) for row in self._fetch_rows(statement)]

    def save(self, record: ToolRecord) -> None:
        """Write a new tool, or all of one that is there."""
        table, values = _get_tools(), _make_tool_row(record)
        statement = table.update().where(table.c.id == record.id).values(**values)
        if self._write(statement):
            self.save_standing(record)
            return
        self._write(table.insert().values(id=record.id, **values))
        self._write(_get_standings().insert().values(tool=record.id, **_make_standing_row(record)))

    def save_standing(self, record: ToolRecord) -> None:
        """Write the usage, the cool-down and the claim of a tool that is there; nothing else has changed.

        Raises ``LedgerError`` where it is not there any more, which adjudge cannot have done.
        """
        table = _get_standings()
        statement = table.update().where(table.c.tool == record.id).values(**_make_standing_row(record))
        if self._write(statement) != 1:
            raise LedgerError(f"the tool {record.id} was removed by something that is not adjudge; nothing was changed")

    def delete(self, tool_id: str) -> None:
        """Remove a tool."""
        for table, column in ((_get_standings(), "tool"), (_get_tools(), "id")):
            self._write(table.delete().where(table.c[column] == tool_id))

    def append_entry(self, entry: ToolEntry) -> None:
        """Append an entry to the ledger, in the same transaction."""
        if self._transaction is None:
            raise NotImplementedError
        self._transaction.append(self._ledger.make_entry(entry.payload, kind=entry.kind, subject=entry.subject))

    def _fetch_rows(self, statement: Executable) -> list[Any]:
        return [] if self._connection is None else list(self._connection.execute(statement))

    def _write(self, statement: Executable) -> int:
        """Execute a statement and return how many rows it changed."""
        if self._connection is None:
            raise NotImplementedError
        return self._connection.execute(statement).rowcount


def _get_tools() -> Table:
    return make_tables().tables[TOOLS]


def _get_standings() -> Table:
    return make_tables().tables[STANDINGS]


def _select_tools() -> Select[Any]:
    from sqlalchemy import select

    tools, standings = _get_tools(), _get_standings()
    return select(tools, standings.c.body.label("standing")).join(standings, standings.c.tool == tools.c.id)


def _make_tool_row(record: ToolRecord) -> dict[str, Any]:
    """Make the row of a tool in the table ``TOOLS``, without what ``_make_standing_row`` writes."""
    summary = make_summary(record)
    values = {name: getattr(summary, name) for name in _LOOKED_FOR}
    data = record.to_dict()
    tool = {name: value for name, value in data["tool"].items() if name != "usage"}
    body = {name: value for name, value in data.items() if name not in _STANDING} | {"tool": tool}
    # In ASCII: NUL and the like in a tool's source are escapes then, which every store can hold.
    return values | {"body": json.dumps(body)}


def _make_standing_row(record: ToolRecord) -> dict[str, Any]:
    usage = record.tool.usage
    body = {name: to_plain(getattr(record, name)) for name in _STANDING}
    body["usage"] = None if usage is None else usage.to_dict()
    until = record.claim.until.astimezone(UTC).isoformat() if record.claim else None
    return {"claimed_until": until, "body": json.dumps(body)}


def _read_record(row: Any) -> ToolRecord:
    """Read a tool from a row of both tables.

    Raises ``LedgerError`` for a body that cannot be read, and for columns that differ from it.
    """
    try:
        body, standing = json.loads(row.body), json.loads(row.standing)
        usage = standing.pop("usage")
        record = ToolRecord.from_dict({**body, **standing, "tool": {**body["tool"], "usage": usage}})
        summary = make_summary(record)
        if any(getattr(summary, name) != getattr(row, name) for name in ("id", *_LOOKED_FOR)):
            raise UsageError("its columns say otherwise")
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise LedgerError(
            f"the tool {row.id} cannot be read from its table ({type(error).__name__}); it was changed by hand"
        ) from None
    return record


def _read_summary(row: Any) -> ToolSummary:
    until = datetime.fromisoformat(row.claimed_until) if row.claimed_until else None
    texts = {name: getattr(row, name) for name in ("id", *_LOOKED_FOR)}
    return ToolSummary(**texts, claimed_until=until)
