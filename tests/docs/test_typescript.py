"""``docs/typescript.md``: its files, run by Node against a real server with the configuration of the page."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kit import docs
from kit.house import ROOT
from kit.patience import HANG, wait_for
from kit.server import RunningServer, approve, run_server

pytestmark = [pytest.mark.integration, pytest.mark.timed]

FILES = {block.title: block for block in docs.read_blocks(ROOT / "docs" / "typescript.md") if block.title is not None}

REFUSED = "The call was not made: it is not allowed here."

NOT_CHECKED = "The call was not made: it could not be checked."


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """With the page's adjudge.toml."""
    folder = tmp_path_factory.mktemp("server")
    docs.write_file(FILES["adjudge.toml"], folder)
    with run_server(folder, (folder / "adjudge.toml").read_text("utf-8")) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, require: Any) -> Path:
    """The page's files; a skip where Node is absent."""
    node = shutil.which("node")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout if node else "v0"
    major = int(version.strip().removeprefix("v").partition(".")[0])
    require("Node.js", major >= 18, "install Node.js 18 or later and put it into PATH")
    for name in ("guard.mjs", "agent.mjs"):
        docs.write_file(FILES[name], tmp_path)
    return tmp_path


def run_agent(folder: Path, url: str, key: str) -> list[str]:
    """The lines that the page's agent prints."""
    node = shutil.which("node") or "node"
    environment = {"PATH": os.environ["PATH"], "ADJUDGE_URL": url, "ADJUDGE_KEY": key}
    words = [node, "agent.mjs"]
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, timeout=2 * HANG, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_a_call_runs_one_is_refused_and_one_waits_for_a_person(folder: Path, server: RunningServer):
    """As the page says; and what was done is not done a second time by the same agent, started again."""
    key = server.make_key("hook")
    ana = server.open_client(key=server.make_key("approve", approver="ana"))

    def list_waiting() -> list[dict[str, Any]]:
        return ana.get("/v1/approvals").json()["approvals"]

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run_agent, folder, server.url, key)
        wait_for(lambda: list_waiting() or running.done())
        [waiting] = list_waiting()
        assert not running.done()
        assert approve(ana, waiting["id"]).status_code == 200
        lines = running.result()

    assert lines == ["ran shell ls", REFUSED, "ran delete_file /srv/data"]


@pytest.mark.parametrize("fault", ["another key", "nobody there", "not a server of ours"])
def test_what_is_no_answer_runs_nothing(folder: Path, server: RunningServer, fault: str):
    """A key without the scope, a port where nobody listens, and an address that answers with a page."""
    key = server.make_key("hook")
    url = server.url
    if fault == "another key":
        key = server.make_key("judge")
    elif fault == "nobody there":
        url = "http://127.0.0.1:9"
    else:
        url = f"{server.url}/signin?"

    assert run_agent(folder, url, key) == [NOT_CHECKED] * 3
