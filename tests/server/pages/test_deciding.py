"""Around a decision: what somebody decided before, reasons used before, undoing, answers to the agent, what waits."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

import pytest

from adjudge import Approvals, Ledger
from kit.approval_pages import CONFIG, decide, make_request, read_approval, send
from kit.labels import make_run
from kit.markup import Reader
from kit.patience import wait_for
from kit.server import RunningServer, find_token, read_fields, run_server

pytestmark = pytest.mark.timed

HOSTILE = "</button></q><script>alert(1)</script>\"'><img src=x onerror=alert(1)>"

HOOK = """
[gates.blocks]
rules = [{name = "length", max = 4}, "secrets"]

[gates.deletes]
rules = [{contains = "scratch"}]
on_rule = "ask"

[hook]
tools = {"delete_*" = "deletes"}
"""


@pytest.fixture(scope="module", name="server")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("server")
    (folder / "runs").mkdir()
    make_run(folder / "runs" / "monday", 4)
    config = CONFIG.replace("undo_seconds = 30", 'undo_seconds = 30\nruns = "runs"') + HOOK
    with run_server(folder, config=config) as running:
        for name in ("Ana", "Ben", "Cleo"):
            running.add_account(name)
        running.add_account("Gil", "approve", gates=["replies"])
        running.add_account("Ray", "read")
        yield running


@pytest.fixture(scope="module", name="ana")
def sign_in_ana(server: RunningServer) -> Any:
    return server.sign_in("Ana")


def vote(server: RunningServer, ident: str, by: str, approved: bool, reason: str = "", **more: str) -> None:
    """A vote that counts at once, from outside of the pages."""

    async def work(ledger: Ledger) -> None:
        async with Approvals(ledger) as approvals:
            await approvals.decide(ident, by, approved, reason, **more)

    server.change(work)


def read(client: Any, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.text


def read_words(page: str) -> str:
    return " ".join(Reader(page).text.split())


def list_rows(page: str) -> list[str]:
    """The rows of the table of a page, as text."""
    return [read_words(row) for row in re.findall(r"<tr>.*?</tr>", page.partition("<tbody>")[2], re.DOTALL)]


# ---------------------------------------------------------------- my decisions


def test_my_decisions_are_listed_with_what_the_judge_and_others_said(server: RunningServer, ana: Any):
    """The last one first; against the judge or as it said; and whether another approver decided otherwise."""
    ids = [make_request(server, metadata={"title": f"Mine {number}"}, required=2) for number in range(3)]
    vote(server, ids[0], "Ana", True, "the policy changed")
    vote(server, ids[1], "Ben", True, "fine")
    vote(server, ids[1], "Ana", False, "it promises too much")
    rows = list_rows(read(ana, "/approvals/mine"))

    assert "denied Mine 1 it promises too much replies failed 0.30 as you Ben approved differs" in rows[0]
    assert "approved Mine 0 the policy changed replies failed 0.30 not as you nobody yet" in rows[1]
    assert not any("Mine 2" in row for row in rows)
    assert 'href="/approvals/mine"' in read(ana, "/approvals")


def test_what_i_denied_yesterday_is_one_link_away(server: RunningServer, ana: Any):
    """By what I did and by time; filters that do not exist change nothing."""
    approved, denied = (make_request(server, metadata={"title": name}) for name in ("Kept", "Refused"))
    vote(server, approved, "Ana", True, "yes")
    vote(server, denied, "Ana", False)
    page = read(ana, "/approvals/mine?did=denied&when=two")

    assert any("Refused" in row for row in list_rows(page))
    assert not any("Kept" in row for row in list_rows(page))
    assert 'href="/approvals/mine?did=denied&amp;when=week"' in page
    assert any("Kept" in row for row in list_rows(read(ana, "/approvals/mine?did=x&when=y")))


def test_nobody_sees_the_decisions_of_others(server: RunningServer, ana: Any):
    """Each list is its reader's; an account that cannot approve has none; one that is limited sees its gates' alone."""
    ours, other = (make_request(server, metadata={"title": name}, gate=gate, approvers=["Ana", "Ben", "Gil"])
                   for name, gate in (("Of this gate", "replies"), ("Of another gate", "others")))  # fmt: skip
    for ident in (ours, other):
        vote(server, ident, "Gil", False, "no")
    page = read(server.sign_in("Gil"), "/approvals/mine")

    assert [row for row in list_rows(page) if "Of this gate" in row]
    assert "Of another gate" not in page
    assert "Of this gate" not in read(ana, "/approvals/mine?when=all")
    assert server.sign_in("Ray").get("/approvals/mine").status_code == 403


def test_a_vote_that_can_be_undone_is_no_decision_yet(server: RunningServer, ana: Any):
    """So a reader who hides the judge cannot look there, and vote again."""
    ident = make_request(server, metadata={"title": "Not yet decided"})
    assert send(ana, ident, "deny", "hm").status_code == 303
    assert "Not yet decided" not in read(ana, "/approvals/mine").partition("<tbody>")[2]
    ana.post(f"/approvals/{ident}/undo", data={"csrf_token": find_token(ana, "/approvals")})


# ---------------------------------------------------------------- reasons used before


def list_reasons(page: str) -> list[str]:
    """The reasons that a page offers; they are in a part that only scripts show."""
    part = re.search(r'<div class="chips"[^>]* hidden>.*?</div>', page, re.DOTALL)
    return [] if part is None else [html.unescape(text) for text in re.findall(r'dir="auto">(.*?)</button>', part[0])]


def test_reasons_used_before_are_offered_and_none_is_chosen(server: RunningServer):
    """One's own first, the most used before the others, then those of the same gate."""
    server.add_account("Rhea", "approve")
    rhea = server.sign_in("Rhea")
    terms: dict[str, Any] = {"approvers": ["Rhea", "Ben"], "gate": "chips"}
    for reason in ("wrong amount", "no ground in the policy", "wrong amount"):
        vote(server, make_request(server, **terms), "Rhea", False, reason)
    vote(server, make_request(server, **terms), "Ben", False, "Ben's reason")
    vote(server, make_request(server, approvers=["Rhea", "Ben"], gate="else"), "Ben", False, "of another gate")
    page = read(rhea, f"/approvals/{make_request(server, **terms)}")

    assert list_reasons(page) == ["wrong amount", "no ground in the policy", "Ben's reason"]
    assert (
        '<textarea id="reason" name="reason" rows="3" maxlength="10000" aria-describedby="reason-hint" required' in page
    )
    assert re.search(r'<textarea id="reason"[^>]*></textarea>', page)


