"""The recording of one test: a file of its own, so that workers never share one and a renamed test leaves the others.

A file is named by the test's function and a digest of its id: ids hold parameters, and parameters hold content.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from adjudge.errors import UsageError
from adjudge.judges.chain import JudgeChain, list_leaves
from adjudge.judges.chain_outcome import COUNTING
from adjudge.judges.judge import Judge, asks_as
from adjudge.judges.layers import wrap_models
from adjudge.models.model import FunctionIdentity, Model, Reply, Request, find_function
from adjudge.models.replies.miss import MissingRecording, make_absence
from adjudge.models.replies.recording import RecordingModel
from adjudge.models.replies.replay import ReplayModel
from adjudge.result import JudgeResult

Mode = Literal["live", "record", "replay"]


_BROKEN = ("error", "timeout", "cancelled", "budget")
"""Reasons after which a recording would lack an answer that the judge needs when it is replayed."""


def name_file(test: str, function: str) -> str:
    """Make the name of a test's recording, from its id and the name of its function."""
    plain = re.sub(r"[^A-Za-z0-9_]+", "_", function)[:60].strip("_") or "test"
    return f"{plain}-{hashlib.sha256(test.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}.jsonl"


@dataclass(slots=True, kw_only=True)
class Cassette:
    """A tape for the models of one test: they answer for real, for real and recorded, or from the recording alone."""

    mode: Mode
    file: Path
    record_command: str
    """The command that records this test, for whoever misses a recording."""
    names_judge: bool = False
    """True if that command says who judges."""
    missed: list[str] = field(default_factory=list)
    """The requests of a replay that are not in the recording."""
    broken: str = ""
    """The reason why what was recorded cannot stand for the test; empty when it can."""
    begun: int = 0
    noted: int = 0
    """The numbers of judgements that were begun, and that had a result."""
    _replays: dict[tuple[str | None, int, FunctionIdentity | None], Replay] = field(default_factory=dict)

    def attach(self, judge: Judge | JudgeChain) -> Judge | JudgeChain:
        """Attach a judge's models to this tape; raises ``UsageError`` for a seat that cannot be attached."""
        self.begun += 1
        if self.mode == "live":
            return judge
        for name in _list_foreign_seats(judge):
            # It would be asked for real in a replay, which promises that nobody is.
            raise UsageError(f"the seat {name!r} is an object of its own, so it is neither recorded nor replayed")
        attached = wrap_models(judge, self._wrap_model)
        return _drop_early_stops(attached) if self.mode == "record" else attached

    def replay_alone(self) -> Judge:
        """Make a judge for a suite that says nowhere who judges: the one model of the recording."""
        return Judge(self._replay_model(None, None, 0))

    def note(self, result: JudgeResult) -> None:
        """Count a result; raises ``UsageError`` when it rests on an answer that is missing."""
        __tracebackhide__ = True
        self.noted += 1
        if self.mode == "record" and not self.broken:
            self.broken = next((part.detail for part in _list_results(result) if part.undecided_because in _BROKEN), "")
        if self.missed:
            # A test that expects a rejection would else pass because nothing was found.
            raise UsageError(self.explain_miss())

    def explain_miss(self) -> str:
        """Explain what is not in the recording and how to record it; empty where nothing is missing."""
        return f"{self.missed[-1]}; record it with: {self._make_record_command()}" if self.missed else ""

    def _make_record_command(self) -> str:
        """Return the command that records, with the judge that the recording is of where no option names one."""
        recorded = {name for replay in self._replays.values() if (name := replay.recorded_model) is not None}
        if self.names_judge or len(recorded) != 1:
            return self.record_command
        return f"{self.record_command} --judge {shlex.quote(recorded.pop())}"

    def close(self) -> str:
        """Keep what was recorded, in place of what was there; one sentence when it was not kept, else nothing.

        Raises ``UsageError``.
        """
        if self.mode != "record" or not self.begun:
            return ""  # above all, a test that could ask nobody does not lose what was recorded before
        if self.begun > self.noted and not self.broken:
            self.broken = "a judgement did not end"
        try:
            own_parts = sorted(self.file.parent.glob(f".{self.file.stem}.*.{os.getpid()}.part"))
            for part in set(self.file.parent.glob(f".{self.file.stem}.*.part")) - set(own_parts):
                part.unlink(missing_ok=True)  # of a run that was killed
            return self._replace_recordings(own_parts)
        except OSError as error:
            raise UsageError(f"the recording {str(self.file)!r} cannot be written: {error.strerror}") from None

    def _replace_recordings(self, parts: list[Path]) -> str:
        """Put the parts in the place of the recordings, and delete recordings that have no part.

        Returns an empty text. If the recording is broken, only the parts are deleted, and the reason is returned.
        """
        if self.broken:
            for part in parts:
                part.unlink()
            return f"not recorded: {self.broken}"
        # Seats of one model have a file each: equal keys would hand one seat's answer to the other.
        recordings = {self._name_recording(int(part.name.split(".")[-3])): part for part in parts}
        for stale in self.file.parent.glob(f"{self.file.stem}.*jsonl"):
            if stale not in recordings:
                stale.unlink()
        for recording, part in recordings.items():
            _sort_rows(part)
            part.replace(recording)
        return ""

    def _name_recording(self, number: int) -> Path:
        return self.file if number == 0 else self.file.with_name(f"{self.file.stem}.{number + 1}.jsonl")

    def _wrap_model(self, model: Model, number: int) -> Model:
        """Return a model that records or replays, as the mode says; a ``Replay`` stays as it is.

        ``number`` tells the seats of one model apart. Raises ``UsageError`` if the folder of recordings cannot be made.
        """
        if isinstance(model, Replay):
            return model
        if self.mode == "replay":
            return self._replay_model(model, model.name, number)
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"the recordings {str(self.file.parent)!r} cannot be written: {error.strerror}") from None
        return RecordingModel(model, self.file.with_name(f".{self.file.stem}.{number}.{os.getpid()}.part"))

    def _replay_model(self, model: Model | None, name: str | None, number: int) -> Replay:
        """Return the replay of a seat, made once for a test; without a ``name`` it is of the one recorded model."""
        # One for the whole test: rows that answer the same are used up in order, over all its judgements.
        # The function is that of the judge which is asked: the file alone never says that a function answered.
        function = find_function(model)
        replay = self._replays.get((name, number, function))
        if replay is None:
            limit = int(getattr(model, "max_input_characters", 1_000_000))
            replay = Replay(self._name_recording(number), cassette=self, only=name, max_input_characters=limit)
            replay.function_identity = function
            self._replays[name, number, function] = replay
        return replay


