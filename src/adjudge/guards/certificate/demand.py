"""A gate's demand for a certificate: its file, the key that signs it, and the minimums that it has to reach.

The file is read for every result, because it may be deleted or replaced while the gate is in use. If something is wrong
with it, people are asked; no exception is raised.

Whether a certificate is enough for a result is decided in ``qualification.py`` (``qualify``).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from adjudge.errors import UsageError
from adjudge.formats.numbers import format_score
from adjudge.formats.text import flatten
from adjudge.guards.certificate.certificate import Certificate, parse_certificate
from adjudge.guards.certificate.certificate_file import read_bytes
from adjudge.guards.certificate.qualification import Bars, Qualification, qualify
from adjudge.guards.certificate.signing import find_signature_problem
from adjudge.guards.monitor import Monitor, MonitorVerdict
from adjudge.guards.release_policy import ReleasePolicy, read_release_policy
from adjudge.hooks import call_safely
from adjudge.judges.chain import JudgeChain
from adjudge.judges.chain_outcome import find_release_score
from adjudge.judges.description import JudgeIdentity, identify_judge
from adjudge.judges.judge import Judge
from adjudge.result import JudgeResult
from adjudge.rubric.rubric import Rubric
from adjudge.rules.rule import Rule

if TYPE_CHECKING:
    from adjudge.ledger.signature import PublicKey

CertificateSource = Certificate | str | os.PathLike[str]
"""A certificate, or the path of its file."""

ReleasePolicySource = ReleasePolicy | str | os.PathLike[str]
"""A release policy, or the path of its file."""


_DISQUALIFYING: tuple[MonitorVerdict, ...] = ("alarm", "unanswered")
"""Verdicts of the monitor with which the certificate does not count. ``unanswered`` is one of them, because people who
do not answer raise no alarm. ``model changed`` is not, because the certificate itself names the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _LoadedCertificate:
    """A certificate that was read and whose signer was checked, or the problem with it."""

    raw: bytes | None = None
    """The bytes of the file; ``None`` for a ``Certificate`` that the program passed, and for an unreadable file."""
    certificate: Certificate | None = None
    """``None`` if there is a problem."""
    problem: str = ""
    """The problem in one clause; empty if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateTerms:
    """The certificate that a gate demands, and the terms that it has to meet."""

    source: CertificateSource
    key: PublicKey | None
    """The public key that has to sign it; ``None`` for no key."""
    allow_unsigned: bool
    bars: Bars
    release_policy: ReleasePolicySource | None = None


class CertificateDemand:
    """A gate's demand for a certificate of its judge; it keeps what it read of the file."""

    def __init__(
        self,
        terms: CertificateTerms,
        *,
        judge: Judge | JudgeChain,
        rubric: Rubric | None,
        rules: Iterable[Rule],
        read_monitor: Callable[[], Awaitable[Monitor]],
    ) -> None:
        self.terms = terms
        self._judge, self._rubric, self._rules = judge, rubric, tuple(rules)
        self._read_monitor = read_monitor
        self._identity: JudgeIdentity | None = None
        self._loaded: _LoadedCertificate | None = None

    async def qualify(self, result: JudgeResult) -> Qualification:
        """Find whether the certificate covers a result, with certificate, release policy and audits as they are now."""
        loaded = await self._load_certificate()
        certificate = loaded.certificate
        if certificate is None:
            return Qualification(kind="unqualified", reason=loaded.problem)
        if self._identity is None:
            self._identity = await identify_judge(self._judge, self._rubric, self._rules)
        qualification = qualify(
            certificate, result, identity=self._identity, bars=self.terms.bars, now=datetime.now(UTC)
        )
        if qualification.kind != "qualified":
            return qualification
        alarm = await self._find_alarm()
        if alarm is not None:
            return Qualification(kind="stale", reason=alarm)
        return await self._apply_policy(qualification, certificate, result)

    async def _find_alarm(self) -> str | None:
        """Explain why the certificate does not count by the gate's audits; return ``None`` if it does."""
        monitor, error = await call_safely(self._read_monitor)
        if error is not None or not isinstance(monitor, Monitor):
            return f"the audits cannot be read: {type(error).__name__}"
        return monitor.explain() if monitor.verdict in _DISQUALIFYING else None

    async def _apply_policy(
        self, qualification: Qualification, certificate: Certificate, result: JudgeResult
    ) -> Qualification:
        """Apply the release policy, if there is one, to a qualified result.

        A pass that the policy does not release gets a reason in ``unreleased``, so that a person decides it. If the
        policy cannot be read, or the certificate does not name it, the result is unqualified.
        """
        source = self.terms.release_policy
        if source is None:
            return qualification
        try:
            policy = (
                source if isinstance(source, ReleasePolicy) else await asyncio.to_thread(read_release_policy, source)
            )
        except UsageError as error:
            return Qualification(kind="unqualified", reason=f"the release policy does not count: {error}")
        if policy.digest != certificate.release_policy:
            return Qualification(kind="unqualified", reason="the certificate does not name this release policy")
        if not result.passed or policy.releases(result):
            return qualification
        score = find_release_score(result)
        described_score = "no score" if score is None else f"a score of {format_score(score)}"
        unreleased = f"it has {described_score}, and the judge decides alone from {format_score(policy.threshold)} on"
        return replace(qualification, unreleased=unreleased)

    async def _load_certificate(self) -> _LoadedCertificate:
        """Read the certificate from its file, and check its signer; unchanged bytes are not parsed again."""
        source = self.terms.source
        if isinstance(source, Certificate):
            if self._loaded is None:
                self._loaded = self._check_signer(None, source)
            return self._loaded
        try:
            raw = await asyncio.to_thread(read_bytes, Path(source))
        except OSError as error:
            return _LoadedCertificate(problem=self._prefix_problem(f"cannot be read: {error.strerror}"))
        except UsageError as error:
            return _LoadedCertificate(problem=self._prefix_problem(str(error)))
        if self._loaded is None or self._loaded.raw != raw:
            self._loaded = self._parse_bytes(raw)
        return self._loaded

    def _parse_bytes(self, raw: bytes) -> _LoadedCertificate:
        """Parse the bytes of the file, and check who signed the certificate."""
        try:
            return self._check_signer(raw, parse_certificate(raw))
        except UsageError as error:
            return _LoadedCertificate(raw=raw, problem=self._prefix_problem(f"does not count: {error}"))

    def _check_signer(self, raw: bytes | None, certificate: Certificate) -> _LoadedCertificate:
        """Check that the demanded key signed a certificate, or that an unsigned one is allowed."""
        if certificate.signature is None and self.terms.allow_unsigned:
            return _LoadedCertificate(raw=raw, certificate=certificate)
        problem = find_signature_problem(certificate, self.terms.key)
        if problem is None:
            return _LoadedCertificate(raw=raw, certificate=certificate)
        return _LoadedCertificate(raw=raw, problem=self._prefix_problem(f"does not count: {problem}"))

    def _prefix_problem(self, problem: str) -> str:
        """Make a clause of a problem, with the name of the certificate's file if there is one."""
        source = self.terms.source
        file_name = "" if isinstance(source, Certificate) else f" {flatten(Path(source).name, 120)}"
        return f"the certificate{file_name} {problem}"
