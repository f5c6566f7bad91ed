"""The runs of a server: the folders under ``runs`` of ``[server]``, by their names, and the labels beside them."""

from __future__ import annotations

import asyncio
import os
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TypeVar

from adjudge.errors import UsageError
from adjudge.formats.text import clean, flatten, show
from adjudge.labels.looks import LOOKS_FILE
from adjudge.labels.planned_order import PLAN_FILE
from adjudge.labels.queue import LabelQueue, open_label_queue
from adjudge.labels.source import STORE_FILE, find_store
from adjudge.report.report_tables import make_share
from adjudge.runs.folder import LOCK_FILE, MANIFEST_FILE, Run
from adjudge.runs.store import FILE
from adjudge.server.problem import Problem
from adjudge.trust.intervals import Share

T = TypeVar("T")

_RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
"""The names that a run's folder may have: none that leads out of the folder, or that an operating system interprets."""

_MOST_OPEN = 8
"""Runs whose labels are open at once."""

_MOST_COUNTS = 1_000
"""Counts of the cases left to label that are remembered, each for a run and a rater."""


RUN_FILES = (
    MANIFEST_FILE,
    LOCK_FILE,
    *(f"{name}{suffix}" for name in (FILE, STORE_FILE) for suffix in ("", "-wal", "-shm")),
    PLAN_FILE,
    LOOKS_FILE,
)
"""The files of a run that are opened to show it."""

RESULT_FILES = (MANIFEST_FILE, LOCK_FILE, FILE, f"{FILE}-wal")
"""The files of a run that hold its results. Labels are in other files, which change when a case to label is opened."""


def scan_folder(folder: Path | None) -> dict[str, Path]:
    """Find the runs in a folder: their folders by name, in the reverse order of names, so that the newest come first.

    ``None`` is no configured folder, which has no runs.
    """
    if folder is None or not folder.is_dir():
        return {}
    folders = [path for path in folder.iterdir() if _RUN_NAME.fullmatch(path.name) and is_run(path)]
    return {path.name: path for path in sorted(folders, key=lambda path: path.name, reverse=True)}


def find_run_folder(folder: Path | None, name: str) -> Path:
    """Find the folder of a run; raises ``Problem`` (404) for a name that none has."""
    # Compared with the listing: where a file system ignores case, another spelling would open the same labels twice.
    is_listed = folder is not None and _RUN_NAME.fullmatch(name) and any(path.name == name for path in folder.iterdir())
    if folder is not None and is_listed and is_run(folder / name):
        return check_files(folder / name)
    raise Problem(404, f"there is no run {show(name[:200])} here", code="unknown_run")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """A run in short."""

    name: str
    id: str = ""
    status: str = ""
    judge: str = ""
    dataset: str = ""
    created_at: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    """The numbers of judgements that passed, failed and are undecided."""
    cases: int = 0
    trouble: str = ""
    """The reason why it cannot be read; empty where it can."""

    @property
    def begun(self) -> datetime | None:
        """The time at which it was begun; ``None`` where its folder says no time."""
        try:
            moment = datetime.fromisoformat(self.created_at)
        except ValueError:
            return None
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)

    @property
    def passed(self) -> Share:
        """The share of the judged cases that passed; one that was judged several times counts once, by its share."""
        judgements = sum(self.counts.values())
        passed = self.counts.get("passed", 0)
        # Scaled to the number of cases: judging each of them again must not make the interval of the share narrower.
        passed_cases = passed if judgements == self.cases else passed * self.cases / judgements
        return make_share(passed_cases, self.cases)


def summarise_run(run: Run, *, name: str) -> RunSummary:
    """Summarise a run; raises ``UsageError`` where its file cannot be read."""
    manifest, summary = run.manifest, run.summary
    counts = {outcome: summary["counts"].get(outcome, 0) for outcome in ("passed", "failed", "undecided")}
    return RunSummary(
        name=name,
        id=flatten(run.id, 100),
        status=run.status,
        judge=_read_name(manifest.get("judge")),
        dataset=_read_name(manifest.get("dataset")),
        created_at=clean(str(manifest.get("created_at", "")), keep_lines=False)[:40],
        counts=counts,
        cases=_read_cases(summary["cases"], sum(counts.values())),
    )


def _read_cases(value: object, judgements: int) -> int:
    """Read the number of cases; if the manifest has an impossible number, return that of the judgements."""
    return value if isinstance(value, int) and 0 < value <= judgements else judgements


def _read_name(value: object) -> str:
    """Read the name of a judge or data set from a manifest, which describes it by a mapping or by the name alone.

    A manifest is a file and may hold anything, so the name is cut and cleaned; empty if there is none.
    """
    name = value.get("name") if isinstance(value, Mapping) else value
    return flatten(str(name), 200) if name else ""


def explain_trouble(error: UsageError, folder: Path | None) -> str:
    """Explain what is wrong with a run, without the path of its parent folder, which callers need not know."""
    return hide_folder(str(error), folder)


def hide_folder(text: str, folder: Path | None) -> str:
    """Write a text in one line, without the path of a folder."""
    return flatten(text.replace(f"{folder}{os.sep}", ""), 500)


