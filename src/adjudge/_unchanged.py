"""What was judged is what goes on: for guards, and for whatever else judges a value that somebody else may hold too.

A judge takes seconds and a person hours, and meanwhile other tasks and threads can change a list that was handed in.
So what is judged is a copy, or is looked at again before it is used; what is not the same any more never runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from typing import Any

from adjudge._depth import MOST_DEPTH
from adjudge.content import digest_text


def copy_plain(value: Any) -> Any:
    """A copy of dictionaries, lists and tuples, nested as they are; anything else as it is."""
    return _copy(value, {}, 0)


def _copy(value: Any, done: dict[int, Any], depth: int) -> Any:
    kind = type(value)  # not isinstance: a type of somebody's own may hold more than its members
    if kind not in (dict, list, tuple) or depth >= MOST_DEPTH:
        return value
    if id(value) in done:  # what holds itself twice would otherwise double the work with every level
        return done[id(value)]
    if kind is tuple:
        return done.setdefault(id(value), tuple([_copy(item, done, depth + 1) for item in value]))
    made: Any = kind()
    done[id(value)] = made
    if kind is dict:
        made.update({key: _copy(item, done, depth + 1) for key, item in list(value.items())})
    else:
        made += [_copy(item, done, depth + 1) for item in list(value)]
    return made


def has_changed(judged: str | None, write: Callable[[], str]) -> bool:
    """Whether what was judged, by the digest of its text, is not what ``write`` writes now.

    What cannot be written, or was never read, cannot be compared, and counts as changed.
    """
    try:
        return judged is None or digest_text(write()) != judged
    except (Exception, SystemExit):  # noqa: BLE001 - an object of anybody's may raise anything when it is opened
        return True


def call_unchanged(function: Callable[..., Any], bound: inspect.BoundArguments, refuse: Callable[[], None]) -> Any:
    """Call a function whose arguments were judged; ``refuse`` raises where they are not the same any more.

    The body of a generator, or of a coroutine that somebody awaits later, has not begun when the call returns, so it is
    looked at again when it does begin.
    """
    said = function(*bound.args, **bound.kwargs)
    if inspect.isgenerator(said) and inspect.getgeneratorstate(said) == inspect.GEN_CREATED:
        return _begin_generator(said, refuse)
    if inspect.iscoroutine(said) and inspect.getcoroutinestate(said) == inspect.CORO_CREATED:
        return _begin_coroutine(said, refuse)
    return said


def _begin_generator(said: Generator[Any, Any, Any], refuse: Callable[[], None]) -> Generator[Any, Any, Any]:
    refuse()
    return (yield from said)


async def _begin_coroutine(said: Any, refuse: Callable[[], None]) -> Any:
    try:
        refuse()
    except BaseException:
        said.close()  # or it would warn that nobody awaited it
        raise
    return await said
