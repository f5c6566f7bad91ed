"""Chains that compare: a preference wins when as many seats chose it as the strategy needs to pass."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge import Judge, JudgeChain, PairResult, compare
from adjudge.errors import Reason
from adjudge.testing import ScriptedModel
from kit.judges import Seat, complaint
from kit.loops import run_virtual
from kit.pairs import BAD, GOOD, Chooser, prefer_good

REASONS: tuple[str, ...] = get_args(Reason)

BETTER = "Answers the question."
SAID = ("a", "a", "b", "b", "tie", "first", "second", "error", "refused", "tampering")
COUNTED = ("consensus", "majority", "quorum")
SWAP = {"a": "b", "b": "a"}
MIRROR = {"first": "second", "second": "first", "tie": "tie", None: None}
SEEDS = st.integers(0, 2**32)


def ask(chain: Any, **how: Any) -> PairResult:
    return run_virtual(compare(GOOD, BAD, judge=chain, criteria=BETTER, **how))


def build(says: Any, strategy: str, *, seed: int = 0, **more: Any) -> JudgeChain:
    """Seats that say these, each after a time of its own; a tuple is a chain inside, of its own strategy and seats."""
    rolled = random.Random(seed)
    seats = [
        build(item[1], item[0], seed=rolled.randrange(2**32), **item[2])
        if isinstance(item, tuple)
        else Chooser(item, delay=rolled.uniform(0.1, 9.0))
        for item in says
    ]
    return JudgeChain(seats, strategy=strategy, timeout=None, **more)  # type: ignore[arg-type]


@st.composite
def counted(draw: Any) -> tuple[str, list[str], dict[str, Any]]:
    """A counting strategy, what its seats say, and its quorum."""
    says = draw(st.lists(st.sampled_from(SAID), min_size=1, max_size=5))
    strategy = draw(st.sampled_from(COUNTED))
    return strategy, says, {"quorum": draw(st.integers(1, len(says)))} if strategy == "quorum" else {}


@st.composite
def nested(draw: Any) -> tuple[str, list[Any], dict[str, Any]]:
    """The same, where a seat may be a chain."""
    strategy, says, more = draw(counted())
    return strategy, [draw(counted()) if draw(st.booleans()) else item for item in says], more


def count_needed(strategy: str, seats: int, quorum: int | None) -> int:
    """How many seats have to choose a content, by the definition of the strategy."""
    return {"majority": seats // 2 + 1, "quorum": quorum or seats}.get(strategy, seats)


def expect(strategy: str, says: list[Any], quorum: int | None, order: str) -> str | None:
    """The content that a counting chain prefers in one order, from the definition alone."""
    to_win = count_needed(strategy, len(says), quorum)
    places = {"first": "a", "second": "b"} if order == "ab" else {"first": "b", "second": "a"}
    votes = Counter(
        expect(item[0], item[1], item[2].get("quorum"), order) if isinstance(item, tuple) else places.get(item, item)
        for item in says
    )
    won = [content for content in ("a", "b", "tie") if votes[content] >= to_win]
    return won[0] if len(won) == 1 else None


# ---------------------------------------------------------------- counting


@settings(max_examples=300)
@given(tree=nested(), seed=SEEDS, early=st.booleans())
def test_a_counting_chain_prefers_what_the_definition_says(tree: Any, seed: int, early: bool):
    """In each order, at any depth and for every finishing order, stopping early or not."""
    strategy, says, more = tree
    pair = ask(build(says, strategy, seed=seed, stop_early=early, **more))

    named = {"a": "first", "b": "second", "tie": "tie", None: None}
    for item in pair.orders:
        assert item.preferred == named[expect(strategy, says, more.get("quorum"), item.order)]


@settings(max_examples=200)
@given(tree=nested(), seed=SEEDS, early=st.booleans())
def test_permuting_counted_seats_changes_nothing(tree: Any, seed: int, early: bool):
    """Neither the order of seats nor that of their answers changes the preference."""
    strategy, says, more = tree
    shuffled = random.Random(seed).sample(says, len(says))

    one = ask(build(says, strategy, seed=seed, stop_early=early, **more))
    other = ask(build(shuffled, strategy, seed=seed + 1, stop_early=early, **more))
    assert (other.preferred, other.flipped) == (one.preferred, one.flipped)


@settings(max_examples=200)
@given(
    says=st.lists(st.sampled_from(SAID), min_size=1, max_size=5),
    strategy=st.sampled_from((*COUNTED, "fallback", "cascade", "hedged")),
    seed=SEEDS,
    conflict=st.sampled_from(("tie", "undecided")),
)
def test_swapping_the_contents_swaps_the_preference(says: list[str], strategy: str, seed: int, conflict: str):
    """Whatever the strategy, a judge that is shown b against a says the mirror image."""
    more: dict[str, Any] = {"quorum": {"quorum": 1 + seed % len(says)}, "cascade": {"escalate_below": 0.5}}.get(
        strategy, {}
    )
    more |= {"hedge_after": 1.0} if strategy == "hedged" else {}

    one = ask(build(says, strategy, seed=seed, **more), on_conflict=conflict)
    other = ask(build([SWAP.get(item, item) for item in says], strategy, seed=seed, **more), on_conflict=conflict)

    assert other.preferred == MIRROR[one.preferred]
    assert (other.flipped, other.undecided_because) == (one.flipped, one.undecided_because)


@settings(max_examples=300)
@given(tree=counted(), seed=SEEDS, early=st.booleans())
def test_a_preference_has_a_seat_that_chose_it(tree: Any, seed: int, early: bool):
    """Nothing is preferred in an order unless a seat preferred it there, and silence is nobody's vote."""
    strategy, says, more = tree
    for item in ask(build(says, strategy, seed=seed, stop_early=early, **more)).orders:
        if item.preferred is not None:
            seats = item.result.results  # type: ignore[attr-defined]
            to_win = count_needed(strategy, len(says), more.get("quorum"))
            chose = [seat for seat in seats if seat.outcome == "passed" and seat.value == item.result.value]
            assert len(chose) >= to_win
            assert item.result.confidence == pytest.approx(len(chose) / len(says))


