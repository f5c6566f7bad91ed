"""A report as one HTML file: no network, readable without script, and nothing in it can become code.

Every text goes through ``tag``, which escapes it. Should that ever fail, the page's own policy still lets no script run
but the one whose digest it names, loads nothing and sends nothing.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Sequence
from importlib.resources import files

from adjudge.formats.display import find_mark, format_criterion_score
from adjudge.report.cases import ORDER, ShownCase, ShownResult, cut
from adjudge.report.format import format_label, format_shown, format_verdict, list_model_changes, list_notices
from adjudge.report.html_measurement import render_lead, render_measurement_panels, render_sorts
from adjudge.report.html_panels import Part, Safe, draw_outcomes, render_panels, render_table, tag
from adjudge.report.report import Report
from adjudge.templates.figures import (
    NOTHING,
    format_count,
    format_dollars,
    format_duration,
    format_interval,
    format_rate,
    format_score,
)

_SIGNS = {"passed": "✓", "failed": "✗", "undecided": "?"}


def render_cases(report: Report) -> Safe:
    """The list of cases with its filter."""
    groups = list(dict.fromkeys(case.group for case in report.shown if case.group is not None))
    places = {name: f"g{place}" for place, name in enumerate(groups)}
    sorts = {item.place: item.sort for item in report.measurement.disagreements} if report.measurement else {}
    rows = [_render_case(case, places.get(case.group or "", ""), sorts.get(case.place)) for case in report.shown]
    return tag(
        "section",
        tag("h2", "Cases"),
        tag("p", format_shown(report), class_="quiet"),
        _render_filter(report, places, list(dict.fromkeys(sorts.values()))) if rows else None,
        tag("ol", rows, class_="list", id="list"),
        id="cases",
    )


def _render_filter(report: Report, groups: dict[str, str], sorts: Sequence[str]) -> Safe:
    outcomes = [name for name in ORDER if any(case.outcome == name for case in report.shown)]
    reasons = sorted({item.undecided_because or "" for case in report.shown for item in case.results} - {""})
    choices: list[Part] = [render_choice("outcome", [(name, name) for name in outcomes])]
    choices += [render_choice("reason", [(name, name) for name in reasons])] if reasons else []
    choices += [render_choice("group", [(key, cut(name, 60)) for name, key in groups.items()])] if groups else []
    choices += (
        [render_choice("sort", [(name_sort(sort), sort) for sort in sorts], label="people differ")] if sorts else []
    )
    if any(case.split or case.flipped for case in report.shown):
        choices += [_render_check("split", "judges or repeats disagree")]
    if any(case.agrees is False for case in report.shown):
        choices += [_render_check("wrong", "label says otherwise")]
    return render_filter(choices)


def render_filter(choices: Part) -> Safe:
    """The form above a list of cases: a search, some choices, and what opens and closes all."""
    return tag(
        "form",
        tag("label", "search", tag("input", type="search", name="text", autocomplete="off")),
        choices,
        tag("button", "Reset", type="reset"),
        tag("button", "Open all", type="button", id="open"),
        tag("button", "Close all", type="button", id="close"),
        tag("output", id="found", class_="quiet", aria_live="polite"),
        id="filter",
        hidden=True,  # the script shows it; without one it would do nothing
    )


def render_choice(name: str, options: list[tuple[str, str]], *, label: str = "") -> Safe:
    """A choice of a filter: its name in the script, and each option's value with what is shown."""
    written = [tag("option", said, value=value) for value, said in options]
    return tag("label", label or name, tag("select", tag("option", "any", value=""), written, name=name))


def _render_check(name: str, said: str) -> Safe:
    return tag("label", tag("input", type="checkbox", name=name), said, class_="check")


def name_sort(sort: str) -> str:
    """The sort of a disagreement as one word, for the page's script."""
    return sort.replace(" ", "-")


def _render_case(case: ShownCase, group: str, sort: str | None) -> Safe:
    reasons = " ".join(dict.fromkeys(item.undecided_because or "" for item in case.results)).strip()
    details = tag("details", _render_line(case, sort), tag("div", _render_body(case), class_="body"))
    return tag(
        "li",
        details,
        id=f"case-{case.place}",
        data_outcome=case.outcome,
        data_reason=reasons,
        data_group=group,
        data_sort=name_sort(sort or ""),
        data_split="1" if case.split or case.flipped else "0",
        data_wrong="1" if case.agrees is False else "0",
    )


