"""Test cases of promptfoo as cases: a configuration with ``tests``, or a file of tests.

Nothing of a configuration is executed, and nothing outside its folder is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from itertools import islice, product
from pathlib import Path
from typing import Any

from adjudge.dataset._dataset import Dataset, Notes, OnBadRow, add_note
from adjudge.dataset._fields import Fields, read_fields, take_mapped
from adjudge.dataset._formats import LARGEST_YAML, MOST_YAML, Row, find_format, read_rows
from adjudge.dataset._source import check_path, read_whole
from adjudge.errors import UsageError
from adjudge.rules._words import show

MOST_FILES = 1_000
MOST_COMBINATIONS = 1_000
"""Cases that the lists among the variables of one test may stand for."""

_GOLD = frozenset(
    ("equals", "factuality", "model-graded-factuality", "similar", "levenshtein", "rouge-n", "bleu", "gleu", "meteor")
)
"""Assertions whose value is a known good answer."""
_WORDED = {"llm-rubric", "model-graded-closedqa", "g-eval"}
"""Assertions whose value says in words what is good."""
_OTHERS = """
answer-relevance classifier contains contains-all contains-any contains-html contains-json contains-sql
contains-xml context-faithfulness context-recall context-relevance conversation-relevance cost finish-reason
grade guardrails icontains icontains-all icontains-any is-html is-json is-refusal is-sql
is-valid-function-call is-valid-openai-function-call is-valid-openai-tools-call is-xml javascript fn eval
latency moderation perplexity perplexity-score pi python regex ruby select-best starts-with tool-call-f1 webhook
"""
_KNOWN = sorted({*_GOLD, *_WORDED, *_OTHERS.split()}, key=len, reverse=True)
_TYPE = re.compile(
    rf"(?P<type>(?:not-)?(?:{'|'.join(map(re.escape, _KNOWN))}))"
    r"(?:\((?P<threshold>[0-9.]{1,20})\))?(?::(?P<value>.*))?",
    re.DOTALL,
)
_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")


def import_promptfoo(
    path: str | os.PathLike[str],
    *,
    fields: Mapping[str, str | None] | None = None,
    on_bad_row: OnBadRow = "fail",
) -> Dataset:
    """The test cases of promptfoo in a configuration, or in a CSV, JSON, JSON-lines or YAML file of tests.

    ``fields`` says which variable is which part of the case. Without it the content is ``providerOutput`` where a test
    has one, else its variables (the value of the only one, or all of them), and the reference is the value of the first
    assertion that compares with one (``equals``, ``factuality``, ``similar``, ...). Variables that are nothing else are
    the task. The sentences of ``llm-rubric`` stand in ``metadata["criteria"]``, every assertion and option in
    ``metadata["promptfoo"]``; ``dataset.notes`` counts what is kept there and not applied.
    """
    name = os.fspath(path)
    check_path(name)
    spec = read_fields(fields, table=False)
    return Dataset(
        lambda notes: _read_cases(name, spec, notes),
        name=name,
        unit="test",
        on_bad_row=on_bad_row,
    )


def _read_cases(name: str, spec: Fields, notes: Notes) -> Iterator[Row]:
    number = 0
    for test in _list_tests(Path(name)):
        number += 1
        if isinstance(test, UsageError):
            yield number, test
            continue
        try:
            combined = list(_combine(test))
            for turn, variables in enumerate(combined, 1):
                told = f"{number}.{turn}" if len(combined) > 1 else str(number)
                yield number, _make_row(test, variables, told, spec, notes)
        except UsageError as error:
            yield number, error


def _list_tests(path: Path) -> Iterator[Mapping[str, Any] | UsageError]:
    """The tests that a file names, with what the configuration adds to each."""
    if path.suffix.lower() not in {".yaml", ".yml", ".json"}:
        yield from _read_tests(path)
        return
    data = _read_document(path)
    if isinstance(data, list):
        yield from map(_check_test, data)
        return
    if not isinstance(data, dict) or "tests" not in data:
        raise UsageError(f"{path} has no 'tests'; name a configuration of promptfoo, or a file of its tests")
    given = data["tests"]
    base = data.get("defaultTest") or {}
    if not isinstance(base, dict):
        raise UsageError(f"{path}: defaultTest is {show(base)}, which is not read; write it out")
    for item in given if isinstance(given, list) else [given]:
        found = _follow(path.parent, item) if isinstance(item, str) else [_check_test(item)]
        for test in found:
            yield test if isinstance(test, UsageError) else _add_default(base, test)


def _read_document(path: Path) -> Any:
    from adjudge._yaml import read_yaml
    from adjudge.rules._json import read_json, to_plain

    text = read_whole(str(path), LARGEST_YAML)
    try:
        return read_json(text) if path.suffix.lower() == ".json" else to_plain(read_yaml(text, most=MOST_YAML)[0])
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None


def _follow(folder: Path, address: str) -> Iterator[Mapping[str, Any] | UsageError]:
    """The tests in the files that an address names, below the folder of the configuration."""
    name = address.removeprefix("file://")
    if "://" in name or Path(name.partition(":")[0]).suffix.lower() in {".js", ".mjs", ".cjs", ".ts", ".py"}:
        raise UsageError(f"the tests {show(address)} are made by code or elsewhere; export them to a file first")
    inside = folder.resolve()
    for path in _find_files(inside, name):
        # A configuration that somebody else wrote must not bring other files of this machine before a model.
        if not path.resolve().is_relative_to(inside):
            raise UsageError(f"the tests {show(address)} are outside the configuration's folder; move them")
        if check_path(str(path)):
            raise UsageError(f"{path} is no regular file; tests are read from one")
        yield from _read_tests(path)


def _find_files(folder: Path, name: str) -> list[Path]:
    if not any(sign in name for sign in "*?["):
        return [folder / name]
    try:
        found = sorted(islice(folder.glob(name), MOST_FILES + 1))
    except (NotImplementedError, ValueError, OSError):  # a pattern from the root, or none at all
        found = []
    if not found or len(found) > MOST_FILES:
        how = f"more than {MOST_FILES:,} files fit" if found else "no file fits"
        raise UsageError(f"{how} {show(name)} in {folder}; name the files")
    return found


def _read_tests(path: Path) -> Iterator[Mapping[str, Any] | UsageError]:
    form, gz = find_format(str(path), None)
    if form in {"yaml", "json"}:
        data = _read_document(path)
        yield from map(_check_test, data if isinstance(data, list) else [data])
        return
    for line, row in read_rows(str(path), form, None, gz=gz):
        if isinstance(row, UsageError):
            yield UsageError(f"{path}, line {line}: {row}")
        else:
            yield _read_columns(row) if form in {"csv", "tsv"} else _check_test(row)


def _check_test(test: Any) -> Mapping[str, Any] | UsageError:
    if not isinstance(test, dict):
        return UsageError(f"a test must be a mapping, got {show(test)}")
    if "path" in test and "vars" not in test:
        return UsageError(f"the tests of {show(test['path'])} are made by code; export them to a file first")
    for key, kinds in (("vars", dict), ("metadata", dict), ("assert", list)):
        if not isinstance(test.get(key) or kinds(), kinds):
            return UsageError(
                f"{key!r} of a test must be a {'mapping' if kinds is dict else 'list'}, got {show(test[key])}"
            )
    return test


def _add_default(base: Mapping[str, Any], test: Mapping[str, Any]) -> Mapping[str, Any]:
    merged = {**base, **test}
    for key in ("vars", "metadata"):
        merged[key] = {**(base.get(key) or {}), **(test.get(key) or {})}
    merged["assert"] = [*(base.get("assert") or ()), *(test.get("assert") or ())]
    return merged


def _read_columns(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a table of tests: columns with two underscores are promptfoo's, all others are variables."""
    test: dict[str, Any] = {"vars": {}, "metadata": {}, "assert": []}
    for name, cell in row.items():
        if name.startswith("__expected"):
            test["assert"] += [_read_assertion(cell)] if cell.strip() else []
        elif name.startswith("__metadata:"):
            key = name.removeprefix("__metadata:")
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
    if found is None:
        return {"type": "equals", "value": cell}
    kind = {"grade": "llm-rubric", "fn": "javascript", "eval": "javascript"}.get(found["type"], found["type"])
    said: dict[str, Any] = {"type": kind}
    if found["value"] is not None:
        said["value"] = found["value"].strip()
    return said | ({"threshold": float(found["threshold"])} if _is_number(found["threshold"]) else {})


