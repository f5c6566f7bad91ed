"""The parts of a measurement's document: its lead with the rates on an axis, and its panels of tables and facts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from adjudge.formats.numbers import format_points, format_range, format_rate
from adjudge.measurement.measurement import Measurement
from adjudge.report.cases import cut
from adjudge.report.difference_words import format_points_between
from adjudge.report.document import (
    Axis,
    Block,
    Cell,
    Column,
    Drawing,
    Facts,
    Lead,
    Panel,
    Paragraph,
    Points,
    RateRow,
    Table,
    Tick,
    Words,
)
from adjudge.report.measurement_words import (
    TO_DO,
    describe_figures,
    describe_sorts,
    format_estimate,
    format_limits,
    format_value,
    list_assumptions,
    list_baselines,
    list_coefficients,
    list_confusion,
    list_left_out,
    list_people_agreement,
    list_rate_facts,
    list_remarks,
    list_shares,
)
from adjudge.templates.figures import format_count
from adjudge.trust.bias import Bias
from adjudge.trust.corrected_rate import CorrectedRate
from adjudge.trust.intervals import Estimate
from adjudge.trust.slices import Slices

MOST_ROWS = 50
"""Rows of a table of criteria or kinds."""


def make_lead(measurement: Measurement) -> Lead:
    """Make the lead of a measurement: its sentences, and the corrected rate above the judge's own rate on one axis.

    Without a corrected rate, there are the sentences alone.
    """
    sentences, rate = describe_figures(measurement), measurement.rate
    if not isinstance(rate, CorrectedRate):
        return Lead(criterion=measurement.criterion, sentence=sentences, warnings=measurement.warnings)
    is_of_system = rate.target == "system"
    judge_rate = rate.naive.rate or 0.0
    # The judge's own rate of the run's cases is a count, without limits. For other cases of the system it has some.
    low, high = (rate.naive.interval or (0.0, 1.0)) if is_of_system else (judge_rate, judge_rate)
    axis = find_axis((rate.low, rate.high, judge_rate, low, high))
    verb = "prefer the first" if measurement.kind == "preference" else "pass"
    verb = verb if measurement.is_counted else f"would {verb}"
    people = RateRow(
        name=f"people {verb}",
        value=rate.value,
        low=rate.low,
        high=rate.high,
        figure=format_rate(rate.value),
        limits="" if measurement.is_counted else format_range(rate.low, rate.high),
        kind="people",
    )
    judge = RateRow(
        name="the judge alone",
        value=judge_rate,
        low=low,
        high=high,
        figure=format_rate(judge_rate),
        limits=format_range(low, high) if is_of_system else "",
        kind="judge",
    )
    ticks = tuple(list_ticks(axis))
    return Lead(
        criterion=measurement.criterion,
        sentence=sentences,
        warnings=measurement.warnings,
        rows=(people, judge),
        axis=axis,
        ticks=ticks,
    )


def make_lead_below(measurement: Measurement) -> Lead:
    """Make the lead of a measurement without its warnings, for a document that has them in its first lines."""
    return replace(make_lead(measurement), warnings=())


def list_ticks(axis: Axis) -> Iterator[Tick]:
    """Yield the ticks on an axis of shares, in steps of five points or a multiple."""
    # The ends of the axis, counted in steps of five points.
    start, end = (round(20 * share) for share in axis)
    # As many steps of one size as fit on a phone.
    steps = next(number for number in (6, 5, 4, 3, 2, 1) if not (end - start) % number)
    for step in range(steps + 1):
        anchor = "start" if not step else "end" if step == steps else "middle"
        label = f"{5 * (start + (end - start) * step // steps)} %"
        yield Tick(place=100 * step / steps, label=label, anchor=anchor)


def find_axis(shares: Sequence[float], *, least: float = 0.0) -> Axis:
    """Find an axis in steps of five points that holds some shares with room beside them, of at least 20 points.

    It begins at ``least`` or above, and ends at 1 or below.
    """
    low, high = math.floor(20 * (min(shares) - 0.02)) / 20, math.ceil(20 * (max(shares) + 0.02)) / 20
    while high - low < 0.2:
        low, high = low - 0.05, high + 0.05
    low, high = max(low, least), min(high, 1.0)
    if high - low < 0.2:
        low, high = (least, least + 0.2) if low <= least else (0.8, 1.0)
    return low, high


def list_measurement_panels(measurement: Measurement) -> Iterator[Panel]:
    """Yield the panels of a measurement that are not empty, first the narrow ones."""
    for title, block in _list_narrow_blocks(measurement):
        yield Panel(title=title, blocks=[block])
    for title, block in _list_wide_blocks(measurement):
        yield Panel(title=title, blocks=[block], whole=True)


def _list_narrow_blocks(measurement: Measurement) -> Iterator[tuple[str, Block]]:
    """Yield the blocks that fit into half of the page's width, each with its title."""
    columns, rows = list_confusion(measurement)
    if rows:
        head = [Column(name, "number" if index else "text") for index, name in enumerate(columns)]
        caption = "Cases, by what people say and what the judge does."
        yield "Judge and people", Table(columns=head, rows=rows, caption=caption)
    facts = list(list_rate_facts(measurement))
    if facts:
        verb = "prefer" if measurement.kind == "preference" else "pass"
        yield f"What people {verb if measurement.is_counted else f'would {verb}'}", Facts(pairs=facts)
    shares = [_make_estimate_row(name, estimate, share=True) for name, estimate in list_shares(measurement)]
    people = [_make_estimate_row(name, estimate, share=True) for name, estimate in list_people_agreement(measurement)]
    baselines: list[list[Cell]] = [[name, rate, "", None] for name, rate in list_baselines(measurement)]
    if shares:
        yield "How often it is right", _make_estimate_table([*shares, *baselines, *people])
    coefficients = [
        _make_estimate_row(name, estimate, share=False) for name, estimate in list_coefficients(measurement)
    ]
    if coefficients:
        caption = "1 is complete agreement, 0 is what chance brings."
        yield "Agreement beyond chance", _make_estimate_table(coefficients, caption=caption)


