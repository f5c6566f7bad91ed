"""Candidates of ``adjudge replace-judge``: judges that may replace another, each asked about its labelled cases."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adjudge.cli.batches import describe_batches, list_batch_prices, note_batches_left
from adjudge.cli.error_messages import format_error
from adjudge.cli.interruption import catching_interrupts, finish_or_leave
from adjudge.cli.output import note, show_status
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
    """A judge, or a run of one, that ``--candidate`` names."""

    name: str
    folder: Path
    """The folder in which its run is, or will be kept."""
    is_run: bool
    """True if the name is that of a run, so that nobody is asked."""


def read_candidates(names: Sequence[str], folder: Path) -> list[NamedCandidate]:
    """Read the names of ``--candidate``: each is the folder of a run, or a judge to ask.

    The run of a judge that is asked is kept below ``folder``. Raises ``UsageError`` for a name that is given twice.
    """
    if len(set(names)) < len(names):
        raise UsageError(f"--candidate names {show(max(names, key=names.count))} twice; name each once")
    candidates = []
    for name in names:
        is_run = (Path(name) / MANIFEST_FILE).is_file()
        run_folder = Path(name) if is_run else folder / "candidates" / _make_folder_name(name)
        candidates.append(NamedCandidate(name=name, folder=run_folder, is_run=is_run))
    return candidates


def _make_folder_name(candidate: str) -> str:
    """Make the name of the folder for the run of a candidate: its readable part, and a short digest.

    The folder depends on the candidate's name alone, and not on its number in the command. Else ``--resume`` with
    other candidates, or with the same ones in another order, would not find the run and would pay for it again.
    """
    readable = re.sub(r"[^\w.-]+", "-", candidate).strip("-.")[:80] or "candidate"
    return f"{readable}-{hashlib.sha256(candidate.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


@dataclass(slots=True)
class Inquiry:
    """The question to all candidates: the run and the cases that they are asked about, and the options of asking."""

    before: Run
    """The run of the judge to be replaced."""
    cases: Sequence[Case]
    """The labelled cases of that run."""
    config: Config
    options: Mapping[str, Any]
    """The options of ``ask_candidate`` that are the same for every candidate."""
    batch: BatchOptions | None
    """``None`` asks live, one candidate after the other."""
    interrupted: asyncio.Event = field(default_factory=asyncio.Event)
    _runs: list[_CandidateRun] = field(default_factory=list)

    async def ask(self, candidates: Sequence[NamedCandidate]) -> list[Run] | None:
        """Ask each candidate about the cases, and return their runs.

        Returns ``None`` after an interrupt, when the user was told how to resume. Raises ``UsageError`` before anybody
        is asked if one of the candidates cannot be asked. By batch, an error of one candidate is raised only when the
        others have ended, because their batches are paid for.
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
            with show_status(self._describe), catching_interrupts(self._wind_down, self.interrupted):
                runs = await finish_or_leave(self._ask_all(), self.interrupted)
        except asyncio.CancelledError:
            if not self.interrupted.is_set():
                raise
            runs = None
        finally:
            for judge in judges:
                await judge.aclose()
        if runs is None or self.interrupted.is_set() or any(run.status == "interrupted" for run in runs):
            self._explain_resuming()
            return None
        return runs

    def _choose_batches(self, candidates: Sequence[NamedCandidate], judges: Sequence[Any]) -> list[BatchOptions | None]:
        """Choose the batch options of each candidate; ``None`` for one that is asked live.

        With ``--batch``, a candidate that asks no provider's model, such as a Python function, is asked live while the
        others wait for their batches. Raises ``UsageError`` for a candidate that cannot wait for batches, such as a
        chain that asks its next judge after some seconds, and where none of the candidates can be asked by batch.
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
        for run_or_error in (task.result() for task in tasks):
            if isinstance(run_or_error, AdjudgeError):
                raise run_or_error
            runs.append(run_or_error)
        return runs

    def _wind_down(self) -> None:
        """Have every candidate's run finish the calls under way, and begin no more."""
        for candidate_run in self._runs:
            candidate_run.running.wind_down()

    def _describe(self) -> str:
        """Describe the progress of all candidates in one line."""
        return "; ".join(candidate_run.describe() for candidate_run in self._runs)

    def _explain_resuming(self) -> None:
        """Tell the user what is kept after an interrupt, and how to resume."""
        for candidate_run in self._runs:
            note_batches_left(candidate_run.running.progress, candidate_run.candidate.folder)
        note("what was answered is kept; to resume, repeat the command with --resume")


@dataclass(frozen=True, slots=True, kw_only=True)
class _CandidateRun:
    """A candidate that is asked, and its run under way."""

    candidate: NamedCandidate
    running: Running

    def describe(self) -> str:
        """Describe how many of its cases a candidate has judged."""
        progress = self.running.progress
        if progress is None:
            return f"{self.candidate.name}: waiting"
        by_batch = "" if progress.batch is None else describe_batches(progress.batch)
        return f"{self.candidate.name}: {progress.done:,} of {progress.total or 0:,} cases{by_batch}"


async def _ask_beside_others(candidate_run: _CandidateRun) -> Run | AdjudgeError:
    """Wait for the run of a candidate, and return the run, or its error.

    The error is returned, because raised in a task group it would cancel the other candidates.
    """
    try:
        return await candidate_run.running
    except AdjudgeError as error:
        # Written now, and not when the others have ended, which may be tomorrow.
        note(f"{candidate_run.candidate.name}, kept in {candidate_run.candidate.folder}: {format_error(error)}")
        return error
