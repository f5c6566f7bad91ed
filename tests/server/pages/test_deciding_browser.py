"""Deciding in a real browser: by keyboard alone, without scripts, on a phone; and what scripts add to a page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from adjudge import Approvals, Ledger
from adjudge.labels import open_label_queue
from adjudge.server import set_password
from kit.approval_pages import CONFIG, decide, make_request, read_approval
from kit.browser import WIDTHS, note_faults, open_chromium, press_by_tab, tab_to, type_by_tab
from kit.labels import label_all, make_run
from kit.patience import wait_for
from kit.server import PASSWORD, RunningServer, enter_password, run_server, sign_in

pytestmark = pytest.mark.integration

HOSTILE = "</button></title><img src=x onerror=alert(1)><script>alert(1)</script>\"'"

Visit = Callable[..., Any]

STUB = """
    window.shown = [];
    window.Notification = class {
        constructor(title, options) { window.shown.push([title, options.body, options.tag]); }
        addEventListener() {}
        static permission = 'default';
        static async requestPermission() { return (Notification.permission = 'granted'); }
    };
    document.hasFocus = () => false;
    const every = window.setTimeout;
    window.setTimeout = (work, time) => every(work, Math.min(time, 300));
"""
"""A browser whose notifications can be read, on a page that has not the focus, and that asks more often."""


@pytest.fixture(scope="module", name="server")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder: Path = tmp_path_factory.mktemp("server")
    (folder / "runs").mkdir()
    make_run(folder / "runs" / "monday", 20)
    for width in WIDTHS:
        make_run(folder / "runs" / f"labels-{width}", 20)
    config = CONFIG.replace("undo_seconds = 30", 'undo_seconds = 60\nruns = "runs"')
    config += '[gates.blocks]\nrules = [{name = "length", max = 4}]\n'
    with run_server(folder, config=config) as running:
        for name in ("Ana", "Ben", "Job", "Nell", "Tim"):
            running.add_account(name)
        yield running


@pytest.fixture(scope="module", name="browser")
def provide_browser(server: RunningServer) -> Iterator[Any]:
    assert server
    with open_chromium() as browser:
        yield browser


@pytest.fixture(name="visit")
def provide_visit(browser: Any, server: RunningServer) -> Iterator[Visit]:
    """Sign somebody in, or with an empty name nobody, and open a page.

    Nothing may open a dialog, break the policy or ask another host.
    """
    contexts: list[Any] = []
    wrong: list[str] = []

    def visit(name: str, path: str, *, width: int = 1440, script: str = "", **options: Any) -> Any:
        context = browser.new_context(base_url=server.url, viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        if script:
            page.add_init_script(script)
        note_faults(page, server.url, wrong)
        if name:
            sign_in(page, name, path)
        else:
            page.goto(path)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert wrong == []


def vote(server: RunningServer, ident: str, by: str, reason: str) -> None:
    """A denial that counts at once, from outside of the pages."""

    async def work(ledger: Ledger) -> None:
        async with Approvals(ledger) as approvals:
            await approvals.decide(ident, by, False, reason)

    server.change(work)


# ---------------------------------------------------------------- what scripts add


def test_a_reason_used_before_fills_the_field_and_sends_nothing(server: RunningServer, visit: Visit):
    """Another one takes its place; what somebody wrote stays, and gets a line more; a hostile one is text."""
    for reason in ("wrong amount", "wrong amount", "no ground", HOSTILE):
        vote(server, make_request(server, gate="chips"), "Ana", reason)
    ident = make_request(server, gate="chips")
    page = visit("Ana", f"/approvals/{ident}")
    chips = page.locator(".chips button")

    assert chips.all_inner_texts()[0] == "wrong amount"
    assert page.input_value("#reason") == ""
    chips.filter(has_text="wrong amount").click()
    chips.filter(has_text="no ground").click()
    assert page.input_value("#reason") == "no ground"
    assert page.evaluate("document.activeElement.id") == "reason"
    page.fill("#reason", "Look at line 3.")
    chips.filter(has_text="onerror").click()
    assert page.input_value("#reason") == f"Look at line 3.\n{HOSTILE}"
    assert page.locator("[data-chosen]").count() == 0
    assert read_approval(server, ident).pending_votes == ()
    assert page.locator("img, .chips script").count() == 0


def test_times_are_those_of_the_readers_zone(server: RunningServer, visit: Visit):
    """With the zone's name, the day that it is there, and the UTC in the title; also in what a swap brings."""
    ident = make_request(server)
    expires_at = read_approval(server, ident).expires_at
    page = visit("Ana", f"/approvals/{ident}", timezone_id="Europe/Berlin")
    shown = page.locator(".clock time")

    local = page.evaluate("""stamp => new Date(stamp).toLocaleTimeString('en-GB', {timeZone: 'Europe/Berlin'})""",
                          expires_at.isoformat())  # fmt: skip
    assert local in shown.inner_text()
    assert re.search("CES?T", shown.inner_text())
    assert f"{expires_at:%H:%M:%S} UTC" in shown.get_attribute("title")
    assert page.locator(".side-foot").get_by_text("Times are Europe/Berlin").count() == 1

    page.get_by_role("button", name="Show times in UTC").click()
    page.wait_for_load_state()
    page.locator(".clock time").get_by_text(f"{expires_at:%H:%M:%S} UTC").wait_for()