def _list_wide_blocks(measurement: Measurement) -> Iterator[tuple[str, Block]]:
    """Yield the blocks that need the page's whole width, each with its title."""
    if measurement.criteria:
        yield "Criteria", _show_criteria(measurement.criteria)
    if measurement.slices is not None:
        yield "Kinds of cases", _show_slices(measurement.slices)
    if measurement.bias is not None:
        prefers = measurement.kind == "preference"
        yield "Where it errs to one side", _show_bias(measurement.bias, "prefer the first" if prefers else "pass")
    reasons = [*list_assumptions(measurement), *list_remarks(measurement)]
    reasons += [f"{name} is left out: {reason}." for name, reason in list_left_out(measurement)]
    if reasons:
        yield "What this rests on", Points(items=reasons)


def _make_estimate_row(name: str, estimate: Estimate, *, share: bool) -> list[Cell]:
    """Make the row of an estimate: name, value, limits, drawing. A ``share`` is in per cent, a coefficient is not."""
    return [
        name,
        format_value(estimate, share=share),
        format_limits(estimate, share=share),
        _draw_estimate(name, estimate, share=share),
    ]


def _draw_estimate(name: str, estimate: Estimate, *, share: bool) -> Drawing | None:
    """Make the drawing of an estimate with its limits; ``None`` for one outside 0 to 1, such as a kappa below 0."""
    if estimate.value is None or not 0 <= estimate.value <= 1:
        return None
    low, high = estimate.interval or (estimate.value, estimate.value)
    alt = f"{name}: {format_estimate(estimate, share=share)}"
    return Drawing(form="estimate", value=estimate.value, low=max(low, 0.0), high=high, kind="people", alt=alt)


def _make_estimate_table(rows: Sequence[Sequence[Cell]], *, caption: str = "") -> Table:
    """Make the table of the rows that ``_make_estimate_row`` made."""
    columns = [
        Column("measure"),
        Column("value", "number"),
        Column("95 % interval", "number"),
        Column("0 to 1", "drawing", wide=True),
    ]
    return Table(columns=columns, rows=rows, caption=caption)


