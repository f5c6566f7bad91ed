"""The panels of a run's report, such as criteria, scores and costs, each with its tables and facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from adjudge.formats.numbers import NOTHING, format_distinct, format_rate, format_score
from adjudge.judges.pair_summary import PairSummary
from adjudge.report.cases import cut
from adjudge.report.document import (
    Block,
    Cell,
    Column,
    Drawing,
    Facts,
    Heading,
    Histogram,
    Panel,
    Paragraph,
    Table,
    Words,
    draw_share,
    stack_outcomes,
)
from adjudge.report.report import Report
from adjudge.report.report_tables import (
    OUTCOMES,
    CriterionSummary,
    GroupSummary,
    LabelSummary,
    RepeatSummary,
    RubricSummary,
)
from adjudge.report.run_words import format_cost, format_criterion_share
from adjudge.report.spread import BINS, Spread
from adjudge.templates.figures import format_count, format_duration, format_interval, format_number, format_share
from adjudge.trust.intervals import Share

MOST_ROWS = 50
"""Rows of a table of groups, rules or pairs of judges."""

MOST_TABLES = 10
"""Rubrics whose criteria have a table of their own."""

_OUTCOME_COLUMNS = [Column(name, "number") for name in OUTCOMES]
"""The columns in which outcomes are counted, in the order in which a summary has them."""

_INTERVAL = Column("95 % interval", "number", wide=True)


def list_run_panels(report: Report) -> Iterator[Panel]:
    """Yield the panels of a report that are not empty; on a page, two narrow ones are beside each other."""
    if report.pairs:
        blocks = _show_pairs(report.pairs, measured=report.is_measured)
        yield Panel(title="First against second", blocks=blocks, whole=True)
    if report.rubrics:
        yield Panel(title="Rubrics", blocks=[_show_rubrics(report.rubrics)], whole=True)
        for rubric in report.rubrics[:MOST_TABLES]:
            if rubric.criteria:
                title = ("Criteria of ", Words(text=f"{cut(rubric.name, 60)} {rubric.digest[:12]}"))
                yield Panel(title=title, blocks=[_show_criteria(rubric.criteria)], whole=True)
    elif report.criteria:
        yield Panel(title="Criteria", blocks=[_show_criteria(report.criteria)], whole=True)
    narrow = list(_list_narrow_panels(report))
    for number, (title, blocks) in enumerate(narrow, 1):
        # The last of an odd number has no neighbour, so it takes the whole width.
        is_alone = number == len(narrow) and number % 2 == 1
        yield Panel(title=title, blocks=blocks, whole=is_alone)
    for title, blocks in _list_wide_panels(report):
        yield Panel(title=title, blocks=blocks, whole=True)


_TitledBlocks = Iterator[tuple[str, Sequence[Block]]]


def _list_narrow_panels(report: Report) -> _TitledBlocks:
    """Yield the title and the blocks of each panel of half the width.

    Agreement with labels is left out if the run is measured, because the measurement shows it elsewhere.
    """
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


def _list_wide_panels(report: Report) -> _TitledBlocks:
    """Yield the title and the blocks of each panel of the whole width."""
    if report.groups:
        yield "Groups", [_show_groups(report.groups)]
    if report.rules:
        yield "Rules", [_show_rules(report)]


def _show_scores(spread: Spread, threshold: float | None) -> Histogram:
    """Make the histogram of all scores, with a line at the threshold and a sentence on their spread."""
    about = (
        f"Mean {format_score(spread.mean)}, median {format_score(spread.median)}, "
        f"nine in ten from {format_score(spread.p5)} to {format_score(spread.p95)}; "
        f"{format_count(spread.count, 'score')}."
    )
    bars = "; ".join(f"{format_score(index / BINS)}: {number}" for index, number in enumerate(spread.bins) if number)
    return Histogram(bins=spread.bins, alt=f"Scores. From each twentieth on: {bars}", needs=threshold, about=about)


def _show_rubrics(rubrics: Sequence[RubricSummary]) -> Table:
    """Make the table of rubrics, the run's and those of cases."""
    columns = [
        Column("rubric"),
        Column("asks", wide=True),
        Column("whose", "word"),
        Column("cases", "number"),
        Column("passed", "number"),
        Column("", "drawing"),
        _INTERVAL,
        Column("needs", "number"),
    ]
    rows: list[list[Cell]] = [
        [
            Words(text=rubric.name, more=rubric.digest[:12]),
            Words(text=rubric.about, kind="quoted"),
            "the cases" if rubric.own else "the run",
            format_count(rubric.cases),
            format_rate(rubric.passed.rate),
            draw_share(rubric.passed, title="passed"),
            format_interval(rubric.passed),
            format_score(rubric.threshold),
        ]
        for rubric in rubrics
    ]
    return Table(columns=columns, rows=rows, caption="That of most cases first.")


