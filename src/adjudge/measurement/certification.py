"""Certificates of what was measured: made from a run and its labels, signed and recorded, and compared with a run.

Whether a certificate is enough for a gate is decided in ``guards/certificate/qualification.py``.
"""

from __future__ import annotations

import json
import logging
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal

from adjudge.dataset.contents import ContentSet, digest_content
from adjudge.dataset.label import Label
from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.private_file import write_private
from adjudge.guards.certificate.certificate import (
    Certificate,
    CertifiedFlips,
    CertifiedJudge,
    CertifiedLabels,
    CertifiedSeat,
    CertifiedShare,
    write_certificate,
)
from adjudge.guards.certificate.qualification import list_seats
from adjudge.guards.certificate.signing import sign_certificate
from adjudge.guards.release_policy import ReleasePolicy, read_release_policy
from adjudge.judges.description import digest_rules
from adjudge.labels.planned_order import PLAN_FILE
from adjudge.measurement.decision import record_look
from adjudge.measurement.gate_limit import RateLimit, find_quantile
from adjudge.measurement.measure import measure_sample
from adjudge.measurement.measurement import Measurement
from adjudge.measurement.people import describe_uncounted
from adjudge.measurement.run_labels import read_run_labels
from adjudge.result import JudgeResult
from adjudge.runs.folder import Run, open_run
from adjudge.runs.item import RunItem
from adjudge.sync import make_sync
from adjudge.trust.agreement import Agreement
from adjudge.trust.corrected_rate import CorrectedRate, Refusal
from adjudge.trust.intervals import Estimate

if TYPE_CHECKING:
    from adjudge.ledger.ledger import Ledger

logger = logging.getLogger("adjudge.measurement")

_VERDICTS: Mapping[object, str] = {True: "passed", False: "failed", None: "undecided"}
"""The word for each category of a confusion matrix."""

_GATE_OPTIONS = {"wording", "rules", "task", "context", "reference"}
"""The parts of a question that both a run and a gate can ask. Instructions, another model and another form of the reply
are not among them: only a run can have these."""

_NOT_FROM_RUN = ("id", "created_at", "release_policy", "digest", "public_key", "signature")
"""Members of a certificate that do not follow from the run."""


def make_certificate(
    run: Run | str | os.PathLike[str],
    *,
    labels: Iterable[Label] | None = None,
    labels_are_random: bool = False,
    release_policy: ReleasePolicy | str | os.PathLike[str] | None = None,
) -> Certificate:
    """Make the certificate of a run from the labels that are a random sample of it; it is not signed.

    The limits of its shares hold for one look at exactly the labels of a plan, and otherwise for every look. The look
    is not recorded; ``certify`` does that.

    Needs ``adjudge[trust]``. Raises ``UsageError`` for labels that are not known to be random, for a plan that is not
    finished, and for a run that no gate can be compared with.

    Args:
        run: The run, or its folder.
        labels: The labels of people; by default those of the run's own queue.
        labels_are_random: Whether the labelled cases are a random sample of the run, which nothing but you can know.
        release_policy: A policy that was calibrated for the same judge, rubric and question, or its file: the
            certificate names it by its digest, so that its signature holds for the policy too. ``None`` is none.
    """
    return _measure_and_certify(run, labels, release_policy, labels_are_random=labels_are_random)[0]


