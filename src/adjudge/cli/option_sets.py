"""Sets of options that commands share: frozen dataclasses, of which each field is an option under one heading.

This is the machinery alone: the sets that commands share, and their options, are in ``options.py``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, TypeVar, cast, get_args, get_origin, get_type_hints

from typer.models import OptionInfo

R = TypeVar("R")


class Only:
    """The options of a set that a command has, as in ``Annotated[JudgeOptions, Only("judges", "timeout")]``.

    The others keep their defaults.
    """

    def __init__(self, *names: str) -> None:
        self._names = names

    def keeps(self, name: str) -> bool:
        """Tell whether the command has an option."""
        return name in self._names


class Without:
    """The options of a set that a command does not have, and which keep their defaults."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def keeps(self, name: str) -> bool:
        """Tell whether the command has an option."""
        return name not in self._names


def expand_sets(function: Callable[..., R]) -> Callable[..., R]:
    """Give a command each option of its sets as a parameter of its own, because typer reads no dataclasses.

    The function itself is called with the sets.
    """
    kinds: dict[str, type[Any]] = {}
    names: dict[str, list[str]] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        kind, *choices = _split(parameter.annotation)
        if not is_dataclass(kind):
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        options = [option for option in _list_options(kind) if all(choice.keeps(option.name) for choice in choices)]
        kinds[parameter.name] = cast("type[Any]", kind)
        names[parameter.name] = [option.name for option in options]
        parameters.extend(options)

    @wraps(function)
    def command(**values: Any) -> R:
        sets = {name: kind(**{option: values.pop(option) for option in names[name]}) for name, kind in kinds.items()}
        return function(**values, **sets)

    readable = cast("Any", command)  # what typer reads of a function
    readable.__signature__ = inspect.Signature(parameters)
    readable.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _split(annotation: Any) -> tuple[Any, ...]:
    """A type and what ``Annotated`` says beside it."""
    return get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)


def _list_options(kind: Any) -> Iterator[inspect.Parameter]:
    """The fields of a set as parameters, with the set's heading."""
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        plain, info = _split(hints[field.name])
        labelled = copy(cast("OptionInfo", info))
        labelled.rich_help_panel = kind.heading
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        annotation = Annotated[plain, labelled]
        yield inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
