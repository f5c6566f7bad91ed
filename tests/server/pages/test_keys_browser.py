"""Keys of the pages in a real browser: text that is typed where no field is decides nothing and leads nowhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from adjudge.labels import open_label_queue
from kit.approval_pages import CONFIG, decide, list_kinds, make_request, read_approval
from kit.browser import WIDTHS, note_faults, open_chromium
from kit.labels import make_run
from kit.server import RunningServer, run_server, sign_in

pytestmark = pytest.mark.integration


SENTENCES = (
    "Add it, customer asked",
    "Ok, checked and done",
    "done: checked, had a look, undo if needed",
    "d",
    "aha",
    "ja, das ist gut so",
    "can be sent; j, k, h, n, u",
    "go ahead, all in order?",
    "good. run it, labels and ledger agree",
    "1 2 3 0: cannot say",
    "/srv/data: delete only the copy",
    "DENY THIS? No, approve.",
)

UNKNOWN = tuple(text for text in SENTENCES if text[0] in "AOD" or text[0] == "1")
"""Those whose first character is the key of nothing on the page of a request."""

Visit = Callable[..., Any]


@pytest.fixture(scope="module", name="server")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("server")
    (folder / "runs").mkdir()
    make_run(folder / "runs" / "monday", 3)
    make_run(folder / "runs" / "tuesday", 1)
    with run_server(folder, config=CONFIG.replace("undo_seconds = 30", 'undo_seconds = 30\nruns = "runs"')) as running:
        running.add_account("Ana")
        running.add_account("Zoe")
        yield running


@pytest.fixture(scope="module", name="browser")
def provide_browser(server: RunningServer) -> Iterator[Any]:
    assert server
    with open_chromium() as browser:
        yield browser


@pytest.fixture(name="visit")
def provide_visit(browser: Any, server: RunningServer) -> Iterator[Visit]:
    """Sign somebody in and open a page; an error of a script fails the test."""
    contexts: list[Any] = []
    wrong: list[str] = []

    def visit(name: str, path: str, *, width: int = 1280, **options: Any) -> Any:
        context = browser.new_context(base_url=server.url, viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        note_faults(page, server.url, wrong)
        sign_in(page, name, path)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert wrong == []


def read_message(page: Any) -> str:
    """What the page says about a key; empty where nobody sees it."""
    message = page.locator("#said[role=status]")
    box = message.bounding_box()
    assert box is not None
    return message.text_content() if box["height"] > 10 and box["width"] > 10 else ""


def look_unchanged(page: Any, address: str) -> None:
    """Fail unless the page is still the same one, with the judge shown and nothing chosen."""
    assert page.url == address
    assert page.locator("[data-chosen]").count() == 0
    assert page.get_by_text("Hide the judge until I decide").count() == 1


# ---------------------------------------------------------------- a key that is switched off


@pytest.mark.slow_table
@pytest.mark.parametrize("focus", ["body", "button", "reason"])
def test_text_after_a_key_that_is_off_is_a_reason_and_chooses_nothing(server: RunningServer, visit: Visit, focus: str):
    """On a request that was cut, so that nobody can approve it yet; sending without a choice says that it did not."""
    for _ in range(2):
        make_request(server)  # to which j and k would lead
    ident = make_request(server, "x " * 15_000, quote="")
    page = visit("Ana", f"/approvals/{ident}")
    address = page.url
    for sentence in SENTENCES:
        page.goto(address)
        if focus == "button":
            page.get_by_role("button", name="Deny").focus()
        elif focus == "reason":
            page.focus("#reason")
            page.keyboard.press("Escape")
        page.keyboard.press("a")
        assert "Approving is off" in read_message(page)
        page.keyboard.type(sentence)
        assert page.input_value("#reason") == sentence
        look_unchanged(page, address)
        page.keyboard.press("Control+Enter")
        assert "Nothing was sent, because nothing is chosen" in read_message(page)
        look_unchanged(page, address)
    assert list_kinds(server, ident) == ["requested"]


def test_a_key_that_is_off_takes_back_what_was_chosen(server: RunningServer, visit: Visit):
    """Or a denial that was prepared before would be sent in the place of an approval."""
    ident = make_request(server, "x " * 15_000, quote="")
    page = visit("Ana", f"/approvals/{ident}")
    page.keyboard.press("d")
    assert "Deny is chosen" in read_message(page)
    page.keyboard.press("Escape")
    page.keyboard.press("a")
    page.keyboard.press("Control+Enter")

    assert "Nothing was sent" in read_message(page)
    look_unchanged(page, page.url)
    assert list_kinds(server, ident) == ["requested"]


@pytest.mark.slow_table
@pytest.mark.parametrize("state", ["another's", "decided", "none"])
def test_where_nothing_can_be_decided_text_goes_nowhere(
    server: RunningServer, visit: Visit, tmp_path: Path, browser: Any, state: str
):
    """A request for somebody else, one that was decided, and an empty queue: a key says why, until Esc."""
    for _ in range(2):
        make_request(server)
    if state == "none":
        check_empty_queue(tmp_path, browser)
        return
    ident = make_request(server, **({"approvers": ["Ben"]} if state == "another's" else {}))
    if state == "decided":
        decide(server, ident, "Ben", False)
    kinds = list_kinds(server, ident)
    page = visit("Ana", f"/approvals/{ident}")
    address, reason = page.url, {"another's": "Ana is not one of its approvers", "decided": "It is denied"}[state]
    for number, sentence in enumerate(SENTENCES):
        page.goto(address)
        if number % 2:  # a blank would press it
            page.get_by_text("Hide the judge until I decide").focus()
        page.keyboard.press("adc"[number % 3])
        assert reason in read_message(page)
        page.keyboard.type(sentence)
        look_unchanged(page, address)
        page.keyboard.press("Control+Enter")
        assert "Nothing was sent" in read_message(page)
        look_unchanged(page, address)
    page.keyboard.press("Escape")
    assert read_message(page) == ""
    with page.expect_navigation():
        page.keyboard.press("h")
    assert list_kinds(server, ident) == kinds


def check_empty_queue(folder: Path, browser: Any) -> None:
    """A queue with nothing in it."""
    with run_server(folder, config=CONFIG) as running, browser.new_context(base_url=running.url) as context:
        running.add_account("Ana")
        page = context.new_page()
        sign_in(page, "Ana", "/approvals")
        page.get_by_text("Nothing waits for approval").wait_for()
        for sentence in SENTENCES:
            page.keyboard.press("a")
            assert "nothing to decide" in read_message(page)
            page.keyboard.type(sentence)
            look_unchanged(page, f"{running.url}/approvals")
            page.keyboard.press("Escape")


def test_a_text_without_a_key_before_it_decides_nothing(server: RunningServer, visit: Visit):
    """From its first character on that is the key of nothing; with the focus on the page, and on a button."""
    ident = make_request(server)
    page = visit("Ana", f"/approvals/{ident}")
    address = page.url
    for sentence in UNKNOWN:
        for focus in ("body", "Deny", "Comment without deciding"):
            page.goto(address)
            if focus != "body":
                page.get_by_role("button", name=focus).focus()
            page.keyboard.type(sentence)
            assert "is no key here" in read_message(page)
            look_unchanged(page, address)
            page.keyboard.press("Control+Enter")
            assert "Nothing was sent" in read_message(page)
            page.keyboard.press("Escape")
            if focus != "body":
                assert focus in page.evaluate("document.activeElement.textContent")
            page.keyboard.press("a")
            assert page.locator("[data-chosen]").get_attribute("value") == "approve"
    assert list_kinds(server, ident) == ["requested"]


# ---------------------------------------------------------------- keys that work


def test_every_sentence_is_a_reason_after_a_key_that_works(server: RunningServer, visit: Visit):
    """Letter by letter, and the vote is the one that was chosen."""
    page = visit("Ana", "/approvals")
    for number, sentence in enumerate(SENTENCES):
        ident = make_request(server)
        page.goto(f"/approvals/{ident}")
        page.keyboard.press("da"[number % 2])
        page.keyboard.type(sentence)
        with page.expect_navigation():
            page.keyboard.press("Control+Enter")
        vote = read_approval(server, ident).pending_votes[0]
        assert (vote.approved, vote.reason) == (number % 2 == 1, sentence)


def test_sending_without_a_choice_says_that_nothing_was_sent(server: RunningServer, visit: Visit):
    """From the reason, from a button and from the page; also with the letters switched off."""
    ident = make_request(server)
    page = visit("Ana", f"/approvals/{ident}")
    for letters in ("on", "off"):
        for place in ("#reason", "button.say-no", "body"):
            page.locator(place).focus()
            page.keyboard.press("Control+Enter")
            assert "Nothing was sent, because nothing is chosen" in read_message(page), (letters, place)
            page.keyboard.press("Escape")
        page.get_by_role("button", name="Keys").first.click()
        with page.expect_navigation():
            page.locator("#keys button").click()
        page.goto(f"/approvals/{ident}")
    assert list_kinds(server, ident) == ["requested"]


@pytest.mark.slow_table
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scripts", [True, False])
def test_a_request_that_was_decided_meanwhile_takes_no_vote(
    server: RunningServer, visit: Visit, width: int, scripts: bool
):
    """The page still shows it as open; the text is kept, on every screen."""
    ident = make_request(server)
    page = visit("Ana", f"/approvals/{ident}", width=width, java_script_enabled=scripts)
    decide(server, ident, "Ben", False)
    if scripts:
        page.keyboard.press("a")
        page.keyboard.type(SENTENCES[0])
    else:
        page.fill("#reason", SENTENCES[0])
    with page.expect_navigation():
        if scripts:
            page.keyboard.press("Control+Enter")
        else:
            page.get_by_role("button", name="Approve").click()

    assert "Somebody decided this first" in page.text_content("main")
    assert SENTENCES[0] in page.text_content("main")
    assert read_approval(server, ident).status == "denied"


@pytest.mark.slow_table
@pytest.mark.parametrize("combination", ["Shift+D", "Shift+A", "Alt+d", "Control+d", "Meta+d", "Control+Shift+Enter"])
def test_combinations_are_no_keys(server: RunningServer, visit: Visit, combination: str):
    """Browsers and systems have their own uses for them."""
    ident = make_request(server)
    page = visit("Ana", f"/approvals/{ident}")
    page.keyboard.press(combination)

    look_unchanged(page, page.url)
    assert page.evaluate("document.activeElement.id") != "reason"


@pytest.mark.slow_table
@pytest.mark.parametrize(
    ("event", "chosen"),
    [
        pytest.param({"key": "D", "modifierCapsLock": True}, "deny", id="Caps Lock"),
        pytest.param({"key": "d", "modifierCapsLock": True, "shiftKey": True}, None, id="Caps Lock and Shift"),
        pytest.param({"key": "d", "modifierAltGraph": True}, None, id="AltGr"),
        pytest.param(
            {"key": "d", "modifierAltGraph": True, "altKey": True, "ctrlKey": True}, None, id="AltGr, Windows"
        ),
        pytest.param({"key": "∂", "altKey": True}, None, id="Option"),
        pytest.param({"key": "Dead"}, None, id="dead key"),
        pytest.param({"key": "Process"}, None, id="input method"),
        pytest.param({"key": "đ"}, None, id="another letter"),
    ],
)
def test_characters_of_other_keyboards_begin_a_text(
    server: RunningServer, visit: Visit, event: dict[str, Any], chosen: str | None
):
    """With Caps Lock a letter is still its key; the ``d`` after the beginning of a text is none."""
    page = visit("Ana", f"/approvals/{make_request(server)}")
    page.evaluate(
        "event => document.body.dispatchEvent(new KeyboardEvent('keydown', {bubbles: true, ...event}))", event
    )
    if chosen is None:
        page.keyboard.press("d")
        look_unchanged(page, page.url)
        assert "is no key here" in read_message(page)
    else:
        assert page.locator("[data-chosen]").get_attribute("value") == chosen


def test_a_key_that_is_held_down_counts_once(server: RunningServer, visit: Visit):
    """And writes nothing into the field that it leads to."""
    page = visit("Ana", f"/approvals/{make_request(server)}")
    for _ in range(5):
        page.keyboard.down("a")
    page.keyboard.up("a")
    assert page.input_value("#reason") == ""
    page.keyboard.down("a")
    page.keyboard.down("a")
    assert page.input_value("#reason") == "aa"


def test_an_input_method_at_work_sends_nothing(server: RunningServer, visit: Visit):
    """Enter and Esc belong to it until the text is there."""
    ident = make_request(server)
    page = visit("Ana", f"/approvals/{ident}")
    page.keyboard.press("a")
    devtools = page.context.new_cdp_session(page)
    devtools.send("Input.imeSetComposition", {"text": "にほ", "selectionStart": 2, "selectionEnd": 2})
    for key, more in (("Enter", {"ctrlKey": True}), ("Escape", {})):
        event = {"key": key, "isComposing": True, "bubbles": True, **more}
        page.evaluate("event => reason.dispatchEvent(new KeyboardEvent('keydown', event))", event)
        assert page.evaluate("document.activeElement.id") == "reason"
    devtools.send("Input.insertText", {"text": "日本"})

    assert page.input_value("#reason") == "日本"
    assert list_kinds(server, ident) == ["requested"]


def test_keys_with_nothing_to_do_say_so(server: RunningServer, visit: Visit):
    """And the keys after them work."""
    page = visit("Zoe", f"/approvals/{make_request(server, quote='', approvers=['Ana'])}")
    for key, message in (("n", "No quotation is marked"), ("u", "Nothing can be undone")):
        page.keyboard.press(key)
        assert message in read_message(page)
    with page.expect_navigation():
        page.keyboard.press("h")


# ---------------------------------------------------------------- labels and the other pages


def test_a_text_that_is_no_comment_labels_nothing(server: RunningServer, visit: Visit):
    """A figure in it would be an answer, ``s`` skip the case and ``u`` undo the last one."""
    page = visit("Ana", "/labels/monday")
    for sentence in ("Good, 2 of 10", "ok 1", "# 0"):
        page.goto("/labels/monday")
        page.keyboard.type(sentence)
        assert "is no key here" in read_message(page)
    with page.expect_navigation():
        page.keyboard.press("Escape")
        page.keyboard.press("1")
    with open_label_queue(server.folder / "runs" / "monday") as queue:
        assert [label.value for label in queue.labels()] == [True]


def test_a_comment_on_what_is_finished_undoes_nothing(server: RunningServer, visit: Visit):
    """The last label was given; ``c`` is off, and the ``u`` of the text is not the key."""
    page = visit("Ana", "/labels/tuesday")
    with page.expect_navigation():
        page.keyboard.press("1")
    page.keyboard.press("c")
    assert "Nothing is left" in read_message(page)
    page.keyboard.type("useful, but 2 of 10 are not")
    assert page.url.endswith("/labels/tuesday")
    with open_label_queue(server.folder / "runs" / "tuesday") as queue:
        assert [label.value for label in queue.labels()] == [True]


def test_a_key_that_comes_while_an_answer_is_on_its_way_answers_nothing(server: RunningServer, visit: Visit):
    """It was meant for the next case, and would change this one."""
    page = visit("Zoe", "/labels/monday")
    sent: list[str] = []

    def hold(route: Any) -> None:
        """Leave the page as it is, as a server does that does not answer yet."""
        if route.request.method == "GET":
            route.continue_()
            return
        sent.append(route.request.post_data)
        route.abort("aborted")

    page.route("**/labels/monday", hold)
    page.keyboard.press("1")
    page.keyboard.press("2")
    assert "next page is loading" in read_message(page)
    assert ["label=good" in data for data in sent] == [True]
    page.unroute("**/labels/monday")
    page.keyboard.press("Escape")
    with page.expect_navigation():
        page.keyboard.press("1")
    with open_label_queue(server.folder / "runs" / "monday") as queue:
        assert [label.value for label in queue.labels() if label.rater == "Zoe"] == [True]


@pytest.mark.slow_table
@pytest.mark.parametrize("path", ["/", "/runs", "/ledger", "/results"])
def test_a_search_that_is_not_there_takes_no_text(visit: Visit, path: str):
    """``/`` is off on such a page, and the words after it lead nowhere; where there is a search they are in it."""
    page = visit("Ana", path)
    address = page.url
    page.keyboard.type("/good rules, keys and labels")
    if page.locator("input[type=search]").count():
        assert page.locator("input[type=search]").input_value() == "good rules, keys and labels"
    else:
        assert "no search" in read_message(page)
    assert page.url == address
