"""The outcome algebra of chains, without a clock: what some answers decide together."""

from __future__ import annotations

import math
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import JudgeChainResult, JudgeResult
from adjudge.errors import Reason
from adjudge.judges.chain_outcome import (
    COUNTING,
    _end_cascade,
    count_votes,
    decide_cascade,
    decide_fallback,
    decide_hedged,
    decide_unanswered,
    find_needed_votes,
    find_reason,
    is_sure,
    may_open,
    share_votes,
)

REASONS: tuple[str, ...] = get_args(Reason)


def vote(says: str, *, score: float | None = None, **more) -> JudgeResult:
    if says in ("passed", "failed"):
        return JudgeResult(outcome=says, judge=says, score=score, **more)
    return JudgeResult(outcome="undecided", undecided_because=says, judge=says, **more)


def votes(text: str) -> list[JudgeResult]:
    """One vote per letter: Passed, Failed, Error, Tampering, Cancelled."""
    words = {"P": "passed", "F": "failed", "E": "error", "T": "tampering", "C": "cancelled"}
    return [vote(words[letter]) for letter in text]


def chain(says: str, *seats: JudgeResult, by: str = "judge") -> JudgeChainResult:
    decided = says in ("passed", "failed")
    verdict = {"outcome": says} if decided else {"outcome": "undecided", "undecided_because": says}
    return JudgeChainResult(**verdict, judge="chain", strategy="consensus", results=seats, decided_by=by)


# ---------------------------------------------------------------- how many are needed


@pytest.mark.parametrize(
    ("strategy", "seats", "quorum", "expected"),
    [
        ("consensus", 1, None, (1, 1)),
        ("consensus", 4, None, (4, 1)),
        ("majority", 1, None, (1, 1)),
        ("majority", 2, None, (2, 2)),
        ("majority", 3, None, (2, 2)),
        ("majority", 4, None, (3, 3)),
        ("majority", 5, None, (3, 3)),
        ("quorum", 5, 1, (1, 5)),
        ("quorum", 5, 2, (2, 4)),
        ("quorum", 5, 5, (5, 1)),
    ],
)
def test_the_numbers_are_those_of_the_table(strategy, seats, quorum, expected):
    """Consensus n and 1; majority floor(n/2)+1 twice; quorum k and n-k+1."""
    assert find_needed_votes(strategy, seats, quorum) == expected


@given(seats=st.integers(1, 50), data=st.data())
def test_both_numbers_are_never_reached(seats, data):
    """They sum to more than n, so no chain can have passed and failed."""
    quorum = data.draw(st.integers(1, seats))

    assert all(sum(find_needed_votes(strategy, seats, quorum)) > seats for strategy in COUNTING)


# ---------------------------------------------------------------- counting


@pytest.mark.parametrize(
    ("strategy", "answers", "outcome", "because"),
    [
        ("consensus", "PPP", "passed", None),
        ("consensus", "PFE", "failed", None),
        ("consensus", "PPE", "undecided", "error"),
        ("consensus", "PTE", "undecided", "tampering"),
        ("majority", "PPF", "passed", None),
        ("majority", "PFF", "failed", None),
        ("majority", "PEE", "undecided", "error"),
        ("majority", "PFE", "undecided", "error"),
        ("majority", "PF", "undecided", "split"),
        ("majority", "PPFF", "undecided", "split"),
        ("majority", "PPFE", "undecided", "error"),
        ("majority", "PPT", "passed", None),
        ("majority", "FFFP", "failed", None),
    ],
)
def test_counted_answers(strategy, answers, outcome, because):
    """A judge that could not answer stays in the denominator, and an even split decides nothing."""
    numbers = find_needed_votes(strategy, len(answers), None)

    verdict = count_votes(votes(answers), len(answers), *numbers, wait=False)

    assert (verdict.outcome, verdict.because) == (outcome, because)


def test_counting_waits_while_the_number_can_be_reached():
    """Two of three have answered one each way: the third decides."""
    assert count_votes(votes("PF"), 3, 2, 2, wait=False) is None


def test_counting_stops_when_nothing_can_be_reached_any_more():
    """With two of three silent neither number is possible; a chain that may open waits for the third all the same."""
    assert count_votes(votes("EE"), 3, 2, 2, wait=False).outcome == "undecided"
    assert count_votes(votes("EE"), 3, 2, 2, wait=True) is None


