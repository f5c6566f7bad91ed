"""Commands that wait for input at a terminal and then do whatever is typed. Pure.

Codex lets a model start a program at a terminal and type into it later, and tells no hook what is typed. This is a net
and no parser of shells: a program can start a shell in ways that its command does not show.
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
"""Clients of databases, and the words with which each ends by itself. One letter means another thing to each of them:
``-p`` asks for a password in ``mysql`` and names the port in ``psql``, and ``-h`` names the host in both."""

_CLIENT_OPERANDS: Mapping[str, tuple[int, str]] = {
    "sqlite3": (2, r"--?(cmd|init|separator|newline|nullvalue|mmap|lookaside|pagecache|vfs|maxsize)"),
    "redis-cli": (1, r"-[hpsaunridDtX]|--(user|pass|cert|key|cacert|cacertdir|sni|tls-ciphers)"),
}
"""Clients that end by themselves with so many operands, and the options whose values are none."""

_ALWAYS = frozenset(
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
"""Programs that take commands at a terminal whatever their arguments are."""

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

_RUNS_TEXT = ("-c", "-e", "-E", "-f", "-m", "-r", "-p", "-h", "-V", "-x", "--command", "--eval", "--execute", "--file",
              "--version", "--help", "--print", "--batch", "--check")  # fmt: skip

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
        opened = find_open_shell(command)
        if opened is None:
            return Screened(allowed=True)
        detail = f"no_open_shell: {quote(opened, 60)} would wait for input, which no hook is shown"
        return Screened(allowed=False, decided_by="rule", detail=detail)


def find_open_shell(command: str) -> str | None:
    """Find the part of a command that waits for input at the terminal; ``None`` where none is seen."""
    parts = _SEPARATORS.split(_HEREDOC.sub(r"< /dev/null \g<rest>\n", command))
    previous = ""
    for place, part in enumerate(parts):
        if place % 2:
            previous = part
        # What stands behind a pipe reads from it and not from the terminal.
        elif previous not in ("|", "|&") and _waits(_split_words(part)):
            return part.strip()
    return None


def _split_words(part: str) -> list[str]:
    try:
        return shlex.split(part)
    except ValueError:  # a quote without an end: the words are looked at all the same
        return part.split()


def _waits(words: Sequence[str]) -> bool:
    """Return whether a command would wait for input, as a shell or an interpreter without a script does."""
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
        return _is_open(program, words)
    return False


def _is_open(program: str, words: Sequence[str]) -> bool:
    """Return whether a program waits for typed input when it is called with these words.

    Each kind of program has its own rule. A program of no known kind counts as one that does not wait.
    """
    name = program if program in _SHELLS or program in _CLIENTS else _VERSION.sub("", program)
    if program in _ALWAYS or name in _ALWAYS:
        return not {"-batch", "--batch", "-es", "-l", "--version", "--help"} & set(words)
    if name in _SHELLS or name in _INTERPRETERS or program in _INTERPRETERS:
        return "-i" in words or not any(_gives_input(word) for word in words)
    if name in _CLIENTS:
        most, valued = _CLIENT_OPERANDS.get(name, (None, ""))
        has_operands = most is not None and len(_list_operands(words, valued)) >= most
        return not has_operands and not any(re.match(_CLIENTS[name], word) for word in words)
    if name in ("ssh", "mosh", "sftp"):
        return len(_list_operands(words, "-[pilofFJLRDcmw]")) < 2
    if name in _CONTAINERS:
        return any(re.fullmatch(r"-[a-z]*i[a-z]*|--interactive|attach|shell|ssh", word) for word in words)
    return False


def _list_operands(words: Sequence[str], valued: str) -> list[str]:
    """List the words that are neither options nor the values of those that match ``valued``."""
    pairs = zip(("", *words), words, strict=False)
    return [word for before, word in pairs if not word.startswith("-") and not re.fullmatch(valued, before)]


def _gives_input(word: str) -> bool:
    """Return whether a word is a script, or an option that brings the text to run."""
    if word in ("-", "-s", "/dev/stdin", "/dev/tty"):
        return False
    if not word.startswith("-"):
        return True
    is_short_group = not word.startswith("--") and word[-1:] in ("c", "e")
    return is_short_group or word.startswith(_RUNS_TEXT)
