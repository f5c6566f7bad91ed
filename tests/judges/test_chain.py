"""A chain of judges: who is asked when, under which clock, and what the result says about it."""

from __future__ import annotations

import asyncio
import gc

import pytest

from adjudge import Gate, Judge, JudgeChain, JudgeResult, Rubric, Usage, UsageError
from adjudge.testing import ScriptedModel
from kit.judges import YES, Seat, failed, passed, silent, summarise
from kit.loops import VirtualLoop, run_virtual


def ask(chain: JudgeChain):
    return run_virtual(chain.ask("Is it good?"))


def names(result) -> list[tuple[str, str]]:
    return [(item.judge, item.undecided_because or item.outcome) for item in result.results]


# ---------------------------------------------------------------- the result


def test_a_single_seat_is_a_chain():
    """Its score and its pass are the chain's."""
    result = ask(JudgeChain([passed(name="a")]))

    assert (result.outcome, result.score, result.strategy) == ("passed", 1.0, "fallback")
    assert (result.fallback_triggered, names(result)) == (False, [("a", "passed")])


def test_defaults_are_fallback_five_seconds_and_closed():
    """What the seeds chose."""
    chain = JudgeChain([YES_MODEL])

    assert (chain.strategy, chain.timeout, chain.fail_open, chain.deadline) == ("fallback", 5.0, False, None)
    assert chain.stop_early is True


YES_MODEL = ScriptedModel(YES, name="yes")


def test_equal_names_are_told_apart():
    """They become a, a#2, a#3, in the chain and in its results."""
    chain = JudgeChain([passed(name="a"), passed(name="a"), passed(name="b"), passed(name="a")], strategy="consensus")

    assert chain.names == ("a", "a#2", "b", "a#3")
    assert [item.judge for item in ask(chain).results] == ["a", "a#2", "b", "a#3"]


def test_seats_may_be_anything_that_can_judge():
    """A function, a pair of name and function, an object with name and evaluate, a model, a judge, a chain."""

    class Adapter:
        name = "adapter"

        def evaluate(self, prompt: str) -> str:
            return YES

    seats = [lambda prompt: YES, ("pair", lambda system, user: YES), Adapter(), YES_MODEL, Judge(YES_MODEL, name="j")]
    chain = JudgeChain([*seats, JudgeChain([YES_MODEL], name="inner"), passed(name="own")], strategy="consensus")

    assert chain.names == ("function", "pair", "adapter", "yes", "j", "inner", "own")
    assert asyncio.run(chain.ask("Is it good?")).passed


@pytest.mark.parametrize("inner", [Judge("rules"), JudgeChain(["rules"])], ids=["judge", "chain"])
def test_a_pair_of_a_name_and_a_judge_is_an_error(inner: Judge | JudgeChain):
    """Its evaluate would be asked with a prompt, as a model's, and every answer would be an error."""
    complaint = r"a pair is \(name, function\).*'careful'.*Judge\(\.\.\., name="

    with pytest.raises(UsageError, match=complaint):
        JudgeChain([("careful", inner)])  # type: ignore[list-item]
    with pytest.raises(UsageError, match=complaint):
        Gate("answers", rubric="security", judge=("careful", inner))  # type: ignore[arg-type]


def test_the_deciding_seat_is_shown():
    """Score, reasoning, raw reply, model and threshold of a fallback are those of the seat that decided."""
    says = {"raw_response": "raw", "model": "m", "reasoning": "why", "threshold": 0.7, "confidence": 0.9}
    result = ask(JudgeChain([silent(), failed(name="b", **says)]))

    assert {name: getattr(result, name) for name in says} == says
    assert (result.score, result.decided_by) == (0.0, "judge")


def test_an_undecided_chain_has_no_score_and_the_gravest_reason():
    """And says who was undecided for what."""
    result = ask(JudgeChain([silent("timeout", name="a"), silent("refused", name="b"), silent("error", name="c")]))

    assert summarise(result) == {"outcome": "undecided", "because": "refused", "by": "policy"}
    assert (result.score, result.detail) == (None, "a: timeout; b: refused; c: error")


def test_usage_and_attempts_are_summed():
    """What the chain cost is what its seats cost, the silent ones included."""
    used = Usage(input_tokens=10, output_tokens=2, cost_usd=0.5)
    result = ask(JudgeChain([silent(usage=used, attempts=2), passed(usage=used)]))

    assert (result.usage.input_tokens, result.usage.calls, result.usage.cost_usd) == (20, 2, 1.0)
    assert result.attempts == 3


# ---------------------------------------------------------------- fallback


