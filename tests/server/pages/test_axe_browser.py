"""Every page of the server held to axe: in light and in dark, on a phone, a tablet and a desk."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from kit.browser import open_chromium, require_chromium
from kit.environment import FULL, require
from kit.server_tour import Tour, open_pages, open_tour

pytestmark = pytest.mark.integration


TABLE = [(scheme, width) for scheme in ("light", "dark") for width in (390, 768, 1440)]

SAMPLE = [("dark", 390)]


@pytest.fixture(scope="module", name="tour")
def start_tour(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tour]:
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
def test_axe_finds_nothing_serious_on_any_page(tour: Tour, browser: Any, scheme: str, width: int):
    """Nor is one wider than its screen; with what is folded opened. Without ADJUDGE_FULL, every fourth page."""
    from axe_playwright_python.sync_playwright import Axe

    page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
    faults: list[str] = []
    for number, name in enumerate(open_pages(page, tour)):
        if not FULL and number % 4:
            continue
        page.evaluate("document.querySelectorAll('details').forEach(item => item.open = true)")
        wide = page.evaluate("document.documentElement.scrollWidth")
        faults += [f"{name} is {wide} px wide"] if wide > width else []
        for item in Axe().run(page).response["violations"]:
            if item["impact"] in {"serious", "critical"}:
                faults += [f"{name}: {item['id']} {node['html'][:150]}" for node in item["nodes"]]
    page.close()

    assert faults == []
