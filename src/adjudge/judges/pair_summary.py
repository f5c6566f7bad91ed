"""The totals of many comparisons: who wins how often, how steady the judge is, and whether people agree with it.

Numbers in, numbers out. Every share says of how many it is a share, and has an interval: Wilson's (1927), which stays
within 0 to 1 and is of use for small numbers too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from adjudge.errors import UsageError
from adjudge.formats.record import write_record
from adjudge.judges.pair import PREFERENCES, PairResult
from adjudge.trust.intervals import NO_SHARE, Share


@dataclass(slots=True, kw_only=True)
class PairSummary:
    """The totals of many comparisons; ``add`` counts one more."""

    schema: ClassVar[str] = "adjudge/pair-summary/1"

    pairs: int = 0
    """Pairs that were compared."""
    wins: int = 0
    """The first content was preferred."""
    ties: int = 0
    """Neither content was preferred."""
    losses: int = 0
    """The second content was preferred."""
    undecided: int = 0
    """The judge could not tell."""
    undecided_by: dict[str, int] = field(default_factory=dict)
    """The number of undecided pairs for each reason."""
    win_rate: Share = NO_SHARE
    """Wins, and half of the ties, of the pairs that were decided; compare with ``undecided``."""
    flips: Share = NO_SHARE
    """Pairs whose orders disagree, of those decided in both orders."""
    reversals: int = 0
    """The flips in which the orders preferred different contents and neither was a tie: the judge followed the
    place.
    """
    agreement: Share = NO_SHARE
    """Pairs decided alike in both orders, of all that were asked in both; an undecided order agrees with nothing."""
    shown_first: Share = NO_SHARE
    """Preferences for the content shown first, of all that were not ties, in both orders together. If both orders were
    asked and the judge has no favourite place, this is one half.
    """
    labelled: int = 0
    """Pairs for which a person's preference is known; the following fields are about these."""
    accuracy: Share = NO_SHARE
    """The judge agrees with the person. An undecided pair counts as a disagreement."""
    accuracy_untied: Share = NO_SHARE
    """The same for pairs that the judge decided, and that neither the judge nor the person calls a tie."""
    accuracy_ab: Share = NO_SHARE
    """The order ``ab`` alone."""
    accuracy_ba: Share = NO_SHARE
    """The order ``ba`` alone."""
    both_right: Share = NO_SHARE
    """Both orders agree with the person."""
    confusion: dict[str, dict[str, int]] = field(default_factory=dict)
    """For each of the person's preferences, how often the judge gave which (including ``undecided``)."""

    def add(self, pair: PairResult, label: object) -> None:
        """Count one comparison; raises ``UsageError`` for a label that is no preference, or ``None``.

        Args:
            pair: The comparison.
            label: The preference that people gave, ``None`` without a label.
        """
        if label is not None and label not in PREFERENCES:
            raise UsageError(f"the label of a pair is first, second or tie, got {label!r}")
        self.pairs += 1
        self._add_preference(pair)
        self._add_orders(pair)
        if label is not None:
            self._add_label(pair, str(label))

    def _add_preference(self, pair: PairResult) -> None:
        """Count the preference of a pair; a tie counts as half a win in the win rate."""
        self.wins += pair.preferred == "first"
        self.ties += pair.preferred == "tie"
        self.losses += pair.preferred == "second"
        self.undecided += pair.preferred is None
        if pair.undecided_because is not None:
            self.undecided_by[pair.undecided_because] = self.undecided_by.get(pair.undecided_because, 0) + 1
        self.win_rate = Share(count=self.wins + self.ties / 2, of=self.wins + self.ties + self.losses)

    def _add_orders(self, pair: PairResult) -> None:
        """Count how often the content shown first is preferred and, for pairs asked in both orders, how these agree."""
        for order in pair.orders:
            place = order.result.value if order.preferred is not None else None
            if place in {"first", "second"}:
                self.shown_first = self.shown_first.add(place == "first")
        if len(pair.orders) < 2:
            return
        self.agreement = self.agreement.add(pair.flipped is False)
        self.reversals += {order.preferred for order in pair.orders} == {"first", "second"}
        if pair.flipped is not None:
            self.flips = self.flips.add(pair.flipped)

    def _add_label(self, pair: PairResult, label: str) -> None:
        """Count whether a pair, and each of its orders, agrees with a person's preference."""
        self.labelled += 1
        self.accuracy = self.accuracy.add(pair.preferred == label)
        if label != "tie" and pair.preferred in {"first", "second"}:
            self.accuracy_untied = self.accuracy_untied.add(pair.preferred == label)
        for order in pair.orders:
            if order.order == "ab":
                self.accuracy_ab = self.accuracy_ab.add(order.preferred == label)
            else:
                self.accuracy_ba = self.accuracy_ba.add(order.preferred == label)
        if len(pair.orders) == 2:
            self.both_right = self.both_right.add(all(order.preferred == label for order in pair.orders))
        counts = self.confusion.setdefault(label, {})
        counts[pair.preferred or "undecided"] = counts.get(pair.preferred or "undecided", 0) + 1

    def to_dict(self) -> dict[str, Any]:
        """Write this summary as plain data."""
        return write_record(self)


def summarise_pairs(judged: Iterable[tuple[PairResult, object]]) -> PairSummary:
    """Summarise comparisons with their labels; a label is ``first``, ``second``, ``tie``, or ``None`` for unknown.

    Takes one pass and keeps counts alone. Any other label raises ``UsageError``.
    """
    summary = PairSummary()
    for pair, label in judged:
        summary.add(pair, label)
    return summary
