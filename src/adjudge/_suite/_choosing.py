"""Who judges in a suite: what a call says, the command line, pytest's or adjudge's configuration, the environment.

How a judge is opened by its name is handed in: the command line's configuration knows, and stands above this.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from adjudge import Judge, JudgeChain, Rubric, UsageError, load_rubric, open_model
from adjudge._asking import RubricSource
from adjudge._display import clean
from adjudge._suite._judging import Chosen, TestJudge
from adjudge._suite._tape import Mode, Tape, name_file
from adjudge.models import resolve_model

_NOBODY = (
    "nobody is here to judge: name a model with --judge, `judge` in pytest's configuration, [defaults] of adjudge.toml "
    "beside it or ADJUDGE_JUDGE, or replay a recording with --judge-replay"
)


@dataclass(slots=True, kw_only=True)
class Suite:
    """What one run of pytest says about judging."""

    root: Path
    """pytest's root directory: ``adjudge.toml`` is read here, and nowhere else."""
    named: tuple[str, ...]
    strategy: str | None
    mode: Mode
    folder: Path
    """Where recordings are."""
    open_panel: Callable[[tuple[str, ...], str | None, Any], Judge | JudgeChain]
    read_config: Callable[[Path], Any]
    _config: Any = None
    _judges: dict[tuple[str, ...], Judge | JudgeChain] = field(default_factory=dict)

    def begin(self, test: str, function: str, directory: Path) -> TestJudge:
        """The judge of one test."""
        again = f"pytest {shlex.quote(clean(test, keep_lines=False))}"
        file = self.folder / name_file(test, function)
        tape = Tape(mode=self.mode, file=file, again=f"{again} --judge-record")
        choose = partial(self.choose, tape, directory)
        return TestJudge(test=test, choose=choose, tape=tape, again=again)

    def choose(
        self, tape: Tape, directory: Path, judge: Any, rubric: RubricSource | None, how: dict[str, Any]
    ) -> Chosen:
        """Who answers a call, and about which rubric; raises ``UsageError`` when nobody is named."""
        __tracebackhide__ = True
        own = self._open_given(judge) if judge is not None else self._open_named()
        found = self._find_rubric(rubric, how, directory, own)
        model = how.pop("model", None)
        if model is not None:
            own = _exchange(own, model)
        if own is None and found is not None and found.model is not None:
            own = Judge(open_model(found.model))
        if own is None and found is not None and all(item.rule for item in found.criteria):
            own = Judge("rules")
        if own is None and tape.mode == "replay":
            own = tape.replay_alone()
        if own is None:
            raise UsageError(_NOBODY)
        # Whoever runs the suite has said who judges: a rubric's model in its place would be asked past the recording.
        return own, replace(found, model=None) if found is not None and found.model is not None else found

    def _open_given(self, judge: Any) -> Judge | JudgeChain | None:
        if isinstance(judge, TestJudge):
            return self._open_named()
        if isinstance(judge, Judge | JudgeChain):
            return judge
        if isinstance(judge, str):
            return self._open((judge,), None)
        return JudgeChain([judge], timeout=None) if hasattr(judge, "ask") else Judge(judge)

    def _open_named(self) -> Judge | JudgeChain | None:
        names = self.named
        if self.strategy is not None and len(names) < 2:
            raise UsageError("--judge-strategy is for several --judge; name them, or use a judge of adjudge.toml")
        default = self._read().defaults.get("judge")
        if not names and default:
            names = (default,)
        spec = os.environ.get("ADJUDGE_JUDGE", "").strip()
        if not names and spec:
            if spec.startswith("python:"):
                raise UsageError(
                    f"ADJUDGE_JUDGE names {spec}, which runs code; name it with --judge or in adjudge.toml"
                )
            names = (spec,)
        return self._open(names, self.strategy) if names else None

    def _open(self, names: tuple[str, ...], strategy: str | None) -> Judge | JudgeChain:
        # Opened once, so that all tests share its connections.
        if names not in self._judges:
            self._judges[names] = self.open_panel(names, strategy, self._read())
        return self._judges[names]

    def _find_rubric(
        self, rubric: RubricSource | None, how: dict[str, Any], directory: Path, own: Judge | JudgeChain | None
    ) -> Rubric | None:
        if rubric is None:
            if how.get("criteria") is not None or how.get("result_format") is not None:
                return None
            mine = own._own_rubric() if own is not None else None  # noqa: SLF001 - as ``evaluate`` itself finds it
            return mine if mine is not None else self._read().find_default_rubric()
        if isinstance(rubric, str) and rubric in self._read().rubrics:
            found: Rubric = self._read().find_rubric(rubric)
            return found
        return load_rubric(self._locate(rubric, directory))

    def _locate(self, rubric: RubricSource, directory: Path) -> RubricSource:
        """A relative path from the test's folder or the root directory: a suite runs from any working directory."""
        path = Path(rubric) if isinstance(rubric, os.PathLike | str) and "\x00" not in str(rubric) else None
        if path is None or not (path.suffix or len(path.parts) > 1):
            return rubric
        return next((base / path for base in (directory, self.root) if (base / path).is_file()), rubric)

    def _read(self) -> Any:
        if self._config is None:
            self._config = self.read_config(self.root)
        return self._config


def _exchange(own: Judge | JudgeChain | None, model: str) -> Judge:
    """The judge with the model that a call names."""
    if own is None:
        return Judge(open_model(model))
    if isinstance(own, JudgeChain):
        raise UsageError(f"model {model!r} was given, and the suite's judge is the chain {own.name!r}; leave it out")
    return replace(own, model=resolve_model(model, own.model), name="")
