"""A gate around a function: its argument is checked before it runs, or its result before it is handed on."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from adjudge.content import call_unchanged, content_text, has_changed
from adjudge.errors import UsageError
from adjudge.guards.decision import Blocked, Decision
from adjudge.sync import run_sync

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """What the decorator needs of a gate."""

    name: str
    check: Callable[[object], Awaitable[Decision]]
    withdraw: Callable[[Decision, str], Awaitable[Decision]]
    """Record that an allowed content was changed, and return the decision that then counts."""


def make_guard(gate: Checks, argument: str | None) -> Callable[[F], F]:
    """The decorator behind ``Gate.guard``."""

    def decorate(function: F) -> F:
        _check_function(gate, function, argument)
        signature = inspect.signature(function)
        wrapped = _wrap_async if inspect.iscoroutinefunction(function) else _wrap_sync
        return wrapped(gate, function, argument, signature)  # type: ignore[return-value]

    return decorate


def _wrap_async(
    gate: Checks, function: Callable[..., Any], argument: str | None, signature: inspect.Signature
) -> Callable[..., Any]:
    @functools.wraps(function)
    async def guarded(*given: Any, **how: Any) -> Any:
        if argument is not None:
            bound = _bind(signature, given, how)
            await _let_through(gate, bound.arguments[argument], _ARGUMENT.format(argument))
            return await function(*bound.args, **bound.kwargs)
        said = await function(*given, **how)
        await _let_through(gate, said, _RETURNED)
        return said

    return guarded


def _wrap_sync(
    gate: Checks, function: Callable[..., Any], argument: str | None, signature: inspect.Signature
) -> Callable[..., Any]:
    @functools.wraps(function)
    def guarded(*given: Any, **how: Any) -> Any:
        if argument is None:
            said = function(*given, **how)
            run_sync(_let_through(gate, said, _RETURNED))
            return said
        bound = _bind(signature, given, how)
        value, what = bound.arguments[argument], _ARGUMENT.format(argument)
        decision = run_sync(_let_through(gate, value, what))

        def refuse() -> None:
            if _differs(decision, value):
                run_sync(_stop(gate, decision, what))

        return call_unchanged(function, bound, refuse)

    return guarded


_ARGUMENT, _RETURNED = "the argument {!r}", "what the function returned"


async def _let_through(gate: Checks, value: object, what: str) -> Decision:
    """The decision that lets a value through, as it is now; raises ``Blocked`` where there is none."""
    decision = await gate.check(value)
    if not decision.allowed:
        raise Blocked(decision)
    if _differs(decision, value):
        await _stop(gate, decision, what)
    return decision


def _differs(decision: Decision, value: object) -> bool:
    """Whether a value is not what was decided about: somebody else holds the same list, and judges take a while."""
    if decision.subject is None and decision.mode == "observe":  # nobody could read it, which has been said
        return False
    return has_changed(decision.subject, lambda: content_text(value))


async def _stop(gate: Checks, decision: Decision, what: str) -> None:
    stopped = await gate.withdraw(decision, f"{what} was changed while it was judged")
    if not stopped.allowed:
        raise Blocked(stopped)


def _bind(signature: inspect.Signature, given: tuple[Any, ...], how: dict[str, Any]) -> inspect.BoundArguments:
    bound = signature.bind(*given, **how)
    bound.apply_defaults()  # a default goes through the gate like anything else
    return bound


def _check_function(gate: Checks, function: Callable[..., Any], argument: str | None) -> None:
    where = f"gate {gate.name!r} cannot guard {getattr(function, '__qualname__', function)!r}"
    if not inspect.isroutine(function):
        raise UsageError(f"{where}: it is not a function")
    if inspect.isasyncgenfunction(function) or (argument is None and inspect.isgeneratorfunction(function)):
        raise UsageError(f"{where}: what a generator yields is out before it could be checked; return it whole")
    known = list(inspect.signature(function).parameters)
    if argument is not None and argument not in known:
        raise UsageError(f"{where}: it has no parameter {argument!r} (its parameters are {', '.join(known) or 'none'})")
