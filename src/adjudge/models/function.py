"""Any function as a judge: one that is given the content judges itself, one that is given the prompt is a model.

What a function is given decides what it is. Handed the prompt, it finds the rubric's own words in it and has to copy
the token; so only a function that asks for ``content`` by name may answer with a mere boolean or number.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.concurrency import PerLoop, describe_error
from adjudge.errors import ModelError, UsageError
from adjudge.formats.arguments import check_whole_number
from adjudge.formats.extent import MOST_WRITTEN, find_excess
from adjudge.models.defaults import EXAMPLE
from adjudge.models.function_identity import identify_function, name_function
from adjudge.models.model import FunctionIdentity, Model, Reply, Request
from adjudge.threads import call_in_thread

DEFAULT_CONCURRENCY = 64
"""Threads that synchronous functions of one model use at once, per event loop."""

INPUT_NAMES = ("content", "task", "reference", "context", "rubric")
"""The values that a judge in code may ask for, by the names of its parameters."""

_REMEDY = (
    "for a judge in code, which may return a bool or a number, name the parameter content (def judge(content)), or "
    "hand in judge_function(function)"
)


class _Caller:
    """Calls one function; a synchronous one in a thread.

    A thread cannot be killed: when the caller gives up, what the function still returns is dropped, and its place is
    free again only when it has returned.
    """

    def __init__(self, function: Callable[..., Any], *, name: str, max_concurrency: int) -> None:
        check_whole_number("max_concurrency", max_concurrency, least=1)
        self.function, self.name, self.max_concurrency = function, name, max_concurrency
        self._is_async = _is_async(function)
        self._places: PerLoop[asyncio.Semaphore] = PerLoop(lambda: asyncio.Semaphore(max_concurrency))

    def __reduce__(self) -> tuple[Callable[..., _Caller], tuple[Callable[..., Any]]]:
        # Semaphores belong to the event loops of one process.
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
            raise ModelError(f"{self.name} raised {describe_error(error)}") from error

    async def _call_in_thread(self, call: Callable[[], Any]) -> Any:
        places = self._places.get()
        await places.acquire()
        return await call_in_thread(call, name=f"adjudge {self.name}", on_return=places.release)


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
        takes_two: bool = False,
        max_concurrency: int = DEFAULT_CONCURRENCY,
    ) -> None:
        self.name = name
        """The name of this model in results and recordings."""
        self._takes_two = takes_two
        self._caller = _Caller(function, name=name, max_concurrency=max_concurrency)

    def rename(self, name: str) -> FunctionModel:
        """The same function under another name."""
        most = self._caller.max_concurrency
        return FunctionModel(self._caller.function, name=name, takes_two=self._takes_two, max_concurrency=most)

    async def complete(self, request: Request, /) -> Reply:
        """Call the function; raises ``ModelError`` when it raises, or returns what is no reply."""
        texts = (request.system, request.user)
        answer = await self._caller.call(
            texts if self._takes_two else ("\n\n".join(text for text in texts if text),),
            {},
        )
        if isinstance(answer, Reply):
            return answer
        if isinstance(answer, str):
            return Reply(text=answer)
        if isinstance(answer, Mapping) and "token" in answer:
            return Reply(text=self._write_answer(answer))
        kind = f"{type(answer).__name__}{' without a token' if isinstance(answer, Mapping) else ''}"
        raise ModelError(
            f"{self.name} returned {kind}; a function that is given the prompt is a model, and returns a text, a dict "
            f"that carries the token, or a Reply; {_REMEDY}"
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    def _write_answer(self, answer: Mapping[Any, Any]) -> str:
        """Write a dictionary as the text of a reply, which begins with the token; it is read as any model's."""
        if find_excess(answer) == "long":  # an object held many times is written each time
            raise ModelError(
                f"{self.name} returned a dict that cannot be written as JSON: it comes to more than {MOST_WRITTEN:,} "
                "characters"
            )
        try:
            return json.dumps({"token": answer["token"], **answer})
        except (TypeError, ValueError, RecursionError) as error:
            raise ModelError(f"{self.name} returned a dict that cannot be written as JSON: {error}") from None


