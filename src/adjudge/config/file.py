"""Reading and checking ``adjudge.toml``: the judges, rubrics, gates, ledger and approvers of a project.

It is read from ``--config`` or the working directory only, never from parent folders, and never by the library.
Anyone who can edit it can change what passes; in CI, take it from the trusted branch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from adjudge.errors import Argument, UsageError
from adjudge.formats.arguments import check_flag, check_timeout, is_finite
from adjudge.formats.files import open_regular
from adjudge.formats.text import flatten, show
from adjudge.formats.toml import read_toml
from adjudge.models.defaults import EXAMPLE
from adjudge.rubric.file import load_rubric
from adjudge.rubric.rubric import Rubric

FILE = "adjudge.toml"

LARGEST = 1_000_000
"""The largest configuration that is read, in bytes."""


CHAIN_KEYS = ("strategy", "timeout", "deadline", "fail_open", "quorum", "hedge_after", "escalate_below",
              "abstain_below", "stop_early")  # fmt: skip

JUDGE_KEYS = (
    "reask",
    "structured",
    "token",
    "scoring",
    "logprobs",
    "reader",
    "reader_labels",
    "reader_passes",
    "temperature",
    "seed",
    "max_output_tokens",
)

MODEL_KEYS = ("key_env", "max_concurrency", "requests_per_minute", "max_input_characters", "base_url", "free_text")


_DEFAULTS = ("judge", "rubric", "timeout")

_GATE_KEYS = ("rubric", "judge", "rules", "on_failed", "on_rule", "on_undecided", "on_tampering", "mode", "sample",
              "ask", "cache", "cache_expires_in", "budget", "budget_per", "audit", "require_certificate",
              "certificate_key", "allow_unsigned", "max_age", "min_sensitivity", "min_specificity",
              "release_policy")  # fmt: skip

AUDIT = ("share", "promise", "confidence", "approvers", "expires_in")
"""The members of a gate's ``audit``."""

_LEDGER = ("url", "store_content", "redact", "key")

ASK = ("approvers", "required", "expires_in", "on_expiry", "first", "show_content")
"""The terms of a request for approval."""

_APPROVALS = (*ASK, "webhook", "command", "keep_for")

FORGET = ("runs", "caches", "recordings", "labels")
"""The places that ``adjudge forget`` looks through, each a list of paths."""

_WEBHOOK = ("url", "secret_env")

_TABLES = ("defaults", "judges", "rubrics", "gates", "ledger", "approvals", "prices", "server", "hook", "agents",
           "forget")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A configuration file, checked for unknown keys; judges and rubrics are opened when they are named."""

    path: Path | None = None
    digest: str | None = None
    """SHA-256 of the file."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    judges: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rubrics: Mapping[str, str] = field(default_factory=dict)
    gates: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    ledger: Mapping[str, str] = field(default_factory=dict)
    approvals: Mapping[str, Any] = field(default_factory=dict)
    prices: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Dollars per million tokens, by the name of a model."""
    server: Mapping[str, Any] = field(default_factory=dict)
    """The settings of ``adjudge serve``; ``adjudge.config.server`` reads them."""
    hook: Mapping[str, Any] = field(default_factory=dict)
    """The settings of ``adjudge hook``; ``adjudge.config.hook`` reads them."""
    agents: Mapping[str, Any] = field(default_factory=dict)
    """The agents that tests run, by name; ``adjudge.config.agents`` opens them."""
    forget: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Places that ``adjudge forget`` looks through, beside those that other tables name."""

    def find_rubric(self, name: str) -> Rubric:
        """Find the rubric of this name in the file, else a path from the working directory, or a shipped name.

        Raises ``UsageError`` where there is none.
        """
        if name in self.rubrics:
            return load_rubric(self.resolve_path(self.rubrics[name]))
        try:
            return load_rubric(name)
        except UsageError as error:
            near = get_close_matches(name, self.rubrics, 1)
            if not near:
                raise
            raise UsageError(error, f"; did you mean {near[0]!r} of {self.path}?", argument="rubric") from None

    def find_default_rubric(self) -> Rubric | None:
        """Find the rubric of ``[defaults]``: of this file by name, a shipped one, or a path from this file's folder."""
        name = self.defaults.get("rubric")
        return None if name is None else self.find_named_rubric(name)

    def find_named_rubric(self, name: str) -> Rubric:
        """Find a rubric that this file names: one of its own, a shipped one, or a path from its folder."""
        if name in self.rubrics or not _looks_like_path(name):
            return self.find_rubric(name)
        return load_rubric(self.resolve_path(name))

    @property
    def folder(self) -> Path | None:
        """The folder of the file, where the modules lie that it names; ``None`` where there is no file."""
        return self.path.parent if self.path else None

    def resolve_path(self, path: str) -> Path:
        """Resolve a path that this file names, from its folder."""
        return self.path.parent / path if self.path else Path(path)


def find_recording(name: str) -> str | None:
    """Return the path in a model's name ``replay:FILE?model=NAME``; ``None`` for a name of another form."""
    prefix, colon, location = name.strip().partition(":")
    return location.partition("?")[0] if prefix == "replay" and colon else None


