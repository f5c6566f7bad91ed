"""Every page of the server held to axe: in light and in dark, on a phone, a tablet and a desk."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Template

from kit.browser import open_chromium, require_chromium
from kit.environment import FULL, require
from kit.server_tour import Tour, open_pages, open_tour

pytestmark = pytest.mark.integration


TABLE = [(scheme, width) for scheme in ("light", "dark") for width in (390, 768, 1440)]

SAMPLE = [("dark", 390)]


@pytest.fixture(scope="module", name="drawn")
def note_templates() -> Iterator[set[str]]:
    """The names of the templates that were drawn so far."""
    drawn: set[str] = set()
    render = Template.render

    def note(template: Template, *arguments: Any, **values: Any) -> str:
        drawn.add(template.name or "")
        return render(template, *arguments, **values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Template, "render", note)
        yield drawn


@pytest.fixture(scope="module", name="tour")
def start_tour(drawn: set[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tour]:
    assert not drawn
    require_chromium()
    require("axe", find_spec("axe_playwright_python"), "pip install axe-playwright-python")
    with open_tour(tmp_path_factory.mktemp("tour"), days=3) as tour:
        yield tour


@pytest.fixture(scope="module", name="browser")
def provide_browser(tour: Tour) -> Iterator[Any]:
    """The system's Chromium; the server is there before, because the driver keeps a loop running."""
    assert tour
    with open_chromium() as browser:
        yield browser


@pytest.mark.parametrize(("scheme", "width"), TABLE if FULL else SAMPLE)
def test_axe_finds_nothing_on_any_page(tour: Tour, browser: Any, drawn: set[str], scheme: str, width: int):
    """Nor is one wider than its screen; with what is folded opened. Without ADJUDGE_FULL, every fourth page.

    Each template that is a page of its own is on the way.
    """
    page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
    faults: list[str] = []
    for number, name in enumerate(open_pages(page, tour)):
        if not FULL and number % 4:
            continue
        faults += list_faults(page, name, width)
    page.close()

    assert faults == []
    assert list_page_templates() - drawn == set()


@pytest.mark.parametrize(("scheme", "width"), TABLE if FULL else SAMPLE)
def test_axe_finds_nothing_in_a_saved_report(tour: Tour, browser: Any, tmp_path: Path, scheme: str, width: int):
    """Of a run and of two that are compared: the file that somebody keeps, opened from the disk.

    Without ADJUDGE_FULL, of a run of few cases.
    """
    reader = tour.server.sign_in("Ana")
    page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
    faults: list[str] = []
    runs = ("support", "a") if FULL else ("a",)
    paths = {f"report of {run}": f"/runs/{run}/report.html" for run in runs}
    for name, path in {**paths, "diff": "/compare/report.html?a=a&b=b"}.items():
        file = tmp_path / f"{name}.html"
        file.write_bytes(reader.get(path).raise_for_status().content)
        page.goto(file.as_uri())
        faults += list_faults(page, name, width)
    page.close()

    assert faults == []


def list_page_templates() -> set[str]:
    """The templates that stand in the shell of the server's pages."""
    folder = files("adjudge.server.pages") / "templates"
    return {file.name for file in folder.iterdir() if '{% extends "base.html" %}' in file.read_text(encoding="utf-8")}


def list_faults(page: Any, name: str, width: int) -> list[str]:
    """What axe finds on a page, of whatever impact, and whether it is wider than its screen."""
    from axe_playwright_python.sync_playwright import Axe

    page.evaluate("document.querySelectorAll('details').forEach(item => item.open = true)")
    wide = page.evaluate("document.documentElement.scrollWidth")
    faults = [f"{name} is {wide} px wide"] if wide > width else []
    for item in Axe().run(page).response["violations"]:
        faults += [f"{name}: {item['id']} {node['html'][:150]}" for node in item["nodes"]]
    return faults
