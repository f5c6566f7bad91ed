"""Running the application with uvicorn: from a checked configuration to the last answer."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn

from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.text import show
from adjudge.server.app import make_app
from adjudge.server.http_protocol import TimedProtocol
from adjudge.server.problem import logger
from adjudge.server.state import StateHolder

if TYPE_CHECKING:
    from adjudge.config.server import ServerSettings


_SWITCH = 0.001
"""Seconds after which a thread that computes lets another one run; Python's own 5 ms are many times an answer."""


async def serve(
    config: Path | None,
    *,
    host: str | None = None,
    port: int | None = None,
    uds: str | None = None,
    uds_mode: str | None = None,
    allow_anonymous: bool = False,
    on_ready: Callable[[str], None] = logger.info,
) -> None:
    """Serve until SIGINT or SIGTERM; SIGHUP reads the configuration again.

    ``on_ready`` gets the address on which it listens, and ``public_url``, once requests are answered. Raises
    ``UsageError`` for a configuration or an address that cannot be used, before anything is answered, and
    ``LedgerError`` when the store fails.
    """
    app = make_app(config, host=host, port=port, uds=uds, uds_mode=uds_mode, allow_anonymous=allow_anonymous)
    holder: StateHolder = app.state.holder
    settings = (await holder.open()).settings
    try:
        listeners = [
            _listen(settings),
            *([] if settings.uds is None else [listen_unix(settings.uds, settings.uds_mode)]),
        ]
    except BaseException:
        await holder.aclose()
        raise
    server = StoppableServer(_configure(app, settings), holder)
    loop = asyncio.get_running_loop()
    reloads: set[asyncio.Task[None]] = set()

    def reload() -> None:
        # A bare task: the set holds it until it is done, and nobody waits for it.
        task = loop.create_task(_reload(holder))
        reloads.add(task)
        task.add_done_callback(reloads.discard)

    with suppress(NotImplementedError):  # Windows has no such signal
        loop.add_signal_handler(signal.SIGHUP, reload)
    # uvicorn raises a signal that it was stopped by once more when all is done; a stop that went well is no failure.
    signal.signal(signal.SIGTERM, lambda *_: None)
    # How long a thread that computes keeps the loop waiting, each time that the loop has something to do.
    sys.setswitchinterval(_SWITCH)
    on_ready(_name_addresses(settings, listeners[0].getsockname()[1]))
    try:
        await server.serve(sockets=listeners)
    finally:
        _remove_socket(settings.uds)


class StoppableServer(uvicorn.Server):
    """uvicorn's server, which says that it stops before it waits for what is under way."""

    def __init__(self, config: uvicorn.Config, holder: StateHolder) -> None:
        super().__init__(config)
        self._holder = holder

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Hand back what only waits, let finish what has begun, and close."""
        self._holder.stop()
        await super().shutdown(sockets)


async def _reload(holder: StateHolder) -> None:
    try:
        state = await holder.reload()
    except AdjudgeError as error:
        logger.error("the configuration was not reloaded, and the old one stays: %s", error)
    except Exception as error:  # noqa: BLE001 - a module that a python: rule names may raise anything
        logger.exception("the configuration was not reloaded, and the old one stays: %s", type(error).__name__)
    else:
        logger.info("the configuration was reloaded: %s, SHA-256 %s", state.config.path, state.config.digest)


def _configure(app: Any, settings: ServerSettings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        # By name: uvicorn would otherwise take httptools where that is installed, which has no limit for heads.
        http=TimedProtocol,
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=list(settings.proxies) or None,
        timeout_graceful_shutdown=settings.shutdown,  # type: ignore[arg-type] - it is given to asyncio.wait_for
        ws="none",
    )


def _name_addresses(settings: ServerSettings, port: int) -> str:
    """Name where it listens, and the address for people and programs where that is another."""
    listening = replace(settings, public_url=None, port=port).base_url
    public = settings.public_url
    named = listening if public is None or public == listening else f"{listening}; open it at {public} (public_url)"
    return named if settings.uds is None else f"{named}; hooks ask at unix:{settings.uds}"


def _listen(settings: ServerSettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        listener = socket.create_server((settings.host, settings.port), family=family, backlog=2_048)
    except OSError as error:
        raise UsageError(
            f"cannot listen on {settings.host} port {settings.port}: {error.strerror}; give another with --port"
        ) from None
    # Named as TCP, for asyncio sends without delay only then. Otherwise the body of an answer waits for the client to
    # confirm its head, which takes 40 ms.
    return socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=listener.detach())


def listen_unix(path: str, mode: str) -> socket.socket:
    """Listen on a Unix socket in a folder in which no other account can put one in its place.

    Raises ``UsageError`` for another folder, for a path where something else is, and where a server listens already.
    """
    place, folder = Path(path), Path(path).parent
    try:
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid not in (0, os.geteuid()) or found.st_mode & 0o022:
            raise UsageError(
                f"the folder of {show(path)} can be changed by other accounts, who could put their own socket there; "
                "use one that only this account can write (mode 0700 or 0750)",
                argument="uds",
            )
        _remove_old(place)
        listener = socket.socket(socket.AF_UNIX)
        try:
            listener.bind(path)
            # Before it listens: nobody can have connected under the mode that the umask gave it.
            place.chmod(int(mode, 8))
            listener.listen(2_048)
        except BaseException:
            listener.close()
            raise
    except OSError as error:
        raise UsageError(
            f"cannot listen on {show(path)}: {error.strerror}; give another with --uds", argument="uds"
        ) from None
    return listener


def _remove_socket(path: str | None) -> None:
    if path is not None:
        Path(path).unlink(missing_ok=True)


def _remove_old(place: Path) -> None:
    """Remove the socket of a server that has ended."""
    if not place.exists() and not place.is_symlink():
        return
    if not place.is_socket() or place.is_symlink():
        raise UsageError(f"{show(str(place))} is there, and is no socket; give another with --uds", argument="uds")
    with socket.socket(socket.AF_UNIX) as other:
        try:
            other.connect(str(place))
        except ConnectionRefusedError:
            place.unlink()
            return
    raise UsageError(f"another server listens on {show(str(place))}; stop it first", argument="uds")
