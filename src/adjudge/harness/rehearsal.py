"""A rehearsal: start a coding agent (harness) with a scripted model, and find out if its hook stops a call."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from adjudge.errors import UsageError
from adjudge.formats.text import flatten, show
from adjudge.harness.events import NAMES, Harness
from adjudge.harness.scripted_model import ScriptedCall, ScriptedModel

REFUSAL = "The call was not made"
"""The beginning of every refusal of a guard."""

_CALL_ID = "toolu_adjudge_doctor"

_PASSED_VARIABLES = (
    "HOME",
    "PATH",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "SHELL",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
)
"""The environment variables that the harness gets: none of a provider, and none of a proxy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """The outcome of the rehearsed call."""

    outcome: Literal["refused", "ran", "unknown"]
    version: str
    detail: str = ""


def rehearse(harness: Harness, config: Path, *, program: str | None, folder: Path, seconds: int) -> Rehearsal:
    """Start a harness in a folder and let it try to read a hook's configuration, which the hook should refuse.

    Raises ``UsageError`` if the harness is not installed.
    """
    executable = shutil.which(program or harness)
    if executable is None:
        raise UsageError(f"there is no {show(program or harness)} here; name {NAMES[harness]} with --program")
    executable = os.path.abspath(executable)  # noqa: PTH100 - a relative one would be looked for in the folder
    version = f"{NAMES[harness]} {_read_version(executable)}"
    steps = [[_make_reading_call(harness, config)], "Done."]
    with ScriptedModel(steps) as model:
        command = _make_command(harness, executable, model.url)
        environment = {name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ}
        environment |= _make_environment(harness, model.url)
        try:
            process = subprocess.run(  # noqa: S603 - the program that the user named
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=2 * seconds + 60,
                check=False,
            )
            detail = (process.stderr or process.stdout).decode(errors="replace")
        except subprocess.TimeoutExpired:
            detail = "it did not end in time"
        requests = list(model.requests)
    outcome = read_outcome(requests, config)
    return Rehearsal(outcome=outcome, version=version, detail=flatten(detail[-300:], 300))


def read_outcome(requests: Iterable[Any], config: Path) -> Literal["refused", "ran", "unknown"]:
    """Find out from the requests to the model if the call was refused.

    A tool result with a line of the configuration shows that the call ran, and one with a refusal that it did not.
    """
    with suppress(OSError):
        lines = [line.strip() for line in config.read_text("utf-8", errors="replace").splitlines()]
        telling_lines = [line for line in lines if len(line) > 5]  # a shorter line may occur by accident
        results = [text for request in requests for text in _list_tool_results(request)]
        if any(line in text for text in results for line in telling_lines):
            return "ran"
        return "refused" if any(REFUSAL in text for text in results) else "unknown"
    return "unknown"


def _list_tool_results(request: Any) -> Iterator[str]:
    """Yield the tool results in a request of Anthropic's or OpenAI's protocol, each as one text."""
    values = [request]
    while values:
        value = values.pop()
        if isinstance(value, dict):
            if value.get("type") in ("tool_result", "function_call_output", "custom_tool_call_output"):
                yield "\n".join(_list_texts(value))
            else:
                values += value.values()
        elif isinstance(value, list):
            values += value


def _list_texts(value: Any) -> Iterator[str]:
    """Yield all texts in a value, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for child in value.values() if isinstance(value, dict) else value:
            yield from _list_texts(child)


def _make_reading_call(harness: Harness, config: Path) -> ScriptedCall:
    """Make the call that tries to read the hook's configuration."""
    if harness == "claude":
        return ScriptedCall(tool="Read", arguments={"file_path": str(config)}, call_id=_CALL_ID)
    # The path is not quoted, because the hook searches the words of a shell's command for it.
    return ScriptedCall(tool="exec_command", arguments={"cmd": f"cat {config}"}, call_id=_CALL_ID)


def _make_command(harness: Harness, program: str, url: str) -> list[str]:
    """Make the command that runs a harness with the scripted model, so that only the hook can stop the call."""
    if harness == "claude":
        return [program, "-p", "go", "--output-format", "stream-json", "--verbose", "--allowedTools", "Read"]
    provider = f'{{name="adjudge", base_url="{url}/v1", wire_api="responses", env_key="ADJUDGE_DOCTOR_KEY"}}'
    options = ["-c", 'model_provider="adjudge_doctor"', "-c", f"model_providers.adjudge_doctor={provider}"]
    # Codex's own sandbox and questions are switched off, since they could refuse the call in place of the hook.
    return [
        program,
        "exec",
        "--json",
        "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",
        *options,
        "go",
    ]


def _make_environment(harness: Harness, url: str) -> dict[str, str]:
    """Return the variables that send a harness to the scripted model; Codex gets the address by options instead."""
    if harness == "codex":
        return {"ADJUDGE_DOCTOR_KEY": "none"}
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }


def _read_version(program: str) -> str:
    """Return the version that a program reports, or ``of no version``."""
    with suppress(OSError, subprocess.TimeoutExpired):
        process = subprocess.run([program, "--version"], capture_output=True, timeout=60, check=False)  # noqa: S603
        return flatten(process.stdout.decode(errors="replace").strip(), 60) or "of no version"
    return "of no version"
