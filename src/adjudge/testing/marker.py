"""``@pytest.mark.judged``: a test that returns what is to be judged."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_whole_number
from adjudge.result import JudgeResult
from adjudge.testing.fixture import TestJudge
from adjudge.testing.summary import explain, show_content

if TYPE_CHECKING:
    import pytest


MOST = 1000
"""The highest ``repeat``."""

UNJUDGED = "_adjudge_unjudged"
"""Where a wrapped function keeps the test's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkOptions:
    """What a mark asks for."""

    repeat: int
    at_least: int
    how: dict[str, Any]
    """The arguments of every judgement."""


def read_mark(args: tuple[Any, ...], kwargs: dict[str, Any]) -> MarkOptions:
    """A mark's arguments, checked; raises ``UsageError`` for those that make no sense."""
    how = dict(kwargs)
    if len(args) > 1 or (args and "rubric" in how):
        raise UsageError("judged takes one rubric; name everything else, like judged(rubric=..., repeat=3)")
    how |= {"rubric": args[0]} if args else {}
    if "throw_on_fail" in how:
        raise UsageError("judged decides by itself when a test fails; leave throw_on_fail out")
    repeat = _read_number("repeat", how.pop("repeat", 1), 1, MOST)
    at_least = _read_number("at_least", how.pop("at_least", repeat), 1, repeat)
    return MarkOptions(repeat=repeat, at_least=at_least, how=how)


def wrap(test: Callable[..., Any], order: MarkOptions, judge: TestJudge) -> Callable[..., Any]:
    """The test's function, followed by judging what it returns; asynchronous exactly when the function is."""
    wrapped = _wrap_async(test, order, judge) if inspect.iscoroutinefunction(test) else _wrap_sync(test, order, judge)
    setattr(wrapped, UNJUDGED, test)
    return wrapped


def _wrap_async(test: Callable[..., Any], order: MarkOptions, judge: TestJudge) -> Callable[..., Any]:
    @functools.wraps(test)
    async def run(*args: Any, **kwargs: Any) -> None:
        __tracebackhide__ = True
        results: list[JudgeResult] = []
        contents: list[Any] = []
        for _ in range(order.repeat):
            contents.append(_need(await test(*args, **kwargs)))
            results.append(await judge.evaluate(contents[-1], **order.how))
        _fail(conclude(results, order, judge.again, contents))
        judge.concluded = True

    return run


def _wrap_sync(test: Callable[..., Any], order: MarkOptions, judge: TestJudge) -> Callable[..., Any]:
    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        __tracebackhide__ = True
        results: list[JudgeResult] = []
        contents: list[Any] = []
        for _ in range(order.repeat):
            contents.append(_need(test(*args, **kwargs)))
            results.append(judge.evaluate_sync(contents[-1], **order.how))
        _fail(conclude(results, order, judge.again, contents))
        judge.concluded = True

    return run


def put(item: pytest.Function, test: Callable[..., Any]) -> None:
    """Let pytest run a function in a test's place."""
    from unittest import TestCase

    item.obj = test
    if isinstance(item.instance, TestCase) and inspect.iscoroutinefunction(test):
        # pytest leaves asynchronous methods to unittest, which takes them from the instance and not from pytest's item.
        setattr(item.instance, item.name, test)


def find_lack(item: pytest.Item) -> str:
    """Why a marked test that passed is none: whatever ran it did not judge what it returns, and how it would."""
    from unittest import IsolatedAsyncioTestCase, TestCase

    test, instance = getattr(item, "obj", None), getattr(item, "instance", None)
    inner = isinstance(instance, TestCase) and not isinstance(instance, IsolatedAsyncioTestCase)
    if inner and inspect.iscoroutinefunction(test):
        remedy = "derive its class from unittest.IsolatedAsyncioTestCase, since TestCase awaits nothing"
    elif inspect.iscoroutinefunction(test):
        remedy = "let pytest-asyncio, anyio or unittest.IsolatedAsyncioTestCase await it"
    else:
        remedy = "give the mark before the test runs, and let nothing take the test's place or hide what it raises"
    return f"{item.name} is marked judged and passed without a judgement of what it returns; {remedy}"


def conclude(results: list[JudgeResult], order: MarkOptions, again: str, contents: Sequence[object]) -> str:
    """Why a test fails, with every result and what was judged; empty when enough passed. Undecided is not a pass."""
    passed = sum(result.passed for result in results)
    if passed >= order.at_least:
        return ""
    said = [
        f"run {number}: {explain(result)}\n{show_content(content)}"
        for number, (result, content) in enumerate(zip(results, contents, strict=True), 1)
    ]
    head = f"{passed} of {len(results)} passed, and {order.at_least} must"
    return "\n".join([head, *said, f"  again: {again}"])


def _fail(why: str) -> None:
    import pytest

    # No line of the test decided, so there is no traceback worth showing.
    if why:
        pytest.fail(why, pytrace=False)


def _need(content: Any) -> Any:
    if content is None:
        _refuse()
    return content


def _refuse() -> NoReturn:
    # Judging the text "None" would be a judgement on nothing that the test made.
    raise UsageError("a test marked judged returns what is to be judged, and this one returned nothing")


def _read_number(name: str, value: Any, low: int, high: int) -> int:
    return check_whole_number(f"judged({name}=...)", value, least=low, most=high)
