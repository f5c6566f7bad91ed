"""The state of a server: the configuration, its gates, the ledger and the approvals; replaced whole on a reload."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol, TypeVar

from fastapi import Depends
from starlette.requests import HTTPConnection

from adjudge.config.file import Config, read_config
from adjudge.config.gates import check_gate_ready, open_approvals, open_gate
from adjudge.config.ledger import CommandRecorder, open_ledger
from adjudge.config.server import ServerSettings, check_anonymous, read_server
from adjudge.errors import UsageError
from adjudge.formats.text import flatten
from adjudge.guards.approval.approvals import Approvals
from adjudge.guards.gate import Gate
from adjudge.hooks import logger
from adjudge.labels.queue import LabelQueue
from adjudge.ledger.ledger import Ledger
from adjudge.server.database import make_tables
from adjudge.server.hooks import ServerHooks, open_hooks
from adjudge.server.key_cache import KeyCache
from adjudge.server.links import make_linker
from adjudge.server.problem import Problem
from adjudge.server.run_folders import LabelQueues, explain_trouble, scan_folder
from adjudge.server.run_library import RunLibrary
from adjudge.server.server_judges import ServerJudges, open_judges
from adjudge.server.sign_in_throttle import SignInThrottle
from adjudge.server.work_queue import WorkQueue
from adjudge.server.work_thread import WorkThread

if TYPE_CHECKING:
    from starlette.types import Scope


T = TypeVar("T")


class PageState(Protocol):
    """The part of a state that the pages of runs need, which ``adjudge view`` has as well as a server."""

    @property
    def settings(self) -> ServerSettings:
        """The address on which it listens, and its limits."""
        ...

    @property
    def library(self) -> RunLibrary:
        """The runs that are shown."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState:
    """Everything that one configuration file opens. A request keeps the state that it began with."""

    config: Config
    settings: ServerSettings
    ledger: Ledger
    keys: KeyCache
    approvals: Approvals
    recorder: CommandRecorder
    gates: Mapping[str, Gate]
    hooks: ServerHooks | None
    """The guards of ``[hook]``; ``None`` where there is none."""
    judges: ServerJudges
    labels: LabelQueues
    """The queues of labelling, by run."""
    library: RunLibrary
    queue: WorkQueue
    """The requests that are judged now, and those that wait."""
    work: WorkThread
    """The thread for requests that would keep all others waiting."""
    throttle: SignInThrottle
    stopping: asyncio.Event
    """Set when the server stops: an answer that lasts, such as an event stream, has to end then."""
    allow_anonymous: bool = False
    """True if a request without key and session may judge and read; on this machine's own addresses alone."""

    @property
    def run_folder(self) -> Path | None:
        """The folder of the runs; ``None`` where none is configured."""
        return self.labels.folder

    async def use_queue(self, run: str, work: Callable[[LabelQueue], T]) -> T:
        """Run a function on the label queue of a run.

        Raises ``Problem`` if there is no such run (404), and for a ``UsageError``, such as an unknown case (422).
        """
        try:
            return await self.labels.use(run, work)
        except UsageError as error:
            detail = explain_trouble(error, self.run_folder)
            raise Problem(422, detail, code="usage", argument=error.argument) from None

    async def aclose(self) -> None:
        """Close what this configuration opened, but not the ledger, which the next one uses too."""
        # Connections belong to the event loop that opened them, so those of the work thread are closed there.
        if self.work.is_running:
            await self.work.run(self._close_connections())
        await self._close_connections()
        await self.labels.aclose()

    async def _close_connections(self) -> None:
        """Close the connections of the running loop, and wait for its webhooks."""
        for gate in self.gates.values():
            await gate.aclose()
            first_judge = gate.ask.get("first")
            if first_judge is not None:
                await first_judge.aclose()
        await self.judges.aclose()
        await self.approvals.aclose()


