"""Functions as models: what is accepted, what a function gets, and what happens to one that hangs or fails."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import subprocess
import sys
import threading
from typing import Any

import pytest

from adjudge import Judge, JudgeChain, ModelError, UsageError
from adjudge.models import Model, Reply, as_model, hosts_of, judge_function
from kit.patience import HANG
from kit.wire import PLAIN


def answer(source, name=None):
    """What a model made of ``thing`` replies."""
    return asyncio.run(as_model(source, name).complete(PLAIN))


def one(prompt):
    return f"1<{prompt}>"


def two(system, user):
    return f"2<{system}|{user}>"


async def one_later(prompt):
    await asyncio.sleep(0)
    return f"1<{prompt}>"


async def two_later(system, user):
    return f"2<{system}|{user}>"


class Caller:
    def __call__(self, prompt):
        return f"1<{prompt}>"

    def method(self, system, user):
        return f"2<{system}|{user}>"


class LaterCaller:
    async def __call__(self, system, user):
        return f"2<{system}|{user}>"


JOINED = "1<Be a judge.\n\nJudge this.>"
BOTH = "2<Be a judge.|Judge this.>"


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        pytest.param(one, JOINED, id="one"),
        pytest.param(two, BOTH, id="two"),
        pytest.param(one_later, JOINED, id="async one"),
        pytest.param(two_later, BOTH, id="async two"),
        pytest.param(lambda prompt: f"1<{prompt}>", JOINED, id="lambda"),
        pytest.param(lambda prompt, /: one_later(prompt), JOINED, id="returns awaitable"),
        pytest.param(lambda prompt, temperature=0.2: one(prompt), JOINED, id="optional second"),
        pytest.param(lambda *parts: one("".join(parts)), JOINED, id="star"),
        pytest.param(lambda prompt, **options: one(prompt), JOINED, id="keywords"),
        pytest.param(functools.partial(two, "S"), "2<S|Be a judge.\n\nJudge this.>", id="partial"),
        pytest.param(functools.partial(two_later, "S"), "2<S|Be a judge.\n\nJudge this.>", id="async partial"),
        pytest.param(Caller(), JOINED, id="instance"),
        pytest.param(LaterCaller(), BOTH, id="async instance"),
        pytest.param(Caller().method, BOTH, id="method"),
    ],
)
def test_a_function_gets_one_text_or_both(function, expected):
    """One parameter: both parts joined by a blank line; two required ones: each. Sync or async, however wrapped."""
    assert answer(function).text == expected


def test_an_empty_system_part_adds_nothing():
    """A ready-made prompt reaches a function as it is."""
    request = type(PLAIN)(system="", user="as it is")
    assert asyncio.run(as_model(lambda prompt: prompt).complete(request)).text == "as it is"


def test_an_adapter_becomes_a_model():
    """An object with a name and evaluate(prompt), sync or async, as in the seeds."""

    class Adapter:
        name = "claude-haiku"

        def evaluate(self, prompt):
            return one(prompt)

    class LaterAdapter(Adapter):
        async def evaluate(self, prompt):
            return one(prompt)

    for adapter in (Adapter(), LaterAdapter()):
        assert as_model(adapter).name == "claude-haiku"
        assert answer(adapter).text == JOINED
    assert as_model(Adapter(), "other").name == "other"


@pytest.mark.parametrize(
    ("source", "name", "expected"),
    [
        pytest.param(one, None, "one", id="function"),
        pytest.param(one, "given", "given", id="given"),
        pytest.param(("paired", one), None, "paired", id="pair"),
        pytest.param(("paired", one), "given", "given", id="given over pair"),
        pytest.param(functools.partial(two, "x"), None, "two", id="partial"),
        pytest.param(lambda prompt: "", None, "function", id="lambda"),
        pytest.param(Caller(), None, "Caller", id="instance"),
    ],
)
def test_a_function_model_has_a_name(source, name, expected):
    """The given name, else the pair's, else the function's own."""
    model = as_model(source, name)
    assert model.name == expected
    assert isinstance(model, Model)
    assert hosts_of(model) == ()


def test_a_model_passes_through():
    """What is a Model already is not wrapped."""
    model = as_model(one)
    assert as_model(model) is model


@pytest.mark.parametrize(
    ("source", "says"),
    [
        pytest.param("openai:gpt-6.1-terra", "open_model", id="spec"),
        pytest.param(5, "not int", id="number"),
        pytest.param(None, "not NoneType", id="none"),
        pytest.param(("a", one, 3), r"\(name, function\)", id="triple"),
        pytest.param((one, "a"), r"\(name, function\)", id="swapped pair"),
        pytest.param(lambda: "", "one parameter", id="no parameter"),
        pytest.param(lambda a, b, c: "", "one parameter", id="three"),
        pytest.param(lambda a, *, key: "", "one parameter", id="required keyword"),
    ],
)
def test_what_cannot_be_a_model_is_refused(source, says):
    """The error says what a model may be."""
    with pytest.raises(UsageError, match=says):
        as_model(source)


@pytest.mark.parametrize("value", [None, True, 5, 0.5, ("x", 1), {"score": 0.5}], ids=str)
def test_a_verdict_is_no_reply(value):
    """It is what a judge in code returns: a mistake in the program, so it raises, with the line to write."""

    def mine(prompt):
        return value

    with pytest.raises(UsageError, match=rf"mine returned {type(value).__name__}.*def mine\(content\)"):
        answer(mine)


@pytest.mark.parametrize("value", [None, True, 5, 0.5, ("x", 1), {"score": 0.5}], ids=str)
def test_a_verdict_of_an_adapter_or_a_pair_is_a_failed_call(value):
    """Their shape made them models: in a chain the seat is undecided, stays in the count, and the next is asked."""

    class Adapter:
        name = "mine"

        def evaluate(self, prompt):
            return value

    class Later:
        name = "next"

        def evaluate(self, prompt):
            return "no reply either"

    for source in (Adapter(), ("mine", lambda prompt: value)):
        with pytest.raises(ModelError, match=f"mine returned {type(value).__name__}"):
            answer(source)
        result = JudgeChain([source, Later()]).evaluate_sync("x", criteria="Good.")
        assert [seat.undecided_because for seat in result.results] == ["error", "unparseable"]
        assert not result.passed
        renamed = as_model(("other", as_model(source)))
        with pytest.raises(ModelError, match="other returned"):
            asyncio.run(renamed.complete(PLAIN))


@pytest.mark.parametrize("answered", [True, "no reply"], ids=str)
def test_an_adapter_is_told_what_makes_it_judge_in_code(answered: Any):
    """Not to rename the parameter of its ``evaluate``, which changes nothing: its shape makes it a model."""

    class Adapter:
        name = "mine"

        def evaluate(self, content: str) -> Any:
            return answered

    adapter = Adapter()
    detail = Judge(adapter, reask=0).evaluate_sync("x", criteria="Good.").detail
    assert "hand in judge_function(adapter.evaluate)" in str(detail)
    assert "name its parameter" not in str(detail)

    assert Judge(judge_function(lambda content: True)).evaluate_sync("x", criteria="Good.").passed
    assert Judge(judge_function(adapter.evaluate)).model.name == "evaluate"


@pytest.mark.parametrize("value", [b"bytes", {"passed": True}, ["x"]], ids=str)
def test_a_function_returns_a_text_or_a_reply(value):
    """Anything else is an error that names the type; a Reply passes through."""
    with pytest.raises(ModelError, match=f"mine returned {type(value).__name__}"):
        answer(lambda prompt: value, "mine")

    reply = Reply(text="x", finish_reason="length")
    assert answer(lambda prompt: reply) is reply


@pytest.mark.parametrize("raised", [ValueError("boom"), StopIteration(), asyncio.CancelledError()], ids=repr)
def test_a_function_that_raises_is_a_model_error(raised):
    """Whatever a synchronous function raises in its thread, the caller gets a ModelError with the function's name."""

    def fails(prompt):
        raise raised

    with pytest.raises(ModelError, match="fails"):
        answer(fails)


