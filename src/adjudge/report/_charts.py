"""Charts as SVG that scales with its place: lengths are per cent across and pixels down, so text keeps its size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adjudge._pair_summary import Share
from adjudge.report._format import say_count, say_interval, say_rate
from adjudge.report._spread import BINS
from adjudge.report._tags import Part, Safe, tag


def draw_outcomes(outcomes: Mapping[str, int], *, what: str) -> Safe:
    """One bar, divided by outcome."""
    total = sum(outcomes.values())
    said = f"{what}: " + ", ".join(f"{say_count(number)} {name}" for name, number in outcomes.items())
    parts: list[Part] = []
    start = 0.0
    for name, number in outcomes.items():
        width = 100 * number / total if total else 0.0
        if width:
            parts.append(tag("rect", x=f"{start:.3f}%", y=0, width=f"{width:.3f}%", height="100%", class_=name))
        start += width
    return _svg("stack", said, parts)


def draw_histogram(bins: Sequence[int], *, what: str, threshold: float | None = None, height: int = 150) -> Safe:
    """Scores from 0 to 1 in bars of a twentieth, with a line at the threshold."""
    most = max(bins, default=0) or 1
    room = height - 34  # the highest count above, the axis below
    parts: list[Part] = []
    for place, number in enumerate(bins):
        size = max(room * number / most, 1.5) if number else 0.0
        x, low = 100 * place / BINS, place / BINS
        title = tag("title", f"{low:.2f} to {low + 1 / BINS:.2f}: {say_count(number)}")
        bar = {"x": f"{x + 0.35:.3f}%", "width": f"{100 / BINS - 0.7:.3f}%", "class_": "bar"}
        parts.append(tag("g", title, tag("rect", **bar, y=height - 18 - size, height=size)) if number else None)
    parts.append(tag("line", x1="0", x2="100%", y1=height - 17.5, y2=height - 17.5, class_="axis"))
    for value, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        parts.append(tag("text", f"{value:g}", x=f"{100 * value:g}%", y=height - 4, text_anchor=anchor))
    if threshold is not None:
        x = f"{100 * min(max(threshold, 0.0), 1.0):.3f}%"
        parts.append(tag("line", x1=x, x2=x, y1=12, y2=height - 18, class_="needs"))
        anchor = "end" if threshold > 0.5 else "start"
        parts.append(tag("text", f"needs {threshold:.2f}", x=x, y=9, text_anchor=anchor))
    listed = "; ".join(f"{i / BINS:.2f}: {number}" for i, number in enumerate(bins) if number)
    return _svg("histogram", f"{what}. From each twentieth on: {listed}", parts, height=height)


def draw_sparkline(bins: Sequence[int], *, what: str) -> Safe:
    """The shape of a histogram, without axis."""
    most = max(bins, default=0) or 1
    parts = [
        tag(
            "rect",
            x=f"{100 * place / BINS:.2f}%",
            width=f"{100 / BINS - 0.8:.2f}%",
            y=24 - max(24 * number / most, 1.5),
            height=max(24 * number / most, 1.5),
            class_="bar",
        )
        for place, number in enumerate(bins)
        if number
    ]
    return _svg("sparkline", what, parts, height=24)


def draw_share(share: Share, *, what: str, kind: str = "bar") -> Safe:
    """A bar as long as the share, with its interval as a line across the end."""
    rate, interval = share.rate or 0.0, share.interval
    said = f"{what}: {say_rate(share.rate)}" + (f", {say_interval(share)}" if interval else "")
    parts = [
        tag("rect", x=0, y=0, width="100%", height=10, class_="rest"),
        tag("rect", x=0, y=0, width=f"{100 * rate:.3f}%", height=10, class_=kind),
    ]
    if interval:
        low, high = (f"{100 * end:.3f}%" for end in interval)
        parts.append(tag("line", x1=low, x2=high, y1=5, y2=5, class_="interval"))
    return _svg("share", said, parts, height=10)


def draw_part(number: float, most: float, *, what: str, kind: str = "bar") -> Safe:
    """A bar as long as a number is of the largest one."""
    width = 100 * number / most if most else 0.0
    return _svg("share", what, [tag("rect", x=0, y=0, width=f"{width:.3f}%", height=10, class_=kind)], height=10)


def _svg(kind: str, said: str, parts: Part, *, height: int | None = None) -> Safe:
    # A label and no <title>: that would be shown as a tip over every part that has none of its own.
    return tag("svg", parts, class_=kind, role="img", aria_label=said, width="100%", height=height)
