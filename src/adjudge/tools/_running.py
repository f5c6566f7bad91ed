"""One use of a tool: the caller's function runs it, and what comes out is checked."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from adjudge._evaluate import since
from adjudge._foreign import call_safely
from adjudge._unchanged import copy_plain
from adjudge.tools._record import ToolRecord
from adjudge.tools._reuse import validate_reuse
from adjudge.tools._types import ToolCandidate
from adjudge.tools._verdicts import ReuseVerdict

Run = Callable[[ToolCandidate, Any], Any]
"""What runs a tool, wherever that may safely be done: given the candidate and the arguments, it returns the output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """What one use of a tool came to; true exactly when it ended well and put out what its schema says."""

    output: Any = None
    """``None`` where there is none that fits, so that nobody goes on with one that does not."""
    verdict: ReuseVerdict | None = None
    """Whether the output fits, and whether it lies outside the tool's history; ``None`` where none came."""
    error: BaseException | None = None
    """What the tool raised."""
    duration_ms: float = 0.0

    def __bool__(self) -> bool:
        return self.error is None and self.verdict is not None and self.verdict.valid


async def run_tool(run: Run, record: ToolRecord, arguments: Any) -> ToolUse:
    """Run a tool once; what it raises is part of the result."""
    candidate, usage = record.tool.candidate, record.tool.usage
    started = time.perf_counter()
    output, error = await call_safely(_call, run, candidate, arguments)
    took = since(started)
    if error is not None:
        return ToolUse(error=error, duration_ms=took)
    output = copy_plain(output)  # what is checked is what is handed on, though the tool may hold the same list
    schema = True if candidate.output_schema is None else candidate.output_schema
    history = usage.history if usage is not None else None
    verdict = validate_reuse(record.id, output, schema, history=history)
    return ToolUse(output=output if verdict.valid else None, verdict=verdict, duration_ms=took)


async def _call(run: Run, candidate: ToolCandidate, arguments: Any) -> Any:
    if inspect.iscoroutinefunction(run):
        return await run(candidate, arguments)
    said, error = await asyncio.to_thread(_call_here, run, candidate, arguments)
    if error is not None:
        raise error
    return await said if inspect.isawaitable(said) else said


def _call_here(run: Run, candidate: ToolCandidate, arguments: Any) -> tuple[Any, BaseException | None]:
    # Handed over as a value: a future cannot carry every exception, and its caller would wait for ever.
    try:
        return run(candidate, arguments), None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a tool is somebody else's and may raise anything
        return None, error
