"""A diff with what people's labels say of its two runs: of the systems, if answers changed, else of the judges."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from adjudge.dataset.label import Label
from adjudge.labels.plan import read_plan
from adjudge.labels.source import STORE_FILE
from adjudge.measurement.judge_difference import JudgeDifference, compare_judges
from adjudge.measurement.run_difference import SystemDifference, compare_systems, record_difference_look
from adjudge.report.run_diff import Diff
from adjudge.runs.folder import Run


def measure_diff(
    diff: Diff, before: Run, after: Run, *, labels: Iterable[Label] | None = None, labels_are_random: bool = False
) -> Diff:
    """Return a diff with the difference of its systems, if answers changed, or else of its judges.

    Systems are compared once both runs are finished; before, the diff is returned as it is, and says that they are not.

    Args:
        diff: The diff of both runs.
        before: The earlier run.
        after: The later run.
        labels: Labels of their answers. By default those of both runs' own queues.
        labels_are_random: True if the labelled cases are a random sample, as the user says.

    Needs ``adjudge[trust]``. Raises ``UsageError`` for what ``compare_systems`` and ``compare_judges`` refuse.
    """
    if diff.content_changed:
        if not _are_finished(before, after):
            return diff
        systems = compare_systems(before, after, labels=labels, labels_are_random=labels_are_random)
        return replace(diff, systems=systems)
    return replace(diff, judges=compare_judges(before, after, labels=labels, labels_are_random=labels_are_random))


def is_labelled(diff: Diff, before: Run, after: Run) -> bool:
    """Return whether people began to label two runs in a way that compares them.

    For two judges labels of one run will do, because they are of the same contents. Raises ``UsageError`` for a plan
    that cannot be read.
    """
    if diff.pairs or not diff.cases:
        return False
    queues = [(run.folder / STORE_FILE).is_file() for run in (before, after)]
    if not diff.content_changed:
        return any(queues)
    if not _are_finished(before, after):
        return False
    plans = [read_plan(run.folder) for run in (before, after)]
    return all(queues) or all(plan is not None and plan.against is not None for plan in plans)


def _are_finished(before: Run, after: Run) -> bool:
    return before.status == after.status == "finished"


def measure_queued_diff(diff: Diff, before: Run, after: Run) -> Diff:
    """Return a diff with what people said of both runs in their queues; as it is if that is of one run alone.

    For a reader who did not ask: without a plan or a label of both, nobody meant to compare them.
    """
    compared = measure_diff(diff, before, after)
    difference = find_difference(compared)
    if isinstance(difference, SystemDifference):
        is_meant = difference.questions > 0 or difference.left is not None
    else:
        is_meant = difference is not None and difference.agreement.of > 0
    return compared if is_meant else diff


def find_difference(diff: Diff) -> SystemDifference | JudgeDifference | None:
    """Find the difference that a diff has; ``None`` where it has none."""
    return diff.systems or diff.judges


def record_difference(diff: Diff, before: Run, *, by: str) -> None:
    """Record a look at the difference of a diff, if it has one; raises ``AdjudgeError`` as ``write_look_record``."""
    difference = find_difference(diff)
    if difference is not None:
        record_difference_look(before, difference, by=by)
