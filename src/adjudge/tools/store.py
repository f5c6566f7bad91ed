"""The two tables of forged tools, beside the ledger whose entries tell of every review and every change of tier."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from adjudge.content import digest_text
from adjudge.errors import LedgerError, ToolRefused, UsageError
from adjudge.ledger.entry import Entry
from adjudge.ledger.ledger import Ledger
from adjudge.ledger.payload import can_store
from adjudge.ledger.store import Transaction
from adjudge.tools.promotion import is_near
from adjudge.tools.record import ToolRecord, ToolSummary, make_summary, standing_to_dict
from adjudge.tools.tool import ToolCandidate
from adjudge.tools.verdict import ToolVerdict

if TYPE_CHECKING:
    from sqlalchemy import Connection, MetaData, Select, Table


SCHEMA = "adjudge/tool-entry/1"

KINDS = ("tool.reviewed", "tool.promoted", "tool.demoted")

_COMPARED = ("tool", "name", "description", "agent", "session", "tier", "status", "approved_by")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEntry:
    """An entry to be: its kind, which tool it is about by its digest, and what it says."""

    kind: str
    subject: str
    payload: dict[str, Any]


def make_reviewed_entry(record: ToolRecord, verdict: ToolVerdict, *, by: str | None = None) -> ToolEntry:
    """That a tool was reviewed, what was said, and as what it goes on."""
    more = {"verdict": verdict.to_dict()} | ({"by": by} if by is not None else {})
    return ToolEntry(kind="tool.reviewed", subject=verdict.tool_digest, payload=_about(record) | more)


def make_rejected_entry(candidate: ToolCandidate, verdict: ToolVerdict, agent: str, session: str) -> ToolEntry:
    """That a candidate did not become a tool."""
    payload = {"schema": SCHEMA, "tool": None, "name": candidate.name, "agent": agent, "session": session}
    payload |= {"description": digest_text(candidate.description), "status": "rejected"}
    return ToolEntry(
        kind="tool.reviewed", subject=verdict.tool_digest, payload=payload | {"verdict": verdict.to_dict()}
    )


def make_lost_entry(ident: str, verdict: ToolVerdict, why: str) -> ToolEntry:
    """What was said of a tool that is gone, or is another one, by now: paid for, recorded, and without effect."""
    payload = {"schema": SCHEMA, "tool": ident, "status": "unchanged", "why": why, "verdict": verdict.to_dict()}
    return ToolEntry(kind="tool.reviewed", subject=verdict.tool_digest, payload=payload)


def make_promoted_entry(record: ToolRecord, verdict: ToolVerdict) -> ToolEntry:
    """That a tool rose, by which verdict, and who approved."""
    return ToolEntry(
        kind="tool.promoted", subject=record.digest, payload=_about(record) | {"verdict": verdict.to_dict()}
    )


def make_demoted_entry(before: ToolRecord, status: str, reason: str, by: str | None) -> ToolEntry:
    """That a tool does not run any more: demoted, changed or removed; a person's reason is kept as it is."""
    payload = _about(before) | {"status": status, "tier": "session", "approved_by": None, "was": before.tier}
    return ToolEntry(kind="tool.demoted", subject=before.digest, payload=payload | {"reason": reason, "by": by})


