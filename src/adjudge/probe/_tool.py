"""Calling the tool that is probed: whatever it does, the probe gets an output or the sentence why there is none."""

from __future__ import annotations

import asyncio
import copy
import inspect
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from adjudge._foreign import call_within
from adjudge._tasks import Limit
from adjudge.errors import AdjudgeError, UsageError
from adjudge.rules._words import flatten, show

Tool = Callable[[Any], Any]


def check_tool(tool: Any) -> None:
    """Raise ``UsageError`` for what is no tool."""
    if not callable(tool):
        raise UsageError(f"a tool must be a function of the probe's input, got {show(tool)}")


async def call_tool(tool: Tool, given: Any, *, timeout: float | None) -> tuple[Any, str]:
    """The tool's output and nothing, or nothing and why there is none.

    An async function runs here; any other runs in a thread of its own, which cannot be killed: when it is late, what
    it still returns is dropped. It is given a copy of the input, so that it cannot change what the next call gets.
    """
    limit = Limit(timeout)
    said, error = await call_within(limit, _call, tool, given)
    if limit.late:
        return None, f"the tool gave no output within {timeout:g} s"
    if error is not None:
        said = str(error) if isinstance(error, AdjudgeError) else f"the tool raised {type(error).__name__}: {error}"
        return None, flatten(said, 500)
    return said, ""


async def _call(tool: Tool, given: Any) -> Any:
    own = copy.deepcopy(given)
    if inspect.iscoroutinefunction(tool) or inspect.iscoroutinefunction(getattr(tool, "__call__", None)):  # noqa: B004
        return await tool(own)
    said = await _run_in_thread(tool, own)
    return await said if inspect.isawaitable(said) else said


async def _run_in_thread(tool: Tool, given: Any) -> Any:
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

    def settle(said: Any, error: BaseException | None) -> None:
        if not answer.done():
            answer.set_result((said, error))

    def work() -> None:
        outcome: tuple[Any, BaseException | None] = (None, RuntimeError("it ended its own thread"))
        try:
            outcome = (tool(given), None)
        except (Exception, SystemExit, asyncio.CancelledError) as error:  # noqa: BLE001 - raised where it is awaited
            outcome = (None, error)
        finally:
            with suppress(RuntimeError):  # the loop was closed meanwhile, and nobody waits
                loop.call_soon_threadsafe(settle, *outcome)

    # Not the loop's executor: a tool that hangs would hold one of its threads, and the end of the program.
    threading.Thread(target=work, name="adjudge probe", daemon=True).start()
    said, error = await answer
    if error is not None:
        ours = isinstance(error, Exception) and not isinstance(error, StopIteration)
        raise error if ours else RuntimeError(f"{type(error).__name__}: {error}")
    return said
