"""The rate at which people would pass, estimated from the judge's verdicts and some labels.

The judge's own rate is off by its errors. Labels of cases that were drawn at random from the run correct it, and
nothing has to be assumed about the judge (the *internal* design). Labels that somebody chose, and labels of another
run, give no rate: a judge errs more often on one kind of content than on another, and such labels do not show how often
it errs here.

The estimate itself and its limits are computed in ``double_sampling.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_share, is_finite
from adjudge.formats.record import write_record
from adjudge.formats.text import show
from adjudge.trust.double_sampling import (
    FEW_OF_A_KIND,
    Target,
    compute_design_effects,
    compute_double_sampling,
    compute_shrink,
)
from adjudge.trust.extra import check_extra
from adjudge.trust.intervals import (
    LEVEL,
    IntervalMethod,
    Share,
    check_level,
    check_method,
)
from adjudge.trust.label_counts import (
    GroupCounts,
    Heap,
    check_heaps,
    merge_sparse,
    read_count,
)

if TYPE_CHECKING:
    from adjudge.trust.extra import Floats

FEWEST_GROUPS = 10
"""With fewer, the design effect is not known well enough for any interval."""

ENOUGH_GROUPS = 15

GUARD = 0.01
"""Labels whose pass rate differs from that of the rest with a smaller p-value are not taken for a random sample."""

ENOUGH_LABELS = 50
"""The number of labels that a refusal asks for: their intervals are 18 points wide on average (docs/coverage.md)."""

RefusalReason = Literal["no_labels", "not_random", "few_groups"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedRate:
    """The rate at which people would pass, with its interval, and the judge's own rate beside it."""

    value: float
    """The rate."""
    low: float
    """The lower limit; it holds for every truth of the cases that are unresolved."""
    high: float
    """The upper limit, as ``low``."""
    level: float
    """The share of intervals made this way that contain the true rate."""
    target: Target
    """The cases that the rate is of: those of this ``run``, or all that the ``system`` produces."""
    method: str
    """The method, in the field's words."""
    cases: int
    """Cases of the run."""
    labels: int
    """Labelled cases, with the unresolved ones."""
    unresolved: int
    """Labelled cases whose truth people did not settle."""
    bounds: tuple[float, float] | None
    """The rate if every unresolved case is bad, and if every one is good; ``None`` where none is unresolved."""
    groups: int | None
    """Groups that the labels come in; ``None`` where each label is for itself."""
    deff: float | None
    """The design effect: how much more the rate varies because labels come in groups, in variance."""
    naive: Share
    """The share that the judge passed of the run; undecided is not passed."""
    worth: int | None
    """Labels that people alone would need for an interval as narrow; ``None`` with groups or unresolved cases."""
    assumptions: tuple[str, ...]
    """The assumptions under which the interval is right, a sentence each."""
    notes: tuple[str, ...] = ()
    """Sentences that a reader should know besides, such as why labels were not taken for a random sample."""

    @property
    def interval(self) -> tuple[float, float]:
        """Both limits."""
        return self.low, self.high

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A refusal to give a rate: the reason, and what would help. The judge's own rate is beside it."""

    because: RefusalReason
    """The reason, in a word."""
    reason: str
    """One sentence."""
    remedy: str
    """The remedy, in one sentence."""
    more_groups: int = 0
    """About how many more groups need labels; 0 where groups are not the reason."""
    naive: Share | None = None
    """The share that the judge passed of the run."""
    notes: tuple[str, ...] = ()
    """Sentences that a reader should know besides."""

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