def find_doubt(record: ToolRecord, entries: Iterable[Entry]) -> str | None:
    """What the ledger does not say as the table does, or ``None``; ``entries`` are those about the tool's digest.

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
    wanted = _about(record)
    odd = [name for name in _COMPARED if last.get(name) != wanted[name]]
    return f"its {', '.join(odd)}" if odd else None


def _about(record: ToolRecord) -> dict[str, Any]:
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
    """Which tools are looked for; ``None`` is any. Texts are compared whole."""

    tier: str | None = None
    status: str | None = None
    agent: str | None = None
    session: str | None = None

    def fits(self, record: ToolRecord) -> bool:
        """Whether a record is one of these."""
        tool = record.tool
        held = {"tier": tool.tier, "status": record.status, "agent": tool.agent, "session": tool.session}
        return all(getattr(self, name) in (None, value) for name, value in held.items())


class View(Protocol):
    """The tools within one transaction, or as they are at one moment."""

    def load(self, ident: str) -> ToolRecord | None:
        """The tool of this id."""

    def find(self, wanted: ToolFilter) -> list[ToolRecord]:
        """Tools in the order in which they were registered."""

    def list_near(self, card: ToolSummary) -> list[ToolSummary]:
        """At least every tool that ``is_near`` another."""

    def save(self, record: ToolRecord) -> None:
        """Write a new tool, or all of one that is there."""

    def save_standing(self, record: ToolRecord) -> None:
        """Write the usage, the cool-down and the claim of a tool that is there; nothing else has changed."""

    def delete(self, ident: str) -> None:
        """Remove a tool."""

    def append_entry(self, said: ToolEntry) -> None:
        """Record something, in the same transaction."""


class ToolStore(Protocol):
    """A store of tools."""

    async def change(self, work: Callable[[View], T]) -> T:
        """Do some work while nobody else changes anything: all of it, durably, or nothing where it raises."""

    async def look(self, work: Callable[[View], T]) -> T:
        """What some reading makes of the tools."""

    async def find_doubt(self, record: ToolRecord) -> str | None:
        """What is known elsewhere otherwise than a record says."""

    async def aclose(self) -> None:
        """Close what was opened here."""


class MemoryToolStore:
    """Tools in this process; gone with it."""

    def __init__(self) -> None:
        self._view = _MemoryView({}, {})
        self._lock = threading.Lock()

    async def change(self, work: Callable[[View], T]) -> T:
        """Do some work on a copy, which takes the tools' place when it is done."""
        with self._lock:  # loops of several threads may come here at once; nothing is awaited inside
            view = _MemoryView(dict(self._view.records), dict(self._view.cards))
            said = work(view)
            self._view = view
        return said

    async def look(self, work: Callable[[View], T]) -> T:
        """What some reading makes of the tools."""
        return work(self._view)

    async def find_doubt(self, record: ToolRecord) -> str | None:
        """Nothing: whoever can change this memory can change this code."""
        del record
        return None

    async def aclose(self) -> None:
        """Nothing was opened."""


class _MemoryView:
    def __init__(self, records: dict[str, ToolRecord], cards: dict[str, ToolSummary]) -> None:
        self.records, self.cards = records, cards

    def load(self, ident: str) -> ToolRecord | None:
        return self.records.get(ident)

    def find(self, wanted: ToolFilter) -> list[ToolRecord]:
        return [item for item in self.records.values() if wanted.fits(item)]

    def list_near(self, card: ToolSummary) -> list[ToolSummary]:
        return [other for other in self.cards.values() if is_near(card, other)]

    def save(self, record: ToolRecord) -> None:
        self.records[record.id], self.cards[record.id] = record, make_summary(record)

    def save_standing(self, record: ToolRecord) -> None:
        self.records[record.id] = record
        until = record.claim.until if record.claim else None
        self.cards[record.id] = replace(self.cards[record.id], claimed_until=until)

    def delete(self, ident: str) -> None:
        self.records.pop(ident, None)
        self.cards.pop(ident, None)

    def append_entry(self, said: ToolEntry) -> None:
        """Nobody is told: what lives in this process alone is recorded nowhere."""
        del said


TOOLS = "adjudge_tools"

STANDINGS = "adjudge_tool_standings"

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
class LedgerToolStore:
    """Tools in tables beside a ledger: a verdict, its entry and the change of tier are one transaction."""

    ledger: Ledger
    owns: bool
    """Whether the ledger was opened for this and is closed with it."""

    async def change(self, work: Callable[[View], T]) -> T:
        """Do some work while every other writer of the ledger waits: all of it, durably, or nothing."""

        def run(transaction: Transaction) -> T:
            return work(_TableView(transaction.connection, self.ledger, transaction))

        return await self.ledger.transact(run, tables=make_tables())

    async def look(self, work: Callable[[View], T]) -> T:
        """What some reading makes of the tools; where there is no ledger yet, there are none."""

        def run(opened: Connection) -> tuple[Any, ToolRefused | None]:
            # A refusal is handed over as a value: raised, it would be taken for a ledger that is not there.
            try:
                return work(_TableView(opened, self.ledger)), None
            except ToolRefused as error:
                return None, error

        try:
            found = await self.ledger.look(run, tables=make_tables())
        except UsageError:
            found = None
        if found is None:
            return work(_EmptyView())
        said, refused = found
        if refused is not None:
            raise refused
        return said

    async def find_doubt(self, record: ToolRecord) -> str | None:
        """What the ledger does not confirm of a record."""
        return find_doubt(record, [entry async for entry in self.ledger.query(subject=record.digest)])

    async def aclose(self) -> None:
        """Close the ledger if it was opened here."""
        if self.owns:
            await self.ledger.aclose()


class _EmptyView:
    """What there is to read where nothing was ever written."""

    def load(self, ident: str) -> None:
        del ident

    def find(self, wanted: ToolFilter) -> list[ToolRecord]:
        del wanted
        return []

    def list_near(self, card: ToolSummary) -> list[ToolSummary]:
        del card
        return []

    def save(self, record: ToolRecord) -> None:
        raise NotImplementedError

    save_standing = save

    def delete(self, ident: str) -> None:
        raise NotImplementedError

    def append_entry(self, said: ToolEntry) -> None:
        raise NotImplementedError


