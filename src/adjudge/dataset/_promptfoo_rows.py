"""Tests of promptfoo as they stand: a mapping, or a row of a table whose cells name assertions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from adjudge.errors import UsageError
from adjudge.rules._words import show

_SIMILAR = ("similar", "similar:cosine", "similar:dot", "similar:euclidean")
GOLD = frozenset(
    (*_SIMILAR, "equals", "factuality", "model-graded-factuality", "levenshtein", "rouge-n", "bleu", "gleu", "meteor")
)
"""Assertions whose value is a known good answer."""
WORDED = frozenset(("llm-rubric", "model-graded-closedqa", "g-eval", "agent-rubric", "search-rubric"))
"""Assertions whose value says in words what is good."""
_OTHERS = """
answer-relevance classifier contains contains-all contains-any contains-html contains-json contains-sql
contains-xml context-faithfulness context-recall context-relevance conversation-relevance cost finish-reason
grade guardrails icontains icontains-all icontains-any is-html is-json is-refusal is-sql
is-valid-function-call is-valid-openai-function-call is-valid-openai-tools-call is-xml javascript fn eval
latency max-score moderation perplexity perplexity-score pi python regex ruby select-best skill-used starts-with
tool-call-f1 trace-error-spans trace-span-count trace-span-duration trajectory:goal-success trajectory:step-count
trajectory:tool-args-match trajectory:tool-sequence trajectory:tool-used webhook word-count
"""
"""The other types of promptfoo 0.121.20: a cell that names none is an answer, which a new type would be taken for."""
_KNOWN = sorted({*GOLD, *WORDED, *_OTHERS.split()}, key=len, reverse=True)
_TYPE = re.compile(
    rf"(?P<type>(?:not-)?(?:{'|'.join(map(re.escape, _KNOWN))}))"
    r"(?:\((?P<threshold>[0-9.]{1,20})\))?(?::(?P<value>.*))?",
    re.DOTALL,
)


def check_test(test: Any) -> Mapping[str, Any] | UsageError:
    """A test, or why it is none."""
    if not isinstance(test, dict):
        return UsageError(f"a test must be a mapping, got {show(test)}")
    if "path" in test and not test.get("vars"):
        return UsageError(f"the tests of {show(test['path'])} are made by code; export them to a file first")
    for key, kinds in (("vars", dict), ("metadata", dict), ("options", dict), ("assert", list)):
        if not isinstance(test.get(key) or kinds(), kinds):
            return UsageError(
                f"{key!r} of a test must be a {'mapping' if kinds is dict else 'list'}, got {show(test[key])}"
            )
    return test


def read_columns(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a table of tests: columns with two underscores are promptfoo's, all others are variables."""
    test: dict[str, Any] = {"vars": {}, "metadata": {}, "assert": []}
    for name, cell in row.items():
        if name.startswith("__expected"):
            test["assert"] += [_read_assertion(cell)] if cell.strip() else []
        elif name.startswith("__metadata:"):
            key = name.removeprefix("__metadata:")
            if cell.strip():
                test["metadata"][key.removesuffix("[]")] = _split(cell) if key.endswith("[]") else cell
        elif name.startswith("__"):
            if cell:
                test[name.removeprefix("__")] = cell
        else:
            test["vars"][name] = cell
    return test


def _split(cell: str) -> list[str]:
    return [part.replace("\\,", ",").strip() for part in re.split(r"(?<!\\),", cell)]


def _read_assertion(cell: str) -> dict[str, Any]:
    """``contains: Paris`` as an assertion; a text that names no type is an answer to be equal to."""
    found = _TYPE.fullmatch(cell.strip())
    if found is None and cell.strip().startswith("file://"):  # a function, which is no answer to be equal to
        return {"type": "python" if ".py" in Path(cell).suffix else "javascript", "value": cell.strip()}
    if found is None:
        return {"type": "equals", "value": cell}
    kind = {"grade": "llm-rubric", "fn": "javascript", "eval": "javascript"}.get(found["type"], found["type"])
    said: dict[str, Any] = {"type": kind}
    if found["value"] is not None:
        said["value"] = found["value"].strip()
    return said | ({"threshold": float(found["threshold"])} if _is_number(found["threshold"]) else {})


def _is_number(text: str | None) -> bool:
    return text is not None and re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", text) is not None
