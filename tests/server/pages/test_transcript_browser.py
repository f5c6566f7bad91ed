"""Transcripts in a real browser: by keys alone, without scripts, on a phone, under attack, and held to axe."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from adjudge import Case
from adjudge.agents import AgentCall, AgentRun, FileChange, Step
from kit.approval_pages import CONFIG, make_request, read_approval
from kit.browser import WIDTHS, note_faults, open_chromium
from kit.environment import FULL, require
from kit.labels import make_run
from kit.server import RunningServer, enter_password, run_server, sign_in

pytestmark = pytest.mark.integration


HOSTILE = (
    "</pre></details></li></ol><script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
    "<b hx-get=/x hx-trigger=load>\u202e"
)

LONG = AgentRun(
    steps=(
        Step(role="user", text="Make it pass."),
        *[
            Step(
                role="assistant",
                turn=number,
                call=AgentCall(
                    tool="Bash",
                    arguments={"command": f"cd /srv && pytest -x tests/test_{number}.py", "timeout": number},
                    result=None if number % 60 == 0 else f"{number} passed\nin 2 s",
                    error="exit 1" if number % 60 == 0 else None,
                    duration_ms=number * 100.0,
                ),
            )
            for number in range(1, 301)
        ],
    ),
    answer="It passes.",
    files=(FileChange(path="app.py", kind="modified", diff="-a\n+b"),),
)

TALK = [
    {"role": "customer", "content": f"My tent came too late. {'word ' * 60}"},
    {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "t", "name": "orders.get", "input": {"id": "77418", "all": True}}],
    },
    {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "t", "content": json.dumps({"total": 184, "x": "y" * 300})}],
    },
    {"role": "assistant", "content": HOSTILE, "name": HOSTILE},
]

TEXTS = {
    "task": "Answer them.",
    "context": {"talk": TALK, "passages": ["Ten working days.", HOSTILE], HOSTILE: [HOSTILE]},
}


@pytest.fixture(scope="module", name="server")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    require("axe", find_spec("axe_playwright_python"), "pip install axe-playwright-python")
    folder = tmp_path_factory.mktemp("server")
    (folder / "runs").mkdir()
    make_run(folder / "runs" / "monday", [Case(id="x", content=LONG, context=TEXTS["context"], task="Answer them.")])
    config = CONFIG.replace("undo_seconds = 30", 'undo_seconds = 0\nruns = "runs"')
    with run_server(folder, config=config) as running:
        running.add_account("Ana")
        yield running


@pytest.fixture(scope="module", name="browser")
def provide_browser(server: RunningServer) -> Iterator[Any]:
    """The system's Chromium; the server is there before, because the driver keeps a loop running."""
    assert server
    with open_chromium() as browser:
        yield browser


def open_page(browser: Any, server: RunningServer, path: str, **options: Any) -> Any:
    """A page of somebody who signed in, on which nothing may open a dialog, break the policy or ask another host."""
    context = browser.new_context(base_url=server.url, **options)
    page = context.new_page()
    page.wrong = []
    note_faults(page, server.url, page.wrong)
    sign_in(page, "Ana", path)
    return page


def list_paths(server: RunningServer) -> dict[str, str]:
    held, run = make_request(server, texts=TEXTS), make_request(server, LONG)
    return {
        "a call with task and context": f"/approvals/{held}",
        "a run": f"/approvals/{run}",
        "a run, all of it": f"/approvals/{run}?whole=true",
        "without context": f"/approvals/{make_request(server)}",
        "a label": "/labels/monday",
        "a run's page": "/runs/monday",
    }


