"""The figures of a report as panels, one for each question somebody asks of a run; the templates write them as HTML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from adjudge.formats.numbers import NOTHING, format_apart, format_rate, format_score
from adjudge.judges.pair_summary import PairSummary
from adjudge.report.cases import cut
from adjudge.report.format import format_cost, format_criterion_share
from adjudge.report.report import (
    BINS,
    CriterionSummary,
    GroupSummary,
    LabelSummary,
    RepeatSummary,
    Report,
    RubricSummary,
    Spread,
)
from adjudge.report.tally import OUTCOMES
from adjudge.templates.figures import format_count, format_duration, format_interval, format_number, format_share
from adjudge.trust.intervals import Share

Outcomes = Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A figure that is drawn in a cell, with the sentence for those who do not see it."""

    form: Literal["bar", "spark", "estimate"]
    said: str
    value: float = 0.0
    """In 0 to 1, as are the limits."""
    low: float | None = None
    high: float | None = None
    kind: str = "f-bar"
    """The class that gives the colour."""
    bins: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Words with a quieter remark after them, or in a colour."""

    text: str
    more: str = ""
    kind: str = ""
    """``said`` is somebody else's text, ``name`` a name, ``quiet`` a remark of ours, ``alarm`` a warning."""


Cell = str | Words | Drawing | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table; a column is its heading and its class (``n`` for numbers, ``wide`` where there is room)."""

    form: ClassVar[str] = "table"
    columns: Sequence[tuple[str, str]]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Pairs of a word and a value."""

    form: ClassVar[str] = "facts"
    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraph:
    """A sentence or two."""

    form: ClassVar[str] = "paragraph"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """A title inside a panel."""

    form: ClassVar[str] = "heading"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """Sentences as a list."""

    form: ClassVar[str] = "points"
    items: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """One bar, divided by outcome."""

    form: ClassVar[str] = "stack"
    parts: Sequence[tuple[str, int]]
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """Scores from 0 to 1 in bars of a twentieth, with a line at the threshold."""

    form: ClassVar[str] = "histogram"
    bins: tuple[int, ...]
    said: str
    needs: float | None
    about: str


