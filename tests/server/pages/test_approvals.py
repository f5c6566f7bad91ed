"""The page Approvals, over HTTP and without scripts: what it shows, what it takes, and what it refuses."""

from __future__ import annotations

import html
import json
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

import pytest

from adjudge import Approvals, Gate, Ledger, Rule
from adjudge.dataset import digest_content
from kit.approval_pages import (
    CONFIG,
    CONTENT,
    POLICY,
    REASON,
    decide,
    find_form,
    find_link,
    list_kinds,
    list_queue,
    make_request,
    read_approval,
    send,
)
from kit.approvals import make_result
from kit.cli import Line
from kit.markup import Reader
from kit.patience import wait_for
from kit.server import RunningServer, approve, find_token, read_fields, run_server

pytestmark = pytest.mark.timed


@pytest.fixture(scope="module", name="server")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with run_server(tmp_path_factory.mktemp("server"), config=CONFIG) as running:
        running.add_account("Ana")
        running.add_account("Ben", "approve")
        running.add_account("Zoe", "approve", "read", approver=None)
        running.add_account("Kim", "approve", gates=["others"])
        running.add_account("Ray", "read")
        yield running


@pytest.fixture(scope="module", name="ana")
def sign_in_ana(server: RunningServer) -> Any:
    return server.sign_in("Ana")


@pytest.fixture(scope="module", name="ben")
def sign_in_ben(server: RunningServer) -> Any:
    return server.sign_in("Ben")


def read(client: Any, ident: str, **params: Any) -> str:
    answer = client.get(f"/approvals/{ident}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.text


def read_part(page: str, begin: str, end: str) -> str:
    """The text of a part of a page, from one piece of HTML to another, in one line."""
    part = page.partition(begin)[2].partition(end)[0]
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", part)).split())


# ---------------------------------------------------------------- what it shows


def test_a_request_is_shown_with_all_that_is_needed_to_decide_it(server: RunningServer, ana: Any):
    """What will happen and its digest, the judge's reason, the content with its evidence, people, time left."""
    ident = make_request(server, required=2)
    approval = read_approval(server, ident)
    page = read(ana, ident)

    for text in (approval.subject, "failed with 0.30, needs 0.70", html.escape(REASON), "Ana (you)", "Ben", "59 min"):
        assert text in page
    assert '<mark id="e1">24 hours<a class="ref"' in page
    assert "0 of 2 approvals" in page
    assert "Nothing like this was approved before" in page


def test_what_can_be_approved_shows_its_evidence_and_asks_for_a_reason(server: RunningServer, ana: Any):
    """A quotation leads to its place in the content, and nobody has decided yet."""
    page = read(ana, make_request(server))
    button = re.search(r'<button class="btn say-yes".*?>', page)

    assert '<q dir="auto">24 hours</q> <a class="ref" href="#e1">' in page
    assert button is not None
    assert "disabled" not in button[0]
    assert 'id="missing"' not in page
    assert re.search(r'<textarea id="reason"[^>]* required', page)
    assert read_part(page, '<ul class="votes">', "</ul>") == "Ana (you) not yet Ben not yet"


def test_a_json_object_is_shown_as_its_members_exactly(server: RunningServer, ana: Any):
    """Numbers as they are written, nested values, and a name that is there twice."""
    content = '{"amount": 184.00, "to": {"card": 3304.0, "of": [1e3]}, "amount": 9999}'
    page = read(ana, make_request(server, content, quote=""))
    shown = read_part(page, '<dl class="call">', '<p class="small quiet section')

    twice = "this name stands twice : programs take the first or the last"
    assert shown == f"amount 184.00 {twice} to card 3304.0 of [1e3] amount 9999 {twice}"


CALL_ARGUMENTS = {"to": "DE00 1234", "reply": "You will have\nthe money within 24 hours."}


def ask_about_call(server: RunningServer, arguments: Any, **options: Any) -> str:
    """A request about a call of a tool, as a gate makes it."""
    return make_request(server, {"tool": "payments.refund", "arguments": arguments}, **options)


def test_a_call_is_shown_once_with_a_row_for_each_argument(server: RunningServer, ana: Any):
    """The text in it has its line breaks and the quotation; there is no second copy of the content below."""
    page = read(ana, ask_about_call(server, CALL_ARGUMENTS))
    shown = read_part(page, '<dl class="call">', "</dl>")

    assert shown == "to DE00 1234 reply You will have the money within 24 hours quotation 1 ."
    assert page.partition('<h2 id="what">')[2].count("DE00 1234") == 1
    assert '<mark id="e1">24 hours<a class="ref"' in page
    assert 'id="content"' not in page


def test_the_title_of_a_call_without_one_is_its_tool_and_how_its_arguments_begin(server: RunningServer, ana: Any):
    """Not how its JSON begins, which is the same for every call."""
    page = read(ana, ask_about_call(server, {"to": "Ben"}))

    assert '<h1 class="exact" dir="auto">payments.refund: &#34;to&#34;: &#34;Ben&#34;</h1>' in page
    assert '<h1 class="exact" dir="auto">payments.refund</h1>' in read(ana, ask_about_call(server, {}, quote=""))


@pytest.mark.parametrize("picture", ["\U0001f469\u200d\U0001f4bb", "\U0001f469\U0001f3fd\u200d\U0001f4bb"])
def test_a_picture_of_several_characters_is_whole_in_a_title(server: RunningServer, ana: Any, picture: str):
    """A woman at a computer is joined by a character that nobody sees, which elsewhere is named and not shown."""
    title = f"Ask {picture} to pay"
    ident = make_request(server, metadata={"title": title})
    titles = (f'<b class="exact" dir="auto">{title}</b>', f"<h1[^>]*>{title}</h1>")

    assert title in ana.get("/approvals").text
    assert re.search(titles[1], read(ana, ident))
    assert title in ana.get("/results").text
    assert re.search(titles[1], ana.get(f"/results/{ident}").text)


def test_what_a_rule_found_stands_beside_its_argument(server: RunningServer, ana: Any):
    """Of the command, of a text with a secret in it, and of a value that does not fit; the rules are listed as well."""
    schema = {"properties": {"timeout": {"maximum": 60}}}
    rules = [
        {"name": "commands", "never": "rm", "severity": "warning"},
        {"name": "secrets", "severity": "warning"},
        {"name": "arguments", "tool": "Bash", "schema": schema, "severity": "warning"},
    ]
    arguments = {"command": "rm -rf x", "env": {"KEY": f"AKIA{'Q7' * 8}"}, "timeout": 600}
    ident = make_request(server, {"tool": "Bash", "arguments": arguments}, quote="", rules=rules)
    shown = read_part(read(ana, ident), '<dl class="call">', '<p class="small quiet section')

    assert 'rule commands : ran "rm -rf x", which holds a command that may never be run' in shown
    assert "rule secrets" in shown.partition("KEY")[2].partition("timeout")[0]
    assert "600 is greater than the maximum of 60" in shown.partition("timeout 600")[2]
    hidden = server.sign_in("Ana")
    hidden.cookies.set("judge", "hide")
    assert "rule commands" not in read(hidden, ident)


def test_what_a_rule_found_in_a_whole_call_stands_beside_its_argument(server: RunningServer, ana: Any):
    """Of a schema of all of the JSON, of a pattern and of a text that must not be there, also where it is escaped."""
    schema = {"properties": {"arguments": {"properties": {"refund": {"properties": {"amount": {"maximum": 500}}}}}}}
    rules = [
        {"name": "json_schema", "schema": schema, "severity": "warning"},
        {"name": "regex", "pattern": "DE[0-9]{2}", "absent": True, "severity": "warning"},
        {"name": "not_contains", "text": "24\nhours", "severity": "warning"},
    ]
    arguments = {"refund": {"order": "A-1", "amount": 900}, "to": "DE00 1234", "reply": "Within 24\nhours."}
    ident = ask_about_call(server, arguments, quote="", rules=rules)
    shown = read_part(read(ana, ident), '<dl class="call">', '<p class="small quiet section')
    refund, to, reply = re.split(r" (?=to DE00|reply Within)", shown)

    assert "rule json_schema" in refund
    assert "900 is greater than the maximum of 500 in amount" in refund
    assert "rule regex" in to
    assert "rule not_contains" in reply
    assert (shown.count("rule json_schema"), shown.count("rule regex"), shown.count("rule not_contains")) == (1, 1, 1)


def read_bytes_line(page: str) -> str:
    """The line below a content that is about its exact bytes."""
    return page.partition('exact-bytes">')[2].partition("</p>")[0]


def test_a_call_is_shown_as_json_too(server: RunningServer, ana: Any):
    """Letter for letter, with the quotation, and with the way back to its rows; it can be approved there as well."""
    ident = ask_about_call(server, CALL_ARGUMENTS)
    page = read(ana, ident, json="true")
    digest = digest_content({"tool": "payments.refund", "arguments": CALL_ARGUMENTS})

    for path, words, shown in (("?json=true", "as JSON", read(ana, ident)), ("", "as rows", page)):
        assert re.search(rf'formaction="/approvals/{ident}{re.escape(path)}"[^>]*>{words}</button>', shown)
        assert f'<code class="digest">sha256:{digest}</code>' in read_bytes_line(shown)
    assert r"You will have\nthe money within" in html.unescape(page)
    assert '<mark id="e1">24 hours' in page
    assert send(ana, ident, "approve", "read it", params={"json": "true"}).status_code == 303


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"records": [{"id": number, "to": "x"} for number in range(40)]}, "Not shown yet: 30 records of records."),
        ({"body": "x y " * 6_000, "to": "ben"}, "Not shown yet: 4,000 characters of body."),
        ({"bytes_base64": "JVBERi0xLjcK" * 100}, "Not shown yet: 900 bytes of bytes_base64."),
    ],
    ids=["records", "text", "bytes"],
)
def test_a_call_is_approved_only_where_all_of_it_is_shown(
    server: RunningServer, ana: Any, arguments: dict[str, Any], said: str
):
    """What is not shown is named, and the server refuses; with all of it on the page it can be approved."""
    ident = ask_about_call(server, arguments, quote="")
    page = read(ana, ident)
    button = re.search(r'<button class="btn say-yes".*?>', page)
    assert button is not None
    assert "disabled" in button[0]
    assert said in page
    assert 'name="seen"' not in page
    assert send(ana, ident, "approve", "I insist").status_code == 422
    assert send(ana, ident, "approve", "I insist", seen="0" * 64).status_code in (409, 422)

    assert "Not shown yet" not in read(ana, ident, whole="true")
    assert send(ana, ident, "approve", "read all of it", params={"whole": "true"}).status_code == 303


