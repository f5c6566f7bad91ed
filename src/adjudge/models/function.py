"""Any function as a judge: one that is given the content judges itself, one that is given the prompt is a model.

``function_signature.py`` decides which it is, before the first call. Handed the prompt, a function finds the rubric's
own words in it and has to copy the token; so only a judge in code may answer with a mere boolean or number.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from traceback import walk_tb
from typing import Any, Literal

from adjudge.concurrency import PerLoop, describe_error
from adjudge.errors import FunctionError, ModelError, ShapeError, UsageError
from adjudge.formats.arguments import check_whole_number
from adjudge.formats.json_size import MOST_WRITTEN, measure_excess
from adjudge.models.defaults import EXAMPLE
from adjudge.models.function_identity import identify_function, name_function
from adjudge.models.function_signature import (
    Parameters,
    check_content_name,
    describe,
    describe_signature,
    find_kind,
    find_name,
    list_prompt_values,
    read_judge_parameters,
    read_model_parameters,
)
from adjudge.models.model import FunctionIdentity, Model, Reply, Request
from adjudge.threads import call_in_thread

DEFAULT_CONCURRENCY = 64
"""Threads that synchronous functions of one model use at once, per event loop."""


class _Caller:
    """Calls one function; a synchronous one in a thread.

    A thread cannot be killed: when the caller gives up, what the function still returns is dropped, and its slot among
    ``max_concurrency`` is free again only when it has returned.
    """

    def __init__(self, function: Callable[..., Any], *, name: str, max_concurrency: int) -> None:
        check_whole_number("max_concurrency", max_concurrency, least=1)
        self.function, self.name, self.max_concurrency = function, name, max_concurrency
        self.has_answered = False
        """True once a call has returned a value that is allowed. Before that, a wrong value is a mistake in the
        program, which is raised; afterwards the content may be the cause, and it is an undecided result."""
        self._is_async = _is_async(function)
        self._slots: PerLoop[asyncio.Semaphore] = PerLoop(lambda: asyncio.Semaphore(max_concurrency))

    def __reduce__(self) -> tuple[Callable[..., _Caller], tuple[Callable[..., Any]]]:
        # Pickled without the semaphores, which belong to the event loops of one process.
        return functools.partial(type(self), name=self.name, max_concurrency=self.max_concurrency), (self.function,)

    async def call(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """Call the function and return its value; raises ``ModelError`` for whatever it raises."""
        call = functools.partial(self.function, *arguments, **keywords)
        try:
            answer = call() if self._is_async else await self._call_in_thread(call)
            return await answer if inspect.isawaitable(answer) else answer
        except ModelError:
            raise
        except Exception as error:
            raise ModelError(f"{self.name} raised {describe_error(error)}{_describe_location(error)}") from error

    async def _call_in_thread(self, call: Callable[[], Any]) -> Any:
        """Call in a thread, as soon as one of ``max_concurrency`` slots is free."""
        slots = self._slots.get()
        await slots.acquire()
        return await call_in_thread(call, name=f"adjudge {self.name}", on_return=slots.release)


def _describe_location(error: BaseException) -> str:
    """Describe where an exception was raised, as `` at file.py:12``; empty if no code outside adjudge was called.

    The line is the last one in the function's own file. A library that the function calls may have raised the
    exception, and a line of that library would not tell what to mend.
    """
    frames = [
        (frame.f_code.co_filename, line)
        for frame, line in walk_tb(error.__traceback__)
        if frame.f_globals.get("__name__", "").partition(".")[0] != "adjudge"
    ]
    if not frames:
        return ""
    function_file = frames[0][0]
    lines = [line for file, line in frames if file == function_file]
    return f" at {PurePath(function_file).name}:{lines[-1]}"


FunctionShape = Literal["function", "pair", "adapter"]
"""The kind of object that was handed in: a function alone, a pair ``(name, function)``, or an adapter: an object with
``name`` and ``evaluate``."""


class FunctionModel:
    """A function that is given the prompt, as a model; made by ``as_model`` and ``model_function``."""

    structured = False
    hosts: tuple[str, ...] = ()
    """Unknown: a function may contact anything."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str,
        parameters: Parameters,
        max_concurrency: int = DEFAULT_CONCURRENCY,
        shape: FunctionShape = "function",
    ) -> None:
        self.name = name
        """The name of this model in results and recordings."""
        self._parameters = parameters
        self._shape = shape
        """The kind of object that was handed in. Only a function alone may be a judge in code by mistake, so only for
        it a wrong return value raises ``FunctionError``; for the others it is a failure of this call."""
        self._caller = _Caller(function, name=name, max_concurrency=max_concurrency)

    def rename(self, name: str) -> FunctionModel:
        """Return the same function as a model of another name."""
        return FunctionModel(
            self._caller.function,
            name=name,
            parameters=self._parameters,
            max_concurrency=self._caller.max_concurrency,
            shape=self._shape,
        )

    @property
    def in_code(self) -> str:
        """Advice for an error message: how to make this function a judge in code, which is given the content."""
        if self._shape == "adapter":
            return (
                "hand in judge_function(adapter.evaluate), because an object with evaluate is a model, whatever the "
                "parameter is called"
            )
        function = self._caller.function
        return (
            f"name its parameter content ({describe_signature(function)}), or hand in "
            f"judge_function({_find_identifier(function)})"
        )

    async def complete(self, request: Request, /) -> Reply:
        """Call the function with the prompt, and return its reply.

        Raises ``ModelError`` when the function raises, or returns a value that is no reply. A function that was handed
        in by itself, and not as a pair or an adapter, raises ``FunctionError`` if its first answer is a verdict: it was
        meant to be a judge in code.
        """
        values = list_prompt_values(request.system, request.user)
        answer = await self._caller.call(*self._parameters.bind(values))
        reply = self._read_answer(answer)
        self._caller.has_answered = True
        return reply

    def _read_answer(self, answer: Any) -> Reply:
        """Read the reply in what a function returned.

        Raises ``ModelError``, or ``FunctionError`` as ``complete`` does, with a message that says what the function may
        return.
        """
        if isinstance(answer, Reply):
            return answer
        if isinstance(answer, str):
            return Reply(text=answer)
        if isinstance(answer, Mapping) and "token" in answer:
            return Reply(text=self._write_answer(answer))
        shown_value = f" ({str(answer)[:40]})" if _is_scalar(answer) and answer is not None else ""
        detail = " without a token" if isinstance(answer, Mapping) else shown_value
        message = (
            f"{self.name} returned {type(answer).__name__}{detail}, but it is asked as a model: it is given a prompt, "
            "and returns a text, a dict that carries the token, or a Reply; to judge in code, and return a bool or a "
            f"number, {self.in_code}"
        )
        if _is_verdict(answer) and not self._caller.has_answered and self._shape == "function":
            raise FunctionError(message)
        raise ModelError(message)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    def _write_answer(self, answer: Mapping[Any, Any]) -> str:
        """Write a dictionary that a function returned as the JSON text of a reply, with the token as its first member.

        Raises ``ModelError`` for a dictionary that has no JSON.
        """
        if measure_excess(answer) == "long":  # an object held many times is written each time
            raise ModelError(
                f"{self.name} returned a dict that cannot be written as JSON: it comes to more than {MOST_WRITTEN:,} "
                "characters"
            )
        try:
            return json.dumps({"token": answer["token"], **answer})
        except (TypeError, ValueError, RecursionError) as error:
            raise ModelError(f"{self.name} returned a dict that cannot be written as JSON: {error}") from None