def test_no_reason_is_offered_from_what_one_was_not_asked_about(server: RunningServer):
    """It may quote what others alone may read; nor one about this very request, nor one that hides something."""
    server.add_account("Sol", "approve")
    sol = server.sign_in("Sol")
    for reason in ("short\u202eand turned", "two\nlines", "x" * 101, "a\u200bb"):
        vote(server, make_request(server, approvers=["Sol"], gate="sol"), "Sol", False, reason)
    vote(server, make_request(server, approvers=["Ben"], gate="sol"), "Ben", False, "Ben alone was asked")
    ident = make_request(server, approvers=["Sol", "Ben"], required=2, gate="sol")
    vote(server, ident, "Ben", True, "about this one")

    assert list_reasons(read(sol, f"/approvals/{ident}")) == []


def test_hostile_reasons_and_answers_are_text_wherever_they_are_shown(server: RunningServer):
    """In buttons, in my decisions, beside a vote and in the form that keeps what was undone."""
    server.add_account("Tom", "approve")
    tom = server.sign_in("Tom")
    vote(server, make_request(server, approvers=["Tom"], gate="tom"), "Tom", False, HOSTILE, answer=HOSTILE)
    metadata = {"title": HOSTILE, "adjudge_run": "key:x/run-9"}
    ident = make_request(server, approvers=["Tom", "Ben"], gate="tom", metadata=metadata)
    assert send(tom, ident, "deny", HOSTILE).status_code == 303
    pages = [read(tom, f"/approvals/{ident}")]
    tom.post(f"/approvals/{ident}/undo", data={"csrf_token": find_token(tom, "/approvals")})
    pages += [read(tom, f"/approvals/{ident}?undone=true"), read(tom, "/approvals/mine"), read(tom, "/approvals/deny")]

    for page in pages:
        tags = [tag for tag, _ in Reader(page).elements]
        assert "img" not in tags
        assert tags.count("script") == len(re.findall(r'<script src="/static/', page))
    assert list_reasons(pages[1]) == [HOSTILE]


