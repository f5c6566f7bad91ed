"""Candidates, tools and replies about them, and every strategy, for the tests of forged tools."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from adjudge import EmergentTool, Judge, JudgeChain, ToolCandidate, ToolTest
from adjudge.testing import ScriptedModel
from adjudge.tools import CreationVerdict, ReuseVerdict, ToolUsage, tool_digest, validate_reuse
from kit.cli import ESCAPES
from kit.judges import STRATEGIES

INTEGER = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"

ITEM = {
    "type": "object",
    "properties": {"x": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}},
}
ORDER = {
    "type": "object",
    "required": ["id"],
    "properties": {
        "id": {"type": "string"},
        "note": {"type": ["string", "null"]},
        "items": {"type": "array", "items": ITEM},
        "any": {},
    },
}


def candidate(**more: Any) -> ToolCandidate:
    """A candidate nothing speaks against."""
    members: dict[str, Any] = {
        "name": "add",
        "description": "Adds two numbers.",
        "input_schema": {"type": "object"},
        "output_schema": INTEGER,
        "source": "function run(input) { return {sum: input.a + input.b} }",
        "mode": "sandbox",
        "tests": (run({"a": 1, "b": 2}, {"sum": 3}),),
    }
    return ToolCandidate(**members | more)


def run(arguments: Any = None, output: Any = None, **more: Any) -> ToolTest:
    """A recorded run of a tool."""
    return ToolTest(input={} if arguments is None else arguments, output=output, **{"success": True, **more})


def approval(**more: Any) -> dict[str, Any]:
    """A reviewer's reply that approves a candidate, with whatever else it says."""
    return {
        "safety": {"passed": True, "concerns": []},
        "correctness": {"passed": True, "failedTests": []},
        "determinism": {"likely": True, "reasoning": "no clock"},
        "bounded": {"likely": True, "reasoning": "no loop"},
        "reasoning": "It adds.",
        "confidence": 0.9,
        "approved": True,
        **more,
    }


def refusal(**more: Any) -> dict[str, Any]:
    """A reviewer's reply that rejects a candidate."""
    return approval(**{"safety": {"passed": False, "concerns": ["it sends data away"]}, "approved": False, **more})


def review(*, approved: Any = True, confidence: Any = 0.9, **more: Any) -> dict[str, Any]:
    """One reviewer's reply about a promotion."""
    return {"reasoning": "so", "confidence": confidence, "approved": approved, **more}


def creation(of: ToolCandidate | None = None, **more: Any) -> CreationVerdict:
    """An earlier verdict that approves."""
    members: dict[str, Any] = {
        "approved": True,
        "confidence": 0.9,
        "safety": 1.0,
        "correctness": 1.0,
        "determinism": 1.0,
        "bounded": 1.0,
        "reasoning": "It adds.",
        "tool_digest": tool_digest(of if of is not None else candidate()),
    }
    return CreationVerdict(**members | more)


def tool(**more: Any) -> EmergentTool:
    """A tool that was approved and used."""
    made = more.get("candidate") or candidate()
    members: dict[str, Any] = {
        "id": "tool-1",
        "candidate": made,
        "agent": "ana",
        "session": "s1",
        "usage": ToolUsage(uses=6, successes=6, mean_ms=2.0),
        "verdicts": (creation(made),),
    }
    return EmergentTool(**members | more)


def chain(lines: Sequence[Any], strategy: str = "consensus", **more: Any) -> JudgeChain:
    """A chain of judges that each say one line, and are not asked twice unless told so."""
    seats = [
        line if hasattr(line, "ask") else Judge(ScriptedModel(line, name=f"m{place}"), timeout=None)
        for place, line in enumerate(lines, 1)
    ]
    return JudgeChain(seats, **{"strategy": strategy, "timeout": None, **STRATEGIES[strategy], **more})


def check(output: Any, schema: Any, **more: Any) -> ReuseVerdict:
    """The verdict on an output."""
    return validate_reuse("tool-1", output, schema, **more)


def errors(output: Any, schema: Any, **more: Any) -> tuple[str, ...]:
    """Return what is wrong with an output."""
    return check(output, schema, **more).schema_errors


def review_words(prompt: str) -> str:
    """A reviewer for ``python:kit.tools:review_words``: bad is rejected, odd is no answer."""
    token = re.search(r"<<source (\w{8})>>\n(.*)\n<<end source \1>>", prompt, re.DOTALL)
    assert token is not None, prompt
    if "odd" in token[2]:
        return "I cannot say."
    if "eval" in token[2]:
        objection = {"safety": {"concerns": ["it calls eval"], "passed": False}, "approved": False}
        return json.dumps({"token": token[1], **approval(), **objection})
    return json.dumps({"token": token[1], **(refusal(reasoning=ESCAPES) if "bad" in token[2] else approval())})
