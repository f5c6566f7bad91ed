"""A release policy: the score from which a judge may decide alone, and the promise that was tested on people's labels.

A policy makes a judge stricter and never laxer: what the rubric does not pass is not released at any score.

Which score is safe is decided in ``measurement/calibration.py``, and whether a seat of a chain decides alone in
``judges/chain_outcome.py``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.arguments import check_digest, check_share, check_whole_number
from adjudge.formats.files import read_text
from adjudge.formats.json import read_json
from adjudge.formats.private_file import write_private
from adjudge.formats.record import Layout, read_record, write_record
from adjudge.guards.measured_scope import describe_scope
from adjudge.judges.chain_outcome import SeatRelease, is_released
from adjudge.judges.description import describe_judge, digest_judge
from adjudge.ledger.payload import encode_payload
from adjudge.result import JudgeResult

ReleaseRisk = Literal["wrong_pass", "wrong_given_pass"]
"""The cases that are promised to be rare: those that are released and wrong, as a share of all cases or of the released
ones."""

LabelSample = Literal["census", "random order", "plan", "said random"]
"""The sample of labels: every case, the random order of ``adjudge label``, a plan without strata, or a sample that the
user says is random."""

_DIGESTS = ("grid_digest", "judge_digest", "asked_digest", "contents_digest", "labels_digest")

_COUNTS = ("cases", "released", "labels", "labels_released", "wrong")

_ROUNDING = 1e-9
"""Rounding errors of shares that are tolerated when figures are compared."""

_TIMES = ("measured_from", "measured_to", "labelled_from", "labelled_to", "at")


def _convert_to_utc(name: str, policy: ReleasePolicy) -> datetime | None:
    """Return the policy's time of this name in UTC, for ``to_dict``."""
    time = getattr(policy, name)
    return None if time is None else time.astimezone(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasePolicy:
    """A score from which a judge may decide alone, with the promise it keeps and what that was measured on.

    It speaks of the contents and the dates it was measured on. ``calibrate`` makes one, ``read_release_policy`` reads
    one. Raises ``UsageError`` for figures that contradict each other.
    """

    schema: ClassVar[str] = "adjudge/release-policy/1"
    _layout: ClassVar[Layout] = Layout(
        first=("statement",),
        strict=True,
        computed={name: partial(_convert_to_utc, name) for name in _TIMES},
    )

    risk: ReleaseRisk
    """The risk that is bounded: ``wrong_pass`` or ``wrong_given_pass``."""
    bound: float
    """The promise: the risk is at most this share."""
    confidence: float
    """The share of calibrations, over all looks at the run, in which the promise is kept."""
    level: float
    """The confidence of the tests of this look; above ``confidence`` if the run was calibrated before."""
    threshold: float
    """The least score, in 0 to 1, of a passed result that is released (``find_release_score``)."""
    cases: int
    """Cases of the run."""
    released: int
    """Those of them that the threshold releases."""
    labels: int
    """Labelled cases that count."""
    labels_released: int
    """Those of them that the threshold releases."""
    wrong: int
    """Those of ``labels_released`` that people did not find good."""
    p_value: float
    """The exact binomial p-value of the threshold: at most 1 - ``level``."""
    grid_digest: str
    """SHA-256 of the thresholds that were tested, which were fixed before any label was read."""
    judge: str
    """The judge's name."""
    judge_digest: str
    """SHA-256 of the judge, as its run recorded it."""
    rubric_digest: str | None
    """SHA-256 of the rubric; ``None`` if each case has its own."""
    asked_digest: str
    """SHA-256 of the question and its wording."""
    contents_digest: str
    """SHA-256 of all contents that were judged, as ``ContentSet`` has it."""
    labels_digest: str
    """SHA-256 of the labelled cases and what people found of each."""
    sample: LabelSample
    """The way in which the labelled cases were drawn."""
    run: str
    """The run's id."""
    measured_from: datetime
    """The time at which the first case was judged."""
    measured_to: datetime
    """The time at which the last case was judged."""
    labelled_from: datetime | None
    """The time at which the first label was given; ``None`` if a label has no time."""
    labelled_to: datetime | None
    """The time at which the last label was given; ``None`` as for ``labelled_from``."""
    at: datetime
    """The time at which the policy was made."""

    def __post_init__(self) -> None:
        for name in ("bound", "confidence", "level", "threshold", "p_value"):
            check_share(name, getattr(self, name), where="release policy")
        for name in _COUNTS:
            check_whole_number(name, getattr(self, name), least=0, where="release policy")
        for name in _DIGESTS:
            check_digest(name, getattr(self, name), where="release policy")
        if self.rubric_digest is not None:
            check_digest("rubric_digest", self.rubric_digest, where="release policy")
        problem = self._find_problem()
        if problem is not None:
            raise UsageError(f"the figures of this release policy contradict each other: {problem}; calibrate again")

    def _find_problem(self) -> str | None:
        """Find a contradiction among the figures; ``None`` if there is none. The labels themselves are not read."""
        if not self.wrong <= self.labels_released <= min(self.labels, self.released):
            return "more labels are wrong than released, or more released than there are"
        if not max(self.labels, self.released) <= self.cases:
            return "more cases are labelled or released than the run has"
        if not 0 < self.bound < 1 or not 0.5 <= self.confidence < 1 or self.level < self.confidence - _ROUNDING:
            return "the promise is none"
        if self.p_value > 1 - self.level + _ROUNDING:
            return "the p-value does not reach the level"
        if self.measured_from > self.measured_to:
            return "the last case was judged before the first"
        return None

    @property
    def statement(self) -> str:
        """The first sentence: which contents, judge and dates it is about."""
        return describe_scope(
            "release policy",
            cases=self.cases,
            contents=self.contents_digest,
            judge=self.judge,
            since=self.measured_from,
            until=self.measured_to,
        )

    @property
    def promise(self) -> str:
        """The promise as ``--promise`` takes it, such as ``wrong_pass<=0.05``."""
        return f"{self.risk}<={self.bound:g}"

    @property
    def digest(self) -> str:
        """SHA-256 of what the policy says, as canonical JSON (RFC 8785): a certificate names it by this.

        The first sentence is left out, because it is made of the rest.
        """
        members = {name: value for name, value in self.to_dict().items() if name != "statement"}
        return sha256(encode_payload(members)).hexdigest()

    def releases(self, result: JudgeResult) -> bool:
        """Return whether the judge may decide this case alone; otherwise a person decides it.

        True for a result that passed with at least the policy's score. What decided may be a judge or a rule, but not
        the policy of a chain that fails open. Whether the result is of the judge, the rubric and the contents that were
        measured is for the caller to find out.

        Args:
            result: The judge's result.
        """
        return is_released(result, self.threshold)

    def limit_seat(self, judge: Any, /) -> SeatRelease:
        """Return the score from which this judge may decide alone, for ``escalate_below`` of a cascade.

        Raises ``UsageError`` for another judge than the one that was calibrated.

        Args:
            judge: The judge that is to decide.
        """
        if digest_judge(describe_judge(judge)) != self.judge_digest:
            raise UsageError(
                f"the release policy was calibrated for the judge {self.judge!r}, and this seat is another one or has "
                "other options; make it as in the run that was calibrated, or calibrate this one",
                argument="escalate_below",
            )
        return SeatRelease(threshold=self.threshold, policy=self.digest, rubric=self.rubric_digest)

    def to_dict(self) -> dict[str, Any]:
        """Return this value as plain data, as the file holds it."""
        return write_record(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read ``data`` that ``to_dict`` wrote; raises ``UsageError`` for anything else, also for an unknown member.

        A first sentence that is not that of the figures is refused. Without one they are read all the same.

        Args:
            data: What ``to_dict`` wrote.
        """
        policy = read_record(cls, data)
        if data.get("statement", policy.statement) != policy.statement:
            raise UsageError("its first sentence (statement) does not say what its figures do: somebody changed it")
        return policy


def write_release_policy(policy: ReleasePolicy, path: str | os.PathLike[str]) -> Path:
    """Write a policy as a JSON file in one step, readable by its owner alone. Raises ``AdjudgeError``.

    Args:
        policy: The policy.
        path: The file; one that is there is replaced.
    """
    file = Path(path)
    try:
        write_private(file, json.dumps(policy.to_dict(), indent=2).encode() + b"\n")
    except OSError as error:
        raise AdjudgeError(f"the release policy {file} cannot be written: {error.strerror}") from None
    return file


def read_release_policy(path: str | os.PathLike[str]) -> ReleasePolicy:
    """Read a policy from its file. Raises ``UsageError`` for a file that is none, and for one whose figures are off.

    Args:
        path: The file to read.
    """
    file = Path(path)
    text = read_text(file, noun="a release policy")
    try:
        return ReleasePolicy.from_dict(read_json(text))
    except (ValueError, UsageError) as error:
        raise UsageError(f"{file} is no release policy: {error}; write one with adjudge calibrate") from None
