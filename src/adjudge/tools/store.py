"""The two tables of forged tools, beside a ledger that has an entry for every review and every change of tier.

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
from adjudge.formats.plain_data import to_plain
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

_CONFIRMED_MEMBERS = ("tool", "name", "description", "agent", "session", "tier", "status", "approved_by")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEntry:
    """An entry to append to the ledger: its kind, the digest of the tool that it is about, and its payload."""

    kind: str
    subject: str
    payload: dict[str, Any]


def make_reviewed_entry(record: ToolRecord, verdict: ToolReviewVerdict, *, by: str | None = None) -> ToolEntry:
    """Make the entry of a review: its verdict, the state of the tool after it, and who reinstated it, if anybody."""
    review = {"verdict": verdict.to_dict()} | ({"by": by} if by is not None else {})
    return ToolEntry(kind="tool.reviewed", subject=verdict.tool_digest, payload=_describe_tool(record) | review)


def make_rejected_entry(candidate: ToolCandidate, verdict: ToolReviewVerdict, agent: str, session: str) -> ToolEntry:
    """Make the entry of a candidate that was rejected, and so became no tool."""
    payload = {"schema": SCHEMA, "tool": None, "name": candidate.name, "agent": agent, "session": session}
    payload |= {"description": digest_text(candidate.description), "status": "rejected"}
    return ToolEntry(
        kind="tool.reviewed", subject=verdict.tool_digest, payload=payload | {"verdict": verdict.to_dict()}
    )


def make_lost_entry(tool_id: str, verdict: ToolReviewVerdict, reason: str) -> ToolEntry:
    """Make the entry of a verdict without effect, because the tool was removed or changed during the review."""
    payload = {"schema": SCHEMA, "tool": tool_id, "status": "unchanged", "why": reason, "verdict": verdict.to_dict()}
    return ToolEntry(kind="tool.reviewed", subject=verdict.tool_digest, payload=payload)


def make_promoted_entry(record: ToolRecord, verdict: ToolReviewVerdict) -> ToolEntry:
    """Make the entry of a promotion: its verdict, and the state of the tool after it."""
    return ToolEntry(
        kind="tool.promoted", subject=record.digest, payload=_describe_tool(record) | {"verdict": verdict.to_dict()}
    )


def make_demoted_entry(before: ToolRecord, status: str, reason: str, by: str | None) -> ToolEntry:
    """Make the entry of a tool that may not run any more: it was demoted, changed or removed."""
    payload = _describe_tool(before) | {"status": status, "tier": "session", "approved_by": None, "was": before.tier}
    return ToolEntry(kind="tool.demoted", subject=before.digest, payload=payload | {"reason": reason, "by": by})


def find_doubt(record: ToolRecord, entries: Iterable[Entry]) -> str | None:
    """Find what the ledger does not confirm of a tool's record, in a few words; ``None`` if it confirms everything.

    ``entries`` are those about the digest of the tool. Whoever can write to the database can change its tables. So the
    tier, the agent, the session and the status of a tool count only if the last entry about the tool says the same.
    """
    last_payload: dict[str, Any] | None = None
    for entry in entries:
        if entry.kind not in KINDS:
            continue
        if entry.payload is None:
            # The erased entry may have demoted this tool.
            return f"entry {entry.seq}, which was erased"
        if entry.payload.get("tool") == record.id and entry.payload.get("status") != "unchanged":
            last_payload = entry.payload
    if record.status != "active":
        # The tool does not run. But a tool that a person demoted must not become one that is merely unreviewed.
        was_demoted = last_payload is not None and last_payload.get("status") == "demoted"
        return "that it was never demoted" if was_demoted and record.status == "unreviewed" else None
    if last_payload is None:
        return "that it was ever reviewed"
    expected = _describe_tool(record)
    differing = [name for name in _CONFIRMED_MEMBERS if last_payload.get(name) != expected[name]]
    return f"its {', '.join(differing)}" if differing else None


def _describe_tool(record: ToolRecord) -> dict[str, Any]:
    """Return the members that all entries about a tool have; of its description they have only the digest."""
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

_STANDING_MEMBERS = ("cooling", "claim")
"""The members of a record that change with every use or review. With the usage, they are in a table of their own."""

_SEARCH_COLUMNS = ("tier", "status", "agent", "session", "name", "digest")


@cache
def make_tables() -> MetaData:
    """Describe the two tables for SQLAlchemy, which makes each database's own form of them."""
    from sqlalchemy import Column, ForeignKey, MetaData, Table, Text

    tables = MetaData()
    # The members by which tools are searched have columns. ``body`` is the record as its to_dict writes it.
    Table(
        TOOLS,
        tables,
        Column("id", Text, primary_key=True),
        *[Column(name, Text, nullable=False, index=name not in ("tier", "status")) for name in _SEARCH_COLUMNS],
        Column("body", Text, nullable=False),
        sqlite_strict=True,
    )
    # A table of its own for what every use writes: a tool and its verdicts can have hundreds of kilobytes.
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
        """Call a function that may change tools, while other writers wait; all changes are durable, or none is made."""

        def run(transaction: Transaction) -> T:
            return work(ToolView(transaction.connection, self.ledger, transaction))

        return await self.ledger.transact(run, tables=make_tables())

    async def read(self, work: Callable[[ToolView], T]) -> T:
        """Return what a function reads from the tools. Where there is no ledger yet, it finds none."""

        def run(connection: Connection) -> tuple[Any, ToolRefused | None]:
            # A refusal is returned and not raised: below, it would be taken for the error of a missing ledger.
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
        """Find what the ledger does not confirm of a tool's record; ``None`` if it confirms everything."""
        return find_doubt(record, [entry async for entry in self.ledger.query(subject=record.digest)])

    async def aclose(self) -> None:
        """Close the ledger if it was opened here."""
        if self.owns:
            await self.ledger.aclose()


