"""Judges that may replace another, asked about its labelled cases: one after the other, or by batch all at once."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adjudge.cli.batches import describe_batches, list_batch_prices, note_batches_left
from adjudge.cli.interruption import catching_interrupts, finish_or_leave
from adjudge.cli.output import note, watch
from adjudge.cli.spelling import spell
from adjudge.config.file import Config
from adjudge.config.judges import Panel, choose
from adjudge.dataset.case import Case
from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.text import show
from adjudge.runs.batch.options import BatchOptions
from adjudge.runs.folder import MANIFEST_FILE, Run
from adjudge.runs.launch import Running


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedCandidate:
    """A candidate as it was named."""

    name: str
    folder: Path
    """The folder in which its run is, or will be kept."""
    is_run: bool
    """True if the name is that of a run, so that nobody is asked."""


def read_candidates(names: Sequence[str], folder: Path) -> list[NamedCandidate]:
    """Read what ``--candidate`` names; runs of those that are asked are kept in ``folder``.

    Raises ``UsageError`` for a name that is given twice.
    """
    if len(set(names)) < len(names):
        raise UsageError(f"--candidate names {show(max(names, key=names.count))} twice; name each once")
    candidates = []
    for name in names:
        is_run = (Path(name) / MANIFEST_FILE).is_file()
        place = Path(name) if is_run else folder / "candidates" / _name_folder(name)
        candidates.append(NamedCandidate(name=name, folder=place, is_run=is_run))
    return candidates


def _name_folder(name: str) -> str:
    """The folder of a candidate's run.

    It depends on the name alone. With a number, ``--resume`` with other candidates, or with the same ones in another
    order, would not find the run and would pay for it again.
    """
    short = re.sub(r"[^\w.-]+", "-", name).strip("-.")[:80] or "candidate"
    return f"{short}-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


@dataclass(slots=True)
class Inquiry:
    """The candidates that are asked, and what they are asked."""

    before: Run
    cases: Sequence[Case]
    config: Config
    options: Mapping[str, Any]
    """Those of ``ask_candidate`` that are the same for every candidate."""
    batch: BatchOptions | None
    interrupted: asyncio.Event = field(default_factory=asyncio.Event)
    _runs: list[_CandidateRun] = field(default_factory=list)

    async def ask(self, candidates: Sequence[NamedCandidate]) -> list[Run] | None:
        """The run of each candidate; ``None`` when that was interrupted, and a person was told how to go on.

        Raises ``UsageError`` with nobody asked for a candidate that cannot be, and by batch the first error of a
        candidate when the others have ended: what they wait for is paid for.
        """
        from adjudge.runs.same_question import ask_candidate

        judges: list[Any] = []
        try:
            judges.extend(choose(Panel(judges=(candidate.name,)), self.config).judge for candidate in candidates)
            # Everybody is checked before anybody is asked: a slip in the last name must not cost what the first takes.
            batches = self._choose_batches(candidates, judges)
            for candidate, judge, batch in zip(candidates, judges, batches, strict=True):
                running = await ask_candidate(
                    self.before, judge, self.cases, out=candidate.folder, batch=batch or False, **self.options
                )
                self._runs.append(_CandidateRun(candidate=candidate, running=running))
            with watch(self._describe), catching_interrupts(self._wind_down, self.interrupted):
                runs = await finish_or_leave(self._ask_all(), self.interrupted)
        except asyncio.CancelledError:
            if not self.interrupted.is_set():
                raise
            runs = None
        finally:
            for judge in judges:
                await judge.aclose()
        if runs is None or self.interrupted.is_set() or any(run.status == "interrupted" for run in runs):
            self._explain_going_on()
            return None
        return runs

    def _choose_batches(self, candidates: Sequence[NamedCandidate], judges: Sequence[Any]) -> list[BatchOptions | None]:
        """Choose the batches of each candidate; a function, which has none, is asked at once beside one that has.

        Raises ``UsageError`` for one that can be asked in neither way.
        """
        if self.batch is None:
            return [None] * len(judges)
        from adjudge.runs.batch.session import check_judge, sends_batches

        batches: list[BatchOptions | None] = []
        for candidate, judge in zip(candidates, judges, strict=True):
            try:
                batches.append(self.batch if sends_batches(judge) else None)
            except UsageError as error:
                raise UsageError(
                    error,
                    "; to ask it live beside candidates by batch, ask it alone first, and then name its run "
                    f"({candidate.folder}) as the candidate",
                    argument=error.argument,
                ) from None
        if not any(batches):
            check_judge(judges[0])  # raises, and says why this judge has no batches
        for judge in judges:
            note("\n".join(list_batch_prices(judge, self.config.prices)) or None)
        return batches

    async def _ask_all(self) -> list[Run]:
        """Run the candidates and return their runs: one after the other, or by batch all at once."""
        if self.batch is None:
            runs = []
            for candidate_run in self._runs:
                if self.interrupted.is_set():
                    break
                runs.append(await candidate_run.running)
            return runs
        # All at once: each waits for hours, and they do not wait for each other.
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_ask_beside_others(candidate_run)) for candidate_run in self._runs]
        runs = []
        for end in (task.result() for task in tasks):
            if isinstance(end, AdjudgeError):
                raise end
            runs.append(end)
        return runs

    def _wind_down(self) -> None:
        for candidate_run in self._runs:
            candidate_run.running.wind_down()

    def _describe(self) -> str:
        return "; ".join(candidate_run.describe() for candidate_run in self._runs)

    def _explain_going_on(self) -> None:
        for candidate_run in self._runs:
            note_batches_left(candidate_run.running.progress, candidate_run.candidate.folder)
        note("what was answered is kept; to resume, repeat the command with --resume")


@dataclass(frozen=True, slots=True, kw_only=True)
class _CandidateRun:
    """A candidate that is asked, and its run."""

    candidate: NamedCandidate
    running: Running

    def describe(self) -> str:
        """Describe how far the run is."""
        progress = self.running.progress
        if progress is None:
            return f"{self.candidate.name}: waiting"
        by_batch = "" if progress.batch is None else describe_batches(progress.batch)
        return f"{self.candidate.name}: {progress.done:,} of {progress.total or 0:,} cases{by_batch}"


async def _ask_beside_others(candidate_run: _CandidateRun) -> Run | AdjudgeError:
    """The run of a candidate, or why there is none; an error of one does not end the others."""
    try:
        return await candidate_run.running
    except AdjudgeError as error:
        # Now, and not when the others have ended, which may be tomorrow.
        note(f"{candidate_run.candidate.name}, kept in {candidate_run.candidate.folder}: {spell(error)}")
        return error
