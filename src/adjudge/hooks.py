"""Calls of the program's functions (hooks, ledgers, redactions): an exception of theirs is returned and not raised."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import Any

from adjudge.concurrency import Timeout, count_cancellations
from adjudge.panic import convert_panics

logger = logging.getLogger("adjudge")
"""Log content, and anything that may quote it, at DEBUG only."""


async def call_safely(function: Callable[..., Any], /, *args: object, **kwargs: object) -> tuple[Any, Exception | None]:
    """Return what a sync or async function returned and ``None``, or ``None`` and the ``Exception`` it raised.

    A cancellation from outside, ``SystemExit`` and ``KeyboardInterrupt`` pass through. A cancellation that the function
    made itself is a failure like any other.
    """
    return await call_within(Timeout(None), function, *args, **kwargs)


async def call_within(
    limit: Timeout, function: Callable[..., Any], /, *args: object, **kwargs: object
) -> tuple[Any, Exception | None]:
    """Call a sync or async function under a limit; return its value and ``None``, or ``None`` and its ``Exception``.

    A cancellation is treated as by ``call_safely``. A function may return after the limit: ``limit.late`` says so.
    """
    cancellations_before = count_cancellations()
    try:
        with convert_panics():
            returned = function(*args, **kwargs)
        if inspect.isawaitable(returned):
            # In a task of its own: a function that ignores its cancellation must not keep the caller from ending.
            returned = await limit.run(returned, name=_name_function(function))
    except asyncio.CancelledError:
        if count_cancellations() > cancellations_before:
            raise
        return None, RuntimeError("it cancelled itself")
    except Exception as error:  # noqa: BLE001 - the caller decides what a failure means
        return None, error
    return returned, None


def _name_function(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", None) or type(function).__name__


async def notify(hook: Callable[[Any], Any] | None, value: object, *, name: str) -> None:
    """Call a hook, if there is one; what it raises is logged."""
    if hook is None:
        return
    _, error = await call_safely(hook, value)
    if error is not None:
        # Its type alone: a hook is handed content, and what it raises may quote that.
        logger.error("the %s hook raised %s; its traceback is logged at DEBUG", name, type(error).__name__)
        logger.debug("what the %s hook raised", name, exc_info=error)
