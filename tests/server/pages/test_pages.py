"""What the pages show, who may see them, and that no text of anybody else's becomes a part of a page."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from adjudge import Approvals, Decision, Gate, JudgeResult, Ledger
from adjudge.dataset import digest_content
from kit import server_demo
from kit.ledgers import run as run_on
from kit.markup import Reader
from kit.server import RunningServer, find_token, run_server

pytestmark = pytest.mark.timed


HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>\"' onfocus='x' {{ 7*7 }} hx-get=/x "
    "\u202e\x1b[31m</pre></textarea>"
)

LISTS = ("/", "/results", "/ledger", "/runs")


@pytest.fixture(scope="module", name="server")
def provide_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Three days of decisions, one with a whole story, and a run."""
    folder = tmp_path_factory.mktemp("pages")
    asyncio.run(server_demo.fill_ledger(folder, days=3, a_day=40))
    asyncio.run(server_demo.tell_story(folder))
    server_demo.keep_runs(folder)
    with run_server(folder, server_demo.CONFIG) as running:
        running.add_account("Ana")
        running.add_account("Ben", "read", gates=["replies"])
        yield running


def find_story(server: RunningServer) -> int:
    """The place of the story's last entry."""
    return list_rows(server.sign_in("Ana"), "by=human")[0]["seq"]


def list_rows(client: Any, query: str) -> list[dict[str, Any]]:
    """The rows that a program gets."""
    return client.get(f"/v1/results?{query}").json()["results"]


@pytest.mark.parametrize("path", LISTS)
def test_each_page_needs_a_session_or_a_key(server: RunningServer, path: str):
    """Without one it leads to the sign-in; its place in the navigation is marked."""
    page = server.sign_in("Ana").get(path)

    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    assert 'aria-current="page"' in page.text
    assert server.open_browser().get(path).headers["location"].startswith("/signin?next=")
    assert server.open_client().get(path).status_code == 401


def test_the_overview_counts_each_decision_once(server: RunningServer):
    """Shares add up to the whole with their intervals, and a held decision that ended later is counted as held."""
    page = server.sign_in("Ana").get("/").text
    number = int(re.findall(r'<p class="sub">(\d+) judgements at 2 gates', page)[0])
    passed, failed, undecided, held = map(int, re.findall(r'<p class="small quiet n">(\d+), ', page))
    by_day = {name: read_column(page, name) for name in ("passed", "failed", "undecided", "held")}

    assert passed + failed + undecided + held == number == sum(map(sum, by_day.values()))
    assert held == sum(by_day["held"]) > 0
    assert re.findall(r'href="/results\?gate=(\w+)"', page) == ["refunds", "replies"]
    assert sum(read_column(page, "judged")) == number
    assert re.search(r"\d+\.\d to \d+\.\d %", Reader(page).text)


def test_overview_and_results_say_what_they_count(server: RunningServer):
    """The same decisions: as they first came out, and as they came out last."""
    browser = server.sign_in("Ana")
    page = browser.get("/results").text
    first, last = Reader(browser.get("/").text).text, Reader(page).text
    number, found = re.search(r"\b(\d+) judgements", first)[1], re.search(r'<li class="quiet">(\d+) found', page)[1]

    assert number == found
    assert "each as it first came out" in first
    assert "each as it came out last" in last


def test_nothing_is_said_of_cost_where_functions_judged(tmp_path: Path):
    """Nobody reported a cost: there is a dash and no sum, neither in a list nor on a result's own page."""

    async def record() -> None:
        async with Ledger(f"sqlite:///{tmp_path / 'adjudge.db'}") as ledger:
            for _ in range(3):
                await ledger.append(JudgeResult(outcome="passed", judge="polite", score=1.0))

    asyncio.run(record())
    with run_server(tmp_path, server_demo.CONFIG) as running:
        running.add_account("Ana")
        browser = running.sign_in("Ana")
        for path in ("/", "/results", "/results/1"):
            assert not re.search(r"\$0|unknown|not known|Cost:", Reader(browser.get(path).text).text), path


