"""The runs of a server: the folders under ``runs`` of ``[server]``, by their names, and the labels beside them."""

from __future__ import annotations

import asyncio
import os
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TypeVar

from adjudge.errors import UsageError
from adjudge.formats.text import clean, flatten, show
from adjudge.labels.order import PLAN_FILE
from adjudge.labels.queue import LabelQueue, open_label_queue
from adjudge.labels.source import find_store
from adjudge.report.cases import MOST_CASES
from adjudge.report.report import Report
from adjudge.report.summary import make_report
from adjudge.runs.folder import MANIFEST_FILE, open_run
from adjudge.server.problem import Problem
from adjudge.trust.intervals import Share

T = TypeVar("T")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
"""Names of folders that are served: nothing that leads out of the folder, or that a system reads in its own way."""

_MOST_OPEN = 8
"""Runs whose labels are open at once."""

_MOST_COUNTS = 1_000
"""Counts of what is left that are remembered, each of a run and a rater."""


def list_run_folders(folder: Path | None) -> tuple[Path, ...]:
    """List the run folders, the newest first by their names' order; none where no folder is configured."""
    if folder is None or not folder.is_dir():
        return ()
    folders = [path for path in folder.iterdir() if _is_run(path)]
    return tuple(sorted(folders, key=lambda path: path.name, reverse=True))


def find_run_folder(folder: Path | None, name: str) -> Path:
    """Find the folder of a run; raises ``Problem`` (404) for a name that none has."""
    if folder is not None and _NAME.fullmatch(name) and _is_run(folder / name):
        return folder / name
    raise Problem(404, f"there is no run {show(name[:200])} here", code="unknown_run")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """A run in short."""

    name: str
    status: str = ""
    judge: str = ""
    dataset: str = ""
    created_at: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    """The numbers of cases that passed, failed and are undecided."""
    trouble: str = ""
    """The reason why it cannot be read; empty where it can."""

    @property
    def passed(self) -> Share:
        """The share of the judged cases that passed."""
        return Share(count=self.counts.get("passed", 0), of=sum(self.counts.values()))


def summarise_run(folder: Path) -> RunSummary:
    """Summarise the run of a folder."""
    try:
        with open_run(folder) as run:
            manifest = run.manifest
            return RunSummary(
                name=folder.name,
                status=run.status,
                judge=_read_name(manifest.get("judge")),
                dataset=_read_name(manifest.get("dataset")),
                created_at=clean(str(manifest.get("created_at", "")), keep_lines=False)[:40],
                counts={outcome: run.counts.get(outcome, 0) for outcome in ("passed", "failed", "undecided")},
            )
    except UsageError as error:
        return RunSummary(name=folder.name, trouble=explain_trouble(error, folder.parent))


def _read_name(value: object) -> str:
    """Read the name of what a manifest describes; a manifest is a file, and may say anything."""
    name = value.get("name") if isinstance(value, Mapping) else value
    return flatten(str(name), 200) if name else ""


async def load_report(folder: Path | None, name: str, *, most_cases: int = MOST_CASES) -> tuple[Path, Report]:
    """Find the folder of a run and make its report.

    Raises ``Problem`` for a name that no run has (404), and for a run that cannot be read (409).
    """

    def load() -> tuple[Path, Report]:
        path = find_run_folder(folder, name)
        try:
            return path, make_report(path, most_cases=most_cases)
        except UsageError as error:
            raise Problem(409, explain_trouble(error, folder), code="unreadable_run") from None

    return await asyncio.to_thread(load)


def explain_trouble(error: UsageError, folder: Path | None) -> str:
    """Explain what is wrong with a run, without the path of the folder, which is not for others."""
    return flatten(str(error).replace(f"{folder}{os.sep}", ""), 500)


def _is_run(path: Path) -> bool:
    # No link: it could lead out of the folder, and so hand out what nobody meant to.
    return bool(_NAME.fullmatch(path.name)) and not path.is_symlink() and (path / MANIFEST_FILE).is_file()


