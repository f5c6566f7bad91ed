"""``adjudge completion``: the script with which a shell completes commands and options."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from adjudge.cli.output import is_terminal, note, print_line
from adjudge.errors import UsageError
from adjudge.formats.text import show

COMPLETE = "_ADJUDGE_COMPLETE"
"""The environment variable by which a shell asks for completions."""

SHELLS = ("bash", "zsh", "fish")

_INSTALL_COMMANDS = {
    "bash": """echo 'eval "$(adjudge completion bash)"' >> ~/.bashrc""",
    "zsh": """echo 'eval "$(adjudge completion zsh)"' >> ~/.zshrc    (after the line with compinit)""",
    "fish": "adjudge completion fish > ~/.config/fish/completions/adjudge.fish",
}


def print_completion(shell: Annotated[str, typer.Argument(metavar="SHELL", hidden=True)]) -> None:
    """Write the completion script of a shell.

    $ adjudge completion bash

    SHELL is bash, zsh or fish. Commands and options are completed. On a terminal, a line on standard error says where
    to put the script.
    """
    if shell not in SHELLS:
        raise UsageError(f"there is no completion for {show(shell)}; name one of {', '.join(SHELLS)}")
    from typer.completion import get_completion_script

    print_line(get_completion_script(prog_name="adjudge", complete_var=COMPLETE, shell=shell))
    if is_terminal(sys.stdout):  # not where a shell's configuration evaluates the script each time it starts
        note(f"to have it in every shell:  {_INSTALL_COMMANDS[shell]}")
