"""The order in which a run judges its cases; ``resume.py`` finds those that a resumed run leaves out."""

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

_TURNS = 100
"""Kept cases in a row after which others on the event loop have their turn."""


_MARKS = 1 << 26
"""Bits (8 MB, however many cases there are) for the ids that were met."""


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
    """One way through a data set.

    It holds one case at a time, whatever the size. Of data that can be read only once it also holds the kept cases that
    are to be judged again, until all kept cases are compared.
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
        self._last = store.find_last_place() if resumed else -1
        self._retry = retry
        self._check, self._count = check, count
        self.criteria_counts: Counter[str] = Counter()
        """The number of cases that bring criteria, rules or thresholds, as ``Terms.count`` counts them."""
        self._refused = 0
        self._under_way: dict[str, int] = {}
        self._marks = bytearray(_MARKS >> 3)
        self._mac = hashlib.sha256()
        self._contents = ContentTally()
        self._read = 0
        self.complete = False
        """True if the end of the data set was reached."""

    @property
    def cases(self) -> int:
        """Cases that were read."""
        return self._read - self._refused

    @property
    def total(self) -> int | None:
        """The number of items there will be, where that is known."""
        # What was counted at first may be more than what turned out to be cases.
        read = self.cases if self.complete else self._source.total
        total = read if self._places is None else len(self._places)
        return None if total is None else total * self._repeat

    @property
    def digest(self) -> str:
        """The SHA-256 over the digests of the cases that were taken, in their order."""
        return self._mac.hexdigest()

    @property
    def contents(self) -> ContentSet:
        """The contents of the cases that were taken, whatever their order."""
        return self._contents.finish()

    async def check(self) -> None:
        """Read the cases up to the first new one; raises ``UsageError`` for data that changed since the run began."""
        async with aclosing(self._read_units()) as units:
            async for unit in units:
                if unit.place > self._last:
                    return

    async def iterate_units(self) -> AsyncGenerator[Unit, None]:
        """The units that are not kept yet; raises ``UsageError`` for data that changed since the run began.

        Data that can be read only once were not checked before: of them the first unit comes when they are.
        """
        waiting: deque[Unit] = deque()
        async with aclosing(self._read_units()) as units:
            async for unit in units:
                if self._source.reads_once and unit.place <= self._last:
                    waiting.append(unit)
                    continue
                while waiting:
                    yield waiting.popleft()
                yield unit
        for unit in waiting:
            yield unit
        self.complete = True

    async def _read_units(self) -> AsyncGenerator[Unit, None]:
        """Yield each judgement that is to be made, in the order of the data set, and note every case that was read.

        Raises ``UsageError``.
        """
        since_turn = 0
        async with aclosing(self._source.iterate_cases()) as cases:
            async for place, case in cases:
                self._read = place + 1
                if self._places is not None and place not in self._places:
                    continue
                body = encode_case(case)
                if not self._accept_body(place, case, body):
                    continue
                hashed = hashlib.sha256(body)
                subject = hashed.hexdigest()
                kept = find_kept(self._store, place, case.id, subject) if place <= self._last else {}
                if kept:
                    self._mark_id(case.id)
                elif not self._accept_id(place, case):
                    continue
                self._note_case(case, hashed.digest())
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
                since_turn = since_turn + 1 if kept else 0
                if since_turn >= _TURNS:
                    since_turn = 0
                    await asyncio.sleep(0)
        if self._read <= self._last:
            raise UsageError(
                f"the data set has {self._read:,} cases, and case {self._last} of it was judged before; resume with "
                "the data the run began with, or begin another run"
            )

    def finish(self, unit: Unit) -> None:
        """Take note that an item of a unit is kept, and its case with it."""
        self._under_way.pop(unit.case.id, None)

    def _note_case(self, case: Case, digest: bytes) -> None:
        """Note a case that is judged, for the digests of all of them and the count of what they bring."""
        self._mac.update(digest)
        self._contents.add(digest_content(case.content))
        if self._count is not None:
            self.criteria_counts.update(self._count(case))

    def _accept_body(self, place: int, case: Case, body: bytes) -> bool:
        """Return true for a case that can be kept; false, and the row is refused, for another."""
        # Before it is asked about: in the file it would keep everybody from reading the run.
        try:
            check_case(case, body)
            if self._check is not None:
                self._check(case)
        except UsageError as error:
            self._source.refuse(place, str(error))
            self._refused += 1
            return False
        return True

    def _accept_id(self, place: int, case: Case) -> bool:
        """Note the id of a case as under way, and return true; false, and the row is refused, if another case has it.

        Such a row is no case, as one without content is none. Ids are compared with those that are kept and those that
        are under way, so this takes no memory for each case.
        """
        other_place = self._under_way.get(case.id)
        if self._mark_id(case.id) and other_place is None:
            other_place = self._store.find_place(case.id)
        if other_place is None or other_place == place:
            self._under_way[case.id] = place
            return True
        self._source.refuse(
            place, f"the id {shorten_id(case.id)} is already used by case {other_place}; give each row an id of its own"
        )
        self._refused += 1
        return False

    def _mark_id(self, name: str) -> int:
        """Mark an id as met, and return other than 0 if it may have been met before.

        Nearly all have not, and are not looked up for it.
        """
        at = hash(name) & (_MARKS - 1)
        place, bit = at >> 3, 1 << (at & 7)
        met = self._marks[place] & bit
        self._marks[place] |= bit
        return met
