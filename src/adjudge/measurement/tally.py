"""Counts of a judge's verdicts and people's labels, case by case, from which a measurement is computed.

A labelled case takes a few bytes and any other case none, so that a run may have millions. The values of the labelled
cases are kept in arrays. A case has the same index in each: 0 is the first labelled case, whatever its number in the
run. A heap is what people made of a case, such as ``good``, ``bad`` or ``unresolved`` (``TruthHeap``).
"""

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
from adjudge.measurement.properties import TextProperties
from adjudge.measurement.verdict_and_truth import CaseTruth, CaseVerdict
from adjudge.trust.confusion import Category

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

VERDICTS: tuple[LabelledVerdict, ...] = ("failed", "passed", "undecided", "first", "second", "tie")

HEAPS: tuple[TruthHeap, ...] = ("bad", "good", "first", "second", "tie", "number", "cannot_tell", "unresolved")

_VERDICT_CATEGORIES: dict[LabelledVerdict, Category] = {"failed": False, "passed": True, "undecided": None}
"""The categories of a confusion matrix; any other verdict is a category by its own name."""

_AGREEING: dict[LabelledVerdict, TruthHeap] = {"passed": "good", "failed": "bad"}

_HEAP_CATEGORIES: dict[TruthHeap, Category] = {"bad": False, "good": True}
"""The categories of a confusion matrix; any other heap is a category by its own name."""

PREFERENCES: tuple[TruthHeap, ...] = ("first", "tie", "second")

_VERDICT_CODES = {verdict: code for code, verdict in enumerate(VERDICTS)}

_HEAP_CODES = {heap: code for code, heap in enumerate(HEAPS)}

_UNDECIDED = _VERDICT_CODES["undecided"]

_MOST_REPEATS = 65_535
"""Judgements of one case that are counted."""

_MOST_REMEMBERED = 4_096
"""Results that are remembered, so that equal cases share one and need not be computed again."""

_CHUNK = 65_536

NO_TIME = -(2**63)
"""The number in place of the time of a label that has none."""

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
    """A number for each different value (such as a group's name), in the order in which they come, from 0."""

    codes: dict[Hashable, int] = field(default_factory=dict)

    def find_code(self, value: Hashable) -> int:
        """Find the number of a value; a new value gets the next number."""
        code = self.codes.get(value)
        if code is None:
            code = self.codes[value] = len(self.codes)
        return code

    @property
    def values(self) -> list[Hashable]:
        """The values, each at the index that is its number."""
        return list(self.codes)


@dataclass(slots=True)
class _Ratings:
    """The labels of one rater: the index of each case that the rater labelled, and the code of the label's value."""

    indexes: array[int] = field(default_factory=lambda: array("i"))
    value_codes: array[int] = field(default_factory=lambda: array("i"))


class AlikeCases(NamedTuple):
    """Labelled cases of one verdict and one heap that were drawn in the same way, and how many they are."""

    verdict: LabelledVerdict
    heap: TruthHeap
    designs: tuple[LabelDesign, ...]
    number: int = 1


class _Pattern(NamedTuple):
    """The values that many labelled cases have in common, so that each keeps only the number of its pattern."""

    verdict: int
    """The verdict's index in ``VERDICTS``."""
    heap: int
    """The heap's index in ``HEAPS``."""
    passes: int
    fails: int
    judgements: int
    forward: int
    """For a pair, the preference in the order ab, as an index in ``VERDICTS``."""
    backward: int
    """For a pair, the preference in the order ba, as an index in ``VERDICTS``."""
    designs: tuple[LabelDesign, ...]


class TalliedProperties(NamedTuple):
    """The properties of a labelled case's content; of a pair, those of the first content minus the second's."""

    length: float
    """The logarithm of the length, or the difference of both; NaN where there is no content."""
    formatted: float
    """1.0 if it has Markdown or HTML in it, else 0.0; of a pair 1.0, 0.0 or -1.0. NaN where there is no content."""
    language: str
    """The language; of a pair, that of the first content."""


