"""The cases a report shows: failures first, bounded in number and size, whatever the run has.

Which of two cases comes first is decided by ``_rank_case``.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, ClassVar

from adjudge.agents.conversation import shorten_conversation
from adjudge.content import content_text
from adjudge.dataset.case import LabelValue
from adjudge.errors import UsageError
from adjudge.formats.record import Layout, write_record
from adjudge.formats.text import clean
from adjudge.judges.pair import PairResult
from adjudge.result import REASONS, JudgeResult, Outcome
from adjudge.runs.item import RunItem

MOST_CASES = 2_000
"""Cases in one report."""

MOST_SAMPLES = 10
"""Judgements shown of one case."""


_LONGEST_TEXT, _LONGEST_REMARK = 2_000, 500
"""Characters of a text and of a remark that are shown."""

_MOST_PARTS = 50
"""Criteria, seats, rules, suggestions or members of the metadata that are shown of one judgement or case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCriterion:
    """One criterion of a judgement."""

    name: str
    """The criterion's name."""
    score: float | None
    """The score, in 0 to 1; ``None`` without one."""
    passed: bool
    """True if the score reaches the threshold."""
    threshold: float | None
    """The criterion's own threshold; ``None`` without one."""
    reasoning: str
    """The judge's reason for the score."""
    rule: str | None = None
    """The kind of rule that decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSeat:
    """The answer of one judge of a chain, or of one order of a comparison."""

    _layout: ClassVar[Layout] = Layout(
        members=("judge", "outcome", "undecided_because", "score", "said"), computed={"said": attrgetter("remark")}
    )

    judge: str
    """The name of the judge, or the order."""
    outcome: str
    """``passed``, ``failed`` or ``undecided``; of an order, what it prefers or ``undecided``."""
    undecided_because: str | None
    """The reason why it is undecided; ``None`` if it is not."""
    score: float | None
    """The score, in 0 to 1; ``None`` without one."""
    remark: str
    """The detail of the answer, else its reasoning; ``said`` in the data."""

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownResult:
    """One judgement, as far as it is shown."""

    outcome: Outcome
    """``passed``, ``failed`` or ``undecided``."""
    undecided_because: str | None
    """The reason why it is undecided; ``None`` if it is not."""
    decided_by: str
    """The one who decided: ``judge``, ``rule``, ``human`` or ``policy``."""
    judge: str
    """The name of the judge."""
    score: float | None
    """The score, in 0 to 1; ``None`` without one."""
    threshold: float | None
    """The passing threshold that was in force."""
    confidence: float | None
    """The judge's certainty, in 0 to 1; ``None`` is unknown."""
    preferred: str | None
    """For a comparison: ``first``, ``second`` or ``tie``."""
    detail: str
    """One sentence about what decided, or what could not be read."""
    reasoning: str
    """The judge's reasoning."""
    suggestions: tuple[str, ...]
    """The improvements that the judge suggests."""
    criteria: tuple[ShownCriterion, ...]
    """The result on each criterion."""
    rules: tuple[tuple[str, str, str], ...]
    """Rules that found something: name, severity, message."""
    seats: tuple[ShownSeat, ...]
    """The answers of a chain's judges, or of a comparison's two orders."""
    split: bool
    """True if judges of the chain, or the two orders of a comparison, decided differently."""
    duration_ms: float
    """The time that it took, in milliseconds."""
    cost_usd: float | None
    """The cost, in dollars; ``None`` is unknown."""
    raw_response: str
    """The reply as it was received."""

    @property
    def why(self) -> str:
        """The reason: the judge's own words if it decided, else why it could not."""
        if self.outcome == "undecided":
            return self.detail or self.reasoning
        failed = [criterion.reasoning for criterion in self.criteria if not criterion.passed and criterion.reasoning]
        return self.reasoning or next(iter(failed), "") or self.detail


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCase:
    """One case with its judgements. Texts are cut, and end in ``…`` where they are; long runs are rendered anew."""

    writes_plain: ClassVar[bool] = True

    id: str
    """The id of the case."""
    place: int
    """The number of the case in the data set, from 0."""
    group: str | None
    """The group of the case; ``None`` without one."""
    label: LabelValue
    """The label of the case; ``None`` without one."""
    outcome: Outcome
    """The worst of its judgements: failed before undecided before passed."""
    agrees: bool | None
    """True if every judgement agrees with the label; ``None`` if that is unknown."""
    judgements: int
    """The number of times the case was judged; ``results`` has at most ten, the worst first where there are more."""
    passed: int
    """The number of its judgements that passed."""
    split: bool
    """True if judges of the chain disagreed, or the two orders of a comparison."""
    flipped: bool
    """True if its judgements differ in their outcome."""
    results: tuple[ShownResult, ...]
    """Its judgements."""
    content: str
    """The content that was judged."""
    reference: str
    """The known good answer."""
    task: str
    """The task that the content answers."""
    context: str
    """The facts that the content may rely on."""
    metadata: tuple[tuple[str, str], ...]
    """The metadata, as pairs of name and text."""
    own: tuple[str, ...] = ()
    """The parts of the question that the case brings itself: ``criteria``, ``rubric``, ``rules``, ``threshold``."""
    rubric: str = ""
    """The name of the rubric that applied, where that is known."""
    rubric_digest: str = ""
    """SHA-256 of that rubric."""

    @property
    def worst(self) -> ShownResult:
        """The judgement that its outcome is from."""
        return next(result for result in self.results if result.outcome == self.outcome)

    def to_dict(self) -> dict[str, Any]:
        """This case as plain data."""
        return write_record(self)


