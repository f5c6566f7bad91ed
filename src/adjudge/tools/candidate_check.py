"""The faults that rule a forged candidate out before anybody is asked: no source, no test, a test that fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjudge.formats.json import find_non_json, is_json, is_same
from adjudge.tools.reuse import validate_reuse
from adjudge.tools.tool import MISSING, MOST_VALUES, ToolCandidate, ToolTest


def find_fault(candidate: ToolCandidate) -> str | None:
    """Find the first fault that rules a candidate out before any review, as a sentence; ``None`` without one.

    Nothing of the candidate is run: its tests are records of earlier runs.
    """
    if not candidate.source.strip() and not (candidate.mode == "compose" and candidate.steps):
        return "there is no source, and no steps, to review"
    if not candidate.tests:
        return "there is no recorded test"
    for label, schema in (("input", candidate.input_schema), ("output", candidate.output_schema)):
        fault = _find_schema_fault(label, schema)
        if fault:
            return fault
    return _find_non_json_test(candidate.tests) or _find_failed_test(candidate)


def _find_non_json_test(tests: Sequence[ToolTest]) -> str | None:
    """Find a fault in the values of the tests: one of them is not JSON, or they are too many together.

    They are counted together, because a thousand large tests would hold up every other review.
    """
    if is_json([value for test in tests for _, value in _list_test_values(test)], most=MOST_VALUES):
        return None
    for number, test in enumerate(tests[:MOST_VALUES], 1):
        for label, value in _list_test_values(test):
            if not is_json((value,), most=MOST_VALUES):
                return f"test {number} has an {label} that is not JSON: {find_non_json(value, most=MOST_VALUES)}"
    return f"the tests have more than {MOST_VALUES:,} values together"


def _list_test_values(test: ToolTest) -> list[tuple[str, Any]]:
    """List the values of a test, each with its name for a message, without those that are missing."""
    labelled_values = [("input", test.input), ("output", test.output), ("expected output", test.expected)]
    return [(label, value) for label, value in labelled_values if value is not MISSING]


def _find_failed_test(candidate: ToolCandidate) -> str | None:
    """Find the first recorded test that failed, and what is wrong with it; ``None`` where all passed."""
    for number, test in enumerate(candidate.tests, 1):
        fault = _find_test_fault(test, candidate.output_schema)
        if fault:
            return f"test {number} {fault}"
    return None


def _find_schema_fault(label: str, schema: Any) -> str | None:
    """Find out what is wrong with a schema of a candidate; ``None`` where it is valid, or there is none."""
    if schema is None:
        return None
    # Errors of the schema itself begin with "schema: ". The output that is checked, None, does not matter.
    problems = [problem for problem in validate_reuse("", None, schema).schema_errors if problem.startswith("schema: ")]
    return f"the {label} {problems[0]}" if problems else None


def _find_test_fault(test: ToolTest, schema: Any) -> str | None:
    """Return what is wrong with a recorded test, in words that follow its number; ``None`` where nothing is."""
    if not test.success or test.error is not None:
        return "failed" + (f": {test.error}" if test.error else "")
    if test.expected is not MISSING and not is_same(test.output, test.expected):
        return "gave another output than `expected`"
    if schema is not None:
        verdict = validate_reuse("", test.output, schema)
        return None if verdict.valid else f"does not fit the output schema: {verdict.schema_errors[0]}"
    return None
