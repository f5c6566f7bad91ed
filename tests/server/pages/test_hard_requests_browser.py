"""Requests that are hard to read, drawn as pictures: can somebody say in ten seconds what will run?

The requests are not in the repository: ``ADJUDGE_CASES`` names a folder that holds ``data/hard_requests.jsonl``.
``ADJUDGE_PICTURES`` names a folder that the pictures are kept in, to be looked at. What can be checked without eyes is
checked here: every value is on the page, letter for letter, nothing is scrolled sideways, and nothing of it is live.

Each picture is called after its request and the screen, and this is what its reader has to be able to say:

* ``dev-00``: 184.00 EUR go back to a card, and this letter, line by line, to the customer.
* ``dev-01``: one file changes; two lines go and two come, and one of those lets ten thousand through.
* ``dev-02``: an update of the orders of ``prod``, and that the ``OR`` in its last line binds least.
* ``dev-03``: files are removed; where there are two blanks, a tab and a line end in the command.
* ``dev-04``: forty customers change, as a table with a row for each, and which values repeat.
* ``dev-05``: a mail to all in Markdown, as it is sent and as it may look; the script, the address, the picture and the
  turned text in it are text. The title is no heading of the page.
* ``dev-06``, ``dev-07``: a note in Chinese; a letter in Arabic from right to left, its number and sum as they are.
* ``dev-08``: ``/etc/passwd`` is deleted, by a call that lies as text in a call in text.
* ``dev-09``: so many bytes of a PDF are stored under this name, with their digest.
* ``dev-10``: many small values of every kind, which of them are texts, and which is only blanks.
* ``dev-11``: a tool with a very long name and no title gets nothing.
* ``text-50kb``, ``text-50kb-whole``: the beginning of a long text with approving off, and all of it with approving on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.approval_pages import CONFIG, make_request
from kit.browser import note_errors, note_faults, open_chromium
from kit.environment import require
from kit.server import RunningServer, run_server, sign_in

pytestmark = pytest.mark.integration


WIDTHS = {"desk": 1440, "tablet": 1024, "phone": 390}

LONG_TEXT = "\n\n".join(
    f"{number}. The customer may return what was bought within {10 + number % 20} working days, in its own box."
    for number in range(1, 583)
)
"""About 50 kB."""

TALLEST = 6_000
"""Pixels of a page that a picture shows."""


@pytest.fixture(scope="module", name="server")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with run_server(tmp_path_factory.mktemp("server"), config=CONFIG) as running:
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
        sign_in(page, "Ana", "/approvals")
        yield page


@pytest.fixture(autouse=True)
def hold_page_to_policy(page: Any) -> Iterator[None]:
    """Nothing foreign was loaded, nothing ran, and no script had an error, whatever a request holds."""
    yield
    assert page.wrong == []


@pytest.fixture(name="pictures")
def find_pictures(tmp_path: Path) -> Path:
    folder = Path(os.environ.get("ADJUDGE_PICTURES") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def list_texts(value: Any) -> Iterator[str]:
    """Every text in some arguments; a text that is JSON is shown as its members, so those count."""
    if isinstance(value, dict):
        for member in value.values():
            yield from list_texts(member)
    elif isinstance(value, list):
        for member in value:
            yield from list_texts(member)
    elif isinstance(value, str) and value.strip()[:1] != "{":
        yield value


def show_dots(line: str) -> str:
    """A line with a dot for each character that cannot be seen."""
    return "".join(char if char.isprintable() or char == "\t" else "·" for char in line)


def draw(page: Any, folder: Path, name: str) -> None:
    """The page at every width, as high as it is; fails where something of the call would be scrolled sideways."""
    for size, width in WIDTHS.items():
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, size)
        height = min(page.evaluate("document.documentElement.scrollHeight"), TALLEST)
        page.set_viewport_size({"width": width, "height": height})
        page.screenshot(path=folder / f"{name}-{size}.png")
        if size == "desk":
            page.emulate_media(color_scheme="dark")
            page.screenshot(path=folder / f"{name}-{size}-dark.png")
            page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1440, "height": 900})


@pytest.mark.full
def test_hard_requests_can_be_read(cases: Path, server: RunningServer, page: Any, pictures: Path):
    """Each is drawn; its tool and its texts are there, and no element of it can run or load anything."""
    path = cases / "data" / "hard_requests.jsonl"
    require(str(path), path.is_file(), "name the folder that has it by ADJUDGE_CASES")
    requests = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert requests
    for request in requests:
        metadata = {"title": request["title"], **request.get("metadata", {})}
        call = {"tool": request["tool"], "arguments": request["arguments"]}
        ident = make_request(server, call, quote="", metadata=metadata)
        page.goto(f"/approvals/{ident}?whole=true")
        draw(page, pictures, request["id"])
        shown = page.locator(".tool-call")
        text = shown.evaluate("it => it.textContent")
        assert request["tool"] in text
        for value in list_texts(request["arguments"]):
            for line in value.splitlines():
                # The sign of a changed line is drawn beside it, and of a long line its beginning is enough.
                # What nobody sees is there by its code, and its place in the text has a dot.
                assert show_dots(line.lstrip("+-"))[:200].strip() in text, (request["id"], line[:80])
        assert shown.locator("script, img, iframe, style, a:not(.ref)").count() == 0


def test_a_text_of_50_kb_can_be_read(server: RunningServer, page: Any, pictures: Path):
    """It is cut at first, which the page says beside a switched-off approval; the rest is one link away."""
    ident = make_request(server, LONG_TEXT, quote="", metadata={"title": "Send the terms of 2027"})
    page.goto(f"/approvals/{ident}")
    draw(page, pictures, "text-50kb")
    assert page.get_by_role("button", name="Approve").is_disabled()
    page.get_by_role("button", name="Show the rest").first.click()
    page.wait_for_url("**whole=true**")
    draw(page, pictures, "text-50kb-whole")
    assert page.locator(".content .text").evaluate("it => it.textContent") == LONG_TEXT
    assert page.get_by_role("button", name="Approve").is_enabled()
