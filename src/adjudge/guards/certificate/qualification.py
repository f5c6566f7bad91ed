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
"""That of every share that is compared, so that a limit and a bar that are written alike end alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Qualification:
    """The qualification of one result."""

    kind: QualificationKind
    reason: str
    """One clause: which certificate it rests on, or why it is not qualified."""
    unreleased: str = ""
    """The reason why the release policy does not let the judge decide this alone; empty where it does."""

    @property
    def withheld(self) -> str | None:
        """The reason why people decide what the judge passes; ``None`` where the judge may decide it."""
        if self.kind != "qualified":
            return f"{self.kind}: {self.reason}"
        return self.unreleased or None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """The bars that a certificate has to reach; ``None`` demands nothing."""

    max_age: timedelta | None = None
    """The most time since the first content was judged."""
    min_sensitivity: float | None = None
    """The least lower limit of the share of good contents that the judge passes."""
    min_specificity: float | None = None
    """The least lower limit of the share of bad contents that the judge fails."""


def qualify(
    certificate: Certificate, result: JudgeResult, *, identity: JudgeIdentity, bars: Bars, now: datetime
) -> Qualification:
    """Compare a certificate, whose signature was checked, with a judge, its result and what is demanded."""
    difference = certificate.judge.find_difference(identity)
    if difference is not None:
        other = f"the certificate is of another judge: {difference} differ{'' if ' and ' in difference else 's'}"
        return Qualification(kind="unqualified", reason=other)
    missed = _find_missed_bar(certificate, bars)
    if missed is not None:
        return Qualification(kind="unqualified", reason=missed)
    aged = _find_age(certificate, bars, now) or _find_other_model(certificate, result)
    if aged is not None:
        return Qualification(kind="stale", reason=aged)
    return Qualification(kind="qualified", reason=f"certificate {certificate.digest[:16]}")


def _find_missed_bar(certificate: Certificate, bars: Bars) -> str | None:
    """Name the first bar that a lower limit does not reach: a judge that may be worse has not shown enough."""
    for name, share, least in (
        ("sensitivity", certificate.sensitivity, bars.min_sensitivity),
        ("specificity", certificate.specificity, bars.min_specificity),
    ):
        if least is not None and not _reaches(share, least):
            return f"the lower limit of {name} {_describe_low(share, least)}, and min_{name} is {100 * least:g} %"
    return None


def _reaches(share: CertifiedShare | None, least: float) -> bool:
    return share is not None and share.low is not None and share.low >= least - TOLERANCE


def _describe_low(share: CertifiedShare | None, least: float) -> str:
    if share is None or share.low is None:
        return "is not known"
    return f"is {format_points(share.low, digits=max(count_digits(share.low, least, digits=3) - 2, 1))} %"


def _find_age(certificate: Certificate, bars: Bars, now: datetime) -> str | None:
    age = now - certificate.judged_since
    if bars.max_age is None or age <= bars.max_age:
        return None
    since = certificate.judged_since.astimezone(UTC).date()
    return f"it was measured on {since}, {format_duration(age)} ago, and max_age is {format_duration(bars.max_age)}"


def _find_other_model(certificate: Certificate, result: JudgeResult) -> str | None:
    """Name a seat that another model answered for than was measured; the same name may hide another model."""
    measured = {seat.seat: seat.model for seat in certificate.judge.seats}
    for seat in list_seats(result):
        who = f"seat {show(' > '.join(seat.seat))}" if seat.seat else "the judge"
        if seat.seat not in measured:
            return f"{who} decided nothing when the judge was measured"
        if seat.model != measured[seat.seat]:
            return f"{who} was model {show(measured[seat.seat])} when it was measured, and is {show(seat.model)} now"
    return None


def list_seats(result: JudgeResult) -> Iterator[CertifiedSeat]:
    """Yield who answered, as the replies reported it: each seat that decided, or whose reply names a model."""
    return _list_seats(result, ())


def _list_seats(result: JudgeResult, path: tuple[str, ...]) -> Iterator[CertifiedSeat]:
    if isinstance(result, JudgeChainResult):
        for seat in result.results:
            yield from _list_seats(seat, (*path, seat.judge))
    elif result.model is not None or (result.outcome != "undecided" and result.decided_by == "judge"):
        yield CertifiedSeat(seat=path, model=result.model)