async def certify(
    run: Run | str | os.PathLike[str],
    *,
    labels: Iterable[Label] | None = None,
    labels_are_random: bool = False,
    release_policy: ReleasePolicy | str | os.PathLike[str] | None = None,
    ledger: Ledger | None = None,
    out: str | os.PathLike[str] | None = None,
    by: str = "python",
) -> Certificate:
    """Make the certificate of a run, sign it with the key of a ledger, record it there, and write it to a file.

    Without a ledger, or with one that has no key, it is not signed, and no gate accepts it that does not say so
    (``allow_unsigned``). The look at the labels is recorded in the run's folder.

    Raises what ``make_certificate`` raises, and ``AdjudgeError`` for a look, an entry or a file that cannot be written.

    Args:
        run: The run, or its folder.
        labels: The labels of people; by default those of the run's own queue.
        labels_are_random: Whether the labelled cases are a random sample of the run, which nothing but you can know.
        release_policy: A calibrated policy that the certificate names, or its file.
        ledger: The ledger whose key signs, and where it is recorded; ``None`` for neither.
        out: The file to write; ``None`` for none.
        by: The name of who looked at the labels, for the record in the run's folder.
    """
    certificate, measurement, opened = _measure_and_certify(
        run, labels, release_policy, labels_are_random=labels_are_random
    )
    record_look(opened, measurement, by=by)
    if ledger is not None:
        certificate = sign_certificate(certificate, ledger)
        await ledger.append(certificate, kind="certificate", subject=certificate.digest)
    if out is not None:
        _write_file(certificate, Path(out))
    return certificate


certify_sync = make_sync(certify)


def find_run_problem(
    certificate: Certificate, run: Run | str | os.PathLike[str], *, labels: Iterable[Label] | None = None
) -> str | None:
    """Name what a certificate says that does not follow from a run and its labels; ``None`` where all of it does.

    Args:
        certificate: The certificate.
        run: The run, or its folder.
        labels: The labels of people; by default those of the run's own queue.
    """
    computed = make_certificate(run, labels=labels, labels_are_random=certificate.labels.sampling == "random")
    different = list(_list_different_members(certificate.to_dict(), computed.to_dict()))
    return f"the run comes to other values of {', '.join(different)}" if different else None


