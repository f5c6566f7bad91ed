"""The qualification of a result: whether a certificate shows that its judge was measured well enough. Pure.

A result is ``qualified`` if a certificate's measurement covers it, ``stale`` if it covered the judge once (too old now,
another model answers, audits found more errors than promised), and ``unqualified`` if it never did.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from adjudge.formats.durations import format_duration
from adjudge.formats.numbers import count_digits, format_points
from adjudge.formats.text import show
from adjudge.guards.certificate.certificate import Certificate, CertifiedSeat, CertifiedShare
from adjudge.judges.description import JudgeIdentity
from adjudge.result import JudgeChainResult, JudgeResult

QualificationKind = Literal["qualified", "stale", "unqualified"]

TOLERANCE = 1e-9
"""Rounding errors that are tolerated when a limit is compared with a minimum, so that equal shares compare as equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Qualification:
    """The qualification of one result."""

    kind: QualificationKind
    reason: str
    """One clause: which certificate covers the result, or why none does."""
    unreleased: str = ""
    """The reason why the release policy does not let the judge decide this alone; empty if it does."""

    @property
    def withheld(self) -> str | None:
        """The reason why people have to decide a content that the judge passed; ``None`` if the judge may decide it."""
        if self.kind != "qualified":
            return f"{self.kind}: {self.reason}"
        return self.unreleased or None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """The maximal age and the minimal shares that a gate demands of a certificate; ``None`` demands nothing."""

    max_age: timedelta | None = None
    """The most time since the first content was judged."""
    min_sensitivity: float | None = None
    """The minimum for the lower limit of the share of good contents that the judge passes."""
    min_specificity: float | None = None
    """The minimum for the lower limit of the share of bad contents that the judge fails."""


def qualify(
    certificate: Certificate, result: JudgeResult, *, identity: JudgeIdentity, bars: Bars, now: datetime
) -> Qualification:
    """Find whether a certificate covers a judge's result; its signature was checked before.

    ``identity`` is that of the judge that answers now, and ``bars`` is what the gate demands of the certificate.
    """
    difference = certificate.judge.find_difference(identity)
    if difference is not None:
        verb = "differ" if " and " in difference else "differs"
        reason = f"the certificate is of another judge: {difference} {verb}"
        return Qualification(kind="unqualified", reason=reason)
    missed_bar = _explain_missed_bar(certificate, bars)
    if missed_bar is not None:
        return Qualification(kind="unqualified", reason=missed_bar)
    stale_reason = _explain_age(certificate, bars, now) or _explain_other_model(certificate, result)
    if stale_reason is not None:
        return Qualification(kind="stale", reason=stale_reason)
    return Qualification(kind="qualified", reason=f"certificate {certificate.digest[:16]}")


def _explain_missed_bar(certificate: Certificate, bars: Bars) -> str | None:
    """Explain the first demanded minimum that a lower limit of the certificate misses; return ``None`` if none does.

    Lower limits are compared, because the judge may be as bad as that.
    """
    for name, share, minimum in (
        ("sensitivity", certificate.sensitivity, bars.min_sensitivity),
        ("specificity", certificate.specificity, bars.min_specificity),
    ):
        if minimum is not None and not _reaches_minimum(share, minimum):
            return f"the lower limit of {name} {_describe_low(share, minimum)}, and min_{name} is {100 * minimum:g} %"
    return None


def _reaches_minimum(share: CertifiedShare | None, minimum: float) -> bool:
    """Return whether the lower limit of a share is known and is at least a minimum."""
    return share is not None and share.low is not None and share.low >= minimum - TOLERANCE


def _describe_low(share: CertifiedShare | None, minimum: float) -> str:
    """Describe the lower limit of a share in percent, with enough digits to tell it from a minimum."""
    if share is None or share.low is None:
        return "is not known"
    digits_of_share = count_digits(share.low, minimum, digits=3)
    # A percentage has two digits less behind the point than the share in 0 to 1.
    return f"is {format_points(share.low, digits=max(digits_of_share - 2, 1))} %"


def _explain_age(certificate: Certificate, bars: Bars, now: datetime) -> str | None:
    """Explain that a certificate's measurement is older than ``max_age``; return ``None`` if it is not."""
    age = now - certificate.judged_since
    if bars.max_age is None or age <= bars.max_age:
        return None
    since = certificate.judged_since.astimezone(UTC).date()
    return f"it was measured on {since}, {format_duration(age)} ago, and max_age is {format_duration(bars.max_age)}"


def _explain_other_model(certificate: Certificate, result: JudgeResult) -> str | None:
    """Explain which seat was answered by another model than was measured; return ``None`` if none was.

    Only the models' names are compared. A provider may change a model and keep its name.
    """
    measured_models = {seat.seat: seat.model for seat in certificate.judge.seats}
    for seat in list_seats(result):
        subject = f"seat {show(' > '.join(seat.seat))}" if seat.seat else "the judge"
        if seat.seat not in measured_models:
            return f"{subject} decided nothing when the judge was measured"
        measured_model = measured_models[seat.seat]
        if seat.model != measured_model:
            return f"{subject} was model {show(measured_model)} when it was measured, and is {show(seat.model)} now"
    return None


def list_seats(result: JudgeResult) -> Iterator[CertifiedSeat]:
    """Yield each seat of a result that decided, or whose reply names a model, with the name of that model."""
    return _find_seats(result, ())


def _find_seats(result: JudgeResult, path: tuple[str, ...]) -> Iterator[CertifiedSeat]:
    """Yield the seats of a result at any depth; ``path`` has the names of the seats around it, from the outermost."""
    if isinstance(result, JudgeChainResult):
        for seat in result.results:
            yield from _find_seats(seat, (*path, seat.judge))
    elif result.model is not None or (result.outcome != "undecided" and result.decided_by == "judge"):
        yield CertifiedSeat(seat=path, model=result.model)
