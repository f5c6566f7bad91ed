"""The kind of a function, a judge in code or a model, and its arguments: read from its signature and nothing else.

It is decided before the first call, and never by what a function returns: a function that was sent the content inside
a prompt, and parses a model's reply, would let the content write its own verdict.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from adjudge.errors import UsageError
from adjudge.result import JudgeResult

FunctionKind = Literal["judge", "model"]

CONTENT_NAMES = ("content", "output", "answer", "response", "completion")
"""Names of the parameter that makes a function a judge in code; the first of them that there is gets the content."""

INPUT_NAMES = ("content", "task", "reference", "context", "rubric")
"""The values that a judge in code may ask for, by the names of its parameters."""

_PART_NAMES = ("prompt", "messages", "system", "user")
"""The names by which a model's parameters are known."""

_FOREIGN_NAMES = {
    **dict.fromkeys(("outputs", "ctx", "actual_output", "prediction"), "content"),
    **dict.fromkeys(("input", "inputs", "prompt", "question", "query"), "task"),
    **dict.fromkeys(
        ("expected", "expected_output", "reference_outputs", "ground_truth", "ideal", "target"), "reference"
    ),
    **dict.fromkeys(("contexts", "documents", "passages", "retrieval_context"), "context"),
}
"""The names that other libraries have for these values: an error names the one to write."""

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

