"""Running the server's application with uvicorn, from reading the configuration to shutting down."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import uvicorn

from adjudge.errors import AdjudgeError
from adjudge.server.app import make_app
from adjudge.server.listening import listen, listen_unix, make_uvicorn_config, name_addresses, remove_socket
from adjudge.server.problem import logger
from adjudge.server.state import StateHolder

_SWITCH = 0.001
"""Seconds after which a thread that computes lets another one run; Python's own 5 ms are many times an answer."""

_YOUNGER_COLLECTIONS = 10_000
"""Collections of younger objects between two of all objects; Python's own 10 are reached several times a second."""


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
            listen(settings),
            *([] if settings.uds is None else [listen_unix(settings.uds, settings.uds_mode)]),
        ]
    except BaseException:
        await holder.aclose()
        raise
    server = StoppableServer(make_uvicorn_config(app, settings), holder)
    loop = asyncio.get_running_loop()
    reloads: set[asyncio.Task[None]] = set()

    def reload() -> None:
        """Start reloading the configuration, when SIGHUP comes."""
        # A bare task: the set holds it until it is done, and nobody waits for it.
        task = loop.create_task(_reload(holder))
        reloads.add(task)
        task.add_done_callback(reloads.discard)

    if sys.platform != "win32":  # which has no such signal
        loop.add_signal_handler(signal.SIGHUP, reload)
    # uvicorn's handler is set before uvicorn does so, for two reasons. A signal may come earlier, and would never stop
    # the server. And uvicorn restores the handler that it found and raises the signal again when it has stopped: with
    # this one, the process does not end as if the signal had killed it.
    signal.signal(signal.SIGTERM, server.handle_exit)
    # The time for which a thread that computes keeps the event loop waiting, each time that the loop has work.
    sys.setswitchinterval(_SWITCH)
    # The objects made until now stay for good, so the garbage collector need not look at them again. It did so with
    # every full collection, which made one page in fifteen take twice as long as the others.
    gc.collect()
    gc.freeze()
    # A full collection stops every thread, for 200 ms where ten requests of many values are held. It frees only objects
    # that refer to each other in a circle, of which answering makes few: all others are freed without it.
    gc.set_threshold(*gc.get_threshold()[:2], _YOUNGER_COLLECTIONS)
    on_ready(name_addresses(settings, listeners[0].getsockname()[1]))
    try:
        await server.serve(sockets=listeners)
    finally:
        remove_socket(settings.uds)


class StoppableServer(uvicorn.Server):
    """uvicorn's server, which tells the application that it stops before it waits for the requests under way."""

    def __init__(self, config: uvicorn.Config, holder: StateHolder) -> None:
        super().__init__(config)
        self._holder = holder

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Refuse the requests that only wait, let those finish that have begun, and close."""
        self._holder.stop()
        await super().shutdown(sockets)


async def _reload(holder: StateHolder) -> None:
    """Reload the configuration; any failure is logged and not raised."""
    try:
        state = await holder.reload()
    except AdjudgeError as error:
        logger.error("the configuration was not reloaded, and the old one stays: %s", error)
    except Exception as error:  # noqa: BLE001 - a module that a python: rule names may raise anything
        logger.exception("the configuration was not reloaded, and the old one stays: %s", type(error).__name__)
    else:
        logger.info("the configuration was reloaded: %s, SHA-256 %s", state.config.path, state.config.digest)