def test_an_async_function_that_raises_is_a_model_error():
    """The same for a coroutine; a ModelError of its own passes through."""

    async def fails(prompt):
        raise TimeoutError("late")

    async def says(prompt):
        raise ModelError("no", status=503)

    with pytest.raises(ModelError, match="fails raised TimeoutError: late"):
        answer(fails)
    with pytest.raises(ModelError) as caught:
        answer(says)
    assert caught.value.status == 503


def test_context_variables_reach_the_thread():
    """A tracing context set by the caller is seen by a synchronous function."""
    trace = contextvars.ContextVar("trace", default="none")
    trace.set("t-1")

    assert answer(lambda prompt: trace.get()).text == "t-1"


def test_a_cancelled_call_returns_at_once():
    """A thread cannot be killed, but nobody waits for it: the call ends, others go on, the late result is dropped."""
    release, entered = threading.Event(), threading.Event()

    def hangs(prompt):
        if "first" in prompt:
            entered.set()
            release.wait(HANG)
        return "done"

    async def run():
        model = as_model(hangs)
        first = asyncio.create_task(model.complete(type(PLAIN)(system="", user="first")))
        await asyncio.to_thread(entered.wait, 10)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        second = await model.complete(PLAIN)
        release.set()
        return second.text

    assert asyncio.run(run()) == "done"


