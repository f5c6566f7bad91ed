"""The real Claude Code and Codex with our hook, offline: a call that must not be made is not made.

What only a harness can close is an expected failure, so that we learn when it does.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from adjudge import Ledger
from adjudge.cli import main
from adjudge.harness import scripted_model
from adjudge.harness.answers import answer_call, warn_user
from adjudge.harness.events import StartEvent, read_event
from adjudge.harness.hook_guard import OBSERVES
from adjudge.harness.installing import MARK, Installation, make_hooks
from adjudge.harness.scripted_model import ScriptedCall, ScriptedStep, Step
from kit.cli import ME
from kit.coding_agents import Workplace, make_command, make_rewriting_hooks, make_workplace, type_into
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
from kit.server_process import run_command

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timed,
    pytest.mark.slow,
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

[hook]
tools = {{"Bash" = "shell", "Write|Edit|apply_patch" = "shell"}}
mcp = [{{server = "bank", tool = "pay*", gate = "shell"}}]
unchecked = ["Read"]
prompts = "text"
answers = "text"
results = "text"
"""


@pytest.fixture(params=["claude", "codex"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Workplace:
    return make_workplace(request.param, tmp_path)


@pytest.fixture
def claude(tmp_path: Path) -> Workplace:
    return make_workplace("claude", tmp_path)


@pytest.fixture
def codex(tmp_path: Path) -> Workplace:
    return make_workplace("codex", tmp_path)


def install(place: Workplace, *, on_rule: str = "block", managed: bool = False) -> Path:
    """Write a configuration beside the project, and install the hook as a user or an administrator does."""
    folder = find_guard(place)
    folder.mkdir(exist_ok=True)
    config = folder / "adjudge.toml"
    config.write_text(CONFIG.format(folder=folder, on_rule=on_rule, user=ME), encoding="utf-8")
    file = folder / "managed.json" if managed else place.settings
    words = ["--config", str(config), "--file", str(file), "--write", *(["--managed"] if managed else [])]
    with pytest.raises(SystemExit) as ended:
        main(["hook", "install", place.harness, *words])
    assert ended.value.code == 0
    if managed:
        place.manage(file)
    return config


def read_ledger(place: Workplace) -> list[Any]:
    async def read() -> list[Any]:
        async with Ledger(f"sqlite:///{place.home.parent}/guard/ledger.db") as ledger:
            return [entry async for entry in ledger.query()]

    return asyncio.run(read())


def count(place: Workplace, kind: str) -> int:
    return sum(entry.kind == kind for entry in read_ledger(place))


def make_hook(place: Workplace, script: str, *, events: tuple[str, ...] = ("PreToolUse",)) -> dict[str, Any]:
    """Settings with our wrapper, around a stand-in for the interpreter."""
    python = place.home.parent / "python"
    python.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    python.chmod(0o755)
    installation = Installation(
        harness=place.harness,
        python=str(python),
        config=Path("/guard/adjudge.toml"),
        digest="0" * 64,
        seconds=20,
        events=events,
    )
    return {"hooks": make_hooks(installation)}


ENDINGS = {
    "exit 1": "exit 1",
    "exit 1 with an answer": f"printf '{{}}{MARK}'; exit 1",
    "exit 2 in silence": "exit 2",
    "silence": "exit 0",
    "a cut answer": """printf '{"hookSpecificOutput": {"permissionDecision": "deny"}'""",
    "an answer without its mark": "printf '{}'",
    "an unknown word": """printf '{"hookSpecificOutput": {"permissionDecision": "denied"}}'""",
    "a text": "echo hello",
    "killed": "kill -KILL $$",
    "late": f"exec {shlex.quote(sys.executable)} -I -c 'import signal, time; signal.alarm(1); time.sleep(100)'",
    "no interpreter": "exec /no/such/python",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_after_any_ending_of_the_hook_the_command_did_not_run(place: Workplace, ending: str):
    """The model reads our word, so it was the hook that stopped the command."""
    place.write_settings(make_hook(place, ENDINGS[ending]))

    results = place.run([make_command(place.harness, "touch ran")])

    assert not (place.project / "ran").exists()
    assert "could not be checked" in results[0]
    assert BY_THE_HARNESS not in results[0]  # Claude Code quotes the command, in which our word is too


SILENCED = {"its shell is killed": "kill -KILL $PPID", "the harness's timeout is over": "exec sleep 30"}
"""Scripts that leave the wrapper no time to answer, with a ``timeout`` of one second."""

BY_THE_HARNESS = "blocking because onFailure"
"""The words of Claude Code where it was not the hook that refused."""


def silence(place: Workplace, script: str) -> None:
    """Have the hook end before its wrapper can answer."""
    settings = make_hook(place, script)
    settings["hooks"]["PreToolUse"][0]["hooks"][0]["timeout"] = 1
    place.write_settings(settings)


@pytest.mark.parametrize("script", SILENCED.values(), ids=SILENCED)
def test_where_the_wrapper_cannot_answer_claude_code_blocks(claude: Workplace, script: str):
    """Since the settings say ``onFailure``."""
    silence(claude, script)

    results = claude.run([make_command("claude", "touch ran")])

    assert not (claude.project / "ran").exists()
    assert BY_THE_HARNESS in results[0]


def test_a_session_that_is_only_observed_begins_with_a_word_and_goes_on(place: Workplace):
    """The harness asks at the start of a session, and takes the answer."""
    heard = place.home.parent / "heard"
    answer = json.dumps(warn_user(OBSERVES))
    place.write_settings(make_hook(place, f"cat >> {heard}; printf '%s{MARK}' '{answer}'", events=("SessionStart",)))

    place.run([make_command(place.harness, "touch ran")])

    assert isinstance(read_event(place.harness, heard.read_bytes()), StartEvent)
    assert (place.project / "ran").exists()


def test_after_a_good_ending_the_command_ran(place: Workplace):
    """Else the test above would show nothing."""
    place.write_settings(make_hook(place, f"printf '{{}}{MARK}'"))

    place.run([make_command(place.harness, "touch ran")])

    assert (place.project / "ran").exists()


def test_without_the_wrapper_codex_runs_the_command(codex: Workplace):
    """Exit 1, and exit 2 in silence. If this fails, Codex has closed it, and the page has to say so."""
    for ending in ("exit 1", "exit 2"):
        codex.write_settings({"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": ending}]}]}})
        codex.run([make_command("codex", f"touch {shlex.quote(ending)}")])

        assert (codex.project / ending).exists()