def _list_different_members(stated: Mapping[str, Any], computed: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the members of a certificate whose value is not the computed one.

    Members of its ``labels`` are named one by one, such as ``labels.digest``.
    """
    for name, value in stated.items():
        if name == "labels":
            yield from (f"{name}.{member}" for member in value if value[member] != computed[name][member])
        elif name not in _NOT_FROM_RUN and not _are_equal(value, computed[name]):
            yield name


def _are_equal(stated: object, computed: object) -> bool:
    """Return whether two members are equal; numbers up to the rounding in which versions of numpy and scipy differ."""
    if isinstance(stated, float) and isinstance(computed, float):
        return math.isclose(stated, computed, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(stated, Mapping) and isinstance(computed, Mapping):
        return stated.keys() == computed.keys() and all(_are_equal(stated[name], computed[name]) for name in stated)
    if isinstance(stated, list | tuple) and isinstance(computed, list | tuple):
        return len(stated) == len(computed) and all(map(_are_equal, stated, computed))
    return stated == computed


def _measure_and_certify(
    run: Run | str | os.PathLike[str],
    labels: Iterable[Label] | None,
    policy: ReleasePolicy | str | os.PathLike[str] | None,
    *,
    labels_are_random: bool,
) -> tuple[Certificate, Measurement, Run]:
    """Make the certificate of a run, and return it with the measurement that it is made of and the open run.

    Raises ``UsageError`` for a run, a policy or labels that cannot be certified.
    """
    if not isinstance(run, Run):
        with open_run(run) as opened:
            return _measure_and_certify(opened, labels, policy, labels_are_random=labels_are_random)
    _check_run(run)
    if policy is not None and not isinstance(policy, ReleasePolicy):
        policy = read_release_policy(policy)
    if policy is not None:
        _check_policy(run, policy)
    labels = read_run_labels(run) if labels is None else tuple(labels)
    measurement = measure_sample(run, labels, labels_are_random=labels_are_random)
    if measurement.other_contents:
        logger.warning("%s", describe_uncounted(measurement.other_contents))
    facts = _read_run_facts(run)
    labels_of_people = [label for label in labels if label.kind != "model"]
    certificate = _certify_measurement(run, measurement, facts, labels_of_people)
    return replace(certificate, release_policy=None if policy is None else policy.digest), measurement, run


# ---------------------------------------------------------------- what can be certified


def _check_run(run: Run) -> None:
    """Raise ``UsageError`` for a run whose judge no gate can be compared with."""
    manifest = run.manifest
    if run.status != "finished":
        raise UsageError(
            f"the run {run.folder} is {run.status}, so its contents are not all there; finish it with --resume"
        )
    if run.compares:
        raise UsageError(f"the run {run.folder} compares pairs, and no gate does; certify a run that passes or fails")
    if manifest["rubric"] is None or manifest.get("own"):
        raise UsageError(
            f"cases of the run {run.folder} bring their own criteria, so it is no measurement of one rubric; judge "
            "them by the gate's rubric"
        )
    no_gate_options = sorted(name for name in manifest["asked"] if name not in _GATE_OPTIONS)
    if no_gate_options:
        raise UsageError(
            f"the run {run.folder} was asked with {', '.join(no_gate_options)}, which a gate cannot ask; judge the "
            "cases as the gate would"
        )
    if _is_custom_judge(manifest["judge"]):
        raise UsageError(
            f"the judge of {run.folder} is of a class of your own, which is known by its name alone; give its model to "
            "a Judge"
        )


def _is_custom_judge(description: Mapping[str, Any]) -> bool:
    """Return whether a judge, or a seat of a chain, is of a class that the user wrote, by its description."""
    if description.get("kind") == "chain":
        return any(_is_custom_judge(seat) for seat in description["seats"])
    return description.get("kind") != "judge"


def _check_policy(run: Run, policy: ReleasePolicy) -> None:
    """Raise ``UsageError`` for a policy that was calibrated for another judge or question than the run's."""
    digests = {"judge": policy.judge_digest, "rubric": policy.rubric_digest, "asked": policy.asked_digest}
    different = [name for name, digest in digests.items() if run.manifest["digests"].get(name) != digest]
    if different:
        raise UsageError(
            f"the release policy was calibrated for another judge or question than that of {run.folder} "
            f"(another digest of {', '.join(different)}); calibrate this one",
            argument="release_policy",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _SampleFigures:
    """The figures of a measurement that a certificate needs, none of which is missing."""

    contents: ContentSet
    rate: CorrectedRate
    agreement: Agreement
    limit: RateLimit
    sampling: Literal["census", "plan", "random"]


def _find_figures(run: Run, measurement: Measurement) -> _SampleFigures:
    """Find the figures of a measurement; raises ``UsageError`` where its labels are not random, or not complete."""
    if measurement.kind != "verdict":
        raise UsageError(
            f"the labels of {run.folder} are no verdicts; label its cases good or bad (adjudge label)",
            argument="labels",
        )
    rate, agreement, limit = measurement.rate, measurement.agreement, measurement.limit
    sampling, contents = measurement.sampling, measurement.contents
    if isinstance(rate, Refusal):
        raise UsageError(f"{run.folder} cannot be certified: {rate.reason}; {rate.remedy}", argument="labels")
    if rate is None or agreement is None or limit is None or sampling == "unknown":
        names = ("rate", "agreement", "limit")
        reasons = [measurement.left_out[name] for name in names if name in measurement.left_out]
        reason = reasons[0] if reasons else "no case has a label"
        raise UsageError(f"{run.folder} cannot be certified: {reason}", argument="labels")
    if contents is None:
        raise UsageError(f"the contents of {run.folder} are not known: {measurement.draw_problem or 'they changed'}")
    return _SampleFigures(contents=contents, rate=rate, agreement=agreement, limit=limit, sampling=sampling)


# ---------------------------------------------------------------- what is read of a run


@dataclass(slots=True)
class _RunFacts:
    """Facts of a run that a certificate states beside the measurement: its models, its times and its case labels."""

    seats: dict[tuple[str, ...], set[str | None]] = field(default_factory=dict)
    """The models that answered for each seat of the judge, by the path of names to the seat."""
    times: list[datetime] = field(default_factory=list)
    """The times of the first and the last result; empty before the first."""
    case_label_digests: list[bytes] = field(default_factory=list)
    """Digests of the labels that cases of the data set have."""


def _read_run_facts(run: Run) -> _RunFacts:
    """Read the models of each seat, the times of judging and the labels of cases, in one pass; pairs are left out.

    Raises ``UsageError`` where several models answered for one seat.
    """
    facts = _RunFacts()
    for item in run.items():
        result = item.result
        if not isinstance(result, JudgeResult):
            continue
        for seat in list_seats(result):
            facts.seats.setdefault(seat.seat, set()).add(seat.model)
        times = [*facts.times, result.created_at]
        facts.times = [min(times), max(times)]
        if item.sample == 0:  # once for each case, however often it was judged
            _add_case_labels(facts, item)
    _check_models(run, facts)
    return facts


def _check_models(run: Run, facts: _RunFacts) -> None:
    """Raise ``UsageError`` where several models answered for one seat."""
    for path, models in facts.seats.items():
        if len(models) > 1:
            who = " > ".join(path) or "the judge"
            names = ", ".join(sorted(str(model) for model in models))
            raise UsageError(
                f"{len(models)} models answered as {who} in {run.folder} ({names}), and the measurement is of none of "
                "them alone; name the model with its date, and run it again"
            )


def _add_case_labels(facts: _RunFacts, item: RunItem) -> None:
    """Add a digest of the labels that a case of the data set has, if it has some."""
    case = item.case
    if case.label is not None or case.labels:
        members = [case.id, digest_content(case.content), case.label, dict(case.labels or {})]
        facts.case_label_digests.append(_digest_members(members))


def _digest_labels(labels: Sequence[Label], case_label_digests: Sequence[bytes]) -> str:
    """Digest labels together with those of the data set's cases; their order does not matter."""
    digests = [
        _digest_members(
            [
                label.case,
                label.subject,
                label.rater,
                label.kind,
                label.value,
                label.criterion,
                label.blind,
                None if label.at is None else label.at.astimezone(UTC).isoformat(),
            ]
        )
        for label in labels
    ]
    return sha256(b"".join(sorted([*digests, *case_label_digests]))).hexdigest()


def _digest_members(members: Sequence[object]) -> bytes:
    return sha256(json.dumps(members, sort_keys=True).encode()).digest()


# ---------------------------------------------------------------- the certificate


def _certify_measurement(run: Run, measurement: Measurement, facts: _RunFacts, labels: Sequence[Label]) -> Certificate:
    """Make the certificate of a measurement; raises ``UsageError`` where a figure that it needs is missing."""
    figures = _find_figures(run, measurement)
    rate, limit, agreement, flipped = figures.rate, figures.limit, figures.agreement, measurement.flipped
    level_for_every_look = limit.level if limit.kind == "every look" else None
    first_time, last_time = facts.times
    return Certificate(
        run=run.id,
        judge=_describe_judge(run, measurement.judge, facts),
        contents=figures.contents,
        judged_since=first_time.astimezone(UTC),
        judged_until=last_time.astimezone(UTC),
        labels=_describe_labels(run, measurement, figures, labels, facts),
        counts={"good": _count_verdicts(agreement, truth=True), "bad": _count_verdicts(agreement, truth=False)},
        sensitivity=certify_share(agreement.sensitivity, level_for_every_look),
        specificity=certify_share(agreement.specificity, level_for_every_look),
        pass_rate=CertifiedShare(value=rate.value, low=limit.low, high=limit.high, of=rate.labels, level=limit.level),
        flips=None if flipped is None else CertifiedFlips(flipped=int(flipped.count), of=flipped.of),
    )


def _describe_judge(run: Run, name: str, facts: _RunFacts) -> CertifiedJudge:
    """Describe a judge by the digests in the manifest of its run and by the models that answered."""
    manifest = run.manifest
    return CertifiedJudge(
        name=name,
        judge=manifest["digests"]["judge"],
        rubric=manifest["digests"]["rubric"],
        rubric_name=str(manifest["rubric"].get("name") or "")[:300],
        prompt=manifest["asked"]["wording"],
        rules=digest_rules(manifest["asked"].get("rules") or ()),
        seats=tuple(
            CertifiedSeat(seat=path, model=model) for path, models in sorted(facts.seats.items()) for model in models
        ),
    )


def _count_verdicts(agreement: Agreement, *, truth: bool) -> dict[str, int]:
    """Count the verdicts on the good cases (``truth``), or on the bad ones; undecided only where there are some."""
    confusion = agreement.confusion
    verdicts = [_VERDICTS[category] for category in confusion.categories]
    row = confusion.counts[confusion.categories.index(truth)]
    return {verdict: count for verdict, count in zip(verdicts, row, strict=True) if verdict != "undecided" or count}


def _describe_labels(
    run: Run, measurement: Measurement, figures: _SampleFigures, labels: Sequence[Label], facts: _RunFacts
) -> CertifiedLabels:
    """Describe the labels: their digest, how they were drawn, by whom, and from when to when if all say it."""
    ceiling, plan = measurement.ceiling, measurement.plan
    known_times = sorted(label.at.astimezone(UTC) for label in labels if label.at is not None)
    # The labels of a data set's cases have no time, and then nobody knows when the first label was given.
    if facts.case_label_digests or len(known_times) < len(labels):
        known_times = []
    kappa = None if ceiling is None else certify_share(ceiling.kappa, None)
    return CertifiedLabels(
        digest=_digest_labels(labels, facts.case_label_digests),
        labelled=figures.rate.labels,
        settled=figures.agreement.confusion.items,
        people=measurement.people,
        not_blind=measurement.not_blind,
        copies=measurement.copies,
        sampling=figures.sampling,
        plan=None if plan is None else plan.plan,
        plan_digest=None if plan is None else sha256((run.folder / PLAN_FILE).read_bytes()).hexdigest(),
        looks=figures.limit.kind,
        because=figures.limit.because,
        kappa=kappa,
        since=known_times[0] if known_times else None,
        until=known_times[-1] if known_times else None,
    )


def certify_share(estimate: Estimate, level: float | None) -> CertifiedShare | None:
    """Make the certified form of a share, with its limits; ``None`` for an estimate without a value.

    With a ``level``, the limits are widened to hold at every look, with this level for all looks together.
    """
    if estimate.value is None:
        return None
    low, high = estimate.low, estimate.high
    if level is not None and low is not None and high is not None:
        low, high = _widen_share_limits(
            estimate.value, low, high, find_quantile(estimate.of, 1 - level), estimate.level
        )
    certified_level = estimate.level if level is None else level
    return CertifiedShare(value=estimate.value, low=low, high=high, of=estimate.of, level=certified_level)


def _widen_share_limits(value: float, low: float, high: float, quantile: float, level: float) -> tuple[float, float]:
    """Widen Wilson limits of a share, computed for one look at a level, to those with another normal quantile.

    A limit x of Wilson's solves (value - x)^2 = a * x * (1 - x), where a is the square of the quantile divided by the
    number of labels. Weighted labels are worth another number than there are, which is not known here. So a is computed
    from a limit that is known, and multiplied for the new quantile.
    """
    quantile_for_one_look = NormalDist().inv_cdf((1 + level) / 2)
    limit = low if 0 < low < 1 and value != low else high
    if not 0 < limit < 1 or limit == value:
        return low, high
    a = (value - limit) ** 2 / (limit * (1 - limit)) * (quantile / quantile_for_one_look) ** 2
    root = math.sqrt(a * a + 4 * a * value * (1 - value))
    wider_low = (2 * value + a - root) / (2 * (1 + a))
    wider_high = (2 * value + a + root) / (2 * (1 + a))
    return max(min(wider_low, low), 0.0), min(max(wider_high, high), 1.0)


def _write_file(certificate: Certificate, path: Path) -> None:
    """Write a certificate to a file; raises ``AdjudgeError`` where that fails."""
    try:
        write_private(path, write_certificate(certificate))
    except OSError as error:
        raise AdjudgeError(f"the certificate {path} cannot be written: {error.strerror}") from None
