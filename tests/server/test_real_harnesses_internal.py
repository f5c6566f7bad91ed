"""The real Claude Code and Codex with a hook that asks a server, offline: refused, held and approved, and no server."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from adjudge import Approvals, Ledger
from kit.coding_agents import Workplace, make_command, make_workplace
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
approvers = ["ana"]
show_content = true

[gates.shell]
rules = [{{not_contains = "forbidden"}}]

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
    folder = find_folder(made)
    folder.mkdir(mode=0o700)
    (folder / "adjudge.toml").write_text(CONFIG.format(folder=folder), encoding="utf-8")
    (folder / "key").touch(mode=0o600)
    (folder / "key").write_text(make_key(folder, "hook"), encoding="utf-8")
    words = ["--config", str(folder / "adjudge.toml"), "--file", str(made.settings), "--write"]
    done = run_command(folder, "hook", "install", made.harness, *words)
    assert done.returncode == 0, done.stderr
    assert "adjudge.harness.hook_client" in made.settings.read_text("utf-8")
    return made


def find_folder(place: Workplace) -> Path:
    return place.home.parent / "guard"


def list_made(place: Workplace) -> list[str]:
    """The files that commands made in the project."""
    return sorted(path.name for path in place.project.iterdir() if not path.name.startswith("."))


def count(place: Workplace, kind: str) -> int:
    async def read() -> int:
        async with Ledger(f"sqlite:///{find_folder(place)}/ledger.db") as ledger:
            return len([entry async for entry in ledger.query(kind=kind)])

    return asyncio.run(read())


def test_calls_pass_are_refused_and_are_recorded(place: Workplace):
    """By the server's gates; a result and an answer are checked there too."""
    with serve(find_folder(place)):
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

    async def approve() -> str:
        async with Ledger(f"sqlite:///{find_folder(place)}/ledger.db") as ledger:
            approvals = Approvals(ledger)
            [waiting] = await approvals.list()
            await approvals.decide(waiting.id, "ana", True, "it is fine")
            [entry] = [entry async for entry in ledger.query(kind="approval.requested")]
            run = entry.payload["metadata"]["call"]["run_id"]
            assert run.startswith("key:")
            return run.partition("/")[2]

    with serve(find_folder(place)):
        first = place.run([make_note(place.harness, "toolu_1")])
        assert "waits for a person" in first[0]
        assert list_made(place) == []
        session = asyncio.run(approve())
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
    with serve(find_folder(place)) as running:
        results = place.run(
            [make_command(place.harness, f"touch first; kill -9 {running.process.pid}", "toolu_1")],
            [make_command(place.harness, "touch second", "toolu_2")],
        )

    assert list_made(place) == ["first"]
    assert "could not be checked" in results[1]
