"""The rate at which people would pass, from the counts of a measurement: which of the labels count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from adjudge.labels.truth import LabelledVerdict, TruthHeap
from adjudge.measurement.tally import HEAPS, MeasurementTally
from adjudge.trust.corrected_rate import CorrectedRate, Refusal, make_corrected_rate, make_internal_rate
from adjudge.trust.double_sampling import Target
from adjudge.trust.intervals import IntervalMethod, Share
from adjudge.trust.label_counts import GroupCounts, Heap, HeapVerdict, count_groups

Sampling = Literal["census", "plan", "random", "unknown"]
"""How the labelled cases were chosen: all of them, by a recorded draw, at random as the user says, or nobody knows."""

_PASSES: tuple[LabelledVerdict, ...] = ("passed", "first")

_FAILS: tuple[LabelledVerdict, ...] = ("failed", "second", "tie")

_TRUTHS: dict[TruthHeap, bool] = {"good": True, "first": True, "bad": False, "second": False, "tie": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The strata that a plan drew the labelled cases of a run from."""

    plan: str
    """The plan's id, which the labels name."""
    sizes: Mapping[str, int]
    """How many cases each stratum has, drawn or not."""


def find_sampling(
    tally: MeasurementTally, *, said_random: bool, planned: Planned | None = None
) -> tuple[Sampling, Sequence[int], tuple[str, ...]]:
    """How the labels were drawn, which of the labelled cases count for a rate, and what a reader should know of it.

    Where a plan drew some of the labels, those alone are a sample; labels that somebody picked beside it are left out.
    """
    every = tally.list_places(tuple(heap for heap in HEAPS if heap != "number"))
    if len(every) == sum(tally.cases.values()):
        return "census", every, ()
    if said_random:
        return "random", every, ()
    plan, number = _find_plan(tally, every)
    if plan is None:
        return "unknown", every, ()
    drawn = [
        (at, design.stratum)
        for at, design in zip(every, tally.list_designs(every), strict=True)
        if design is not None and design.plan == plan
    ]
    kept, strata = [at for at, _ in drawn], {stratum for _, stratum in drawn}
    if len(strata) > 1 and (planned is None or planned.plan != plan or not strata <= set(planned.sizes)):
        # Without the sizes of the strata nobody knows what each of them counts for.
        return "unknown", every, ("The labels name strata of a plan that is not this run's, so no plan is relied on.",)
    left = len(every) - number
    return "plan", kept, (f"{left:,} labels that the plan did not draw are not in the rate.",) if left else ()


def find_strata(tally: MeasurementTally, sampling: Sampling, planned: Planned | None) -> Planned | None:
    """The plan, if the labels that count were drawn from several strata of it.

    They were not if most labels are of a random order from before the plan: its labels are in no stratum.
    """
    if sampling != "plan" or planned is None or len(planned.sizes) < 2:
        return None
    every = tally.list_places(tuple(heap for heap in HEAPS if heap != "number"))
    return planned if _find_plan(tally, every)[0] == planned.plan else None


def _find_plan(tally: MeasurementTally, places: Sequence[int]) -> tuple[str | None, int]:
    """The plan that drew most of some labelled cases, and how many it drew."""
    plans: Counter[str] = Counter()
    for _, _, design, number in tally.count_patterns(places):
        if design is not None:
            plans[design.plan] += number
    return plans.most_common(1)[0] if plans else (None, 0)


def compute_rate(
    tally: MeasurementTally,
    *,
    said_random: bool,
    target: Target,
    limits: IntervalMethod | None = None,
    planned: Planned | None = None,
) -> tuple[CorrectedRate | Refusal, Sampling, tuple[str, ...]]:
    """Return the corrected rate or a refusal, how the labels were drawn, and notes on that."""
    sampling, places, notes = find_sampling(tally, said_random=said_random, planned=planned)
    # Cases that were drawn one by one are a random sample of the run, alike or not. That the run itself has groups
    # matters for the system alone. Somebody who says "random" may have drawn whole groups.
    ungrouped = target == "run" and sampling in ("plan", "census")
    names = None if ungrouped else tally.list_groups(places)
    strata = find_strata(tally, sampling, planned)
    if strata is not None:
        heaps, groups = _make_strata(tally, places, strata, names)
        found = make_internal_rate(heaps, groups=groups, target=target, method=limits)
        return replace(found, naive=_count_passes(tally)), sampling, notes
    heaps, groups = make_heaps(tally, places, names)
    found = make_corrected_rate(heaps, sampled=sampling != "unknown", groups=groups, target=target, method=limits)
    return found, sampling, notes


def make_heaps(
    tally: MeasurementTally, places: Sequence[int], names: Sequence[int] | None
) -> tuple[list[Heap], GroupCounts | None]:
    """The cases of a run by verdict, with the labels in them; and the labels by group.

    Comparisons count as passed where the first is preferred.
    """
    sizes: Counter[HeapVerdict] = Counter()
    for verdict, number in tally.cases.items():
        sizes[_read_verdict(verdict)] += number
    order = sorted(sizes)
    columns = {verdict: at for at, verdict in enumerate(order)}
    counted: Counter[tuple[int, bool | None]] = Counter()
    for verdict, heap, _, number in tally.count_patterns(places):
        counted[columns[_read_verdict(verdict)], _TRUTHS.get(heap)] += number
    heaps = [_fill(Heap(verdict=name, cases=sizes[name]), counted, at) for name, at in columns.items()]
    if names is None:
        return heaps, None
    found = [columns[_read_verdict(verdict)] for verdict, _, _ in tally.list_kept(places)]
    truths = [_TRUTHS.get(heap) for _, heap, _ in tally.list_kept(places)]
    return heaps, count_groups(names, found, truths, columns=len(order))


def _make_strata(
    tally: MeasurementTally, places: Sequence[int], planned: Planned, names: Sequence[int] | None
) -> tuple[list[Heap], GroupCounts | None]:
    """The same by the strata of a plan. Verdicts are not told apart in them: strata are of like verdicts already."""
    columns = {name: at for at, name in enumerate(planned.sizes)}
    kept = [(columns[design.stratum], heap) for _, heap, design in tally.list_kept(places) if design is not None]
    found, truths = [column for column, _ in kept], [_TRUTHS.get(heap) for _, heap in kept]
    counted = Counter(zip(found, truths, strict=True))
    heaps = [
        _fill(Heap(verdict="passed", cases=size, stratum=name), counted, columns[name])
        for name, size in planned.sizes.items()
    ]
    return heaps, None if names is None else count_groups(names, found, truths, columns=len(heaps))


def _fill(heap: Heap, counted: Counter[tuple[int, bool | None]], at: int) -> Heap:
    return replace(heap, good=counted[at, True], bad=counted[at, False], unresolved=counted[at, None])


def _count_passes(tally: MeasurementTally) -> Share:
    passes = sum(number for verdict, number in tally.cases.items() if verdict in _PASSES)
    return Share(count=passes, of=sum(tally.cases.values()))


def _read_verdict(verdict: LabelledVerdict) -> HeapVerdict:
    return "passed" if verdict in _PASSES else "failed" if verdict in _FAILS else "undecided"
