"""The step that a policy chooses."""

from __future__ import annotations

from itertools import combinations_with_replacement, permutations, product
from typing import Any

import pytest

from adjudge import JudgeChain
from adjudge.guards import Policy
from adjudge.guards.gate_policy import choose_step, was_failed_by_rule
from kit.approvals import make_result
from kit.gates import Desk, check, gate
from kit.judges import Seat, passed, silent

POLICIES = [
    {"on_failed": on_failed, "on_undecided": on_undecided, "on_tampering": on_tampering}
    for on_failed, on_undecided, on_tampering in product(("block", "ask"), ("block", "allow", "ask"), ("block", "ask"))
]


CLOSED = POLICIES[0]


OPENING = [policy for policy in POLICIES if policy != CLOSED]


def panel(*seats: Seat, strategy: Any = "majority", **more: Any) -> JudgeChain:
    return JudgeChain(list(seats), strategy=strategy, timeout=None, **more)


def make(kind: str, delay: float) -> Seat:
    return Seat(kind, delay=delay) if kind in ("passed", "failed") else silent(kind, delay=delay)  # type: ignore[arg-type]


SHAPES = [
    lambda inner: inner,
    lambda inner: JudgeChain([inner, passed(delay=1.5)], timeout=None),
    lambda inner: JudgeChain([inner, silent(delay=1.5)], strategy="consensus", timeout=None),
]


KINDS = ("passed", "failed", "error", "tampering", "contradiction")


@pytest.mark.parametrize("shape", SHAPES, ids=["alone", "in-a-fallback", "in-a-consensus"])
@pytest.mark.parametrize("strategy", ["consensus", "majority", "quorum"])
def test_every_order_of_three_answers_decides_the_same(strategy: str, shape: Any):
    """The whole table: every three answers, in every order, under every policy of a gate that is not closed."""
    more = {"quorum": 2} if strategy == "quorum" else {}
    for says in combinations_with_replacement(KINDS, 3):
        decided = set()
        for delays in permutations((1.0, 2.0, 3.0)):
            seats = [make(kind, delay) for kind, delay in zip(says, delays, strict=True)]
            chain = shape(panel(*seats, strategy=strategy, **more))
            result = check(gate(judge=chain, approvals=Desk(), wait=False, **OPENING[0])).result
            assert result is not None
            decided.add(tuple(choose_step(result, Policy(**policy))[0] for policy in OPENING))
        assert len(decided) == 1, says


@pytest.mark.parametrize(("outcome", "by", "expected"), [
    ("failed", "rule", True), ("passed", "rule", False), ("failed", "judge", False), ("passed", "judge", False),
])  # fmt: skip
def test_only_a_failure_by_a_rule_is_one(outcome: Any, by: Any, expected: bool):
    """People are told that a rule held it back where one did, and not where a rule passed it."""
    result = make_result(outcome, decided_by=by)

    assert was_failed_by_rule(result) is expected
