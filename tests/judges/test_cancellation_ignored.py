"""A limit is one for everybody: also for what swallows that it was cancelled, once, several times or for ever."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from contextlib import aclosing

import pytest

from adjudge import Gate, Judge, JudgeChain, JudgeResult, PromptFirewall, Rule, SemanticProbe, evaluate_probe
from adjudge.models import Reply
from kit.judges import YES, Seat
from kit.loops import run_virtual
from kit.patience import HANG

pytestmark = pytest.mark.timed


GRACE = 1.0
LATE = 100.0
"""When a stubborn one is through at the latest, so that the clock comes to its end."""
UNREADABLE = "I would rather not say"


class Stubborn:
    """A model, a judge and whatever else may be awaited: it swallows so many cancellations, and answers late."""

    def __init__(self, swallows: float = float("inf"), says: str = UNREADABLE) -> None:
        self.name, self.swallows, self.says = "stubborn", swallows, says
        self.calls = self.cancelled = self.ended = 0

    async def wait(self) -> None:
        self.calls += 1
        end = asyncio.get_running_loop().time() + LATE
        try:
            while (left := end - asyncio.get_running_loop().time()) > 0:
                try:
                    await asyncio.sleep(left)
                except asyncio.CancelledError:
                    self.cancelled += 1
                    if self.cancelled > self.swallows:
                        raise
                    if self.says == "at once":
                        return
        finally:
            self.ended += 1

    async def complete(self, request, /):
        await self.wait()
        return Reply(text=UNREADABLE if self.says == "at once" else self.says)

    async def ask(self, question, /):
        await self.wait()
        return JudgeResult(outcome="passed", judge=self.name)


class Answering(Stubborn):
    """Its cancellation becomes an answer, which cannot be read: what a limit must not ask again."""

    def __init__(self) -> None:
        super().__init__(says="at once")


def timed(work):
    """What some work came to and when; what it left running has ended before the clock stops."""

    async def main():
        loop = asyncio.get_running_loop()
        try:
            outcome = await work()
        except BaseException as error:  # noqa: BLE001 - it is what is looked at
            outcome = error
        took = loop.time()
        await asyncio.sleep(3 * LATE)
        return outcome, took

    return run_virtual(main())


KINDS = {
    "once": lambda: Stubborn(1),
    "three times": lambda: Stubborn(3),
    "for ever": Stubborn,
    "for ever, then a pass": lambda: Stubborn(says=YES),
    "answers unreadably at once": Answering,
}
kinds = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def nest(judge, depth, **limits):
    for _ in range(depth):
        judge = JudgeChain([judge], **limits)
    return judge


PLACES = {
    "a judge": lambda model: Judge(model, timeout=0.5),
    "a seat": lambda model: JudgeChain([model], timeout=0.5),
    "a seat with a limit of its own": lambda model: JudgeChain([Judge(model, timeout=0.5)], timeout=9.0),
    "a deadline": lambda model: JudgeChain([model], timeout=None, deadline=0.5),
    "both": lambda model: JudgeChain([model], timeout=0.5, deadline=0.5),
    "both, all are asked": lambda model: JudgeChain([model, model], strategy="consensus", timeout=0.5, deadline=0.5),
    "a cascade": lambda model: JudgeChain([model, model], strategy="cascade", escalate_below=0.5, deadline=0.5),
    "hedged": lambda model: JudgeChain([model, model], strategy="hedged", hedge_after=9.0, deadline=0.5),
    "five deep": lambda model: nest(model, 5, timeout=0.5),
    "five deep, a deadline outside": lambda model: JudgeChain([nest(model, 5, timeout=None)], deadline=0.5),
    "five deep, limits one after the other": lambda model: nest(nest(model, 3, timeout=0.5), 3, timeout=0.7),
}


@kinds
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_a_limit_is_kept_and_nothing_is_paid_after_it(kind, place):
    """Undecided: timeout within the limit and one second, at any depth, and each seat was asked once."""
    model = kind()
    judge = place(model)
    result, took = timed(lambda: judge.ask("Is it safe?"))

    assert (result.outcome, result.undecided_because) == ("undecided", "timeout")
    assert took <= 0.5 + GRACE + 0.25
    assert model.calls == (2 if getattr(judge, "strategy", "") == "consensus" else 1)
    assert model.ended == model.calls


@kinds
def test_a_judge_of_another_make_keeps_no_chain_waiting(kind):
    """What is no ``Judge`` of ours is cut off just so, and its late pass counts for nothing."""
    for limits in ({"timeout": 0.5}, {"timeout": None, "deadline": 0.5}, {"timeout": 0.5, "deadline": 0.5}):
        judge = kind()
        result, took = timed(lambda: JudgeChain([judge], **limits).ask("Is it safe?"))  # noqa: B023 - called here

        assert (result.undecided_because, result.results[0].undecided_because) == ("timeout", "timeout")
        assert (judge.calls, took <= 0.5 + GRACE) == (1, True)


@kinds
@pytest.mark.parametrize("as_model", [True, False])
def test_a_loser_holds_nobody_up_longer_than_the_grace(kind, as_model):
    """What a strategy needs no more is cancelled, and asked nothing again; it is shown as cancelled."""
    loser = kind()
    seats = [Judge(loser, timeout=None) if as_model else loser, Seat("passed", name="quick", delay=0.5)]
    for options in ({"strategy": "hedged", "hedge_after": 0.1}, {"strategy": "quorum", "quorum": 1}):
        loser.calls = loser.cancelled = 0
        result, took = timed(lambda: JudgeChain(seats, timeout=None, **options).ask("Is it safe?"))  # noqa: B023 - called here

        assert (result.outcome, result.results[0].undecided_because) == ("passed", "cancelled")
        assert (loser.calls, took <= 0.1 + 0.5 + GRACE) == (1, True)


@kinds
@pytest.mark.parametrize("depth", [0, 1, 4])
def test_a_caller_who_goes_away_is_gone_after_the_grace(kind, depth):
    """``CancelledError`` comes out at any depth within a second, and nothing is asked again."""
    model = kind()
    judge = nest(Judge(model, timeout=None), depth, timeout=None)

    async def leave():
        task = asyncio.create_task(judge.ask("Is it safe?"))
        await asyncio.sleep(0.5)
        for _ in range(3):  # once more and again: the grace grows no longer by it
            task.cancel()
            await asyncio.sleep(0.3)
        return await task

    outcome, took = timed(leave)
    assert isinstance(outcome, asyncio.CancelledError)
    assert (model.calls, took <= 0.5 + GRACE + 0.01) == (1, True)


def test_a_second_limit_in_the_middle_of_the_grace_makes_it_no_longer():
    """The seat's limit is over at 0.5 s and the deadline at 1 s; the chain is over at 1.5 s, and not at 2."""
    result, took = timed(lambda: JudgeChain([Stubborn()], timeout=0.5, deadline=1.0).ask("Is it safe?"))

    assert (result.undecided_because, took <= 0.5 + GRACE + 0.01) == ("timeout", True)


