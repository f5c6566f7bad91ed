"""A coding agent's hook and the server that it asks, as processes: what the installed command does, and without it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from adjudge import Approvals, Ledger, UsageError
from adjudge.server.listening import listen_unix
from kit.patience import HANG, wait_for
from kit.server_process import ServerProcess, make_key, run_command, serve

pytestmark = [pytest.mark.integration, pytest.mark.skipif(os.name == "nt", reason="a hook of Unix")]

CONFIG = """
[ledger]
url = "sqlite:///{folder}/ledger.db"
store_content = "full"

[gates.shell]
rules = [{{not_contains = "curl"}}]

[gates.deploys]
rules = [{{regex = "^$"}}]
on_rule = "ask"
ask = {{approvers = ["ana"], show_content = true}}

[server]
uds = "{folder}/hook.sock"
largest_body = 200_000

[hook]
tools = {{"Bash" = "shell", "Deploy" = "deploys"}}

[hook.server]
address = "unix:{folder}/hook.sock"
key = "{folder}/key"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One configuration for both, and a key."""
    made = tmp_path_factory.mktemp("g")
    made.chmod(0o700)
    (made / "adjudge.toml").write_text(CONFIG.format(folder=made), encoding="utf-8")
    (made / "key").touch(mode=0o600)
    (made / "key").write_text(make_key(made, "hook"), encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[ServerProcess]:
    with serve(folder) as running:
        yield running


def find_command(folder: Path, harness: str = "claude", event: str = "PreToolUse", *more: str) -> str:
    """The command that ``install`` writes into the settings of a harness."""
    settings = folder / f"{harness}.json"
    arguments = ["--config", str(folder / "adjudge.toml"), "--file", str(settings), "--write", *more]
    done = run_command(folder, "hook", "install", harness, *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(settings.read_text("utf-8"))["hooks"][event][0]["hooks"][0]["command"]


def make_event(command: str = "ls", **changed: Any) -> str:
    call = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": "t1"}
    return json.dumps({"session_id": "s1", "cwd": "/work", "hook_event_name": "PreToolUse", **call, **changed})


def call(command: str, event: str, **more: Any) -> subprocess.CompletedProcess[str]:
    words = ["/bin/sh", "-c", command]
    return subprocess.run(words, input=event, capture_output=True, text=True, check=False, timeout=HANG, **more)


@pytest.mark.parametrize("harness", ["claude", "codex"])
def test_the_installed_command_asks_the_server(folder: Path, server: ServerProcess, harness: str):
    """It starts the small program, and the server's guard answers: nothing that passes, a refusal, a question."""
    command = find_command(folder, harness)
    runs = [call(command, make_event(text)) for text in ("ls", "curl x")]
    held = call(command, make_event(tool_name="Deploy", tool_input={"to": harness}))

    assert "adjudge.harness.hook_client" in command
    assert [(done.returncode, done.stderr) for done in (*runs, held)] == [(0, "")] * 3
    assert runs[0].stdout == "{}"
    for done in (runs[1], held):
        assert json.loads(done.stdout)["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert server.process.poll() is None


def test_a_hook_that_was_installed_with_allow_python_asks_the_server_too(folder: Path, server: ServerProcess):
    """The server runs the code of the configuration; the hook needs no leave for it, and is not hindered by it."""
    done = call(find_command(folder, "codex", "PreToolUse", "--allow-python"), make_event())

    assert (done.returncode, done.stdout, done.stderr) == (0, "{}", "")
    assert server.process.poll() is None


RESULTS = {"long": "x" * 300_000, "of many values": [0] * 90_000, "deep": json.loads("[" * 300 + "]" * 300)}


@pytest.mark.slow_table
@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("harness", ["claude", "codex"])
def test_a_call_is_on_record_whatever_it_returned(folder: Path, server: ServerProcess, harness: str, name: str):
    """Also where the server takes no body so long, or none that nests so deeply."""
    session = f"{harness}-{name}"
    made = make_event(session_id=session, hook_event_name="PostToolUse", tool_response=RESULTS[name])
    answers = [
        call(find_command(folder, harness), make_event(session_id=session)),
        call(find_command(folder, harness, "PostToolUse"), made),
    ]
    kinds = asyncio.run(list_kinds(folder, session))

    assert [(done.returncode, done.stdout) for done in answers] == [(0, "{}")] * 2
    assert kinds == ["call.passed", "call.ran"]
    assert server.process.poll() is None


async def list_kinds(folder: Path, session: str) -> list[str]:
    run = f"key:{(folder / 'key').read_text('utf-8').split('_')[1]}/{session}"
    async with Ledger(f"sqlite:///{folder}/ledger.db") as ledger:
        return [entry.kind async for entry in ledger.query(run=run) if entry.kind.startswith("call.")]


def test_a_rule_that_the_server_has_not_read_refuses_every_call(tmp_path: Path):
    """An edit and ``install`` alone would leave the old rules in force: a call that the new one stops would be made.

    What ran is recorded all the same, and after SIGHUP the new rules decide.
    """
    tmp_path.chmod(0o700)
    file = tmp_path / "adjudge.toml"
    file.write_text(CONFIG.format(folder=tmp_path), encoding="utf-8")
    (tmp_path / "key").touch(mode=0o600)
    (tmp_path / "key").write_text(make_key(tmp_path, "hook"), encoding="utf-8")
    arguments = ["--for", "claude", "--config", str(file)]
    with serve(tmp_path) as running:
        assert call(find_command(tmp_path), make_event("wget x")).stdout == "{}"

        file.write_text(file.read_text("utf-8").replace('"curl"', '"wget"'), encoding="utf-8")
        command = find_command(tmp_path)
        early = call(command, make_event("wget x"))
        by_hand = run_command(tmp_path, "hook", "check", *arguments, input=make_event("ls"))
        made = make_event("wget x", hook_event_name="PostToolUse", tool_response="done")
        ran = call(find_command(tmp_path, "claude", "PostToolUse"), made)
        asked = make_event(hook_event_name="UserPromptSubmit", prompt="Fetch x.")
        call(find_command(tmp_path, "claude", "UserPromptSubmit"), asked)
        refused = asyncio.run(list_refusals(tmp_path, "s1"))
        running.process.send_signal(signal.SIGHUP)
        wait_for(lambda: call(command, make_event("ls")).returncode == 0)
        after = call(command, make_event("wget x"))

    for done in (early, by_hand):
        assert (done.returncode, done.stdout) == (2, "")
        assert "the server has not read the configuration since it changed; send it SIGHUP" in done.stderr
    assert (ran.returncode, ran.stdout) == (0, "{}")
    assert [tool for tool, _ in refused] == ["Bash", "Bash", "(prompt)"]
    assert {"the hook's configuration changed since" in detail for _, detail in refused} == {True}, refused
    assert json.loads(after.stdout)["hookSpecificOutput"]["permissionDecision"] == "deny"


async def list_refusals(folder: Path, session: str) -> list[tuple[str, str]]:
    """The tools of the calls that were refused, and why."""
    run = f"key:{(folder / 'key').read_text('utf-8').split('_')[1]}/{session}"
    async with Ledger(f"sqlite:///{folder}/ledger.db") as ledger:
        found = [entry.payload or {} async for entry in ledger.query(run=run, kind="decision")]
    return [(entry["metadata"]["call"]["tool"], entry["detail"]) for entry in found if not entry["allowed"]]


def test_the_command_for_people_asks_the_server_too(folder: Path, server: ServerProcess):
    """``adjudge hook check`` takes longer to start, and answers the same."""
    arguments = ["--for", "claude", "--config", str(folder / "adjudge.toml")]
    done = run_command(folder, "hook", "check", *arguments, input=make_event("curl x"))

    assert json.loads(done.stdout)["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert server.process.poll() is None


@pytest.mark.parametrize("harness", ["claude", "codex"])
@pytest.mark.parametrize("approved", [True, False])
def test_a_held_call_is_answered_as_a_person_decided(folder: Path, server: ServerProcess, harness: str, approved: bool):
    """By ``adjudge hook check``: after a yes it passes once, and after a no never, whatever id it has."""
    arguments = ["--for", harness, "--config", str(folder / "adjudge.toml")]
    session = f"held-{harness}-{approved}"

    def check(call_id: str) -> Any:
        call = {"tool_name": "Deploy", "tool_input": {"to": session}, "tool_use_id": call_id}
        done = run_command(folder, "hook", "check", *arguments, input=make_event(session_id=session, **call))
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        return answer["hookSpecificOutput"]["permissionDecisionReason"] if answer else "passed"

    held = check("t1")
    asyncio.run(decide(folder, session, approved))
    after = [check("t2"), check("t3")]

    assert "it waits for a person" in held
    if approved:
        assert after[0] == "passed"
        assert "it waits for a person" in after[1]
    else:
        assert ["a person said no" in text for text in after] == [True, True]
        assert asyncio.run(count_requests(folder, session)) == 1
    assert server.process.poll() is None


async def decide(folder: Path, session: str, approved: bool) -> None:
    async with Ledger(f"sqlite:///{folder}/ledger.db") as ledger, Approvals(ledger) as approvals:
        [held] = [one for one in await approvals.list() if session in str(one.content)]
        await approvals.decide(held.id, "ana", approved, "as it should be")


async def count_requests(folder: Path, session: str) -> int:
    async with Ledger(f"sqlite:///{folder}/ledger.db") as ledger, Approvals(ledger) as approvals:
        return len([one for one in await approvals.list(status=None) if session in str(one.content)])


def test_nothing_of_the_environment_counts(folder: Path, server: ServerProcess):
    """A project can set it: neither a proxy, nor a module, nor an option of a library is looked at."""
    names = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "OPENSSL_CONF", "PYTHONPATH", "PYTHONSTARTUP")
    environment = dict(os.environ) | dict.fromkeys(names, "/no/such/place")
    done = call(find_command(folder), make_event(), env=environment)

    assert (done.returncode, done.stdout) == (0, "{}")
    assert server.process.poll() is None


def test_only_its_account_can_connect_to_the_socket(folder: Path, server: ServerProcess):
    """Until uds_mode says that its group can."""
    status = (folder / "hook.sock").stat()

    assert stat.S_ISSOCK(status.st_mode)
    assert stat.S_IMODE(status.st_mode) == 0o600
    assert server.process.poll() is None


@pytest.mark.slow_table
@pytest.mark.parametrize(
    "event", ["no event", "[]", make_event(cwd=None), make_event(hook_event_name="Nothing"), make_event(session_id="")]
)
def test_what_the_server_does_not_take_is_exit_2_with_a_word(folder: Path, server: ServerProcess, event: str):
    """Neither harness makes the call then."""
    done = call(find_command(folder), event)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.strip()
    assert server.process.poll() is None


def test_a_session_in_the_folder_of_the_hook_is_refused(folder: Path, server: ServerProcess):
    """There the agent writes."""
    done = call(find_command(folder), make_event(cwd=str(folder)))

    assert (done.returncode, done.stdout) == (2, "")
    assert server.process.poll() is None


def test_a_changed_configuration_asks_nobody(folder: Path, server: ServerProcess):
    """It could name another server."""
    command = find_command(folder)
    file = folder / "adjudge.toml"
    text = file.read_text("utf-8")
    try:
        file.write_text(text + "\n# changed\n", encoding="utf-8")
        done = call(command, make_event())
    finally:
        file.write_text(text, encoding="utf-8")

    assert (done.returncode, done.stdout) == (2, "")
    assert "changed" in done.stderr
    assert server.process.poll() is None


@pytest.mark.slow
def test_clients_that_ask_at_once_make_one_request(folder: Path, server: ServerProcess):
    """Eight processes with one held call."""
    command = find_command(folder)
    event = make_event(session_id="s-race", tool_name="Deploy", tool_input={"to": "race"})
    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(lambda _: call(command, event), range(8)))

    assert {done.returncode for done in runs} == {0}
    reasons = {json.loads(done.stdout)["hookSpecificOutput"]["permissionDecisionReason"] for done in runs}
    assert len(reasons) == 1
    assert server.process.poll() is None


