"""The pages in a real browser: nothing foreign, nothing sideways, by keyboard and without script."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kit import server_demo
from kit.browser import open_chromium, require_chromium
from kit.server import PASSWORD, RunningServer, run_server

pytestmark = pytest.mark.integration


HOSTILE = '<script>window.ran = 1</script><img src=x onerror=window.ran=2>" onfocus=window.ran=3 hx-get=/x ' + "W" * 300


PAGES = ("/", "/results", "/results/{place}", "/monitors", "/audits", "/ledger", "/ledger/{place}", "/runs",
         "/runs/support", "/none")  # fmt: skip

Open = Callable[..., Any]


@pytest.fixture(scope="module", name="server")
def provide_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningServer, int, int]]:
    """A server with a plain story and a hostile one, and their places."""
    require_chromium()
    folder = tmp_path_factory.mktemp("browsed")
    asyncio.run(server_demo.fill_ledger(folder, days=3, a_day=12))
    plain = asyncio.run(server_demo.tell_story(folder))
    hostile = asyncio.run(server_demo.tell_story(folder, text=HOSTILE, content=f"begin {HOSTILE} end"))
    server_demo.keep_runs(folder)
    with run_server(folder, server_demo.CONFIG) as running:
        running.add_account("Ana")
        running.make_key("judge")
        yield running, plain, hostile


@pytest.fixture(scope="module", name="browser")
def provide_browser(server: tuple[RunningServer, int, int]) -> Iterator[Any]:
    """The system's Chromium; the server is there before, because the driver keeps a loop running."""
    assert server
    with open_chromium() as browser:
        yield browser


@pytest.fixture(name="visit")
def provide_visit(browser: Any, server: tuple[RunningServer, int, int]) -> Iterator[Open]:
    """Opens a page as somebody who signed in; any error, dialog or request for elsewhere fails the test."""
    running, _, _ = server
    contexts: list[Any] = []
    wrong: list[str] = []

    def visit(path: str = "/", *, width: int = 1200, **options: Any) -> Any:
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("dialog", lambda dialog: wrong.append(f"dialog {dialog.message}"))
        page.on("pageerror", lambda error: wrong.append(f"error {error}"))
        page.on("console", lambda said: wrong.append(said.text) if said.type in {"error", "warning"} else None)
        page.on("request", lambda sent: None if sent.url.startswith(running.url) else wrong.append(sent.url))
        page.goto(f"{running.url}/signin?next={path}")
        page.get_by_label("Name").fill("Ana")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(f"{running.url}{path}")
        return page

    yield visit
    for context in contexts:
        context.close()
    assert [item for item in wrong if "404 (Not Found)" not in item] == []


def list_paths(place: int) -> list[str]:
    return [path.format(place=place) for path in PAGES]


@pytest.mark.parametrize("width", [320, 768, 1024, 1120])
@pytest.mark.slow_table
def test_no_page_is_wider_than_its_screen(visit: Open, server: tuple[RunningServer, int, int], width: int):
    """With everything opened, and texts of one long word in every field."""
    running, _, hostile = server
    page = visit(width=width)
    for path in list_paths(hostile):
        assert page.goto(running.url + path).status == (404 if path == "/none" else 200), path
        page.evaluate("document.querySelectorAll('details').forEach(item => item.open = true)")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path


def test_hostile_text_runs_nothing(visit: Open, server: tuple[RunningServer, int, int]):
    """No script of its own, no element, no request, and htmx reads no attribute inside of it."""
    running, _, hostile = server
    page = visit()
    shown: list[str] = []
    for path in list_paths(hostile):
        page.goto(running.url + path)
        shown += [path] if "<script>window.ran" in page.locator("main").inner_text() else []
        assert page.evaluate("window.ran") is None, path
        assert page.locator("main img, main iframe, [onerror], main [hx-get]").count() == 0, path
        assert page.locator("script:not([src])").count() == 0, path
    assert {"/results", f"/results/{hostile}", f"/ledger/{hostile}"} <= set(shown)


def test_everything_works_without_script(visit: Open, server: tuple[RunningServer, int, int]):
    """Signing in, filters, further pages, the story, the check of the ledger, the theme, and signing out."""
    running, plain, _ = server
    page = visit("/results", java_script_enabled=False)
    page.get_by_label("Outcome").select_option("held")
    page.get_by_role("button", name="Apply").click()
    assert "outcome=held" in page.url
    page.locator("tbody tr").first.wait_for()
    page.goto(f"{running.url}/results/{plain}")
    page.get_by_text("3 replies, word for word").click()
    assert page.locator("pre.code").first.is_visible()
    page.goto(f"{running.url}/ledger")
    page.get_by_role("button", name="Verify now").click()
    page.get_by_text("are as they were written").wait_for()  # raises where it does not come
    page.get_by_role("button", name="Dark").click()
    assert page.locator("html").get_attribute("data-theme") == "dark"
    page.goto(f"{running.url}/runs/support")
    assert page.locator(".case-list > li").count() == 50
    page.get_by_role("link", name="Next 50").click()
    assert "page=2" in page.url
    assert page.locator(".case-list").get_attribute("start") == "51"
    page.get_by_label("outcome", exact=True).select_option("failed")
    page.get_by_role("button", name="Show").click()
    assert "outcome=failed" in page.url
    page.locator(".case-list > li").first.wait_for()
    page.get_by_role("button", name="Sign out").click()
    assert "/signin" in page.url


def test_keys_lead_where_links_do(visit: Open):
    """Letters outside of fields: a list of keys, search, pages, rows; inside a field they are text; and they go off."""
    page = visit("/results")
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#keys").is_visible()
    page.keyboard.press("/")
    page.keyboard.type("gl?")
    assert page.get_by_label("Search").input_value() == "gl?"
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement === document.querySelectorAll('a.row')[1]")
    page.keyboard.press("g")
    page.keyboard.press("k")
    page.wait_for_url("**/ledger")
    page.keyboard.press("?")
    page.get_by_role("button", name="Switch letters off").click()
    page.locator("body[data-keys=off]").wait_for()
    page.keyboard.press("g")
    page.keyboard.press("o")
    page.keyboard.press("?")
    assert page.url.endswith("/ledger")
    assert not page.locator("#keys").is_visible()


def test_the_cases_of_a_run_are_filtered_on_its_page(visit: Open):
    """By a form whose choices are in the address, over all of the cases and not those of one page."""
    page = visit("/runs/support")
    assert "240 of 240 are listed" in page.inner_text("#cases")
    page.get_by_label("outcome", exact=True).select_option("failed")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**/runs/support?*outcome=failed*")

    cases = page.locator(".case-list > li")
    assert 0 < cases.count() == cases.filter(has=page.locator(".badge", has_text="failed")).count()
    assert "240 of 240 are listed" not in page.inner_text("#cases")
    assert page.get_by_label("outcome", exact=True).input_value() == "failed"


def test_the_first_stop_leads_past_the_navigation(visit: Open):
    """On a phone the navigation is closed until its button is pressed, and has every page."""
    page = visit("/", width=390)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    assert not page.locator("#menu").is_visible()
    page.get_by_role("button", name="Menu").click()
    assert page.locator("#menu").get_by_role("link", name="Results").is_visible()
