"""The input firewall: a judge checks a function's arguments before they reach the function.

The verdict is decided in ``_conclude``.
"""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from adjudge.content import digest_text
from adjudge.errors import UsageError
from adjudge.formats.arguments import ReadOnly, check_hook, check_label
from adjudge.guards.event import GuardEvent, make_guard_question
from adjudge.guards.firewall.prompt import explain_undecided, find_unreliable_judge, iterate_seats
from adjudge.guards.firewall.question import (
    INPUT,
    MAPPING_TYPES,
    InputReply,
    UnwritableError,
    answer_input,
    describe_unasked,
    render_arguments,
    shorten,
)
from adjudge.guards.firewall.verdict import InputRejected, InputVerdict, Threat
from adjudge.guards.tool_guard.call import ToolCall
from adjudge.guards.tool_guard.screens import Screened, make_screened
from adjudge.hooks import logger, notify
from adjudge.judges.evaluate import JudgeLike, measure_ms
from adjudge.judges.judge import ModelSource
from adjudge.judges.open import as_chain
from adjudge.question.question import Part, Question
from adjudge.result import JudgeChainResult
from adjudge.sync import make_sync_method, run_sync

F = TypeVar("F", bound=Callable[..., Any])


def make_guard(firewall: InputFirewall, trusted: Sequence[str]) -> Callable[[F], F]:
    """Make the decorator behind ``InputFirewall.guard``."""
    if isinstance(trusted, str) or not isinstance(trusted, Sequence):
        raise UsageError(
            f"trusted must be a list of parameters' names, got {type(trusted).__name__}", argument="trusted"
        )

    def decorate(function: F) -> F:
        guarded_function = _GuardedFunction(firewall, function, frozenset(trusted))
        wrapped = _wrap_async if inspect.iscoroutinefunction(function) else _wrap_sync
        return wrapped(guarded_function, function)  # type: ignore[return-value]

    return decorate


class _GuardedFunction:
    """The part of a guarded function that binds its arguments and checks them."""

    __slots__ = ("firewall", "signature", "tool", "unchecked")

    def __init__(self, firewall: InputFirewall, function: Callable[..., Any], trusted: frozenset[str]) -> None:
        _check_function(function, trusted)
        self.firewall = firewall
        self.tool = firewall.tool_name or getattr(function, "__qualname__", "unknown")
        self.signature = inspect.signature(function)
        self.unchecked = trusted | _find_self_parameter(function, self.signature)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[inspect.BoundArguments, dict[str, Any]]:
        """Bind the arguments of a call to the function's parameters, with defaults filled in.

        Returns the bound arguments, and those of them that are checked, by name.
        """
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()  # a default goes through the firewall like anything else
        return bound, self.select_checked(bound)

    def select_checked(self, bound: inspect.BoundArguments) -> dict[str, Any]:
        """Select the arguments to check, by their parameters' names, without an empty ``*args`` or ``**kwargs``."""
        variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        kinds = {name: parameter.kind for name, parameter in self.signature.parameters.items()}
        return {
            name: value
            for name, value in bound.arguments.items()
            if name not in self.unchecked and (kinds[name] not in variadic or value)
        }

    async def check(self, arguments: dict[str, Any]) -> None:
        """Raise ``InputRejected`` unless the arguments pass."""
        verdict = await self.firewall._check(arguments, tool=self.tool)  # noqa: SLF001 - check, in a function's name
        if not verdict.passed:
            raise InputRejected(verdict, code=self.firewall.error_code, tool=self.tool)