def open_store(store: Ledger | str | None) -> ToolStore:
    """Open a store in a ledger: a given one, the one at an address, or, for ``None``, one in memory.

    A ledger in memory is gone when the store is closed.
    """
    ledger = store if isinstance(store, Ledger) else Ledger(IN_MEMORY if store is None else store)
    return ToolStore(ledger, owns=ledger is not store)


class ToolView:
    """The tools as one transaction sees and changes them. Without a connection there are none, as without a ledger."""

    def __init__(self, connection: Connection | None, ledger: Ledger, transaction: Transaction | None = None) -> None:
        self._connection, self._ledger, self._transaction = connection, ledger, transaction

    def load(self, tool_id: str) -> ToolRecord | None:
        """Return the tool with this id; ``None`` if there is none."""
        # A value that no store can hold is no id, and some stores raise when it is looked for.
        is_storable = isinstance(tool_id, str) and can_store(tool_id)
        rows = self._fetch_rows(_select_tools().where(_get_tools().c.id == tool_id)) if is_storable else []
        return _read_record(rows[0]) if rows else None

    def find(self, tool_filter: ToolFilter) -> list[ToolRecord]:
        """List the tools that match a filter, in the order in which they were registered."""
        statement = _select_tools().order_by(_get_tools().c.id)
        for name in ("tier", "status", "agent", "session"):
            if getattr(tool_filter, name) is not None:
                statement = statement.where(_get_tools().c[name] == getattr(tool_filter, name))
        return [_read_record(row) for row in self._fetch_rows(statement)]

    def list_neighbours(self, summary: ToolSummary) -> list[ToolSummary]:
        """List the summaries of all tools that may matter for the caps and the name of this one, and of some others."""
        from sqlalchemy import or_, select

        tools, standings = _get_tools(), _get_standings()
        conditions = [tools.c[name] == getattr(summary, name) for name in ("name", "agent", "session", "digest")]
        statement = select(*[tools.c[name] for name in ("id", *_SEARCH_COLUMNS)], standings.c.claimed_until)
        statement = statement.join(standings, standings.c.tool == tools.c.id).where(
            or_(*conditions), tools.c.id != summary.id
        )
        return [_read_summary(row) for row in self._fetch_rows(statement)]

    def save(self, record: ToolRecord) -> None:
        """Write a tool, whether it is new or there already."""
        table, values = _get_tools(), _make_tool_row(record)
        statement = table.update().where(table.c.id == record.id).values(**values)
        if self._write(statement):
            self.save_standing(record)
            return
        self._write(table.insert().values(id=record.id, **values))
        self._write(_get_standings().insert().values(tool=record.id, **_make_standing_row(record)))

    def save_standing(self, record: ToolRecord) -> None:
        """Write only the usage, the cool-down and the claim of a tool.

        Raises ``LedgerError`` if the tool is not there any more, which nothing in adjudge can have caused.
        """
        table = _get_standings()
        statement = table.update().where(table.c.tool == record.id).values(**_make_standing_row(record))
        if self._write(statement) != 1:
            raise LedgerError(f"the tool {record.id} was removed by something that is not adjudge; nothing was changed")

    def delete(self, tool_id: str) -> None:
        """Delete a tool from both tables."""
        for table, column in ((_get_standings(), "tool"), (_get_tools(), "id")):
            self._write(table.delete().where(table.c[column] == tool_id))

    def append_entry(self, entry: ToolEntry) -> None:
        """Append an entry to the ledger, in the same transaction."""
        if self._transaction is None:
            raise NotImplementedError
        self._transaction.append(self._ledger.make_entry(entry.payload, kind=entry.kind, subject=entry.subject))

    def _fetch_rows(self, statement: Executable) -> list[Any]:
        """Return the rows that a statement selects; none without a connection."""
        return [] if self._connection is None else list(self._connection.execute(statement))

    def _write(self, statement: Executable) -> int:
        """Execute a statement and return how many rows it changed."""
        if self._connection is None:
            raise NotImplementedError
        return self._connection.execute(statement).rowcount


