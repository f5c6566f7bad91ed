"""The figures of a report in HTML, one panel for each question somebody asks of a run."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Union

from adjudge.formats.text import clean
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
from adjudge.templates.figures import (
    NOTHING,
    format_count,
    format_duration,
    format_interval,
    format_number,
    format_rate,
    format_score,
    format_share,
)
from adjudge.trust.intervals import Share

_EMPTY = {"br", "circle", "input", "line", "meta", "rect"}


class Safe(str):
    """HTML that was made here."""

    __slots__ = ()


Part = Union[str, None, Iterable["Part"]]  # noqa: UP007 - it refers to itself

Value = str | int | float | bool | None


def tag(name: str, /, *parts: Part, **attributes: Value) -> Safe:
    """An element. ``class_`` is ``class``, ``aria_label`` is ``aria-label``; ``None`` and false leave one out."""
    said = "".join([_render_attribute(key, value) for key, value in attributes.items()])
    if name in _EMPTY:
        return Safe(f"<{name}{said}>") if name in {"br", "input", "meta"} else Safe(f"<{name}{said}/>")
    return Safe(f"<{name}{said}>{join(parts)}</{name}>")


def join(parts: Part) -> Safe:
    """Parts, one after the other."""
    if parts is None:
        return Safe()
    if isinstance(parts, Safe):
        return parts
    if isinstance(parts, str):
        return Safe(html.escape(clean(parts), quote=True))
    return Safe("".join([join(part) for part in parts]))


def _render_attribute(key: str, value: Value) -> str:
    name = key.removesuffix("_").replace("_", "-")
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    said = f"{value:.4g}" if isinstance(value, float) else str(value)
    return f' {name}="{html.escape(clean(said, keep_lines=False), quote=True)}"'


def draw_outcomes(outcomes: Mapping[str, int], *, what: str) -> Safe:
    """One bar, divided by outcome."""
    total = sum(outcomes.values())
    said = f"{what}: " + ", ".join(f"{format_count(number)} {name}" for name, number in outcomes.items())
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
        title = tag("title", f"{low:.2f} to {low + 1 / BINS:.2f}: {format_count(number)}")
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
    said = f"{what}: {format_rate(share.rate)}" + (f", {format_interval(share)}" if interval else "")
    parts = [
        tag("rect", x=0, y=0, width="100%", height=10, class_="rest"),
        tag("rect", x=0, y=0, width=f"{100 * rate:.3f}%", height=10, class_=kind),
    ]
    if interval:
        low, high = (f"{100 * end:.3f}%" for end in interval)
        parts.append(tag("line", x1=low, x2=high, y1=5, y2=5, class_="interval"))
    return _svg("share", said, parts, height=10)


def draw_estimate(value: float, low: float, high: float, *, axis: tuple[float, float], what: str, kind: str) -> Safe:
    """A value as a dot on an axis, with its interval as a line through it."""
    start, end = axis
    x, x1, x2 = (f"{100 * (min(max(place, start), end) - start) / (end - start):.3f}%" for place in (value, low, high))
    parts = [
        tag("line", x1="0", x2="100%", y1=7, y2=7, class_="axis"),
        tag("line", x1=x1, x2=x2, y1=7, y2=7, class_=f"reach {kind}"),
        tag("circle", cx=x, cy=7, r=4.5, class_=f"dot {kind}"),
    ]
    return _svg("estimate", what, parts, height=14)


def draw_axis(axis: tuple[float, float]) -> Safe:
    """The scale under values that were drawn on one axis, whose ends are in steps of five points."""
    start, end = (round(20 * share) for share in axis)
    # As many steps of one size as fit on a phone.
    steps = next(number for number in (6, 5, 4, 3, 2, 1) if not (end - start) % number)
    parts: list[Part] = []
    for place in range(steps + 1):
        anchor = "start" if not place else "end" if place == steps else "middle"
        said = f"{5 * (start + (end - start) * place // steps)} %"
        parts.append(tag("text", said, x=f"{100 * place / steps:.3f}%", y=12, text_anchor=anchor))
    return tag("svg", parts, class_="scale", width="100%", height=16, aria_hidden="true")


def draw_part(number: float, most: float, *, what: str, kind: str = "bar") -> Safe:
    """A bar as long as a number is of the largest one."""
    width = 100 * number / most if most else 0.0
    return _svg("share", what, [tag("rect", x=0, y=0, width=f"{width:.3f}%", height=10, class_=kind)], height=10)


def _svg(kind: str, said: str, parts: Part, *, height: int | None = None) -> Safe:
    # A label and no <title>: that would be shown as a tip over every part that has none of its own.
    return tag("svg", parts, class_=kind, role="img", aria_label=said, width="100%", height=height)


MOST_ROWS = 50
"""Rows of a table of groups, rules or pairs of judges."""

MOST_TABLES = 10
"""Rubrics whose criteria have a table of their own."""


def render_panels(report: Report) -> Safe:
    """Every panel that has something to say; two narrow ones stand beside each other."""
    narrow = list(_list_narrow(report))
    written = [render_panel(title, parts, whole=len(narrow) % 2 == 1 and place == len(narrow) - 1)
               for place, (title, parts) in enumerate(narrow)]  # fmt: skip
    first = [render_panel("First against second", _render_pairs(report.pairs), whole=True)] if report.pairs else []
    first += [render_panel("Rubrics", _write_rubrics(report.rubrics), whole=True)] if report.rubrics else []
    if report.rubrics:
        first += [
            render_panel(
                f"Criteria of {cut(item.name, 60)} {item.digest[:12]}", _render_criteria(item.criteria), whole=True
            )
            for item in report.rubrics[:MOST_TABLES]
            if item.criteria
        ]
    elif report.criteria:
        first += [render_panel("Criteria", _render_criteria(report.criteria), whole=True)]
    last = [render_panel(title, parts, whole=True) for title, parts in _list_wide(report)]
    return tag("div", first, written, last, class_="grid")


Panel = tuple[str, Part]

Table = tuple[list[tuple[str, str]], list[list[Part]]]


_OUTCOMES = [(name, "n") for name in OUTCOMES]
"""The columns in which outcomes are counted, in the order in which a summary has them."""


def _list_narrow(report: Report) -> Iterator[Panel]:
    if report.scores is not None:
        yield "Scores", _render_scores(report.scores, report.threshold)
    yield "Undecided", _render_undecided(report)
    if report.labels is not None or report.numbers is not None:
        yield "Agreement with labels", _render_labels(report)
    yield "Cost and time", _render_cost(report)
    if report.seats:
        yield "Judges of the chain", _render_seats(report)
    if report.seat_pairs:
        yield "Disagreements", _render_disagreements(report)
    if report.repeats is not None:
        yield "Judged again", _render_repeats(report.repeats)


def _list_wide(report: Report) -> Iterator[Panel]:
    if report.groups:
        yield "Groups", _render_groups(report.groups)
    if report.rules:
        yield "Rules", _render_rules(report)


def render_panel(title: str, parts: Part, *, whole: bool) -> Safe:
    """A panel with its heading, over both columns or one."""
    return tag("section", tag("h2", title), parts, class_="panel whole" if whole else "panel")


def render_table(columns: Sequence[tuple[Part, str]], rows: Sequence[Sequence[Part]], *, caption: str = "") -> Safe:
    """A table; a column is its heading and its class (``n`` for numbers, ``wide`` where there is room)."""
    head = tag("tr", [tag("th", name, class_=kind or None, scope="col") for name, kind in columns])
    body = [
        tag(
            "tr",
            [
                tag("td" if place else "th", cell, class_=kind or None, scope=None if place else "row")
                for place, (cell, (_, kind)) in enumerate(zip(row, columns, strict=True))
            ],
        )
        for row in rows
    ]
    said = tag("caption", caption) if caption else None
    return tag("table", said, tag("thead", head), tag("tbody", body))


def _render_facts(*pairs: tuple[str, Part]) -> Safe:
    return tag("dl", [[tag("dt", name), tag("dd", said)] for name, said in pairs])


def _render_scores(spread: Spread, threshold: float | None) -> Safe:
    said = (
        f"Mean {format_score(spread.mean)}, median {format_score(spread.median)}, "
        f"nine in ten from {format_score(spread.p5)} to {format_score(spread.p95)}; "
        f"{format_count(spread.count, 'score')}."
    )
    chart = draw_histogram(spread.bins, what="Scores", threshold=threshold)
    return join([tag("figure", chart, tag("figcaption", said))])


def _write_rubrics(rubrics: Sequence[RubricSummary]) -> Safe:
    columns = [("rubric", ""), ("asks", "wide"), ("whose", "word"), ("cases", "n"), ("passed", "n"), ("", "chart"),
               ("95 % interval", "n wide"), ("needs", "n")]  # fmt: skip
    rows: list[list[Part]] = [
        [
            [tag("bdi", item.name), tag("span", f" {item.digest[:12]}", class_="quiet")],
            tag("span", item.about, dir="auto"),
            "the cases" if item.own else "the run",
            format_count(item.cases),
            format_rate(item.passed.rate),
            draw_share(item.passed, what="passed"),
            format_interval(item.passed),
            f"{item.threshold:.2f}",
        ]
        for item in rubrics
    ]
    return join([render_table(columns, rows, caption="That of most cases first.")])


def _render_criteria(criteria: Sequence[CriterionSummary]) -> Safe:
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
    rows = [
        [
            [item.name, tag("span", f" rule: {item.rule}", class_="quiet") if item.rule else None],
            f"{item.passed.of:,}",
            format_score(item.scores.mean if item.scores else None),
            draw_sparkline(item.scores.bins, what=_format_spread(item.scores)) if item.scores else NOTHING,
            format_criterion_share(item)[0],
            draw_share(item.passed, what="passed") if item.gates else None,
            format_criterion_share(item)[1],
            NOTHING if item.threshold is None else f"{item.threshold:.2f}",
            f"{item.weight:g}",
        ]
        for item in criteria
    ]
    return join([render_table(columns, rows, caption="The lowest mean first.")])


def _format_spread(spread: Spread) -> str:
    return f"from {format_score(spread.lowest)} to {format_score(spread.highest)}, median {format_score(spread.median)}"


def _render_undecided(report: Report) -> Safe:
    if not report.undecided_because:
        return join([tag("p", "Every judgement was decided.")])
    most = max(report.undecided_because.values())
    rows = [
        [
            name,
            format_count(number),
            draw_part(number, most, what=f"{name}: {format_count(number)}", kind="undecided"),
            format_rate(number / report.judgements),
        ]
        for name, number in report.undecided_because.items()
    ]
    columns = [("because", ""), ("judgements", "n"), ("", "chart"), ("of all", "n")]
    decided = ", ".join(f"{name} {number:,}" for name, number in report.decided_by.items())
    return join([render_table(columns, rows), tag("p", f"Decided by: {decided}.", class_="quiet")])


def _render_pairs(pairs: PairSummary) -> Safe:
    outcomes = {"passed": pairs.wins, "failed": pairs.losses, "undecided": pairs.undecided + pairs.ties}
    said = (
        f"{format_count(pairs.wins, 'win')} of the first, {format_count(pairs.losses, 'win')} of the second, "
        f"{format_count(pairs.ties, 'tie')}, {pairs.undecided:,} undecided."
    )
    facts: list[tuple[str, Part]] = [
        ("win rate of the first", format_share(pairs.win_rate)),
        ("orders disagree", format_share(pairs.flips)),
        ("orders agree, of all asked twice", format_share(pairs.agreement)),
        ("prefers what is shown first", format_share(pairs.shown_first)),
    ]
    if pairs.labelled:
        facts += [
            ("accuracy", format_share(pairs.accuracy)),
            ("accuracy without ties", format_share(pairs.accuracy_untied)),
            ("accuracy in order ab", format_share(pairs.accuracy_ab)),
            ("accuracy in order ba", format_share(pairs.accuracy_ba)),
            ("right in both orders", format_share(pairs.both_right)),
        ]
    chart = draw_outcomes(outcomes, what="First preferred, second preferred, tie or undecided")
    return join([chart, tag("p", said, class_="quiet"), _render_facts(*facts)])


def _render_labels(report: Report) -> Safe:
    parts: list[Part] = []
    if report.labels is not None:
        parts += [_render_confusion(report.labels)]
    if report.numbers is not None:
        found = report.numbers
        correlation = NOTHING if found.correlation is None else f"{found.correlation:.3f}"
        apart = NOTHING if found.mean_difference is None else f"{found.mean_difference:.3f}"
        parts += [
            tag("h3", "Labels that are numbers"),
            _render_facts(
                ("judgements", format_count(found.labelled)), ("correlation", correlation), ("mean difference", apart)
            ),
        ]
    return join([parts])


def _render_confusion(labels: LabelSummary) -> Safe:
    columns = [("label", ""), *_OUTCOMES]
    rows = [[name, *[format_count(number) for number in found.values()]] for name, found in labels.confusion.items()]
    facts = _render_facts(
        ("agreement", format_share(labels.accuracy)),
        ("baseline: always pass", format_rate(labels.always_passing.rate)),
        ("labelled", format_count(labels.labelled, "case")),
    )
    return Safe(facts + tag("h3", "Judgements by label") + render_table(columns, rows))


def _render_seats(report: Report) -> Safe:
    columns = [
        ("judge", ""),
        ("asked", "n"),
        ("passed", "n"),
        ("failed", "n"),
        ("undecided", "n"),
        ("mean time", "n wide"),
    ]
    rows = [
        [
            seat.judge,
            format_count(seat.asked),
            *[format_count(number) for number in seat.outcomes.values()],
            format_duration(seat.mean_duration_ms),
        ]
        for seat in report.seats
    ]
    return join([render_table(columns, rows)])


def _render_disagreements(report: Report) -> Safe:
    said = f"Judges were split in {format_share(report.split)}." if report.split is not None else ""
    columns = [("judges", ""), ("disagreed", "n"), ("", "chart"), ("both decided", "n")]
    rows = [
        [
            f"{pair.first} / {pair.second}",
            format_rate(pair.disagreed.rate),
            draw_share(pair.disagreed, what="disagreed", kind="failed"),
            format_count(pair.disagreed.of),
        ]
        for pair in report.seat_pairs[:MOST_ROWS]
    ]
    return join([tag("p", said), render_table(columns, rows)])


def _render_repeats(found: RepeatSummary) -> Safe:
    return _render_facts(
        ("cases judged repeatedly", format_count(found.cases)),
        ("outcome differs", format_share(found.flipped)),
        ("mean range of scores", NOTHING if found.mean_range is None else f"{found.mean_range:.3f}"),
    )


def _render_groups(groups: Sequence[GroupSummary]) -> Safe:
    shown = groups[:MOST_ROWS]
    table = _list_pair_groups(shown) if any(item.pairs for item in shown) else _list_groups(shown)
    caption = "The lowest share first."
    if len(groups) > MOST_ROWS:
        caption += f" {MOST_ROWS} of {len(groups):,} groups."
    return render_table(*table, caption=caption)


def _list_groups(groups: Sequence[GroupSummary]) -> Table:
    columns = [("group", ""), ("cases", "n"), ("passed", "n"), ("", "chart"), ("95 % interval", "n wide")]
    columns += [("mean score", "n wide"), ("right", "n")]
    rows: list[list[Part]] = [
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
    return columns, rows


def _list_pair_groups(groups: Sequence[GroupSummary]) -> Table:
    names = ("win rate", "orders agree", "right", "order ab", "order ba")
    columns = [("group", ""), ("cases", "n"), *[(name, "n" if name != "win rate" else "n wide") for name in names]]
    rows: list[list[Part]] = []
    for item in groups:
        pairs = item.pairs
        found = (pairs.win_rate, pairs.agreement, pairs.accuracy, pairs.accuracy_ab, pairs.accuracy_ba) if pairs else ()
        rates = [format_rate(share.rate) for share in found] or [NOTHING] * len(names)
        rows.append([name_group(item.name), format_count(item.cases), *rates])
    return columns, rows


def name_group(name: str | None) -> Part:
    """A group's name; words of ours, set apart, where it has none."""
    return tag("span", "without a group", class_="quiet") if name is None else name


def _render_rules(report: Report) -> Safe:
    columns = [("rule", ""), ("severity", "word"), ("checked", "n"), ("found", "n"), ("", "chart wide")]
    rows = [
        [
            item.name,
            item.severity,
            format_count(item.checked),
            format_count(item.failed),
            draw_share(Share(count=item.failed, of=item.checked), what="found something", kind="failed"),
        ]
        for item in report.rules[:MOST_ROWS]
    ]
    return join([render_table(columns, rows)])


def _render_cost(report: Report) -> Safe:
    cost, times = report.cost, report.durations
    facts: list[tuple[str, Part]] = [
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
    return join([_render_facts(*facts)])
