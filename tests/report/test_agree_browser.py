"""The page of ``adjudge agree`` in a real browser: filtered, on a phone, in the dark, and attacked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adjudge.dataset import Label
from adjudge.measurement import Measurement, make_measurement
from adjudge.report import make_report, render_html, render_measurement_html
from kit.browser import open_chromium
from kit.reports import HOSTILE, keep_run, make_item, make_result

pytestmark = pytest.mark.integration


pytest.importorskip("scipy", reason="measuring needs the extra trust")


def measure(place: Path, text: str) -> tuple[Any, Measurement]:
    """A run of 60 cases whose every text is this one, and its judge beside two people."""
    items = [
        make_item(
            at,
            make_result("passed" if at % 3 else "failed"),
            id=f"{text}{at}",
            content=text,
            group=f"{text}{at // 2}",
            metadata={"kind": f"{text}{at % 2}"},
        )
        for at in range(60)
    ]
    run = keep_run(place, items)
    labels = [
        Label(case=item.case.id, rater=f"{text}{rater}", value=bool(at % (4 + rater)), comment=text)
        for rater in range(2)
        for at, item in enumerate(items)
    ]
    return run, make_measurement(run, labels=labels, by="kind")


@pytest.fixture(scope="module", name="pages")
def provide_pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A plain and a hostile measurement as pages, and the report of the hostile run with it."""
    folder = tmp_path_factory.mktemp("measured")
    (_, plain), (run, hostile) = measure(folder / "plain", "case "), measure(folder / "hostile", HOSTILE)
    pages = {
        "plain": render_measurement_html([plain]),
        "hostile": render_measurement_html([hostile, plain]),
        "report": render_html(make_report(run, measurement=hostile)),
    }
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in pages}


@pytest.fixture(scope="module", name="browser")
def provide_browser(pages: dict[str, Path]) -> Iterator[Any]:
    """The system's Chromium; the pages are made before, because its driver keeps a loop running."""
    assert pages
    with open_chromium() as browser:
        yield browser


def visit(browser: Any, path: Path, **options: Any) -> tuple[Any, list[str]]:
    """A page that is opened from disk without a network, and what it asked for or got wrong."""
    page = browser.new_context(offline=True, **options).new_page()
    wrong: list[str] = []
    page.on("request", lambda request: wrong.append(request.url))
    page.on("dialog", lambda dialog: wrong.append(f"dialog {dialog.message}"))
    page.on("pageerror", lambda error: wrong.append(f"error {error}"))
    page.goto(path.as_uri())
    return page, [item for item in wrong if not item.startswith("file://")]


def test_disagreements_are_filtered_by_sort(browser: Any, pages: dict[str, Path]):
    """A choice of a sort leaves its cases and no others; reset shows all again."""
    page, wrong = visit(browser, pages["plain"])
    total = page.locator("#list > li").count()
    page.get_by_label("sort").select_option("people disagree")
    page.wait_for_function("n => !document.getElementById('found').textContent.startsWith(n + ' of')", arg=total)
    shown = page.evaluate(
        "[...document.querySelectorAll('#list > li')].filter(e => !e.hidden).map(e => e.dataset.sort)"
    )

    assert 0 < len(shown) < total
    assert set(shown) == {"people-disagree"}
    assert wrong == []


@pytest.mark.parametrize("name", ["plain", "hostile", "report"])
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_nothing_runs_and_nothing_sticks_out(browser: Any, pages: dict[str, Path], name: str, width: int, scheme: str):
    """No text becomes an element or a request, and no page is wider than the screen."""
    page, wrong = visit(browser, pages[name], viewport={"width": width, "height": 800}, color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(item => item.open = true)")

    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("#forged, img, script:not(body > script)").count() == 0
    assert wrong == []


def test_it_is_complete_without_script(browser: Any, pages: dict[str, Path]):
    """The sentence, the table and the list are there; the filter, which would do nothing, is not."""
    page, _ = visit(browser, pages["plain"], java_script_enabled=False)

    assert "people" in page.locator(".lead").inner_text().lower()
    assert page.locator("#filter").is_hidden()
    assert page.locator("#list > li").count() > 0
