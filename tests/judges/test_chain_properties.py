"""What holds for every chain: any strategy, any nesting, any order of answers, any clock."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge import JudgeChain, JudgeChainResult
from kit.chain_trees import (
    CLOCKLESS,
    COUNTED,
    ENDINGS,
    EVERY,
    MILD,
    REASONS,
    SEEDS,
    SILENCES,
    Leaf,
    Node,
    build,
    leaf_trees,
    trees,
    walk,
)
from kit.judges import Seat
from kit.loops import run_virtual

# A chain under test is a tree: leaves say what a judge will say, nodes say how they are chained. The reference below
# computes what a tree decides from the table in the design, without a clock and without looking at the package.


@dataclass(frozen=True, kw_only=True)
class Said:
    outcome: str
    because: str | None = None
    confidence: float | None = None


# ---------------------------------------------------------------- the reference


def expect(tree: Any) -> Said:
    """What a tree decides when everybody answers; for every strategy that does not look at a clock."""
    if isinstance(tree, Leaf):
        decided = tree.says in ("passed", "failed")
        return Said(outcome=tree.says, confidence=tree.confidence) if decided else silence(tree.says)
    heard = [expect(seat) for seat in tree.seats]
    if tree.strategy in COUNTED:
        return expect_count(tree, heard)
    return expect_walk(heard) if tree.strategy == "fallback" else expect_cascade(tree, heard)


def silence(*reasons: str | None) -> Said:
    known = [reason for reason in REASONS if reason in reasons]
    return Said(outcome="undecided", because=known[0] if known else "split")


def numbers(tree: Node) -> tuple[int, int]:
    n = len(tree.seats)
    if tree.strategy == "consensus":
        return n, 1
    if tree.strategy == "majority":
        return n // 2 + 1, n // 2 + 1
    k = tree.options["quorum"]
    return k, n - k + 1


def expect_count(tree: Node, heard: list[Said]) -> Said:
    outcomes = [item.outcome for item in heard]
    for outcome, number in zip(("passed", "failed"), numbers(tree), strict=True):
        if outcomes.count(outcome) >= number:
            return Said(outcome=outcome, confidence=outcomes.count(outcome) / len(outcomes))
    return silence(*(item.because for item in heard))


def expect_walk(heard: list[Said]) -> Said:
    for place, item in enumerate(heard):
        if item.outcome != "undecided":
            return item
        if item.because in ENDINGS:
            return silence(*(each.because for each in heard[: place + 1]))
    return silence(*(item.because for item in heard))


def expect_cascade(tree: Node, heard: list[Said]) -> Said:
    needed = tree.options["escalate_below"]
    for place, item in enumerate(heard):
        last = place == len(heard) - 1
        asked = heard[: place + 1]
        if item.because in ENDINGS or (last and item.outcome == "undecided"):
            failed = [each for each in asked if each.outcome == "failed"]
            return failed[-1] if failed else silence(*(each.because for each in asked))
        if item.outcome == "undecided":
            continue
        sure = item.confidence if item.confidence is not None else -1.0
        if last:
            abstains = sure < tree.options.get("abstain_below", -1.0)
            return silence("unsure") if abstains else item
        if sure >= needed:
            return item
    raise AssertionError("a cascade has a last seat")


def expect_hedged(leaves: list[Leaf], delays: list[float], hedge_after: float) -> str:
    """The outcome of a flat hedged chain whose seats never answer at the same moment, event by event."""
    now, starts, ends = 0.0, [0.0], [delays[0]]
    while True:
        running = [end for end in ends if end > now]
        late = starts[-1] + hedge_after if len(starts) < len(leaves) else float("inf")
        if not running and late == float("inf"):
            return "undecided"
        now = min([*running, late])
        if now in ends:
            seat = ends.index(now)
            if leaves[seat].says in ("passed", "failed"):
                return leaves[seat].says
            if leaves[seat].says in ENDINGS:
                return "undecided"
        if len(starts) < len(leaves) and (now == late or now == ends[-1]):
            starts.append(now)
            ends.append(now + delays[len(starts) - 1])


# ---------------------------------------------------------------- making trees


def ask(tree: Node, seed: int = 0, **options: Any) -> tuple[JudgeChainResult, list[Seat]]:
    """A tree's result and its leaves, with answers in the order that a seed gives."""
    seats: list[Seat] = []
    chain = build(tree, seats, random.Random(seed), **options)
    return run_virtual(chain.ask("Is it good?")), seats


def change(tree: Any, rule: Mapping[str, str], rolled: random.Random) -> Any:
    """The tree with some of its leaves saying what ``rule`` makes of what they say."""
    if isinstance(tree, Leaf):
        says = tree.says if tree.says in ("passed", "failed") else "undecided"
        return replace(tree, says=rule[says]) if says in rule and rolled.random() < 0.6 else tree
    return replace(tree, seats=tuple(change(seat, rule, rolled) for seat in tree.seats))


