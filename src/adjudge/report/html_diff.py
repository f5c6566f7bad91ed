"""Two runs side by side as one HTML file: what changed, then case by case what was judged and what was said of it.

Made of the same parts as the report of one run, so it loads nothing, escapes everything and runs no script but ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from adjudge.errors import UsageError
from adjudge.report.cases import ShownCase, make_shown_case
from adjudge.report.format import format_outcomes
from adjudge.report.html import SIGNS, render_choice, render_filter, render_page, render_result, render_text
from adjudge.report.html_measurement import render_lead
from adjudge.report.html_panels import Part, Safe, render_table, tag
from adjudge.report.markdown import describe_p, format_change_score, format_delta, format_p, list_facts, render_change
from adjudge.report.measurement_words import describe_difference
from adjudge.report.run_diff import CaseDiff, Diff, DiffSide, join_runs
from adjudge.runs.folder import Run
from adjudge.templates.figures import NOTHING, format_count, format_score

MOST_CASES = 2_000
"""Cases in one file; each is there twice, with all that was said of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedCase:
    """One case as it is in both runs."""

    before: ShownCase
    after: ShownCase
    change: CaseDiff | None
    """``None`` where it came out as before."""
    differing: tuple[str, ...] = ()
    """Which of its texts are others, also where only a part that is cut off differs."""

    @property
    def kind(self) -> str:
        """What happened to it: ``regressed``, ``improved``, another ``outcome``, another ``score``, or ``same``."""
        if self.change is None:
            return "same"
        if self.change.regressed:
            return "regressed"
        if self.change.after == "passed" != self.change.before:
            return "improved"
        return "outcome" if self.change.before != self.change.after else "score"


_TEXTS = ("task", "content", "reference", "context")

_SAID = {
    "regressed": "regressed",
    "improved": "improved",
    "outcome": "another outcome",
    "score": "another score",
    "same": "as before",
}


def pair_cases(found: Diff, before: Run, after: Run, *, most: int = MOST_CASES) -> Iterator[PairedCase]:
    """The compared cases as they are in both runs, ``found.listed`` first and then those that came out as before."""
    if not 0 <= most <= MOST_CASES:
        raise UsageError(f"a diff shows 0 to {MOST_CASES} cases, and {most} were asked for")
    changes = {item.case: item for item in found.listed}
    for name, change in list(changes.items())[:most]:
        yield _pair(name, before, after, change)
    room = most - len(changes)
    # Where more changed than are listed, what is not listed need not be as before.
    if room <= 0 or found.changed > len(changes):
        return
    for joined in join_runs(before, after, new_contents=found.new_contents):
        if joined.before is None or joined.after is None or not joined.same or joined.case in changes:
            continue
        yield _pair(joined.case, before, after, None)
        room -= 1
        if not room:
            return


def _pair(name: str, before: Run, after: Run, change: CaseDiff | None) -> PairedCase:
    first, second = before.read_case(name), after.read_case(name)
    old, new = first[0].case, second[0].case
    differing = tuple(part for part in _TEXTS if getattr(old, part) != getattr(new, part))
    return PairedCase(before=make_shown_case(first), after=make_shown_case(second), change=change, differing=differing)


def render_diff_html(found: Diff, cases: Iterable[PairedCase]) -> str:
    """What changed between two runs as the text of one HTML file; ``cases`` are what ``pair_cases`` found."""
    shown = list(cases)
    said = f"{found.regressions:,} regressed, {found.improvements:,} improved"
    return render_page(
        f"{said}: {found.before.folder} and {found.after.folder}",
        _render_header(found),
        tag(
            "main",
            _render_verdict(found, said),
            _render_measured(found),
            _render_panels(found),
            _render_cases(found, shown),
        ),
        tag("footer", tag("p", _FOOT), class_="quiet"),
    )


_FOOT = (
    "Undecided is not passed. A case that was judged several times is what more than half of its judgements are. "
    "This file loads nothing, sends nothing and holds everything it shows."
)


def _render_header(found: Diff) -> Safe:
    sides = (("before", found.before), ("after", found.after))
    notices = [f"{side.folder} is {side.status}: its other cases are in no figure here." for _, side in sides
               if side.status != "finished"]  # fmt: skip
    notices += [f"{format_count(number, 'case')} {said}; no figure here is about them."
                for said, number in list_facts(found)]  # fmt: skip
    return tag(
        "header",
        tag("h1", "Two runs side by side"),
        [_render_run(name, side) for name, side in sides],
        [tag("p", text, class_="notice", role="note") for text in notices],
    )


def _render_run(name: str, side: DiffSide) -> Safe:
    about = [tag("span", f"run {side.id}"), tag("span", format_outcomes(side.counts))]
    return tag("p", f"{name.capitalize()}: ", tag("b", side.folder), " ", about, class_="facts")


