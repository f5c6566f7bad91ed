"""The corrected rate of a run: the share of its cases that people would pass, from its verdicts and some labels.

Here is decided which labelled cases count for the rate, and they are counted in heaps: cases that the judge treated
alike (``trust.label_counts.Heap``). The rate itself is computed in ``trust/corrected_rate.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from adjudge.dataset.label import LabelDesign
from adjudge.labels.truth import LabelledVerdict, TruthHeap
from adjudge.measurement.label_origin import KnownPlan, LabelOrigin, find_described_plan
from adjudge.measurement.tally import HEAPS, MeasurementTally
from adjudge.trust.corrected_rate import CorrectedRate, Refusal, make_corrected_rate, make_internal_rate
from adjudge.trust.double_sampling import Target
from adjudge.trust.intervals import LEVEL, IntervalMethod, Share
from adjudge.trust.label_counts import GroupCounts, Heap, HeapVerdict, count_groups, make_strata

Sampling = Literal["census", "plan", "random", "unknown"]
"""The choice of the labelled cases: all of them, by a recorded draw, at random as the user says, or nobody knows."""

_PASSES: tuple[LabelledVerdict, ...] = ("passed", "first")

_FAILS: tuple[LabelledVerdict, ...] = ("failed", "second", "tie")

_TRUTHS: dict[TruthHeap, bool] = {"good": True, "first": True, "bad": False, "second": False, "tie": False}
"""True if people pass a case, or prefer the first of a pair; any other case is unresolved."""


class SampledCases(NamedTuple):
    """The labelled cases that count for a rate."""

    sampling: Sampling
    indexes: Sequence[int]
    """Their indexes among the labelled cases."""
    notes: tuple[str, ...]
    """Sentences that a reader should know of the draw."""


def find_sampling(
    tally: MeasurementTally, origin: LabelOrigin, *, labels_are_random: bool, stale_cases: int = 0
) -> SampledCases:
    """Find how the labels were drawn, which labelled cases count for a rate, and what a reader should know of it.

    Where a draw from these contents made some of the labels, those alone are a sample; labels that somebody picked
    beside it are left out. ``stale_cases`` is the number of cases whose labels are all of another content. With such
    cases the other labels are not taken for random, even if the user says so, because the changed contents are missing.
    """
    labelled = tally.find_indexes(tuple(heap for heap in HEAPS if heap != "number"))
    if len(labelled) == sum(tally.cases.values()):
        return SampledCases("census", labelled, ())
    plan = find_draw(tally, origin)
    # A plan draws more of some strata than of others, so what is recorded of it goes before what somebody says.
    is_own_plan = plan is not None and plan is origin.known_plan
    if labels_are_random and not is_own_plan and not count_other_draws(tally, origin) and not stale_cases:
        return SampledCases("random", labelled, ())
    if plan is None:
        is_drawn = any(origin.is_trusted_draw(design) for designs in tally.list_designs(labelled) for design in designs)
        return SampledCases("unknown", labelled, (_NO_STRATA,) if is_drawn else ())
    sampled = [
        index
        for index, designs in zip(labelled, tally.list_designs(labelled), strict=True)
        if _was_drawn_by(plan, designs, origin)
    ]
    left_out_count = len(labelled) - len(sampled)
    return SampledCases("plan", sampled, (_describe_left_out(left_out_count),) if left_out_count else ())


def _describe_left_out(number: int) -> str:
    is_one = number == 1
    labels = f"{number:,} label{'' if is_one else 's'}"
    return f"{labels} that the plan did not draw {'is' if is_one else 'are'} not in the rate."


def _was_drawn_by(plan: KnownPlan, designs: Sequence[LabelDesign], origin: LabelOrigin) -> bool:
    """Return whether a plan drew the case with these designs from the contents that were judged."""
    design = plan.find_design(designs)
    return design is not None and origin.is_trusted_draw(design)


_NO_STRATA = "The labels name strata of a plan that is not known, so no plan is relied on."


def count_other_draws(tally: MeasurementTally, origin: LabelOrigin) -> int:
    """Count the labelled cases that were drawn from other contents, or by a draw that lacks a case here."""
    number = 0
    for alike in tally.count_alike_cases(tally.find_indexes(HEAPS)):
        was_drawn = any(design.drawn_from is not None for design in alike.designs)
        if was_drawn and not any(map(origin.is_trusted_draw, alike.designs)):
            number += alike.number
    return number


def find_draw(tally: MeasurementTally, origin: LabelOrigin) -> KnownPlan | None:
    """Find the plan that drew most of the labelled cases from these contents, with its strata; ``None`` without one.

    A plan that is not in the run's folder is rebuilt from what the labels record of it; ``None`` where they do not tell
    enough.
    """
    cases_by_plan: Counter[str] = Counter()
    cases_by_stratum: Counter[tuple[str, str]] = Counter()  # by the plan's id and the stratum's name
    designs: set[LabelDesign] = set()
    for alike in tally.count_alike_cases(tally.find_indexes(HEAPS)):
        trusted = [design for design in alike.designs if alike.heap != "number" and origin.is_trusted_draw(design)]
        designs.update(trusted)
        # Sets, because a case counts once even if it has two designs of one plan.
        for plan_and_stratum in {(design.plan, design.stratum) for design in trusted}:
            cases_by_stratum[plan_and_stratum] += alike.number
        for plan_id in {design.plan for design in trusted}:
            cases_by_plan[plan_id] += alike.number
    if not cases_by_plan:
        return None
    most_used_id = cases_by_plan.most_common(1)[0][0]
    if origin.known_plan is not None and origin.known_plan.plan == most_used_id:
        return origin.known_plan
    labelled = {stratum: number for (plan_id, stratum), number in cases_by_stratum.items() if plan_id == most_used_id}
    return find_described_plan([design for design in designs if design.plan == most_used_id], labelled, origin)


def find_strata(tally: MeasurementTally, sampling: Sampling, origin: LabelOrigin) -> KnownPlan | None:
    """Find the plan by whose strata the labels are weighed; ``None`` where they are not, or no plan drew them.

    That is the plan in the run's folder, or another plan if it has several strata.
    """
    plan = find_draw(tally, origin) if sampling == "plan" else None
    if plan is None:
        return None
    return plan if len(plan.sizes) > 1 or plan is origin.known_plan else None


def compute_rate(
    tally: MeasurementTally,
    *,
    labels_are_random: bool,
    target: Target,
    limits: IntervalMethod | None = None,
    origin: LabelOrigin,
    stale_cases: int = 0,
    level: float = LEVEL,
) -> tuple[CorrectedRate | Refusal, SampledCases]:
    """Compute the corrected rate, or the refusal to give one; also return the labelled cases that it rests on.

    ``target``, ``limits`` (a method) and ``level`` are for the rate, the other options for ``find_sampling``.
    """
    sampled_cases = find_sampling(tally, origin, labels_are_random=labels_are_random, stale_cases=stale_cases)
    sampling, indexes = sampled_cases.sampling, sampled_cases.indexes
    # Cases that were drawn one by one are a random sample of the run, alike or not. That the run itself has groups
    # matters for the system alone. Somebody who says "random" may have drawn whole groups.
    ignores_groups = target == "run" and sampling in ("plan", "census")
    group_numbers = None if ignores_groups else tally.list_groups(indexes)
    strata = find_strata(tally, sampling, origin)
    if strata is not None:
        heaps, groups = _make_strata_heaps(tally, indexes, strata, group_numbers)
        rate = make_internal_rate(heaps, groups=groups, target=target, level=level, method=limits)
        return replace(rate, naive=_count_passes(tally)), sampled_cases
    heaps, groups = make_heaps(tally, indexes, group_numbers)
    rate = make_corrected_rate(
        heaps,
        sampled=sampling != "unknown",
        recorded=sampling != "random",
        groups=groups,
        target=target,
        level=level,
        method=limits,
    )
    return rate, sampled_cases


def make_heaps(
    tally: MeasurementTally, indexes: Sequence[int], group_numbers: Sequence[int] | None
) -> tuple[list[Heap], GroupCounts | None]:
    """Make a heap of the run's cases for each verdict, with the labels of the cases at ``indexes`` counted in it.

    Also counts these labels by group, if ``group_numbers`` has the group of each labelled case. Pairs count as passed
    where the first is preferred. A ``Heap`` here is the cases of one verdict, while the ``heap`` of a labelled case is
    its truth, such as ``good``.
    """
    sizes: Counter[HeapVerdict] = Counter()
    for verdict, number in tally.cases.items():
        sizes[_read_verdict(verdict)] += number
    heap_verdicts = sorted(sizes)
    heap_numbers = {verdict: number for number, verdict in enumerate(heap_verdicts)}
    # Labelled cases by the number of the heap and whether they are good; None is unresolved.
    counts: Counter[tuple[int, bool | None]] = Counter()
    for alike in tally.count_alike_cases(indexes):
        counts[heap_numbers[_read_verdict(alike.verdict)], _TRUTHS.get(alike.heap)] += alike.number
    heaps = [
        _add_labels(Heap(verdict=verdict, cases=sizes[verdict]), counts, number)
        for verdict, number in heap_numbers.items()
    ]
    if group_numbers is None:
        return heaps, None
    heap_of_each = [heap_numbers[_read_verdict(row.verdict)] for row in tally.list_rows(indexes)]
    truths = [_TRUTHS.get(row.heap) for row in tally.list_rows(indexes)]
    return heaps, count_groups(group_numbers, heap_of_each, truths, columns=len(heap_verdicts))


def _make_strata_heaps(
    tally: MeasurementTally, indexes: Sequence[int], plan: KnownPlan, group_numbers: Sequence[int] | None
) -> tuple[list[Heap], GroupCounts | None]:
    """Make a heap for each stratum of a plan, with the labels in it, and count the labels by group as ``make_heaps``.

    Verdicts are not told apart within a stratum: its cases have like verdicts already.
    """
    strata = list(plan.sizes)
    heap_numbers = {stratum: number for number, stratum in enumerate(strata)}
    heap_of_each: list[int] = []
    truths: list[bool | None] = []
    for row in tally.list_rows(indexes):
        design = plan.find_design(row.designs)
        if design is not None:
            heap_of_each.append(heap_numbers[design.stratum])
            truths.append(_TRUTHS.get(row.heap))
    counts = Counter((strata[number], truth) for number, truth in zip(heap_of_each, truths, strict=True))
    heaps = make_strata(plan.sizes, counts)
    if group_numbers is None:
        return heaps, None
    return heaps, count_groups(group_numbers, heap_of_each, truths, columns=len(heaps))


def list_draws(
    tally: MeasurementTally, indexes: Sequence[int], strata: KnownPlan | None
) -> tuple[list[int], list[tuple[int, bool | None]]]:
    """List the sizes of the strata, and for each labelled case the number of its stratum and whether it is good.

    This is what ``compute_live_rate`` takes. The strata are those of the plan; without one, the run's cases with one
    verdict each. A case that people did not settle has ``None`` in place of true or false.
    """
    rows = list(tally.list_rows(indexes))
    truths = [_TRUTHS.get(row.heap) for row in rows]
    if strata is not None:
        numbers = {stratum: number for number, stratum in enumerate(strata.sizes)}
        designs = [strata.find_design(row.designs) for row in rows]
        stratum_of_each = [numbers[design.stratum] for design in designs if design is not None]
        return list(strata.sizes.values()), list(zip(stratum_of_each, truths, strict=True))
    heaps, _ = make_heaps(tally, indexes, None)
    heap_numbers = {heap.verdict: number for number, heap in enumerate(heaps)}
    heap_of_each = [heap_numbers[_read_verdict(row.verdict)] for row in rows]
    return [heap.cases for heap in heaps], list(zip(heap_of_each, truths, strict=True))


def _add_labels(heap: Heap, counts: Counter[tuple[int, bool | None]], heap_number: int) -> Heap:
    """Return a heap with the numbers of its labelled cases that are good, bad and unresolved."""
    return replace(
        heap,
        good=counts[heap_number, True],
        bad=counts[heap_number, False],
        unresolved=counts[heap_number, None],
    )


def _count_passes(tally: MeasurementTally) -> Share:
    """Count the cases that the judge passed, or the pairs of which it prefers the first, of all."""
    passes = sum(number for verdict, number in tally.cases.items() if verdict in _PASSES)
    return Share(count=passes, of=sum(tally.cases.values()))


def _read_verdict(verdict: LabelledVerdict) -> HeapVerdict:
    """Read a verdict, also one on a pair, as passed (the first is preferred), failed or undecided."""
    return "passed" if verdict in _PASSES else "failed" if verdict in _FAILS else "undecided"
