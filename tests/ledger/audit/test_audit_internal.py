"""The severities of findings."""

from __future__ import annotations

from adjudge.ledger.audit.entry import SEVERITY_OF
from kit import house


def test_every_finding_has_its_severity():
    """Each code stands in exactly one row of the page's table."""
    page = (house.ROOT / "docs" / "audit.md").read_text("utf-8")
    rows = {code: severity for code, severity in SEVERITY_OF.items() if f"| `{code}` | {severity} |" in page}

    assert rows == SEVERITY_OF