_REMEDY = (
    "for a judge in code, which may return a bool or a number, name the parameter content (def judge(content)), or "
    "hand in judge_function(function)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The parameters of a function that are given a value, and the value of each, by its name."""

    places: tuple[str, ...] = ()
    """The values given by place, in order."""
    names: tuple[tuple[str, str], ...] = ()
    """The values given by name: the parameter, and the value that it gets."""
    optional: frozenset[str] = frozenset()
    """Values of parameters with a default, which holds where there is nothing to give."""

    def bind(self, values: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of a call."""
        positional = [values.get(name) for name in self.places]
        keywords = {
            own_name: values.get(name) for own_name, name in self.names if name in values or name not in self.optional
        }
        return positional, keywords


def find_kind(function: Callable[..., Any], *, named: bool = False) -> FunctionKind:
    """Find what a function is: by its parameters' names, else by what it says that it returns.

    ``named`` is for a ``(name, function)`` pair, which is a model unless a parameter asks for the content.
    """
    names = {parameter.name for parameter in _list_parameters(function) or () if parameter.kind not in _VARIADIC}
    if names & set(CONTENT_NAMES):
        return "judge"
    if named or names & {"prompt", "messages"} or names >= {"system", "user"}:
        return "model"
    return "judge" if _returns_verdict(_find_return_type(function)) else "model"


def read_judge_parameters(function: Callable[..., Any]) -> Parameters:
    """Read the parameters of a judge in code.

    Raises ``UsageError`` for a required parameter that nothing is given for, and where none is for the content.
    """
    parameters = _list_parameters(function)
    if parameters is None:
        return Parameters(places=("content",))
    listed = [parameter for parameter in parameters if parameter.kind not in _VARIADIC]
    content_name = _find_content(listed)
    if content_name is None:
        if any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters):
            return Parameters(places=("content",))
        raise UsageError(f"{describe(function)} has no parameter for the content; give it one: def judge(content)")
    places, names, optional = [], [], set()
    for parameter in listed:
        name = "content" if parameter.name == content_name else parameter.name
        has_default = parameter.default is not parameter.empty
        if name not in INPUT_NAMES:
            if not has_default:
                raise _make_unknown(function, name)
            continue
        if has_default:
            optional.add(name)
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            places.append(name)
        else:
            names.append((parameter.name, name))
    return Parameters(places=tuple(places), names=tuple(names), optional=frozenset(optional))


def check_content_name(function: Callable[..., Any]) -> None:
    """Raise ``UsageError`` where the parameter that would get the content has another library's name for something.

    For a function that is a judge by what it says that it returns: ``def f(ctx) -> bool`` would be given a text.
    """
    content_name = _find_content([it for it in _list_parameters(function) or () if it.kind not in _VARIADIC])
    if content_name in _FOREIGN_NAMES:
        raise _make_unknown(function, content_name)


def read_model_parameters(function: Callable[..., Any]) -> Parameters:
    """Read the parameters of a model: ``prompt``, ``messages``, ``system`` and ``user``, or one or two of any name.

    Raises ``UsageError`` for what cannot be called with these.
    """
    parameters = _list_parameters(function)
    if parameters is None:
        raise UsageError(f"the parameters of {describe(function)} cannot be read; wrap it in a function")
    listed = [parameter for parameter in parameters if parameter.kind not in _VARIADIC]
    required = [parameter for parameter in listed if parameter.default is parameter.empty]
    named = [parameter for parameter in listed if parameter.name in _PART_NAMES]
    by_name = {parameter.name for parameter in named}
    if by_name & {"prompt", "messages"} or by_name >= {"system", "user"}:
        if any(parameter.name not in by_name for parameter in required):
            raise _make_not_callable(function, parameters)
        return _read_parts(named)
    positional = [parameter for parameter in listed if parameter.kind is not inspect.Parameter.KEYWORD_ONLY]
    takes_any = bool(positional) or any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters)
    if len(required) > 2 or not takes_any or not set(required) <= set(positional):
        raise _make_not_callable(function, parameters)
    return Parameters(places=("system", "user's prompt") if len(required) == 2 else ("prompt",))


def list_prompt_values(system: str, user: str) -> dict[str, Any]:
    """The values that a model's parameters may be given, by the names that ``read_model_parameters`` uses."""
    message = {"role": "user", "content": user}
    return {
        "prompt": "\n\n".join(text for text in (system, user) if text),
        "messages": [{"role": "system", "content": system}, message] if system else [message],
        "system": system,
        "user's prompt": user,
        "user's messages": [message],
    }


def describe(value: Any) -> str:
    """The name of a function or of a class, and of anything else that of its class."""
    return getattr(value, "__qualname__", None) or type(value).__name__


def describe_signature(function: Callable[..., Any]) -> str:
    """The line of a function, to be written in its place, that makes it a judge in code."""
    name = find_name(function)
    return f"def {name}(content)" if name.isidentifier() else "def judge(content)"


def find_name(function: Any) -> str:
    """The name of a function, or of a callable object's class."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", None) or type(function).__name__
    return "function" if name == "<lambda>" else name


def _read_parts(named: list[inspect.Parameter]) -> Parameters:
    """Give each named parameter its part of the prompt: the whole of it unless another requires the system part."""
    kept = [parameter for parameter in named if parameter.name != "system" or parameter.default is parameter.empty]
    has_system = any(parameter.name == "system" for parameter in kept)
    places, names = [], []
    for parameter in kept:
        name = "prompt" if parameter.name == "user" else parameter.name
        value = f"user's {name}" if has_system and name != "system" else name
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            places.append(value)
        else:
            names.append((parameter.name, value))
    return Parameters(places=tuple(places), names=tuple(names))


def _find_content(listed: list[inspect.Parameter]) -> str | None:
    """Find the parameter that gets the content: the first of the known names, else the first that gets nothing else."""
    names = [parameter.name for parameter in listed]
    for name in CONTENT_NAMES:
        if name in names:
            return name
    positional = [parameter.name for parameter in listed if parameter.kind is not inspect.Parameter.KEYWORD_ONLY]
    return next((name for name in positional if name not in INPUT_NAMES), None)


def _make_unknown(function: Callable[..., Any], name: str) -> UsageError:
    other = _FOREIGN_NAMES.get(name)
    remedy = f"name it {other}" if other else f"give {name!r} a default"
    return UsageError(
        f"{describe(function)} needs {name!r}, which a judge in code is not given; it may ask for "
        f"{', '.join(INPUT_NAMES)}; {remedy}, or hand in model_function(function)"
    )


def _make_not_callable(function: Callable[..., Any], parameters: list[inspect.Parameter]) -> UsageError:
    return UsageError(
        f"{describe(function)} must take one parameter (the prompt) or two (system and user), and takes "
        f"({', '.join(str(parameter) for parameter in parameters)}); {_REMEDY}"
    )


def _list_parameters(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # written in C, most likely
        return None


# ------------------------------------------------------------------ what a function says that it returns


def _find_return_type(function: Callable[..., Any]) -> Any:
    """The annotation of what a function returns, where it can be read; of one that awaits, what it awaits."""
    try:
        annotation = inspect.signature(function).return_annotation
    except (TypeError, ValueError):
        return None
    if isinstance(annotation, str):
        names = {**_KNOWN_NAMES, **_find_globals(function)}
        try:
            annotation = typing.get_type_hints(
                cast("Any", types.SimpleNamespace(__annotations__={"return": annotation})), names
            )
        except Exception:  # noqa: BLE001 - a name that is there for type checkers alone says nothing
            return None
        annotation = annotation["return"]
    while typing.get_origin(annotation) in (Awaitable, Coroutine, typing.Annotated):
        arguments = typing.get_args(annotation)
        annotation = arguments[0] if typing.get_origin(annotation) is typing.Annotated else arguments[-1]
    return annotation


_KNOWN_NAMES = {"JudgeResult": JudgeResult, **{name: getattr(typing, name) for name in ("Optional", "Tuple", "Union")}}
"""Names that modules import for type checkers alone."""


def _find_globals(function: Any) -> dict[str, Any]:
    """The names that the annotations of a function are written in."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, types.MethodType):
            function = function.__func__
        elif inspect.unwrap(function) is not function:
            function = inspect.unwrap(function)
        else:
            break
    if not hasattr(function, "__globals__"):
        function = inspect.unwrap(getattr(type(function), "__call__", function))  # noqa: B004 - the method is wanted
    return dict(getattr(function, "__globals__", {}))


def _returns_verdict(annotation: Any) -> bool:
    """Return whether an annotation is that of a judge: bool, float, int, these in a tuple with str, or a result."""
    if annotation in (bool, float, int):
        return True
    if isinstance(annotation, type) and not typing.get_args(annotation):
        return issubclass(annotation, JudgeResult)
    members = [member for member in typing.get_args(annotation) if member not in (type(None), ...)]
    if typing.get_origin(annotation) is tuple:
        return any(map(_is_number, members)) and all(member is str or _is_number(member) for member in members)
    is_union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    return is_union and bool(members) and all(map(_returns_verdict, members))


def _is_number(annotation: Any) -> bool:
    """Return whether an annotation is of numbers alone, of which some may be missing."""
    members = [member for member in typing.get_args(annotation) if member is not type(None)] or [annotation]
    return all(member in (bool, float, int) for member in members)
