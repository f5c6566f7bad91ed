"""What is somebody else's may return and raise what it likes: the seat is undecided, and the chain answers."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from typing import Any

import pytest

from adjudge import (
    Gate,
    InputFirewall,
    Judge,
    JudgeChain,
    JudgeChainResult,
    JudgeResult,
    PromptFirewall,
    SemanticProbe,
    Usage,
    UsageError,
    evaluate_probe,
)
from adjudge.models import Reply
from gate_support import GOOD, check, gate, word
from judge_support import Plain, complaint, passed, said
from virtual_clock import run_virtual


class TextRaisesError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class OwnBase(BaseException):
    pass


RAISED = [
    RuntimeError("x"),
    StopIteration("x"),
    GeneratorExit("x"),
    BaseExceptionGroup("x", [OwnBase("y")]),
    BaseExceptionGroup("x", [asyncio.CancelledError()]),
    SystemExit(0),
    OwnBase("x"),
    TextRaisesError(),
    asyncio.CancelledError(),
    UsageError("x"),
]


class OtherInit(JudgeResult):
    def __init__(self, says: str) -> None:
        super().__init__(outcome="passed", judge=says)


class Lying(JudgeResult):
    @property
    def passed(self) -> bool:
        return True


class Hostile(JudgeResult):
    @property
    def usage(self) -> Any:
        raise RuntimeError("no usage")

    @usage.setter
    def usage(self, value: Any) -> None:
        pass


class EqualToAll(str):
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__


def spoil(**members: Any) -> JudgeResult:
    """A result with members that its own checks would not have let in."""
    made = JudgeResult(outcome="passed", judge="seat", score=1.0)
    for name, value in members.items():
        object.__setattr__(made, name, value)
    return made


def chained(*results: Any) -> JudgeChainResult:
    return JudgeChainResult(outcome="passed", judge="seat", strategy="consensus", results=results)


def nest(depth: int) -> JudgeResult:
    made: JudgeResult = JudgeResult(outcome="passed", judge="seat")
    for _ in range(depth):
        made = chained(made)
    return made


RETURNED = {
    "nothing": None,
    "a boolean": True,
    "a text": "passed",
    "a subclass with another __init__": OtherInit("other"),
    "a subclass with another __init__ and the seat's name": OtherInit("seat"),
    "a subclass whose passed lies": Lying(outcome="failed", judge="seat"),
    "a property that raises": object.__new__(Hostile),
    "a confidence that is a text": spoil(confidence="0.9"),
    "a confidence that is NaN": spoil(confidence=math.nan),
    "a confidence of 5": spoil(confidence=5.0),
    "a confidence that is true": spoil(confidence=True),
    "a score that is a text": spoil(score="1"),
    "an outcome that equals everything": spoil(outcome=EqualToAll("x")),
    "an unknown outcome": spoil(outcome="fine"),
    "an unknown decider": spoil(decided_by="me"),
    "a reason that is a list": spoil(outcome="undecided", score=None, undecided_because=["error"]),
    "usage that is a text": spoil(usage="much"),
    "usage that cannot be added": spoil(usage=Usage(input_tokens="x")),  # type: ignore[arg-type]
    "attempts that are a text": spoil(attempts="2"),
    "criteria that are a text": spoil(criteria="x"),
    "criteria that are texts": spoil(criteria=("x",)),
    "a detail that is a number": spoil(detail=7),
    "seats that are no results": chained("x"),
    "seats that are no tuple": chained(*()).__class__(
        outcome="passed",
        judge="seat",
        strategy="consensus",
        results=7,  # type: ignore[arg-type]
    ),
    "a seat inside that is spoilt": chained(spoil(confidence=math.nan)),
    "seats without end": nest(5_000),
}


class Odd:
    """A judge and a model that returns or raises what it is told to."""

    name = "seat"

    def __init__(self, does: Any) -> None:
        self.does = does

    async def ask(self, question: Any, /) -> Any:
        if isinstance(self.does, BaseException):
            raise self.does
        return self.does

    complete = ask


CHAINS = [
    {},
    {"strategy": "consensus"},
    {"strategy": "majority"},
    {"strategy": "quorum", "quorum": 1},
    {"strategy": "hedged", "hedge_after": 9.0},
    {"strategy": "cascade", "escalate_below": 0.5},
    {"strategy": "consensus", "fail_open": True},
]
BAD = [pytest.param(does, id=repr(does)[:40]) for does in RAISED]
BAD += [pytest.param(does, id=name) for name, does in RETURNED.items()]


@pytest.mark.parametrize("does", BAD)
@pytest.mark.parametrize("options", CHAINS, ids=lambda options: "-".join(map(str, options.values())) or "fallback")
def test_whatever_a_seat_does_is_that_seats_own_trouble(does: Any, options: dict[str, Any]):
    """It is undecided: error, the others count as ever, and the chain neither raises nor passes by it."""
    result = run_virtual(JudgeChain([Odd(does)], timeout=None, **options).ask("Safe?"))
    beside = run_virtual(JudgeChain([Odd(does), passed(name="b")], timeout=None, **options).ask("Safe?"))

    assert [item.undecided_because for item in result.results] == ["error"]
    assert result.passed is bool(options.get("fail_open"))
    assert beside.results[0].undecided_because == "error"
    assert beside.to_dict()["results"][0]["outcome"] == "undecided"
    assert beside.results[-1].passed


@pytest.mark.parametrize("does", BAD)
def test_a_gate_blocks_whatever_its_judge_does(does: Any):
    """A judge of somebody's own behind a gate, alone or in a chain, ends in a decision."""
    assert word(check(gate(Odd(does)))) == ("blocked", "policy")
    assert not InputFirewall(Odd(does)).check_sync({"a": 1}).passed
    assert PromptFirewall(Odd(does)).check_sync(["Be kind."]).allowed == ()