@dataclass(frozen=True, slots=True)
class _Parameters:
    """The parameters of a judge in code: names of ``GIVEN``, by the place or by the function's own names."""

    places: tuple[str, ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    optional: frozenset[str] = frozenset()
    """Those with a default, which holds where there is nothing to give."""

    def bind(self, values: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of a call."""
        positional = [values.get(name) for name in self.places]
        keywords = {
            own_name: values.get(name) for own_name, name in self.names if name in values or name not in self.optional
        }
        return positional, keywords


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
        parameters: _Parameters,
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
        """The identity of the function, as it was before its first call."""
        if self._stated_identity is None:
            return identify_function(self._caller.function)
        module, qualname = name_function(self._caller.function)
        return FunctionIdentity(module=module, qualname=qualname, code=self._stated_identity)

    @property
    def identity(self) -> Mapping[str, Any]:
        """The same for keys of caches."""
        return {"function": self.function_identity.to_dict()}

    def rename(self, name: str) -> FunctionJudge:
        """The same function under another name."""
        judge = FunctionJudge(
            self._caller.function,
            name=name,
            parameters=self._parameters,
            identity=self._stated_identity,
            max_concurrency=self._caller.max_concurrency,
        )
        judge.__dict__["function_identity"] = self.function_identity
        return judge

    async def complete(self, request: Request, /) -> Reply:
        """Call the function with what it asks for; raises ``ReplyError`` for what is no answer to the question."""
        if request.function_input is None:
            raise ModelError(
                f"{self.name} is a judge in code, which is given the content and no prompt; ask it through a Judge, or "
                "hand in model_function(function)"
            )
        positional, keywords = self._parameters.bind(request.function_input.arguments())
        answer = await self._caller.call(positional, keywords)
        return Reply(text=request.function_input.write(answer), function=self.function_identity)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


def as_model(source: object, name: str | None = None, *, max_concurrency: int = DEFAULT_CONCURRENCY) -> Model:
    """A model from a ``Model``, a function, a ``(name, function)`` pair, or an object with ``name`` and ``evaluate``.

    A function that asks for ``content`` by name is a judge in code, as by ``judge_function``. Any other is a model: one
    of one parameter gets system and user part joined by a blank line, one of two required parameters gets both. It may
    be asynchronous, and returns a text, a dict that carries the token, or a ``Reply``. Raises ``UsageError`` for
    anything else.
    """
    if isinstance(source, str):
        raise UsageError(f"{source!r} is a text; the name of a model is opened with open_model({source!r})")
    if isinstance(source, Model) and callable(getattr(source, "complete", None)) and not isinstance(source, type):
        return source
    if isinstance(source, tuple):
        source, name = _open_pair(source, name)
        if name is not None and isinstance(source, FunctionModel | FunctionJudge):
            return source.rename(name)
        return as_model(source, name, max_concurrency=max_concurrency)
    evaluate = getattr(source, "evaluate", None)
    if callable(evaluate) and isinstance(getattr(source, "name", None), str) and not isinstance(source, type):
        # An adapter is told apart by its shape: it is handed the prompt, whatever it calls it.
        return model_function(evaluate, name=name or str(getattr(source, "name", "")), max_concurrency=max_concurrency)
    if not callable(source):
        prefix = f"{name}: " if name else ""
        raise UsageError(
            f"{prefix}a model is a spec such as '{EXAMPLE}', a function, a (name, function) pair or an object with "
            f"name and evaluate(prompt), not {_describe(source)}",
            argument="model",
        )
    make: Callable[..., Model] = judge_function if _asks_for_content(source) else model_function
    return make(source, name=name, max_concurrency=max_concurrency)


def judge_function(
    function: Callable[..., Any] | tuple[str, Callable[..., Any]],
    *,
    name: str | None = None,
    identity: str | None = None,
    max_concurrency: int = DEFAULT_CONCURRENCY,
) -> Model:
    """Make a function a judge in code, for ``Judge`` or ``JudgeChain``. Its parameters may have any names.

    It gets the content, and any of ``task``, ``reference``, ``context`` and ``rubric`` that it has a parameter for; if
    no parameter is called ``content``, the first one gets the content. It may be asynchronous, and returns a bool, a
    number on the rubric's scale, a dict in the shape of the reply form, a ``JudgeResult`` or an instance of the result
    format; for two contents to compare ``"first"``, ``"second"`` or ``"tie"``. There is no token.

    Args:
        function: The function, anything that can be called, or a ``(name, function)`` pair.
        name: How results call it; by default its own name.
        identity: A text that you change whenever its code does, in place of a digest of the code, by which kept
            answers are known to be its own: for what such a digest does not cover, and across versions of Python.
        max_concurrency: Threads that a synchronous function uses at once, per event loop.

    Raises ``UsageError`` for what cannot be called, and for a required parameter that nothing is given for.
    """
    function, name = _open_pair(function, name)
    if not callable(function) or isinstance(function, FunctionModel | FunctionJudge):
        raise UsageError(f"judge_function takes a function, not {_describe(function)}", argument="function")
    if identity is not None and (not isinstance(identity, str) or not identity.strip()):
        raise UsageError(
            f"the identity of a function must be a text that is not empty, got {identity!r}", argument="identity"
        )
    return FunctionJudge(
        function,
        name=name or _find_name(function),
        parameters=_read_parameters(function),
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
    parameters gets both. It may be asynchronous, and returns the text of the reply, a dict that carries the token, or a
    ``Reply``; anything else is ``undecided: error``.

    Args:
        function: The function, anything that can be called, or a ``(name, function)`` pair.
        name: How results call it; by default its own name.
        max_concurrency: Threads that a synchronous function uses at once, per event loop.

    Raises ``UsageError`` for what cannot be called with one text or two.
    """
    function, name = _open_pair(function, name)
    if not callable(function) or isinstance(function, FunctionModel | FunctionJudge):
        raise UsageError(f"model_function takes a function, not {_describe(function)}", argument="function")
    return FunctionModel(
        function,
        name=name or _find_name(function),
        takes_two=_count_required(function) == 2,
        max_concurrency=max_concurrency,
    )


def _open_pair(source: Any, name: str | None) -> tuple[Any, str | None]:
    """The function of a pair, and the name that was given, else the pair's."""
    if not isinstance(source, tuple):
        return source, name
    if len(source) != 2 or not isinstance(source[0], str) or not source[0].strip():
        raise UsageError(f"a pair must be (name, function), got {_describe(source)}")
    return source[1], name or source[0]


def _asks_for_content(function: Callable[..., Any]) -> bool:
    return any(
        parameter.name == "content" and parameter.kind not in _STARS for parameter in _list_parameters(function) or ()
    )


_STARS = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _list_parameters(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # written in C, most likely
        return None


def _read_parameters(function: Callable[..., Any]) -> _Parameters:
    parameters = _list_parameters(function)
    if parameters is None:
        return _Parameters(places=("content",))
    listed = [parameter for parameter in parameters if parameter.kind not in _STARS]
    positional = [parameter.name for parameter in listed if parameter.kind is not inspect.Parameter.KEYWORD_ONLY]
    content_name = (
        "content" if any(parameter.name == "content" for parameter in listed) else next(iter(positional), None)
    )
    if content_name is None:
        if any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters):
            return _Parameters(places=("content",))
        raise UsageError(f"{_describe(function)} has no parameter for the content; give it one: def judge(content)")
    places, names, optional = [], [], set()
    for parameter in listed:
        name = "content" if parameter.name == content_name else parameter.name
        if name not in INPUT_NAMES:
            if parameter.default is parameter.empty:
                raise UsageError(
                    f"{_describe(function)} needs {parameter.name!r}, which a judge in code is not given; it may ask "
                    f"for {', '.join(INPUT_NAMES)}; give {parameter.name!r} a default, or hand in "
                    "model_function(function)"
                )
            continue
        if parameter.default is not parameter.empty:
            optional.add(name)
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            places.append(name)
        else:
            names.append((parameter.name, name))
    return _Parameters(places=tuple(places), names=tuple(names), optional=frozenset(optional))


def _count_required(function: Callable[..., Any]) -> int:
    parameters = _list_parameters(function)
    if parameters is None:
        raise UsageError(f"the parameters of {_describe(function)} cannot be read; wrap it in a function")
    positional = [
        parameter
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    required = [parameter for parameter in positional if parameter.default is parameter.empty]
    keywords = [
        parameter.name
        for parameter in parameters
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty
    ]
    takes_any = bool(positional) or any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters)
    if len(required) > 2 or keywords or not takes_any:
        raise UsageError(
            f"{_describe(function)} must take one parameter (the prompt) or two (system and user), and takes "
            f"({', '.join(str(parameter) for parameter in parameters)}); {_REMEDY}"
        )
    return len(required)


def _is_async(function: Callable[..., Any]) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _find_name(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", None) or type(function).__name__
    return "function" if name == "<lambda>" else name


def _describe(value: Any) -> str:
    return getattr(value, "__qualname__", None) or type(value).__name__
