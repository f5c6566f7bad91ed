"""Approving and labelling in a real browser: keys, live news, what is hidden, stored attacks, and two people."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from adjudge import Case
from adjudge.labels import open_label_queue
from kit.approval_pages import CONFIG, list_kinds, make_request, read_approval
from kit.browser import note_faults, open_chromium
from kit.labels import make_run
from kit.server import RunningServer, enter_password, run_server, sign_in

pytestmark = pytest.mark.integration


HOSTILE = (
    "</textarea></title></div><script>alert(1)</script>\"'><img src=x onerror=alert(1)><b hx-get=/x hx-trigger=load>"
)

HOOK = """
[gates.deletes]
rules = [{contains = "scratch"}]
on_rule = "ask"

[hook]
tools = {"delete_*" = "deletes"}
"""

Visit = Callable[..., Any]


@pytest.fixture(scope="module", name="server")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("server")
    (folder / "runs").mkdir()
    make_run(folder / "runs" / "monday", 4)
    make_run(folder / "runs" / "hostile", [Case(id="x", content=HOSTILE, task=HOSTILE, reference=HOSTILE)])
    config = CONFIG.replace("undo_seconds = 30", 'undo_seconds = 30\nruns = "runs"\nlabels_per_case = 2') + HOOK
    with run_server(folder, config=config) as running:
        for name in ("Ana", "Ben"):
            running.add_account(name)
        yield running


@pytest.fixture(scope="module", name="browser")
def provide_browser() -> Iterator[Any]:
    with open_chromium() as browser:
        yield browser


@pytest.fixture(name="visit")
def provide_visit(browser: Any, server: RunningServer) -> Iterator[Visit]:
    """Sign somebody in and open a page. Nothing may open a dialog, break the policy or ask another host."""
    contexts: list[Any] = []
    wrong: list[str] = []

    def visit(name: str, path: str) -> Any:
        context = browser.new_context(base_url=server.url)
        contexts.append(context)
        page = context.new_page()
        note_faults(page, server.url, wrong)
        sign_in(page, name, path)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert wrong == []


def test_one_key_only_prepares_and_two_send(server: RunningServer, visit: Visit):
    """``a`` goes to the reason; Control and Enter sends; ``u`` takes it back."""
    ident = make_request(server)
    page = visit("Ana", f"/approvals/{ident}")
    page.keyboard.press("a")
    assert page.evaluate("document.activeElement.id") == "reason"
    assert read_approval(server, ident).pending_votes == ()

    page.keyboard.type("Approve: a d u h ?")  # letters in a field are letters
    with page.expect_navigation():
        page.keyboard.press("Control+Enter")
    vote = read_approval(server, ident).pending_votes[0]
    assert (vote.approved, vote.reason) == (True, "Approve: a d u h ?")

    with page.expect_navigation():
        page.keyboard.press("u")
    assert list_kinds(server, ident) == ["requested", "vote_pending", "vote_withdrawn"]


def test_denying_by_keys_needs_no_reason(server: RunningServer, visit: Visit):
    """``d`` prepares as well; the last choice is sent."""
    ident = make_request(server)
    page = visit("Ana", f"/approvals/{ident}")
    page.keyboard.press("a")
    page.keyboard.press("Escape")
    page.keyboard.press("d")
    with page.expect_navigation():
        page.keyboard.press("Control+Enter")

    assert [vote.approved for vote in read_approval(server, ident).pending_votes] == [False]


def test_what_is_off_cannot_be_chosen_by_a_key(server: RunningServer, visit: Visit):
    """Nor sent by what was chosen before."""
    ident = make_request(server, show_content=False)
    page = visit("Ana", f"/approvals/{ident}")
    page.keyboard.press("a")
    assert "off" in page.text_content("#said")
    page.keyboard.press("Control+Enter")
    page.wait_for_timeout(300)

    assert list_kinds(server, ident) == ["requested"]


def test_keys_move_through_the_queue_and_the_quotations(server: RunningServer, visit: Visit):
    """``j`` and ``k`` go on and back, ``n`` to the next quotation, ``h`` hides the judge."""
    first, second = make_request(server, expires_in=20), make_request(server, expires_in=25)
    page = visit("Ana", f"/approvals/{first}")
    with page.expect_navigation():
        page.keyboard.press("j")
    assert page.url.endswith(second)
    with page.expect_navigation():
        page.keyboard.press("k")
    assert page.url.endswith(first)
    page.keyboard.press("n")
    assert page.url.endswith("#e1")
    assert page.locator("mark").count() == 1
    with page.expect_navigation():
        page.keyboard.press("h")
    assert page.locator("mark").count() == 0
    assert "careful" not in page.content()


def test_what_is_new_is_announced_without_moving_anything(server: RunningServer, visit: Visit):
    """The queue stays as it is until somebody asks for it, and the focus too."""
    ident = make_request(server)
    page = visit("Ben", f"/approvals/{ident}")
    before = page.locator(".queue .item").count()
    page.focus("#reason")
    page.keyboard.type("half a sen")
    new = make_request(server)
    page.wait_for_selector("#news a")

    assert page.text_content("#news").strip() == "1 new"
    assert page.locator(".queue .item").count() == before
    assert page.evaluate("document.activeElement.id") == "reason"
    assert page.input_value("#reason") == "half a sen"
    page.click("#news a")
    page.wait_for_url(f"**/approvals/{new}")


def test_stored_attacks_run_nowhere(server: RunningServer, visit: Visit):
    """Through every text that a model, a program or a person can set; nothing is asked of the server for them."""
    metadata = {"title": HOSTILE, "agent": HOSTILE, "tool": HOSTILE}
    options: dict[str, Any] = {"quote": HOSTILE, "reason": HOSTILE, "metadata": metadata, "judge": "<img src=x>"}
    ident = make_request(server, f"{HOSTILE} {HOSTILE}", **options)
    page = visit("Ben", f"/approvals/{ident}")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.fill("#reason", HOSTILE)
    page.click("button[value=comment]")
    page.wait_for_load_state()
    for path in (f"/approvals/{ident}", "/approvals/deny", "/labels/hostile"):
        page.goto(path)
        page.wait_for_timeout(200)
        assert page.locator("img, b[hx-get], main script").count() == 0
    page.fill("#comment", HOSTILE)
    with page.expect_navigation():
        page.keyboard.press("Escape")
        page.keyboard.press("2")
    assert not [url for url in asked if url.endswith("/x")]


def test_two_people_label_by_keys_and_settle_what_differs(server: RunningServer, visit: Visit):
    """Each sees nothing of the other; then the agreement and the disagreements."""
    ana, ben = visit("Ana", "/labels/monday"), visit("Ben", "/labels/monday")
    for number in range(4):
        for page, key in ((ana, "1"), (ben, "2" if number == 0 else "1")):
            with page.expect_navigation():
                page.keyboard.press(key)
            assert "Ana" not in page.text_content("main") or page is ana
            assert "judge of words" not in page.content()
    assert "People agree on 75 %" in " ".join(ben.text_content("main").split())

    ana.goto("/labels/monday/differences")
    assert "Ben" in ana.text_content("main")
    ana.keyboard.press("2")
    with ana.expect_navigation():
        ana.keyboard.press("Control+Enter")
    with open_label_queue(Path(server.folder) / "runs" / "monday") as queue:
        assert [label.value for label in queue.labels() if label.kind == "adjudication"] == [False]
        assert sum(label.kind == "person" for label in queue.labels()) == 8


@pytest.mark.parametrize("scripts", [True, False])
def test_a_comment_is_kept_for_the_answer_and_its_enter_sends_nothing(tmp_path: Path, browser: Any, scripts: bool):
    """Neither a skip nor an answer; with scripts the keys of the answers work again."""
    make_run(tmp_path / "runs" / "monday", 2)
    with run_server(tmp_path, config=CONFIG.replace("[server]", '[server]\nruns = "runs"', 1)) as running:
        running.add_account("Ana")
        context = browser.new_context(base_url=running.url, java_script_enabled=scripts)
        page = context.new_page()
        sign_in(page, "Ana", "/labels/monday")
        case = page.locator("input[name=case]").input_value()
        page.fill("#comment", "The date is wrong.")
        page.press("#comment", "Enter")
        assert page.locator("#comment").input_value() == "The date is wrong."
        if scripts:
            page.keyboard.press("2")
        else:
            page.click("button[value=bad]")
            enter_password(page)
        page.get_by_text(f"Case {case}: bad").wait_for()
        context.close()
    with open_label_queue(tmp_path / "runs" / "monday") as queue:
        assert [(label.case, label.value, label.comment) for label in queue.labels()] == [
            (case, False, "The date is wrong.")
        ]


def test_an_undo_that_is_over_goes_away_by_itself(tmp_path: Path, browser: Any):
    """The page then says that the vote counts; the focus was on the message."""
    with run_server(tmp_path, config=CONFIG.replace("undo_seconds = 30", "undo_seconds = 2")) as running:
        running.add_account("Ana")
        ident = make_request(running)
        with browser.new_context(base_url=running.url) as context:
            page = context.new_page()
            sign_in(page, "Ana", f"/approvals/{ident}")
            page.fill("#reason", "no")
            with page.expect_navigation():
                page.click("button.say-no")
            page.wait_for_function("document.activeElement.className.includes('toast')")
            page.locator(".toast").wait_for(state="detached")
            page.get_by_text("Ana (you) denied it").first.wait_for()
            assert page.locator(".toast").count() == 0


def test_a_run_that_was_stopped_goes_on_by_a_button(server: RunningServer, visit: Visit):
    """The page asks for a reason first; afterwards it says nothing of the run any more."""
    agent = server.open_client(key=server.make_key("hook"))
    call = {"tool": "delete_file", "arguments": {"path": "/srv"}, "call_id": "c1", "run_id": "run-1"}
    held = agent.post("/v1/tools/check", json=call).json()
    made = {"tool_name": "delete_file", "tool_input": {"path": "/etc"}, "tool_use_id": "t1", "tool_response": "ok"}
    event = {"session_id": "run-1", "cwd": "/work", "hook_event_name": "PostToolUse", **made}
    assert agent.post("/v1/hooks/claude", json=event).status_code == 200
    page = visit("Ana", f"/approvals/{held['approval_id']}")

    button = page.get_by_role("button", name="Let this run go on")
    button.click()
    assert page.get_by_role("heading", name="The trust of this run has ended").is_visible()
    page.fill("#go-on", "it was my own hook")
    with page.expect_navigation():
        button.click()
    assert page.url.endswith(held["approval_id"])
    assert page.get_by_role("heading", name="The trust of this run has ended").count() == 0
