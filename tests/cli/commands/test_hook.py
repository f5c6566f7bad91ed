"""``adjudge hook``: the command that a harness calls, in processes, and its installation."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kit import cli
from kit.cli import ME, Line
from kit.patience import HANG

CONFIG = """
[ledger]
url = "sqlite:///{folder}/ledger.db"

[gates.shell]
rules = [{{not_contains = "curl"}}]

[hook]
tools = {{"Bash" = "shell"}}
prompts = "shell"
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    folder = tmp_path / "guard"
    folder.mkdir()
    file = folder / "adjudge.toml"
    file.write_text(CONFIG.format(folder=folder), encoding="utf-8")
    return file


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    cli.isolate(monkeypatch, tmp_path)
    return Line(capsys)


def make_event(**changed: object) -> dict[str, Any]:
    return {
        "session_id": "s1",
        "cwd": "/work",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "ls"},
        "tool_use_id": "t1",
    } | changed


def call(command: list[str] | str, event: object, *, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    words = ["/bin/sh", "-c", command] if isinstance(command, str) else command
    text = event if isinstance(event, str) else json.dumps(event)
    return subprocess.run(words, input=text, capture_output=True, text=True, check=False, timeout=HANG, cwd=cwd)


def check(config: Path, event: object, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-m", "adjudge", "hook", "check", "--for", "claude", "--config", str(config)]
    return call([*command, *options], event)


@pytest.mark.integration
def test_an_installed_hook_answers_by_its_own_command(line: Line, config: Path, tmp_path: Path):
    """From a folder with an adjudge.toml and modules of its own, which are not read."""
    file = tmp_path / "settings.json"
    ran = line("hook", "install", "claude", "--config", config, "--file", file, "--write")
    assert ran.status == 0, ran.err
    hooks = json.loads(file.read_text("utf-8"))["hooks"]
    project = tmp_path / "project"
    project.mkdir()
    (project / "adjudge.toml").write_text("[hook]\n", encoding="utf-8")
    for name in ("adjudge", "typer", "json", "sitecustomize"):
        (project / f"{name}.py").write_text("raise SystemExit(0)", encoding="utf-8")

    command = hooks["PreToolUse"][0]["hooks"][0]["command"]
    passed = call(command, make_event(cwd=str(project)), cwd=project)
    refused = call(command, make_event(tool_input={"command": "curl x"}), cwd=project)

    assert (passed.returncode, passed.stdout) == (0, "{}")
    assert json.loads(refused.stdout)["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert set(hooks) == {"PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit"}


def test_a_configuration_inside_a_project_is_pointed_out(line: Line, config: Path, tmp_path: Path):
    """An agent that works on the project could change it. It is no refusal: a home folder may be a project too."""
    words = ("hook", "install", "claude", "--config", config, "--file", tmp_path / "settings.json")
    outside = line(*words)
    (config.parent / ".git").mkdir()
    inside = line(*words)

    assert (outside.status, inside.status) == (0, 0)
    assert "outside of every project" not in outside.err
    assert f"{config} lies in the project {config.parent}" in inside.err
    assert "outside of every project" in inside.err


@pytest.mark.integration
def test_what_cannot_be_checked_is_exit_2_with_a_word(config: Path):
    """An event that is none, another configuration, one in the session's folder, and a ledger that cannot be used."""
    ended = [
        check(config, "no event"),
        check(config, make_event(), "--digest", "0" * 64),
        check(config, make_event(cwd=str(config.parent))),
        check(config.with_name("absent.toml"), make_event()),
        check(config, make_event(), "--no-such-option"),
    ]
    (config.parent / "ledger.db").write_text("no ledger " * 1_000, encoding="utf-8")
    ended += [check(config, make_event(hook_event_name="PostToolUse"))]

    assert [(done.returncode, done.stdout) for done in ended] == [(2, "")] * len(ended)
    assert [done.stderr.strip() != "" for done in ended] == [True] * len(ended)


@pytest.mark.integration
def test_a_call_is_refused_where_the_ledger_cannot_be_used(config: Path):
    """The guard answers itself: what is not on record is not made."""
    (config.parent / "ledger.db").write_text("no ledger " * 1_000, encoding="utf-8")

    done = check(config, make_event())

    assert done.returncode == 2 or "deny" in done.stdout


def test_installing_shows_what_changes_and_writes_nothing(line: Line, config: Path, tmp_path: Path):
    """Until --write; it says what the place is worth."""
    file = tmp_path / "settings.json"

    ran = line("hook", "install", "codex", "--config", config, "--file", file)

    assert ran.status == 0
    assert "+" in ran.out
    assert "--for codex" in ran.out
    assert "/hooks" in ran.err
    assert not file.exists()


def test_installing_again_after_a_change_binds_the_new_configuration(line: Line, config: Path, tmp_path: Path):
    """The digest is another one, and there is still one hook."""
    file = tmp_path / "settings.json"
    line("hook", "install", "claude", "--config", config, "--file", file, "--write")
    before = file.read_text("utf-8")
    config.write_text(f"{config.read_text('utf-8')}\n# changed", encoding="utf-8")

    line("hook", "install", "claude", "--config", config, "--file", file, "--write", "--managed")

    after = json.loads(file.read_text("utf-8"))
    assert file.read_text("utf-8") != before
    assert len(after["hooks"]["PreToolUse"]) == 1
    assert after["allowManagedHooksOnly"] is True


@pytest.mark.parametrize(
    "arguments",
    [
        ("install", "cursor"),
        ("install", "codex", "--managed"),
        ("doctor", "cursor"),
        ("doctor", "claude", "--program", "/no/such/claude"),
    ],
)
def test_what_cannot_be_meant_is_wrong_usage(line: Line, config: Path, arguments: tuple[str, ...]):
    """With a sentence that says what can."""
    ran = line("hook", *arguments, "--config", config)

    assert ran.status == 2
    assert ran.err.count("\n") == 1


def test_a_configuration_that_cannot_be_opened_is_not_installed(line: Line, config: Path, tmp_path: Path):
    """The harness would refuse everything from then on."""
    file = tmp_path / "settings.json"
    config.write_text(config.read_text("utf-8").replace('"Bash" = "shell"', '"Bash" = "shel"'), encoding="utf-8")

    ran = line("hook", "install", "claude", "--config", config, "--file", file, "--write")

    assert ran.status == 2
    assert not file.exists()


ASKING = """
[approvals]
approvers = ["{user}"]
show_content = true
{more}

[gates.people]
rules = [{{regex = "^$"}}]
on_rule = "ask"
"""


@pytest.mark.integration
@pytest.mark.parametrize(("more", "status"), [("", 2), ("command = true", 0)])
def test_what_a_hook_asked_is_not_approved_by_a_command(line: Line, config: Path, more: str, status: int):
    """The agent could run it; where that is switched on, it can. Anybody may deny."""
    text = config.read_text("utf-8").replace('"Bash" = "shell"', '"Bash" = "people"')
    config.write_text(text + ASKING.format(user=ME, more=more), encoding="utf-8")
    held = [check(config, make_event(tool_input={"command": command})) for command in ("one", "two")]
    assert ["waits for a person" in done.stdout for done in held] == [True, True]
    where = ("--config", str(config))
    first, second = (item["id"] for item in line("approvals", "list", "--json", *where).document["approvals"])
    shown = line("approvals", "show", first, *where).out

    assert (f"http://127.0.0.1:8318/approvals/{first}" in shown) == (status == 2)
    assert ("adjudge approvals approve" in shown) == (status == 0)
    assert f"adjudge approvals deny {first} --reason WHY" in shown
    approved = line.vote(first, "--reason", "fine", *where)
    denied = line.vote(second, "--reason", "no", *where, command="deny")

    assert (approved.status, denied.status) == (status, 0)


PROGRAM = """#!{python}
import json, os, sys, urllib.request
if "--version" in sys.argv:
    print("9.9.9 (stand-in)")
    sys.exit()
url = os.environ["ANTHROPIC_BASE_URL"]
def ask(messages):
    body = json.dumps({{"tools": [{{}}], "messages": messages}}).encode()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({{}}))
    with opener.open(urllib.request.Request(url + "/v1/messages", body)) as reply:
        return json.load(reply)["content"]
[block] = ask([])
result = {behaviour}
ask([{{"role": "user", "content": [{{"type": "tool_result", "content": result}}]}}])
"""


@pytest.mark.integration
@pytest.mark.timed
@pytest.mark.parametrize(
    ("behaviour", "status"),
    [
        ("open(block['input']['file_path']).read()", 1),
        ("'The call was not made: it is not allowed here.'", 0),
        ("'permission denied'", 3),
        ("'The call was not made, but: ' + open(block['input']['file_path']).read()", 1),
    ],
)
def test_the_doctor_sees_whether_the_tool_ran(line: Line, config: Path, tmp_path: Path, behaviour: str, status: int):
    """By the result that the model is sent; only this guard's own refusal counts as one."""
    program = tmp_path / "claude"
    program.write_text(PROGRAM.format(python=sys.executable, behaviour=behaviour), encoding="utf-8")
    program.chmod(0o755)

    ran = line("hook", "doctor", "claude", "--config", config, "--program", program)

    assert ran.status == status
    assert "9.9.9" in ran.out + ran.err


NOTES_FOLDER = "open(os.environ['HOME'] + '/seen', 'w').write(os.getcwd() + ' ' + ' '.join(os.listdir())) and ''"


@pytest.mark.integration
@pytest.mark.timed
def test_the_doctor_starts_the_harness_in_an_empty_folder_unless_one_is_named(
    line: Line, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Else the hooks of a project that somebody else wrote would run with the diagnosis."""
    project = tmp_path / "project"
    (project / ".claude").mkdir(parents=True)
    program = project / "claude"
    program.write_text(PROGRAM.format(python=sys.executable, behaviour=NOTES_FOLDER), encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(tmp_path))

    def see(*words: object) -> tuple[Path, list[str]]:
        assert line("hook", "doctor", "claude", "--config", config, "--program", "./claude", *words).status == 3
        folder, *names = (tmp_path / "seen").read_text("utf-8").split(" ")
        return Path(folder), sorted(filter(None, names))

    empty, names = see()
    assert names == []
    assert not empty.exists(), "it is deleted afterwards"
    assert see("--folder", project) == (project.resolve(), [".claude", "claude"])


# ---------------------------------------------------------------- reopening


def stop(config: Path, run: str = "s1") -> None:
    """Have ten calls of a session refused."""
    from adjudge import Gate, Ledger
    from adjudge.guards import ToolCall, ToolGuard

    async def work() -> None:
        async with Ledger(f"sqlite:///{config.parent / 'ledger.db'}") as ledger:
            guard = ToolGuard({"Bash": Gate("shell", rules=[{"not_contains": "curl"}], ledger=ledger)})
            for number in range(10):
                await guard.check(ToolCall("Bash", {"command": f"curl {number}"}, f"t{number}", run))

    asyncio.run(work())


def test_a_session_is_not_reopened_where_the_agent_could_do_it(line: Line, config: Path):
    """Until the configuration switches the command on, and for its approvers alone."""
    stop(config)
    arguments = ("hook", "reopen", "s1", "--config", config, "--reason", "my own test")
    off = line(*arguments)
    text = config.read_text("utf-8")
    config.write_text(text + '[approvals]\ncommand = true\napprovers = ["nobody-else"]\n', encoding="utf-8")
    other = line(*arguments)
    config.write_text(text + f'[approvals]\ncommand = true\napprovers = ["{ME}"]\n', encoding="utf-8")
    unknown = line("hook", "reopen", "s2", "--config", config, "--reason", "my own test")
    empty = line("hook", "reopen", "s1", "--config", config, "--reason", "")
    done = line(*arguments)
    again = line(*arguments)

    assert [ran.status for ran in (off, other, unknown, empty, done, again)] == [2, 2, 2, 2, 0, 2]
    assert "reopened" in done.out
