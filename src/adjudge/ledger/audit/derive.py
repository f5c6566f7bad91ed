"""An audit from a ledger: every entry is checked, and what is in order is looked at, in one pass."""

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
    Opinion,
    choose_opinion,
)
from adjudge.ledger.audit.findings import describe, find_loose, is_judged, is_undecided, list_findings
from adjudge.ledger.audit.gather import AuditSelection, Evidence, JudgedItem
from adjudge.ledger.entry import Head, format_time
from adjudge.ledger.export import verify_export
from adjudge.ledger.ledger import Ledger
from adjudge.ledger.verification import Verification
from adjudge.result import JudgeResult, RuleResult, read_result

if TYPE_CHECKING:
    from adjudge.ledger.signature import PublicKey


OBJECTIVES = "Whether anything went through that should not have, and whether everything was decided."
"""What an audit is to find out where nobody says otherwise."""

_MOST_VALUES = 5_000

_DEEPEST = 20
"""How large the one result of a report may be, in values and levels; a larger one is looked up in the ledger."""


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

    The whole ledger is verified, with ``head`` and ``public_key`` as in ``Ledger.verify``; of what was in order, the
    entries that match everything given are looked at. ``since`` is included and ``until`` is not. ``scope`` says in
    words what was looked at; without it, these choices do. The opinion is the rule's, unless a person, ``opinion_by``,
    gives another and a ``reason``.

    Raises ``UsageError`` when there is no ledger or an argument cannot be used, ``LedgerError`` when the store fails.
    A ledger that was changed is a finding.
    """
    times = {"since": format_time(since) if since else None, "until": format_time(until) if until else None}
    wanted = AuditSelection(**times, gate=gate, execution=execution, subject=subject)
    gathering = Evidence(wanted)
    if isinstance(scope, str):
        raise UsageError(f"scope is a list of texts, got one: {clean(scope[:80])!r}; write it in brackets")
    if isinstance(ledger, Ledger):
        checked = await ledger.verify(head, public_key=public_key, each=gathering.add)
    else:
        check: Any = verify_export
        checked = await asyncio.to_thread(check, ledger, head=head, public_key=public_key, each=gathering.add)
    audit = make_audit(gathering, checked, objectives=objectives, scope=tuple(scope) or _describe_scope(wanted))
    basis = replace(audit.basis or AuditBasis(verified=False), since=since, until=until)
    given = opinion or audit.opinion
    more = {"opinion": given, "opinion_by": opinion_by, "reason": reason, "agent_id": agent_id}
    return replace(audit, basis=basis, **more, execution_id=execution, metadata=dict(metadata or {}))


def make_audit(gathering: Evidence, checked: Verification, *, objectives: str, scope: tuple[str, ...]) -> AuditEntry:
    """The audit of what was gathered, with the rule's opinion; pure."""
    items = gathering.list_items()
    found = _list_found(gathering, checked, items)
    counts = Findings(**{name: sum(item.severity == name for item in found) for name in SEVERITIES})
    basis = _make_basis(gathering, checked, items)
    flawed = {item.seq for item in found}
    listed = sorted(items, key=lambda item: (item.seq not in flawed, item.seq))[:MOST_LISTED]
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
        judge_result=_read_one(gathering.find_whole()),
        found=tuple(found[:MOST_LISTED]),
        judged=tuple(describe(item) for item in listed),
        basis=basis,
    )


async def record_opinion(ledger: Ledger, audit: AuditEntry) -> int:
    """Record in a ledger that a person gave an audit another opinion than the rule's, and return the entry's place.

    Raises ``UsageError`` when nobody did.
    """
    if audit.opinion_by is None:
        raise UsageError("an audit whose opinion is the rule's can be derived again, so there is nothing to record")
    head = audit.basis.head if audit.basis is not None else None
    said = {"schema": "adjudge/audit-override/1", "audit": audit.id, "opinion": audit.opinion}
    said |= {"by": audit.opinion_by, "reason": audit.reason}
    more = {"computed_opinion": audit.computed_opinion, "findings": audit.findings.to_dict()}
    return await ledger.append({**said, **more, "head": str(head) if head else None}, kind="override")


def _make_basis(gathering: Evidence, checked: Verification, items: Sequence[JudgedItem]) -> AuditBasis:
    lost = sum(item.code == "erased" and item.kind in {"result", "decision"} for item in gathering.list_loose())
    return AuditBasis(
        verified=checked.valid,
        head=checked.head,
        problem=f"{checked.detail} [{checked.code}]" if not checked.valid else "",
        pinned_head=checked.pinned_head,
        signatures=checked.signatures,
        unseen=checked.unseen,
        entries=gathering.entries,
        first=gathering.first,
        last=gathering.last,
        # What was erased was judged, and by now nobody can say how: else erasing would be a way to a better opinion.
        judged=sum(is_judged(item) for item in items) + lost,
        undecided=sum(is_undecided(item) for item in items) + lost,
        gate=gathering.wanted.gate,
        execution=gathering.wanted.execution,
        subject=gathering.wanted.subject,
    )


def _list_found(gathering: Evidence, checked: Verification, items: Iterable[JudgedItem]) -> list[Finding]:
    """All findings, gravest first."""
    found = [finding for item in items for finding in list_findings(item)]
    found += [find_loose(loose, checked.erased) for loose in gathering.list_loose()]
    if not checked.valid:
        severity = SEVERITY_OF["ledger_changed"]
        found.append(Finding(severity=severity, code="ledger_changed", detail=checked.detail, seq=checked.seq))
    return sorted(found, key=lambda item: (SEVERITIES.index(item.severity), item.seq or 0))


def _list_rule_results(items: Iterable[JudgedItem]) -> tuple[RuleResult, ...]:
    """What rules said, those that failed first, each with the place of its entry."""
    found = [(rule, item.seq) for item in items for rule in item.facts.rules]
    found.sort(key=lambda pair: (pair[0].passed, pair[1]))
    return tuple(replace(rule, metadata={"ledger_seq": seq}) for rule, seq in found[:MOST_LISTED])


def _read_one(said: Mapping[str, Any] | None) -> JudgeResult | None:
    """The result, where there is exactly one and it is of a size for a report."""
    if said is None or not _fits(said):
        return None
    try:
        return read_result(said)
    except UsageError:
        return None


def _fits(value: object) -> bool:
    left: list[tuple[Any, int]] = [(value, 0)]
    count = 0
    while left:
        item, depth = left.pop()
        count += 1
        if count > _MOST_VALUES or depth > _DEEPEST or (isinstance(item, str) and len(item) > 100_000):
            return False
        inner = item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
        left += [(each, depth + 1) for each in inner]
    return True


def _describe_scope(wanted: AuditSelection) -> tuple[str, ...]:
    names = ("gate", "execution", "subject", "since", "until")
    said = tuple(f"{name} {getattr(wanted, name)}" for name in names if getattr(wanted, name) is not None)
    return said or ("the whole ledger",)
