"""The command that a harness calls, by every ending, and the settings that name it."""

from __future__ import annotations

import json
import shlex
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from adjudge.errors import UsageError
from adjudge.harness.events import Harness
from adjudge.harness.installing import (
    MARK,
    PATIENCE,
    Installation,
    list_events,
    make_hooks,
    merge_settings,
    write_command,
)
from adjudge.harness.settings_file import find_settings, read_settings, write_settings
from kit.patience import HANG

DENIED = '{"hookSpecificOutput": {"permissionDecision": "deny"}}'

SHELLS = [shell for shell in ("/bin/sh", "/bin/bash", "/bin/zsh", "/usr/bin/fish") if Path(shell).exists()]


def make_installation(**changed: Any) -> Installation:
    values: dict[str, Any] = {
        "harness": "claude",
        "python": sys.executable,
        "config": Path("/guard/adjudge.toml"),
        "digest": "d" * 64,
        "seconds": 50,
        "events": ("PreToolUse",),
    }
    return Installation(**values | changed)


def make_program(tmp_path: Path, script: str) -> str:
    """A stand-in for the interpreter, whose path has a blank and a quote in it."""
    file = tmp_path / "an 'odd' folder" / "python"
    file.parent.mkdir()
    file.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    file.chmod(0o755)
    return str(file)


def call(command: str, *, shell: str = "/bin/sh", text: str = "{}") -> subprocess.CompletedProcess[str]:
    return subprocess.run([shell, "-c", command], input=text, capture_output=True, text=True, check=False, timeout=HANG)


@pytest.mark.integration
@pytest.mark.parametrize("shell", SHELLS)
def test_a_whole_answer_is_handed_on(tmp_path: Path, shell: str):
    """Without the mark, and by whichever shell the harness has."""
    python = make_program(tmp_path, f"cat >/dev/null; printf '%s{MARK}' {shlex.quote(DENIED)}")

    done = call(write_command(make_installation(python=python), "PreToolUse"), shell=shell)

    assert (done.returncode, done.stdout, done.stderr) == (0, DENIED, "")


ENDINGS = {
    "exit 1": "exit 1",
    "exit 1 with an answer": f"printf '{{}}{MARK}'; exit 1",
    "exit 10 with an answer": f"printf '{{}}{MARK}'; exit 10",
    "exit 2 in silence": "exit 2",
    "exit 3": "echo no >&2; exit 3",
    "silence": "exit 0",
    "a cut answer": """printf '{"hookSpecificOutput": {"permissionDecision": "deny"}'""",
    "an answer without its mark": f"printf '%s' '{DENIED}'",
    "a text before the answer": f"printf 'warning: old\\n{{}}{MARK}'",
    "a text": "echo hello",
    "the mark alone": f"printf '%s' '{MARK}'",
    "killed": "kill -KILL $$",
    "terminated": "kill -TERM $$",
    "no interpreter": "exec /no/such/python",
}


@pytest.mark.integration
@pytest.mark.parametrize("script", ENDINGS.values(), ids=ENDINGS)
@pytest.mark.parametrize("harness", ["claude", "codex"])
def test_every_other_ending_is_exit_2_with_a_word(tmp_path: Path, harness: Harness, script: str):
    """Any of them, as it is, would let Codex make the call; exit 2 in silence too."""
    python = make_program(tmp_path, script)

    done = call(write_command(make_installation(harness=harness, python=python), "PreToolUse"))

    assert (done.returncode, done.stdout) == (2, "")
    assert "could not be checked" in done.stderr


@pytest.mark.integration
@pytest.mark.parametrize("python", ["/no/such/python", "/tmp", "/dev/null"])
def test_a_missing_interpreter_is_exit_2_with_a_word(python: str):
    """As after the environment with adjudge was removed."""
    done = call(write_command(make_installation(python=python), "PreToolUse"))

    assert (done.returncode, done.stdout) == (2, "")
    assert "could not be checked" in done.stderr


@pytest.mark.integration
def test_an_installation_that_cannot_be_imported_is_exit_2_with_a_word(tmp_path: Path):
    """An interpreter without adjudge."""
    python = make_program(tmp_path, f'exec {shlex.quote(sys.executable)} -S "$@"')

    done = call(write_command(make_installation(python=python), "PreToolUse"))

    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.integration
