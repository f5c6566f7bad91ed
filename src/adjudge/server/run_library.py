"""The runs whose pages are shown: found by name at every look, and the report of each with what people said of it.

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
from adjudge.measurement.limit import LabelDraw, LimitKind
from adjudge.measurement.look_record import needs_look_record, write_look_record
from adjudge.measurement.measure import make_measurement
from adjudge.measurement.measurement import Measurement
from adjudge.measurement.run_labels import read_run_labels
from adjudge.report.measured_diff import find_difference, is_labelled, measure_queued_diff, record_difference
from adjudge.report.report import Report
from adjudge.report.run_diff import Diff
from adjudge.report.summary import make_report
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

_MOST_KEPT = {"summary": 2_000, "report": 16, "plain report": 16, "comparison": 4, "cases": 4, "call_rates": 16}
"""The number of each kind that is kept for the next page. A comparison holds every case."""

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
class _Kept:
    """A value that was computed of some folders, and the state that their files had then."""

    state: Sequence[object]
    made: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLibrary:
    """Runs by name. What is computed of them is kept until a file of theirs changes."""

    scan: Callable[[], Mapping[str, Path]]
    """Finds the folders that there are now, the newest first."""
    configured: bool = True
    """False where nobody said where runs are."""
    writes: bool = True
    """False where nothing may be written into the folders, and no trace of a look is left in them."""
    _kept: dict[tuple[object, ...], _Kept] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def find(self, name: str) -> Path:
        """Find the folder of a run; raises ``Problem`` (404) for a name that none has.

        One whose files are links is refused (409): they could lead out of the folder to what nobody meant to show.
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
            raise self.explain(error, folder) from None

    def summarise(self) -> list[RunSummary]:
        """Summarise every run, the newest first by their names."""
        return [self._summarise(name, folder) for name, folder in self.scan().items()]

    def _summarise(self, name: str, folder: Path) -> RunSummary:
        """Summarise a run, or take its summary from memory; one that cannot be read is a summary with its trouble."""

        def compute() -> RunSummary:
            try:
                with self.open(name) as run:
                    return summarise_run(run, name=name)
            except Problem as problem:
                return RunSummary(name=name, trouble=problem.detail)
            except UsageError as error:
                return RunSummary(name=name, trouble=explain_trouble(error, folder.parent))

        return self.keep(("summary", name), [folder], compute, lasts=lambda made: made.status == "finished")

    def list_alike(self, name: str) -> list[RunSummary]:
        """List the runs of the data set of a run, itself included, the one that began last first.

        A data set is known by its name: its contents change with every new version of the answers.
        """
        runs = [run for run in self.summarise() if not run.trouble]
        dataset = next((run.dataset for run in runs if run.name == name), "")
        alike = [run for run in runs if run.name == name or (dataset and run.dataset == dataset)]
        return sorted(alike, key=lambda run: run.created_at, reverse=True)

    def list_labelled(self, name: str) -> frozenset[str]:
        """List the cases of a run that somebody ever labelled in its own queue; none where its file cannot be read."""
        place = self.find(name) / STORE_FILE
        with suppress(UsageError):
            if place.is_file():
                return read_labelled_cases(place)
        return frozenset()

    def load_report(self, name: str, *, most_cases: int = 0, measured: bool = True) -> LabelledReport:
        """Make the report of a run, with what people said of it unless ``measured`` is false.

        Raises ``Problem`` as ``open`` does.
        """
        return self.keep(
            ("report", name, most_cases, measured),
            [self.find(name)],
            lambda: self._make_report(name, most_cases, measured=measured),
            lasts=lambda made: made.report.about.status == "finished",
        )

    def keep(
        self,
        key: tuple[object, ...],
        folders: Sequence[Path],
        make: Callable[[], T],
        *,
        lasts: Callable[[T], bool],
        files: Sequence[str] = RUN_FILES,
    ) -> T:
        """Return what ``make`` returned for these folders, unless one of these ``files`` of them has changed since.

        What ``lasts`` denies is not kept, such as the status of a run that may be killed at any moment.
        """
        state = [_read_state(folder, files) for folder in folders]
        with self._lock:
            kept = self._kept.get(key)
        if kept is not None and kept.state == state:
            made: T = kept.made
            return made
        made = make()
        if lasts(made):
            with self._lock:
                # As it is now: making a report records the look, and the next page must not take that for news.
                self._kept[key] = _Kept([_read_state(folder, files) for folder in folders], made)
                # The first part of a key says what kind of thing is kept.
                kind = key[0]
                alike = [other for other in self._kept if other[0] == kind]
                for oldest in alike[: max(len(alike) - _MOST_KEPT[str(kind)], 0)]:
                    del self._kept[oldest]
        return made

    def explain(self, error: UsageError, folder: Path) -> Problem:
        """Make the problem of a run that cannot be read."""
        return Problem(409, explain_trouble(error, folder.parent), code="unreadable_run")

    def load_call_rates(self, name: str) -> tuple[CallRates | None, str]:
        """Compare harness, rules and judge with people, on the calls of a run; and why not, where they are not.

        Raises ``Problem`` as ``open`` does.
        """
        return self.keep(
            ("call_rates", name), [self.find(name)], lambda: self._make_call_rates(name), lasts=lambda _made: True
        )

    def _make_call_rates(self, name: str) -> tuple[CallRates | None, str]:
        """Make the rates of a run, and return them and nothing, or ``None`` and why there are none."""
        if not has_extra():
            return None, _NO_EXTRA
        with self.open(name) as run:
            try:
                rates = make_call_rates(run)
            except UsageError as error:
                return None, f"There are no rates: {explain_trouble(error, run.folder.parent)}"
            if not self._note_look(run, rates.draw, rates.limit, labels=sum(rates.labelled.values())):
                return None, _CALLS_NOT_RECORDED
            # Whose machine it is and where the runs lie on it is nobody's business.
            return replace(rates, because=hide_folder(rates.because, run.folder.parent)), ""

    def measure_diff(self, diff: Diff, before: Run, after: Run) -> tuple[Diff, str]:
        """Add what people said of both runs in their queues to a diff; and why that is left out, where it is."""
        runs = (before, after)
        try:
            if not is_labelled(diff, *runs):
                return diff, ""
            if not has_extra():
                return diff, _NO_EXTRA
            compared = measure_queued_diff(diff, *runs)
            if not self._note_difference(compared, *runs):
                return diff, _DIFFERENCE_NOT_RECORDED
        except UsageError as error:
            return diff, f"What people said of these runs is left out: {_hide_folders(str(error), *runs)}"
        # Whose machine it is and where the runs lie on it is nobody's business.
        hidden = {
            name: replace(difference, because=_hide_folders(difference.because, *runs))
            for name in ("systems", "judges")
            if (difference := getattr(compared, name)) is not None
        }
        return replace(compared, **hidden), ""

    def _note_difference(self, diff: Diff, before: Run, after: Run) -> bool:
        """Record that somebody looks at a difference; return whether they may."""
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
                else:  # it stays the same when somebody opens a case to label
                    report = self.keep(
                        ("plain report", name, most_cases),
                        [run.folder],
                        lambda: make_report(run, most_cases=most_cases),
                        lasts=_is_finished,
                        files=RESULT_FILES,
                    )
            except UsageError as error:
                raise self.explain(error, run.folder) from None
            return LabelledReport(report=report, labels=labels, remark=remark)

    def _measure(self, run: Run) -> tuple[tuple[Label, ...], Measurement | None, str]:
        """Measure a run by the labels of its own queue: the labels, the measurement, and why they are left out."""
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
        may_look = self._note_look(run, measurement.draw, limit, labels=measurement.labelled)
        return (labels, measurement, "") if may_look else ((), None, _RATE_NOT_RECORDED)

    def _note_look(self, run: Run, draw: LabelDraw | None, limit: LimitKind | None, *, labels: int) -> bool:
        """Record that somebody looks; return whether they may, because a limit for one look holds for one alone."""
        if self.writes:
            try:
                write_look_record(run, draw, limit, by="server", labels=labels)
            except AdjudgeError:
                return False
            return True
        return not needs_look_record(run, draw, limit)


def _is_finished(report: Report) -> bool:
    return report.about.status == "finished"


def _hide_folders(text: str, before: Run, after: Run) -> str:
    return hide_folder(hide_folder(text, before.folder.parent), after.folder.parent)


def _read_state(folder: Path, files: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Read when each file of a run was written and how long it is; zeros for one that is not there."""
    state = []
    for name in files:
        try:
            status = (folder / name).stat()
            # SQLite makes an empty file of its log whenever it opens a store.
            state.append((status.st_mtime_ns, status.st_size) if status.st_size else (0, 0))
        except OSError:
            state.append((0, 0))
    return tuple(state)
