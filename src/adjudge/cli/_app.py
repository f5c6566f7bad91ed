"""The application: commands, and what an error becomes on the way out.

Exit status: 0 passed or done, 1 failed or found, 2 wrong usage or unreadable input, 3 undecided or the world failed,
70 adjudge crashed, 130 interrupted. A person never sees a traceback unless adjudge itself is broken.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from adjudge import __version__
from adjudge.cli._approvals import approvals_app
from adjudge.cli._audit import report as report_ledger
from adjudge.cli._cache import cache_app
from adjudge.cli._dataset import dataset_app
from adjudge.cli._demo import demo
from adjudge.cli._diff import diff_runs
from adjudge.cli._doctor import doctor
from adjudge.cli._gate import gate_app
from adjudge.cli._judge import judge
from adjudge.cli._ledger import ledger_app
from adjudge.cli._output import complain, finish, note, say
from adjudge.cli._probe import probe
from adjudge.cli._redecide import redecide_run
from adjudge.cli._report import report
from adjudge.cli._resume import resume
from adjudge.cli._review import review
from adjudge.cli._rubric import rubric_app
from adjudge.cli._rules import rules_app
from adjudge.cli._run import run_data
from adjudge.cli._tools import tools_app
from adjudge.cli._validate import validate
from adjudge.errors import AdjudgeError, UsageError

DONE, FAILED, USAGE, UNDECIDED, CRASHED, INTERRUPTED = 0, 1, 2, 3, 70, 130

app = typer.Typer(
    name="adjudge",
    help="Ask judges whether something is good enough, and act on the answer safely.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(judge)
app.command("run")(run_data)
app.command("diff")(diff_runs)
app.command("redecide")(redecide_run)
app.add_typer(rubric_app, name="rubric")
app.add_typer(rules_app, name="rules")
app.add_typer(gate_app, name="gate")
gate_app.command("resume")(resume)
app.add_typer(approvals_app, name="approvals")
ledger_app.command("report")(report_ledger)
app.add_typer(ledger_app, name="ledger")
app.add_typer(dataset_app, name="dataset")
app.add_typer(cache_app, name="cache")
app.command()(report)
app.command()(demo)
app.command()(doctor)
app.command()(probe)
app.command()(review)
app.command()(validate)
app.add_typer(tools_app, name="tools")


def _show_version(asked: bool) -> None:
    if asked:
        say(f"adjudge {__version__}")
        raise typer.Exit


@app.callback(
    epilog="Exit status: 0 passed or done, 1 failed or found, 2 wrong usage or unreadable input, 3 undecided or the "
    "world failed, 70 adjudge crashed, 130 interrupted. Of several inputs, 2 beats 1 beats 3 beats 0."
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


_NUMBERS = {"float_parsing": "a number", "int_parsing": "a whole number", "int_from_float": "a whole number"}


def _explain_argument(error: Any) -> str:
    """What typer found, with the value, and where the remedy stands."""
    said = error.format_message().rstrip(".?").replace(". Did you", "; did you")
    said = said[:1].lower() + said[1:]
    found = getattr(error.__cause__, "errors", list)()
    kind = _NUMBERS.get(found[0]["type"]) if found else None
    if kind is not None:
        said = f"{'/'.join(error.param.opts)} must be {kind}, got {found[0]['input']!r}"
    elif type(error).__name__ == "NoSuchOption":
        near = getattr(error, "possibilities", None)
        said = f"there is no option {error.option_name}" + (f"; did you mean {min(near)}" if near else "")
    path = error.ctx.command_path if getattr(error, "ctx", None) else "adjudge"
    return f"{said}; see {path} --help"