def shuffle(tree: Any, rolled: random.Random) -> Any:
    """The tree with the seats of its counting chains in another order."""
    if isinstance(tree, Leaf):
        return tree
    seats = [shuffle(seat, rolled) for seat in tree.seats]
    if tree.strategy in COUNTED:
        rolled.shuffle(seats)
    return replace(tree, seats=tuple(seats))


# ---------------------------------------------------------------- the table


@settings(max_examples=400)
@given(tree=trees(CLOCKLESS), seed=SEEDS)
def test_a_chain_decides_what_the_table_says(tree: Node, seed: int):
    """With everybody asked, outcome, reason and confidence are those of the reference, in any nesting and order."""
    result, _ = ask(tree, seed, stop_early=False)

    assert Said(outcome=result.outcome, because=result.undecided_because, confidence=result.confidence) == expect(tree)


@settings(max_examples=300)
@given(tree=trees(CLOCKLESS, depth=1), seed=SEEDS)
def test_stopping_early_changes_no_outcome(tree: Node, seed: int):
    """For every finishing order, the chain that stops when it is settled decides what the full count decides."""
    result, _ = ask(tree, seed)

    assert result.outcome == expect(tree).outcome


@settings(max_examples=300)
@given(tree=trees((*COUNTED, "fallback"), reasons=MILD), seed=SEEDS)
def test_stopping_early_changes_no_outcome_of_chains_inside_chains(tree: Node, seed: int):
    """The same in any nesting, where no seat is tampered with."""
    result, _ = ask(tree, seed)

    assert result.outcome == expect(tree).outcome


@settings(max_examples=300)
@given(data=st.data(), seed=SEEDS, early=st.booleans())
def test_a_hedged_chain_decides_what_its_clock_says(data: Any, seed: int, early: bool):
    """The first to decide wins; the next starts when the last is late or could not decide."""
    leaves = data.draw(st.lists(leaf_trees(SILENCES), min_size=1, max_size=5))
    after = data.draw(st.sampled_from((0.05, 1.0, 3.0, 100.0)))
    tree = Node(strategy="hedged", seats=tuple(leaves), more=(("hedge_after", after),))

    result, seats = ask(tree, seed, stop_early=early)

    assert result.outcome == expect_hedged(leaves, [seat.delay for seat in seats], after)


# ---------------------------------------------------------------- what can never make a pass


@settings(max_examples=400)
@given(tree=trees(EVERY), seed=SEEDS, early=st.booleans(), deadline=st.none() | st.floats(0.2, 30))
def test_closed_a_pass_has_a_judge_that_passed(tree: Node, seed: int, early: bool, deadline: float | None):
    """Whatever the nesting, the clock and the reasons, nothing passes unless one of the judges at the ends did."""
    result, seats = ask(tree, seed, stop_early=early, deadline=deadline)

    if result.passed:
        assert any(seat.answered and seat.says["outcome"] == "passed" for seat in seats)


@settings(max_examples=300)
@given(tree=trees(COUNTED), seed=SEEDS, early=st.booleans())
def test_permuting_counted_seats_changes_nothing(tree: Node, seed: int, early: bool):
    """The order of seats in counting chains does not matter, at any depth."""
    rolled = random.Random(seed)

    one, _ = ask(tree, seed, stop_early=early)
    other, _ = ask(shuffle(tree, rolled), seed + 1, stop_early=early)

    assert other.outcome == one.outcome


@settings(max_examples=400)
@given(
    tree=trees(COUNTED),
    seed=SEEDS,
    early=st.booleans(),
    rule=st.sampled_from(({"failed": "error"}, {"passed": "timeout"}, {"undecided": "tampering"})),
)
def test_silencing_counted_judges_makes_no_pass(tree: Node, seed: int, early: bool, rule: dict[str, str]):
    """Where judges are counted, silencing one that failed, or one that passed, never makes a pass of anything else."""
    before, _ = ask(tree, seed, stop_early=early)
    after, _ = ask(change(tree, rule, random.Random(seed)), seed, stop_early=early)

    assert before.passed or not after.passed


@settings(max_examples=400)
@given(tree=trees((*COUNTED, "fallback")) | trees(("cascade",), depth=1), seed=SEEDS, reason=st.sampled_from(SILENCES))
def test_silencing_a_judge_that_passed_makes_no_pass(tree: Node, seed: int, reason: str):
    """A judge that would have passed and could not answer makes nothing pass.

    (Not so a chain inside a cascade: where an unsure judge falls silent, a fallback asks the next, who may be sure.)
    """
    before, _ = ask(tree, seed, stop_early=False)
    after, _ = ask(change(tree, {"passed": reason}, random.Random(seed)), seed, stop_early=False)

    assert before.passed or not after.passed


@settings(max_examples=300)
@given(tree=trees(("hedged",), depth=1), seed=SEEDS, reason=st.sampled_from(SILENCES), early=st.booleans())
def test_silencing_a_hedged_judge_that_passed_makes_no_pass(tree: Node, seed: int, reason: str, early: bool):
    """The same for a hedged chain, whatever its clock."""
    before, _ = ask(tree, seed, stop_early=early)
    after, _ = ask(change(tree, {"passed": reason}, random.Random(seed)), seed, stop_early=early)

    assert before.passed or not after.passed


