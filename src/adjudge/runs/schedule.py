"""The schedule of a run: its cases are read in order, checked, and made into units, each a judgement to be made."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import aclosing
from dataclasses import dataclass

from adjudge.dataset.case import Case
from adjudge.dataset.contents import ContentSet, ContentTally, digest_content
from adjudge.errors import UsageError
from adjudge.result import Outcome
from adjudge.runs.item import check_case, encode_case
from adjudge.runs.options import Source
from adjudge.runs.resume import find_due, find_kept, shorten_id
from adjudge.runs.store import RunStore

_CASES_PER_TURN = 100
"""Cases without a new judgement in a row after which other tasks on the event loop have their turn."""


_MARK_COUNT = 1 << 26
"""The number of bits in which the hashes of ids are marked: 8 MB, however many cases there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One judgement to be made."""

    case: Case
    place: int
    sample: int
    subject: str
    body: bytes
    """The case as it is kept."""
    replaces: Outcome | None = None
    """The outcome that this judgement replaces, as ``Due`` has it."""
    anew: bool = False
    """True if replies are asked for again, as ``Due`` has it."""


class Schedule:
    """The schedule of a run, for one pass through its data set.

    It holds one case in memory at a time. If the data can be read only once, it also holds the kept cases that are to
    be judged again, until all kept cases are compared.
    """

    def __init__(
        self,
        source: Source,
        store: RunStore,
        places: Collection[int] | None,
        repeat: int,
        *,
        resumed: bool,
        retry: Collection[str],
        check: Callable[[Case], None] | None = None,
        count: Callable[[Case], Mapping[str, int]] | None = None,
    ) -> None:
        self._source, self._store, self._places, self._repeat = source, store, places, repeat
        self._last_kept_place = store.find_last_place() if resumed else -1
        self._retry = retry
        self._check_case, self._count_criteria = check, count
        self.criteria_counts: Counter[str] = Counter()
        """The number of cases that bring criteria, rules or thresholds, as ``Terms.count`` counts them."""
        self._refused_count = 0
        self._places_under_way: dict[str, int] = {}
        self._marks = bytearray(_MARK_COUNT >> 3)
        self._case_digests = hashlib.sha256()
        self._contents = ContentTally()
        self._read_count = 0
        self.complete = False
        """True if the end of the data set was reached."""

    @property
    def cases(self) -> int:
        """The number of cases that were read, without refused ones."""
        return self._read_count - self._refused_count

    @property
    def total(self) -> int | None:
        """The number of items there will be, where that is known."""
        # The source may have rows that are refused, so its total is right only until the end.
        case_count = self.cases if self.complete else self._source.total
        if self._places is not None:
            case_count = len(self._places)
        return None if case_count is None else case_count * self._repeat

    @property
    def digest(self) -> str:
        """The SHA-256 over the digests of the cases that are judged, in their order."""
        return self._case_digests.hexdigest()

    @property
    def contents(self) -> ContentSet:
        """The contents of the cases that are judged, whatever their order."""
        return self._contents.finish()

    async def check(self) -> None:
        """Read the cases up to the first new one; raises ``UsageError`` for data that changed since the run began."""
        async with aclosing(self._read_units()) as units:
            async for unit in units:
                if unit.place > self._last_kept_place:
                    return

    async def iterate_units(self) -> AsyncGenerator[Unit, None]:
        """Yield the units that are to be judged. Raises ``UsageError`` for data that changed since the run began.

        Data that can be read only once could not be checked before. So units of kept cases are held back until the
        first new case is reached, and all kept cases are compared.
        """
        held_back: deque[Unit] = deque()
        async with aclosing(self._read_units()) as units:
            async for unit in units:
                if self._source.reads_once and unit.place <= self._last_kept_place:
                    held_back.append(unit)
                    continue
                while held_back:
                    yield held_back.popleft()
                yield unit
        for unit in held_back:
            yield unit
        self.complete = True

    async def _read_units(self) -> AsyncGenerator[Unit, None]:
        """Yield a unit for each judgement that is to be made, in the order of the data set, and note every case.

        Raises ``UsageError`` for data that changed since the run began.
        """
        cases_since_turn = 0
        async with aclosing(self._source.iterate_cases()) as cases:
            async for place, case in cases:
                self._read_count = place + 1
                if self._places is not None and place not in self._places:
                    continue
                body = encode_case(case)
                if not self._accept_body(place, case, body):
                    continue
                body_hash = hashlib.sha256(body)
                subject = body_hash.hexdigest()
                kept = find_kept(self._store, place, case.id, subject) if place <= self._last_kept_place else {}
                if kept:
                    self._mark_id(case.id)
                elif not self._accept_id(place, case):
                    continue
                self._note_case(case, body_hash.digest())
                for due in find_due(kept, self._repeat, self._retry):
                    yield Unit(
                        case=case,
                        place=place,
                        sample=due.sample,
                        subject=subject,
                        body=body,
                        replaces=due.replaces,
                        anew=due.anew,
                    )
                cases_since_turn = cases_since_turn + 1 if kept else 0
                if cases_since_turn >= _CASES_PER_TURN:
                    cases_since_turn = 0
                    await asyncio.sleep(0)
        if self._read_count <= self._last_kept_place:
            raise UsageError(
                f"the data set has {self._read_count:,} cases, and case {self._last_kept_place} of it was judged "
                "before; resume with the data the run began with, or begin another run"
            )

    def finish(self, unit: Unit) -> None:
        """Note that an item of a unit is written, and its case with it: the id is found in the file from now on."""
        self._places_under_way.pop(unit.case.id, None)

    def _note_case(self, case: Case, digest: bytes) -> None:
        """Add a case to the digests of the run, and to the counts of cases that bring criteria, rules or thresholds."""
        self._case_digests.update(digest)
        self._contents.add(digest_content(case.content))
        if self._count_criteria is not None:
            self.criteria_counts.update(self._count_criteria(case))

    def _accept_body(self, place: int, case: Case, body: bytes) -> bool:
        """Return true for a case that can be read back from its ``body``, and passes the run's check.

        Any other is refused as a bad row. In the file, it would make the whole run unreadable.
        """
        try:
            check_case(case, body)
            if self._check_case is not None:
                self._check_case(case)
        except UsageError as error:
            self._source.refuse(place, str(error))
            self._refused_count += 1
            return False
        return True

    def _accept_id(self, place: int, case: Case) -> bool:
        """Return true if no other case has the same id, and note the case as under way.

        Otherwise the case is refused as a bad row. The id is compared with those of cases in the file and of cases
        under way, so no memory is needed for each case.
        """
        other_place = self._places_under_way.get(case.id)
        if self._mark_id(case.id) and other_place is None:
            other_place = self._store.find_place(case.id)
        if other_place is None or other_place == place:
            self._places_under_way[case.id] = place
            return True
        self._source.refuse(
            place, f"the id {shorten_id(case.id)} is already used by case {other_place}; give each row an id of its own"
        )
        self._refused_count += 1
        return False

    def _mark_id(self, name: str) -> int:
        """Mark the hash of an id, and return 0 if it was not marked before: then no case before has this id.

        Any other value means that it may have been read before, and has to be looked up in the file.
        """
        position = hash(name) & (_MARK_COUNT - 1)
        byte, bit = position >> 3, 1 << (position & 7)
        was_marked = self._marks[byte] & bit
        self._marks[byte] |= bit
        return was_marked