def make_corrected_rate(
    heaps: Sequence[Heap],
    *,
    sampled: bool = False,
    recorded: bool = True,
    groups: GroupCounts | None = None,
    target: Target = "run",
    level: float = LEVEL,
    method: IntervalMethod | None = None,
) -> CorrectedRate | Refusal:
    """Return the corrected rate, or a refusal that says what would help.

    Without ``sampled`` no rate is given, nor where the judge's verdicts contradict it (``compute_sample_p_value`` below
    0.01). Where every case is labelled, nothing was drawn and the rate is counted. Needs ``adjudge[trust]``; raises
    ``UsageError`` for counts that cannot be.

    Args:
        heaps: The cases of the run by verdict and stratum, with the labels in them.
        sampled: Whether the labelled cases were drawn at random from the run.
        recorded: False where no record shows that the labelled cases were drawn at random, so that the first assumption
            names it as what somebody said.
        groups: The labels of the run group by group; ``None`` where each case is for itself.
        target: What the rate is of: ``"run"``, these cases, or ``"system"``, everything that the system produces.
        level: The confidence of the interval, between 0 and 1.
        method: How the limits of each share are computed, as for ``make_internal_rate``.
    """
    check_heaps(heaps, groups)
    _check_target_and_level(target, level)
    if method is not None:
        check_method(method)
    labels, cases = sum(heap.labels for heap in heaps), sum(heap.cases for heap in heaps)
    if labels and not sampled and labels < cases:
        return _refuse_chosen("it is not known that the labelled cases were drawn at random", heaps)
    if labels and (p_value := compute_sample_p_value(heaps, groups=groups)) < GUARD:
        reason = (
            "the labels do not look like a random sample of this run: "
            f"the judge passed them at another rate than the other cases (p = {p_value:.2g})"
        )
        return _refuse_chosen(reason, heaps)
    return make_internal_rate(heaps, recorded=recorded, groups=groups, target=target, level=level, method=method)


def compute_sample_p_value(heaps: Sequence[Heap], *, groups: GroupCounts | None = None) -> float:
    """Return the p-value of the hypothesis that the judge passes labelled and unlabelled cases alike.

    Fisher's exact test, two-sided, in each stratum, with Bonferroni over the strata. Counts of labels that come in
    groups are divided by the design effect of the verdict first. A large value shows nothing: cases that were chosen
    by what is true may well have one.

    Args:
        heaps: The cases of the run by verdict, with the labels among them.
        groups: The labelled cases by group, if they come in groups.
    """
    check_heaps(heaps, groups)
    check_extra()
    divisor = _find_verdict_shrink(heaps, groups)
    strata = {heap.stratum for heap in heaps}
    p_values = [_compare_passes([heap for heap in heaps if heap.stratum == stratum], divisor) for stratum in strata]
    return min(1.0, len(p_values) * min(p_values))


def make_internal_rate(
    heaps: Sequence[Heap],
    *,
    recorded: bool = True,
    groups: GroupCounts | None = None,
    target: Target = "run",
    level: float = LEVEL,
    method: IntervalMethod | None = None,
) -> CorrectedRate | Refusal:
    """The corrected rate from labels that are a random sample of the run: double sampling with MOVER limits.

    Heaps may have strata, from which labels were drawn with other probabilities: sizes are the weights. A stratum of
    several in which some heap has fewer than 5 labels is taken as one heap. There is no refusal for a bad judge. A rate
    of the run leaves out what its labels exclude.

    Args:
        heaps: The cases by verdict and stratum, with the labels in them.
        recorded: False where no record shows that the labelled cases were drawn at random, so that the first assumption
            names it as what somebody said.
        groups: The labels group by group; ``None`` where each case is for itself.
        target: What the rate is of: ``"run"``, these cases, or ``"system"``, everything that the system produces.
        level: The confidence of the interval, between 0 and 1.
        method: How the limits of each share are computed. By default they are Wilson's, joined with the exact ones
            where fewer than 8 of the labelled answers are good, or bad.
    """
    check_heaps(heaps, groups)
    _check_target_and_level(target, level)
    check_extra()
    naive = _find_naive(heaps)
    import numpy as np

    heaps, groups = merge_sparse(heaps, groups)
    labels, unresolved = sum(heap.labels for heap in heaps), sum(heap.unresolved for heap in heaps)
    if labels == unresolved:
        return Refusal(
            because="no_labels",
            reason=f"people did not settle any of the {labels:,} labelled cases" if labels else "no case has a label",
            remedy=_ask_for_labels(heaps),
            naive=naive,
        )
    group_count = len(groups.good) if groups else None
    if group_count is not None and group_count < FEWEST_GROUPS:
        return _refuse_groups(group_count, naive)
    estimates, deff = _estimate_internal(heaps, groups, target=target, level=level, method=method)
    cases = sum(heap.cases for heap in heaps)
    value = estimates[0].value  # without the unresolved cases; the limits hold whatever these are
    low, high = min(estimate.low for estimate in estimates), max(estimate.high for estimate in estimates)
    has_worth = not unresolved and groups is None
    divisor = 1.0
    if deff is not None and group_count is not None:
        divisor = float(compute_shrink(np.asarray(deff), group_count, level=level))
    near_end = method is None and _is_near_end(heaps, divisor)
    worth = find_worth(value, high - low, cases=cases, target=target, level=level, method=method)
    return CorrectedRate(
        value=value,
        low=low,
        high=high,
        level=level,
        target=target,
        method=f"double sampling, MOVER with {_NAMES[method or 'wilson']}{' and exact' if near_end else ''} limits",
        cases=cases,
        labels=labels,
        unresolved=unresolved,
        bounds=(estimates[1].value, estimates[2].value) if unresolved else None,
        groups=group_count,
        deff=deff,
        naive=naive,
        worth=worth if has_worth else None,
        assumptions=_list_assumptions(heaps, group_count, unresolved, target, recorded=recorded),
        notes=(*_note_groups(group_count), *_note_unequal(groups), *_note_few_of_a_kind(heaps, method, near=near_end)),
    )


