"""Verdicts beside labels, counted case by case: a few bytes for each labelled case, nothing for any other."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from adjudge.dataset.case import LabelValue
from adjudge.dataset.label import LabelDesign
from adjudge.dataset.label_map import CANNOT_TELL
from adjudge.labels.truth import LabelledVerdict, TruthHeap
from adjudge.measurement.disagreement import ComparedCase, DisagreementList
from adjudge.measurement.judged_case import CaseTruth, CaseVerdict
from adjudge.trust.confusion import Category

VERDICTS: tuple[LabelledVerdict, ...] = ("failed", "passed", "undecided", "first", "second", "tie")

HEAPS: tuple[TruthHeap, ...] = ("bad", "good", "first", "second", "tie", "number", "cannot_tell", "unresolved")

_OF_VERDICT: dict[LabelledVerdict, Category] = {"failed": False, "passed": True, "undecided": None}

_OF_HEAP: dict[TruthHeap, Category] = {"bad": False, "good": True}

PREFERENCES: tuple[TruthHeap, ...] = ("first", "tie", "second")

_VERDICT_CODES = {verdict: code for code, verdict in enumerate(VERDICTS)}

_HEAP_CODES = {heap: code for code, heap in enumerate(HEAPS)}

_UNDECIDED = _VERDICT_CODES["undecided"]

_MOST_REPEATS = 65_535


@dataclass(slots=True)
class _Codes:
    """Names as numbers, in the order in which they come."""

    codes: dict[Hashable, int] = field(default_factory=dict)

    def find(self, name: Hashable) -> int:
        return self.codes.setdefault(name, len(self.codes))

    @property
    def names(self) -> list[Hashable]:
        return list(self.codes)


@dataclass(slots=True)
class _Ratings:
    """What one rater said, as places among the labelled cases and numbers of values."""

    places: array[int] = field(default_factory=lambda: array("i"))
    values: array[int] = field(default_factory=lambda: array("i"))


class MeasurementTally:
    """Verdicts and labels on their way to a ``Measurement``, on one criterion or the whole."""

    def __init__(self, criterion: str | None, *, most: int) -> None:
        self.criterion = criterion
        self.cases: Counter[LabelledVerdict] = Counter()
        """All cases by verdict, labelled or not."""
        self.table: Counter[tuple[LabelledVerdict, TruthHeap]] = Counter()
        """Labelled cases by verdict and truth."""
        self.overrides = 0
        self.repeated = 0
        """Cases that were judged more than once."""
        self.flipped = 0
        """Those of them whose judgements are not all the same."""
        self.disagreements = DisagreementList(most)
        self.verdicts, self.heaps = array("b"), array("b")
        self.scores, self.numbers = array("d"), array("d")
        self.passes, self.fails, self.judgements = array("H"), array("H"), array("H")
        self.groups, self.kinds, self.designs = array("i"), array("i"), array("i")
        self.properties: list[array[float]] = [array("d"), array("d"), array("i")]
        """Length, format (0 or 1) and language of each labelled case; of a pair, how the first differs."""
        self.pairs = 0
        """Labelled comparisons."""
        self.forward, self.backward = array("b"), array("b")
        """The verdict of each order of each labelled pair."""
        self._groups, self._kinds, self._designs = _Codes(), _Codes(), _Codes()
        self._values, self._languages = _Codes(), _Codes()
        self._ratings: dict[str, _Ratings] = {}

    def add(self, found: CaseVerdict, truth: CaseTruth | None, case: ComparedCase) -> None:
        """Count a case; ``truth`` is ``None`` where nobody labelled it."""
        self.cases[found.verdict] += 1
        if found.judgements > 1:
            self.repeated += 1
            self.flipped += found.flipped
        if truth is None:
            return
        if truth.override:
            # Only cases that a gate held back have them: a rate of the judge does not follow from such a choice.
            self.overrides += 1
            return
        heap = truth.heap
        self.table[found.verdict, heap] += 1
        self._keep(found, truth, heap, case)
        self._keep_properties(case)
        if not _agrees(found.verdict, heap):
            self.disagreements.add(found, truth, case)

    def _keep(self, found: CaseVerdict, truth: CaseTruth, heap: TruthHeap, case: ComparedCase) -> None:
        at = len(self.verdicts)
        self.verdicts.append(_VERDICT_CODES[found.verdict])
        self.heaps.append(_HEAP_CODES[heap])
        self.scores.append(math.nan if found.score is None else found.score)
        self.numbers.append(_read_number(truth.value))
        for counts, number in ((self.passes, found.passed), (self.fails, found.failed)):
            counts.append(min(number, _MOST_REPEATS))
        self.judgements.append(min(found.judgements, _MOST_REPEATS))
        # A case without a group is a group of its own, which no name has to be kept for.
        self.groups.append(-1 - at if case.group is None else self._groups.find(case.group))
        self.kinds.append(self._kinds.find(case.kind))
        self.designs.append(self._designs.find(truth.design))
        for rater, value in truth.ratings.items():
            said = self._ratings.setdefault(rater, _Ratings())
            said.places.append(at)
            said.values.append(self._values.find((isinstance(value, bool), value)))

    def _keep_properties(self, case: ComparedCase) -> None:
        sides = case.properties()
        first, second = sides[0] if sides else None, sides[1] if len(sides) > 1 else None
        length, formatted, language = self.properties
        length.append(math.nan if first is None else first.length - (second.length if second else 0.0))
        formatted.append(math.nan if first is None else first.formatted - (second.formatted if second else 0))
        language.append(self._languages.find(first.language if first else ""))
        self.pairs += case.orders is not None
        for kept, side in zip((self.forward, self.backward), case.orders or (None, None), strict=True):
            kept.append(_VERDICT_CODES.get(side, _UNDECIDED))  # type: ignore[call-overload] - any word

    @property
    def labelled(self) -> int:
        """Cases with labels, overrides left out."""
        return len(self.verdicts)

    @property
    def raters(self) -> tuple[str, ...]:
        """The people, in the order in which they come."""
        return tuple(self._ratings)

    def list_places(self, heaps: tuple[TruthHeap, ...]) -> Sequence[int]:
        """Which of the labelled cases are in these heaps."""
        wanted = {_HEAP_CODES[heap] for heap in heaps}
        return array("i", (at for at, code in enumerate(self.heaps) if code in wanted))

    def judged(self, places: Sequence[int]) -> Iterator[Category]:
        """The judge's labels of some of the labelled cases."""
        for at in places:
            verdict = VERDICTS[self.verdicts[at]]
            yield _OF_VERDICT.get(verdict, verdict)

    def truth(self, places: Sequence[int]) -> Iterator[Category]:
        """The true labels of some of the labelled cases."""
        for at in places:
            heap = HEAPS[self.heaps[at]]
            yield _OF_HEAP.get(heap, heap)

    def list_groups(self, places: Sequence[int]) -> Sequence[int] | None:
        """The groups of some of the labelled cases; ``None`` where each is a group of its own."""
        if not self._groups.codes:
            return None
        found = array("i", (self.groups[at] for at in places))
        return found if len(set(found)) < len(found) else None

    def list_kinds(self, places: Sequence[int]) -> list[str]:
        """What the cases are compared by."""
        names = self._kinds.names
        return ["(none)" if (name := names[self.kinds[at]]) is None else str(name) for at in places]

    def list_designs(self) -> list[LabelDesign | None]:
        """How each labelled case was drawn."""
        names = self._designs.names
        return [names[code] for code in self.designs]  # type: ignore[misc] - what was put in

    def list_languages(self, places: Sequence[int]) -> list[str]:
        """The languages of some of the labelled cases."""
        names = self._languages.names
        return [str(names[int(self.properties[2][at])]) for at in places]

    def list_repeats(self, places: Sequence[int]) -> list[list[bool | None]]:
        """Each judgement of some of the labelled cases, in no order; ``None`` is undecided."""
        return [
            [True] * self.passes[at]
            + [False] * self.fails[at]
            + [None] * (self.judgements[at] - self.passes[at] - self.fails[at])
            for at in places
        ]

    def list_ratings(self) -> tuple[list[dict[str, Category]], list[int]]:
        """What people said of each case that at least two of them decided, and which cases these are."""
        values = [value for _, value in self._values.codes]  # type: ignore[misc] - pairs
        decided = [value != CANNOT_TELL and value is not None for value in values]
        # Counted first: a row for each case that one person labelled would be most of the memory.
        several = bytearray(self.labelled)
        for said in self._ratings.values():
            for at, code in zip(said.places, said.values, strict=True):
                several[at] = min(2, several[at] + decided[code])
        found: dict[int, dict[str, Category]] = {}
        for rater, said in self._ratings.items():
            for at, code in zip(said.places, said.values, strict=True):
                if several[at] > 1 and decided[code]:
                    found.setdefault(at, {})[rater] = values[code]
        places = sorted(found)
        return [found[at] for at in places], places


def _agrees(verdict: LabelledVerdict, heap: TruthHeap) -> bool:
    return (verdict, heap) in {("passed", "good"), ("failed", "bad")} or heap in (verdict, "number")


def _read_number(value: LabelValue) -> float:
    return float(value) if isinstance(value, int | float) else math.nan