@pytest.mark.parametrize(
    "error", [item for item in RAISED if type(item) is not asyncio.CancelledError], ids=lambda error: repr(error)[:40]
)
def test_whatever_a_model_raises_the_judgement_is_undecided(error: BaseException):
    """For a judge alone as in a chain, for functions and for models, and for a result format's own verdict."""

    def function(_: str) -> str:
        raise error

    async def coroutine(_: str) -> str:
        raise error

    for model in (Odd(error), function, coroutine):
        assert run_virtual(Judge(model, timeout=None).ask("Safe?")).undecided_because == "error"

    @dataclass
    class Verdict:
        fine: bool

    def passes(_: Verdict) -> bool:
        raise error

    model = Plain(lambda request: f'{{"token": "{request.token}", "fine": true}}')
    judging = Judge(model, timeout=None).evaluate("x", result_format=Verdict, passes=passes)
    assert run_virtual(judging).undecided_because == "error"


@pytest.mark.parametrize("error", RAISED, ids=lambda error: repr(error)[:40])
def test_whatever_hooks_rules_and_redactions_raise_is_known(error: BaseException):
    """A hook's is logged, a rule's fails the content, a redaction's keeps it from being sent."""

    def fail(*_: object) -> Any:
        raise error

    assert check(gate(passed(), on_result=fail, on_event=fail)).allowed
    assert word(check(gate(passed(), rules=[fail]))) == ("blocked", "rule")
    assert word(check(gate(passed(), redact=fail))) == ("blocked", "policy")
    assert run_virtual(JudgeChain([passed()], on_result=fail).ask("Safe?")).passed


@pytest.mark.parametrize("error", RAISED, ids=lambda error: repr(error)[:40])
def test_whatever_content_and_tools_raise_is_known(error: BaseException):
    """An object that is opened may raise; so may the tool behind a probe, and both end in a verdict."""

    class Trap:
        @property
        def output(self) -> str:
            raise error

    probe = SemanticProbe(name="p", input=1, expected="x")

    assert word(check(gate(passed()), Trap())) == ("blocked", "policy")
    assert run_virtual(evaluate_probe(probe, actual=Trap(), judge=passed())).outcome == "undecided"


@pytest.mark.parametrize("usage", ["much", 7, Usage(input_tokens="x"), Usage(output_tokens=None)], ids=repr)  # type: ignore[arg-type]
def test_usage_that_cannot_be_added_up_breaks_nothing(usage: Any):
    """What a provider reports beside a reply is no reason for a judge, or all judges of a chain, to raise."""
    fine, odd = Plain('{"safe": true}'), Plain(Reply(text='{"safe": true}', usage=usage), name="odd")
    beside = [Judge(odd), Judge(Plain(Reply(text='{"safe": true}', usage=Usage())))]
    again = Judge(Plain(Reply(text="?", usage=usage), Reply(text="?", usage=Usage())), timeout=None, reask=1)

    for strategy in ("consensus", "fallback"):
        result = run_virtual(JudgeChain(beside, strategy=strategy, timeout=None).ask("Safe?"))
        first = result.results[0]
        # Counts that cannot be true leave the answer, and its cost unknown; what is no usage at all is an error.
        assert (
            (first.passed and first.usage is None) if isinstance(usage, Usage) else first.undecided_because == "error"
        )
    assert said(run_virtual(again.ask("Safe?")))["outcome"] == "undecided"
    assert run_virtual(JudgeChain([Judge(fine)], timeout=None).ask("Safe?")).passed


def test_a_reply_whose_text_is_none_is_no_answer():
    """It cannot be read, whatever it holds in place of a text."""
    reply = Reply(text=7)  # type: ignore[arg-type]

    assert said(run_virtual(Judge(Plain(reply), timeout=None).ask("Safe?")))["because"] == "error"


def test_a_check_that_means_something_else_keeps_nobody_from_asking():
    """A judge of somebody's own may have a method of that name; only what it calls wrong usage is."""

    class Checked(Odd):
        def check(self, content: str, strictly: bool) -> None:
            raise AssertionError

    class Unready(Odd):
        def check(self, question: Any) -> None:
            raise UsageError("no key")

    assert run_virtual(JudgeChain([Checked(JudgeResult(outcome="passed", judge="seat"))]).ask("Safe?")).passed
    assert complaint(JudgeChain([Unready(None)]).ask, "Safe?") == "no key"


def test_a_good_result_of_a_class_of_its_own_counts():
    """It is kept as a plain result, whose members nobody computes anew."""

    class Fine(JudgeResult):
        pass

    result = run_virtual(JudgeChain([Odd(Fine(outcome="passed", judge="other", score=0.9, value=[1]))]).ask("Safe?"))

    assert (result.passed, result.score, result.results[0].value) == (True, 0.9, [1])
    assert (type(result.results[0]), result.results[0].judge) == (JudgeResult, "seat")


def test_ctrl_c_and_the_callers_cancellation_go_on():
    """They are nobody's failure, and no judge may swallow them."""
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(JudgeChain([Odd(KeyboardInterrupt())]).ask("Safe?"))
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(Judge(Odd(KeyboardInterrupt())).ask("Safe?"))

    async def main() -> None:
        task = asyncio.create_task(Judge(lambda _: asyncio.sleep(50), timeout=None).ask("Safe?"))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run_virtual(main())


def test_a_gate_around_a_judge_that_raises_says_so():
    """The decision holds what went wrong, in the seat's own result."""
    made = Gate("door", GOOD, JudgeChain([Odd(GeneratorExit("gone"))]))

    assert "GeneratorExit: gone" in check(made).result.results[0].detail