def _render_verdict(found: Diff, said: str) -> Safe:
    what = (
        f"of {format_count(found.cases, 'case')} in both runs; passed against not passed: {describe_p(found.p_value)}"
    )
    return tag(
        "section",
        tag("span", said, class_="rate"),
        tag("span", what, " (McNemar, exact).", class_="what"),
        class_="verdict",
        aria_label="Verdict",
    )


def _render_measured(found: Diff) -> Part:
    """What people would pass of each run, one above the other."""
    if found.measured is None:
        return None
    leads = [
        tag("section", tag("h2", f"{name}: what people would say"), render_lead(side))
        for name, side in zip(("Before", "After"), found.measured, strict=True)
    ]
    return [leads, tag("p", describe_difference(), class_="quiet")]


def _render_panels(found: Diff) -> Safe:
    moves = [[old, new, f"{number:,}"] for (old, new), number in found.transitions.items()]
    columns = [("mean", ""), ("before", "n"), ("after", "n"), ("difference", "n"), ("cases", "n wide"), ("p", "n")]
    means = [
        [
            name,
            format_change_score(item.before),
            format_change_score(item.after),
            format_delta(item.delta),
            f"{item.cases:,}",
            format_p(item.p_value),
        ]
        for name, item in [("score", found.score), *found.criteria.items()]
    ]
    panels = (
        ("Outcomes", render_table([("before", "word"), ("after", "word"), ("cases", "n")], moves)),
        ("Scores", render_table(columns, means)),
    )
    return tag("div", [tag("section", tag("h2", name), part, class_="panel") for name, part in panels], class_="grid")


def _render_cases(found: Diff, shown: list[PairedCase]) -> Safe:
    kinds = [name for name in _SAID if any(item.kind == name for item in shown)]
    choice = render_choice("outcome", [(name, _SAID[name]) for name in kinds], label="change")
    of = "All" if len(shown) == found.cases else f"{len(shown):,} of"
    return tag(
        "section",
        tag("h2", "Cases"),
        tag("p", f"{of} {format_count(found.cases, 'case')} in both runs, changed ones first.", class_="quiet"),
        render_filter([choice]) if shown else None,
        tag("ol", [_render_case(item) for item in shown], class_="list", id="list"),
        id="cases",
    )


def _render_case(item: PairedCase) -> Safe:
    details = tag("details", _render_line(item), tag("div", _render_body(item), class_="body"))
    return tag("li", details, id=f"case-{item.before.place}", data_outcome=item.kind)


def _render_line(item: PairedCase) -> Safe:
    before, after = _find_outcomes(item)
    badges = [tag("span", f"{SIGNS[name]} {name}", class_=f"badge {name}") for name in dict.fromkeys((before, after))]
    arrow: list[Part] = [badges[0], *([" → ", badges[1]] if len(badges) > 1 else [])]
    chip = tag("span", _SAID[item.kind], class_=f"chip{' alarm' if item.kind == 'regressed' else ''}")
    scores = (item.change.score_before, item.change.score_after) if item.change else (item.before.worst.score,) * 2
    score = tag("span", render_change(*scores), class_="score")
    why = item.after.worst.why
    head = [arrow, tag("bdi", item.before.id, class_="id"), chip, score]
    return tag("summary", tag("span", head, class_="head"), tag("span", why, class_="why", dir="auto") if why else None)


def _find_outcomes(item: PairedCase) -> tuple[str, str]:
    if item.change is not None:
        return item.change.before, item.change.after
    return item.before.outcome, item.after.outcome


def _render_body(item: PairedCase) -> Part:
    before, after = item.before, item.after
    parts: list[Part] = []
    for name in _TEXTS:
        old, new = getattr(before, name), getattr(after, name)
        title = name.capitalize()
        if name not in item.differing:
            parts += [render_text(title, old)] if old else []
        else:
            parts += [_render_sides(render_text(f"{title} before", old), render_text(f"{title} after", new))]
    if item.change is not None and item.change.criteria:
        parts += [_render_criteria(item.change)]
    sides = (("Before", before), ("After", after))
    return [*parts, _render_sides(*[_render_side(name, case) for name, case in sides])]


def _render_sides(first: Part, second: Part) -> Safe:
    return tag("div", tag("div", first), tag("div", second), class_="sides")


def _render_side(name: str, case: ShownCase) -> Part:
    several = f" ({case.passed} of {case.judgements} judgements passed)" if case.judgements > 1 else ""
    parts: list[Part] = [tag("h3", f"{name}{several}"), [render_result(result) for result in case.results]]
    if case.judgements > len(case.results):
        parts += [tag("p", f"{len(case.results)} of them, the worst first.", class_="quiet")]
    return parts


def _render_criteria(change: CaseDiff) -> Safe:
    columns = [("criterion that changed", ""), ("before", "n"), ("after", "n"), ("difference", "n")]
    rows = [
        [name, format_score(old), format_score(new), NOTHING if None in (old, new) else format_delta(new - old)]  # type: ignore[operator]
        for name, old, new in change.criteria
    ]
    return render_table(columns, rows)