@pytest.mark.timed
@pytest.mark.slow
def test_a_hook_that_is_late_is_ended_before_the_harness_stops_waiting():
    """The alarm ends it in the kernel; here it waits for an event that never comes."""
    command = write_command(make_installation(seconds=1), "PreToolUse")

    with subprocess.Popen(
        ["/bin/sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.wait(timeout=HANG) == 2
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read() == ""
        assert "could not be checked" in process.stderr.read()


@pytest.mark.integration
def test_a_broken_hook_lets_an_agent_end(tmp_path: Path):
    """Codex sends an answer back for ever; the user is told instead."""
    python = make_program(tmp_path, "exit 1")

    done = call(write_command(make_installation(python=python), "Stop"))

    assert done.returncode == 0
    assert list(json.loads(done.stdout)) == ["systemMessage"]


@pytest.mark.integration
def test_a_closed_output_is_exit_2_with_a_word(tmp_path: Path):
    """An answer that nobody could read is none."""
    python = make_program(tmp_path, f"printf '{{}}{MARK}'")
    command = write_command(make_installation(python=python), "PreToolUse")

    done = call(f"{command} >&-")

    assert done.returncode == 2
    assert "could not be checked" in done.stderr


def test_a_hook_that_asks_a_server_runs_no_code():
    """The server has the gates and what they name, so the small program knows no such option."""
    words = shlex.split(write_command(make_installation(asks_server=True, allow_python=True), "PreToolUse"))

    assert "--allow-python" not in words


def test_a_command_has_absolute_paths_and_the_isolated_interpreter():
    """Nothing is looked up in PATH, and the project's Python variables are ignored."""
    words = shlex.split(write_command(make_installation(managed=True, allow_python=True), "PreToolUse"))

    assert words[0] == "/bin/sh"
    assert words[5:7] == [sys.executable, "-I"]
    assert {"--managed", "--allow-python", "--seal"} <= set(words)
    assert words[words.index("--config") + 1] == "/guard/adjudge.toml"
    assert "'" not in words[2]
    assert "\\" not in words[2]


def test_the_harness_waits_longer_than_the_hook_may_take():
    """Else it would go on without an answer; Claude Code is told to block all the same."""
    events = list_events("claude", prompts=True, answers=True, observes=True)
    installation = make_installation(events=events, seconds=30)

    hooks = {event: groups[0]["hooks"][0] for event, groups in make_hooks(installation).items()}

    assert set(hooks) == {"PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Stop", "SessionStart"}
    assert {hook["timeout"] for hook in hooks.values()} == {30 + PATIENCE}
    assert {event for event, hook in hooks.items() if hook.get("onFailure") != "block"} == {"Stop", "SessionStart"}
    assert list_events("codex", prompts=False, answers=False, observes=False) == ("PreToolUse", "PostToolUse")


def test_settings_keep_what_is_not_ours():
    """And an earlier installation is replaced."""
    other = {"type": "command", "command": "notify"}
    before = json.dumps({"model": "x", "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [other]}], "Stop": []}})

    first = merge_settings(before, make_installation(digest="a" * 64))
    second = json.loads(merge_settings(first, make_installation(digest="b" * 64, managed=True)))

    ours, theirs = second["hooks"]["PreToolUse"]
    assert second["model"] == "x"
    assert theirs == {"matcher": "Bash", "hooks": [other]}
    assert "b" * 64 in ours["hooks"][0]["command"]
    assert "a" * 64 not in json.dumps(second)
    assert second["allowManagedHooksOnly"] is True
    assert "allowManagedHooksOnly" not in json.loads(first)


@pytest.mark.parametrize("text", ["[]", "{", '{"hooks": []}', '{"hooks": {"Stop": {}}}', '{"a": 1, "a": 2}', "3"])
def test_settings_that_cannot_be_read_are_left_alone(text: str):
    """Nothing in them is lost."""
    with pytest.raises(UsageError):
        merge_settings(text, make_installation())


def test_settings_are_replaced_in_one_step(tmp_path: Path):
    """With the rights that they had; new ones are the owner's, and managed ones everybody's to read."""
    file = tmp_path / ".claude" / "settings.json"

    write_settings(file, "{}", managed=False)
    assert (read_settings(file), stat.S_IMODE(file.stat().st_mode)) == ("{}", 0o600)
    file.chmod(0o640)
    write_settings(file, '{"a": 1}', managed=False)
    assert (read_settings(file), stat.S_IMODE(file.stat().st_mode)) == ('{"a": 1}', 0o640)
    write_settings(file, "{}", managed=True)
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert [path.name for path in file.parent.iterdir()] == ["settings.json"]


def test_a_link_is_not_followed(tmp_path: Path):
    """It may lead to a file that has nothing to do with the harness."""
    target = tmp_path / "bashrc"
    target.write_text("x", encoding="utf-8")
    file = tmp_path / "settings.json"
    file.symlink_to(target)
    (tmp_path / "folder").symlink_to(tmp_path)

    for path in (file, tmp_path / "folder" / "new.json"):
        with pytest.raises(UsageError):
            read_settings(path)
    assert target.read_text("utf-8") == "x"


def test_each_harness_has_its_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """In the user's home, or where its own variable says."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CODEX_HOME", raising=False)
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)

    assert find_settings("claude", managed=False) == tmp_path / ".claude" / "settings.json"
    assert find_settings("codex", managed=False) == tmp_path / ".codex" / "hooks.json"
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "other"))
    assert find_settings("codex", managed=False) == tmp_path / "other" / "hooks.json"
