"""``[hook]`` of ``adjudge.toml``: its settings, and making the guard with gates for a coding agent's tools.

``hook_binding.py`` (``read_bound_config``) checks where the file is, and the digest to which an installed hook is
bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from adjudge.config.file import Config, check_keys
from adjudge.config.gates import check_gate_ready, close_gate, open_approvals, open_gate
from adjudge.config.hook_binding import list_named_files
from adjudge.config.ledger import SQLITE, CommandRecorder, find_address, open_ledger
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice, check_flag, check_seconds
from adjudge.formats.text import show
from adjudge.guards.gate import Gate
from adjudge.guards.tool_guard.effects import read_effects
from adjudge.guards.tool_guard.guard import CallMatch, ToolGuard
from adjudge.guards.tool_guard.tool_patterns import ToolKey
from adjudge.harness.events import Harness
from adjudge.harness.guard_server import GuardServer, NotChecked, read_server_table
from adjudge.harness.hook_guard import CallGuard, HookGuard, KnownSources, PendingAnswer
from adjudge.harness.open_shell import NoOpenShell
from adjudge.harness.self_protection import SelfProtection, list_protected
from adjudge.ledger.ledger import Ledger

if TYPE_CHECKING:
    from adjudge.guards.approval.approvals import Approvals

LONGEST_OBSERVATION = timedelta(days=30)
"""The longest time until the end of ``mode = "observe"``, since a hook that somebody forgets in it guards nothing."""

HookMode = Literal["enforce", "observe"]

_MCP_KEYS = ("server", "tool", "gate", "source", "effects")


@dataclass(frozen=True, slots=True, kw_only=True)
class HookSettings:
    """The settings of ``[hook]``, checked; gates are names."""

    tools: Mapping[str, str] = field(default_factory=dict)
    """Gates by the names of the agent's own tools, or how they begin."""
    mcp: tuple[Mapping[str, Any], ...] = ()
    """Tools of MCP: ``server``, ``tool``, ``gate``, ``effects``, and ``source``, where the harness has to have the
    server from."""
    effects: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The effects of calls of the agent's own tools, by their names or beginnings of names, for the people who are
    asked."""
    unchecked: tuple[str, ...] = ()
    """Tools that nothing checks, by exact names."""
    answers: str | None = None
    prompts: str | None = None
    results: str | None = None
    reading: tuple[str, ...] = ()
    """Tools that may go on when a run was stopped after refusals."""
    match: CallMatch = "content"
    pending: PendingAnswer = "deny"
    mode: HookMode = "enforce"
    until: date | None = None
    """The last day of ``mode = "observe"``, in UTC."""
    unsafe: tuple[str, ...] = ()
    protects_itself: bool = True
    no_open_shell: bool | None = None
    """Refuse commands that wait for typed input; ``None`` does so for Codex."""
    timeout: float = 20.0
    """Seconds for one check."""
    show_reasons: bool = False
    pass_answers: bool = False
    protects: tuple[str, ...] = ()
    """Further files and folders that calls may neither read nor write, by absolute paths."""
    server: GuardServer | None = None
    """The server that is asked; ``None`` is this process."""
    home: str | None = None
    """The home folder of the account under which the agent runs, where that is not the guard's."""

    @property
    def seconds(self) -> int:
        """The seconds that one answer may take: two checks (a call and its patch), and 10 seconds to start."""
        return int(2 * self.timeout) + 10

    def check_observing(self, today: date) -> None:
        """Raise ``UsageError`` for ``mode = "observe"`` that has ended, or that does not end soon."""
        if self.mode == "observe":
            _check_until(self.until, today)


def read_hook_settings(config: Config) -> HookSettings:
    """Read ``[hook]``; raises ``UsageError`` naming what is wrong with it."""
    where = f"{config.path}: [hook]"
    table = dict(config.hook)
    if not table:
        raise UsageError(f'{where} is not there; write [hook] with tools = {{"Bash" = "NAME OF A GATE"}}')
    if "tools" not in table and "server" not in table:
        raise UsageError("it needs tools, the gates by names of tools", argument="tools", where=where)
    try:
        check_keys(table, tuple(entry.name for entry in fields(HookSettings)), where)
        settings = HookSettings(**{name: _read_value(name, value) for name, value in table.items()})
        _check_settings(settings)
    except UsageError as error:
        raise error if str(error).startswith(where) else error.within(where) from None
    return settings