class FunctionJudge:
    """A function that is given the content, as a judge in code; made by ``as_model`` and ``judge_function``.

    It is used in a model's place, so that caches, recordings, runs and time limits treat it as one, but for what it is
    given and how its answer is read: there is no prompt and no token, and ``Given.write`` says what it may return.
    """

    structured = False
    hosts: tuple[str, ...] = ()
    """Unknown: a function may contact anything."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str,
        parameters: Parameters,
        identity: str | None = None,
        max_concurrency: int = DEFAULT_CONCURRENCY,
    ) -> None:
        self.name = name
        """The name of this judge in results and recordings."""
        self._parameters = parameters
        self._stated_identity = identity
        self._caller = _Caller(function, name=name, max_concurrency=max_concurrency)

    @functools.cached_property
    def function_identity(self) -> FunctionIdentity:
        """The identity of the function as before its first call: a digest of its code, or the text that was stated."""
        if self._stated_identity is None:
            return identify_function(self._caller.function)
        module, qualname = name_function(self._caller.function)
        return FunctionIdentity(module=module, qualname=qualname, code=self._stated_identity)

    @property
    def identity(self) -> Mapping[str, Any]:
        """The identity of the function as plain data, for keys of caches."""
        return {"function": self.function_identity.to_dict()}

    def rename(self, name: str) -> FunctionJudge:
        """Return the same function as a judge of another name."""
        judge = FunctionJudge(
            self._caller.function,
            name=name,
            parameters=self._parameters,
            identity=self._stated_identity,
            max_concurrency=self._caller.max_concurrency,
        )
        judge.__dict__["function_identity"] = self.function_identity  # found before the first call, and kept
        return judge

    async def complete(self, request: Request, /) -> Reply:
        """Call the function with the values that its parameters ask for, and return its answer as a reply.

        Raises ``ReplyError`` for what is no answer to the question, and ``FunctionError`` where its first answer has
        none of the shapes that a judge in code may return.
        """
        if request.function_input is None:
            raise ModelError(
                f"{self.name} is a judge in code, which is given the content and no prompt; ask it through a Judge, or "
                "hand in model_function(function)"
            )
        positional, keywords = self._parameters.bind(request.function_input.arguments())
        answer = await self._caller.call(positional, keywords)
        try:
            text = request.function_input.write(answer)
        except ShapeError as error:
            if self._caller.has_answered:
                raise
            raise FunctionError(f"{self.name}: {error.detail}") from None
        self._caller.has_answered = True
        return Reply(text=text, function=self.function_identity)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


def as_model(source: object, name: str | None = None, *, max_concurrency: int = DEFAULT_CONCURRENCY) -> Model:
    """A model from a ``Model``, a function, a ``(name, function)`` pair, or an object with ``name`` and ``evaluate``.

    What a function is, is decided from its signature. One with a parameter ``content``, ``output``, ``answer``,
    ``response`` or ``completion`` is a judge in code, as by ``judge_function``. One with ``prompt``, ``messages``, or
    ``system`` and ``user`` is a model, as by ``model_function``, and so are any other pair and an ``evaluate``. Else
    what it says that it returns decides: ``bool``, ``float``, ``int``, a tuple of these with ``str``, or
    ``JudgeResult`` makes a judge in code; anything else, or nothing, a model. A model that first returns a verdict
    raises ``UsageError``; where a pair or an ``evaluate`` does, that is a ``ModelError`` as any other failed call.
    Raises ``UsageError`` for anything else.

    Args:
        source: What is to answer.
        name: How results call it; by default the name of the pair or of the object, else the function's own. A
            ``Model`` keeps its name.
        max_concurrency: How many calls of a synchronous function run at once, per event loop.
    """
    if isinstance(source, str):
        raise UsageError(f"{source!r} is a text; the name of a model is opened with open_model({source!r})")
    is_pair = isinstance(source, tuple)
    source, name = _split_pair(source, name)
    if is_pair and name is not None and isinstance(source, FunctionModel | FunctionJudge):
        return source.rename(name)
    if isinstance(source, Model) and callable(getattr(source, "complete", None)) and not isinstance(source, type):
        return source
    evaluate = getattr(source, "evaluate", None)
    if callable(evaluate) and isinstance(getattr(source, "name", None), str) and not isinstance(source, type):
        # An adapter: an object with ``name`` and ``evaluate``. It is given the prompt, however its parameter is called.
        name = name or str(getattr(source, "name", ""))
        return _make_model(evaluate, name, max_concurrency=max_concurrency, shape="adapter")
    if not callable(source):
        prefix = f"{name}: " if name else ""
        raise UsageError(
            f"{prefix}a model is a spec such as '{EXAMPLE}', a function, a (name, function) pair or an object with "
            f"name and evaluate(prompt), not {describe(source)}",
            argument="model",
        )
    if isinstance(source, type):
        raise UsageError(
            f"{describe(source)} is a class; hand in an instance of it, such as {source.__name__}(), or a function",
            argument="model",
        )
    if find_kind(source, named=is_pair) == "model":
        shape: FunctionShape = "pair" if is_pair else "function"
        return _make_model(source, name, max_concurrency=max_concurrency, shape=shape)
    # Found to be a judge above, although no parameter asks for the content.
    is_judge_by_annotation = find_kind(source, named=True) == "model"
    if is_judge_by_annotation:
        check_content_name(source)
    return judge_function(source, name=name, max_concurrency=max_concurrency)


def judge_function(
    function: Callable[..., Any] | tuple[str, Callable[..., Any]],
    *,
    name: str | None = None,
    identity: str | None = None,
    max_concurrency: int = DEFAULT_CONCURRENCY,
) -> Model:
    """Make a function a judge in code, for ``Judge`` or ``JudgeChain``. Its parameters may have any names.

    It gets the content, and any of ``task``, ``reference``, ``context`` and ``rubric`` that it has a parameter for. The
    content goes to the parameter called ``content``, ``output``, ``answer``, ``response`` or ``completion``, else to
    the first one. It may be asynchronous, and returns a bool, a number on the rubric's scale, ``(score, reason)``,
    ``{"score": ..., "reason": ...}``, ``{"passed": ..., "reasoning": ...}``, ``{criterion: score}``, a dict in the
    shape of the reply form, what a scorer of autoevals, pydantic-evals or openevals returns, a ``JudgeResult`` or an
    instance of the result format; for two contents to compare ``"first"``, ``"second"`` or ``"tie"``. There is no
    token.

    Args:
        function: The function, anything that can be called, or a ``(name, function)`` pair.
        name: How results call it; by default its own name.
        identity: A text that you change whenever its code does, in place of a digest of the code, by which kept
            answers are known to be its own: for what such a digest does not cover, and across versions of Python.
        max_concurrency: Threads that a synchronous function uses at once, per event loop.

    Raises ``UsageError`` for what cannot be called, and for a required parameter that nothing is given for.
    """
    function, name = _split_pair(function, name)
    if not callable(function) or isinstance(function, FunctionModel | FunctionJudge):
        raise UsageError(f"judge_function takes a function, not {describe(function)}", argument="function")
    if identity is not None and (not isinstance(identity, str) or not identity.strip()):
        raise UsageError(
            f"the identity of a function must be a text that is not empty, got {identity!r}", argument="identity"
        )
    return FunctionJudge(
        function,
        name=name or find_name(function),
        parameters=read_judge_parameters(function),
        identity=identity,
        max_concurrency=max_concurrency,
    )


def model_function(
    function: Callable[..., Any] | tuple[str, Callable[..., Any]],
    *,
    name: str | None = None,
    max_concurrency: int = DEFAULT_CONCURRENCY,
) -> Model:
    """Make a function a model, for ``Judge`` or ``JudgeChain``. Its parameters may have any names.

    A function of one parameter gets the prompt, system and user part joined by a blank line; one of two required
    parameters gets both. A parameter ``messages`` gets them as a list of chat messages. It may be asynchronous, and
    returns the text of the reply, a dict that carries the token, or a ``Reply``. A bool, a number, a tuple or ``None``
    raises ``UsageError`` at the first call; anything else is ``undecided: error``.

    Args:
        function: The function, anything that can be called, or a ``(name, function)`` pair.
        name: How results call it; by default its own name.
        max_concurrency: Threads that a synchronous function uses at once, per event loop.

    Raises ``UsageError`` for what cannot be called with one text or two.
    """
    function, name = _split_pair(function, name)
    if not callable(function) or isinstance(function, FunctionModel | FunctionJudge):
        raise UsageError(f"model_function takes a function, not {describe(function)}", argument="function")
    return _make_model(function, name, max_concurrency=max_concurrency)


def _make_model(
    function: Callable[..., Any], name: str | None, *, max_concurrency: int, shape: FunctionShape = "function"
) -> FunctionModel:
    """Make a model of a function; without a ``name`` it has the function's own."""
    return FunctionModel(
        function,
        name=name or find_name(function),
        parameters=read_model_parameters(function),
        max_concurrency=max_concurrency,
        shape=shape,
    )