def test_the_queue_begins_with_what_expires_next(tmp_path: Path):
    """And opens the first that one can decide."""
    with run_server(tmp_path, config=CONFIG) as server:
        server.add_account("Ana", "approve", "read")
        ana = server.sign_in("Ana")
        assert "Nothing waits for approval" in ana.get("/approvals").text

        late, soon = make_request(server, expires_in=900), make_request(server, expires_in=60)
        other = make_request(server, approvers=["Ben"], expires_in=30)
        never = make_request(server, expires_in=None)
        page = ana.get("/approvals").text

        assert list_queue(page) == [other, soon, late, never]
        assert f'<a class="item" href="/approvals/{soon}" aria-current="true">' in page
        assert "4 wait, 3 of them for you" in page
        assert (find_link(page, "k"), find_link(page, "j")) == (other, late)
        assert "Request <b>2</b> of 4, 3 for you" in page
        assert '<span class="count held" data-waits="/approvals"><b>3</b>' in page


@pytest.mark.slow
def test_a_long_queue_is_shown_in_parts(tmp_path: Path):
    """At most 50 requests, with the one that is open among them, how many there are, and the way to the others."""
    with run_server(tmp_path, config=CONFIG) as server:
        server.add_account("Ana", "approve", "read")
        ana = server.sign_in("Ana")
        made = server.change(lambda ledger: fill_queue(ledger, 120))
        pages = [ana.get(f"/approvals/{ident}").text for ident in (made[0], made[50], made[-1])]
        first, second, last = pages

        assert [list_queue(page) for page in pages] == [made[:50], made[50:100], made[100:]]
        assert "120 wait, 120 of them for you" in first
        for page, part, position in zip(pages, ("1 to 50", "51 to 100", "101 to 120"), (1, 51, 120), strict=True):
            assert f"{part} of 120." in page
            assert f"Request <b>{position}</b> of 120" in page
        for page, ident in ((first, made[50]), (second, made[100])):
            assert f'<a href="/approvals/{ident}">Those after</a>' in page
        for page, ident in ((second, made[0]), (last, made[50])):
            assert f'<a href="/approvals/{ident}">Those before</a>' in page
        assert ("Those before" in first, "Those after" in last) == (False, False)
        assert find_link(second, "k") == made[49]
        assert "120 wait for a person" in ana.get("/").text
        listed = server.open_client(key=server.make_key("read")).get("/v1/approvals?limit=2").json()
        assert ([item["id"] for item in listed["approvals"]], listed["total"]) == (made[:2], 120)


