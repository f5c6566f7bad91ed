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
    ComparedFilters,
    ComparedList,
    RunFilters,
    RunList,
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
from adjudge.templates.opened import Opened, is_long
from adjudge.templates.transcript_values import ContentView

router = APIRouter()

MOST_COMPARED = 20_000
"""Characters of each of two answers that are compared word by word; the page says where they are longer."""

_LARGEST_RESULT = 200_000
"""Bytes of a judgement that is shown word for word; of a larger one the texts are cut as in a report."""

_LEAST_ALIKE = 0.3
"""The share of equal words under which two answers are not compared word by word."""

_MOST_CRITERIA = 5
"""Criteria with a column of their own in the table of runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseVisit:
    """The request of an address: a case of a run, the list that its reader comes from, and what they may not see."""

    run: str
    id: str
    place: int
    """The place of a case whose id is too long for an address; else -1."""
    beside: str
    """A run whose answer is shown beside this one's."""
    filters: RunList
    compared: ComparedList
    """That list is of a comparison if it names two runs."""
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
    """The judgements that one run has of a case, read while the run is open: the page is drawn after it is closed."""

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
    """The place of a case in the list that its reader comes from, which only the address tells."""

    words: str
    back: str
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
    context, case, walk = await asyncio.to_thread(_collect, state, visit)
    # It says how long the list is that its reader comes from, and which cases are beside this one in it.
    tells = compared.tells_verdicts if compared.a and compared.b else filters.is_narrowed
    beside_it = [neighbour.case for neighbour in (walk.previous, walk.following) if neighbour is not None]
    for name in {run, compared.a, compared.b} - {""}:
        await note_listed(request, caller, name, beside_it if tells else [], withheld=withheld, tells=tells)
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
    """Remember that somebody chose to see a verdict before they labelled the case, and show it."""
    await note_read(request, caller, run, [form.case], labels=True)
    return redirect(find_way_back(request))


# ---------------------------------------------------------------- what is shown


def _make_visit(
    run: str, shown: CaseQuery, filters: RunList, compared: ComparedList, withheld: frozenset[str]
) -> CaseVisit:
    """Make the visit that an address asks for; what is opened keeps the case and the list in the address."""
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
    others = {"beside": shown.beside, **visit.values}
    kept = [(name, str(value)) for name, value in others.items() if value not in ("", None, False)]
    return replace(visit, opened=shown.read(f"/runs/{quote_segment(run)}/case", *_name_case(shown), *kept))


def _name_case(named: CaseVisit | CaseQuery) -> list[tuple[str, str]]:
    return [("id", named.id) if named.id else ("place", str(named.place))]


def _collect(state: PageState, visit: CaseVisit) -> tuple[Context, str, Walk]:
    """Collect what the page of a case shows, and return it with the id of the case and the way to the others."""
    with state.library.open(visit.run) as run:
        items = _read_case(run, visit)
        case = items[0].case
        walk = _find_walk(state, visit, run, items[0])
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
    with state.library.open(run) as opened:
        return _read_case(opened, shown)[0].case


def _read_case(run: Run, named: CaseVisit | CaseQuery) -> list[RunItem]:
    """Read the judgements of the case that is named; raises ``Problem`` where none is (422), or there is none (404)."""
    if not named.id and named.place < 0:
        raise Problem(422, "this is the page of one case; name it with id", code="usage")
    kept = run.store.find_place(named.id) if named.id or named.place < 0 else named.place
    items = [] if kept is None else run.read_place(kept)
    if not items:
        name = named.id or str(named.place)
        raise Problem(404, f"this run has no case {show(name[:200])}", code="unknown_case")
    return items


def _collect_judged(state: PageState, visit: CaseVisit, items: Sequence[RunItem]) -> Context:
    """Collect what judges and people said of a case."""
    rows = _list_runs(state, visit, items)
    this = next(row for row in rows if row.run.name == visit.run)
    other = next((row for row in rows if row.run.name == visit.beside and row.letter != this.letter), None)
    content = _write_content(this.case.content)
    results = [item.result for item in items]
    return {
        "shown": _show_content(
            content, [result for result in results if isinstance(result, JudgeResult)], visit.opened
        ),
        "rows": rows,
        "this": this,
        "content": content,
        "is_pair": isinstance(results[0], PairResult),
        "columns": [criterion.name for criterion in this.shown.worst.criteria[:_MOST_CRITERIA]],
        "judgements": [_show_result(result) for result in results[:MOST_SAMPLES]],
        "more_judgements": max(len(results) - MOST_SAMPLES, 0),
        "beside": other,
        **_compare_answers(None if other is None else _write_content(other.case.content), content),
        "others": [
            (f"{this.link}&{urlencode({'beside': row.run.name})}", row) for row in _list_other_answers(rows, this)
        ],
        "labels": [(row, label) for row in rows for label in row.labels],
        "metadata": this.shown.metadata,
    }


def _show_content(content: str, results: Sequence[JudgeResult], opened: Opened) -> ContentView:
    """Show a content with what any of its judgements quotes and finds."""
    quotations = [text for result in results for text in list_quotations(result)]
    findings = [placed for result in results[:MOST_SAMPLES] for placed in list_findings(result)]
    return make_content_view(content, quotations, findings, opened)


