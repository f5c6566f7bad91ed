"""Chains as trees: leaves say what a judge will say, nodes say how they are chained."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args

from hypothesis import strategies as st

from adjudge import JudgeChain, JudgeResult
from adjudge.errors import Reason
from kit.judges import Seat

REASONS: tuple[str, ...] = get_args(Reason)
COUNTED = ("consensus", "majority", "quorum")
ENDINGS = ("tampering", "contradiction")

SILENCES = tuple(reason for reason in REASONS if reason != "cancelled")
"""The reasons that a judge can give of itself; only a chain says cancelled."""


@dataclass(frozen=True, kw_only=True)
class Leaf:
    says: str
    """``passed``, ``failed``, or the reason for being undecided."""
    confidence: float | None = None


@dataclass(frozen=True, kw_only=True)
class Node:
    strategy: str
    seats: tuple[Any, ...]
    more: tuple[tuple[str, Any], ...] = ()

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.more)


def leaf_trees(says: tuple[str, ...]) -> st.SearchStrategy[Leaf]:
    weighted = ("passed", "passed", "failed", *says)
    sureness = st.sampled_from((None, 0.2, 0.5, 0.8, 1.0))
    return st.builds(Leaf, says=st.sampled_from(weighted), confidence=sureness)


@st.composite
def nodes(draw: Any, seats: st.SearchStrategy[Any], strategies: tuple[str, ...]) -> Node:
    children = tuple(draw(st.lists(seats, min_size=1, max_size=4)))
    strategy = draw(st.sampled_from(strategies))
    more: dict[str, Any] = {}
    if strategy == "quorum":
        more["quorum"] = draw(st.integers(1, len(children)))
    if strategy == "hedged":
        more["hedge_after"] = draw(st.sampled_from((0.1, 1.0, 3.0, 50.0)))
    if strategy == "cascade":
        more["escalate_below"] = draw(st.sampled_from((0.0, 0.5, 0.8)))
        more |= {"abstain_below": 0.5} if draw(st.booleans()) else {}
    return Node(strategy=strategy, seats=children, more=tuple(more.items()))


def trees(
    strategies: tuple[str, ...], *, reasons: tuple[str, ...] = SILENCES, depth: int = 3
) -> st.SearchStrategy[Node]:
    """Trees of at most ``depth`` levels of chains."""
    seats: st.SearchStrategy[Any] = leaf_trees(reasons)
    for _ in range(depth - 1):
        seats = seats | nodes(seats, strategies)
    return nodes(seats, strategies)


CLOCKLESS = (*COUNTED, "fallback", "cascade")
EVERY = (*CLOCKLESS, "hedged")
MILD = tuple(reason for reason in SILENCES if reason not in ENDINGS)
SEEDS = st.integers(0, 2**32)


def build(tree: Any, seats: list[Seat], rolled: random.Random, **options: Any) -> Any:
    """The tree as seats and chains; every leaf takes a time of its own, so no two things happen at once."""
    if isinstance(tree, Leaf):
        decided = tree.says in ("passed", "failed")
        says = {"outcome": tree.says} if decided else {"outcome": "undecided", "because": tree.says}
        seats.append(Seat(**says, delay=rolled.uniform(0.1, 10.0), confidence=tree.confidence))
        return seats[-1]
    inner = {name: value for name, value in options.items() if name not in ("fail_open", "deadline")}
    inside = [build(seat, seats, rolled, **inner) for seat in tree.seats]
    timed = {"timeout": None, **options}
    return JudgeChain(inside, strategy=tree.strategy, **tree.options, **timed)


def walk(result: JudgeResult) -> Iterator[JudgeResult]:
    yield result
    for seat in getattr(result, "results", ()):
        yield from walk(seat)
