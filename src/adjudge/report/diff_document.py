"""The changes between two runs as a document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from adjudge.dataset.case_ids import shorten_case_id
from adjudge.formats.numbers import format_change
from adjudge.report.case_blocks import TEXTS
from adjudge.report.cases import ShownCase, cut
from adjudge.report.diff_words import (
    count_cases,
    describe_change,
    describe_compared,
    describe_p,
    describe_test,
    describe_undecided,
    find_kind,
    format_moved,
    format_p,
    has_regressions,
    list_exclusions,
    list_kinds,
    list_moved_criteria,
    name_cases,
    name_cells,
)
from adjudge.report.difference_blocks import list_difference_blocks
from adjudge.report.document import (
    Badge,
    Block,
    CaseEntry,
    Cases,
    Cell,
    Choice,
    Column,
    Document,
    Excerpt,
    Heading,
    Judgement,
    Notice,
    Panel,
    Panels,
    Paragraph,
    Quad,
    QuadCell,
    Section,
    Sides,
    Subtitle,
    Table,
    Text,
    Verdict,
    Words,
)
from adjudge.report.measurement_panels import make_lead
from adjudge.report.measurement_words import list_doubts
from adjudge.report.paired_cases import PairedCase
from adjudge.report.run_diff import CaseDiff, Diff, DiffSide
from adjudge.report.run_words import format_outcomes
from adjudge.templates.figures import format_count
from adjudge.trust.difference import Means
from adjudge.trust.intervals import Share

_LONGEST = 160
"""Characters of a text in a table."""


Link = Callable[[Mapping[str, str]], str]
"""Makes the address of the cases with these filters: ``before``, ``after``, ``show`` or ``criterion``."""


def make_diff_document(diff: Diff, cases: Iterable[PairedCase] = (), *, top: int = 0) -> Document:
    """Make the document of a diff, with ``top`` changed cases in the short table.

    ``cases`` are those that a page shows side by side; see ``pair_cases``.
    """
    paired_cases = list(cases)
    kinds = {find_kind(diff, case.change) for case in paired_cases}

    def link(filters: Mapping[str, str]) -> str:
        # A file can filter its cases by the kind of change alone: its script reads the kind from the address.
        kind = filters.get("kind", "")
        return f"#show-{kind}" if kind in kinds else ""

    return Document(
        name=(Words(text=str(diff.before.folder)), " compared with ", Words(text=str(diff.after.folder))),
        headline=describe_change(diff),
        doubts=list_doubts(diff.measured or ()),
        title="Two runs side by side",
        subtitles=list(_list_subtitles(diff)),
        blocks=[*list_diff_blocks(diff, link), _show_cases(diff, paired_cases, top)],
        foot=[
            "Undecided is not passed.",
            "A case that was judged several times is what more than half of its judgements are.",
        ],
    )


def _list_subtitles(diff: Diff) -> Iterator[Subtitle]:
    """Yield a line for each run: its folder, its id and its outcomes."""
    for name, side in (("A, before", diff.before), ("B, after", diff.after)):
        facts = [f"run {side.id}", format_outcomes(side.counts)]
        yield Subtitle(text=(f"{name}: ", Words(text=str(side.folder), kind="strong")), facts=facts)


def list_diff_blocks(diff: Diff, link: Link) -> list[Block]:
    """List the figures of a diff, without its cases; ``link`` makes the address of the cases behind a number."""
    return [*list_diff_summary(diff), *_show_measured(diff), Panels(panels=list(_list_panels(diff, link)))]


def list_diff_summary(diff: Diff) -> Iterator[Block]:
    """Yield the result of a diff in a few sentences: first by people's labels, then by the judge's verdicts."""
    yield from (Notice(text=text) for text in _list_notices(diff))
    yield from list_difference_blocks(diff)
    yield Verdict(
        label="What changed",
        figure=describe_change(diff),
        joint=", ",
        text=count_cases(diff),
        test=f"{describe_test(diff)}: {describe_p(diff.p_value)} (McNemar, exact)",
        note=describe_compared(diff) if diff.compared != "both" else "",
    )


def _list_notices(diff: Diff) -> Iterator[str]:
    """Yield sentences on what limits the figures: unfinished runs, changes of the setup, and cases left out."""
    sides: tuple[DiffSide, DiffSide] = (diff.before, diff.after)
    for side in sides:
        if side.status != "finished":
            yield f"{side.folder} is {side.status}: its other cases are in no figure here."
    for change in diff.setup_changes:
        yield f"Between the runs, {change}."
    if diff.compared == "both":
        yield describe_compared(diff)
    for reason, number in list_exclusions(diff):
        yield f"{name_cases(number)} {reason}; no figure here is about {'it' if number == 1 else 'them'}."


def _show_measured(diff: Diff) -> Iterator[Block]:
    """Yield the measurement of each run against people's labels, if there are labels."""
    if diff.measured is None:
        return
    for name, side in zip(("Before", "After"), diff.measured, strict=True):
        yield Section(title=f"{name}: what people would say", blocks=[make_lead(side)])