class ConfiguredRubrics(Mapping[str, Rubric]):
    """The rubrics that a configuration file names, each opened when it is looked up."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._opened: dict[str, Rubric] = {}

    def __getitem__(self, name: str) -> Rubric:
        if name not in self._config.rubrics:
            raise KeyError(name)
        if name not in self._opened:
            self._opened[name] = self._config.find_rubric(name)
        return self._opened[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._config.rubrics)

    def __contains__(self, name: object) -> bool:
        return name in self._config.rubrics

    def __len__(self) -> int:
        return len(self._config.rubrics)


def read_config(path: Path | None) -> Config:
    """Read the configuration of ``--config``, else ``adjudge.toml`` of the working directory, else an empty one.

    Raises ``UsageError`` for a file that cannot be read, is no TOML, or has what no configuration has.
    """
    file = path or Path(FILE)
    raw = _read_bytes(file, required=path is not None)
    if raw is None:
        return Config()
    try:
        document = read_toml(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8 text (byte {error.start}); save it as UTF-8") from None
    except ValueError as error:
        raise UsageError(f"{file} is not valid TOML: {error}") from None
    _check_tables(document, file)
    tables: dict[str, Any] = {name: document.get(name, {}) for name in _TABLES}
    _check_defaults(tables["defaults"], tables["judges"], file)
    return Config(path=file, digest=hashlib.sha256(raw).hexdigest(), **tables)


def _check_tables(tables: Mapping[str, Any], file: Path) -> None:
    """Raise ``UsageError`` for a table, a key or a value that ``adjudge.toml`` cannot have."""
    check_keys(tables, _TABLES, f"{file}")
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise UsageError(f"{file}: {name} must be a table, written [{name}], got {show(table)}")
    check_keys(tables.get("ledger", {}), _LEDGER, f"{file}: [ledger]")
    if tables.get("ledger") == {}:
        # An empty table would be like none: nothing would be recorded, although its author expects it.
        raise UsageError(f"{file}: [ledger] is empty, so nothing would be recorded; write url, or take it out")
    for key, value in tables.get("ledger", {}).items():
        if not isinstance(value, str):
            raise UsageError(
                f"{key} must be a text in quotes, got {show(value)}", argument=key, where=f"{file}: [ledger]"
            )
    _check_prices(tables.get("prices", {}), file)
    _check_forget(tables.get("forget", {}), f"{file}: [forget]")
    _check_ask(tables.get("approvals", {}), _APPROVALS, f"{file}: [approvals]")
    for name, table in tables.get("judges", {}).items():
        _check_judge(table, f"{file}: [judges.{flatten(name, 120)}]")
    for name, table in tables.get("gates", {}).items():
        _check_gate(table, f"{file}: [gates.{flatten(name, 120)}]")
    for name, rubric_path in tables.get("rubrics", {}).items():
        if not isinstance(rubric_path, str) or not rubric_path.strip():
            raise UsageError(
                f"{file}: [rubrics] {flatten(name, 120)} must be the path of a rubric file, got {show(rubric_path)}"
            )


def check_keys(table: Mapping[str, Any], known_keys: tuple[str, ...], where: str) -> None:
    """Raise ``UsageError`` for an unknown key, with the nearest known key as a hint."""
    for key in table:
        if key not in known_keys:
            near = get_close_matches(key, known_keys, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"it knows {', '.join(known_keys)}"
            raise UsageError(f"unknown key {show(key)}; {hint}", argument=key, where=where)


def _read_bytes(file: Path, *, required: bool) -> bytes | None:
    """Read the bytes of the file; ``None`` if it does not exist and is not required.

    Raises ``UsageError`` if it cannot be read, or is too large.
    """
    try:
        with open_regular(file) as opened:
            raw = opened.read(LARGEST + 1)
    except FileNotFoundError:
        if not required:
            return None
        raise UsageError(
            f"the configuration {file} does not exist; name another with ",
            Argument("config"),
            ", or leave it out",
            argument="config",
        ) from None
    except OSError as error:
        raise UsageError(
            f"cannot read the configuration {file}: {error.strerror}; name a file with ",
            Argument("config"),
            argument="config",
        ) from None
    if len(raw) > LARGEST:
        raise UsageError(
            f"the configuration {file} has more than {LARGEST:,} bytes; name an adjudge.toml with ",
            Argument("config"),
            argument="config",
        )
    return raw


def _check_judge(table: object, where: str) -> None:
    """Raise ``UsageError`` for a key that ``[judges.NAME]`` cannot have, and for seats that are no list of models."""
    if not isinstance(table, dict):
        raise UsageError(f"{where} must be a table with seats, got {show(table)}")
    check_keys(table, ("seats", *CHAIN_KEYS, *JUDGE_KEYS, *MODEL_KEYS), where)
    seats = table.get("seats")
    if not isinstance(seats, list) or not seats or not all(isinstance(seat, str) for seat in seats):
        problem = f"got {show(seats)}" if "seats" in table else "and there are none"
        raise UsageError(
            f'seats must be a list of models, like ["{EXAMPLE}"], {problem}', argument="seats", where=where
        )


def _check_gate(table: object, where: str) -> None:
    """Raise ``UsageError`` for a key or a value that ``[gates.NAME]`` cannot have."""
    if not isinstance(table, dict):
        raise UsageError(f"{where} must be a table with a rubric or rules, got {show(table)}")
    check_keys(table, _GATE_KEYS, where)
    for key in ("rubric", "judge", "cache", "require_certificate", "certificate_key", "max_age", "release_policy"):
        if not isinstance(table.get(key, ""), str):
            noun = "a name" if key in ("rubric", "judge", "cache") else "a text"
            raise UsageError(f"{key} must be {noun} in quotes, got {show(table[key])}", argument=key, where=where)
    rules = table.get("rules", [])
    if not isinstance(rules, list) or not all(isinstance(rule, str | dict) for rule in rules):
        raise UsageError(
            f'rules must be a list like ["json", {{name = "length", max = 4000}}], got {show(rules)}',
            argument="rules",
            where=where,
        )

    ask = table.get("ask", {})
    if not isinstance(ask, dict):
        raise UsageError(
            f'ask must be a table like {{approvers = ["ana"]}}, got {show(ask)}', argument="ask", where=where
        )
    _check_ask(ask, ASK, f"{where}: ask")
    audit = table.get("audit", {})
    if isinstance(audit, dict):
        check_keys(audit, AUDIT, f"{where}: audit")
    elif not is_finite(audit):
        raise UsageError(
            f"audit must be a share like 0.02, or a table like {{share = 0.02, promise = 0.1}}, got {show(audit)}",
            argument="audit",
            where=where,
        )


def _check_ask(table: Mapping[str, Any], known_keys: tuple[str, ...], where: str) -> None:
    """Raise ``UsageError`` for a key or a value that ``ask`` or ``[approvals]`` cannot have.

    Numbers and approvers are checked later, when the gate that asks is made.
    """
    check_keys(table, known_keys, where)
    if not isinstance(table.get("first", ""), str):
        raise UsageError(
            f"first must be a judge's name in quotes, got {show(table['first'])}", argument="first", where=where
        )
    check_flag("show_content", table.get("show_content", False), where=where)
    check_flag("command", table.get("command", False), where=where)
    webhook = table.get("webhook")
    if webhook is None:
        return
    if not isinstance(webhook, dict):
        example = '{url = "https://...", secret_env = "NAME"}'
        raise UsageError(
            f"webhook must be a table like {example}, got {show(webhook)}", argument="webhook", where=where
        )
    check_keys(webhook, _WEBHOOK, f"{where} webhook")
    for key in _WEBHOOK:
        if not isinstance(webhook.get(key), str) or not webhook[key]:
            meaning = "the name of the variable that holds its secret" if key == "secret_env" else "its address"
            raise UsageError(f"webhook needs {key}, {meaning}, in quotes", argument="webhook", where=where)


def _check_forget(table: Mapping[str, Any], where: str) -> None:
    """Raise ``UsageError`` for a key that ``[forget]`` cannot have, and for a value that is no list of paths."""
    check_keys(table, FORGET, where)
    for key, paths in table.items():
        if not isinstance(paths, list) or not all(isinstance(path, str) and path for path in paths):
            raise UsageError(
                f'{key} must be a list of paths, like ["runs"], got {show(paths)}', argument=key, where=where
            )


def _check_prices(prices: Mapping[str, Any], file: Path) -> None:
    """Raise ``UsageError`` for prices that cannot be read. Their module is imported only if there are any."""
    if not prices:
        return
    from adjudge.models.price import make_finder

    # The finder is not used: it checks the prices when it is made.
    try:
        make_finder(prices)
    except UsageError as error:
        raise error.within(f"{file}: [prices]") from None


def _check_defaults(defaults: Mapping[str, Any], judges: Mapping[str, Any], file: Path) -> None:
    """Raise ``UsageError`` for a key or a value that ``[defaults]`` cannot have.

    The judge has to be one of ``judges``, a model (its name has a colon) or ``rules``.
    """
    where = f"{file}: [defaults]"
    check_keys(defaults, _DEFAULTS, where)
    for key in ("judge", "rubric"):
        if not isinstance(defaults.get(key, ""), str):
            raise UsageError(f"{key} must be a name in quotes, got {show(defaults[key])}", argument=key, where=where)
    name = defaults.get("judge")
    if name is not None and name not in judges and ":" not in name and name != "rules":
        names = flatten(", ".join(judges), 400) or "none"
        raise UsageError(
            f"judge = {show(name)} is neither a judge of this file ({names}) nor a model", argument="judge", where=where
        )
    check_timeout("timeout", defaults.get("timeout"), where=where)


def _looks_like_path(name: str) -> bool:
    return "/" in name or "\\" in name or bool(Path(name).suffix)