@dataclass(frozen=True, slots=True, kw_only=True)
class _OpenQueue:
    state: tuple[int, ...]
    queue: LabelQueue


def _read_state(folder: Path) -> tuple[int, ...]:
    """Read when the manifest and the plan of a run were written; 0 where there is none."""
    return tuple(_read_time(folder / name) for name in (MANIFEST_FILE, PLAN_FILE))


def _read_time(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _list_started(folder: Path | None) -> list[tuple[str, tuple[int, ...]]]:
    """List the newest runs that somebody labels, and when their labels were written."""
    stores = ((path, find_store(path)) for path in list_run_folders(folder))
    started = islice(((path, store) for path, store in stores if store.is_file()), _MOST_OPEN)
    return [
        (path.name, (*_read_state(path), _read_time(store), _read_time(_find_wal(store)))) for path, store in started
    ]


def _find_wal(store: Path) -> Path:
    """Find the file beside a database that has what was written last."""
    return store.with_name(f"{store.name}-wal")


@dataclass(slots=True, kw_only=True)
class LabelDesk:
    """The queues of labelling of some runs, each used in a thread of its own.

    A queue reads and writes files, and its connection belongs to the thread that opened it.
    """

    folder: Path | None
    per_case: int = 1
    by_criterion: bool = False
    _open: OrderedDict[str, tuple[ThreadPoolExecutor, list[_OpenQueue]]] = field(default_factory=OrderedDict)
    _left: dict[tuple[str, str], tuple[tuple[int, ...], int]] = field(default_factory=dict)
    """By run and rater: when the labels were written, and how many cases were left."""

    async def use(self, run: str, work: Callable[[LabelQueue], T]) -> T:
        """Run a function on the queue of a run; raises ``Problem`` (404) where there is no such run."""
        path = await asyncio.to_thread(find_run_folder, self.folder, run)
        pool, opened = self._open.setdefault(run, (ThreadPoolExecutor(1, "adjudge-labels"), []))
        self._open.move_to_end(run)
        if len(self._open) > _MOST_OPEN:
            self._close(next(iter(self._open)))

        def use_queue() -> T:
            state = _read_state(path)
            # A run that has been finished since, or got a plan, has other cases to draw from.
            while opened and opened[0].state != state:
                opened.pop().queue.close()
            if not opened:
                queue = open_label_queue(path, per_case=self.per_case, by_criterion=self.by_criterion)
                opened.append(_OpenQueue(state=state, queue=queue))
            return work(opened[0].queue)

        return await asyncio.get_running_loop().run_in_executor(pool, use_queue)

    async def count_left(self, rater: str) -> int:
        """Count the cases that are left for a rater in the newest runs that somebody labels.

        The pages ask for it each time, so a run is counted anew only when its labels have changed. A run that cannot be
        read counts as none: its own page says what is wrong with it.
        """
        left = 0
        for folder, stamp in await asyncio.to_thread(_list_started, self.folder):
            known = self._left.get((folder, rater))
            if known is None or known[0] != stamp:
                try:
                    known = stamp, await self.use(folder, lambda queue: queue.count_left(rater))
                except (Problem, UsageError):
                    known = stamp, 0
                if len(self._left) >= _MOST_COUNTS:
                    self._left.clear()
                self._left[folder, rater] = known
            left += known[1]
        return left

    async def aclose(self) -> None:
        """Close all queues."""
        pools = [pool for pool, _ in self._open.values()]
        for run in list(self._open):
            self._close(run)
        for pool in pools:
            await asyncio.to_thread(pool.shutdown)

    def _close(self, run: str) -> None:
        pool, opened = self._open.pop(run)

        def close() -> None:
            while opened:
                opened.pop().queue.close()

        pool.submit(close)
        pool.shutdown(wait=False)  # the thread ends once what was handed in is done
