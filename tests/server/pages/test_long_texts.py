"""A text of megabytes on the page of a request: read in parts or as a file, and approved after that alone.

What somebody typed meanwhile stays in the form, without a script.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adjudge.guards import digest_shown
from kit.approval_pages import CONFIG, find_form, make_request, read_approval, send
from kit.markup import Reader
from kit.server import RunningServer, read_fields, run_server

pytestmark = pytest.mark.timed

LONG = "".join(f"line {number:,} of a contract.\n" for number in range(10_000))
"""Of three parts."""

MOST_PAGE = 16 * 100_000
"""Characters of a page that draws 100,000 of a text: blanks and line breaks are marked, each with some words."""

REASON = "I have read the contract.\n<b>All</b> of it."


@pytest.fixture(scope="module", name="server")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder: Path = tmp_path_factory.mktemp("server")
    with run_server(folder, config=CONFIG.replace("undo_seconds = 30", "undo_seconds = 0")) as running:
        for name in ("Ana", "Ben"):
            running.add_account(name)
        running.add_account("Zoe", "read")
        yield running


@pytest.fixture(scope="module", name="ana")
def sign_in_ana(server: RunningServer) -> Any:
    return server.sign_in("Ana")


def list_seen(page: str) -> list[str]:
    """The digest that the form of a page sends back; none while not everything was shown."""
    return re.findall(r'name="seen" value="([^"]+)"', find_form(page))


def read_words(page: str) -> str:
    return " ".join(Reader(page).text.split())


def show_rest(client: Any, page: str, **typed: str) -> str:
    """Press the first "Show the rest" of a page, as a browser without scripts does: it sends the form."""
    button = re.search(r'<button[^>]* formaction="([^"]+)"[^>]*>Show the rest</button>', page)
    assert button is not None, "nothing shows the rest"
    fields = read_fields(client, find_form(page))
    answer = client.post(html.unescape(button[1]).partition("#")[0], data=fields | typed)
    assert answer.status_code == 200
    return answer.text


def find_typed(page: str) -> str:
    field = re.search(r'<textarea id="reason".*?>(.*?)</textarea>', page, re.DOTALL)
    assert field is not None
    return html.unescape(field[1])


# ---------------------------------------------------------------- no page is too large


TEXTS = {
    "a text": LONG,
    "line breaks and blanks": "a  b \t\n" * 60_000,
    "messages": [{"role": "user", "content": f"And {number}?"} for number in range(9_000)],
    "a call with many arguments": [
        {"role": "user", "content": "Do."},
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "c1", "name": "f", "input": {f"a{number}": "v" for number in range(30_000)}}
            ],
        },
    ],
    "records": [{"id": number, "note": "late"} for number in range(9_000)],
}


@pytest.mark.slow_table
@pytest.mark.parametrize("name", TEXTS)
def test_a_page_draws_only_so_much_of_a_text_whatever_is_opened(server: RunningServer, ana: Any, name: str):
    """At first, with everything opened, and with every step opened."""
    ident = make_request(server, texts={"context": TEXTS[name]})

    for query in ("", "?whole=true", "?open=1.1-999999", "?part=context.2"):
        page = ana.get(f"/approvals/{ident}{query}").text
        assert len(page) < MOST_PAGE
        assert list_seen(page) == [], query


@pytest.mark.parametrize("content", [LONG, {"tool": "mail", "arguments": {"text": LONG, "x" * 9_000: 1}}])
def test_a_long_content_is_read_in_parts_too(server: RunningServer, ana: Any, content: Any):
    """As the text that it is, with what the judge quoted marked where it is."""
    ident = make_request(server, content, quote="line 5,000 of")
    first = ana.get(f"/approvals/{ident}").text
    second = ana.get(f"/approvals/{ident}?part=content.2").text

    assert len(first) < MOST_PAGE
    assert "Part 2 of 3: characters 100,001 to 200,000" in read_words(second)
    assert "<mark" in second
    assert list_seen(second) == []


def test_the_parts_are_the_whole_text(server: RunningServer, ana: Any):
    """No character is missing where one ends and the next begins."""
    ident = make_request(server, texts={"context": LONG})
    boxes = [
        re.search(r'<b>Context</b>.*?<pre class="text" dir="auto">(.*?)</pre>', page, re.DOTALL)
        for page in (ana.get(f"/approvals/{ident}?part=context.{number}").text for number in (1, 2, 3))
    ]

    assert "".join(Reader(box[0].partition('dir="auto">')[2]).text for box in boxes if box is not None) == LONG


# ---------------------------------------------------------------- nobody approves what was not shown


def test_a_long_text_is_approved_once_each_of_its_parts_was_shown(server: RunningServer, ana: Any):
    """The button leads to the next part that was not shown, and the reason that was typed stays."""
    ident = make_request(server, texts={"context": LONG})
    page, shown = ana.get(f"/approvals/{ident}").text, 0
    assert send(ana, ident, "approve", "fine").status_code == 422
    while not list_seen(page):
        page, shown = show_rest(ana, page, reason=REASON), shown + 1
        assert find_typed(page) == REASON

    assert shown == 3
    assert list_seen(page) == [digest_shown(read_approval(server, ident))]
    assert send(ana, ident, "approve", REASON).status_code == 303
    assert read_approval(server, ident).status == "approved"


def test_a_text_that_was_fetched_as_a_file_counts_as_shown(server: RunningServer, ana: Any):
    """Of that text alone: of another one nothing was shown."""
    ident = make_request(server, texts={"context": LONG, "task": LONG})
    assert ana.get(f"/approvals/{ident}/content?part=context").text == LONG
    page = ana.get(f"/approvals/{ident}").text
    assert "characters of the context" not in read_words(page)
    assert list_seen(page) == []

    ana.get(f"/approvals/{ident}/content?part=task")
    assert list_seen(ana.get(f"/approvals/{ident}").text)


def test_a_text_that_nobody_asked_for_does_not_count_as_shown(server: RunningServer, ana: Any):
    """A browser fetches some addresses by itself, and a preview asks for the head of one."""
    ident = make_request(server, texts={"context": LONG})
    address = f"/approvals/{ident}/content?part=context"
    ana.head(address)
    ana.get(address, headers={"sec-purpose": "prefetch;prerender"})
    page = ana.get(f"/approvals/{ident}").text

    assert "not shown yet" in read_words(page).lower()
    assert list_seen(page) == []


@pytest.mark.parametrize("who", ["somebody else", "another request", "another session", "a changed list", "nonsense"])
def test_what_was_shown_is_known_of_this_session_and_this_request_alone(server: RunningServer, who: str):
    """A cookie of anything else, and one that somebody wrote, shows nothing."""
    client, other = server.sign_in("Ben"), server.sign_in("Ana")
    ident, another = (make_request(server, texts={"context": LONG}) for _ in range(2))
    fetched = {"somebody else": (other, ident), "another request": (client, another)}.get(who, (client, ident))
    shown = "?part=context.1" if who == "a changed list" else "/content?part=context"
    sent = fetched[0].get(f"/approvals/{fetched[1]}{shown}").headers["set-cookie"]
    value = sent.partition("read=")[2].partition(";")[0]
    if who == "another session":
        client = server.sign_in("Ben")
    if who in ("a changed list", "nonsense"):
        value = value.replace("1-1", "1-3") if who == "a changed list" else 'context:1-3_":9.zz'
    client.cookies.delete("read", path=f"/approvals/{fetched[1]}") if fetched[0] is client else None
    page = client.get(f"/approvals/{ident}", headers={"cookie": _write_cookies(client, value)}).text

    assert "not shown yet" in read_words(page).lower()
    assert list_seen(page) == []


def _write_cookies(client: Any, value: str) -> str:
    return "; ".join([*(f"{name}={text}" for name, text in client.cookies.items()), f"read={value}"])


def test_an_address_says_nothing_of_what_was_shown(server: RunningServer, ana: Any):
    """Somebody who is sent a link to the last part has not read the others."""
    ident = make_request(server, texts={"context": LONG})
    page = ana.get(f"/approvals/{ident}?whole=true&part=context.3").text

    assert "Part 3 of 3" in read_words(page)
    assert list_seen(page) == []
    assert ana.get(f"/approvals/{ident}?part=context.0").status_code == 422


# ---------------------------------------------------------------- what was typed


def test_what_was_typed_is_there_again_when_more_is_shown(server: RunningServer, ana: Any):
    """Steps that are folded, the rest, the JSON: each sends the form, and records nothing."""
    talk = [{"role": "user", "content": f"And {number}?"} for number in range(80)]
    ident = make_request(server, {"tool": "mail", "arguments": {"text": "x" * 30_000}}, texts={"context": talk})
    page = ana.get(f"/approvals/{ident}").text
    ways = dict(re.findall(r'<button[^>]* form="decision"[^>]* formaction="([^"]+)"[^>]*>([^<]+)</button>', page))

    assert {"Show the rest", "as JSON"} < set(ways.values())
    assert any(words.endswith("steps") for words in ways.values())
    fields = read_fields(ana, find_form(page))
    for path in ways:
        sent = fields | {"reason": REASON.replace("\n", "\r\n")}  # as a browser does
        shown = ana.post(html.unescape(path).partition("#")[0], data=sent)
        assert (shown.status_code, find_typed(shown.text)) == (200, REASON)
    assert [vote.by for vote in read_approval(server, ident).votes] == []


def test_hiding_the_judge_keeps_what_was_typed(server: RunningServer, ana: Any):
    """The button sends the form too; the judge stays hidden on every page that follows, until it is shown."""
    ident = make_request(server)
    for words, hides in (("Hide the judge until I decide", True), ("Show the judge at once", False)):
        page = ana.get(f"/approvals/{ident}").text
        button = re.search(rf'<button[^>]* formaction="([^"]+)"[^>]* value="(\w+)"[^>]*>{words}', page)
        assert button is not None, words
        fields = read_fields(ana, find_form(page))

        answer = ana.post(html.unescape(button[1]), data=fields | {"judge": button[2], "reason": REASON})

        assert (answer.status_code, find_typed(answer.text)) == (200, REASON)
        for text in (answer.text, ana.get(f"/approvals/{ident}").text):
            assert ("The judge is hidden" in text) is hides
    assert read_approval(server, ident).votes == ()


def test_showing_more_needs_the_form_of_the_session(server: RunningServer, ana: Any):
    """As every form; and somebody who only reads gets links."""
    ident = make_request(server, texts={"context": LONG})
    assert ana.post(f"/approvals/{ident}?whole=true", data={"reason": "x"}).status_code == 403

    page = server.sign_in("Zoe").get(f"/approvals/{ident}").text
    assert re.search(rf'<a class="btn" href="/approvals/{ident}\?whole=true">Show the rest</a>', page)
    assert "formaction" not in page


def test_a_long_text_on_the_page_of_a_result_is_read_in_parts(server: RunningServer, ana: Any):
    """By links, since nothing is decided there."""
    from adjudge import Judge, Ledger

    async def judge(_: Ledger) -> int:
        async with Ledger(server.ledger_url, store_content="full") as ledger:
            result = await Judge(lambda content: False).evaluate(LONG, criteria="Good.")
            return await ledger.append(result, content=LONG)

    seq = server.change(judge)
    page = ana.get(f"/results/{seq}").text

    assert len(page) < MOST_PAGE
    link = re.search(r'href="([^"]+)">Show the next part', page)
    assert link is not None
    assert "Part 2 of 3" in read_words(ana.get(html.unescape(link[1])).text)


def test_a_difference_between_long_contents_is_not_drawn(server: RunningServer, ana: Any):
    """It is twice as long as either: the page says that they differ."""
    first = make_request(server, LONG)
    ana.get(f"/approvals/{first}/content")
    assert send(ana, first, "approve", "fine").status_code == 303
    page = ana.get(f"/approvals/{make_request(server, json.dumps({'text': LONG}))}").text

    assert "too long to be compared here" in read_words(page)
