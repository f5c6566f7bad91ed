"""Test cases of promptfoo as cases: a configuration, a file of tests, or the results of an eval, which have answers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from adjudge.dataset.case import Case, make_case
from adjudge.dataset.dataset import Dataset, Notes, OnBadRow, add_note
from adjudge.dataset.fields import Fields, read_fields, select_mapped
from adjudge.dataset.formats import check_path
from adjudge.dataset.importers.promptfoo_assertions import Applied, Names, apply_assertions
from adjudge.dataset.importers.promptfoo_files import GOLD, Files, check_test, list_tests, read_document
from adjudge.dataset.importers.template import find_only_variable, is_template, parse_template
from adjudge.dataset.label_map import LabelMap, check_label_map, map_labels
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

Found = tuple[int, "Case | UsageError"]


def import_promptfoo(
    path: str | os.PathLike[str],
    *,
    fields: Mapping[str, str | None] | None = None,
    on_bad_row: OnBadRow = "fail",
    label_map: LabelMap | None = None,
) -> Dataset:
    """Import promptfoo's tests: a configuration, a file of tests (CSV, JSON, JSON lines, YAML), or results.

    ``fields`` says which variable is which part of the case. Without it, the content is ``providerOutput`` if a test
    has one, else its variables (the value of the only one, or all of them), and the reference is the value of the first
    assertion that compares with one (``equals``, ``factuality``, ``similar``, ...). All other variables are the task.
    In results (``promptfoo eval -o results.json``, or ``.jsonl``) the content is the answer, the task is the prompt,
    and the label is a person's rating. If there is an answer, a test's assertions become the case's own rubric: rules
    for deterministic assertions, criteria for ``llm-rubric`` and the like, with their weights and thresholds.
    ``dataset.notes`` counts the assertions that are not applied, with the reason; all assertions are in
    ``metadata["promptfoo"]``.
    """
    name = os.fspath(path)
    check_path(name)
    spec, words = read_fields(fields, table=False), check_label_map(label_map)
    return Dataset(
        lambda notes: _read_cases(
            name, _Suite(spec=spec, notes=notes, files=Files(root=Path(name).parent), words=words)
        ),
        name=name,
        path=name,
        unit="test",
        on_bad_row=on_bad_row,
    )


def _read_cases(name: str, suite: _Suite) -> Iterator[Found]:
    number = 0
    for test in _list_items(Path(name)):
        number += 1
        if isinstance(test, UsageError):
            yield number, test
            continue
        try:
            if is_result(test):
                yield number, suite.make_case(*open_result(test))
                continue
            combined = list(_combine(test))
            for turn, variables in enumerate(combined, 1):
                told = f"{number}.{turn}" if len(combined) > 1 else str(number)
                yield number, suite.make_case(test, variables, {"id": told})
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Suite:
    """How the tests of one file become cases."""

    spec: Fields
    notes: Notes
    files: Files
    words: LabelMap
    """What the words of labels stand for."""

    def make_case(self, test: Mapping[str, Any], variables: Mapping[str, Any], known: Mapping[str, Any]) -> Case:
        """The case of a test; ``known`` is what stands in it where no variable was mapped to it."""
        found, used = select_mapped(variables, self.spec)
        found = {**known, **found}
        assertions = list(_list_assertions(test.get("assert")))
        gold = None if "reference" in found else _find_gold(assertions, variables, used, found)
        others = {name: value for name, value in variables.items() if name not in used}
        answered = "content" in found or test.get("providerOutput") is not None
        if "content" not in found:
            found["content"], others = _choose_content(test, others, self.notes)
        asked = others if others and "task" not in found else {}
        if asked:
            found["task"] = _take_one(asked)
        for value in variables.values():
            if _names_file(value):
                add_note(self.notes, "variable that names a file, which was not read")
        found["metadata"] = {**_make_metadata(test), **(found.get("metadata") or {})}
        if not answered:
            for item in assertions:
                add_note(self.notes, f"assertion {show(item.get('type', '$ref'))} not applied: there is no answer yet")
            return make_case(map_labels(found, self.words))
        names = Names(
            variables=variables,
            answer=_find_mapped(self.spec, "content", variables),
            reference=_find_mapped(self.spec, "reference", variables) or _find_named(gold),
            task_names=frozenset(asked),
        )
        applied = apply_assertions(test, test.get("assert") or (), names, self.files.read_value, gold=gold)
        return self._add_rubric(found, applied, asserted=bool(test.get("assert")))

    def _add_rubric(self, found: dict[str, Any], applied: Applied, *, asserted: bool) -> Case:
        for said in applied.dropped:
            add_note(self.notes, said)
        if applied.rubric is None:
            if asserted:
                add_note(self.notes, "test none of whose assertions is applied: only the run's own criteria judge it")
            return make_case(map_labels(found, self.words))
        if applied.context:
            mapped = found.get("context")
            found["context"] = applied.context if mapped is None else {**applied.context, "context": mapped}
        if applied.rubric.has_rules and not isinstance(found["content"], str):
            found["content"] = _write_output(found["content"])
        return replace(make_case(map_labels(found, self.words)), rubric=applied.rubric)


def _write_output(value: Any) -> str:
    """An output that is no text as promptfoo writes it, so that its assertions see the same characters."""
    return json.dumps(_drop_fractions(value), ensure_ascii=False, separators=(",", ":"))


def _drop_fractions(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _drop_fractions(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_drop_fractions(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e21 else value


def _find_mapped(spec: Fields, key: str, variables: Mapping[str, Any]) -> str | None:
    """The variable that is mapped to a part of the case."""
    paths = [path for (part, inner), path in spec.mapped if part == key and inner is None]
    return paths[0] if paths and paths[0] in variables else None


def _find_named(gold: Mapping[str, Any] | None) -> str | None:
    value = gold.get("value") if gold is not None else None
    return find_only_variable(parse_template(value)) if isinstance(value, str) else None


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
    if not isinstance(value, str):
        return value
    if _names_file(value):
        return None
    try:
        named = find_only_variable(parse_template(value))
    except UsageError:
        return None
    if named is not None and named in variables:
        used.add(named)  # the answer must not stand in the task, or in what is judged
        return variables[named]
    return None if is_template(value) else value


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


def _make_metadata(test: Mapping[str, Any]) -> dict[str, Any]:
    own = {key: test[key] for key in test if key not in _APART and test[key] not in _NOTHING}
    return {**(test.get("metadata") or {})} | ({"promptfoo": own} if own else {})