def read_column(page: str, name: str) -> list[int]:
    """The whole numbers of a column of a table."""
    return list(map(int, re.findall(rf'data-name="{name}">(\d+)</td>', page)))


def test_results_are_narrowed_in_the_address(server: RunningServer):
    """By gate, outcome, who decided, judge and words; what a filter says is in the links to further pages."""
    client = server.sign_in("Ana")
    page = client.get("/results?when=all").text
    (older,) = re.findall(r'rel="next" href="([^"]+)"', page)

    assert page.count('<a class="row cut-line"') == 50
    assert "before=" in older
    assert "when=all" in older
    shown = [int(place) for place in re.findall(r'href="/results/(\d+)"', client.get(unescape(older)).text)]
    assert shown[0] < list_rows(client, "when=all&limit=50")[-1]["seq"]
    for query, holds in (
        ("gate=refunds", lambda row: row["gate"] == "refunds"),
        ("outcome=undecided", lambda row: row["outcome"] == "undecided" and not row["held"]),
        ("by=human", lambda row: row["decided_by"] == "human"),
        ("judge=quick", lambda row: row["judge"] == "quick"),
        ("q=promises+date", lambda row: "promises" in row["reason"]),
    ):
        rows = list_rows(client, query)
        assert rows, query
        assert all(holds(row) for row in rows), query
    assert "Nothing matches" in client.get("/results?q=nothing+has+this").text


def test_a_row_of_results_says_what_it_is_about(server: RunningServer):
    """By its content's first words, the reason, or the digest of what was judged; never by nothing."""
    client = server.sign_in("Ana")
    page = client.get("/results?when=all").text
    shown = dict(re.findall(r'href="/results/(\d+)"[^>]*>([^<]*)</a>', page))
    rows = list_rows(client, "when=all&limit=50")

    assert len(shown) == len(rows) == 50
    for row in rows:
        about = row["content"] or row["reason"] or f"sha256:{row['subject'][:12]}"
        assert unescape(shown[str(row["seq"])]).startswith(about.strip().splitlines()[0][:300])


def test_a_row_names_the_people_who_decided(server: RunningServer):
    """Beside what the gate did; what a rule or the judge decided says so."""
    text = re.sub(r"\s+", " ", Reader(server.sign_in("Ana").get("/results?when=all").text).text)

    assert "let through by Ben Okafor, Chiara Conti" in text
    assert "let through by judge" in text


def test_an_id_is_found_wherever_it_is_in_the_ledger(tmp_path_factory: pytest.TempPathFactory):
    """A decision's, its result's and its request's, and not in an entry that only quotes it; else the page says so."""
    folder = tmp_path_factory.mktemp("ids")
    good = JudgeResult(outcome="passed", judge="careful", score=0.9)
    first = Decision(gate="replies", allowed=True, decided_by="judge", result=good, approval_id="0" * 32 + ".b")
    with run_server(folder, server_demo.CONFIG) as server:
        server.add_account("Ana")

        async def write(into: Ledger) -> None:
            await into.append(first, kind="decision")
            for number in range(3):
                quotes = {"id": first.id, "other": [good.id, first.approval_id]}
                decision = Decision(
                    gate="refunds", allowed=False, decided_by="policy", metadata={"n": number, **quotes}
                )
                await into.append(decision, kind="decision")

        server.change(write)
        client = server.sign_in("Ana")
        for ident in (first.id, good.id, first.approval_id):
            assert client.get(f"/v1/results/{ident}").json()["result"]["id"] == first.id
            assert first.id in client.get(f"/results/{ident}").text
        for ident in ("x", "%00", '"', "0" * 200, "%F0%9F%8E%89"):
            missing = client.get(f"/results/{ident}")
            assert (missing.status_code, "whole ledger was searched" in missing.text) == (404, True), ident
        assert "Entry 99 of the ledger is no decision" in client.get("/results/99").text


