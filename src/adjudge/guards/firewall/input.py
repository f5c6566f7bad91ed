"""The input firewall: arguments from elsewhere, before they reach a function."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from adjudge.content import call_unchanged, digest_text, has_changed
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_hook, check_label
from adjudge.guards.event import GuardEvent, make_question
from adjudge.guards.firewall.prompt import find_spoiled, iterate_seats
from adjudge.guards.firewall.question import (
    INPUT,
    PLAIN,
    InputReply,
    UnwritableError,
    answer_input,
    render_arguments,
    shorten,
)
from adjudge.guards.firewall.verdict import InputRejected, InputVerdict, Threat
from adjudge.hooks import logger, notify
from adjudge.judges.chain import JudgeChain
from adjudge.judges.evaluate import JudgeLike, since
from adjudge.judges.judge import ModelSource
from adjudge.judges.open import as_chain
from adjudge.question.question import Part, Question
from adjudge.result import JudgeChainResult
from adjudge.sync import run_sync

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

    async def examine(self, shown: dict[str, Any]) -> JudgedArguments:
        """The verdict, on arguments that are still the same when it is there."""
        firewall = self.firewall
        verdict, subject = await firewall._examine(shown, tool=self.tool)  # noqa: SLF001 - check, in a function's name
        judged = JudgedArguments(verdict, subject, shown)
        return JudgedArguments(judged.withdraw(), subject, shown) if verdict.passed and judged.has_changed() else judged

    def raise_unless(self, verdict: InputVerdict) -> None:
        if not verdict.passed:
            raise InputRejected(verdict, code=self.firewall.error_code, tool=self.tool)


class JudgedArguments(NamedTuple):
    """A verdict on arguments, and what it was on."""

    verdict: InputVerdict
    subject: str | None
    shown: dict[str, Any]

    def has_changed(self) -> bool:
        """Whether the arguments are not those that were judged."""
        return has_changed(self.subject, lambda: render_arguments(self.shown))

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


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class InputFirewall:
    """Checks the arguments of a function with a judge, before they reach the function.

    ``judge`` is a judge, a chain, an object with ``ask``, or anything that ``Judge`` takes as its model. Raises
    ``UsageError`` for anything else, and for invalid options.
    """

    judge: JudgeLike | ModelSource = field(kw_only=False)
    error_code: str = "INPUT_REJECTED"
    """The code of ``InputRejected``."""
    tool_name: str | None = None
    """The name of the protected tool, for events and errors; ``None`` means the name of the guarded function."""
    on_event: Callable[[GuardEvent], Any] | None = None
    """Called with one event for each check that asked a judge; sync or async. An exception in it is only logged."""
    chain: JudgeChain = field(init=False)
    """The judge as it is asked."""

    def __post_init__(self) -> None:
        check_label("error_code", self.error_code)
        if self.tool_name is not None:
            check_label("tool_name", self.tool_name)
        check_hook(self.on_event)
        object.__setattr__(self, "chain", as_chain(self.judge))

    async def check(self, arguments: Mapping[str, Any]) -> InputVerdict:
        """Check whether some arguments may reach the function.

        They pass if the judges pass them, or a chain's ``fail_open`` does, and no judge contradicted itself. Arguments
        that are not JSON values, contain themselves or are too large are rejected without asking. Empty arguments pass
        without asking. Raises ``UsageError`` for anything but a mapping.
        """
        verdict, _ = await self._examine(arguments, tool=self.tool_name or "unknown")
        return verdict

    def check_sync(self, arguments: Mapping[str, Any]) -> InputVerdict:
        """``check`` for callers without an event loop; works inside a running loop too, and blocks it."""
        return run_sync(self.check(arguments))

    def guard(self, *, trusted: Sequence[str] = ()) -> Callable[[F], F]:
        """Return a decorator that checks all arguments of a function, including defaults, before it runs.

        If they are rejected, or changed while they were judged, the function does not run and ``InputRejected`` is
        raised. ``trusted`` names parameters that only your program fills in (a connection, a context): they are neither
        shown nor checked, and neither is ``self`` or ``cls``. Works for sync and async functions. Raises ``UsageError``
        for a parameter that does not exist, and for async generators.
        """
        return make_guard(self, trusted)

    async def aclose(self) -> None:
        """Close the connections of the judge's models."""
        await self.chain.aclose()

    def __repr__(self) -> str:
        return f"InputFirewall({self.chain.name!r}, tool_name={self.tool_name!r})"

    async def _examine(self, arguments: Mapping[str, Any], *, tool: str) -> tuple[InputVerdict, str | None]:
        """``check``, in the name of a tool, and the digest of what was judged."""
        if not isinstance(arguments, Mapping):
            raise UsageError(f"arguments must be a mapping of names to values, got {type(arguments).__name__}")
        started = time.perf_counter()
        if type(arguments) in PLAIN and not arguments:
            return InputVerdict(passed=True, duration_ms=since(started)), digest_text(render_arguments({}))
        try:
            text = render_arguments(arguments)
            subject = digest_text(text)
            result = await self.chain.ask(_pose(text, subject))
        except (UnwritableError, UsageError) as error:
            # Too much for this judge, or one that is not set up: nobody was asked, so nothing may pass.
            logger.warning("input firewall of %r asked nobody and rejected the arguments", tool)
            return InputVerdict(passed=False, duration_ms=since(started), detail=f"nobody was asked: {error}"), None
        verdict = _conclude(result, since(started))
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
        await notify(self.on_event, event, what="on_event")
        return verdict, subject


def _pose(text: str, subject: str) -> Question:
    # A judge that contradicts itself stops the call, so nobody is cut short: that must not depend on who is quicker.
    parts = [Part(label="arguments", text=text)]
    return make_question(INPUT, parts, answer_input, subject=subject, wants_everybody=True)


def _conclude(result: JudgeChainResult, duration_ms: float) -> InputVerdict:
    """The verdict, from the chain's result alone: a judge's words are shown and decide nothing."""
    spoiled = find_spoiled(result)
    passed = result.passed and not spoiled
    return InputVerdict(
        passed=passed,
        # Of judges that were outvoted, what they named is in the chain's result.
        threats=() if passed else tuple(dict.fromkeys(_list_threats(result))),
        fallback_triggered=bool(spoiled) or result.fallback_triggered,
        duration_ms=duration_ms,
        chain_result=result,
        detail="" if passed else spoiled or _explain(result),
    )


def _list_threats(result: JudgeChainResult) -> Iterator[Threat]:
    for seat in iterate_seats(result):
        if isinstance(seat.value, InputReply):
            yield from seat.value.threats


def _explain(result: JudgeChainResult) -> str:
    if result.outcome == "undecided":
        return shorten(f"the judges could not decide: {result.undecided_because}; {result.detail}")
    return shorten("the judges found the arguments unsafe" + (f"; {result.detail}" if result.detail else ""))
