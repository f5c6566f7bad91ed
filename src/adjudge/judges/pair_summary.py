"""The totals of many comparisons: who wins how often, how steady the judge is, and whether people agree with it.

Numbers in, numbers out. Every share says of how many it is a share, and has an interval: Wilson's (1927), which stays
within 0 to 1 and is of use for small numbers too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from adjudge.errors import UsageError
from adjudge.formats.record import write_record
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
    """The number of undecided pairs for each reason."""
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
        """Write this summary as plain data."""
        return write_record(self)


def summarise_pairs(judged: Iterable[tuple[PairResult, object]]) -> PairSummary:
    """Summarise comparisons with their labels; a label is ``first``, ``second``, ``tie``, or ``None`` for unknown.

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
        """Count one comparison; raises ``UsageError`` for a label that is no preference."""
        counts = self._seen
        counts["pairs"] += 1
        counts[str(pair.preferred)] += 1
        if pair.undecided_because is not None:
            self._reasons[pair.undecided_because] += 1
        _count_orders(pair, counts)
        if label is not None:
            if label not in PREFERENCES:
                raise UsageError(f"the label of a pair is first, second or tie, got {label!r}")
            self._confusion.setdefault(str(label), Counter())[pair.preferred or "undecided"] += 1
            _count_label(pair, str(label), counts)

    def finish(self) -> PairSummary:
        """Return the summary of what was counted."""
        return _summarise(self._seen, self._reasons, self._confusion)


def _count_orders(pair: PairResult, counts: Counter[str]) -> None:
    for order in pair.orders:
        place = order.result.value if order.preferred is not None else None
        counts["places"] += place in {"first", "second"}
        counts["shown first"] += place == "first"
    if len(pair.orders) == 2:
        counts["asked twice"] += 1
        counts["decided twice"] += pair.flipped is not None
        counts["flipped"] += pair.flipped is True
        counts["agreed"] += pair.flipped is False
        counts["reversed"] += {order.preferred for order in pair.orders} == {"first", "second"}


def _count_label(pair: PairResult, label: str, counts: Counter[str]) -> None:
    counts["labelled"] += 1
    counts["right"] += pair.preferred == label
    untied = label != "tie" and pair.preferred in {"first", "second"}
    counts["untied"] += untied
    counts["untied right"] += untied and pair.preferred == label
    for order in pair.orders:
        counts[f"labelled {order.order}"] += 1
        counts[f"right {order.order}"] += order.preferred == label
    if len(pair.orders) == 2:
        counts["labelled twice"] += 1
        counts["right twice"] += all(order.preferred == label for order in pair.orders)


def _summarise(counts: Counter[str], reasons: Counter[str], confusion: Mapping[str, Counter[str]]) -> PairSummary:
    decided = counts["first"] + counts["second"] + counts["tie"]
    orders: dict[Order, Share] = {
        "ab": Share(count=counts["right ab"], of=counts["labelled ab"]),
        "ba": Share(count=counts["right ba"], of=counts["labelled ba"]),
    }
    return PairSummary(
        pairs=counts["pairs"],
        wins=counts["first"],
        ties=counts["tie"],
        losses=counts["second"],
        undecided=counts["None"],
        undecided_by=dict(reasons),
        win_rate=Share(count=counts["first"] + counts["tie"] / 2, of=decided),
        flips=Share(count=counts["flipped"], of=counts["decided twice"]),
        reversals=counts["reversed"],
        agreement=Share(count=counts["agreed"], of=counts["asked twice"]),
        shown_first=Share(count=counts["shown first"], of=counts["places"]),
        labelled=counts["labelled"],
        accuracy=Share(count=counts["right"], of=counts["labelled"]),
        accuracy_untied=Share(count=counts["untied right"], of=counts["untied"]),
        accuracy_ab=orders["ab"],
        accuracy_ba=orders["ba"],
        both_right=Share(count=counts["right twice"], of=counts["labelled twice"]),
        confusion={label: dict(row) for label, row in confusion.items()},
    )
