"""The decorator ``Gate.guard``: a gate checks a function's argument before it runs, or its result afterwards."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from adjudge.content import content_text, digest_text
from adjudge.errors import UsageError
from adjudge.guards.decision import Blocked, Decision
from adjudge.sync import run_sync

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardingGate:
    """The part of a gate that the decorator needs."""

    name: str
    check: Callable[[object], Awaitable[Decision]]
    withdraw: Callable[[Decision, str], Awaitable[Decision]]
    """Record that an allowed content was changed, and return the decision that then counts."""


def make_guard(gate: GuardingGate, argument: str | None) -> Callable[[F], F]:
    """Make the decorator behind ``Gate.guard``."""

    def decorate(function: F) -> F:
        _check_function(gate, function, argument)
        signature = inspect.signature(function)
        wrapped = _wrap_async if inspect.iscoroutinefunction(function) else _wrap_sync
        return wrapped(gate, function, argument, signature)  # type: ignore[return-value]

    return decorate


def _wrap_async(
    gate: GuardingGate, function: Callable[..., Any], argument: str | None, signature: inspect.Signature
) -> Callable[..., Any]:
    """Wrap an async function: one argument is checked before it runs, or without ``argument`` its result afterwards."""

    @functools.wraps(function)
    async def guarded(*args: Any, **kwargs: Any) -> Any:
        if argument is not None:
            bound = _bind_arguments(signature, args, kwargs)
            await _check_value(gate, bound.arguments[argument], _ARGUMENT_LABEL.format(argument))
            return await function(*bound.args, **bound.kwargs)
        returned = await function(*args, **kwargs)
        await _check_value(gate, returned, _RESULT_LABEL)
        return returned

    return guarded


def _wrap_sync(
    gate: GuardingGate, function: Callable[..., Any], argument: str | None, signature: inspect.Signature
) -> Callable[..., Any]:
    """Wrap a function as ``_wrap_async`` does; its caller is blocked while the gate decides."""

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        if argument is None:
            returned = function(*args, **kwargs)
            run_sync(_check_value(gate, returned, _RESULT_LABEL))
            return returned
        bound = _bind_arguments(signature, args, kwargs)
        run_sync(_check_value(gate, bound.arguments[argument], _ARGUMENT_LABEL.format(argument)))
        return function(*bound.args, **bound.kwargs)

    return guarded


_ARGUMENT_LABEL, _RESULT_LABEL = "the argument {!r}", "what the function returned"


async def _check_value(gate: GuardingGate, value: object, label: str) -> None:
    """Raise ``Blocked`` unless the gate lets a value through; ``label`` names the value in its detail."""
    decision = await gate.check(value)
    # People may take hours, and the program may change the value meanwhile. They approved only what it was before.
    if decision.allowed and decision.approval_id is not None and not _is_unchanged(decision, value):
        decision = await gate.withdraw(decision, f"{label} was changed while a person was waited for")
    if not decision.allowed:
        raise Blocked(decision)


def _is_unchanged(decision: Decision, value: object) -> bool:
    """Return whether a value is still the content that a decision is about."""
    try:
        return digest_text(content_text(value)) == decision.subject
    except UsageError:  # it cannot be read any more
        return False


def _bind_arguments(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> inspect.BoundArguments:
    """Bind the arguments of a call to the function's parameters, with defaults filled in."""
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()  # a default goes through the gate like anything else
    return bound


def _check_function(gate: GuardingGate, function: Callable[..., Any], argument: str | None) -> None:
    """Raise ``UsageError`` unless a gate can guard a function's argument of this name, or its result if ``None``."""
    where = f"gate {gate.name!r} cannot guard {getattr(function, '__qualname__', function)!r}"
    if not inspect.isroutine(function):
        raise UsageError(f"{where}: it is not a function")
    if inspect.isasyncgenfunction(function) or (argument is None and inspect.isgeneratorfunction(function)):
        raise UsageError(f"{where}: what a generator yields is out before it could be checked; return it whole")
    parameters = list(inspect.signature(function).parameters)
    if argument is not None and argument not in parameters:
        raise UsageError(
            f"{where}: it has no parameter {argument!r} (its parameters are {', '.join(parameters) or 'none'})",
            argument="argument",
        )
