"""Looking for audits, and audits as plain data."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adjudge import JudgeResult, UsageError
from adjudge.ledger import AuditBasis, AuditEntry, AuditQuery, Finding, Findings
from kit.audits import PASSED

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
WRITTEN = AuditEntry(
    objectives="o",
    opinion="qualified",
    findings=Findings(critical=1, major=2),
    agent_id="writer",
    execution_id="x",
    created_at=NOON,
)


@pytest.mark.parametrize(
    ("filters", "matches"),
    [
        ({}, True),
        ({"opinion": "qualified"}, True),
        ({"opinion": "adverse"}, False),
        ({"opinion": ("adverse", "qualified")}, True),
        ({"opinion": ()}, False),
        ({"min_critical": 1}, True),
        ({"min_critical": 2}, False),
        ({"min_major": 2}, True),
        ({"min_major": 3}, False),
        ({"min_critical": 0}, True),
        ({"agent_id": "writer"}, True),
        ({"agent_id": "other"}, False),
        ({"execution_id": "x"}, True),
        ({"execution_id": "y"}, False),
        ({"since": NOON}, True),
        ({"since": NOON + SECOND}, False),
        ({"until": NOON}, True),
        ({"until": NOON - SECOND}, False),
    ],
)
def test_a_query_takes_what_matches_everything(filters: dict[str, Any], matches: bool):
    """Each member narrows, and each bound is included."""
    assert AuditQuery(**filters).matches(WRITTEN) is matches


@pytest.mark.parametrize(
    "filters",
    [
        {"opinion": "fine"},
        {"opinion": ["fine"]},
        {"min_major": -1},
        {"min_critical": True},
        {"since": datetime(2026, 1, 1)},  # noqa: DTZ001 - the very thing that is refused
    ],
    ids=range(5),
)
def test_a_query_that_could_find_nothing_is_refused(filters: dict[str, Any]):
    """A mistyped opinion would find no audit, which reads like there being none."""
    with pytest.raises(UsageError):
        AuditQuery(**filters)


def test_values_are_plain_data():
    """Each has a dictionary of its own, and a basis without a ledger is none."""
    result: JudgeResult = PASSED
    entry = replace(WRITTEN, judge_result=result, basis=None)

    assert entry.to_dict()["schema"] == "adjudge/audit/1"
    assert entry.to_dict()["judge_result"]["outcome"] == "passed"
    assert entry.explain() == "qualified"
    assert Finding(severity="minor", code="stopped").to_dict()["seq"] is None
    assert AuditBasis(verified=True).to_dict()["head"] is None


@pytest.mark.parametrize("count", [-1, True, 1.0, "1", 2**53])
def test_findings_are_counted(count: Any):
    """From 0 up, in whole numbers that every reader of JSON reads."""
    with pytest.raises(UsageError, match="counted from 0 up"):
        Findings(critical=count)
