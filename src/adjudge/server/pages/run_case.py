"""``/runs/{run}/case``: one case at one address, with what every run of its data set and every person said of it.

Which cases somebody who labels is not to read yet is decided in ``server/blind_cases.py`` (``find_withheld``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Form, Query
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response

from adjudge.content import write_content
from adjudge.dataset.case import Case
from adjudge.dataset.contents import digest_content
from adjudge.dataset.label import Label
from adjudge.errors import UsageError
from adjudge.formats.text import show
from adjudge.judges.pair import PairResult
from adjudge.labels.source import STORE_FILE
from adjudge.labels.store import read_case_labels
from adjudge.report.cases import MOST_SAMPLES, ShownCase, ShownResult, make_shown_case, make_shown_result
from adjudge.report.judgement import list_findings, list_quotations
from adjudge.result import JudgeResult
from adjudge.runs.folder import Run
from adjudge.runs.item import RunItem, encode_result
from adjudge.server.blind_cases import find_withheld, note_listed, note_read
from adjudge.server.caller import Caller, require
from adjudge.server.pages.case_lists import (
    ComparedCaseFilters,
    ComparedFilters,
    RunCaseFilters,
    RunFilters,
    link_case,
    load_comparison,
)
from adjudge.server.pages.opened_query import OpenedQuery
from adjudge.server.pages.page import Context, find_way_back, redirect, send_text, show_page
from adjudge.server.pages.paging import write_address
from adjudge.server.pages.runs import MOST_TREND, Reader, list_differing
from adjudge.server.problem import Problem
from adjudge.server.run_folders import RunSummary
from adjudge.server.state import CurrentPageState, PageState
from adjudge.templates.difference import DiffLine, DiffPart, compare_words
from adjudge.templates.environment import quote_segment
from adjudge.templates.json_difference import make_json_difference
from adjudge.templates.judged_text import make_content_view
from adjudge.templates.opened_parts import Opened, is_long
from adjudge.templates.transcript_values import ContentView

router = APIRouter()

MOST_COMPARED = 20_000
"""Characters of each of two answers that are compared word by word; the page says where they are longer."""

_LARGEST_RESULT = 200_000
"""Bytes of a judgement that is shown word for word; of a larger one the texts are cut as in a report."""

_LEAST_EQUAL_SHARE = 0.3
"""The share of equal text below which two answers are shown without marks of what differs."""

_MOST_CRITERIA = 5
"""Criteria with a column of their own in the table of runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseVisit:
    """The parts of an address of this page: a case of a run, and the list that its reader comes from.

    Also the cases whose verdicts this reader may not see.
    """

    run: str
    id: str
    place: int
    """The position in the run of a case whose id is too long for an address; else -1."""
    beside: str
    """A run whose answer is shown beside this one's."""
    filters: RunCaseFilters
    compared: ComparedCaseFilters
    """The filters of the comparison that the reader comes from; they come from the list of one run if it names none."""
    withheld: frozenset[str]
    """The cases whose verdicts this reader is not shown."""
    opened: Opened
    """The parts of long texts that are opened."""

    @property
    def values(self) -> Mapping[str, object]:
        """The query that keeps the list in the address."""
        return self.compared.values if self.compared.a and self.compared.b else self.filters.values


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseInRun:
    """The judgements of a case in one run. They are read while the run is open, and drawn after it is closed."""

    run: RunSummary
    shown: ShownCase
    case: Case
    subject: str
    """SHA-256 of the content that it judged."""
    labels: tuple[Label, ...]
    link: str
    letter: str = ""
    """The letter of its answer among those of all runs, the first as ``a``."""
    same_inputs: bool = True
    """False where another task, reference or context was judged under this id."""

    def find_score(self, name: str) -> object:
        """Find the criterion of this name in the judgement that the outcome is from; ``None`` where it has none."""
        return next((criterion for criterion in self.shown.worst.criteria if criterion.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """A case beside another one in a list."""

    path: str
    case: str
    """The id of the case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """The position of a case in the list that its reader comes from, with the cases before and after it.

    The list is not stored: it is made anew from the filters in the address.
    """

    words: str
    """The position in words, such as ``3 of 20 in the list``."""
    back: str
    """The address of the list."""
    previous: Neighbour | None = None
    following: Neighbour | None = None


class CaseQuery(OpenedQuery):
    """The case that an address names, by its id, or by its place where that is too long, and what is opened of it."""

    id: str = Field(default="", max_length=1_000)
    place: int = Field(default=-1, ge=-1, lt=2**53)
    beside: str = Field(default="", max_length=300)


@router.get("/runs/{run}/case", include_in_schema=False)
async def show_case(
    *,
    request: Request,
    run: str,
    state: CurrentPageState,
    caller: Reader,
    filters: RunFilters,
    compared: ComparedFilters,
    shown: Annotated[CaseQuery, Query()],
) -> Response:
    """Show a case of a run."""
    withheld = await find_withheld(request, caller, run)
    for name in {compared.a, compared.b} - {run, ""}:
        withheld |= await find_withheld(request, caller, name)
    visit = _make_visit(run, shown, filters, compared, withheld)
    context, case, walk = await asyncio.to_thread(_collect_case_page, state, visit)
    # The page says how long the list is that its reader comes from, and which cases are next to this one in it. That
    # can tell verdicts as the list itself does.
    tells_verdicts = compared.tells_verdicts if compared.a and compared.b else filters.is_narrowed
    neighbours = [neighbour.case for neighbour in (walk.previous, walk.following) if neighbour is not None]
    listed = neighbours if tells_verdicts else []
    for name in {run, compared.a, compared.b} - {""}:
        await note_listed(request, caller, name, listed, withheld=withheld, tells_verdicts=tells_verdicts)
    if case in withheld:
        return await show_page(request, "case_withheld.html", context, caller=caller)
    await note_read(request, caller, run, [case], labels=True)
    return await show_page(request, "case.html", context, caller=caller)


@router.get("/runs/{run}/case/content", include_in_schema=False)
async def send_content(
    *,
    request: Request,
    run: str,
    state: CurrentPageState,
    caller: Reader,
    shown: Annotated[CaseQuery, Query()],
    of: Literal["content", "task", "context", "reference"] = "content",
) -> Response:
    """Send a text of a case as a file."""
    withheld = await find_withheld(request, caller, run)
    case = await asyncio.to_thread(_load_case, state, run, shown)
    if case.id in withheld:
        raise Problem(403, "this case is yours to label; label it first, or look at its page", code="withheld")
    texts = dict(_list_texts(case)) | {"content": _write_content(case.content)}
    if of not in texts:
        raise Problem(404, f"this case has no {of}", code="no_text")
    return send_text(texts[of], of)


class LookForm(BaseModel):
    """The form of somebody who would rather see the verdict than label blind."""

    case: str = Field(max_length=1_000)


@router.post("/runs/{run}/case/look", include_in_schema=False)
async def look_at_case(
    request: Request, run: str, caller: Annotated[Caller, Depends(require("label"))], form: Annotated[LookForm, Form()]
) -> Response:
    """Record that somebody chose to see a verdict instead of labelling the case blind, and go back to its page."""
    await note_read(request, caller, run, [form.case], labels=True)
    return redirect(find_way_back(request))


# ---------------------------------------------------------------- what is shown


def _make_visit(
    run: str, shown: CaseQuery, filters: RunCaseFilters, compared: ComparedCaseFilters, withheld: frozenset[str]
) -> CaseVisit:
    """Make the visit from the parts of an address. Links that open more of a text keep the case and the list."""
    visit = CaseVisit(
        run=run,
        id=shown.id,
        place=shown.place,
        beside=shown.beside,
        filters=filters,
        compared=compared,
        withheld=withheld,
        opened=Opened(),
    )
    members = {"beside": shown.beside, **visit.values}
    query = [(name, str(value)) for name, value in members.items() if value not in ("", None, False)]
    return replace(visit, opened=shown.read(f"/runs/{quote_segment(run)}/case", *_name_case(shown), *query))


def _name_case(named: CaseVisit | CaseQuery) -> list[tuple[str, str]]:
    """Return the member of the query that names a case: its id, or its position in the run if the id is too long."""
    return [("id", named.id) if named.id else ("place", str(named.place))]


def _collect_case_page(state: PageState, visit: CaseVisit) -> tuple[Context, str, Walk]:
    """Make the context of a case's page; return it with the id of the case, and its position in the reader's list.

    For a case that is withheld from the reader, the context has no judgements.
    """
    with state.library.open(visit.run) as run:
        items = _read_case(run, visit)
        case = items[0].case
        walk = _make_walk(state, visit, run, items[0])
        context: Context = {
            "name": visit.run,
            "case": case.id,
            "texts": _list_texts(case),
            "opened": visit.opened,
            "file": f"/runs/{quote_segment(visit.run)}/case/content?{urlencode(_name_case(visit))}",
            "walk": walk,
        }
        if case.id in visit.withheld:
            return context, case.id, walk
        return context | _collect_judged(state, visit, items), case.id, walk


def _load_case(state: PageState, run: str, shown: CaseQuery) -> Case:
    """Load the case that an address names; raises ``Problem`` as ``_read_case`` does."""
    with state.library.open(run) as opened:
        return _read_case(opened, shown)[0].case


def _read_case(run: Run, named: CaseVisit | CaseQuery) -> list[RunItem]:
    """Read the judgements of the case that an address names by its id, or by its position in the run.

    Raises ``Problem`` if it names no case (422), or the run has no such case (404).
    """
    if not named.id and named.place < 0:
        raise Problem(422, "this is the page of one case; name it with id", code="usage")
    place = run.store.find_place(named.id) if named.id else named.place
    items = [] if place is None else run.read_place(place)
    if not items:
        name = named.id or str(named.place)
        raise Problem(404, f"this run has no case {show(name[:200])}", code="unknown_case")
    return items


def _collect_judged(state: PageState, visit: CaseVisit, items: Sequence[RunItem]) -> Context:
    """Make the part of the context that says what judges and people said of a case."""
    rows = _list_cases_in_runs(state, visit, items)
    this = next(row for row in rows if row.run.name == visit.run)
    # The run whose answer is shown beside this one's, if it has another answer.
    other = next((row for row in rows if row.run.name == visit.beside and row.letter != this.letter), None)
    content = _write_content(this.case.content)
    results = [item.result for item in items]
    return {
        "shown": _make_shown_content(
            content, [result for result in results if isinstance(result, JudgeResult)], visit.opened
        ),
        "rows": rows,
        "this": this,
        "content": content,
        "is_pair": isinstance(results[0], PairResult),
        "columns": [criterion.name for criterion in this.shown.worst.criteria[:_MOST_CRITERIA]],
        "judgements": [_make_shown_judgement(result) for result in results[:MOST_SAMPLES]],
        "more_judgements": max(len(results) - MOST_SAMPLES, 0),
        "beside": other,
        **_compare_answers(None if other is None else _write_content(other.case.content), content),
        "others": [
            (f"{this.link}&{urlencode({'beside': row.run.name})}", row) for row in _list_other_answers(rows, this)
        ],
        "labels": [(row, label) for row in rows for label in row.labels],
        "metadata": this.shown.metadata,
    }


def _make_shown_content(content: str, results: Sequence[JudgeResult], opened: Opened) -> ContentView:
    """Make the view of a content, with the quotations and findings of all of its judgements."""
    quotations = [text for result in results for text in list_quotations(result)]
    findings = [finding for result in results[:MOST_SAMPLES] for finding in list_findings(result)]
    return make_content_view(content, quotations, findings, opened)


def _list_cases_in_runs(state: PageState, visit: CaseVisit, items: Sequence[RunItem]) -> list[CaseInRun]:
    """List the judgements of the case in every run of the same data set, the run that began last first.

    Each distinct content of the case has a letter, ``a`` for that of the oldest run. ``items`` are those of this run.
    """
    rows = []
    for summary in state.library.list_same_dataset(visit.run)[:MOST_TREND]:
        with suppress(Problem), state.library.open(summary.name) as run:
            place = run.store.find_place(items[0].case.id)
            judged_items = [] if place is None else run.read_place(place)
            if judged_items:
                rows.append(_make_case_in_run(summary, run.folder, judged_items, visit, items[0].case))
    letters = {digest: chr(ord("a") + number % 26) for number, digest in enumerate(_list_contents(rows))}
    return [replace(row, letter=letters[row.subject]) for row in rows]


def _list_contents(rows: Sequence[CaseInRun]) -> list[str]:
    """List the digests of the distinct contents that the runs judged, that of the oldest run first."""
    return list(dict.fromkeys(row.subject for row in reversed(rows)))


def _make_case_in_run(
    summary: RunSummary, folder: Path, items: Sequence[RunItem], visit: CaseVisit, case: Case
) -> CaseInRun:
    """Make the value that shows a case in one run; its inputs are compared with ``case``, that of the page's run."""
    own_case = items[0].case
    return CaseInRun(
        run=summary,
        shown=make_shown_case(items),
        case=own_case,
        subject=digest_content(own_case.content),
        labels=tuple(_read_labels(folder, own_case.id)),
        link=link_case(summary.name, own_case.id, items[0].place, visit.values),
        same_inputs=(own_case.task, own_case.reference, own_case.context) == (case.task, case.reference, case.context),
    )


def _read_labels(folder: Path, case: str) -> list[Label]:
    """Read the labels that people gave a case of a run; none if nobody did, or the file cannot be read."""
    store = folder / STORE_FILE
    with suppress(UsageError):
        if store.is_file() and not store.is_symlink():
            return [label for label in read_case_labels(store, case) if label.kind in ("person", "adjudication")]
    return []


def _list_other_answers(rows: Sequence[CaseInRun], this: CaseInRun) -> list[CaseInRun]:
    """List one run for each answer that differs from this run's answer."""
    by_letter = {row.letter: row for row in rows if row.letter != this.letter}
    return [by_letter[letter] for letter in sorted(by_letter)]


def _make_shown_judgement(result: JudgeResult | PairResult) -> JudgeResult | ShownResult:
    """Return a judgement as it is shown: in full, or cut as in a report if it is large or of a pair."""
    if isinstance(result, PairResult) or len(encode_result(result)) > _LARGEST_RESULT:
        return make_shown_result(result)
    return result


def _list_texts(case: Case) -> list[tuple[str, str]]:
    """List the task, context and reference of a case that it has, each with its name."""
    values = (("task", case.task), ("context", case.context), ("reference", case.reference))
    return [(name, _write_content(value)) for name, value in values if value is not None]


def _write_content(value: object) -> str:
    """Write a content as the text that judges read; one that cannot be written is replaced by the reason."""
    try:
        text, _ = write_content(value)
    except UsageError as error:
        return f"(this cannot be shown: {error})"
    return text


def _compare_answers(other: str | None, this: str) -> Context:
    """Compare this run's answer with that of another run: JSON by its values, and other texts word by word.

    Without another answer (``None``), nothing is compared.
    """
    if other is None:
        return {"compared_json": None, "compared_texts": None, "most_compared": None}
    json_difference = None if is_long(other) or is_long(this) else make_json_difference(other, this)
    texts: tuple[DiffLine, DiffLine, float] | None = None
    if json_difference is None:
        texts = _compare_texts(other[:MOST_COMPARED], this[:MOST_COMPARED])
    return {
        "compared_json": json_difference,
        "compared_texts": texts,
        "most_compared": MOST_COMPARED if max(len(other), len(this)) > MOST_COMPARED else None,
    }


def _compare_texts(other: str, this: str) -> tuple[DiffLine, DiffLine, float]:
    """Compare two answers word by word.

    Returns each as a line with its changed parts marked, and the share of equal text. If the share is too small, no
    parts are marked.
    """
    other_parts, this_parts = compare_words(other, this)
    equal_characters = 2 * sum(len(part.text) for part in this_parts if not part.changed)
    equal_share = equal_characters / max(len(other) + len(this), 1)
    if equal_share < _LEAST_EQUAL_SHARE:
        other_parts, this_parts = (DiffPart(text=other),), (DiffPart(text=this),)
    return DiffLine(kind="minus", parts=other_parts), DiffLine(kind="plus", parts=this_parts), equal_share


# ---------------------------------------------------------------- the list it comes from


def _make_walk(state: PageState, visit: CaseVisit, run: Run, item: RunItem) -> Walk:
    """Find the position of a case in the list that its reader comes from, and the cases before and after it.

    The list is made anew from the filters in the address: that of a comparison, or else that of the run.
    """
    if visit.compared.a and visit.compared.b:
        words, back = "the comparison", write_address("/compare", visit.values, "cases")
        places = _list_compared_places(state, visit)
    else:
        words, back = "the list", write_address(f"/runs/{quote_segment(visit.run)}", visit.values, "cases")
        differing = list_differing(state.library.load_report(visit.run))
        places = visit.filters.list_places(run, differing, visit.withheld)
    if item.place not in places:
        return Walk(words=f"Not in {words}", back=back)
    position = places.index(item.place)

    def find_neighbour(index: int) -> Neighbour | None:
        """Find the case at an index of the list; ``None`` beyond its ends."""
        if not 0 <= index < len(places):
            return None
        case, _ = run.store.find_case(places[index]) or ("", "")
        return Neighbour(path=link_case(visit.run, case, places[index], visit.values), case=case)

    return Walk(
        words=f"{position + 1:,} of {len(places):,} in {words}",
        back=back,
        previous=find_neighbour(position - 1),
        following=find_neighbour(position + 1),
    )


def _list_compared_places(state: PageState, visit: CaseVisit) -> list[int]:
    """List the positions in this run of the cases in the list of a comparison, in the order of that list."""
    compared, library = visit.compared, state.library
    comparison = load_comparison(library, compared.a, compared.b)
    with library.open(compared.a) as before, library.open(compared.b) as after:
        selected = compared.select_cases(comparison, (before, after), visit.withheld)
    run_index = 0 if visit.run == compared.a else 1
    return [case.places[run_index] for case in selected]
