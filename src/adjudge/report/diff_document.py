"""The changes between two runs as a document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from adjudge.formats.numbers import format_change
from adjudge.report.case_blocks import TEXTS
from adjudge.report.cases import ShownCase, cut
from adjudge.report.diff_words import (
    Kind,
    count_cases,
    describe_change,
    describe_compared,
    describe_p,
    describe_test,
    find_kind,
    format_moved,
    format_p,
    list_exclusions,
    list_kinds,
    list_moved_criteria,
    name_cases,
    name_folders,
    name_sides,
)
from adjudge.report.difference_words import describe_judges, describe_systems, list_judge_facts, list_system_facts
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
    Facts,
    Heading,
    Judgement,
    Notice,
    Panel,
    Panels,
    Paragraph,
    Section,
    Sides,
    Subtitle,
    Table,
    Verdict,
    Words,
)
from adjudge.report.format import format_outcomes
from adjudge.report.measurement_panels import make_lead
from adjudge.report.measurement_words import list_doubts
from adjudge.report.paired_cases import PairedCase
from adjudge.report.run_diff import CaseDiff, Diff, DiffSide
from adjudge.templates.figures import format_count

_LONGEST = 160


def make_diff_document(diff: Diff, cases: Iterable[PairedCase] = (), *, top: int = 0) -> Document:
    """Make the document of a diff, with ``top`` changed cases in the short table.

    ``cases`` are those that a page shows side by side; see ``pair_cases``.
    """
    sides = (("Before", diff.before), ("After", diff.after))
    subtitles = [
        Subtitle(
            text=(f"{name}: ", Words(text=str(side.folder), kind="strong")),
            facts=[f"run {side.id}", format_outcomes(side.counts)],
        )
        for name, side in sides
    ]
    verdict = Verdict(
        figure=describe_change(diff),
        joint=", ",
        text=count_cases(diff),
        test=f"{describe_test(diff)}: {describe_p(diff.p_value)} (McNemar, exact)",
        note=describe_compared(diff) if diff.compared != "both" else "",
    )
    notices = [Notice(text=text) for text in _list_notices(diff)]
    panels = Panels(panels=list(_list_panels(diff)))
    return Document(
        name=(Words(text=str(diff.before.folder)), " compared with ", Words(text=str(diff.after.folder))),
        headline=describe_change(diff),
        doubts=list_doubts(diff.measured or ()),
        title="Two runs side by side",
        subtitles=subtitles,
        blocks=[
            *notices,
            *_show_difference(diff),
            verdict,
            *_show_measured(diff),
            panels,
            _show_cases(diff, list(cases), top),
        ],
        foot=[
            "Undecided is not passed.",
            "A case that was judged several times is what more than half of its judgements are.",
        ],
    )


def _list_notices(diff: Diff) -> Iterator[str]:
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
    if diff.measured is None:
        return
    for name, side in zip(("Before", "After"), diff.measured, strict=True):
        yield Section(title=f"{name}: what people would say", blocks=[make_lead(side)])


def _show_difference(diff: Diff) -> Iterator[Block]:
    """Show what people's labels say of the two runs: it comes before what the judge says."""
    if diff.systems is not None:
        sentence = describe_systems(diff.systems, *name_folders(diff))
        yield Section(title=sentence, blocks=[Facts(pairs=list(list_system_facts(diff.systems)))])
    if diff.judges is not None:
        sentence = describe_judges(diff.judges, *name_sides(diff))
        yield Section(title=sentence, blocks=[Facts(pairs=list(list_judge_facts(diff.judges)))])


def _list_panels(diff: Diff) -> Iterator[Panel]:
    moves = [[old, new, f"{number:,}"] for (old, new), number in diff.transitions.items()]
    columns = [Column("before"), Column("after", "word"), Column("cases", "number")]
    yield Panel(title="Preferences" if diff.pairs else "Outcomes", blocks=[Table(columns=columns, rows=moves)])
    if diff.pairs:
        return
    columns = [
        Column("mean"),
        Column("before", "number"),
        Column("after", "number"),
        Column("difference", "number"),
        Column("cases", "number", wide=True),
        Column("p", "number"),
        Column("by", "word"),
    ]
    rows: list[list[Cell]] = [
        [name, *format_change(means.before, means.after), f"{means.cases:,}", format_p(means.p_value), means.method]
        for name, means in [
            ("score", diff.score),
            *((Words(text=name), means) for name, means in diff.criteria.items()),
        ]
    ]
    yield Panel(title="Scores", blocks=[Table(columns=columns, rows=rows)])