def test_who_ignores_his_cancellation_is_logged_when_he_is_let_go_and_when_he_ends(caplog):
    """Once each, in words that quote nothing; and nothing of it is reported by the loop."""

    class Raising(Stubborn):
        async def complete(self, request, /):
            await self.wait()
            raise ValueError("private")

    caplog.set_level(logging.WARNING, "adjudge")
    timed(lambda: nest(Judge(Raising(), name="odd", timeout=0.5), 3, timeout=None).ask("Is it safe?"))
    messages = [record.getMessage() for record in caplog.records]

    assert len(messages) == 2
    assert "judge 'odd'" in messages[0]
    assert "let go" in messages[0]
    assert "ValueError" in messages[1]
    assert "private" not in "".join(messages)


def test_who_ends_in_time_is_not_logged(caplog):
    """A cancellation that is honoured, or that takes half a second to clean up after, is nothing to speak of."""

    class Tidy(Stubborn):
        async def complete(self, request, /):
            try:
                await asyncio.sleep(LATE)
            finally:
                await asyncio.sleep(0.5)

    caplog.set_level(logging.WARNING, "adjudge")
    result, took = timed(lambda: JudgeChain([Judge(Tidy())], timeout=0.5).ask("Is it safe?"))

    assert (result.undecided_because, took, caplog.records) == ("timeout", 1.0, [])


def test_a_function_in_a_thread_is_dropped_and_asked_nothing_more():
    """A thread cannot be killed: its answer comes to nobody, and none of it is paid for again."""
    free, calls, finished = threading.Event(), [], []

    def slow(prompt):
        calls.append(prompt)
        free.wait(HANG)
        finished.append(prompt)
        return UNREADABLE

    result = JudgeChain([slow, slow], strategy="consensus", timeout=0.2, deadline=0.3).evaluate_sync(
        "x", criteria="Ok."
    )
    finished_before = len(finished)
    free.set()
    time.sleep(0.1)

    assert (result.undecided_because, len(calls), finished_before) == ("timeout", 2, 0)