def _wrap_async(guarded_function: _GuardedFunction, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap an async function, so that its arguments are checked before it runs."""

    @functools.wraps(function)
    async def guarded(*args: Any, **kwargs: Any) -> Any:
        bound, checked = guarded_function.bind(args, kwargs)
        await guarded_function.check(checked)
        return await function(*bound.args, **bound.kwargs)

    return guarded


def _wrap_sync(guarded_function: _GuardedFunction, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function, so that its arguments are checked before it runs; its caller is blocked during the check."""

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        bound, checked = guarded_function.bind(args, kwargs)
        run_sync(guarded_function.check(checked))
        return function(*bound.args, **bound.kwargs)

    return guarded


def _find_self_parameter(function: Callable[..., Any], signature: inspect.Signature) -> frozenset[str]:
    """Return the parameter ``self`` or ``cls`` of a method, which no caller sends; empty for any other function."""
    enclosing_name = getattr(function, "__qualname__", "").rpartition(".")[0]
    first_parameter = next(iter(signature.parameters), "")
    is_in_class = bool(enclosing_name) and not enclosing_name.endswith("<locals>")
    return frozenset({first_parameter}) if is_in_class and first_parameter in {"self", "cls"} else frozenset()


def _check_function(function: Callable[..., Any], trusted: frozenset[str]) -> None:
    """Raise ``UsageError`` for a function that cannot be guarded, or has no parameter that ``trusted`` names."""
    where = f"an input firewall cannot guard {getattr(function, '__qualname__', function)!r}"
    if isinstance(function, staticmethod | classmethod):
        raise UsageError(f"{where}: put the guard below @{type(function).__name__}")
    if not inspect.isroutine(function):
        raise UsageError(f"{where}: it is not a function")
    if inspect.isasyncgenfunction(function):
        raise UsageError(f"{where}: an async generator cannot wait for the judges when it is called; return a list")
    parameters = inspect.signature(function).parameters
    for name in trusted:
        if name not in parameters:
            raise UsageError(
                f"{where}: it has no parameter {name!r} (its parameters are {', '.join(parameters) or 'none'})",
                argument="trusted",
            )


class InputFirewall(ReadOnly):
    """Checks the arguments of a function with a judge, before they reach the function.

    Raises ``UsageError`` for a judge or an option that cannot be used.

    Args:
        judge: A judge, a chain, an object with ``ask``, or anything that ``Judge`` takes as its model.
        error_code: The code of ``InputRejected``.
        tool_name: The name of the protected tool, for events and errors; ``None`` means the name of the guarded
            function.
        on_event: Called with one event for each check that asked a judge; sync or async. An exception in it is only
            logged.
    """

    def __init__(
        self,
        judge: JudgeLike | ModelSource,
        *,
        error_code: str = "INPUT_REJECTED",
        tool_name: str | None = None,
        on_event: Callable[[GuardEvent], Any] | None = None,
    ) -> None:
        check_label("error_code", error_code)
        if tool_name is not None:
            check_label("tool_name", tool_name)
        check_hook(on_event)
        self.judge = judge
        self.error_code = error_code
        self.tool_name = tool_name
        self.on_event = on_event
        self.chain = as_chain(judge)
        """The judge as it is asked."""
        self._is_made = True

    async def check(self, arguments: Mapping[str, Any]) -> InputVerdict:
        """Check whether some arguments may reach the function.

        They pass if the judges pass them, or a chain's ``fail_open`` does, and no judge contradicted itself. Arguments
        that are not JSON values, contain themselves or are too large are rejected without asking. Empty arguments pass
        without asking. Raises ``UsageError`` for anything but a mapping.

        Args:
            arguments: The arguments by their names, as JSON values.
        """
        return await self._check(arguments, tool=self.tool_name or "unknown")

    check_sync = make_sync_method(check)

    def guard(self, *, trusted: Sequence[str] = ()) -> Callable[[F], F]:
        """Return a decorator that checks all arguments of a function, including defaults, before it runs.

        If they are rejected, the function does not run and ``InputRejected`` is raised. ``self`` and ``cls`` are
        neither shown nor checked. Works for sync and async functions. Raises ``UsageError`` for a parameter that does
        not exist, and for async generators.

        Args:
            trusted: The names of parameters that only your program fills in (a connection, a context): they are neither
                shown nor checked.
        """
        return make_guard(self, trusted)

    async def screen_call(self, call: ToolCall, arguments: Mapping[str, Any], /) -> Screened:
        """Check the arguments of an agent's call, as a ``ToolGuard`` does with a firewall in a gate's place.

        Args:
            call: The call of a tool.
            arguments: The arguments of the call, read.
        """
        verdict = await self._check(arguments, tool=self.tool_name or call.tool)
        return make_screened(verdict.chain_result, allowed=verdict.passed, detail=verdict.detail)

    async def aclose(self) -> None:
        """Close the connections of the judge's models."""
        await self.chain.aclose()

    def __repr__(self) -> str:
        return f"InputFirewall({self.chain.name!r}, tool_name={self.tool_name!r})"

    async def _check(self, arguments: Mapping[str, Any], *, tool: str) -> InputVerdict:
        """Check arguments as ``check`` does; ``tool`` is the name of the tool in events and the log."""
        if not isinstance(arguments, Mapping):
            raise UsageError(
                f"arguments must be a mapping of names to values, got {type(arguments).__name__}", argument="arguments"
            )
        started = time.perf_counter()
        if type(arguments) in MAPPING_TYPES and not arguments:
            return InputVerdict(passed=True, duration_ms=measure_ms(started))
        try:
            text = render_arguments(arguments)
            subject = digest_text(text)
            result = await self.chain.ask(_make_input_question(text, subject))
        except (UnwritableError, UsageError) as error:
            # The arguments are too large for the judge, or the judge is not set up. Without an answer nothing may pass.
            logger.warning("input firewall of %r has no answer and rejected the arguments", tool)
            return InputVerdict(passed=False, duration_ms=measure_ms(started), detail=describe_unasked(error))
        verdict = _conclude(result, measure_ms(started))
        logger.info("input firewall of %r %s the arguments", tool, "passed" if verdict.passed else "rejected")
        event = GuardEvent(
            kind="input",
            guard=tool,
            subject=subject,
            passed=verdict.passed,
            allowed_count=len(arguments) if verdict.passed else 0,
            rejected_count=0 if verdict.passed else len(arguments),
            decided_by="policy" if verdict.fallback_triggered else result.decided_by,
            duration_ms=verdict.duration_ms,
        )
        await notify(self.on_event, event, name="on_event")
        return verdict


def _make_input_question(text: str, subject: str) -> Question:
    """Make the firewall's question about arguments in JSON; ``subject`` is their digest."""
    # Every seat is waited for: a judge that contradicts itself rejects the call, even if others have answered before.
    parts = [Part(label="arguments", text=text)]
    return make_guard_question(INPUT, parts, answer_input, subject=subject, wants_everybody=True)


def _conclude(result: JudgeChainResult, duration_ms: float) -> InputVerdict:
    """Make the verdict: the arguments pass if the chain's result passed and no judge in it is unreliable.

    The threats that judges named are only shown, and decide nothing.
    """
    unreliable = find_unreliable_judge(result)
    passed = result.passed and not unreliable
    return InputVerdict(
        passed=passed,
        # If the arguments passed, threats that outvoted judges named are only in the chain's result.
        threats=() if passed else tuple(dict.fromkeys(_list_threats(result))),
        fallback_triggered=bool(unreliable) or result.fallback_triggered,
        duration_ms=duration_ms,
        chain_result=result,
        detail="" if passed else unreliable or _explain_rejection(result),
    )


def _list_threats(result: JudgeChainResult) -> Iterator[Threat]:
    """Yield the threats that the judges named, in the order of the seats."""
    for seat in iterate_seats(result):
        if isinstance(seat.value, InputReply):
            yield from seat.value.threats


def _explain_rejection(result: JudgeChainResult) -> str:
    """Explain in one sentence why the judges did not pass the arguments."""
    if result.outcome == "undecided":
        return explain_undecided(result)
    return shorten("the judges found the arguments unsafe" + (f"; {result.detail}" if result.detail else ""))