def test_counting_goes_on_while_one_of_the_numbers_can_just_be_reached():
    """Two of four must pass, two are silent and two are still to come."""
    assert count_votes(votes("EE"), 4, 2, 3, wait=False) is None
    assert count_votes(votes("EEE"), 4, 2, 3, wait=False).outcome == "undecided"
    assert count_votes(votes("EE"), 4, 3, 2, wait=False) is None


def test_the_seat_shown_is_the_one_that_reached_the_number():
    """Its score, criteria and reasoning are the chain's; when all must pass, it is the lowest score."""
    answered = [vote("passed", score=score) for score in (0.9, 0.7, 0.8)]

    assert count_votes(answered[:2], 3, 2, 2, wait=False).seat is answered[1]
    assert count_votes(answered, 3, 3, 1, wait=False).seat is answered[1]


def test_a_failure_shows_the_seat_that_made_it_certain():
    """In a majority of three it is the second that failed, in the order of the answers."""
    answered = [vote("failed", score=0.1), vote("passed", score=0.9), vote("failed", score=0.2)]

    assert count_votes(answered, 3, 2, 2, wait=False).seat is answered[2]


# ---------------------------------------------------------------- asking the next


@pytest.mark.parametrize("because", [reason for reason in REASONS if reason not in ("tampering", "contradiction")])
def test_a_fallback_asks_the_next_after_a_judge_that_could_not_decide(because):
    """Every reason but two leads to the next seat."""
    assert decide_fallback(vote(because), []) is None


@pytest.mark.parametrize("because", ["tampering", "contradiction"])
def test_tampering_and_contradiction_end_a_fallback(because):
    """Nobody else is asked, and the reason is the gravest so far."""
    verdict = decide_fallback(vote(because), [vote("refused")])

    assert (verdict.outcome, verdict.because) == ("undecided", because)


@pytest.mark.parametrize("says", ["passed", "failed"])
def test_the_first_to_decide_ends_a_fallback(says):
    """Passed or failed, it is the chain's."""
    decided = vote(says)

    assert decide_fallback(decided, votes("E")).seat is decided


@pytest.mark.parametrize(
    ("answers", "outcome", "shown"),
    [("PF", "failed", 1), ("FP", "failed", 0), ("PP", "passed", 0), ("EP", "passed", 1), ("TF", "failed", 1)],
)
def test_a_look_at_several_answers_takes_failed_first(answers, outcome, shown):
    """When several have decided at the same look, failed goes before passed, then seat order."""
    looked = votes(answers)

    verdict = decide_hedged(looked)

    assert (verdict.outcome, verdict.seat) == (outcome, looked[shown])


def test_a_look_with_tampering_in_it_passes_nothing():
    """A judge that was tampered with goes before one that passed."""
    assert decide_hedged(votes("PT")).because == "tampering"
    assert decide_hedged(votes("EE")) is None


# ---------------------------------------------------------------- cascade


def test_a_sure_seat_ends_a_cascade():
    """At or above the confidence asked for, its answer stands."""
    sure = vote("passed", confidence=0.8)

    assert decide_cascade(sure, [], sure_at=0.8, abstain_below=None).seat is sure


@pytest.mark.parametrize("confidence", [None, 0.0, 0.79])
def test_an_unsure_seat_leads_to_the_next(confidence):
    """Below it, and with no confidence at all, the next is asked."""
    assert decide_cascade(vote("failed", confidence=confidence), [], sure_at=0.8, abstain_below=None) is None


@pytest.mark.parametrize("confidence", [math.nan, math.inf, 5.0, -1.0, None])
@pytest.mark.parametrize("needed", [0.0, 0.5, 1.0])
def test_what_is_no_probability_is_never_sure(confidence, needed):
    """Written the other way round, NaN would be "not below" every number."""
    assert not is_sure(confidence, needed)
    assert is_sure(1.0, needed)


def test_the_last_seat_decides_sure_or_not():
    """Unless it is told to abstain."""
    last = vote("passed", confidence=None)

    assert decide_cascade(last, votes("E"), sure_at=None, abstain_below=None).seat is last


