"""The table of labels on its page is what the command computes."""

from __future__ import annotations

import re

import pytest

from kit import house
from kit.cli import Line

PAGE = (house.ROOT / "docs" / "how-many-labels.md").read_text("utf-8")
ROWS = {
    int(points): tuple(int(cell.replace(",", "")) for cell in cells.split("|"))
    for points, cells in re.findall(r"^\| ± (\d+) points? \| ([\d,| ]+) \|$", PAGE, re.MULTILINE)
}


def compute(capsys: pytest.CaptureFixture[str], expect: float, *options: str) -> dict[int, tuple[int, int]]:
    """The labels of each width: with a judge with whom people agree so often, and without a judge."""
    ran = Line(capsys)("plan", "--expect", str(expect), *options, "--json")
    return {round(100 * row["within"]): (row["random"], row["alone"]) for row in ran.document["rows"]}


def test_the_table_is_what_the_command_computes(capsys: pytest.CaptureFixture[str]):
    """Five widths, for three judges and for none, of as many cases as the page says."""
    assert "| you want to know the rate within | people agree in 80 % | in 90 % | in 95 % | without a judge |" in PAGE
    assert "For 10,000 cases, drawn at random" in PAGE
    judges = [compute(capsys, expect, "--within", "1", "--cases", "10000") for expect in (0.8, 0.9, 0.95)]

    assert list(ROWS) == [10, 5, 3, 2, 1]
    for points, shown in ROWS.items():
        assert shown == (*[judge[points][0] for judge in judges], judges[0][points][1])


def test_the_figure_without_a_number_of_cases(capsys: pytest.CaptureFixture[str]):
    """It stands below the table, beside the one that the table has."""
    assert f"{compute(capsys, 0.8)[5][0]} in place of {ROWS[5][0]}" in PAGE