Block = Table | Facts | Paragraph | Heading | Points | Stack | Histogram


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Blocks under a heading, over both columns or one."""

    title: str
    blocks: Sequence[Block]
    whole: bool = False


def draw_share(share: Share, *, what: str, kind: str = "f-bar") -> Drawing:
    """A bar as long as the share, with its interval as a line across the end."""
    low, high = share.interval or (None, None)
    said = f"{what}: {format_rate(share.rate)}" + (f", {format_interval(share)}" if share.interval else "")
    return Drawing(form="bar", value=share.rate or 0.0, low=low, high=high, kind=kind, said=said)


def stack_outcomes(outcomes: Outcomes, *, what: str) -> Stack:
    """One bar, divided by outcome."""
    said = f"{what}: " + ", ".join(f"{format_count(number)} {name}" for name, number in outcomes.items())
    return Stack(parts=tuple(outcomes.items()), said=said)


MOST_ROWS = 50
"""Rows of a table of groups, rules or pairs of judges."""

MOST_TABLES = 10
"""Rubrics whose criteria have a table of their own."""


def list_panels(report: Report) -> Iterator[Panel]:
    """Every panel that has something to say; two narrow ones stand beside each other."""
    if report.pairs:
        yield Panel(
            title="First against second", blocks=_show_pairs(report.pairs, measured=report.is_measured), whole=True
        )
    if report.rubrics:
        yield Panel(title="Rubrics", blocks=[_show_rubrics(report.rubrics)], whole=True)
        for item in report.rubrics[:MOST_TABLES]:
            if item.criteria:
                title = f"Criteria of {cut(item.name, 60)} {item.digest[:12]}"
                yield Panel(title=title, blocks=[_show_criteria(item.criteria)], whole=True)
    elif report.criteria:
        yield Panel(title="Criteria", blocks=[_show_criteria(report.criteria)], whole=True)
    narrow = list(_list_narrow(report))
    for place, (title, blocks) in enumerate(narrow):
        yield Panel(title=title, blocks=blocks, whole=len(narrow) % 2 == 1 and place == len(narrow) - 1)
    for title, blocks in _list_wide(report):
        yield Panel(title=title, blocks=blocks, whole=True)


_Listed = Iterator[tuple[str, Sequence[Block]]]

_OUTCOMES = [(name, "n") for name in OUTCOMES]
"""The columns in which outcomes are counted, in the order in which a summary has them."""


def _list_narrow(report: Report) -> _Listed:
    if report.scores is not None:
        yield "Scores", [_show_scores(report.scores, report.threshold)]
    yield "Undecided", _show_undecided(report)
    if (report.labels is not None or report.numbers is not None) and not report.is_measured:
        yield "Agreement with labels", _show_labels(report)
    yield "Cost and time", [_show_cost(report)]
    if report.seats:
        yield "Judges of the chain", [_show_seats(report)]
    if report.seat_pairs:
        yield "Disagreements", _show_disagreements(report)
    if report.repeats is not None:
        yield "Judged again", [_show_repeats(report.repeats)]


def _list_wide(report: Report) -> _Listed:
    if report.groups:
        yield "Groups", [_show_groups(report.groups)]
    if report.rules:
        yield "Rules", [_show_rules(report)]


def _show_scores(spread: Spread, threshold: float | None) -> Histogram:
    about = (
        f"Mean {format_score(spread.mean)}, median {format_score(spread.median)}, "
        f"nine in ten from {format_score(spread.p5)} to {format_score(spread.p95)}; "
        f"{format_count(spread.count, 'score')}."
    )
    listed = "; ".join(f"{format_score(place / BINS)}: {number}" for place, number in enumerate(spread.bins) if number)
    said = f"Scores. From each twentieth on: {listed}"
    return Histogram(bins=spread.bins, said=said, needs=threshold, about=about)


def _show_rubrics(rubrics: Sequence[RubricSummary]) -> Table:
    columns = [("rubric", ""), ("asks", "wide"), ("whose", "word"), ("cases", "n"), ("passed", "n"), ("", "chart"),
               ("95 % interval", "n wide"), ("needs", "n")]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            Words(text=item.name, more=item.digest[:12], kind="name"),
            Words(text=item.about, kind="said"),
            "the cases" if item.own else "the run",
            format_count(item.cases),
            format_rate(item.passed.rate),
            draw_share(item.passed, what="passed"),
            format_interval(item.passed),
            format_score(item.threshold),
        ]
        for item in rubrics
    ]
    return Table(columns=columns, rows=rows, caption="That of most cases first.")


def _show_criteria(criteria: Sequence[CriterionSummary]) -> Table:
    columns = [
        ("criterion", ""),
        ("judged", "n wide"),
        ("mean", "n"),
        ("scores from 0 to 1", "chart wide"),
        ("passed", "n"),
        ("", "chart"),
        ("95 % interval", "n wide"),
        ("needs", "n"),
        ("weight", "n wide"),
    ]
    rows: list[list[Cell]] = [
        [
            Words(text=item.name, more=f"rule: {item.rule}" if item.rule else "", kind="name"),
            f"{item.passed.of:,}",
            format_apart(item.scores.mean if item.scores else None, item.threshold)[0],
            _draw_spread(item.scores) if item.scores else NOTHING,
            format_criterion_share(item)[0],
            draw_share(item.passed, what="passed") if item.gates else None,
            format_criterion_share(item)[1],
            format_apart(item.scores.mean if item.scores else None, item.threshold)[1],
            f"{item.weight:g}",
        ]
        for item in criteria
    ]
    return Table(columns=columns, rows=rows, caption="The lowest mean first.")


def _draw_spread(spread: Spread) -> Drawing:
    said = f"from {format_score(spread.lowest)} to {format_score(spread.highest)}, median {format_score(spread.median)}"
    return Drawing(form="spark", bins=spread.bins, said=said)


def _show_undecided(report: Report) -> Sequence[Block]:
    if not report.undecided_because:
        return [Paragraph(text="Every judgement was decided.")]
    most = max(report.undecided_because.values())
    rows: list[list[Cell]] = [
        [
            name,
            format_count(number),
            Drawing(form="bar", value=number / most, kind="f-undecided", said=f"{name}: {format_count(number)}"),
            format_rate(number / report.judgements),
        ]
        for name, number in report.undecided_because.items()
    ]
    columns = [("because", ""), ("judgements", "n"), ("", "chart"), ("of all", "n")]
    decided = ", ".join(f"{name} {number:,}" for name, number in report.decided_by.items())
    return [Table(columns=columns, rows=rows), Paragraph(text=f"Decided by: {decided}.")]


def _show_pairs(pairs: PairSummary, *, measured: bool) -> Sequence[Block]:
    outcomes = {"passed": pairs.wins, "failed": pairs.losses, "undecided": pairs.undecided + pairs.ties}
    said = (
        f"{format_count(pairs.wins, 'win')} of the first, {format_count(pairs.losses, 'win')} of the second, "
        f"{format_count(pairs.ties, 'tie')}, {pairs.undecided:,} undecided."
    )
    facts = [
        ("win rate of the first", format_share(pairs.win_rate)),
        ("orders disagree", format_share(pairs.flips)),
        ("orders agree, of all asked twice", format_share(pairs.agreement)),
        ("prefers what is shown first", format_share(pairs.shown_first)),
    ]
    if pairs.labelled:
        facts += [] if measured else [("accuracy", format_share(pairs.accuracy))]
        facts += [
            ("accuracy without ties", format_share(pairs.accuracy_untied)),
            ("accuracy in order ab", format_share(pairs.accuracy_ab)),
            ("accuracy in order ba", format_share(pairs.accuracy_ba)),
            ("right in both orders", format_share(pairs.both_right)),
        ]
    stack = stack_outcomes(outcomes, what="First preferred, second preferred, tie or undecided")
    return [stack, Paragraph(text=said), Facts(pairs=facts)]


def _show_labels(report: Report) -> Sequence[Block]:
    blocks: list[Block] = _show_confusion(report.labels) if report.labels is not None else []
    if report.numbers is not None:
        found = report.numbers
        facts = [
            ("judgements", format_count(found.labelled)),
            ("correlation", format_score(found.correlation)),
            ("mean difference", format_score(found.mean_difference)),
        ]
        blocks += [Heading(text="Labels that are numbers"), Facts(pairs=facts)]
    return blocks


def _show_confusion(labels: LabelSummary) -> list[Block]:
    rows = [[name, *[format_count(number) for number in found.values()]] for name, found in labels.confusion.items()]
    facts = [
        ("agreement", format_share(labels.accuracy)),
        ("baseline: always pass", format_rate(labels.always_passing.rate)),
        ("labelled", format_count(labels.labelled, "case")),
    ]
    table = Table(columns=[("label", ""), *_OUTCOMES], rows=rows)
    return [Facts(pairs=facts), Heading(text="Judgements by label"), table]


def _show_seats(report: Report) -> Table:
    columns = [("judge", ""), ("asked", "n"), *_OUTCOMES, ("mean time", "n wide")]
    rows = [
        [
            seat.judge,
            format_count(seat.asked),
            *[format_count(number) for number in seat.outcomes.values()],
            format_duration(seat.mean_duration_ms),
        ]
        for seat in report.seats
    ]
    return Table(columns=columns, rows=rows)


def _show_disagreements(report: Report) -> Sequence[Block]:
    split = [Paragraph(text=f"Judges were split in {format_share(report.split)}.")] if report.split is not None else []
    columns = [("judges", ""), ("disagreed", "n"), ("", "chart"), ("both decided", "n")]
    rows: list[list[Cell]] = [
        [
            f"{pair.first} / {pair.second}",
            format_rate(pair.disagreed.rate),
            draw_share(pair.disagreed, what="disagreed", kind="f-failed"),
            format_count(pair.disagreed.of),
        ]
        for pair in report.seat_pairs[:MOST_ROWS]
    ]
    return [*split, Table(columns=columns, rows=rows)]


def _show_repeats(found: RepeatSummary) -> Facts:
    return Facts(
        pairs=[
            ("cases judged repeatedly", format_count(found.cases)),
            ("outcome differs", format_share(found.flipped)),
            ("mean range of scores", format_score(found.mean_range)),
        ]
    )


def _show_groups(groups: Sequence[GroupSummary]) -> Table:
    shown = groups[:MOST_ROWS]
    caption = "The lowest share first."
    if len(groups) > MOST_ROWS:
        caption += f" {MOST_ROWS} of {len(groups):,} groups."
    return _list_pair_groups(shown, caption) if any(item.pairs for item in shown) else _list_groups(shown, caption)


def _list_groups(groups: Sequence[GroupSummary], caption: str) -> Table:
    columns = [("group", ""), ("cases", "n"), ("passed", "n"), ("", "chart"), ("95 % interval", "n wide")]
    columns += [("mean score", "n wide"), ("right", "n")]
    rows: list[list[Cell]] = [
        [
            name_group(item.name),
            format_count(item.cases),
            format_rate(item.passed.rate),
            draw_share(item.passed, what="passed"),
            format_interval(item.passed),
            format_score(item.mean_score),
            format_rate(item.accuracy.rate if item.accuracy is not None else None),
        ]
        for item in groups
    ]
    return Table(columns=columns, rows=rows, caption=caption)


def _list_pair_groups(groups: Sequence[GroupSummary], caption: str) -> Table:
    names = ("win rate", "orders agree", "right", "order ab", "order ba")
    columns = [("group", ""), ("cases", "n"), *[(name, "n" if name != "win rate" else "n wide") for name in names]]
    rows: list[list[Cell]] = []
    for item in groups:
        pairs = item.pairs
        found = (pairs.win_rate, pairs.agreement, pairs.accuracy, pairs.accuracy_ab, pairs.accuracy_ba) if pairs else ()
        rates = [format_rate(share.rate) for share in found] or [NOTHING] * len(names)
        rows.append([name_group(item.name), format_count(item.cases), *rates])
    return Table(columns=columns, rows=rows, caption=caption)


def name_group(name: str | None) -> Words:
    """A group's name; words of ours, set apart, where it has none."""
    return Words(text="without a group", kind="quiet") if name is None else Words(text=name, kind="name")


def _show_rules(report: Report) -> Table:
    columns = [("rule", ""), ("severity", "word"), ("checked", "n"), ("found", "n"), ("", "chart wide")]
    rows: list[list[Cell]] = [
        [
            item.name,
            item.severity,
            format_count(item.checked),
            format_count(item.failed),
            draw_share(Share(count=item.failed, of=item.checked), what="found something", kind="f-failed"),
        ]
        for item in report.rules[:MOST_ROWS]
    ]
    return Table(columns=columns, rows=rows)


def _show_cost(report: Report) -> Facts:
    cost, times = report.cost, report.durations
    facts = [
        ("cost", format_cost(report)),
        ("requests answered", format_number(cost.calls)),
        ("input tokens", format_number(cost.input_tokens)),
        ("of these cached", format_number(cost.cached_tokens)),
        ("output tokens", format_number(cost.output_tokens)),
    ]
    if times is not None:
        facts += [
            ("median time", format_duration(times.median)),
            ("95 % within", format_duration(times.p95)),
            ("99 % within", format_duration(times.p99)),
            ("longest", format_duration(times.highest)),
        ]
    return Facts(pairs=facts)