@pytest.mark.slow
def test_more_than_a_hundred_are_denied_in_parts(tmp_path: Path):
    """The form has as many as it takes, and says how many more there are."""
    with run_server(tmp_path, config=CONFIG) as server:
        server.add_account("Ana", "approve")
        ana = server.sign_in("Ana")
        server.change(lambda ledger: fill_queue(ledger, 103))

        page = ana.get("/approvals/deny").text
        assert page.count('name="ids"') == 100
        assert "3 more wait for you" in page


async def fill_queue(ledger: Ledger, number: int) -> list[str]:
    """The ids of so many requests of a program, the next to expire first."""
    async with Approvals(ledger) as approvals:
        return [
            await approvals.request(make_result(), "Publish it?", approvers=["Ana"], expires_in=3_600)
            for _ in range(number)
        ]


def test_a_quotation_that_is_not_in_the_content_is_said_to_be_missing(server: RunningServer, ana: Any):
    """The judge's check of quotations allows other blanks; a mark would point at what is not there."""
    page = read(ana, make_request(server, "You will  have it within 24\nhours.", quote="within 24 hours"))

    assert "not in the content" in page
    assert "<mark" not in page


def test_rules_that_did_not_pass_come_first(server: RunningServer, ana: Any):
    """A gate's own rules are shown with what they found."""
    rules = [
        {"name": "length", "max": 1_000},
        {"name": "length", "max": 3, "severity": "warning"},
        {"regex": "money", "absent": True, "severity": "info"},
    ]
    shown = read_part(read(ana, make_request(server, rules=rules)), '<h2 id="rules">', "</table>")

    assert re.findall(r"\b(failed|warning|info|passed) (?:length|regex)", shown) == ["warning", "info", "passed"]


def test_the_difference_to_what_was_approved_before_is_shown(server: RunningServer, ana: Any):
    """Of the last one of the same gate: changed words, and who approved it."""
    first = make_request(server, "Hello.\nYou will have the money in 10 days.", quote="", gate="diff")
    decide(server, first, "Ben", True)
    page = read(ana, make_request(server, "Hello.\nYou will have the money in 2 days.", quote="", gate="diff"))

    assert "<del>10</del>" in page
    assert "<ins>2</ins>" in page
    assert "by Ben" in page


def test_characters_that_cannot_be_seen_are_counted(server: RunningServer, ana: Any):
    """What a reader cannot see would be approved all the same; the exact bytes are a file."""
    content = "pay 10\u200b\u202e0 EUR"
    ident = make_request(server, content, quote="")

    assert "2 characters cannot be seen" in read(ana, ident)
    answer = ana.get(f"/approvals/{ident}/content")
    assert answer.content == content.encode()
    assert "attachment" in answer.headers["content-disposition"]


HOSTILE = "</textarea></div><script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{7*7}}\u202e\x1b[31m"


def test_nothing_of_what_was_judged_becomes_html(server: RunningServer, ana: Any):
    """Content, quotations, reasons, names and metadata are text, whoever wrote them."""
    metadata = {"title": HOSTILE, "agent": HOSTILE, "tool": HOSTILE}
    ident = make_request(
        server, f"{HOSTILE} refund", quote=HOSTILE, reason=HOSTILE, metadata=metadata, judge="<b>j</b>"
    )
    client = server.sign_in("Ben")
    send(client, ident, "comment", HOSTILE)
    send(client, ident, "deny", HOSTILE)
    hostile_call = {HOSTILE: HOSTILE, "b": [HOSTILE], "markdown": f"# {HOSTILE}", "patch": HOSTILE, "command": HOSTILE}
    call = ask_about_call(server, hostile_call, quote=HOSTILE, metadata=metadata)
    paths = [f"/approvals/{name}{rest}" for name in (ident, call) for rest in ("", "?whole=true", "?json=true")]
    for path in (*paths, "/approvals", "/approvals/deny"):
        page = ana.get(path).text
        assert "<script>alert" not in page
        assert "<img" not in page
        assert "<b>j" not in page
        assert "\x1b" not in page
        assert "\u202e" not in page


# ---------------------------------------------------------------- against the last one approved


def compare_two(server: RunningServer, ana: Any, gate: str, *contents: Any) -> str:
    """The part of a request's page that compares it with the one before, which somebody approved."""
    ids = []
    for content in contents:
        ids.append(make_request(server, content, quote="", gate=gate))
        decide(server, ids[-1], "Ben", True)
    return read(ana, ids[-1]).partition('<h2 id="diff">')[2].partition("</section>")[0]


def test_a_letter_in_a_call_is_compared_line_by_line(server: RunningServer, ana: Any):
    """Below the name of its argument; the words that changed are marked, and the lines around them are lines too."""
    was, now = (f"Dear Ada,\n\nyou get it within {days} days.\nBen" for days in ("ten", "two"))
    calls = ({"tool": "mail.send", "arguments": {"to": "Ada", "reply": reply}} for reply in (was, now))
    part = compare_two(server, ana, "letters", *calls)

    assert re.findall(r"<del>(.*?)</del>|<ins>(.*?)</ins>", part) == [("ten", ""), ("", "two")]
    assert re.findall(r"<b>(.*?)</b>", part) == ["arguments › reply"]
    assert "\\n" not in part
    assert '<li><span dir="auto">Dear Ada,</span></li>' in part


def test_json_that_is_written_otherwise_is_said_to_hold_the_same(server: RunningServer, ana: Any):
    """It is not exactly the same, and nobody has to look for the value that changed."""
    texts = ('{"to": "Ada", "amount": 184.00}', '{"amount": 184.00,\n"to": "Ad\\u0061"}')
    part = compare_two(server, ana, "written", *texts)
    other = compare_two(server, ana, "written", texts[0], texts[0].replace("184.00", "184.0"))

    assert "All values are the same. The JSON is written otherwise" in part
    assert '<li class="plus">' in part
    assert "exactly the same" not in part
    assert "All values are the same" not in other
    assert re.findall(r"<del>(.*?)</del>", other) == ["00"]
    assert "exactly the same" in compare_two(server, ana, "written", texts[0], texts[0])


