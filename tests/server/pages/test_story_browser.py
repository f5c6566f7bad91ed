"""The whole of what the pages are for, in a real browser: a program is held, a person decides, two people label."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from adjudge import Client, Decision
from adjudge.labels import compute_label_agreement, open_label_queue
from kit.approval_pages import QUOTE, WHY
from kit.browser import open_chromium
from kit.labels import make_run
from kit.patience import HANG, wait_for
from kit.server import PASSWORD, RunningServer, enter_password, run_server
from kit.server_process import run_command

pytestmark = pytest.mark.integration


REASON = "The bank confirmed that it is there already."

CONFIG = """
[server]
undo_seconds = 5
runs = "runs"
labels_per_case = 2

[judges.careful]
seats = ["python:kit.approval_pages:judge_promises"]

[rubrics]
replies = "replies.yaml"

[gates.replies]
judge = "careful"
rubric = "replies"
on_failed = "ask"
ask = {approvers = ["Ana", "Ben"], expires_in = 3600, show_content = true}

[ledger]
url = "sqlite:///adjudge.db"
store_content = "full"
"""

RUBRIC = "name: Replies\ncriteria: [{name: policy, description: Promises what the policy does., quote: true}]\n"

Visit = Callable[..., Any]


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program that sends a reply to the gate of the server, and goes on when it knows."""

    client: Client
    pool: ThreadPoolExecutor

    def send(self, content: str) -> Future[Decision]:
        """What the gate says in the end, while the program waits for it."""
        gate = self.client.gate("replies")

        def wait() -> Decision:
            held = gate.check_sync(content, metadata={"title": content, "agent": "support"})
            assert held.pending, held.explain()
            return gate.resume_sync(held, content=content)

        return self.pool.submit(wait)


@pytest.fixture(scope="module", name="server")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("server")
    (folder / "replies.yaml").write_text(RUBRIC, encoding="utf-8")
    (folder / "runs").mkdir()
    make_run(folder / "runs" / "twenty", 20)
    make_run(folder / "runs" / "three", 3)
    with run_server(folder, CONFIG) as running:
        for name in ("Ana", "Ben"):
            running.add_account(name)
        yield running


@pytest.fixture(scope="module", name="program")
def start_program(server: RunningServer) -> Iterator[Program]:
    client = Client(server.url, key=server.make_key("judge"))
    with ThreadPoolExecutor(1) as pool:
        yield Program(client=client, pool=pool)
    client.close()


@pytest.fixture(scope="module", name="browser")
def provide_browser(server: RunningServer, program: Program) -> Iterator[Any]:
    """The system's Chromium; server and program are there before, because the driver keeps a loop running."""
    assert server
    assert program
    with open_chromium() as browser:
        yield browser


@pytest.fixture(name="visit")
def provide_visit(browser: Any, server: RunningServer) -> Iterator[Visit]:
    """Signs somebody in, in a window of their own, and opens a page."""
    contexts: list[Any] = []

    def visit(name: str, path: str, **options: Any) -> Any:
        context = browser.new_context(base_url=server.url, **options)
        contexts.append(context)
        page = context.new_page()
        page.goto(f"/signin?next={path}")
        page.get_by_label("Name").fill(name)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(f"**{path}")
        return page

    yield visit
    for context in contexts:
        context.close()


def read_text(page: Any, place: str = "main") -> str:
    """What a part of a page says, in one line."""
    return " ".join(page.locator(place).inner_text().split())


def check_account(page: Any, server: RunningServer, decision: Decision, content: str) -> None:
    """The page of the result and the ledger tell how a reply came to be let through, and the ledger is in order."""
    page.goto(f"/results/{decision.id}")
    story = read_text(page)
    assert "let through" in story
    assert "failed with 0.20" in story
    assert WHY in story
    assert "Ana approved" in story
    assert REASON in story
    assert page.locator("mark").inner_text().startswith(QUOTE)
    assert content in story

    document = page.request.get(f"/v1/results/{decision.id}").json()
    kinds = {entry["kind"] for entry in document["entries"]}
    assert {"approval.requested", "approval.vote_pending", "approval.voted", "approval.closed", "override"} <= kinds
    page.goto("/ledger")
    page.get_by_role("button", name="Verify now").click()
    assert "are as they were written" in read_text(page)
    verified = run_command(server.folder, "ledger", "verify")
    assert verified.returncode == 0, verified.stderr


