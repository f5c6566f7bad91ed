"""Two runs side by side as one HTML file: what changed, then case by case what was judged and what was said of it.

Made of the templates of one run's report, so it loads nothing, escapes everything and runs no script but ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from adjudge.errors import UsageError
from adjudge.formats.numbers import format_change
from adjudge.report.cases import ShownCase, make_shown_case
from adjudge.report.diff_words import (
    Kind,
    count_cases,
    describe_change,
    describe_compared,
    describe_test,
    find_kind,
    list_kinds,
)
from adjudge.report.format import format_outcomes
from adjudge.report.html_measurement import make_lead
from adjudge.report.html_page import render_page
from adjudge.report.html_panels import Panel, Table
from adjudge.report.markdown import describe_p, format_p, list_facts, render_change
from adjudge.report.measurement_words import describe_difference
from adjudge.report.run_diff import CaseDiff, Diff, join_runs
from adjudge.runs.folder import Run
from adjudge.templates.figures import format_count

MOST_CASES = 2_000
"""Cases in one file; each is there twice, with all that was said of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedCase:
    """One case as it is in both runs."""

    before: ShownCase
    after: ShownCase
    change: CaseDiff | None
    """``None`` where it came out as before."""
    differing: tuple[str, ...] = ()
    """Which of its texts are others, also where only a part that is cut off differs."""


_TEXTS = ("task", "content", "reference", "context")


def pair_cases(found: Diff, before: Run, after: Run, *, most: int = MOST_CASES) -> Iterator[PairedCase]:
    """The compared cases as they are in both runs, ``found.listed`` first and then those that came out as before."""
    if not 0 <= most <= MOST_CASES:
        raise UsageError(f"a diff shows 0 to {MOST_CASES} cases, and {most} were asked for")
    changes = {item.case: item for item in found.listed}
    for name, change in list(changes.items())[:most]:
        yield _pair(name, before, after, change)
    room = most - len(changes)
    # Where more changed than are listed, what is not listed need not be as before.
    if room <= 0 or found.changed > len(changes):
        return
    for joined in join_runs(before, after):
        if not joined.is_comparable or joined.case in changes:
            continue
        yield _pair(joined.case, before, after, None)
        room -= 1
        if not room:
            return


def _pair(name: str, before: Run, after: Run, change: CaseDiff | None) -> PairedCase:
    first, second = before.read_case(name), after.read_case(name)
    old, new = first[0].case, second[0].case
    differing = tuple(part for part in _TEXTS if getattr(old, part) != getattr(new, part))
    return PairedCase(before=make_shown_case(first), after=make_shown_case(second), change=change, differing=differing)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRow:
    """A text of a case in both runs."""

    name: str
    before: str
    after: str
    same: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedRow:
    """A case as a line of the list, and what the line adds to it."""

    item: PairedCase
    verdicts: tuple[str, str]
    kind: Kind
    word: str
    score: str
    texts: tuple[TextRow, ...]
    criteria: Table | None


def render_diff_html(found: Diff, cases: Iterable[PairedCase]) -> str:
    """What changed between two runs as the text of one HTML file; ``cases`` are what ``pair_cases`` found."""
    words = dict(list_kinds(found))
    rows = [_make_row(item, find_kind(found, item.change), words) for item in cases]
    sides = (("Before", found.before), ("After", found.after))
    notices = [f"{side.folder} is {side.status}: its other cases are in no figure here." for _, side in sides
               if side.status != "finished"]  # fmt: skip
    notices += [f"Between the runs, {change}." for change in found.setup_changes]
    notices += [describe_compared(found)] if found.compared == "both" else []
    notices += [f"{format_count(number, 'case')} {said}; no figure here is about them."
                for said, number in list_facts(found)]  # fmt: skip
    measured = zip(("Before", "After"), found.measured, strict=True) if found.measured is not None else ()
    return render_page(
        "diff.html",
        found=found,
        said=describe_change(found),
        of=count_cases(found),
        compared=describe_compared(found) if found.compared != "both" else "",
        tested=describe_test(found),
        sides=[(name, side, format_outcomes(side.counts)) for name, side in sides],
        notices=notices,
        chance=describe_p(found.p_value),
        leads=[(name, make_lead(side)) for name, side in measured],
        difference=describe_difference(),
        panels=list(_list_panels(found)),
        kinds=[(kind, word) for kind, word in words.items() if any(row.kind == kind for row in rows)],
        rows=rows,
    )


def _list_panels(found: Diff) -> Iterator[Panel]:
    moves = [[old, new, f"{number:,}"] for (old, new), number in found.transitions.items()]
    yield Panel(
        title="Preferences" if found.pairs else "Outcomes",
        blocks=[Table(columns=[("before", ""), ("after", "word"), ("cases", "n")], rows=moves)],
    )
    if found.pairs:
        return
    columns = [("mean", ""), ("before", "n"), ("after", "n"), ("difference", "n"), ("cases", "n wide"), ("p", "n")]
    means = [
        [
            name,
            *format_change(item.before, item.after),
            f"{item.cases:,}",
            format_p(item.p_value),
        ]
        for name, item in [("score", found.score), *found.criteria.items()]
    ]
    yield Panel(title="Scores", blocks=[Table(columns=columns, rows=means)])


def _find_verdict(case: ShownCase) -> str:
    return case.worst.preferred or str(case.outcome)


def _make_row(item: PairedCase, kind: Kind, words: Mapping[Kind, str]) -> PairedRow:
    change = item.change
    scores = (change.score_before, change.score_after) if change else (item.before.worst.score,) * 2
    return PairedRow(
        item=item,
        verdicts=(change.before, change.after) if change else (_find_verdict(item.before), _find_verdict(item.after)),
        kind=kind,
        word=words[kind],
        score=render_change(*scores),
        texts=tuple(_list_texts(item)),
        criteria=_show_criteria(change) if change is not None and change.criteria else None,
    )


def _list_texts(item: PairedCase) -> Iterator[TextRow]:
    for name in _TEXTS:
        before, after, same = getattr(item.before, name), getattr(item.after, name), name not in item.differing
        if before or not same:
            yield TextRow(name=name.capitalize(), before=before, after=after, same=same)


def _show_criteria(change: CaseDiff) -> Table:
    columns = [("criterion that changed", ""), ("before", "n"), ("after", "n"), ("difference", "n")]
    rows = [[name, *format_change(old, new)] for name, old, new in change.criteria]
    return Table(columns=columns, rows=rows)
