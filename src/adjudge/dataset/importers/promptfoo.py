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
from adjudge.dataset.importers.promptfoo_assertions import AppliedAssertions, Names, apply_assertions
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


def list_results(document: Any) -> Iterator[Mapping[str, Any] | UsageError] | None:
    """List the results in a document, or ``None`` for one that holds none."""
    outer = document.get("results") if isinstance(document, dict) else None
    inner = outer.get("results") if isinstance(outer, dict) else None
    return map(_check_result, inner) if isinstance(inner, list) else None


def is_result(row: Mapping[str, Any]) -> bool:
    """Return whether this is a test with its answer, and not a test alone."""
    return isinstance(row.get("testCase"), dict) and "promptIdx" in row


def _check_result(result: Any) -> Mapping[str, Any] | UsageError:
    fits = isinstance(result, dict) and is_result(result)
    return result if fits else UsageError(f"a result must be an object with a 'testCase', got {show(result)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedResult:
    """A test with its answer."""

    test: Mapping[str, Any]
    variables: Mapping[str, Any]
    defaults: Mapping[str, Any]
    """The members of its case where no variable is mapped to them."""
    recorded: Mapping[str, Any]
    """The cost and the time of the call, by the type of assertion that looks at them."""


def open_result(result: Mapping[str, Any]) -> OpenedResult:
    """Open a result; raises ``UsageError`` for one without an answer.

    Such a result is an error: judged as an empty one, a rubric that only forbids things would pass it.
    """
    place = f"test {_number_from_one(result.get('testIdx'))}, prompt {_number_from_one(result.get('promptIdx'))}"
    test = check_test(result["testCase"])
    if isinstance(test, UsageError):
        raise test
    response = result.get("response")
    response = response if isinstance(response, dict) else {}
    error = response.get("error") or (result.get("error") if result.get("failureReason") == _ERROR else None)
    if error or response.get("output") is None:
        reason = f" ({flatten(str(error))[:200]})" if error else ""
        raise UsageError(f"the result of {place} has no answer{reason}; run it again")
    prompt = result.get("prompt")
    prompt_text = prompt.get("raw") if isinstance(prompt, dict) else prompt
    parts = {"task": prompt_text, "label": _find_label(result.get("gradingResult"))}
    members = {key: value for key, value in parts.items() if value is not None}
    stated = result.get("vars")
    variables = stated if isinstance(stated, dict) else {}
    recorded = {key: result[key] for key in _KEPT if result.get(key) is not None} | {"variables": variables}
    return OpenedResult(
        test={**test, **recorded},
        variables=variables,
        defaults={"id": place, "content": response["output"], **members},
        recorded=_find_measures(result, response),
    )


def _find_measures(result: Mapping[str, Any], response: Mapping[str, Any]) -> dict[str, Any]:
    """Find what was recorded of the call, by the type of assertion; the time of a cached reply is not the model's."""
    latency = None if response.get("cached") else result.get("latencyMs")
    measures = {"cost": response.get("cost"), "latency": latency}
    return {kind: value for kind, value in measures.items() if value is not None}


def _number_from_one(index: Any) -> str:
    return str(index + 1) if isinstance(index, int) else show(index)


def _find_label(grading: Any) -> bool | None:
    """Find a person's verdict on the answer; that of assertions is no label."""
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

NumberedCase = tuple[int, "Case | UsageError"]


def import_promptfoo(
    path: str | os.PathLike[str],
    *,
    fields: Mapping[str, str | None] | None = None,
    on_bad_row: OnBadRow = "fail",
    label_map: LabelMap | None = None,
) -> Dataset:
    """Import promptfoo's tests: a configuration, a file of tests (CSV, JSON, JSON lines, YAML), or results.

    Without ``fields``, the content is ``providerOutput`` if a test has one, else its variables (the value of the only
    one, or all of them), and the reference is the value of the first assertion that compares with one (``equals``,
    ``factuality``, ``similar``, ...). All other variables are the task. In results (``promptfoo eval -o results.json``,
    or ``.jsonl``) the content is the answer, the task is the prompt, and the label is a person's rating. If there is an
    answer, a test's assertions become the case's own rubric: rules for deterministic assertions, criteria for
    ``llm-rubric`` and the like, with their weights and thresholds. ``dataset.notes`` counts the assertions that are not
    applied, with the reason; all assertions are in ``metadata["promptfoo"]``.

    Args:
        path: The file to read.
        fields: Which variable is which part of the case.
        on_bad_row: ``"fail"`` raises for a row that cannot be read, ``"skip"`` counts and lists it.
        label_map: What the words of labels mean, as for ``open_dataset``: ``{"yes": True, "no": False}``.
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
        is_suite=True,
    )


def _read_cases(name: str, suite: _Suite) -> Iterator[NumberedCase]:
    """Yield the cases of each test behind its number, one for each combination of its variables, or its error."""
    number = 0
    for test in _list_items(Path(name)):
        number += 1
        if isinstance(test, UsageError):
            yield number, test
            continue
        try:
            if is_result(test):
                opened = open_result(test)
                yield (
                    number,
                    suite.make_case(opened.test, opened.variables, opened.defaults, recorded=opened.recorded),
                )
                continue
            combined = list(_combine_variables(test))
            for turn, variables in enumerate(combined, 1):
                case_id = f"{number}.{turn}" if len(combined) > 1 else str(number)
                yield number, suite.make_case(test, variables, {"id": case_id})
        except UsageError as error:
            yield number, error


def _list_items(path: Path) -> Iterator[Mapping[str, Any] | UsageError]:
    document = read_document(path) if path.suffix.lower() in {".yaml", ".yml", ".json"} else None
    results = list_results(document)
    yield from list_tests(path, document) if results is None else results


def _combine_variables(test: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the variables of a test; a list stands for a test with each of its values. Raises ``UsageError``."""
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
    """The options under which the tests of one file become cases."""

    spec: Fields
    notes: Notes
    files: Files
    words: LabelMap
    """The labels that words stand for."""

    def make_case(
        self,
        test: Mapping[str, Any],
        variables: Mapping[str, Any],
        defaults: Mapping[str, Any],
        recorded: Mapping[str, Any] | None = None,
    ) -> Case:
        """Make the case of a test; ``defaults`` are its members where no variable is mapped to them."""
        members, used = select_mapped(variables, self.spec)
        members = {**defaults, **members}
        assertions = list(_list_assertions(test.get("assert")))
        gold = None if "reference" in members else _take_gold(assertions, variables, used, members)
        others = {name: value for name, value in variables.items() if name not in used}
        answered = "content" in members or test.get("providerOutput") is not None
        if "content" not in members:
            members["content"], others = _choose_content(test, others, self.notes)
        task = others if others and "task" not in members else {}
        if task:
            members["task"] = _unwrap_single(task)
        for value in variables.values():
            if _names_file(value):
                add_note(self.notes, "variable that names a file, which was not read")
        members["metadata"] = {**_make_metadata(test), **(members.get("metadata") or {})}
        if not answered:
            for assertion in assertions:
                add_note(
                    self.notes, f"assertion {show(assertion.get('type', '$ref'))} not applied: there is no answer yet"
                )
            return make_case(map_labels(members, self.words))
        names = Names(
            variables=variables,
            answer=_find_mapped(self.spec, "content", variables),
            reference=_find_mapped(self.spec, "reference", variables) or _find_named(gold),
            task_names=frozenset(task),
            recorded=recorded or {},
        )
        applied = apply_assertions(test, test.get("assert") or (), names, self.files.read_value, gold=gold)
        return self._add_rubric(members, applied, asserted=bool(test.get("assert")))

    def _add_rubric(self, members: dict[str, Any], applied: AppliedAssertions, *, asserted: bool) -> Case:
        """Make the case with the rubric of its assertions, and note those that were dropped.

        What its criteria speak of goes into the context, and an output that rules look at becomes text.
        """
        for reason in applied.dropped:
            add_note(self.notes, reason)
        if applied.rubric is None:
            if asserted:
                add_note(self.notes, "test none of whose assertions is applied: only the run's own criteria judge it")
            return make_case(map_labels(members, self.words))
        if applied.context:
            mapped = members.get("context")
            members["context"] = applied.context if mapped is None else {**applied.context, "context": mapped}
        if applied.rubric.has_rules and not isinstance(members["content"], str):
            members["content"] = _write_output(members["content"])
        return replace(make_case(map_labels(members, self.words)), rubric=applied.rubric)


def _write_output(value: Any) -> str:
    """Write an output that is no text as promptfoo does, so that its assertions see the same characters."""
    return json.dumps(_drop_fractions(value), ensure_ascii=False, separators=(",", ":"))


def _drop_fractions(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _drop_fractions(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_drop_fractions(member) for member in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e21 else value


def _find_mapped(spec: Fields, key: str, variables: Mapping[str, Any]) -> str | None:
    """Find the variable that is mapped to a part of the case."""
    paths = [path for (part, inner), path in spec.mapped if part == key and inner is None]
    return paths[0] if paths and paths[0] in variables else None


def _find_named(gold: Mapping[str, Any] | None) -> str | None:
    value = gold.get("value") if gold is not None else None
    return find_only_variable(parse_template(value)) if isinstance(value, str) else None


def _list_assertions(assertions: Any) -> Iterator[dict[str, Any]]:
    """Yield the assertions of a test, with those of a set; a set with a threshold stays one: not all must hold.

    Raises ``UsageError``.
    """
    for assertion in assertions or ():
        if not isinstance(assertion, dict):
            continue
        kind, parts = assertion.get("type"), assertion.get("assert") or []
        if not isinstance(kind, str | None) or not isinstance(parts, list):
            raise UsageError(
                f"an assertion must have a text as its type and a list as its 'assert', got {show(assertion)}"
            )
        if kind == "assert-set" and assertion.get("threshold") is None:
            yield from _list_assertions(parts)
        else:
            yield assertion


def _names_file(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("file://")


def _take_gold(
    assertions: list[dict[str, Any]], variables: Mapping[str, Any], used: set[str], members: dict[str, Any]
) -> dict[str, Any] | None:
    """Return the first assertion with a good answer, and put that answer among ``members`` as the reference."""
    for assertion in assertions:
        value = _fill_in(assertion.get("value"), variables, used) if assertion.get("type") in GOLD else None
        if value is not None:
            members["reference"] = value
            return assertion
    return None


def _fill_in(value: Any, variables: Mapping[str, Any], used: set[str]) -> Any:
    """Fill in the variable that a reference names, and add it to ``used``; ``None`` where more is a template."""
    if not isinstance(value, str):
        return value
    if _names_file(value):
        return None
    try:
        variable = find_only_variable(parse_template(value))
    except UsageError:
        return None
    if variable is not None and variable in variables:
        used.add(variable)  # the answer must not stand in the task, or in what is judged
        return variables[variable]
    return None if is_template(value) else value


def _choose_content(test: Mapping[str, Any], others: dict[str, Any], notes: Notes) -> tuple[Any, dict[str, Any]]:
    """Choose the content of a case, and return it with the variables that are left for its context.

    It is the test's answer; without one, the variables themselves, of which none is left then. Raises ``UsageError``.
    """
    if test.get("providerOutput") is not None:
        return test["providerOutput"], others
    if not others:
        raise UsageError("the test has neither variables nor an answer (providerOutput), so nothing can be judged")
    add_note(notes, "test without an answer: its variables are the content")
    return _unwrap_single(others), {}


def _unwrap_single(variables: Mapping[str, Any]) -> Any:
    """Return the value of the only variable, or all of them; ``None`` when there is none."""
    return next(iter(variables.values())) if len(variables) == 1 else dict(variables) or None


def _make_metadata(test: Mapping[str, Any]) -> dict[str, Any]:
    recorded = {key: test[key] for key in test if key not in _APART and test[key] not in _NOTHING}
    return {**(test.get("metadata") or {})} | ({"promptfoo": recorded} if recorded else {})
