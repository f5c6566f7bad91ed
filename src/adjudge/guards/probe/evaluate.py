"""Evaluation of probes: a tool is called if there is one, a judge compares its output, and code decides (``_decide``).

The similarity below which a tool has drifted is decided in ``probe.py`` (``ProbeThresholds.find_drift``).
"""

from __future__ import annotations

import copy
import functools
import inspect
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.concurrency import Timeout, describe_error, map_concurrently
from adjudge.content import content_text, digest_text
from adjudge.errors import AdjudgeError, Argument, UsageError
from adjudge.formats.arguments import check_timeout, check_whole_number
from adjudge.formats.text import flatten, show
from adjudge.guards.event import GuardEvent
from adjudge.guards.probe.probe import DEFAULT_THRESHOLDS, Drift, ProbeThresholds, SemanticProbe
from adjudge.guards.probe.question import find_accusers, find_reading, make_probe_question
from adjudge.guards.probe.result import ProbeReport, ProbeResult
from adjudge.hooks import call_safely, call_within, notify
from adjudge.judges.chain import JudgeChain
from adjudge.judges.evaluate import JudgeLike, measure_ms
from adjudge.judges.judge import ModelSource
from adjudge.judges.open import as_chain
from adjudge.question.question import Answer
from adjudge.result import JudgeChainResult
from adjudge.sync import make_sync
from adjudge.threads import call_in_thread

Tool = Callable[[Any], Any]


def check_tool(tool: Any) -> None:
    """Raise ``UsageError`` for a tool that cannot be called."""
    if not callable(tool):
        raise UsageError(f"a tool must be a function of the probe's input, got {show(tool)}", argument="tool")


async def call_tool(tool: Tool, input_value: Any, *, timeout: float | None) -> tuple[Any, str]:
    """Call a tool; return its output and an empty text, or ``None`` and the problem if there is no output.

    An async function runs in the event loop, and any other in a thread. A thread cannot be killed, so if it is late,
    its output is dropped. The tool gets a copy of the input, so that it cannot change the input of the next call.
    """
    limit = Timeout(timeout)
    output, error = await call_within(limit, _run_tool, tool, input_value)
    if limit.late:
        return None, f"the tool gave no output within {timeout:g} s"
    if error is not None:
        problem = str(error) if isinstance(error, AdjudgeError) else f"the tool raised {type(error).__name__}: {error}"
        return None, flatten(problem, 500)
    return output, ""


async def _run_tool(tool: Tool, input_value: Any) -> Any:
    """Return a tool's output for a copy of the input; a tool that is not async runs in a thread."""
    input_copy = copy.deepcopy(input_value)
    if inspect.iscoroutinefunction(tool) or inspect.iscoroutinefunction(getattr(tool, "__call__", None)):  # noqa: B004
        return await tool(input_copy)
    try:
        output = await call_in_thread(functools.partial(tool, input_copy), name="adjudge probe")
    except SystemExit as error:  # a tool that calls sys.exit() gave no output, and must not end the other probes
        raise RuntimeError(describe_error(error)) from None
    return await output if inspect.isawaitable(output) else output