def test_a_fallback_asks_in_order_and_stops_at_the_first_to_decide():
    """A seat never asked is absent from the results."""
    last = passed(name="c")
    result = ask(JudgeChain([silent(name="a"), failed(name="b"), last]))

    assert names(result) == [("a", "error"), ("b", "failed")]
    assert (result.outcome, last.asked) == ("failed", [])


@pytest.mark.parametrize("because", ["tampering", "contradiction"])
@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("strategy", ["fallback", "hedged", "cascade"])
def test_nobody_is_asked_after_tampering_or_contradiction(because, early, strategy):
    """Another judge that passes must not be found by breaking the first; ``stop_early=False`` changes nothing."""
    more = {"hedged": {"hedge_after": 9.0}, "cascade": {"escalate_below": 0.5}}.get(strategy, {})
    after = passed()
    result = ask(JudgeChain([silent(because), after], strategy=strategy, stop_early=early, **more))

    assert summarise(result) == {"outcome": "undecided", "because": because, "by": "policy"}
    assert after.asked == []


def test_stop_early_off_asks_everybody():
    """The outcome stays that of the first to decide."""
    result = ask(JudgeChain([passed(name="a"), failed(name="b"), silent(name="c")], stop_early=False))

    assert names(result) == [("a", "passed"), ("b", "failed"), ("c", "error")]
    assert result.passed


# ---------------------------------------------------------------- counting


def test_counted_seats_are_asked_at_once():
    """The chain takes as long as its slowest seat."""
    seats = [passed(delay=delay) for delay in (3.0, 1.0, 2.0)]

    result = ask(JudgeChain(seats, strategy="consensus"))

    assert result.passed
    assert [(seat.asked, seat.answered) for seat in seats] == [([0.0], [3.0]), ([0.0], [1.0]), ([0.0], [2.0])]


def test_the_rest_is_cancelled_when_the_outcome_is_settled():
    """A cut seat is undecided: cancelled, and its call has ended when the chain answers."""
    slow, slower = passed(name="b", delay=3.0), passed(name="c", delay=4.0)
    result = ask(JudgeChain([failed(name="a", delay=1.0), slow, slower], strategy="consensus"))

    assert names(result) == [("a", "failed"), ("b", "cancelled"), ("c", "cancelled")]
    assert (slow.cancelled, slower.cancelled, slow.answered) == (1, 1, [])


def test_stop_early_off_waits_for_every_counted_seat():
    """For whoever wants all opinions."""
    result = ask(JudgeChain([failed(name="a"), passed(name="b", delay=3.0)], strategy="consensus", stop_early=False))

    assert names(result) == [("a", "failed"), ("b", "passed")]
    assert result.outcome == "failed"


def test_a_hopeless_chain_stops_waiting():
    """Two of three silent: no number can be reached, so the third is cut."""
    result = ask(JudgeChain([silent(), silent(), passed(delay=4.0)], strategy="majority"))

    assert summarise(result) == {"outcome": "undecided", "because": "error", "by": "policy"}
    assert names(result)[2] == ("seat#3", "cancelled")


def test_a_chain_that_may_open_waits_for_every_seat():
    """The third, slow one failed, and nothing opens over it."""
    seats = [silent(), silent(), failed(delay=4.0)]
    result = ask(JudgeChain(seats, strategy="majority", fail_open=True))

    assert summarise(result) == {"outcome": "undecided", "because": "error", "by": "policy"}
    assert names(result)[2] == ("seat#3", "failed")


def test_the_score_of_a_consensus_is_its_lowest():
    """And the criteria and reasoning beside it are that seat's."""
    seats = [Seat(score=0.9), Seat(score=0.7, reasoning="barely"), Seat(score=0.8)]
    for seat, score in zip(seats, (0.9, 0.7, 0.8), strict=True):
        seat.says["score"] = score
    result = ask(JudgeChain(seats, strategy="consensus"))

    assert (result.score, result.reasoning, result.confidence) == (0.7, "barely", 1.0)


def test_answers_at_the_same_moment_are_taken_in_seat_order():
    """So the seat shown does not depend on the order of a set."""
    for _ in range(5):
        seats = [Seat(reasoning=str(place), delay=1.0) for place in range(5)]
        assert ask(JudgeChain(seats, strategy="majority")).reasoning == "2"


# ---------------------------------------------------------------- hedged


