"""Judges compared with people as a document: how far each can be trusted, and the disagreements to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from adjudge.dataset.case_ids import shorten_case_id
from adjudge.formats.numbers import format_score
from adjudge.measurement.disagreement import Disagreement
from adjudge.measurement.measurement import Measurement
from adjudge.report.case_blocks import describe_case, name_sort
from adjudge.report.cases import cut
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
    Panels,
    Paragraph,
    Section,
    Subtitle,
    Table,
    Text,
    Words,
)
from adjudge.report.measurement_panels import list_measurement_panels, list_sort_blocks, make_lead_below
from adjudge.report.measurement_words import (
    VERDICTS,
    choose_disagreements,
    describe_rate,
    describe_sorts,
    format_label_value,
    format_labels,
    list_warnings,
)
from adjudge.templates.figures import format_count
from adjudge.trust.corrected_rate import CorrectedRate

_MOST_GROUPS = 60
"""Groups that a page's filter can list; with more, it has none."""


def make_measurement_document(measurements: Sequence[Measurement], *, top: int = 0) -> Document:
    """Make the document of judges that were compared with people; ``top`` disagreements are in its short table."""
    first = measurements[0]
    several = len(measurements) > 1
    title = "Judges" if several else first.judge or "The judge"
    dataset = Words(text=first.data, kind="strong") if first.data else "a run"
    subtitles = [Subtitle(text=("On ", dataset, f", {format_count(first.cases, 'case')}."))]
    subtitles += [Subtitle(text="", facts=[f"run {first.run}"])] if first.run else []
    sections = [
        Section(
            title=measurement.judge or "a judge" if several else "",
            blocks=[make_lead_below(measurement), Panels(panels=list(list_measurement_panels(measurement)))],
        )
        for measurement in measurements
    ]
    return Document(
        name=_make_name(measurements),
        headline=_make_headline(measurements),
        doubts=list_warnings(measurements),
        title=f"{title} compared with people",
        subtitles=subtitles,
        blocks=[*sections, _show_disagreements(measurements, top)],
        foot=[
            (
                "Intervals are at 95 %: Wilson's for shares, a bootstrap for coefficients; where cases come in groups, "
                "both follow the groups."
            )
        ],
    )


def _make_headline(measurements: Sequence[Measurement]) -> str:
    """Make the headline: the corrected rate of a single judge if there is one, else the number of disagreements."""
    first = measurements[0]
    if len(measurements) == 1 and isinstance(first.rate, CorrectedRate):
        return describe_rate(first).removesuffix(".")
    return format_count(sum(measurement.differing for measurement in measurements), "disagreement")


def _make_name(measurements: Sequence[Measurement]) -> Text:
    """Make the name of the document: the data, the judges, and the criterion if one was compared."""
    first = measurements[0]
    judge = Words(text=first.judge) if first.judge else "a judge"
    judges = judge if len(measurements) == 1 else format_count(len(measurements), "judge")
    criterion = (", on ", Words(text=first.criterion)) if first.criterion is not None else ()
    dataset = Words(text=first.data) if first.data else "A run"
    return dataset, " judged by ", judges, *criterion, ", compared with people"


def _show_disagreements(measurements: Sequence[Measurement], top: int) -> Cases:
    """Make the list of disagreements, ``top`` of each judge in its short table."""
    several = len(measurements) > 1
    # Each disagreement with the name of its judge, which is empty for a single judge.
    named = [
        (measurement.judge if several else "", disagreement)
        for measurement in measurements
        for disagreement in measurement.disagreements
    ]
    chosen = [
        (measurement.judge if several else "", disagreement)
        for measurement in measurements
        for disagreement in choose_disagreements(measurement.disagreements, top)
    ]
    total = sum(measurement.differing for measurement in measurements)
    groups = list(dict.fromkeys(disagreement.group for _, disagreement in named if disagreement.group is not None))
    group_keys = {name: f"g{number}" for number, name in enumerate(groups)} if len(groups) <= _MOST_GROUPS else {}
    return Cases(
        title="Disagreements",
        about="",
        blocks=list(_introduce_disagreements(measurements, len(named), total)),
        table=_make_disagreement_table(chosen),
        total=total,
        which="in which the judge differs from people",
        entries=[_make_entry(disagreement, group_keys, judge) for judge, disagreement in named],
        choices=_list_choices([disagreement for _, disagreement in named], group_keys),
    )