def list_tool_gates(settings: HookSettings) -> dict[ToolKey, str | None]:
    """List the names of the gates by the tools that they check; ``None`` checks nothing.

    Raises ``UsageError`` for a tool that has a gate and is unchecked.
    """
    tools: dict[ToolKey, str | None] = {**settings.tools}
    tools |= {(entry["server"], entry["tool"]): entry.get("gate") for entry in settings.mcp}
    for name in settings.unchecked:
        if name in tools:
            raise UsageError(f"{show(name)} has a gate and is unchecked; take it out of one", argument="unchecked")
        tools[name] = None
    return tools


def _read_value(name: str, value: Any) -> Any:
    """Read one value of ``[hook]``; raises ``UsageError`` for a value of a wrong type."""
    if name in ("answers", "prompts", "results") and not isinstance(value, str):
        raise UsageError(f"{name} must be the name of a gate, got {show(value)}", argument=name)
    if name == "server":
        try:
            return read_server_table(value)
        except NotChecked as error:
            raise UsageError(str(error), argument="server") from None
    if name == "home" and not isinstance(value, str):
        raise UsageError(f"home must be the path of a folder, got {show(value)}", argument=name)
    if name in ("unchecked", "reading", "unsafe", "protects"):
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise UsageError(f"{name} must be a list of names, got {show(value)}", argument=name)
        return tuple(value)
    if name == "tools" and not (isinstance(value, dict) and all(isinstance(gate, str) for gate in value.values())):
        raise UsageError(f'tools must be a table like {{"Bash" = "shell"}}, got {show(value)}', argument="tools")
    if name in ("mcp", "effects"):
        return _read_mcp_entries(value) if name == "mcp" else _read_tool_effects(value)
    if name == "until" and (isinstance(value, datetime) or not isinstance(value, date)):
        raise UsageError(f"until must be a day like 2026-12-01, without quotes, got {show(value)}", argument="until")
    return value


def _read_tool_effects(value: Any) -> Mapping[str, tuple[str, ...]]:
    """Read ``effects`` of ``[hook]``, by the names of tools. Raises ``UsageError``."""
    if not isinstance(value, dict):
        example = '{"refund" = ["cannot be taken back", "money leaves"]}'
        raise UsageError(f"effects must be a table like {example}, got {show(value)}", argument="effects")
    return {tool: read_effects(declared) for tool, declared in value.items()}


def _read_mcp_entries(value: Any) -> tuple[Mapping[str, Any], ...]:
    """Read ``mcp`` of ``[hook]``: the entries for tools of MCP servers. Raises ``UsageError``."""
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        example = '[{server = "bank", tool = "pay*", gate = "payments"}]'
        raise UsageError(f"mcp must be a list like {example}, got {show(value)}", argument="mcp")
    for entry in value:
        check_keys(entry, _MCP_KEYS, "mcp")
        texts = [text for name, text in entry.items() if name != "effects"]
        if not all(isinstance(text, str) and text for text in texts) or not {"server", "tool"} <= entry.keys():
            raise UsageError(f"mcp needs server and tool, in quotes, got {show(entry)}", argument="mcp")
    # A copy of each entry, with its effects (if it has any) as ``read_effects`` returns them.
    return tuple(entry | {name: read_effects(entry[name]) for name in entry if name == "effects"} for entry in value)