def test_a_redaction_that_is_late_sends_nothing():
    """It swallowed the limit and gave its text after it: the model is not asked any more."""
    late, asked = Answering(), []

    async def redact(text):
        await late.wait()
        return text

    async def answer(prompt):
        asked.append(prompt)
        return YES

    result, took = timed(lambda: Judge(answer, redact=redact, timeout=0.5).ask("Is it safe?"))
    assert (result.undecided_because, asked, took <= 0.5 + GRACE) == ("timeout", [], True)


@kinds
def test_a_hook_keeps_nobody_who_is_cancelled(kind):
    """A hook has no limit of its own, but whoever cancels the call is rid of it after the grace."""
    hook = kind()

    async def on_result(result):
        await hook.wait()

    async def answer(prompt):
        return YES

    async def leave():
        async with asyncio.timeout(0.5):
            return await Judge(answer, token=False, on_result=on_result).ask("Is it safe?")

    outcome, took = timed(leave)
    assert isinstance(outcome, TimeoutError)
    assert took <= 0.5 + GRACE + 0.01


@kinds
@pytest.mark.parametrize("at_a_gate", [True, False])
def test_nobody_is_asked_after_a_rule_that_swallows_the_cancellation(kind, at_a_gate):
    """Of a judge with a rule of one's own as of a gate: the caller has gone, so nothing is paid for him."""
    waiting, asked = kind(), []

    async def check(content):
        await waiting.wait()
        return True

    async def answer(prompt):
        asked.append(prompt)
        return YES

    async def leave():
        rule, judge = Rule(name="slow", evaluate=check), Judge(answer, rubric="security")
        async with asyncio.timeout(0.5):
            if at_a_gate:
                return await Gate("g", "security", judge, rules=[rule]).check("x")
            return await judge.evaluate("x", rules=[rule])

    outcome, took = timed(leave)
    assert (type(outcome), asked) == (TimeoutError, [])
    assert took <= 0.5 + GRACE + 0.01


@kinds
def test_leaving_many_early_waits_for_the_grace_and_no_longer(kind):
    """``evaluate_many`` leaves nobody behind who would be asked again."""
    model = kind()

    async def leave():
        async def contents():
            for number in range(5):
                yield f"{number}"

        async with asyncio.timeout(0.5), aclosing(contents()) as texts:
            return [
                item async for item in Judge(model, timeout=None).evaluate_many(texts, criteria="Ok.", concurrency=2)
            ]

    outcome, took = timed(leave)
    assert isinstance(outcome, TimeoutError)
    assert (model.calls, took <= 0.5 + GRACE + 0.01) == (2, True)


def test_a_source_that_swallows_the_cancellation_has_nothing_more_judged():
    """What it hands out after that is not asked about."""
    source, asked = Answering(), []

    async def contents():
        yield "first"
        await source.wait()
        yield "second"

    async def answer(prompt):
        asked.append(prompt)
        return YES

    async def leave():
        async with asyncio.timeout(0.5):
            judge = Judge(answer, token=False, reask=0)
            return [item async for item in judge.evaluate_many(contents(), criteria="Ok.", concurrency=1)]

    outcome, _ = timed(leave)
    assert isinstance(outcome, TimeoutError)
    assert len(asked) == 1


@kinds
def test_firewalls_and_probes_keep_the_limit_of_their_judges(kind):
    """They ask a chain, so what they wait for is the chain's limit and a second."""
    model = kind()
    chain = JudgeChain([model], timeout=0.5)
    verdict, took = timed(lambda: PromptFirewall(chain).check(["Be kind."]))
    assert (verdict.allowed, verdict.fallback_triggered, took <= 0.5 + GRACE + 0.01) == ((), True, True)

    model.calls = model.cancelled = 0
    probe = SemanticProbe(name="p", input="x", expected="y")
    result, took = timed(lambda: evaluate_probe(probe, chain, actual="z"))
    assert (result.undecided_because, model.calls, took <= 0.5 + GRACE + 0.01) == ("timeout", 1, True)


@kinds
def test_a_tool_that_is_probed_keeps_to_its_limit(kind):
    """An async tool that swallows its cancellation gave no output in time."""
    tool = kind()

    async def call(value):
        await tool.wait()
        return "late"

    probe = SemanticProbe(name="p", input="x", expected="y")
    judge = JudgeChain([Seat("passed")])
    result, took = timed(lambda: evaluate_probe(probe, judge, tool=call, tool_timeout=0.5))

    assert (result.outcome, took <= 0.5 + GRACE + 0.01) == ("failed", True)
    assert "no output within 0.5 s" in result.detail
