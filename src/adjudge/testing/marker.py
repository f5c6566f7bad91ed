"""``@pytest.mark.judged``: reading the mark, and judging the content that a marked test returns."""

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
"""The attribute of a wrapped function that has the test's own function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkOptions:
    """The options of a mark."""

    repeat: int
    at_least: int
    arguments: dict[str, Any]
    """The arguments of every judgement."""


def read_mark(args: tuple[Any, ...], kwargs: dict[str, Any]) -> MarkOptions:
    """Read a mark's arguments; raises ``UsageError`` for those that make no sense."""
    arguments = dict(kwargs)
    if len(args) > 1 or (args and "rubric" in arguments):
        raise UsageError("judged takes one rubric; name everything else, like judged(rubric=..., repeat=3)")
    arguments |= {"rubric": args[0]} if args else {}
    if "throw_on_fail" in arguments:
        raise UsageError("judged decides by itself when a test fails; leave throw_on_fail out")
    repeat = _read_number("repeat", arguments.pop("repeat", 1), 1, MOST)
    at_least = _read_number("at_least", arguments.pop("at_least", repeat), 1, repeat)
    return MarkOptions(repeat=repeat, at_least=at_least, arguments=arguments)


def wrap(test: Callable[..., Any], options: MarkOptions, judge: TestJudge) -> Callable[..., Any]:
    """Wrap a test's function so that what it returns is judged; the wrapper is asynchronous if the function is."""
    wrapped = (
        _wrap_async(test, options, judge) if inspect.iscoroutinefunction(test) else _wrap_sync(test, options, judge)
    )
    setattr(wrapped, UNJUDGED, test)
    return wrapped


def _wrap_async(test: Callable[..., Any], options: MarkOptions, judge: TestJudge) -> Callable[..., Any]:
    """Wrap an asynchronous test so that it runs as often as the mark says, and its contents are judged."""

    @functools.wraps(test)
    async def run(*args: Any, **kwargs: Any) -> None:
        __tracebackhide__ = True
        results: list[JudgeResult] = []
        contents: list[Any] = []
        for _ in range(options.repeat):
            contents.append(_check_content(await test(*args, **kwargs)))
            results.append(await judge.evaluate(contents[-1], **options.arguments))
        _fail_test(describe_failure(results, options, judge, contents))
        judge.concluded = True

    return run


def _wrap_sync(test: Callable[..., Any], options: MarkOptions, judge: TestJudge) -> Callable[..., Any]:
    """Wrap a test so that it runs as often as the mark says, and its contents are judged."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        __tracebackhide__ = True
        results: list[JudgeResult] = []
        contents: list[Any] = []
        for _ in range(options.repeat):
            contents.append(_check_content(test(*args, **kwargs)))
            results.append(judge.evaluate_sync(contents[-1], **options.arguments))
        _fail_test(describe_failure(results, options, judge, contents))
        judge.concluded = True

    return run


def replace_test(item: pytest.Function, test: Callable[..., Any]) -> None:
    """Let pytest run a function in a test's place."""
    from unittest import TestCase

    item.obj = test
    if isinstance(item.instance, TestCase) and inspect.iscoroutinefunction(test):
        # pytest lets unittest run asynchronous methods, which takes them from the instance and not from pytest's item.
        setattr(item.instance, item.name, test)


def explain_missing_judgement(item: pytest.Item) -> str:
    """Explain why a marked test passed without a judgement of what it returns, and what to do about it."""
    from unittest import IsolatedAsyncioTestCase, TestCase

    test, instance = getattr(item, "obj", None), getattr(item, "instance", None)
    is_sync_test_case = isinstance(instance, TestCase) and not isinstance(instance, IsolatedAsyncioTestCase)
    if is_sync_test_case and inspect.iscoroutinefunction(test):
        remedy = "derive its class from unittest.IsolatedAsyncioTestCase, since TestCase awaits nothing"
    elif inspect.iscoroutinefunction(test):
        remedy = "let pytest-asyncio, anyio or unittest.IsolatedAsyncioTestCase await it"
    else:
        remedy = "give the mark before the test runs, and let nothing take the test's place or hide what it raises"
    return f"{item.name} is marked judged and passed without a judgement of what it returns; {remedy}"


def describe_failure(
    results: list[JudgeResult], options: MarkOptions, judge: TestJudge, contents: Sequence[object]
) -> str:
    """Describe why a test fails, with every result and content; empty when enough passed. Undecided is not a pass."""
    passed = sum(result.passed for result in results)
    if passed >= options.at_least:
        return ""
    runs = [
        f"run {number}: {explain(result, code_judges=judge.code_judges)}\n{show_content(content)}"
        for number, (result, content) in enumerate(zip(results, contents, strict=True), 1)
    ]
    head = f"{passed} of {len(results)} passed, and {options.at_least} must"
    return "\n".join([head, *runs, f"  again: {judge.command}"])


def _fail_test(reason: str) -> None:
    """Fail the running test with a reason; an empty reason lets it pass."""
    import pytest

    # Without a traceback, because no line of the test caused the failure.
    if reason:
        pytest.fail(reason, pytrace=False)


def _check_content(content: Any) -> Any:
    """Return what a test returned; raises ``UsageError`` for ``None``."""
    if content is None:
        _refuse_nothing()
    return content


def _refuse_nothing() -> NoReturn:
    """Raise ``UsageError`` for a test that returned nothing; otherwise the text "None" would be judged."""
    raise UsageError("a test marked judged returns what is to be judged, and this one returned nothing")


def _read_number(name: str, value: Any, low: int, high: int) -> int:
    return check_whole_number(name, value, least=low, most=high, where="judged")
