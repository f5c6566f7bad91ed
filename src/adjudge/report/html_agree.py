"""Measurements as one HTML file: how far each judge can be trusted, and the disagreements to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adjudge.measurement.disagreement import Disagreement
from adjudge.measurement.measurement import Measurement
from adjudge.report.cases import cut
from adjudge.report.html import Options, name_sort
from adjudge.report.html_measurement import Lead, list_measurement_panels, make_lead, make_sorts
from adjudge.report.html_page import render_page
from adjudge.report.html_panels import Panel
from adjudge.report.measurement_words import VERDICTS, format_labels, format_side
from adjudge.templates.figures import format_count

_MOST_GROUPS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One judge, compared with people."""

    judge: str
    lead: Lead
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DisagreementRow:
    """A disagreement as a line of the list, and what the line adds to it."""

    item: Disagreement
    judge: str
    """Empty where there is only one."""
    verdict: str
    people: str
    group: str
    sort_key: str
    facts: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DisagreementChoices:
    """What the list can be narrowed by."""

    sorts: Options
    verdicts: Options
    groups: Options


def render_measurement_html(found: Sequence[Measurement]) -> str:
    """Measurements as the text of one HTML file, complete without scripts."""
    first = found[0]
    items = [(one, item) for one in found for item in one.disagreements]
    groups = list(dict.fromkeys(item.group for _, item in items if item.group is not None))
    keys = {name: f"g{place}" for place, name in enumerate(groups)} if len(groups) <= _MOST_GROUPS else {}
    return render_page(
        "measurement.html",
        judges=first.judge if len(found) == 1 else format_count(len(found), "judge"),
        found=found,
        measured=[
            Measured(judge=one.judge, lead=make_lead(one), panels=tuple(list_measurement_panels(one))) for one in found
        ],
        sorts=make_sorts(first),
        rows=[_make_row(item, keys, one.judge if len(found) > 1 else "") for one, item in items],
        total=sum(one.differing for one in found),
        choices=_list_choices([item for _, item in items], keys),
    )


def _list_choices(items: Sequence[Disagreement], groups: Mapping[str, str]) -> DisagreementChoices:
    return DisagreementChoices(
        sorts=[(name_sort(sort), str(sort)) for sort in dict.fromkeys(item.sort for item in items)],
        verdicts=[(str(name), VERDICTS[name]) for name in dict.fromkeys(item.verdict for item in items)],
        groups=[(key, cut(name, 60)) for name, key in groups.items()],
    )


def _make_row(item: Disagreement, groups: Mapping[str, str], judge: str) -> DisagreementRow:
    people = format_side(item.truth)
    facts = [("people", format_labels(item) or people)]
    facts += [("sorted", "by a comment")] if item.by_hand else []
    return DisagreementRow(
        item=item,
        judge=judge,
        verdict=VERDICTS[item.verdict],
        people=people,
        group=groups.get(item.group or "", ""),
        sort_key=name_sort(item.sort),
        facts=facts,
    )