def _show_criteria(criteria: Sequence[Measurement]) -> Table:
    """Make the table of criteria that people labelled; ``differ`` counts where the judge and people differ."""
    columns = [
        Column("criterion"),
        Column("labelled", "number", wide=True),
        Column("good kept", "number"),
        Column("bad caught", "number"),
        Column("right", "number"),
        Column("kappa", "number", wide=True),
        Column("differ", "number", wide=True),
    ]
    rows: list[list[Cell]] = []
    for criterion in criteria[:MOST_ROWS]:
        agreement = criterion.agreement
        shares = (agreement.sensitivity, agreement.specificity, agreement.accuracy) if agreement else (None,) * 3
        rows.append(
            [
                Words(text=cut(criterion.criterion or "", 200)),
                format_count(criterion.settled),
                *(_show_estimate(share, share=True) for share in shares),
                _show_estimate(agreement.cohen_kappa if agreement else None, share=False),
                format_count(criterion.differing),
            ]
        )
    return Table(columns=columns, rows=rows)


def _show_bias(bias: Bias, verb: str) -> Table:
    """Make the table of how judge and people differ by kinds of content."""
    columns = [
        Column("by"),
        Column("kind"),
        Column("labelled", "number"),
        Column("judge", "number"),
        Column("people", "number"),
        Column("difference", "number"),
        Column("95 % interval", "number", wide=True),
        Column("", "word"),
    ]
    rows: list[list[Cell]] = [
        [
            kind.by,
            Words(text=kind.name),
            format_count(kind.items),
            format_rate(kind.judge),
            format_rate(kind.people),
            format_points(kind.difference, sign=True),
            "" if kind.low is None or kind.high is None else format_points_between(kind.low, kind.high),
            Words(text="more than chance", kind="alarm") if kind.is_shown else None,
        ]
        for kind in bias.kinds[:MOST_ROWS]
    ]
    caption = (
        f"What the judge and people {verb}, with the difference in points. More than chance: it differs from all other "
        f"cases, corrected for {format_count(bias.tests, 'test')} (Holm)."
    )
    return Table(columns=columns, rows=rows, caption=caption)


def _show_estimate(estimate: Estimate | None, *, share: bool) -> Words:
    """Write an estimate with its limits in brackets, in a quieter remark after it."""
    limits = format_limits(estimate, share=share)
    return Words(text=format_value(estimate, share=share), kind="", more=f"({limits})" if limits else "")


def _show_slices(slices: Slices) -> Table:
    """Make the table of how often the judge is right by kinds of cases."""
    columns = [
        Column("kind"),
        Column("labelled", "number"),
        Column("right", "number"),
        Column("0 to 100 %", "drawing", wide=True),
        Column("95 % interval", "number", wide=True),
        Column("", "word"),
    ]
    rows: list[list[Cell]] = []
    for one_slice in slices.slices[:MOST_ROWS]:
        worse = Words(text="worse", kind="alarm") if one_slice.is_worse else None
        rows.append(
            [
                Words(text=one_slice.name),
                format_count(one_slice.accuracy.of),
                format_value(one_slice.accuracy, share=True),
                _draw_estimate(one_slice.name, one_slice.accuracy, share=True),
                format_limits(one_slice.accuracy, share=True),
                worse,
            ]
        )
    caption = "The lowest first. Worse: worse than chance would explain, corrected for the number of groups (Holm)."
    return Table(columns=columns, rows=rows, caption=caption)


def list_sort_blocks(measurement: Measurement) -> Iterator[Block]:
    """Yield a sentence on how many disagreements there are, and a list of what to do about each sort of them."""
    sentence = describe_sorts(measurement)
    yield Paragraph(text=f"{sentence[:1].upper()}{sentence[1:]}.")
    points = [
        (Words(text=f"{number:,} {sort}", kind="strong"), f": {TO_DO[sort]}.")
        for sort, number in measurement.sorts.items()
        if number
    ]
    if points:
        yield Points(items=points)
