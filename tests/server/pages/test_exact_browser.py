"""What will happen is shown to the last blank: in a real browser, as it is seen and as it is copied."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adjudge import Case
from kit.approval_pages import CONFIG, decide, make_request
from kit.browser import note_errors, note_faults, open_chromium
from kit.labels import make_run
from kit.server import RunningServer, run_server, sign_in

pytestmark = pytest.mark.integration


COMMAND = "rm -rf '/srv/my  two   spaces'\trest\n  indented \n\nno\u00a0break, em\u2003space, end "
CALL = {"tool": "shell.run", "command": COMMAND, "arguments": {"path": "/a  b"}}
PROSE = "Dear  Ms Lind,\n\n  you will have the money within 24  hours.\tThanks \nEnd."


@pytest.fixture(scope="module", name="server")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder: Path = tmp_path_factory.mktemp("server")
    (folder / "runs").mkdir()
    make_run(folder / "runs" / "monday", [Case(id="x", content=PROSE)])
    with run_server(folder, config=CONFIG.replace("undo_seconds = 30", 'undo_seconds = 30\nruns = "runs"')) as running:
        running.add_account("Ana")
        yield running


@pytest.fixture(scope="module", name="page")
def open_page(server: RunningServer) -> Iterator[Any]:
    assert server
    with open_chromium() as browser, browser.new_context(base_url=server.url) as context:
        page = context.new_page()
        page.wrong = []
        note_faults(page, server.url, page.wrong)
        note_errors(page, page.wrong)
        sign_in(page, "Ana", "/labels")
        yield page


@pytest.fixture(autouse=True)
def hold_page_to_policy(page: Any) -> Iterator[None]:
    """Nothing foreign was loaded, nothing ran, and no script had an error, whatever a test showed."""
    yield
    assert page.wrong == []


def select(page: Any, place: Any) -> str:
    """What is copied of an element."""
    return place.evaluate("it => { getSelection().selectAllChildren(it); return getSelection().toString() }")


def list_marks(place: Any) -> list[tuple[str, str]]:
    """What is marked in an element, and how: the character that is drawn, or ``dots``."""
    return [tuple(item) for item in place.evaluate("""it => Array.from(it.querySelectorAll('.ws'), (mark) => {
        const drawn = getComputedStyle(mark, '::before').content;
        const dots = getComputedStyle(mark).backgroundImage !== 'none';
        return [mark.textContent, dots ? 'dots' : drawn.replaceAll('"', '')];
    })""")]  # fmt: skip


def test_a_command_is_shown_as_it_runs(server: RunningServer, page: Any):
    """Each blank, tab and line break is there, is marked, and is copied as it is."""
    page.goto(f"/approvals/{make_request(server, json.dumps(CALL), quote='')}")
    box = page.locator(".code-lines")

    assert box.inner_text() == COMMAND
    assert select(page, box) == COMMAND
    assert list_marks(box) == [
        ("  ", "dots"), ("   ", "dots"), ("\t", "→"), ("  ", "dots"), (" ", "dots"),
        ("\u00a0", "U+00A0"), ("\u2003", "U+2003"), (" ", "dots"),
    ]  # fmt: skip
    # A number stands at each line of the text, and at none that is broken by the window.
    assert box.locator(".at").count() == COMMAND.count("\n") + 1
    text = page.locator(".beside").last.text_content()
    for words in ("6 runs of blanks", "1 tab", "2 other characters"):
        assert words in text
    assert page.locator(".call .value").first.inner_text() == "/a  b"


PATCH = "--- a/app.py\n+++ b/app.py\n@@ -1,2 +1,2 @@\n limit = 1\n-top = 10\n+top = 10_000\n"


def test_what_runs_is_set_in_letters_of_one_width(server: RunningServer, page: Any):
    """Code, a patch and a plain value: an l is as wide as an m. A letter is prose."""
    arguments = {"command": COMMAND, "patch": PATCH, "path": "/a  b", "body": PROSE}
    page.goto(f"/approvals/{make_request(server, {'tool': 'shell.run', 'arguments': arguments}, quote='')}")
    widths = {
        name: page.locator(name).first.evaluate("""it => {
            const probe = document.createElement('span');
            it.appendChild(probe);
            const [thin, wide] = ['l', 'm'].map((letter) => {
                probe.textContent = letter.repeat(50);
                return probe.getBoundingClientRect().width;
            });
            probe.remove();
            return [getComputedStyle(it).fontFamily, thin === wide];
        }""")
        for name in (".code-lines", ".diff .plus [dir=ltr]", ".call .value", ".call .prose")
    }

    for name in (".code-lines", ".diff .plus [dir=ltr]", ".call .value"):
        assert "monospace" in widths[name][0], name
        assert widths[name][1], name
    assert "monospace" not in widths[".call .prose"][0]


def test_a_letter_in_a_call_is_shown_and_copied_as_it_is(server: RunningServer, page: Any):
    """Its line breaks are line breaks, and marked, because a long line is broken by the window too."""
    page.goto(f"/approvals/{make_request(server, {'tool': 'mail.send', 'arguments': {'body': PROSE}}, quote='')}")
    box = page.locator(".prose")

    assert (box.inner_text(), select(page, box)) == (PROSE, PROSE)
    assert ("\n", "↵") in list_marks(box)
    assert ("  ", "dots") in list_marks(box)


CALLS = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "data" / "tool_calls.jsonl").read_text("utf-8").splitlines()
]


@pytest.mark.slow_table
@pytest.mark.parametrize("call", CALLS, ids=[call["id"] for call in CALLS])
def test_a_call_of_any_kind_fits_every_screen(server: RunningServer, page: Any, call: dict[str, Any]):
    """Nothing of it has to be scrolled sideways, and nothing of it runs: it is text."""
    content = {"tool": call["tool"], "arguments": call["arguments"]}
    ident = make_request(server, content, quote="", metadata={"title": call["title"]})
    for width in (1440, 390, 320):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(f"/approvals/{ident}?whole=true")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert (
            page.evaluate("""() => Array.from(document.querySelectorAll('.tool-call *'))
            .filter((one) => one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).display !== 'inline')
            .filter((one) => !one.closest('thead, .unseen')).map((one) => one.outerHTML.slice(0, 80))""")
            == []
        )
        assert page.locator(".tool-call :is(script, img, a:not(.ref), style, iframe)").count() == 0
        assert all(name.strip() in page.locator(".tool-call").inner_text() for name in call["arguments"])
    page.set_viewport_size({"width": 1440, "height": 900})


@pytest.mark.parametrize("width", [1440, 390])
def test_each_blank_has_room_of_its_own(server: RunningServer, page: Any, width: int):
    """Three take three times the room of one, also where a line is broken by the window and not by the text."""
    page.set_viewport_size({"width": width, "height": 900})
    text = " ".join(f"word{number}" + " " * (1 + number % 5) for number in range(60))
    page.goto(f"/approvals/{make_request(server, json.dumps({'command': text}), quote='')}")
    box = page.locator(".code-lines")
    widths = box.evaluate("""it => Array.from(it.querySelectorAll('.ws.blanks'), (mark) => {
        const boxes = Array.from(mark.getClientRects());
        return [mark.textContent.length, boxes.reduce((sum, one) => sum + one.width, 0)];
    })""")
    one = widths[0][1] / widths[0][0]

    assert one > 3
    assert len(widths) > 40
    assert all(abs(taken - one * number) < 1 for number, taken in widths)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.set_viewport_size({"width": 1440, "height": 900})


def test_content_and_what_changed_in_it_are_shown_as_they_are(server: RunningServer, page: Any):
    """With a quotation marked in it; a reference's number is not copied with the text."""
    earlier = make_request(server, PROSE.replace("  ", " "), quote="")
    decide(server, earlier, "Ana", True)
    page.goto(f"/approvals/{make_request(server, PROSE, quote='within 24  hours')}")
    content = page.locator("pre.text")

    assert select(page, content) == PROSE
    assert [mark for mark in list_marks(content) if mark[0].strip("\n")] == [
        ("  ", "dots"), ("  ", "dots"), ("  ", "dots"), ("\t", "→"), (" ", "dots"),
    ]  # fmt: skip
    assert page.locator("mark .ws.blanks").count() == 1
    changed = page.locator(".diff .plus ins .ws.blanks, .diff .plus .ws.blanks")
    assert changed.count() >= 3


def test_a_case_to_label_is_shown_as_it_is(page: Any):
    """People decide about it too."""
    page.goto("/labels/monday")
    content = page.locator("pre.text")

    assert (content.inner_text(), select(page, content)) == (PROSE, PROSE)
    assert ("\t", "→") in list_marks(content)
    assert ("  ", "dots") in list_marks(content)
