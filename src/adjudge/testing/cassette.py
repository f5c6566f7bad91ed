"""Recording and replaying the model replies of one test, in a file of its own.

Each test has its own file, so that parallel workers never share one, and renaming a test affects no other. The file's
name is the test's function and a digest of its id, because ids have parameters, and parameters may have content.
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
from adjudge.models.replies.missing_recording import MissingRecording, make_no_recording_error
from adjudge.models.replies.recording import RecordingModel
from adjudge.models.replies.replay import ReplayModel
from adjudge.result import JudgeResult

Mode = Literal["live", "record", "replay"]


_FAILED_REASONS = ("error", "timeout", "cancelled", "budget")
"""Undecided reasons with which a reply is missing, so that the recording could not be replayed."""


def name_file(test: str, function: str) -> str:
    """Make the name of a test's recording, from its id and the name of its function."""
    plain = re.sub(r"[^A-Za-z0-9_]+", "_", function)[:60].strip("_") or "test"
    return f"{plain}-{hashlib.sha256(test.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}.jsonl"


@dataclass(slots=True, kw_only=True)
class Cassette:
    """The recording of one test's models, which answer live, live and recorded, or from the recording alone."""

    mode: Mode
    file: Path
    record_command: str
    """The command that records this test, for the message about a missing recording."""
    names_judge: bool = False
    """True if that command names the judge."""
    missed: list[str] = field(default_factory=list)
    """A message for each request of a replay that is not in the recording."""
    broken: str = ""
    """The reason why the recording of this run cannot be used; empty if it can."""
    begun: int = 0
    """The number of judgements that were begun."""
    noted: int = 0
    """The number of judgements that had a result."""
    _replays: dict[tuple[str | None, int, FunctionIdentity | None], Replay] = field(default_factory=dict)

    def attach(self, judge: Judge | JudgeChain) -> Judge | JudgeChain:
        """Return a judge whose models are recorded or replayed; raises ``UsageError`` for a seat that cannot be."""
        self.begun += 1
        if self.mode == "live":
            return judge
        for name in _list_unrecordable_seats(judge):
            # In a replay it would really be asked, although a replay promises that nobody is.
            raise UsageError(f"the seat {name!r} is an object of its own, so it is neither recorded nor replayed")
        attached = wrap_models(judge, self._wrap_model)
        return _drop_early_stops(attached) if self.mode == "record" else attached

    def replay_alone(self) -> Judge:
        """Make a judge from the only model in the recording, for a suite that names no judge."""
        return Judge(self._replay_model(None, None, 0))

    def note(self, result: JudgeResult) -> None:
        """Count a result; raises ``UsageError`` if a reply that it needed was not in the recording."""
        __tracebackhide__ = True
        self.noted += 1
        if self.mode == "record" and not self.broken:
            failed = [part for part in _list_results(result) if part.undecided_because in _FAILED_REASONS]
            self.broken = failed[0].detail if failed else ""
        if self.missed:
            # Otherwise a test that expects a rejection would pass because of the missing reply.
            raise UsageError(self.explain_miss())

    def explain_miss(self) -> str:
        """Explain what is not in the recording and how to record it; empty where nothing is missing."""
        return f"{self.missed[-1]}; record it with: {self._make_record_command()}" if self.missed else ""

    def _make_record_command(self) -> str:
        """Return the command that records the test; if it names no judge, with the only recorded model as the judge."""
        recorded = {name for replay in self._replays.values() if (name := replay.recorded_model) is not None}
        if self.names_judge or len(recorded) != 1:
            return self.record_command
        return f"{self.record_command} --judge {shlex.quote(recorded.pop())}"

    def close(self) -> str:
        """Replace the recording by that of this run; return a sentence if it was not kept, else an empty text.

        Raises ``UsageError`` if the file cannot be written.
        """
        if self.mode != "record" or not self.begun:
            return ""  # a test that asked nobody keeps its earlier recording
        if self.begun > self.noted and not self.broken:
            self.broken = "a judgement did not end"
        try:
            own_parts = sorted(self.file.parent.glob(f".{self.file.stem}.*.{os.getpid()}.part"))
            for part in set(self.file.parent.glob(f".{self.file.stem}.*.part")) - set(own_parts):
                part.unlink(missing_ok=True)  # left by a run that was killed
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
        # Seats of one model have a file each. In one file, equal requests would get each other's replies. The number of
        # the seat is the third part from the end of the name.
        recordings = {self._name_recording(int(part.name.split(".")[-3])): part for part in parts}
        for stale in self.file.parent.glob(f"{self.file.stem}.*jsonl"):
            if stale not in recordings:
                stale.unlink()
        for recording, part in recordings.items():
            _sort_rows(part)
            part.replace(recording)
        return ""

    def _name_recording(self, number: int) -> Path:
        """Return the file of the recording for the seat with a number; the first has the file without a number."""
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
        # One replay for the whole test, because the replies to equal requests are used in order, over all judgements.
        # The function is taken from the judge that is asked, because the file alone does not tell that one answered.
        function = find_function(model)
        replay = self._replays.get((name, number, function))
        if replay is None:
            limit = int(getattr(model, "max_input_characters", 1_000_000))
            replay = Replay(self._name_recording(number), cassette=self, only=name, max_input_characters=limit)
            replay.function_identity = function
            self._replays[name, number, function] = replay
        return replay


class Replay(ReplayModel):
    """A model that answers from a test's recording and contacts nobody; it tells the cassette which requests it misses.

    It has the name of the recorded model, so that results and the lookup of a rubric's model are the same.
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
            absence = make_no_recording_error(self.path, self.only)
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
        """Return the index of the recording; ``None`` if there is no file. Raises ``UsageError`` for several models."""
        # A missing file is no error yet: rules may decide the test. Only asking for a reply reports it.
        recording = super()._find_index() if self.path.exists() else None
        if recording is not None and self.only is None and len(recording.recorded) > 1:
            raise UsageError(f"{self.path} holds several models and nothing says how they judge; name the judge")
        return recording


def _list_unrecordable_seats(judge: object) -> Iterator[str]:
    """Yield the names of single judges that do not ask a model as ``Judge`` does, and so cannot be recorded."""
    for single_judge in list_leaves(judge):
        if not asks_as(single_judge, Judge):
            yield str(getattr(single_judge, "name", type(single_judge).__name__))


def _drop_early_stops(judge: Any) -> Any:
    """Return a judge whose chains ask all seats: in a replay other seats may answer first, and each needs its reply."""
    if not isinstance(judge, JudgeChain):
        return judge
    seats = [_drop_early_stops(seat) for _, seat in judge.seats]
    stops_early = judge.stop_early and judge.strategy not in COUNTING
    return judge.replace(judges=seats, stop_early=stops_early)


def _list_results(result: JudgeResult) -> Iterator[JudgeResult]:
    """Yield a result and the results of its seats, at any depth."""
    yield result
    for seat in getattr(result, "results", ()):
        yield from _list_results(seat)


def _sort_rows(file: Path) -> None:
    """Sort a file's rows by their keys, so that recording again changes only rows with another reply."""
    lines = [line for line in file.read_bytes().splitlines(keepends=True) if line.strip()]
    with suppress(OSError):  # a file system without modes
        file.chmod(0o600)
    file.write_bytes(b"".join(sorted(lines, key=lambda line: str(json.loads(line).get("key")))))
