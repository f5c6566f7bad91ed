"""The share of the judgements that reaches each seat of a chain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from adjudge.judges.chain import JudgeChain, list_leaves
from adjudge.judges.chain_outcome import COUNTING
from adjudge.judges.judge import asks_as

CASCADE_HANDED_ON = 0.3
"""The assumed share of judgements that a seat of a cascade hands on to the next."""

FALLBACK_HANDED_ON = 0.02
"""The assumed share of judgements that a seat of a fallback, or a hedged chain, hands on to the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatShare:
    """The share of the judgements for which a seat is asked."""

    expected: float
    least: float
    most: float
    assumed: str = ""
    """The assumption, in words; empty where the share is certain or recorded."""


def list_shares(judge: Any) -> list[tuple[object, SeatShare]]:
    """List the single judges in a judge or chain, in order, each with the share of judgements that it is asked for."""
    if not asks_as(judge, JudgeChain):
        return [(leaf, SeatShare(expected=1.0, least=1.0, most=1.0)) for leaf in list_leaves(judge)]
    shares: list[tuple[object, SeatShare]] = []
    for place, (_, seat) in enumerate(judge.seats):
        for leaf, inner in list_shares(seat):
            shares.append((leaf, _compute_share(inner, judge.strategy, place)))
    return shares


def _compute_share(inner: SeatShare, strategy: str, place: int) -> SeatShare:
    """Compute the share for which a judge in a chain is asked; its seat is at ``place`` in the chain, from 0.

    ``inner`` is the share for which the judge is asked each time that its seat is.
    """
    if strategy in COUNTING or place == 0:
        return inner
    share_handed_on = CASCADE_HANDED_ON if strategy == "cascade" else FALLBACK_HANDED_ON
    step = "goes on to the next seat of the cascade" if strategy == "cascade" else "goes on to the next seat"
    assumption = f"assumed: {100 * share_handed_on:g} % of what a seat judges {step}"
    expected = inner.expected * share_handed_on**place
    return SeatShare(expected=expected, least=0.0, most=inner.most, assumed=assumption)
