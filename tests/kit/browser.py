"""The system's Chromium, driven by Playwright, without requests of its own."""

from __future__ import annotations

import gc
import json
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from kit.environment import require
from kit.patience import HANG

WIDTHS = (1440, 1024, 390)
"""Pixels of the screens on which every job has to be done: a desk, a tablet and a phone."""

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def require_chromium() -> None:
    """Skip, or fail in CI, before a test makes what it would look at."""
    require("playwright", find_spec("playwright"), "pip install playwright")
    require("a browser", shutil.which("chromium"), "apt-get install chromium")


def _give_time(make: Callable[..., Any]) -> Callable[..., Any]:
    """Let what a browser makes wait as long as any test: Playwright's own 30 s are over on a busy machine."""

    def remove_time_limits(*args: Any, **options: Any) -> Any:
        made = make(*args, **options)
        made.set_default_timeout(1_000 * HANG)
        return made

    return remove_time_limits


@contextmanager
def open_chromium(*flags: str) -> Iterator[Any]:
    """A browser until the block ends.

    The driver keeps an event loop running in this thread, so whatever calls ``asyncio.run`` has to be made before.
    """
    require_chromium()
    from playwright.sync_api import sync_playwright

    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=[*FLAGS, *flags], timeout=1_000 * HANG
            )
            for method in ("new_context", "new_page"):
                setattr(browser, method, _give_time(getattr(browser, method)))
            try:
                yield browser
            finally:
                browser.close()
    finally:
        # On a busy machine Playwright closes its loop before the driver's pipes have closed. They are collected here,
        # because the warning would fail whichever test comes next.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


def note_errors(page: Any, faults: list[str]) -> None:
    """Note every error in the console, also of a file that could not be loaded: for pages that are expected to work."""
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)


def note_faults(page: Any, url: str, faults: list[str]) -> None:
    """Note when a page of a server opens a dialog, breaks its policy, asks another host or has an error in a script."""
    page.on("dialog", lambda dialog: (faults.append("a dialog"), dialog.dismiss()))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if "Content Security" in message.text else None)
    page.on("request", lambda asked: faults.append(asked.url) if not asked.url.startswith(url) else None)


def tab_to(page: Any, condition: str) -> None:
    """Press Tab until what has the focus meets a condition."""
    for _ in range(300):
        if page.evaluate(f"Boolean({condition})"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab never comes to where {condition}")


def press_by_tab(page: Any, text: str) -> None:
    """Press what is called so, reached by Tab alone."""
    tab_to(page, f"document.activeElement.textContent.trim() === {json.dumps(text)}")
    page.keyboard.press("Enter")


def type_by_tab(page: Any, ident: str, text: str) -> None:
    """Type into a field that Tab reaches."""
    tab_to(page, f"document.activeElement.id === {json.dumps(ident)}")
    page.keyboard.type(text)
