"""The cases on which judge and people differ: sorted by what to do about them, the worst first, bounded in number."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, get_args

from adjudge.dataset.case import LabelValue
from adjudge.dataset.label_map import CANNOT_TELL
from adjudge.formats.record import Layout, write_record
from adjudge.labels.truth import LabelledVerdict
from adjudge.measurement.verdict_and_truth import CaseTruth, CaseVerdict

DisagreementSort = Literal["judge wrong", "people disagree", "rubric silent"]
"""The remedies of a disagreement: fix the judge, settle it among people, or say in the rubric what is meant."""

SORTS: tuple[DisagreementSort, ...] = get_args(DisagreementSort)

MOST_DISAGREEMENTS = 200
"""Disagreements of each sort that are kept, with their texts."""

_LONGEST_TEXT = 2_000
"""Characters of each text of a disagreement that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """A case on which the judge and the people differ, or that people could not settle. Texts are cut."""

    _layout: ClassVar[Layout] = Layout(computed={"labels": lambda disagreement: dict(disagreement.labels)})

    case: str
    """The id of the case."""
    place: int
    """The number of the case in the data set, from 0."""
    group: str | None
    """The group of the case; ``None`` without one."""
    sort: DisagreementSort
    """``judge wrong``, ``people disagree`` or ``rubric silent``."""
    by_hand: bool
    """True if a comment on a label says the sort, instead of the rule."""
    verdict: LabelledVerdict
    """The verdict of the judge."""
    score: float | None
    """The judge's score, in 0 to 1; ``None`` without one."""
    truth: LabelValue
    """The label of people; ``cannot_tell``, or ``None`` if they do not agree."""
    labels: tuple[tuple[str, LabelValue], ...]
    """Each person's label, by name."""
    comments: tuple[str, ...]
    """The words of people about the case."""
    content: str = ""
    """The content."""
    task: str = ""
    """The task that the content answers."""
    why: str = ""
    """The judge's reasoning."""

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


def find_sort(truth: CaseTruth, *, criteria_agree: bool = False) -> tuple[DisagreementSort, bool]:
    """Find the sort of a disagreement, and whether a person chose it.

    A comment that begins with the name of a sort decides. Otherwise:

    * *rubric silent*: somebody who looked could not tell, or the judge agrees with people on every labelled criterion
      and not on the whole (``criteria_agree``), so the criteria leave out what people minded;
    * *people disagree*: people said different things, settled or not;
    * *judge wrong*: what people say is settled, and the judge says otherwise.
    """
    for comment in truth.comments:
        for sort in SORTS:
            if comment.strip().lower().startswith(sort):
                return sort, True
    if truth.value == CANNOT_TELL or CANNOT_TELL in truth.ratings.values() or criteria_agree:
        return "rubric silent", False
    if truth.differs or truth.value is None:
        return "people disagree", False
    return "judge wrong", False


class ShownTexts(NamedTuple):
    """The texts of a case that a person looks at."""

    content: str
    task: str
    reasoning: str
    """The judge's reasoning, or why it did not decide."""


class ShownCase(Protocol):
    """The parts of a case that are shown where judge and people differ."""

    @property
    def id(self) -> str:
        """The id of the case."""
        ...

    @property
    def place(self) -> int:
        """The number of the case, from 0."""
        ...

    @property
    def group(self) -> str | None:
        """The source of the case, where several came from one."""
        ...

    def read_texts(self) -> ShownTexts:
        """The texts of the case; read only for what is kept."""
        ...


class DisagreementList:
    """Counts disagreements, which are added one by one, and keeps the worst of each sort, at most ``most``.

    A disagreement is worse, the more people agree with each other against the judge; among those with as many people,
    the farther the judge's score is from what they say.
    """

    def __init__(self, most: int = MOST_DISAGREEMENTS) -> None:
        self.most = most
        self.counts: dict[DisagreementSort, int] = dict.fromkeys(SORTS, 0)
        self._heaps: dict[DisagreementSort, list[tuple[tuple[float, ...], Disagreement]]] = {sort: [] for sort in SORTS}
        """The kept disagreements of each sort with their ranks, as a heap of ``heapq``: the least bad is first."""

    def add(self, verdict: CaseVerdict, truth: CaseTruth, case: ShownCase, *, criteria_agree: bool = False) -> None:
        """Count a disagreement, and keep it if it is among the worst of its sort."""
        sort, by_hand = find_sort(truth, criteria_agree=criteria_agree)
        self.counts[sort] += 1
        if not self.most:
            return
        heap = self._heaps[sort]
        # Ends in the case's number, which no other case has, so that two disagreements are never compared themselves.
        rank = (*_rank_disagreement(verdict, truth), -float(case.place))
        is_full = len(heap) >= self.most
        if is_full and rank <= heap[0][0]:
            return
        texts = case.read_texts()
        disagreement = Disagreement(
            case=case.id,
            place=case.place,
            group=case.group,
            sort=sort,
            by_hand=by_hand,
            verdict=verdict.verdict,
            score=verdict.score,
            truth=truth.value,
            labels=tuple(truth.ratings.items()),
            comments=tuple(cut(comment, _LONGEST_TEXT) for comment in truth.comments),
            content=cut(texts.content, _LONGEST_TEXT),
            task=cut(texts.task, _LONGEST_TEXT),
            why=cut(texts.reasoning, _LONGEST_TEXT),
        )
        if is_full:
            heapq.heapreplace(heap, (rank, disagreement))
        else:
            heapq.heappush(heap, (rank, disagreement))

    def finish(self) -> tuple[Disagreement, ...]:
        """Return those that were kept: *judge wrong* first, in each sort the worst first."""
        return tuple(disagreement for sort in SORTS for _, disagreement in sorted(self._heaps[sort], reverse=True))


def _rank_disagreement(verdict: CaseVerdict, truth: CaseTruth) -> tuple[float, float]:
    """Rank a disagreement: by how many people gave the settled label, then by how far the score is from it."""
    agreed = sum(value == truth.value for value in truth.ratings.values())
    if isinstance(truth.value, bool) and verdict.score is not None:
        return float(agreed), abs(verdict.score - truth.value)  # true is a score of 1, false one of 0
    return float(agreed), 0.0


def cut(text: str, most: int) -> str:
    """Cut a text to at most ``most`` characters, ending in ``…`` where more was there."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
