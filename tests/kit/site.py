"""The documentation as a site: what it is built from, built as a person would, and served on this machine."""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

from kit import house
from kit.environment import require


def copy_tree(target: Path) -> Path:
    """Copy what the site is made of, and nothing that an earlier build left."""
    for name in ("docs", "examples", "scripts", "src"):
        shutil.copytree(house.ROOT / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (house.ROOT / "zensical.toml", *house.ROOT.glob("*.md")):
        shutil.copy(path, target)
    return target


def build(tree: Path) -> subprocess.CompletedProcess[str]:
    """Run the script as a person would."""
    require("zensical", find_spec("zensical") and find_spec("mkdocstrings"), "pip install --group docs")
    command = [sys.executable, str(tree / "scripts" / "docs")]
    return subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False, encoding="utf-8")


class Handler(SimpleHTTPRequestHandler):
    """Serves the site, and says nothing."""

    def log_message(self, *args: object) -> None:
        """Nothing is logged."""


@contextmanager
def serve_site(site: Path) -> Iterator[str]:
    """The address of the site over HTTP, on this machine alone, for as long as the block lasts."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
