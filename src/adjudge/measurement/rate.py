"""The rate at which people would pass, from the counts of a measurement: which of the labels count.

The rate itself is computed in ``trust/corrected_rate.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from adjudge.dataset.label import LabelDesign
from adjudge.labels.truth import LabelledVerdict, TruthHeap
from adjudge.measurement.label_origin import Origin, Planned, find_planned
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


class SampledCases(NamedTuple):
    """The labelled cases that count for a rate."""

    sampling: Sampling
    places: Sequence[int]
    """Their places among the labelled cases."""
    notes: tuple[str, ...]
    """Sentences that a reader should know of the draw."""


def find_sampling(tally: MeasurementTally, origin: Origin, *, labels_are_random: bool, lost: int = 0) -> SampledCases:
    """Find how the labels were drawn, which labelled cases count for a rate, and what a reader should know of it.

    Where a draw from these contents made some of the labels, those alone are a sample; labels that somebody picked
    beside it are left out. ``lost`` is how many cases have labels of another content alone: what is left is no sample
    that somebody may say is random, because the contents that changed are missing.
    """
    every = tally.list_places(tuple(heap for heap in HEAPS if heap != "number"))
    if len(every) == sum(tally.cases.values()):
        return SampledCases("census", every, ())
    plan = find_draw(tally, origin)
    # A plan draws more of some strata than of others, so what is recorded of it goes before what somebody says.
    is_planned = plan is not None and plan is origin.planned
    if labels_are_random and not is_planned and not count_other_draws(tally, origin) and not lost:
        return SampledCases("random", every, ())
    if plan is None:
        is_drawn = any(origin.holds(design) for designs in tally.list_designs(every) for design in designs)
        return SampledCases("unknown", every, (_NO_STRATA,) if is_drawn else ())
    sampled = [
        at for at, designs in zip(every, tally.list_designs(every), strict=True) if _is_of(plan, designs, origin)
    ]
    left_out_count = len(every) - len(sampled)
    return SampledCases("plan", sampled, (_describe_left(left_out_count),) if left_out_count else ())


def _describe_left(number: int) -> str:
    one = number == 1
    labels = f"{number:,} label{'' if one else 's'}"
    return f"{labels} that the plan did not draw {'is' if one else 'are'} not in the rate."


def _is_of(plan: Planned, designs: Sequence[LabelDesign], origin: Origin) -> bool:
    design = plan.find(designs)
    return design is not None and origin.holds(design)


_NO_STRATA = "The labels name strata of a plan that is not known, so no plan is relied on."


def count_other_draws(tally: MeasurementTally, origin: Origin) -> int:
    """Count the labelled cases that were drawn from other contents, or by a draw that lacks a case here."""
    return sum(
        alike.number
        for alike in tally.count_patterns(tally.list_places(HEAPS))
        if any(design.drawn_from is not None for design in alike.designs) and not any(map(origin.holds, alike.designs))
    )


def find_draw(tally: MeasurementTally, origin: Origin) -> Planned | None:
    """The draw from these contents that most labelled cases are of, with its strata; ``None`` if no draw is known."""
    plans: Counter[str] = Counter()
    designs, strata = set[LabelDesign](), Counter[tuple[str, str]]()
    for alike in tally.count_patterns(tally.list_places(HEAPS)):
        own_designs = [design for design in alike.designs if alike.heap != "number" and origin.holds(design)]
        designs.update(own_designs)
        strata.update(dict.fromkeys({(design.plan, design.stratum) for design in own_designs}, alike.number))
        for name in {design.plan for design in own_designs}:
            plans[name] += alike.number
    if not plans:
        return None
    plan = plans.most_common(1)[0][0]
    if origin.planned is not None and origin.planned.plan == plan:
        return origin.planned
    labelled = {stratum: number for (name, stratum), number in strata.items() if name == plan}
    return find_planned([design for design in designs if design.plan == plan], labelled, origin)


def find_strata(tally: MeasurementTally, sampling: Sampling, origin: Origin) -> Planned | None:
    """The run's own plan, or a draw from several strata, if the labels that count are of it."""
    plan = find_draw(tally, origin) if sampling == "plan" else None
    return plan if plan is not None and (len(plan.sizes) > 1 or plan is origin.planned) else None


