"""Listening at an address, and uvicorn as every server here runs it."""

from __future__ import annotations

import os
import socket
import stat
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvicorn

from adjudge.config.server import ServerSettings
from adjudge.errors import Argument, UsageError
from adjudge.formats.text import show
from adjudge.server.http_protocol import TimedProtocol


def make_uvicorn_config(app: Any, settings: ServerSettings) -> uvicorn.Config:
    """Make the configuration with which an application is served."""
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


def name_addresses(settings: ServerSettings, port: int) -> str:
    """Write in one line where the server listens, and the other addresses at which people and hooks reach it."""
    listening = replace(settings, public_url=None, port=port).base_url
    public = settings.public_url
    text = listening if public is None or public == listening else f"{listening}; open it at {public} (public_url)"
    return text if settings.uds is None else f"{text}; hooks ask at unix:{settings.uds}"


def listen(settings: ServerSettings) -> socket.socket:
    """Listen at the address of the settings; raises ``UsageError`` where that cannot be done."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        listener = socket.create_server((settings.host, settings.port), family=family, backlog=2_048)
    except OSError as error:
        raise UsageError(
            f"cannot listen on {settings.host} port {settings.port}: {error.strerror}; give another with ",
            Argument("port"),
            argument="port",
        ) from None
    # Made anew with the protocol TCP named, because asyncio sends without delay (TCP_NODELAY) only then. Otherwise the
    # body of an answer waits until the client has confirmed the head, which takes 40 ms.
    return socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=listener.detach())


def listen_unix(path: str, mode: str) -> socket.socket:
    """Listen on a Unix socket, in a folder in which no other account could replace it by a socket of its own.

    Raises ``UsageError`` for another folder, for a path where something else is, where a server listens already, and on
    Windows.
    """
    if sys.platform == "win32":
        raise UsageError("Python has no Unix sockets on Windows; leave uds out, and use a port", argument="uds")
    socket_path, folder = Path(path), Path(path).parent
    try:
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid not in (0, os.geteuid()) or status.st_mode & 0o022:
            raise UsageError(
                f"the folder of {show(path)} can be changed by other accounts, who could put their own socket there; "
                "use one that only this account can write (mode 0700 or 0750)",
                argument="uds",
            )
        _remove_stale_socket(socket_path)
        listener = socket.socket(socket.AF_UNIX)
        try:
            listener.bind(path)
            # Before it listens: nobody can have connected under the mode that the umask gave it.
            socket_path.chmod(int(mode, 8))
            listener.listen(2_048)
        except BaseException:
            listener.close()
            raise
    except OSError as error:
        raise UsageError(
            f"cannot listen on {show(path)}: {error.strerror}; give another with ", Argument("uds"), argument="uds"
        ) from None
    return listener


def remove_socket(path: str | None) -> None:
    """Remove the Unix socket that a server listened on."""
    if path is not None:
        Path(path).unlink(missing_ok=True)


def _remove_stale_socket(socket_path: Path) -> None:
    """Remove the socket file that a server left behind, if there is one.

    Raises ``UsageError`` where a server still listens, or the file is no socket.
    """
    if not socket_path.exists() and not socket_path.is_symlink():
        return
    if not socket_path.is_socket() or socket_path.is_symlink():
        raise UsageError(
            f"{show(str(socket_path))} is there, and is no socket; give another with ", Argument("uds"), argument="uds"
        )
    with socket.socket(socket.AF_UNIX) as other:
        try:
            other.connect(str(socket_path))
        except ConnectionRefusedError:
            socket_path.unlink()
            return
    raise UsageError(f"another server listens on {show(str(socket_path))}; stop it first", argument="uds")