def test_a_result_tells_its_whole_story(server: RunningServer):
    """What was asked, rules, the judge with every seat, evidence both ways, policy, people and the ledger."""
    client = server.sign_in("Ana")
    place = find_story(server)
    page = client.get(f"/results/{place}")
    text = Reader(page.text).text.partition("let through by people")[2]

    assert text.index("Asked") < text.index("Rules") < text.index("Judge careful") < text.index("Policy")
    assert text.index("Policy") < text.index("Approval") < text.index("Let through") < text.index("In the ledger")
    assert "Ben Okafor approved" in re.sub(r"\s+", " ", text)
    assert "Not in the content, though quoted: not in there" in re.sub(r"\s+", " ", text)
    assert '<mark id="e1">You will have the money within ten working days' in page.text
    assert 'href="#e1"' in page.text
    for seat in ("openai:gpt-6.1-terra", "anthropic:claude-haiku-5-5", "local:qwen3-8b"):
        assert seat in text
    document = client.get(f"/v1/results/{place}").json()
    votes = [entry["payload"]["by"] for entry in document["entries"] if entry["kind"] == "approval.voted"]
    assert votes == ["Ben Okafor", "Chiara Conti"]
    assert document["entries"][-1]["seq"] == document["result"]["seq"] == place
    for ident in (document["result"]["id"], document["result"]["result_id"]):
        assert client.get(f"/results/{ident}").status_code == 200


def test_a_story_leaves_out_what_did_not_happen(server: RunningServer):
    """Where no person was asked there is no such step, and nothing is said to be shown that is kept as a digest."""
    client = server.sign_in("Ana")
    row = list_rows(client, "gate=replies&outcome=passed")[0]
    text = Reader(client.get(f"/results/{row['seq']}").text).text

    assert "Approval" not in re.findall(r"\w+", text.replace("Approvals", ""))
    assert "The content is not here" in text


def test_the_ledger_is_verified_when_asked(server: RunningServer):
    """Until then nothing is claimed; afterwards the page says what was checked, and what no check can see."""
    client = server.sign_in("Ana")
    token = find_token(client, "/ledger")
    done = client.post("/ledger/verify", data={"csrf_token": token})
    text = Reader(client.get("/ledger").text).text

    assert (done.status_code, done.headers["location"]) == (303, "/ledger")
    assert "are as they were written" in text
    assert "because no head was pinned" in text
    assert "Ledger verified" in Reader(client.get("/").text).text
    assert client.post("/ledger/verify").status_code == 403


def test_one_entry_is_shown_with_all_that_it_says(server: RunningServer):
    """Its hashes whole, its payload as it was recorded, and the way to the entries beside it."""
    client = server.sign_in("Ana")
    (entry,) = client.get("/v1/ledger?after=1&limit=1").json()["entries"]
    page = client.get("/ledger/2").text

    for text in (entry["hash"], entry["payload_hash"], entry["prev"], 'href="/ledger/1"', 'href="/ledger/3"'):
        assert text in page
    assert client.get("/ledger/99999").status_code == 404
    last = re.findall(r'href="/ledger/(\d+)">The last entry', client.get("/ledger").text)
    assert [client.get(f"/ledger/{place}").status_code for place in last] == [200]


def test_a_run_is_shown_with_its_report(server: RunningServer):
    """As a page, as data, and as the one file to keep."""
    client = server.sign_in("Ana")
    page, file = client.get("/runs/support"), client.get("/runs/support/report.html")

    assert "59.6 %" in page.text
    assert re.search(r"<h1[^>]*>support</h1>", page.text)
    assert "of 240 cases passed; 95 % interval" in Reader(page.text).text
    assert file.headers["content-disposition"] == 'attachment; filename="support.html"'
    assert file.text.startswith("<!doctype html>")
    assert client.get("/v1/runs/support").json()["cases"] == 240
    for name in ("nothing", "..%2F..%2Fetc", "%2e%2e"):
        assert client.get(f"/runs/{name}").status_code == 404


def test_who_is_limited_to_gates_sees_those_alone(server: RunningServer):
    """In lists and figures; single results and entries of others are refused, and so is what is no gate's."""
    client = server.sign_in("Ben")

    assert {row["gate"] for row in list_rows(client, "")} == {"replies"}
    assert list_rows(client, "gate=refunds") == []
    assert re.findall(r'href="/results\?gate=(\w+)"', client.get("/").text) == ["replies"]
    place = find_story(server)
    for path in (
        f"/results/{place}",
        f"/v1/results/{place}",
        f"/ledger/{place}",
        "/ledger",
        "/runs",
        "/runs/support",
    ):
        assert client.get(path).status_code == 403, path


