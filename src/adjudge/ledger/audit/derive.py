"""An audit from a ledger: every entry is checked, and what is in order is looked at, in one pass.

The opinion is decided in ``opinion.py`` (``choose_opinion``), what is a finding in ``findings.py`` (``list_findings``),
and which entries are about one thing in ``gather.py`` (``Evidence``).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from adjudge.errors import UsageError
from adjudge.formats.text import clean
from adjudge.ledger.audit.entry import (
    MOST_LISTED,
    SEVERITIES,
    SEVERITY_OF,
    AuditBasis,
    AuditEntry,
    Finding,
    Findings,
)
from adjudge.ledger.audit.findings import describe, is_judged, is_undecided, list_findings, make_loose_finding
from adjudge.ledger.audit.gather import AuditSelection, Evidence, JudgedItem
from adjudge.ledger.audit.opinion import Opinion, choose_opinion
from adjudge.ledger.entry import Head, format_time
from adjudge.ledger.export import verify_export
from adjudge.ledger.ledger import Ledger
from adjudge.ledger.verification import Verification
from adjudge.result import JudgeResult, RuleResult, read_result

if TYPE_CHECKING:
    from adjudge.ledger.signature import PublicKey


OBJECTIVES = "Whether anything went through that should not have, and whether everything was decided."
"""The objectives of an audit where nobody says otherwise."""

_MOST_VALUES = 5_000

_DEEPEST = 20
"""The size of the one result that a report may hold, in values and levels; a larger one is looked up in the ledger."""


async def derive_audit(
    ledger: Ledger | str | os.PathLike[str],
    *,
    objectives: str = OBJECTIVES,
    scope: Sequence[str] = (),
    since: datetime | None = None,
    until: datetime | None = None,
    gate: str | None = None,
    execution: str | None = None,
    subject: str | None = None,
    head: Head | str | os.PathLike[str] | None = None,
    public_key: PublicKey | None = None,
    agent_id: str | None = None,
    opinion: Opinion | None = None,
    opinion_by: str | None = None,
    reason: str = "",
    metadata: Mapping[str, Any] | None = None,
) -> AuditEntry:
    """Derive an audit of a ledger, or of an export given by its path.

    The whole ledger is verified; of what was in order, the entries that match everything given are looked at.

    Raises ``UsageError`` when there is no ledger or an argument cannot be used, ``LedgerError`` when the store fails.
    A ledger that was changed is a finding.

    Args:
        ledger: The ledger, or the path of an export.
        objectives: What the audit is to find out, in words.
        scope: What was looked at, in words; by default the choices below say it.
        since: Look at entries from this time on alone.
        until: Look at entries before this time alone.
        gate: Look at entries of this gate alone.
        execution: Look at entries of this execution alone.
        subject: Look at entries about this content alone, by its digest.
        head: A head that you kept elsewhere, as for ``Ledger.verify``.
        public_key: The public key to trust, as for ``Ledger.verify``.
        agent_id: The agent that the audit is about, if it is about one.
        opinion: The opinion of a person, in place of the rule's.
        opinion_by: The name of the person whose ``opinion`` it is.
        reason: Why that person gives it.
        metadata: Yours; it is kept with the audit.
    """
    times = {"since": format_time(since) if since else None, "until": format_time(until) if until else None}
    selection = AuditSelection(**times, gate=gate, execution=execution, subject=subject)
    evidence = Evidence(selection)
    if isinstance(scope, str):
        raise UsageError(
            f"scope is a list of texts, got one: {clean(scope[:80])!r}; write it in brackets", argument="scope"
        )
    if isinstance(ledger, Ledger):
        verification = await ledger.verify(head, public_key=public_key, each=evidence.add)
    else:
        check: Any = verify_export
        verification = await asyncio.to_thread(check, ledger, head=head, public_key=public_key, each=evidence.add)
    audit = make_audit(evidence, verification, objectives=objectives, scope=tuple(scope) or _describe_scope(selection))
    basis = replace(audit.basis or AuditBasis(verified=False), since=since, until=until)
    chosen_opinion = opinion or audit.opinion
    opinion_members = {"opinion": chosen_opinion, "opinion_by": opinion_by, "reason": reason, "agent_id": agent_id}
    return replace(audit, basis=basis, **opinion_members, execution_id=execution, metadata=dict(metadata or {}))


def make_audit(
    evidence: Evidence, verification: Verification, *, objectives: str, scope: tuple[str, ...]
) -> AuditEntry:
    """Make the audit of the evidence, with the rule's opinion; pure."""
    items = evidence.list_items()
    findings = _list_found(evidence, verification, items)
    counts = Findings(**{name: sum(each.severity == name for each in findings) for name in SEVERITIES})
    basis = _make_basis(evidence, verification, items)
    with_findings = {each.seq for each in findings}
    listed = sorted(items, key=lambda each: (each.seq not in with_findings, each.seq))[:MOST_LISTED]
    return AuditEntry(
        objectives=objectives,
        scope=scope,
        opinion=choose_opinion(
            critical=counts.critical,
            major=counts.major,
            judged=basis.judged,
            undecided=basis.undecided,
            verified=basis.verified,
        ),
        findings=counts,
        rule_results=_list_rule_results(items),
        judge_result=_read_one(evidence.find_whole()),
        found=tuple(findings[:MOST_LISTED]),
        judged=tuple(describe(each) for each in listed),
        basis=basis,
    )


