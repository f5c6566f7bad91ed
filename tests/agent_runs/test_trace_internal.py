"""The executions of a call compared with the call, which writes all of its arguments."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from adjudge.agents import trace
from adjudge.agents.spans import Span
from adjudge.agents.trace import ToolRun
from adjudge.agents.transcript import Transcript


def make_run(name: str, arguments: Any) -> ToolRun:
    """An execution of the tool of the call ``c``."""
    span = Span(id=name, parent=None, trace="t", name="f", start=1, end=2, failed=False, attributes={})
    return ToolRun(span=span, tool="f", call_id="c", arguments=arguments)


def test_the_arguments_of_a_call_are_compared_with_its_first_execution_alone(monkeypatch: pytest.MonkeyPatch):
    """A further one is a problem anyway: it ran twice."""
    written: Counter[str] = Counter()
    write = trace._write_json

    def count(value: Any) -> str:
        written[str(value)] += 1
        return write(value)

    monkeypatch.setattr(trace, "_write_json", count)
    transcript = Transcript("otel")
    transcript.add_call("f", {"x": "large"}, "c")
    runs = [make_run(f"s{number}", {"x": "small"} if number else {"x": "other"}) for number in range(50)]

    run = trace.read_trace(transcript, trace.Trace(spans={run.span.id: run.span for run in runs}, tools=runs))

    assert written["{'x': 'large'}"] < 5
    assert 'the tool of the call "c" ran with other arguments' in run.problems
    assert 'the tool of the call "c" ran twice' in run.problems
