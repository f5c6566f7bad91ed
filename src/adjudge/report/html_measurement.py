"""A measurement as a page shows it: a sentence, the picture of both rates, tables, and what they rest on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from adjudge.formats.numbers import format_range, format_rate
from adjudge.measurement.measurement import Measurement
from adjudge.report.cases import cut
from adjudge.report.html_panels import Block, Cell, Drawing, Facts, Panel, Points, Table, Words
from adjudge.report.measurement_words import (
    TO_DO,
    describe_measurement,
    describe_sorts,
    format_estimate,
    format_limits,
    list_assumptions,
    list_baselines,
    list_biases,
    list_coefficients,
    list_confusion,
    list_gaps,
    list_people,
    list_rate_facts,
    list_remarks,
    list_shares,
)
from adjudge.templates.figures import format_count
from adjudge.trust.corrected_rate import CorrectedRate
from adjudge.trust.estimate import Estimate
from adjudge.trust.slices import Slices

MOST_ROWS = 50
"""Rows of a table of criteria or kinds."""

Axis = tuple[float, float]
"""The ends of an axis, as shares."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateRow:
    """A rate with its interval, drawn on the axis of the lead."""

    name: str
    value: float
    low: float
    high: float
    limits: str
    kind: str
    """``people`` or ``judge``."""

    @property
    def said(self) -> str:
        """For those who do not see the drawing."""
        return f"{self.name}: {format_rate(self.value)} {self.limits}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A place on the axis."""

    place: float
    """In per cent of the width."""
    said: str
    anchor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """The measurement in words, and both rates on one axis."""

    criterion: str | None
    said: str
    warnings: tuple[str, ...] = ()
    """What a reader must know before any figure."""
    rows: tuple[RateRow, ...] = ()
    axis: Axis = (0.0, 1.0)
    ticks: tuple[Tick, ...] = ()


def make_lead(found: Measurement) -> Lead:
    """The corrected rate above the judge's own, on one axis; words alone where no rate was corrected."""
    said, rate = describe_measurement(found), found.rate
    if not isinstance(rate, CorrectedRate):
        return Lead(criterion=found.criterion, said=said, warnings=found.warnings)
    naive = rate.naive.interval or (0.0, 1.0)
    own = rate.naive.rate or 0.0
    axis = find_axis((rate.low, rate.high, own, *(naive if rate.target == "system" else ())))
    # For these cases the judge's own rate is a count, and nothing about it is uncertain.
    low, high = naive if rate.target == "system" else (own, own)
    verb = "prefer the first" if found.kind == "preference" else "pass"
    verb = verb if found.is_counted else f"would {verb}"
    people = RateRow(
        name=f"people {verb}",
        value=rate.value,
        low=rate.low,
        high=rate.high,
        limits="" if found.is_counted else format_range(rate.low, rate.high),
        kind="people",
    )
    judge = RateRow(
        name="the judge alone",
        value=own,
        low=low,
        high=high,
        limits=format_range(low, high) if rate.target == "system" else "",
        kind="judge",
    )
    ticks = tuple(_list_ticks(axis))
    return Lead(
        criterion=found.criterion, said=said, warnings=found.warnings, rows=(people, judge), axis=axis, ticks=ticks
    )


def _list_ticks(axis: Axis) -> Iterator[Tick]:
    start, end = (round(20 * share) for share in axis)
    # As many steps of one size as fit on a phone.
    steps = next(number for number in (6, 5, 4, 3, 2, 1) if not (end - start) % number)
    for place in range(steps + 1):
        anchor = "start" if not place else "end" if place == steps else "middle"
        said = f"{5 * (start + (end - start) * place // steps)} %"
        yield Tick(place=100 * place / steps, said=said, anchor=anchor)


def find_axis(shares: Sequence[float]) -> Axis:
    """An axis in steps of five points that holds some shares with room beside them, of at least 20 points."""
    low, high = math.floor(20 * (min(shares) - 0.02)) / 20, math.ceil(20 * (max(shares) + 0.02)) / 20
    while high - low < 0.2:
        low, high = low - 0.05, high + 0.05
    low, high = max(low, 0.0), min(high, 1.0)
    if high - low < 0.2:
        low, high = (0.0, 0.2) if low <= 0 else (0.8, 1.0)
    return low, high


def list_measurement_panels(found: Measurement) -> Iterator[Panel]:
    """Every panel that has something to say."""
    for title, block in _list_narrow(found):
        yield Panel(title=title, blocks=[block])
    for title, block in _list_wide(found):
        yield Panel(title=title, blocks=[block], whole=True)


