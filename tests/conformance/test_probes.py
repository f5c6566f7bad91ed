"""Conformance cases about semantic probes, replayed: what was decided elsewhere, and what is decided here.

Every key of a case must be understood, so that nothing is checked by half.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest

from adjudge import Judge, ProbeReport, SemanticProbe, UsageError, evaluate_probe, evaluate_probes
from adjudge.guards import ProbeResult, ProbeThresholds
from adjudge.testing import ScriptedModel
from kit.environment import read_vectors
from kit.loops import run_virtual

PROBE = SemanticProbe(name="p", input="in", expected="out")
THRESHOLDS = {"mediumDriftThreshold": "low", "highDriftThreshold": "medium"}
"""The seeds name a threshold after the level below it."""
FEATURES = {"semantic_probe.parse", "semantic_probe.aggregate", "semantic_probe.batch"}


@pytest.fixture(name="vectors")
def load_vectors() -> list[Mapping[str, Any]]:
    return read_vectors(features=("semantic_probe.",))


def expectation(case: Mapping[str, Any]) -> dict[str, Any]:
    """What is expected of adjudge, without what explains it to people."""
    expected = case["expect"]["recommended"]
    expected = case["expect"]["original"] if expected == "same" else expected
    return {key: value for key, value in expected.items() if key != "why"}


def of(vectors: list[Mapping[str, Any]], feature: str) -> list[Mapping[str, Any]]:
    return [case for case in vectors if case["feature"] == feature]


def test_every_case_is_replayed(vectors: list[Mapping[str, Any]]):
    """A feature that this file does not know would go unseen."""
    assert {case["feature"] for case in vectors} <= FEATURES


def test_replies_are_read_as_recommended(vectors: list[Mapping[str, Any]]):
    """A similarity gives its drift; what cannot be read is undecided, and nothing is clamped or assumed."""
    for case in of(vectors, "semantic_probe.parse"):
        inputs = dict(case["given"])
        raw, changed = inputs.pop("raw"), inputs.pop("thresholds", {})
        assert inputs == {}
        thresholds = ProbeThresholds(**{THRESHOLDS[name]: value for name, value in changed.items()})
        judge = Judge(ScriptedModel(raw), reask=0)
        result = run_virtual(evaluate_probe(PROBE, judge, actual="now", thresholds=thresholds))
        assert check_reading(case, result), case["id"]


def check_reading(case: Mapping[str, Any], result: ProbeResult) -> bool:
    expected = expectation(case)
    if "status" not in expected:
        return expected == {name: getattr(result, name) for name in ("similarity", "drift", "contract_violated")}
    status = expected.pop("status")
    assert expected in ({}, {"passed": False})
    assert status in ("undecided", "unparseable")
    reason = case["expect"]["recommended"]["why"]
    reasons = {"off_scale": "off_scale"}.get(reason, "unparseable")
    return (result.outcome, result.similarity, result.undecided_because) == ("undecided", None, reasons)


def test_reports_are_stable_as_recommended(vectors: list[Mapping[str, Any]]):
    """No evidence is not stability, and a violation is a veto."""
    for case in of(vectors, "semantic_probe.aggregate"):
        assert set(case["given"]) == {"results"}
        replies = [{"similarityScore": pair[0], "contractViolated": pair[1]} for pair in case["given"]["results"]]
        pairs = [(PROBE, f"now {number}") for number in range(len(replies))]
        report = run_virtual(evaluate_probes(pairs, Judge(ScriptedModel(replies)), concurrency=1))
        assert expectation(case) == {"stable": report.stable}, case["id"]
        assert report.violation_count == sum(pair[1] for pair in case["given"]["results"])


def run_batch(inputs: Mapping[str, Any]) -> ProbeReport:
    assert set(inputs) <= {"n_probes", "concurrency", "second_throws"}
    concurrency = math.nan if inputs["concurrency"] == "NaN" else inputs["concurrency"]
    lines: list[Any] = [{"similarityScore": 0.95}] * inputs["n_probes"]
    if "second_throws" in inputs:
        lines[1] = RuntimeError(inputs["second_throws"])
    pairs = [(PROBE, f"now {number}") for number in range(inputs["n_probes"])]
    return run_virtual(evaluate_probes(pairs, Judge(ScriptedModel(lines), reask=0), concurrency=concurrency))


def test_batches_go_as_recommended(vectors: list[Mapping[str, Any]]):
    """A probe that could not be judged has no similarity, and a concurrency that is no number raises."""
    for case in of(vectors, "semantic_probe.batch"):
        expected = expectation(case)
        if "raises" in expected:
            with pytest.raises(UsageError):
                run_batch(case["given"])
            continue
        report = run_batch(case["given"])
        assert expected == {"similarities": [item.similarity for item in report.results]}, case["id"]
        assert report.mean == pytest.approx(0.95)
