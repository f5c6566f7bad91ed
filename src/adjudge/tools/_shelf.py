"""Where a registry keeps its tools: what it needs of a store, and the one in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from adjudge.tools._entries import Said
from adjudge.tools._record import Card, ToolRecord, is_near, make_card

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
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

    def find(self, wanted: Wanted) -> list[ToolRecord]:
        """Tools in the order in which they were registered."""

    def list_near(self, card: Card) -> list[Card]:
        """At least every tool that ``is_near`` another."""

    def save(self, record: ToolRecord) -> None:
        """Write a new tool, or all of one that is there."""

    def save_standing(self, record: ToolRecord) -> None:
        """Write the usage, the cool-down and the claim of a tool that is there; nothing else has changed."""

    def delete(self, ident: str) -> None:
        """Remove a tool."""

    def tell(self, said: Said) -> None:
        """Record something, in the same transaction."""


class Shelf(Protocol):
    """A store of tools."""

    async def change(self, work: Callable[[View], T]) -> T:
        """Do some work while nobody else changes anything: all of it, durably, or nothing where it raises."""

    async def look(self, work: Callable[[View], T]) -> T:
        """What some reading makes of the tools."""

    async def find_doubt(self, record: ToolRecord) -> str | None:
        """What is known elsewhere otherwise than a record says."""

    async def aclose(self) -> None:
        """Close what was opened here."""


class MemoryShelf:
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
    def __init__(self, records: dict[str, ToolRecord], cards: dict[str, Card]) -> None:
        self.records, self.cards = records, cards

    def load(self, ident: str) -> ToolRecord | None:
        return self.records.get(ident)

    def find(self, wanted: Wanted) -> list[ToolRecord]:
        return [item for item in self.records.values() if wanted.fits(item)]

    def list_near(self, card: Card) -> list[Card]:
        return [other for other in self.cards.values() if is_near(card, other)]

    def save(self, record: ToolRecord) -> None:
        self.records[record.id], self.cards[record.id] = record, make_card(record)

    def save_standing(self, record: ToolRecord) -> None:
        self.records[record.id] = record
        until = record.claim.until if record.claim else None
        self.cards[record.id] = replace(self.cards[record.id], claimed_until=until)

    def delete(self, ident: str) -> None:
        self.records.pop(ident, None)
        self.cards.pop(ident, None)

    def tell(self, said: Said) -> None:
        """Nobody is told: what lives in this process alone is recorded nowhere."""
        del said