def test_where_the_zone_is_utc_nothing_is_offered(server: RunningServer, visit: Visit):
    """And without scripts the page says that times are UTC."""
    vote(server, make_request(server, gate="zone"), "Ana", "a reason")
    ident = make_request(server, gate="zone")
    expires_at = read_approval(server, ident).expires_at
    for options in ({"timezone_id": "UTC"}, {"timezone_id": "Europe/Berlin", "java_script_enabled": False}):
        page = visit("Ana", f"/approvals/{ident}", **options)
        assert f"{expires_at:%H:%M:%S} UTC" in page.locator(".clock time").inner_text()
        assert "Times are UTC" in page.locator(".side-foot").inner_text()
        assert not page.get_by_role("button", name="Show times in UTC").is_visible()
    assert [chips.is_visible() for chips in page.locator(".chips").all()] == [False]


def test_the_number_of_what_waits_stays_fresh_on_any_page(server: RunningServer, visit: Visit):
    """In the title, and beside Approvals and Labels; what is open stays as it is."""
    page = visit("Nell", "/runs/monday", script=STUB)
    assert "(" not in page.title()
    make_request(server, approvers=["Nell"])
    wait_for(lambda: page.title().startswith("(1) "))
    assert page.locator('[data-waits="/approvals"]').inner_text().startswith("1")
    make_request(server, approvers=["Nell"])
    wait_for(lambda: page.title().startswith("(2) "))
    page.goto("/labels/monday")
    page.locator('[data-waits="/labels"]').get_by_text("20").wait_for()
    page.keyboard.press("1")
    page.locator('[data-waits="/labels"]').get_by_text("19").wait_for()


def test_a_notification_names_the_gate_and_the_number_alone(server: RunningServer, visit: Visit):
    """Only after somebody asked for it; and none for what waited before."""
    secret: dict[str, Any] = {"approvers": ["Tim"], "gate": "refunds", "metadata": {"title": "Secret title"}}
    make_request(server, "Secret content", quote="", **secret)
    page = visit("Tim", "/approvals", script=STUB)
    button = page.locator("#notify")
    wait_for(lambda: page.title().startswith("(1) "))
    make_request(server, "Secret content", quote="", **secret)
    wait_for(lambda: page.title().startswith("(2) "))
    assert page.evaluate("shown") == []

    assert button.get_attribute("aria-pressed") == "false"
    button.click()
    wait_for(lambda: button.get_attribute("aria-pressed") == "true")
    make_request(server, "Secret content", quote="", **secret)
    wait_for(lambda: len(page.evaluate("shown")) == 1)
    assert page.evaluate("shown") == [["adjudge: requests wait for you", "refunds: 3", "adjudge-waiting"]]

    button.click()
    wait_for(lambda: button.get_attribute("aria-pressed") == "false")
    make_request(server, "Secret content", quote="", **secret)
    wait_for(lambda: page.title().startswith("(4) "))
    assert len(page.evaluate("shown")) == 1


def test_without_notifications_of_the_browser_no_button_is_shown(server: RunningServer, visit: Visit):
    """Nor without scripts."""
    for options in ({"script": "delete window.Notification"}, {"java_script_enabled": False}):
        page = visit("Ana", "/approvals", **options)
        page.wait_for_load_state("networkidle")
        assert not page.locator("#notify").is_visible()


def test_what_is_missing_is_said_in_our_words(server: RunningServer, visit: Visit):
    """In place of the browser's own, which differ in tone and language."""
    page = visit("Ana", f"/approvals/{make_request(server)}")
    page.get_by_role("button", name="Approve").click()
    assert page.evaluate("reason.validationMessage") == "Write your reason: approving overrides the judge."
    page.fill("#reason", "fine")
    assert page.evaluate("reason.checkValidity()")