def test_a_reply_that_is_held_goes_out_after_somebody_read_why_and_approved_by_keyboard(
    server: RunningServer, program: Program, visit: Visit
):
    """From the empty queue to the ledger; until the time to undo is over, the program waits."""
    page = visit("Ana", "/approvals")
    assert "Nothing waits for approval" in read_text(page)

    content = "You will have the money within 24 hours."
    future = program.send(content)
    page.locator("#news").get_by_text("1 new").wait_for()  # nobody touched the page
    page.locator("#news a").click()
    page.locator("h1", has_text=content).wait_for()
    text = read_text(page)
    assert "failed with 0.20" in text
    assert WHY in text
    assert page.locator("mark").inner_text().startswith(QUOTE)

    page.keyboard.press("a")
    page.keyboard.type(REASON)
    assert not future.done()
    with page.expect_navigation():
        page.keyboard.press("Control+Enter")
    page.locator(".toast").get_by_role("button", name="Undo").wait_for()
    decision = future.result(timeout=HANG)

    assert decision.allowed
    assert decision.decided_by == "human"
    check_account(page, server, decision, content)


def test_two_people_label_twenty_cases_blind_and_see_how_far_they_agree(server: RunningServer, visit: Visit):
    """As the labels in the run's folder have it; and neither sees the other's or the judge's before."""
    ana, ben = visit("Ana", "/labels/twenty"), visit("Ben", "/labels/twenty")
    for number in range(20):
        for page, key in ((ana, "1" if number % 4 else "2"), (ben, "1" if number % 5 else "2")):
            text = page.content()
            assert "words" not in text, "the name of the judge"
            assert ("Ben" if page is ana else "Ana") not in text
            with page.expect_navigation():
                page.keyboard.press(key)
    ana.reload()

    with open_label_queue(Path(server.folder) / "runs" / "twenty") as queue:
        labels = [label for label in queue.labels() if label.kind == "person"]
    agreement = compute_label_agreement(labels)
    by_case: dict[str, set[Any]] = {}
    for label in labels:
        by_case.setdefault(label.case, set()).add(label.value)
    assert len(labels) == 40
    assert (agreement.agreed.count, agreement.agreed.of) == (sum(len(values) == 1 for values in by_case.values()), 20)
    for page in (ana, ben):
        shown = read_text(page)
        assert f"People agree on {100 * agreement.agreed.count / 20:.0f}" in shown
        assert f"{agreement.agreed.count} of 20" in shown
        assert agreement.ac1 is not None
        assert f"AC1 {agreement.ac1:.2f}" in shown


def test_both_are_possible_without_javascript(server: RunningServer, program: Program, visit: Visit):
    """With links and buttons alone: approving what is held, and labelling."""
    page = visit("Ana", "/approvals", java_script_enabled=False)
    content = "The money comes within 24 hours, as I said."
    future = program.send(content)
    wait_for(lambda: page.goto("/approvals") and page.get_by_role("heading", name=content).count())
    page.get_by_label("Your reason").fill(REASON)
    page.get_by_role("button", name="Approve").click()
    enter_password(page)
    page.locator(".toast").get_by_role("button", name="Undo").wait_for()
    decision = future.result(timeout=HANG)
    assert decision.allowed
    check_account(page, server, decision, content)

    ben = visit("Ben", "/labels/three", java_script_enabled=False)
    page.goto("/labels/three")
    for number in range(3):
        for one, word in ((page, "Good"), (ben, "Bad" if number == 0 else "Good")):
            # Without waiting, the next click could reach the button of the case that is answered already.
            with one.expect_navigation():
                one.get_by_role("button", name=word).click()
            with one.expect_navigation():
                enter_password(one)
    page.goto("/labels/three")
    for one in (page, ben):
        assert "2 of 3" in read_text(one)
