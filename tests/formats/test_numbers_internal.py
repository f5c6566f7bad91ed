"""Numbers as people read them: one rounding rule, and different numbers that are compared are never shown equal."""

from __future__ import annotations

import ast
import math
import re
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adjudge import CriterionResult
from adjudge.formats.display import describe_outcome, render_result_html
from adjudge.formats.numbers import (
    NOTHING,
    TOLERANCE,
    format_amounts,
    format_change,
    format_decimal,
    format_distinct,
    format_dollars,
    format_range,
    format_rate,
    format_rates,
    format_score,
)
from adjudge.report import render_html, render_markdown
from kit import house
from kit.reports import make_item, make_manifest_of, make_result, report_of

shares = st.one_of(
    st.floats(0, 1),
    st.integers(0, 10_000).map(lambda number: number / 10_000),
    st.sampled_from([0.0, 0.5, 0.7, 0.75, 0.855, 0.85, 0.7496, 0.8499999, 1.0]),
)
near = st.one_of(shares, st.just(0.0)).flatmap(
    lambda share: st.tuples(
        st.just(share), st.sampled_from([0.0, 1e-12, 1e-8, 1e-6, 0.0004, 0.005]).map(lambda by: min(share + by, 1.0))
    )
)
pairs = st.one_of(st.tuples(shares, shares), near)


def read(text: str) -> Decimal:
    return Decimal(text.replace(",", "").replace("$", "").replace(" %", ""))


@given(pairs)
@example((0.7496, 0.75))
@example((0.75 - 1e-12, 0.75))
@example((0.855 - 1e-10, 0.855))
def test_different_numbers_are_never_shown_equal_and_keep_their_order(pair: tuple[float, float]):
    """Those that the code compares as equal are shown as equal, with two digits if that is enough."""
    one, other = sorted(pair)
    for shown in (format_distinct(one, other), format_amounts(one, other)):
        low, high = map(read, shown)
        assert (low < high) == (other - one > TOLERANCE), shown
    low, high = format_distinct(one, other)
    assert len(low) == len(high)
    if abs(read(format_score(other)) - read(format_score(one))) > 0 and other - one > TOLERANCE:
        assert (low, high) == (format_score(one), format_score(other))


@given(st.lists(shares, min_size=1, max_size=6))
def test_a_row_of_numbers_keeps_its_order(values: list[float]):
    """However many are compared with each other."""
    shown = dict(zip(values, map(read, format_distinct(*values)), strict=True))
    for one in values:
        for other in values:
            if one - other > 2 * TOLERANCE:
                assert shown[one] > shown[other]


@given(pairs)
def test_shares_that_are_compared_are_never_shown_equal(pair: tuple[float, float]):
    """In per cent, and as the two ends of an interval."""
    one, other = sorted(pair)
    if other - one > TOLERANCE:
        assert len(set(format_rates(one, other))) == 2
        low, high = format_range(one, other).removesuffix(" %").split(" to ")
        assert read(low) < read(high)


@given(pairs)
def test_a_difference_is_never_shown_as_none(pair: tuple[float, float]):
    """Before, after and the difference have the same digits, and a difference that is there is seen."""
    before, after, delta = format_change(*pair)
    assert len(before.partition(".")[2]) == len(after.partition(".")[2]) == len(delta.partition(".")[2])
    if abs(pair[0] - pair[1]) > TOLERANCE:
        assert before != after
        assert (read(delta) > 0) == (pair[1] > pair[0])
        assert read(delta)


@given(st.floats(), st.integers(0, 9))
def test_any_number_can_be_written(value: float, digits: int):
    """Also one with more digits than decimal arithmetic keeps, as a cost or a count in a file may have."""
    text = format_decimal(value, digits)

    assert math.isnan(value) or math.isclose(read(text), value, rel_tol=1e-9, abs_tol=10**-digits)


@given(st.decimals(0, 1, places=6).map(float), st.integers(0, 4))
def test_halves_are_rounded_up_as_they_are_written(value: float, digits: int):
    """Not as the binary fraction beside them, which differs from place to place."""
    assert read(format_decimal(value, digits)) == round(Decimal(repr(value)) + Decimal("1e-9"), digits)


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (format_score(0.855), "0.86"),
        (format_score(0.845), "0.85"),
        (format_score(None), NOTHING),
        (format_rate(0.285, digits=0), "29 %"),
        (format_rate(0.9999), ">99.9 %"),
        (format_rate(0.0001), "<0.1 %"),
        (format_rate(1.0), "100 %"),
        (format_rates(0.8996, 0.9), ("89.96 %", "90.00 %")),
        (format_dollars(12.345), "$12.35"),
        (format_dollars(0.00125), "$0.0013"),
        (format_dollars(1234.5, digits=4), "$1,234.5000"),
        (format_decimal(-0.001, 2), "0.00"),
        (format_decimal(math.nan, 2), "nan"),
        (format_distinct(0.7496, 0.75), ("0.7496", "0.7500")),
        (format_distinct(0.745, 0.75), ("0.745", "0.750")),
        (format_distinct(None, 0.75), (NOTHING, "0.75")),
        (format_change(0.8541, 0.8559), ("0.854", "0.856", "+0.002")),
    ],
)
def test_examples(shown: object, text: object):
    """As they are read."""
    assert shown == text


@pytest.mark.parametrize(("score", "needed"), [(0.7496, 0.75), (0.745, 0.75), (0.6999999, 0.7), (0.8549, 0.855)])
def test_no_page_says_that_what_failed_reached_what_it_needs(score: float, needed: float):
    """A result in one line, drawn, in HTML and in each report shows the same two numbers, and they differ."""
    criterion = CriterionResult(name="facts", score=score, threshold=needed, passed=False)
    result = make_result("failed", score=score, threshold=needed, criteria=(criterion,))
    report = report_of([make_item(0, result)], make_manifest_of(1))
    low, high = format_distinct(score, needed)

    assert low != high
    assert f"with {low} (needs {high})" in result.explain()
    assert f"{low} of {high} needed" in describe_outcome(result)
    assert render_result_html(result).count(high) == 2
    page = render_html(report)
    assert f"with {low}, needs {high}" in page
    assert f'data-name="needs">{high}<' in page
    assert low in render_markdown(report)


OTHERWISE = {
    "cli.commands.run": "a speed",
    "cli.output": "hours",
    "formats.numbers": "the rule itself",
    "report.junit": "seconds, and a share for programs",
    "runs.estimate.estimate": "calls for a judgement",
    "templates.environment": "a coordinate of a drawing",
    "templates.figures": "times and sizes",
    "testing.summary": "seconds",
}
"""Where a number is written with a fixed number of digits, and is no score, share or amount."""


@pytest.mark.slow
def test_no_module_rounds_by_itself():
    """A second rule is a second figure: scores, shares and amounts go through ``formats.numbers``."""
    modules = set()
    for name, path in house.modules().items():
        for node in house.nodes(path):
            spec = node.format_spec if isinstance(node, ast.FormattedValue) else None
            text = "".join(str(getattr(part, "value", "")) for part in getattr(spec, "values", ()))
            if re.search(r"\.[1-9]\d*[fe%]$", text):
                modules.add(name.removeprefix("adjudge."))
    assert modules <= set(OTHERWISE)


def test_no_template_or_script_rounds_by_itself():
    """They have filters for it."""
    for path in (*house.PACKAGE.rglob("*.html"), *house.PACKAGE.rglob("*.js")):
        text = path.read_text("utf-8")
        assert path.name == "htmx.min.js" or not re.search(r"toFixed|toPrecision|\|\s*(round|format)\b|%\.\d", text), (
            path
        )