def _check_settings(settings: HookSettings) -> None:
    """Raise ``UsageError`` for invalid values of ``[hook]``, and for values that contradict each other."""
    check_choice("match", settings.match, get_args(CallMatch))
    check_choice("pending", settings.pending, get_args(PendingAnswer))
    check_choice("mode", settings.mode, get_args(HookMode))
    check_flag("protects_itself", settings.protects_itself)
    check_flag("show_reasons", settings.show_reasons)
    check_flag("pass_answers", settings.pass_answers)
    check_seconds("timeout", settings.timeout)
    if settings.no_open_shell is not None:
        check_flag("no_open_shell", settings.no_open_shell)
    if settings.pending == "defer" and settings.match != "call":
        raise UsageError('pending = "defer" runs the same call again by its id; write match = "call" too')
    settings.check_observing(datetime.now(UTC).date())
    for path in (*settings.protects, *([settings.home] if settings.home is not None else [])):
        if not Path(path).is_absolute():
            name = "home" if path == settings.home else "protects"
            raise UsageError(f"{name} takes absolute paths, got {show(path)}", argument=name)


def _check_until(until: date | None, today: date) -> None:
    """Raise ``UsageError`` unless observing ends today or at most ``LONGEST_OBSERVATION`` later."""
    if until is None:
        raise UsageError('mode = "observe" lets everything through; write until, its last day', argument="until")
    if until < today:
        raise UsageError(f'mode = "observe" ended on {until}; write mode = "enforce", or another day', argument="until")
    if until > today + LONGEST_OBSERVATION:
        days = LONGEST_OBSERVATION.days
        raise UsageError(f'mode = "observe" ends within {days} days, got {until}; write a day before', argument="until")


# ---------------------------------------------------------------- opening


