"""An input firewall around a function: its arguments are checked before it runs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from adjudge._sync import run_sync
from adjudge.errors import InputRejected, UsageError
from adjudge.firewall._verdicts import InputVerdict
from adjudge.firewall._writing import UnwritableError, write_arguments

if TYPE_CHECKING:
    from adjudge.firewall._input import InputFirewall

F = TypeVar("F", bound=Callable[..., Any])


def make_guard(firewall: InputFirewall, trusted: Sequence[str]) -> Callable[[F], F]:
    """The decorator behind ``InputFirewall.guard``."""
    if isinstance(trusted, str) or not isinstance(trusted, Sequence):
        raise UsageError(f"trusted must be a list of parameters' names, got {type(trusted).__name__}")

    def decorate(function: F) -> F:
        call = _Calls(firewall, function, frozenset(trusted))
        wrapped = _wrap_async if inspect.iscoroutinefunction(function) else _wrap_sync
        return wrapped(call, function)  # type: ignore[return-value]

    return decorate


class _Calls:
    """What is known of a guarded function: how its arguments bind, and which of them are looked at."""

    __slots__ = ("firewall", "hidden", "signature", "tool")

    def __init__(self, firewall: InputFirewall, function: Callable[..., Any], trusted: frozenset[str]) -> None:
        _check_function(function, trusted)
        self.firewall = firewall
        self.tool = firewall.tool_name or getattr(function, "__qualname__", "unknown")
        self.signature = inspect.signature(function)
        self.hidden = trusted | _find_owner(function, self.signature)

    def bind(self, given: tuple[Any, ...], how: dict[str, Any]) -> tuple[inspect.BoundArguments, dict[str, Any]]:
        """The call as the function will see it, and what of it is checked."""
        bound = self.signature.bind(*given, **how)
        bound.apply_defaults()  # a default goes through the firewall like anything else
        return bound, self.look(bound)

    def look(self, bound: inspect.BoundArguments) -> dict[str, Any]:
        """The arguments to check: each by its parameter's name, without those that hold nothing more (``*args``)."""
        variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        kinds = {name: parameter.kind for name, parameter in self.signature.parameters.items()}
        return {
            name: value
            for name, value in bound.arguments.items()
            if name not in self.hidden and (kinds[name] not in variadic or value)
        }

    async def examine(self, shown: dict[str, Any]) -> InputVerdict:
        """The verdict, on arguments that are still the same when it is there."""
        before = _write(shown)
        verdict = await self.firewall._examine(shown, tool=self.tool)  # noqa: SLF001 - check, in a function's name
        if verdict.passed and _write(shown) != before:
            # The judges took a while, and somebody else holds the same list: what was judged is not what would run.
            said = "the arguments were changed while they were judged"
            return InputVerdict(
                passed=False, duration_ms=verdict.duration_ms, chain_result=verdict.chain_result, detail=said
            )
        return verdict

    def raise_unless(self, verdict: InputVerdict) -> None:
        if not verdict.passed:
            raise InputRejected(verdict, code=self.firewall.error_code, tool=self.tool)


def _wrap_async(call: _Calls, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def guarded(*given: Any, **how: Any) -> Any:
        bound, shown = call.bind(given, how)
        call.raise_unless(await call.examine(shown))
        return await function(*bound.args, **bound.kwargs)

    return guarded


def _wrap_sync(call: _Calls, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def guarded(*given: Any, **how: Any) -> Any:
        bound, shown = call.bind(given, how)
        call.raise_unless(run_sync(call.examine(shown)))
        return function(*bound.args, **bound.kwargs)

    return guarded


def _write(shown: dict[str, Any]) -> str | None:
    try:
        return write_arguments(shown)
    except UnwritableError:
        return None


def _find_owner(function: Callable[..., Any], signature: inspect.Signature) -> frozenset[str]:
    """``self`` or ``cls``, for a function that was written in a class: it is the object, and nobody sends it."""
    within = getattr(function, "__qualname__", "").rpartition(".")[0]
    first = next(iter(signature.parameters), "")
    owned = bool(within) and not within.endswith("<locals>") and first in {"self", "cls"}
    return frozenset({first}) if owned else frozenset()


def _check_function(function: Callable[..., Any], trusted: frozenset[str]) -> None:
    where = f"an input firewall cannot guard {getattr(function, '__qualname__', function)!r}"
    if isinstance(function, staticmethod | classmethod):
        raise UsageError(f"{where}: put the guard below @{type(function).__name__}")
    if not inspect.isroutine(function):
        raise UsageError(f"{where}: it is not a function")
    if inspect.isasyncgenfunction(function):
        raise UsageError(f"{where}: an async generator cannot wait for the judges when it is called; return a list")
    known = inspect.signature(function).parameters
    for name in trusted:
        if name not in known:
            raise UsageError(f"{where}: it has no parameter {name!r} (its parameters are {', '.join(known) or 'none'})")
