"""Test cases of promptfoo as cases: a configuration, a file of tests, or the results of an eval, which have answers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

from adjudge.dataset.dataset import Dataset, Notes, OnBadRow, add_note
from adjudge.dataset.fields import Fields, read_fields, take_mapped
from adjudge.dataset.formats import Row, check_path
from adjudge.dataset.importers.promptfoo_files import GOLD, WORDED, check_test, list_tests, read_document
from adjudge.errors import UsageError
from adjudge.formats.text import flatten, show

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


MOST_COMBINATIONS = 1_000
"""Cases that the lists among the variables of one test may stand for."""


_APART = frozenset(("vars", "metadata", "providerOutput"))

_NOTHING: tuple[Any, ...] = (None, "", [], {})

_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")


def import_promptfoo(
    path: str | os.PathLike[str],
    *,
    fields: Mapping[str, str | None] | None = None,
    on_bad_row: OnBadRow = "fail",
) -> Dataset:
    """The tests of promptfoo in a configuration, in a CSV, JSON, JSON-lines or YAML file of tests, or in results.

    ``fields`` says which variable is which part of the case. Without it the content is ``providerOutput`` where a test
    has one, else its variables (the value of the only one, or all of them), and the reference is the value of the first
    assertion that compares with one (``equals``, ``factuality``, ``similar``, ...). Variables that are nothing else are
    the task. In results (``promptfoo eval -o results.json``, or ``.jsonl``) the content is the answer, the task is the
    prompt, and the label is a person's rating. The sentences of ``llm-rubric`` stand in ``metadata["criteria"]``, every
    assertion and option in ``metadata["promptfoo"]``; ``dataset.notes`` counts what is kept there and not applied.
    """
    name = os.fspath(path)
    check_path(name)
    spec = read_fields(fields, table=False)
    return Dataset(
        lambda notes: _read_cases(name, spec, notes),
        name=name,
        path=name,
        unit="test",
        on_bad_row=on_bad_row,
    )


def _read_cases(name: str, spec: Fields, notes: Notes) -> Iterator[Row]:
    number = 0
    for test in _list_items(Path(name)):
        number += 1
        if isinstance(test, UsageError):
            yield number, test
            continue
        try:
            if is_result(test):
                yield number, _make_row(*open_result(test), spec, notes)
                continue
            combined = list(_combine(test))
            for turn, variables in enumerate(combined, 1):
                told = f"{number}.{turn}" if len(combined) > 1 else str(number)
                yield number, _make_row(test, variables, {"id": told}, spec, notes)
        except UsageError as error:
            yield number, error


def _list_items(path: Path) -> Iterator[Mapping[str, Any] | UsageError]:
    data = read_document(path) if path.suffix.lower() in {".yaml", ".yml", ".json"} else None
    results = list_results(data)
    yield from list_tests(path, data) if results is None else results


def _combine(test: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The variables of a test; a list stands for a test with each of its values."""
    variables = dict(test.get("vars") or {})
    options = test.get("options")
    if isinstance(options, dict) and options.get("disableVarExpansion"):
        yield variables
        return
    # As promptfoo does: a list of messages, of numbers or of nothing is one value.
    lists = {name: value for name, value in variables.items() if isinstance(value, list) and _is_choice(value)}
    count = 1
    for value in lists.values():
        count *= len(value)
    if count > MOST_COMBINATIONS:
        raise UsageError(f"its lists of variables make {count:,} tests, and at most {MOST_COMBINATIONS:,} are made")
    for chosen in product(*lists.values()):
        yield variables | dict(zip(lists, chosen, strict=True))


def _is_choice(value: list[Any]) -> bool:
    return bool(value) and isinstance(value[0], str)


def _make_row(
    test: Mapping[str, Any], variables: Mapping[str, Any], known: Mapping[str, Any], spec: Fields, notes: Notes
) -> dict[str, Any]:
    """The case of a test; ``known`` is what stands in it where no variable was mapped to it."""
    found, used = take_mapped(variables, spec)
    found = {**known, **found}
    assertions = list(_list_assertions(test.get("assert")))
    gold = None if "reference" in found else _find_gold(assertions, variables, used, found)
    others = {name: value for name, value in variables.items() if name not in used}
    if "content" not in found:
        found["content"], others = _choose_content(test, others, notes)
    if others and "task" not in found:
        found["task"] = _take_one(others)
    for item in assertions:
        if item is not gold:
            add_note(notes, f"assertion {show(item.get('type', '$ref'))} kept in the metadata, not applied")
    for value in variables.values():
        if _names_file(value):
            add_note(notes, "variable that names a file, which was not read")
    return found | {"metadata": {**_write_metadata(test, assertions), **(found.get("metadata") or {})}}


def _list_assertions(given: Any) -> Iterator[dict[str, Any]]:
    """The assertions of a test, with those of a set; a set with a threshold stays one, as not all of it must hold."""
    for item in given or ():
        if not isinstance(item, dict):
            continue
        kind, parts = item.get("type"), item.get("assert") or []
        if not isinstance(kind, str | None) or not isinstance(parts, list):
            raise UsageError(f"an assertion must have a text as its type and a list as its 'assert', got {show(item)}")
        if kind == "assert-set" and item.get("threshold") is None:
            yield from _list_assertions(parts)
        else:
            yield item


def _names_file(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("file://")


def _find_gold(
    assertions: list[dict[str, Any]], variables: Mapping[str, Any], used: set[str], found: dict[str, Any]
) -> dict[str, Any] | None:
    """The first assertion that says what a good answer is, which is put among what was found."""
    for item in assertions:
        value = _fill_in(item.get("value"), variables, used) if item.get("type") in GOLD else None
        if value is not None:
            found["reference"] = value
            return item
    return None


def _fill_in(value: Any, variables: Mapping[str, Any], used: set[str]) -> Any:
    """A reference with the variable that it names; it is nothing where more of it is a template."""
    named = _VARIABLE.fullmatch(value.strip()) if isinstance(value, str) else None
    if named is not None and named[1] in variables:
        used.add(named[1])  # the answer must not stand in the task, or in what is judged
        return variables[named[1]]
    return None if isinstance(value, str) and ("{{" in value or _names_file(value)) else value


def _choose_content(test: Mapping[str, Any], others: dict[str, Any], notes: Notes) -> tuple[Any, dict[str, Any]]:
    if test.get("providerOutput") is not None:
        return test["providerOutput"], others
    if not others:
        raise UsageError("the test has neither variables nor an answer (providerOutput), so nothing can be judged")
    add_note(notes, "test without an answer: its variables are the content")
    return _take_one(others), {}


def _take_one(variables: Mapping[str, Any]) -> Any:
    """The value of the only variable, or all of them; ``None`` when there is none."""
    return next(iter(variables.values())) if len(variables) == 1 else dict(variables) or None


def _write_metadata(test: Mapping[str, Any], assertions: list[dict[str, Any]]) -> dict[str, Any]:
    worded = [item.get("value") for item in assertions if item.get("type") in WORDED]
    criteria = [text for value in worded for text in (value if isinstance(value, list) else [value])]
    criteria = [text for text in criteria if isinstance(text, str) and text.strip() and not _names_file(text)]
    own = {key: test[key] for key in test if key not in _APART and test[key] not in _NOTHING}
    said = {**(test.get("metadata") or {})}
    if criteria:
        said["criteria"] = criteria
    return said | ({"promptfoo": own} if own else {})
