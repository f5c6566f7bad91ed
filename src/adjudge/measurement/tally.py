"""Verdicts beside labels, counted case by case: a few bytes for each labelled case, nothing for any other."""

from __future__ import annotations

import hashlib
import math
from array import array
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from adjudge.dataset.case import LabelValue
from adjudge.dataset.contents import ERASED
from adjudge.dataset.label import LabelDesign
from adjudge.dataset.label_map import CANNOT_TELL
from adjudge.labels.truth import LabelledVerdict, TruthHeap
from adjudge.measurement.disagreement import DisagreementList, ShownCase
from adjudge.measurement.judged_case import CaseTruth, CaseVerdict
from adjudge.measurement.properties import TextProperties
from adjudge.trust.confusion import Category

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

VERDICTS: tuple[LabelledVerdict, ...] = ("failed", "passed", "undecided", "first", "second", "tie")

HEAPS: tuple[TruthHeap, ...] = ("bad", "good", "first", "second", "tie", "number", "cannot_tell", "unresolved")

_OF_VERDICT: dict[LabelledVerdict, Category] = {"failed": False, "passed": True, "undecided": None}

_AGREEING: dict[LabelledVerdict, TruthHeap] = {"passed": "good", "failed": "bad"}

_OF_HEAP: dict[TruthHeap, Category] = {"bad": False, "good": True}

PREFERENCES: tuple[TruthHeap, ...] = ("first", "tie", "second")

_VERDICT_CODES = {verdict: code for code, verdict in enumerate(VERDICTS)}

_HEAP_CODES = {heap: code for code, heap in enumerate(HEAPS)}

_UNDECIDED = _VERDICT_CODES["undecided"]

_MOST_REPEATS = 65_535

_MOST_KNOWN = 4_096

_CHUNK = 65_536

NO_TIME = -(2**63)
"""The number in place of the moment of a label that has none."""

MOST_SAMPLED = 20_000
"""Cases whose properties are compared with the judge's errors; up to twice as many are kept on the way."""


class TalliedCase(ShownCase, Protocol):
    """The parts of a case that are counted beside its verdict and truth. Only a labelled one is asked for them."""

    @property
    def orders(self) -> tuple[str | None, str | None] | None:
        """The better content of a pair in each order; ``None`` is undecided, or an order that was not asked."""
        ...

    def find_kind(self, by: str | None) -> str | None:
        """Find the kind that the case is compared by, such as the model that answered."""
        ...

    def read_properties(self) -> tuple[TextProperties, ...]:
        """Properties of the content; of both sides of a pair; nothing where there is no content."""
        ...


@dataclass(slots=True)
class _Codes:
    """Names as numbers, in the order in which they come."""

    codes: dict[Hashable, int] = field(default_factory=dict)

    def find(self, name: Hashable) -> int:
        """Find the number of a name; a new one gets the next."""
        code = self.codes.get(name)
        if code is None:
            code = self.codes[name] = len(self.codes)
        return code

    @property
    def names(self) -> list[Hashable]:
        return list(self.codes)


@dataclass(slots=True)
class _Ratings:
    """The labels of one rater, as places among the labelled cases and numbers of values."""

    places: array[int] = field(default_factory=lambda: array("i"))
    values: array[int] = field(default_factory=lambda: array("i"))


class AlikeCases(NamedTuple):
    """Labelled cases of one verdict and one truth that were drawn alike."""

    verdict: LabelledVerdict
    heap: TruthHeap
    designs: tuple[LabelDesign, ...]
    number: int = 1


class _Pattern(NamedTuple):
    """The common part of many labelled cases: verdict and truth, judgements, and how they were drawn."""

    verdict: int
    heap: int
    passes: int
    fails: int
    judgements: int
    forward: int
    backward: int
    designs: tuple[LabelDesign, ...]


class TalliedProperties(NamedTuple):
    """The properties of a labelled case; of a pair, how its first content differs."""

    length: float
    """NaN where there is no content."""
    formatted: float
    language: str


