"""The report of a deletion: the texts it deleted, those it left for a person, and those it cannot reach. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from adjudge.formats.record import write_record


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedTexts:
    """The texts in one kind of place that were deleted, or would be."""

    place: str
    count: int
    what: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedText:
    """A text that names what is forgotten, and is about something else: a person looks at it."""

    place: str
    where: str
    """The entry, request, line or case."""
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfReach:
    """A place in which more may be kept, and what to do there."""

    place: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetReport:
    """The effects of ``adjudge forget``, done or planned."""

    schema: ClassVar[str] = "adjudge/forgotten/1"

    chosen: str
    dry_run: bool
    deleted: tuple[DeletedTexts, ...]
    look: tuple[NamedText, ...]
    """The texts that a person has to look at."""
    out_of_reach: tuple[OutOfReach, ...]
    unfinished: tuple[str, ...] = ()
    """The deletions that could not be done now, each with the reason; once that is gone, the same command does them."""
    seq: int | None = None
    """The ledger's entry that sums it up; ``None`` where nothing was deleted, or no ledger was named."""
    entries: int | None = None
    """The number of entries in the ledger; ``None`` without one."""
    erased: int = 0
    """The number of them that have no payload any more."""
    verified: bool | None = None
    problem: str = ""
    """The fault in the ledger, in a sentence; empty where it is in order."""

    @property
    def total(self) -> int:
        """The number of texts that were deleted."""
        return sum(texts.count for texts in self.deleted)

    def to_dict(self) -> dict[str, Any]:
        """Write this value as plain data."""
        return write_record(self)


@dataclass(slots=True, kw_only=True)
class Findings:
    """The collected findings of a deletion, across all places."""

    subjects: set[str] = field(default_factory=set)
    """Digests of contents that are about what is forgotten."""
    approvals: set[str] = field(default_factory=set)
    """Ids of requests for approval that are about it."""
    results: set[str] = field(default_factory=set)
    """Ids of results that are about it."""
    run_cases: set[tuple[str, str]] = field(default_factory=set)
    """The id of a run, and of a case in it."""
    deleted: dict[str, tuple[int, list[str]]] = field(default_factory=dict)
    """The number of texts that were deleted in each place, and words about them."""
    for_a_person: list[NamedText] = field(default_factory=list)
    """Texts that only name what is forgotten; ``look`` of the report."""
    out_of_reach: list[OutOfReach] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)

    def add_deleted(self, place: str, number: int, what: str = "") -> None:
        """Add to the number of texts that are deleted in a place; ``what`` says in words which these are."""
        earlier_number, descriptions = self.deleted.get(place, (0, []))
        if what and number:
            descriptions = [*descriptions, what]
        self.deleted[place] = earlier_number + number, descriptions

    def list_deleted(self) -> tuple[DeletedTexts, ...]:
        """List the deleted texts by place, each place with its number of texts and their descriptions."""
        return tuple(
            DeletedTexts(place=place, count=count, what="; ".join(dict.fromkeys(descriptions)))
            for place, (count, descriptions) in self.deleted.items()
        )

    def count_deleted(self) -> Mapping[str, int]:
        """Return the number of deleted texts by place, without the places that have none; the ledger records it."""
        return {place: count for place, (count, _) in self.deleted.items() if count}
