"""A call of a tool looks the same wherever it is shown: on results, labels, runs, and in the report as a file."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adjudge import Case, Judge, Ledger, run
from adjudge.dataset import digest_content
from adjudge.testing import ScriptedModel
from kit.compared_runs import bind, make_manifest
from kit.labels import make_run
from kit.markup import Reader
from kit.reports import HOSTILE, keep_run, make_item
from kit.server import RunningServer, read_fields, run_server
from kit.server_demo import CONFIG, tell_story

pytestmark = pytest.mark.timed


QUOTED = "You will have the money within ten working days"
CALL = {
    "tool": "payments.refund",
    "arguments": {
        "amount": 184.00,
        "reply": f"Dear Ms Lindqvist,\n\n{QUOTED}.",
        "sql": "UPDATE orders\n   SET total = 0  -- all",
        "</dd><script>alert(1)</script>": "<img src=x onerror=alert(1)>\u202e",
    },
}


RUBRIC: dict[str, Any] = {
    "name": "Refunds",
    "criteria": [{"name": "policy", "description": "Says only what the policy says.", "quote": True}],
}

SMALL = {"properties": {"arguments": {"properties": {"amount": {"type": "number", "maximum": 100}}}}}

SAID = {"criteria": [{"name": "policy", "reasoning": "It promises a day.", "quote": QUOTED, "score": 0.2}]}


HOSTILE_CALL = {"tool": HOSTILE, "arguments": {"reply": f"a\n{HOSTILE}\nb", HOSTILE: [HOSTILE, {"x": HOSTILE}]}}


def keep_answers(folder: Path) -> None:
    """Two runs of one data set: a call whose letter changed, one that is written otherwise, and hostile ones."""
    other = CALL | {
        "arguments": CALL["arguments"] | {"reply": f"Dear Ms Lindqvist,\n\n{QUOTED.replace('ten', 'two')}."}
    }
    was = (CALL, json.dumps(CALL), {"tool": "x", "arguments": {"reply": "a\nx\nb"}}, HOSTILE_CALL)
    now = (other, json.dumps(CALL, indent=1), HOSTILE_CALL, {"a": "x"})
    for day, (name, contents) in enumerate({"was": was, "now": now}.items(), 1):
        items = [make_item(place, content=content) for place, content in enumerate(contents)]
        keep_run(folder / name, bind(items), make_manifest(day, len(items))).close()


@pytest.fixture(scope="module", name="server")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder: Path = tmp_path_factory.mktemp("server")
    (folder / "runs").mkdir()
    make_run(folder / "runs" / "monday", [Case(id="x", content=CALL)])
    rule = {"name": "json_schema", "schema": SMALL, "severity": "warning"}
    judge = Judge(ScriptedModel(SAID))
    run([Case(id="x", content=CALL)], judge, RUBRIC, rules=[rule], out=folder / "runs" / "quoted").finish_sync()
    keep_answers(folder / "runs")
    asyncio.run(tell_story(folder, content=json.dumps(CALL, ensure_ascii=False, indent=2)))
    with run_server(folder, config=CONFIG) as running:
        running.add_account("Ana")
        yield running


@pytest.fixture(scope="module", name="ana")
def sign_in_ana(server: RunningServer) -> Any:
    return server.sign_in("Ana")


def find_result(server: RunningServer) -> str:
    found = server.open_client(key=server.make_key("read")).get("/v1/results?when=all&gate=refunds").json()["results"]
    return f"/results/{found[0]['seq']}"


def read_call(page: str) -> str:
    """The HTML of the first call on a page; it ends with what is no part of it."""
    found = re.search(r'<div class="content tool-call".*?<dl class="call">.*?</dl>', page, re.DOTALL)
    assert found is not None, page
    return found[0]


def read_part(page: str, begin: str, end: str) -> str:
    """What stands between two texts of a page."""
    return page.partition(begin)[2].partition(end)[0]


def join_words(page: str) -> str:
    return " ".join(Reader(page).text.split())


def list_pages(server: RunningServer) -> dict[str, str]:
    return {
        "result": find_result(server),
        "label": "/labels/monday",
        "case": "/runs/monday/case?id=x",
        "case that a judge quoted": "/runs/quoted/case?id=x",
        "run": "/runs/monday",
        "report": "/runs/monday/report.html",
    }


@pytest.mark.parametrize("name", ["result", "label", "case", "case that a judge quoted", "run", "report"])
def test_a_call_has_a_row_for_each_argument_on_every_page(server: RunningServer, ana: Any, name: str):
    """With the line breaks that it will have, code in numbered lines, and nothing of it as HTML."""
    shown = read_call(ana.get(list_pages(server)[name]).text)
    page = Reader(shown)

    assert "payments.refund" in page.text
    assert "4 arguments; SQL, 2 lines" in page.text
    assert [tag for tag, _ in page.elements].count("dt") == 4
    assert "Dear Ms Lindqvist,\n\nYou will have" in page.text
    assert shown.count('<span class="at"></span>') == 2
    assert "<script>alert(1)</script>" in page.text
    assert {tag for tag, _ in page.elements} & {"script", "img"} == set()
    assert "\\n" not in page.text


def test_a_quotation_is_marked_in_the_argument_of_a_result(server: RunningServer, ana: Any):
    """The judge's criterion leads to it; its JSON is there too, folded."""
    page = ana.get(find_result(server)).text

    assert f'<mark id="e1">{QUOTED}' in read_call(page)
    assert 'href="#e1"' in page
    assert page.count('id="e1"') == 1
    assert "As JSON" in page
    assert '<h1 dir="auto">payments.refund</h1>' in page
    assert "Not in the content, though quoted: which you surely understand, not in there" in join_words(page)


