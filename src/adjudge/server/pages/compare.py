"""``/compare``: two runs side by side, what changed first; the same figures and words as ``adjudge diff``.

Which cases somebody who labels is not to read yet is decided in ``server/blind_cases.py`` (``find_withheld``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from adjudge.report.diff_document import list_diff_blocks, make_diff_entry
from adjudge.report.diff_words import describe_change, list_kinds
from adjudge.report.document import CaseEntry
from adjudge.report.paired_cases import pair_case, pair_cases
from adjudge.report.render import render_diff_html
from adjudge.report.run_diff import ComparedCase, Diff
from adjudge.runs.folder import Run
from adjudge.server.blind_cases import find_withheld, note_listed, note_read
from adjudge.server.pages.case_lists import ComparedCaseFilters, ComparedFilters, Comparison, link_case, load_comparison
from adjudge.server.pages.page import Context, redirect, show_page
from adjudge.server.pages.paging import Number, cut_page, write_address
from adjudge.server.pages.runs import Reader, can_be_measured, make_withheld_entry, send_file, view_runs
from adjudge.server.problem import Problem
from adjudge.server.state import CurrentPageState, PageState

router = APIRouter()

_PATH = "/compare"


@router.get(_PATH, include_in_schema=False)
async def show_comparison(
    *,
    request: Request,
    state: CurrentPageState,
    caller: Reader,
    filters: ComparedFilters,
    run: Annotated[list[str] | None, Query(max_length=100)] = None,
    page: Number = 1,
) -> Response:
    """Show two runs, named as ``a`` and ``b``; ``run`` are those that were chosen in the list of runs."""
    if not (filters.a and filters.b):
        return await _lead_to_chosen(request, state, caller, run or [])
    withheld = await find_withheld(request, caller, filters.a) | await find_withheld(request, caller, filters.b)
    context, shown = await asyncio.to_thread(_collect_comparison, state, filters, page, withheld)
    for name in (filters.a, filters.b):
        await note_listed(request, caller, name, shown, withheld=withheld, tells_verdicts=filters.tells_verdicts)
    context["has_labels"] = caller.may("label") and caller.rater is not None
    return await show_page(request, "compare.html", context, caller=caller)


async def _lead_to_chosen(request: Request, state: PageState, caller: Reader, names: list[str]) -> Response:
    """Redirect to the comparison of the two runs that were chosen in the list of runs, the older one as A.

    If not two were chosen, it shows the list again with an error.
    """
    chosen = list(dict.fromkeys(names))
    if len(chosen) == 2:
        runs = await asyncio.to_thread(state.library.summarise)
        start_times = {summary.name: summary.created_at for summary in runs}
        first, second = sorted(chosen, key=lambda name: start_times.get(name, ""))
        return redirect(write_address(_PATH, {"a": first, "b": second}))
    context: Context = await view_runs(state)
    context["error"] = f"Choose two runs to compare; {len(chosen)} {'is' if len(chosen) == 1 else 'are'} chosen."
    return await show_page(request, "runs.html", context | {"chosen": chosen}, caller=caller, status=422)


@router.get("/compare/report.html", include_in_schema=False)
async def send_comparison(
    request: Request, state: CurrentPageState, caller: Reader, filters: ComparedFilters
) -> Response:
    """Send the comparison as one file to keep, as ``adjudge diff --html`` writes it."""
    if not (filters.a and filters.b):
        raise Problem(422, "a comparison is of two runs; name them as a and b", code="usage")

    def draw() -> tuple[str, list[str]]:
        """Render the comparison as an HTML file; return it with the ids of all cases, whose verdicts it tells."""
        comparison = load_comparison(state.library, filters.a, filters.b)
        with state.library.open(filters.a) as before, state.library.open(filters.b) as after:
            text = render_diff_html(comparison.diff, pair_cases(comparison.diff, before, after))
        # Every case counts as read: one that is not listed as changed has the same verdict in both runs, so its
        # reader's later label is not blind.
        return text, [case.change.case for case in comparison.cases]

    text, cases = await asyncio.to_thread(draw)
    for name in (filters.a, filters.b):
        await note_read(request, caller, name, cases, all_cases=True)
    return send_file(f"{filters.a}-{filters.b}.html", text)


def _collect_comparison(
    state: PageState, filters: ComparedCaseFilters, page: int, withheld: frozenset[str]
) -> tuple[Context, list[str]]:
    """Make the context of the page; return it with the ids of the cases whose verdicts the page shows."""
    library = state.library
    comparison = load_comparison(library, filters.a, filters.b)
    is_measured = not _has_figures(comparison.diff) or can_be_measured(library, withheld, filters.a, filters.b)
    if not is_measured:
        comparison = load_comparison(library, filters.a, filters.b, measured=False)
    diff = comparison.diff
    run_names = {"a": filters.a, "b": filters.b}

    def link(values: Mapping[str, str]) -> str:
        """Write the address of the cases of this comparison with other filters."""
        members = {name: value for name, value in values.items() if name != "kind"}
        return write_address(_PATH, run_names | members, "cases")

    with ExitStack() as stack:
        runs = (stack.enter_context(library.open(filters.a)), stack.enter_context(library.open(filters.b)))
        listed = cut_page(
            filters.select_cases(comparison, runs, withheld),
            page,
            lambda number: write_address(_PATH, {**filters.values, "page": number}, "cases"),
        )
        entries = [_make_entry(diff, runs, case, filters, withheld) for case in listed.rows]
    context: Context = {
        "diff": diff,
        "remark": comparison.remark,
        "left": diff.systems.left if diff.systems is not None else None,
        "headline": describe_change(diff),
        "summaries": {run.name: run for run in library.summarise()},
        "blocks": list_diff_blocks(diff, link),
        "filters": filters,
        "listed": listed,
        "entries": entries,
        "withheld": len(withheld),
        "is_measured": is_measured,
        "picks": _list_quick_filters(comparison, filters),
        "criteria": list(diff.criteria),
        "verdicts": ("first", "second", "tie", "undecided") if diff.pairs else ("passed", "not", "failed", "undecided"),
        "swapped": write_address(_PATH, {**filters.values, "a": filters.b, "b": filters.a}),
        "file": write_address("/compare/report.html", run_names),
        "first_words": dict(list_kinds(diff)),
    }
    return context, [case.change.case for case in listed.rows if case.change.case not in withheld]


def _has_figures(diff: Diff) -> bool:
    """Return whether a comparison has figures of labels and verdicts, and not only how many labels are missing."""
    return (
        diff.measured is not None
        or diff.judges is not None
        or (diff.systems is not None and diff.systems.rate is not None)
    )


def _make_entry(
    diff: Diff, runs: tuple[Run, Run], case: ComparedCase, filters: ComparedCaseFilters, withheld: frozenset[str]
) -> CaseEntry:
    """Make the line of a case in two runs; for a case that its reader has to label first, it shows no verdict."""
    name, place = case.change.case, case.places[1]
    address = link_case(filters.b, name, place, filters.values)
    if name in withheld:
        return make_withheld_entry(name, place, address)
    change = case.change if case.changed else None
    return make_diff_entry(diff, pair_case(name, *runs, change), link=address)


def _list_quick_filters(comparison: Comparison, filters: ComparedCaseFilters) -> list[tuple[str, str, int, bool]]:
    """List the buttons that filter the cases by what changed.

    Each is its address, its words, the number of cases, and whether it is the present filter.
    """
    diff, total = comparison.diff, comparison.diff.cases
    changed_outcomes = sum(number for (old, new), number in diff.transitions.items() if old != new)
    changed_answers = sum(
        case.change.content_changed and case.change.before == case.change.after for case in comparison.cases
    )
    rows = [("changed", "preference changed" if diff.pairs else "outcome changed", changed_outcomes)]
    if diff.content_changed:
        rows.append(("answer", "other answer, same outcome", changed_answers))
    rows.append(("score", "score alone changed", diff.changed - changed_outcomes))
    rows.append(("all", "all", total))
    has_no_other_filter = not (filters.before or filters.after or filters.criterion or filters.q)
    return [
        (
            write_address(_PATH, {"a": filters.a, "b": filters.b, "show": show}, "cases"),
            words,
            number,
            has_no_other_filter and filters.shown == show,
        )
        for show, words, number in rows
    ]
