"""A report as one HTML file: no network, readable without script, and nothing in it can become code.

Every text goes through ``tag``, which escapes it. Should that ever fail, the page's own policy still lets no script run
but the one whose digest it names, loads nothing and sends nothing.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from importlib.resources import files

from adjudge.report._cases import write_cases
from adjudge.report._charts import draw_outcomes
from adjudge.report._format import say_count, say_interval, say_rate
from adjudge.report._notes import list_model_changes, list_notices
from adjudge.report._panels import write_panels
from adjudge.report._tags import Part, Safe, tag
from adjudge.report._values import Report


def write_html(report: Report) -> str:
    """A report as the text of one HTML file."""
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
        tag("title", f"{say_rate(report.passed.rate)} passed: {report.about.title}"),
        tag("style", Safe(style)),
    )
    body = tag(
        "body",
        tag("a", "Skip to the cases", href="#cases", class_="skip"),
        _write_header(report),
        tag("main", _write_verdict(report), write_panels(report), write_cases(report)),
        _write_footer(report),
        tag("script", Safe(script)),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _read(name: str) -> str:
    # Bytes, so that no system's own line ends change what the digest is of.
    return files("adjudge.report").joinpath(name).read_bytes().decode("utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _write_header(report: Report) -> Safe:
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


def _write_verdict(report: Report) -> Safe:
    share = report.passed
    cases = say_count(report.cases, "case")
    what = f"of {cases} passed"
    if share.interval is not None:
        what += f"; 95 % interval {say_interval(share)}"
    if report.judgements != report.cases:
        what += f". {say_count(report.judgements, 'judgement')}; a case counts by the share of its own that passed"
    return tag(
        "section",
        tag("span", say_rate(share.rate), class_="rate"),
        tag("span", what, ".", class_="what"),
        draw_outcomes(report.outcomes, what="Judgements"),
        tag("ul", [_write_key(name, number, report) for name, number in report.outcomes.items()], class_="key"),
        class_="verdict",
        aria_label="Verdict",
    )


SIGNS = {"passed": "✓", "failed": "✗", "undecided": "?"}


def _write_key(name: str, number: int, report: Report) -> Safe:
    share = say_rate(number / report.judgements) if report.judgements else ""
    sign = tag("span", SIGNS[name], class_="sign", aria_hidden="true")
    return tag("li", sign, " ", tag("b", f"{number:,}"), f" {name} ", tag("span", share, class_="quiet"), class_=name)


def _write_footer(report: Report) -> Safe:
    said: Part = (
        "Undecided is not passed. Intervals are Wilson's, at 95 %. Percentiles of scores are exact to 0.001, those of "
        "durations to 1 %. This file loads nothing, sends nothing and holds everything it shows."
    )
    command = tag("p", "Command: ", tag("code", " ".join(report.about.command))) if report.about.command else None
    return tag("footer", tag("p", said), command, class_="quiet")
