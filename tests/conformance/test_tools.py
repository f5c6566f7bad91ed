"""Conformance cases about forged tools, replayed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from adjudge import EmergentJudge, Judge
from adjudge.testing import ScriptedModel
from adjudge.tools import validate_reuse
from kit.environment import read_vectors
from kit.tools import candidate, review, run, tool

REMARKS = ("why", "status")
WORDS = {"<parse_failure>": "(unparseable)", "<call_failure>": "(error)"}


@pytest.mark.parametrize("feature", ["review_creation", "review_promotion", "validate_reuse"])
def test_conformance_cases(feature: str):
    """Each case comes out as recommended; one that asks for something unknown fails."""
    cases = [case for case in read_vectors(features=(feature,)) if case["feature"] == feature]

    assert cases
    for case in cases:
        expected = case["expect"]["recommended"]
        expected = case["expect"]["original"] if expected == "same" else expected
        actual = REPLAYS[feature](dict(case["given"]), expected)
        compared = {name: value for name, value in expected.items() if name not in REMARKS}
        assert {name: actual[name] for name in compared} == compared, case["id"]


def ask(model: ScriptedModel) -> Judge:
    return Judge(model, reask=0)


def replay_creation(inputs: dict[str, Any], expected: Mapping[str, Any]) -> dict[str, Any]:
    line = RuntimeError(inputs.pop("throws")) if "throws" in inputs else inputs.pop("reply")
    more = {}
    if "tests" in inputs:
        tests = inputs.pop("tests")
        more["tests"] = tuple(run(item["input"], success=item["success"], error=item["error"]) for item in tests)
    assert inputs == {}
    verdict = asyncio.run(EmergentJudge(ask(ScriptedModel(line))).review_creation(candidate(**more)))
    names = ("approved", "confidence", "safety", "correctness", "determinism", "bounded", "reasoning")
    actual: dict[str, Any] = {name: getattr(verdict, name) for name in names}
    if expected.get("status") == "unparseable":
        # Which of the ways of not being readable it was is finer here: a confidence of 7 is off its scale.
        assert verdict.chain_result is not None
        assert verdict.chain_result.undecided_because in ("unparseable", "off_scale")
        assert (verdict.approved, verdict.confidence) == (False, 0.0)
    if expected.get("reasoning") in WORDS:
        assert WORDS[expected["reasoning"]] in verdict.reasoning
        actual["reasoning"] = expected["reasoning"]
    return actual


def replay_promotion(inputs: dict[str, Any], _: Any) -> dict[str, Any]:
    models = {name: ask(ScriptedModel(inputs.pop(f"{name}_reply"))) for name in ("safety", "correctness")}
    assert inputs == {}
    verdict = asyncio.run(EmergentJudge(ScriptedModel(review()), models).review_promotion(tool()))
    return {
        "approved": verdict.approved,
        "confidence": verdict.confidence,
        "safety": verdict.safety.approved,
        "correctness": verdict.correctness.approved,
    }


KEYWORDS = {
    "minLength": "shorter",
    "minimum": "less than the minimum",
    "type": "is not of type",
    "required": "required",
}


def replay_reuse(inputs: dict[str, Any], expected: Mapping[str, Any]) -> dict[str, Any]:
    output, schema = inputs.pop("output"), inputs.pop("schema")
    assert inputs == {}
    verdict = validate_reuse("tool", output, schema)
    errors = []
    for message, error in zip(verdict.schema_errors, expected.get("errors", ()), strict=False):
        path, detail = message.split(": ", 1)
        keyword = error.partition("@")[2]
        assert KEYWORDS[keyword] in detail, message
        errors.append(f"{'' if path == 'the output' else path}@{keyword}")
    return {"valid": verdict.valid, "errors": errors, "anomaly": verdict.anomaly}


REPLAYS = {
    "review_creation": replay_creation,
    "review_promotion": replay_promotion,
    "validate_reuse": replay_reuse,
}
