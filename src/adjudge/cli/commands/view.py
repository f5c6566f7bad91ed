"""``adjudge view``: show runs in a browser, only to the person who started the command."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from adjudge.cli.commands.serve import check_installed
from adjudge.cli.exit_status import DONE
from adjudge.cli.output import note, print_line


def view_runs(
    runs: Annotated[list[Path] | None, typer.Argument(metavar="[RUN]...", hidden=True)] = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Open no browser; open the address that is printed yourself.")
    ] = False,
    port: Annotated[
        int, typer.Option("--port", metavar="P", show_default=False, help="The port.  [default: one that is free]")
    ] = 0,
) -> int:
    """Look at runs in a browser: figures, cases, comparisons; read only, on this machine.

    $ adjudge view runs/monday

    RUN is a folder that `adjudge run` wrote; without any, the runs in this folder and in its folder `runs` are shown,
    also those that come later. Reload a page to see new cases of a run in progress.

    Needs no ledger, account or password. The address that is printed holds a secret and works once: the browser that
    opens it first may read, and nobody else on this machine. Ctrl-C ends it.

    Exit status: 0 ended, 2 a folder without a run, or nothing to listen on.
    """
    check_installed("adjudge view")
    from adjudge.server.view_command import find_named_runs, find_runs_below, view

    # A function that lists the runs to show; without RUN, it finds those that come later too.
    list_runs = partial(find_runs_below, Path.cwd()) if not runs else partial(dict, find_named_runs(runs))

    def print_address(address: str) -> None:
        print_line(address)
        note("it works once, in the browser that opens it first; Ctrl-C ends this")

    asyncio.run(view(list_runs, opens=not no_browser, on_ready=print_address, port=port))
    return DONE
