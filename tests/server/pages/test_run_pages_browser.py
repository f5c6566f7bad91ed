"""Pages of runs in a browser: entered once, by keyboard alone, without JavaScript, on every screen, and held to axe."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from kit.browser import WIDTHS, open_chromium, require_chromium, tab_to
from kit.compared_runs import keep_hostile, keep_versions
from kit.environment import FULL, require
from kit.patience import HANG, wait_for
from kit.server_process import make_environment

pytestmark = pytest.mark.integration

PATHS = (
    "/runs",
    "/runs/before",
    "/compare?a=before&b=after",
    "/compare?a=before&b=quick&show=all",
    "/runs/after/case?id=answer-0005&beside=before",
    "/runs/hostile/case?place=0",
    "/runs/odd",
)

SCREENS = [(scheme, width) for scheme in ("light", "dark") for width in WIDTHS]


@dataclass(frozen=True, slots=True)
class View:
    """``adjudge view``, with what its browser was told to open."""

    address: str
    file: str

    @property
    def url(self) -> str:
        return self.address.partition("/open/")[0]


@pytest.fixture(scope="module", name="folder")
def keep_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_chromium()
    folder = tmp_path_factory.mktemp("runs")
    keep_versions(folder, 60)
    keep_hostile(folder)
    return folder


@contextmanager
def open_view(folder: Path, place: Path) -> Iterator[View]:
    """The command, until the block ends; instead of a browser, a script notes what it is to open."""
    seen, script = place / "seen", place / "browser"
    script.write_text(f'#!/bin/sh\nprintf "%s" "$1" > {seen}.new && mv {seen}.new {seen}\n', encoding="utf-8")
    script.chmod(0o700)
    command = [sys.executable, "-c", "from adjudge.cli import main; main()", "view"]
    environment = make_environment({"BROWSER": f"{script} %s"})
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            address = process.stdout.readline().strip()
            wait_for(seen.exists)
            yield View(address, seen.read_text(encoding="utf-8"))
        finally:
            process.terminate()
            process.wait(HANG)


@pytest.fixture(scope="module", name="view")
def start(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[View]:
    with open_view(folder, tmp_path_factory.mktemp("browser")) as view:
        yield view


@pytest.fixture(scope="module", name="browser")
def provide_browser(view: View) -> Iterator[Any]:
    assert view
    with open_chromium() as browser:
        yield browser


@pytest.fixture(scope="module", name="session")
def enter(view: View, browser: Any) -> Any:
    """The session of a browser that opened the file, as one does that a desktop starts."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(view.file)
    page.wait_for_url(f"{view.url}/runs")
    state = context.storage_state()
    context.close()
    return state


def test_the_file_leads_a_browser_in_and_nobody_else(view: View, browser: Any, session: Any):
    """Without JavaScript too; the cookie is not sent by a page of another site, and the address is used up."""
    stranger = browser.new_page()
    stranger.goto(view.address)
    assert "works once" in stranger.inner_text("main")
    assert [cookie["sameSite"] for cookie in session["cookies"]] == ["Strict"]
    stranger.close()


@pytest.mark.full
@pytest.mark.parametrize(("scheme", "width"), SCREENS if FULL else [("dark", 390)])
def test_axe_finds_nothing_and_no_page_is_wider_than_its_screen(
    view: View, browser: Any, session: Any, scheme: str, width: int
):
    """With hostile content too, which opens no dialog and logs no refused script."""
    require("axe", find_spec("axe_playwright_python"), "pip install axe-playwright-python")
    from axe_playwright_python.sync_playwright import Axe

    context = browser.new_context(storage_state=session, color_scheme=scheme, viewport={"width": width, "height": 900})
    page = context.new_page()
    faults: list[str] = []
    page.on("dialog", lambda dialog: (faults.append(f"dialog {dialog.message}"), dialog.dismiss()))
    page.on("console", lambda line: faults.append(line.text) if line.type == "error" else None)
    stranger = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900}).new_page()
    stranger.goto(f"{view.url}/runs")
    assert "works once" in stranger.inner_text("main")
    faults += [f"the refusal: {item['id']}" for item in Axe().run(stranger).response["violations"]]
    stranger.context.close()
    for path in PATHS:
        page.goto(f"{view.url}{path}")
        wide = page.evaluate("document.documentElement.scrollWidth")
        faults += [f"{path} is {wide} px wide"] if wide > width else []
        for item in Axe().run(page).response["violations"]:
            faults += [f"{path}: {item['id']} {node['html'][:150]}" for node in item["nodes"]]
    context.close()

    assert faults == []


@pytest.mark.slow_table
@pytest.mark.parametrize("width", WIDTHS)
def test_two_runs_are_compared_by_keyboard_alone(view: View, browser: Any, session: Any, width: int):
    """Choose two, compare, open the first case and walk on, with tab, space, enter and the letters of the pages."""
    context = browser.new_context(storage_state=session, viewport={"width": width, "height": 900})
    page = context.new_page()
    page.goto(f"{view.url}/runs?dataset=support.jsonl")
    for name in ("before", "after"):
        tab_to(page, f"document.activeElement.labels?.[0]?.textContent.trim() === 'compare {name}'")
        page.keyboard.press("Space")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/compare.a=before&b=after"))
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/case"))
    first = page.inner_text("h1")
    page.keyboard.press("j")
    page.wait_for_function("first => document.querySelector('h1').innerText !== first", arg=first)
    page.keyboard.press("k")
    page.wait_for_function("first => document.querySelector('h1').innerText === first", arg=first)
    context.close()


@pytest.mark.slow_table
@pytest.mark.parametrize("width", WIDTHS)
def test_everything_works_without_javascript(view: View, browser: Any, session: Any, width: int):
    """Choosing, filters, rows that open, paging, and walking from case to case."""
    options = {"java_script_enabled": False, "viewport": {"width": width, "height": 900}}
    context = browser.new_context(storage_state=session, **options)
    page = context.new_page()
    page.goto(f"{view.url}/runs")
    page.get_by_label("compare before", exact=True).check()
    page.get_by_label("compare after", exact=True).check()
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url(re.compile("/compare.a=before&b=after"))
    page.get_by_label("which", exact=True).select_option("all")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url(re.compile("show=all"))
    page.locator(".case-list summary").first.click()
    assert page.locator(".case-list details[open] .sides").first.is_visible()
    page.get_by_role("link", name=re.compile("Next 50")).click()
    page.wait_for_url(re.compile("page=2"))
    page.locator(".open-case").first.click()
    page.wait_for_url(re.compile("/case"))
    assert "51 of 60 in the comparison" in page.inner_text("main")
    page.locator("a[rel=next]").first.click()
    page.wait_for_url(re.compile("/case"))
    context.close()