def _list_narrow(found: Measurement) -> Iterator[tuple[str, Block]]:
    columns, rows = list_confusion(found)
    if rows:
        head = [(name, "n" if place else "") for place, name in enumerate(columns)]
        caption = "Cases, by what people say and what the judge does."
        yield "Judge and people", Table(columns=head, rows=rows, caption=caption)
    facts = list(list_rate_facts(found))
    if facts:
        yield (
            "What people would pass" if found.kind != "preference" else "What people would prefer",
            Facts(pairs=facts),
        )
    shares = [_make_row(name, item, share=True) for name, item in list_shares(found)]
    people = [_make_row(name, item, share=share) for name, item, share in list_people(found)]
    baselines: list[list[Cell]] = [[name, said, "", None] for name, said in list_baselines(found)]
    if shares:
        yield "How often it is right", _show_estimates([*shares, *baselines, *people[:1]])
    coefficients = [_make_row(name, item, share=False) for name, item in list_coefficients(found)]
    if coefficients:
        caption = "1 is complete agreement, 0 is what chance brings."
        yield "Agreement beyond chance", _show_estimates([*coefficients, *people[1:]], caption=caption)


def _list_wide(found: Measurement) -> Iterator[tuple[str, Block]]:
    if found.criteria:
        yield "Criteria", _show_criteria(found.criteria)
    if found.slices is not None:
        yield "Kinds of cases", _show_slices(found.slices)
    biases = list(list_biases(found))
    if biases:
        yield "What its error follows", Points(items=biases)
    said = [*list_assumptions(found), *list_remarks(found)]
    said += [f"{name} is left out: {why}." for name, why in list_gaps(found)]
    if said:
        yield "What this rests on", Points(items=said)


def _make_row(name: str, item: Estimate, *, share: bool) -> list[Cell]:
    value = format_estimate(item, share=share).partition(" (")[0]
    drawn = None
    if item.value is not None and 0 <= item.value <= 1:
        low, high = item.interval or (item.value, item.value)
        said = f"{name}: {format_estimate(item, share=share)}"
        drawn = Drawing(form="estimate", value=item.value, low=max(low, 0.0), high=high, kind="people", said=said)
    return [name, value, format_limits(item, share=share), drawn]


def _show_estimates(rows: Sequence[Sequence[Cell]], *, caption: str = "") -> Table:
    columns = [("measure", ""), ("value", "n"), ("95 % interval", "n"), ("0 to 1", "chart wide")]
    return Table(columns=columns, rows=rows, caption=caption)


def _show_criteria(criteria: Sequence[Measurement]) -> Table:
    columns = [("criterion", ""), ("labelled", "n wide"), ("good kept", "n"), ("bad caught", "n"), ("right", "n"),
               ("kappa", "n wide"), ("differ", "n wide")]  # fmt: skip
    rows: list[list[Cell]] = []
    for item in criteria[:MOST_ROWS]:
        agreement = item.agreement
        shares = (agreement.sensitivity, agreement.specificity, agreement.accuracy) if agreement else (None,) * 3
        rows.append(
            [
                cut(item.criterion or "", 200),
                format_count(item.settled),
                *(format_rate(share.value if share is not None else None) for share in shares),
                format_estimate(agreement.cohen_kappa if agreement else None, share=False),
                format_count(item.differing),
            ]
        )
    return Table(columns=columns, rows=rows)


def _show_slices(found: Slices) -> Table:
    columns = [
        ("kind", ""),
        ("labelled", "n"),
        ("right", "n"),
        ("0 to 100 %", "chart wide"),
        ("95 % interval", "n wide"),
        ("", "word"),
    ]
    rows: list[list[Cell]] = []
    for item in found.slices[:MOST_ROWS]:
        name, value, limits, drawn = _make_row(item.name, item.accuracy, share=True)
        worse = Words(text="worse", kind="alarm") if item.is_worse else None
        rows.append([name, format_count(item.accuracy.of), value, drawn, limits, worse])
    caption = "The lowest first. Worse: by more than chance explains, all kinds considered (Holm)."
    return Table(columns=columns, rows=rows, caption=caption)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sorts:
    """How many disagreements there are, and what each sort asks for."""

    said: str
    rows: tuple[tuple[str, str], ...]


def make_sorts(found: Measurement) -> Sorts:
    """How many disagreements there are, and what each sort asks for."""
    said = describe_sorts(found)
    rows = tuple((f"{number:,} {sort}", TO_DO[sort]) for sort, number in found.sorts.items() if number)
    return Sorts(said=f"{said[:1].upper()}{said[1:]}.", rows=rows)
