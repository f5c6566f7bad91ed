"""Probing: the tool is called where there is one, a judge compares, and code says what that comes to."""

from __future__ import annotations

import asyncio
import copy
import inspect
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from adjudge.concurrency import Timeout, describe_error, is_for_us, map_concurrently
from adjudge.content import content_text, digest_text
from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.arguments import check_timeout, check_whole_number
from adjudge.formats.text import flatten, show
from adjudge.guards.event import GuardEvent
from adjudge.guards.probe.probe import DEFAULT_THRESHOLDS, ProbeThresholds, SemanticProbe
from adjudge.guards.probe.question import find_accusers, find_reading, make_probe_question
from adjudge.guards.probe.result import ProbeReport, ProbeResult
from adjudge.hooks import call_safely, call_within, notify
from adjudge.judges.chain import JudgeChain
from adjudge.judges.evaluate import JudgeLike, since
from adjudge.judges.judge import ModelSource
from adjudge.judges.open import as_chain
from adjudge.result import JudgeChainResult
from adjudge.sync import make_sync

Tool = Callable[[Any], Any]


def check_tool(tool: Any) -> None:
    """Raise ``UsageError`` for what is no tool."""
    if not callable(tool):
        raise UsageError(f"a tool must be a function of the probe's input, got {show(tool)}")


async def call_tool(tool: Tool, given: Any, *, timeout: float | None) -> tuple[Any, str]:
    """The tool's output and nothing, or nothing and why there is none.

    An async function runs here; any other runs in a thread of its own, which cannot be killed: when it is late, what
    it still returns is dropped. It is given a copy of the input, so that it cannot change what the next call gets.
    """
    limit = Timeout(timeout)
    said, error = await call_within(limit, _call, tool, given)
    if limit.late:
        return None, f"the tool gave no output within {timeout:g} s"
    if error is not None:
        said = str(error) if isinstance(error, AdjudgeError) else f"the tool raised {type(error).__name__}: {error}"
        return None, flatten(said, 500)
    return said, ""


async def _call(tool: Tool, given: Any) -> Any:
    own = copy.deepcopy(given)
    if inspect.iscoroutinefunction(tool) or inspect.iscoroutinefunction(getattr(tool, "__call__", None)):  # noqa: B004
        return await tool(own)
    said = await _run_in_thread(tool, own)
    return await said if inspect.isawaitable(said) else said


async def _run_in_thread(tool: Tool, given: Any) -> Any:
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

    def settle(said: Any, error: BaseException | None) -> None:
        if not answer.done():
            answer.set_result((said, error))

    def work() -> None:
        outcome: tuple[Any, BaseException | None] = (None, RuntimeError("it ended its own thread"))
        try:
            outcome = (tool(given), None)
        except (Exception, SystemExit, asyncio.CancelledError) as error:  # noqa: BLE001 - raised where it is awaited
            outcome = (None, error)
        finally:
            with suppress(RuntimeError):  # the loop was closed meanwhile, and nobody waits
                loop.call_soon_threadsafe(settle, *outcome)

    # Not the loop's executor: a tool that hangs would hold one of its threads, and the end of the program.
    threading.Thread(target=work, name="adjudge probe", daemon=True).start()
    said, error = await answer
    if error is not None:
        ours = isinstance(error, Exception) and not isinstance(error, StopIteration)
        raise error if ours else RuntimeError(f"{type(error).__name__}: {error}")
    return said


_ABSENT: Any = object()
"""Stands for no output: ``None`` is one."""


Pair = tuple[SemanticProbe, Any]
"""A probe and the tool's output for its input."""


