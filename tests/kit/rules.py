"""Each rule that ships, and a rule checked at once."""

from __future__ import annotations

import asyncio
from typing import Any

from adjudge import RuleResult
from adjudge.rules import as_rule


def check(rule: Any, content: Any) -> RuleResult:
    return asyncio.run(as_rule(rule).check(content))


EXAMPLES = {
    "contains": {"contains": "a"},
    "not_contains": {"not-contains": ["a"]},
    "regex": {"regex": "a"},
    "equals": {"equals": {"a": [1]}, "absent": True},
    "starts_with": {"starts-with": "a", "ignore_case": True},
    "length": {"length": 3},
    "json": "json",
    "json_schema": {"json-schema": True},
    "syntax": {"syntax": "yaml"},
    "urls": {"urls": ["example.org"], "schemes": "https", "bare": True},
    "secrets": {"secrets": True, "ignore": ["x"], "assignments": False},
    "personal_data": {"personal-data": "email", "ignore": "x"},
    "unicode": {"unicode": ["bidi"]},
    "substance": {"name": "substance", "severity": "info"},
    "model_markup": {"model-markup": ["fence", "reply"]},
    "some_of": {"some-of": ["json", {"contains": "a"}], "share": 0.5, "weights": [1, 2]},
    "similarity": "similarity",
    "called": {"name": "called", "tool": ["search", "fetch"], "min": 2},
    "not_called": {"not-called": "delete_*", "allow": "delete_draft"},
    "call_order": {"call_order": ["search", "fetch"]},
    "trajectory": {"trajectory": {"calls": ["search", {"tool": "fetch", "arguments": {"a": 1}}], "mode": "in_order"}},
    "files": {"files": ["src/**"], "deleted": 0},
    "arguments": {"arguments": {"tool": "Edit", "schema": {"required": ["path"]}}},
    "commands": {"commands": {"only": ["npm test"], "never": "curl"}},
    "limits": {"limits": {"calls": 20, "cost": 0.5}},
    "visible": {"visible": True, "tools": ["lookup"], "commands": "jq"},
    "no_errors": {"no-errors": True},
    "no_repeats": {"no_repeats": 3},
    "recorded": {"recorded": 812, "max": 500.5, "measure": "latency in ms"},
}
"""An example of each rule that ships, as a file writes it."""
