"""The forms of a report: HTML, Markdown, JUnit and JSON hold the figures, and content stays text in each of them."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from adjudge import CriterionResult, JudgeChainResult, PairResult, RuleResult, Usage
from adjudge.judges import PairOrder
from adjudge.report import Report, render_html, render_junit, render_markdown
from kit.cli import HIDDEN
from kit.markup import Reader, parse
from kit.reports import (
    HOSTILE,
    list_example,
    list_hostile,
    make_hostile_manifest,
    make_item,
    make_manifest_of,
    make_result,
    report_of,
)

MARK = "<!-- adjudge/report/1 -->"
"""How a comment of ours is found again."""

MOST_CHARACTERS = 65_000
"""What a comment may have; GitHub takes 65,536."""

EXAMPLE = report_of(list_example(), make_manifest_of(240))
HOSTILE_REPORT = report_of(list_hostile(), make_hostile_manifest())


def fill(text: str) -> Report:
    """A report in which every field that anybody else writes says this."""
    criteria = (CriterionResult(name=text, score=0.2, passed=False, reasoning=text),)
    rules = (RuleResult(name=text, passed=False, message=text),)
    texts: dict[str, Any] = {"judge": text, "detail": text, "reasoning": text, "suggestions": (text,)}
    seats = (make_result("failed", **texts), make_result("passed", judge=f"{text}2"))
    chain = JudgeChainResult(
        outcome="undecided", undecided_because="split", strategy=text, results=seats, raw_response=text,
        criteria=criteria, rule_results=rules, **texts,
    )  # fmt: skip
    case = {"content": text, "reference": text, "task": text, "context": text, "group": text, "metadata": {text: text}}
    manifest = {"dataset": {"name": text}, "judge": {"name": text, "model": {"name": text}}, "rubric": {"name": text}}
    return report_of([make_item(0, chain, id=text, **case)], manifest | {"id": text, "command": [text]})


PLAIN = Reader(render_html(fill("x"))).elements


@given(st.text(min_size=1, max_size=60))
@example("rm -rf --force  -0")
@settings(max_examples=150)
def test_no_text_changes_the_elements_of_the_page(text: str):
    """Whatever stands in every field, the page has the same elements and attributes in the same order."""
    assert Reader(render_html(fill(text))).elements == PLAIN


def test_hostile_text_is_text():
    """It adds no element and no attribute, and can be read as it was written but for what is invisible."""
    page = Reader(render_html(fill(HOSTILE)))

    assert page.elements == PLAIN
    assert page.text.count("<script>alert(1)</script><img src=x onerror=alert(2)>") >= 20
    assert HIDDEN.search(render_html(HOSTILE_REPORT)) is None


def test_the_page_lets_only_its_own_script_and_style_in():
    """The policy names the digests of both, loads nothing and sends nothing; there is no style or handler in tags."""
    page = render_html(EXAMPLE)
    digests = {}
    for name in ("style", "script"):
        text = re.search(rf"<{name}>(.*?)</{name}>", page, re.DOTALL)
        assert text is not None
        digests[name] = base64.b64encode(hashlib.sha256(text[1].encode()).digest()).decode()

    policy = re.search('http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    assert html.unescape(policy[1]) == (
        f"default-src 'none'; style-src 'sha256-{digests['style']}'; script-src 'sha256-{digests['script']}'; "
        "base-uri 'none'; form-action 'none'"
    )
    names = {name for _, attributes in Reader(page).elements for name in attributes}
    assert not {name for name in names if name == "style" or name.startswith("on")}
    assert not names & {"src", "action", "srcset", "data", "poster", "background"}


def test_every_link_stays_in_the_page():
    """A report is opened from anywhere, and leads nowhere else."""
    assert set(re.findall(r'href="([^"]*)"', render_html(EXAMPLE))) == {"#cases"}


def test_the_page_says_what_it_is_of():
    """Share with interval, outcomes, criteria, reasons, labels, judges, groups, rules, cost and time."""
    text = Reader(render_html(EXAMPLE)).text

    for sentence in (
        "59.6 %",
        "of 240 cases passed; 95 % interval 53.3 to 65.6 %.",
        "Support answers (passes at 0.70)",
        "invents nothing",
        "Disagreements",
        "baseline: always pass",
        "delivery",
        "length",
        "$0.2796 known; a part unknown for 232 judgements",
        "All 240 cases.",
    ):
        assert sentence in text


def test_a_run_that_is_not_whole_says_so_first():
    """Figures of a part are not those of the whole: interrupted, sampled, rows left out, names not told apart."""
    manifest = make_manifest_of(900, status="interrupted", options={"sample": 300})
    manifest["dataset"] |= {"skipped": 1}
    items = [make_item(place, group=str(place)) for place in range(210)]
    text = Reader(render_html(report_of(items, manifest))).text

    assert "This run is interrupted: 210 of 300 cases are judged. Every figure is about these alone." in text
    assert "1 row of the data set could not be read and is in no figure." in text
    assert "The cases are a sample of 300, drawn at random from the data set." in text
    assert "There are too many groups to tell apart: 10 mentions of further ones are not shown." in text


def test_a_status_that_is_none_of_ours_is_unknown():
    """It stands in a sentence of ours, so what a manifest says of itself cannot get into it."""
    report = report_of(list_hostile(), make_hostile_manifest() | {"status": f"finished {HOSTILE}"})

    assert report.about.status == "unknown"
    assert "\n> How this run ended is unknown: 3 of 5 cases are judged." in render_markdown(report)


def test_comparisons_say_what_passed_means():
    """The first is preferred; each group has a win rate, and the accuracy of each order."""
    orders = [PairOrder(order=name, result=make_result("passed", value="first", score=1.0)) for name in ("ab", "ba")]
    pair = PairResult(preferred="tie", judge="careful", orders=tuple(orders), decided_by="policy")
    report = report_of([make_item(0, pair, label="first", group="easy")], {"status": "finished"})
    text = Reader(render_html(report)).text

    assert "passed means that the first is preferred" in text
    assert "neither is preferred; decided by policy" in text
    assert "orders agree" in text
    assert "win rate of the first50 % (" in text
    assert "accuracy in order ab100 % (20.7 to 100.0 %; 1 of 1)" in text
    assert "accuracy in order ba0 % (0.0 to 79.3 %; 0 of 1)" in text
    assert "| win rate of the first | 50 % (" in render_markdown(report)


def test_cases_that_are_left_out_are_said():
    """The list says of how many it is."""
    report = report_of([make_item(place) for place in range(12)], {}, most_cases=5)

    assert "5 of 12 cases; the others are in no list here, but in every figure." in Reader(render_html(report)).text


def test_an_empty_run_has_a_page():
    """Nothing was judged: no share, no chart, and no list that a script would fill."""
    page = render_html(report_of([], {}))

    assert "of 0 cases passed." in Reader(page).text
    assert 'id="filter"' not in page


def test_hostile_text_in_markdown_is_code():
    """No heading, link, image, HTML or mention of its own: all of it stands in code spans."""
    tokens = parse(render_markdown(HOSTILE_REPORT))

    assert [token.type for token in tokens if token.type in {"link_open", "image"}] == []
    assert [token.content for token in tokens if token.type == "html_inline"] == ["<sub>", "</sub>"]
    assert {token.content.strip() for token in tokens if token.type == "html_block"} == {
        MARK,
        "<details><summary>More figures</summary>",
        "<details><summary>2 of 2 cases that did not pass</summary>",
        "</details>",
    }
    assert len([token for token in tokens if token.type == "heading_open"]) == 1
    text = " ".join(token.content for token in tokens if token.type == "text")
    assert "@" not in text
    assert "evil" not in text
    assert "#" not in text


def test_a_comment_fits_github():
    """Whatever is asked for, it is shorter than what GitHub takes, and says how many cases it lists."""
    long = make_result("failed", reasoning="``" + "why | " * 2_000)
    items = [make_item(place, long, id=f"{place} {'i' * 300}") for place in range(2_000)]
    text = render_markdown(report_of(items, {}), most_cases=2_000)
    listed = re.search(r"<summary>(\d+) of 2,000 cases that did not pass</summary>", text)

    assert len(text) <= MOST_CHARACTERS
    assert listed is not None
    assert 100 < int(listed[1]) == text.count("| failed |")


def test_a_comment_says_what_was_needed():
    """The heading has the share and what was asked for; without failures there is no list."""
    text = render_markdown(report_of([make_item(0)], {}), needed=0.9)

    assert text.startswith(f"{MARK}\n### 100 % of 1 case passed; 90 % needed\n")
    assert "that did not pass" not in text


def test_a_junit_file_has_every_case():
    """A failure is a failure, an undecided case an error, with score, criteria and reasons."""
    items = list_example(30)
    report = report_of(items, make_manifest_of(30), most_cases=3)
    root = ET.fromstring("".join(render_junit(report, items)))
    tests = list(root.iter("testcase"))

    assert (root.get("tests"), len(tests), tests[4].get("name"), tests[4].get("classname")) == (
        "30", 30, "answer-0004", "delivery",
    )  # fmt: skip
    assert int(root.get("failures", "")) == report.case_outcomes["failed"] == len(list(root.iter("failure")))
    assert int(root.get("errors", "")) == report.case_outcomes["undecided"] == len(list(root.iter("error")))
    failure = next(root.iter("failure"))
    assert failure.get("message") == "failed with 0.55, needs 0.70"
    assert "\npass answers the question: 0.69, needs 0.50; " in (failure.text or "")
    assert "\npolite: 0.38; " in (failure.text or "")  # nothing to reach, so neither pass nor fail


def test_hostile_text_in_junit_is_text():
    """The file is valid XML with the same elements, whatever the names and reasons are."""
    items = [*list_hostile(), make_item(7, make_result("failed", detail="\x00\ud800\ufffe]]>", reasoning="\x1b"))]
    root = ET.fromstring("".join(render_junit(report_of(items, make_hostile_manifest()), items)))

    assert {element.tag for element in root.iter()} == {
        "testsuites", "testsuite", "properties", "property", "testcase", "failure", "error",
    }  # fmt: skip
    assert "<script>alert(1)</script>" in (next(root.iter("testcase")).get("name") or "")
    assert list(root.iter("failure"))[-1].text == "···]]>\n·"


def test_repeats_are_one_test_case():
    """The worst judgement counts, and how many passed is said."""
    items = [make_item(0), make_item(0, make_result("failed"), sample=1)]
    failure = next(ET.fromstring("".join(render_junit(report_of(items, {}), items))).iter("failure"))

    assert (failure.text or "").endswith("1 of 2 judgements passed")


def test_the_json_form_holds_the_figures_and_the_cases():
    """One document with its schema, of plain values; shares have their intervals."""
    data = json.loads(json.dumps(EXAMPLE.to_dict(), allow_nan=False))

    assert (data["schema"], data["cases"], data["cases_shown"], len(data["shown"])) == (
        "adjudge/report/1",
        240,
        240,
        240,
    )
    assert set(data["passed"]) == {"count", "of", "rate", "low", "high"}
    assert data["about"]["rubric"] == "Support answers"
    assert sum(data["scores"]["bins"]) == data["scores"]["count"]
    assert data["shown"][0]["outcome"] == "failed"
    assert data["shown"][0]["results"][0]["criteria"][0]["name"] == "answers the question"
    assert json.loads(json.dumps(HOSTILE_REPORT.to_dict(), allow_nan=False))["shown"]


def test_a_file_may_hold_any_number():
    """A label, a duration and a cost may be NaN; JSON has no form for that, and the report is written all the same."""
    odd = make_result(duration_ms=float("nan"), usage=Usage(cost_usd=float("inf")))
    chain = JudgeChainResult(outcome="passed", judge="c", strategy="majority", results=(odd,), duration_ms=float("inf"))
    items = [make_item(0, chain, label=float("nan")), make_item(1, odd)]
    report = report_of(items, {})
    data = json.loads(json.dumps(report.to_dict(), allow_nan=False))

    assert ({case["label"] for case in data["shown"]}, data["cost"]["known_usd"]) == ({"nan", None}, None)
    assert "all 2 cases" in render_html(report).lower()
    assert [test.get("time") for test in ET.fromstring("".join(render_junit(report, items))).iter("testcase")] == [
        "0.000"
    ] * 2


def test_a_report_without_criteria_scores_or_seats_has_its_panels():
    """A panel that has nothing to say is not there."""
    text = Reader(render_html(report_of([make_item(0, replace(make_result(), score=None))], {}))).text

    assert "Cost and time" in text
    assert not {"Criteria", "Scores", "Groups", "Rules", "Disagreements"} & set(re.findall(r"[A-Z]\w+", text))
