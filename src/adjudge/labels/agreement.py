"""The agreement of people with each other, while they label."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

from adjudge.dataset.label import Label
from adjudge.errors import UsageError
from adjudge.formats.record import write_record
from adjudge.labels.truth import find_truths
from adjudge.trust.coefficients import compute_gwet_ac1
from adjudge.trust.confusion import make_confusion
from adjudge.trust.intervals import Share


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelAgreement:
    """The agreement of people who labelled the same cases; adjudications are left out."""

    schema: ClassVar[str] = "adjudge/label-agreement/1"

    agreed: Share
    """The share of the cases with two or more labels whose labels are all the same."""
    ac1: float | None = None
    """Gwet's AC1 over all pairs of people, from -1 to 1; ``None`` where it is not defined, and without
    ``adjudge[trust]``."""

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


def compute_label_agreement(labels: Iterable[Label], *, criterion: str | None = None) -> LabelAgreement:
    """Compute how far people agree, for one criterion or (``None``) for the whole case.

    Do not show it to somebody who is still labelling: from one label to the next it says what others said.

    Args:
        labels: The labels of all raters.
        criterion: The criterion; ``None`` is the whole case.
    """
    agreed = compared = 0  # cases on which all people agree, and cases with two labels or more
    pairs: list[tuple[str, str]] = []
    for truth in find_truths(labels, criterion=criterion).values():
        values = [str(label.value) for label in truth.labels]
        if len(values) >= 2:
            compared += 1
            agreed += not truth.differs
            pairs += combinations(values, 2)
    return LabelAgreement(agreed=Share(count=agreed, of=compared), ac1=_compute_ac1(pairs))


def _compute_ac1(pairs: list[tuple[str, str]]) -> float | None:
    """Compute Gwet's AC1 from pairs of labels that two people gave one case; ``None`` where it is not defined."""
    # Both ways round: which of two people comes first means nothing.
    both_orders = [pair for first, second in pairs for pair in ((first, second), (second, first))]
    one_side, other_side = [first for first, _ in both_orders], [second for _, second in both_orders]
    try:
        return compute_gwet_ac1(make_confusion(one_side, other_side))
    except UsageError:  # no case has two labels, everybody said one thing, or adjudge[trust] is not installed
        return None