async def evaluate_probe(
    probe: SemanticProbe,
    judge: JudgeLike | ModelSource,
    *,
    actual: object = _ABSENT,
    tool: Tool | None = None,
    tool_timeout: float | None = 60.0,
    thresholds: ProbeThresholds = DEFAULT_THRESHOLDS,
    on_event: Callable[[GuardEvent], Any] | None = None,
) -> ProbeResult:
    """Judge whether a tool's output still means what the baseline means, and keeps the contract.

    Give the output as ``actual``, or the ``tool`` to call with the probe's input, sync or async, for at most
    ``tool_timeout`` seconds. ``judge`` is any model, judge or chain. If the output, the tool or the judge fails, the
    result says so. Raises ``UsageError`` for mistakes that are found before anything is called or asked. ``on_event``
    is called with a ``GuardEvent`` if a judge was asked.
    """
    if (actual is _ABSENT) == (tool is None):
        raise UsageError("give the tool's output as actual=, or the tool itself as tool=, one of the two")
    run = _open_run(judge, tool, tool_timeout, thresholds, on_event)
    return await run.evaluate(_check_probe(probe), actual)


async def evaluate_probes(
    probes: Iterable[SemanticProbe] | Iterable[Pair],
    judge: JudgeLike | ModelSource,
    *,
    tool: Tool | None = None,
    concurrency: int = 3,
    tool_timeout: float | None = 60.0,
    thresholds: ProbeThresholds = DEFAULT_THRESHOLDS,
    on_result: Callable[[ProbeResult], Any] | None = None,
    on_event: Callable[[GuardEvent], Any] | None = None,
) -> ProbeReport:
    """Evaluate probes, at most ``concurrency`` at once; a slow one does not delay the others.

    With a ``tool``, ``probes`` are probes; without one, pairs of a probe and the tool's output. Results are in the same
    order. A problem with one probe affects only its own result. ``on_result`` is called with each result as it arrives;
    the other arguments are those of ``evaluate_probe``. Raises ``UsageError`` before anything is called or asked.
    """
    check_whole_number("concurrency", concurrency, least=1)
    pairs = _list_pairs(probes, has_tool=tool is not None)
    run = _open_run(judge, tool, tool_timeout, thresholds, on_event)

    async def work(pair: Pair) -> ProbeResult:
        result = await run.evaluate(*pair)
        await notify(on_result, result, what="on_result")
        return result

    results = await map_concurrently(
        pairs,
        work,
        concurrency,
        give_up=lambda pair: run.make_undecided(pair[0], "the probe ended without a result"),
    )
    return ProbeReport(results=tuple(results), thresholds=thresholds)


evaluate_probe_sync = make_sync(evaluate_probe)

