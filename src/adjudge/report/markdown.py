"""A report as Markdown for a comment on a pull request.

Whatever was judged, or written by a judge, is put in a code span and nowhere else: there it cannot be a heading, a
link, an image, HTML, a mention that writes to somebody, or a reference that closes an issue.
"""

from __future__ import annotations

from collections.abc import Iterator

from adjudge.formats.markdown import escape, render_code
from adjudge.formats.numbers import (
    format_apart,
    format_change,
    format_decimal,
    format_rate,
    format_rates,
    format_score,
)
from adjudge.report.cases import ShownCase
from adjudge.report.diff_words import count_cases, describe_change, describe_compared, describe_test
from adjudge.report.format import (
    describe_passed,
    format_cost,
    format_criterion_share,
    format_outcomes,
    format_rubric,
    list_model_changes,
    list_notices,
)
from adjudge.report.markdown_measurement import list_measurement_sections
from adjudge.report.measurement_words import describe_difference, describe_measurement, describe_rate
from adjudge.report.report import Report
from adjudge.report.run_diff import CaseDiff, Diff
from adjudge.templates.figures import format_count, format_duration, format_interval, format_share
from adjudge.trust.difference import Means

DIFF_MARK = "<!-- adjudge/diff/1 -->"
"""The first line, by which a script finds its own comment to update it."""

MOST_ROWS = 50
"""Cases in the table; a comment has room for about as many."""

_LONGEST = 160


def render_diff_markdown(found: Diff) -> str:
    """What changed, as tables. Ids and reasons are text in it, whatever they hold."""
    return "\n".join(_list_lines(found)) + "\n"


def format_p(value: float | None) -> str:
    """A p-value as people read it."""
    if value is None:
        return "-"
    return "< 0.0001" if value < 0.0001 else format_decimal(value, 4)


def describe_p(value: float | None) -> str:
    """A p-value in a sentence."""
    if value is None:
        return "no case went either way"
    return "p < 0.0001" if value < 0.0001 else f"p = {format_decimal(value, 4)}"


def list_facts(found: Diff) -> Iterator[tuple[str, int]]:
    """Why cases were not compared, and how many."""
    facts = (
        ("only in the earlier run", found.only_before),
        ("only in the later run", found.only_after),
        ("with another reference, task or context, not compared", found.inputs_changed),
        ("with other criteria, rules or another threshold of their own, not compared", found.criteria_changed),
    )
    yield from ((said, number) for said, number in facts if number)


def render_change(before: float | None, after: float | None) -> str:
    """A score before and after, once where it is the same: an arrow is for what moved."""
    old, new, _ = format_change(before, after)
    return old if old == new else f"{old} → {new}"


def render_case_names(number: int) -> str:
    """A number of cases, in words that fit one too."""
    return f"{number:,} case{'' if number == 1 else 's'}"


def _list_lines(found: Diff) -> Iterator[str]:
    yield DIFF_MARK
    yield f"**{escape(describe_change(found))}**, {count_cases(found)}"
    for change in found.setup_changes:
        yield from ("", escape(change))
    yield from ("", describe_compared(found))
    yield from ("", f"McNemar's exact test of {describe_test(found)}: {describe_p(found.p_value)}")
    for said, number in list_facts(found):
        yield ""
        yield f"{render_case_names(number)} {said}"
    if found.measured is not None:
        for name, side in zip(("Before", "After"), found.measured, strict=True):
            yield from ("", f"{name}: {escape(describe_measurement(side))}")
        yield from ("", describe_difference())
    yield from ("", "| before | after | cases |", "|---|---|--:|")
    for (old, new), number in found.transitions.items():
        yield f"| {old} | {new} | {number:,} |"
    if not found.pairs:
        yield from ("", "| mean | before | after | difference | cases | p |", "|---|--:|--:|--:|--:|--:|")
        yield _render_means("score", found.score)
        for name, means in found.criteria.items():
            yield _render_means(render_code(name), means)
    yield from _list_cases(found)


def _render_means(name: str, means: Means) -> str:
    change = " | ".join(format_change(means.before, means.after))
    return f"| {name} | {change} | {means.cases:,} | {format_p(means.p_value)} |"


def _list_cases(found: Diff) -> Iterator[str]:
    moved = [item for item in found.listed if item.before != item.after]
    if not moved:
        return
    rows = [("case", "before", "after", "score", "criteria", "why"), *map(_render_case, moved[:MOST_ROWS])]
    yield ""
    for number, row in enumerate(drop_empty(rows)):
        yield f"| {' | '.join(row)} |"
        if not number:
            yield f"|{'---|' * len(row)}"
    total = sum(number for (old, new), number in found.transitions.items() if old != new)
    if total > min(MOST_ROWS, len(moved)):
        first = ", regressions first" if found.regressions is not None else ""
        yield from ("", f"{min(MOST_ROWS, len(moved))} of {total:,} cases with another outcome are shown{first}")


