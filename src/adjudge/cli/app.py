"""The program ``adjudge``: it runs the command that was called, and turns errors into a sentence and an exit status.

Exit status: 0 passed or done, 1 failed or found, 2 wrong usage or unreadable input, 3 undecided, or a provider, the
network or a store failed, 70 adjudge crashed, 130 interrupted. People see a traceback only if adjudge itself is broken.

Which exit status a result has is decided by the ``find_status`` of each command; the one that several share is in
``judge_output.py``.
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
from adjudge.cli.error_messages import begin_call, format_error, spelling_log
from adjudge.cli.exit_status import CRASHED, DONE, INTERRUPTED, UNDECIDED, USAGE
from adjudge.cli.output import complain, flush_streams, note, print_line
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
def _define_program_options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    """Ask judges whether something is good enough, and act on the answer safely."""
    # typer reads the options and the help text of the program from this function; it has nothing to do itself.


@cache
def _make_command() -> Any:
    """Make the object that parses the command line and calls the command, once in a process."""
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
        flush_streams()
    except KeyboardInterrupt:
        status = INTERRUPTED
    except SystemExit as error:
        status = _report_exit(error)
    except Exception as error:  # noqa: BLE001 - the last place that can turn an error into a sentence and a status
        status = _report_error(error)
    if status == INTERRUPTED:
        complain("interrupted")
    return status if isinstance(status, int) else DONE


def _complete(request: str) -> int:
    """Write the script that completes ``adjudge`` in a shell, or, if that script calls, the possible next words.

    ``request`` names the action (``source`` writes the script, ``complete`` the words) and the shell, in either order,
    such as ``source_bash``. Returns the exit status.
    """
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
    except SystemExit as error:  # the library exits when it has written its answer
        return error.code if isinstance(error.code, int) else DONE
    return DONE


def _report_exit(error: SystemExit) -> int:
    """Return the exit status for a ``sys.exit`` in the middle of a command, and complain about it if it is a defect."""
    if isinstance(error.__context__, BrokenPipeError):  # the reader of a help text went away
        return DONE
    # Code that adjudge called, such as a judge in Python, said "exit with 0". That must not be taken for a pass.
    complain("something that adjudge called tried to end the program; take the call of exit out of it")
    return CRASHED


def _report_error(error: Exception) -> int:
    """Write an error to standard error, and return the exit status for it."""
    if isinstance(error, AdjudgeError):
        complain(format_error(error))
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
    """List the long options of the command whose call typer refused with ``error``; hidden ones are left out."""
    command = getattr(getattr(error, "ctx", None), "command", None)
    visible = [parameter for parameter in getattr(command, "params", ()) if not getattr(parameter, "hidden", False)]
    names = [
        name for parameter in visible for name in (*parameter.opts, *parameter.secondary_opts) if name.startswith("--")
    ]
    return [*names, "--help"]


def _list_commands(error: Any) -> list[str]:
    """List the commands of the group whose call typer refused with ``error``."""
    context = getattr(error, "ctx", None)
    return [] if context is None else context.command.list_commands(context)


_EXTRA = re.compile(r"got unexpected extra argument(?:\(s\)|s)? \((.*)\)", re.DOTALL)

_LEDGER = re.compile(r"[\w.:/-]+(\.db|://[\w.:/-]+)")
"""The text that looks like the address of a ledger, and nothing that a terminal or a shell could take for more."""

_NUMBERS = {"float_parsing": "a number", "int_parsing": "a whole number", "int_from_float": "a whole number"}
"""The value that an option needs, by the error with which pydantic refused another one."""


def _explain_argument(error: Any) -> str:
    """Explain in one sentence which argument typer refused, and name the command whose help says more.

    typer's own sentence is kept, except for a text in place of a number, an unknown option or command, and a word too
    many.
    """
    sentence = error.format_message().rstrip(".?").replace(". Did you", "; did you")
    sentence = sentence[:1].lower() + sentence[1:]
    # pydantic's errors, where a value could not be converted to the type of its option.
    conversion_errors = getattr(error.__cause__, "errors", list)()
    needed_number = _NUMBERS.get(conversion_errors[0]["type"]) if conversion_errors else None
    if needed_number is not None:
        sentence = f"{'/'.join(error.param.opts)} must be {needed_number}, got {conversion_errors[0]['input']!r}"
    elif type(error).__name__ == "NoSuchOption":
        nearest = find_nearest(error.option_name, _list_options(error))
        sentence = f"there is no option {error.option_name}" + (f"; did you mean {nearest}" if nearest else "")
    elif (unknown_command := _NO_COMMAND.match(sentence)) is not None:
        nearest = find_nearest(unknown_command[1], _list_commands(error))
        sentence = f"no such command '{unknown_command[1]}'" + (f"; did you mean '{nearest}'" if nearest else "")
    elif (extra_words := _EXTRA.fullmatch(sentence)) is not None:
        sentence = f"{show(extra_words[1])} is not expected here"
        if _LEDGER.fullmatch(extra_words[1]) is not None and "--ledger" in _list_options(error):
            sentence += f"; write --ledger {extra_words[1]}"
    path = error.ctx.command_path if getattr(error, "ctx", None) else "adjudge"
    return f"{sentence}; see {path} --help"