def test_nothing_that_is_compared_becomes_html(server: RunningServer, ana: Any):
    """Names, values and half characters of both contents, whichever of them is hostile."""
    hostile, plain = ({"reply": f"a\n{text}\nb", text: [text, {"x": text}]} for text in (HOSTILE, "x"))
    half = '{"reply": "a \\ud800", "\\ud800": 1}'
    for contents in ((plain, hostile), (hostile, plain), (json.dumps(plain), half), (HOSTILE, f"x {HOSTILE}")):
        part = compare_two(server, ana, "hostile", *contents)
        assert '<ul class="diff"' in part
        assert {tag.strip("/") for tag, _ in Reader(part).elements} <= {
            "section", "h2", "span", "a", "time", "ul", "li", "b", "del", "ins", "p",
        }  # fmt: skip
        assert not re.search("[\x1b\u202e\ud800]", part)


# ---------------------------------------------------------------- deciding


def test_the_result_shows_what_people_were_shown_only_if_that_is_what_was_judged(server: RunningServer, ana: Any):
    """By the digest in the ledger: the text beside it can be changed by somebody who can write to the database."""
    ident = make_request(server, "You will have the money within 24 hours, Zoe.")
    page = ana.get(f"/results/{ident}").text
    assert "Zoe." in page

    with closing(sqlite3.connect(server.folder / "adjudge.db")) as database, database:
        database.execute("UPDATE adjudge_approvals SET body = replace(body, 'Zoe.', 'Kim.')")
    page = ana.get(f"/results/{ident}").text
    assert "Zoe." not in page
    assert "Kim." not in page
    assert "The content is not here" in page


def test_an_approval_can_be_undone_and_counts_afterwards(server: RunningServer, ana: Any):
    """The vote is pending at first; the page that follows offers to take it back."""
    ident = make_request(server)
    answer = send(ana, ident, "approve", "The policy changed today.")
    assert answer.status_code == 303
    page = ana.get(answer.headers["location"]).text
    assert f'action="/approvals/{ident}/undo"' in page

    approval = read_approval(server, ident)
    assert (approval.status, [vote.by for vote in approval.pending_votes]) == ("open", ["Ana"])
    final_at = approval.pending_votes[0].final_at
    assert f"{final_at:%H:%M:%S} UTC</time>; until then you can undo it." in read(ana, ident)
    assert re.search(
        r'<div id="offers" hx-get="/approvals/[^"]+" hx-trigger="every \d+s" hx-select="#desk"', read(ana, ident)
    )

    answer = ana.post(f"/approvals/{ident}/undo", data={"csrf_token": find_token(ana, "/approvals")})
    assert (answer.status_code, answer.headers["location"]) == (303, f"/approvals/{ident}?undone=true")
    assert read_approval(server, ident).pending_votes == ()
    assert f'action="/approvals/{ident}/undo"' not in read(ana, ident)
    assert list_kinds(server, ident) == ["requested", "vote_pending", "vote_withdrawn"]


def test_requests_of_one_title_differ_by_when_they_were_asked(server: RunningServer, ana: Any):
    """And one that never expires has no time left to speak of."""
    ids = [make_request(server, expires_in=None) for _ in range(2)]
    page = read(ana, ids[0])
    for ident in ids:
        item = re.search(rf'<a class="item" href="/approvals/{ident}".*?</a>', page, re.DOTALL)
        assert item is not None
        assert f"{read_approval(server, ident).created_at:%H:%M:%S}" in item[0]
    assert "no end left" not in page


def test_after_a_decision_comes_the_next_request_of_the_queue(server: RunningServer, ana: Any):
    """Not the first one again, which a reviewer may have left for later; and what they decided says so in the queue."""
    ids = [make_request(server, expires_in=60 + number) for number in range(3)]
    _, second, third = ids
    try:
        assert send(ana, second, "deny").headers["location"] == f"/approvals/{third}"
        queue = re.search(rf'<a class="item" href="/approvals/{second}".*?</a>', read(ana, third), re.DOTALL)
        assert queue is not None
        assert "you denied" in queue[0]
        following = send(ana, third, "deny").headers["location"].rpartition("/")[2]
        assert following not in {second, third}
        assert read_approval(server, following).status == "open"
    finally:
        for ident in ids:
            decide(server, ident, "Ben", False)


def test_decisions_that_can_be_undone_leave_room_for_the_next_request(server: RunningServer, ana: Any):
    """The last one is a message; those before it are folded away, each with its own button."""
    ids = [make_request(server) for _ in range(3)]
    for ident in ids:
        send(ana, ident, "deny")
    page = read(ana, make_request(server))
    folded = re.search(r'<details class="earlier">.*?</details>', page, re.DOTALL)

    assert page.count('class="toast"') == 1
    assert folded is not None
    assert f'action="/approvals/{ids[2]}/undo"' in page.replace(folded[0], "")
    for ident in ids[:2]:
        assert f'action="/approvals/{ident}/undo"' in folded[0]


def test_a_score_with_nothing_to_reach_has_no_mark(server: RunningServer, ana: Any):
    """A tick beside it would be read as praise."""
    page = read(ana, make_request(server))
    free = {name: value for name, value in POLICY.items() if name != "threshold"}
    bare = read(ana, make_request(server, rubric={"name": "Replies", "criteria": [free]}))

    assert 'class="n last"><span class="state failed">' in page
    assert 'class="n last"><span class="n">0.30</span>' in bare


def test_what_rules_alone_held_back_names_no_judge(server: RunningServer, ana: Any):
    """There is none to override, or to hide."""

    async def hold(ledger: Ledger) -> str:
        rule = Rule(name="small", evaluate=lambda text: len(str(text)) < 5)
        options: dict[str, Any] = {"on_rule": "ask", "ask": {"approvers": ["Ana"]}, "wait": False, "show_content": True}
        async with Approvals(ledger) as approvals:
            gate = Gate("refunds", rules=[rule], approvals=approvals, ledger=ledger, **options)
            return (await gate.check("a large refund")).approval_id or ""

    ident = server.change(hold)
    page = read(ana, ident)
    answer = send(ana, ident, "approve", " ")

    assert "Hide the rules until I decide" in page
    assert "Approving overrides the rules." in page
    assert "(needed to approve)" in page
    assert "Judge rules" not in page
    assert "overrides the judge" not in page
    assert (answer.status_code, "overrides the rules, which did not pass it" in answer.text) == (422, True)


