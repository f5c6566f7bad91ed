"""The estimates of a diff: the difference between its runs with limits, by people's labels or by verdicts alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from adjudge.dataset.label import Label
from adjudge.errors import UsageError
from adjudge.labels.plan import read_plan
from adjudge.labels.source import STORE_FILE
from adjudge.measurement.judge_difference import JudgeDifference, ShareDifference, compare_judges
from adjudge.measurement.run_difference import SystemDifference, compare_systems, record_difference_look
from adjudge.report.run_diff import Diff, diff_cases
from adjudge.runs.folder import Run
from adjudge.trust.difference import find_grouped_difference, find_paired_difference


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


def compare_verdicts(diff: Diff, before: Run, after: Run) -> Diff:
    """Return a diff with how much more often the judge passed the later answers, and limits for other cases like these.

    The limits are those of Bonett and Price; for cases in groups they are wider, and need ``adjudge[trust]``. Where one
    judge did not judge both runs, or a run is not finished, the diff is returned as it is. Raises ``UsageError`` for
    runs of pairs.

    Args:
        diff: The diff of both runs.
        before: The earlier run.
        after: The later run.
    """
    if diff.pairs:
        raise UsageError("a run of pairs has no answers that pass; compare the answers of each system one by one")
    if diff.compared != "answers" or not _are_finished(before, after):
        return diff
    passed_before = sum(number for (old, _), number in diff.transitions.items() if old == "passed")
    passed_after = sum(number for (_, new), number in diff.transitions.items() if new == "passed")
    low, high = _find_limits(diff, before, after)
    value = (passed_after - passed_before) / diff.cases
    share = ShareDifference(before=passed_before, after=passed_after, of=diff.cases, value=value, low=low, high=high)
    return replace(diff, judged=share)


def _find_limits(diff: Diff, before: Run, after: Run) -> tuple[float, float]:
    """Find the limits of the difference; where several cases are of one group, they follow the groups."""
    groups = {item.case.id: item.case.group for item in after.items() if item.case.group is not None}
    each_has_its_own = len(set(groups.values())) == len(groups)
    if each_has_its_own:
        return find_paired_difference(diff.gained, diff.lost, diff.cases)
    _, compared_cases = diff_cases(before, after)
    changes = [compared.change for compared in compared_cases]
    # A case without a group is a group of its own. The first word keeps its id apart from the names of groups.
    names = [("group", groups[change.case]) if change.case in groups else ("case", change.case) for change in changes]
    return find_grouped_difference([change.gained - change.lost for change in changes], names)


def is_labelled(diff: Diff, before: Run, after: Run) -> bool:
    """Return whether people began to label two runs, so that the runs can be compared by labels.

    If the answers are the same and the judges differ, labels of one run are enough. Otherwise both runs need labels, or
    a plan that compares them. Raises ``UsageError`` for a plan that cannot be read.
    """
    if diff.pairs or not diff.cases:
        return False
    has_labels = [(run.folder / STORE_FILE).is_file() for run in (before, after)]
    if not diff.content_changed:
        return any(has_labels)
    if not _are_finished(before, after):
        return False
    plans = [read_plan(run.folder) for run in (before, after)]
    return all(has_labels) or all(plan is not None and plan.against is not None for plan in plans)


def _are_finished(before: Run, after: Run) -> bool:
    return before.status == after.status == "finished"


def measure_queued_diff(diff: Diff, before: Run, after: Run) -> Diff:
    """Return a diff with the difference by the labels of both runs' queues, for a reader who did not ask for one.

    The diff is returned as it is where no labelled case tells of both runs and no plan compares them, because then
    nobody meant to compare the runs by labels.
    """
    measured_diff = measure_diff(diff, before, after)
    difference = find_difference(measured_diff)
    if isinstance(difference, SystemDifference):
        has_labels_or_plan = difference.questions > 0 or difference.left is not None
    else:
        has_labels_or_plan = difference is not None and difference.agreement.of > 0
    return measured_diff if has_labels_or_plan else diff


def find_difference(diff: Diff) -> SystemDifference | JudgeDifference | None:
    """Return the difference of systems or of judges that a diff has; ``None`` where it has none."""
    return diff.systems or diff.judges


def record_difference(diff: Diff, before: Run, *, by: str) -> None:
    """Record a look at the difference of a diff, if it has one; raises ``AdjudgeError`` as ``write_look_record``."""
    difference = find_difference(diff)
    if difference is not None:
        record_difference_look(before, difference, by=by)
