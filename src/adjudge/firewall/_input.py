"""The input firewall: arguments from elsewhere, before they reach a function."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from adjudge._evaluate import since
from adjudge._foreign import logger, notify
from adjudge._guard import GuardEvent, make_question, open_chain
from adjudge._sync import run_sync
from adjudge.chain import JudgeChain
from adjudge.content import digest_text
from adjudge.errors import UsageError
from adjudge.firewall._around import make_guard
from adjudge.firewall._options import check_hook, check_label
from adjudge.firewall._reading import InputReply, answer_input, shorten
from adjudge.firewall._seats import find_spoiled, walk_seats
from adjudge.firewall._verdicts import InputVerdict, Threat
from adjudge.firewall._wording import INPUT
from adjudge.firewall._writing import PLAIN, UnwritableError, write_arguments
from adjudge.question import Part, Question
from adjudge.result import JudgeChainResult

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class InputFirewall:
    """May these arguments reach the function?

    ``judge`` is a judge, a chain, an object with ``ask``, or whatever ``Judge`` takes as its model. Raises
    ``UsageError`` for anything else and for options that are none.
    """

    judge: Any = field(kw_only=False)
    error_code: str = "INPUT_REJECTED"
    """The code of ``InputRejected``."""
    tool_name: str | None = None
    """What stands behind this firewall, for events and errors; ``None`` for the name of the function it guards."""
    on_event: Callable[[GuardEvent], Any] | None = None
    """Called with one event for each check that asked something; sync or async. What it raises is logged."""
    chain: JudgeChain = field(init=False)
    """The judge as it is asked."""

    def __post_init__(self) -> None:
        check_label("error_code", self.error_code)
        if self.tool_name is not None:
            check_label("tool_name", self.tool_name)
        check_hook(self.on_event)
        object.__setattr__(self, "chain", open_chain(self.judge))

    async def check(self, arguments: Mapping[str, Any]) -> InputVerdict:
        """Whether some arguments may reach the function.

        They pass when the judges pass them, or a chain's ``fail_open`` does, and no judge contradicted itself. What
        is no JSON value, holds itself or is too large is rejected and nobody is asked; neither is anybody about empty
        arguments, which pass. ``UsageError`` is raised for what is no mapping.
        """
        verdict, _ = await self._examine(arguments, tool=self.tool_name or "unknown")
        return verdict

    def check_sync(self, arguments: Mapping[str, Any]) -> InputVerdict:
        """``check`` for callers without an event loop; works inside a running loop too, and blocks it."""
        return run_sync(self.check(arguments))

    def guard(self, *, trusted: Sequence[str] = ()) -> Callable[[F], F]:
        """A decorator that checks all arguments of a function, defaults included, before it runs.

        A rejection raises ``InputRejected``, and the function does not run; so do arguments that are not the same
        any more when the judges have answered. ``trusted`` names parameters that your program fills in and nobody
        else (a connection, a context): they are neither shown nor checked, and neither is ``self`` or ``cls``. For
        sync and async functions. ``UsageError`` for a parameter that does not exist, and for async generators.
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
            return InputVerdict(passed=True, duration_ms=since(started)), digest_text(write_arguments({}))
        try:
            text = write_arguments(arguments)
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
    for seat in walk_seats(result):
        if isinstance(seat.value, InputReply):
            yield from seat.value.threats


def _explain(result: JudgeChainResult) -> str:
    if result.outcome == "undecided":
        return shorten(f"the judges could not decide: {result.undecided_because}; {result.detail}")
    return shorten("the judges found the arguments unsafe" + (f"; {result.detail}" if result.detail else ""))