def _list_panels(diff: Diff, link: Link) -> Iterator[Panel]:
    """Yield the panels of a diff: outcomes and scores, or of pairs the preferences."""
    transitions = [
        [old, new, Words(text=f"{number:,}", kind="", link=link({"before": old, "after": new, "show": "all"}))]
        for (old, new), number in diff.transitions.items()
    ]
    columns = [Column("before"), Column("after", "word"), Column("cases", "number")]
    transition_table = Table(columns=columns, rows=transitions)
    if diff.pairs:
        yield Panel(title="Preferences", blocks=[transition_table])
        return
    yield Panel(title="Outcomes", blocks=[_make_quad(diff, link, transition_table)], whole=True)
    yield Panel(title="Scores", blocks=[_make_score_table(diff, link)], whole=True)


def _make_score_table(diff: Diff, link: Link) -> Table:
    """Make the table of mean scores before and after: of all cases, then on each criterion."""
    columns = [
        Column("mean"),
        Column("before", "number"),
        Column("after", "number"),
        Column("difference", "number"),
        Column("cases", "number", wide=True),
        Column("p", "number"),
        Column("by", "word"),
    ]
    rows = [_make_score_row("score", diff.score, f"{diff.score.cases:,}")]
    rows += [
        _make_score_row(Words(text=name), means, _link_criterion(name, means, link))
        for name, means in diff.criteria.items()
    ]
    return Table(columns=columns, rows=rows)


def _make_score_row(name: Text, means: Means, cases: Text) -> list[Cell]:
    """Make the row of a mean score: before, after, the difference, the number of cases, and the test."""
    return [name, *format_change(means.before, means.after), cases, format_p(means.p_value), means.method]


def _link_criterion(name: str, means: Means, link: Link) -> Text:
    """Write how many cases changed on a criterion, with a link to them; without a page of them, how many there are."""
    address = link({"criterion": name, "show": "all"})
    return (
        Words(text=f"{means.differing:,} moved", kind="", more=f"of {means.cases:,}", link=address)
        if address
        else f"{means.cases:,}"
    )


def _make_quad(diff: Diff, link: Link, table: Table) -> Quad:
    """Make the two by two table of cases that passed or did not, before (A) and after (B).

    If two judges are compared, the table is of passed and failed, because undecided is no opinion. ``table`` is shown
    in its place where a table cannot be drawn as two by two.
    """
    compares_judges = diff.compared == "judges"
    not_passed = "failed" if compares_judges else "not"
    # The verdicts before and after of each cell, row by row.
    cell_verdicts = [("passed", "passed"), ("passed", not_passed), (not_passed, "passed"), (not_passed, not_passed)]
    kinds = ("", "regressed", "improved", "") if has_regressions(diff) else ("", "lost", "gained", "")
    signs: tuple[Literal["", "up", "down"], ...] = ("", "down", "up", "") if has_regressions(diff) else ("",) * 4
    cells = [
        QuadCell(
            number=sum(
                count
                for (old, new), count in diff.transitions.items()
                if fits_verdict(old, before) and fits_verdict(new, after)
            ),
            words=words,
            sign=sign,
            same=before == after,
            link=link({"before": before, "after": after, "show": "all", "kind": kind}),
        )
        for (before, after), words, sign, kind in zip(cell_verdicts, name_cells(diff), signs, kinds, strict=True)
    ]
    passed_before = sum(count for (old, _), count in diff.transitions.items() if old == "passed")
    passed_after = sum(count for (_, new), count in diff.transitions.items() if new == "passed")
    word = "failed" if compares_judges else "did not"
    return Quad(
        columns=("B passed", f"B {word}"),
        rows=("A passed", f"A {word}"),
        cells=(cells[0], cells[1], cells[2], cells[3]),
        shares=(("A", Share(count=passed_before, of=diff.cases)), ("B", Share(count=passed_after, of=diff.cases))),
        note=describe_undecided(diff),
        table=table,
    )


def fits_verdict(verdict: str, wanted: str) -> bool:
    """Return whether a verdict is the wanted one: ``not`` is any that did not pass, and an empty one any at all."""
    return not wanted or verdict == wanted or (wanted == "not" and verdict != "passed")