def test_a_hedged_chain_starts_the_next_when_the_last_is_late():
    """Late is ``hedge_after`` seconds; whoever decides first wins and the other is cancelled."""
    slow, quick = failed(name="slow", delay=10.0), passed(name="quick", delay=1.0)
    result = ask(JudgeChain([slow, quick], strategy="hedged", hedge_after=2.0, timeout=None))

    assert (slow.asked, quick.asked, quick.answered) == ([0.0], [2.0], [3.0])
    assert names(result) == [("slow", "cancelled"), ("quick", "passed")]
    assert result.passed


def test_a_hedged_chain_starts_the_next_at_once_when_the_last_is_undecided():
    """Without waiting for it to be late."""
    third = passed(delay=1.0)
    ask(JudgeChain([silent(delay=0.5), silent(delay=0.5), third], strategy="hedged", hedge_after=60.0))

    assert third.asked == [1.0]


def test_an_earlier_seat_that_gives_up_starts_nobody():
    """Only the last one started counts: the third starts when the second is late."""
    seats = [silent(delay=2.5), passed(delay=9.0), passed(delay=1.0)]
    ask(JudgeChain(seats, strategy="hedged", hedge_after=2.0, timeout=None))

    assert [seat.asked for seat in seats] == [[0.0], [2.0], [4.0]]


def test_failed_goes_before_passed_when_both_are_seen_at_once():
    """The seats answer at the same moment and disagree."""
    seats = [passed(delay=3.0), failed(delay=2.0)]
    result = ask(JudgeChain(seats, strategy="hedged", hedge_after=1.0))

    assert seats[0].answered == seats[1].answered == [3.0]
    assert result.outcome == "failed"


def test_tampering_stops_a_hedged_seat_that_still_runs():
    """The running seat would have passed."""
    running = passed(delay=9.0)
    result = ask(JudgeChain([running, silent("tampering")], strategy="hedged", hedge_after=1.0, timeout=None))

    assert (result.undecided_because, running.cancelled) == ("tampering", 1)


# ---------------------------------------------------------------- cascade


def test_a_cascade_asks_until_a_seat_is_sure():
    """One number for every seat but the last."""
    result = ask(
        JudgeChain(
            [passed(name="a", confidence=0.7), failed(name="b", confidence=0.9), passed(name="c")],
            strategy="cascade",
            escalate_below=0.8,
        )
    )

    assert names(result) == [("a", "passed"), ("b", "failed")]
    assert (result.outcome, result.confidence) == ("failed", 0.9)


@pytest.mark.parametrize(("number", "asked"), [(0.0, 1), (1, 2)])
def test_the_ends_of_the_scale_are_numbers_too(number, asked):
    """At 0 every known confidence is sure; at 1 only certainty."""
    chain = JudgeChain([passed(confidence=0.5), passed()], strategy="cascade", escalate_below=number)

    assert len(ask(chain).results) == asked


def test_a_cascade_may_have_a_number_per_seat():
    """One per seat but the last."""
    seats = [passed(confidence=0.7), failed(confidence=0.9), passed()]
    result = ask(JudgeChain(seats, strategy="cascade", escalate_below=[0.7, 0.99]))

    assert (result.outcome, len(result.results)) == ("passed", 1)


def test_a_cascade_asks_for_probabilities():
    """Its seats need to say how sure they are, at any depth."""
    model = ScriptedModel(YES)
    chain = JudgeChain([JudgeChain([Judge(model)]), Judge(model)], strategy="cascade", escalate_below=0.9)

    asyncio.run(chain.ask("Is it good?"))

    assert [request.logprobs for request in model.requests] == [True, True]
    asyncio.run(JudgeChain([Judge(model)]).ask("Is it good?"))
    assert model.requests[-1].logprobs is False


def test_an_unsure_failure_before_silence_has_failed():
    """The last seat could not answer, and the earlier one had not passed it."""
    result = ask(JudgeChain([failed(confidence=0.1), silent()], strategy="cascade", escalate_below=0.8))

    assert summarise(result) == {"outcome": "failed", "because": None, "by": "judge"}


def test_a_cascade_cut_at_its_deadline_keeps_an_unsure_failure():
    """And an unsure pass is no pass: undecided, timeout."""
    late = {"strategy": "cascade", "escalate_below": 0.8, "deadline": 1.0}

    assert ask(JudgeChain([failed(confidence=0.1), passed(delay=3.0)], **late)).outcome == "failed"
    assert ask(JudgeChain([passed(confidence=0.1), passed(delay=3.0)], **late)).undecided_because == "timeout"


