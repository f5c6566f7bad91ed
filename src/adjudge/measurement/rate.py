"""The rate at which people would pass, from the counts of a measurement: which labels count, and by which design."""

from __future__ import annotations

from collections import Counter
from typing import Literal

from adjudge.labels.truth import LabelledVerdict, TruthHeap
from adjudge.measurement.tally import HEAPS, VERDICTS, MeasurementTally
from adjudge.trust.double_sampling import Target
from adjudge.trust.label_counts import GroupCounts, Heap, HeapVerdict, LabelCounts, count_groups
from adjudge.trust.rates import CorrectedRate, Refusal, make_corrected_rate

Sampling = Literal["census", "plan", "random", "unknown"]
"""How the labelled cases were chosen: all of them, by a recorded draw, at random as the user says, or nobody knows."""

_PASSES: tuple[LabelledVerdict, ...] = ("passed", "first")

_FAILS: tuple[LabelledVerdict, ...] = ("failed", "second", "tie")

_TRUTHS: dict[TruthHeap, bool] = {"good": True, "first": True, "bad": False, "second": False, "tie": False}


def find_sampling(tally: MeasurementTally, *, said_random: bool) -> tuple[Sampling, list[int], tuple[str, ...]]:
    """How the labels were drawn, which of the labelled cases count for a rate, and what a reader should know of it.

    Where a plan drew some of the labels, those alone are a sample; labels that somebody picked beside it are left out.
    """
    every = tally.list_places(tuple(heap for heap in HEAPS if heap != "number"))
    if len(every) == sum(tally.cases.values()):
        return "census", every, ()
    if said_random:
        return "random", every, ()
    designs = tally.list_designs()
    plans = Counter(design.plan for at in every if (design := designs[at]) is not None)
    if not plans:
        return "unknown", every, ()
    plan, number = plans.most_common(1)[0]
    kept = [at for at in every if (design := designs[at]) is not None and design.plan == plan]
    left = len(every) - number
    notes = (f"{left:,} labels that the plan did not draw are not in the rate.",) if left else ()
    chances = {design.p for at in kept if (design := designs[at]) is not None}
    if len(chances) > 1 and not tally.strata:
        return "unknown", every, ("The labels were drawn with several probabilities, and the plan is not in the run.",)
    return "plan", kept, notes


def compute_rate(
    tally: MeasurementTally, *, said_random: bool, target: Target, outside: LabelCounts | None = None
) -> tuple[CorrectedRate | Refusal, Sampling, tuple[str, ...]]:
    """The corrected rate or a refusal, how the labels were drawn, and notes on that.

    ``outside`` are labels of another run of the same judge; with them, sensitivity and specificity are carried over.
    """
    sampling, places, notes = find_sampling(tally, said_random=said_random)
    # Cases that were drawn one by one are a random sample of the run, alike or not. That the run itself has groups
    # matters for the system alone. Somebody who says "random" may have drawn whole groups.
    ungrouped = target == "run" and sampling in ("plan", "census")
    names = None if ungrouped else tally.list_groups(places)
    heaps, groups = make_heaps(tally, places, by_stratum=sampling == "plan", names=names)
    found = make_corrected_rate(heaps, sampled=sampling != "unknown", outside=outside, groups=groups, target=target)
    return found, sampling, notes


def make_heaps(
    tally: MeasurementTally, places: list[int], *, by_stratum: bool, names: list[int] | None
) -> tuple[list[Heap], GroupCounts | None]:
    """The cases of a run by verdict (and stratum), with the labels in them; and the labels by group.

    Comparisons count as passed where the first is preferred.
    """
    strata = tally.strata if by_stratum and tally.strata else None
    sizes: Counter[tuple[str | None, HeapVerdict]] = Counter()
    for (stratum, verdict), number in (strata or {(None, name): n for name, n in tally.cases.items()}).items():
        sizes[stratum, _read_verdict(verdict)] += number
    order = sorted(sizes, key=str)
    columns = {key: at for at, key in enumerate(order)}
    designs = tally.list_designs()
    found: list[int] = []
    truths: list[bool | None] = []
    for at in places:
        design = designs[at]
        stratum = design.stratum if strata is not None and design is not None else None
        found.append(columns[stratum, _read_verdict(VERDICTS[tally.verdicts[at]])])
        truths.append(_TRUTHS.get(HEAPS[tally.heaps[at]]))
    counted = Counter(zip(found, truths, strict=True))
    heaps = [
        Heap(
            verdict=key[1],
            cases=sizes[key],
            good=counted[at, True],
            bad=counted[at, False],
            unresolved=counted[at, None],
            stratum=key[0],
        )
        for key, at in columns.items()
    ]
    groups = None if names is None else count_groups(names, found, truths, columns=len(order))
    return heaps, groups


def count_labels(tally: MeasurementTally) -> LabelCounts:
    """The labels of a measurement alone, to correct the rate of another run of the same judge."""
    heaps, _ = make_heaps(tally, tally.list_places(HEAPS), by_stratum=False, names=None)
    return sum((heap.to_counts() for heap in heaps), start=LabelCounts())


def _read_verdict(verdict: LabelledVerdict) -> HeapVerdict:
    return "passed" if verdict in _PASSES else "failed" if verdict in _FAILS else "undecided"
