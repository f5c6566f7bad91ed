"""Any function from text to text as a model."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from adjudge.concurrency import PerLoop, tell_error
from adjudge.errors import ModelError, UsageError
from adjudge.formats.arguments import check_whole_number
from adjudge.models.defaults import EXAMPLE
from adjudge.models.model import Model, Reply, Request

DEFAULT_CONCURRENCY = 64
"""Threads that synchronous functions of one model use at once, per event loop."""


class FunctionModel:
    """A function as a model; made by ``as_model``.

    A synchronous function runs in a thread of its own. A thread cannot be killed: when the caller gives up, what the
    function still returns is dropped, and its place is free again only when it has returned.
    """

    structured = False
    hosts: tuple[str, ...] = ()
    """What a function contacts is not known here."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str,
        takes_two: bool = False,
        max_concurrency: int = DEFAULT_CONCURRENCY,
    ) -> None:
        check_whole_number("max_concurrency", max_concurrency, least=1)
        self.name = name
        """How results and recordings call this model."""
        self._function = function
        self._takes_two = takes_two
        self._is_async = _is_async(function)
        self._places: PerLoop[asyncio.Semaphore] = PerLoop(lambda: asyncio.Semaphore(max_concurrency))

    async def complete(self, request: Request, /) -> Reply:
        """Call the function; raises ``ModelError`` when it raises, or returns neither a text nor a ``Reply``."""
        texts = (request.system, request.user)
        arguments = texts if self._takes_two else ("\n\n".join(text for text in texts if text),)
        try:
            said = self._function(*arguments) if self._is_async else await self._run_in_thread(arguments)
            if inspect.isawaitable(said):
                said = await said
        except ModelError:
            raise
        except Exception as error:
            raise ModelError(f"{self.name} raised {type(error).__name__}: {error}") from error
        if isinstance(said, Reply):
            return said
        if isinstance(said, str):
            return Reply(text=said)
        raise ModelError(f"{self.name} returned {type(said).__name__}; a model function returns a text or a Reply")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    async def _run_in_thread(self, arguments: tuple[str, ...]) -> Any:
        places = self._places.get()
        await places.acquire()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        call = functools.partial(contextvars.copy_context().run, self._function, *arguments)

        def settle(said: Any, error: Exception | None) -> None:
            places.release()
            if answer.done():
                return
            if error is None:
                answer.set_result(said)
            else:
                answer.set_exception(error)

        def work() -> None:
            outcome: tuple[Any, Exception | None] = (None, ModelError(f"{self.name} ended its own thread"))
            try:
                outcome = (call(), None)
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                # Raised where it is awaited.
                outcome = (None, _as_exception(self.name, error))
            finally:
                # A loop that was closed meanwhile has nobody who waits.
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(settle, *outcome)

        # Not the loop's executor: a function that hangs would hold one of its threads, and the end of the program.
        try:
            threading.Thread(target=work, name=f"adjudge {self.name}", daemon=True).start()
        except RuntimeError:  # the system has no more threads
            places.release()
            raise
        return await answer


def as_model(thing: object, name: str | None = None, *, max_concurrency: int = DEFAULT_CONCURRENCY) -> Model:
    """A model from a ``Model``, a function, a ``(name, function)`` pair, or an object with ``name`` and ``evaluate``.

    A function of one parameter gets system and user part joined by a blank line, one of two required parameters gets
    both. It may be asynchronous, and returns a text or a ``Reply``. Raises ``UsageError`` for anything else.
    """
    if isinstance(thing, str):
        raise UsageError(f"{thing!r} is a text; the name of a model is opened with open_model({thing!r})")
    if isinstance(thing, Model) and callable(getattr(thing, "complete", None)) and not isinstance(thing, type):
        return thing
    if isinstance(thing, tuple):
        if len(thing) != 2 or not isinstance(thing[0], str) or not thing[0].strip():
            raise UsageError(f"a pair must be (name, function), got {_describe(thing)}")
        return as_model(thing[1], name or thing[0], max_concurrency=max_concurrency)
    function = thing
    evaluate = getattr(thing, "evaluate", None)
    if callable(evaluate) and isinstance(getattr(thing, "name", None), str) and not isinstance(thing, type):
        function, name = evaluate, name or str(getattr(thing, "name", ""))
    if not callable(function):
        raise UsageError(
            f"a model is a spec such as '{EXAMPLE}', a function, a (name, function) pair or an object with "
            f"name and evaluate(prompt), not {_describe(thing)}"
        )
    return FunctionModel(
        function,
        name=name or _find_name(thing),
        takes_two=_count_required(function) == 2,
        max_concurrency=max_concurrency,
    )


def _count_required(function: Callable[..., Any]) -> int:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise UsageError(f"the parameters of {_describe(function)} cannot be read; wrap it in a function") from None
    positional = [item for item in parameters if item.kind in (item.POSITIONAL_ONLY, item.POSITIONAL_OR_KEYWORD)]
    required = [item for item in positional if item.default is item.empty]
    keywords = [item.name for item in parameters if item.kind is item.KEYWORD_ONLY and item.default is item.empty]
    takes_any = bool(positional) or any(item.kind is item.VAR_POSITIONAL for item in parameters)
    if len(required) > 2 or keywords or not takes_any:
        raise UsageError(
            f"{_describe(function)} must take one parameter (the prompt) or two (system and user), and takes "
            f"({', '.join(str(item) for item in parameters)})"
        )
    return len(required)


def _is_async(function: Callable[..., Any]) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _find_name(thing: Any) -> str:
    while isinstance(thing, functools.partial):
        thing = thing.func
    name = getattr(thing, "__name__", None) or type(thing).__name__
    return "function" if name == "<lambda>" else name


def _describe(thing: Any) -> str:
    return getattr(thing, "__qualname__", None) or type(thing).__name__


def _as_exception(name: str, error: BaseException) -> Exception:
    # A future cannot carry StopIteration, SystemExit would end the loop, and CancelledError would look like the
    # caller's own cancellation.
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    return ModelError(f"{name} raised {tell_error(error)}")
