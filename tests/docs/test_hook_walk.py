"""The ten minutes of ``docs/hook.md``, walked: every command but those that install adjudge and start Codex.

In Codex's place its recorded events are sent to the command that the page has installed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kit import docs, house
from kit.approval_pages import send
from kit.patience import HANG, wait_for
from kit.server import PASSWORD, RunningServer
from kit.server_process import ServerProcess, make_environment, serve

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.timed,
    pytest.mark.skipif(os.name == "nt", reason="a hook of Unix"),
]

PAGE = house.ROOT / "docs" / "hook.md"

EVENTS = house.TESTS / "data" / "harness" / "codex-0.169.0.jsonl"

INSTALLED = "python3 -m venv ~/guard/venv && ~/guard/venv/bin/pip install '.[server]'\n"
"""The one line of the page that is not run: adjudge is installed here."""

SOONER = {'uds = "$HOME': 'undo_seconds = 1\nuds = "$HOME'}
"""A second in place of ten until a vote counts."""


def read_walk() -> list[str]:
    """The blocks of shell of the page's walk: prepare, serve, install, and look with the doctor."""
    walk = PAGE.read_text("utf-8").partition("## In ten minutes\n")[2].partition("\n## ")[0]
    return [block.text for block in docs.parse_blocks(PAGE, walk) if block.language == "sh"]


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder with an empty ``~/guard``, and a Codex that does nothing; a short path, as sockets need."""
    home = tmp_path_factory.mktemp("h")
    programs = home / "guard" / "venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "codex").symlink_to("/bin/true")
    (programs / "adjudge").symlink_to(Path(sys.executable).parent / "adjudge")
    return home


def make_shell(home: Path) -> dict[str, str]:
    """The environment of a terminal in this home."""
    others = ("ADJUDGE_", "CODEX_", "CLAUDE_")
    return {name: value for name, value in make_environment().items() if not name.startswith(others)} | {
        "HOME": str(home)
    }


def type_block(block: str, home: Path, *, typed: str = "") -> str:
    """Run a block in the home folder and return what it printed; each of its commands has to succeed."""
    words = ["bash", "-e", "-c", block]
    done = subprocess.run(
        words, cwd=home, env=make_shell(home), input=typed, capture_output=True, text=True, timeout=HANG, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def server(home: Path) -> Iterator[ServerProcess]:
    """The server of the page, with the page's configuration, account and key; the hook is installed beside it."""
    prepare, start, install, _ = read_walk()
    assert INSTALLED in prepare
    prepare = prepare.replace(INSTALLED, "")
    for shown, here in SOONER.items():
        assert shown in prepare
        prepare = prepare.replace(shown, here)
    type_block(prepare, home, typed=f"{PASSWORD}\n")
    program = home / "guard" / "venv" / "bin"
    command = ["bash", "-c", f"PATH={program}:$PATH; cd; exec {start.strip()} --port 0"]
    with serve(home, environment=make_shell(home), command=command) as running:
        type_block(install, home)
        yield running


def ask_hook(home: Path, event: Mapping[str, Any]) -> str | None:
    """Why the installed hook denies an event of Codex; ``None`` where it has nothing against it."""
    settings = json.loads((home / ".codex" / "hooks.json").read_text("utf-8"))
    [group] = settings["hooks"][event["hook_event_name"]]
    [hook] = group["hooks"]
    answer = json.loads(type_block(hook["command"], home, typed=json.dumps(event)))
    return answer["hookSpecificOutput"]["permissionDecisionReason"] if answer else None


def read_call(part: str) -> dict[str, Any]:
    """The recorded event before the call that has a text in its command."""
    events = [json.loads(line) for line in EVENTS.read_text("utf-8").splitlines()]
    return next(
        event
        for event in events
        if event["hook_event_name"] == "PreToolUse" and part in event["tool_input"].get("command", "")
    )


def change_command(event: Mapping[str, Any], command: str) -> dict[str, Any]:
    """A recorded call with another command."""
    return {**event, "tool_input": {"command": command}}


def approve_on_page(server: ServerProcess, word: str) -> None:
    """Sign in as Ana, find the request by its word, write a reason, and press *Approve*."""
    with closing(RunningServer(url=server.url, folder=Path()).sign_in("ana")) as client:
        queue = client.get("/approvals").text
        [ident] = re.findall(rf'<a class="item" href="/approvals/([^"]+)".*?{word}.*?</a>', queue, re.DOTALL)
        answer = send(client, ident, "approve", "I asked for this file.")
        assert answer.status_code == 303, answer.text


def test_the_walk_refuses_by_two_rules_and_runs_a_held_patch_once(home: Path, server: ServerProcess):
    """As the page says: one command passes, one is refused, and a new file waits until Ana approves it on the page."""
    shell, patch = read_call("echo hi"), read_call("apply_patch")

    assert ask_hook(home, change_command(shell, "echo hello")) is None
    for refused in ("curl https://example.com", "rm -rf /srv"):
        assert ask_hook(home, change_command(shell, refused)) == "The call was not made: it is not allowed here."
    held = ask_hook(home, patch)
    word = re.search(r'it waits for a person, who finds it as "(\w+)"', held or "")
    assert word is not None, held
    assert ask_hook(home, patch) == held

    approve_on_page(server, word[1])
    wait_for(lambda: ask_hook(home, patch) is None)
    again = ask_hook(home, patch)

    assert "it waits for a person" in str(again)
    assert word[1] not in str(again)
    assert server.process.poll() is None