def _show_criteria(criteria: Sequence[CriterionSummary]) -> Table:
    """Make the table of criteria, each with its scores, its threshold and the share that passed it."""
    columns = [
        Column("criterion"),
        Column("judged", "number", wide=True),
        Column("mean", "number"),
        Column("scores from 0 to 1", "drawing", wide=True),
        Column("passed", "number"),
        Column("", "drawing"),
        _INTERVAL,
        Column("needs", "number"),
        Column("weight", "number", wide=True),
    ]
    rows: list[list[Cell]] = [
        [
            Words(text=criterion.name, more=f"rule: {criterion.rule}" if criterion.rule else ""),
            f"{criterion.passed.of:,}",
            format_distinct(criterion.scores.mean if criterion.scores else None, criterion.threshold)[0],
            _draw_spread(criterion.scores) if criterion.scores else NOTHING,
            format_criterion_share(criterion)[0],
            draw_share(criterion.passed, title="passed") if criterion.gates else None,
            format_criterion_share(criterion)[1],
            format_distinct(criterion.scores.mean if criterion.scores else None, criterion.threshold)[1],
            f"{criterion.weight:g}",
        ]
        for criterion in criteria
    ]
    return Table(columns=columns, rows=rows, caption="The lowest mean first.")


def _draw_spread(spread: Spread) -> Drawing:
    """Make the drawing of a spread of scores: a small histogram."""
    alt = f"from {format_score(spread.lowest)} to {format_score(spread.highest)}, median {format_score(spread.median)}"
    return Drawing(form="spark", bins=spread.bins, alt=alt)


def _show_undecided(report: Report) -> Sequence[Block]:
    """Make the table of why judgements are undecided, and the sentence on who decided."""
    if not report.undecided_because:
        return [Paragraph(text="Every judgement was decided.")]
    longest_bar = max(report.undecided_because.values())
    rows: list[list[Cell]] = [
        [
            name,
            format_count(number),
            Drawing(form="bar", value=number / longest_bar, kind="f-undecided", alt=f"{name}: {format_count(number)}"),
            format_rate(number / report.judgements),
        ]
        for name, number in report.undecided_because.items()
    ]
    columns = [Column("because"), Column("judgements", "number"), Column("", "drawing"), Column("of all", "number")]
    decided = ", ".join(f"{name} {number:,}" for name, number in report.decided_by.items())
    return [Table(columns=columns, rows=rows), Paragraph(text=f"Decided by: {decided}.")]