def list_own_words(page: Any) -> list[str]:
    """What the browser says of each field of a page that is needed, once its form was sent as it is."""
    page.locator("form:has(:required)").evaluate("it => it.reportValidity()")
    words = "all => all.map((it) => [it.validationMessage, it.dataset.missing])"
    said = page.locator(":required").evaluate_all(words)
    assert all(message == missing for message, missing in said), said
    return [message for message, _ in said]


def test_what_is_missing_is_said_in_our_words_on_every_page(tmp_path: Path, browser: Any):
    """At the sign-in, and of radio buttons, where choosing one is enough."""
    make_run(tmp_path / "runs" / "monday", 1)
    with open_label_queue(tmp_path / "runs" / "monday", per_case=2) as queue:
        for name, value in (("eve", True), ("fay", False)):
            label_all(queue, name, lambda _, value=value: value)
    config = CONFIG.replace("[server]", '[server]\nruns = "runs"', 1)
    with run_server(tmp_path, config) as server, browser.new_context(base_url=server.url) as context:
        server.add_account("Ana")
        page = context.new_page()
        page.goto("/signin")
        assert list_own_words(page) == ["Write your name.", "Write your password."]
        sign_in(page, "Ana", "/labels/monday/differences")
        assert list_own_words(page) == ["Choose the label that counts, or leave it open."] * 3
        page.get_by_label("Good").check()
        with page.expect_navigation():
            page.get_by_role("button", name="Settle and go on").click()
        assert page.get_by_text("Nothing is left for you to settle").is_visible()


def test_all_requests_can_be_chosen_to_be_denied(server: RunningServer, visit: Visit):
    """One box for all of them; it says how many are chosen; each can be looked at in its place."""
    server.add_account("Dee", "approve")
    for number in range(3):
        make_request(server, approvers=["Dee"], metadata={"title": f"Request {number}"})
    page = visit("Dee", "/approvals/deny")
    page.get_by_text("Look at Request 1").click()
    assert page.get_by_text("You will have the money within 24 hours.").nth(1).is_visible()
    page.get_by_label("All of them").check()
    assert page.locator("#chosen").inner_text() == "3 of 3 chosen"
    page.locator("input[name=ids]").first.uncheck()
    assert page.locator("#chosen").inner_text() == "2 of 3 chosen"
    with page.expect_navigation():
        page.get_by_role("button", name="Deny what is chosen").click()
    assert "2 denied." in page.locator(".toast").first.inner_text()


# ---------------------------------------------------------------- the jobs of a reviewer


@pytest.mark.slow_table
@pytest.mark.parametrize("width", WIDTHS)
def test_five_decisions_and_an_undo_by_keyboard_alone(server: RunningServer, visit: Visit, width: int):
    """Two denied and three approved, with reasons; the last one taken back, which keeps its text."""
    server.add_account(f"Kay{width}")
    ids = [make_request(server, approvers=[f"Kay{width}"], expires_in=600 + number) for number in range(5)]
    page = visit(f"Kay{width}", f"/approvals/{ids[0]}", width=width)
    for number, ident in enumerate(ids):
        assert page.url.endswith(ident)
        page.keyboard.press("d" if number < 2 else "a")
        page.keyboard.type(f"reason {number}")
        with page.expect_navigation():
            page.keyboard.press("Control+Enter")
    votes = [read_approval(server, ident).pending_votes[0] for ident in ids]
    assert [vote.approved for vote in votes] == [False, False, True, True, True]
    assert [vote.reason for vote in votes] == [f"reason {number}" for number in range(5)]

    with page.expect_navigation():
        page.keyboard.press("u")
    assert "You took it back: your approval" in page.locator(".toast.still").inner_text()
    assert page.input_value("#reason") == "reason 4"
    assert read_approval(server, ids[4]).pending_votes == ()


@pytest.mark.parametrize("width", [1440, 390])
def test_the_decision_is_one_step_from_the_top_of_the_page(server: RunningServer, visit: Visit, width: int):
    """The second link that Tab comes to leads to it, past the queue and the content."""
    page = visit("Ana", f"/approvals/{make_request(server)}", width=width)
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the decision"
    page.keyboard.press("Enter")
    for _ in range(3):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "reason":
            break
    assert page.evaluate("document.activeElement.id") == "reason"


