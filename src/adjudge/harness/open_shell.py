"""``NoOpenShell``: refuses commands that wait for input at a terminal and then do whatever is typed.

Codex lets a model start a program at a terminal and type into it later, and no hook learns what is typed. The search
does not find every such command: it is no parser of shells, and a program can start a shell without showing it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.formats.text import quote
from adjudge.guards.tool_guard.call import ToolCall
from adjudge.guards.tool_guard.screens import Screened

_SHELLS = frozenset("bash sh zsh dash ash fish ksh mksh csh tcsh pwsh powershell rbash busybox".split())  # noqa: SIM905

_INTERPRETERS = frozenset(
    [
        "python",
        "python2",
        "python3",
        "pypy",
        "pypy3",
        "ipython",
        "node",
        "nodejs",
        "deno",
        "bun",
        "ruby",
        "irb",
        "perl",
        "php",
        "lua",
        "luajit",
        "R",
        "julia",
        "ghci",
        "erl",
        "iex",
        "scala",
        "jshell",
        "groovysh",
        "ocaml",
        "sbcl",
        "clisp",
        "guile",
        "racket",
        "tclsh",
        "wish",
        "octave",
        "gnuplot",
        "bc",
        "dc",
    ]
)

_MYSQL = r"-[ABCEGHLNTWXbfinoqrstvw]*[eV]|--(execute|version|help)"

_MONGO = r"-f|--(eval|file|version|help)|[^-].*\.js$"

_CLIENTS: Mapping[str, str] = {
    "psql": r"-[AEWXabenqstwxz01]*[cflV?]|--(command|file|list|version|help)",
    "mysql": _MYSQL,
    "mariadb": _MYSQL,
    "sqlite3": r"--?(version|help)",
    "redis-cli": r"--(eval|scan|bigkeys|memkeys|hotkeys|stat|latency|rdb|pipe|cluster|version|help)",
    "mongo": _MONGO,
    "mongosh": _MONGO,
    "clickhouse-client": r"-q|-V|--(query|queries-file|version|help)",
    "sqlplus": r"-[vVhH]",
}
"""Database clients, each with a pattern of the arguments with which it does not wait for input.