def _render_line(case: ShownCase, sort: str | None) -> Safe:
    worst = case.worst
    marks: list[Part] = []
    if case.group is not None:
        marks += [tag("bdi", case.group, class_="chip")]
    if case.judgements > 1:
        marks += [tag("span", f"{case.passed} of {case.judgements} passed", class_="chip")]
    marks += [tag("span", "judges split", class_="chip")] if case.split else []
    marks += [tag("span", f"own {', '.join(case.own)}", class_="chip")] if case.own else []
    if case.agrees is False:
        marks += [tag("span", "label says ", format_label(case.label), class_="chip alarm")]
    marks += [tag("span", sort, class_="chip")] if sort is not None else []
    badge = tag("span", f"{_SIGNS[case.outcome]} {case.outcome}", class_=f"badge {case.outcome}")
    score = worst.preferred or (format_score(worst.score) if worst.score is not None else worst.undecided_because)
    head = [badge, tag("bdi", case.id, class_="id"), marks, tag("span", score, class_="score")]
    why = tag("span", worst.why, class_="why", dir="auto") if worst.why else None
    return tag("summary", tag("span", head, class_="head"), why)


def _render_body(case: ShownCase) -> Part:
    several = case.judgements > 1
    parts: list[Part] = []
    for number, result in enumerate(case.results, 1):
        parts += [tag("h3", f"Judgement {number} of {case.judgements}")] if several else []
        parts += [render_result(result)]
    if case.judgements > len(case.results):
        parts += [tag("p", f"{len(case.results)} of {case.judgements} judgements, the worst first.", class_="quiet")]
    texts = [("Task", case.task), ("Content", case.content), ("Reference", case.reference), ("Context", case.context)]
    parts += [render_text(name, text) for name, text in texts if text]
    facts = [("label", format_label(case.label))] if case.label is not None else []
    facts += (
        [("judged by", f"{case.rubric} {case.rubric_digest[:12]}, with its own {', '.join(case.own)}")]
        if case.own
        else []
    )
    facts += case.metadata
    if facts:
        parts += [tag("h4", "Metadata"), tag("dl", [[tag("dt", name), tag("dd", said)] for name, said in facts])]
    return parts


def render_text(name: str, text: str) -> Part:
    """A text that was judged, or given with it, under its name."""
    return [tag("h4", name), tag("pre", text, dir="auto")]


def render_result(result: ShownResult) -> Safe:
    """A judgement: the verdict, who said so, what was said of each criterion, by each seat, and by rules."""
    cost = f", {format_dollars(result.cost_usd)}" if result.cost_usd is not None else ""
    sure = f", confidence {result.confidence:.2f}" if result.confidence is not None else ""
    foot = f"{result.judge}, {format_duration(result.duration_ms)}{cost}{sure}"
    verdict = tag("b", format_verdict(result), class_=result.outcome)
    parts: list[Part] = [tag("p", verdict, " ", tag("span", foot, class_="quiet"))]
    parts += [tag("p", text, class_="said", dir="auto") for text in (result.detail, result.reasoning) if text]
    parts += [_render_criteria(result)] if result.criteria else []
    if result.suggestions:
        parts += [tag("h4", "Suggestions"), tag("ul", [tag("li", text, dir="auto") for text in result.suggestions])]
    if result.rules:
        rows = [[name, severity, message] for name, severity, message in result.rules]
        parts += [render_table([("rule", ""), ("severity", "word"), ("found", "")], rows)]
    parts += [_render_seats(result)] if result.seats else []
    if result.raw_response:
        parts += [tag("h4", "What the model replied"), tag("pre", result.raw_response, dir="auto")]
    return Safe("".join([str(tag("div", part)) for part in parts]))


def _render_criteria(result: ShownResult) -> Safe:
    columns = [("criterion", ""), ("score", "n"), ("needs", "n"), ("reasoning", "")]
    rows = [
        [
            item.name,
            tag("b", format_criterion_score(item), class_=find_mark(item)),
            NOTHING if item.threshold is None else f"{item.threshold:.2f}",
            tag("span", item.reasoning, dir="auto"),
        ]
        for item in result.criteria
    ]
    return render_table(columns, rows)