@pytest.mark.slow_table
@pytest.mark.parametrize("width", WIDTHS)
def test_every_job_works_without_scripts(server: RunningServer, visit: Visit, width: int):
    """Deny with a reason, undo with the text kept, approve, find both in my decisions, filter, and label one."""
    name = f"Ned{width}"
    server.add_account(name)
    first, second = (make_request(server, approvers=[name], expires_in=600 + number) for number in range(2))
    page = visit(name, f"/approvals/{first}", width=width, java_script_enabled=False)
    page.fill("#reason", "not so")
    page.get_by_role("button", name="Deny").first.click()
    enter_password(page)
    page.get_by_role("button", name="Undo").first.click()
    enter_password(page)
    assert page.input_value("#reason") == "not so"
    page.fill("#reason", "it is fine")
    page.get_by_role("button", name="Approve").click()
    enter_password(page)
    page.wait_for_url(f"**/{second}*")
    assert [vote.approved for vote in read_approval(server, first).pending_votes] == [True]
    vote(server, second, name, "no")

    page.goto("/approvals")
    page.get_by_role("link", name="My decisions").locator("visible=true").first.click()
    page.get_by_role("link", name="denied", exact=True).click()
    assert page.locator("tbody tr").count() == 1
    assert "no" in page.locator("tbody tr").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= width

    page.goto("/labels/monday")
    page.locator("button[value=good]").click()
    enter_password(page)
    page.get_by_text("good").first.wait_for()


@pytest.mark.slow_table
@pytest.mark.parametrize("width", WIDTHS)
def test_twenty_cases_are_labelled_by_keys(server: RunningServer, visit: Visit, width: int):
    """One key a case, and one that takes the last one back; on a phone with a keyboard as well."""
    page = visit("Ana", f"/labels/labels-{width}", width=width)
    for number in range(20):
        with page.expect_navigation():
            page.keyboard.press("2" if number % 5 == 4 else "1")
    assert "You have labelled all that is yours" in page.inner_text("main")
    with page.expect_navigation():
        page.keyboard.press("u")
    assert "19 of 20" in " ".join(page.inner_text("main").split())


@pytest.mark.slow_table
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scripts", [True, False])
def test_why_one_failed_is_found_in_a_few_steps(server: RunningServer, visit: Visit, width: int, scripts: bool):
    """By keys from any page, and without scripts by links and a form: the rule is named, with what it found."""
    client = server.open_client(key=server.make_key("judge"))
    assert not client.post("/v1/gates/blocks/check", json={"content": "too long"}).json()["allowed"]
    page = visit("Ana", "/labels", width=width, java_script_enabled=scripts)
    if scripts:
        with page.expect_navigation():
            page.keyboard.press("g")
            page.keyboard.press("r")
        page.keyboard.press("j")
        with page.expect_navigation():
            page.keyboard.press("Enter")
    else:
        page.goto("/results")
        page.select_option("#gate", "blocks")
        page.get_by_role("button", name="Apply").click()
        page.locator("a.row").first.click()
    assert "The rule length (" in page.locator(".verdict").inner_text()
    assert "No judge was asked." in page.locator(".verdict").inner_text()


@pytest.mark.slow_table
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scripts", [True, False])
def test_the_decisions_of_a_customer_are_found(server: RunningServer, visit: Visit, width: int, scripts: bool):
    """By the key for the search and Enter, and without scripts by the form: theirs, and nobody else's."""
    client, customer = server.open_client(key=server.make_key("judge")), f"C-{width}{int(scripts)}"
    for name in (customer, customer, f"{customer}7"):
        body = {"content": "too long", "metadata": {"customer": name}}
        assert client.post("/v1/gates/blocks/check", json=body).status_code == 200
    page = visit("Ana", "/results", width=width, java_script_enabled=scripts)
    if scripts:
        page.keyboard.press("/")
        page.keyboard.type(f"customer:{customer}")
        with page.expect_navigation():
            page.keyboard.press("Enter")
    else:
        page.fill("#q", f"customer:{customer}")
        page.get_by_role("button", name="Apply").click()
    assert "2 found" in page.inner_text("main")
    assert page.locator("a.row").count() == 2
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.slow_table
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scripts", [True, False])
def test_a_report_is_saved_as_one_file(server: RunningServer, visit: Visit, width: int, scripts: bool):
    """From the page of a run, by Enter on its link: a page that asks nobody else for anything."""
    page = visit("Ana", "/runs/monday", width=width, java_script_enabled=scripts)
    tab_to(
        page, "document.activeElement.matches('a') && document.activeElement.textContent.includes('Report, one file')"
    )
    with page.expect_download() as saved:
        page.keyboard.press("Enter")
    text = Path(saved.value.path()).read_text(encoding="utf-8")
    assert saved.value.suggested_filename == "monday.html"
    assert text.startswith("<!doctype html>")
    assert not re.search(r'(?:src|href)="(?:https?:)?//', text)