def drop_empty(rows: list[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Rows, a heading first, without the columns in which nobody has anything: the others want the width."""
    kept = [number for number in range(len(rows[0])) if any(row[number] for row in rows[1:])]
    return (tuple(row[number] for number in kept) for row in rows)


def list_criteria(item: CaseDiff) -> str:
    """The first three criteria whose score moved."""
    said = [f"{name[:30]} {render_change(old, new)}" for name, old, new in item.criteria[:3]]
    return ", ".join(said) + (f" and {len(item.criteria) - 3} more" if len(item.criteria) > 3 else "")


def _render_case(item: CaseDiff) -> tuple[str, ...]:
    scores = render_change(item.score_before, item.score_after)
    case, criteria, why = (
        render_code(text, _LONGEST, nothing="") for text in (item.case, list_criteria(item), item.detail)
    )
    return (case, item.before, item.after, scores, criteria, why)


MOST_CHARACTERS = 65_000
"""GitHub takes 65,536 in a comment."""

MARK = "<!-- adjudge/report/1 -->"
"""The first line, by which a script finds its own comment to update it."""

MOST_CASES = 20


def render_markdown(report: Report, *, most_cases: int = MOST_CASES, needed: float | None = None) -> str:
    """Render a report in at most 65,000 characters of GitHub's Markdown; ``needed`` is the share that must pass."""
    head = "\n\n".join(_list_sections(report, needed))
    foot = _render_foot(report)
    room = MOST_CHARACTERS - len(head) - len(foot) - 400  # for what is around the list
    return f"{MARK}\n{head}\n\n{_render_cases(report, most_cases, room)}{foot}\n"


def _list_sections(report: Report, needed: float | None) -> Iterator[str]:
    about = report.about
    asked = f", by the rubric {render_code(about.rubric)}" if about.rubric else ""
    passed, asked_for = format_rates(report.passed.rate, needed)
    wanted = f"; {asked_for} needed" if needed is not None else ""
    people = describe_rate(report.measurement).removesuffix(".") if report.measurement and report.is_measured else ""
    share = f"{passed} of {format_count(report.cases, 'case')} passed{wanted}"
    yield f"### {escape(people) if people else share}"
    yield f"Judged: {render_code(about.dataset or 'a run')} by {render_code(about.judge or 'a judge', 200)}{asked}."
    own = f"{format_outcomes(report.outcomes)}. 95 % interval of the share: {format_interval(report.passed)}."
    measured = [] if report.measurement is None else list_measurement_sections(report.measurement)
    if report.is_measured:
        yield from (*measured, f"{describe_passed(report)}{wanted}. {format_outcomes(report.outcomes)}.")
    else:
        yield from (own, *measured)
    for notice in list_notices(report):
        yield f"> {notice}"
    for notice in list_model_changes(report, render_code):
        yield f"> {notice}"
    if report.rubrics:
        yield _render_table(
            ("rubric", "cases", "passed", "95 % interval", "needs"),
            [
                (
                    format_rubric(item, lambda text: render_code(text, 80)),
                    format_count(item.cases),
                    format_rate(item.passed.rate),
                    format_interval(item.passed),
                    format_score(item.threshold),
                )
                for item in report.rubrics[:10]
            ],
        )
    if report.criteria:
        yield _render_table(
            ("criterion", "judged", "mean", "passed", "95 % interval", "needs"),
            [
                (
                    render_code(item.name, 80),
                    f"{item.passed.of:,}",
                    format_apart(item.scores.mean if item.scores else None, item.threshold)[0],
                    *format_criterion_share(item),
                    format_apart(item.scores.mean if item.scores else None, item.threshold)[1],
                )
                for item in report.criteria[:50]
            ],
        )
    yield from _list_more(report)


def _list_more(report: Report) -> Iterator[str]:
    if report.undecided_because:
        reasons = ", ".join(f"{name} {number:,}" for name, number in report.undecided_because.items())
        yield f"Undecided because: {reasons}."
    if report.pairs is not None:
        flips = format_share(report.pairs.flips)
        yield f"The first wins {format_share(report.pairs.win_rate)}; the orders disagree in {flips}."
        if report.pairs.labelled and not report.is_measured:
            yield f"Agrees with the label in {format_share(report.pairs.accuracy)}."
    if report.labels is not None and not report.is_measured:
        floor = format_rate(report.labels.always_passing.rate)
        yield f"Agreement with labels: {format_share(report.labels.accuracy)}; baseline (always pass): {floor}."
    if report.split is not None and report.split.count:
        yield f"Judges of the chain were split in {format_share(report.split)}."
    if report.repeats is not None:
        yield f"Judged again, the outcome differs in {format_share(report.repeats.flipped)}."


def _render_cases(report: Report, most: int, room: int) -> str:
    """Cases that did not pass, in a table that opens; as many as there is room for."""
    rest = report.case_outcomes["failed"] + report.case_outcomes["undecided"]
    rows: list[str] = []
    for case in [case for case in report.shown if case.outcome != "passed"][:most]:
        row = _render_row(_list_cells(case))
        room -= len(row) + 1
        if room < 0:
            break
        rows.append(row)
    if not rows:
        return ""
    head = _render_table(("case", "outcome", "score", "why"), [])
    of = f"{len(rows):,} of {format_count(rest, 'case')} that did not pass"
    return f"<details><summary>{of}</summary>\n\n{head}\n" + "\n".join(rows) + "\n\n</details>\n\n"


def _list_cells(case: ShownCase) -> tuple[str, ...]:
    worst = case.worst
    said = f"{case.outcome}: {worst.undecided_because}" if worst.undecided_because else str(case.outcome)
    return render_code(case.id, 80), said, format_score(worst.score), render_code(worst.why, 240)


def _render_foot(report: Report) -> str:
    time = f", median time {format_duration(report.durations.median)}" if report.durations is not None else ""
    return f"<sub>Cost: {format_cost(report)}{time}. Undecided is not passed.</sub>"


def _render_table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    return "\n".join([_render_row(columns), _render_row(("---",) * len(columns)), *map(_render_row, rows)])


def _render_row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"
