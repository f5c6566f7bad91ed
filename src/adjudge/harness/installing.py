"""The command line of the hook, and the settings by which Claude Code and Codex (harnesses) call it.

Codex makes a call if its hook exits with 1, is killed, is late, cannot be started, or exits with 2 and no message, and
Claude Code does so too unless it is configured otherwise. So the command is a shell script that accepts one good
ending, an answer with a mark after it, and turns every other ending into exit 2 with a message.

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

# It has no single quote, backslash or exclamation mark, so that every shell of a harness passes it on unchanged. `$1`
# is the answer for a hook that fails in an event where it must not stop the harness; if empty, the script exits with 2.
_SCRIPT = (
    'f=$1; shift; a=$("$@"); case $?$a in "0{"*"}' + MARK + '") printf %s "${a%' + MARK + '}" && exit 0;; esac; '
    'case $f in ?*) printf %s "$f"; exit 0;; esac; '
    "echo adjudge: this could not be checked, so it is refused >&2; exit 2"
)

_PYTHON_CODE = {
    False: "import signal; signal.alarm({seconds}); from adjudge.cli import main; main()",
    True: "import signal; signal.alarm({seconds}); from adjudge.harness.hook_client import main; main()",
}
"""The code that Python runs; under ``True`` the code that asks a server, which imports very little.

The kernel ends the process by the alarm, whatever Python is doing, before the harness stops waiting.
"""

PATIENCE = 15
"""The seconds that the harness waits longer than the hook may take."""

_UNANSWERED = warn_user("adjudge: this answer could not be checked")

_OWN_CODE = ("from adjudge.cli import main; main()", "from adjudge.harness.hook_client import main; main()")
"""Code in the commands of our hooks, by which the hooks of an earlier installation are recognised."""


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
    """Write the command line of the hook for an event, quoted for a shell."""
    check = ["hook", "check", "--seal", "--for", installation.harness, "--config", str(installation.config)]
    check += ["--digest", installation.digest]
    check += ["--managed"] * installation.managed
    # If a server is asked, the server runs the configuration's code, and the hook runs none.
    check += ["--allow-python"] * (installation.allow_python and not installation.asks_server)
    code = _PYTHON_CODE[installation.asks_server].format(seconds=installation.seconds)
    # Codex sends an answer back each time its hook refuses it, so a broken hook would keep the agent at work for ever.
    fallback = json.dumps(_UNANSWERED) if event == "Stop" else ""
    return shlex.join([SHELL, "-c", _SCRIPT, "adjudge-hook", fallback, installation.python, "-I", "-c", code, *check])


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
    all_groups = {event: _drop_own_hooks(groups) for event, groups in hooks.items()}
    for event, groups in make_hooks(installation).items():
        all_groups[event] = [*groups, *all_groups.get(event, [])]
    settings["hooks"] = {event: groups for event, groups in all_groups.items() if groups}
    if installation.managed:
        settings["allowManagedHooksOnly"] = True
    return json.dumps(settings, indent=2, ensure_ascii=False) + "\n"


def _drop_own_hooks(groups: Sequence[Any]) -> list[Any]:
    """Return the groups of hooks of one event without our hooks of an earlier installation, and no empty groups."""
    other_groups: list[Any] = []
    for group in groups:
        hooks = group.get("hooks") if isinstance(group, Mapping) else None
        if not isinstance(hooks, list):
            other_groups.append(group)
            continue
        others = [hook for hook in hooks if not (isinstance(hook, Mapping) and _is_own_hook(hook))]
        other_groups += [{**group, "hooks": others}] if others else []
    return other_groups


def _is_own_hook(hook: Mapping[str, Any]) -> bool:
    """Return whether a hook in the settings is one of ours."""
    command = str(hook.get("command"))
    return any(part in command for part in _OWN_CODE)
