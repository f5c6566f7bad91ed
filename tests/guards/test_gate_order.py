"""Who answers first decides nothing: a gate hears everybody who might object before it opens or asks a person."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import permutations, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge import JudgeChain, JudgeChainResult, JudgeResult
from kit.chain_trees import CLOCKLESS, ENDINGS, SEEDS, Node, build, trees, walk
from kit.gates import Desk, check, gate, word
from kit.judges import Seat, failed, passed, silent
from kit.loops import run_virtual

POLICIES = [
    {"on_failed": on_failed, "on_undecided": on_undecided, "on_tampering": on_tampering}
    for on_failed, on_undecided, on_tampering in product(("block", "ask"), ("block", "allow", "ask"), ("block", "ask"))
]
CLOSED = POLICIES[0]
OPENING = [policy for policy in POLICIES if policy != CLOSED]


def decide(chain: Any, **policy: Any) -> str:
    """Allowed, blocked, or held back for a person."""
    return word(check(gate(judge=chain, approvals=Desk(), wait=False, **policy)))[0]


def seats_of(result: JudgeResult) -> dict[str, str]:
    """What each judge at the ends said, by name."""
    return {
        item.judge: item.undecided_because or item.outcome
        for item in walk(result)
        if not isinstance(item, JudgeChainResult)
    }


def panel(*seats: Seat, strategy: Any = "majority", **more: Any) -> JudgeChain:
    return JudgeChain(list(seats), strategy=strategy, timeout=None, **more)


# ---------------------------------------------------------------- the kind


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(tree=trees(CLOCKLESS), policy=st.sampled_from(POLICIES), seeds=st.tuples(SEEDS, SEEDS))
def test_finishing_order_changes_no_decision(tree: Node, policy: dict[str, Any], seeds: tuple[int, int]):
    """Without limits and hedging, allow, ask and block are the same whoever is quicker, in any nesting."""
    decided = {decide(build(tree, [], random.Random(seed)), **policy) for seed in seeds}

    assert len(decided) == 1


@settings(max_examples=200, deadline=None)
@given(tree=trees((*CLOCKLESS, "hedged")), policy=st.sampled_from(OPENING), seed=SEEDS)
def test_no_policy_opens_over_what_it_has_not_heard(tree: Node, policy: dict[str, Any], seed: int):
    """What a policy lets through holds no seat that objected, and none that a counting chain stopped."""
    decision = check(gate(judge=build(tree, [], random.Random(seed)), approvals=Desk(), wait=False, **policy))

    if decision.allowed and decision.decided_by == "policy":
        results = list(walk(decision.result))
        assert not [item for item in results if item.outcome == "failed" or item.undecided_because in ENDINGS]
        counted = [item for item in results if getattr(item, "strategy", "") in ("consensus", "majority", "quorum")]
        assert all(item.cut_short or "cancelled" not in seats_of_chain(item) for item in counted)


def seats_of_chain(result: JudgeChainResult) -> list[str | None]:
    return [item.undecided_because for item in result.results]


def make(kind: str, delay: float) -> Seat:
    return Seat(kind, delay=delay) if kind in ("passed", "failed") else silent(kind, delay=delay)  # type: ignore[arg-type]


SHAPES = [
    lambda inner: inner,
    lambda inner: JudgeChain([inner, passed(delay=1.5)], timeout=None),
    lambda inner: JudgeChain([inner, silent(delay=1.5)], strategy="consensus", timeout=None),
]


# ---------------------------------------------------------------- by name


@pytest.mark.parametrize("strategy", ["majority", "quorum"])
@pytest.mark.parametrize("late", ["failed", "tampering", "contradiction"])
@pytest.mark.parametrize("shape", SHAPES[::2], ids=["alone", "nested"])
def test_a_slow_objection_keeps_the_gate_closed(strategy: str, late: str, shape: Any):
    """Two seats fail at once, so the chain is hopeless; the third, 50 ms later, would have said no."""
    more = {"quorum": 2} if strategy == "quorum" else {}
    chain = shape(panel(silent(), silent(), make(late, 0.05), strategy=strategy, **more))

    assert decide(chain, on_undecided="allow") == "blocked"


@pytest.mark.parametrize(
    "chain",
    [
        panel(silent(), silent(), silent("tampering", delay=0.05)),
        panel(failed(), failed(), silent("tampering", delay=0.05)),
    ],
    ids=["hopeless", "failed"],
)
def test_nobody_is_asked_about_what_a_slow_seat_saw_as_tampering(chain: JudgeChain):
    """``on_tampering="block"`` holds whoever is quicker, over a chain that cannot decide and over one that failed."""
    assert decide(chain, on_failed="ask", on_undecided="ask", on_tampering="block") == "blocked"
    assert decide(chain, on_failed="ask", on_undecided="ask", on_tampering="ask") == "pending"


class Aside:
    """A judge of somebody's own around a chain; it may hand on the question that it was asked, or only its text."""

    name = "aside"

    def __init__(self, chain: JudgeChain, *, hands_on: bool) -> None:
        self.chain, self.hands_on = chain, hands_on

    async def ask(self, question: Any, /) -> JudgeResult:
        result = await self.chain.ask(question if self.hands_on else replace(question, wants_objections=False))
        return replace(result, judge=self.name)


