"""Audit reports that are derived from a ledger; docs/audit.md says by which rule, and how to check one."""
