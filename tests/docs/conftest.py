"""The site that several modules look at: built once, served, and a browser without another network."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.browser import open_chromium
from kit.site import build, copy_tree, serve_site


@pytest.fixture(scope="session", name="site")
def provide_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly from a clean tree: once, for all the processes that test side by side."""
    shared = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        shared = shared.parent
    tree = shared / "site-tree"
    site = tree / "build" / "site"
    with (shared / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "site-built").exists():
            shutil.rmtree(tree, ignore_errors=True)
            done = build(copy_tree(tree))
            assert done.returncode == 0, done.stdout + done.stderr
            (shared / "site-built").touch()
    return site


@pytest.fixture(scope="session", name="address")
def provide_address(site: Path) -> Iterator[str]:
    """The site over HTTP, on this machine alone."""
    with serve_site(site) as address:
        yield address


@pytest.fixture(scope="module", name="browser")
def provide_browser() -> Iterator[Any]:
    with open_chromium("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1") as browser:
        yield browser