def find_worth(
    value: float,
    width: float,
    *,
    cases: int,
    target: Target = "run",
    level: float = LEVEL,
    method: IntervalMethod | None = None,
) -> int:
    """Find how many labels people alone need for an interval of this width around this rate, at most one for each case.

    Args:
        value: The rate, from 0 to 1.
        width: The width of the interval, as a share.
        cases: How many cases there are, and so the most labels.
        target: What the rate is of: ``"run"``, these cases, or ``"system"``, everything that the system produces.
        level: The confidence of the interval, between 0 and 1.
        method: How the limits of each share are computed.
    """
    check_extra()
    import numpy as np

    _check_target_and_level(target, level)
    if not (is_finite(width) and width >= 0 and read_count(cases, "cases")):
        raise UsageError(f"a rate needs a width of 0 or more and a case; got {show(width)} and {show(cases)}")
    check_share("rate", value)

    def compute_widths(label_counts: Floats) -> Floats:
        """Compute the width of the interval for each number of labels, all in one heap."""
        labels = label_counts[:, None]
        heap_sizes = np.full_like(labels, cases)
        _, low, high = compute_double_sampling(
            value * labels, labels, heap_sizes, target=target, level=level, method=method
        )
        return high - low

    grid = np.linspace(1.0, float(cases), 2)
    for _ in range(3):  # a thousandth of the range each time: far below one label, of any number of cases
        grid = np.linspace(grid[0], grid[-1], 1000)
        enough = compute_widths(grid) <= width
        first_enough = int(np.argmax(enough)) if enough.any() else len(grid) - 1
        grid = grid[max(first_enough - 1, 0) : first_enough + 1]
    return round(float(grid[-1]))


# ------------------------------------------------------------------------------------------- labels drawn from the run


class _RateLimits(NamedTuple):
    """A rate with its limits."""

    value: float
    low: float
    high: float