async def record_opinion(ledger: Ledger, audit: AuditEntry) -> int:
    """Record in a ledger that a person gave an audit another opinion than the rule's, and return the entry's place.

    Raises ``UsageError`` when nobody did.

    Args:
        ledger: The ledger to record it in.
        audit: The audit, with the person in ``opinion_by``.
    """
    if audit.opinion_by is None:
        raise UsageError("an audit whose opinion is the rule's can be derived again, so there is nothing to record")
    head = audit.basis.head if audit.basis is not None else None
    payload = {"schema": "adjudge/audit-override/1", "audit": audit.id, "opinion": audit.opinion}
    payload |= {"by": audit.opinion_by, "reason": audit.reason}
    computed = {"computed_opinion": audit.computed_opinion, "findings": audit.findings.to_dict()}
    return await ledger.append({**payload, **computed, "head": str(head) if head else None}, kind="override")


def _make_basis(evidence: Evidence, verification: Verification, items: Sequence[JudgedItem]) -> AuditBasis:
    """Make the basis of an audit: what was verified, looked at and counted."""
    lost = sum(each.code == "erased" and each.kind in {"result", "decision"} for each in evidence.list_loose())
    return AuditBasis(
        verified=verification.valid,
        head=verification.head,
        problem=f"{verification.detail} [{verification.code}]" if not verification.valid else "",
        pinned_head=verification.pinned_head,
        signatures=verification.signatures,
        unseen=verification.unseen,
        entries=evidence.entries,
        first=evidence.first,
        last=evidence.last,
        # What was erased was judged, and by now nobody can say how: else erasing would be a way to a better opinion.
        judged=sum(is_judged(each) for each in items) + lost,
        undecided=sum(is_undecided(each) for each in items) + lost,
        gate=evidence.selection.gate,
        execution=evidence.selection.execution,
        subject=evidence.selection.subject,
    )


def _list_found(evidence: Evidence, verification: Verification, items: Iterable[JudgedItem]) -> list[Finding]:
    """List all findings, gravest first."""
    findings = [finding for judged in items for finding in list_findings(judged)]
    findings += [make_loose_finding(loose, verification.erased) for loose in evidence.list_loose()]
    if not verification.valid:
        severity = SEVERITY_OF["ledger_changed"]
        findings.append(
            Finding(severity=severity, code="ledger_changed", detail=verification.detail, seq=verification.seq)
        )
    return sorted(findings, key=lambda judged: (SEVERITIES.index(judged.severity), judged.seq or 0))


def _list_rule_results(items: Iterable[JudgedItem]) -> tuple[RuleResult, ...]:
    """List the results of rules, those that failed first, each with the place of its entry."""
    placed_rules = [(rule, judged.seq) for judged in items for rule in judged.facts.rules]
    placed_rules.sort(key=lambda pair: (pair[0].passed, pair[1]))
    return tuple(replace(rule, metadata={"ledger_seq": seq}) for rule, seq in placed_rules[:MOST_LISTED])


def _read_one(recorded: Mapping[str, Any] | None) -> JudgeResult | None:
    """Read the result, where there is exactly one and it is of a size for a report."""
    if recorded is None or not _fits(recorded):
        return None
    try:
        return read_result(recorded)
    except UsageError:
        return None


def _fits(value: object) -> bool:
    """Return whether a value is small enough to be written again: in members, depth and length of its texts."""
    to_check: list[tuple[Any, int]] = [(value, 0)]
    count = 0
    while to_check:
        member, depth = to_check.pop()
        count += 1
        if count > _MOST_VALUES or depth > _DEEPEST or (isinstance(member, str) and len(member) > 100_000):
            return False
        inner = member.values() if isinstance(member, dict) else member if isinstance(member, list) else ()
        to_check += [(member_of, depth + 1) for member_of in inner]
    return True


def _describe_scope(selection: AuditSelection) -> tuple[str, ...]:
    names = ("gate", "execution", "subject", "since", "until")
    choices = tuple(f"{name} {getattr(selection, name)}" for name in names if getattr(selection, name) is not None)
    return choices or ("the whole ledger",)
