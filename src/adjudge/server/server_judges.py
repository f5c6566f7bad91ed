"""Judges and rubrics of the server, by the names that a request may use.

A request names what the configuration has, and nothing else: no model, no address and no path, so that nobody can have
the server ask a host of their choosing or read a file.

How many contents are judged at once is decided in ``work_queue.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from adjudge.config.file import Config
from adjudge.config.gates import check_judge_ready
from adjudge.config.judges import JudgeOpener
from adjudge.config.server import ServerSettings
from adjudge.errors import UsageError
from adjudge.formats.text import flatten, show
from adjudge.judges.chain import JudgeChain
from adjudge.judges.judge import Judge
from adjudge.rubric.file import SHIPPED_RUBRICS, load_rubric
from adjudge.rubric.rubric import Rubric


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerJudges:
    """The judges and rubrics of a configuration, opened."""

    default: str | None
    """The name of the judge that is asked where a request names none; ``None`` where there is none."""
    judges: Mapping[str, Judge | JudgeChain]
    rubrics: Mapping[str, Rubric]

    def find_judge(self, name: str | None) -> Judge | JudgeChain:
        """Find the judge of a name, or the default; raises ``UsageError`` where there is none."""
        judge_name = name if name is not None else self.default
        if judge_name is None:
            raise UsageError("this server has no default judge; name one of its judges")
        if judge_name not in self.judges:
            names = flatten(", ".join(sorted(self.judges)), 400) or "none"
            raise UsageError(f"this server has no judge {show(judge_name)}; it has {names}")
        return self.judges[judge_name]

    def find_rubric(self, source: str | Mapping[str, Any] | None) -> Rubric | None:
        """Find the rubric of a name, or read one from a mapping; raises ``UsageError`` for anything else."""
        if source is None:
            return None
        if not isinstance(source, str):
            # Only the server's configuration chooses models: a rubric in a request could name a host of its sender's.
            return replace(load_rubric(source), model=None)
        if source not in self.rubrics:
            names = flatten(", ".join(sorted(self.rubrics)), 600)
            raise UsageError(f"this server has no rubric {show(source)}; it has {names}")
        return self.rubrics[source]

    async def aclose(self) -> None:
        """Close the connections of all models."""
        for judge in self.judges.values():
            await judge.aclose()


def open_judges(config: Config, settings: ServerSettings) -> ServerJudges:
    """Open every judge and rubric of a configuration; raises ``UsageError`` for what cannot be opened."""
    opener = JudgeOpener(config=config, named_in=config.folder)
    timeout: float | None = config.defaults.get("timeout")
    judges = {name: opener.open(name, timeout=timeout) for name in config.judges}
    default = settings.judge or config.defaults.get("judge")
    if default is not None and default not in judges:  # [defaults] may name a model
        judges[default] = opener.open(default, timeout=timeout)
    if default is not None:
        try:
            check_judge_ready(judges[default])
        except UsageError as error:
            raise error.within(f"{config.path}: judge {show(default)}") from None
    rubrics = {name: _open_rubric(name, config) for name in (*SHIPPED_RUBRICS, *config.rubrics)}
    return ServerJudges(default=default, judges=judges, rubrics=rubrics)


def _open_rubric(name: str, config: Config) -> Rubric:
    """Load a rubric by its name, without the model that its file may name; raises ``UsageError``."""
    try:
        return replace(config.find_rubric(name), model=None)
    except UsageError as error:
        raise error.within(f"{config.path}: [rubrics] {flatten(name, 120)}") from None
