"""What many comparisons come to: who wins how often, how steady the judge is, and whether people agree with it.

Numbers in, numbers out. Every share says of how many it is a share, and has an interval: Wilson's (1927), which stays
within 0 to 1 and is of use for small numbers too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from adjudge.errors import UsageError
from adjudge.judges.pair import PREFERENCES, Order, PairResult
from adjudge.trust.intervals import Share


@dataclass(frozen=True, slots=True, kw_only=True)
class PairSummary:
    """The totals of many comparisons."""

    schema: ClassVar[str] = "adjudge/pair-summary/1"

    pairs: int
    wins: int
    """The first content was preferred."""
    ties: int
    losses: int
    """The second content was preferred."""
    undecided: int
    undecided_by: Mapping[str, int] = field(default_factory=dict)
    """How many pairs are undecided for which reason."""
    win_rate: Share
    """Wins, and half of the ties, of the pairs that were decided; compare with ``undecided``."""
    flips: Share
    """Pairs whose orders disagree, of those decided in both orders."""
    reversals: int
    """The flips in which the orders preferred different contents and neither was a tie: the judge followed the
    place.
    """
    agreement: Share
    """Pairs decided alike in both orders, of all that were asked in both; an undecided order agrees with nothing."""
    shown_first: Share
    """Preferences for the content shown first, of all that were not ties, in both orders together. If both orders were
    asked and the judge has no favourite place, this is one half.
    """
    labelled: int
    """Pairs for which a person's preference is known; the following fields are about these."""
    accuracy: Share
    """The judge agrees with the person. An undecided pair counts as a disagreement."""
    accuracy_untied: Share
    """The same for pairs that the judge decided, and that neither the judge nor the person calls a tie."""
    accuracy_ab: Share
    """The order ``ab`` alone."""
    accuracy_ba: Share
    """The order ``ba`` alone."""
    both_right: Share
    """Both orders agree with the person."""
    confusion: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """For each of the person's preferences, how often the judge gave which (including ``undecided``)."""

    def to_dict(self) -> dict[str, Any]:
        """This summary as plain data."""
        data: dict[str, Any] = {"schema": self.schema}
        for item in fields(self):
            value = getattr(self, item.name)
            data[item.name] = value.to_dict() if isinstance(value, Share) else value
        return data


def summarise_pairs(judged: Iterable[tuple[PairResult, object]]) -> PairSummary:
    """What comparisons with their labels come to; a label is ``first``, ``second``, ``tie``, or ``None`` for unknown.

    Takes one pass and keeps counts alone. Any other label raises ``UsageError``.
    """
    tally = PairTally()
    for pair, label in judged:
        tally.add(pair, label)
    return tally.finish()


class PairTally:
    """Comparisons on their way to a ``PairSummary``."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._confusion: dict[str, Counter[str]] = {}

    def add(self, pair: PairResult, label: object) -> None:
        """Count one; raises ``UsageError`` for a label that is no preference."""
        seen = self._seen
        seen["pairs"] += 1
        seen[str(pair.preferred)] += 1
        if pair.undecided_because is not None:
            self._reasons[pair.undecided_because] += 1
        _count_orders(pair, seen)
        if label is not None:
            if label not in PREFERENCES:
                raise UsageError(f"the label of a pair is first, second or tie, got {label!r}")
            self._confusion.setdefault(str(label), Counter())[pair.preferred or "undecided"] += 1
            _count_label(pair, str(label), seen)

    def finish(self) -> PairSummary:
        """What they come to."""
        return _summarise(self._seen, self._reasons, self._confusion)


def _count_orders(pair: PairResult, seen: Counter[str]) -> None:
    for item in pair.orders:
        place = item.result.value if item.preferred is not None else None
        seen["places"] += place in {"first", "second"}
        seen["shown first"] += place == "first"
    if len(pair.orders) == 2:
        seen["asked twice"] += 1
        seen["decided twice"] += pair.flipped is not None
        seen["flipped"] += pair.flipped is True
        seen["agreed"] += pair.flipped is False
        seen["reversed"] += {item.preferred for item in pair.orders} == {"first", "second"}


def _count_label(pair: PairResult, label: str, seen: Counter[str]) -> None:
    seen["labelled"] += 1
    seen["right"] += pair.preferred == label
    untied = label != "tie" and pair.preferred in {"first", "second"}
    seen["untied"] += untied
    seen["untied right"] += untied and pair.preferred == label
    for item in pair.orders:
        seen[f"labelled {item.order}"] += 1
        seen[f"right {item.order}"] += item.preferred == label
    if len(pair.orders) == 2:
        seen["labelled twice"] += 1
        seen["right twice"] += all(item.preferred == label for item in pair.orders)


def _summarise(seen: Counter[str], reasons: Counter[str], confusion: Mapping[str, Counter[str]]) -> PairSummary:
    decided = seen["first"] + seen["second"] + seen["tie"]
    orders: dict[Order, Share] = {
        "ab": Share(count=seen["right ab"], of=seen["labelled ab"]),
        "ba": Share(count=seen["right ba"], of=seen["labelled ba"]),
    }
    return PairSummary(
        pairs=seen["pairs"],
        wins=seen["first"],
        ties=seen["tie"],
        losses=seen["second"],
        undecided=seen["None"],
        undecided_by=dict(reasons),
        win_rate=Share(count=seen["first"] + seen["tie"] / 2, of=decided),
        flips=Share(count=seen["flipped"], of=seen["decided twice"]),
        reversals=seen["reversed"],
        agreement=Share(count=seen["agreed"], of=seen["asked twice"]),
        shown_first=Share(count=seen["shown first"], of=seen["places"]),
        labelled=seen["labelled"],
        accuracy=Share(count=seen["right"], of=seen["labelled"]),
        accuracy_untied=Share(count=seen["untied right"], of=seen["untied"]),
        accuracy_ab=orders["ab"],
        accuracy_ba=orders["ba"],
        both_right=Share(count=seen["right twice"], of=seen["labelled twice"]),
        confusion={label: dict(counts) for label, counts in confusion.items()},
    )
