"""The result of a comparison: which of two contents is preferred, and the answer in either order.

Judges favour a place: many prefer what they are shown first. So a comparison is asked in both orders, and what each
order said is kept in terms of the contents and not of the places. Everything that can be computed from the preference
(outcome, score) is computed, so that no file can hold a pair whose parts disagree about it.

The two orders are asked in ``compare.py`` (``prepare_pair``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Literal, Self, get_args

from adjudge.errors import Reason, UsageError
from adjudge.formats.display import describe_models
from adjudge.formats.record import Layout, read_record, write_record
from adjudge.formats.text import clean
from adjudge.formats.times import get_now
from adjudge.result import REASONS, DecidedBy, JudgeResult, Outcome, Usage, find_gravest, is_share, make_id, read_result

Preference = Literal["first", "second", "tie"]

Order = Literal["ab", "ba"]

OnConflict = Literal["tie", "undecided"]


PREFERENCES: tuple[Preference, ...] = get_args(Preference)

_SWAPPED: Mapping[object, Preference] = {"first": "second", "second": "first", "tie": "tie"}

_SCORES: Mapping[Preference, float] = {"first": 1.0, "tie": 0.5, "second": 0.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class PairOrder:
    """A judge's answer about two contents in one order."""

    _layout: ClassVar[Layout] = Layout(members=("order", "preferred", "result"), readers={"result": read_result})

    order: Order
    """``ab``: the first content was shown first; ``ba``: the second was."""
    result: JudgeResult
    """The judge's own result. Its ``value`` names the better **place**; it is ``passed`` if it names one."""

    @property
    def preferred(self) -> Preference | None:
        """The better **content**: the place mapped back; ``None`` when this order is undecided."""
        place = self.result.value if self.result.outcome == "passed" else None
        if place not in PREFERENCES:
            return None
        return place if self.order == "ab" else _SWAPPED[place]

    def to_dict(self) -> dict[str, Any]:
        """Write this value as plain data."""
        return write_record(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back ``data`` that ``to_dict`` wrote; raises ``UsageError`` for anything else.

        Args:
            data: What ``to_dict`` wrote.
        """
        return read_record(cls, data)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PairResult:
    """The one of two contents that a judge prefers; made by ``compare``.

    The outcome answers "is the first better?": ``passed`` if the first is preferred, ``failed`` if the second is
    preferred or neither, ``undecided`` if the judge could not tell. So ``if compare_sync(new, old, ...)`` is true only
    if the new one is better.
    """

    schema: ClassVar[str] = "adjudge/pair/1"
    _layout: ClassVar[Layout] = Layout(
        last=("orders", "outcome", "passed", "score", "flipped", "model_differs"), required=("id", "created_at")
    )

    preferred: Preference | None
    """``first``, ``second`` or ``tie``; ``None`` when undecided."""
    judge: str
    """The name of the judge that answered."""
    orders: tuple[PairOrder, ...]
    """The answer in each order that was asked, ``ab`` before ``ba``."""
    undecided_because: Reason | None = None
    """Set exactly if ``preferred`` is ``None``: the more severe reason of the two orders, or ``split`` if they
    disagree.
    """
    detail: str = ""
    """One sentence about how the two orders were combined."""
    decided_by: DecidedBy = "judge"
    """``policy`` where the orders disagree and ``on_conflict`` decided, and where a chain could not."""
    confidence: float | None = None
    """The lower of the two orders'; ``None`` where one is unknown, or they disagree."""
    duration_ms: float = 0.0
    """The time until both orders were answered."""
    usage: Usage | None = None
    """Of both orders together."""
    subject: str | None = None
    """SHA-256 of both contents together."""
    subjects: tuple[str, ...] = ()
    """SHA-256 of the first content, and of the second."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Yours: the ``metadata`` of the call."""
    id: str = field(default_factory=make_id)
    """The id of this result."""
    created_at: datetime = field(default_factory=get_now)
    """The time at which it was made, in UTC."""

    def __post_init__(self) -> None:
        if self.preferred is not None and self.preferred not in PREFERENCES:
            raise UsageError(
                f"preferred must be first, second, tie or None, got {self.preferred!r}", argument="preferred"
            )
        if self.undecided_because is not None and self.undecided_because not in REASONS:
            raise UsageError(
                f"undecided_because must be one of {', '.join(REASONS)}, got {self.undecided_because!r}",
                argument="undecided_because",
            )
        if (self.preferred is None) != (self.undecided_because is not None):
            raise UsageError("a pair has either a preference or a reason why it is undecided, and not both")
        possible_preferences = (
            {decide_pair(self.orders, on_conflict).preferred for on_conflict in get_args(OnConflict)}
            if self.orders
            else {None}
        )
        if self.preferred not in possible_preferences:
            raise UsageError(f"the orders of this pair do not come to {self.preferred!r}, which it says is preferred")
        if not is_share(self.confidence):
            raise UsageError(f"the confidence of a pair is in 0 to 1, or None; got {self.confidence!r}")

    @property
    def outcome(self) -> Outcome:
        """``passed`` when the first is preferred, ``failed`` when the second or neither is, else ``undecided``."""
        if self.preferred is None:
            return "undecided"
        return "passed" if self.preferred == "first" else "failed"

    @property
    def passed(self) -> bool:
        """True only when the first is preferred."""
        return self.preferred == "first"

    @property
    def score(self) -> float | None:
        """1 when the first is preferred, 0 when the second is, 0.5 for a tie; ``None`` when undecided."""
        return None if self.preferred is None else _SCORES[self.preferred]

    @property
    def flipped(self) -> bool | None:
        """True if the two orders disagree; ``None`` where not both were asked and decided."""
        preferences = [order.preferred for order in self.orders]
        return None if len(preferences) < 2 or None in preferences else preferences[0] != preferences[1]

    @property
    def model_differs(self) -> bool:
        """True if, in either order, another model answered than was asked for; see ``JudgeResult``."""
        return any(order.result.model_differs for order in self.orders)

    @property
    def reasoning(self) -> str:
        """The judge's reasons in the order that was asked first."""
        return self.orders[0].result.reasoning if self.orders else ""

    def __bool__(self) -> bool:
        # Without this, every pair would be true, and `if compare_sync(new, old, ...)` would always take the new one.
        return self.passed

    def order(self, name: Order) -> PairOrder:
        """Return the answer in this order. Raises ``KeyError`` if it was not asked.

        Args:
            name: ``ab`` for the first content shown first, ``ba`` for the second.
        """
        for order in self.orders:
            if order.order == name:
                return order
        raise KeyError(f"order {name!r} was not asked; this pair has {[order.order for order in self.orders]}")

    def explain(self) -> str:
        """Explain the preference, or why there is none, in one line."""
        outcome = f"undecided: {self.undecided_because}" if self.preferred is None else f"preferred: {self.preferred}"
        notes = describe_models(self)
        return clean("; ".join([outcome, *([self.detail] if self.detail else []), *notes]), keep_lines=False)

    def to_dict(self) -> dict[str, Any]:
        """Write this pair as plain data that JSON can hold; ``from_dict`` reads it back."""
        return write_record(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back ``data`` that ``to_dict`` wrote; raises ``UsageError`` when it is something else.

        Args:
            data: What ``to_dict`` wrote.
        """
        return read_record(cls, data)

    def __repr__(self) -> str:
        return f"<PairResult {self.judge!r} {self.explain()}>"

    def __rich__(self) -> Any:
        from adjudge.formats.display import draw_pair

        return draw_pair(self)

    def _repr_html_(self) -> str:
        from adjudge.formats.display import render_pair_html

        return render_pair_html(self)


def read_judged(data: Mapping[str, Any]) -> JudgeResult | PairResult:
    """Read a result or a pair from what its ``to_dict`` wrote; raises ``UsageError`` for anything else."""
    if isinstance(data, Mapping) and data.get("schema") == PairResult.schema:
        return PairResult.from_dict(data)
    return read_result(data)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairVerdict:
    """The decision of the orders together."""

    preferred: Preference | None
    because: Reason | None = None
    decided_by: DecidedBy = "judge"
    confidence: float | None = None
    detail: str = ""


def decide_pair(orders: Sequence[PairOrder], on_conflict: OnConflict) -> PairVerdict:
    """Decide a comparison by the answers in its orders; ``on_conflict`` says what it comes to if they disagree.

    If one order is undecided, so is the pair, whatever the other says. Otherwise a judge that was silenced in one order
    would decide by the place that it favours.
    """
    undecided = [order for order in orders if order.preferred is None]
    if undecided:
        return _make_undecided(undecided)
    preferences = [order.preferred for order in orders]
    if len(set(preferences)) == 1:
        confidences = [order.result.confidence for order in orders]
        confidence = None if None in confidences else min(share for share in confidences if share is not None)
        asked_both = len(preferences) > 1
        detail = f"both orders say {preferences[0]}" if asked_both else f"asked in the order {orders[0].order} alone"
        return PairVerdict(preferred=preferences[0], confidence=confidence, detail=detail)
    answers = " and ".join(f"{order.order} says {order.preferred}" for order in orders)
    disagreement = f"the orders disagree: {answers}"
    if on_conflict == "tie":
        return PairVerdict(preferred="tie", decided_by="policy", detail=disagreement)
    return PairVerdict(preferred=None, because="split", decided_by="policy", detail=disagreement)


def _make_undecided(undecided: Sequence[PairOrder]) -> PairVerdict:
    """Make the verdict on a pair from its undecided orders; the gravest of their reasons counts."""
    reasons: list[Reason] = [order.result.undecided_because or "error" for order in undecided]
    details = [
        f"{order.order} is undecided ({reason}): {order.result.detail}"
        for order, reason in zip(undecided, reasons, strict=True)
    ]
    by_policy = any(order.result.decided_by == "policy" for order in undecided)
    return PairVerdict(
        preferred=None,
        because=find_gravest(reasons),
        decided_by="policy" if by_policy else "judge",
        detail="; ".join(details),
    )