def test_calls_pass_are_refused_and_are_recorded(place: Workplace):
    """Those that may be made, and failed, ran as they were checked; the refused one did not."""
    install(place)
    harness = place.harness

    results = place.run(
        [make_command(harness, "touch ran", "toolu_1")],
        [make_command(harness, "touch forbidden", "toolu_2")],
        [make_command(harness, "exit 3", "toolu_3")],
        [make_command(harness, "touch again", "toolu_4")],
    )

    assert sorted(path.name for path in place.project.iterdir() if path.name != ".git") == ["again", "ran"]
    assert "The call was not made" in results[1]
    assert (count(place, "call.passed"), count(place, "call.ran"), count(place, "call.unchecked")) == (3, 3, 0)


def test_parallel_calls_are_each_checked(place: Workplace):
    """The refused one of three did not run, and the others did."""
    install(place)
    commands = ["touch one", "touch forbidden", "touch two"]

    place.run([make_command(place.harness, command, f"toolu_{command[6:]}") for command in commands])

    assert sorted(path.name for path in place.project.iterdir() if path.name != ".git") == ["one", "two"]
    assert count(place, "call.unchecked") == 0


def test_a_held_call_runs_once_after_it_was_approved(place: Workplace):
    """Refused while it waits; the same call passes once in the same session, and then people are asked again."""
    install(place, on_rule="ask")
    call = make_command(place.harness, "echo x >> forbidden", "toolu_1")

    first = place.run([call])
    assert "waits for a person" in first[0]
    assert not (place.project / "forbidden").exists()

    session = decide(place, approved=True)
    again = [make_command(place.harness, "echo x >> forbidden", f"toolu_{number}") for number in (2, 3)]
    place.run([again[0]], [again[1]], resume=session)

    assert (place.project / "forbidden").read_text("utf-8") == "x\n"


@pytest.mark.parametrize("check", HELD, ids=lambda check: check.__name__)
def test_a_command_that_a_person_has_to_see_runs_as_often_as_one_approved_it(
    place: Workplace, check: Callable[[Workplace], None]
):
    """Denied, with other arguments, beside others, and approved by the agent itself."""
    install(place, on_rule="ask")
    check(place)


