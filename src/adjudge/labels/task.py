"""The task that a rater is shown, and the progress of labelling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Literal

from adjudge.content import write_content
from adjudge.dataset.label import Label, LabelOrder
from adjudge.errors import UsageError
from adjudge.formats.record import Layout, write_record
from adjudge.judges.pair import PairResult
from adjudge.result import JudgeResult
from adjudge.rubric.rubric import Criterion, Rubric

_SWAPPED: Mapping[str, Literal["first", "second"]] = {"first": "second", "second": "first"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelTask:
    """One question to one rater: a case, and what to say of it.

    It holds nothing that a judge or another rater said, unless it was asked for: neither the labels of the case nor its
    metadata and group, which may tell them.
    """

    schema: ClassVar[str] = "adjudge/label-task/1"
    _layout: ClassVar[Layout] = Layout(
        members=(
            "case",
            "subject",
            "parts",
            "rubric",
            "criterion",
            "order",
            "comment",
            "until",
            "skipped",
            "results",
            "others",
        ),
        computed={"parts": lambda task: [{"name": name, "text": text} for name, text in task.parts]},
    )

    case: str
    """The id of the case."""
    content: object
    """The content that is judged; of a pair a mapping with ``a`` and ``b``. ``parts`` has the texts to show."""
    subject: str | None = None
    """SHA-256 of the content, as results have it; hand it in with the answer, so that it is about this content."""
    task: object = None
    """The task that the content answers."""
    reference: object = None
    """A known good answer."""
    context: object = None
    """The facts that the content may rely on."""
    rubric: Rubric | None = None
    """The rubric the case is judged by, if there is one."""
    criterion: Criterion | None = None
    """The criterion that is asked for; ``None`` asks for the case as a whole."""
    order: LabelOrder | None = None
    """The order in which the sides of a pair are to be shown; ``None`` where it is no pair."""
    comment: str | None = None
    """The comment that this rater wrote about it already."""
    until: datetime
    """Until when nobody else gets the case in this rater's place."""
    skipped: bool = False
    """True if the rater skipped it before."""
    results: tuple[JudgeResult | PairResult, ...] = ()
    """The judge's results; empty where the rater is blind."""
    others: tuple[Label, ...] = ()
    """The labels of others; only where their difference is to be settled."""

    @property
    def is_pair(self) -> bool:
        """Return whether two contents are to be compared."""
        return self.order is not None

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        """The texts to show, with their names, in their order; the sides of a pair are ``A`` and ``B`` as shown.

        The texts are data from anywhere: neutralise them for the place where they are shown.
        """
        shown: list[tuple[str, object]] = [("task", self.task), ("context", self.context)]
        if self.is_pair and isinstance(self.content, Mapping):
            sides = ("a", "b") if self.order == "ab" else ("b", "a")
            shown += [(name, self.content.get(side)) for name, side in zip("AB", sides, strict=True)]
        else:
            shown.append(("content", self.content))
        shown.append(("reference", self.reference))
        return tuple((name, _write_shown(value)) for name, value in shown if value is not None)

    def name_shown(self, place: Literal["first", "second"]) -> Literal["first", "second"]:
        """The case's own side that was shown at this place; it is the value of the label. No pair: ``UsageError``.

        Args:
            place: ``first`` or ``second``, as the rater saw them.
        """
        if place not in _SWAPPED:
            raise UsageError(f"place must be 'first' or 'second', got {place!r}", argument="place")
        if not self.is_pair:
            raise UsageError(f"the case {self.case!r} is no pair, so no side of it was shown {place}")
        return place if self.order == "ab" else _SWAPPED[place]

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


def _write_shown(value: object) -> str:
    """Write a part of a case as the text that a rater is shown; in place of one that cannot be written, a note."""
    try:
        return write_content(value)[0]
    except UsageError as error:
        return f"(this cannot be shown: {error})"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelProgress:
    """The progress of labelling, for one rater."""

    schema: ClassVar[str] = "adjudge/label-progress/1"

    total: int
    """Cases in the order of labelling: all cases, or those that the plan drew."""
    per_case: int
    """The number of raters that each case is to have."""
    complete: int
    """Cases of these that at least so many raters have answered."""
    mine: int
    """Cases of these that this rater has answered."""
    skipped: int
    """Cases that this rater skipped and has not answered since."""
    seconds_per_answer: float | None = None
    """The median pace of this rater's last answers; ``None`` before the third."""

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoneAnswer:
    """An answer that was taken back."""

    case: str
    """The id of the case, which its rater has again."""
    criterion: str | None
    """The criterion that it was about; ``None`` is the case as a whole."""
    label: Label | None
    """The answer; ``None`` where the case had been skipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelImport:
    """The outcome of importing labels."""

    added: int
    """The number of labels that are new here."""
    known: int
    """Labels that were there already, or had been taken back here."""
    elsewhere: tuple[str, ...]
    """Ids of labelled cases that are not here; their labels were not taken in."""
    other_contents: tuple[str, ...] = ()
    """Ids of cases whose content is another than the one that was labelled; these labels were not taken in."""

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelDraws:
    """Labelled cases as a sample, for a rate of good cases."""

    sizes: Mapping[str, int]
    """The number of cases in each stratum, labelled ones included."""
    draws: tuple[tuple[str, bool | None], ...]
    """The stratum of each labelled case and whether it is good, in the order in which they were labelled; ``None`` is
    open: people cannot tell, or do not agree."""
    phases: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """Of a plan, for each time that it drew cases: the place of the first, and how many of each stratum there were."""
    within: float | None = None
    """Of a plan, the half-width of the interval that is wanted."""
    ignored_groups: int = 0
    """In how many groups of several the cases are, which were drawn one by one all the same: a rate is then of these
    cases alone, and its interval too narrow for other groups."""