def test_undoing_too_late_says_so(server: RunningServer, ana: Any):
    """The vote counts, and the page says that the gate may know."""
    ident = make_request(server)
    decide(server, ident, "Ana", True)
    answer = ana.post(f"/approvals/{ident}/undo", data={"csrf_token": find_token(ana, "/approvals")})

    assert answer.status_code == 409
    assert "too late to undo" in answer.text


def test_a_reason_is_needed_to_override_the_judge_and_never_to_deny(server: RunningServer, ana: Any):
    """What was typed is kept."""
    ident = make_request(server)
    answer = send(ana, ident, "approve", "  ")
    assert (answer.status_code, "overrides the judge" in answer.text) == (422, True)
    assert read_approval(server, ident).pending_votes == ()

    assert send(ana, ident, "deny").status_code == 303
    assert [vote.approved for vote in read_approval(server, ident).pending_votes] == [False]


def test_who_was_first_is_said_and_nothing_is_recorded(server: RunningServer, ana: Any):
    """409, with what one typed."""
    ident = make_request(server)
    page = ana.get(f"/approvals/{ident}").text
    fields = read_fields(ana, find_form(page))
    decide(server, ident, "Ben", False)
    answer = ana.post(f"/approvals/{ident}/decide", data=fields | {"vote": "approve", "reason": "my long reason"})

    assert answer.status_code == 409
    for text in ("Somebody decided this first. Your vote was not recorded.", "Ben denied it", "my long reason"):
        assert text in answer.text
    assert find_form(answer.text).count("vote") == 0
    assert len(read_approval(server, ident).votes) == 1


def test_two_tabs_of_one_person_are_one_vote(server: RunningServer, ana: Any):
    """The second says so, and records nothing."""
    ident = make_request(server, required=2)
    page = ana.get(f"/approvals/{ident}").text
    fields = read_fields(ana, find_form(page))
    answers = [
        ana.post(f"/approvals/{ident}/decide", data=fields | {"vote": "approve", "reason": "yes"}) for _ in range(2)
    ]

    assert [answer.status_code for answer in answers] == [303, 409]
    assert "another tab" in answers[1].text
    assert len(read_approval(server, ident).pending_votes) == 1


@pytest.mark.parametrize(
    ("options", "more", "message"),
    [
        ({"show_content": False}, {}, "The content is not kept"),
        ({"content": "x " * 15_000, "quote": ""}, {}, "Not shown yet: 10,000 of 30,000 characters."),
    ],
    ids=["not kept", "cut off"],
)
def test_what_is_not_shown_in_full_can_be_denied_only(
    server: RunningServer, ana: Any, options: dict[str, Any], more: dict[str, Any], message: str
):
    """The button is off with the reason beside it, and the server refuses it too."""
    content = options.pop("content", CONTENT)
    ident = make_request(server, content, **options)
    page = read(ana, ident)
    button = re.search(r'<button class="btn say-yes".*?>', page)
    assert button is not None
    assert "disabled" in button[0]
    assert 'aria-describedby="not-yet"' in button[0]
    assert message in page
    assert 'name="seen"' not in page

    assert send(ana, ident, "approve", "I insist").status_code == 422
    assert send(ana, ident, "approve", "I insist", seen="0" * 64).status_code in (409, 422)
    assert read_approval(server, ident).pending_votes == ()
    assert send(ana, ident, "deny").status_code == 303


def test_a_long_content_can_be_approved_once_all_of_it_is_shown(server: RunningServer, ana: Any):
    """The rest is a link away."""
    ident = make_request(server, "x " * 15_000, quote="")
    assert "shown in full, 30,000 characters" in read(ana, ident, whole="true")

    assert send(ana, ident, "approve", "read all of it", params={"whole": "true"}).status_code == 303


def test_a_comment_decides_nothing(server: RunningServer, ana: Any, ben: Any):
    """The others read it."""
    ident = make_request(server)
    assert send(ana, ident, "comment", "Is that the new policy?").status_code == 303
    assert send(ana, ident, "comment", " ").status_code == 422

    assert "Is that the new policy?" in read(ben, ident)
    assert list_kinds(server, ident) == ["requested", "commented"]


CALL = {"call": {"tool": "mail", "run_id": "session-7"}}


def test_who_denies_an_agents_call_can_leave_a_line_for_it(tmp_path: Path):
    """The other approvers read it, as text; a mistake is said, and what was typed stays."""
    with run_server(tmp_path, config=CONFIG.replace("undo_seconds = 30", "undo_seconds = 0")) as server:
        for name in ("Ana", "Ben"):
            server.add_account(name, "approve")
        ana, ben = server.sign_in("Ana"), server.sign_in("Ben")
        ident = make_request(server, metadata=CALL)
        line = "Say <b>ten</b> working days"
        mistaken = send(ana, ident, "approve", "it is right", answer=line)
        assert mistaken.status_code == 422
        assert 'value="Say &lt;b&gt;ten&lt;/b&gt; working days"' in mistaken.text

        assert send(ana, ident, "deny", "it is wrong", answer=line).status_code == 303
        assert read_approval(server, ident).answer == line
        assert "To the agent: “Say &lt;b&gt;ten&lt;/b&gt; working days”" in read(ben, ident)


def test_an_agents_call_is_shown_with_what_its_run_did_before(server: RunningServer, ana: Any):
    """And with the agent's own words last, as text that nobody judged."""
    earlier = {"status": "used", "used_at": "2026-11-20T12:00:00+00:00"}
    metadata = CALL | {"remarks": {"description": "<i>harmless</i>"}, "before": earlier}
    page = read(ana, make_request(server, metadata=metadata))
    part = read_part(page, '<h2 id="run">', "</section>")

    assert part.startswith("What its agent did before This very call was approved before, and may have run.")
    assert "used_at 2026-11-20T12:00:00+00:00" in part
    assert "run session-7 asked for" in part
    assert part.endswith("description <i>harmless</i>")
    assert "&lt;i&gt;harmless&lt;/i&gt;" in page


def test_a_request_that_is_no_agents_call_takes_no_line_for_one(server: RunningServer, ana: Any):
    """Nobody would read it."""
    assert 'name="answer"' not in read(ana, make_request(server))


def test_the_api_takes_a_line_for_the_agent_with_a_denial(server: RunningServer):
    """And with nothing else."""
    ident = make_request(server, metadata=CALL)
    client = server.open_client(key=server.make_key("approve", approver="Ana"))
    path = f"/v1/approvals/{ident}/votes"
    bodies = [{"approved": True, "reason": "yes", "seen": "0" * 64}, {"approved": False, "reason": "no"}]
    refused = client.post(path, json=bodies[0] | {"answer": "Wait."})
    denied = client.post(path, json=bodies[1] | {"answer": "Say ten working days."})

    assert (refused.status_code, refused.json()["argument"]) == (422, "answer")
    assert (denied.status_code, denied.json()["answer"]) == (200, "Say ten working days.")


