"""Turn a parameter that is a dataclass into one command-line option for each of its fields.

A set of options that commands share is a frozen dataclass, whose class variable ``heading`` is the heading of its
options in the help text. The sets themselves are in ``options.py``.
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
    """Names the options of a set that a command has, as in ``Annotated[JudgeOptions, Only("judges", "timeout")]``.

    The other fields keep their defaults.
    """

    def __init__(self, *names: str) -> None:
        self._names = names

    def keeps(self, name: str) -> bool:
        """Return whether the command has the option of this name."""
        return name in self._names


class Without:
    """Names the options of a set that a command does not have; their fields keep their defaults."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def keeps(self, name: str) -> bool:
        """Return whether the command has the option of this name."""
        return name not in self._names


def expand_sets(function: Callable[..., R]) -> Callable[..., R]:
    """Return a command whose signature has a parameter for each option in the option sets of a function.

    typer reads parameters, and no dataclasses. When the command is called, it makes the sets from its parameters, and
    calls the function with them.
    """
    set_classes: dict[str, type[Any]] = {}
    option_names: dict[str, list[str]] = {}  # by the name of the parameter that is a set
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        annotated_type, *choices = _split_annotation(parameter.annotation)  # choices: Only or Without
        if not is_dataclass(annotated_type):
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        options = [
            option for option in _list_options(annotated_type) if all(choice.keeps(option.name) for choice in choices)
        ]
        set_classes[parameter.name] = cast("type[Any]", annotated_type)
        option_names[parameter.name] = [option.name for option in options]
        parameters.extend(options)

    @wraps(function)
    def command(**values: Any) -> R:
        sets: dict[str, Any] = {}
        for name, set_class in set_classes.items():
            set_values = {option: values.pop(option) for option in option_names[name]}
            sets[name] = set_class(**set_values)
        return function(**values, **sets)

    described = cast("Any", command)  # typer reads the two attributes below
    described.__signature__ = inspect.Signature(parameters)
    described.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _split_annotation(annotation: Any) -> tuple[Any, ...]:
    """Return the type of an annotation, and after it what ``Annotated`` adds to the type."""
    return get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)


def _list_options(set_class: Any) -> Iterator[inspect.Parameter]:
    """Yield a parameter for each field of an option set, with the set's heading in the help text."""
    hints = get_type_hints(set_class, include_extras=True)
    for field in fields(set_class):
        value_type, option_info = _split_annotation(hints[field.name])
        option_with_heading = copy(cast("OptionInfo", option_info))
        option_with_heading.rich_help_panel = set_class.heading
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        annotation = Annotated[value_type, option_with_heading]
        yield inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
