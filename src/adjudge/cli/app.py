"""The application: commands, and what an error becomes on the way out.

Exit status: 0 passed or done, 1 failed or found, 2 wrong usage or unreadable input, 3 undecided, or a provider, the
network or a store failed, 70 adjudge crashed, 130 interrupted. People see a traceback only if adjudge itself is broken.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from adjudge import __version__
from adjudge.cli.commands.accounts import accounts_app
from adjudge.cli.commands.agree import agree
from adjudge.cli.commands.approvals import approvals_app
from adjudge.cli.commands.batch import batch_app
from adjudge.cli.commands.cache import cache_app
from adjudge.cli.commands.completion import COMPLETE, SHELLS, print_completion
from adjudge.cli.commands.dataset import dataset_app
from adjudge.cli.commands.demo import demo
from adjudge.cli.commands.diff import diff_runs
from adjudge.cli.commands.doctor import doctor
from adjudge.cli.commands.gate import gate_app, resume
from adjudge.cli.commands.init import init
from adjudge.cli.commands.judge import judge
from adjudge.cli.commands.keys import keys_app
from adjudge.cli.commands.label import label
from adjudge.cli.commands.ledger import ledger_app
from adjudge.cli.commands.ledger import report as report_ledger
from adjudge.cli.commands.plan import plan_labels
from adjudge.cli.commands.probe import probe
from adjudge.cli.commands.redecide import redecide_run
from adjudge.cli.commands.report import report
from adjudge.cli.commands.rubric import rubric_app
from adjudge.cli.commands.rules import rules_app
from adjudge.cli.commands.run import run_data
from adjudge.cli.commands.serve import serve
from adjudge.cli.commands.succeed import succeed
from adjudge.cli.commands.tools import review, tools_app, validate
from adjudge.cli.output import complain, finish, note, print_line
from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.text import find_nearest, show

DONE, FAILED, USAGE, UNDECIDED, CRASHED, INTERRUPTED = 0, 1, 2, 3, 70, 130


WIDEST = 160
"""Columns of a help text at most; it takes those of the terminal below that."""

GROUPS = {
    "Everyday": ("judge", "run", "batch", "report", "diff", "redecide"),
    "Measure": ("plan", "label", "agree", "succeed"),
    "Guard": ("gate", "approvals", "rules", "probe", "review", "validate", "tools"),
    "Prove": ("ledger",),
    "Serve": ("serve", "keys", "accounts"),
    "Set up": ("init", "demo", "doctor", "rubric", "dataset", "cache", "completion"),
}
"""Headings of ``adjudge --help``, and the commands under each."""


class ListedCommands(TyperGroup):
    """Commands of a group, each with its whole first sentence: the library cuts it after 45 characters."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write one section."""
        self.write_section(formatter, "Commands", self.list_commands(ctx))

    def write_section(self, formatter: Any, title: str, names: Sequence[str]) -> None:
        """Write these commands under a heading."""
        with formatter.section(title):
            formatter.write_dl([(name, self.commands[name].get_short_help_str(limit=1_000)) for name in names])


class GroupedCommands(ListedCommands):
    """Commands listed under the headings of ``GROUPS``."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write one section for each heading."""
        del ctx
        for group, names in GROUPS.items():
            self.write_section(formatter, group, names)


app = typer.Typer(
    name="adjudge",
    cls=GroupedCommands,
    help="Ask judges whether something is good enough, and act on the answer safely.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDEST},
)

app.command()(judge)

app.command("run")(run_data)

app.add_typer(batch_app, name="batch", cls=ListedCommands)

app.command()(report)

app.command()(label)

app.command()(agree)

app.command()(succeed)

app.command("diff")(diff_runs)

app.command("redecide")(redecide_run)

app.command("plan")(plan_labels)

app.add_typer(gate_app, name="gate", cls=ListedCommands)

gate_app.command("resume")(resume)

app.add_typer(approvals_app, name="approvals", cls=ListedCommands)

app.add_typer(rules_app, name="rules", cls=ListedCommands)

app.command()(probe)

app.command()(review)

app.command()(validate)

app.add_typer(tools_app, name="tools", cls=ListedCommands)

ledger_app.command("report")(report_ledger)

app.add_typer(ledger_app, name="ledger", cls=ListedCommands)

app.command()(serve)

app.add_typer(keys_app, name="keys", cls=ListedCommands)

app.add_typer(accounts_app, name="accounts", cls=ListedCommands)

app.command()(init)

app.command()(demo)

app.command()(doctor)

app.add_typer(rubric_app, name="rubric", cls=ListedCommands)

app.add_typer(dataset_app, name="dataset", cls=ListedCommands)

app.add_typer(cache_app, name="cache", cls=ListedCommands)

app.command("completion")(print_completion)


def _show_version(asked: bool) -> None:
    if asked:
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


def run(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    try:
        if os.environ.get(COMPLETE):
            return _complete(os.environ[COMPLETE])
        status = app(args=arguments, standalone_mode=False, prog_name="adjudge")
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


def _complete(asked: str) -> int:
    """Write the script that completes ``adjudge`` in a shell, or, asked by that script, what a line can go on with."""
    action, _, shell = asked.partition("_")
    if shell in ("source", "complete"):  # bash_source, as other programs have it
        action, shell = shell, action
    if action not in ("source", "complete") or shell not in SHELLS:
        complain(f"{COMPLETE} is one of {', '.join(f'{name}_source' for name in SHELLS)}; got {show(asked)}")
        return USAGE
    from typer.completion import completion_init

    completion_init()
    os.environ[COMPLETE] = f"{action}_{shell}"  # the order that the library reads
    try:
        app(prog_name="adjudge", standalone_mode=False)
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
    if isinstance(error, AdjudgeError):
        complain(str(error))
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
    shown = [item for item in getattr(command, "params", ()) if not getattr(item, "hidden", False)]
    named = [name for item in shown for name in (*item.opts, *item.secondary_opts) if name.startswith("--")]
    return [*named, "--help"]


def _list_commands(error: Any) -> list[str]:
    command = getattr(getattr(error, "ctx", None), "command", None)
    return [name for name, item in getattr(command, "commands", {}).items() if not item.hidden]


_EXTRA = re.compile(r"got unexpected extra argument(?:\(s\)|s)? \((.*)\)", re.DOTALL)

_NUMBERS = {"float_parsing": "a number", "int_parsing": "a whole number", "int_from_float": "a whole number"}


def _explain_argument(error: Any) -> str:
    """What typer found, with the value, and where the remedy is."""
    said = error.format_message().rstrip(".?").replace(". Did you", "; did you")
    said = said[:1].lower() + said[1:]
    found = getattr(error.__cause__, "errors", list)()
    kind = _NUMBERS.get(found[0]["type"]) if found else None
    if kind is not None:
        said = f"{'/'.join(error.param.opts)} must be {kind}, got {found[0]['input']!r}"
    elif type(error).__name__ == "NoSuchOption":
        near = find_nearest(error.option_name, _list_options(error))
        said = f"there is no option {error.option_name}" + (f"; did you mean {near}" if near else "")
    elif (named := _NO_COMMAND.match(said)) is not None:
        near = find_nearest(named[1], _list_commands(error))
        said = f"no such command '{named[1]}'" + (f"; did you mean '{near}'" if near else "")
    elif (extra := _EXTRA.fullmatch(said)) is not None:
        said = f"{show(extra[1])} is not expected here"
    path = error.ctx.command_path if getattr(error, "ctx", None) else "adjudge"
    return f"{said}; see {path} --help"