# ---------------------------------------------------------------- undoing


def test_undoing_says_what_it_did_and_keeps_the_text(server: RunningServer, ana: Any):
    """Also on another day: the form holds what was written until somebody votes again."""
    ident = make_request(server, metadata={"title": "Undo me"})
    send(ana, ident, "deny", "It promises a day.")
    answer = ana.post(f"/approvals/{ident}/undo", data={"csrf_token": find_token(ana, "/approvals")})
    page = read(ana, answer.headers["location"])

    assert "You took it back: your denial of Undo me does not count, and nobody was told" in read_words(page)
    assert ">It promises a day.</textarea>" in page
    assert ">It promises a day.</textarea>" in read(ana, f"/approvals/{ident}")
    assert "You took it back" not in read(ana, f"/approvals/{ident}")
    assert "It promises a day." not in read(server.sign_in("Ben"), f"/approvals/{ident}")


def test_a_link_cannot_say_that_something_was_undone(server: RunningServer, ana: Any):
    """What the page says comes from the ledger."""
    page = read(ana, f"/approvals/{make_request(server)}?undone=true")
    assert "You took it back" not in page


# ---------------------------------------------------------------- a line for the agent


def hold_call(server: RunningServer, run: str) -> str:
    agent = server.open_client(key=server.make_key("hook"))
    call = {"tool": "delete_file", "arguments": {"path": "/srv"}, "call_id": "c1", "run_id": run}
    return agent.post("/v1/tools/check", json=call).json()["approval_id"]


def test_every_approver_reads_the_line_for_the_agent(server: RunningServer, ana: Any):
    """While the denial can be undone, and after it counts; and it is kept when it is undone."""
    ident = hold_call(server, "run-1")
    line = "Say ten working days; drop the priority."
    assert send(ana, ident, "deny", "no", answer=line).status_code == 303
    assert f'To the agent:</span> <q dir="auto">{line}</q>' in read(server.sign_in("Ben"), f"/approvals/{ident}")

    ana.post(f"/approvals/{ident}/undo", data={"csrf_token": find_token(ana, "/approvals")})
    assert f'value="{line}"' in read(ana, f"/approvals/{ident}")
    vote(server, ident, "Ana", False, "no", answer=line)
    assert line in read(server.sign_in("Ben"), f"/approvals/{ident}")


def test_the_form_says_whether_the_agent_is_told(server: RunningServer, ana: Any):
    """This server's guard does not pass answers on until its operator says so."""
    page = read(ana, f"/approvals/{hold_call(server, 'run-2')}")
    assert "The agent is not told it: this server does not pass answers on" in read_words(page)
    assert "all approvers can read it" in page


def test_a_server_passes_the_line_on_where_its_operator_says_so(tmp_path: Any):
    """Then the form says that the agent is told it, and the agent is."""
    config = CONFIG.replace("undo_seconds = 30", "undo_seconds = 0") + HOOK + "pass_answers = true\n"
    with run_server(tmp_path, config=config) as running:
        running.add_account("Ana")
        ana, agent = running.sign_in("Ana"), running.open_client(key=running.make_key("hook"))
        call = {"tool": "delete_file", "arguments": {"path": "/srv"}, "call_id": "c1", "run_id": "run-3"}
        ident = agent.post("/v1/tools/check", json=call).json()["approval_id"]
        assert "The agent is told it." in read_words(read(ana, f"/approvals/{ident}"))
        assert send(ana, ident, "deny", "no", answer="Ask for one folder.").status_code == 303
        verdict = agent.post("/v1/tools/resume", json=call).json()

    assert not verdict["allowed"]
    assert 'They wrote: "Ask for one folder."' in verdict["message"]


# ---------------------------------------------------------------- time


