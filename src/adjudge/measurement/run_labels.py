"""The labels of a run's own queue, and the strata of its plan.

Labels of another content are left out in ``people.py`` (``PeopleLabels``); where labels join a data set, in
``dataset/case_labels.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from adjudge.dataset.label import Label
from adjudge.errors import UsageError
from adjudge.formats.sqlite import UNUSABLE, is_writable, open_sqlite
from adjudge.formats.text import show
from adjudge.labels.plan import find_designs, find_plan_problem, read_plan
from adjudge.labels.queue import open_label_queue
from adjudge.labels.source import STORE_FILE
from adjudge.measurement.label_origin import Planned
from adjudge.runs.folder import Run


def read_run_labels(run: Run) -> tuple[Label, ...]:
    """The labels that were given to the cases of a run with ``adjudge label``; none where nobody did.

    Of a run that is read without leaving a trace in its folder, a copy of their file is read.
    """
    place = run.folder / STORE_FILE
    if not place.is_file():
        return ()
    with _make_usable(place, copy=run.store.reads_as == "look") as store, open_label_queue(run, store=store) as queue:
        return tuple(queue.labels())


@contextmanager
def _make_usable(place: Path, *, copy: bool) -> Iterator[Path]:
    """Open a file of labels, or a copy where it is read-only: to open one brings its cases up to date.

    Raises ``UsageError``.
    """
    if is_writable(place) and not copy:
        yield place
        return
    with TemporaryDirectory(prefix="adjudge-labels-", ignore_cleanup_errors=True) as folder:
        copied_place = Path(folder) / place.name
        try:
            with (
                closing(open_sqlite(place, mode="look")) as original,
                closing(open_sqlite(copied_place, mode="make")) as copied,
            ):
                original.backup(copied)
        except UNUSABLE as error:
            raise UsageError(f"{place} cannot be read as labels: {show(str(error))}; restore the file") from None
        yield copied_place


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """The plan in a run's folder, or the reason why it is not relied on; nothing where there is none."""

    planned: Planned | None = None
    """The plan, if it is one of what the run holds."""
    problem: str = ""
    """The reason why it is not relied on."""
    distrusted: str | None = None
    """The id of a plan that is not."""


def read_plan_file(run: Run, labels: Sequence[Label]) -> PlanFile:
    """Compare the plan in a run's folder with the run, which is read once more where there is one."""
    plan = read_plan(run.folder)
    if plan is None:
        return PlanFile()
    problem = find_plan_problem(run)
    if problem is not None:
        return PlanFile(problem=problem, distrusted=plan.id)
    sizes = {stratum.name: stratum.size for stratum in plan.strata}
    return PlanFile(planned=Planned(plan=plan.id, sizes=sizes, designs=find_designs(plan, labels)))