def test_a_judge_that_is_late_lets_nothing_run(place: Workplace):
    """The hook gives up after ``timeout``, and refuses."""
    folder = find_guard(place)
    folder.mkdir()
    write_slow_judge(place)
    config = add_slow_judge(CONFIG).format(folder=folder, on_rule="block", user=ME)
    (folder / "adjudge.toml").write_text(config, encoding="utf-8")
    words = ["--config", str(folder / "adjudge.toml"), "--file", str(place.settings), "--write", "--allow-python"]
    # In a process of its own, since a module that a configuration names is imported.
    done = run_command(folder, "hook", "install", place.harness, *words)
    assert done.returncode == 0, done.stderr
    check_late(place)


def test_a_ledger_that_is_lost_lets_nothing_run(place: Workplace):
    """In the middle of a session."""
    install(place)
    check_spoilt(place)


STAND_IN = """#!/bin/sh
echo "$0" >> {ran}
exec {program} "$@"
"""


def test_programs_and_modules_of_a_project_do_not_take_the_place_of_the_hooks(place: Workplace):
    """Its ``env`` puts stand-ins on the path, and a module that Python imports when it starts."""
    install(place)
    folder, ran = place.home.parent / "theirs", place.home.parent / "ran"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(f"open({str(ran)!r}, 'a').write('a module\\n')\n", encoding="utf-8")
    for name in ("sh", "python", "python3", "adjudge", "printf", "echo"):
        stand_in = folder / name
        program = shutil.which(name) or "/bin/true"
        stand_in.write_text(STAND_IN.format(ran=ran, program=program), encoding="utf-8")
        stand_in.chmod(0o755)
    variables = {"PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(folder)}
    if place.harness == "claude":
        place.write_project(".claude/settings.json", json.dumps({"env": variables}))
    else:
        lines = [f"{name} = {json.dumps(value)}" for name, value in variables.items()]
        place.write_project(".codex/config.toml", "\n".join(["[shell_environment_policy.set]", *lines]))

    refused = place.run([make_command(place.harness, "touch forbidden")])
    by_the_hook = ran.read_text("utf-8") if ran.exists() else ""
    place.run([make_command(place.harness, "sh -c 'touch ran'")])

    assert "The call was not made" in refused[0]
    assert by_the_hook == ""
    assert list_made(place) == ["ran"]
    assert str(folder / "sh") in ran.read_text("utf-8")  # they are where a command of the agent finds them


BANK = """
import sys
from pathlib import Path
from mcp.server.mcpserver import MCPServer

server = MCPServer("bank")

@server.tool()
def pay(memo: str) -> str:
    with Path(sys.argv[1]).open("a") as file:
        file.write(f"{memo}\\n")
    return "paid"

server.run("stdio")
"""


def find_pay(body: dict[str, Any]) -> tuple[str, str | None] | None:
    """The bank's tool among those that a request offers, with its namespace."""
    return next((offered for offered in list_offered(body["tools"]) if offered[0].endswith("pay")), None)


def wait_for_bank(call_id: str) -> ScriptedStep:
    """A step that waits if the bank's server has not started yet, for which Codex does not wait."""
    return lambda body: [make_command("codex", "true" if find_pay(body) else "sleep 3", call_id)]


def call_pay(harness: str, memo: str, call_id: str) -> ScriptedStep:
    """A call of the bank's tool, by the name under which the harness offers it."""

    def make_step(body: dict[str, Any]) -> Step:
        name, space = find_pay(body) or ("mcp__bank__pay", None)
        return [ScriptedCall(tool=name, arguments={"memo": memo}, call_id=call_id, namespace=space)]

    return make_step


@pytest.mark.parametrize("on_rule", ["block", "ask"])
def test_a_tool_of_an_mcp_server_is_checked(place: Workplace, on_rule: str):
    """It pays as often as the gate allowed it, and nothing was paid without a check."""
    pytest.importorskip("mcp")
    install(place, on_rule=on_rule)
    script, paid = place.home.parent / "bank.py", place.home.parent / "paid"
    script.write_text(BANK, encoding="utf-8")
    place.add_mcp_server("bank", sys.executable, str(script), str(paid))

    waits = [wait_for_bank(f"wait_{number}") for number in range(10)] if place.harness == "codex" else []
    results = place.run(
        *waits,
        call_pay(place.harness, "rent", "toolu_1"),
        call_pay(place.harness, "forbidden", "toolu_2"),
        call_pay(place.harness, "food", "toolu_3"),
    )

    assert paid.read_text("utf-8").split() == ["rent", "food"]
    made = len(waits) + 2
    assert "The call was not made" in results[-2]
    assert (count(place, "call.passed"), count(place, "call.ran"), count(place, "call.unchecked")) == (made, made, 0)
    assert count(place, "approval.requested") == (on_rule == "ask")


def test_a_prompt_is_refused_before_the_model_sees_it(place: Workplace):
    """By the gate of prompts, which refuses what says `go` here."""
    install(place)
    config = place.home.parent / "guard" / "adjudge.toml"
    text = config.read_text("utf-8").replace(
        '[gates.text]\nrules = [{not_contains = "forbidden"}]', '[gates.text]\nrules = [{not_contains = "go"}]'
    )
    config.write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["hook", "install", place.harness, "--config", str(config), "--file", str(place.settings), "--write"])

    with pytest.raises(AssertionError):  # the model was asked nothing
        place.run([make_command(place.harness, "touch ran")])

    refused = [entry.payload for entry in read_ledger(place) if entry.kind == "decision"]
    assert [(payload["allowed"], payload["metadata"]["call"]["part"]) for payload in refused] == [(False, "prompt")]
    assert not (place.project / "ran").exists()