@pytest.mark.parametrize("hands_on", [True, False])
@pytest.mark.parametrize("late", ["passed", "failed", "tampering"])
@pytest.mark.parametrize("policy", OPENING, ids=lambda policy: "-".join(policy.values()))
def test_a_judge_that_hides_a_chain_opens_nothing(hands_on: bool, late: str, policy: dict[str, Any]):
    """Where it stopped a seat, the strictest counts of what that one may have said; else what it said."""
    inner = panel(silent(), silent(), make(late, 0.05))
    decided = decide(Aside(inner, hands_on=hands_on), **policy)
    strictest = {
        decide(panel(silent(), silent(), make(kind, 0.0)), **policy) for kind in ("passed", "failed", "tampering")
    }

    if hands_on:
        assert decided == decide(panel(silent(), silent(), make(late, 0.0)), **policy)
    else:
        assert decided == ("blocked" if "blocked" in strictest else "pending")


@pytest.mark.parametrize("delays", list(permutations((0.1, 0.2))))
def test_a_hidden_chain_inside_others_is_heard_too(delays: tuple[float, float]):
    """A quorum behind a judge of somebody's own waits although it has passed: what is around it may not pass."""
    inner = panel(passed(delay=delays[0]), silent(delay=delays[1]), strategy="quorum", quorum=1)
    chain = JudgeChain([Aside(inner, hands_on=True), silent()], strategy="consensus")

    assert decide(chain, on_undecided="allow") == "allowed"


@pytest.mark.parametrize("beside", [[], [silent()], [silent(), silent()]], ids=len)
@pytest.mark.parametrize("strategy", ["fallback", "majority", "consensus"])
@pytest.mark.parametrize("nested", [False, True])
def test_a_hidden_chain_that_failed_is_heard_before_a_limit(strategy: Any, beside: list[Seat], nested: bool):
    """It waits for nobody else: the limit around the judge that hides it would take its failure, and a policy open."""
    inner = panel(failed(), silent(delay=9.0), strategy="consensus")
    hidden = Aside(JudgeChain([inner], timeout=None) if nested else inner, hands_on=True)
    more = {"strategy": strategy, "timeout": 0.3}

    assert not run_virtual(JudgeChain([hidden, *beside], fail_open=True, **more).ask("Safe?")).passed
    assert decide(JudgeChain([hidden, *beside], **more), on_undecided="allow") == "blocked"


# ---------------------------------------------------------------- what stays as it is


@pytest.mark.parametrize("policy", [*OPENING, CLOSED], ids=lambda policy: "-".join(policy.values()))
def test_a_pass_still_stops_early(policy: dict[str, Any]):
    """A gate does not pay every seat for every pass, in chains inside chains neither."""
    slow = [passed(delay=50.0) for _ in range(3)]
    inner = panel(passed(), passed(), slow[0])
    for chain in (
        panel(passed(), passed(), slow[0]),
        JudgeChain([inner]),
        panel(inner, passed(delay=1.0), strategy="consensus"),
        panel(panel(inner, slow[1], strategy="quorum", quorum=1), slow[2], strategy="quorum", quorum=1),
        JudgeChain([silent(), Aside(inner, hands_on=True)]),
    ):
        assert decide(chain, **policy) == "allowed"
    assert [seat.answered for seat in slow] == [[], [], []]


def test_a_closed_gate_still_stops_early():
    """Where only a pass gets through, nobody need know who else would have objected."""
    slow = failed(delay=50.0)
    for others in ([silent(), silent()], [failed(), failed()]):
        for chain in (panel(*others, slow), JudgeChain([panel(*others, slow)]), panel(panel(*others, slow), failed())):
            assert decide(chain, **CLOSED) == "blocked"
    assert slow.answered == []


def test_a_closed_gate_hears_who_would_end_a_sequence():
    """A seat that saw tampering ends a fallback, whoever is quicker; the last of a sequence ends it anyway."""
    for late in (0.0, 0.05):
        chain = JudgeChain([panel(silent(delay=0.02), silent(delay=0.02), silent("tampering", delay=late)), passed()])
        assert decide(chain, **CLOSED) == "blocked"


@pytest.mark.parametrize("limits", [{"timeout": 1.0}, {"timeout": None, "deadline": 1.0}], ids=["timeout", "deadline"])
def test_what_is_late_may_still_be_opened(limits: dict[str, Any]):
    """A limit around an inner chain makes it undecided: timeout, and so whatever was running inside it."""
    for inner in (
        panel(passed(delay=50), passed(delay=50), passed(delay=50)),
        panel(silent("timeout"), silent("timeout"), passed(delay=50)),
        panel(silent(), panel(passed(), passed(delay=50), strategy="consensus"), passed(delay=50)),
    ):
        chain = JudgeChain([inner], **limits)
        assert decide(chain, on_undecided="allow") == "allowed"
        assert decide(chain, on_undecided="ask") == "pending"


def test_no_limit_takes_back_what_is_decided_while_others_are_heard():
    """A failed inner chain stays failed: a policy for what could not be decided must not get hold of it."""
    inner = panel(failed(), failed(), passed(delay=50))
    for chain in (
        JudgeChain([inner], timeout=1.0),
        JudgeChain([inner, passed(delay=2.0)], strategy="hedged", hedge_after=0.5),
    ):
        assert decide(chain, on_undecided="ask") == "blocked"
        assert decide(chain, on_undecided="ask", on_failed="ask") == "pending"


def test_a_hedged_chain_still_cuts_its_slower_seat():
    """That is what it is for, and its page says so."""
    slow = failed(delay=50)
    hedged = JudgeChain([slow, silent("unsure", delay=1.0)], strategy="hedged", hedge_after=0.5, timeout=None)
    quick = JudgeChain([slow, passed(delay=1.0)], strategy="hedged", hedge_after=0.5, timeout=None)

    assert decide(panel(quick, silent(), silent(), strategy="consensus"), on_undecided="allow") == "allowed"
    assert slow.answered == []
    assert decide(hedged, on_undecided="allow") == "blocked"