class Replay(ReplayModel):
    """A model that answers from a test's recording, and tells the tape what it does not find; it contacts nobody.

    It has the name of the model that was recorded: results and the lookup of a rubric's model are those of the model.
    """

    def __init__(self, path: Path, *, cassette: Cassette, only: str | None, max_input_characters: int) -> None:
        super().__init__(path, model=only)
        self.cassette = cassette
        self.max_input_characters = max_input_characters

    @property
    def name(self) -> str:
        """The name of the model that was recorded."""
        recording = self._find_index() if self.only is None else None
        return self.only or (recording.recorded[0] if recording is not None else "") or "replay"

    @property
    def recorded_model(self) -> str | None:
        """The name by which the recorded model can be opened again; ``None`` for a function, and where none is known.

        A name without a prefix, such as that of a function, opens nothing.
        """
        return self.name if ":" in self.name else None

    @property
    def structured(self) -> bool:
        """Return whether the recorded model gave structured output."""
        recording = self._find_index()
        return recording is not None and recording.structured

    def check(self) -> None:
        """Do nothing: what is not recorded is reported when it is asked for."""

    async def complete(self, request: Request, /) -> Reply:
        """Return the recorded reply; raises ``MissingRecording`` where there is none."""
        if self._find_index() is None:
            absence = make_absence(self.path, self.only)
            self.cassette.missed.append(str(absence))
            raise absence
        try:
            return await super().complete(request)
        except MissingRecording as error:
            self.cassette.missed.append(str(error))
            raise

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {str(self.path)!r}>"

    def _find_index(self) -> Any:
        # A test that was never recorded misses an answer when it asks, and is told how to record one; until then it may
        # be one that rules decide.
        recording = super()._find_index() if self.path.exists() else None
        if recording is not None and self.only is None and len(recording.recorded) > 1:
            raise UsageError(f"{self.path} holds several models and nothing says how they judge; name the judge")
        return recording


def _list_foreign_seats(judge: object) -> Iterator[str]:
    for leaf in list_leaves(judge):
        if not asks_as(leaf, Judge):
            yield str(getattr(leaf, "name", type(leaf).__name__))


def _drop_early_stops(judge: Any) -> Any:
    """Drop a judge's early stops: in a replay the seats answer in another order, and each needs its answer."""
    if not isinstance(judge, JudgeChain):
        return judge
    seats = [_drop_early_stops(seat) for _, seat in judge.seats]
    early = judge.stop_early and judge.strategy not in COUNTING
    return judge.replace(judges=seats, stop_early=early)


def _list_results(result: JudgeResult) -> Iterator[JudgeResult]:
    yield result
    for seat in getattr(result, "results", ()):
        yield from _list_results(seat)


def _sort_rows(file: Path) -> None:
    """Sort a file's rows by their keys, so that recording again changes only what was answered otherwise."""
    lines = [line for line in file.read_bytes().splitlines(keepends=True) if line.strip()]
    with suppress(OSError):  # a file system without modes
        file.chmod(0o600)
    file.write_bytes(b"".join(sorted(lines, key=lambda line: str(json.loads(line).get("key")))))
