"""``/runs`` and ``/runs/{run}``: data sets that were judged, the report of each, and all of its cases.

Which cases somebody who labels is not to read yet is decided in ``server/blind_cases.py`` (``find_withheld``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from adjudge.dataset.call_record import read_call_record
from adjudge.dataset.case_labels import LabelJoin, list_labels
from adjudge.report.cases import MOST_CASES, make_shown_case
from adjudge.report.document import CaseEntry, Document, Words
from adjudge.report.render import render_html
from adjudge.report.report_tally import label_items
from adjudge.report.run_document import make_run_document, make_run_entry
from adjudge.server.blind_cases import find_withheld, note_listed, note_read
from adjudge.server.caller import Caller, require
from adjudge.server.pages.case_lists import RunCaseFilters, RunFilters, link_case
from adjudge.server.pages.page import Context, add_page, show_page
from adjudge.server.pages.paging import Number, Word, choose_word, cut_page, write_address
from adjudge.server.run_library import LabelledReport, RunLibrary
from adjudge.server.state import CurrentPageState, PageState
from adjudge.templates.environment import quote_segment

router = APIRouter()

MOST_TREND = 50
"""Runs of one data set that are drawn below each other."""

_LONGEST_GROUP = 200

Reader = Annotated[Caller, Depends(require("read"))]


# ---------------------------------------------------------------- the list of runs


async def view_runs(state: CurrentPageState, *, dataset: Word = "", order: Word = "", page: Number = 1) -> Context:
    """List the runs, of one data set if it is named."""
    runs = await asyncio.to_thread(state.library.summarise)
    datasets = sorted({run.dataset for run in runs} - {""})
    listed = [run for run in runs if not dataset or run.dataset == dataset]
    order = choose_word(order, _ORDERS, "name")
    if order == "begun":
        listed.sort(key=lambda run: run.created_at, reverse=True)
    elif order == "rate":
        listed.sort(key=lambda run: (run.passed.rate is None, run.passed.rate or 0.0))
    values = {"dataset": dataset, "order": "" if order == "name" else order}
    return {
        "is_configured": state.library.configured,
        "runs": runs,
        "listed": cut_page(listed, page, lambda number: write_address("/runs", values | {"page": number})),
        "datasets": datasets,
        "dataset": dataset,
        "order": order,
        "orders": _ORDERS,
        "error": "",
    }


_ORDERS = {"name": "by name, newest first", "begun": "begun last", "rate": "fewest passed first"}


# ---------------------------------------------------------------- one run


@router.get("/runs/{run}/report.html", include_in_schema=False)
async def send_report(request: Request, run: str, state: CurrentPageState, caller: Reader) -> Response:
    """Send the report as one file to keep. It cannot be shown here, because pages may not have styles of their own."""
    labelled = await asyncio.to_thread(state.library.load_report, run, most_cases=MOST_CASES)
    text = await asyncio.to_thread(render_html, labelled.report)
    # Whoever has the file can read every verdict before they label.
    cases = {case.id for case in labelled.report.shown} | {label.case for label in labelled.labels}
    await note_read(request, caller, run, cases, labels=True, all_cases=True)
    return send_file(f"{run}.html", text)


def send_file(name: str, text: str) -> Response:
    """Send an HTML file to be saved, under a name without unusual characters."""
    safe = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "-" for letter in name)
    return HTMLResponse(text, headers={"Content-Disposition": f'attachment; filename="{safe}"'})


@router.get("/runs/{run}", include_in_schema=False)
async def show_run(
    *, request: Request, run: str, state: CurrentPageState, caller: Reader, filters: RunFilters, page: Number = 1
) -> Response:
    """Show the report of a run as a page, and a page of the list of its cases."""
    withheld = await find_withheld(request, caller, run)
    context, shown = await asyncio.to_thread(_collect_run, state, run, filters, page, withheld)
    await note_listed(request, caller, run, shown, withheld=withheld, tells_verdicts=filters.tells_verdicts)
    context["has_labels"] = caller.may("label") and caller.rater is not None
    return await show_page(request, "run.html", context, caller=caller)


def _collect_run(
    state: PageState, name: str, filters: RunCaseFilters, page: int, withheld: frozenset[str]
) -> tuple[Context, list[str]]:
    """Make the context of a run's page; return it with the ids of the cases whose verdicts the page shows."""
    is_measured = can_be_measured(state.library, withheld, name)
    labelled = state.library.load_report(name, measured=is_measured)
    document: Document = make_run_document(labelled.report)
    differing = list_differing(labelled)

    def link(number: int) -> str:
        """Write the address of a page of the list of cases."""
        return write_address(f"/runs/{quote_segment(name)}", {**filters.values, "page": number}, "cases")

    with state.library.open(name) as run:
        first_case = run.read_place(0)
        has_calls = bool(first_case) and read_call_record(first_case[0].case.metadata) is not None
        listed = cut_page(filters.list_places(run, differing, withheld), page, link)
        joined = LabelJoin(list_labels(labelled.labels, None))
        entries, shown = [], []
        for place in listed.rows:
            items = list(label_items(run.read_place(place), joined))
            if not items:
                continue
            case = items[0].case.id
            address = link_case(name, case, place, filters.values)
            if case in withheld:
                entries.append(make_withheld_entry(case, place, address))
            else:
                shown.append(case)
                entries.append(make_run_entry(make_shown_case(items), {}, differing, link=address))
    report = labelled.report
    context: Context = {
        "name": name,
        "document": document,
        "blocks": [block for block in document.blocks if block.form != "cases"],
        "remark": labelled.remark,
        "filters": filters,
        "listed": listed,
        "entries": entries,
        "withheld": len(withheld),
        "is_measured": is_measured,
        "total": report.cases,
        "outcomes": [(outcome, count) for outcome, count in report.case_outcomes.items() if count],
        "links": {
            outcome: write_address(f"/runs/{quote_segment(name)}", {"outcome": outcome}, "cases")
            for outcome in ("", *report.case_outcomes)
        },
        "reasons": list(report.undecided_because),
        "groups": [group.name for group in report.groups if group.name and len(group.name) < _LONGEST_GROUP],
        "sorts": sorted(set(differing.values())),
        "has_calls": has_calls,
        "trend": state.library.list_same_dataset(name)[:MOST_TREND],
    }
    return context, shown


def can_be_measured(library: RunLibrary, withheld: frozenset[str], *runs: str) -> bool:
    """Return whether figures made of labels and verdicts may be shown: only if no withheld case is labelled.

    Otherwise a reader could see from how a figure changes what the verdict of a case is that another person labels.
    """
    return not any(withheld & library.list_labelled_cases(run) for run in runs)


def list_differing(labelled: LabelledReport) -> Mapping[int, str]:
    """List how the judge and people differ on cases, by the positions of the cases in the run."""
    measurement = labelled.report.measurement
    if measurement is None:
        return {}
    return {disagreement.place: str(disagreement.sort) for disagreement in measurement.disagreements}


def make_withheld_entry(case: str, place: int, link: str) -> CaseEntry:
    """Make the line of a case without its verdict, for a reader who has to label the case first."""
    tag = Words(text="yours to label: not shown before", kind="")
    return CaseEntry(place=place, name=case, badges=[], tags=[tag], figure="", why="", body=[], link=link)


add_page(router, "/runs", view_runs, template="runs.html", scope="read")
