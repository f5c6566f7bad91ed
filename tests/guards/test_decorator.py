"""A gate around a function: nothing goes in, or comes out, that did not go through."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from adjudge import AdjudgeError, Blocked, Gate
from kit.gates import Desk, gate
from kit.judges import complaint, failed

GATE = Gate("short", rules=[{"name": "length", "max": 5}])
LONG = "more than five"


def test_an_argument_is_checked_before_the_function_runs():
    """What is blocked never reaches it; the error carries the decision."""
    ran = []

    @GATE.guard(argument="text")
    def send(to: str, text: str = "hi") -> str:
        ran.append(text)
        return f"{to}: {text}"

    assert send("ana", text="hello") == "ana: hello"
    with pytest.raises(Blocked) as caught:
        send("ana", LONG)

    assert ran == ["hello"]
    assert caught.value.decision.decided_by == "rule"
    assert str(caught.value) == caught.value.decision.explain()
    assert isinstance(caught.value, AdjudgeError)


def test_a_default_is_checked_too():
    """Whatever the function would see goes through."""

    @GATE.guard(argument="text")
    def send(text: str = LONG) -> str:
        return text

    with pytest.raises(Blocked):
        send()
    assert send("hi") == "hi"


def test_a_result_is_checked_before_it_is_handed_on():
    """Without an argument it is what the function returns that goes through."""

    @GATE.guard()
    def answer(size: int) -> str:
        return "x" * size

    assert answer(5) == "xxxxx"
    with pytest.raises(Blocked):
        answer(6)


def test_async_functions_stay_async():
    """Both ways, on the caller's loop."""

    @GATE.guard(argument="text")
    async def send(text: str) -> str:
        return text

    @GATE.guard()
    async def answer(text: str) -> str:
        return text

    assert inspect.iscoroutinefunction(send)
    for function in (send, answer):
        assert asyncio.run(function("hi")) == "hi"
        with pytest.raises(Blocked):
            asyncio.run(function(LONG))


def test_the_function_keeps_its_name_and_signature():
    """It is the same function to whoever reads about it."""

    @GATE.guard(argument="text")
    def send(text: str) -> str:
        """Send it."""
        return text

    assert (send.__name__, send.__doc__) == ("send", "Send it.")
    assert list(inspect.signature(send).parameters) == ["text"]


def test_methods_can_be_guarded():
    """``self`` is one argument among others."""

    class Mailer:
        @GATE.guard(argument="text")
        def send(self, text: str) -> str:
            return text

    assert Mailer().send("hi") == "hi"
    with pytest.raises(Blocked):
        Mailer().send(LONG)


def test_pending_is_not_through():
    """While a person has not answered, the function does not run."""
    made = gate(failed(), on_failed="ask", approvals=Desk(), wait=False)

    @made.guard(argument="text")
    def send(text: str) -> str:
        return text

    with pytest.raises(Blocked) as caught:
        send("x")
    assert caught.value.decision.pending
    assert "calling it again asks anew" in str(caught.value)
    assert "resume(error.decision, content=...)" in str(caught.value)
    with pytest.raises(Blocked) as stopped:
        GATE.guard(argument="text")(lambda text: text)(LONG)
    assert "resume" not in str(stopped.value)


def test_observe_holds_no_function_up():
    """It runs, and its result is handed on."""

    @gate(failed(), mode="observe").guard()
    def answer() -> str:
        return "x"

    assert answer() == "x"


def test_what_cannot_be_guarded_is_refused_at_once():
    """A missing parameter, a generator, something that is no function."""

    def send(text: str) -> str:
        return text

    def stream() -> object:
        yield "x"

    async def stream_later(text: str) -> object:
        yield text

    assert "it has no parameter 'body' (its parameters are text)" in complaint(GATE.guard(argument="body"), send)
    assert "what a generator yields is out before" in complaint(GATE.guard(), stream)
    assert "what a generator yields is out before" in complaint(GATE.guard(argument="text"), stream_later)
    assert "it is not a function" in complaint(GATE.guard(), 7)


def test_a_generator_may_take_what_went_through():
    """Its argument is checked when it is called, before it is first resumed."""

    @GATE.guard(argument="text")
    def letters(text: str) -> object:
        yield from text

    assert list(letters("abc")) == ["a", "b", "c"]
    with pytest.raises(Blocked):
        letters(LONG)
