"""A gate around a function: its argument is checked before it runs, or its result before it is handed on."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from adjudge.errors import Blocked, UsageError

if TYPE_CHECKING:
    from adjudge.gate import Gate

F = TypeVar("F", bound=Callable[..., Any])


def make_guard(gate: Gate, argument: str | None) -> Callable[[F], F]:
    """The decorator behind ``Gate.guard``."""

    def decorate(function: F) -> F:
        _check_function(gate, function, argument)
        signature = inspect.signature(function)
        wrapped = _wrap_async if inspect.iscoroutinefunction(function) else _wrap_sync
        return wrapped(gate, function, argument, signature)  # type: ignore[return-value]

    return decorate


def _wrap_async(
    gate: Gate, function: Callable[..., Any], argument: str | None, signature: inspect.Signature
) -> Callable[..., Any]:
    @functools.wraps(function)
    async def guarded(*given: Any, **how: Any) -> Any:
        if argument is not None:
            bound = _bind(signature, given, how)
            _raise_unless(await gate.check(bound.arguments[argument]))
            return await function(*bound.args, **bound.kwargs)
        said = await function(*given, **how)
        _raise_unless(await gate.check(said))
        return said

    return guarded


def _wrap_sync(
    gate: Gate, function: Callable[..., Any], argument: str | None, signature: inspect.Signature
) -> Callable[..., Any]:
    @functools.wraps(function)
    def guarded(*given: Any, **how: Any) -> Any:
        if argument is not None:
            bound = _bind(signature, given, how)
            _raise_unless(gate.check_sync(bound.arguments[argument]))
            return function(*bound.args, **bound.kwargs)
        said = function(*given, **how)
        _raise_unless(gate.check_sync(said))
        return said

    return guarded


def _bind(signature: inspect.Signature, given: tuple[Any, ...], how: dict[str, Any]) -> inspect.BoundArguments:
    bound = signature.bind(*given, **how)
    bound.apply_defaults()  # a default goes through the gate like anything else
    return bound


def _raise_unless(decision: Any) -> None:
    if not decision.allowed:
        raise Blocked(decision)


def _check_function(gate: Gate, function: Callable[..., Any], argument: str | None) -> None:
    where = f"gate {gate.name!r} cannot guard {getattr(function, '__qualname__', function)!r}"
    if not inspect.isroutine(function):
        raise UsageError(f"{where}: it is not a function")
    if inspect.isasyncgenfunction(function) or (argument is None and inspect.isgeneratorfunction(function)):
        raise UsageError(f"{where}: what a generator yields is out before it could be checked; return it whole")
    known = list(inspect.signature(function).parameters)
    if argument is not None and argument not in known:
        raise UsageError(f"{where}: it has no parameter {argument!r} (its parameters are {', '.join(known) or 'none'})")
