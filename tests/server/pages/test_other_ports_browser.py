"""A page that another program serves on this machine, in the browser of somebody who is signed in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kit.answering import answering
from kit.approval_pages import CONFIG, make_request, read_approval, send
from kit.browser import open_chromium
from kit.server import RunningServer, run_server, sign_in

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module", name="server")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with run_server(tmp_path_factory.mktemp("server"), config=CONFIG) as running:
        running.add_account("Ana")
        yield running


@pytest.fixture(scope="module", name="browser")
def provide_browser(server: RunningServer) -> Iterator[Any]:
    assert server
    with open_chromium() as browser:
        yield browser


def test_a_page_of_another_port_gets_the_cookie_and_decides_nothing(server: RunningServer, browser: Any):
    """It reads what Ana may read, and cannot vote as her; she can, in the same browser and afterwards."""
    ident = make_request(server)
    page_of_agent = (200, {"Content-Type": "text/html"}, b"<p>Your app is ready.</p>")
    with browser.new_context(base_url=server.url) as context, answering(page_of_agent, verb="GET") as (url, requests):
        page = context.new_page()
        sign_in(page, "Ana", f"/approvals/{ident}")
        agents_page = context.new_page()
        agents_page.goto(url)
        cookie = requests[0][0]["Cookie"]
        thief = server.open_client(headers={"Accept": "text/html", "Cookie": cookie})

        assert thief.get(f"/approvals/{ident}").status_code == 200
        assert send(thief, ident, "approve", "fine").status_code == 403
        assert read_approval(server, ident).pending_votes == ()
        # What the agent's page can store is its own.
        assert agents_page.evaluate("localStorage.length") == 0

        page.fill("#reason", "I have read it.")
        with page.expect_navigation():
            page.get_by_role("button", name="Approve").click()
        assert [vote.reason for vote in read_approval(server, ident).pending_votes] == ["I have read it."]


def test_a_sign_in_that_fails_in_another_tab_leaves_the_key(server: RunningServer, browser: Any):
    """The form of a tab that was opened before is too old; the votes of the first tab are taken all the same."""
    ident = make_request(server)
    with browser.new_context(base_url=server.url) as context:
        page, late = context.new_page(), context.new_page()
        late.goto("/signin")
        sign_in(page, "Ana", f"/approvals/{ident}")
        late.fill("#name", "Ana")
        late.fill("#password", "not this one")
        late.click("button.main-act")
        late.get_by_role("heading", name="Sign in to adjudge").wait_for()
        page.fill("#reason", "mine")
        with page.expect_navigation():
            page.get_by_role("button", name="Deny").first.click()
        assert page.evaluate("document.body.innerHTML.includes(localStorage['adjudge-browser-key'])") is False
    assert [vote.reason for vote in read_approval(server, ident).pending_votes] == ["mine"]


def test_a_browser_that_forgot_its_key_asks_for_the_password_once_more(server: RunningServer, browser: Any):
    """And after signing out and in again it has one."""
    ident = make_request(server)
    with browser.new_context(base_url=server.url) as context:
        page = context.new_page()
        sign_in(page, "Ana", f"/approvals/{ident}")
        page.evaluate("localStorage.clear()")
        page.fill("#reason", "no")
        with page.expect_navigation():
            page.get_by_role("button", name="Deny").first.click()
        assert page.get_by_label("What you wrote").input_value() == "no"
        with page.expect_navigation():
            page.get_by_role("button", name="Sign out").first.click()
        sign_in(page, "Ana", f"/approvals/{ident}")
        page.fill("#reason", "still no")
        with page.expect_navigation():
            page.get_by_role("button", name="Deny").first.click()
    assert [vote.reason for vote in read_approval(server, ident).pending_votes] == ["still no"]
