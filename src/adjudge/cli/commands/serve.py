"""``adjudge serve``: serve gates, approvals and labels over HTTP until a signal stops the server."""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Annotated

import typer

from adjudge.cli import options as option
from adjudge.cli.exit_status import DONE
from adjudge.cli.output import note
from adjudge.errors import UsageError


def serve(
    config: option.ConfigFile = None,
    host: Annotated[
        str | None,
        typer.Option("--host", metavar="H", help="Where to listen.  [default: 127.0.0.1, this machine alone]"),
    ] = None,
    port: Annotated[int | None, typer.Option("--port", metavar="P", help="The port.  [default: 8318]")] = None,
    uds: Annotated[
        str | None,
        typer.Option("--uds", metavar="PATH", help="A Unix socket to listen on too, for hooks of this machine."),
    ] = None,
    uds_mode: Annotated[
        str | None,
        typer.Option("--uds-mode", metavar="M", help="Who may connect: 0600 this account, or 0660 its group too."),
    ] = None,
    allow_anonymous: Annotated[
        bool,
        typer.Option(
            "--allow-anonymous", help="Let requests without a key judge and read. Only on this machine's own addresses."
        ),
    ] = False,
) -> int:
    """Serve the gates of adjudge.toml, its approvals and its labels over HTTP.

    $ adjudge serve

    Programs need a key (adjudge keys create), people an account (adjudge accounts add). [server] of adjudge.toml says
    where to listen and sets the limits.

    SIGHUP reads the configuration again; if it is wrong, the old one stays. SIGTERM and SIGINT stop the server: what
    waits is handed back with 503, and what is being judged is finished.

    Exit status: 0 stopped, 2 a configuration or an address that cannot be used, 3 the ledger cannot be used, 130
    interrupted.
    """
    check_installed()
    from adjudge.server.log_format import RecordFormatter
    from adjudge.server.serving import serve as run_server

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(RecordFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.INFO)
    asyncio.run(
        run_server(
            config,
            host=host,
            port=port,
            uds=uds,
            uds_mode=uds_mode,
            allow_anonymous=allow_anonymous,
            on_ready=lambda url: note(f"adjudge serves on {url}; interrupt it to stop"),
        )
    )
    return DONE


def check_installed(noun: str = "the server") -> None:
    """Raise ``UsageError`` if the packages of the extra ``adjudge[server]`` are not installed.

    ``noun`` names what needs them, and begins the message.
    """
    from importlib.util import find_spec

    missing = [
        name for name in ("fastapi", "uvicorn", "argon2", "multipart", "prometheus_client") if not find_spec(name)
    ]
    if missing:
        raise UsageError(
            f"{noun} needs {', '.join(missing)}, which this installation does not have; to have it, "
            "pip install 'adjudge[server]'"
        )
