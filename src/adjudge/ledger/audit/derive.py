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
from adjudge.ledger.audit.findings import describe_item, is_judged, is_undecided, list_findings, make_loose_finding
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

_MOST_DEPTH = 20
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
    """Make an audit report of the collected evidence, with the opinion that ``choose_opinion`` gives. Pure."""
    items = evidence.list_items()
    findings = _list_all_findings(evidence, verification, items)
    counts = Findings(**{name: sum(finding.severity == name for finding in findings) for name in SEVERITIES})
    basis = _make_basis(evidence, verification, items)
    seqs_with_findings = {finding.seq for finding in findings}
    # Items with findings come first.
    listed_items = sorted(items, key=lambda item: (item.seq not in seqs_with_findings, item.seq))[:MOST_LISTED]
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
        judge_result=_read_single_result(evidence.find_single_result()),
        found=tuple(findings[:MOST_LISTED]),
        judged=tuple(describe_item(item) for item in listed_items),
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
    erased_count = sum(
        entry.code == "erased" and entry.kind in {"result", "decision"} for entry in evidence.list_loose_entries()
    )
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
        # An erased result or decision counts as judged and undecided: else erasing would be a way to a better opinion.
        judged=sum(is_judged(item) for item in items) + erased_count,
        undecided=sum(is_undecided(item) for item in items) + erased_count,
        gate=evidence.selection.gate,
        execution=evidence.selection.execution,
        subject=evidence.selection.subject,
    )


def _list_all_findings(evidence: Evidence, verification: Verification, items: Iterable[JudgedItem]) -> list[Finding]:
    """List all findings, gravest first: about judged items, about other entries, and about a changed ledger."""
    findings = [finding for item in items for finding in list_findings(item)]
    findings += [make_loose_finding(entry, verification.erased) for entry in evidence.list_loose_entries()]
    if not verification.valid:
        severity = SEVERITY_OF["ledger_changed"]
        findings.append(
            Finding(severity=severity, code="ledger_changed", detail=verification.detail, seq=verification.seq)
        )
    return sorted(findings, key=lambda finding: (SEVERITIES.index(finding.severity), finding.seq or 0))


def _list_rule_results(items: Iterable[JudgedItem]) -> tuple[RuleResult, ...]:
    """List the results of rules, failed ones first, each with the place of its entry in ``ledger_seq``."""
    rules_with_seq = [(rule, item.seq) for item in items for rule in item.facts.rules]
    rules_with_seq.sort(key=lambda pair: (pair[0].passed, pair[1]))
    return tuple(replace(rule, metadata={"ledger_seq": seq}) for rule, seq in rules_with_seq[:MOST_LISTED])


def _read_single_result(recorded: Mapping[str, Any] | None) -> JudgeResult | None:
    """Read the recorded result that the report shows.

    ``None`` if there is not exactly one, if it is too large for a report, or if it cannot be read.
    """
    if recorded is None or not _is_small_enough(recorded):
        return None
    try:
        return read_result(recorded)
    except UsageError:
        return None


def _is_small_enough(value: object) -> bool:
    """Return whether a value is small enough for a report: by its members, its depth, and the length of its texts."""
    to_check: list[tuple[Any, int]] = [(value, 0)]
    count = 0
    while to_check:
        member, depth = to_check.pop()
        count += 1
        if count > _MOST_VALUES or depth > _MOST_DEPTH or (isinstance(member, str) and len(member) > 100_000):
            return False
        children = member.values() if isinstance(member, dict) else member if isinstance(member, list) else ()
        to_check += [(child, depth + 1) for child in children]
    return True


def _describe_scope(selection: AuditSelection) -> tuple[str, ...]:
    """Describe what an audit is limited to, one text for each limit, such as ``gate checkout``."""
    names = ("gate", "execution", "subject", "since", "until")
    limits = tuple(f"{name} {getattr(selection, name)}" for name in names if getattr(selection, name) is not None)
    return limits or ("the whole ledger",)