def _split_pair(source: Any, name: str | None) -> tuple[Any, str | None]:
    """Split a ``(name, function)`` pair into its function and the name; return any other source as it is.

    A ``name`` that was given wins over the pair's. Raises ``UsageError`` for a tuple that is no such pair.
    """
    if not isinstance(source, tuple):
        return source, name
    if len(source) != 2 or not isinstance(source[0], str) or not source[0].strip():
        raise UsageError(f"a pair must be (name, function), got {describe(source)}")
    return source[1], name or source[0]


def _is_scalar(value: object) -> bool:
    """Return whether a value is ``None``, a boolean or a number, also one of numpy; messages show such a value."""
    if value is None or isinstance(value, bool | int | float):
        return True
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.bool_ | numpy.number)


def _is_verdict(value: object) -> bool:
    """Return whether a value looks like what a judge in code returns: a scalar, a tuple, or something with a score."""
    has_score = "score" in value if isinstance(value, Mapping) else hasattr(value, "score")
    return _is_scalar(value) or isinstance(value, tuple) or has_score


def _find_identifier(function: Callable[..., Any]) -> str:
    """Return the function's name as it can be written in code; ``function`` for a name that cannot."""
    name = find_name(function)
    return name if name.isidentifier() else "function"


def _is_async(function: Callable[..., Any]) -> bool:
    """Return whether a function, or an object's ``__call__``, is a coroutine function, also inside a partial."""
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