The same letter has different meanings: ``-p`` asks for a password in ``mysql`` and is the port in ``psql``, and ``-h``
is the host in both."""

_CLIENT_OPERANDS: Mapping[str, tuple[int, str]] = {
    "sqlite3": (2, r"--?(cmd|init|separator|newline|nullvalue|mmap|lookaside|pagecache|vfs|maxsize)"),
    "redis-cli": (1, r"-[hpsaunridDtX]|--(user|pass|cert|key|cacert|cacertdir|sni|tls-ciphers)"),
}
"""Clients that do not wait if they have this many operands, and a pattern of their options that take a value."""

_INTERACTIVE_PROGRAMS = frozenset(
    [
        "less",
        "more",
        "most",
        "man",
        "info",
        "vi",
        "vim",
        "nvim",
        "view",
        "ex",
        "ed",
        "nano",
        "pico",
        "emacs",
        "joe",
        "micro",
        "helix",
        "hx",
        "kak",
        "tmux",
        "screen",
        "byobu",
        "script",
        "expect",
        "su",
        "login",
        "telnet",
        "ftp",
        "lftp",
        "nc",
        "ncat",
        "netcat",
        "socat",
        "gdb",
        "lldb",
        "pdb",
        "rlwrap",
        "chsh",
        "visudo",
        "crontab",
        "top",
        "htop",
    ]
)
"""Programs that read commands from the terminal whatever their arguments are."""

_CONTAINERS = frozenset("docker podman nerdctl kubectl oc lxc incus vagrant".split())  # noqa: SIM905

_WRAPPERS = frozenset(
    [
        "env",
        "sudo",
        "doas",
        "nohup",
        "exec",
        "command",
        "builtin",
        "time",
        "timeout",
        "nice",
        "ionice",
        "setsid",
        "stdbuf",
        "unbuffer",
        "xargs",
        "chroot",
        "unshare",
        "then",
        "do",
        "else",
        "if",
        "while",
        "until",
        "!",
        "{",
        "(",
    ]
)

_OPTIONS_WITH_INPUT = ("-c", "-e", "-E", "-f", "-m", "-r", "-p", "-h", "-V", "-x", "--command", "--eval", "--execute",
                       "--file", "--version", "--help", "--print", "--batch", "--check")  # fmt: skip

_HEREDOC = re.compile(
    r"<<-?\s*(?P<quote>['\"]?)(?P<end>\w+)(?P=quote)(?P<rest>[^\n]*)\n.*?(?:\n\s*(?P=end)(?=\s|$)|\Z)", re.DOTALL
)

_SEPARATORS = re.compile(r"(\|\||&&|\|&|[;&|\n])")

_VERSION = re.compile(r"-?[0-9][0-9.]*$")


class NoOpenShell:
    """A screen of calls that refuses commands which would wait for typed input."""

    def __init__(self, tools: Sequence[str] = ("Bash",)) -> None:
        self._tools = tuple(tools)

    async def screen_call(self, call: ToolCall, arguments: Mapping[str, Any], /) -> Screened:
        """Refuse a call of a shell whose command waits for typed input."""
        command = arguments.get("command")
        if call.tool not in self._tools or call.server is not None or not isinstance(command, str):
            return Screened(allowed=True)
        waiting_command = find_open_shell(command)
        if waiting_command is None:
            return Screened(allowed=True)
        detail = f"no_open_shell: {quote(waiting_command, 60)} would wait for input, which no hook is shown"
        return Screened(allowed=False, decided_by="rule", detail=detail)


def find_open_shell(command: str) -> str | None:
    """Find the part of a command that waits for input at the terminal; ``None`` if none is found."""
    # A here-document is the input of its command, which then does not read from the terminal.
    parts = _SEPARATORS.split(_HEREDOC.sub(r"< /dev/null \g<rest>\n", command))
    previous = ""  # the separator before the part
    for index, part in enumerate(parts):
        if index % 2:  # every second part is a separator
            previous = part
        # A command after a pipe reads from the pipe and not from the terminal.
        elif previous not in ("|", "|&") and _waits_for_input(_split_words(part)):
            return part.strip()
    return None


def _split_words(part: str) -> list[str]:
    """Split a simple command into words as a shell does."""
    try:
        return shlex.split(part)
    except ValueError:  # a quote is not closed; the words are checked all the same
        return part.split()


def _waits_for_input(words: Sequence[str]) -> bool:
    """Return whether a simple command would wait for input, as a shell or an interpreter without a script does.

    Assignments, wrappers such as ``sudo`` and ``env``, and their options are skipped until the program is found.
    """
    if any(word.startswith("<") for word in words):
        return False
    words = [word.lstrip("({").rstrip(")") for word in words]
    while words:
        name, *words = words
        program = name.rpartition("/")[2]
        if program in ("sudo", "doas") and any(word in ("-i", "-s", "--login", "--shell") for word in words):
            return True
        if "=" in program or not program or program in _WRAPPERS or program.startswith("-") or program.isdigit():
            continue
        return _reads_terminal(program, words)
    return False


def _reads_terminal(program: str, words: Sequence[str]) -> bool:
    """Return whether a program reads its input from the terminal when it has these words as arguments.

    Each kind of program has its own rule. A program of no known kind counts as one that does not wait.
    """
    # Without its version: python3.12 is python. Names such as sqlite3 end in a digit themselves.
    name = program if program in _SHELLS or program in _CLIENTS else _VERSION.sub("", program)
    if program in _INTERACTIVE_PROGRAMS or name in _INTERACTIVE_PROGRAMS:
        return not {"-batch", "--batch", "-es", "-l", "--version", "--help"} & set(words)
    if name in _SHELLS or name in _INTERPRETERS or program in _INTERPRETERS:
        return "-i" in words or not any(_gives_input(word) for word in words)
    if name in _CLIENTS:
        needed_operands, options_with_value = _CLIENT_OPERANDS.get(name, (None, ""))
        has_operands = needed_operands is not None and len(_list_operands(words, options_with_value)) >= needed_operands
        return not has_operands and not any(re.match(_CLIENTS[name], word) for word in words)
    if name in ("ssh", "mosh", "sftp"):
        return len(_list_operands(words, "-[pilofFJLRDcmw]")) < 2
    if name in _CONTAINERS:
        return any(re.fullmatch(r"-[a-z]*i[a-z]*|--interactive|attach|shell|ssh", word) for word in words)
    return False


def _list_operands(words: Sequence[str], options_with_value: str) -> list[str]:
    """List the words that are neither options nor the values of options that match ``options_with_value``."""
    pairs = zip(("", *words), words, strict=False)
    return [
        word for previous, word in pairs if not word.startswith("-") and not re.fullmatch(options_with_value, previous)
    ]


def _gives_input(word: str) -> bool:
    """Return whether an argument is a script, or an option that gives the program its input."""
    if word in ("-", "-s", "/dev/stdin", "/dev/tty"):
        return False
    if not word.startswith("-"):
        return True
    is_short_group = not word.startswith("--") and word[-1:] in ("c", "e")
    return is_short_group or word.startswith(_OPTIONS_WITH_INPUT)
