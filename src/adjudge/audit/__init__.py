"""Audit reports that are derived from a ledger; docs/audit.md says by which rule, and how to check one."""

from adjudge.audit._derive import derive_audit, record_opinion
from adjudge.audit._entry import AuditBasis, AuditEntry, Finding, Findings, Judged
from adjudge.audit._file import parse_audit, write_audit
from adjudge.audit._opinion import Opinion, choose_opinion
from adjudge.audit._query import AuditQuery
from adjudge.audit._read import read_audit

__all__ = [
    "AuditBasis",
    "AuditEntry",
    "AuditQuery",
    "Finding",
    "Findings",
    "Judged",
    "Opinion",
    "choose_opinion",
    "derive_audit",
    "parse_audit",
    "read_audit",
    "record_opinion",
    "write_audit",
]