class _TableView:
    def __init__(self, connection: Connection, ledger: Ledger, transaction: Transaction | None = None) -> None:
        self._connection, self._ledger, self._transaction = connection, ledger, transaction

    def load(self, ident: str) -> ToolRecord | None:
        # What no store can hold is no id, and some raise when they are asked for it.
        known = isinstance(ident, str) and can_store(ident)
        found = self._fetch(_select().where(_tools().c.id == ident)) if known else []
        return found[0] if found else None

    def find(self, wanted: ToolFilter) -> list[ToolRecord]:
        statement = _select().order_by(_tools().c.id)
        for name in ("tier", "status", "agent", "session"):
            if getattr(wanted, name) is not None:
                statement = statement.where(_tools().c[name] == getattr(wanted, name))
        return self._fetch(statement)

    def list_near(self, card: ToolSummary) -> list[ToolSummary]:
        from sqlalchemy import or_, select

        tools, standings = _tools(), _standings()
        same = [tools.c[name] == getattr(card, name) for name in ("name", "agent", "session", "digest")]
        statement = select(*[tools.c[name] for name in ("id", *_LOOKED_FOR)], standings.c.claimed_until)
        statement = statement.join(standings, standings.c.tool == tools.c.id).where(or_(*same), tools.c.id != card.id)
        return [_read_card(row) for row in self._connection.execute(statement)]

    def save(self, record: ToolRecord) -> None:
        table, values = _tools(), _to_row(record)
        statement = table.update().where(table.c.id == record.id).values(**values)
        if self._connection.execute(statement).rowcount:
            self.save_standing(record)
            return
        self._connection.execute(table.insert().values(id=record.id, **values))
        self._connection.execute(_standings().insert().values(tool=record.id, **_standing_columns(record)))

    def save_standing(self, record: ToolRecord) -> None:
        table = _standings()
        statement = table.update().where(table.c.tool == record.id).values(**_standing_columns(record))
        if self._connection.execute(statement).rowcount != 1:
            raise LedgerError(f"the tool {record.id} was removed by something that is not adjudge; nothing was changed")

    def delete(self, ident: str) -> None:
        for table, column in ((_standings(), "tool"), (_tools(), "id")):
            self._connection.execute(table.delete().where(table.c[column] == ident))

    def append_entry(self, said: ToolEntry) -> None:
        if self._transaction is None:
            raise NotImplementedError
        self._transaction.append(self._ledger.make_entry(said.payload, kind=said.kind, subject=said.subject))

    def _fetch(self, statement: Select[Any]) -> list[ToolRecord]:
        return [_read(row) for row in self._connection.execute(statement)]


def _tools() -> Table:
    return make_tables().tables[TOOLS]


def _standings() -> Table:
    return make_tables().tables[STANDINGS]


def _select() -> Select[Any]:
    from sqlalchemy import select

    tools, standings = _tools(), _standings()
    return select(tools, standings.c.body.label("standing")).join(standings, standings.c.tool == tools.c.id)


def _to_row(record: ToolRecord) -> dict[str, Any]:
    card = make_summary(record)
    values = {name: getattr(card, name) for name in _LOOKED_FOR}
    body = {name: item for name, item in record.to_dict().items() if name not in standing_to_dict(record)}
    body["tool"] = {name: item for name, item in body["tool"].items() if name != "usage"}
    # In ASCII: NUL and the like in a tool's source are escapes then, which every store can hold.
    return values | {"body": json.dumps(body)}


def _standing_columns(record: ToolRecord) -> dict[str, Any]:
    usage = record.tool.usage
    body = standing_to_dict(record) | {"usage": usage.to_dict() if usage is not None else None}
    until = record.claim.until.astimezone(UTC).isoformat() if record.claim else None
    return {"claimed_until": until, "body": json.dumps(body)}


def _read(row: Any) -> ToolRecord:
    try:
        body, standing = json.loads(row.body), json.loads(row.standing)
        usage = standing.pop("usage")
        found = ToolRecord.from_dict({**body, **standing, "tool": {**body["tool"], "usage": usage}})
        card = make_summary(found)
        if any(getattr(card, name) != getattr(row, name) for name in ("id", *_LOOKED_FOR)):
            raise UsageError("its columns say otherwise")
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise LedgerError(
            f"the tool {row.id} cannot be read from its table ({type(error).__name__}); it was changed by hand"
        ) from None
    return found


def _read_card(row: Any) -> ToolSummary:
    until = datetime.fromisoformat(row.claimed_until) if row.claimed_until else None
    texts = {name: getattr(row, name) for name in ("id", *_LOOKED_FOR)}
    return ToolSummary(**texts, claimed_until=until)