class CaseSelection:
    """The cases that are shown: failed ones first, then undecided ones, then those that passed.

    Within each: those whose label says otherwise, then those that judges disagree about, then the lowest score. A
    tenth of the room is kept for each outcome, so that a thousand failures do not hide what nobody could decide.
    """

    def __init__(self, most: int = MOST_CASES) -> None:
        if not 0 <= most <= MOST_CASES:
            raise UsageError(f"a report shows 0 to {MOST_CASES} cases, and {most} were asked for", argument="most")
        self.most = most
        self._heaps: dict[str, list[tuple[tuple[float, ...], ShownCase]]] = {outcome: [] for outcome in WORST_FIRST}
        """The best candidates of each outcome, as heaps of ``heapq``: first the one least worth showing."""

    def add(self, items: Sequence[RunItem]) -> None:
        """Offer a case with all its judgements; it is kept if it is among those of its outcome most worth showing."""
        outcome = find_worst_outcome([item.result.outcome for item in items])
        # Negative, because a rank is smallest for the case most worth reading, and a heap drops its smallest member.
        worth = tuple(-number for number in _rank_case(items))
        heap = self._heaps[outcome]
        if len(heap) < self.most:
            heapq.heappush(heap, (worth, make_shown_case(items)))
        elif heap and worth > heap[0][0]:
            heapq.heapreplace(heap, (worth, make_shown_case(items)))

    def finish(self) -> tuple[ShownCase, ...]:
        """Return the cases that are shown, at most ``most``, in the order in which they are read."""
        reserve = self.most // 10
        candidates = {outcome: sorted(heap, reverse=True) for outcome, heap in self._heaps.items()}
        room = self.most
        shown: list[ShownCase] = []
        for number, outcome in enumerate(WORST_FIRST, 1):
            reserved_for_others = sum(min(len(candidates[other]), reserve) for other in WORST_FIRST[number:])
            chosen = candidates[outcome][: max(room - reserved_for_others, 0)]
            room -= len(chosen)
            shown += [case for _, case in chosen]
        return tuple(shown)


WORST_FIRST: tuple[Outcome, ...] = ("failed", "undecided", "passed")
"""The outcomes in the order in which cases are shown."""