# ---------------------------------------------------------------- the policy


@settings(max_examples=500)
@given(
    tree=trees(EVERY),
    seed=SEEDS,
    early=st.booleans(),
    deadline=st.none() | st.floats(0.2, 30),
    timeout=st.none() | st.floats(0.2, 20),
)
def test_nothing_opens_over_a_judge_that_failed(
    tree: Node, seed: int, early: bool, deadline: float | None, timeout: float | None
):
    """``fail_open`` opens over no failure, tampering or contradiction at any depth, in chains cut short too."""
    options = {"stop_early": early, "deadline": deadline, "timeout": timeout}
    result, seats = ask(tree, seed, fail_open=True, **options)

    if result.passed and result.fallback_triggered:
        grave = [seat for seat in seats if seat.answered and seat.says["outcome"] == "failed"]
        grave += [seat for seat in seats if seat.answered and seat.says.get("undecided_because") in ENDINGS]
        assert grave == []
        assert not any(item.outcome == "failed" or item.undecided_because in ENDINGS for item in walk(result))
        assert result.score is None


def check_opening(closed: JudgeChainResult, result: JudgeChainResult, *, opens: bool) -> None:
    if closed.outcome != "undecided":
        assert result.outcome == closed.outcome
    elif result.outcome != "undecided":
        assert (opens, result.outcome, result.decided_by) == (True, "passed", "policy")


@settings(max_examples=300)
@given(tree=trees(EVERY), seed=SEEDS, opens=st.booleans())
def test_opening_only_turns_undecided_into_passed(tree: Node, seed: int, opens: bool):
    """``fail_open`` changes no pass and no failure, and what it opens says so, in any nesting where all are asked.

    (It makes inner chains wait for everybody, so against chains that stop early it may also hear more.)
    """
    closed, _ = ask(tree, seed, stop_early=False)
    result, _ = ask(tree, seed, stop_early=False, fail_open=opens)

    check_opening(closed, result, opens=opens)


@settings(max_examples=300)
@given(tree=trees(EVERY, depth=1), seed=SEEDS, opens=st.booleans())
def test_opening_changes_nothing_else_in_a_flat_chain(tree: Node, seed: int, opens: bool):
    """The same for chains of judges that stop early."""
    closed, _ = ask(tree, seed)
    result, _ = ask(tree, seed, fail_open=opens)

    check_opening(closed, result, opens=opens)


@settings(max_examples=300)
@given(tree=trees(EVERY), seed=SEEDS, opens=st.booleans(), deadline=st.none() | st.floats(0.2, 30))
def test_a_policy_decided_exactly_when_the_fallback_was_triggered(
    tree: Node, seed: int, opens: bool, deadline: float | None
):
    """``fallback_triggered`` and ``decided_by="policy"`` are the same at every depth; judges decide the rest."""
    result, _ = ask(tree, seed, fail_open=opens, deadline=deadline)

    for item in walk(result):
        if isinstance(item, JudgeChainResult):
            assert item.fallback_triggered == (item.decided_by == "policy")
            assert item.outcome != "undecided" or item.decided_by == "policy"
            assert item.outcome == "passed" or (item.outcome == "undecided") == item.fallback_triggered
    assert opens or result.fallback_triggered == (result.outcome == "undecided")


# ---------------------------------------------------------------- what a chain leaves behind


@settings(max_examples=300)
@given(tree=trees(EVERY), seed=SEEDS, early=st.booleans(), deadline=st.none() | st.floats(0.2, 30))
def test_every_call_is_in_the_result_and_none_is_left(tree: Node, seed: int, early: bool, deadline: float | None):
    """Each judge asked has a result, in seat order; one cut short was cancelled; the loop is empty afterwards."""
    named: list[Seat] = []
    chain = build(tree, named, random.Random(seed), stop_early=early, deadline=deadline)
    for place, seat in enumerate(named):
        seat.name = f"leaf-{place:03}"
    chain = rename(chain)

    result = run_virtual(chain.ask("Is it good?"))

    reported = [item.judge for item in walk(result) if not isinstance(item, JudgeChainResult)]
    assert reported == [seat.name for seat in named if seat.asked]
    assert all(len(seat.answered) + seat.cancelled == len(seat.asked) for seat in named)
    cut = {item.judge for item in walk(result) if item.undecided_because in ("cancelled", "timeout")}
    assert {seat.name for seat in named if seat.cancelled} <= cut


def rename(chain: JudgeChain) -> JudgeChain:
    """The chain made again, now that its leaves have names of their own."""
    seats = [rename(seat) if isinstance(seat, JudgeChain) else seat for _, seat in chain.judges]
    kept = ("strategy", "timeout", "deadline", "quorum", "hedge_after", "abstain_below", "stop_early")
    options = {name: getattr(chain, name) for name in kept}
    return JudgeChain(seats, escalate_below=chain.escalate_below, **options)