def _render_seats(result: ShownResult) -> Safe:
    columns = [("judge", ""), ("said", "word"), ("score", "n"), ("because", "")]
    rows = [
        [
            seat.judge,
            seat.outcome + (f": {seat.undecided_because}" if seat.undecided_because else ""),
            format_score(seat.score),
            tag("span", seat.said, dir="auto"),
        ]
        for seat in result.seats
    ]
    return render_table(columns, rows)


def render_html(report: Report) -> str:
    """Render a report as the text of one HTML file."""
    return render_page(
        f"{format_rate(report.passed.rate)} passed: {report.about.title}",
        _render_header(report),
        tag("main", _render_verdict(report), _render_measured(report), render_panels(report), render_cases(report)),
        _render_footer(report),
    )


def render_page(title: str, *parts: Part) -> str:
    """One HTML file with the style and the script of a report, and a policy that allows nothing else."""
    style, script = _read("page.css"), _read("page.js")
    policy = "; ".join(
        [
            "default-src 'none'",
            f"style-src {_digest(style)}",
            f"script-src {_digest(script)}",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", name="generator", content="adjudge"),
        tag("title", title),
        tag("style", Safe(style)),
    )
    body = tag(
        "body",
        tag("a", "Skip to the cases", href="#cases", class_="skip"),
        *parts,
        tag("script", Safe(script)),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _read(name: str) -> str:
    # Bytes, so that no system's own line ends change what the digest is of.
    return files("adjudge.report").joinpath(name).read_bytes().decode("utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _render_header(report: Report) -> Safe:
    about = report.about
    needs = f" (passes at {about.threshold:.2f})" if about.threshold is not None else ""
    asked = [", by the rubric ", tag("b", about.rubric), needs] if about.rubric else None
    facts = [
        ("run", about.id),
        ("begun", about.created_at.replace("T", " ")[:16] + " UTC" if about.created_at else ""),
        ("models", ", ".join(about.models)),
        ("adjudge", about.adjudge),
    ]
    return tag(
        "header",
        tag("h1", about.dataset or "A run"),
        tag("p", "Judged by ", tag("b", about.judge or "an unnamed judge"), asked),
        tag("p", [tag("span", f"{name} {said}") for name, said in facts if said], class_="facts"),
        [tag("p", text, class_="notice", role="note") for text in (*list_notices(report), *list_model_changes(report))],
    )


def _render_verdict(report: Report) -> Safe:
    share = report.passed
    cases = format_count(report.cases, "case")
    what = f"of {cases} passed"
    if share.interval is not None:
        what += f"; 95 % interval {format_interval(share)}"
    if report.judgements != report.cases:
        what += f". {format_count(report.judgements, 'judgement')}; a case counts by the share of its own that passed"
    return tag(
        "section",
        tag("span", format_rate(share.rate), class_="rate"),
        tag("span", what, ".", class_="what"),
        draw_outcomes(report.outcomes, what="Judgements"),
        tag("ul", [_render_key(name, number, report) for name, number in report.outcomes.items()], class_="key"),
        class_="verdict",
        aria_label="Verdict",
    )


SIGNS = {"passed": "✓", "failed": "✗", "undecided": "?"}


def _render_measured(report: Report) -> Part:
    """What people would say, and how far the judge can be trusted."""
    if report.measurement is None:
        return None
    panels = [render_measurement_panels(report.measurement), render_sorts(report.measurement)]
    more = (
        tag("details", tag("summary", "How far the judge can be trusted"), panels)
        if report.measurement.labelled
        else None
    )
    return [render_lead(report.measurement), more]


def _render_key(name: str, number: int, report: Report) -> Safe:
    share = format_rate(number / report.judgements) if report.judgements else ""
    sign = tag("span", SIGNS[name], class_="sign", aria_hidden="true")
    return tag("li", sign, " ", tag("b", f"{number:,}"), f" {name} ", tag("span", share, class_="quiet"), class_=name)


def _render_footer(report: Report) -> Safe:
    said: Part = (
        "Undecided is not passed. Intervals are Wilson's, at 95 %. Percentiles of scores are exact to 0.001, those of "
        "durations to 1 %. This file loads nothing, sends nothing and holds everything it shows."
    )
    command = tag("p", "Command: ", tag("code", " ".join(report.about.command))) if report.about.command else None
    return tag("footer", tag("p", said), command, class_="quiet")
