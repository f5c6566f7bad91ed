"""What is somebody else's is called here (hooks, ledgers, redactions): what it does wrong is known and never thrown."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import Any

from adjudge.concurrency import Timeout, count_cancellations, is_for_us

logger = logging.getLogger("adjudge")
"""Log content, and anything that may quote it, at DEBUG only."""


async def call_safely(
    function: Callable[..., Any], /, *given: object, **how: object
) -> tuple[Any, BaseException | None]:
    """What a sync or async function returned and ``None``, or ``None`` and what it raised.

    A cancellation from outside passes through; one that the function made itself is a failure like any other.
    """
    return await call_within(Timeout(None), function, *given, **how)


async def call_within(
    limit: Timeout, function: Callable[..., Any], /, *given: object, **how: object
) -> tuple[Any, BaseException | None]:
    """``call_safely`` under a limit, which may be over even where there is an answer: ``limit.late`` says so."""
    cancelled = count_cancellations()
    try:
        said = function(*given, **how)
        if inspect.isawaitable(said):
            # In a task of its own: it cannot keep whoever is cancelled, nor make him go on as if he were not.
            said = await limit.run(said, what=_describe(function))
    except asyncio.CancelledError:
        if count_cancellations() > cancelled:
            raise
        return None, RuntimeError("it cancelled itself")
    except BaseException as error:
        if is_for_us(error):
            raise
        return None, error  # what it raises is the caller's to judge
    return said, None


def _describe(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", None) or type(function).__name__


async def notify(hook: Callable[[Any], Any] | None, value: object, *, what: str) -> None:
    """Call a hook, if there is one; what it raises is logged."""
    if hook is None:
        return
    _, error = await call_safely(hook, value)
    if error is not None:
        # Its type alone: a hook is handed content, and what it raises may quote that.
        logger.error("the %s hook raised %s; its traceback is logged at DEBUG", what, type(error).__name__)
        logger.debug("what the %s hook raised", what, exc_info=error)