def find_worst_outcome(outcomes: Sequence[Outcome]) -> Outcome:
    """Find the worst of a case's outcomes: failed before undecided before passed."""
    return min(outcomes, key=WORST_FIRST.index)


def _rank_case(items: Sequence[RunItem]) -> tuple[float, ...]:
    """Rank a case among those of one outcome: the smallest rank is most worth reading.

    First come cases whose label says otherwise, then those that judges disagree about, then by the reason why a case is
    undecided, then those with the lowest score. A rank ends in the case's number, so that no two are equal.
    """
    results = [item.result for item in items]
    contradicts_label = any(agrees_with_label(result, items[0].case.label) is False for result in results)
    has_dissent = any(is_split(result) for result in results) or len({result.outcome for result in results}) > 1
    reasons = [REASONS.index(result.undecided_because) for result in results if result.undecided_because in REASONS]
    scores = [result.score for result in results if result.score is not None]
    return (
        not contradicts_label,
        not has_dissent,
        min(reasons, default=len(REASONS)),
        min(scores, default=1.0),
        items[0].place,
    )


def agrees_with_label(result: JudgeResult | PairResult, label: LabelValue) -> bool | None:
    """Return whether a judgement is what a person decided; ``None`` where the label says nothing about it.

    An undecided judgement agrees with no label.
    """
    if isinstance(result, PairResult):
        return result.preferred == label if label in ("first", "second", "tie") else None
    return result.outcome == ("passed" if label else "failed") if isinstance(label, bool) else None


def is_split(result: JudgeResult | PairResult) -> bool:
    """Return whether judges of a chain decided differently, or a judge did so in the two orders of a comparison."""
    if isinstance(result, PairResult):
        return result.flipped is True
    return {"passed", "failed"} <= {seat.outcome for seat in getattr(result, "results", ())}


def make_shown_case(items: Sequence[RunItem]) -> ShownCase:
    """Make the shown form of a case with its judgements, with texts cut."""
    case = items[0].case
    agreements = [agrees_with_label(item.result, case.label) for item in items]
    outcomes = [item.result.outcome for item in items]
    shown = items
    if len(items) > MOST_SAMPLES:
        shown = sorted(items, key=lambda item: WORST_FIRST.index(item.result.outcome))
    return ShownCase(
        id=cut(case.id, _LONGEST_REMARK),
        place=items[0].place,
        group=cut(case.group, _LONGEST_REMARK) if case.group is not None else None,
        label=cut(case.label, _LONGEST_REMARK) if isinstance(case.label, str) else case.label,
        outcome=find_worst_outcome(outcomes),
        agrees=None if None in agreements else all(agreements),
        judgements=len(items),
        passed=outcomes.count("passed"),
        split=any(is_split(item.result) for item in items),
        flipped=len(set(outcomes)) > 1,
        results=tuple([make_shown_result(item.result) for item in shown[:MOST_SAMPLES]]),
        content=_cut_value(case.content),
        reference=_cut_value(case.reference),
        task=_cut_value(case.task),
        context=_cut_value(case.context),
        metadata=tuple(
            [(cut(str(name), _LONGEST_REMARK), _cut_value(value)) for name, value in _list_metadata(case.metadata)]
        ),
        own=case.own_terms,
        rubric=cut(items[0].rubric.name, _LONGEST_REMARK) if items[0].rubric is not None else "",
        rubric_digest=items[0].rubric.digest if items[0].rubric is not None else "",
    )


