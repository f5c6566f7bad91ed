"""``[hook]`` on a server: the guards that programs and coding agents ask whether a tool call may be made.

Whether a call may be made is decided in ``guards/tool_guard/guard.py``, and what a harness is answered in
``harness/hook_guard.py``.
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
from adjudge.harness.events import Harness, HookEvent
from adjudge.harness.guard_server import name_config
from adjudge.harness.hook_guard import CallGuard, HookGuard
from adjudge.ledger.ledger import Ledger
from adjudge.server.problem import Problem

T = TypeVar("T", bound=CallGuard)


class ServerHooks:
    """The guards of ``[hook]``, each made when it is first used on an event loop.

    A guard's locks belong to one event loop, and large requests are handled on a second one, so each loop has its own
    guards. They share approvals through the store, as the guards of two processes do: one of them makes the request for
    an approval, and one uses it.
    """

    def __init__(self, config: Config, settings: HookSettings, maker: GuardMaker) -> None:
        self.settings = settings
        self.digest = digest_config(config)
        """The digest of the configuration and of all that it names, as it was when it was read."""
        self._path = config.path
        self._config_name = name_config(str(config.path), config.digest or "")
        self._maker = maker
        self._guards_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[object, CallGuard]] = (
            WeakKeyDictionary()
        )
        self._check_guards()

    def find_guard(self) -> CallGuard:
        """Find the guard for programs; raises ``Problem`` (503) where ``mode = "observe"`` has ended."""
        return self._open_guard("program", self._maker.make_guard)

    def find_hook(self, harness: Harness, *, is_local: bool) -> HookGuard:
        """Find the guard of a harness such as Claude Code; raises ``Problem`` as ``find_guard`` does.

        Only with ``is_local`` are approvals bound to the files that a call uses: the server can read no others.
        """
        return self._open_guard((harness, is_local), lambda: self._maker.make_hook(harness, bind_files=is_local))

    async def check_config(self, hook_config_name: str | None, hook: HookGuard, event: HookEvent) -> None:
        """Raise ``Problem`` (412) if a hook on this machine uses a newer version of this server's configuration file.

        The refusal is recorded. Without this check, a rule that an operator added to the file would judge nothing until
        the server reads it again. ``hook_config_name`` is what ``name_config`` says of the hook's file. ``None``, and
        the name of any other file, are accepted.
        """
        # The name is the digest of the file's path, a space, and the digest of its content.
        path_digest, _, _ = self._config_name.partition(" ")
        is_same_file = hook_config_name is not None and hook_config_name.startswith(path_digest)
        if is_same_file and hook_config_name != self._config_name:
            await hook.record_refusal(event, reason="the hook's configuration changed since the server read it")
            raise Problem(
                412,
                f"the server read {self._path} before it changed; send it SIGHUP, or start adjudge serve again",
                code="hook",
            )

    def _open_guard(self, name: object, make: Callable[[], T]) -> T:
        """Return the guard of a name on the running event loop; it is made if the loop has none yet.

        Raises ``Problem`` (503) where no guard can be made, or ``mode = "observe"`` has ended.
        """
        try:
            self.settings.check_observing(datetime.now(UTC).date())
            guards = self._guards_by_loop.setdefault(asyncio.get_running_loop(), {})
            if name not in guards:
                guards[name] = make()
        except UsageError as error:
            # Refused and not let through: else a server that runs for long would observe for ever.
            raise Problem(503, f"[hook] cannot be used: {error}", code="hook") from None
        return guards[name]  # type: ignore[return-value] - each name has one kind

    def _check_guards(self) -> None:
        """Raise ``UsageError`` when the server starts, and not with the first call, if a guard cannot be made."""
        self._maker.make_guard()
        self._maker.make_hook("claude")
        if self.settings.pending != "defer":
            self._maker.make_hook("codex")


def open_hooks(
    config: Config, ledger: Ledger, gates: Mapping[str, Gate], *, approvals: Approvals | None = None
) -> ServerHooks | None:
    """Open the guards of ``[hook]``, which use the gates of a server; ``None`` if the file has no such guards.

    Raises ``UsageError`` for settings that no guard can be made of.
    """
    if not config.hook:
        return None
    settings = read_hook_settings(config)
    if not (settings.tools or settings.mcp or settings.unchecked):
        return None  # this [hook] only names the server that hooks of this machine ask

    def find_gate(name: str) -> Gate:
        """Find a gate that ``[hook]`` names; raises ``UsageError`` if the configuration has no such gate."""
        if name not in gates:
            names = ", ".join(gates) or "none"
            raise UsageError(f"[hook] names the gate {show(name)}; this file has {names}", argument="hook")
        return gates[name]

    maker = GuardMaker(config=config, settings=settings, ledger=ledger, find_gate=find_gate, approvals=approvals)
    return ServerHooks(config, settings, maker)