def check_files(folder: Path) -> Path:
    """Return the folder of a run; raises ``Problem`` (409) where a file of it is a link, which could lead anywhere."""
    link = next((file for file in RUN_FILES if (folder / file).is_symlink()), None)
    if link is not None:
        raise Problem(409, f"{link} of this run is a link, which is not followed; copy the file there", code="linked")
    return folder


def is_run(path: Path) -> bool:
    """Return whether a path is the folder of a run, and not a link to one."""
    # A link could lead out of the configured folder, to files that nobody meant to show.
    return not path.is_symlink() and (path / MANIFEST_FILE).is_file()


@dataclass(frozen=True, slots=True, kw_only=True)
class _OpenQueue:
    """An open label queue, and the times at which the files that it was opened from were written."""

    write_times: tuple[int, ...]
    queue: LabelQueue


def _read_write_times(folder: Path) -> tuple[int, ...]:
    """Read when the manifest and the plan of a run were written, in nanoseconds; 0 for a file that is not there."""
    return tuple(_read_write_time(folder / name) for name in (MANIFEST_FILE, PLAN_FILE))


def _read_write_time(path: Path) -> int:
    """Read when a file was written, in nanoseconds; 0 for a file that is not there."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _list_labelled_runs(folder: Path | None) -> list[tuple[str, tuple[int, ...]]]:
    """List the newest runs whose labelling has begun: their names, each with when its files were written."""
    stores = ((path, find_store(path)) for path in scan_folder(folder).values())
    labelled = islice(((path, store) for path, store in stores if store.is_file()), _MOST_OPEN)
    return [
        (path.name, (*_read_write_times(path), _read_write_time(store), _read_write_time(_find_wal(store))))
        for path, store in labelled
    ]


def _find_wal(store: Path) -> Path:
    """Find the write-ahead log of an SQLite database, which holds what was written last."""
    return store.with_name(f"{store.name}-wal")


@dataclass(frozen=True, slots=True)
class _CasesLeft:
    """The number of cases that were left for a rater of a run, counted when its files had these write times."""

    write_times: tuple[int, ...]
    """The times as ``_list_labelled_runs`` reads them."""
    number: int


@dataclass(slots=True, kw_only=True)
class LabelQueues:
    """The label queues of a server's runs, each used in a thread of its own.

    A queue reads and writes files, and its connection to the database belongs to the thread that opened it.
    """

    folder: Path | None
    per_case: int = 1
    by_criterion: bool = False
    _open: OrderedDict[str, tuple[ThreadPoolExecutor, list[_OpenQueue]]] = field(default_factory=OrderedDict)
    """By the name of a run: its thread, and a list with its queue, which is empty until the queue is opened.

    The run that was used last comes last.
    """
    _cases_left: dict[tuple[str, str], _CasesLeft] = field(default_factory=dict)
    """By run and rater."""

    async def use(self, run: str, work: Callable[[LabelQueue], T]) -> T:
        """Run a function on the queue of a run; raises ``Problem`` (404) where there is no such run."""
        path = await asyncio.to_thread(find_run_folder, self.folder, run)
        pool, opened = self._open.setdefault(run, (ThreadPoolExecutor(1, "adjudge-labels"), []))
        self._open.move_to_end(run)
        if len(self._open) > _MOST_OPEN:
            self._close(next(iter(self._open)))

        def use_queue() -> T:
            """Run the function on the queue, which is opened first, or opened again if its run has changed."""
            write_times = _read_write_times(path)
            # A run that has been finished since, or got a plan, has other cases to draw from.
            while opened and opened[0].write_times != write_times:
                opened.pop().queue.close()
            if not opened:
                queue = open_label_queue(path, per_case=self.per_case, by_criterion=self.by_criterion)
                opened.append(_OpenQueue(write_times=write_times, queue=queue))
            return work(opened[0].queue)

        return await asyncio.get_running_loop().run_in_executor(pool, use_queue)

    async def count_left(self, rater: str) -> int:
        """Count the cases that are left for a rater in the newest runs whose labelling has begun.

        Every page shows this number, so a run is counted anew only when its files have changed. A run that cannot be
        read counts 0: its own page says what is wrong with it.
        """
        total = 0
        for run, write_times in await asyncio.to_thread(_list_labelled_runs, self.folder):
            counted = self._cases_left.get((run, rater))
            if counted is None or counted.write_times != write_times:
                try:
                    number = await self.use(run, lambda queue: queue.count_left(rater))
                except (Problem, UsageError):
                    number = 0
                counted = _CasesLeft(write_times, number)
                if len(self._cases_left) >= _MOST_COUNTS:
                    self._cases_left.clear()
                self._cases_left[run, rater] = counted
            total += counted.number
        return total

    async def aclose(self) -> None:
        """Close all queues."""
        pools = [pool for pool, _ in self._open.values()]
        for run in list(self._open):
            self._close(run)
        for pool in pools:
            await asyncio.to_thread(pool.shutdown)

    def _close(self, run: str) -> None:
        """Forget the queue of a run, and close it in its own thread after the work that was submitted before."""
        pool, opened = self._open.pop(run)

        def close() -> None:
            """Close the queue if it was opened."""
            while opened:
                opened.pop().queue.close()

        pool.submit(close)
        pool.shutdown(wait=False)  # the thread ends once the submitted work is done