@dataclass(slots=True, kw_only=True)
class StateHolder:
    """The current state, and earlier ones that requests are still using."""

    path: Path | None
    """``adjudge.toml``; ``None`` is the one of the working directory."""
    host: str | None = None
    port: int | None = None
    uds: str | None = None
    uds_mode: str | None = None
    allow_anonymous: bool = False
    ledger: Ledger | None = None
    keys: KeyCache | None = None
    current: ServerState | None = None
    work: WorkThread = field(default_factory=WorkThread)
    throttle: SignInThrottle = field(default_factory=SignInThrottle)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _request_counts: Counter[int] = field(default_factory=Counter)
    """The number of requests that use each state, by ``id(state)``."""
    _closing: set[asyncio.Task[None]] = field(default_factory=set)

    async def open(self) -> ServerState:
        """Read the configuration and open what it names; raises ``UsageError`` that names file and key."""
        config = read_config(self.path)
        self.ledger = open_ledger(config)
        self.keys = KeyCache(self.ledger)
        await self.ledger.prepare()
        problem = await self.ledger.explain_search()
        if problem is not None:
            logger.warning("%s", problem)
        await self.ledger.transact(lambda _: None, tables=make_tables())
        self.current = self._open(config)
        return self.current

    async def reload(self) -> ServerState:
        """Read the configuration again, and make a new state of it.

        Requests that have begun keep the old state, which is closed with the last of them. Raises ``UsageError``, and
        keeps the old state, if the new configuration is wrong.
        """
        old = self.get()
        config = read_config(self.path)
        new = self._open(config)
        for setting, before, now in (
            ("[ledger]", dict(old.config.ledger), dict(config.ledger)),
            ("[server] host", old.settings.host, new.settings.host),
            ("[server] port", old.settings.port, new.settings.port),
            ("[server] uds", old.settings.uds, new.settings.uds),
            ("[server] uds_mode", old.settings.uds_mode, new.settings.uds_mode),
        ):
            if before != now:
                await new.aclose()
                raise UsageError(f"{config.path}: {setting} was changed, which needs a restart")
        self.current = new
        if not self._request_counts[id(old)]:
            self._close_later(old)
        return new

    async def aclose(self) -> None:
        """Close everything."""
        if self.current is not None:
            await self.current.aclose()
            self.current = None
        if self._closing:
            await asyncio.wait(self._closing)
        await self.work.aclose()
        if self.ledger is not None:
            await self.ledger.aclose()

    def stop(self) -> None:
        """Refuse the requests that wait to be judged, and all new ones; those that have begun finish."""
        self.stopping.set()
        if self.current is not None:
            self.current.queue.stop()

    def get(self) -> ServerState:
        """Return the current state; there is one while the application runs."""
        if self.current is None:
            raise UsageError("the server has not been started; run it with its lifespan")
        return self.current

    def enter(self) -> ServerState:
        """Return the current state, which stays open until ``leave``."""
        state = self.get()
        self._request_counts[id(state)] += 1
        return state

    def leave(self, state: ServerState) -> None:
        """End a request's use of a state; a state that was replaced is closed with its last request."""
        self._request_counts[id(state)] -= 1
        if not self._request_counts[id(state)]:
            del self._request_counts[id(state)]
            if state is not self.current and self.current is not None:
                self._close_later(state)

    def _open(self, config: Config) -> ServerState:
        """Open all that a configuration names, as a new state."""
        settings = read_server(config, host=self.host, port=self.port, uds=self.uds, uds_mode=self.uds_mode)
        if self.allow_anonymous:
            check_anonymous(settings, config)
        assert self.ledger is not None  # noqa: S101 - for the type checker; open() comes first
        assert self.keys is not None  # noqa: S101 - for the type checker; open() comes first
        link = make_linker(self.ledger, settings.base_url)
        approvals = open_approvals(config, self.ledger, quiet=False, make_link=link)
        recorder = CommandRecorder(self.ledger)
        runs = None if settings.runs is None else config.resolve_path(settings.runs)
        gates = {name: open_gate(name, config, recorder=recorder, approvals=approvals) for name in config.gates}
        for name, gate in gates.items():
            _check_gate(name, gate, config)
        return ServerState(
            config=config,
            settings=settings,
            ledger=self.ledger,
            keys=self.keys,
            approvals=approvals,
            recorder=recorder,
            gates=gates,
            hooks=open_hooks(config, self.ledger, gates, approvals=approvals),
            judges=open_judges(config, settings),
            labels=LabelQueues(
                folder=runs, per_case=settings.labels_per_case, by_criterion=settings.labels_by_criterion
            ),
            library=RunLibrary(scan=partial(scan_folder, runs), configured=runs is not None),
            queue=WorkQueue(settings),
            work=self.work,
            throttle=self.throttle,
            stopping=self.stopping,
            allow_anonymous=self.allow_anonymous,
        )

    def _close_later(self, state: ServerState) -> None:
        """Close a state that was replaced, in a task of its own."""
        # A bare task: aclose() waits for it.
        task = asyncio.ensure_future(_close(state))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _check_gate(name: str, gate: Gate, config: Config) -> None:
    """Raise ``UsageError`` for a gate that cannot be served: its name has a slash, or its judge cannot be asked."""
    where = f"{config.path}: [gates.{flatten(name, 120)}]"
    if "/" in name:
        raise UsageError(f"{where}: a gate that is served has no slash in its name; give it another")
    try:
        check_gate_ready(gate)
    except UsageError as error:
        raise error.within(where) from None


async def _close(state: ServerState) -> None:
    """Close a state that was replaced; errors are ignored, because a new state is in use already."""
    with suppress(Exception):
        await state.aclose()


STATE = "adjudge_state"
"""The key under which a request's scope holds its state."""


def get_state(connection: HTTPConnection) -> ServerState:
    """Return the state that a request began with."""
    return find_state(connection.scope)


def find_state(scope: Scope) -> ServerState:
    """Find the state in a request's scope."""
    state: ServerState = scope[STATE]
    return state


def get_page_state(connection: HTTPConnection) -> PageState:
    """Return the part of the state that pages of runs need."""
    state: PageState = connection.scope[STATE]
    return state


async def provide_page_state(connection: HTTPConnection) -> PageState:
    """``get_page_state`` as a FastAPI dependency."""
    return get_page_state(connection)


async def provide_state(connection: HTTPConnection) -> ServerState:
    """``get_state`` as a FastAPI dependency. It is ``async`` because FastAPI calls any other in a thread each time."""
    return get_state(connection)


CurrentState = Annotated[ServerState, Depends(provide_state)]

CurrentPageState = Annotated[PageState, Depends(provide_page_state)]
