"""``/v1/results``: judged contents and what gates did with them, newest first, and everything recorded about one.

Which results a list has is decided in ``server/result_lists.py`` (``list_results``), and which entries belong to one in
``server/entry_history.py`` (``load_story``).
"""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Depends, Query
from starlette.responses import Response

from adjudge.ledger.columns import STATES
from adjudge.ledger.search_text import LONGEST_QUERY
from adjudge.ledger.short_results import ResultPeriod, ResultState
from adjudge.result import DecidedBy
from adjudge.server.api.approvals import SEARCHED
from adjudge.server.api.endpoint import answer, make_router
from adjudge.server.caller import Caller, require
from adjudge.server.entry_history import load_story
from adjudge.server.result_lists import ResultFilters, list_results
from adjudge.server.state import CurrentState

router = make_router("results")

MOST = 1_000

Reading = Annotated[Caller, Depends(require("read", by_gate=True))]

Word = Annotated[str, Query(max_length=200)]


When = Annotated[ResultPeriod, Query(description="The last 1, 7, 30 or 90 days, or all.")]


@router.get("/results")
async def query_results(  # noqa: PLR0917 - each is a member of the query
    state: CurrentState,
    caller: Reading,
    q: Annotated[str, Query(max_length=LONGEST_QUERY, description=SEARCHED)] = "",
    gate: Word = "",
    outcome: ResultState | Literal[""] = "",
    by: Annotated[DecidedBy | Literal[""], Query(description="Who decided.")] = "",
    judge: Word = "",
    when: When = "week",
    before: Annotated[int | None, Query(ge=1, lt=2**62)] = None,
    limit: Annotated[int, Query(ge=1, le=MOST)] = 100,
) -> Response:
    """List the results that match all filters, the newest first; ``next`` is the ``before`` of the next page, or null.

    ``counts`` and ``total`` are about all that match. A key that is limited to gates gets the results of those. With
    ``q``, ``unsearched`` is the number of the last entry up to which the search index is still being built; else 0.
    """
    filters = ResultFilters(q=q, gate=gate, outcome=outcome, by=by, judge=judge, when=when)
    results = await list_results(state.ledger, filters, gates=caller.permissions.gates, before=before, most=limit)
    return answer(
        {
            "schema": "adjudge/server-results/1",
            "results": [row.to_dict() for row in results.rows],
            "counts": {name: results.counts.get(name, 0) for name in STATES},
            "total": sum(results.counts.values()),
            "gates": results.gates,
            "judges": results.judges,
            "unsearched": results.unsearched,
            "next": results.rows[-1].seq if results.more and results.rows else None,
        }
    )


@router.get("/results/{ident}")
async def get_result(ident: str, state: CurrentState, caller: Reading) -> Response:
    """One result, with every entry of the ledger about it and its request for approval.

    It is found by the id of the decision, of the judge's result or of the request, or by the number of its entry.
    """
    story = await load_story(state, caller, ident)
    entries = [entry.to_dict() for entry in story.entries]
    return answer({"schema": "adjudge/server-result/1", "result": story.row.to_dict(), "entries": entries})