@pytest.mark.full
@pytest.mark.parametrize(
    ("scheme", "width"),
    [(scheme, width) for scheme in ("light", "dark") for width in WIDTHS] if FULL else [("dark", 390)],
)
def test_axe_finds_nothing_and_nothing_is_wider_than_its_screen(
    server: RunningServer, browser: Any, scheme: str, width: int
):
    """With what is folded opened; and no attack in a transcript does anything."""
    from axe_playwright_python.sync_playwright import Axe

    faults: list[str] = []
    for name, path in list_paths(server).items():
        page = open_page(browser, server, path, color_scheme=scheme, viewport={"width": width, "height": 900})
        page.evaluate("document.querySelectorAll('details').forEach(item => item.open = true)")
        wide = page.evaluate("document.documentElement.scrollWidth")
        faults += [f"{name} is {wide} px wide"] if wide > width else []
        for item in Axe().run(page).response["violations"]:
            faults += [f"{name}: {item['id']} {node['html'][:150]}" for node in item["nodes"]]
        faults += [f"{name}: {wrong}" for wrong in page.wrong]
        page.context.close()

    assert faults == []


@pytest.mark.slow_table
@pytest.mark.parametrize("width", WIDTHS)
def test_a_run_is_opened_read_and_approved_by_keys_alone(server: RunningServer, browser: Any, width: int):
    """Tab reaches "Show the rest"; until then the key for approving says why it is off."""
    ident = make_request(server, LONG)
    page = open_page(browser, server, f"/approvals/{ident}", viewport={"width": width, "height": 900})
    page.keyboard.press("a")
    assert "off" in page.text_content("#said")
    page.keyboard.press("Escape")
    for _ in range(200):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "Show the rest":
            break
    with page.expect_navigation():
        page.keyboard.press("Enter")
    page.keyboard.press("a")
    page.keyboard.type("I have read it.")
    with page.expect_navigation():
        page.keyboard.press("Control+Enter")

    assert read_approval(server, ident).status == "approved"
    page.context.close()


@pytest.mark.slow_table
@pytest.mark.parametrize("width", WIDTHS)
def test_folds_are_opened_and_a_request_is_approved_without_scripts(server: RunningServer, browser: Any, width: int):
    """Links and a form are enough."""
    ident = make_request(server, LONG)
    options = {"java_script_enabled": False, "viewport": {"width": width, "height": 900}}
    page = open_page(browser, server, f"/approvals/{ident}", **options)
    opened = 0
    while (fold := page.locator(".folded button")).count():
        assert page.locator("button[value=approve]").is_disabled()
        with page.expect_navigation():
            fold.first.click()
        opened += 1
        assert opened < 20
    assert opened > 3
    page.fill("#reason", "I have read it.")
    page.click("button[value=approve]")
    enter_password(page)

    assert read_approval(server, ident).status == "approved"
    page.context.close()


def test_the_link_of_a_fold_leads_to_what_it_opened(server: RunningServer, browser: Any):
    """Not to the top of a page of three hundred steps."""
    ident = make_request(server, LONG)
    page = open_page(browser, server, f"/approvals/{ident}")
    page.locator(".folded button").nth(1).click()
    page.wait_for_url("**#t1-*")

    target = page.evaluate("document.querySelector(':target').getBoundingClientRect().top")
    assert 0 <= target < 900
    page.context.close()


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_a_reason_that_was_typed_stays_when_more_is_shown(server: RunningServer, browser: Any, scripts: bool):
    """A fold, the rest, the parts of a long text, each at its place; and then the request is approved with it."""
    ident = make_request(server, LONG, texts={"context": "One line of a contract.\n" * 9_000})
    page = open_page(browser, server, f"/approvals/{ident}", java_script_enabled=scripts)
    page.fill("#reason", "I have\nread it.")
    page.locator(".folded button").first.click()
    assert "#t1-" in page.url
    page.get_by_role("button", name="Show the rest").first.click()
    for part in ("Part 1 of 3", "Part 2 of 3", "Part 3 of 3"):
        page.get_by_text(part).last.wait_for()
        assert page.input_value("#reason") == "I have\nread it."
        if part != "Part 3 of 3":
            assert page.locator("button[value=approve]").is_disabled()
            page.get_by_role("button", name="Show the next part").first.click()
            page.wait_for_url("**#part-context")
    page.click("button[value=approve]")
    if not scripts:
        enter_password(page)

    assert read_approval(server, ident).status == "approved"
    assert page.wrong == []
    page.context.close()
