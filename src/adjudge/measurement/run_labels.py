"""The labels that a run's own queue has, and the plan in its folder.

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
from adjudge.measurement.label_origin import KnownPlan
from adjudge.runs.folder import Run


def read_run_labels(run: Run) -> tuple[Label, ...]:
    """The labels that were given to the cases of a run with ``adjudge label``; none where nobody did.

    Of a run that is read without leaving a trace in its folder, a copy of their file is read.
    """
    label_file = run.folder / STORE_FILE
    if not label_file.is_file():
        return ()
    leaves_no_trace = run.store.reads_as == "look"
    with (
        _make_writable(label_file, copy=leaves_no_trace) as store,
        open_label_queue(run, store=store) as queue,
    ):
        return tuple(queue.labels())


@contextmanager
def _make_writable(label_file: Path, *, copy: bool) -> Iterator[Path]:
    """Yield the path of a label file that may be written to: the file itself, or a temporary copy of it.

    Opening a label queue writes to its file, because it brings the queue's cases up to date. So a copy is made where
    the file is read-only, and where ``copy`` asks for one. Raises ``UsageError`` for a file that cannot be read.
    """
    if is_writable(label_file) and not copy:
        yield label_file
        return
    with TemporaryDirectory(prefix="adjudge-labels-", ignore_cleanup_errors=True) as folder:
        copied_file = Path(folder) / label_file.name
        try:
            with (
                closing(open_sqlite(label_file, mode="look")) as original,
                closing(open_sqlite(copied_file, mode="make")) as copied,
            ):
                original.backup(copied)
        except UNUSABLE as error:
            raise UsageError(f"{label_file} cannot be read as labels: {show(str(error))}; restore the file") from None
        yield copied_file


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """The plan in a run's folder, or the reason why it is not relied on; nothing where there is none."""

    known_plan: KnownPlan | None = None
    """The plan, if it is one of what the run holds."""
    problem: str = ""
    """The reason why it is not relied on."""
    distrusted_plan: str | None = None
    """The id of the plan that is not relied on."""


def read_plan_file(run: Run, labels: Sequence[Label]) -> PlanFile:
    """Read the plan in a run's folder, and check that it fits the run, which is read once more where there is one."""
    plan = read_plan(run.folder)
    if plan is None:
        return PlanFile()
    problem = find_plan_problem(run)
    if problem is not None:
        return PlanFile(problem=problem, distrusted_plan=plan.id)
    sizes = {stratum.name: stratum.size for stratum in plan.strata}
    return PlanFile(known_plan=KnownPlan(plan=plan.id, sizes=sizes, designs=find_designs(plan, labels)))