def _estimate_internal(
    heaps: Sequence[Heap], groups: GroupCounts | None, *, target: Target, level: float, method: IntervalMethod | None
) -> tuple[list[_RateLimits], float | None]:
    """Estimate the rate with its limits, and the design effect of labels that come in groups.

    Returns three estimates: without the unresolved cases, with each of them counted as bad, and with each as good.
    Where no case is unresolved, there is the first one alone. The design effect is that of the first estimate, and
    ``None`` without groups.
    """
    import numpy as np

    cases = np.asarray([heap.cases for heap in heaps], dtype=float)
    tables = np.asarray([(heap.good, heap.bad, heap.unresolved) for heap in heaps], dtype=float).T
    settled_good, settled_bad, unresolved = tables
    # For each estimate: by which factor the unresolved cases are added to the good ones, and to the bad ones.
    left_out, as_bad, as_good = (0, 0), (0, 1), (1, 0)
    estimates, deffs = [], []
    for good_factor, bad_factor in (left_out, as_bad, as_good) if unresolved.any() else (left_out,):
        good, bad = settled_good + good_factor * unresolved, settled_bad + bad_factor * unresolved
        shrink: Floats | float = 1.0
        between: Floats | float = 1.0
        if groups is not None:
            group_good = groups.good + good_factor * groups.unresolved
            group_labels = group_good + groups.bad + bad_factor * groups.unresolved
            deff, between = compute_design_effects(group_good, group_labels, cases)
            shrink = compute_shrink(deff, len(group_good), level=level)
            deffs.append(float(deff))
        estimates.append(
            compute_double_sampling(
                good,
                good + bad,
                cases,
                target=target,
                shrink=shrink,
                between=between,
                level=level,
                method=method,
            )
        )
    limits = [_RateLimits(float(value), float(low), float(high)) for value, low, high in estimates]
    return limits, deffs[0] if deffs else None


def _refuse_chosen(reason: str, heaps: Sequence[Heap]) -> Refusal:
    """Refuse a rate because the labelled cases are, or may be, no random sample of the run."""
    return Refusal(because="not_random", reason=reason, remedy=_ask_for_labels(heaps), naive=_find_naive(heaps))


def _ask_for_labels(heaps: Sequence[Heap]) -> str:
    """Write how many cases of the run to label: 50 at random, or all where there are no more than that."""
    cases = sum(heap.cases for heap in heaps)
    if cases > ENOUGH_LABELS:
        return f"label {ENOUGH_LABELS} cases of this run at random"
    which = f"all {cases:,} cases" if cases > 1 else "the case"
    return f"label {which} of this run"


def _refuse_groups(group_count: int, naive: Share) -> Refusal:
    """Refuse a rate because the labels come in too few groups."""
    missing = FEWEST_GROUPS - group_count
    return Refusal(
        because="few_groups",
        reason=f"the labels come in {group_count} groups, too few to see how alike the answers of a group are",
        remedy=f"label {missing} more group{'s' * (missing > 1)}; {ENOUGH_GROUPS} in all are better",
        more_groups=missing,
        naive=naive,
    )


def _find_naive(heaps: Sequence[Heap]) -> Share:
    """Find the judge's own rate: the share of all cases that it passed."""
    passes = sum(heap.cases for heap in heaps if heap.verdict == "passed")
    return Share(count=passes, of=sum(heap.cases for heap in heaps))


def _list_assumptions(
    heaps: Sequence[Heap], groups: int | None, unresolved: int, target: Target, *, recorded: bool
) -> tuple[str, ...]:
    """List the sentences that must be true for the interval to hold; ``groups`` is ``None`` for single cases."""
    several = len({heap.stratum for heap in heaps}) > 1
    units = "groups" if groups is not None else "cases"
    drawn = f"the labelled {units} were drawn at random {'from each stratum of' if several else 'from'} this run"
    sentences = [
        f"{drawn.capitalize()}." if recorded else f"You said that {drawn}; no recorded draw shows it.",
        "The labels are right.",
    ]
    if groups is not None:
        sentences.append("The groups do not depend on one another.")
    if target == "system":
        sentences.append("The run is a random sample of what the system produces.")
    return (*sentences, *_note_unresolved(unresolved))


def _note_unresolved(unresolved: int) -> tuple[str, ...]:
    if not unresolved:
        return ()
    return (f"Nothing is assumed about the {unresolved:,} unresolved cases: the limits hold if they are good or bad.",)


def _note_groups(group_count: int | None) -> tuple[str, ...]:
    """Write a note where there are few groups; none without groups."""
    if group_count is None or group_count >= ENOUGH_GROUPS:
        return ()
    more = ENOUGH_GROUPS - group_count
    return (f"{group_count} groups are few: label {more} more, and the interval covers as it should.",)