_ABSENT: Any = object()
"""The value of an argument without an output, because ``None`` can be an output."""


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

    Give the output as ``actual``, or the ``tool`` to call. If the output, the tool or the judge fails, the result says
    so. Raises ``UsageError`` for mistakes that are found before anything is called or asked.

    Args:
        probe: The probe: its input, its baseline and its contract.
        judge: Who judges: a model, a judge or a chain.
        actual: The tool's output, where you called it yourself; in place of ``tool``.
        tool: The tool, a function, sync or async, that is called with the probe's input; in place of ``actual``.
        tool_timeout: Seconds for the call of the tool; ``None`` is no limit.
        thresholds: The lowest similarity that counts as no, low and medium drift; below it is high.
        on_event: Called with a ``GuardEvent`` if a judge was asked.
    """
    if (actual is _ABSENT) == (tool is None):
        raise UsageError(
            "give the tool's output as ",
            Argument("actual"),
            ", or the tool itself as ",
            Argument("tool"),
            ", one of the two",
            argument="actual",
        )
    evaluator = _make_evaluator(judge, tool, tool_timeout, thresholds, on_event)
    return await evaluator.evaluate(_check_probe(probe), actual)


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
    """Evaluate probes, several at once; a slow one does not delay the others.

    Results are in the order of the probes. A problem with one probe affects only its own result. Raises ``UsageError``
    before anything is called or asked.

    Args:
        probes: With a ``tool`` the probes; without one, pairs of a probe and the tool's output.
        judge: Who judges: a model, a judge or a chain.
        tool: The tool, a function, sync or async, that is called with the input of each probe; ``None`` where the
            outputs are given.
        concurrency: How many probes are evaluated at once at most.
        tool_timeout: Seconds for each call of the tool; ``None`` is no limit.
        thresholds: As for ``evaluate_probe``.
        on_result: Called with each result as it arrives.
        on_event: Called with a ``GuardEvent`` for each probe that asked a judge.
    """
    check_whole_number("concurrency", concurrency, least=1)
    pairs = _list_pairs(probes, has_tool=tool is not None)
    evaluator = _make_evaluator(judge, tool, tool_timeout, thresholds, on_event)

    async def evaluate_pair(pair: Pair) -> ProbeResult:
        result = await evaluator.evaluate(*pair)
        await notify(on_result, result, name="on_result")
        return result

    results = await map_concurrently(
        pairs,
        evaluate_pair,
        concurrency,
        give_up=lambda pair: evaluator.make_undecided(pair[0], "the probe ended without a result"),
    )
    return ProbeReport(results=tuple(results), thresholds=thresholds)


evaluate_probe_sync = make_sync(evaluate_probe)

evaluate_probes_sync = make_sync(evaluate_probes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ProbeEvaluator:
    """Evaluates probes with one judge and one tool; it keeps nothing of a probe, so it can evaluate many at once."""

    chain: JudgeChain
    tool: Tool | None
    tool_timeout: float | None
    thresholds: ProbeThresholds
    on_event: Callable[[GuardEvent], Any] | None

    async def evaluate(self, probe: SemanticProbe, actual: Any) -> ProbeResult:
        """Evaluate one probe: call the tool if there is one, ask the judges about the output, and make the result."""
        started = time.perf_counter()
        if self.tool is not None:
            actual, problem = await call_tool(self.tool, probe.input, timeout=self.tool_timeout)
            if problem:
                # Failed and not undecided: unlike the failure of a judge, this says something about the tool.
                return ProbeResult(
                    probe=probe, outcome="failed", decided_by="rule", detail=problem, duration_ms=measure_ms(started)
                )
        try:
            text = content_text(actual, label="output")
        except Exception as error:  # noqa: BLE001 - an output that cannot be read for any reason is undecided
            return self.make_undecided(probe, _explain_error(error), actual=actual, duration_ms=measure_ms(started))
        question = make_probe_question(probe, text, self.thresholds)
        chain_result, error = await call_safely(self.chain.ask, question)
        if error is not None:  # for example an output that is too long for the model
            return self.make_undecided(
                probe, _explain_error(error), actual=actual, subject=question.subject, duration_ms=measure_ms(started)
            )
        result = self._conclude(
            probe, chain_result, actual=actual, duration_ms=measure_ms(started), subject=digest_text(text)
        )
        await self._send_event(result)
        return result

    def make_undecided(
        self,
        probe: SemanticProbe,
        reason: str,
        *,
        actual: Any = None,
        subject: str | None = None,
        duration_ms: float = 0.0,
    ) -> ProbeResult:
        """Make the undecided result of a probe for which no judge could be asked."""
        return ProbeResult(
            probe=probe,
            outcome="undecided",
            undecided_because="error",
            decided_by="policy",
            detail=reason,
            actual=actual,
            subject=subject,
            duration_ms=duration_ms,
        )

    def _conclude(
        self, probe: SemanticProbe, chain_result: JudgeChainResult, *, actual: Any, subject: str, duration_ms: float
    ) -> ProbeResult:
        """Make the result of a probe from the judges' answers.

        Any judge that calls the contract violated makes it violated, whatever the chain decided.
        """
        reading, accusers = find_reading(chain_result), find_accusers(chain_result)
        drift = None if reading is None else self.thresholds.find_drift(reading.similarity)
        answer = _decide(chain_result, drift, [name for name, _ in accusers])
        return ProbeResult(
            probe=probe,
            outcome=answer.outcome,
            undecided_because=answer.because,
            detail=answer.detail,
            decided_by=answer.decided_by,
            similarity=None if reading is None else reading.similarity,
            drift=drift,
            contract_violated=bool(accusers),
            violations=_merge_lists([accusation.violations for _, accusation in accusers]),
            reasoning=chain_result.reasoning,
            actual=actual,
            subject=subject,
            duration_ms=duration_ms,
            chain_result=chain_result,
        )

    async def _send_event(self, result: ProbeResult) -> None:
        """Call ``on_event``, if there is one, with the event about a result."""
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
        await notify(self.on_event, event, name="on_event")


def _decide(chain_result: JudgeChainResult, drift: Drift | None, accusers: Sequence[str]) -> Answer:
    """Decide the outcome of a probe: the chain's, except in three cases.

    It fails if a judge calls the contract violated; ``accusers`` are the names of these judges. It is undecided if a
    judge passed it without a similarity (``drift`` is ``None``), and fails if the similarity is too low for the pass.
    """
    if accusers:
        names = ", ".join(dict.fromkeys(accusers))
        return Answer(outcome="failed", detail=f"the contract is violated, as {names} found")
    if chain_result.outcome == "passed" and chain_result.decided_by != "policy" and drift is None:
        # A custom judge passed it without a similarity, so nothing was measured.
        detail = f"{chain_result.judge} passed the output without a similarity"
        return Answer(outcome="undecided", because="error", decided_by="policy", detail=detail)
    if chain_result.outcome == "passed" and drift in ("medium", "high"):
        # A custom judge's outcome contradicts its similarity. The similarity counts.
        return Answer(outcome="failed", detail="the similarity does not reach the pass")
    return Answer(
        outcome=chain_result.outcome,
        because=chain_result.undecided_because,
        decided_by=chain_result.decided_by,
        detail=chain_result.detail,
    )


def _make_evaluator(
    judge: Any, tool: Any, tool_timeout: Any, thresholds: Any, on_event: Callable[[GuardEvent], Any] | None
) -> _ProbeEvaluator:
    """Make the evaluator; raise ``UsageError`` for a mistake that would affect every probe, such as a missing key."""
    if tool is not None:
        check_tool(tool)
    check_timeout("tool_timeout", tool_timeout)
    if not isinstance(thresholds, ProbeThresholds):
        raise UsageError(f"thresholds must be ProbeThresholds, got {show(thresholds)}", argument="thresholds")
    chain = as_chain(judge)
    # Finds a missing API key, for example, before a tool is called.
    chain.check(make_probe_question(_PLACEHOLDER_PROBE, "", thresholds))
    return _ProbeEvaluator(chain=chain, tool=tool, tool_timeout=tool_timeout, thresholds=thresholds, on_event=on_event)


_PLACEHOLDER_PROBE = SemanticProbe(name="-", input="", expected="")


def _check_probe(probe: Any) -> SemanticProbe:
    """Return a probe; raise ``UsageError`` for any other value."""
    if not isinstance(probe, SemanticProbe):
        raise UsageError(f"a probe must be a SemanticProbe, got {show(probe)}", argument="probe")
    return probe


def _list_pairs(probes: Iterable[Any], *, has_tool: bool) -> list[Pair]:
    """List pairs of a probe and its output, which is ``_ABSENT`` if a tool will give it.

    Raises ``UsageError`` for entries that are no probes, or without a tool no such pairs.
    """
    entries = list(probes)
    if has_tool:
        return [(_check_probe(entry), _ABSENT) for entry in entries]
    for entry in entries:
        if not isinstance(entry, tuple) or len(entry) != 2:
            raise UsageError(
                "without ", Argument("tool"), ", give pairs of a probe and the tool's output", argument="tool"
            )
    return [(_check_probe(probe), actual) for probe, actual in entries]


def _merge_lists(lists: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Merge lists of texts into one, in order and each text once."""
    return tuple(dict.fromkeys(text for texts in lists for text in texts))


def _explain_error(error: BaseException) -> str:
    """Explain in one line why an output could not be judged."""
    description = str(error) if isinstance(error, UsageError) else describe_error(error)
    return flatten(f"the output could not be judged: {description}", 500)