def test_the_expiry_has_its_day_and_its_zone(server: RunningServer, ana: Any):
    """Without scripts all times are UTC, which the page says; a script finds the moment in the element."""
    ident = make_request(server, expires_in=5 * 86_400)
    expires_at = read_approval(server, ident).expires_at
    page = read(ana, f"/approvals/{ident}")
    day = f"{expires_at.day} {expires_at:%b %Y}"

    assert f"Until {day}, {expires_at:%H:%M:%S} UTC. If nobody decides" in read_words(page)
    assert "Times are <span data-zone>UTC</span>" in page
    assert f'<time datetime="{expires_at.isoformat(timespec="seconds")}" data-form="moment"' in page


def test_times_can_stay_in_utc(server: RunningServer):
    """A choice of this browser, made by a form with its token."""
    client = server.sign_in("Cleo")
    assert 'data-times="local"' in read(client, "/")
    done = client.post("/times", data={"csrf_token": find_token(client, "/"), "times": "utc"})
    assert done.status_code == 303
    assert 'data-times="utc"' in read(client, "/")
    assert client.post("/times", data={"times": "local"}).status_code == 403


# ---------------------------------------------------------------- what waits


def test_what_waits_is_counted_on_every_page(server: RunningServer):
    """In the title and in the navigation, also on a run, on an error and where a form was refused."""
    server.add_account("Una")
    una = server.sign_in("Una")
    ident = make_request(server, approvers=["Una"])
    make_request(server, approvers=["Una"])
    pages = [una.get(path).text for path in ("/approvals", "/runs/monday", "/nowhere", "/labels", "/ledger")]
    pages.append(send(una, ident, "approve").text)

    for page in pages:
        assert "<title>(2) " in page
        assert 'data-waits="/approvals"><b>2</b>' in page


def test_labels_that_are_left_are_counted(tmp_path: Any):
    """For each person; a run that nobody labels yet is not begun by looking."""
    make_run(tmp_path / "runs" / "monday", 4)
    config = CONFIG.replace("undo_seconds = 30", 'runs = "runs"\nlabels_per_case = 2')
    with run_server(tmp_path, config=config) as running:
        for name in ("Ana", "Ben"):
            running.add_account(name)
        ana, ben = running.sign_in("Ana"), running.sign_in("Ben")
        assert 'data-waits="/labels"><b>0</b>' in read(ana, "/")
        read(ana, "/labels/monday")
        assert 'data-waits="/labels"><b>4</b>' in read(ana, "/")
        page = read(ana, "/labels/monday")
        fields = read_fields(ana, page)
        assert ana.post("/labels/monday", data=fields | {"label": "good"}).status_code == 303
        assert 'data-waits="/labels"><b>3</b>' in read(ana, "/")
        assert 'data-waits="/labels"><b>4</b>' in read(ben, "/")
        assert ana.get("/waiting").json()["pages"]["/labels"] == 3


def test_the_live_update_names_gates_and_numbers_alone(server: RunningServer):
    """No title, no content, no name: a notification is read on a lock screen too."""
    server.add_account("Vera", "approve")
    vera = server.sign_in("Vera")
    metadata = {"title": "Secret title", "customer": "C-1"}
    for gate in ("refunds", "refunds", "replies"):
        make_request(server, "Secret content", quote="", approvers=["Vera"], gate=gate, metadata=metadata)
    answer = vera.get("/waiting")

    assert answer.json() == {"pages": {"/approvals": 3}, "gates": {"refunds": 2, "replies": 1}}
    assert answer.headers["cache-control"] == "no-store"
    assert server.open_client().get("/waiting").status_code == 401
    assert server.open_client(key=server.make_key("approve", approver="Vera")).get("/waiting").status_code == 403


def test_a_page_that_is_left_open_does_not_keep_its_session(tmp_path: Any):
    """It asks what waits for as long as it is open, and nobody may be there."""
    config = CONFIG.replace("undo_seconds = 30", "session_idle = 2")
    with run_server(tmp_path, config=config) as running:
        running.add_account("Ana")
        ana = running.sign_in("Ana")
        wait_for(lambda: ana.get("/waiting").status_code != 200)  # asking what waits keeps no session alive
        assert ana.get("/approvals").status_code == 303


