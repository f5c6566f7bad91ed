"""The clocks of a chain: a limit for each seat, a deadline for the whole, and what they cannot change."""

from __future__ import annotations

import asyncio

import pytest

from adjudge import Judge, JudgeChain, JudgeResult
from adjudge.models import Reply
from kit.judges import YES, Seat, failed, passed, summarise
from kit.loops import run_virtual


def ask(chain: JudgeChain):
    return run_virtual(chain.ask("Is it good?"))


def names(result) -> list[tuple[str, str]]:
    return [(item.judge, item.undecided_because or item.outcome) for item in result.results]


def test_a_seat_has_its_own_limit():
    """Late is undecided: timeout, and the next is asked."""
    result = ask(JudgeChain([passed(name="a", delay=9.0), passed(name="b", delay=2.9)], timeout=3.0))

    assert names(result) == [("a", "timeout"), ("b", "passed")]
    assert "no answer within 3 s" in result.results[0].detail
    assert "raise the timeout of the chain" in result.results[0].detail
    for part in ("passed with 1.00", "b decided", "a (timeout)"):
        assert part in result.explain()


def test_a_seat_without_a_limit_is_waited_for():
    """``None`` means none."""
    assert ask(JudgeChain([passed(delay=1e6)], timeout=None)).passed


def test_a_deadline_cuts_what_is_not_finished():
    """Finished answers count; the rest is undecided: timeout."""
    seats = [passed(name="a", delay=1.0), passed(name="b", delay=2.0), passed(name="c", delay=4.0)]

    assert ask(JudgeChain(seats, strategy="majority", deadline=3.0)).passed
    result = ask(JudgeChain(seats, strategy="consensus", deadline=3.0))
    assert summarise(result) == {"outcome": "undecided", "because": "timeout", "by": "policy"}
    assert names(result)[2] == ("c", "timeout")


@pytest.mark.parametrize("decides", ["passed", "failed"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"strategy": "hedged", "hedge_after": 2.0},
        {"strategy": "cascade", "escalate_below": 0.5},
        {"strategy": "majority"},
    ],
    ids=["fallback", "hedged", "cascade", "majority"],
)
def test_a_deadline_takes_back_no_decision(decides, options):
    """A chain that was settled and only waits for the other opinions stays settled."""
    seats = [Seat(decides, delay=1.0, confidence=0.9), Seat(decides, delay=1.0), passed(delay=50), passed(delay=50)]
    seats = seats[: 3 if options.get("strategy") == "majority" else 4]
    limits = {"timeout": None, "deadline": 5.0, "stop_early": False}
    result = ask(JudgeChain(seats, **options, **limits))

    assert summarise(result) == {"outcome": decides, "because": None, "by": "judge"}
    assert names(result)[-1][1] == "timeout"


def test_a_seat_that_answers_when_it_is_stopped_is_late():
    """Swallowing the cancellation and answering all the same makes no pass, neither of a seat nor of a judge."""

    class Stubborn:
        name = "stubborn"

        async def ask(self, question, /):
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                return JudgeResult(outcome="passed", judge=self.name)

        async def complete(self, request, /):
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                return Reply(text=YES)

    assert ask(JudgeChain([Stubborn()], timeout=1.0)).undecided_because == "timeout"
    assert ask(JudgeChain([Stubborn()], timeout=None, deadline=1.0)).undecided_because == "timeout"
    assert run_virtual(Judge(Stubborn(), timeout=1.0).ask("Is it good?")).undecided_because == "timeout"


def test_a_chain_cut_short_still_shows_its_seats():
    """So that ``fail_open`` cannot open over the failure of a judge inside it, and the record is complete."""
    inner = JudgeChain([failed(name="a"), passed(name="b", delay=50)], strategy="majority", timeout=None, name="inner")
    for limit in ({"timeout": 2.0}, {"timeout": None, "deadline": 2.0}):
        result = ask(JudgeChain([inner], fail_open=True, **limit))
        assert summarise(result) == {"outcome": "undecided", "because": "timeout", "by": "policy"}
        assert names(result) == [("inner", "timeout")]
        assert names(result.results[0]) == [("a", "failed"), ("b", "cancelled")]


