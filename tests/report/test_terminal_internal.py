"""The histogram of a report in one line."""

from __future__ import annotations

from adjudge.report.terminal import draw_bins


def test_a_histogram_in_one_line_shows_every_bar():
    """What is not empty is seen, however small beside the largest."""
    assert draw_bins([0, 1, 50, 100]) == " ▁▄█"
    assert draw_bins([0, 0]) == "  "