@pytest.mark.slow_table
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scripts", [True, False])
def test_a_link_that_somebody_shared_leads_there_after_signing_in(
    server: RunningServer, visit: Visit, width: int, scripts: bool
):
    """Also for somebody who only reads: they look, and have no form. By keys alone, and with what the link filters."""
    name = f"Reader{width}{scripts}"
    server.add_account(name, "read")
    ident = make_request(server, metadata={"title": "Shared with a colleague"})
    path = f"/approvals/{ident}?q=colleague"
    page = visit("", path, width=width, java_script_enabled=scripts)
    type_by_tab(page, "name", name)
    type_by_tab(page, "password", PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{path}")
    assert page.locator("h1").inner_text() == "Shared with a colleague"
    assert "so it can look and not decide" in page.locator("#decide").inner_text()
    assert page.locator("#decide button").count() == 0


@pytest.mark.slow_table
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scripts", [True, False])
def test_what_was_typed_when_a_session_ended_can_be_copied(
    server: RunningServer, visit: Visit, width: int, scripts: bool
):
    """The page that answers has the text, and leads to the sign-in and back to the request, which is open still."""
    name = f"Late{width}{scripts}"
    server.add_account(name)
    ident = make_request(server, approvers=[name])
    page = visit(name, f"/approvals/{ident}", width=width, java_script_enabled=scripts)
    page.fill("#reason", "It promises\na day.")
    server.change(lambda ledger: set_password(ledger, name, f"{PASSWORD}!"))
    with page.expect_navigation():
        page.get_by_role("button", name="Deny").first.click()

    assert page.get_by_label("What you wrote, to be copied").input_value() == "It promises\na day."
    assert read_approval(server, ident).pending_votes == ()
    page.get_by_role("link", name="Sign in").last.click()
    page.fill("#name", name)
    page.fill("#password", f"{PASSWORD}!")
    page.click("button.main-act")
    page.wait_for_url(f"**/approvals/{ident}")
    assert page.get_by_role("button", name="Deny").first.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.slow_table
@pytest.mark.parametrize("width", WIDTHS)
def test_a_session_that_ended_is_begun_again_by_keyboard_alone(server: RunningServer, visit: Visit, width: int):
    """Choose, write, send; the page that answers is left by Tab and Enter, and so is the sign-in."""
    name = f"Key{width}"
    server.add_account(name)
    ident = make_request(server, approvers=[name])
    page = visit(name, f"/approvals/{ident}", width=width)
    page.keyboard.press("d")
    page.keyboard.type("It promises a day.")
    server.change(lambda ledger: set_password(ledger, name, f"{PASSWORD}!"))
    with page.expect_navigation():
        page.keyboard.press("Control+Enter")
    assert page.get_by_label("What you wrote, to be copied").input_value() == "It promises a day."
    tab_to(page, "document.activeElement.matches('main a.btn')")
    page.keyboard.press("Enter")
    page.locator("#name").wait_for()
    type_by_tab(page, "name", name)
    type_by_tab(page, "password", f"{PASSWORD}!")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/approvals/{ident}")
    assert read_approval(server, ident).pending_votes == ()


@pytest.mark.slow_table
@pytest.mark.parametrize("width", WIDTHS)
def test_several_requests_are_denied_by_keyboard_alone(server: RunningServer, visit: Visit, width: int):
    """One is looked at in its place, all are chosen, one is left out, and the others are denied with one reason."""
    name = f"Lot{width}"
    server.add_account(name, "approve")
    ids = [
        make_request(server, approvers=[name], metadata={"title": f"Request {number}"}, expires_in=600 + number)
        for number in range(3)
    ]
    page = visit(name, "/approvals/deny", width=width)
    press_by_tab(page, "Look at Request 1")
    assert page.get_by_text("You will have the money within 24 hours.").nth(1).is_visible()
    tab_to(page, "document.activeElement.labels?.[0]?.innerText.includes('All of them')")
    page.keyboard.press("Space")
    tab_to(page, f"document.activeElement.value === '{ids[0]}'")
    page.keyboard.press("Space")
    tab_to(page, "document.activeElement.name === 'reason'")
    page.keyboard.type("Not today.")
    with page.expect_navigation():
        press_by_tab(page, "Deny what is chosen")
    reasons = [[vote.reason for vote in read_approval(server, ident).pending_votes] for ident in ids]
    assert reasons == [[], ["Not today."], ["Not today."]]
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.slow_table
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scripts", [True, False])
def test_the_ledger_is_exported_from_its_page(server: RunningServer, visit: Visit, width: int, scripts: bool):
    """As a file, by Enter on its link: an entry a line, the first one first."""
    make_request(server)
    page = visit("Ana", "/ledger", width=width, java_script_enabled=scripts)
    tab_to(page, "document.activeElement.textContent.trim() === 'Export'")
    with page.expect_download() as saved:
        page.keyboard.press("Enter")
    lines = Path(saved.value.path()).read_text(encoding="utf-8").splitlines()
    entries = [json.loads(line) for line in lines]

    assert saved.value.suggested_filename.endswith(".jsonl")
    assert [entry["seq"] for entry in entries if "seq" in entry] == list(range(1, len(entries) + 1))
    assert any(entry.get("kind") == "approval.requested" for entry in entries)


def test_a_request_is_denied_on_a_phone_by_three_taps(server: RunningServer, visit: Visit):
    """The bar at the foot leads to the form, and the form is pressed."""
    server.add_account("Tap")
    ident = make_request(server, approvers=["Tap"])
    page = visit("Tap", "/approvals", width=390, has_touch=True, is_mobile=True)
    page.locator(".bring a").tap()
    page.wait_for_url("**#decide")
    deny = page.get_by_role("button", name="Deny").first
    assert deny.evaluate("it => it.getBoundingClientRect().top < innerHeight")
    with page.expect_navigation():
        deny.tap()
    assert [vote.approved for vote in read_approval(server, ident).pending_votes] == [False]


def test_what_is_pressed_on_a_phone_has_room_for_a_finger(server: RunningServer, visit: Visit):
    """44 px, but for links in a sentence and references, which have at least 24 (WCAG 2.2)."""
    call = {"tool": "mail.send", "arguments": {"body": "You will have it within 24 hours."}}
    earlier = make_request(server, call)  # which the page links to, once it was approved
    decide(server, earlier, "Ana", True)
    ident = make_request(server, call)
    page = visit("Ana", f"/approvals/{ident}", width=390, has_touch=True, is_mobile=True)
    assert page.get_by_role("link", name=earlier[-12:]).count() == 1
    assert list_small(page) == []


@pytest.mark.parametrize(
    "path", ["/results", "/runs", "/runs/monday", "/runs/monday/case?place=0", "/labels/monday", "/approvals/mine"]
)
def test_on_every_page_for_a_phone_there_is_room_for_a_finger(server: RunningServer, visit: Visit, path: str):
    """On the page of a result as well, to which the list of them leads."""
    vote(server, make_request(server, {"tool": "mail.send", "arguments": {"body": "24 hours"}}), "Ana", "no")
    page = visit("Ana", path, width=390, has_touch=True, is_mobile=True)
    assert list_small(page) == []
    if path == "/results":
        page.locator("a.row").first.click()
        page.locator(".story").wait_for()
        assert list_small(page) == []


def list_small(page: Any) -> list[Any]:
    """What is pressed on a page and has less room than a finger needs, with the height that it has."""
    pressed = "main :is(a, button, summary), aside :is(a, button), .bring a"
    sentences = ".ref, :is(.sub, .walk > span, .verdict .by, .story .facts) a"
    small: list[Any] = page.evaluate("""([pressed, sentences]) => Array.from(document.querySelectorAll(pressed))
        .filter((one) => one.checkVisibility() && one.getBoundingClientRect().width > 0)
        .map((one) => [one.textContent.trim(), one.getBoundingClientRect().height, one.matches(sentences) ? 24 : 44])
        .filter(([, height, needed]) => height < needed)""", [pressed, sentences])  # fmt: skip
    return small


def test_no_page_can_be_framed_and_none_opens_another(server: RunningServer, visit: Visit):
    """So nobody can lay a page of theirs over the buttons, or reach back through a tab that was opened."""
    page = visit("Ana", "/approvals")
    for path in ("/approvals", "/approvals/mine", "/approvals/deny", "/waiting", "/compare?a=x&b=y"):
        headers = page.request.get(path).headers
        assert headers["x-frame-options"] == "DENY"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
    page.goto("/approvals/deny")
    assert page.locator('a[target="_blank"]:not([rel~="noopener"])').count() == 0