class OpenedHook:
    """A guard with its gates and ledger open; a context manager that closes them."""

    def __init__(self, config: Config, harness: Harness, *, managed: bool = False) -> None:
        settings = read_hook_settings(config)
        self._ledger = open_ledger(config)
        self._approvals = open_approvals(config, self._ledger, quiet=False)
        self._recorder = CommandRecorder(self._ledger)
        self._config = config
        self._gates: dict[str, Gate] = {}
        self.settings = settings
        maker = GuardMaker(
            config=config, settings=settings, ledger=self._ledger, find_gate=self._find_gate, approvals=self._approvals
        )
        self.guard = maker.make_hook(harness, managed=managed)

    def check_ready(self) -> None:
        """Raise ``UsageError`` if a judge of a gate cannot be asked at all, for example without its key."""
        for gate in self._gates.values():
            check_gate_ready(gate)

    def _find_gate(self, name: str) -> Gate:
        """Return the gate of a name, which is opened at first use."""
        if name not in self._gates:
            self._gates[name] = open_gate(name, self._config, recorder=self._recorder, approvals=self._approvals)
        return self._gates[name]

    async def aclose(self) -> None:
        """Close the gates and the ledger."""
        for gate in self._gates.values():
            await close_gate(gate)
        await self._approvals.aclose()
        await self._ledger.aclose()


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardMaker:
    """Makes the guards that ``[hook]`` describes, with gates and a ledger that are open."""

    config: Config
    settings: HookSettings
    ledger: Ledger
    find_gate: Callable[[str], Gate]
    """Returns the gate of a name, the same object each time; raises ``UsageError`` if there is none."""
    approvals: Approvals | None = None
    """Approvals with the webhook of the configuration."""

    def make_hook(self, harness: Harness, *, managed: bool = False, bind_files: bool = True) -> HookGuard:
        """Make the guard of a harness; ``bind_files=False`` if the agent's files are on another machine.

        Raises ``UsageError`` for a setting that the harness does not support.
        """
        if self.settings.pending == "defer" and harness == "codex":
            raise UsageError(
                f'{self.config.path}: [hook] pending = "defer" is for Claude Code; Codex makes such a call',
                argument="pending",
            )
        call_guard = self._make_call_guard(harness, bind_files=bind_files)
        return HookGuard(
            guard=call_guard.guard,
            approvals=self.approvals,
            observes=call_guard.observes,
            enforced=call_guard.enforced,
            harness=harness,
            pending=self.settings.pending,
            managed=managed,
        )

    def make_guard(self) -> CallGuard:
        """Make the guard for programs that ask about calls by themselves; it does not bind calls to files."""
        return self._make_call_guard(None, bind_files=False)

    def _make_call_guard(self, harness: Harness | None, *, bind_files: bool) -> CallGuard:
        """Make the guard that ``[hook]`` describes, for one harness or (``None``) for programs.

        Of its screens only the protection of the guard's own files is enforced while the guard only observes.
        """
        settings = self.settings
        home = None if settings.home is None else Path(settings.home)
        protection = SelfProtection(list_protected(self._list_own_files(), home=home))
        screens: list[Any] = [protection] if settings.protects_itself else []
        enforced = tuple(screens)
        sources = {entry["server"]: entry["source"] for entry in settings.mcp if "source" in entry}
        screens += [KnownSources(sources)] if sources else []
        if settings.no_open_shell is True or (settings.no_open_shell is None and harness == "codex"):
            screens.append(NoOpenShell())
        gates: dict[str, Gate] = {}
        guard = ToolGuard(
            self._read_tools(gates),
            answers=self._get_gate(settings.answers, gates),
            prompts=self._get_gate(settings.prompts, gates),
            results=self._get_gate(settings.results, gates),
            match=settings.match,
            timeout=settings.timeout,
            show_reasons=settings.show_reasons,
            pass_answers=settings.pass_answers,
            reading=settings.reading,
            effects=self._list_effects(),
            bind_files=bind_files,
            unsafe=self._list_unsafe(gates),
            screens=screens,
            # The agent could run the command by which people approve.
            harness=None if self.config.approvals.get("command", False) else harness or "program",
            ledger=self.ledger,
            name="hook",
        )
        return CallGuard(guard=guard, observes=settings.mode == "observe", enforced=enforced)

    def _read_tools(self, gates: dict[str, Gate]) -> dict[ToolKey, Any]:
        return {tool: self._get_gate(gate, gates) for tool, gate in list_tool_gates(self.settings).items()}

    def _list_effects(self) -> dict[ToolKey, Sequence[str]]:
        """List the effects of calls by tool, those of MCP servers included."""
        effects: dict[ToolKey, Sequence[str]] = {**self.settings.effects}
        named = [entry for entry in self.settings.mcp if "effects" in entry]
        return effects | {(entry["server"], entry["tool"]): entry["effects"] for entry in named}

    def _list_unsafe(self, gates: Mapping[str, Gate]) -> list[str]:
        """List the exceptions to the guard's checks: those of the settings, and while observing each gate's mode."""
        observing = [f"{name}.mode" for name in gates if self.settings.mode == "observe"]
        return [*self.settings.unsafe, *observing]

    def _get_gate(self, name: str | None, gates: dict[str, Gate]) -> Gate | None:
        """Return the gate of a name, made once for one guard and kept in ``gates``; ``None`` for ``None``."""
        if name is None:
            return None
        if name not in gates:
            gate = self.find_gate(name)
            # A guard that observes lets every call through, so its gates must not ask people about one.
            gates[name] = gate.replace(mode="observe") if self.settings.mode == "observe" else gate
        return gates[name]

    def _list_own_files(self) -> tuple[Path, ...]:
        """List the files that the guard protects from the agent.

        They are the configuration and the files that it names, ``protects``, a SQLite ledger and the caches of gates
        with their side files, and the keys of the ledger and of the server.
        """
        config = self.config
        own = [*([config.path] if config.path else []), *list_named_files(config), *map(Path, self.settings.protects)]
        # A cache is protected because its entries are the judge's replies. No digest can bind it, as it changes in use.
        databases = [config.resolve_path(gate["cache"]) for gate in config.gates.values() if "cache" in gate]
        address = find_address(config, None)
        databases += [Path(address.removeprefix(SQLITE))] if address.startswith(SQLITE) else []
        own += [Path(f"{database}{end}") for database in databases for end in ("", "-wal", "-shm", "-journal")]
        own += [config.resolve_path(config.ledger["key"])] if "key" in config.ledger else []
        own += [] if self.settings.server is None else [Path(self.settings.server.key)]
        return tuple(path.absolute() for path in own)
