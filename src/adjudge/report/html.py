"""A report as one HTML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adjudge.formats.numbers import format_score
from adjudge.report.cases import ORDER, ShownCase, cut
from adjudge.report.format import describe_passed, format_label, format_shown, list_model_changes, list_notices
from adjudge.report.html_measurement import list_measurement_panels, make_lead, make_sorts
from adjudge.report.html_page import render_page
from adjudge.report.html_panels import list_panels, stack_outcomes
from adjudge.report.report import Report

Options = Sequence[tuple[str, str]]
"""Each choice's value in the page's script, and what is shown of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What the list of cases can be narrowed by."""

    outcomes: Options
    reasons: Options
    groups: Options
    sorts: Options
    split: bool
    wrong: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRow:
    """A case as a line of the list, and what the line adds to it."""

    case: ShownCase
    reasons: str
    group: str
    """The key of its group in the filter."""
    sort: str
    """Of its disagreement with people; empty for none."""
    figure: str
    facts: Sequence[tuple[str, str]]

    @property
    def sort_key(self) -> str:
        """The sort as one word, for the page's script."""
        return name_sort(self.sort)


def name_sort(sort: str) -> str:
    """The sort of a disagreement as one word, for the page's script."""
    return sort.replace(" ", "-")


def render_html(report: Report) -> str:
    """Render a report as the text of one HTML file."""
    return render_page("report.html", **make_sheet(report))


def make_sheet(report: Report) -> dict[str, object]:
    """Everything that the templates of a report show, by the names that they know it by."""
    groups = list(dict.fromkeys(case.group for case in report.shown if case.group is not None))
    keys = {name: f"g{place}" for place, name in enumerate(groups)}
    measurement = report.measurement
    sorts = {item.place: str(item.sort) for item in measurement.disagreements} if measurement else {}
    trusted = measurement is not None and measurement.labelled
    return {
        "report": report,
        "facts": _list_facts(report),
        "notices": [*list_notices(report), *list_model_changes(report)],
        "passed_said": describe_passed(report),
        "stack_said": stack_outcomes(report.outcomes, what="Judgements").said,
        "lead": make_lead(measurement) if measurement else None,
        "measured_panels": list(list_measurement_panels(measurement)) if measurement and trusted else [],
        "sorts": make_sorts(measurement) if measurement and trusted else None,
        "panels": list(list_panels(report)),
        "shown_said": format_shown(report),
        "choices": _list_choices(report, keys, sorts),
        "rows": [_make_row(case, keys, sorts) for case in report.shown],
    }


def _list_facts(report: Report) -> Sequence[tuple[str, str]]:
    about = report.about
    begun = about.created_at.replace("T", " ")[:16] + " UTC" if about.created_at else ""
    return [("run", about.id), ("begun", begun), ("models", ", ".join(about.models)), ("adjudge", about.adjudge)]


def _list_choices(report: Report, groups: Mapping[str, str], sorts: Mapping[int, str]) -> Choices:
    shown = report.shown
    outcomes = [name for name in ORDER if any(case.outcome == name for case in shown)]
    reasons = sorted({item.undecided_because or "" for case in shown for item in case.results} - {""})
    return Choices(
        outcomes=[(name, name) for name in outcomes],
        reasons=[(name, name) for name in reasons],
        groups=[(key, cut(name, 60)) for name, key in groups.items()],
        sorts=[(name_sort(sort), sort) for sort in dict.fromkeys(sorts.values())],
        split=any(case.split or case.flipped for case in shown),
        wrong=any(case.agrees is False for case in shown),
    )


def _make_row(case: ShownCase, groups: Mapping[str, str], sorts: Mapping[int, str]) -> CaseRow:
    worst = case.worst
    own = f"{case.rubric} {case.rubric_digest[:12]}, with its own {', '.join(case.own)}"
    facts = [("label", format_label(case.label))] if case.label is not None else []
    facts += [("judged by", own)] if case.own else []
    score = format_score(worst.score) if worst.score is not None else worst.undecided_because
    return CaseRow(
        case=case,
        reasons=" ".join(dict.fromkeys(item.undecided_because or "" for item in case.results)).strip(),
        group=groups.get(case.group or "", ""),
        sort=sorts.get(case.place, ""),
        figure=worst.preferred or score or "",
        facts=[*facts, *case.metadata],
    )
