"""Who judges: what the command line names, what the configuration says, or what this machine has."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adjudge import Judge, JudgeChain, Rubric
from adjudge.cli._config import Config
from adjudge.cli._local import find_configured, find_local
from adjudge.cli._seats import Opener
from adjudge.errors import UsageError

_NOTHING = (
    "nobody is here to judge: set OPENAI_API_KEY, ANTHROPIC_API_KEY or another provider's key, "
    "start a local server such as Ollama, or name one with --judge"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """What the command line says about who judges."""

    judges: tuple[str, ...] = ()
    timeout: float | None = None
    """Seconds for each judge; over what the configuration says."""
    chain: tuple[tuple[str, Any], ...] = ()
    """The options of a chain that were given, by name."""
    reader: str | None = None
    labels: str | None = None
    """What the reader is told, separated by commas."""
    passes: str | None = None
    """Which of its labels pass, separated by commas."""
    token: bool = True
    record: str | None = None

    def check(self) -> None:
        """Raise ``UsageError`` in the words of the command line for what the chain would refuse in its own."""
        from typing import get_args

        from adjudge._strategies import Strategy

        said = dict(self.chain)
        if said.get("strategy", "fallback") not in get_args(Strategy):
            known = ", ".join(get_args(Strategy))
            raise UsageError(f"--strategy: unknown strategy {said['strategy']!r}; use one of {known}")
        for option, value in (("--timeout", self.timeout), ("--hedge-after", said.get("hedge_after"))):
            if value is not None and not 0 < value < float("inf"):
                raise UsageError(f"{option} must be a finite number of seconds above 0, got {value:g}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The judge to ask, the rubric it is asked about, and why it was chosen when nobody named it."""

    judge: Judge | JudgeChain
    rubric: Rubric | None
    reason: str = ""


def choose(panel: Panel, config: Config, rubric: Rubric | None = None) -> Choice:
    """The judge to ask; raises ``UsageError`` with what to set when there is none."""
    panel.check()
    names, reason = (list(panel.judges), "") if panel.judges else _find_default(config, rubric)
    if rubric is not None and rubric.model is not None and not reason:
        # Whoever runs this has said who judges. A rubric's model must not take the place of a consensus of the
        # configuration, nor go to the network where a recording was named.
        from dataclasses import replace

        rubric = replace(rubric, model=None)
    return Choice(judge=_open(names, panel, config), rubric=rubric, reason=reason)


def _open(names: list[str], panel: Panel, config: Config) -> Judge | JudgeChain:
    seat: dict[str, Any] = ({} if panel.reader is None else {"reader": panel.reader}) | (
        {} if panel.token else {"token": False}
    )
    for written, key, names_given in (
        ("--reader-labels", "reader_labels", panel.labels),
        ("--reader-passes", "reader_passes", panel.passes),
    ):
        if names_given is not None:
            seat[key] = _split_names(written, names_given)
    opener = Opener(config=config, seat=seat, record=panel.record)
    given: dict[str, Any] = dict(panel.chain) | ({} if panel.timeout is None else {"timeout": panel.timeout})
    default: float | None = config.defaults.get("timeout")
    if len(names) == 1:
        return opener.open(names[0], chain=given, timeout=default)
    limits: Mapping[str, Any] = {} if default is None else {"timeout": default}
    return JudgeChain([opener.open_seat(name) for name in names], **{**limits, **given})


def _split_names(option: str, given: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in given.split(","))
    if not all(names) or len(set(names)) != len(names):
        raise UsageError(f"{option} must be different names separated by commas, like m,M, got {given!r}")
    return names


def _find_default(config: Config, rubric: Rubric | None) -> tuple[list[str], str]:
    """Who judges when the command line names nobody, and why, where that is not written down by the user."""
    if rubric is not None and all(item.rule for item in rubric.criteria):
        return ["rules"], ""
    if config.defaults.get("judge"):
        return [config.defaults["judge"]], ""
    named = os.environ.get("ADJUDGE_JUDGE", "").strip()
    if named:
        return [refuse_code(named, "ADJUDGE_JUDGE")], ""
    if rubric is not None and rubric.model is not None and ":" in rubric.model:
        return [refuse_code(rubric.model, f"the rubric {rubric.name!r}")], ""
    found = next(find_configured(), None) or next(find_local(), None)
    if found is None:
        raise UsageError(_NOTHING)
    return [found[0]], found[1]


def refuse_code(name: str, where: str) -> str:
    """A model's name that does not come from the user's own command line: raise ``UsageError`` if it would run code."""
    if name.startswith("python:"):
        raise UsageError(f"{where} names {name}, which runs code; name it with --judge or in adjudge.toml")
    return name
