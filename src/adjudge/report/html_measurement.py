"""A measurement in HTML: the sentence at the top, the picture of both rates, tables, and what they rest on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from adjudge.measurement.measurement import Measurement
from adjudge.report.cases import cut
from adjudge.report.html_panels import Part, Safe, draw_axis, draw_estimate, join, render_panel, render_table, tag
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
from adjudge.templates.figures import format_count, format_rate
from adjudge.trust.estimate import Estimate
from adjudge.trust.rates import CorrectedRate

MOST_ROWS = 50
"""Rows of a table of criteria or kinds."""

Axis = tuple[float, float]
"""The ends of an axis, as shares."""


def render_lead(found: Measurement) -> Safe:
    """The measurement in words, and both rates on one axis."""
    about = [tag("p", "On the criterion ", tag("b", found.criterion), ".")] if found.criterion is not None else []
    return tag(
        "section",
        about,
        tag("p", describe_measurement(found), class_="lead"),
        _draw_rates(found),
        class_="measured",
        aria_label="What people would say",
    )


def _draw_rates(found: Measurement) -> Part:
    """The corrected rate above the judge's own, on one axis."""
    rate = found.rate
    if not isinstance(rate, CorrectedRate):
        return None
    naive = rate.naive.interval or (0.0, 1.0)
    own = rate.naive.rate or 0.0
    axis = find_axis((rate.low, rate.high, own, *(naive if rate.target == "system" else ())))
    # For these cases the judge's own rate is a count, and nothing about it is uncertain.
    judge = (own, *(naive if rate.target == "system" else (own, own)))
    verb = "prefer the first" if found.kind == "preference" else "pass"
    verb = verb if rate.low == rate.high else f"would {verb}"
    rows = [
        (f"people {verb}", (rate.value, rate.low, rate.high), "people"),
        ("the judge alone", judge, "judge"),
    ]
    parts: list[Part] = []
    for name, (value, low, high), kind in rows:
        limits = f"{100 * low:.1f} to {100 * high:.1f} %" if low < high else ""
        said = [tag("span", name), tag("b", format_rate(value)), tag("span", limits, class_="quiet")]
        parts.append(tag("p", [[part, " "] for part in said]))
        what = f"{name}: {format_rate(value)} {limits}".rstrip()
        parts.append(draw_estimate(value, low, high, axis=axis, what=what, kind=kind))
    return tag("figure", parts, draw_axis(axis), class_="rates")


def find_axis(shares: Sequence[float]) -> Axis:
    """An axis in steps of five points that holds some shares with room beside them, of at least 20 points."""
    low, high = math.floor(20 * (min(shares) - 0.02)) / 20, math.ceil(20 * (max(shares) + 0.02)) / 20
    while high - low < 0.2:
        low, high = low - 0.05, high + 0.05
    low, high = max(low, 0.0), min(high, 1.0)
    if high - low < 0.2:
        low, high = (0.0, 0.2) if low <= 0 else (0.8, 1.0)
    return low, high


def render_measurement_panels(found: Measurement) -> Safe:
    """Every panel that has something to say."""
    panels = [render_panel(title, parts, whole=False) for title, parts in _list_narrow(found)]
    wide = [render_panel(title, parts, whole=True) for title, parts in _list_wide(found)]
    return tag("div", panels, wide, class_="grid")


def _list_narrow(found: Measurement) -> Iterator[tuple[str, Part]]:
    columns, rows = list_confusion(found)
    if rows:
        head = [(name, "n" if place else "") for place, name in enumerate(columns)]
        yield "Judge and people", render_table(head, rows, caption="Cases, by what people say and what the judge does.")
    facts = list(list_rate_facts(found))
    if facts:
        yield (
            "What people would pass" if found.kind != "preference" else "What people would prefer",
            _render_facts(facts),
        )
    shares = [_make_row(name, item, share=True) for name, item in list_shares(found)]
    people = [_make_row(name, item, share=share) for name, item, share in list_people(found)]
    baselines = [[name, said, "", None] for name, said in list_baselines(found)]
    if shares:
        yield "How often it is right", _render_estimates([*shares, *baselines, *people[:1]])
    coefficients = [_make_row(name, item, share=False) for name, item in list_coefficients(found)]
    if coefficients:
        caption = "1 is complete agreement, 0 is what chance brings."
        yield "Agreement beyond chance", _render_estimates([*coefficients, *people[1:]], caption=caption)


def _list_wide(found: Measurement) -> Iterator[tuple[str, Part]]:
    if found.criteria:
        yield "Criteria", _render_criteria(found.criteria)
    if found.slices is not None:
        yield "Kinds of cases", _render_slices(found)
    biases = list(list_biases(found))
    if biases:
        yield "What its error follows", tag("ul", [tag("li", said) for said in biases])
    said = [*list_assumptions(found), *list_remarks(found)]
    said += [f"{name} is left out: {why}." for name, why in list_gaps(found)]
    if said:
        yield "What this rests on", tag("ul", [tag("li", text) for text in said])


def _make_row(name: str, item: Estimate, *, share: bool) -> list[Part]:
    value = format_estimate(item, share=share).partition(" (")[0]
    drawn = None
    if item.value is not None and 0 <= item.value <= 1:
        low, high = item.interval or (item.value, item.value)
        said = f"{name}: {format_estimate(item, share=share)}"
        drawn = draw_estimate(item.value, max(low, 0.0), high, axis=(0.0, 1.0), what=said, kind="people")
    return [name, value, format_limits(item, share=share), drawn]


def _render_estimates(rows: Sequence[Sequence[Part]], *, caption: str = "") -> Safe:
    return render_table([("", ""), ("", "n"), ("95 % interval", "n"), ("0 to 1", "chart wide")], rows, caption=caption)


def _render_facts(facts: Sequence[tuple[str, str]]) -> Safe:
    return tag("dl", [[tag("dt", name), tag("dd", said)] for name, said in facts])


def _render_criteria(criteria: Sequence[Measurement]) -> Safe:
    columns = [("criterion", ""), ("labelled", "n wide"), ("good kept", "n"), ("bad caught", "n"), ("right", "n"),
               ("kappa", "n wide"), ("differ", "n wide")]  # fmt: skip
    rows: list[list[Part]] = []
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
    return render_table(columns, rows)


def _render_slices(found: Measurement) -> Part:
    if found.slices is None:
        return None
    columns = [
        ("kind", ""),
        ("labelled", "n"),
        ("right", "n"),
        ("0 to 100 %", "chart wide"),
        ("95 % interval", "n wide"),
        ("", "word"),
    ]
    rows: list[list[Part]] = []
    for item in found.slices.slices[:MOST_ROWS]:
        name, value, limits, drawn = _make_row(item.name, item.accuracy, share=True)
        worse = tag("span", "worse", class_="chip alarm") if item.is_worse else None
        rows.append([name, format_count(item.accuracy.of), value, drawn, limits, worse])
    caption = "The lowest first. Worse: by more than chance explains, all kinds considered (Holm)."
    return render_table(columns, rows, caption=caption)


def render_sorts(found: Measurement) -> Part:
    """How many disagreements there are, and what each sort asks for."""
    rows = [
        tag("li", tag("b", f"{number:,} {sort}"), f": {TO_DO[sort]}.") for sort, number in found.sorts.items() if number
    ]
    said = describe_sorts(found)
    return join([tag("p", said[:1].upper() + said[1:], "."), tag("ul", rows) if rows else None])
