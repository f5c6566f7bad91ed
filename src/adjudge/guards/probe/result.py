"""The result of a probe, and the report about many.

When a probe has drifted is decided in ``evaluate.py`` (``_decide``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from typing import Any, ClassVar

from adjudge.errors import Reason, UsageError
from adjudge.formats.numbers import format_score
from adjudge.formats.record import Layout, write_record
from adjudge.formats.text import clean
from adjudge.formats.times import get_now
from adjudge.guards.probe.probe import DEFAULT_THRESHOLDS, Drift, ProbeThresholds, SemanticProbe
from adjudge.result import DecidedBy, JudgeChainResult, Outcome

STEADY: tuple[Drift, ...] = ("none", "low")
"""The levels of drift that pass."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ProbeResult:
    """The result of one probe. It is true only if the probe passed: drift none or low, and the contract kept.

    If the tool raised, ended with an error or took too long, the probe has ``failed``, decided by ``rule``, because the
    tool gave an output when the baseline was recorded. There is then no output to compare, so similarity and drift are
    ``None``.
    """

    schema: ClassVar[str] = "adjudge/probe-result/1"
    _layout: ClassVar[Layout] = Layout(
        members=(
            "probe",
            "outcome",
            "passed",
            "undecided_because",
            "detail",
            "decided_by",
            "similarity",
            "drift",
            "contract_violated",
            "violations",
            "reasoning",
            "subject",
            "duration_ms",
            "chain_result",
            "at",
        ),
        computed={"probe": attrgetter("name")},
    )

    probe: SemanticProbe
    """The probe."""
    outcome: Outcome
    """``passed``, ``failed`` or ``undecided``."""
    undecided_because: Reason | None = None
    """Set exactly when the outcome is undecided."""
    detail: str = ""
    """One sentence on what else decided, besides the similarity, or what could not be read."""
    decided_by: DecidedBy = "judge"
    """The one who decided: ``judge``, ``rule`` or ``policy``."""
    similarity: float | None = None
    """In 0 to 1, from the judge that decided; ``None`` when nobody measured it."""
    drift: Drift | None = None
    """``none``, ``low``, ``medium`` or ``high``."""
    contract_violated: bool = False
    """True if any judge that answered says so, even if others disagree."""
    violations: tuple[str, ...] = ()
    """The violations that those judges name, each once."""
    reasoning: str = ""
    """The judge's reasoning."""
    actual: Any = None
    """The tool's output, as it was given; ``None`` also where there is none."""
    subject: str | None = None
    """SHA-256 of the output as the judge was shown it."""
    duration_ms: float = 0.0
    """The tool's time included, where it was called here."""
    chain_result: JudgeChainResult | None = None
    """Every seat's answer; ``None`` when nobody was asked."""
    at: datetime = field(default_factory=get_now)
    """The time at which it was evaluated, in UTC."""

    def __post_init__(self) -> None:
        if (self.outcome == "undecided") != (self.undecided_because is not None):
            raise UsageError("a probe's result has undecided_because exactly when the outcome is 'undecided'")
        # Checked here, so that no mistake elsewhere can make a pass of a violated contract or of too much drift.
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
        """Describe the outcome in one line, with similarity, drift, and what is violated."""
        outcome = f"{self.outcome}: {self.undecided_because}" if self.undecided_because else str(self.outcome)
        outcome += f" with {format_score(self.similarity)} (drift {self.drift})" if self.similarity is not None else ""
        outcome += "" if self.decided_by == "judge" else f", decided by {self.decided_by}"
        details = [self.detail] if self.detail else []
        return clean("; ".join([outcome, *details, *self.violations]), keep_lines=False)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {clean(self.name, keep_lines=False)!r} {self.explain()}>"

    def to_dict(self) -> dict[str, Any]:
        """Write the result as plain data, without input, baseline and output; ``subject`` is the output's digest."""
        return write_record(self)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ProbeReport:
    """The report about several probes.

    ``mean`` and ``drift`` are about all probes together, so one bad tool among many may not show in them. ``outcome``
    is ``passed`` only if every probe passed.
    """

    schema: ClassVar[str] = "adjudge/probe-report/1"
    _layout: ClassVar[Layout] = Layout(
        members=("outcome", "passed", "stable", "mean", "drift", "violation_count", "thresholds", "results")
    )

    results: tuple[ProbeResult, ...]
    """In the order of the probes."""
    thresholds: ProbeThresholds = DEFAULT_THRESHOLDS
    """The thresholds by which the drift of all probes together is decided."""

    @property
    def mean(self) -> float | None:
        """The mean similarity of the probes that were measured; ``None`` when none was."""
        measured = [result.similarity for result in self.results if result.similarity is not None]
        return min(math.fsum(measured) / len(measured), 1.0) if measured else None

    @property
    def drift(self) -> Drift | None:
        """The level of the mean, by the same thresholds as each probe's; ``None`` is unknown."""
        return None if self.mean is None else self.thresholds.find_drift(self.mean)

    @property
    def violation_count(self) -> int:
        """The number of probes whose contract is violated."""
        return sum(result.contract_violated for result in self.results)

    @property
    def stable(self) -> bool:
        """True if the mean drifted little, every probe was measured, and no contract is violated.

        An undecided probe makes a report unstable, and so does one that a policy let pass: otherwise silencing the
        judge would make a tool look stable. A report without probes is not stable either, because there is no evidence.
        """
        all_measured = all(result.similarity is not None and result.outcome != "undecided" for result in self.results)
        return self.drift in STEADY and all_measured and self.violation_count == 0

    @property
    def outcome(self) -> Outcome:
        """``failed`` when a probe or the mean failed; else ``undecided`` without probes or when one is undecided."""
        outcomes = {result.outcome for result in self.results}
        if "failed" in outcomes or self.drift in ("medium", "high"):
            return "failed"
        return "undecided" if "undecided" in outcomes or not outcomes else "passed"

    @property
    def passed(self) -> bool:
        """True only when the outcome is ``passed``."""
        return self.outcome == "passed"

    def __bool__(self) -> bool:
        return self.passed

    def explain(self) -> str:
        """Describe the whole in one line."""
        counts = {
            name: sum(result.outcome == name for result in self.results) for name in ("passed", "failed", "undecided")
        }
        outcomes = ", ".join(f"{count} {name}" for name, count in counts.items())
        if self.mean is None:
            mean = "nothing was measured"
        else:
            mean = f"mean similarity {format_score(self.mean)} (drift {self.drift})"
        broken = f", {self.violation_count} with a violated contract" if self.violation_count else ""
        total = len(self.results)
        stability = "stable" if self.stable else "not stable"
        return f"{stability}: {total} probe{'s' * (total != 1)}, {outcomes}; {mean}{broken}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.explain()}>"

    def to_dict(self) -> dict[str, Any]:
        """Write the report as plain data."""
        return write_record(self)
