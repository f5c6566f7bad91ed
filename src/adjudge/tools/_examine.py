"""What code can say about a candidate before any model is asked: whether its own evidence speaks against it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjudge.tools._reuse import validate_reuse
from adjudge.tools._strict import find_odd, is_json
from adjudge.tools._types import MISSING, MOST_VALUES, ToolCandidate, ToolTest

MOST_CHARACTERS = 400_000
"""How long everything about a candidate may be together; a review of more than that is none."""


def find_fault(candidate: ToolCandidate) -> str | None:
    """The first thing that rules a candidate out, in a sentence, or ``None``; nothing of it is run."""
    if not candidate.source.strip() and not (candidate.mode == "compose" and candidate.steps):
        return "there is no source, and no steps, to review"
    if not candidate.tests:
        return "there is no recorded test"
    for what, schema in (("input", candidate.input_schema), ("output", candidate.output_schema)):
        fault = _find_schema_fault(what, schema)
        if fault:
            return fault
    return _find_odd_test(candidate.tests) or _find_failed_test(candidate)


def _find_odd_test(tests: Sequence[ToolTest]) -> str | None:
    """What of the tests is not JSON; together they are bounded, or a thousand large ones would hold up everybody."""
    if is_json([value for test in tests for _, value in _list_values(test)], most=MOST_VALUES):
        return None
    for place, test in enumerate(tests[:MOST_VALUES], 1):
        for what, value in _list_values(test):
            if not is_json((value,), most=MOST_VALUES):
                return f"test {place} has an {what} that is not JSON: {find_odd(value, most=MOST_VALUES)}"
    return f"the tests have more than {MOST_VALUES:,} values together"


def _list_values(test: ToolTest) -> list[tuple[str, Any]]:
    given = [("input", test.input), ("output", test.output), ("expected output", test.expected)]
    return [(what, value) for what, value in given if value is not MISSING]


def _find_failed_test(candidate: ToolCandidate) -> str | None:
    for place, test in enumerate(candidate.tests, 1):
        fault = _find_test_fault(test, candidate.output_schema)
        if fault:
            return f"test {place} {fault}"
    return None


def _find_schema_fault(what: str, schema: Any) -> str | None:
    if schema is None:
        return None
    found = [item for item in validate_reuse("", None, schema).schema_errors if item.startswith("schema: ")]
    return f"the {what} {found[0]}" if found else None


def _find_test_fault(test: ToolTest, schema: Any) -> str | None:
    if not test.success or test.error is not None:
        return "failed" + (f": {test.error}" if test.error else "")
    if test.expected is not MISSING and not is_same(test.output, test.expected):
        return "put out something else than was expected"
    if schema is not None:
        found = validate_reuse("", test.output, schema)
        return None if found.valid else f"does not fit the output schema: {found.schema_errors[0]}"
    return None


def is_same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal as JSON: 1 is 1.0 and not true, and the order of members says nothing."""
    waiting: list[tuple[Any, Any]] = [(one, other)]
    while waiting:
        left, right = waiting.pop()
        if isinstance(left, dict) and isinstance(right, dict):
            if left.keys() != right.keys():
                return False
            waiting += [(left[key], right[key]) for key in left]
        elif isinstance(left, list | tuple) and isinstance(right, list | tuple):
            if len(left) != len(right):
                return False
            waiting += zip(left, right, strict=True)
        elif isinstance(left, bool) is not isinstance(right, bool) or left != right:
            return False
    return True
