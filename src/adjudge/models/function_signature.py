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

_PROMPT_NAMES = ("prompt", "messages", "system", "user")
"""The names of a model's parameters that say which part of the prompt each gets."""

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
    """The parameters of a function that get a value, each with the name of that value, such as ``content``."""

    positional: tuple[str, ...] = ()
    """The names of the values that are passed by position, in order."""
    keywords: tuple[tuple[str, str], ...] = ()
    """The values that are passed by keyword: the parameter's name, and the name of the value that it gets."""
    optional: frozenset[str] = frozenset()
    """The names of values whose parameters have a default, which is used if there is no such value."""

    def bind(self, values: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the positional and the keyword arguments of a call; a required value that is missing is ``None``."""
        arguments = [values.get(value_name) for value_name in self.positional]
        keyword_arguments = {
            parameter_name: values.get(value_name)
            for parameter_name, value_name in self.keywords
            if value_name in values or value_name not in self.optional
        }
        return arguments, keyword_arguments


def find_kind(function: Callable[..., Any], *, named: bool = False) -> FunctionKind:
    """Find whether a function is a judge in code or a model: by its parameters' names, else by its return annotation.

    ``named`` is true for a ``(name, function)`` pair, which is a model unless a parameter asks for the content.
    """
    parameter_names = {
        parameter.name for parameter in _list_parameters(function) or () if parameter.kind not in _VARIADIC
    }
    if parameter_names & set(CONTENT_NAMES):
        return "judge"
    if named or parameter_names & {"prompt", "messages"} or parameter_names >= {"system", "user"}:
        return "model"
    return "judge" if _returns_verdict(_find_return_type(function)) else "model"


def read_judge_parameters(function: Callable[..., Any]) -> Parameters:
    """Read the parameters of a judge in code.

    Raises ``UsageError`` for a required parameter that gets no value, and for a function without a parameter for the
    content.
    """
    parameters = _list_parameters(function)
    if parameters is None:
        return Parameters(positional=("content",))
    named = [parameter for parameter in parameters if parameter.kind not in _VARIADIC]
    content_name = _find_content_parameter(named)
    if content_name is None:
        if any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters):
            return Parameters(positional=("content",))
        raise UsageError(f"{describe(function)} has no parameter for the content; give it one: def judge(content)")
    positional, keywords, optional = [], [], set()
    for parameter in named:
        value_name = "content" if parameter.name == content_name else parameter.name
        has_default = parameter.default is not parameter.empty
        if value_name not in INPUT_NAMES:
            if not has_default:
                raise _make_unknown_parameter_error(function, value_name)
            continue
        if has_default:
            optional.add(value_name)
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            positional.append(value_name)
        else:
            keywords.append((parameter.name, value_name))
    return Parameters(positional=tuple(positional), keywords=tuple(keywords), optional=frozenset(optional))


def check_content_name(function: Callable[..., Any]) -> None:
    """Raise ``UsageError`` if the parameter that would get the content has another library's name for a value.

    It is for a function that is a judge by its return annotation: ``def f(ctx) -> bool`` would be given a text as
    ``ctx``.
    """
    parameters = [parameter for parameter in _list_parameters(function) or () if parameter.kind not in _VARIADIC]
    content_name = _find_content_parameter(parameters)
    if content_name in _FOREIGN_NAMES:
        raise _make_unknown_parameter_error(function, content_name)


def read_model_parameters(function: Callable[..., Any]) -> Parameters:
    """Read the parameters of a model: ``prompt``, ``messages``, ``system`` and ``user``, or one or two of any name.

    Raises ``UsageError`` for a function that cannot be called with these values.
    """
    parameters = _list_parameters(function)
    if parameters is None:
        raise UsageError(f"the parameters of {describe(function)} cannot be read; wrap it in a function")
    named = [parameter for parameter in parameters if parameter.kind not in _VARIADIC]
    required = [parameter for parameter in named if parameter.default is parameter.empty]
    prompt_parameters = [parameter for parameter in named if parameter.name in _PROMPT_NAMES]
    prompt_names = {parameter.name for parameter in prompt_parameters}
    if prompt_names & {"prompt", "messages"} or prompt_names >= {"system", "user"}:
        if any(parameter.name not in prompt_names for parameter in required):
            raise _make_parameters_error(function, parameters)
        return _assign_prompt_values(prompt_parameters)
    positional = [parameter for parameter in named if parameter.kind is not inspect.Parameter.KEYWORD_ONLY]
    takes_any = bool(positional) or any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters)
    if len(required) > 2 or not takes_any or not set(required) <= set(positional):
        raise _make_parameters_error(function, parameters)
    # Two parameters get the system part and the user part; one gets both in one text.
    return Parameters(positional=("system", "user's prompt") if len(required) == 2 else ("prompt",))


def list_prompt_values(system: str, user: str) -> dict[str, Any]:
    """Return the values that a model's parameters may get, by the names that ``Parameters`` uses for them.

    ``user's prompt`` and ``user's messages`` leave the system part out, for a function that gets it as ``system``.
    """
    message = {"role": "user", "content": user}
    return {
        "prompt": "\n\n".join(text for text in (system, user) if text),
        "messages": [{"role": "system", "content": system}, message] if system else [message],
        "system": system,
        "user's prompt": user,
        "user's messages": [message],
    }


def describe(value: Any) -> str:
    """Return the name of a function or class; of anything else, the name of its class."""
    return getattr(value, "__qualname__", None) or type(value).__name__


def describe_signature(function: Callable[..., Any]) -> str:
    """Return the ``def`` line, for an error message, with which a function would be a judge in code."""
    name = find_name(function)
    return f"def {name}(content)" if name.isidentifier() else "def judge(content)"


def find_name(function: Any) -> str:
    """Return the name of a function, or of a callable object's class; ``function`` for a lambda."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", None) or type(function).__name__
    return "function" if name == "<lambda>" else name


def _assign_prompt_values(parameters: list[inspect.Parameter]) -> Parameters:
    """Assign each parameter of a known name its part of the prompt.

    A parameter ``system`` with a default is left out. Without ``system``, the others get the whole prompt, else the
    user part alone.
    """
    used = [parameter for parameter in parameters if parameter.name != "system" or parameter.default is parameter.empty]
    has_system = any(parameter.name == "system" for parameter in used)
    positional, keywords = [], []
    for parameter in used:
        name = "prompt" if parameter.name == "user" else parameter.name
        value_name = f"user's {name}" if has_system and name != "system" else name
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            positional.append(value_name)
        else:
            keywords.append((parameter.name, value_name))
    return Parameters(positional=tuple(positional), keywords=tuple(keywords))


def _find_content_parameter(parameters: list[inspect.Parameter]) -> str | None:
    """Find the name of the parameter for the content: one of ``CONTENT_NAMES``, else the first that gets nothing else.

    Returns ``None`` if every positional parameter gets another value.
    """
    names = [parameter.name for parameter in parameters]
    for name in CONTENT_NAMES:
        if name in names:
            return name
    positional = [parameter.name for parameter in parameters if parameter.kind is not inspect.Parameter.KEYWORD_ONLY]
    unassigned = [name for name in positional if name not in INPUT_NAMES]
    return unassigned[0] if unassigned else None


def _make_unknown_parameter_error(function: Callable[..., Any], name: str) -> UsageError:
    """Make the error for a parameter that gets no value; it suggests our name for a value that others name so."""
    our_name = _FOREIGN_NAMES.get(name)
    remedy = f"name it {our_name}" if our_name else f"give {name!r} a default"
    return UsageError(
        f"{describe(function)} needs {name!r}, which a judge in code is not given; it may ask for "
        f"{', '.join(INPUT_NAMES)}; {remedy}, or hand in model_function(function)"
    )


def _make_parameters_error(function: Callable[..., Any], parameters: list[inspect.Parameter]) -> UsageError:
    """Make the error for a function whose parameters are not those of a model."""
    return UsageError(
        f"{describe(function)} must take one parameter (the prompt) or two (system and user), and takes "
        f"({', '.join(str(parameter) for parameter in parameters)}); {_REMEDY}"
    )


def _list_parameters(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    """List the parameters of a function; ``None`` where they cannot be read."""
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # written in C, most likely
        return None


# ------------------------------------------------------------------ what a function says that it returns


def _find_return_type(function: Callable[..., Any]) -> Any:
    """Find the return annotation of a function, without ``Annotated``; of an awaitable, the type that is awaited.

    Returns ``None`` for an annotation that cannot be read.
    """
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
        except Exception:  # noqa: BLE001 - a name may exist for type checkers alone, or the text be no expression
            return None
        annotation = annotation["return"]
    while typing.get_origin(annotation) in (Awaitable, Coroutine, typing.Annotated):
        arguments = typing.get_args(annotation)
        annotation = arguments[0] if typing.get_origin(annotation) is typing.Annotated else arguments[-1]
    return annotation


_KNOWN_NAMES = {"JudgeResult": JudgeResult, **{name: getattr(typing, name) for name in ("Optional", "Tuple", "Union")}}
"""Names that modules import for type checkers alone."""


def _find_globals(function: Any) -> dict[str, Any]:
    """Return the globals of the function that is inside all wrappers: the names in its annotations are theirs."""
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
    """Return whether a return annotation is that of a judge in code.

    It is for a bool, float or int, for these in a tuple with str, for a ``JudgeResult``, and for a union of them.
    """
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
    """Return whether an annotation is bool, float or int, or a union of these, with ``None`` or without."""
    members = [member for member in typing.get_args(annotation) if member is not type(None)] or [annotation]
    return all(member in (bool, float, int) for member in members)
