"""``[hook]`` on a server: the guards that programs and coding agents ask about calls of tools.

Whether a call may be made is decided in ``guards/tool_guard/guard.py``, and what a harness is answered in
``harness/checking.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TypeVar
from weakref import WeakKeyDictionary

from adjudge.config.file import Config
from adjudge.config.hook import GuardMaker, HookSettings, read_hook_settings
from adjudge.config.hook_binding import digest_config
from adjudge.errors import UsageError
from adjudge.formats.text import show
from adjudge.guards.approval.approvals import Approvals
from adjudge.guards.gate import Gate
from adjudge.harness.checking import CallGuard, HookGuard
from adjudge.harness.events import Harness, HookEvent
from adjudge.harness.guard_server import name_config
from adjudge.ledger.ledger import Ledger
from adjudge.server.problem import Problem

T = TypeVar("T", bound=CallGuard)


class ServerHooks:
    """The guards of ``[hook]``, each made when it is first asked for on a loop.

    A guard's locks belong to one loop, and large requests are handled on another one. Two guards are to each other what
    those of two processes are: of both, one makes the request for an approval, and one uses it.
    """

    def __init__(self, config: Config, settings: HookSettings, maker: GuardMaker) -> None:
        self.settings = settings
        self.digest = digest_config(config)
        """The digest of the configuration and of all that it names, as it was when it was read."""
        self._path = config.path
        self._config_name = name_config(str(config.path), config.digest or "")
        self._maker = maker
        self._made: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[object, CallGuard]] = WeakKeyDictionary()
        self._check()

    def find_guard(self) -> CallGuard:
        """Find the guard for programs; raises ``Problem`` (503) where ``mode = "observe"`` has ended."""
        return self._open_guard("program", self._maker.make_guard)

    def find_hook(self, harness: Harness, *, is_local: bool) -> HookGuard:
        """Find the guard of a harness, whose files are read only where it is on this machine; raises as above."""
        return self._open_guard((harness, is_local), lambda: self._maker.make_hook(harness, bind_files=is_local))

    async def check_config(self, named: str | None, hook: HookGuard, event: HookEvent) -> None:
        """Compare the configuration of a hook on this machine with the one that was read here.

        Raises ``Problem`` (412) where it is the same file and has changed since, and records that: without this, a rule
        that an operator added and installed would judge nothing until the server read it. ``None``, and any other file,
        are accepted.
        """
        place, _, _ = self._config_name.partition(" ")
        if named is not None and named.startswith(place) and named != self._config_name:
            await hook.record_refusal(event, reason="the hook's configuration changed since the server read it")
            raise Problem(
                412,
                f"the server read {self._path} before it changed; send it SIGHUP, or start adjudge serve again",
                code="hook",
            )

    def _open_guard(self, name: object, make: Callable[[], T]) -> T:
        """Open the guard of a name in the running loop, once. Raises ``Problem`` (503) where it cannot be used."""
        try:
            self.settings.check_observing(datetime.now(UTC).date())
            made = self._made.setdefault(asyncio.get_running_loop(), {})
            if name not in made:
                made[name] = make()
        except UsageError as error:
            # Refused and not let through: else a server that runs for long would observe for ever.
            raise Problem(503, f"[hook] cannot be used: {error}", code="hook") from None
        return made[name]  # type: ignore[return-value] - each name has one kind

    def _check(self) -> None:
        """Raise ``UsageError`` for what no guard can be made of, before anybody asks."""
        self._maker.make_guard()
        self._maker.make_hook("claude")
        if self.settings.pending != "defer":
            self._maker.make_hook("codex")


def open_hooks(
    config: Config, ledger: Ledger, gates: Mapping[str, Gate], *, approvals: Approvals | None = None
) -> ServerHooks | None:
    """Open ``[hook]`` over the gates of a server; ``None`` where there is none. Raises ``UsageError``."""
    if not config.hook:
        return None
    settings = read_hook_settings(config)
    if not (settings.tools or settings.mcp or settings.unchecked):
        return None  # it only says which server a hook asks

    def find_gate(name: str) -> Gate:
        if name not in gates:
            names = ", ".join(gates) or "none"
            raise UsageError(f"[hook] names the gate {show(name)}; this file has {names}", argument="hook")
        return gates[name]

    maker = GuardMaker(config=config, settings=settings, ledger=ledger, find_gate=find_gate, approvals=approvals)
    return ServerHooks(config, settings, maker)