@pytest.mark.parametrize(
    ("strategy", "says", "preferred", "because"),
    [
        ("majority", ["a", "a", "b"], "first", None),
        ("majority", ["a", "b", "tie"], None, "split"),
        ("majority", ["a", "b"], None, "split"),
        ("majority", ["tie", "tie", "a"], "tie", None),
        ("majority", ["a", "a", "error"], "first", None),
        ("majority", ["a", "b", "error"], None, "error"),
        ("consensus", ["b", "b"], "second", None),
        ("consensus", ["b", "tie"], None, "split"),
        ("consensus", ["b", "refused"], None, "refused"),
        ("fallback", ["error", "b", "a"], "second", None),
        ("fallback", ["tampering", "a"], None, "tampering"),
        ("fallback", ["error", "timeout"], None, "error"),
    ],
)
def test_strategies_on_preferences(strategy: str, says: list[str], preferred: str | None, because: str | None):
    """A few rows by hand: who wins, and why nobody does."""
    pair = ask(build(says, strategy))

    assert (pair.preferred, pair.undecided_because) == (preferred, because)
    assert pair.decided_by == ("policy" if preferred is None else "judge")


def test_a_quorum_of_half_is_reached_by_one_or_by_none():
    """Where two preferences reach the number, the one that was counted first has not won: it is a split."""
    for seed in range(20):
        both = ask(build(["a", "a", "b", "b"], "quorum", seed=seed, quorum=2))
        assert (both.preferred, both.undecided_because) == (None, "split")
        assert ask(build(["a", "a", "b", "tie"], "quorum", seed=seed, quorum=2)).preferred == "first"


def test_a_settled_chain_cancels_the_rest():
    """Two of three are enough, and so is the certainty that no two will agree."""
    late = Chooser("a", delay=100.0)
    pair = ask(JudgeChain([Chooser("a"), Chooser("a"), late], strategy="majority", timeout=None))
    assert (pair.preferred, late.cancelled) == ("first", 2)

    late = Chooser("a", delay=100.0)
    pair = ask(JudgeChain([Chooser("a"), Chooser("b"), late], strategy="consensus", timeout=None))
    assert (pair.undecided_because, late.cancelled) == ("split", 2)


