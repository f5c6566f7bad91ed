"""The result of a probe, and the report about many."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar

from adjudge.errors import Reason, UsageError
from adjudge.formats.numbers import format_score
from adjudge.formats.plain import to_plain
from adjudge.formats.text import clean
from adjudge.guards.probe.probe import DEFAULT_THRESHOLDS, Drift, ProbeThresholds, SemanticProbe
from adjudge.result import DecidedBy, JudgeChainResult, Outcome

STEADY: tuple[Drift, ...] = ("none", "low")
"""The levels of drift that pass."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ProbeResult:
    """The result of one probe. It is true only if the probe passed: drift none or low, and the contract kept.

    If the tool raised, ended with an error or took too long, the probe has ``failed``, decided by ``rule``, because the
    tool gave an output when the baseline was recorded. There is then no output to compare, so similarity and drift are
    ``None``.
    """

    schema: ClassVar[str] = "adjudge/probe-result/1"

    probe: SemanticProbe
    outcome: Outcome
    undecided_because: Reason | None = None
    """Set exactly when the outcome is undecided."""
    detail: str = ""
    """One sentence on what else decided, besides the similarity, or what could not be read."""
    decided_by: DecidedBy = "judge"
    similarity: float | None = None
    """In 0 to 1, from the judge that decided; ``None`` when nobody measured it."""
    drift: Drift | None = None
    contract_violated: bool = False
    """Whether any judge that answered says so, even if others disagree."""
    violations: tuple[str, ...] = ()
    """What those judges name, each once."""
    reasoning: str = ""
    actual: Any = None
    """The tool's output, as it was given; ``None`` also where there is none."""
    subject: str | None = None
    """SHA-256 of the output as the judge was shown it."""
    duration_ms: float = 0.0
    """The tool's time included, where it was called here."""
    chain_result: JudgeChainResult | None = None
    """Every seat's answer; ``None`` when nobody was asked."""
    at: datetime = field(default_factory=_now)

    def __post_init__(self) -> None:
        if (self.outcome == "undecided") != (self.undecided_because is not None):
            raise UsageError("a probe's result has undecided_because exactly when the outcome is 'undecided'")
        # So that no strategy, policy or reducer can hand on a pass over a broken promise.
        if self.outcome == "passed" and (self.contract_violated or self.drift in ("medium", "high")):
            raise UsageError("a probe whose contract is violated, or whose drift is medium or high, has not passed")
        if (self.similarity is None) != (self.drift is None):
            raise UsageError("a probe's result has a drift exactly when it has a similarity")
        if self.similarity is not None and not 0 <= self.similarity <= 1:  # true for NaN as well
            raise UsageError(f"a similarity is in 0 to 1, or None; got {self.similarity!r}")

    @property
    def name(self) -> str:
        """The probe's name."""
        return self.probe.name

    @property
    def passed(self) -> bool:
        """True only when the outcome is ``passed``."""
        return self.outcome == "passed"

    @property
    def fallback_triggered(self) -> bool:
        """True exactly when a policy decided and not a judge."""
        return self.decided_by == "policy"

    def __bool__(self) -> bool:
        return self.passed

    def explain(self) -> str:
        """The outcome in one line, with similarity, drift, and what is violated."""
        said = f"{self.outcome}: {self.undecided_because}" if self.undecided_because else str(self.outcome)
        said += f" with {format_score(self.similarity)} (drift {self.drift})" if self.similarity is not None else ""
        said += "" if self.decided_by == "judge" else f", decided by {self.decided_by}"
        more = [self.detail] if self.detail else []
        return clean("; ".join([said, *more, *self.violations]), keep_lines=False)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {clean(self.name, keep_lines=False)!r} {self.explain()}>"

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data. Input, baseline and output are not in it; ``subject`` is the output's digest."""
        return {
            "schema": self.schema,
            "probe": self.name,
            "outcome": self.outcome,
            "passed": self.passed,
            "undecided_because": self.undecided_because,
            "detail": self.detail,
            "decided_by": self.decided_by,
            "similarity": self.similarity,
            "drift": self.drift,
            "contract_violated": self.contract_violated,
            "violations": list(self.violations),
            "reasoning": self.reasoning,
            "subject": self.subject,
            "duration_ms": self.duration_ms,
            "chain_result": to_plain(self.chain_result),
            "at": self.at.isoformat(),
        }


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ProbeReport:
    """The report about several probes.

    ``mean`` and ``drift`` are about all probes together, so one bad tool among many may not show in them. ``outcome``
    is ``passed`` only if every probe passed.
    """

    schema: ClassVar[str] = "adjudge/probe-report/1"

    results: tuple[ProbeResult, ...]
    """In the order of the probes."""
    thresholds: ProbeThresholds = DEFAULT_THRESHOLDS

    @property
    def mean(self) -> float | None:
        """The mean similarity of the probes that were measured; ``None`` when none was."""
        measured = [item.similarity for item in self.results if item.similarity is not None]
        return min(math.fsum(measured) / len(measured), 1.0) if measured else None

    @property
    def drift(self) -> Drift | None:
        """The level of the mean, by the same thresholds as each probe's; ``None`` is unknown."""
        return None if self.mean is None else self.thresholds.find_drift(self.mean)

    @property
    def violation_count(self) -> int:
        """How many probes have their contract violated."""
        return sum(item.contract_violated for item in self.results)

    @property
    def stable(self) -> bool:
        """Whether the mean drifted little, every probe was measured, and no contract is violated.

        An undecided probe makes a report unstable, and so does one that a policy let pass: otherwise silencing the
        judge would make a tool look stable. A report without probes is not stable either, because there is no evidence.
        """
        measured = all(item.similarity is not None and item.outcome != "undecided" for item in self.results)
        return self.drift in STEADY and measured and self.violation_count == 0

    @property
    def outcome(self) -> Outcome:
        """``failed`` when a probe or the mean failed; else ``undecided`` without probes or when one is undecided."""
        said = {item.outcome for item in self.results}
        if "failed" in said or self.drift in ("medium", "high"):
            return "failed"
        return "undecided" if "undecided" in said or not said else "passed"

    @property
    def passed(self) -> bool:
        """True only when the outcome is ``passed``."""
        return self.outcome == "passed"

    def __bool__(self) -> bool:
        return self.passed

    def explain(self) -> str:
        """The whole in one line."""
        counts = {
            name: sum(item.outcome == name for item in self.results) for name in ("passed", "failed", "undecided")
        }
        listed = ", ".join(f"{number} {name}" for name, number in counts.items())
        mean = f"mean similarity {format_score(self.mean)} (drift {self.drift})"
        mean = "nothing was measured" if self.mean is None else mean
        broken = f", {self.violation_count} with a violated contract" if self.violation_count else ""
        total = len(self.results)
        return (
            f"{'stable' if self.stable else 'not stable'}: {total} probe{'s' * (total != 1)}, {listed}; {mean}{broken}"
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.explain()}>"

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "schema": self.schema,
            "outcome": self.outcome,
            "passed": self.passed,
            "stable": self.stable,
            "mean": self.mean,
            "drift": self.drift,
            "violation_count": self.violation_count,
            "thresholds": self.thresholds.to_dict(),
            "results": [item.to_dict() for item in self.results],
        }
