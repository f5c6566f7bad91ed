"""The real Claude Code and Codex with a hook that asks a server, offline: refused, held and approved, and no server."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from adjudge import Ledger
from adjudge.cli import main
from kit.cli import ME
from kit.coding_agents import Workplace, make_command, make_workplace
from kit.held_commands import (
    HELD,
    add_slow_judge,
    check_late,
    check_spoilt,
    decide,
    find_guard,
    list_made,
    write_slow_judge,
)
from kit.server_process import make_key, run_command, serve

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timed,
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="a hook of Unix"),
    pytest.mark.full,
]

CONFIG = """
[ledger]
url = "sqlite:///{folder}/ledger.db"
store_content = "full"

[approvals]
approvers = ["ana", "{user}"]
show_content = true

[gates.shell]
rules = [{{not_contains = "forbidden"}}]
on_rule = "{on_rule}"

[gates.text]
rules = [{{not_contains = "forbidden"}}]

[gates.patches]
rules = [{{regex = "^$"}}]
on_rule = "ask"

[hook]
tools = {{"Bash" = "shell", "apply_patch|Write" = "patches"}}
answers = "text"
results = "text"

[server]
uds = "{folder}/hook.sock"
port = 0

[hook.server]
address = "unix:{folder}/hook.sock"
key = "{folder}/key"
"""


@pytest.fixture(params=["claude", "codex"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Workplace:
    """A project whose harness has the hook, and beside it the folder of the server."""
    made = make_workplace(request.param, tmp_path)
    folder = find_guard(made)
    folder.mkdir(mode=0o700)
    configure(made)
    (folder / "key").touch(mode=0o600)
    (folder / "key").write_text(make_key(folder, "hook"), encoding="utf-8")
    install(made)
    return made


def configure(place: Workplace, *, on_rule: str = "block", change: Callable[[str], str] = str) -> None:
    """Write the configuration that the hook and the server read."""
    folder = find_guard(place)
    text = change(CONFIG).format(folder=folder, on_rule=on_rule, user=ME)
    (folder / "adjudge.toml").write_text(text, encoding="utf-8")


def install(place: Workplace) -> None:
    """Install the hook that asks the server."""
    folder = find_guard(place)
    words = ["--config", str(folder / "adjudge.toml"), "--file", str(place.settings), "--write"]
    done = run_command(folder, "hook", "install", place.harness, *words)
    assert done.returncode == 0, done.stderr
    assert "adjudge.harness.hook_client" in place.settings.read_text("utf-8")


def count(place: Workplace, kind: str) -> int:
    async def read() -> int:
        async with Ledger(f"sqlite:///{find_guard(place)}/ledger.db") as ledger:
            return len([entry async for entry in ledger.query(kind=kind)])

    return asyncio.run(read())


def test_calls_pass_are_refused_and_are_recorded(place: Workplace):
    """By the server's gates; a result and an answer are checked there too."""
    with serve(find_guard(place)):
        results = place.run(
            [make_command(place.harness, "touch ran", "toolu_1")],
            [make_command(place.harness, "touch forbidden", "toolu_2")],
            [make_command(place.harness, "printf 'for''bidden text'", "toolu_3")],
            "a forbidden answer",
        )

    assert list_made(place) == ["ran"]
    assert "The call was not made" in results[1]
    assert "withheld" in results[2]
    assert "bidden text" not in results[2]
    assert (count(place, "call.passed"), count(place, "call.ran"), count(place, "call.unchecked")) == (2, 2, 0)
    assert len(place.requests) == 5  # the answer was sent back once


def make_note(harness: str, call_id: str) -> object:
    """A call that makes a file, by the tool for files that the harness has."""
    from adjudge.harness.scripted_model import ScriptedCall

    if harness == "codex":
        patch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: note\n+x\n*** End Patch\nEOF"
        return make_command("codex", patch, call_id)
    return ScriptedCall(tool="Write", arguments={"file_path": "note", "content": "x\n"}, call_id=call_id)


def test_a_held_call_runs_once_after_it_was_approved(place: Workplace):
    """The same call passes once in the same session, and then people are asked again."""
    with serve(find_guard(place)):
        first = place.run([make_note(place.harness, "toolu_1")])
        assert "waits for a person" in first[0]
        assert list_made(place) == []
        session = decide(place, approved=True)
        place.run([make_note(place.harness, "toolu_2")], resume=session)
        assert list_made(place) == ["note"]
        (place.project / "note").unlink()
        again = place.run([make_note(place.harness, "toolu_3")], resume=session)

    assert "waits for a person" in again[-1]
    assert list_made(place) == []


def test_without_a_server_the_model_is_asked_nothing(place: Workplace):
    """The prompt is refused already, since only the server knows whether it has a gate for it."""
    with pytest.raises(AssertionError):
        place.run([make_command(place.harness, "touch ran", "toolu_1")])

    assert (place.requests, list_made(place)) == ([], [])


def test_after_the_server_was_killed_no_command_ran(place: Workplace):
    """By a command of the session, which the gate let pass; the model reads that the next could not be checked."""
    with serve(find_guard(place)) as running:
        results = place.run(
            [make_command(place.harness, f"touch first; kill -9 {running.process.pid}", "toolu_1")],
            [make_command(place.harness, "touch second", "toolu_2")],
        )

    assert list_made(place) == ["first"]
    assert "could not be checked" in results[1]


@pytest.mark.parametrize("check", HELD, ids=lambda check: check.__name__)
def test_a_command_that_a_person_has_to_see_runs_as_often_as_one_approved_it(
    place: Workplace, check: Callable[[Workplace], None]
):
    """Denied, with other arguments, beside others, and approved by the agent itself."""
    configure(place, on_rule="ask")
    install(place)
    with serve(find_guard(place)):
        check(place)


def test_a_judge_that_is_late_lets_nothing_run(place: Workplace):
    """The server gives up after ``timeout``, and refuses."""
    configure(place, change=add_slow_judge)
    write_slow_judge(place)
    install(place)
    with serve(find_guard(place)):
        check_late(place)


def test_a_ledger_that_is_lost_lets_nothing_run(place: Workplace):
    """In the middle of a session, under the server that has it open."""
    with serve(find_guard(place)):
        check_spoilt(place)


def test_the_doctor_sees_whether_the_hook_asks_the_server(
    place: Workplace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """Installed and served, without the server, and not installed."""
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.setenv("HOME", str(place.home))
    monkeypatch.setenv("CODEX_HOME", str(place.home / ".codex"))
    program = tmp_path / "program"
    trusting = ["--dangerously-bypass-hook-trust"] * (place.harness == "codex")
    program.write_text(f'#!/bin/sh\nexec {shlex.join([place.program])} "$@" {shlex.join(trusting)}\n', "utf-8")
    program.chmod(0o755)

    def ask() -> object:
        words = ["--config", str(find_guard(place) / "adjudge.toml"), "--program", str(program)]
        with pytest.raises(SystemExit) as ended:
            main(["hook", "doctor", place.harness, *words, "--folder", str(place.project)])
        return ended.value.code

    with serve(find_guard(place)):
        served = ask()
    without = ask()
    place.settings.unlink()

    assert (served, without, ask()) == (0, 3, 1)
