"""The HTML report in a real browser: opened from disk with the network off, filtered, narrow, dark, and attacked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from adjudge.report import render_html
from kit.browser import open_chromium
from kit.reports import (
    HOSTILE,
    list_example,
    list_hostile,
    make_hostile_manifest,
    make_item,
    make_manifest_of,
    report_of,
)

pytestmark = pytest.mark.integration


Open = Callable[..., Any]


@pytest.fixture(scope="module", name="browser")
def provide_browser() -> Iterator[Any]:
    with open_chromium() as browser:
        yield browser


@pytest.fixture(scope="module", name="pages")
def provide_pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The example and the hostile report, on disk."""
    folder = tmp_path_factory.mktemp("reports")
    pages = {
        "example": render_html(report_of(list_example(), make_manifest_of(240))),
        "hostile": render_html(report_of(list_hostile(), make_hostile_manifest())),
    }
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in pages}


@pytest.fixture(name="visit")
def provide_visit(browser: Any, pages: dict[str, Path]) -> Iterator[Open]:
    """Opens a report from disk, with the network off; whatever asked for more than the file fails the test."""
    contexts: list[Any] = []
    asked: list[str] = []

    def visit(page: str | Path, *, width: int = 1200, anchor: str = "", **options: Any) -> Any:
        path = pages[page] if isinstance(page, str) else page
        context = browser.new_context(offline=True, viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        opened = context.new_page()
        opened.on("request", lambda request: asked.append(request.url))
        opened.on("dialog", lambda dialog: asked.append(f"dialog {dialog.message}"))
        opened.on("pageerror", lambda error: asked.append(f"error {error}"))
        opened.goto(f"{path.as_uri()}{anchor}")
        return opened

    yield visit
    for context in contexts:
        context.close()
    assert [item for item in asked if not item.startswith("file://")] == []


def list_visible(page: Any) -> list[str]:
    """The ids of the cases that can be seen."""
    return page.evaluate(
        "[...document.querySelectorAll('#list > li .id')].filter(e => e.checkVisibility()).map(e => e.textContent)"
    )


def test_it_opens_from_disk_without_a_network(visit: Open):
    """Share, charts and cases are there; nothing is asked of anybody, and nothing goes wrong in the script."""
    page = visit("example")

    assert page.title().startswith("59.6 % of 240 cases passed: support.jsonl judged by")
    assert page.locator("#list > li").count() == 240
    assert page.locator("svg.histogram").get_attribute("aria-label").startswith("Scores. From each twentieth on: ")
    assert page.locator("#found").inner_text() == "240 of 240 cases"


def test_it_is_readable_without_script(visit: Open):
    """Every case is there and opens; the filter, which would do nothing, is not shown."""
    page = visit("example", java_script_enabled=False)
    first = page.locator("#list > li").first

    assert page.locator("#filter").is_hidden()
    assert page.locator("#list > li").count() == 240
    assert not first.locator("pre").first.is_visible()
    first.locator("summary").click()
    assert first.locator("pre").first.is_visible()


def test_filters_narrow_the_list(visit: Open):
    """By outcome, reason, group, disagreement and label; together they narrow further, and reset shows all again."""
    page = visit("example")
    counter = page.locator("#found")
    shown = report_of(list_example(), {}).shown

    def expect(expected: Callable[[Any], bool]) -> None:
        ids = [case.id for case in shown if expected(case)]
        page.wait_for_function("text => document.getElementById('found').textContent === text", arg=say(len(ids)))
        assert list_visible(page) == ids

    def say(number: int) -> str:
        return f"{number} of 240 cases"

    page.get_by_label("outcome").select_option("failed")
    expect(lambda case: case.outcome == "failed")
    page.get_by_label("group").select_option(label="refund")
    expect(lambda case: case.outcome == "failed" and case.group == "refund")
    page.get_by_label("label says otherwise").check()
    expect(lambda case: case.outcome == "failed" and case.group == "refund" and case.agrees is False)
    page.get_by_role("button", name="Reset").click()
    page.wait_for_function("() => document.getElementById('found').textContent === '240 of 240 cases'")
    page.get_by_label("judges or repeats disagree").check()
    expect(lambda case: case.split)
    page.get_by_label("judges or repeats disagree").uncheck()
    page.get_by_label("reason").select_option("split")
    expect(lambda case: any(item.undecided_because == "split" for item in case.results))
    assert counter.is_visible()


def wait_for_count(page: Any, text: str) -> None:
    """Wait until the page says how many cases it lists; it says so once it has hidden the others."""
    page.wait_for_function("text => document.getElementById('found').innerText.startsWith(text)", arg=text)


def test_search_finds_words_in_ids_contents_and_reasons(visit: Open):
    """All the words, in any case, wherever they stand; what is not there leaves nothing."""
    page = visit("example")
    for words, number in (("ANSWER-0099", 1), ("blames delivery customer", None), ("no such words", 0)):
        page.get_by_label("search").fill("")
        wait_for_count(page, "240 of")
        page.get_by_label("search").fill(words)
        page.wait_for_function("text => !document.getElementById('found').textContent.startsWith(text)", arg="240 of")
        visible = list_visible(page)
        assert number is None or len(visible) == number
        for name in visible[:3]:
            text = page.locator("#list > li", has_text=name).first.text_content().lower()
            assert all(word in text for word in words.lower().split())


def test_search_shows_what_it_found_in_each_case(visit: Open):
    """An excerpt of the content before others, with the words marked and the place named, and gone with the search."""
    page = visit("example")
    page.get_by_label("search").fill("working REFUND")
    page.wait_for_function("() => document.querySelector('#list .hit')")
    rows = page.locator("#list > li:not([hidden])")
    hits = rows.first.locator(".hit")

    assert rows.count() == page.locator("#list > li:has(.hit)").count() > 10
    assert hits.first.locator("b").inner_text() == "content"
    assert hits.first.is_visible()
    assert "thank you for writing about your refund" in hits.first.inner_text()
    assert {word.lower() for word in hits.first.locator("mark").all_inner_texts()} == {"refund", "working"}
    rows.first.locator("summary").click()
    page.wait_for_function("() => CSS.highlights.get('found').size > 1")
    page.get_by_label("search").fill("")
    page.wait_for_function("() => !document.querySelector('#list .hit')")


def test_search_says_what_stands_in_metadata_alone(visit: Open):
    """And does not change what is searched: what an excerpt repeats is found once."""
    page = visit("example")
    page.get_by_label("search").fill("metadata:")
    page.wait_for_function("() => document.getElementById('found').textContent === '0 of 240 cases'")
    name, text = page.locator("#list > li dd").last.evaluate(
        "e => [e.previousElementSibling.textContent, e.textContent]"
    )
    page.get_by_label("search").fill(text)
    page.wait_for_function("() => document.querySelector('#list .hit')")
    places = page.locator("#list .hit b").all_inner_texts()

    assert any(place == f"metadata: {name}" for place in places)


def test_all_are_opened_and_closed_at_once(visit: Open):
    """Only those that the filter shows."""
    page = visit("example")
    page.get_by_label("outcome").select_option("undecided")
    page.wait_for_function("() => document.getElementById('found').textContent !== '240 of 240 cases'")
    page.get_by_role("button", name="Open all").click()
    assert page.locator("details[open]").count() == page.locator("#list > li:not([hidden])").count() > 0
    page.get_by_role("button", name="Close all").click()
    assert page.locator("details[open]").count() == 0


def test_an_address_opens_its_case(visit: Open):
    """``#case-N`` is a link to one case, which is open and in sight."""
    page = visit("example", anchor="#case-100")

    assert page.locator("#case-100 details").get_attribute("open") is not None
    assert page.locator("#case-100 summary").is_visible()


@pytest.mark.parametrize("name", ["example", "hostile"])
@pytest.mark.parametrize("width", [320, 390, 768])
@pytest.mark.slow_table
def test_nothing_is_wider_than_the_window(visit: Open, name: str, width: int):
    """On a phone there is no scrolling sideways, with every case open, long words and all."""
    page = visit(name, width=width)
    page.get_by_role("button", name="Open all").click()

    assert page.evaluate("document.documentElement.scrollWidth") <= width
    outside = "e => e.getBoundingClientRect().right > innerWidth + 1"
    assert page.evaluate(f"[...document.querySelectorAll('main *, header *')].filter({outside}).length") == 0


CONTRAST = """() => {
  const read = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (rgb) => {
    const straighten = (v) => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
    const [r, g, b] = rgb.slice(0, 3).map((v) => straighten(v / 255));
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = read(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const worst = {};
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || element.closest('script, style, option, title')) continue;
    const style = getComputedStyle(element);
    const [a, b] = [light(read(element.closest('svg') ? style.fill : style.color)), light(behind(element))];
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    const name = element.tagName + '.' + (element.getAttribute('class') || '');
    worst[name] = Math.min(worst[name] || 99, ratio);
  }
  return worst;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_contrast(visit: Open, scheme: str):
    """At least 4.5 to 1, as WCAG AA asks of normal text, in light and in dark."""
    page = visit("example", color_scheme=scheme)
    page.get_by_role("button", name="Open all").click()
    texts = page.evaluate(CONTRAST)

    assert len(texts) > 20
    assert {name: round(ratio, 2) for name, ratio in texts.items() if ratio < 4.5} == {}


def test_it_works_with_a_keyboard_and_names_its_controls(visit: Open):
    """The first stop leads to the cases, each control has a label, each chart a text, and a case opens with Enter."""
    page = visit("example")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the cases"
    unnamed = "[...document.querySelectorAll('input, select')].filter(e => !e.labels.length).length"
    assert page.evaluate(unnamed) == 0
    assert page.locator("svg:not([aria-label], [aria-hidden=true])").count() == 0
    assert page.locator("svg[aria-hidden=true]:not(.icon, .bar, .scale)").count() == 0
    page.locator("#list summary").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("details[open]").count() == 1


def test_hostile_text_stays_text(visit: Open):
    """No dialog, no request, no element of its own; it is read as it was written."""
    page = visit("hostile", width=390)
    page.get_by_role("button", name="Open all").click()

    assert page.locator("script").count() == 1
    for selector in ("img", "#forged", "iframe", "object", "embed", "link", "base", "svg[onload]", "a[href^=http]"):
        assert page.locator(selector).count() == 0
    assert page.locator("h1").inner_text().startswith("<script>alert(1)</script><img src=x onerror=alert(2)>")
    assert page.locator("#list .id", has_text="<b id=forged>bold</b>").count() == 3
    assert page.locator("pre", has_text="<script>alert(1)</script>").count() >= 9
    page.get_by_label("search").fill("no such words")
    wait_for_count(page, "0 of 3 cases")
    page.get_by_label("group").select_option(index=1)
    page.get_by_label("search").fill("<script>alert(1)</script>")
    wait_for_count(page, "3 of 3 cases")


def test_the_policy_stops_what_should_never_get_in(browser: Any, pages: dict[str, Path], tmp_path: Path):
    """Were a text ever not escaped: its script does not run, and nothing reaches a server, network or not."""
    hits: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            hits.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    got_in = (
        f"<script>window.ran = 1</script><script src='{url}/s.js'></script>"
        f"<img src='{url}/i.png' onerror='window.ran = 2'><iframe src='{url}/f'></iframe>"
        f"<style>body {{ display: none }}</style><link rel=stylesheet href='{url}/c.css'>"
        f"<form action='{url}/form'><button id=go>go</button></form></main>"
    )
    broken = tmp_path / "broken.html"
    broken.write_text(pages["example"].read_text("utf-8").replace("</main>", got_in), encoding="utf-8")
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(broken.as_uri())
        page.evaluate("document.getElementById('go').click()")
        wait_for_count(page, "240 of 240 cases")
        ran, counter, at = page.evaluate("[window.ran, document.getElementById('found').innerText, location.href]")
        page.goto(url)  # the server is there, and would have seen it
    server.shutdown()
    server.server_close()

    assert (ran, counter, at) == (None, "240 of 240 cases", broken.as_uri())
    assert [hit for hit in hits if hit != "/favicon.ico"] == ["/"]


@pytest.mark.full
def test_2000_long_cases_open(visit: Open, tmp_path: Path):
    """The largest report there is can be searched."""
    items = [make_item(place, content=f"{HOSTILE} {place} " * 20) for place in range(2_100)]
    path = tmp_path / "large.html"
    path.write_text(render_html(report_of(items, {})), encoding="utf-8")
    page = visit(path)
    page.get_by_label("search").fill("case-1999")
    page.wait_for_function("() => document.getElementById('found').textContent === '1 of 2000 cases'")

    assert list_visible(page) == ["case-1999"]