def test_an_answer_is_sent_back_once(place: Workplace):
    """The second is given, so that the agent ends."""
    install(place)

    place.run("a forbidden answer", "another forbidden answer", "not asked for")

    assert len(place.requests) == 2


def test_a_result_is_withheld_from_the_agent(place: Workplace):
    """The model reads our sentence, and nothing of the command's output."""
    install(place)

    results = place.run([make_command(place.harness, "printf 'for''bidden text'")])

    assert "withheld" in results[0]
    assert "bidden text" not in results[0]
    assert count(place, "call.ran") == 1


def test_the_output_of_a_command_that_failed_cannot_be_withheld_and_ends_the_session(claude: Workplace):
    """Claude Code has another event for it, whose answer replaces nothing: it is read, and nothing runs after it."""
    install(claude)

    results = claude.run(
        [make_command("claude", "printf 'for''bidden text'; exit 3", "toolu_1")],
        [make_command("claude", "touch ran", "toolu_2")],
    )

    assert "forbidden text" in results[0]
    assert "this run was stopped" in results[1]
    assert not (claude.project / "ran").exists()


def test_the_guard_protects_itself(place: Workplace):
    """Its configuration is not read, and the harness's settings are not written."""
    config = install(place)
    paths = {"file_path": str(config)}
    settings = {"file_path": str(place.settings), "content": "{}"}
    calls = {
        "claude": [
            [ScriptedCall(tool="Read", arguments=paths, call_id="toolu_1")],
            [ScriptedCall(tool="Write", arguments=settings, call_id="toolu_2")],
            [make_command("claude", f"cp /dev/null {place.settings}", "toolu_3")],
        ],
        "codex": [
            [make_command("codex", f"cat {config}", "toolu_1")],
            [make_command("codex", write_patch("AGENTS.md"), "toolu_2")],
            [make_command("codex", f"cp /dev/null {place.settings}", "toolu_3")],
        ],
    }
    before = place.settings.read_text("utf-8")

    results = place.run(*calls[place.harness])

    assert ["The call was not made" in result for result in results] == [True, True, True]
    assert place.settings.read_text("utf-8") == before
    assert not (place.project / "AGENTS.md").exists()


def write_patch(name: str, line: str = "x") -> str:
    return f"apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: {name}\n+{line}\n*** End Patch\nEOF"


def test_a_patch_in_a_command_of_codex_is_checked_as_a_patch(codex: Workplace):
    """Codex says `Bash` and applies it itself."""
    install(codex)

    codex.run(
        [make_command("codex", write_patch("made.txt"), "toolu_1")],
        [make_command("codex", f"true; {write_patch('second.txt')}", "toolu_2")],
        [make_command("codex", write_patch(".codex/config.toml"), "toolu_3")],
    )

    assert (codex.project / "made.txt").exists()
    assert not (codex.project / "second.txt").exists()
    assert not (codex.project / ".codex").exists()