def _introduce_disagreements(measurements: Sequence[Measurement], shown: int, total: int) -> Iterator[Block]:
    """Yield the text before the list of disagreements: how many there are of each sort, and how many are ``shown``."""
    if len(measurements) == 1:
        yield from list_sort_blocks(measurements[0])
    else:
        for measurement in measurements:
            yield Paragraph(text=(Words(text=measurement.judge or "a judge"), f": {describe_sorts(measurement)}."))
    if shown:
        some = (
            f" {format_count(shown)} of {format_count(total)} are here, the worst of each sort."
            if total > shown
            else ""
        )
        yield Paragraph(text=f"The worst first.{some}", quiet=True)


def _make_disagreement_table(disagreements: Sequence[tuple[str, Disagreement]]) -> Table:
    """Make the short table of disagreements, each with the name of its judge, which is empty for a single judge."""
    several = any(judge for judge, _ in disagreements)
    columns = [Column("case"), Column("sort", "word"), Column("judge", "word"), Column("people"), Column("about")]
    rows: list[list[Cell]] = []
    for judge, disagreement in disagreements:
        name = [Words(text=judge)] if several else []
        rows.append(
            [
                *name,
                Words(text=shorten_case_id(disagreement.case)),
                str(disagreement.sort),
                VERDICTS[disagreement.verdict],
                format_label_value(disagreement.truth),
                describe_case(disagreement.task, disagreement.content or disagreement.why),
            ]
        )
    return Table(columns=[Column("of"), *columns] if several else columns, rows=rows)


def _list_choices(disagreements: Sequence[Disagreement], group_keys: Mapping[str, str]) -> list[Choice]:
    """List the filters of the page that have an option; ``group_keys`` has the key of each group by its name."""
    sorts = dict.fromkeys(disagreement.sort for disagreement in disagreements)
    verdicts = dict.fromkeys(disagreement.verdict for disagreement in disagreements)
    choices = [
        Choice(name="sort", label="sort", options=[(name_sort(sort), str(sort)) for sort in sorts]),
        Choice(name="outcome", label="judge", options=[(str(name), VERDICTS[name]) for name in verdicts]),
        Choice(name="group", label="group", options=[(key, cut(name, 60)) for name, key in group_keys.items()]),
    ]
    return [choice for choice in choices if choice.options]


def _make_entry(disagreement: Disagreement, group_keys: Mapping[str, str], judge: str) -> CaseEntry:
    """Make the entry of a disagreement in the list of cases.

    ``group_keys`` has the key of each group for the page's filter. ``judge`` is empty for a single judge.
    """
    people = format_label_value(disagreement.truth)
    verdict = VERDICTS[disagreement.verdict]
    tags = [Words(text=judge)] if judge else []
    tags += [Words(text=f"people: {people}", kind="alarm"), Words(text=str(disagreement.sort), kind="")]
    tags += [Words(text=disagreement.group)] if disagreement.group is not None else []
    facts = [("people", format_labels(disagreement) or people)]
    facts += [("sorted", "by a comment")] if disagreement.by_hand else []
    comments = [Excerpt(title="Comment", text=text) for text in disagreement.comments]
    texts = (("Judge", disagreement.why), ("Task", disagreement.task), ("Content", disagreement.content))
    return CaseEntry(
        place=disagreement.place,
        name=disagreement.case,
        badges=[Badge(word=verdict, state=verdict if verdict in ("passed", "failed", "undecided") else "info")],
        tags=tags,
        figure=format_score(disagreement.score) if disagreement.score is not None else "",
        why=disagreement.task or disagreement.content,
        body=[Facts(pairs=facts), *comments, *(Excerpt(title=name, text=text) for name, text in texts if text)],
        keys={
            "outcome": str(disagreement.verdict),
            "sort": name_sort(disagreement.sort),
            "group": group_keys.get(disagreement.group or "", ""),
            "reason": "",
        },
    )