def test_browsers_get_errors_as_pages_and_programs_as_problems(server: RunningServer):
    """What happened, and that nothing was done; with the same status."""
    client = server.sign_in("Ana")
    page, problem = client.get("/nowhere"), client.get("/v1/nowhere")

    assert (page.status_code, problem.status_code) == (404, 404)
    assert "Nothing was changed or decided" in page.text
    assert problem.headers["content-type"] == "application/problem+json"


def test_colours_and_keys_are_as_somebody_likes_them(server: RunningServer):
    """Kept in a cookie by a form with its token; the way back is on this server, whatever the request says."""
    client = server.sign_in("Ana")
    token = find_token(client, "/")
    away = {"Referer": "https://elsewhere.example/results?gate=refunds"}
    done = client.post("/theme", data={"csrf_token": token, "theme": "dark"}, headers=away)

    assert (done.status_code, done.headers["location"]) == (303, "/results?gate=refunds")
    assert 'data-theme="dark"' in client.get("/").text
    client.post("/keyboard", data={"csrf_token": token, "keys": "off"})
    assert 'data-keys="off"' in client.get("/").text
    assert client.post("/theme", data={"theme": "light"}).status_code == 403


@pytest.mark.parametrize(
    ("path", "most"), [("/runs/support", 320_000), ("/runs/support/report.html", 1_400_000)], ids=["page", "report"]
)
def test_pages_and_reports_are_sent_as_they_are(server: RunningServer, path: str, most: int):
    """Not compressed, also where the browser asks for it; a run of 240 cases takes what ``docs/pages.md`` says."""
    answer = server.sign_in("Ana").get(path, headers={"Accept-Encoding": "gzip, br, zstd"})

    assert "content-encoding" not in answer.headers
    assert 0.9 * most < len(answer.content) <= most


CALL = {"tool": "payments.refund", "arguments": {"amount": 184, "to": "DE00"}}


@pytest.mark.parametrize("kept", ["full", "hash"])
def test_the_content_of_a_result_can_be_saved_as_a_file_where_it_is_kept(tmp_path: Path, kept: str):
    """Byte for byte, and never as a page, whatever it holds; with what it was judged with."""
    content = "<script>alert(1)</script>\u202e\n" * 3

    async def fill(ledger: Ledger) -> None:
        gate = Gate("mail", rules=[{"contains": "never"}], on_rule="block", ledger=ledger)
        assert not await gate.check(content, task="Greet.")

    config = f'[ledger]\nurl = "sqlite:///adjudge.db"\nstore_content = "{kept}"\n'
    with run_server(tmp_path, config) as server:
        run_on(server.ledger_url, fill, store_content=kept)
        server.add_account("Ana")
        client = server.sign_in("Ana")
        link = re.findall(r'href="(/results/[^"?]+)"', client.get("/results").text)[-1]
        saved, task, none = (client.get(f"{link}/content{of}") for of in ("", "?part=task", "?part=reference"))

    assert none.status_code == 404
    if kept == "hash":
        assert (saved.status_code, task.status_code) == (404, 404)
    else:
        assert (saved.text, task.text) == (content, "Greet.")
        assert saved.headers["content-type"] == "application/octet-stream"
        assert saved.headers["content-disposition"].startswith("attachment")


