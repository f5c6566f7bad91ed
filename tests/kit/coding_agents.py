"""The real Claude Code and Codex, offline, with a scripted model; skipped by name where they are absent."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from adjudge.harness.events import Harness
from adjudge.harness.scripted_model import ScriptedCall, ScriptedModel, ScriptedStep, Step

HOW = {"claude": "pip install claude-agent-sdk", "codex": "npm install -g @openai/codex"}


_WITH_MANAGED_SETTINGS = """set -e
settings=$1; etc=$2; shift 2
rm -rf "$etc"; mkdir "$etc"; cp -a /etc/. "$etc"; mkdir -p "$etc/claude-code"
cp "$settings" "$etc/claude-code/managed-settings.json"
mount --bind "$etc" /etc
exec "$@"
"""


def find_program(harness: Harness) -> str:
    """The program of ``ADJUDGE_CLAUDE`` or ``ADJUDGE_CODEX``, that of a package, or that of ``PATH``; else a skip."""
    named = os.environ.get(f"ADJUDGE_{harness.upper()}")
    spec = find_spec("claude_agent_sdk") if harness == "claude" else None
    bundled = Path(spec.origin).parent / "_bundled" / "claude" if spec is not None and spec.origin else None
    program = named or (str(bundled) if bundled is not None and bundled.is_file() else shutil.which(harness))
    if program is None:
        pytest.skip(f"{harness} is absent; to have it, {HOW[harness]}")
    return program


def make_command(harness: Harness, command: str, call_id: str = "toolu_1", **more: Any) -> ScriptedCall:
    """A call of the shell."""
    if harness == "claude":
        arguments = {"command": command, "description": "Run it", **more}
        return ScriptedCall(tool="Bash", arguments=arguments, call_id=call_id)
    return ScriptedCall(tool="exec_command", arguments={"cmd": command, **more}, call_id=call_id)


def make_rewriting_hooks() -> dict[str, Any]:
    """Hooks that have another command run than the one that was checked."""
    output = {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": {"command": "touch other"}}
    answer = shlex.quote(json.dumps({"hookSpecificOutput": output}))
    other = {"type": "command", "command": f"cat >/dev/null; echo {answer}"}
    return {"PreToolUse": [{"matcher": "Bash", "hooks": [other]}]}


def type_into(text: str, call_id: str = "toolu_typed") -> ScriptedStep:
    """A step that types into the program that Codex started last, whose number is in its result."""

    def make_step(body: dict[str, Any]) -> Step:
        number = re.search(r"session ID (\d+)", " ".join(list_results(body)))
        arguments = {"session_id": int(number[1]) if number else 0, "chars": text}
        return [ScriptedCall(tool="write_stdin", arguments=arguments, call_id=call_id)]

    return make_step


@dataclass(slots=True, kw_only=True)
class Workplace:
    """A home and a project for one harness."""

    harness: Harness
    home: Path
    project: Path
    program: str
    environment: dict[str, str] = field(default_factory=dict)
    trusts_hooks: bool = True
    """Codex: skip the question whether its hooks are trusted."""
    prefix: tuple[str, ...] = ()
    """The words that start the program."""
    servers: str = ""
    """MCP servers in the form of Codex's configuration."""
    requests: list[dict[str, Any]] = field(default_factory=list)
    """The requests that the model was sent in the last session."""

    @property
    def settings(self) -> Path:
        """The file in which the user's hooks are."""
        name = ".claude/settings.json" if self.harness == "claude" else ".codex/hooks.json"
        return self.home / name

    def write_settings(self, settings: Mapping[str, Any]) -> None:
        self.settings.parent.mkdir(exist_ok=True)
        self.settings.write_text(json.dumps(settings), encoding="utf-8")

    def write_project(self, name: str, text: str) -> None:
        file = self.project / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def add_mcp_server(self, name: str, *words: str) -> None:
        """Give the user an MCP server, which a command starts."""
        if self.harness == "claude":
            server = {"type": "stdio", "command": words[0], "args": list(words[1:])}
            (self.home / ".claude.json").write_text(json.dumps({"mcpServers": {name: server}}), encoding="utf-8")
        else:
            command = f"command = {json.dumps(words[0])}\nargs = {json.dumps(words[1:])}\n"
            self.servers += f"[mcp_servers.{name}]\n{command}startup_timeout_sec = 120\n"

    def run(self, *steps: ScriptedStep, prompt: str = "go", resume: str | None = None) -> list[str]:
        """Start a session, and return the results of its tools as the model was sent them."""
        with ScriptedModel([*steps, "Done."]) as model:
            done = subprocess.run(
                [*self.prefix, *self.list_words(prompt, resume=resume)],
                cwd=self.project,
                env=self.configure(model.url),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=240,
                check=False,
            )
            self.requests = list(model.requests)
        assert self.requests, done.stderr[-2_000:] + done.stdout[-2_000:]
        return list(list_results(self.requests[-1]))

    def manage(self, settings: Path) -> None:
        """Give Claude Code managed settings, in a view of /etc of its own; a skip where that cannot be."""
        script = settings.with_name("with-managed-settings")
        script.write_text(_WITH_MANAGED_SETTINGS, encoding="utf-8")
        self.prefix = ("unshare", "--mount", "/bin/sh", str(script), str(settings), str(settings.with_name("etc")))
        tried = (
            subprocess.run([*self.prefix, "true"], capture_output=True, check=False)
            if shutil.which("unshare")
            else None
        )
        if tried is None or tried.returncode != 0:
            pytest.skip("a mount namespace is absent; to have it, run as root on Linux")

    def list_words(self, prompt: str = "go", *, resume: str | None = None) -> list[str]:
        """The command of a session that prints its transcript."""
        if self.harness == "claude":
            words = [self.program, "-p", prompt, "--output-format", "stream-json", "--verbose"]
            return [*words, "--permission-mode", "bypassPermissions", *(["--resume", resume] if resume else [])]
        options = ["--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
        options += ["--dangerously-bypass-hook-trust"] * self.trusts_hooks
        return [self.program, "exec", *options, *(["resume", resume] if resume else []), prompt]

    def configure(self, url: str) -> dict[str, str]:
        """Have the harness ask the model at an address; return the variables with which it is started."""
        own = {"HOME": str(self.home), "PATH": os.environ["PATH"], "IS_SANDBOX": "1", **self.environment}
        if self.harness == "claude":
            quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
            return {**own, **quiet, "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none"}
        folder = self.home / ".codex"
        folder.mkdir(exist_ok=True)
        text = 'model = "scripted"\nmodel_provider = "scripted"\n'
        text += f'[projects."{self.project}"]\ntrust_level = "trusted"\n'
        text += f'[model_providers.scripted]\nname = "scripted"\nbase_url = "{url}/v1"\nwire_api = "responses"\n'
        text += f'env_key = "SCRIPTED_KEY"\n{self.servers}'
        (folder / "config.toml").write_text(text, encoding="utf-8")
        return {**own, "CODEX_HOME": str(folder), "SCRIPTED_KEY": "none"}


def make_workplace(harness: Harness, tmp_path: Path) -> Workplace:
    """A home and an empty project below a folder."""
    program = find_program(harness)
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    return Workplace(harness=harness, home=home, project=project, program=program)


def list_results(value: Any) -> Iterator[str]:
    """The results of tools in a request, in order."""
    if isinstance(value, dict):
        if value.get("type") in ("tool_result", "function_call_output", "custom_tool_call_output"):
            yield json.dumps(value.get("content", value.get("output")))
            return
        value = list(value.values())
    for child in value if isinstance(value, Sequence) and not isinstance(value, str) else ():
        yield from list_results(child)