@pytest.mark.parametrize(("confidence", "outcome"), [(None, "undecided"), (0.49, "undecided"), (0.5, "failed")])
def test_the_last_seat_abstains_below_its_number(confidence, outcome):
    """Below it, and with no confidence at all, the chain is undecided: unsure."""
    verdict = decide_cascade(vote("failed", confidence=confidence), [], sure_at=None, abstain_below=0.5)

    assert verdict.outcome == outcome
    assert (verdict.because == "unsure") == (outcome == "undecided")


@pytest.mark.parametrize(
    ("earlier", "last", "outcome", "because"),
    [
        ("F", "error", "failed", None),
        ("FP", "error", "failed", None),
        ("P", "error", "undecided", "error"),
        ("E", "timeout", "undecided", "error"),
        ("F", "tampering", "failed", None),
        ("P", "tampering", "undecided", "tampering"),
    ],
)
def test_a_cascade_that_ends_in_silence_has_failed_if_anybody_failed(earlier, last, outcome, because):
    """An unsure failure is not forgotten because the last seat says nothing; an unsure pass is."""
    verdict = decide_cascade(vote(last), votes(earlier), sure_at=None, abstain_below=None)

    assert (verdict.outcome, verdict.because) == (outcome, because)


@pytest.mark.parametrize("cascade", [True, False])
def test_a_chain_whose_time_is_over_always_has_a_reason(cascade):
    """Also where every answer so far was a pass that did not decide: it is ``timeout``."""
    verdict = decide_unanswered(votes("P"), cascade=cascade)

    assert (verdict.outcome, verdict.because) == ("undecided", "timeout")


def test_only_a_cascade_that_runs_out_remembers_a_failure():
    """In a fallback a seat that failed would have decided long before."""
    assert decide_unanswered(votes("EF"), cascade=True).outcome == "failed"
    assert decide_unanswered(votes("EF")).outcome == "undecided"


# ---------------------------------------------------------------- the policy


@pytest.mark.parametrize(("answers", "may"), [("EE", True), ("PE", True), ("PC", True), ("EF", False), ("ET", False)])
def test_only_silence_may_be_opened(answers, may):
    """A failure or tampering anywhere keeps the chain closed."""
    assert may_open(votes(answers)) is may


def test_a_rule_that_passed_keeps_nothing_closed():
    """One that failed has failed the content."""
    assert may_open([vote("error"), vote("passed", decided_by="rule")])
    assert not may_open([vote("error"), vote("failed", decided_by="rule")])


def test_a_failure_deep_inside_keeps_the_chain_closed():
    """Also one that an inner chain outvoted, or that was inside a chain cut short."""
    assert not may_open([chain("error", chain("passed", *votes("PPF")))])
    assert not may_open([chain("timeout", vote("contradiction"))])
    assert may_open([chain("timeout", chain("error", *votes("PE")))])


# ---------------------------------------------------------------- reasons and votes


def test_the_gravest_reason_is_shown():
    """In the order of the reasons, whatever the order of the answers."""
    assert find_reason([vote(reason) for reason in reversed(REASONS)]) == "tampering"
    assert find_reason(votes("PF")) is None


@pytest.mark.parametrize(
    ("answers", "outcome", "share"),
    [("PPF", "passed", 2 / 3), ("PPE", "passed", 2 / 3), ("PPC", "passed", 2 / 3), ("EE", "undecided", None)],
)
def test_confidence_is_the_share_of_equal_votes(answers, outcome, share):
    """Of all seats: a judge that could not answer, or was cut short, counts against it."""
    assert share_votes(votes(answers), outcome, len(answers)) == share


def test_a_cascade_that_ends_shows_the_last_seat_that_failed():
    """It is the one that was asked because the others were unsure."""
    results = [
        JudgeResult(outcome="failed", judge=name, score=0.1, threshold=0.5, confidence=0.2) for name in ("a", "b", "c")
    ]

    seat = _end_cascade(results).seat

    assert seat is not None
    assert seat.judge == "c"


@pytest.mark.parametrize("wait", [False, True])
def test_a_count_is_decided_when_every_seat_has_answered(wait: bool):
    """Also where it was kept open for objections."""
    undecided = JudgeResult(outcome="undecided", undecided_because="error", judge="a")

    verdict = count_votes([undecided, undecided], 2, 2, 1, wait=wait)

    assert verdict is not None
    assert (verdict.outcome, verdict.because) == ("undecided", "error")
