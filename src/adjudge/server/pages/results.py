"""``/results``: every judgement and what a gate made of it, newest first, with filters in the address.

Which results are listed is decided in ``server/result_lists.py`` (``list_results``).
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query

from adjudge.ledger.columns import NOT_JUDGED, STATES
from adjudge.ledger.search_text import LONGEST_QUERY
from adjudge.server.caller import AnyCaller
from adjudge.server.pages.page import Context, add_page
from adjudge.server.pages.paging import Word, choose_word, write_address
from adjudge.server.result_lists import PERIODS, ResultFilters, list_results
from adjudge.server.state import CurrentState

router = APIRouter()

_PERIOD_WORDS = {"day": "24 hours", "week": "7 days", "month": "30 days", "quarter": "90 days", "all": "any time"}

ON_PAGE = 50
"""Results in one list."""

Place = Annotated[int | None, Query(ge=1, lt=2**62)]


async def view_results(
    state: CurrentState,
    caller: AnyCaller,
    *,
    q: Annotated[str, Query(max_length=LONGEST_QUERY)] = "",
    gate: Word = "",
    outcome: Word = "",
    by: Word = "",
    judge: Word = "",
    when: Word = "week",
    before: Place = None,
) -> Context:
    """List the results that match all filters."""
    chosen = choose_word(when, PERIODS, "week")
    filters = ResultFilters(q=q, gate=gate, outcome=outcome, by=by, judge=judge, when=chosen)
    results = await list_results(state.ledger, filters, gates=caller.permissions.gates, before=before, most=ON_PAGE)
    return {
        "filters": filters,
        "query": write_query(filters),
        "rows": results.rows,
        "unsearched": results.unsearched,
        "counts": [(state, results.counts.get(state, 0)) for state in STATES],
        "unjudged": results.counts.get(NOT_JUDGED, 0),
        "total": sum(results.counts.values()),
        "gates": sorted({*results.gates, filters.gate} - {""}),
        "judges": sorted({*results.judges, filters.judge} - {""}),
        "periods": _PERIOD_WORDS,
        "older": write_query(filters, before=results.rows[-1].seq) if results.more and results.rows else "",
        "newest": "" if before is None else write_query(filters) or "?",
    }


def write_query(filters: ResultFilters, *, before: int | None = None) -> str:
    """Write the query of an address with these filters; with ``before``, only for results older than that entry."""
    texts = asdict(filters) | {"when": "" if filters.when == "week" else filters.when}
    return write_address("", {**texts, "before": before})


add_page(router, "/results", view_results, template="results.html", scope="read", by_gate=True)