def test_several_are_denied_at_once_and_never_approved(server: RunningServer, ana: Any):
    """One of them was decided meanwhile, and that is said."""
    ids = [make_request(server) for _ in range(3)]
    token = find_token(ana, "/approvals/deny")
    decide(server, ids[0], "Ben", True)
    answer = ana.post("/approvals/deny", data={"csrf_token": token, "ids": ids, "reason": "a bad batch"})

    assert answer.headers["location"] == "/approvals?denied=2&late=1"
    assert "2 denied. 1 had been decided by somebody else." in ana.get(answer.headers["location"]).text
    assert [vote.approved for ident in ids[1:] for vote in read_approval(server, ident).pending_votes] == [False, False]
    answer = ana.post("/approvals/approve", data={"csrf_token": token, "ids": ids})
    assert answer.status_code in (404, 405)


# ---------------------------------------------------------------- without the judge


SECRET = ("careful", "0.30", "0.70", html.escape(REASON), "failed with", "<mark", "approved by Ben", "Ben approved")


@pytest.mark.slow
def test_the_judge_is_hidden_until_one_has_decided(tmp_path: Path):
    """The page holds nothing of what the judge or others said, not even hidden; afterwards it does."""
    with run_server(tmp_path, config=CONFIG) as server:
        server.add_account("Ana", "approve")
        check_blindness(server, server.sign_in("Ana"))


def check_blindness(server: RunningServer, kim: Any) -> None:
    ident = make_request(server, required=2, reason=REASON)
    decide(server, ident, "Ben", True)
    token = find_token(kim, "/approvals")
    answer = kim.post("/approvals/judge", data={"csrf_token": token, "judge": "hide", "back": f"/approvals/{ident}"})
    assert answer.headers["location"] == f"/approvals/{ident}"

    for text in (read(kim, ident), kim.get("/approvals").text, kim.get("/approvals/deny").text):
        for secret in (*SECRET, "from outside"):
            assert secret not in text, secret
    page = read(kim, ident)
    assert "The judge is hidden" in page
    assert "2 approvals needed" in page
    assert "Ben not shown yet" in read_part(page, '<ul class="votes">', "</ul>")

    assert send(kim, ident, "approve", "fine").status_code == 303
    # Who could still undo would look first, and vote again.
    assert "failed with 0.30" not in read(kim, ident)
    assert "approved; counts from" in read(kim, ident)

    counted = make_request(server, required=2)
    decide(server, counted, "Ana", True)
    page = read(kim, counted)
    assert "failed with 0.30" in page
    assert "from outside" in page


def test_where_one_goes_after_hiding_the_judge_is_on_this_server(ana: Any):
    """A form cannot lead elsewhere."""
    token = find_token(ana, "/approvals")
    for back in ("https://evil.example", "//evil.example", "/\\evil.example"):
        answer = ana.post("/approvals/judge", data={"csrf_token": token, "judge": "show", "back": back})
        assert answer.headers["location"] == "/approvals"


# ---------------------------------------------------------------- who may


def test_only_approvers_decide(server: RunningServer):
    """The scope opens the page; the name of the account decides, and the limit to gates holds."""
    ident = make_request(server, approvers=["Ben"])
    ana, zoe, kim, ray = (server.sign_in(name) for name in ("Ana", "Zoe", "Kim", "Ray"))

    assert "Ana is not one of its approvers" in read(ana, ident)
    assert send(ana, ident, "deny").status_code == 403
    assert "no approver" in read(zoe, ident)
    assert send(zoe, ident, "deny").status_code == 403
    token = find_token(kim, "/approvals")
    assert kim.get(f"/approvals/{ident}").status_code == 404
    assert list_queue(kim.get("/approvals").text) == []
    form = {"csrf_token": token, "vote": "deny"}
    assert kim.post(f"/approvals/{ident}/decide", data=form).status_code == 404
    assert "so it can look and not decide" in read(ray, ident)
    assert "<textarea" not in read(ray, ident)
    form |= {"csrf_token": find_token(ray, "/approvals")}
    assert ray.post(f"/approvals/{ident}/decide", data=form).status_code == 403
    assert read_approval(server, ident).pending_votes == ()


def test_without_its_token_no_form_is_taken(server: RunningServer, ana: Any):
    """Another site can send a form, and cannot know the token."""
    ident = make_request(server)
    for path, data in (
        (f"/approvals/{ident}/decide", {"vote": "deny"}),
        (f"/approvals/{ident}/undo", {}),
        ("/approvals/deny", {"ids": ident}),
        ("/approvals/judge", {"judge": "hide"}),
    ):
        assert ana.post(path, data=data).status_code == 403
    assert read_approval(server, ident).pending_votes == ()


def test_nobody_decides_by_get(server: RunningServer, ana: Any):
    """Neither a link nor a prefetch can."""
    ident = make_request(server)
    for path in (
        f"/approvals/{ident}/decide?vote=approve",
        f"/approvals/{ident}/undo",
        f"/approvals/{ident}?vote=deny",
    ):
        ana.get(path)
    assert list_kinds(server, ident) == ["requested"]


def test_an_unknown_request_is_not_there(ana: Any):
    """Nor is one with an id that no store can hold."""
    for ident in ("nobody", "%2e%2e", "%00", "x" * 3_000):
        assert ana.get(f"/approvals/{ident}").status_code == 404, ident


def test_each_reviewer_sees_their_own_figures_alone(tmp_path: Path):
    """How many, and how often against the judge."""
    with run_server(tmp_path, config=CONFIG) as server:
        server.add_account("Ana", "approve")
        server.add_account("Ben", "approve")
        ident, other = make_request(server), make_request(server)
        decide(server, ident, "Ana", True)
        decide(server, other, "Ana", False)

        figures = read_part(server.sign_in("Ana").get("/approvals").text, "You, last 30 days:", "</p>")
        assert figures.startswith("2 decided")
        assert figures.endswith("1 time not as the judge said, 1 as it said.")
        assert "last 30 days" not in server.sign_in("Ben").get("/approvals").text


# ---------------------------------------------------------------- news


