"""An input firewall around a function: its arguments are checked before it runs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from adjudge._sync import run_sync
from adjudge._unchanged import call_unchanged, has_changed
from adjudge.errors import InputRejected, UsageError
from adjudge.firewall._verdicts import InputVerdict
from adjudge.firewall._writing import write_arguments

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

    async def examine(self, shown: dict[str, Any]) -> Judged:
        """The verdict, on arguments that are still the same when it is there."""
        firewall = self.firewall
        verdict, subject = await firewall._examine(shown, tool=self.tool)  # noqa: SLF001 - check, in a function's name
        judged = Judged(verdict, subject, shown)
        return Judged(judged.withdraw(), subject, shown) if verdict.passed and judged.has_changed() else judged

    def raise_unless(self, verdict: InputVerdict) -> None:
        if not verdict.passed:
            raise InputRejected(verdict, code=self.firewall.error_code, tool=self.tool)


class Judged(NamedTuple):
    """A verdict on arguments, and what it was on."""

    verdict: InputVerdict
    subject: str | None
    shown: dict[str, Any]

    def has_changed(self) -> bool:
        """Whether the arguments are not those that were judged."""
        return has_changed(self.subject, lambda: write_arguments(self.shown))

    def withdraw(self) -> InputVerdict:
        """The verdict once they are not: the judges took a while, and somebody else holds the same list."""
        said = "the arguments were changed while they were judged"
        given = self.verdict
        return InputVerdict(passed=False, duration_ms=given.duration_ms, chain_result=given.chain_result, detail=said)


def _wrap_async(call: _Calls, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def guarded(*given: Any, **how: Any) -> Any:
        bound, shown = call.bind(given, how)
        call.raise_unless((await call.examine(shown)).verdict)
        return await function(*bound.args, **bound.kwargs)

    return guarded


def _wrap_sync(call: _Calls, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def guarded(*given: Any, **how: Any) -> Any:
        bound, shown = call.bind(given, how)
        judged = run_sync(call.examine(shown))
        call.raise_unless(judged.verdict)

        def refuse() -> None:
            if judged.has_changed():
                call.raise_unless(judged.withdraw())

        return call_unchanged(function, bound, refuse)

    return guarded


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