def test_no_more_threads_than_allowed():
    """max_concurrency threads run at once, and as many as that."""
    running, most, lock = 0, 0, threading.Lock()
    barrier = threading.Barrier(3, timeout=HANG)

    def counts(prompt):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        barrier.wait()
        with lock:
            running -= 1
        return "x"

    async def run():
        model = as_model(counts, max_concurrency=3)
        async with asyncio.TaskGroup() as group:
            for _ in range(12):
                group.create_task(model.complete(PLAIN))

    asyncio.run(run())
    assert most == 3
    with pytest.raises(UsageError, match="max_concurrency"):
        as_model(one, max_concurrency=0)


HANGING = """
import asyncio, threading
from adjudge.models import Request, as_model
async def main():
    try:
        async with asyncio.timeout(0.05):
            await as_model(lambda prompt: threading.Event().wait()).complete(Request(system="", user=""))
    except TimeoutError:
        print("gave up")
asyncio.run(main())
"""


@pytest.mark.integration
def test_a_function_that_hangs_does_not_hold_the_program():
    """The interpreter ends although a model function never returns."""
    done = subprocess.run([sys.executable, "-c", HANGING], capture_output=True, text=True, timeout=HANG, check=False)
    assert (done.stdout, done.returncode) == ("gave up\n", 0), done.stderr


@pytest.mark.parametrize(
    ("reply", "without", "in_code"),
    [
        ('{"criteria": []}', True, True),
        ('```json\n{"criteria": []}\n```', True, True),
        ('Here is my verdict:\n{"criteria": []}', True, True),
        ('Here is my verdict:\n```json\n{"criteria": []}\n```', True, True),
        ('<think>It is good.</think>{"criteria": []}', True, True),
        ('{"criteria": []} I hope this helps.', False, True),
        ("ok", False, True),
        ('{"token": "{token}", "criteria": [}', False, False),
        ('{"token": "abcdefgh", "criteria": []}', False, False),
    ],
)
def test_a_function_that_leaves_out_the_token_is_told(reply: str, without: bool, in_code: bool):
    """A reply that could be read without it may go without; any other says that the function was given the prompt."""

    def answer(prompt: str) -> str:
        return reply.replace("{token}", prompt.rpartition('{"token": "')[2][:8])

    result = Judge(answer, reask=0).evaluate_sync("x", criteria="Good.")

    assert result.undecided_because == "unparseable"
    assert ("for a model that never copies it: --no-token (token=False in Python)" in result.detail) is without
    assert ("answer was given the prompt; to judge in code, name its parameter content" in result.detail) is in_code


class Forgetful:
    """A model that answers in the form, without the token of the question."""

    name = "forgetful"

    def __init__(self, text):
        self.text = text

    async def complete(self, request):
        return Reply(text=self.text)


def test_a_model_that_does_not_copy_the_token_is_told_how_to_do_without():
    """In the first undecided result; the doctor is not needed for that."""
    result = Judge(Forgetful('{"criteria": []}'), reask=0).evaluate_sync("x", criteria="Good.")

    assert "for a model that never copies it: --no-token" in result.detail
    assert "doctor" not in result.explain()


def test_a_wrong_token_is_no_reason_to_do_without_it():
    """The model may have been attacked; to take the token away would be no remedy."""
    result = Judge(Forgetful('{"token": "abcdefgh", "criteria": []}'), reask=0).evaluate_sync("x", criteria="Good.")

    assert (result.undecided_because, "token=False" in result.detail) == ("unparseable", False)