evaluate_probes_sync = make_sync(evaluate_probes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """How probes are evaluated: configuration only, so one serves any number at once."""

    chain: JudgeChain
    tool: Tool | None
    tool_timeout: float | None
    thresholds: ProbeThresholds
    on_event: Callable[[GuardEvent], Any] | None

    async def evaluate(self, probe: SemanticProbe, actual: Any) -> ProbeResult:
        """One probe, from the tool's call to its result."""
        started = time.perf_counter()
        if self.tool is not None:
            actual, trouble = await call_tool(self.tool, probe.input, timeout=self.tool_timeout)
            if trouble:
                # The tool's failure is evidence about the tool, and the outage of a judge is not: this has failed.
                return ProbeResult(
                    probe=probe, outcome="failed", decided_by="rule", detail=trouble, duration_ms=since(started)
                )
        try:
            text = content_text(actual, what="output")
        except BaseException as error:  # an object of anybody's may raise anything when it is opened
            if is_for_us(error):
                raise
            return self.make_undecided(probe, _describe(error), actual=actual, duration_ms=since(started))
        question = make_probe_question(probe, text, self.thresholds)
        said, error = await call_safely(self.chain.ask, question)
        if error is not None:  # too long for a model, for one
            return self.make_undecided(
                probe, _describe(error), actual=actual, subject=question.subject, duration_ms=since(started)
            )
        result = self._conclude(probe, said, actual=actual, duration_ms=since(started), subject=digest_text(text))
        await self._notify(result)
        return result

    def make_undecided(self, probe: SemanticProbe, why: str, **more: Any) -> ProbeResult:
        """The result when no judge could be asked."""
        return ProbeResult(
            probe=probe, outcome="undecided", undecided_because="error", decided_by="policy", detail=why, **more
        )

    def _conclude(self, probe: SemanticProbe, said: JudgeChainResult, **more: Any) -> ProbeResult:
        """What the seats' answers come to: the chain's outcome, unless a judge names a violation."""
        reading, accusers = find_reading(said), find_accusers(said)
        more |= {"reasoning": said.reasoning, "chain_result": said}
        more |= {"contract_violated": bool(accusers), "violations": _join([item.violations for _, item in accusers])}
        if reading is not None:
            drift = self.thresholds.find_drift(reading.similarity)
            more |= {"similarity": reading.similarity, "drift": drift}
        if accusers:
            names = ", ".join(dict.fromkeys(name for name, _ in accusers))
            return ProbeResult(
                probe=probe, outcome="failed", detail=f"the contract is violated, as {names} found", **more
            )
        if said.outcome == "passed" and said.decided_by != "policy" and reading is None:
            # A judge of another make: it says yes and not how similar, so nothing was measured.
            return self.make_undecided(probe, f"{said.judge} passed the output without a similarity", **more)
        if said.outcome == "passed" and more.get("drift") in ("medium", "high"):
            # A judge of another make again, which hands on a reading with an outcome of its own. Code decides.
            return ProbeResult(probe=probe, outcome="failed", detail="the similarity does not reach the pass", **more)
        return ProbeResult(
            probe=probe,
            outcome=said.outcome,
            undecided_because=said.undecided_because,
            decided_by=said.decided_by,
            detail=said.detail,
            **more,
        )

    async def _notify(self, result: ProbeResult) -> None:
        if self.on_event is None:
            return
        event = GuardEvent(
            kind="probe",
            guard=result.name,
            subject=result.subject or "",
            passed=result.passed,
            allowed_count=int(result.passed),
            rejected_count=int(not result.passed),
            decided_by=result.decided_by,
            duration_ms=result.duration_ms,
        )
        await notify(self.on_event, event, what="on_event")


def _open_run(
    judge: Any, tool: Any, tool_timeout: Any, thresholds: Any, on_event: Callable[[GuardEvent], Any] | None
) -> _Run:
    """The configuration, checked; raises ``UsageError`` for what would be wrong with every probe."""
    if tool is not None:
        check_tool(tool)
    check_timeout("tool_timeout", tool_timeout)
    if not isinstance(thresholds, ProbeThresholds):
        raise UsageError(f"thresholds must be ProbeThresholds, got {show(thresholds)}")
    chain = as_chain(judge)
    # A key that is missing is missing for every probe: said at once, before a tool has been called.
    chain.check(make_probe_question(_NOBODY, "", thresholds))
    return _Run(chain=chain, tool=tool, tool_timeout=tool_timeout, thresholds=thresholds, on_event=on_event)


_NOBODY = SemanticProbe(name="-", input="", expected="")


def _check_probe(probe: Any) -> SemanticProbe:
    if not isinstance(probe, SemanticProbe):
        raise UsageError(f"a probe must be a SemanticProbe, got {show(probe)}")
    return probe


def _list_pairs(probes: Iterable[Any], *, has_tool: bool) -> list[Pair]:
    listed = list(probes)
    if has_tool:
        return [(_check_probe(item), _ABSENT) for item in listed]
    for item in listed:
        if not isinstance(item, tuple) or len(item) != 2:
            raise UsageError("without a tool=, give pairs of a probe and the tool's output")
    return [(_check_probe(probe), actual) for probe, actual in listed]


def _join(lists: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Every text of some lists, each once, in order."""
    return tuple(dict.fromkeys(text for texts in lists for text in texts))


def _describe(error: BaseException) -> str:
    said = str(error) if isinstance(error, UsageError) else describe_error(error)
    return flatten(f"the output could not be judged: {said}", 500)