@pytest.mark.slow
def test_a_killed_server_refuses_and_a_new_one_answers(folder: Path, tmp_path_factory: pytest.TempPathFactory):
    """The socket of the one that was killed is left behind, and is replaced."""
    own = tmp_path_factory.mktemp("k")
    own.chmod(0o700)
    (own / "adjudge.toml").write_text(CONFIG.format(folder=own), encoding="utf-8")
    (own / "key").touch(mode=0o600)
    (own / "key").write_text(make_key(own, "hook"), encoding="utf-8")
    command = find_command(own)
    before = call(command, make_event())
    with serve(own) as running:
        assert call(command, make_event()).stdout == "{}"
        running.kill()
        after = call(command, make_event())
    with serve(own):
        again = call(command, make_event())
    wait_for(lambda: not (own / "hook.sock").exists())

    for done in (before, after):
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.strip()
    assert again.stdout == "{}"


PROBE = """
import sys
before = set(sys.modules)
import adjudge.harness.hook_client
print(*sorted(set(sys.modules) - before))
"""


def test_the_client_imports_the_standard_library_alone():
    """And of that nothing that takes long; of adjudge the two modules, and what exports names."""
    words = [sys.executable, "-I", "-c", PROBE]
    output = set(subprocess.run(words, capture_output=True, text=True, check=True).stdout.split())
    packages = {name.partition(".")[0] for name in output}

    assert packages - {"adjudge"} <= set(sys.stdlib_module_names)
    assert not packages & {
        "asyncio",
        "ssl",
        "http",
        "urllib",
        "email",
        "logging",
        "subprocess",
        "dataclasses",
        "inspect",
    }
    own = {name for name in output if name.startswith("adjudge")}
    assert own == {"adjudge", "adjudge.lazy"} | {
        f"adjudge.harness{name}" for name in ("", ".guard_server", ".hook_client")
    }


# ---------------------------------------------------------------- the socket


def test_a_socket_is_made_only_where_no_other_account_can_put_one(tmp_path: Path):
    """Nor in the place of a file, of a link, or of a server that runs."""
    tmp_path.chmod(0o700)
    with listen_unix(str(tmp_path / "hook.sock"), "0660"):
        assert stat.S_IMODE((tmp_path / "hook.sock").stat().st_mode) == 0o660
        (tmp_path / "file").write_text("", encoding="utf-8")
        (tmp_path / "link").symlink_to(tmp_path / "hook.sock")
        for name in ("hook.sock", "file", "link", "absent/hook.sock", "x" * 200):
            with pytest.raises(UsageError) as caught:
                listen_unix(str(tmp_path / name), "0600")
            assert caught.value.argument == "uds"
    tmp_path.chmod(0o777)
    with pytest.raises(UsageError):
        listen_unix(str(tmp_path / "hook.sock"), "0600")
    tmp_path.chmod(0o700)
    with listen_unix(str(tmp_path / "hook.sock"), "0600"):
        assert (tmp_path / "file").read_text("utf-8") == ""
