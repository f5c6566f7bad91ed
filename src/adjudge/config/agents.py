"""The agents of ``adjudge.toml``, by name: commands, and functions that run one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, get_args

from adjudge.agents.launch import AgentSource
from adjudge.agents.read import RunFormat
from adjudge.config.file import Config, check_keys
from adjudge.config.modules import open_function
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice, check_seconds
from adjudge.formats.text import flatten, show

_KEYS = ("command", "call", "format", "timeout")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredAgent:
    """One agent of the file, and the options with which it is run unless a test gives others."""

    source: AgentSource
    format: RunFormat | None = None
    timeout: float | None = None
    """Seconds."""


def open_agent(config: Config, name: str) -> ConfiguredAgent:
    """Open the agent ``[agents.NAME]`` of the file; raises ``UsageError`` if it is missing or wrong."""
    if name not in config.agents:
        near = get_close_matches(name, config.agents, 1)
        names = ", ".join(flatten(other, 120) for other in config.agents) or "none"
        hint = f"did you mean {near[0]!r}?" if near else f"its agents are: {names}"
        file_text = f"of {config.path}" if config.path else "here, because there is no adjudge.toml"
        raise UsageError(f"there is no agent {show(name)} {file_text}; {hint}", argument="agent")
    where = f"{config.path}: [agents.{flatten(name, 120)}]"
    table = config.agents[name]
    if not isinstance(table, dict):
        raise UsageError(f"{where} must be a table with a command or a call, got {show(table)}")
    check_keys(table, _KEYS, where)
    if "format" in table:
        check_choice("format", table["format"], get_args(RunFormat), where=where)
    if "timeout" in table:
        check_seconds("timeout", table["timeout"], where=where)
    return ConfiguredAgent(
        source=_open_source(table, config, where), format=table.get("format"), timeout=table.get("timeout")
    )


def _open_source(table: Mapping[str, Any], config: Config, where: str) -> AgentSource:
    """Return the source that ``[agents.NAME]`` names: the words of a command, or an imported function.

    Raises ``UsageError`` for a table that names neither, or both.
    """
    if ("command" in table) == ("call" in table):
        raise UsageError(
            f'{where} needs either command = ["codex", "exec", "--json", "{{prompt}}"] or '
            'call = "python:module:function"'
        )
    if "call" in table:
        return open_function(table["call"], f"{where} call", config.folder)
    command = table["command"]
    if not isinstance(command, list) or not command or not all(isinstance(word, str) for word in command):
        raise UsageError(
            f'command must be a list of words, like ["codex", "exec", "--json", "{{prompt}}"], got {show(command)}',
            argument="command",
            where=where,
        )
    return command