def test_what_is_new_is_announced_once_and_not_put_in_between(server: RunningServer, ana: Any):
    """A page that knows it hears nothing; a request that changed is named without what changed."""
    ident = make_request(server)
    asks = re.search(r'hx-get="/approvals/news[?]([^"]+)"', read(ana, ident))
    assert asks is not None
    known = dict(parse_qsl(html.unescape(asks[1])))
    assert known["item"] == ident
    assert ana.get("/approvals/news", params=known).status_code == 204

    new = make_request(server)
    decide(server, ident, "Ben", False)
    answer = ana.get("/approvals/news", params=known)
    assert answer.status_code == 200
    assert "1 new" in answer.text
    assert f'href="/approvals/{new}"' in answer.text
    assert "This request changed" in answer.text
    assert "Ben" not in answer.text
    assert ana.get("/approvals/news", params=known | {"told": "1-1"}).status_code == 204


# ---------------------------------------------------------------- links


@pytest.fixture(name="print_link")
def provide_link(server: RunningServer, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What ``adjudge approvals link`` prints, without the host that it names."""

    def print_link(ident: str, *options: str) -> str:
        config = str(server.folder / "adjudge.toml")
        done = Line(capsys)("approvals", "link", ident[-12:], *options, "--config", config)
        assert done.status == 0, done.err
        assert done.out.startswith("http://127.0.0.1:8318/approvals/")
        return done.out.strip().removeprefix("http://127.0.0.1:8318")

    return print_link


def test_a_link_opens_the_page_after_signing_in_and_decides_nothing(
    server: RunningServer, ana: Any, print_link: Callable[..., str]
):
    """Somebody without a session goes to the sign-in, and comes back to it."""
    ident = make_request(server)
    path = print_link(ident)
    answer = server.open_browser().get(path)
    assert answer.status_code == 303
    assert unquote(answer.headers["location"]) == f"/signin?next={path}"

    assert ident[-12:] in ana.get(path).text
    assert list_kinds(server, ident) == ["requested"]


@pytest.mark.slow
def test_a_link_that_was_changed_or_is_too_old_opens_nothing(
    server: RunningServer, ana: Any, print_link: Callable[..., str]
):
    """Nor does one for another request, and its form takes no vote by itself."""
    ident, other = make_request(server), make_request(server, expires_in=None)
    path = print_link(ident)
    signed = path.partition("?")[2]
    for changed in (
        path.replace("until=", "until=1"),
        path[:-2] + "xx",
        f"/approvals/{other}?{signed}",
        f"/approvals/{ident}?until=1&link=x",
    ):
        answer = ana.get(changed)
        assert (answer.status_code, "link" in answer.text) == (403, True)
    old = print_link(other, "--hours", "0.00001")
    time.sleep(1.1)
    assert "time of this link is over" in ana.get(old).text
    assert print_link(other) != old


def test_the_api_refuses_to_approve_what_is_not_kept_unless_told(server: RunningServer):
    """A program that shows its people the content by itself says so."""
    ident = make_request(server, show_content=False)
    client = server.open_client(key=server.make_key("approve", approver="Ana"))
    path = f"/v1/approvals/{ident}/votes"

    refused = approve(client, ident)
    assert (refused.status_code, refused.json()["code"]) == (409, "incomplete")
    changed = client.post(path, json={"approved": True, "reason": "yes", "complete": False, "seen": "0" * 64})
    assert (changed.status_code, changed.json()["code"]) == (409, "changed")
    assert approve(client, ident, complete=False).status_code == 200


def test_a_link_that_is_opened_again_after_the_decision_shows_it_and_takes_no_vote(
    server: RunningServer, ana: Any, print_link: Callable[..., str]
):
    """It says who decided, has no form, and a form of before is refused."""
    ident = make_request(server)
    path = print_link(ident)
    assert find_form(ana.get(path).text)
    decide(server, ident, "Ben", False)
    page = ana.get(path).text

    assert "Ben denied it" in page
    assert f'action="/approvals/{ident}/decide"' not in page
    assert send(ana, ident, "approve", "yes", seen="0" * 64).status_code == 409
    assert read_approval(server, ident).status == "denied"


def test_the_webhook_of_a_server_has_the_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A program that sends a message needs no command."""
    deliveries: list[Any] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            deliveries.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    receiver = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    monkeypatch.setenv("HOOK_SECRET", "a secret of enough bytes")
    hook = f'webhook = {{url = "http://127.0.0.1:{receiver.server_port}/x", secret_env = "HOOK_SECRET"}}\n'
    try:
        with run_server(tmp_path, config=CONFIG.replace("[approvals]\n", f"[approvals]\n{hook}")) as server:
            server.add_account("Ana", "approve")
            client = server.open_client(key=server.make_key("judge"))
            client.post("/v1/gates/replies/check", json={"content": "x" * 50})
            wait_for(lambda: deliveries)
            link = deliveries[0]["data"]["link"]
            path = link[link.index("/approvals/") :]
            assert server.sign_in("Ana").get(path).status_code == 200
            assert server.sign_in("Ana").get(f"{path}x").status_code == 403
    finally:
        receiver.shutdown()
        receiver.server_close()


# ---------------------------------------------------------------- search and filters


def fill_filtered(server: RunningServer) -> dict[str, str]:
    """Requests of two gates, agents and customers, by a name of each."""
    about: dict[str, dict[str, Any]] = {
        "weber": {"title": "Refund to Weber", "agent": "mail", "customer": "C-20931", "link": "https://shop.example/7"},
        "rossi": {"title": "Refund to Rossi", "agent": "chat", "customer": "C-2093"},
        "ito": {"title": "Reply to Ito", "agent": "mail", "customer": "Ada Lovelace"},
    }
    gates, ends = {"ito": "letters"}, {"weber": 900, "rossi": 300, "ito": 600}
    return {
        name: make_request(server, metadata=metadata, gate=gates.get(name, "replies"), expires_in=ends[name])
        for name, metadata in about.items()
    }


FILTERED = [
    ({"q": "weber"}, ["weber"]),
    ({"q": "refund"}, ["rossi", "weber"]),
    ({"q": "customer:C-20931"}, ["weber"]),
    ({"q": 'customer:"Ada Lovelace"'}, ["ito"]),
    ({"q": "TO agent:mail"}, ["ito", "weber"]),
    ({"customer": "C-2093"}, ["rossi"]),
    ({"agent": "mail"}, ["ito", "weber"]),
    ({"gate": "letters"}, ["ito"]),
    ({"gate": "replies", "q": "link:shop.example"}, ["weber"]),
    ({"sort": "oldest"}, ["weber", "rossi", "ito"]),
    ({"sort": "newest"}, ["ito", "rossi", "weber"]),
    ({"sort": "<script>"}, ["rossi", "ito", "weber"]),
    ({"q": "nobody"}, []),
    ({"q": "\"'; DROP TABLE x -- %_*\0 AND NEAR("}, []),
    ({"q": "%"}, []),
    ({"q": "é" * 2_000}, []),
]


def test_the_queue_is_searched_filtered_and_ordered_in_the_address(tmp_path: Path):
    """Each way narrows the list, its parts, its news and what can be denied; the endpoint finds the same."""
    with run_server(tmp_path, config=CONFIG) as server:
        server.add_account("Ana", "approve", "read")
        ana, made = server.sign_in("Ana"), fill_filtered(server)
        program = server.open_client(key=server.make_key("read"))
        for query, names in FILTERED:
            page = ana.get("/approvals", params=query)
            assert (page.status_code, list_queue(without_query(page.text))) == (200, [made[name] for name in names]), (
                query
            )
            if "sort" not in query:
                found = program.get("/v1/approvals", params=query).json()
                assert {each["id"] for each in found["approvals"]} == {made[name] for name in names}, query
                assert found["total"] == len(names)
                assert program.get("/v1/approvals", params={**query, "status": "all"}).json()["total"] == len(names)
                assert ("Clear the filters" in page.text) == (not names)

        assert ana.get("/approvals", params={"gate": "\0"}).status_code == 422
        assert ana.get("/approvals", params={"q": "x" * 10_001}).status_code == 422
        deny = ana.get("/approvals/deny", params={"agent": "mail"}).text
        assert re.findall(r'name="ids" value="([^"]+)"', deny) == [made["ito"], made["weber"]]
        news = ana.get("/approvals/news", params={"after": made["weber"], "agent": "mail"}).text
        assert "1 new" in news


HOSTILE = "\u202e\u2066\"'><script>alert(1)</script><img src=x onerror=y>"
"""Markup and directions, of fewer characters than the page shows of a filter."""


@pytest.mark.parametrize("name", ["q", "agent", "customer", "gate"])
def test_a_hostile_filter_is_text_wherever_it_is_shown(tmp_path: Path, name: str):
    """Beside the number that was found, in the form and in the links of what follows: no element and no direction."""
    texts = ("nobody", HOSTILE)
    with run_server(tmp_path, config=CONFIG) as server:
        server.add_account("Ana", "approve", "read")
        ana = server.sign_in("Ana")
        for text in texts:
            make_request(server, metadata={"title": "Held", "agent": text, "customer": text})
        plain, hostile = (ana.get("/approvals", params={name: text}) for text in texts)

    assert (plain.status_code, hostile.status_code) == (200, 200)
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", hostile.text)
    assert sorted(Reader(hostile.text).elements) == sorted(Reader(plain.text).elements)
    assert HOSTILE.strip("\u202e\u2066") in Reader(hostile.text).text
    for link in re.findall(r'(?:href|action|formaction|hx-get)="([^"]*)"', hostile.text):
        assert link.startswith(("/", "#")), link
        assert "<" not in html.unescape(link), link


def without_query(page: str) -> str:
    return re.sub(r'(href="/approvals/[^"?]+)\?[^"]*"', r'\1"', page)


def test_filters_stay_while_one_decides(tmp_path: Path):
    """A decision leads to the next request that matches, and every link of the page keeps the filters."""
    with run_server(tmp_path, config=CONFIG) as server:
        server.add_account("Ana", "approve", "read")
        ana, made = server.sign_in("Ana"), fill_filtered(server)
        query = {"q": "agent:mail", "sort": "newest"}
        page = ana.get(f"/approvals/{made['ito']}", params=query).text

        assert 'decide?q=agent%3Amail&amp;sort=newest"' in page
        answer = send(ana, made["ito"], "deny", params=query)
        assert (answer.status_code, answer.headers["location"]) == (
            303, f"/approvals/{made['weber']}?q=agent%3Amail&sort=newest",
        )  # fmt: skip
        assert 'undo?q=agent%3Amail&amp;sort=newest"' in ana.get(answer.headers["location"]).text


def test_an_approver_finds_nothing_that_they_are_not_asked(tmp_path: Path):
    """Searching tells nobody of requests, gates or agents that they do not see otherwise."""
    with run_server(tmp_path, config=CONFIG) as server:
        server.add_account("Ben", "approve")
        server.add_account("Kim", "approve", "read", gates=["letters"])
        fill_filtered(server)
        other = make_request(server, approvers=["Ana"], metadata={"title": "Secret", "agent": "spy"}, gate="vault")
        for name in ("Ben", "Kim"):
            reader = server.sign_in(name)
            page = reader.get("/approvals", params={"q": "secret"}).text
            assert list_queue(without_query(page)) == []
            assert not any(text in page.replace("secret", "") for text in ("vault", "spy", other))


def test_a_request_shows_customer_and_link_and_follows_no_other_scheme(tmp_path: Path):
    """What a program says of a case is text; only an address of the web is a link."""
    with run_server(tmp_path, config=CONFIG) as server:
        server.add_account("Ana", "approve", "read")
        ana = server.sign_in("Ana")
        for link, follows in (
            ("https://shop.example/7", True),
            ("javascript:alert(1)", False),
            ('http://a"onx=1', False),
        ):
            ident = make_request(server, metadata={"customer": "<b>C&1", "link": link})
            page = ana.get(f"/approvals/{ident}").text
            assert ('rel="noopener noreferrer"' in page) == follows
            assert "/approvals?customer=%3Cb%3EC%261" in page
            assert "<b>C&1" not in page


@pytest.mark.parametrize("sign", ["**", "*", "[", "> ", "- "])
def test_markdown_without_end_keeps_nobody_from_deciding(server: RunningServer, ana: Any, sign: str):
    """Its source is shown, on its own page and first in the queue, and it can be denied."""
    text = "# Note\n" + sign * 700 + "b" + sign.strip() * 700
    ident = make_request(server, {"tool": "post_comment", "arguments": {"markdown": text}}, expires_in=600)

    for path in ("/approvals", f"/approvals/{ident}", f"/approvals/{ident}?whole=true"):
        page = ana.get(path)
        assert (page.status_code, "post_comment" in page.text) == (200, True), path
    assert send(ana, ident, "deny", "no").status_code == 303
