"""A harness, as it is set up on this machine, started with a scripted model: does its hook stop a call?"""

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

_KEPT = ("HOME", "PATH", "USER", "LOGNAME", "LANG", "LC_ALL", "TMPDIR", "SHELL", "CLAUDE_CONFIG_DIR", "CODEX_HOME")
"""Variables that the harness is given: none of a provider, and none of a proxy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """The outcome of the rehearsed call."""

    outcome: Literal["refused", "ran", "unknown"]
    version: str
    detail: str = ""


def rehearse(harness: Harness, config: Path, *, program: str | None, folder: Path, seconds: int) -> Rehearsal:
    """Start a harness in a folder and have it read a hook's configuration, which the hook refuses.

    Raises ``UsageError`` where the harness is not there.
    """
    executable = shutil.which(program or harness)
    if executable is None:
        raise UsageError(f"there is no {show(program or harness)} here; name {NAMES[harness]} with --program")
    executable = os.path.abspath(executable)  # noqa: PTH100 - a relative one would be looked for in the folder
    version = f"{NAMES[harness]} {_read_version(executable)}"
    steps = [[_make_call(harness, config)], "Done."]
    with ScriptedModel(steps) as model:
        command = _make_command(harness, executable, model.url)
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        environment |= _make_environment(harness, model.url)
        try:
            done = subprocess.run(  # noqa: S603 - the program that the user named
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=2 * seconds + 60,
                check=False,
            )
            detail = (done.stderr or done.stdout).decode(errors="replace")
        except subprocess.TimeoutExpired:
            detail = "it did not end in time"
        requests = list(model.requests)
    outcome = read_outcome(requests, config)
    return Rehearsal(outcome=outcome, version=version, detail=flatten(detail[-300:], 300))


def read_outcome(requests: Iterable[Any], config: Path) -> Literal["refused", "ran", "unknown"]:
    """Read from what the model was sent whether the call was refused; a result that holds the file says it ran."""
    with suppress(OSError):
        lines = [line.strip() for line in config.read_text("utf-8", errors="replace").splitlines()]
        results = [text for request in requests for text in _list_results(request)]
        if any(line in text for text in results for line in lines if len(line) > 5):
            return "ran"
        return "refused" if any(REFUSAL in text for text in results) else "unknown"
    return "unknown"


def _list_results(request: Any) -> Iterator[str]:
    """List the results of tools in a request, of either protocol, as text."""
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
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for child in value.values() if isinstance(value, dict) else value:
            yield from _list_texts(child)


def _make_call(harness: Harness, config: Path) -> ScriptedCall:
    if harness == "claude":
        return ScriptedCall(tool="Read", arguments={"file_path": str(config)}, call_id=_CALL_ID)
    # By a name without quotes in it, since the shell's words are looked at.
    return ScriptedCall(tool="exec_command", arguments={"cmd": f"cat {config}"}, call_id=_CALL_ID)


def _make_command(harness: Harness, program: str, url: str) -> list[str]:
    """Make the command that runs a harness against the scripted model, with nothing but the hook to stop a call."""
    if harness == "claude":
        return [program, "-p", "go", "--output-format", "stream-json", "--verbose", "--allowedTools", "Read"]
    provider = f'{{name="adjudge", base_url="{url}/v1", wire_api="responses", env_key="ADJUDGE_DOCTOR_KEY"}}'
    options = ["-c", 'model_provider="adjudge_doctor"', "-c", f"model_providers.adjudge_doctor={provider}"]
    # Its own sandbox and questions are left out: they would refuse the call as well, and hide that the hook did not.
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
    """Return the variables that send a harness to the scripted model; Codex is told its address by options instead."""
    if harness == "codex":
        return {"ADJUDGE_DOCTOR_KEY": "none"}
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }


def _read_version(program: str) -> str:
    with suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run([program, "--version"], capture_output=True, timeout=60, check=False)  # noqa: S603
        return flatten(done.stdout.decode(errors="replace").strip(), 60) or "of no version"
    return "of no version"