def test_no_shell_is_opened_in_codex(codex: Workplace):
    """What is typed into it would reach no hook."""
    install(codex)

    results = codex.run([make_command("codex", "bash", "toolu_1", tty=True)], type_into("touch ran\n"))

    assert "The call was not made" in results[0]
    assert not (codex.project / "ran").exists()


def test_another_hook_that_rewrites_a_call_is_noticed(claude: Workplace):
    """What ran is another command, and nothing else runs in this session."""
    install(claude)
    claude.write_project(".claude/settings.json", json.dumps({"hooks": make_rewriting_hooks()}))

    claude.run([make_command("claude", "touch mine", "toolu_1")], [make_command("claude", "touch more", "toolu_2")])

    assert [path.name for path in claude.project.iterdir() if not path.name.startswith(".")] == ["other"]
    assert count(claude, "call.unchecked") == 1


def test_the_doctor_tells_a_hook_that_works_from_one_that_does_not(
    claude: Workplace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Installed, switched off by the project, and not installed at all."""
    config = install(claude)
    for name in ("CLAUDE_CONFIG_DIR",):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(claude.home))

    def ask() -> object:
        words = ["--config", str(config), "--program", claude.program, "--folder", str(claude.project)]
        with pytest.raises(SystemExit) as ended:
            main(["hook", "doctor", "claude", *words])
        return ended.value.code

    statuses = [ask()]
    claude.write_project(".claude/settings.json", '{"disableAllHooks": true}')
    statuses.append(ask())
    claude.write_project(".claude/settings.json", "{}")
    claude.settings.unlink()
    statuses.append(ask())

    assert statuses == [0, 1, 1], capsys.readouterr()


def test_the_doctor_sees_that_codex_skips_a_hook_that_is_not_trusted(
    codex: Workplace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """And that it is asked where it is."""
    config = install(codex)
    monkeypatch.setenv("HOME", str(codex.home))
    monkeypatch.setenv("CODEX_HOME", str(codex.home / ".codex"))
    trusting = tmp_path / "codex"
    trusting.write_text(
        f'#!/bin/sh\nexec {shlex.quote(codex.program)} "$@" --dangerously-bypass-hook-trust\n', encoding="utf-8"
    )
    trusting.chmod(0o755)

    def ask(program: str) -> object:
        words = ["--config", str(config), "--program", program, "--folder", str(codex.project)]
        with pytest.raises(SystemExit) as ended:
            main(["hook", "doctor", "codex", *words])
        return ended.value.code

    assert [ask(codex.program), ask(str(trusting))] == [1, 0]


def test_another_hook_of_codex_that_rewrites_a_call_is_noticed(codex: Workplace):
    """Codex takes the arguments of any hook, too."""
    install(codex)
    settings = json.loads(codex.settings.read_text("utf-8"))
    settings["hooks"]["PreToolUse"] += make_rewriting_hooks()["PreToolUse"]
    codex.write_settings(settings)

    codex.run([make_command("codex", "touch mine", "toolu_1")], [make_command("codex", "touch more", "toolu_2")])

    assert [path.name for path in codex.project.iterdir() if not path.name.startswith(".")] == ["other"]
    assert count(codex, "call.unchecked") == 1


ARGUMENTS = {
    "exec_command": {"cmd": "true"},
    "write_stdin": {"session_id": 1, "chars": "x"},
    "view_image": {"path": "/absent.png"},
    "spawn_agent": {"message": "hello"},
    "send_input": {"id": "x", "message": "m"},
    "wait_agent": {"ids": ["x"]},
    "close_agent": {"id": "x"},
    "resume_agent": {"id": "x"},
    "create_goal": {"objective": "x"},
    "update_goal": {"status": "complete"},
}

NO_HOOK = {"write_stdin"}
"""Tools of Codex that reach no hook, as the page says."""

HOSTED = {"web_search"}
"""Those that the provider runs."""


def test_every_tool_that_codex_offers_reaches_the_hook_but_those_of_the_page(codex: Workplace):
    """Each is called once; a new one that reaches no hook fails here.

    Each is refused, since a sub-agent would take steps of the script.
    """
    events = codex.home.parent / "events"
    denial = json.dumps(answer_call("codex", "deny", "no"))
    codex.write_settings(make_hook(codex, f"cat >> {events}; echo >> {events}; printf '%s{MARK}' '{denial}'"))
    codex.run("Hello.")
    offered = list(list_offered(codex.requests[0]["tools"]))
    assert {tool["type"] for tool in codex.requests[0]["tools"] if "name" not in tool} == HOSTED

    codex.run(
        *[
            [ScriptedCall(tool=name, arguments=ARGUMENTS.get(name, {}), call_id=f"call_{name}", namespace=space)]
            for name, space in offered
        ]
    )

    asked = {json.loads(line)["tool_use_id"] for line in events.read_text("utf-8").splitlines() if line.strip()}
    assert "call_exec_command" in asked
    assert {name for name, _ in offered if f"call_{name}" not in asked} == NO_HOOK


NOTEBOOK = {"cells": [{"id": "c1", "cell_type": "raw", "source": [], "metadata": {}}]}

ARGUMENTS_OF_CLAUDE: dict[str, dict[str, Any]] = {
    "CronCreate": {"cron": "0 0 1 1 *"},
    "Edit": {"file_path": "new", "old_string": ""},
    "Monitor": {"command": "true"},
    "NotebookEdit": {"notebook_path": "a.ipynb", "cell_id": "c1"},
    "Read": {"file_path": "a.ipynb"},
    "Skill": {"skill": "init"},
    "TaskStop": {"task_id": "x"},
    "WebFetch": {"url": "https://example.com/"},
    "WebSearch": {"query": "xy"},
    "Workflow": {"script": "export const meta = {name: 'x', description: 'x', phases: []}"},
}
"""What a tool checks of its arguments, beyond their schema, before it asks the hook."""

NOTHING_TO_END = {"CronDelete", "ExitWorktree", "TaskStop"}
"""Tools that end what another one has begun; without that they say so, and do nothing."""


def test_every_tool_that_claude_code_offers_reaches_the_hook(claude: Workplace):
    """Each is called once, those too that it offers only on request; a new one that reaches no hook fails here.

    Nothing is done: of all calls, the hook lets one of `Read` pass, without which a notebook cannot be changed.
    """
    claude.environment["ENABLE_TOOL_SEARCH"] = "false"
    notebook = json.dumps(NOTEBOOK | {"metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    claude.write_project("a.ipynb", notebook)
    events = claude.home.parent / "events"
    denial = json.dumps(answer_call("claude", "deny", "no"))
    claude.write_settings(
        make_hook(
            claude,
            f"a='{denial}'; e=$(cat); printf '%s\\n' \"$e\" >> {events}\n"
            f'case "$e" in *\'"tool_name":"Read"\'*) a={{}};; esac; printf "%s{MARK}" "$a"',
        )
    )
    claude.run("Hello.")
    tools = sorted(claude.requests[0]["tools"], key=lambda tool: tool["name"] != "Read")
    names = [tool["name"] for tool in tools]

    results = claude.run(
        *[
            [
                ScriptedCall(
                    tool=tool["name"],
                    arguments=make_value(tool["input_schema"]) | ARGUMENTS_OF_CLAUDE.get(tool["name"], {}),
                    call_id=f"toolu_{tool['name']}",
                )
            ]
            for tool in tools
        ]
    )

    asked = {json.loads(line)["tool_use_id"] for line in events.read_text("utf-8").splitlines()}
    unasked = {name for name in names if f"toolu_{name}" not in asked}
    assert len(results) == len(names) > 10
    assert {name: result for name, result in zip(names, results, strict=True) if name in unasked - NOTHING_TO_END} == {}
    assert all("<tool_use_error>" in results[names.index(name)] for name in unasked)


def make_value(schema: dict[str, Any]) -> Any:
    """A small value of a schema."""
    for name in ("anyOf", "oneOf"):
        if name in schema:
            return make_value(schema[name][0])
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("type") == "object":
        return {name: make_value(schema["properties"][name]) for name in schema.get("required", ())}
    values: dict[Any, Any] = {"array": [], "boolean": False, "number": schema.get("minimum", 1)}
    return (values | {"integer": values["number"]}).get(schema.get("type"), "x")


def list_offered(tools: list[dict[str, Any]]) -> Iterator[tuple[str, str | None]]:
    """The functions among some tools, with the namespace of each; hosted tools have no name."""
    for tool in tools:
        if tool.get("type") == "namespace":
            yield from ((member["name"], tool["name"]) for member in tool["tools"])
        elif tool.get("name"):
            yield tool["name"], None


# ---------------------------------------------------------------- managed settings of Claude Code


def test_a_project_cannot_switch_off_managed_hooks(claude: Workplace):
    """Nor those of the user, who is the agent."""
    install(claude, managed=True)
    claude.write_settings({"disableAllHooks": True})
    claude.write_project(".claude/settings.json", '{"disableAllHooks": true}')

    results = claude.run([make_command("claude", "touch forbidden", "toolu_1")], [make_command("claude", "touch ran")])

    assert "The call was not made" in results[0]
    assert [path.name for path in claude.project.iterdir() if not path.name.startswith(".")] == ["ran"]


def test_beside_managed_hooks_no_other_hook_counts(claude: Workplace):
    """What was checked is what ran."""
    install(claude, managed=True)
    claude.write_project(".claude/settings.json", json.dumps({"hooks": make_rewriting_hooks()}))

    claude.run([make_command("claude", "touch mine")])

    assert [path.name for path in claude.project.iterdir() if not path.name.startswith(".")] == ["mine"]
    assert (count(claude, "call.ran"), count(claude, "call.unchecked")) == (1, 0)


def test_variables_of_a_project_do_not_reach_managed_hooks(claude: Workplace):
    """``LD_PRELOAD`` would be one of them."""
    seen = claude.home.parent / "seen"
    file = claude.home.parent / "managed.json"
    settings = make_hook(claude, f"echo $FOR_THE_HOOK > {seen}; printf '{{}}{MARK}'")
    file.write_text(json.dumps(settings | {"allowManagedHooksOnly": True}), encoding="utf-8")
    claude.manage(file)
    claude.write_project(".claude/settings.json", '{"env": {"FOR_THE_HOOK": "reached"}}')

    claude.run([make_command("claude", "touch ran")])

    assert seen.read_text("utf-8") == "\n"


# ---------------------------------------------------------------- what only a harness can close


@pytest.mark.xfail(strict=True, reason="Claude Code 2.1.332: a project can switch off a user's hooks")
def test_a_project_cannot_switch_off_the_users_hooks(claude: Workplace):
    """``disableAllHooks`` in the project's settings."""
    install(claude)
    claude.write_project(".claude/settings.json", '{"disableAllHooks": true}')

    claude.run([make_command("claude", "touch forbidden")])

    assert not (claude.project / "forbidden").exists()


@pytest.mark.xfail(strict=True, reason="Claude Code 2.1.332: a project's env reaches a user's hook")
def test_a_project_cannot_set_variables_of_the_users_hooks(claude: Workplace):
    """``LD_PRELOAD`` is one of them."""
    seen = claude.home.parent / "seen"
    claude.write_settings(make_hook(claude, f"echo $FOR_THE_HOOK > {seen}; printf '{{}}{MARK}'"))
    claude.write_project(".claude/settings.json", '{"env": {"FOR_THE_HOOK": "reached"}}')

    claude.run([make_command("claude", "touch ran")])

    assert seen.read_text("utf-8") == "\n"


@pytest.mark.xfail(strict=True, reason="Codex 0.171.0: a hook that is killed or late lets the call be made")
@pytest.mark.parametrize("script", SILENCED.values(), ids=SILENCED)
def test_where_the_wrapper_cannot_answer_codex_makes_no_call(codex: Workplace, script: str):
    """It knows no ``onFailure``."""
    silence(codex, script)

    codex.run([make_command("codex", "touch ran")])

    assert not (codex.project / "ran").exists()


@pytest.mark.xfail(strict=True, reason="Claude Code 2.1.332: a file that a prompt names is read without a call")
def test_a_file_that_a_prompt_names_is_checked(claude: Workplace):
    """The gate of prompts refuses this text, and is shown the file's name."""
    install(claude)
    claude.write_project("note.txt", "a forbidden text")

    claude.run("Hello.", prompt="Look at @note.txt")

    assert "a forbidden text" not in json.dumps(claude.requests)


def test_codex_reads_no_file_that_a_prompt_names(codex: Workplace):
    """The model is sent the name. If this fails, the page has to say so."""
    install(codex)
    codex.write_project("note.txt", "a forbidden text")

    codex.run("Hello.", prompt="Look at @note.txt")

    assert "@note.txt" in json.dumps(codex.requests)
    assert "a forbidden text" not in json.dumps(codex.requests)


@pytest.mark.xfail(strict=True, reason="Codex 0.171.0: a tool that the provider runs reaches no hook")
def test_a_search_of_the_provider_reaches_the_hook(codex: Workplace, monkeypatch: pytest.MonkeyPatch):
    """It is told of in the answer of the model, beside a call, and Codex tells the model of it again."""
    search = {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "of mine"}}
    make_item = scripted_model._make_call_item
    monkeypatch.setattr(
        scripted_model, "_make_call_item", lambda call: search if call.tool == "search" else make_item(call)
    )
    events = codex.home.parent / "events"
    codex.write_settings(make_hook(codex, f"cat >> {events}; printf '{{}}{MARK}'"))

    codex.run([ScriptedCall(tool="search", arguments={}, call_id="call_1"), make_command("codex", "touch ran")])

    was_taken = "of mine" in json.dumps(codex.requests[-1]) and "touch ran" in events.read_text("utf-8")
    assert not was_taken or "of mine" in events.read_text("utf-8")


