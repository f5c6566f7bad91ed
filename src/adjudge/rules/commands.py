"""The rule ``commands``: what an agent's shell was told to run.

``only`` accepts one simple command and nothing else, so what it lets pass can be read in it. ``never`` is a net: it
looks for words, and a shell has many ways to write one. Neither is a parser of shells, and neither sees what a program
starts by itself.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any

from adjudge.agents.step import AgentCall
from adjudge.errors import UsageError
from adjudge.formats.folding import fold
from adjudge.formats.text import quote, show
from adjudge.result import RuleResult
from adjudge.rules.agent_runs import Check, read_calls_of
from adjudge.rules.document import read_words
from adjudge.rules.tool_calls import ToolName, fail, fail_call, pass_, read_tool_names

SHELLS = (
    *("Bash", "BashOutput", "shell", "shell_command", "local_shell", "exec_command", "write_stdin", "container.exec"),
    *("run_shell_command", "run_terminal_cmd", "run_command", "execute_command", "execute_bash", "terminal"),
    *("bash", "sh", "PowerShell", "computer_call"),
)
"""Tools that run commands, by the names that agents have for them; what resembles one is one too."""

COMMANDS = ("command", "cmd", "script", "input")
"""Arguments that hold the command."""

HARMLESS = frozenset(
    {"description", "timeout", "timeout_ms", "yield_time_ms", "max_output_tokens", "run_in_background", "justification"}
)
"""Arguments beside the command that change nothing of what it does."""

_WRAPPERS = frozenset(
    """
    env sudo doas su xargs nohup sh bash zsh dash ksh fish csh tcsh pwsh time timeout nice ionice setsid stdbuf exec
    eval command builtin source . busybox watch find parallel ssh script strace ltrace unshare chroot flock coproc
    trap if then else for while until do case function select ! [ [[ alias export set declare typeset local cd pushd
    taskset chrt runuser systemd-run nsenter docker podman cmd powershell
    """.split()  # noqa: SIM905 - as a list it would be fifty lines
)
"""First words that run another command, or change what the words of one mean."""

_SIMPLE = re.compile(r"[A-Za-z0-9_./:@%+,= '\"-]+")
"""Characters of a simple command: no operator, substitution, redirection, escape, pattern, comment or line end."""

_BREAKS = re.compile(r"[\s;&|<>(){}$`,]+")

_QUOTES = str.maketrans("", "", "'\"\\")


def make_commands(
    *,
    only: str | list[str] | None = None,
    never: str | list[str] | None = None,
    tools: str | list[str] | None = None,
) -> Check:
    """Make a check of the commands that an agent ran: each one of ``only``, none of ``never``.

    Raises ``UsageError``.
    """
    allowed = None if only is None else [_read_allowed(text) for text in read_words("commands", "only", only)]
    refused = [] if never is None else [_read_refused(text) for text in read_words("commands", "never", never)]
    names = read_tool_names("commands", list(SHELLS) if tools is None else tools, key="tools")
    if allowed is None and not refused:
        raise UsageError("rule commands: say which commands may be run by only, or which may not by never")

    def check(content: Any) -> RuleResult:
        all_calls = read_calls_of(content)
        if isinstance(all_calls, str):
            return fail(all_calls)
        chosen = [place for place, call in enumerate(all_calls) if any(name.resembles(call.tool) for name in names)]
        for place in chosen:
            problem = _find_problem(all_calls[place], allowed, refused)
            if problem is not None:
                return fail_call(problem, all_calls, place, locate_command(all_calls[place]))
        net = "; never is a net, and finds what is written plainly" if refused else ""
        commands = "1 command, which" if len(chosen) == 1 else f"{len(chosen):,} commands, all of which"
        return pass_(f"ran {commands} may be run{net}")

    return check


def _find_problem(
    call: AgentCall, allowed: Sequence[Sequence[ToolName]] | None, refused: Sequence[Sequence[ToolName]]
) -> str | None:
    """Return why the command of a call may not be run, ``never`` first; ``None`` where it may."""
    command = read_command(call)
    if command is None:
        return f"the command of a call of {quote(call.tool, 60)} cannot be read"
    for pattern in refused:
        if _holds_program(_list_words(command), pattern):
            return f"ran {quote(command, 80)}, which holds a command that may never be run"
    return None if allowed is None else _find_unlisted(call, command, allowed)


def _find_unlisted(call: AgentCall, command: str, allowed: Sequence[Sequence[ToolName]]) -> str | None:
    """Say why a command is none of those that may be run, or return ``None`` for one that is."""
    other = next((name for name in call.arguments if name not in (*COMMANDS, *HARMLESS)), None)
    if other is not None:
        return f"ran {quote(command, 80)} with the argument {quote(other, 40)}, which can change what that does"
    words = read_simple(command)
    if words is None:
        return f"ran {quote(command, 80)}, which is not one simple command"
    if any(_fits_pattern(words, pattern) for pattern in allowed):
        return None
    return f"ran {quote(command, 80)}, which is none of the commands that may be run"


def locate_command(call: AgentCall) -> str:
    """Return the place of a call's command, as findings name it; empty where there is none."""
    names = call.arguments if isinstance(call.arguments, dict) else ()
    return next((f"arguments.{name}" for name in COMMANDS if name in names), "")


def read_command(call: AgentCall) -> str | None:
    """Read the one command of a call; ``None`` where there is none, or more than one argument could be it."""
    if not isinstance(call.arguments, dict):
        return None
    values = [call.arguments[name] for name in COMMANDS if name in call.arguments]
    if len(values) != 1:
        return None
    [value] = values
    if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
        # By its own name, or where a system has it: ./bash is somebody's program.
        is_shell = len(value) == 3 and value[0].removeprefix("/usr").removeprefix("/bin/") in ("bash", "sh", "zsh")
        return value[2] if is_shell and value[1] in ("-c", "-lc") else shlex.join(value)
    return value if isinstance(value, str) else None


# ---------------------------------------------------------------- only


def _read_allowed(text: str) -> list[ToolName]:
    """Read a pattern of ``only``, word by word.

    Raises ``UsageError`` for a program that runs others, since that would allow anything, and for signs of a shell.
    """
    words = text.split()
    first = words[0]
    if "*" in first:
        raise UsageError(f"rule commands: the first word of only names a program, without *; got {show(text)}")
    if first.rpartition("/")[2] in _WRAPPERS:
        raise UsageError(f"rule commands: {show(first)} runs other commands, so only cannot allow it; got {show(text)}")
    if any("**" in word for word in words[:-1]) or ("**" in words[-1] and words[-1] != "**"):
        raise UsageError(f"rule commands: ** is the last word, for any further words; got {show(text)}")
    if not _SIMPLE.fullmatch(text.replace("*", "x")) or "'" in text or '"' in text:
        raise UsageError(f"rule commands: only takes words of one simple command, without signs; got {show(text)}")
    return [ToolName(word) for word in words]


def read_simple(command: str) -> list[str] | None:
    """Read the words of one simple command; ``None`` for anything that a shell would do more with."""
    if not _SIMPLE.fullmatch(command) or command != command.strip(" "):
        return None
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    if not words or "=" in words[0] or words[0].rpartition("/")[2] in _WRAPPERS:
        return None
    return words


def _fits_pattern(words: Sequence[str], pattern: Sequence[ToolName]) -> bool:
    if pattern[-1].text == "**":
        pattern, words = pattern[:-1], words[: len(pattern) - 1]
    return len(words) == len(pattern) and all(name.equals(word) for name, word in zip(pattern, words, strict=True))


# ---------------------------------------------------------------- never


def _read_refused(text: str) -> list[ToolName]:
    return [ToolName(word) for word in fold(text).split() or [text]]


def _list_words(command: str) -> list[str]:
    """List everything in a command that a shell may take for a word, quoted or not, in whatever it stands."""
    return [word for word in _BREAKS.split(fold(command.translate(_QUOTES))) if word]


def _holds_program(words: Sequence[str], pattern: Sequence[ToolName]) -> bool:
    """Return whether the words of a command hold a program, by its name or its path, with these words behind it."""
    first, rest = pattern[0], pattern[1:]
    for place, word in enumerate(words):
        if not first.equals(word) and not first.equals(word.rpartition("/")[2]):
            continue
        following = words[place + 1 : place + 1 + len(rest)]
        if len(following) == len(rest) and all(name.equals(text) for name, text in zip(rest, following, strict=True)):
            return True
    return False