class MeasurementTally:
    """Counts of verdicts and labels, on one criterion or the whole, to which one case after the other is added."""

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
        self.first_label_times = array("q")
        """The time at which each labelled case got its first label, in microseconds; ``NO_TIME`` is unknown."""
        self.id_digests, self.content_digests = array("Q"), array("Q")
        """Digests of the ids of the labelled cases, and of their contents with their tasks; 0 where there is none."""
        self.not_blind = 0
        """Labelled cases of which a label is not known to be blind."""
        self._by = by
        """The property that cases are compared by: ``group`` or a key of their metadata; ``None`` is none."""
        self._patterns, self._groups, self._kinds, self._values = _Codes(), _Codes(), _Codes(), _Codes()
        self._pattern_codes, self._kind_codes = array("i"), array("i")
        self._remembered: dict[tuple[int, int], tuple[CaseVerdict, CaseTruth, int]] = {}
        """The pattern's code for a verdict and a truth, by the ids of both objects: many cases share the same two."""
        self._stride = 1
        """Properties are kept of every case, every second, every fourth and so on: those of a sample will do."""
        self._lengths, self._formatted, self._language_codes = array("d"), array("d"), array("i")
        """Properties of the sampled cases: the case with the index i has the row i // ``_stride``."""
        self._languages = _Codes()
        self._ratings: dict[str, _Ratings] = {}

    def add(
        self,
        verdict_of_case: CaseVerdict,
        truth: CaseTruth | None,
        case: TalliedCase,
        *,
        criteria_agree: bool = False,
        first_label_time: int = NO_TIME,
    ) -> None:
        """Count a case; ``truth`` is ``None`` where nobody labelled it.

        ``criteria_agree`` is whether the judge agrees with people on every labelled criterion. ``first_label_time`` is
        when the case got its first label, in microseconds since 1970.
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
        self.first_label_times.append(first_label_time)
        if not _agrees_with_people(verdict, heap):
            self.disagreements.add(verdict_of_case, truth, case, criteria_agree=criteria_agree)

    def _keep_labelled(self, verdict: CaseVerdict, truth: CaseTruth, heap: TruthHeap, case: TalliedCase) -> None:
        """Append the values of a labelled case to the arrays, each at the same index."""
        index = len(self._pattern_codes)
        self._pattern_codes.append(self._find_pattern_code(verdict, truth, heap, case))
        self.scores.append(math.nan if verdict.score is None else verdict.score)
        self.numbers.append(_read_number(truth.value))
        self.id_digests.append(_digest_text(case.id))
        texts = case.read_texts()
        content, task = texts.content, texts.task
        self.content_digests.append(
            _digest_text(f"{len(task)}:{task}{content}") if content and content != ERASED else 0
        )
        # A case without a group is a group of its own, which no name has to be kept for.
        group = case.group
        self.groups.append(-1 - index if group is None else self._groups.find_code(group))
        if self._by is not None:
            self._kind_codes.append(self._kinds.find_code(case.find_kind(self._by)))
        for rater, value in truth.ratings.items():
            ratings = self._ratings.get(rater)
            if ratings is None:
                ratings = self._ratings[rater] = _Ratings()
            ratings.indexes.append(index)
            # With the type, because 1 equals True and would get its code.
            ratings.value_codes.append(self._values.find_code((type(value) is bool, value)))
        if index % self._stride == 0:
            self._keep_properties(case)

    def _find_pattern_code(self, verdict: CaseVerdict, truth: CaseTruth, heap: TruthHeap, case: TalliedCase) -> int:
        """Find the code of a labelled case's pattern, which equal cases share; count the case if it is a pair."""
        orders = case.orders
        self.pairs += orders is not None
        remembered = self._remembered.get((id(verdict), id(truth))) if orders is None else None
        if remembered is not None:
            _, _, code = remembered
            return code
        # Whatever is no preference counts as undecided.
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
        code = self._patterns.find_code(pattern)
        if orders is None and len(self._remembered) < _MOST_REMEMBERED:
            # Both objects are kept with the code: if one were freed, a new object could get its id.
            self._remembered[id(verdict), id(truth)] = (verdict, truth, code)
        return code

    def _keep_properties(self, case: TalliedCase) -> None:
        """Keep length, format and language of a sampled case; of a pair, the first content's minus the second's.

        The language is that of the first content. Once 40,000 cases are kept, every second one is dropped, and from
        then on half as many are sampled.
        """
        contents = case.read_properties()
        first = contents[0] if contents else None
        second = contents[1] if len(contents) > 1 else None
        self._lengths.append(math.nan if first is None else first.length - (second.length if second else 0.0))
        self._formatted.append(math.nan if first is None else first.formatted - (second.formatted if second else 0))
        self._language_codes.append(self._languages.find_code(first.language if first else ""))
        if len(self._lengths) >= 2 * MOST_SAMPLED:
            self._stride *= 2
            self._lengths, self._formatted = self._lengths[::2], self._formatted[::2]
            self._language_codes = self._language_codes[::2]

    @property
    def labelled(self) -> int:
        """Cases with labels, overrides left out."""
        return len(self._pattern_codes)

    @property
    def raters(self) -> tuple[str, ...]:
        """The people, in the order in which they come."""
        return tuple(self._ratings)

    @property
    def copies(self) -> int:
        """Labelled cases whose content and task another labelled case has as well; the first of each is not counted."""
        import numpy as np

        digests = np.frombuffer(self.content_digests, dtype=np.uint64)
        known_digests = digests[digests > 0]  # 0 is a case without content
        return len(known_digests) - len(np.unique(known_digests))

    def list_plans(self) -> list[str]:
        """The plans that drew some of the labelled cases."""
        return sorted({design.plan for pattern in self._list_patterns() for design in pattern.designs})

    def find_indexes(self, heaps: tuple[TruthHeap, ...]) -> Sequence[int]:
        """Find the indexes of the labelled cases whose heap is one of these."""
        import numpy as np

        if not self.labelled:
            return array("i")
        heap_codes = {_HEAP_CODES[heap] for heap in heaps}
        # Asked once for each pattern, and then looked up for each case by the code of its pattern.
        is_in_heaps = np.array([pattern.heap in heap_codes for pattern in self._list_patterns()], dtype=bool)
        return _to_array(np.flatnonzero(is_in_heaps[self._take_pattern_codes(None)]))

    def list_judged(self, indexes: Sequence[int]) -> Iterator[Category]:
        """List the judge's verdicts on the cases with these indexes, as categories of a confusion matrix."""
        categories: list[Category] = []
        for pattern in self._list_patterns():
            verdict = VERDICTS[pattern.verdict]
            categories.append(_VERDICT_CATEGORIES.get(verdict, verdict))
        return map(categories.__getitem__, self._list_pattern_codes(indexes))

    def list_truths(self, indexes: Sequence[int]) -> Iterator[Category]:
        """List people's truths of the cases with these indexes, as categories of a confusion matrix."""
        categories: list[Category] = []
        for pattern in self._list_patterns():
            heap = HEAPS[pattern.heap]
            categories.append(_HEAP_CATEGORIES.get(heap, heap))
        return map(categories.__getitem__, self._list_pattern_codes(indexes))

    def count_alike_cases(self, indexes: Sequence[int]) -> list[AlikeCases]:
        """Count the cases with these indexes by verdict, heap and design, in no order."""
        import numpy as np

        numbers = np.bincount(self._take_pattern_codes(indexes), minlength=len(self._patterns.codes)).tolist()
        return [
            AlikeCases(VERDICTS[pattern.verdict], HEAPS[pattern.heap], pattern.designs, number)
            for pattern, number in zip(self._list_patterns(), numbers, strict=True)
            if number
        ]

    def list_groups(self, indexes: Sequence[int]) -> Sequence[int] | None:
        """List the numbers of the groups of the cases with these indexes; ``None`` if no two are of one group."""
        if not self._groups.codes:
            return None
        import numpy as np

        groups = np.frombuffer(self.groups, dtype=np.intc)[np.asarray(indexes, dtype=np.intp)]
        return _to_array(groups) if len(np.unique(groups)) < len(groups) else None

    def list_kinds(self, indexes: Sequence[int]) -> list[str]:
        """List the values of the property that cases are compared by (``by``), for the cases with these indexes."""
        names = ["(none)" if name is None else str(name) for name in self._kinds.values]
        return [names[self._kind_codes[index]] for index in indexes]

    def list_rows(self, indexes: Sequence[int]) -> Iterator[AlikeCases]:
        """List verdict, heap and designs of the cases with these indexes, each case by itself."""
        rows = [
            AlikeCases(VERDICTS[pattern.verdict], HEAPS[pattern.heap], pattern.designs)
            for pattern in self._list_patterns()
        ]
        return map(rows.__getitem__, self._list_pattern_codes(indexes))

    def list_designs(self, indexes: Sequence[int]) -> Iterator[tuple[LabelDesign, ...]]:
        """List the designs by which the cases with these indexes were drawn."""
        designs = [pattern.designs for pattern in self._list_patterns()]
        return map(designs.__getitem__, self._list_pattern_codes(indexes))

    def list_sampled(self, indexes: Sequence[int]) -> Sequence[int]:
        """List those of the indexes whose cases have their properties kept, at most 20,000 and evenly spread."""
        sampled = [index for index in indexes if index % self._stride == 0]
        if len(sampled) <= MOST_SAMPLED:
            return sampled
        step = math.ceil(len(sampled) / MOST_SAMPLED)
        return sampled[::step]

    def read_properties(self, indexes: Sequence[int]) -> dict[int, TalliedProperties]:
        """Read the properties of sampled cases (``list_sampled``), by their indexes."""
        languages = self._languages.values
        properties: dict[int, TalliedProperties] = {}
        for index in indexes:
            row = index // self._stride
            properties[index] = TalliedProperties(
                length=self._lengths[row],
                formatted=self._formatted[row],
                language=str(languages[self._language_codes[row]]),
            )
        return properties

    def list_repeats(self, indexes: Sequence[int]) -> list[list[bool | None]]:
        """List all judgements of each of the cases with these indexes: passed, failed, or ``None`` for undecided.

        The judgements of a case are in no order, and equal cases share one list.
        """
        judgements: list[list[bool | None]] = [
            [True] * pattern.passes
            + [False] * pattern.fails
            + [None] * (pattern.judgements - pattern.passes - pattern.fails)
            for pattern in self._list_patterns()
        ]
        return [judgements[code] for code in self._list_pattern_codes(indexes)]

    def list_orders(self, indexes: Sequence[int] | None = None) -> Iterator[tuple[LabelledVerdict, LabelledVerdict]]:
        """List the judge's preferences in the orders ab and ba of the pairs with these indexes, or of all."""
        preferences = [(VERDICTS[pattern.forward], VERDICTS[pattern.backward]) for pattern in self._list_patterns()]
        return map(preferences.__getitem__, self._list_pattern_codes(indexes))

    def list_ratings(self) -> tuple[list[dict[str, Category]], list[int]]:
        """List people's labels of each case that at least two of them decided, and the indexes of these cases.

        The labels of a case are a mapping from rater to value. Cases with equal labels share one mapping.
        """
        rows = self._select_shared_ratings()
        if not sum(len(indexes) for indexes, _ in rows):
            return [], []
        import numpy as np

        # One entry for each label, in three arrays that are then sorted by case.
        case_indexes = np.concatenate([indexes for indexes, _ in rows])
        value_codes = np.concatenate([codes for _, codes in rows])
        rater_numbers = np.repeat(np.arange(len(rows)), [len(indexes) for indexes, _ in rows])
        order = np.argsort(case_indexes, kind="stable")
        labelled_indexes, starts = np.unique(case_indexes[order], return_index=True)
        labels_per_case = np.diff([*starts.tolist(), len(case_indexes)]).tolist()
        raters, values = list(self._ratings), self._list_values()
        shared = dict[tuple[tuple[int, int], ...], dict[str, Category]]()
        labels = zip(rater_numbers[order].tolist(), value_codes[order].tolist(), strict=True)
        mappings = []
        for number in labels_per_case:
            key = tuple(islice(labels, number))
            mapping = shared.get(key)
            if mapping is None:
                mapping = {raters[rater_number]: values[value_code] for rater_number, value_code in key}
                if len(shared) < _MOST_REMEMBERED:
                    shared[key] = mapping
            mappings.append(mapping)
        return mappings, labelled_indexes.tolist()

    def _select_shared_ratings(self) -> list[tuple[NDArray[np.intc], NDArray[np.intc]]]:
        """Select, for each rater, the decided labels of the cases that another rater decided too.

        Returns for each rater two arrays of one length: the indexes of the cases, and the codes of the labels' values.
        """
        import numpy as np

        is_decided_value = np.array(
            [value != CANNOT_TELL and value is not None for value in self._list_values()], dtype=bool
        )
        raters_per_case = np.zeros(self.labelled, dtype=np.int32)
        decided_ratings: list[tuple[NDArray[np.intc], NDArray[np.intc]]] = []
        for ratings in self._ratings.values():
            indexes = np.frombuffer(ratings.indexes, dtype=np.intc)
            codes = np.frombuffer(ratings.value_codes, dtype=np.intc)
            is_decided = is_decided_value[codes]
            decided_ratings.append((indexes[is_decided], codes[is_decided]))
            raters_per_case[indexes[is_decided]] += 1
        return [
            (indexes[raters_per_case[indexes] > 1], codes[raters_per_case[indexes] > 1])
            for indexes, codes in decided_ratings
        ]

    def _list_values(self) -> list[LabelValue]:
        """List the values of labels, each at the index that is its code."""
        return [value for _, value in self._values.codes]  # type: ignore[misc] - pairs

    def _list_patterns(self) -> list[_Pattern]:
        return self._patterns.values  # type: ignore[return-value] - what was put in

    def _take_pattern_codes(self, indexes: Sequence[int] | None) -> NDArray[np.intc]:
        """Take the codes of the patterns of the cases with these indexes, as an array; ``None`` takes those of all."""
        import numpy as np

        codes = np.frombuffer(self._pattern_codes, dtype=np.intc) if self._pattern_codes else np.zeros(0, dtype=np.intc)
        return codes if indexes is None else codes[np.asarray(indexes, dtype=np.intp)]

    def _list_pattern_codes(self, indexes: Sequence[int] | None) -> Iterator[int]:
        """Yield the same codes as numbers of Python, converted in chunks because there may be millions."""
        codes = self._take_pattern_codes(indexes)
        for start in range(0, len(codes), _CHUNK):
            yield from codes[start : start + _CHUNK].tolist()


def _digest_text(text: str) -> int:
    """Digest a text to a number of 64 bits, which is never 0: 0 is a text that is not there."""
    raw = text.encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest()) or 1


def _to_array(values: NDArray[Any]) -> array[int]:
    """Copy numbers of numpy into an array of Python's, which takes 4 bytes for each."""
    import numpy as np

    return array("i", values.astype(np.intc).tobytes())


def _agrees_with_people(verdict: LabelledVerdict, heap: TruthHeap) -> bool:
    """Return whether a verdict agrees with the truth; a label that is a number contradicts no verdict."""
    return _AGREEING.get(verdict) == heap or heap in (verdict, "number")


def _read_number(value: LabelValue) -> float:
    """Read a label as a number (true is 1); NaN for a label that is a text or none."""
    return float(value) if isinstance(value, int | float) else math.nan
