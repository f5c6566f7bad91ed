"""``/results``: every judgement and what a gate made of it, newest first, with filters in the address."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query

from adjudge.server.caller import AnyCaller, Caller
from adjudge.server.database import get_now
from adjudge.server.entry_search import read_closed
from adjudge.server.pages.page import add_page
from adjudge.server.recorded import MOST_READ, STATES, Recorded, read_recorded
from adjudge.server.state import CurrentState

router = APIRouter()

PERIODS = {"day": 1, "week": 7, "month": 30, "quarter": 90, "all": None}
"""The periods of the filter, in days."""

_PERIOD_WORDS = {"day": "24 hours", "week": "7 days", "month": "30 days", "quarter": "90 days", "all": "any time"}

_ON_PAGE = 50

Word = Annotated[str, Query(max_length=200)]

Place = Annotated[int | None, Query(ge=1, lt=2**62)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFilters:
    """What the list is narrowed by; an empty text is no condition."""

    q: str = ""
    gate: str = ""
    outcome: str = ""
    by: str = ""
    judge: str = ""
    when: str = "week"

    def make_query(self, **more: object) -> str:
        """The query of an address with these filters, and more."""
        said = {"q": self.q, "gate": self.gate, "outcome": self.outcome, "by": self.by, "judge": self.judge}
        said |= {"when": "" if self.when == "week" else self.when}
        given = {name: value for name, value in {**said, **more}.items() if value not in ("", None)}
        return f"?{urlencode(given)}" if given else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateCount:
    """How many there are of each state."""

    state: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsView:
    """A page of results, and the figures of all that match."""

    filters: ResultFilters
    rows: tuple[Recorded, ...]
    found: int
    shares: tuple[StateCount, ...]
    gates: tuple[str, ...]
    judges: tuple[str, ...]
    periods: tuple[tuple[str, str], ...]
    people: Mapping[str, tuple[str, ...]]
    """Who decided each request that is closed, by the ids of the requests of these rows."""
    before: int | None
    until: int | None
    """The place before which entries were read; ``None`` for the newest ones."""
    older: str
    """The address of the next page; empty at the end."""
    newest: str
    """The address of the first page; empty on it."""
    earlier: str
    """The address of what is older than everything that was read; empty where all of the period was read."""
    limit: int


async def view_results(
    state: CurrentState,
    caller: AnyCaller,
    *,
    q: Word = "",
    gate: Word = "",
    outcome: Word = "",
    by: Word = "",
    judge: Word = "",
    when: Word = "week",
    before: Place = None,
    until: Place = None,
) -> ResultsView:
    """The results that match all filters, among at most 20,000 before the place ``until``."""
    filters = ResultFilters(
        q=q, gate=gate, outcome=outcome, by=by, judge=judge, when=when if when in PERIODS else "week"
    )
    days = PERIODS[filters.when]
    since = None if days is None else get_now() - timedelta(days=days)
    read, last = await read_recorded(state.ledger, since=since, before=until, most=MOST_READ)
    # In a thread: so many rows take a while, in which no gate would be answered.
    seen, found = await asyncio.to_thread(_choose_rows, read, filters, caller)
    counts = Counter(row.state for row in found)
    rest = [row for row in found if before is None or row.seq < before]
    rows = rest[:_ON_PAGE]
    asked = {row.subject for row in rows if row.approval_id}
    return ResultsView(
        filters=filters,
        rows=tuple(rows),
        found=len(found),
        shares=tuple(StateCount(state=name, number=counts[name]) for name in STATES),
        gates=tuple(sorted({row.gate for row in seen if row.gate} | {filters.gate} - {""})),
        judges=tuple(sorted({row.judge for row in seen if row.judge} | {filters.judge} - {""})),
        periods=tuple(_PERIOD_WORDS.items()),
        people=await read_closed(state.ledger, asked) if asked else {},
        before=before,
        until=until,
        older=filters.make_query(before=rows[-1].seq, until=until) if len(rest) > _ON_PAGE else "",
        newest="" if before is None and until is None else filters.make_query() or "?",
        limit=MOST_READ,
        earlier="" if last is None else filters.make_query(until=last),
    )


def _choose_rows(
    read: Sequence[Recorded], filters: ResultFilters, caller: Caller
) -> tuple[list[Recorded], list[Recorded]]:
    """The rows that the caller may see, and those of them that match the filters."""
    words = [word.removeprefix("sha256:") for word in filters.q.lower().split()]
    seen = [row for row in read if caller.covers("read", row.gate)]
    # A held decision is recorded again once people decided: one row tells of both.
    ended = {row.approval_id for row in seen if not row.held and row.approval_id}
    return seen, [row for row in seen if _fits(row, filters, words) and not (row.held and row.approval_id in ended)]


def _fits(row: Recorded, filters: ResultFilters, words: Sequence[str]) -> bool:
    return (
        (not filters.gate or row.gate == filters.gate)
        and (not filters.outcome or row.state == filters.outcome)
        and (not filters.by or row.decided_by == filters.by)
        and (not filters.judge or row.judge == filters.judge)
        and (not words or _holds(row, words))
    )


def _holds(row: Recorded, words: Sequence[str]) -> bool:
    texts: Sequence[str] = (row.id, row.result_id, row.subject, row.why, row.content or "", row.judge, str(row.seq))
    text = "\n".join(texts).lower()  # a word has no line end, so it is found within one text
    return all(word in text for word in words)


add_page(router, "/results", view_results, template="results.html", scope="read", by_gate=True)