# ---------------------------------------------------------------- who may look


def test_somebody_who_reads_may_look_at_a_request_and_decide_nothing(server: RunningServer):
    """As over HTTP; the page of a result leads there."""
    ident = make_request(server, approvers=["Ana", "Ray"], metadata={"title": "For reading"})
    ray = server.sign_in("Ray")
    page = read(ray, f"/approvals/{ident}")

    assert "For reading" in page
    assert "so it can look and not decide" in page
    for path in ("/approvals/mine", "/approvals/deny"):
        assert f'href="{path}"' not in page
        assert ray.get(path).status_code == 403
    assert 'action="/approvals/judge"' not in page or "Hide the judge" not in page
    data = {"csrf_token": find_token(ray, "/approvals"), "vote": "deny"}
    assert ray.post(f"/approvals/{ident}/decide", data=data).status_code == 403
    assert f'href="/approvals/{ident}">The request</a>' in read(ray, f"/results/{ident}")


# ---------------------------------------------------------------- several, and errors


def test_deny_several_shows_each_without_leaving(server: RunningServer, ana: Any):
    """Its content is folded beside its box; the page of the request opens beside this one."""
    ident = make_request(server, "The first words of it.", quote="", metadata={"title": "Look here"})
    page = read(ana, "/approvals/deny")

    assert "The first words of it." in page
    assert f'href="/approvals/{ident}" target="_blank" rel="noopener"' in page
    assert "data-chooses" in page
    decide(server, ident, "Ben", False)


def test_deny_several_shows_the_rows_of_a_call(server: RunningServer, ana: Any):
    """As on the page of the request; of a content that is longer than what is kept in the list, its beginning."""
    call = {"tool": "mail.send", "arguments": {"to": "Mara", "body": "Dear Mara,\n\nit is on its way."}}
    long = {"tool": "mail.bulk", "arguments": {"body": "x" * 5_000}}
    ids = [make_request(server, content, quote="") for content in (call, long)]
    page = read(ana, "/approvals/deny")

    parts = re.findall(r'name="ids" value="([^"]+)"(.*?)(?=name="ids" value="|</form>)', page, re.DOTALL)
    short_part, long_part = (dict(parts)[ident] for ident in ids)
    rows = re.findall(r'<div class="content tool-call".*?<dl class="call">(.*?)</dl>', short_part, re.DOTALL)

    assert [read_words(row) for row in rows] == ["to Mara body Dear Mara, it is on its way."]
    assert "Dear Mara,\n\nit is on its way." in Reader(rows[0]).text
    assert "its first characters" not in short_part
    assert "its first characters" in long_part
    assert "tool-call" not in long_part
    for ident in ids:
        decide(server, ident, "Ben", False)


def test_an_error_says_what_to_do_in_plain_words(server: RunningServer, ana: Any):
    """What happened, that nothing was done, what to do next; the number is for whoever is asked for help."""
    for path, words in (("/nowhere", "We could not find this"), ("/approvals/mine?page=x", "could not be read")):
        answer = ana.get(path)
        page = read_words(answer.text)
        assert answer.status_code in (404, 422)
        assert words in page
        assert "What to do next" in page
        assert "Nothing was changed or decided" in page
        assert page.index("What to do next") < page.index(f"Status {answer.status_code}")
    refused = server.sign_in("Ray").get("/labels")
    assert (refused.status_code, "Your account cannot open this" in refused.text) == (403, True)


def test_a_result_names_the_rule_that_decided(server: RunningServer, ana: Any):
    """And what it found; a step in which nothing happened is not there."""
    client = server.open_client(key=server.make_key("judge", "read"))
    checked = client.post("/v1/gates/blocks/check", json={"content": "rm -rf /srv/data"}).json()
    html = read(ana, f"/results/{checked['id']}")
    page, story = read_words(html), html.partition('<ol class="story')[2]

    assert "The rule length (is 16 characters long, above the maximum of 4) decided. No judge was asked." in page
    assert re.findall(r"<h2>(\w[^<]*\w)", story) == ["Asked", "Rules", "Blocked", "In the ledger"]
