"""What a comparison is: which of two contents is preferred, and what was said in either order.

Judges favour a place: many prefer what they are shown first. So a comparison is asked in both orders, and what each
order said is kept in terms of the contents and not of the places. Everything that can be computed from the preference
(outcome, score) is computed, so that no file can hold a pair whose parts disagree about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal, Self, get_args

from adjudge.errors import Reason, UsageError
from adjudge.formats.display import describe_models
from adjudge.formats.plain import to_plain
from adjudge.formats.text import clean
from adjudge.formats.typed import read_typed
from adjudge.result import REASONS, DecidedBy, JudgeResult, Outcome, Usage, find_gravest, is_share, make_id, read_result

Preference = Literal["first", "second", "tie"]

Order = Literal["ab", "ba"]

OnConflict = Literal["tie", "undecided"]


PREFERENCES: tuple[Preference, ...] = get_args(Preference)

_SWAPPED: Mapping[object, Preference] = {"first": "second", "second": "first", "tie": "tie"}

_SCORES: Mapping[Preference, float] = {"first": 1.0, "tie": 0.5, "second": 0.0}

_WRITTEN = ("id", "created_at", "preferred", "judge")
"""What every written pair has; a default would make up an identity, or a time."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairOrder:
    """A judge's answer about two contents in one order."""

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
        """This value as plain data."""
        return {"order": self.order, "preferred": self.preferred, "result": self.result.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back what ``to_dict`` wrote; raises ``UsageError`` for anything else."""
        if not isinstance(data, Mapping) or data.get("order") not in get_args(Order):
            raise UsageError("an order of a pair is a dictionary whose 'order' is 'ab' or 'ba'; this is something else")
        return cls(order=data["order"], result=read_result(data.get("result", {})))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PairResult:
    """Which of two contents a judge prefers; made by ``compare``.

    The outcome answers "is the first better?": ``passed`` if the first is preferred, ``failed`` if the second is
    preferred or neither, ``undecided`` if the judge could not tell. So ``if compare_sync(new, old, ...)`` is true only
    if the new one is better.
    """

    schema: ClassVar[str] = "adjudge/pair/1"

    preferred: Preference | None
    """``first``, ``second`` or ``tie``; ``None`` when undecided."""
    judge: str
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
    usage: Usage | None = None
    """Of both orders together."""
    subject: str | None = None
    """SHA-256 of both contents together."""
    subjects: tuple[str, ...] = ()
    """SHA-256 of the first content, and of the second."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    id: str = field(default_factory=make_id)
    created_at: datetime = field(default_factory=_now)

    def __post_init__(self) -> None:
        if self.preferred is not None and self.preferred not in PREFERENCES:
            raise UsageError(f"preferred must be first, second, tie or None, got {self.preferred!r}")
        if self.undecided_because is not None and self.undecided_because not in REASONS:
            raise UsageError(f"undecided_because must be one of {', '.join(REASONS)}, got {self.undecided_because!r}")
        if (self.preferred is None) != (self.undecided_because is not None):
            raise UsageError("a pair has either a preference or a reason why it is undecided, and not both")
        able = {settle_orders(self.orders, way).preferred for way in get_args(OnConflict)} if self.orders else {None}
        if self.preferred not in able:
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
        """Whether the two orders disagree; ``None`` where not both were asked and decided."""
        said = [item.preferred for item in self.orders]
        return None if len(said) < 2 or None in said else said[0] != said[1]

    @property
    def model_differs(self) -> bool:
        """Whether, in either order, another model answered than was asked for; see ``JudgeResult``."""
        return any(item.result.model_differs for item in self.orders)

    @property
    def reasoning(self) -> str:
        """The judge's reasons in the order that was asked first."""
        return self.orders[0].result.reasoning if self.orders else ""

    def __bool__(self) -> bool:
        # Without this every pair is true, and `if compare_sync(new, old, ...)` takes the new one whatever was said.
        return self.passed

    def order(self, name: Order) -> PairOrder:
        """Return the answer in this order. Raises ``KeyError`` if it was not asked."""
        for item in self.orders:
            if item.order == name:
                return item
        raise KeyError(f"order {name!r} was not asked; this pair has {[item.order for item in self.orders]}")

    def explain(self) -> str:
        """The preference, or why there is none, and how it came about, in one line."""
        said = f"undecided: {self.undecided_because}" if self.preferred is None else f"preferred: {self.preferred}"
        notes = describe_models(self)
        return clean("; ".join([said, *([self.detail] if self.detail else []), *notes]), keep_lines=False)

    def to_dict(self) -> dict[str, Any]:
        """This pair as plain data that JSON can hold; ``from_dict`` reads it back."""
        data: dict[str, Any] = {"schema": self.schema}
        data |= {item.name: to_plain(getattr(self, item.name)) for item in fields(self) if item.name != "orders"}
        data["orders"] = [item.to_dict() for item in self.orders]
        return data | {
            "outcome": self.outcome,
            "passed": self.passed,
            "score": self.score,
            "flipped": self.flipped,
            "model_differs": self.model_differs,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back what ``to_dict`` wrote; raises ``UsageError`` when it is something else."""
        if not isinstance(data, Mapping) or data.get("schema") != cls.schema:
            raise UsageError(f"a pair is read from a dictionary of the schema {cls.schema}; this is something else")
        if not isinstance(data.get("orders"), list | tuple):
            raise UsageError("the orders of a pair are a list; this dictionary has none")
        for name in _WRITTEN:
            if name not in data:
                raise UsageError(f"this is not a dictionary that PairResult.to_dict wrote: it has no {name!r}")
        orders = tuple([PairOrder.from_dict(item) for item in data["orders"]])
        known = {item.name: data[item.name] for item in fields(cls) if item.name in data and item.name != "orders"}
        # The preference is put in with its orders, which it has to follow from.
        bare = known | {"orders": (), "preferred": None, "undecided_because": "error"}
        given = {name: known.get(name) for name in ("preferred", "undecided_because")}
        try:
            return replace(read_typed(bare, cls), orders=orders, **given)
        except (AttributeError, TypeError, ValueError) as error:
            said = clean(" ".join(str(error).split())[:200], keep_lines=False)
            raise UsageError(f"this is not a dictionary that PairResult.to_dict wrote: {said}") from None

    def __repr__(self) -> str:
        return f"<PairResult {self.judge!r} {self.explain()}>"

    def __rich__(self) -> Any:
        from adjudge.formats.display import draw_pair

        return draw_pair(self)

    def _repr_html_(self) -> str:
        from adjudge.formats.display import render_pair_html

        return render_pair_html(self)


def read_judged(data: Mapping[str, Any]) -> JudgeResult | PairResult:
    """A result or a pair from what its ``to_dict`` wrote; raises ``UsageError`` for anything else."""
    if isinstance(data, Mapping) and data.get("schema") == PairResult.schema:
        return PairResult.from_dict(data)
    return read_result(data)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairVerdict:
    """What the orders come to together."""

    preferred: Preference | None
    because: Reason | None = None
    decided_by: DecidedBy = "judge"
    confidence: float | None = None
    detail: str = ""


def settle_orders(orders: Sequence[PairOrder], on_conflict: OnConflict) -> PairVerdict:
    """What one order, or two, decide together; never half an answer.

    An order that is undecided makes the pair undecided, whatever the other says: a judge that was silenced in one
    order would otherwise decide by its favourite place. Two that disagree are an even split.
    """
    silent = [item for item in orders if item.preferred is None]
    if silent:
        return _settle_silence(silent)
    said = [item.preferred for item in orders]
    if len(set(said)) == 1:
        sure = [item.result.confidence for item in orders]
        known = None if None in sure else min(item for item in sure if item is not None)
        how = f"both orders say {said[0]}" if len(said) > 1 else f"asked in the order {orders[0].order} alone"
        return PairVerdict(preferred=said[0], confidence=known, detail=how)
    shown = " and ".join(f"{item.order} says {item.preferred}" for item in orders)
    detail = f"the orders disagree: {shown}"
    if on_conflict == "tie":
        return PairVerdict(preferred="tie", decided_by="policy", detail=detail)
    return PairVerdict(preferred=None, because="split", decided_by="policy", detail=detail)


def _settle_silence(silent: Sequence[PairOrder]) -> PairVerdict:
    reasons: list[Reason] = [item.result.undecided_because or "error" for item in silent]
    pairs = zip(silent, reasons, strict=True)
    said = "; ".join([f"{item.order} is undecided ({why}): {item.result.detail}" for item, why in pairs])
    by: DecidedBy = "policy" if any(item.result.decided_by == "policy" for item in silent) else "judge"
    return PairVerdict(preferred=None, because=find_gravest(reasons), decided_by=by, detail=said)
