"""The application: commands, and what an error becomes on the way out.

Exit status: 0 passed or done, 1 failed or found, 2 wrong usage or unreadable input, 3 undecided, or a provider, the
network or a store failed, 70 adjudge crashed, 130 interrupted. People see a traceback only if adjudge itself is broken.

What a result becomes is the ``find_status`` of each command; the one that several share is in ``results.py``.
"""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from typing import Annotated, Any

import typer

from adjudge import __version__
from adjudge.cli.command_groups import make_command_line
from adjudge.cli.commands.completion import COMPLETE, SHELLS
from adjudge.cli.exit_status import CRASHED, DONE, INTERRUPTED, UNDECIDED, USAGE
from adjudge.cli.output import complain, finish, note, print_line
from adjudge.cli.spelling import begin_call, spell, spelling_log
from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.text import find_nearest, show

app = make_command_line("Ask judges whether something is good enough, and act on the answer safely.")


def _show_version(wanted: bool) -> None:
    if wanted:
        print_line(f"adjudge {__version__}")
        raise typer.Exit


@app.callback(
    epilog="Exit status: 0 passed or done, 1 failed or found, 2 wrong usage or unreadable input, 3 undecided, "
    "or a provider, the network or a store failed, 70 adjudge crashed, 130 interrupted. Of several inputs, 2 beats 1 "
    "beats 3 beats 0."
)
def _top(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    """Ask judges whether something is good enough, and act on the answer safely."""


@cache
def _make_command() -> Any:
    """The command line as what parses it."""
    return typer.main.get_command(app)


def run(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    try:
        if os.environ.get(COMPLETE):
            return _complete(os.environ[COMPLETE])
        command = _make_command()
        begin_call(command, sys.argv[1:] if arguments is None else arguments)
        with spelling_log():
            status = command(args=arguments, standalone_mode=False, prog_name="adjudge")
        finish()
    except KeyboardInterrupt:
        status = INTERRUPTED
    except SystemExit as error:
        status = _end_early(error)
    except Exception as error:  # noqa: BLE001 - the last place that can turn an error into a sentence and a status
        status = _end_with(error)
    if status == INTERRUPTED:
        complain("interrupted")
    return status if isinstance(status, int) else DONE


def _complete(request: str) -> int:
    """Write the script that completes ``adjudge`` in a shell, or, asked by that script, what a line can go on with."""
    action, _, shell = request.partition("_")
    if shell in ("source", "complete"):  # bash_source, as other programs have it
        action, shell = shell, action
    if action not in ("source", "complete") or shell not in SHELLS:
        complain(f"{COMPLETE} is one of {', '.join(f'{name}_source' for name in SHELLS)}; got {show(request)}")
        return USAGE
    from typer.completion import completion_init

    completion_init()
    os.environ[COMPLETE] = f"{action}_{shell}"  # the order that the library reads
    try:
        _make_command()(prog_name="adjudge", standalone_mode=False)
    except SystemExit as error:  # how it ends
        return error.code if isinstance(error.code, int) else DONE
    return DONE


def _end_early(error: SystemExit) -> int:
    if isinstance(error.__context__, BrokenPipeError):  # the reader of a help text went away
        return DONE
    # Somebody's code said "exit with 0", and that must not be taken for a pass.
    complain("something that adjudge called tried to end the program; take the call of exit out of it")
    return CRASHED


def _end_with(error: Exception) -> int:
    """Write an error to standard error, and return the exit status for it."""
    if isinstance(error, AdjudgeError):
        complain(spell(error))
        return USAGE if isinstance(error, UsageError) else UNDECIDED
    if type(error).__name__ == "NoArgsIsHelpError":
        note(str(error))
        return USAGE
    if hasattr(error, "format_message"):  # what typer says about arguments
        complain(_explain_argument(error))
        return USAGE
    import traceback

    traceback.print_exc()
    complain(f"adjudge crashed: {type(error).__name__}: {error}; please report this with the lines above")
    return CRASHED


_NO_COMMAND = re.compile(r"no such command '(.*?)'", re.DOTALL)


def _list_options(error: Any) -> list[str]:
    """The long options of the command that was called, the nearest of which was perhaps meant."""
    command = getattr(getattr(error, "ctx", None), "command", None)
    visible = [parameter for parameter in getattr(command, "params", ()) if not getattr(parameter, "hidden", False)]
    names = [
        name for parameter in visible for name in (*parameter.opts, *parameter.secondary_opts) if name.startswith("--")
    ]
    return [*names, "--help"]


def _list_commands(error: Any) -> list[str]:
    context = getattr(error, "ctx", None)
    return [] if context is None else context.command.list_commands(context)


_EXTRA = re.compile(r"got unexpected extra argument(?:\(s\)|s)? \((.*)\)", re.DOTALL)

_LEDGER = re.compile(r"[\w.:/-]+(\.db|://[\w.:/-]+)")
"""The text that looks like the address of a ledger, and nothing that a terminal or a shell could take for more."""

_NUMBERS = {"float_parsing": "a number", "int_parsing": "a whole number", "int_from_float": "a whole number"}


def _explain_argument(error: Any) -> str:
    """Explain what typer refused, with the value, and where the remedy is."""
    sentence = error.format_message().rstrip(".?").replace(". Did you", "; did you")
    sentence = sentence[:1].lower() + sentence[1:]
    details = getattr(error.__cause__, "errors", list)()
    kind = _NUMBERS.get(details[0]["type"]) if details else None
    if kind is not None:
        sentence = f"{'/'.join(error.param.opts)} must be {kind}, got {details[0]['input']!r}"
    elif type(error).__name__ == "NoSuchOption":
        near = find_nearest(error.option_name, _list_options(error))
        sentence = f"there is no option {error.option_name}" + (f"; did you mean {near}" if near else "")
    elif (named := _NO_COMMAND.match(sentence)) is not None:
        near = find_nearest(named[1], _list_commands(error))
        sentence = f"no such command '{named[1]}'" + (f"; did you mean '{near}'" if near else "")
    elif (extra := _EXTRA.fullmatch(sentence)) is not None:
        sentence = f"{show(extra[1])} is not expected here"
        if _LEDGER.fullmatch(extra[1]) is not None and "--ledger" in _list_options(error):
            sentence += f"; write --ledger {extra[1]}"
    path = error.ctx.command_path if getattr(error, "ctx", None) else "adjudge"
    return f"{sentence}; see {path} --help"
