"""The difference of two systems or two judges as blocks: one sentence, its intervals on one axis, and the figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from adjudge.formats.numbers import format_points
from adjudge.measurement.judge_difference import ShareDifference
from adjudge.measurement.run_difference import SystemDifference
from adjudge.report.diff_words import name_folders, name_sides
from adjudge.report.difference_words import (
    describe_judges,
    describe_systems,
    describe_verdicts,
    format_points_between,
    list_judge_facts,
    list_shares,
    list_system_facts,
    list_verdict_facts,
)
from adjudge.report.document import Axis, Block, Facts, Lead, RateRow, Section, Tick
from adjudge.report.measurement_panels import find_axis
from adjudge.report.run_diff import Diff

_STEP_SIZES = (0.05, 0.1, 0.2, 0.25, 0.5)
"""Sizes of a step on the axis; the smallest is used that gives few enough for a phone."""

_MOST_STEPS = 6
"""Steps on the axis that fit on a phone."""


def list_difference_blocks(diff: Diff) -> Iterator[Block]:
    """Yield the sections of a diff's differences: of systems or judges by people's labels, and by verdicts alone.

    A difference that the diff does not have is left out.
    """
    if diff.systems is not None:
        names = name_folders(diff)
        lead = _make_lead(
            describe_systems(diff.systems, *names, margin=diff.margin), list(_list_system_rows(diff.systems)), names
        )
        yield Section(title="", blocks=[lead, Facts(pairs=list(list_system_facts(diff.systems)))])
    if diff.judges is not None:
        names = name_sides(diff)
        lead = _make_lead(
            describe_judges(diff.judges, *names, margin=diff.margin),
            list(_list_share_rows(list_shares(diff.judges), kind="people")),
            names,
        )
        yield Section(title="", blocks=[lead, Facts(pairs=list(list_judge_facts(diff.judges)))])
    if diff.judged is not None:
        names = name_folders(diff)
        rows = list(_list_share_rows([("the judge alone", diff.judged)], kind="judge"))
        lead = _make_lead(describe_verdicts(diff.judged, *names, margin=diff.margin), rows, names)
        yield Section(title="", blocks=[lead, Facts(pairs=list(list_verdict_facts(diff.judged)))])


def _make_lead(sentence: str, rows: Sequence[RateRow], names: tuple[str, str]) -> Lead:
    """Make the sentence with its intervals on an axis that holds 0; without rows, the sentence alone.

    ``names`` are the names of the earlier and of the later run.
    """
    if not rows:
        return Lead(criterion=None, sentence=sentence)
    axis = find_axis([0.0, *(share for row in rows for share in (row.value, row.low, row.high))], least=-1.0)
    return Lead(
        criterion=None,
        sentence=sentence,
        rows=tuple(rows),
        axis=axis,
        ticks=tuple(_list_ticks(axis)),
        about=f"Points more for {names[1]} than for {names[0]}.",
    )


def _list_system_rows(difference: SystemDifference) -> Iterator[RateRow]:
    """Yield the difference by people's labels, and that by the judge's verdicts; nothing where there is none."""
    rate = difference.rate
    if rate is not None:
        yield _make_rate_row("people", rate.value, rate.low, rate.high, kind="people")
        # The judge judged all of these questions, so its own difference is a count, and has no limits.
        yield _make_rate_row("the judge alone", rate.judged, rate.judged, rate.judged, kind="judge")


def _list_share_rows(shares: Iterable[tuple[str, ShareDifference]], *, kind: str) -> Iterator[RateRow]:
    """Yield a row for each named difference that has limits; ``kind`` says whose it is, and so its colour."""
    for name, share in shares:
        if share.value is not None and share.low is not None and share.high is not None:
            yield _make_rate_row(name, share.value, share.low, share.high, kind=kind)


def _make_rate_row(name: str, value: float, low: float, high: float, *, kind: str) -> RateRow:
    """Make a row of the axis; equal limits are those of a count, and are not written."""
    return RateRow(
        name=name,
        value=value,
        low=low,
        high=high,
        figure=f"{format_points(value, sign=True)} points",
        limits=format_points_between(low, high) if low < high else "",
        kind=kind,
    )


def _list_ticks(axis: Axis) -> Iterator[Tick]:
    """Yield ticks at the multiples of a round step, at most seven; their places are in per cent of the axis."""
    start, end = axis
    # 1e-9 against the rounding errors of binary fractions.
    step = next(size for size in _STEP_SIZES if (end - start) / size <= _MOST_STEPS + 1e-9)
    first_multiple, last_multiple = math.ceil(start / step - 1e-9), math.floor(end / step + 1e-9)
    for multiple in range(first_multiple, last_multiple + 1):
        value = multiple * step
        place = 100 * (value - start) / (end - start)
        anchor = "start" if place < 1 else "end" if place > 99 else "middle"
        label = format_points(value, digits=0, sign=True) if multiple else "0"
        yield Tick(place=place, label=label, anchor=anchor)
