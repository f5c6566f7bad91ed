"""Measurements as one HTML file: how far each judge can be trusted, and the disagreements to read."""

from __future__ import annotations

from collections.abc import Sequence

from adjudge.measurement.disagreement import Disagreement
from adjudge.measurement.measurement import Measurement
from adjudge.report.cases import cut
from adjudge.report.html import name_sort, render_choice, render_filter, render_page, render_text
from adjudge.report.html_measurement import render_lead, render_measurement_panels, render_sorts
from adjudge.report.html_panels import Part, Safe, tag
from adjudge.report.measurement_words import VERDICTS, format_labels, format_side
from adjudge.templates.figures import format_count, format_score

_SIGNS = {"passed": "✓", "failed": "✗", "undecided": "?"}

_MOST_GROUPS = 60


def render_measurement_html(found: Sequence[Measurement]) -> str:
    """Measurements as the text of one HTML file, complete without scripts."""
    first = found[0]
    judges = first.judge if len(found) == 1 else format_count(len(found), "judge")
    return render_page(
        f"{judges} compared with people: {first.data}",
        tag(
            "header",
            tag(
                "h1",
                f"{first.judge or 'The judge'} compared with people"
                if len(found) == 1
                else "Judges compared with people",
            ),
            tag("p", "On ", tag("b", first.data or "a run"), f", {format_count(first.cases, 'case')}."),
            tag("p", [tag("span", f"run {first.run}")] if first.run else None, class_="facts"),
        ),
        tag("main", [_render_one(item, alone=len(found) == 1) for item in found], _render_list(found)),
        tag("footer", tag("p", _FOOT), class_="quiet"),
    )


_FOOT = (
    "Intervals are at 95 %: Wilson's for shares, a bootstrap for coefficients; where cases come in groups, both follow "
    "the groups. This file loads nothing, sends nothing and holds everything it shows."
)


def _render_one(found: Measurement, *, alone: bool) -> Safe:
    head = None if alone else tag("h2", found.judge or "a judge")
    return tag("section", head, render_lead(found), render_measurement_panels(found))


def _render_list(found: Sequence[Measurement]) -> Safe:
    items = [(place, item) for place, one in enumerate(found) for item in one.disagreements]
    groups = list(dict.fromkeys(item.group for _, item in items if item.group is not None))
    places = {name: f"g{place}" for place, name in enumerate(groups)} if len(groups) <= _MOST_GROUPS else {}
    shown = [_render_item(item, places, found[place].judge if len(found) > 1 else None) for place, item in items]
    total = sum(one.differing for one in found)
    rest = f" {len(shown):,} of {total:,} are here, the worst of each sort." if total > len(shown) else ""
    return tag(
        "section",
        tag("h2", "Disagreements"),
        [render_sorts(one) for one in found[:1]],
        tag("p", "The worst first.", rest, class_="quiet") if shown else None,
        _render_filter([item for _, item in items], places) if shown else None,
        tag("ol", shown, class_="list", id="list"),
        id="cases",
    )


def _render_filter(items: Sequence[Disagreement], groups: dict[str, str]) -> Safe:
    sorts = [(name_sort(sort), str(sort)) for sort in dict.fromkeys(item.sort for item in items)]
    verdicts = [(str(name), VERDICTS[name]) for name in dict.fromkeys(item.verdict for item in items)]
    choices: list[Part] = [render_choice("sort", sorts), render_choice("outcome", verdicts, label="judge")]
    if groups:
        choices.append(render_choice("group", [(key, cut(name, 60)) for name, key in groups.items()]))
    return render_filter(choices)


def _render_item(item: Disagreement, groups: dict[str, str], judge: str | None) -> Safe:
    sign = _SIGNS.get(item.verdict, "")
    badge = tag("span", f"{sign} {VERDICTS[item.verdict]}".strip(), class_=f"badge {item.verdict}")
    chips: list[Part] = [tag("bdi", judge, class_="chip")] if judge else []
    chips += [tag("span", f"people: {format_side(item.truth)}", class_="chip alarm")]
    chips += [tag("span", item.sort, class_="chip")]
    chips += [tag("bdi", item.group, class_="chip")] if item.group is not None else []
    score = tag("span", format_score(item.score), class_="score") if item.score is not None else None
    head = tag("span", [badge, tag("bdi", item.case, class_="id"), chips, score], class_="head")
    preview = tag("span", item.task or item.content, class_="why", dir="auto")
    facts = [("people", format_labels(item) or format_side(item.truth))]
    facts += [("sorted", "by a comment")] if item.by_hand else []
    body: list[Part] = [tag("dl", [[tag("dt", name), tag("dd", said)] for name, said in facts])]
    body += [render_text("Comment", text) for text in item.comments]
    texts = (("Judge", item.why), ("Task", item.task), ("Content", item.content))
    body += [render_text(name, text) for name, text in texts if text]
    return tag(
        "li",
        tag("details", tag("summary", head, preview), tag("div", body, class_="body")),
        id=f"case-{item.place}",
        data_outcome=item.verdict,
        data_sort=name_sort(item.sort),
        data_group=groups.get(item.group or "", ""),
        data_reason="",
    )