def _is_number(text: str | None) -> bool:
    return text is not None and re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", text) is not None


def _combine(test: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The variables of a test; a list stands for a test with each of its values."""
    variables = dict(test.get("vars") or {})
    options = test.get("options")
    if isinstance(options, dict) and options.get("disableVarExpansion"):
        yield variables
        return
    lists = {name: value for name, value in variables.items() if isinstance(value, list)}
    count = 1
    for value in lists.values():
        count *= len(value)
    if count > MOST_COMBINATIONS:
        raise UsageError(f"its lists of variables make {count:,} tests, and at most {MOST_COMBINATIONS:,} are made")
    for chosen in product(*lists.values()):
        yield variables | dict(zip(lists, chosen, strict=True))


def _make_row(
    test: Mapping[str, Any], variables: Mapping[str, Any], told: str, spec: Fields, notes: Notes
) -> dict[str, Any]:
    found, used = take_mapped(variables, spec)
    found.setdefault("id", told)
    assertions = [item for item in test.get("assert") or () if isinstance(item, dict)]
    gold = next((item for item in assertions if item.get("type") in _GOLD and item.get("value") is not None), None)
    if gold is not None and "reference" not in found:
        found["reference"] = _fill_in(gold["value"], variables, used)
    others = {name: value for name, value in variables.items() if name not in used}
    if "content" not in found:
        found["content"], others = _choose_content(test, others, notes)
    if others and "task" not in found:
        found["task"] = _take_one(others)
    for item in assertions:
        if item is not gold or found.get("reference") is None:
            add_note(notes, f"assertion {show(item.get('type'))} kept in the metadata, not applied")
    for value in variables.values():
        if isinstance(value, str) and value.startswith("file://"):
            add_note(notes, "variable that names a file, which was not read")
    return found | {"metadata": {**_write_metadata(test, assertions), **(found.get("metadata") or {})}}


def _fill_in(value: Any, variables: Mapping[str, Any], used: set[str]) -> Any:
    """A reference with the variable that it names; it is nothing where more of it is a template."""
    named = _VARIABLE.fullmatch(value.strip()) if isinstance(value, str) else None
    if named is not None and named[1] in variables:
        used.add(named[1])  # the answer must not stand in the task, or in what is judged
        return variables[named[1]]
    return None if isinstance(value, str) and "{{" in value else value


def _choose_content(test: Mapping[str, Any], others: dict[str, Any], notes: Notes) -> tuple[Any, dict[str, Any]]:
    if test.get("providerOutput") is not None:
        return test["providerOutput"], others
    add_note(notes, "test without an answer: its variables are the content")
    return _take_one(others), {}


def _take_one(variables: Mapping[str, Any]) -> Any:
    """The value of the only variable, or all of them; ``None`` when there is none."""
    return next(iter(variables.values())) if len(variables) == 1 else dict(variables) or None


def _write_metadata(test: Mapping[str, Any], assertions: list[dict[str, Any]]) -> dict[str, Any]:
    criteria = [item["value"] for item in assertions if item.get("type") in _WORDED and item.get("value")]
    own = {key: test[key] for key in test if key not in {"vars", "metadata", "providerOutput"} and test[key]}
    said = {**(test.get("metadata") or {})}
    if criteria:
        said["criteria"] = criteria
    return said | ({"promptfoo": own} if own else {})