def test_a_cascade_whose_last_answer_comes_with_its_deadline_has_a_reason():
    """A seat that blocks the loop past the deadline and passes, unsure, leaves an undecided chain and no exception."""

    class Blocking(Seat):
        async def ask(self, question, /):
            loop = asyncio.get_running_loop()
            assert isinstance(loop, VirtualLoop)
            loop.advance(2.0)
            return JudgeResult(outcome="passed", judge=self.name)

    late = {"timeout": None, "deadline": 1.0}
    for more in ({"strategy": "cascade", "escalate_below": 0.8}, {}, {"strategy": "hedged", "hedge_after": 9.0}):
        result = ask(JudgeChain([Blocking(), passed()], **more, **late))
        assert summarise(result) == {"outcome": "undecided", "because": "timeout", "by": "policy"}


# ---------------------------------------------------------------- failures of seats


class Raising(Seat):
    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    async def ask(self, question, /):
        raise self.error


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (RuntimeError("no\nway"), "RuntimeError: no way"),
        (TimeoutError("mine"), "TimeoutError: mine"),
        (ValueError("x" * 9000), "ValueError: " + "x" * 488),
        (asyncio.CancelledError(), "the judge cancelled itself"),
    ],
)
def test_what_a_seat_raises_is_its_result(error, detail):
    """Undecided: error, on one line, of bounded length; the next is asked."""
    result = ask(JudgeChain([Raising(error), passed(name="b")]))

    assert names(result) == [("seat", "error"), ("b", "passed")]
    assert result.results[0].detail == detail


def test_a_seat_that_returns_something_else_is_undecided():
    """A judge of yours that returns True has not answered."""

    class Wrong(Seat):
        async def ask(self, question, /):
            return True

    detail = ask(JudgeChain([Wrong()])).results[0].detail
    assert "bool" in detail
    assert "JudgeResult" in detail


def test_cancelling_the_caller_cancels_every_seat():
    """``CancelledError`` passes through and no call is left running."""
    seats = [passed(delay=50), passed(delay=50)]

    async def main():
        task = asyncio.create_task(JudgeChain(seats, strategy="consensus", timeout=None).ask("Is it good?"))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run_virtual(main())
    assert [seat.cancelled for seat in seats] == [1, 1]


@pytest.mark.slow
def test_nothing_is_reported_as_never_retrieved():
    """A seat that fails while it is being stopped leaves no complaint with the loop."""

    class Dirty(Seat):
        async def ask(self, question, /):
            try:
                await asyncio.sleep(50)
            finally:
                raise RuntimeError("while stopping")

    async def main():
        result = await JudgeChain([failed(delay=1), Dirty()], strategy="consensus").ask("Is it good?")
        gc.collect()
        return result

    assert names(run_virtual(main())) == [("seat", "failed"), ("seat#2", "cancelled")]


def test_one_chain_answers_many_questions_at_once():
    """A chain holds configuration only."""
    chain = JudgeChain([silent(delay=1), passed(delay=1)])

    async def main():
        async with asyncio.TaskGroup() as group:
            return [group.create_task(chain.ask("Is it good?")) for _ in range(20)]

    assert all(task.result().passed for task in run_virtual(main()))


# ---------------------------------------------------------------- a chain inside a chain


def test_a_chain_inside_a_chain_is_one_seat():
    """Two majorities under a consensus: a seat that must agree stands beside a quorum."""
    inner = JudgeChain([passed(), failed(), passed()], strategy="majority", name="inner")
    result = ask(JudgeChain([inner, passed(name="must")], strategy="consensus"))

    assert names(result) == [("inner", "passed"), ("must", "passed")]
    assert result.passed


def test_the_outer_limit_holds_for_a_whole_inner_chain():
    """Retries and seats included."""
    inner = JudgeChain([silent(delay=2), passed(delay=2)], name="inner")

    assert ask(JudgeChain([inner], timeout=3.0)).undecided_because == "timeout"
    assert ask(JudgeChain([inner], timeout=5.0)).passed


def test_a_chain_uses_the_rubric_that_all_its_seats_own():
    """Seats with one rubric need none in the call; seats with different ones do."""
    scored = {"criteria": [{"name": "kind", "score": 1.0}]}
    kind = Rubric(name="Kind", criteria=[{"name": "kind", "description": "Is kind."}])
    other = Rubric(name="Other", criteria=[{"name": "kind", "description": "Is brief."}])
    same = JudgeChain([Judge(ScriptedModel(scored), rubric=kind), Judge(ScriptedModel(scored), rubric=kind)])
    mixed = JudgeChain([Judge(ScriptedModel(scored), rubric=kind), Judge(ScriptedModel(scored), rubric=other)])

    assert asyncio.run(same.evaluate("Hello.")).passed
    with pytest.raises(UsageError, match="nothing says what good means"):
        asyncio.run(mixed.evaluate("Hello."))