def _note_unequal(groups: GroupCounts | None) -> tuple[str, ...]:
    """Write a note where a few groups hold most of the labels.

    That is so if Kish's effective number of groups is below half of their number.
    """
    if groups is None:
        return ()
    sizes = (groups.good + groups.bad + groups.unresolved).sum(axis=-1)
    number, effective = len(sizes), float(sizes.sum() ** 2 / (sizes**2).sum())
    if effective >= number / 2:
        return ()
    finding = f"The groups are so unequal that {number} of them count as {effective:.0f}"
    return (f"{finding}: the interval may cover less than it says; label groups of about equal size.",)


_NAMES: dict[IntervalMethod, str] = {"wilson": "Wilson", "jeffreys": "Jeffreys", "exact": "exact"}


def _is_near_end(heaps: Sequence[Heap], divisor: float = 1.0) -> bool:
    """Return whether the rate is near 0 or 1: few of the labelled answers are good, or few are bad.

    ``divisor`` is by how much labels that come in groups count less. False where every case has a settled label.
    """
    good, bad = sum(heap.good for heap in heaps), sum(heap.bad for heap in heaps)
    return min(good, bad) / max(divisor, 1.0) < FEW_OF_A_KIND and good + bad < sum(heap.cases for heap in heaps)


def _note_few_of_a_kind(heaps: Sequence[Heap], method: IntervalMethod | None, *, near: bool) -> tuple[str, ...]:
    """Write a note for a rate near 0 or 1, where Wilson's limits of 95 % cover 85 to 93 %.

    With ``near`` the interval was already made as wide as the exact one.
    """
    if method == "exact" or not (near or _is_near_end(heaps)):
        return ()
    good, bad = sum(heap.good for heap in heaps), sum(heap.bad for heap in heaps)
    number, kind = (bad, "bad") if bad < good else (good, "good")
    finding = f"{number} of the labelled answers {'is' if number == 1 else 'are'} {kind}"
    if near:
        return (
            f"{finding}: so near to the end the interval is as wide as the exact one, so that it covers as it should.",
        )
    reason = "so near to the end the interval covers less than it says; leave the limits out, or ask for the exact ones"
    return (f"{finding}: {reason}.",)


# -------------------------------------------------------------------------------------------- are the labels a sample


def _compare_passes(heaps: Sequence[Heap], divisor: float) -> float:
    """Compute Fisher's exact p-value of the hypothesis that the judge passes labelled and unlabelled cases alike.

    All counts are divided by ``divisor``, the design effect of labels that come in groups.
    """
    from scipy.stats import fisher_exact

    # Each has two numbers: of the cases that the judge passed, and of the others.
    labelled = [sum(heap.labels for heap in heaps if (heap.verdict == "passed") is passed) for passed in (True, False)]
    cases = [sum(heap.cases for heap in heaps if (heap.verdict == "passed") is passed) for passed in (True, False)]
    unlabelled = [size - number for size, number in zip(cases, labelled, strict=True)]
    table = [[round(number / divisor) for number in row] for row in (labelled, unlabelled)]
    return float(fisher_exact(table)[1])


def _find_verdict_shrink(heaps: Sequence[Heap], groups: GroupCounts | None) -> float:
    """Find the divisor of counts of passes where whole groups were labelled: 1 where each case is for itself."""
    if groups is None or len(groups.good) < 2:
        return 1.0
    import numpy as np

    passed = np.asarray([heap.verdict == "passed" for heap in heaps])
    labels = groups.good + groups.bad + groups.unresolved
    # For each group: its labelled cases that the judge passed, and all its labelled cases.
    each = np.sum(labels * passed, axis=-1, keepdims=True).astype(float)
    every = np.sum(labels, axis=-1, keepdims=True).astype(float)
    deff, _ = compute_design_effects(each, every, np.ones(1))
    return max(1.0, float(compute_shrink(deff, len(each))))


def _check_target_and_level(target: str, level: float) -> None:
    """Raise ``UsageError`` for a target that there is not, and for a level that is no share."""
    if target not in get_args(Target):
        raise UsageError(
            f"there is no target {show(target)}; there are {' and '.join(get_args(Target))}", argument="target"
        )
    check_level(level)