class MeasurementTally:
    """Verdicts and labels on their way to a ``Measurement``, on one criterion or the whole."""

    def __init__(self, criterion: str | None, *, most: int, by: str | None = None) -> None:
        self.criterion = criterion
        self.cases: Counter[LabelledVerdict] = Counter()
        """All cases by verdict, labelled or not."""
        self.table: Counter[tuple[LabelledVerdict, TruthHeap]] = Counter()
        """Labelled cases by verdict and truth."""
        self.overrides = 0
        self.unbound = 0
        """Labelled cases of which no label says which content was read."""
        self.repeated = 0
        """Cases that were judged more than once."""
        self.flipped = 0
        """Those of them whose judgements are not all the same."""
        self.disagreements = DisagreementList(most)
        self.pairs = 0
        """Labelled comparisons."""
        self.scores, self.numbers = array("d"), array("d")
        self.groups = array("i")
        self.moments = array("q")
        """The time at which each labelled case got its first label, in microseconds; ``NO_TIME`` is unknown."""
        self.marks, self.contents = array("Q"), array("Q")
        """Digests of the ids of the labelled cases, and of their contents with their tasks; 0 where there is none."""
        self.not_blind = 0
        """Labelled cases of which a label is not known to be blind."""
        self._by = by
        self._patterns, self._groups, self._kinds, self._values = _Codes(), _Codes(), _Codes(), _Codes()
        self._pattern, self._kind = array("i"), array("i")
        self._known: dict[tuple[int, int], tuple[CaseVerdict, CaseTruth, int]] = {}
        """The patterns of verdicts and truths that come again and again as the same objects."""
        self._stride = 1
        """Properties are kept of every case, every second, every fourth and so on: those of a sample will do."""
        self._length, self._formatted, self._language = array("d"), array("d"), array("i")
        self._languages = _Codes()
        self._ratings: dict[str, _Ratings] = {}

    def add(
        self,
        verdict_of_case: CaseVerdict,
        truth: CaseTruth | None,
        case: TalliedCase,
        *,
        criteria_agree: bool = False,
        moment: int = NO_TIME,
    ) -> None:
        """Count a case; ``truth`` is ``None`` where nobody labelled it.

        ``criteria_agree`` is whether the judge agrees with people on every labelled criterion; ``moment`` is when the
        case got its first label.
        """
        verdict = verdict_of_case.verdict
        self.cases[verdict] += 1
        if verdict_of_case.judgements > 1:
            self.repeated += 1
            self.flipped += verdict_of_case.flipped
        if truth is None:
            return
        if truth.override:
            # Only cases that a gate held back have them: a rate of the judge does not follow from such a choice.
            self.overrides += 1
            return
        heap = truth.heap
        self.unbound += not truth.bound
        self.table[verdict, heap] += 1
        self.not_blind += not truth.blind
        self._keep_labelled(verdict_of_case, truth, heap, case)
        self.moments.append(moment)
        if not _agrees_with_people(verdict, heap):
            self.disagreements.add(verdict_of_case, truth, case, criteria_agree=criteria_agree)

    def _keep_labelled(self, verdict: CaseVerdict, truth: CaseTruth, heap: TruthHeap, case: TalliedCase) -> None:
        """Keep what is computed with of a labelled case: some bytes in each array, at one place."""
        at = len(self._pattern)
        self._pattern.append(self._find_pattern(verdict, truth, heap, case))
        self.scores.append(math.nan if verdict.score is None else verdict.score)
        self.numbers.append(_read_number(truth.value))
        self.marks.append(_digest_text(case.id))
        texts = case.read_texts()
        content, task = texts.content, texts.task
        self.contents.append(_digest_text(f"{len(task)}:{task}{content}") if content and content != ERASED else 0)
        # A case without a group is a group of its own, which no name has to be kept for.
        group = case.group
        self.groups.append(-1 - at if group is None else self._groups.find(group))
        if self._by is not None:
            self._kind.append(self._kinds.find(case.find_kind(self._by)))
        for rater, value in truth.ratings.items():
            ratings = self._ratings.get(rater)
            if ratings is None:
                ratings = self._ratings[rater] = _Ratings()
            ratings.places.append(at)
            ratings.values.append(self._values.find((type(value) is bool, value)))
        if at % self._stride == 0:
            self._keep_properties(case)

    def _find_pattern(self, verdict: CaseVerdict, truth: CaseTruth, heap: TruthHeap, case: TalliedCase) -> int:
        """Find the number that stands for all that is counted of a case, or give it one; a pair is counted as such.

        Equal cases share one.
        """
        orders = case.orders
        self.pairs += orders is not None
        remembered = self._known.get((id(verdict), id(truth))) if orders is None else None
        if remembered is not None:
            _, _, code = remembered
            return code
        # Any word may be the side of an order.
        forward, backward = (_VERDICT_CODES.get(side, _UNDECIDED) for side in orders or (None, None))  # type: ignore[call-overload]
        pattern = _Pattern(
            verdict=_VERDICT_CODES[verdict.verdict],
            heap=_HEAP_CODES[heap],
            passes=min(verdict.passed, _MOST_REPEATS),
            fails=min(verdict.failed, _MOST_REPEATS),
            judgements=min(verdict.judgements, _MOST_REPEATS),
            forward=forward,
            backward=backward,
            designs=truth.designs,
        )
        code = self._patterns.find(pattern)
        if orders is None and len(self._known) < _MOST_KNOWN:
            # The objects are kept with it: another could have the id of one that is gone.
            self._known[id(verdict), id(truth)] = (verdict, truth, code)
        return code

    def _keep_properties(self, case: TalliedCase) -> None:
        """Keep length, format and language of a sampled case; of a pair, the first side's less the second's.

        The language is that of the first side.
        """
        sides = case.read_properties()
        first, second = sides[0] if sides else None, sides[1] if len(sides) > 1 else None
        self._length.append(math.nan if first is None else first.length - (second.length if second else 0.0))
        self._formatted.append(math.nan if first is None else first.formatted - (second.formatted if second else 0))
        self._language.append(self._languages.find(first.language if first else ""))
        if len(self._length) >= 2 * MOST_SAMPLED:
            # Every second one is left out, from the second on, and of those to come as well.
            self._stride *= 2
            self._length, self._formatted = self._length[::2], self._formatted[::2]
            self._language = self._language[::2]

    @property
    def labelled(self) -> int:
        """Cases with labels, overrides left out."""
        return len(self._pattern)

    @property
    def raters(self) -> tuple[str, ...]:
        """The people, in the order in which they come."""
        return tuple(self._ratings)

    @property
    def copies(self) -> int:
        """Labelled cases whose content and task another labelled case has as well; the first of each is not counted."""
        import numpy as np

        digests = np.frombuffer(self.contents, dtype=np.uint64)[np.frombuffer(self.contents, dtype=np.uint64) > 0]
        return len(digests) - len(np.unique(digests))

    def list_plans(self) -> list[str]:
        """The plans that drew some of the labelled cases."""
        return sorted({design.plan for pattern in self._list_patterns() for design in pattern.designs})

    def list_places(self, heaps: tuple[TruthHeap, ...]) -> Sequence[int]:
        """List the places of the labelled cases in these heaps."""
        import numpy as np

        heap_codes = {_HEAP_CODES[heap] for heap in heaps}
        is_in_heaps = np.array([pattern.heap in heap_codes for pattern in self._list_patterns()], dtype=bool)
        return _to_array(np.flatnonzero(is_in_heaps[self._take_codes(None)])) if self.labelled else array("i")

    def judged(self, places: Sequence[int]) -> Iterator[Category]:
        """The judge's labels of some of the labelled cases."""
        categories: list[Category] = []
        for pattern in self._list_patterns():
            verdict = VERDICTS[pattern.verdict]
            categories.append(_OF_VERDICT.get(verdict, verdict))
        return map(categories.__getitem__, self._list_codes(places))

    def truth(self, places: Sequence[int]) -> Iterator[Category]:
        """The true labels of some of the labelled cases."""
        categories: list[Category] = []
        for pattern in self._list_patterns():
            heap = HEAPS[pattern.heap]
            categories.append(_OF_HEAP.get(heap, heap))
        return map(categories.__getitem__, self._list_codes(places))

    def count_patterns(self, places: Sequence[int]) -> list[AlikeCases]:
        """Count some of the labelled cases by verdict, truth and design, in no order."""
        import numpy as np

        numbers = np.bincount(self._take_codes(places), minlength=len(self._patterns.codes)).tolist()
        return [
            AlikeCases(VERDICTS[pattern.verdict], HEAPS[pattern.heap], pattern.designs, number)
            for pattern, number in zip(self._list_patterns(), numbers, strict=True)
            if number
        ]

    def list_groups(self, places: Sequence[int]) -> Sequence[int] | None:
        """The groups of some of the labelled cases; ``None`` where each is a group of its own."""
        if not self._groups.codes:
            return None
        import numpy as np

        groups = np.frombuffer(self.groups, dtype=np.intc)[np.asarray(places, dtype=np.intp)]
        return _to_array(groups) if len(np.unique(groups)) < len(groups) else None

    def list_kinds(self, places: Sequence[int]) -> list[str]:
        """List the kinds that the cases are compared by."""
        names = ["(none)" if name is None else str(name) for name in self._kinds.names]
        return [names[self._kind[at]] for at in places]

    def list_rows(self, places: Sequence[int]) -> Iterator[AlikeCases]:
        """Verdict, truth and design of some of the labelled cases, each by itself."""
        rows = [
            AlikeCases(VERDICTS[pattern.verdict], HEAPS[pattern.heap], pattern.designs)
            for pattern in self._list_patterns()
        ]
        return map(rows.__getitem__, self._list_codes(places))

    def list_designs(self, places: Sequence[int]) -> Iterator[tuple[LabelDesign, ...]]:
        """List the designs by which some of the labelled cases were drawn."""
        designs = [pattern.designs for pattern in self._list_patterns()]
        return map(designs.__getitem__, self._list_codes(places))

    def list_sampled(self, places: Sequence[int]) -> Sequence[int]:
        """List at most 20,000 of some of the labelled cases, evenly spread, whose properties are kept."""
        sampled = [at for at in places if at % self._stride == 0]
        return sampled[:: -(-len(sampled) // MOST_SAMPLED)] if len(sampled) > MOST_SAMPLED else sampled

    def read_properties(self, places: Sequence[int]) -> dict[int, TalliedProperties]:
        """The properties of sampled cases, by their places among the labelled ones."""
        names = self._languages.names
        return {
            at: TalliedProperties(
                length=self._length[row], formatted=self._formatted[row], language=str(names[self._language[row]])
            )
            for at, row in ((at, at // self._stride) for at in places)
        }

    def list_repeats(self, places: Sequence[int]) -> list[list[bool | None]]:
        """Each judgement of some of the labelled cases, in no order; ``None`` is undecided. Equal lists are one."""
        judgements: list[list[bool | None]] = [
            [True] * pattern.passes
            + [False] * pattern.fails
            + [None] * (pattern.judgements - pattern.passes - pattern.fails)
            for pattern in self._list_patterns()
        ]
        return [judgements[code] for code in self._list_codes(places)]

    def list_orders(self, places: Sequence[int] | None = None) -> Iterator[tuple[LabelledVerdict, LabelledVerdict]]:
        """List the judge's preference in each order of labelled pairs."""
        preferences = [(VERDICTS[pattern.forward], VERDICTS[pattern.backward]) for pattern in self._list_patterns()]
        return map(preferences.__getitem__, self._list_codes(places))

    def list_ratings(self) -> tuple[list[dict[str, Category]], list[int]]:
        """List people's labels of each case that at least two of them decided, and the places of these cases.

        Cases of which the same was said share one mapping.
        """
        import numpy as np

        values = [value for _, value in self._values.codes]  # type: ignore[misc] - pairs
        decided = np.array([value != CANNOT_TELL and value is not None for value in values], dtype=bool)
        several = np.zeros(self.labelled, dtype=np.int32)
        decided_ratings: list[tuple[NDArray[np.intc], NDArray[np.intc]]] = []
        for ratings in self._ratings.values():
            places, codes = (np.frombuffer(numbers, dtype=np.intc) for numbers in (ratings.places, ratings.values))
            is_decided = decided[codes]
            decided_ratings.append((places[is_decided], codes[is_decided]))
            several[places[is_decided]] += 1
        rows = [(places[several[places] > 1], codes[several[places] > 1]) for places, codes in decided_ratings]
        if not sum(len(places) for places, _ in rows):
            return [], []
        at = np.concatenate([places for places, _ in rows])
        code = np.concatenate([codes for _, codes in rows])
        rater = np.repeat(np.arange(len(rows)), [len(places) for places, _ in rows])
        order = np.argsort(at, kind="stable")
        labelled_places, starts = np.unique(at[order], return_index=True)
        names, shared = list(self._ratings), dict[tuple[tuple[int, int], ...], dict[str, Category]]()
        listed = zip(rater[order].tolist(), code[order].tolist(), strict=True)
        mappings = []
        for number in np.diff([*starts.tolist(), len(at)]).tolist():
            key = tuple(islice(listed, number))
            row = shared.get(key)
            if row is None:
                row = {names[rater_code]: values[value_code] for rater_code, value_code in key}
                if len(shared) < _MOST_KNOWN:
                    shared[key] = row
            mappings.append(row)
        return mappings, labelled_places.tolist()

    def _list_patterns(self) -> list[_Pattern]:
        return self._patterns.names  # type: ignore[return-value] - what was put in

    def _take_codes(self, places: Sequence[int] | None) -> NDArray[np.intc]:
        import numpy as np

        every = np.frombuffer(self._pattern, dtype=np.intc) if self._pattern else np.zeros(0, dtype=np.intc)
        return every if places is None else every[np.asarray(places, dtype=np.intp)]

    def _list_codes(self, places: Sequence[int] | None) -> Iterator[int]:
        codes = self._take_codes(places)
        for start in range(0, len(codes), _CHUNK):
            yield from codes[start : start + _CHUNK].tolist()


def _digest_text(text: str) -> int:
    """A number of 64 bits that only this text is likely to have."""
    raw = text.encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest()) or 1


def _to_array(values: NDArray[Any]) -> array[int]:
    import numpy as np

    return array("i", values.astype(np.intc).tobytes())


def _agrees_with_people(verdict: LabelledVerdict, heap: TruthHeap) -> bool:
    return _AGREEING.get(verdict) == heap or heap in (verdict, "number")


def _read_number(value: LabelValue) -> float:
    return float(value) if isinstance(value, int | float) else math.nan