def _list_runs(state: PageState, visit: CaseVisit, items: Sequence[RunItem]) -> list[CaseInRun]:
    """List what every run of the data set made of the case, the one that began last first."""
    rows = []
    for summary in state.library.list_alike(visit.run)[:MOST_TREND]:
        with suppress(Problem), state.library.open(summary.name) as run:
            place = run.store.find_place(items[0].case.id)
            judged_items = [] if place is None else run.read_place(place)
            if judged_items:
                rows.append(_make_case_in_run(summary, run.folder, judged_items, visit, items[0].case))
    letters = {subject: chr(ord("a") + number % 26) for number, subject in enumerate(_list_subjects(rows))}
    return [replace(row, letter=letters[row.subject]) for row in rows]


def _list_subjects(rows: Sequence[CaseInRun]) -> list[str]:
    return list(dict.fromkeys(row.subject for row in reversed(rows)))


def _make_case_in_run(
    summary: RunSummary, folder: Path, items: Sequence[RunItem], visit: CaseVisit, case: Case
) -> CaseInRun:
    """Make the judgements that a run has of a case; its inputs are compared with ``case``, that of the page."""
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
    """Read what people said of a case of a run; none where nobody did, or the file cannot be read."""
    place = folder / STORE_FILE
    with suppress(UsageError):
        if place.is_file() and not place.is_symlink():
            return [label for label in read_case_labels(place, case) if label.kind in ("person", "adjudication")]
    return []


def _list_other_answers(rows: Sequence[CaseInRun], this: CaseInRun) -> list[CaseInRun]:
    """List one run for each answer that is another than this run's."""
    by_letter = {row.letter: row for row in rows if row.letter != this.letter}
    return [by_letter[letter] for letter in sorted(by_letter)]


def _show_result(result: JudgeResult | PairResult) -> JudgeResult | ShownResult:
    if isinstance(result, PairResult) or len(encode_result(result)) > _LARGEST_RESULT:
        return make_shown_result(result)
    return result


def _list_texts(case: Case) -> list[tuple[str, str]]:
    values = (("task", case.task), ("context", case.context), ("reference", case.reference))
    return [(name, _write_content(value)) for name, value in values if value is not None]


def _write_content(value: object) -> str:
    try:
        text, _ = write_content(value)
    except UsageError as error:
        return f"(this cannot be shown: {error})"
    return text


def _compare_answers(was: str | None, now: str) -> Context:
    """Compare two answers: JSON by its values, and else word by word."""
    if was is None:
        return {"compared_json": None, "compared_texts": None, "most_compared": None}
    compared = None if is_long(was) or is_long(now) else make_json_difference(was, now)
    return {
        "compared_json": compared,
        "compared_texts": _compare_texts(was[:MOST_COMPARED], now[:MOST_COMPARED]) if compared is None else None,
        "most_compared": MOST_COMPARED if max(len(was), len(now)) > MOST_COMPARED else None,
    }


def _compare_texts(was: str, now: str) -> tuple[DiffLine, DiffLine, float]:
    """Compare two answers word by word: each in parts, and how much is the same; of too little, nothing is marked."""
    before, after = compare_words(was, now)
    equal = 2 * sum(len(part.text) for part in after if not part.changed)
    alike = equal / max(len(was) + len(now), 1)
    if alike < _LEAST_ALIKE:
        before, after = (DiffPart(text=was),), (DiffPart(text=now),)
    return DiffLine(kind="minus", parts=before), DiffLine(kind="plus", parts=after), alike


# ---------------------------------------------------------------- the list it comes from


def _find_walk(state: PageState, visit: CaseVisit, run: Run, item: RunItem) -> Walk:
    """Find the cases before and after this one in the list that its reader comes from."""
    if visit.compared.a and visit.compared.b:
        words, back = "the comparison", write_address("/compare", visit.values, "cases")
        places = _list_compared(state, visit)
    else:
        words, back = "the list", write_address(f"/runs/{quote_segment(visit.run)}", visit.values, "cases")
        differing = list_differing(state.library.load_report(visit.run))
        places = visit.filters.list_places(run, differing, visit.withheld)
    if item.place not in places:
        return Walk(words=f"Not in {words}", back=back)
    at = places.index(item.place)

    def find_neighbour(number: int) -> Neighbour | None:
        if not 0 <= number < len(places):
            return None
        case, _ = run.store.find_case(places[number]) or ("", "")
        return Neighbour(path=link_case(visit.run, case, places[number], visit.values), case=case)

    return Walk(
        words=f"{at + 1:,} of {len(places):,} in {words}",
        back=back,
        previous=find_neighbour(at - 1),
        following=find_neighbour(at + 1),
    )


def _list_compared(state: PageState, visit: CaseVisit) -> list[int]:
    """List the places that the cases of a comparison have in this run."""
    compared, library = visit.compared, state.library
    comparison = load_comparison(library, compared.a, compared.b)
    with library.open(compared.a) as before, library.open(compared.b) as after:
        selected = compared.select(comparison, (before, after), visit.withheld)
    side = 0 if visit.run == compared.a else 1
    return [case.places[side] for case in selected]
