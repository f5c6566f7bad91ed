"""The hook as a harness is told of it: one command for both, and the settings that name it. Pure.

Codex makes a call when its hook exits with 1, is killed, is late, cannot be started, or exits with 2 in silence, and
Claude Code does so unless it is told otherwise. So the command is a shell script that knows one good ending, an answer
with a mark behind it, and turns each other into exit 2 with a word.

The digest in the command is computed in ``config/hook_binding.py`` (``digest_installed``).
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adjudge.errors import UsageError
from adjudge.formats.json import read_json
from adjudge.formats.text import show
from adjudge.harness.answers import warn_user
from adjudge.harness.events import Harness
from adjudge.harness.hook_client import MARK

SHELL = "/bin/sh"

# No single quote, backslash or history sign, so that the shell of the harness, whichever it is, hands it over as it is.
# `$1` is what is answered where no ending may stop the harness; empty, the script ends with 2.
_SCRIPT = (
    'f=$1; shift; a=$("$@"); case $?$a in "0{"*"}' + MARK + '") printf %s "${a%' + MARK + '}" && exit 0;; esac; '
    'case $f in ?*) printf %s "$f"; exit 0;; esac; '
    "echo adjudge: this could not be checked, so it is refused >&2; exit 2"
)

_STARTS = {
    False: "import signal; signal.alarm({seconds}); from adjudge.cli import main; main()",
    True: "import signal; signal.alarm({seconds}); from adjudge.harness.hook_client import main; main()",
}
"""The code that Python runs, by whether a server is asked, for which nearly nothing is imported.

The alarm ends the process in the kernel, whatever Python is busy with, before the harness stops waiting.
"""

PATIENCE = 15
"""Seconds for which the harness waits longer than the hook may take."""

_UNANSWERED = warn_user("adjudge: this answer could not be checked")

_OWN = ("from adjudge.cli import main; main()", "from adjudge.harness.hook_client import main; main()")
"""Parts of commands of ours, by one of which those of an earlier installation are found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """The command that a harness is to call, and the events for which it calls it."""

    harness: Harness
    python: str
    """The absolute path of the interpreter that has adjudge."""
    config: Path
    digest: str
    seconds: int
    """Seconds that one answer may take."""
    events: tuple[str, ...]
    managed: bool = False
    allow_python: bool = False
    asks_server: bool = False
    """True if the configuration names a server, which is asked by a program that imports little."""


def list_events(harness: Harness, *, prompts: bool, answers: bool, observes: bool) -> tuple[str, ...]:
    """List the events of a harness that the hook is called for.

    A guard that may only observe says so when a session starts.
    """
    events = ["PreToolUse", "PostToolUse", *(["PostToolUseFailure"] if harness == "claude" else [])]
    start = ["SessionStart"] if observes else []
    return (*start, *events, *(["UserPromptSubmit"] if prompts else []), *(["Stop"] if answers else []))


def write_command(installation: Installation, event: str) -> str:
    """Write the command line for an event, for whichever shell the harness has."""
    check = ["hook", "check", "--seal", "--for", installation.harness, "--config", str(installation.config)]
    check += ["--digest", installation.digest]
    check += ["--managed"] * installation.managed
    # Where a server is asked, the code is the server's, and the hook runs none.
    check += ["--allow-python"] * (installation.allow_python and not installation.asks_server)
    start = _STARTS[installation.asks_server].format(seconds=installation.seconds)
    # Codex sends an answer back as often as its hook refuses it: a broken hook would keep the agent at work for ever.
    fallback = json.dumps(_UNANSWERED) if event == "Stop" else ""
    return shlex.join([SHELL, "-c", _SCRIPT, "adjudge-hook", fallback, installation.python, "-I", "-c", start, *check])


def make_hooks(installation: Installation) -> dict[str, Any]:
    """Make the hooks of the settings of either harness, by event."""
    hooks: dict[str, Any] = {}
    for event in installation.events:
        hook: dict[str, Any] = {
            "type": "command",
            "command": write_command(installation, event),
            "timeout": installation.seconds + PATIENCE,
        }
        if installation.harness == "claude" and event not in ("Stop", "SessionStart"):
            hook["onFailure"] = "block"
        has_tool = event.endswith(("ToolUse", "ToolUseFailure"))
        hooks[event] = [{**({"matcher": "*"} if has_tool else {}), "hooks": [hook]}]
    return hooks


def merge_settings(text: str | None, installation: Installation) -> str:
    """Write settings with the hooks of an installation, in place of those of an earlier one.

    Raises ``UsageError`` for settings that cannot be read, so that nothing in them is lost.
    """
    try:
        settings: Any = {} if text is None or not text.strip() else read_json(text)
    except ValueError as error:
        raise UsageError(f"the settings are no JSON ({error}); mend them first") from None
    hooks = settings.get("hooks", {}) if isinstance(settings, dict) else None
    if not isinstance(hooks, dict) or not all(isinstance(groups, list) for groups in hooks.values()):
        raise UsageError(f"the settings have hooks in a form that is not known, {show(hooks)}; mend them first")
    kept = {event: _drop_own(groups) for event, groups in hooks.items()}
    for event, groups in make_hooks(installation).items():
        kept[event] = [*groups, *kept.get(event, [])]
    settings["hooks"] = {event: groups for event, groups in kept.items() if groups}
    if installation.managed:
        settings["allowManagedHooksOnly"] = True
    return json.dumps(settings, indent=2, ensure_ascii=False) + "\n"


def _drop_own(groups: Sequence[Any]) -> list[Any]:
    """Leave out the hooks of an earlier installation."""
    kept: list[Any] = []
    for group in groups:
        hooks = group.get("hooks") if isinstance(group, Mapping) else None
        if not isinstance(hooks, list):
            kept.append(group)
            continue
        others = [hook for hook in hooks if not (isinstance(hook, Mapping) and _is_own(hook))]
        kept += [{**group, "hooks": others}] if others else []
    return kept


def _is_own(hook: Mapping[str, Any]) -> bool:
    command = str(hook.get("command"))
    return any(part in command for part in _OWN)