def test_on_a_result_a_finding_stands_in_its_argument(server: RunningServer, ana: Any):
    """Beside the value that it is about, and beside no other."""

    async def judge(_: Ledger) -> int:
        async with Ledger(server.ledger_url, store_content="full") as ledger:
            rule = {"name": "json_schema", "schema": SMALL, "severity": "warning"}
            result = await Judge(ScriptedModel(SAID)).evaluate(CALL, RUBRIC, rules=[rule])
            return await ledger.append(result, content=json.dumps(CALL))

    shown = read_call(ana.get(f"/results/{server.change(judge)}").text)

    assert shown.count("rule json_schema") == 1
    assert "rule json_schema" in read_part(shown, ">amount<", '<div class="row')


def test_on_the_page_of_a_case_a_quotation_and_a_finding_stand_in_their_arguments(server: RunningServer, ana: Any):
    """The judge's criterion leads to its quotation; what a rule found is beside the value that it is about."""
    page = ana.get(list_pages(server)["case that a judge quoted"]).text
    amount, reply = (read_part(read_call(page), f">{name}<", '<div class="row') for name in ("amount", "reply"))

    assert "rule json_schema" in amount
    assert "184.0 is greater than the maximum of 100" in Reader(amount).text
    assert f'<mark id="e1">{QUOTED}' in reply
    assert "rule json_schema" not in reply
    assert 'href="#e1"' in page
    assert page.count('id="e1"') == 1


@pytest.mark.parametrize("name", ["label", "case", "case that a judge quoted"])
def test_the_json_of_a_call_and_its_digest_are_beside_it(server: RunningServer, ana: Any, name: str):
    """The digest of what was judged, by which the ledger and the labels name it."""
    page = ana.get(list_pages(server)[name]).text

    assert "As JSON, " in page
    assert f'<code class="digest">sha256:{digest_content(CALL)}</code>' in page


def read_difference(page: str) -> str:
    return read_part(page, '<h2 id="answers">', "</section>")


def test_two_answers_that_are_calls_are_compared_line_by_line(ana: Any):
    """Below the name of the argument, with the line breaks that it has."""
    part = read_difference(ana.get("/runs/now/case?id=case-0&beside=was").text)

    assert re.findall(r"<del>(.*?)</del>|<ins>(.*?)</ins>", part) == [("ten", ""), ("", "two")]
    assert re.findall(r"<b>(.*?)</b>", part) == ["arguments › reply"]
    assert '<li><span dir="auto">Dear Ms Lindqvist,</span></li>' in part
    assert "\\n" not in part
    assert "Lines with − are in a: was, and lines with + in b: now." in join_words(part)


def test_answers_that_are_written_otherwise_are_said_to_hold_the_same(ana: Any):
    """Two texts of JSON whose values are equal are two answers all the same."""
    part = read_difference(ana.get("/runs/now/case?id=case-1&beside=was").text)

    assert "All values are the same. The JSON is written otherwise" in part
    assert "All values are the same" not in ana.get("/runs/now/case?id=case-0&beside=was").text


@pytest.mark.parametrize("case", ["case-2", "case-3"])
def test_nothing_in_two_compared_calls_becomes_html(ana: Any, case: str):
    """Nor turns the direction of the text, whichever of the two it is in."""
    part = read_difference(ana.get(f"/runs/now/case?id={case}&beside=was").text)

    assert '<ul class="diff"' in part
    assert {tag.strip("/") for tag, _ in Reader(part).elements} <= {
        "section", "h2", "nav", "a", "p", "bdi", "ul", "li", "span", "b", "del", "ins",
    }  # fmt: skip
    assert "<script>alert(1)</script>" in Reader(part).text
    assert not re.search("[\x1b\u202e\u2066]", part)


@pytest.mark.parametrize("name", ["run", "report"])
def test_in_runs_and_reports_a_call_has_its_digest(server: RunningServer, ana: Any, name: str):
    """By which its labels and the ledger are found; its JSON would double the file."""
    page = ana.get(list_pages(server)[name]).text

    assert f'<code class="digest">sha256:{digest_content(CALL)}</code>' in page
    assert "As JSON, " not in page


def test_of_a_call_it_is_asked_whether_it_should_have_run(server: RunningServer, ana: Any):
    """With yes and no, which are the labels good and bad; of anything else, and of a criterion, whether it is good."""
    page = ana.get("/labels/monday").text
    assert "<h1>Should this have run?</h1>" in page
    assert re.search(r'<button class="btn say-yes" name="label" value="good".*?</svg>Yes <kbd>1</kbd>', page)
    assert re.search(r'<button class="btn say-no" name="label" value="bad".*?</svg>No <kbd>2</kbd>', page)

    fields = read_fields(ana, page)
    assert ana.post("/labels/monday", data=fields | {"label": "bad"}).status_code == 303
    assert "Case x: no" in join_words(ana.get("/labels/monday").text)
    assert "Ana bad" in join_words(ana.get("/runs/monday/case?id=x").text)
