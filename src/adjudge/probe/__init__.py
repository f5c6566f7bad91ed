"""Semantic probes: does a tool's output still mean what it meant, and does it keep its contract?

A probe holds an input and the output that was good for it, the baseline. What the tool says today is put beside it as
a question for any judge or chain; the answer is a similarity in 0 to 1, and from it, in code, a level of drift.
"""

from adjudge.probe._evaluate import evaluate_probe, evaluate_probe_sync, evaluate_probes, evaluate_probes_sync
from adjudge.probe._file import Baseline, ProbeFile, load_probes
from adjudge.probe._result import ProbeReport, ProbeResult
from adjudge.probe._types import Drift, ProbeContract, ProbeThresholds, SemanticProbe

__all__ = [
    "Baseline",
    "Drift",
    "ProbeContract",
    "ProbeFile",
    "ProbeReport",
    "ProbeResult",
    "ProbeThresholds",
    "SemanticProbe",
    "evaluate_probe",
    "evaluate_probe_sync",
    "evaluate_probes",
    "evaluate_probes_sync",
    "load_probes",
]