def _get_tools() -> Table:
    """Return the description of the table of tools."""
    return make_tables().tables[TOOLS]


def _get_standings() -> Table:
    """Return the description of the table of what every use writes."""
    return make_tables().tables[STANDINGS]


def _select_tools() -> Select[Any]:
    """Make the statement that selects tools from both tables."""
    from sqlalchemy import select

    tools, standings = _get_tools(), _get_standings()
    return select(tools, standings.c.body.label("standing")).join(standings, standings.c.tool == tools.c.id)


def _make_tool_row(record: ToolRecord) -> dict[str, Any]:
    """Make the row of a tool in the table ``TOOLS``; what is in the other table is left out."""
    summary = make_summary(record)
    values = {name: getattr(summary, name) for name in _SEARCH_COLUMNS}
    data = record.to_dict()
    tool = {name: value for name, value in data["tool"].items() if name != "usage"}
    body = {name: value for name, value in data.items() if name not in _STANDING_MEMBERS} | {"tool": tool}
    # As ASCII, in which characters that some store cannot hold, such as NUL, are escaped.
    return values | {"body": json.dumps(body)}


def _make_standing_row(record: ToolRecord) -> dict[str, Any]:
    """Make the row of a tool in the table ``STANDINGS``: its usage, cool-down and claim."""
    usage = record.tool.usage
    body = {name: to_plain(getattr(record, name)) for name in _STANDING_MEMBERS}
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
        if any(getattr(summary, name) != getattr(row, name) for name in ("id", *_SEARCH_COLUMNS)):
            raise UsageError("its columns say otherwise")
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise LedgerError(
            f"the tool {row.id} cannot be read from its table ({type(error).__name__}); it was changed by hand"
        ) from None
    return record


def _read_summary(row: Any) -> ToolSummary:
    """Read the summary of a tool from its columns."""
    until = datetime.fromisoformat(row.claimed_until) if row.claimed_until else None
    texts = {name: getattr(row, name) for name in ("id", *_SEARCH_COLUMNS)}
    return ToolSummary(**texts, claimed_until=until)
