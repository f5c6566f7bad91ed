"""Audit reports: a value that says what was looked at, what was found, and from which ledger.

The opinion is decided in ``opinion.py`` (``choose_opinion``), and what is a finding in ``findings.py``.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal, get_args

from adjudge.errors import Argument, UsageError
from adjudge.formats.arguments import check_choice, check_whole_number
from adjudge.formats.invisible import explain_doubtful_name
from adjudge.formats.plain_data import to_plain
from adjudge.formats.record import write_record
from adjudge.formats.text import clean
from adjudge.formats.times import get_now
from adjudge.ledger.audit.opinion import OPINIONS, Opinion, choose_opinion, explain_opinion
from adjudge.ledger.entry import Head
from adjudge.ledger.payload import encode_payload
from adjudge.ledger.verification import Signatures
from adjudge.result import JudgeResult, RuleResult, make_id

FindingSeverity = Literal["critical", "major", "minor"]

SEVERITIES: tuple[FindingSeverity, ...] = get_args(FindingSeverity)
"""Gravest first."""


FindingCode = Literal[
    "ledger_changed",
    "conflict",
    "tampering",
    "contradiction",
    "let_through",
    "rule_failed",
    "overridden",
    "failed",
    "undecided",
    "opened",
    "pending",
    "erased",
    "unreadable",
    "stopped",
    "approved",
    "answered",
    "overruled",
    "unjudged",
    "warning",
    "vote_refused",
]


SEVERITY_OF: dict[FindingCode, FindingSeverity] = {
    "ledger_changed": "critical",
    "conflict": "critical",
    "tampering": "critical",
    "contradiction": "critical",
    "let_through": "critical",
    "rule_failed": "critical",
    "overridden": "major",
    "failed": "major",
    "undecided": "major",
    "opened": "major",
    "pending": "major",
    "erased": "major",
    "unreadable": "major",
    "stopped": "minor",
    "approved": "minor",
    "answered": "minor",
    "overruled": "minor",
    "unjudged": "minor",
    "warning": "minor",
    "vote_refused": "minor",
}
"""The severity of each finding; docs/audit.md says when there is one."""


Became = Literal["let through", "approved", "stopped", "pending", "unknown"]


MOST_LISTED = 1_000
"""Findings, things judged and rule results that one report lists; the numbers count all of them."""

_LARGEST_EXACT = 2**53 - 1
"""The largest integer that every reader of JSON reads exactly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The number of findings of each severity."""

    critical: int = 0
    """The number of critical findings."""
    major: int = 0
    """The number of major findings."""
    minor: int = 0
    """The number of minor findings."""

    def __post_init__(self) -> None:
        for severity in fields(self):
            count = getattr(self, severity.name)
            if type(count) is not int or not 0 <= count <= _LARGEST_EXACT:
                raise UsageError(f"findings are counted from 0 up; got {clean(repr(count)[:40])} {severity.name} ones")

    def to_dict(self) -> dict[str, Any]:
        """Write this value as plain data."""
        return write_record(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was found, and the entry of the ledger that shows it."""

    severity: FindingSeverity
    """``critical``, ``major`` or ``minor``."""
    code: FindingCode
    """The finding of docs/audit.md that it is."""
    detail: str = ""
    """One sentence for a person; it names judges and rules, and quotes no content."""
    seq: int | None = None
    """The entry's place; ``None`` where it is about no entry that can be read."""
    hash: str | None = None
    """The entry's hash; ``None`` with ``seq``."""

    def to_dict(self) -> dict[str, Any]:
        """Write this value as plain data."""
        return write_record(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Something that was judged, what came of it, and the entry of the ledger that says so."""

    seq: int
    """The place of the entry that shows what came of it; where none does, of the last one about it."""
    hash: str
    """The hash of that entry."""
    kind: str
    """The kind of that entry."""
    id: str
    """The result's; of something without one, the decision's."""
    outcome: str
    """``passed``, ``failed`` or ``undecided``; ``unjudged`` or ``unreadable`` where there is none."""
    became: Became = "unknown"
    """The fate of the content: ``approved`` where no decision let it through after that, ``unknown`` where the ledger
    does not say."""
    judge: str = ""
    """The name of the judge; empty where none answered."""
    gate: str = ""
    """The name of the gate; empty where there was none."""
    subject: str = ""
    """Digest of the content."""
    undecided_because: str | None = None
    """The reason why it is undecided; ``None`` if it is not."""
    score: float | None = None
    """The score, in 0 to 1; ``None`` without one."""
    decided_by: str = ""
    """The deciders who let it through or stopped it: ``judge``, ``rule``, ``policy``, ``human``. Where the ledger names
    none, who decided the result; empty while it is pending."""
    by: str = ""
    """The people, or the judge asked before them, who answered a request for approval."""
    approval_id: str | None = None
    """The id of the request to people; ``None`` without one."""
    others: tuple[int, ...] = ()
    """The places of other entries about it, the last 5 at most."""

    def to_dict(self) -> dict[str, Any]:
        """Write this value as plain data."""
        return write_record(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditBasis:
    """The ledger that an audit was derived from, and how much of it."""

    verified: bool
    """True if every entry was as it was recorded when the audit was made."""
    head: Head | None = None
    """The last entry that was found in order; pins the ledger as this audit saw it."""
    problem: str = ""
    """The first entry that was not in order, in one sentence."""
    pinned_head: bool = False
    """True if a head kept elsewhere was compared."""
    signatures: Signatures = "none"
    """The way in which signatures were checked, as in ``Verification``."""
    unseen: tuple[str, ...] = ()
    """Changes that the check of the ledger could not have seen, one sentence each."""
    entries: int = 0
    """Entries that the audit is about."""
    first: int | None = None
    """The place of the first entry that it is about; ``None`` without one."""
    last: int | None = None
    """The place of the last entry that it is about; ``None`` without one."""
    judged: int = 0
    """Things that were to be judged."""
    undecided: int = 0
    """Those of them that neither a judge nor a person decided."""
    since: datetime | None = None
    """The first moment that was looked at; ``None`` is the beginning."""
    until: datetime | None = None
    """Not included, as in ``Ledger.query``."""
    gate: str | None = None
    """The gate that it is limited to; ``None`` is no limit."""
    execution: str | None = None
    """The execution that it is limited to; ``None`` is no limit."""
    subject: str | None = None
    """The digest of the content that it is limited to; ``None`` is no limit."""

    def to_dict(self) -> dict[str, Any]:
        """Write this value as plain data."""
        return write_record(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """An audit report.

    If it was derived from a ledger, it has a ``basis``, and its opinion is the rule's, unless a
    person, named in ``opinion_by``, gave another. If a person wrote it, it has no basis, and the opinion is the
    author's.
    """

    schema: ClassVar[str] = "adjudge/audit/1"

    objectives: str
    """The question of the audit."""
    opinion: Opinion
    """``unqualified``, ``qualified``, ``adverse`` or ``disclaimer``."""
    findings: Findings
    """The numbers of findings; ``found`` lists them."""
    scope: tuple[str, ...] = ()
    """The scope of the audit, in words."""
    opinion_by: str | None = None
    """The person who gave another opinion than the rule; ``None`` where nobody did."""
    reason: str = ""
    """That person's reason."""
    agent_id: str | None = None
    """The agent that it is about, if it is about one."""
    execution_id: str | None = None
    """The execution that it is about, if it is about one."""
    rule_results: tuple[RuleResult, ...] = ()
    """The results of rules, failed ones first; ``metadata["ledger_seq"]`` is the entry's place."""
    judge_result: JudgeResult | None = None
    """The result, where the audit is about exactly one."""
    found: tuple[Finding, ...] = ()
    """Gravest first, at most 1,000."""
    judged: tuple[Judged, ...] = ()
    """The contents that were judged, those with findings first, at most 1,000."""
    basis: AuditBasis | None = None
    """The ledger it was derived from; ``None`` if a person wrote it."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Yours."""
    id: str = field(default_factory=make_id)
    """The id of the audit."""
    created_at: datetime = field(default_factory=get_now)
    """The time at which it was made, in UTC."""

    def __post_init__(self) -> None:
        if self.opinion not in OPINIONS:
            raise UsageError(f"an opinion is one of {', '.join(OPINIONS)}; got {clean(repr(self.opinion)[:80])}")
        _check_types(self)
        _check_time(self.created_at)
        for severity in SEVERITIES:
            if sum(finding.severity == severity for finding in self.found) > getattr(self.findings, severity):
                raise UsageError(f"an audit lists more {severity} findings than it counts; count those it lists")
        _check_opinion(self)

    @property
    def computed_opinion(self) -> Opinion | None:
        """The rule's opinion, even if a person gave another; ``None`` if not derived from a ledger."""
        return choose_opinion(**_list_opinion_arguments(self, self.basis)) if self.basis is not None else None

    def explain(self) -> str:
        """Explain the opinion in one line: what, by whom, and why."""
        if self.opinion_by is not None:
            line = f"{self.opinion} by {self.opinion_by}: {self.reason}; the rule says {self.computed_opinion}"
            return clean(line, keep_lines=False)
        return f"{self.opinion}: {self._explain_rule()}" if self.basis is not None else self.opinion

    def _explain_rule(self) -> str:
        """Explain the opinion that the rule gives; empty for an audit that was not derived from a ledger."""
        return explain_opinion(**_list_opinion_arguments(self, self.basis)) if self.basis is not None else ""

    def to_dict(self) -> dict[str, Any]:
        """Write this audit as plain data, as a ledger would record it; ``read_audit`` reads it back.

        Integers beyond 2^53 and half surrogate pairs, in metadata and results, become text. Raises ``UsageError``
        for more than 10 MB.
        """
        # Encoded as a ledger's payload, not by ``write_record``: it has to meet a payload's limits on numbers and size.
        members: dict[str, Any] = {"schema": self.schema}
        members |= {member.name: to_plain(getattr(self, member.name)) for member in fields(self)}
        members["created_at"] = self.created_at.astimezone(UTC).isoformat()
        members["computed_opinion"] = self.computed_opinion
        encoded: dict[str, Any] = _reorder_members(
            json.loads(encode_payload(members), parse_int=_read_integer), members
        )
        return encoded


def _read_integer(digits: str) -> int | float:
    """Read the digits of a number without a point in a payload: as an integer, or as a float beyond 2^53."""
    # A payload has larger integers as text, so digits beyond 2^53 are those of a float that was written without point.
    return int(digits) if len(digits) < 16 or abs(int(digits)) <= _LARGEST_EXACT else float(digits)


def _reorder_members(value: Any, model: Any) -> Any:
    """Put the members of ``value``, and those in them, into the order that they have in ``model``.

    A part of another form than in ``model`` is returned as it is.
    """
    if isinstance(value, list) and isinstance(model, list):
        return [_reorder_members(member, model_member) for member, model_member in zip(value, model, strict=True)]
    if isinstance(value, dict) and isinstance(model, dict) and value.keys() == model.keys():
        return {name: _reorder_members(value[name], model_member) for name, model_member in model.items()}
    return value


def _check_types(entry: AuditEntry) -> None:
    """Raise ``UsageError`` for a member of an audit that has another type than its field says."""
    kinds: dict[str, Any] = {"objectives": str, "reason": str, "findings": Findings, "metadata": Mapping}
    kinds |= {"id": str, "created_at": datetime, "basis": AuditBasis | None, "opinion_by": str | None}
    kinds |= {"agent_id": str | None, "execution_id": str | None, "judge_result": JudgeResult | None}
    for name, kind in kinds.items():
        if not isinstance(getattr(entry, name), kind):
            raise UsageError(f"an audit's {name} cannot be of type {type(getattr(entry, name)).__name__}")
    kinds_of_members = {"scope": str, "found": Finding, "judged": Judged, "rule_results": RuleResult}
    for name, kind in kinds_of_members.items():
        members = getattr(entry, name)
        if not isinstance(members, tuple) or not all(isinstance(member, kind) for member in members):
            raise UsageError(f"an audit's {name} must be a tuple of {kind.__name__}, got {clean(repr(members)[:80])}")


def _check_time(moment: datetime) -> None:
    """Raise ``UsageError`` for a time without a zone, or one that UTC has no form for."""
    if moment.utcoffset() is None:
        raise UsageError(f"a time needs a zone, got {moment.isoformat()}; use datetime.now(timezone.utc)")
    try:
        moment.astimezone(UTC)
    except OverflowError:
        raise UsageError(f"an audit was made in the years 1 to 9999, got {moment.isoformat()}") from None


def _check_opinion(entry: AuditEntry) -> None:
    """Raise ``UsageError`` for an opinion that the rule does not give, unless a named person gives it with a reason."""
    is_by_person, rule_opinion = entry.opinion_by is not None, entry.computed_opinion
    if is_by_person != bool(entry.reason.strip()) or (entry.opinion_by is not None and not entry.opinion_by.strip()):
        raise UsageError("another opinion than the rule's needs both a person, opinion_by, and that person's reason")
    doubt = None if entry.opinion_by is None else explain_doubtful_name(entry.opinion_by)
    if doubt is not None:
        raise UsageError(
            Argument("opinion_by", f"{entry.opinion_by!a:.80}"),
            f" names nobody for certain: {doubt}",
            argument="opinion_by",
        )
    if rule_opinion is None:
        return
    # Checked in the type, so that no audit, read from a file or made by any code, has another opinion than the rule's
    # without a person's name under it.
    if not is_by_person and entry.opinion != rule_opinion:
        raise UsageError(
            f"the rule says {rule_opinion} of these findings, not {entry.opinion}; name who says so, and why"
        )
    # Nobody can know what was recorded in a ledger that was changed.
    if entry.basis is not None and not entry.basis.verified and entry.opinion in {"unqualified", "qualified"}:
        raise UsageError(f"the ledger does not verify, so nobody can give an opinion of {entry.opinion}: disclaim it")


def _list_opinion_arguments(entry: AuditEntry, basis: AuditBasis) -> dict[str, Any]:
    """Return the arguments with which ``choose_opinion`` and ``explain_opinion`` are called for an audit."""
    counts = {"critical": entry.findings.critical, "major": entry.findings.major}
    return {**counts, "judged": basis.judged, "undecided": basis.undecided, "verified": basis.verified}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuery:
    """A search for audits: everything given must hold, and every bound is included.

    Args:
        opinion: One, or any of several.
        min_critical: The fewest critical findings.
        min_major: The fewest major findings.
        agent_id: The agent that the audit is about.
        execution_id: The execution that the audit is about.
        since: The earliest time at which it was made.
        until: The latest time at which it was made.
    """

    opinion: Opinion | Collection[Opinion] | None = None
    """One, or any of several."""
    min_critical: int | None = None
    """The fewest critical findings."""
    min_major: int | None = None
    """The fewest major findings."""
    agent_id: str | None = None
    """The agent that the audit is about."""
    execution_id: str | None = None
    """The execution that the audit is about."""
    since: datetime | None = None
    """The earliest time at which it was made."""
    until: datetime | None = None
    """The latest time at which it was made."""

    def __post_init__(self) -> None:
        # A misspelled opinion would find nothing, which somebody would take for "there is no adverse audit".
        for opinion in self._opinions or ():
            check_choice("opinion", opinion, OPINIONS)
        for name in ("min_critical", "min_major"):
            minimum = getattr(self, name)
            if minimum is not None:
                check_whole_number(name, minimum, least=0)
        for name in ("since", "until"):
            moment = getattr(self, name)
            if moment is not None and (not isinstance(moment, datetime) or moment.utcoffset() is None):
                raise UsageError(
                    f"{name} must be a time with a zone, got {moment!r}; use datetime.now(timezone.utc)", argument=name
                )

    @property
    def _opinions(self) -> Collection[str] | None:
        return (self.opinion,) if isinstance(self.opinion, str) else self.opinion

    def matches(self, entry: AuditEntry) -> bool:
        """Return whether an audit is one of those searched for.

        Args:
            entry: The audit.
        """
        if self._opinions is not None and entry.opinion not in self._opinions:
            return False
        if entry.findings.critical < (self.min_critical or 0) or entry.findings.major < (self.min_major or 0):
            return False
        for name in ("agent_id", "execution_id"):
            if getattr(self, name) is not None and getattr(self, name) != getattr(entry, name):
                return False
        is_too_early = self.since is not None and entry.created_at < self.since
        is_too_late = self.until is not None and entry.created_at > self.until
        return not is_too_early and not is_too_late