def make_shown_result(result: JudgeResult | PairResult) -> ShownResult:
    """Make the shown form of a judgement, with texts cut."""
    # A pair has no criteria or rules. ``single`` is compared with None, because a result that did not pass is false.
    single = None if isinstance(result, PairResult) else result
    return ShownResult(
        outcome=result.outcome,
        undecided_because=result.undecided_because,
        decided_by=result.decided_by,
        judge=cut(result.judge, _LONGEST_REMARK),
        score=result.score,
        threshold=single.threshold if single is not None else None,
        confidence=result.confidence,
        preferred=result.preferred if isinstance(result, PairResult) else None,
        detail=cut(result.detail, _LONGEST_REMARK),
        reasoning=cut(result.reasoning, _LONGEST_TEXT),
        suggestions=tuple([cut(text, _LONGEST_REMARK) for text in single.suggestions[:_MOST_PARTS]])
        if single is not None
        else (),
        criteria=_show_criteria(single) if single is not None else (),
        rules=_show_rules(single) if single is not None else (),
        seats=_show_seats(result),
        split=is_split(result),
        duration_ms=result.duration_ms,
        cost_usd=result.usage.cost_usd if result.usage else None,
        # The reply itself is worth reading only where it could not be read; elsewhere the fields above have it.
        raw_response=cut(single.raw_response or "", _LONGEST_TEXT)
        if single is not None and result.outcome == "undecided"
        else "",
    )


def cut(text: str, most: int) -> str:
    """Cut a text to at most so many characters, ending in ``…`` where more was there."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _show_criteria(result: JudgeResult) -> tuple[ShownCriterion, ...]:
    """Make the shown form of the first criteria of a result."""
    return tuple(
        [
            ShownCriterion(
                name=cut(criterion.name, _LONGEST_REMARK),
                score=criterion.score,
                passed=criterion.passed,
                threshold=criterion.threshold,
                reasoning=cut(criterion.reasoning, _LONGEST_REMARK),
                rule=criterion.rule,
            )
            for criterion in result.criteria[:_MOST_PARTS]
        ]
    )


def _show_rules(result: JudgeResult) -> tuple[tuple[str, str, str], ...]:
    """List the first rules that failed: the name, severity and message of each."""
    failed = [rule for rule in result.rule_results if not rule.passed][:_MOST_PARTS]
    return tuple(
        [(cut(rule.name, _LONGEST_REMARK), rule.severity, cut(rule.message, _LONGEST_REMARK)) for rule in failed]
    )


def _show_seats(result: JudgeResult | PairResult) -> tuple[ShownSeat, ...]:
    """Make the shown form of the two orders of a comparison, or of the seats of a chain; a single judge has none."""
    if isinstance(result, PairResult):
        return tuple([_show_seat(order.result, f"order {order.order}", order.preferred) for order in result.orders])
    return tuple([_show_seat(seat, seat.judge, seat.outcome) for seat in getattr(result, "results", ())[:_MOST_PARTS]])


def _show_seat(result: JudgeResult, name: str, outcome: str | None) -> ShownSeat:
    """Make the shown form of one judge, or of one order of a comparison; an outcome of ``None`` is undecided."""
    return ShownSeat(
        judge=cut(name, _LONGEST_REMARK),
        outcome=outcome or "undecided",
        undecided_because=result.undecided_because,
        score=result.score,
        remark=cut(result.detail or result.reasoning, _LONGEST_REMARK),
    )


def _cut_value(value: Any) -> str:
    """Cut a content, or another part of a case, to a text for a page; ``None`` is empty.

    A long run of an agent is shortened in a form that can be read as a run again. A value that cannot be made a text
    becomes the error message in brackets.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return cut(value, _LONGEST_TEXT)
    try:
        text = content_text(value)
        # A run of an agent is not cut off at the end, because it could not be read as a run then.
        excerpt = shorten_conversation(value) if len(text) > _LONGEST_TEXT else None
        return cut(text, _LONGEST_TEXT) if excerpt is None else excerpt
    except UsageError as error:  # a case that could not be judged for what its content is
        return cut(clean(f"({error})"), _LONGEST_TEXT)


def _list_metadata(metadata: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """List the first members of a case's metadata."""
    return list(metadata.items())[:_MOST_PARTS]