def _show_pairs(pairs: PairSummary, *, measured: bool) -> Sequence[Block]:
    """Make the blocks of a run of pairs: wins, flips and accuracy.

    ``measured`` says that the measurement shows the accuracy elsewhere, so that it is left out here.
    """
    outcomes = {"passed": pairs.wins, "failed": pairs.losses, "undecided": pairs.undecided + pairs.ties}
    counts = (
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
    stack = stack_outcomes(outcomes, title="First preferred, second preferred, tie or undecided")
    return [stack, Paragraph(text=counts), Facts(pairs=facts)]


def _show_labels(report: Report) -> Sequence[Block]:
    """Make the blocks of the agreement with labels: those of true and false, then those that are numbers."""
    blocks: list[Block] = _show_confusion(report.labels) if report.labels is not None else []
    if report.numbers is not None:
        numbers = report.numbers
        facts = [
            ("judgements", format_count(numbers.labelled)),
            ("correlation", format_score(numbers.correlation)),
            ("mean difference", format_score(numbers.mean_difference)),
        ]
        blocks += [Heading(text="Labels that are numbers"), Facts(pairs=facts)]
    return blocks


def _show_confusion(labels: LabelSummary) -> list[Block]:
    """Make the blocks of the agreement with labels of true and false: facts that count cases, then a confusion table.

    The table counts judgements, of which a case may have several.
    """
    rows = [[name, *[format_count(number) for number in counts.values()]] for name, counts in labels.confusion.items()]
    facts = [
        ("agreement", format_share(labels.accuracy)),
        ("baseline: always pass", format_rate(labels.always_passing.rate)),
        ("labelled", format_count(labels.labelled, "case")),
    ]
    table = Table(columns=[Column("label"), *_OUTCOME_COLUMNS], rows=rows)
    return [Facts(pairs=facts), Heading(text="Judgements by label"), table]


def _show_seats(report: Report) -> Table:
    """Make the table of the judges of a chain: how often each was asked, its outcomes and its mean time."""
    columns = [Column("judge"), Column("asked", "number"), *_OUTCOME_COLUMNS, Column("mean time", "number", wide=True)]
    rows: list[list[Cell]] = [
        [
            Words(text=seat.judge),
            format_count(seat.asked),
            *[format_count(number) for number in seat.outcomes.values()],
            format_duration(seat.mean_duration_ms),
        ]
        for seat in report.seats
    ]
    return Table(columns=columns, rows=rows)


def _show_disagreements(report: Report) -> Sequence[Block]:
    """Make the blocks on how often judges of a chain disagree: in all, and each two of them."""
    split = [Paragraph(text=f"Judges were split in {format_share(report.split)}.")] if report.split is not None else []
    columns = [
        Column("judges"),
        Column("disagreed", "number"),
        Column("", "drawing"),
        _INTERVAL,
        Column("both decided", "number"),
    ]
    rows: list[list[Cell]] = [
        [
            (Words(text=pair.first), " / ", Words(text=pair.second)),
            format_rate(pair.disagreed.rate),
            draw_share(pair.disagreed, title="disagreed", kind="f-failed"),
            format_interval(pair.disagreed),
            format_count(pair.disagreed.of),
        ]
        for pair in report.seat_pairs[:MOST_ROWS]
    ]
    return [*split, Table(columns=columns, rows=rows)]


def _show_repeats(repeats: RepeatSummary) -> Facts:
    """List how often repeated judgements of a case differ, and how far their scores are apart."""
    return Facts(
        pairs=[
            ("cases judged repeatedly", format_count(repeats.cases)),
            ("outcome differs", format_share(repeats.flipped)),
            ("mean range of scores", format_score(repeats.mean_range)),
        ]
    )


def _show_groups(groups: Sequence[GroupSummary]) -> Table:
    """Make the table of groups, which has other columns if there are pairs in them."""
    shown = groups[:MOST_ROWS]
    caption = "The lowest share first."
    if len(groups) > MOST_ROWS:
        caption += f" {MOST_ROWS} of {len(groups):,} groups."
    if any(group.pairs for group in shown):
        return _make_pair_group_table(shown, caption)
    return _make_case_group_table(shown, caption)


def _make_case_group_table(groups: Sequence[GroupSummary], caption: str) -> Table:
    """Make the table of groups of single cases: their pass rates, mean scores and agreement with labels."""
    columns = [
        Column("group"),
        Column("cases", "number"),
        Column("passed", "number"),
        Column("", "drawing"),
        _INTERVAL,
        Column("mean score", "number", wide=True),
        Column("right", "number"),
    ]
    rows: list[list[Cell]] = [
        [
            name_group(group.name),
            format_count(group.cases),
            format_rate(group.passed.rate),
            draw_share(group.passed, title="passed"),
            format_interval(group.passed),
            format_score(group.mean_score),
            format_rate(group.accuracy.rate if group.accuracy is not None else None),
        ]
        for group in groups
    ]
    return Table(columns=columns, rows=rows, caption=caption)


def _make_pair_group_table(groups: Sequence[GroupSummary], caption: str) -> Table:
    """Make the table of groups of pairs: their win rates, flips and accuracy; a group without pairs has none."""
    names = ("win rate", "orders agree", "right", "order ab", "order ba")
    rates = [Column(name, "number", wide=name == "win rate") for name in names]
    columns = [Column("group"), Column("cases", "number"), *rates]
    rows: list[list[Cell]] = []
    for group in groups:
        pairs = group.pairs
        shares = (
            (pairs.win_rate, pairs.agreement, pairs.accuracy, pairs.accuracy_ab, pairs.accuracy_ba) if pairs else ()
        )
        cells = [format_rate(share.rate) for share in shares] or [NOTHING] * len(names)
        rows.append([name_group(group.name), format_count(group.cases), *cells])
    return Table(columns=columns, rows=rows, caption=caption)


def name_group(name: str | None) -> Words:
    """Name a group; cases without one get words of ours, which look different from a name."""
    return Words(text="without a group", kind="quiet") if name is None else Words(text=name)


def _show_rules(report: Report) -> Table:
    """Make the table of rules, each with how often it was checked and how often it found something."""
    columns = [
        Column("rule"),
        Column("severity", "word"),
        Column("checked", "number"),
        Column("found", "number"),
        Column("", "drawing", wide=True),
    ]
    rows: list[list[Cell]] = [
        [
            Words(text=rule.name),
            rule.severity,
            format_count(rule.checked),
            format_count(rule.failed),
            draw_share(Share(count=rule.failed, of=rule.checked), title="found something", kind="f-failed"),
        ]
        for rule in report.rules[:MOST_ROWS]
    ]
    return Table(columns=columns, rows=rows)


def _show_cost(report: Report) -> Facts:
    """List what the run cost, and how long judgements took."""
    cost, times = report.cost, report.durations
    facts = []
    if cost.was_asked or report.about.paid_again:
        facts += [
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