def compute_rate(
    tally: MeasurementTally,
    *,
    labels_are_random: bool,
    target: Target,
    limits: IntervalMethod | None = None,
    origin: Origin,
    lost: int = 0,
    level: float = LEVEL,
) -> tuple[CorrectedRate | Refusal, SampledCases]:
    """Return the corrected rate or a refusal, and the labelled cases that it rests on."""
    sampled_cases = find_sampling(tally, origin, labels_are_random=labels_are_random, lost=lost)
    sampling, places = sampled_cases.sampling, sampled_cases.places
    # Cases that were drawn one by one are a random sample of the run, alike or not. That the run itself has groups
    # matters for the system alone. Somebody who says "random" may have drawn whole groups.
    ungrouped = target == "run" and sampling in ("plan", "census")
    names = None if ungrouped else tally.list_groups(places)
    strata = find_strata(tally, sampling, origin)
    if strata is not None:
        heaps, groups = _make_strata(tally, places, strata, names)
        rate = make_internal_rate(heaps, groups=groups, target=target, level=level, method=limits)
        return replace(rate, naive=_count_passes(tally)), sampled_cases
    heaps, groups = make_heaps(tally, places, names)
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
    counts: Counter[tuple[int, bool | None]] = Counter()
    for alike in tally.count_patterns(places):
        counts[columns[_read_verdict(alike.verdict)], _TRUTHS.get(alike.heap)] += alike.number
    heaps = [_add_labels(Heap(verdict=name, cases=sizes[name]), counts, at) for name, at in columns.items()]
    if names is None:
        return heaps, None
    columns_of_cases = [columns[_read_verdict(row.verdict)] for row in tally.list_rows(places)]
    truths = [_TRUTHS.get(row.heap) for row in tally.list_rows(places)]
    return heaps, count_groups(names, columns_of_cases, truths, columns=len(order))


def _make_strata(
    tally: MeasurementTally, places: Sequence[int], planned: Planned, names: Sequence[int] | None
) -> tuple[list[Heap], GroupCounts | None]:
    """Make heaps by the strata of a plan. Verdicts are not told apart in them: strata are of like verdicts already."""
    columns = {name: at for at, name in enumerate(planned.sizes)}
    placed = [
        (columns[design.stratum], row.heap)
        for row in tally.list_rows(places)
        if (design := planned.find(row.designs)) is not None
    ]
    columns_of_cases, truths = [column for column, _ in placed], [_TRUTHS.get(heap) for _, heap in placed]
    names_of = list(planned.sizes)
    heaps = make_strata(
        planned.sizes, Counter((names_of[at], truth) for at, truth in zip(columns_of_cases, truths, strict=True))
    )
    return heaps, None if names is None else count_groups(names, columns_of_cases, truths, columns=len(heaps))


def list_draws(
    tally: MeasurementTally, places: Sequence[int], strata: Planned | None
) -> tuple[list[int], list[tuple[int, bool | None]]]:
    """The sizes of the strata, and of each labelled case its stratum and whether it is good: for ``compute_live_rate``.

    The strata are those of the plan, else the verdicts of the judge.
    """
    rows = list(tally.list_rows(places))
    truths = [_TRUTHS.get(row.heap) for row in rows]
    if strata is not None:
        columns = {name: at for at, name in enumerate(strata.sizes)}
        drawn = [columns[design.stratum] for row in rows if (design := strata.find(row.designs)) is not None]
        return list(strata.sizes.values()), list(zip(drawn, truths, strict=True))
    heaps, _ = make_heaps(tally, places, None)
    verdicts = {heap.verdict: at for at, heap in enumerate(heaps)}
    drawn = [verdicts[_read_verdict(row.verdict)] for row in rows]
    return [heap.cases for heap in heaps], list(zip(drawn, truths, strict=True))


def _add_labels(heap: Heap, counts: Counter[tuple[int, bool | None]], column: int) -> Heap:
    return replace(heap, good=counts[column, True], bad=counts[column, False], unresolved=counts[column, None])


def _count_passes(tally: MeasurementTally) -> Share:
    passes = sum(number for verdict, number in tally.cases.items() if verdict in _PASSES)
    return Share(count=passes, of=sum(tally.cases.values()))


def _read_verdict(verdict: LabelledVerdict) -> HeapVerdict:
    return "passed" if verdict in _PASSES else "failed" if verdict in _FAILS else "undecided"