@pytest.mark.parametrize(
    ("kept", "content", "about"),
    [
        ("full", CALL, 'payments.refund: "amount": 184, "to": "DE00"'),
        ("full", json.dumps(CALL, indent=2), 'payments.refund: "amount": 184, "to": "DE00"'),
        ("full", {"tool": "payments.refund", "arguments": {}}, "payments.refund"),
        ("full", {"order": 7}, '{ "order": 7 }'),
        ("full", "\n  A letter\nof two lines", "A letter"),
        ("hash", CALL, f"mail, sha256:{digest_content(CALL)[:12]}…"),
    ],
)
def test_a_result_without_a_title_says_what_is_done(tmp_path: Path, kept: str, content: object, about: str):
    """Held or not: the tool and how its arguments begin, else the content's beginning, and no line of its JSON.

    Where the content is not kept, nothing that the page could say differs from one to the next but the digest.
    """

    async def fill(ledger: Ledger) -> None:
        async with Approvals(ledger) as approvals:
            ask = {"approvers": ["Ana"]}
            for on_rule in ("ask", "block"):
                gate = Gate("mail", rules=[{"contains": "never"}], on_rule=on_rule, ask=ask, approvals=approvals,
                            wait=False, ledger=ledger)  # fmt: skip
                assert not await gate.check(content)

    config = f'[ledger]\nurl = "sqlite:///adjudge.db"\nstore_content = "{kept}"\n'
    with run_server(tmp_path, config) as server:
        run_on(server.ledger_url, fill, store_content=kept)
        server.add_account("Ana")
        page = server.sign_in("Ana").get("/results").text

    assert [unescape(line) for line in re.findall(r'<a class="row cut-line"[^>]*>(.*?)</a>', page)] == [about] * 2


@pytest.mark.parametrize("query", ["customer:C-20931", "title:letter weber", "link:/7", 'agent:"mail agent"', "vip"])
def test_results_are_found_by_their_title_and_metadata(tmp_path: Path, query: str):
    """On the page and by the endpoint alike, and not by what is another's."""
    about = {
        "title": "Letter to Weber",
        "agent": "mail agent",
        "customer": "C-20931",
        "link": "https://x/7",
        "tag": "vip",
    }

    async def fill(ledger: Ledger) -> None:
        for metadata in (about, {"title": "A letter", "customer": "C-209311", "link": "https://x/8"}):
            await ledger.append(Decision(gate="mail", allowed=False, decided_by="policy", metadata=metadata))

    with run_server(tmp_path) as server:
        server.change(fill)
        server.add_account("Ana")
        client = server.sign_in("Ana")
        found = client.get("/v1/results", params={"q": query}).json()
        page = client.get("/results", params={"q": query})

        assert ([row["title"] for row in found["results"]], found["unsearched"]) == (["Letter to Weber"], 0)
        assert (page.text.count('<a class="row cut-line"'), page.headers.get("content-encoding")) == (1, None)


@pytest.mark.parametrize(
    "query", ["%00", "%22", "%25", "_", "*", "%22+AND+NEAR(", "%F0%9F", "'--", "x" * 10_000, "+" * 99]
)
def test_a_hostile_search_is_a_search(server: RunningServer, query: str):
    """It finds what has these characters, and is no error; the page has no element more than after any other."""
    client = server.sign_in("Ana")

    for path in ("/results", "/v1/results", "/approvals", "/v1/approvals"):
        assert client.get(f"{path}?q={query}").status_code == 200
    assert client.get(f"/results?q={'x' * 10_001}").status_code == 422


@pytest.mark.parametrize("path", ["/results", "/approvals"])
def test_a_search_for_markup_runs_nothing(server: RunningServer, path: str):
    """It stands in its field as it was written, and adds no element, attribute or direction to the page."""
    client = server.sign_in("Ana")
    plain, hostile = (client.get(path, params={"q": text}).text for text in ("nobody", HOSTILE))

    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069]", hostile)
    assert Reader(hostile).elements == Reader(plain).elements
    (value,) = re.findall(r'<input[^>]*name="q"[^>]*value="([^"]*)"', hostile)
    assert unescape(value).startswith(HOSTILE.partition("\u202e")[0])


OWN_FILTERS = [
    *[("/results", name) for name in ("gate", "judge", "outcome", "by", "when")],
    *[("/approvals/mine", name) for name in ("did", "when")],
]