# ---------------------------------------------------------------- the other strategies


def test_hedged_takes_the_first_that_prefers_something():
    """A late or undecided seat is followed by the next; the first preference wins."""
    slow = Chooser("a", delay=50.0)
    chain = JudgeChain([slow, Chooser("b", delay=1.0)], strategy="hedged", hedge_after=2.0, timeout=None)
    assert (ask(chain).preferred, slow.cancelled) == ("second", 2)


def test_a_cascade_asks_on_until_a_seat_is_sure():
    """An unsure preference is followed by the next seat's, and an earlier one never stands in for a silent last."""
    unsure, sure = Chooser("a", confidence=0.4), Chooser("b", confidence=0.9)
    assert ask(JudgeChain([unsure, sure], strategy="cascade", escalate_below=0.8)).preferred == "second"
    assert ask(JudgeChain([sure, unsure], strategy="cascade", escalate_below=0.8)).preferred == "second"

    silent = JudgeChain([unsure, Chooser("error")], strategy="cascade", escalate_below=0.8)
    assert ask(silent).undecided_because == "error"
    abstains = JudgeChain([sure, unsure], strategy="cascade", escalate_below=0.95, abstain_below=0.5)
    assert ask(abstains).undecided_because == "unsure"


def test_a_cascade_knows_how_sure_a_panel_is():
    """The confidence of a counting chain is the share of seats that prefer the same."""
    panel = JudgeChain([Chooser("a"), Chooser("a"), Chooser("b")], strategy="majority", timeout=None)
    for needs, preferred in ((0.6, "first"), (0.7, "second")):
        chain = JudgeChain([panel, Chooser("b")], strategy="cascade", escalate_below=needs, timeout=None)
        assert ask(chain).preferred == preferred


# ---------------------------------------------------------------- seats and policies


@pytest.mark.parametrize(
    "says",
    [
        {"outcome": "passed"},
        {"outcome": "failed"},
        {"outcome": "passed", "value": "a"},
        {"outcome": "failed", "value": "first"},
    ],
)
def test_a_seat_of_yours_has_to_name_a_preference(says: dict[str, Any]):
    """A judge that answers pass or fail has not compared anything: its result is an error, and never a vote."""
    foreign = Seat(says["outcome"], **({"value": says["value"]} if "value" in says else {}))
    pair = ask(foreign)

    assert (pair.preferred, pair.undecided_because) == (None, "error")
    assert (
        "a comparison is answered by passed with first, second, tie as the value"
        in pair.order("ab").result.results[0].detail
    )


def test_a_tie_that_was_not_on_offer_is_no_vote():
    """With ``ties=False`` a seat that says tie all the same is in error."""
    assert ask(Chooser("tie"), ties=False).undecided_because == "error"
    assert ask(Chooser("tie")).preferred == "tie"


def test_a_comparison_has_nothing_to_open():
    """``fail_open`` lets content pass when nobody decided, which means nothing here: said before anyone is asked."""
    seat = Chooser("error")
    chain = JudgeChain([seat], fail_open=True)

    assert "a comparison has nothing to let pass" in complaint(compare, "a", "b", judge=chain, criteria=BETTER)
    assert seat.asked == []


def test_judges_and_specs_of_every_kind_compare():
    """A judge, a chain of models, and a judge of yours each answer the same question."""
    models = [ScriptedModel(prefer_good, name=name) for name in ("one", "two", "three")]
    for judge in (Judge(models[0]), models[1], JudgeChain(models, strategy="consensus"), Chooser("a")):
        assert ask(judge).preferred == "first"


@given(reason=st.sampled_from(REASONS))
def test_a_seats_reason_reaches_the_pair(reason: str):
    """Why a seat is undecided is why the pair is, where nobody else decides."""
    if reason != "split":
        assert ask(Chooser(reason)).undecided_because == reason
