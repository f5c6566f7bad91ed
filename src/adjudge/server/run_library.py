"""The runs whose pages are shown, found by name, with their summaries, reports and comparisons, which are cached.

Which folders are runs is decided in ``run_folders.py`` (``is_run``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from adjudge.dataset.label import Label
from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.text import show
from adjudge.labels.source import STORE_FILE
from adjudge.labels.store import read_labelled_cases
from adjudge.measurement.call_rates import CallRates, make_call_rates
from adjudge.measurement.gate_limit import LabelDraw, LimitKind
from adjudge.measurement.look_record import needs_look_record, write_look_record
from adjudge.measurement.measure import make_measurement
from adjudge.measurement.measurement import Measurement
from adjudge.measurement.run_labels import read_run_labels
from adjudge.report.measured_diff import find_difference, is_labelled, measure_queued_diff, record_difference
from adjudge.report.report import Report
from adjudge.report.report_tally import make_report
from adjudge.report.run_diff import Diff
from adjudge.runs.folder import Run, open_run, read_manifest
from adjudge.runs.store import RunStore
from adjudge.server.problem import Problem
from adjudge.server.run_folders import (
    RESULT_FILES,
    RUN_FILES,
    RunSummary,
    check_files,
    explain_trouble,
    hide_folder,
    summarise_run,
)
from adjudge.trust.extra import has_extra

T = TypeVar("T")

_CACHE_SIZES = {"summary": 2_000, "report": 16, "plain report": 16, "comparison": 4, "cases": 4, "call_rates": 16}
"""The number of values of each kind that are cached. Few comparisons, because one holds every case."""

_NOT_RECORDED = (
    "What people would pass is not shown: all planned labels are there, and the first look at them is recorded in the "
    "run's folder, which this page does not write to. "
)

_RATE_NOT_RECORDED = f"{_NOT_RECORDED}adjudge report of the run shows it."

_CALLS_NOT_RECORDED = f"{_NOT_RECORDED}adjudge calls rates of the run shows it."

_DIFFERENCE_NOT_RECORDED = f"{_NOT_RECORDED}adjudge diff of both runs shows it."

_NO_EXTRA = "People labelled this. To see what they would pass: pip install 'adjudge[trust]' where this runs."


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledReport:
    """The report of a run, with the labels that people gave its cases here."""

    report: Report
    labels: tuple[Label, ...] = ()
    remark: str = ""
    """The reason why the labels are left out, where they are."""


@dataclass(frozen=True, slots=True)
class _CachedValue:
    """A value that was computed from some folders, and the state that their files had then."""

    file_states: Sequence[object]
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLibrary:
    """Runs by name. What is computed from them is cached until one of their files changes."""

    scan: Callable[[], Mapping[str, Path]]
    """Finds the folders that there are now, the newest first."""
    configured: bool = True
    """False if no folder of runs is configured."""
    writes: bool = True
    """False where nothing may be written into the folders, and no trace of a look is left in them."""
    _cache: dict[tuple[object, ...], _CachedValue] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def find(self, name: str) -> Path:
        """Find the folder of a run; raises ``Problem`` (404) for a name that none has.

        A run with a file that is a link is refused (409): it could lead out of the folder to what nobody meant to show.
        """
        folder = self.scan().get(name)
        if folder is None:
            raise Problem(404, f"there is no run {show(name[:200])} here", code="unknown_run")
        return check_files(folder)

    def open(self, name: str) -> Run:
        """Open a run; raises ``Problem`` where there is none of that name (404) or it cannot be read (409)."""
        folder = self.find(name)
        try:
            if self.writes:
                return open_run(folder)
            return Run(folder=folder, manifest=read_manifest(folder), store=RunStore(folder).freeze().open())
        except UsageError as error:
            raise self.make_problem(error, folder) from None

    def summarise(self) -> list[RunSummary]:
        """Summarise every run, the newest first by their names."""
        return [self._summarise(name, folder) for name, folder in self.scan().items()]

    def _summarise(self, name: str, folder: Path) -> RunSummary:
        """Summarise a run, or take its summary from the cache; of a run that cannot be read, the summary says why."""

        def compute() -> RunSummary:
            """Read the run and summarise it."""
            try:
                with self.open(name) as run:
                    return summarise_run(run, name=name)
            except Problem as problem:
                return RunSummary(name=name, trouble=problem.detail)
            except UsageError as error:
                return RunSummary(name=name, trouble=explain_trouble(error, folder.parent))

        return self.get_cached(
            ("summary", name), [folder], compute, can_cache=lambda summary: summary.status == "finished"
        )

    def list_same_dataset(self, name: str) -> list[RunSummary]:
        """List the runs of the same data set as a run, itself included, the one that began last first.

        Data sets are compared by name: their contents change with every new version of the answers.
        """
        runs = [run for run in self.summarise() if not run.trouble]
        dataset = next((run.dataset for run in runs if run.name == name), "")
        same_dataset = [run for run in runs if run.name == name or (dataset and run.dataset == dataset)]
        return sorted(same_dataset, key=lambda run: run.created_at, reverse=True)

    def list_labelled_cases(self, name: str) -> frozenset[str]:
        """List the ids of the cases of a run that anybody labelled in its queue; none if its file cannot be read."""
        store = self.find(name) / STORE_FILE
        with suppress(UsageError):
            if store.is_file():
                return read_labelled_cases(store)
        return frozenset()

    def load_report(self, name: str, *, most_cases: int = 0, measured: bool = True) -> LabelledReport:
        """Make the report of a run, with what people said of it unless ``measured`` is false.

        Raises ``Problem`` as ``open`` does.
        """
        return self.get_cached(
            ("report", name, most_cases, measured),
            [self.find(name)],
            lambda: self._make_report(name, most_cases, measured=measured),
            can_cache=lambda labelled: labelled.report.about.status == "finished",
        )

    def get_cached(
        self,
        key: tuple[object, ...],
        folders: Sequence[Path],
        make: Callable[[], T],
        *,
        can_cache: Callable[[T], bool],
        files: Sequence[str] = RUN_FILES,
    ) -> T:
        """Return the cached value of a key, or what ``make`` returns, which is then cached.

        A cached value is used as long as none of these ``files`` has changed in any of the ``folders``. A value is not
        cached if ``can_cache`` returns false for it, such as that of a running run, which may be killed at any time.
        """
        file_states = [_read_file_states(folder, files) for folder in folders]
        with self._lock:
            cached = self._cache.get(key)
        if cached is not None and cached.file_states == file_states:
            value: T = cached.value
            return value
        value = make()
        if can_cache(value):
            with self._lock:
                # Read again: making a report records in the folder that somebody looked, which is no change of the run.
                states_now = [_read_file_states(folder, files) for folder in folders]
                self._cache[key] = _CachedValue(states_now, value)
                # The first member of a key is the kind of value, and each kind has its own limit.
                kind = key[0]
                same_kind = [other for other in self._cache if other[0] == kind]
                for oldest in same_kind[: max(len(same_kind) - _CACHE_SIZES[str(kind)], 0)]:
                    del self._cache[oldest]
        return value

    def make_problem(self, error: UsageError, folder: Path) -> Problem:
        """Make the problem (409) that says why a run cannot be read."""
        return Problem(409, explain_trouble(error, folder.parent), code="unreadable_run")

    def load_call_rates(self, name: str) -> tuple[CallRates | None, str]:
        """Compare harness, rules and judge with people, on the tool calls of a run.

        Returns the rates and an empty text, or ``None`` and the reason why there are none. Raises ``Problem`` as
        ``open`` does.
        """
        return self.get_cached(
            ("call_rates", name), [self.find(name)], lambda: self._make_call_rates(name), can_cache=lambda _rates: True
        )

    def _make_call_rates(self, name: str) -> tuple[CallRates | None, str]:
        """Make the rates of a run: the rates and an empty text, or ``None`` and the reason why there are none."""
        if not has_extra():
            return None, _NO_EXTRA
        with self.open(name) as run:
            try:
                rates = make_call_rates(run)
            except UsageError as error:
                return None, f"There are no rates: {explain_trouble(error, run.folder.parent)}"
            if not self._record_look(run, rates.draw, rates.limit, labels=sum(rates.labelled.values())):
                return None, _CALLS_NOT_RECORDED
            # A path tells the user's name, and where the runs are on this machine, which readers need not know.
            return replace(rates, because=hide_folder(rates.because, run.folder.parent)), ""

    def measure_diff(self, diff: Diff, before: Run, after: Run) -> tuple[Diff, str]:
        """Add to a diff what people said of both runs in their label queues.

        Returns the diff, and the reason why the labels are left out; the reason is empty if they are not.
        """
        runs = (before, after)
        try:
            if not is_labelled(diff, *runs):
                return diff, ""
            if not has_extra():
                return diff, _NO_EXTRA
            compared = measure_queued_diff(diff, *runs)
            if not self._record_difference(compared, *runs):
                return diff, _DIFFERENCE_NOT_RECORDED
        except UsageError as error:
            return diff, f"What people said of these runs is left out: {_hide_folders(str(error), *runs)}"
        # A path tells the user's name, and where the runs are on this machine, which readers need not know.
        without_paths = {
            name: replace(difference, because=_hide_folders(difference.because, *runs))
            for name in ("systems", "judges")
            if (difference := getattr(compared, name)) is not None
        }
        return replace(compared, **without_paths), ""

    def _record_difference(self, diff: Diff, before: Run, after: Run) -> bool:
        """Record that somebody looks at the measured difference of two runs; return whether it may be shown.

        A statistical limit for one look holds only for the first look. So where nothing can be recorded, a difference
        that would need it is not shown.
        """
        if self.writes:
            try:
                record_difference(diff, before, by="server")
            except AdjudgeError:
                return False
            return True
        difference = find_difference(diff)
        # The labels, and so the look at them, are the same whichever run comes first.
        if difference is None:
            return True
        return not all(needs_look_record(run, difference.draw, difference.limit) for run in (before, after))

    def _make_report(self, name: str, most_cases: int, *, measured: bool) -> LabelledReport:
        """Make the report of a run, with what people said unless ``measured`` is false; raises ``Problem`` (409)."""
        with self.open(name) as run:
            try:
                labels, measurement, remark = self._measure(run) if measured else ((), None, "")
                if labels or measurement is not None:
                    report = make_report(run, most_cases=most_cases, labels=labels, measurement=measurement)
                else:  # cached apart, because it does not change when somebody opens a case to label
                    report = self.get_cached(
                        ("plain report", name, most_cases),
                        [run.folder],
                        lambda: make_report(run, most_cases=most_cases),
                        can_cache=_is_finished,
                        files=RESULT_FILES,
                    )
            except UsageError as error:
                raise self.make_problem(error, run.folder) from None
            return LabelledReport(report=report, labels=labels, remark=remark)

    def _measure(self, run: Run) -> tuple[tuple[Label, ...], Measurement | None, str]:
        """Measure a run by the labels of its own queue.

        Returns the labels, the measurement, and the reason why either is left out; the reason is empty if none is.
        """
        if not (run.folder / STORE_FILE).is_file():
            return (), None, ""
        try:
            labels = read_run_labels(run)
        except UsageError as error:
            return (), None, f"What people said of this run is left out: {explain_trouble(error, run.folder.parent)}"
        if not labels:
            return (), None, ""
        if not has_extra():
            return labels, None, _NO_EXTRA
        measurement = make_measurement(run, labels=labels)
        if not measurement.labelled:
            return labels, None, ""
        limit = None if measurement.limit is None else measurement.limit.kind
        may_look = self._record_look(run, measurement.draw, limit, labels=measurement.labelled)
        return (labels, measurement, "") if may_look else ((), None, _RATE_NOT_RECORDED)

    def _record_look(self, run: Run, draw: LabelDraw | None, limit: LimitKind | None, *, labels: int) -> bool:
        """Record that somebody looks at figures of labels; return whether they may be shown.

        A statistical limit for one look holds only for the first look. So where nothing can be recorded, figures that
        would need it are not shown.
        """
        if self.writes:
            try:
                write_look_record(run, draw, limit, by="server", labels=labels)
            except AdjudgeError:
                return False
            return True
        return not needs_look_record(run, draw, limit)


def _is_finished(report: Report) -> bool:
    """Return whether a report is of a finished run, so that it can be cached."""
    return report.about.status == "finished"


def _hide_folders(text: str, before: Run, after: Run) -> str:
    """Write a text in one line, without the paths of the folders in which two runs are."""
    return hide_folder(hide_folder(text, before.folder.parent), after.folder.parent)


def _read_file_states(folder: Path, files: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Read when each file of a run was written, and its size; zeros for a file that is empty or not there."""
    states = []
    for name in files:
        try:
            status = (folder / name).stat()
            # SQLite makes an empty log file whenever it opens a database, which is no change.
            states.append((status.st_mtime_ns, status.st_size) if status.st_size else (0, 0))
        except OSError:
            states.append((0, 0))
    return tuple(states)