@pytest.mark.parametrize(("path", "name"), OWN_FILTERS)
def test_a_hostile_filter_is_no_part_of_the_page(server: RunningServer, path: str, name: str):
    """It selects nothing or is left out, adds no element and no direction, and leads nowhere else."""
    client = server.sign_in("Ana")
    plain, hostile = (client.get(path, params={name: text}) for text in ("nobody", HOSTILE))

    assert (plain.status_code, hostile.status_code) == (200, 200)
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069]", hostile.text)
    # In whatever order: a judge that is asked for is one of the judges to choose from.
    assert sorted(Reader(hostile.text).elements) == sorted(Reader(plain.text).elements)
    for link in re.findall(r'(?:href|action|formaction|src|hx-get)="([^"]*)"', hostile.text):
        assert link.startswith(("/", "#")), link
        assert "<" not in unescape(link), link


def test_static_files_are_known_by_name_and_kept_by_their_digest(server: RunningServer):
    """A page names them under a path that changes with them; no path leads to another file."""
    client = server.open_client()
    folder = re.search(r'href="(/static/\w+)/style.css"', client.get("/signin", headers={"Accept": "text/html"}).text)
    assert folder is not None
    style = client.get(f"{folder[1]}/style.css")

    assert style.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert style.headers["content-type"] == "text/css; charset=utf-8"
    assert client.get("/static/other/style.css").headers["cache-control"] == "no-cache"
    plain = client.get(f"{folder[1]}/style.css", headers={"Accept-Encoding": "gzip;q=0"})
    assert (style.headers["content-encoding"], "content-encoding" in plain.headers) == ("gzip", False)
    assert (style.text, style.headers["vary"]) == (plain.text, "Accept-Encoding")
    assert 3 * style.num_bytes_downloaded < plain.num_bytes_downloaded
    for name in ("../app.py", "..%2fapp.py", "htmx.LICENSE", "environment.py"):
        assert client.get(f"{folder[1]}/{name}").status_code == 404


@pytest.mark.slow
def test_hostile_text_changes_no_page(tmp_path_factory: pytest.TempPathFactory):
    """In every field of a decision, a vote and a run: the same elements, and each text is read as it was written."""
    readers: dict[str, list[Reader]] = {}
    for text in ("x", HOSTILE):
        folder = tmp_path_factory.mktemp("hostile")
        place = asyncio.run(server_demo.tell_story(folder, text=text, content=f"begin {text} end"))
        with run_server(folder, server_demo.CONFIG) as server:
            server.add_account("Ana")
            client = server.sign_in("Ana")
            for path in ("/", "/results", f"/results/{place}", "/ledger", f"/ledger/{place}", f"/results?q={'x' * 9}"):
                page = client.get(path)
                assert page.status_code == 200, path
                assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", page.text), path
                readers.setdefault(path, []).append(Reader(page.text))
    for path, (plain, hostile) in readers.items():
        assert hostile.elements == plain.elements, path
    shown = readers[f"/results/{place}"][1].text
    assert shown.count("<script>alert(1)</script><img src=x onerror=alert(2)>") > 15


def test_an_entry_that_is_none_of_ours_is_left_out_and_not_a_failure(tmp_path_factory: pytest.TempPathFactory):
    """Programs write to the ledger too: what cannot be read as a decision is shown as an entry alone."""
    folder = tmp_path_factory.mktemp("odd")
    with run_server(folder, server_demo.CONFIG) as server:
        server.add_account("Ana")

        async def write(ledger: object) -> None:
            for payload in ({"gate": 7, "allowed": "yes"}, {"schema": "adjudge/decision/1"}, {"result": [[[]]]}):
                await ledger.append(payload, kind="decision")  # type: ignore[attr-defined] - a ledger
            good = JudgeResult(outcome="passed", judge="careful", score=0.9)
            await ledger.append(
                Decision(gate="replies", allowed=True, decided_by="judge", result=good), kind="decision"
            )  # type: ignore[attr-defined]

        server.change(write)
        client = server.sign_in("Ana")
        assert [(row["gate"], row["state"]) for row in list_rows(client, "")] == [("replies", "passed")]
        assert client.get("/ledger").status_code == 200
        assert client.get("/").status_code == 200
        assert client.get("/results/2").status_code == 404
        assert client.get("/ledger/2").status_code == 200