def _show_cases(diff: Diff, cases: Sequence[PairedCase], top: int) -> Cases:
    words = dict(list_kinds(diff))
    unit = "pair" if diff.pairs else "case"
    shown = "All" if len(cases) == diff.cases else f"{format_count(len(cases))} of"
    kinds = {find_kind(diff, case.change) for case in cases}
    options = [(kind, word) for kind, word in words.items() if kind in kinds]
    return Cases(
        title="Cases",
        about=f"{shown} {format_count(diff.cases, unit)} in both runs, changed ones first.",
        table=_list_changes(diff.listed[:top]),
        total=diff.changed,
        which="that changed",
        unit=unit,
        order="regressions first" if diff.regressions is not None else "",
        entries=[_make_entry(case, find_kind(diff, case.change), words) for case in cases],
        choices=[Choice(name="outcome", label="change", options=options)] if options else [],
    )


def _list_changes(changes: Sequence[CaseDiff]) -> Table:
    """List the changes, without the columns in which nobody has anything: the others want the width."""
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
            Words(text=cut(change.case, _LONGEST)),
            change.before,
            change.after,
            format_moved(change.score_before, change.score_after),
            Words(text=list_moved_criteria(change)) if change.criteria else None,
            Words(text=cut(change.detail, _LONGEST), kind="quoted") if change.detail else None,
        ]
        for change in changes
    ]
    used = [place for place in range(len(columns)) if any(row[place] for row in rows)]
    return Table(columns=[columns[place] for place in used], rows=[[row[place] for place in used] for row in rows])


def _make_entry(case: PairedCase, kind: Kind, words: Mapping[Kind, str]) -> CaseEntry:
    change = case.change
    verdicts = (change.before, change.after) if change else (_find_verdict(case.before), _find_verdict(case.after))
    scores = (change.score_before, change.score_after) if change else (case.before.worst.score,) * 2
    badges = [_make_badge(verdict) for verdict in dict.fromkeys(verdicts)]
    criteria = [_show_criteria(change)] if change is not None and change.criteria else []
    return CaseEntry(
        place=case.before.place,
        name=case.before.id,
        badges=badges,
        tags=[Words(text=words[kind], kind="alarm" if kind == "regressed" else "")],
        figure=format_moved(*scores),
        why=case.after.worst.why,
        body=[
            *_list_texts(case),
            *criteria,
            Sides(sides=(list(_list_side("Before", case.before)), list(_list_side("After", case.after)))),
        ],
        keys={"outcome": kind},
    )


def _find_verdict(case: ShownCase) -> str:
    return case.worst.preferred or str(case.outcome)


def _make_badge(verdict: str) -> Badge:
    return Badge(word=verdict, state="" if verdict in ("first", "second", "tie") else verdict)


def _list_texts(case: PairedCase) -> Iterator[Block]:
    for name in TEXTS:
        before, after = getattr(case.before, name), getattr(case.after, name)
        if name in case.differing:
            old = Excerpt(title=f"{name.capitalize()} before", text=before)
            yield Sides(sides=([old], [Excerpt(title=f"{name.capitalize()} after", text=after)]))
        elif before:
            yield Excerpt(title=name.capitalize(), text=before)


def _list_side(name: str, case: ShownCase) -> Iterator[Block]:
    several = f" ({case.passed} of {case.judgements} judgements passed)" if case.judgements > 1 else ""
    yield Heading(text=f"{name}{several}")
    yield from (Judgement(result=result) for result in case.results)
    if case.judgements > len(case.results):
        yield Paragraph(text=f"{len(case.results)} of them, the worst first.", quiet=True)


def _show_criteria(change: CaseDiff) -> Table:
    columns = [
        Column("criterion that changed"),
        Column("before", "number"),
        Column("after", "number"),
        Column("difference", "number"),
    ]
    rows: list[list[Cell]] = [[Words(text=name), *format_change(old, new)] for name, old, new in change.criteria]
    return Table(columns=columns, rows=rows)
