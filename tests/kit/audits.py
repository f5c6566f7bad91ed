"""Audits for tests: rows of a ledger that need no store, and the audit that is made of them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from adjudge import Decision, JudgeResult
from adjudge.ledger import AuditEntry, Row, derive_audit, read_audit
from kit.ledgers import NO_PREV, export, rehash

Event = tuple[str, Any]
"""The kind of an entry, and what it holds; ``None`` for a payload that was erased."""

PASSED = JudgeResult(outcome="passed", judge="careful", score=0.9)
FAILED = JudgeResult(outcome="failed", judge="careful", score=0.1)
UNDECIDED = JudgeResult(outcome="undecided", judge="careful", undecided_because="timeout")


def make_rows(*events: Event) -> list[Row]:
    """A correct chain of entries, one each second, after a genesis entry; an entry's place is its number plus 2."""
    begin = ("genesis", {"schema": "adjudge/ledger/1", "public_key": None, "store_content": "full"})
    rows: list[Row] = []
    for place, (kind, value) in enumerate([begin, *events], 1):
        plain = value.to_dict() if hasattr(value, "to_dict") else value
        payload = None if value is None else json.dumps(plain, sort_keys=True).encode()
        subject = str((plain or {}).get("subject") or "") if isinstance(plain, dict) else ""
        at = f"2026-11-20T12:00:{place:02d}.000000Z"
        rows.append((place, f"id-{place}", at, kind, subject, payload, "0" * 64, NO_PREV, "", None))
    return rehash(rows)


def read_report(text: str) -> AuditEntry:
    """The audit in the front matter of a report, as any reader of YAML reads it."""
    front = text.split("\n---\n", 1)[0].removeprefix("---\n")
    data = yaml.load(front, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return read_audit(json.loads(json.dumps(data, default=str)))


def audit_rows(rows: list[Row], **options: Any) -> AuditEntry:
    """The audit of some rows."""
    with TemporaryDirectory() as folder:
        file = export(rows, Path(folder) / "export.jsonl")
        return asyncio.run(derive_audit(file, objectives="Whether it holds.", scope=["all"], **options))


def audit(*events: Event, **options: Any) -> AuditEntry:
    """The audit of a correct ledger with some entries."""
    return audit_rows(make_rows(*events), **options)


def find_codes(entry: AuditEntry) -> list[str]:
    return [item.code for item in entry.found]


def decide(result: JudgeResult | None, **more: Any) -> Event:
    """A gate's decision about a result; blocked by its judge unless more is said."""
    members: dict[str, Any] = {"gate": "publish", "allowed": False, "decided_by": "judge", "result": result}
    return "decision", Decision(**members | more)


def request(result: JudgeResult, approval: str = "a1", **more: Any) -> Event:
    return "approval.requested", {"approval": approval, "result": result.to_dict(), **more}


def shorten(result: JudgeResult) -> dict[str, Any]:
    """A result as later entries about an approval repeat it."""
    return {
        "id": result.id,
        "outcome": result.outcome,
        "judge": result.judge,
        "undecided_because": result.undecided_because,
    }


def close(result: JudgeResult, *by: str, approved: bool, approval: str = "a1", **more: Any) -> Event:
    status = "approved" if approved else "denied"
    members = {"approval": approval, "result": shorten(result), "status": status, "closed_by": list(by)}
    return "approval.closed", members | {"decided_by": "human" if by else "policy"} | more
