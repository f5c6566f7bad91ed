"""``/results``: every judgement and what a gate made of it, newest first, with filters in the address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query

from adjudge.ledger.columns import STATES
from adjudge.server.caller import AnyCaller
from adjudge.server.database import get_now
from adjudge.server.entry_search import read_closed
from adjudge.server.pages.page import add_page
from adjudge.server.recorded import Recorded, ResultFilters, list_results
from adjudge.server.state import CurrentState

router = APIRouter()

PERIODS = {"day": 1, "week": 7, "month": 30, "quarter": 90, "all": None}
"""The periods of the filter, in days."""

_PERIOD_WORDS = {"day": "24 hours", "week": "7 days", "month": "30 days", "quarter": "90 days", "all": "any time"}

ON_PAGE = 50
"""Results in one list."""

Word = Annotated[str, Query(max_length=200)]

Place = Annotated[int | None, Query(ge=1, lt=2**62)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFilters(ResultFilters):
    """The filters of the list, with its period."""

    when: str = "week"

    def make_query(self, *, before: int | None = None) -> str:
        """Make the query of an address with these filters, of results in front of a place if one is given."""
        filters = {"q": self.q, "gate": self.gate, "outcome": self.outcome, "by": self.by, "judge": self.judge}
        filters |= {"when": "" if self.when == "week" else self.when}
        query = {name: value for name, value in {**filters, "before": before}.items() if value not in ("", None)}
        return f"?{urlencode(query)}" if query else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateCount:
    """The number of results of a state."""

    state: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsView:
    """A page of results, and the figures of all that match."""

    filters: PageFilters
    rows: tuple[Recorded, ...]
    found: int
    shares: tuple[StateCount, ...]
    gates: tuple[str, ...]
    judges: tuple[str, ...]
    periods: tuple[tuple[str, str], ...]
    people: Mapping[str, tuple[str, ...]]
    """Who decided each request that is closed, by the ids of the requests of these rows."""
    before: int | None
    older: str
    """The address of the next page; empty at the end."""
    newest: str
    """The address of the first page; empty on it."""


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
) -> ResultsView:
    """List the results that match all filters."""
    filters = PageFilters(q=q, gate=gate, outcome=outcome, by=by, judge=judge, when=when if when in PERIODS else "week")
    days = PERIODS[filters.when]
    since = None if days is None else get_now() - timedelta(days=days)
    results = await list_results(
        state.ledger, filters, gates=caller.permissions.gates, since=since, before=before, most=ON_PAGE
    )
    subjects = {row.subject for row in results.rows if row.approval_id}
    return ResultsView(
        filters=filters,
        rows=results.rows,
        found=sum(results.counts.values()),
        shares=tuple(StateCount(state=name, number=results.counts.get(name, 0)) for name in STATES),
        gates=tuple(sorted({*results.gates, filters.gate} - {""})),
        judges=tuple(sorted({*results.judges, filters.judge} - {""})),
        periods=tuple(_PERIOD_WORDS.items()),
        people=await read_closed(state.ledger, subjects) if subjects else {},
        before=before,
        older=filters.make_query(before=results.rows[-1].seq) if results.more and results.rows else "",
        newest="" if before is None else filters.make_query() or "?",
    )


add_page(router, "/results", view_results, template="results.html", scope="read", by_gate=True)
