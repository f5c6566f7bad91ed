"""The rule ``visible``: can everything that an agent's call will do be read in the call?

Nobody can judge ``make deploy`` by its words, and a judge who is asked guesses that it is fine. So a call that runs
code from elsewhere (a script, a build, a package's script, a download, a tool that nobody vouched for) fails, and goes
to people. The rule lists the programs and tools that are known to be safe, since nobody can list all that run code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjudge.agents.step import AgentCall
from adjudge.formats.text import quote
from adjudge.result import RuleResult
from adjudge.rules.agent_runs import Check, read_complete_calls
from adjudge.rules.commands import COMMANDS, HARMLESS, SHELLS, locate_command, read_command, read_simple_command
from adjudge.rules.document import read_words
from adjudge.rules.tool_calls import ToolName, fail, fail_call, make_pass, read_tool_names

_PROGRAMS = frozenset(
    """
    ls cat head tail wc pwd echo stat du df whoami id uname which basename dirname realpath readlink
    diff cmp cut tr uniq nl tac rev fold column comm paste join seq sha256sum sha1sum md5sum cksum tree true
    false mkdir rmdir touch cp mv rm ln chmod
    """.split()  # noqa: SIM905 - as a list it would be fifty lines
)
"""Programs that do what their arguments say, and run nothing else."""

_GIT_READS = frozenset({"rev-parse"})
"""The subcommands of git that run nothing; others run what a repository's configuration or attributes name."""

_TOOLS = (
    *("Read", "Write", "Edit", "MultiEdit", "Glob", "Grep", "LS", "NotebookRead", "NotebookEdit", "TodoWrite"),
    *("read_file", "write_file", "list_directory", "list_files", "view_image"),
)
"""Tools whose arguments say all that they do."""

_TYPED = ("BashOutput", "write_stdin")
"""Tools that type into a program that runs already; which one cannot be read in the call."""

Words = str | list[str]


def make_visible(*, tools: Words | None = None, commands: Words | None = None) -> Check:
    """Make a check that each call is of a tool, or of a simple command, whose arguments say all that it does."""
    names = [ToolName(name) for name in _TOOLS]
    names += [] if tools is None else read_tool_names("visible", tools, key="tools")
    programs = _PROGRAMS if commands is None else _PROGRAMS.union(read_words("visible", "commands", commands))
    shells = [ToolName(name) for name in SHELLS if name not in _TYPED]

    def check(content: Any) -> RuleResult:
        calls = read_complete_calls(content)
        if isinstance(calls, str):
            return fail(calls)
        for index, call in enumerate(calls):
            problem = _find_unclear_call(call, names, shells, programs)
            if problem is not None:
                return fail_call(problem, calls, index, locate_command(call))
        return make_pass(f"what {len(calls):,} calls do can be read in them")

    return check


def _find_unclear_call(
    call: AgentCall, names: Sequence[ToolName], shells: Sequence[ToolName], programs: frozenset[str]
) -> str | None:
    """Explain why a call's arguments do not say all that the call does; ``None`` if they do."""
    if any(name.equals(call.tool) for name in shells):
        return _find_hidden_effect(call, programs)
    if any(name.equals(call.tool) for name in names):
        return None
    return f"what {quote(call.tool, 60)} does cannot be read in its arguments"


def _find_hidden_effect(call: AgentCall, programs: frozenset[str]) -> str | None:
    """Explain why a shell call's command does not show all that it will do; ``None`` if it does."""
    command = read_command(call)
    if command is None:
        return f"the command of a call of {quote(call.tool, 60)} cannot be read"
    if any(name not in (*COMMANDS, *HARMLESS) for name in call.arguments):
        return f"{quote(command, 80)} has arguments beside the command, which can change what that does"
    words = read_simple_command(command)
    if words is None:
        return f"{quote(command, 80)} is not one simple command"
    program, options = words[0], words[1:]
    is_known = program in programs or (program == "git" and bool(options) and options[0] in _GIT_READS)
    if not is_known:
        return f"{quote(command, 80)} runs what cannot be read in it"
    return None