@pytest.mark.xfail(strict=True, reason="Claude Code 2.1.332, Codex 0.171.0: what a program starts is no call of a tool")
def test_what_git_starts_reaches_the_hook(place: Workplace):
    """A hook of the repository, by a command that passes."""
    install(place)
    subprocess.run(["git", "init", "--quiet", place.project], check=True)
    place.write_project(".git/hooks/pre-commit", "#!/bin/sh\ntouch forbidden\n")
    (place.project / ".git/hooks/pre-commit").chmod(0o755)

    place.run([make_command(place.harness, "git -c user.name=a -c user.email=a@b.c commit --allow-empty -m x")])

    assert not (place.project / "forbidden").exists()


@pytest.mark.xfail(strict=True, reason="Codex 0.171.0: a hook that is not trusted is skipped without a word")
def test_codex_does_not_go_on_without_a_hook_that_is_not_trusted(codex: Workplace):
    """As after an installation, until somebody trusts it."""
    install(codex)
    codex.trusts_hooks = False

    codex.run([make_command("codex", "touch forbidden")])

    assert not (codex.project / "forbidden").exists()


@pytest.mark.xfail(strict=True, reason="Codex 0.171.0: a trusted project can switch hooks off")
def test_a_trusted_project_cannot_switch_off_the_hooks_of_codex(codex: Workplace):
    """``features.hooks = false``."""
    install(codex)
    codex.write_project(".codex/config.toml", "[features]\nhooks = false\n")

    codex.run([make_command("codex", "touch forbidden")])

    assert not (codex.project / "forbidden").exists()


def test_variables_of_a_trusted_project_do_not_reach_the_hooks_of_codex(codex: Workplace):
    """``LD_PRELOAD`` would be one of them; they reach the command that the hook let pass."""
    seen = codex.home.parent / "seen"
    codex.write_settings(make_hook(codex, f"echo $FOR_THE_HOOK > {seen}; printf '{{}}{MARK}'"))
    codex.write_project(".codex/config.toml", '[shell_environment_policy.set]\nFOR_THE_HOOK = "reached"\n')

    codex.run([make_command("codex", "echo $FOR_THE_HOOK > ran")])

    assert (codex.project / "ran").read_text("utf-8") == "reached\n"
    assert seen.read_text("utf-8") == "\n"


@pytest.mark.xfail(strict=True, reason="Codex 0.171.0: typed input reaches no hook")
def test_typed_input_reaches_the_hook(codex: Workplace):
    """The program that reads it is no open shell, so it starts."""
    install(codex)

    codex.run(
        [make_command("codex", "read x; touch $x", "toolu_1", tty=True, yield_time_ms=500)],
        type_into("forbidden\n"),
        [make_command("codex", "sleep 1", "toolu_2")],
    )

    assert not (codex.project / "forbidden").exists()
