"""The rule ``commands``: which shell commands an agent may run.

``only`` accepts one simple command and nothing else, so that a reader sees all of what it lets pass. ``never`` searches
for words, and misses some, because a shell has many ways to write a word. Neither parses the shell's language, and
neither sees what a program starts by itself.
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
from adjudge.rules.agent_runs import Check, read_complete_calls
from adjudge.rules.document import read_words
from adjudge.rules.tool_calls import ToolName, fail, fail_call, make_pass, read_tool_names

SHELLS = (
    *("Bash", "BashOutput", "shell", "shell_command", "local_shell", "exec_command", "write_stdin", "container.exec"),
    *("run_shell_command", "run_terminal_cmd", "run_command", "execute_command", "execute_bash", "terminal"),
    *("bash", "sh", "PowerShell", "computer_call"),
)
"""Names that agents have for the tools that run commands; a name that looks like one of these counts too."""

COMMANDS = ("command", "cmd", "script", "input")
"""Arguments that hold the command."""

HARMLESS = frozenset(
    {"description", "timeout", "timeout_ms", "yield_time_ms", "max_output_tokens", "run_in_background", "justification"}
)
"""Arguments that do not change what the command does."""

_WRAPPERS = frozenset(
    """
    env sudo doas su xargs nohup sh bash zsh dash ksh fish csh tcsh pwsh time timeout nice ionice setsid stdbuf exec
    eval command builtin source . busybox watch find parallel ssh script strace ltrace unshare chroot flock coproc
    trap if then else for while until do case function select ! [ [[ alias export set declare typeset local cd pushd
    taskset chrt runuser systemd-run nsenter docker podman cmd powershell
    """.split()  # noqa: SIM905 - as a list it would be fifty lines
)
"""First words that run another command, or that change what its other words mean."""

_SIMPLE = re.compile(r"[A-Za-z0-9_./:@%+,= '\"-]+")
"""Characters of a simple command: no operator, substitution, redirection, escape, pattern, comment or line end."""

_BREAKS = re.compile(r"[\s;&|<>(){}$`,]+")
"""Characters between two words, wherever a shell may begin a new one."""

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
    allowed = None if only is None else [_read_allowed_pattern(text) for text in read_words("commands", "only", only)]
    refused = [] if never is None else [_read_refused_pattern(text) for text in read_words("commands", "never", never)]
    names = read_tool_names("commands", list(SHELLS) if tools is None else tools, key="tools")
    if allowed is None and not refused:
        raise UsageError("rule commands: say which commands may be run by only, or which may not by never")

    def check(content: Any) -> RuleResult:
        all_calls = read_complete_calls(content)
        if isinstance(all_calls, str):
            return fail(all_calls)
        count = 0
        for index, call in enumerate(all_calls):
            if not any(name.resembles(call.tool) for name in names):
                continue
            count += 1
            problem = _find_command_problem(call, allowed, refused)
            if problem is not None:
                return fail_call(problem, all_calls, index, locate_command(call))
        caveat = "; never is a net, and finds what is written plainly" if refused else ""
        commands = "1 command, which" if count == 1 else f"{count:,} commands, all of which"
        return make_pass(f"ran {commands} may be run{caveat}")

    return check


def _find_command_problem(
    call: AgentCall, allowed: Sequence[Sequence[ToolName]] | None, refused: Sequence[Sequence[ToolName]]
) -> str | None:
    """Explain why the command of a call may not be run; ``None`` if it may. ``never`` goes before ``only``."""
    command = read_command(call)
    if command is None:
        return f"the command of a call of {quote(call.tool, 60)} cannot be read"
    for pattern in refused:
        if _contains_command(_list_words(command), pattern):
            return f"ran {quote(command, 80)}, which holds a command that may never be run"
    return None if allowed is None else _explain_unlisted(call, command, allowed)


def _explain_unlisted(call: AgentCall, command: str, allowed: Sequence[Sequence[ToolName]]) -> str | None:
    """Explain why a command is none of the allowed ones; ``None`` if it is one."""
    unknown = next((name for name in call.arguments if name not in (*COMMANDS, *HARMLESS)), None)
    if unknown is not None:
        return f"ran {quote(command, 80)} with the argument {quote(unknown, 40)}, which can change what that does"
    words = read_simple_command(command)
    if words is None:
        return f"ran {quote(command, 80)}, which is not one simple command"
    if any(_fits_pattern(words, pattern) for pattern in allowed):
        return None
    return f"ran {quote(command, 80)}, which is none of the commands that may be run"


def locate_command(call: AgentCall) -> str:
    """Return the path of the argument that holds a call's command, like ``arguments.command``; empty if none does."""
    names = call.arguments if isinstance(call.arguments, dict) else ()
    return next((f"arguments.{name}" for name in COMMANDS if name in names), "")


def read_command(call: AgentCall) -> str | None:
    """Return the command of a call as one text; ``None`` unless exactly one argument holds a command."""
    if not isinstance(call.arguments, dict):
        return None
    values = [call.arguments[name] for name in COMMANDS if name in call.arguments]
    if len(values) != 1:
        return None
    [value] = values
    if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
        # ["bash", "-c", "ls"] runs "ls". The shell is named alone or by its system path: ./bash may be any program.
        is_shell = len(value) == 3 and value[0].removeprefix("/usr").removeprefix("/bin/") in ("bash", "sh", "zsh")
        return value[2] if is_shell and value[1] in ("-c", "-lc") else shlex.join(value)
    return value if isinstance(value, str) else None


# ---------------------------------------------------------------- only


def _read_allowed_pattern(text: str) -> list[ToolName]:
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


def read_simple_command(command: str) -> list[str] | None:
    """Split one simple command into its words; ``None`` for anything that a shell would not run word by word."""
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
    """Return whether each word of a command fits the pattern's word; a last ``**`` accepts any further words."""
    if pattern[-1].text == "**":
        pattern, words = pattern[:-1], words[: len(pattern) - 1]
    return len(words) == len(pattern) and all(name.equals(word) for name, word in zip(pattern, words, strict=True))


# ---------------------------------------------------------------- never


def _read_refused_pattern(text: str) -> list[ToolName]:
    """Split a pattern of ``never`` into words, folded as a command's words are; the text itself if none is left."""
    return [ToolName(word) for word in fold(text).split() or [text]]


def _list_words(command: str) -> list[str]:
    """List everything in a command that a shell may take for a word, also inside quotes and substitutions."""
    return [word for word in _BREAKS.split(fold(command.translate(_QUOTES))) if word]


def _contains_command(words: Sequence[str], pattern: Sequence[ToolName]) -> bool:
    """Return whether the words of a pattern follow each other anywhere in a command.

    The first word is a program, which the command may give by its name or its path.
    """
    program, arguments = pattern[0], pattern[1:]
    for index, word in enumerate(words):
        if not program.equals(word) and not program.equals(word.rpartition("/")[2]):
            continue
        following = words[index + 1 : index + 1 + len(arguments)]
        if len(following) == len(arguments) and all(
            name.equals(text) for name, text in zip(arguments, following, strict=True)
        ):
            return True
    return False
