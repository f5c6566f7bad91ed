"""Results of promptfoo (``promptfoo eval -o results.json``): tests with the answers that they were given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from adjudge.dataset._promptfoo_rows import check_test
from adjudge.errors import UsageError
from adjudge.rules._words import flatten, show

_ERROR = 2
"""The reason of a failure that is the provider's, where no answer was judged."""
_BY_PERSON = "human"
"""The assertion that stands for a thumb up or down in promptfoo's viewer."""
_KEPT = ("provider", "success", "score", "namedScores", "gradingResult")


def list_results(data: Any) -> Iterator[Mapping[str, Any] | UsageError] | None:
    """The results in a document, or ``None`` for one that holds none."""
    outer = data.get("results") if isinstance(data, dict) else None
    inner = outer.get("results") if isinstance(outer, dict) else None
    return map(_check_result, inner) if isinstance(inner, list) else None


def is_result(item: Mapping[str, Any]) -> bool:
    """Whether this is a test with its answer, and not a test alone."""
    return isinstance(item.get("testCase"), dict) and "promptIdx" in item


def _check_result(item: Any) -> Mapping[str, Any] | UsageError:
    fits = isinstance(item, dict) and is_result(item)
    return item if fits else UsageError(f"a result must be an object with a 'testCase', got {show(item)}")


def open_result(item: Mapping[str, Any]) -> tuple[dict[str, Any], Mapping[str, Any], dict[str, Any]]:
    """The test of a result with its answer, its variables, and the parts of the case that are known.

    A result without an answer is an error: judged as an empty one, a rubric that only forbids things would pass it.
    """
    place = f"test {_count(item.get('testIdx'))}, prompt {_count(item.get('promptIdx'))}"
    test = check_test(item["testCase"])
    if isinstance(test, UsageError):
        raise test
    response = item.get("response")
    response = response if isinstance(response, dict) else {}
    error = response.get("error") or (item.get("error") if item.get("failureReason") == _ERROR else None)
    if error or response.get("output") is None:
        why = f" ({flatten(str(error))[:200]})" if error else ""
        raise UsageError(f"the result of {place} has no answer{why}; run it again")
    prompt = item.get("prompt")
    asked = prompt.get("raw") if isinstance(prompt, dict) else prompt
    parts = {"task": asked, "label": _find_label(item.get("gradingResult"))}
    known = {key: value for key, value in parts.items() if value is not None}
    given = item.get("vars")
    variables = given if isinstance(given, dict) else {}
    said = {key: item[key] for key in _KEPT if item.get(key) is not None} | {"variables": variables}
    return {**test, **said}, variables, {"id": place, "content": response["output"], **known}


def _count(index: Any) -> str:
    return str(index + 1) if isinstance(index, int) else show(index)


def _find_label(grading: Any) -> bool | None:
    """What a person said of the answer; what assertions said of it is no label."""
    parts = grading.get("componentResults") if isinstance(grading, dict) else None
    for part in parts if isinstance(parts, list) else ():
        assertion = part.get("assertion") if isinstance(part, dict) else None
        if isinstance(assertion, dict) and assertion.get("type") == _BY_PERSON and isinstance(part.get("pass"), bool):
            return part["pass"]
    return None
