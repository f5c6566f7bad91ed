"""A certificate as a value: a measurement of a judge, bound by digests to the judge, the contents and the labels.

Reading a file refuses it unless writing what was read gives the same bytes again and the digest in it is right. So a
changed bit is found without any key; a signature over the digest shows who made the certificate (``signing.py``).

A certificate is made from a measurement in ``measurement/certification.py`` (``certify``). Whether it is enough for a
result is decided in ``qualification.py`` (``qualify``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, ClassVar, Literal, Self

from adjudge.dataset.contents import ContentSet
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_digest
from adjudge.formats.json import read_json
from adjudge.formats.record import Layout, read_record, write_record
from adjudge.formats.text import flatten
from adjudge.guards.measured_scope import describe_scope
from adjudge.judges.description import JudgeIdentity
from adjudge.ledger.payload import encode_payload
from adjudge.result import make_id

LARGEST = 1_000_000
"""The largest file of a certificate that is read, in bytes."""

_SIGNATURE_MEMBERS = ("public_key", "signature")
"""The members that the digest does not cover, because they sign it."""

LimitLooks = Literal["count", "one look", "every look"]
"""The looks at the labels that the limits hold for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedSeat:
    """The model that answered for a seat of the judge, by the name that its provider reported."""

    seat: tuple[str, ...]
    """The names of the seats from the outermost chain inwards; empty for a judge that is no chain."""
    model: str | None
    """``None`` for a judge in code, and where replies reported no name."""

    def to_dict(self) -> dict[str, Any]:
        """Return this value as plain data."""
        return write_record(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedJudge:
    """The judge that was measured: digests of what it is and of what it was asked, in hexadecimal."""

    name: str
    """The judge's name."""
    judge: str
    """Digest of the judge: model, reader, sampling, and the same of each seat."""
    rubric: str
    """Digest of the rubric with its scale and thresholds."""
    rubric_name: str
    """The rubric's name."""
    prompt: str
    """Digest of the words by which the judge was asked about every content."""
    rules: tuple[str, ...]
    """Digests of the rules that went before the judge."""
    seats: tuple[CertifiedSeat, ...]
    """The seats that decided, each with its model."""

    def to_dict(self) -> dict[str, Any]:
        """Return this value as plain data."""
        return write_record(self)

    def find_difference(self, other: JudgeIdentity) -> str | None:
        """Name what another judge has that this one had not; ``None`` where it is the same.

        Args:
            other: The identity of the judge that answers now.
        """
        pairs = {"judge": other.judge, "rubric": other.rubric, "prompt": other.prompt}
        changed = [name for name, digest in pairs.items() if getattr(self, name) != digest]
        # Further rules are allowed. A rule that is missing now would let contents reach the judge that did not reach it
        # when it was measured.
        missing = [] if set(self.rules) <= set(other.rules) else ["rules"]
        return " and ".join(f"the {name}" for name in [*changed, *missing]) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedShare:
    """A share in 0 to 1, and the limits within which the true one lies at the stated level."""

    value: float
    """The share, in 0 to 1."""
    low: float | None
    """``None`` where no interval can be given."""
    high: float | None
    """The upper limit; ``None`` as for ``low``."""
    of: int
    """The number of labelled cases that it was computed from."""
    level: float
    """The confidence of the limits, such as 0.95."""

    def to_dict(self) -> dict[str, Any]:
        """Return this value as plain data."""
        return write_record(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedLabels:
    """The labels that the judge was compared with: how they were drawn, and who gave them."""

    _layout: ClassVar[Layout] = Layout(
        members=(
            "digest",
            "labelled",
            "settled",
            "people",
            "not_blind",
            "copies",
            "sampling",
            "plan",
            "plan_digest",
            "looks",
            "because",
            "kappa",
            "since",
            "until",
        ),
    )

    digest: str
    """SHA-256 over the labels: case, content, rater, value, blindness and time of each."""
    labelled: int
    """Labelled cases that were drawn at random."""
    settled: int
    """Those of them whose truth people settled; the shares are of these."""
    people: tuple[str, ...]
    """The raters, by the names they labelled under."""
    not_blind: int
    """Labelled cases of which a label is not known to be blind."""
    copies: int
    """Labelled cases that repeat the content of another one."""
    sampling: Literal["census", "plan", "random"]
    """All cases, a recorded draw, or drawn at random as the person who certified says."""
    plan: str | None
    """The id of the plan; ``None`` without one."""
    plan_digest: str | None
    """SHA-256 of the file of the plan; ``None`` without one."""
    looks: LimitLooks
    """The looks that the limits of the shares hold for."""
    because: str
    """The reason for these limits and no others."""
    kappa: CertifiedShare | None
    """Cohen's kappa of people with each other; ``None`` where no two labelled enough of the same cases."""
    since: datetime | None
    """The time of the first label; ``None`` where a label has no time."""
    until: datetime | None
    """The time of the last label; ``None`` as for ``since``."""

    def to_dict(self) -> dict[str, Any]:
        """Return this value as plain data."""
        return write_record(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedFlips:
    """Cases that were judged repeatedly, and how many of them got different verdicts."""

    flipped: int
    """Cases that got different verdicts."""
    of: int
    """Cases that were judged more than once."""

    def to_dict(self) -> dict[str, Any]:
        """Return this value as plain data."""
        return write_record(self)


def _make_statement(certificate: Certificate) -> str:
    """Make the first sentence of a certificate: which contents, judge and dates it is about."""
    return describe_scope(
        "certificate",
        cases=certificate.contents.cases,
        contents=certificate.contents.digest,
        judge=certificate.judge.name,
        since=certificate.judged_since,
        until=certificate.judged_until,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A measurement of a judge, bound to exactly that judge, its contents, labels and dates.

    It is about the contents and dates it was measured on, and says so in its first sentence.
    """

    schema: ClassVar[str] = "adjudge/certificate/1"
    _layout: ClassVar[Layout] = Layout(
        members=(
            "statement",
            "id",
            "created_at",
            "run",
            "judge",
            "contents",
            "judged_since",
            "judged_until",
            "labels",
            "counts",
            "sensitivity",
            "specificity",
            "pass_rate",
            "flips",
            "release_policy",
            "public_key",
            "signature",
        ),
        computed={"statement": _make_statement},
        required=("id", "created_at"),
        strict=True,
    )

    run: str
    """The id of the run that was measured."""
    judge: CertifiedJudge
    """The judge that was measured."""
    contents: ContentSet
    """The contents that were judged."""
    judged_since: datetime
    """The time of the run's first result; the age of a certificate counts from here."""
    judged_until: datetime
    """The time of the run's last result."""
    labels: CertifiedLabels
    """The labels that the judge was compared with."""
    counts: Mapping[str, Mapping[str, int]]
    """Settled cases by truth (``good``, ``bad``) and verdict (``passed``, ``failed``, ``undecided``)."""
    sensitivity: CertifiedShare | None
    """Good contents that the judge passes; ``None`` where no good one was labelled."""
    specificity: CertifiedShare | None
    """Bad contents that the judge fails; ``None`` where no bad one was labelled."""
    pass_rate: CertifiedShare
    """The share of contents like these that people would pass."""
    flips: CertifiedFlips | None
    """``None`` where nothing was judged repeatedly."""
    release_policy: str | None = None
    """SHA-256 of the file of the release policy that was calibrated for this judge; ``None`` without one."""
    public_key: str | None = None
    """The public key of the signature, in hexadecimal; ``None`` if it is not signed."""
    signature: str | None = None
    """The signature of the file's digest, in hexadecimal; ``None`` if it is not signed."""
    id: str = field(default_factory=make_id)
    """The certificate's own id."""
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    """The time at which it was made, in UTC."""

    def __post_init__(self) -> None:
        for name in ("judged_since", "judged_until", "created_at"):
            if getattr(self, name).utcoffset() is None:
                raise UsageError(f"{name} must be a time with its zone", argument=name, where="a certificate")
        for name in ("judge", "rubric", "prompt"):
            check_digest(name, getattr(self.judge, name), where="a certificate")
        if (self.public_key is None) != (self.signature is None):
            raise UsageError("a certificate has a public key and a signature, or neither")

    @property
    def digest(self) -> str:
        """SHA-256 of everything the certificate says, as canonical JSON (RFC 8785), in hexadecimal."""
        members = {name: value for name, value in write_record(self).items() if name not in _SIGNATURE_MEMBERS}
        return sha256(encode_payload(members)).hexdigest()

    @property
    def statement(self) -> str:
        """The first sentence: which contents, judge and dates it is about."""
        return _make_statement(self)

    def to_dict(self) -> dict[str, Any]:
        """Return this certificate as plain data that JSON can hold; ``from_dict`` reads it back."""
        members = write_record(self)
        signature = {name: members.pop(name) for name in _SIGNATURE_MEMBERS}
        return {**members, "digest": self.digest, **signature}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back ``data`` that ``to_dict`` wrote; raises ``UsageError`` when it is something else.

        Args:
            data: What ``to_dict`` wrote.
        """
        is_mapping = isinstance(data, Mapping)  # read_record refuses anything else
        members = {name: value for name, value in data.items() if name != "digest"} if is_mapping else data
        certificate = read_record(cls, members)
        if data.get("digest") != certificate.digest:
            raise UsageError("the certificate was changed after it was made: its digest is not that of what it says")
        return certificate


def write_certificate(certificate: Certificate) -> bytes:
    """Write a certificate as the bytes of its file.

    Args:
        certificate: The certificate.
    """
    return json.dumps(certificate.to_dict(), indent=2).encode() + b"\n"


def parse_certificate(raw: bytes) -> Certificate:
    """Read the bytes of a certificate's file, every bit of which is as it was written; raises ``UsageError``.

    Args:
        raw: All bytes of the file.
    """
    try:
        certificate = Certificate.from_dict(read_json(raw.decode("ascii")))
    except UsageError:
        raise
    except ValueError as error:
        problem = flatten(str(error), 200)
        raise UsageError(f"it is no certificate: {problem}; make another with adjudge certify") from None
    if write_certificate(certificate) != raw:
        raise UsageError("the certificate was changed after it was made: it is not written as adjudge writes it")
    return certificate