def _show_cases(diff: Diff, cases: Sequence[PairedCase], top: int) -> Cases:
    """Make the list of cases, the first ``top`` of the changed ones in its short table."""
    unit = "pair" if diff.pairs else "case"
    shown = "All" if len(cases) == diff.cases else f"{format_count(len(cases))} of"
    used_kinds = {find_kind(diff, case.change) for case in cases}
    options = [(kind, name) for kind, name in list_kinds(diff) if kind in used_kinds]
    return Cases(
        title="Cases",
        about=f"{shown} {format_count(diff.cases, unit)} in both runs, changed ones first.",
        table=_list_changes(diff.listed[:top]),
        total=diff.changed,
        which="that changed",
        unit=unit,
        order="regressions first" if has_regressions(diff) else "",
        entries=[make_diff_entry(diff, case) for case in cases],
        choices=[Choice(name="outcome", label="change", options=options)] if options else [],
    )


def _list_changes(changes: Sequence[CaseDiff]) -> Table:
    """Make the table of changed cases, without the columns that are empty: the others need the width."""
    columns = [
        Column("case"),
        Column("before", "word"),
        Column("after", "word"),
        Column("score", "number"),
        Column("criteria"),
        Column("why"),
    ]
    rows: list[list[Cell]] = [
        [
            Words(text=cut(shorten_case_id(change.case), _LONGEST)),
            change.before,
            change.after,
            format_moved(change.score_before, change.score_after),
            Words(text=list_moved_criteria(change)) if change.criteria else None,
            Words(text=cut(change.detail, _LONGEST), kind="quoted") if change.detail else None,
        ]
        for change in changes
    ]
    used = [index for index in range(len(columns)) if any(row[index] for row in rows)]
    return Table(columns=[columns[index] for index in used], rows=[[row[index] for index in used] for row in rows])


def make_diff_entry(diff: Diff, case: PairedCase, *, link: str = "") -> CaseEntry:
    """Make the line of a case in both runs, which opens; ``link`` is the address of its own page."""
    change, kind = case.change, find_kind(diff, case.change)
    kind_names = dict(list_kinds(diff))
    verdicts = (change.before, change.after) if change else (_find_verdict(case.before), _find_verdict(case.after))
    scores = (change.score_before, change.score_after) if change else (case.before.worst.score,) * 2
    badges = [_make_badge(verdict) for verdict in dict.fromkeys(verdicts)]  # one where both are the same
    criteria = [_show_criteria(change)] if change is not None and change.criteria else []
    return CaseEntry(
        place=case.before.place,
        name=case.before.id,
        badges=badges,
        tags=[Words(text=kind_names[kind], kind="alarm" if kind == "regressed" else "")],
        figure=format_moved(*scores),
        moved=list_moved_criteria(change) if change is not None else "",
        why=case.after.worst.why,
        link=link,
        body=[
            *_list_texts(case),
            *criteria,
            Sides(sides=(list(_list_side("A", case.before)), list(_list_side("B", case.after)))),
        ],
        keys={"outcome": kind},
    )


def _find_verdict(case: ShownCase) -> str:
    """Find the preference in a pair, or the outcome of a case."""
    return case.worst.preferred or str(case.outcome)


def _make_badge(verdict: str) -> Badge:
    """Make the badge of a verdict; a preference has no colour, because it is no outcome."""
    return Badge(word=verdict, state="" if verdict in ("first", "second", "tie") else verdict)


def _list_texts(case: PairedCase) -> Iterator[Block]:
    """Yield the texts of a case: side by side those that differ between the runs, once the others if not empty."""
    for name in TEXTS:
        before, after = getattr(case.before, name), getattr(case.after, name)
        if name in case.differing:
            old = Excerpt(title=f"{name.capitalize()} of A", text=before)
            yield Sides(sides=([old], [Excerpt(title=f"{name.capitalize()} of B", text=after)]))
        elif before:
            yield Excerpt(title=name.capitalize(), text=before)


def _list_side(name: str, case: ShownCase) -> Iterator[Block]:
    """Yield the judgements of a case in one run, under the run's name (``A`` or ``B``)."""
    passed = f" ({case.passed} of {case.judgements} judgements passed)" if case.judgements > 1 else ""
    yield Heading(text=f"{name}{passed}")
    yield from (Judgement(result=result) for result in case.results)
    if case.judgements > len(case.results):
        yield Paragraph(text=f"{len(case.results)} of them, the worst first.", quiet=True)


def _show_criteria(change: CaseDiff) -> Table:
    """Make the table of the criteria on which the score of a case changed."""
    columns = [
        Column("criterion that changed"),
        Column("before", "number"),
        Column("after", "number"),
        Column("difference", "number"),
    ]
    rows: list[list[Cell]] = [[Words(text=name), *format_change(old, new)] for name, old, new in change.criteria]
    return Table(columns=columns, rows=rows)
