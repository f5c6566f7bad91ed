"""A server's record of what was judged and what gates did with it, to read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from adjudge.client.connection import Connection
from adjudge.client.request_members import read_answer
from adjudge.formats.msgspec_types import read_typed
from adjudge.ledger.entry import Entry
from adjudge.ledger.short_results import RecordedResult, ResultPeriod, ResultState
from adjudge.result import DecidedBy
from adjudge.sync import make_sync_method, run_sync


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RemoteResults:
    """The decisions and results that a server recorded, to read."""

    connection: Connection
    """The way to the server."""

    async def query(
        self,
        words: str | None = None,
        *,
        gate: str | None = None,
        outcome: ResultState | None = None,
        decided_by: DecidedBy | None = None,
        judge: str | None = None,
        when: ResultPeriod = "all",
    ) -> AsyncIterator[RecordedResult]:
        """Yield the results that match all filters, the newest first.

        A held decision has the outcome ``held``.

        Args:
            words: Words that are all in a result's texts or metadata, or its id or the beginning of its digest; a
                filter such as ``customer:C-20931`` or ``title:"two words"`` is about one of the documented keys.
                ``None`` is all.
            gate: Only results of the gate of this name.
            outcome: Only results with this outcome.
            decided_by: Only results that this one decided: ``judge``, ``rule``, ``human`` or ``policy``.
            judge: Only results of the judge of this name.
            when: How far back to look: ``day``, ``week``, ``month`` and ``quarter`` are the last 1, 7, 30 and 90 days,
                and ``all`` is no limit.
        """
        filters = {"q": words, "gate": gate, "outcome": outcome, "by": decided_by, "judge": judge, "when": when}
        before, more = None, True
        while more:
            results, before = await self._fetch_page(before, filters)
            for result in results:
                yield result
            more = before is not None

    def query_sync(
        self,
        words: str | None = None,
        *,
        gate: str | None = None,
        outcome: ResultState | None = None,
        decided_by: DecidedBy | None = None,
        judge: str | None = None,
        when: ResultPeriod = "all",
    ) -> Iterator[RecordedResult]:
        """Do the same as ``query`` without an event loop, a page of results at a time."""
        filters = {"q": words, "gate": gate, "outcome": outcome, "by": decided_by, "judge": judge, "when": when}
        before, more = None, True
        while more:
            results, before = run_sync(self._fetch_page(before, filters))
            yield from results
            more = before is not None

    async def entries(self, id: str) -> tuple[Entry, ...]:  # noqa: A002 - as in Approvals
        """Return every entry of the ledger about one result and its request for approval, in order.

        Raises ``UsageError`` where nothing has this id.

        Args:
            id: The id of the decision, of the judge's result or of the request.
        """
        reply = await self.connection.get("v1", "results", id)
        return read_answer(_read_entries, reply, self.connection.url, "result")

    entries_sync = make_sync_method(entries)

    async def _fetch_page(
        self, before: int | None, filters: Mapping[str, str | None]
    ) -> tuple[tuple[RecordedResult, ...], int | None]:
        """Fetch the results before a number, and the number before which there are more, or ``None``."""
        reply = await self.connection.get("v1", "results", before=before, limit=1_000, **filters)
        return read_answer(_read_page, reply, self.connection.url, "list of results")


def _read_page(members: Mapping[str, Any]) -> tuple[tuple[RecordedResult, ...], int | None]:
    """Read a page: its results, and the number before which there are more, or ``None``.

    Raises ``TypeError`` for another number than an integer, which ``read_answer`` turns into a ``ServerError``.
    """
    results, before = tuple([RecordedResult.from_dict(row) for row in members["results"]]), members["next"]
    if before is not None and type(before) is not int:
        raise TypeError
    return results, before


def _read_entries(members: Mapping[str, Any]) -> tuple[Entry, ...]:
    return tuple([read_typed(row, Entry) for row in members["entries"]])
