"""``adjudge mcp``: what a server offers in a file that people read, and what changed since."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from kit import cli
from kit.cli import ESCAPES, HIDDEN, Ran
from kit.patience import HANG

pytestmark = [pytest.mark.integration, pytest.mark.timed, pytest.mark.slow]

SERVER = """
import sys
from mcp.server.mcpserver import MCPServer

server = MCPServer("numbers", instructions=sys.argv[1], log_level="CRITICAL")

for name in sys.argv[2:]:
    server.add_tool(lambda a, b: 3, name=name, description=f"Numbers {sys.argv[1]}")

server.run("stdio")
"""


@pytest.fixture(autouse=True)
def package(require) -> None:
    require("mcp", find_spec("mcp"), "pip install 'adjudge[mcp]'")


def run(folder: Path, *arguments: str) -> Ran:
    """The command in a process of its own, whose standard error a server that it starts can write to."""
    return cli.finish(cli.start(folder, "mcp", *arguments, cwd=folder))


def start(folder: Path, *words: str) -> list[str]:
    """The command of a server with these instructions and tools, which may take as long to start as it likes."""
    path = folder / "server.py"
    path.write_text(SERVER, "utf-8")
    return ["--timeout", f"{HANG:g}", "--", sys.executable, str(path), *words]


def test_a_server_is_pinned_and_checked(tmp_path: Path):
    """Every tool and the instructions; the same server has not changed, and another one has."""
    written = run(tmp_path, "pin", *start(tmp_path, "Add.", "add", "sub"))
    (tmp_path / "pins.json").write_text(written.out, "utf-8")
    same = run(tmp_path, "check", "pins.json", *start(tmp_path, "Add.", "add", "sub"))
    other = run(tmp_path, "check", "pins.json", *start(tmp_path, "Sub.", "add", "mul"))

    assert (written.status, written.document["schema"]) == (0, "adjudge/mcp-pins/1")
    assert (written.document["name"], written.document["instructions"]) == ("numbers", "Add.")
    assert [tool["name"] for tool in written.document["tools"]] == ["add", "sub"]
    assert (same.status, same.out) == (0, "")
    assert other.status == 1
    assert other.out.splitlines() == [
        "changed: source",
        "changed: instructions",
        "changed: tool 'add'",
        "gone: tool 'sub'",
        "new: tool 'mul'",
    ]


def test_nothing_that_is_pinned_is_invisible(tmp_path: Path):
    """A description in characters that no terminal shows is read as escapes."""
    hidden = ESCAPES.replace("\x00", "") + "\U000e0041\u200b"
    written = run(tmp_path, "pin", *start(tmp_path, hidden, "add"))

    assert written.out.isascii()
    assert not HIDDEN.search(written.out)
    assert json.loads(written.out)["instructions"] == hidden


@pytest.mark.parametrize("words", [["http://127.0.0.1:9/mcp"], ["no-such-command-at-all"], [sys.executable, "-c", ""]])
def test_a_server_that_cannot_be_read_is_named(words: list[str], tmp_path: Path):
    """Nothing is written, so no file of pins is empty."""
    ran = run(tmp_path, "pin", "--timeout", "20", "--", *words)

    assert ran.status == 2
    assert "cannot be read" in ran.sentence