def test_a_limit_takes_back_nothing_that_an_inner_chain_has_decided():
    """It has failed, and waits only because ``fail_open`` has to know who else objects."""
    seats = [failed(name="a"), failed(name="b"), passed(name="c", delay=50)]
    inner = JudgeChain(seats, strategy="majority", timeout=None, name="inner")
    for limit in ({"timeout": 2.0}, {"timeout": None, "deadline": 2.0}):
        result = ask(JudgeChain([inner], fail_open=True, **limit))
        assert names(result) == [("inner", "failed")]
        assert result.results[0].cut_short
        assert names(result.results[0]) == [("a", "failed"), ("b", "failed"), ("c", "cancelled")]


def test_a_limit_ends_an_inner_chain_that_was_to_ask_every_seat():
    """Its votes are enough for a pass, but it was told to hear everybody: it has not decided."""
    inner = JudgeChain([passed(), passed(), failed(delay=50)], strategy="majority", timeout=None, stop_early=False)
    assert ask(JudgeChain([inner], timeout=2.0)).undecided_because == "timeout"


def test_a_policy_opens_only_when_everybody_was_heard():
    """An inner majority that is hopeless waits for its slow seat, because that one says no."""
    silent_one, silent_two = Seat("undecided", name="one"), Seat("undecided", name="two")
    slow = Seat("failed", name="slow", delay=2.0)
    inner = JudgeChain([silent_one, silent_two, slow], strategy="majority", timeout=10.0)
    outer = JudgeChain([inner, Seat("undecided", name="dead")], strategy="fallback", fail_open=True, timeout=10.0)

    result = run_virtual(outer.ask("Safe?"))

    assert not result.passed


def test_a_pass_by_a_hidden_policy_does_not_count():
    """A judge of somebody's own around a chain that may open: what a policy let pass is no vote."""

    class Wrapped:
        name = "wrapped"

        async def ask(self, question):
            return await JudgeChain([Seat("undecided", name="dead")], fail_open=True).ask(question)

    chain = JudgeChain([Wrapped(), Seat("passed", name="yes"), Seat("failed", name="no")], strategy="majority")
    result = run_virtual(chain.ask("Safe?"))

    assert result.outcome == "undecided"
    assert result.results[0].undecided_because == "error"


def test_an_answer_to_another_question_does_not_count():
    """A seat that hands out an old result has not judged this content."""
    old = run_virtual(JudgeChain([Seat("passed")]).ask("Another?"))
    stale = Seat("passed", name="stale", question=old.question)
    result = run_virtual(JudgeChain([stale], strategy="consensus").ask("Safe?"))

    assert result.outcome == "undecided"


def test_a_slow_no_does_not_buy_certainty():
    """In a cascade the share of votes is that of all seats, whoever answers last."""

    def cascade(delays):
        votes = [
            Seat("passed", name="a", delay=delays[0]),
            Seat("failed", name="b", delay=delays[1]),
            Seat("passed", name="c"),
        ]
        inner = JudgeChain(votes, strategy="majority", timeout=60.0)
        return JudgeChain([inner, Seat("failed", name="last")], strategy="cascade", escalate_below=0.9, timeout=90.0)

    outcomes = {run_virtual(cascade(delays).ask("Safe?")).outcome for delays in [(0.0, 0.0), (0.0, 9.0), (9.0, 0.0)]}

    assert outcomes == {"failed"}


def test_a_policy_hears_the_seats_of_an_inner_chain_that_has_passed():
    """An inner quorum that is reached early waits all the same: its slow seat says no, and nothing opens over that."""
    inner = JudgeChain(
        [Seat("passed", name="quick"), Seat("failed", name="slow", delay=2.0)], strategy="quorum", quorum=1
    )
    outer = JudgeChain([inner, Seat("undecided", name="dead")], strategy="consensus", fail_open=True, timeout=10.0)

    result = run_virtual(outer.ask("Safe?"))

    assert (result.outcome, result.decided_by) == ("undecided", "policy")
