"""A seat that is no judge of ours: it counts only by a ``JudgeResult``, and stays in the denominator without one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from adjudge import (
    InputFirewall,
    Judge,
    JudgeChain,
    JudgeResult,
    PromptFirewall,
    UsageError,
)
from kit.gates import check, gate, word
from kit.judges import Plain, complaint, passed
from kit.loops import run_virtual

RAISED = [
    RuntimeError("x"),
    StopIteration("x"),
    ExceptionGroup("x", [ValueError("y")]),
    asyncio.CancelledError(),
    UsageError("x"),
]

RETURNED = {"nothing": None, "a boolean": True, "a text": "passed"}


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


ENDING = [KeyboardInterrupt, SystemExit]


@pytest.mark.parametrize("ending", ENDING)
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_what_ends_the_program_ends_the_call(ending: type[BaseException], depth: int):
    """It is nobody's failure: no result and no decision is returned, so nothing passes by it."""
    judge: Any = Odd(ending())
    for _ in range(depth):
        judge = JudgeChain([judge, passed(name="b")], fail_open=_ == depth - 1)
    asks = [judge.ask, Judge(Odd(ending())).ask, gate(judge, on_undecided="allow").check]

    for ask in asks:
        with pytest.raises(ending):
            asyncio.run(ask("Safe?"))


@pytest.mark.parametrize("ending", ENDING)
def test_what_ends_the_program_in_a_function_ends_the_call(ending: type[BaseException]):
    """In a thread as in the loop; in a rule and a redaction as in a judge."""

    def function(_: object) -> Any:
        raise ending

    async def coroutine(_: object) -> Any:
        raise ending

    for fails in (function, coroutine):
        calls = [
            Judge(fails).ask("Safe?"),
            gate(passed(), rules=[fails], on_undecided="allow").check("x"),
            gate(passed(), redact=fails, on_undecided="allow").check("x"),
        ]
        for call in calls:
            with pytest.raises(ending):
                asyncio.run(call)


def test_the_callers_cancellation_goes_on():
    """No judge may swallow it."""

    async def main() -> None:
        task = asyncio.create_task(Judge(lambda _: asyncio.sleep(50), timeout=None).ask("Safe?"))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run_virtual(main())
