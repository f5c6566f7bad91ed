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
"""The ``failureReason`` of a result that failed because of its provider, so that no answer was judged."""

_BY_PERSON = "human"
"""The type of the assertion that stands for a thumb up or down in promptfoo's viewer."""

_RESULT_KEYS = ("provider", "success", "score", "namedScores", "gradingResult")
"""The members of a result that are kept in the metadata."""


def list_results(document: Any) -> Iterator[Mapping[str, Any] | UsageError] | None:
    """List the results in a document, each that is none as its error; ``None`` for a document without results."""
    outer = document.get("results") if isinstance(document, dict) else None
    inner = outer.get("results") if isinstance(outer, dict) else None
    return map(_check_result, inner) if isinstance(inner, list) else None


def is_result(row: Mapping[str, Any]) -> bool:
    """Return whether this is a test with its answer, and not a test alone."""
    return isinstance(row.get("testCase"), dict) and "promptIdx" in row


def _check_result(result: Any) -> Mapping[str, Any] | UsageError:
    """Return a result, or the error for any other value."""
    is_valid = isinstance(result, dict) and is_result(result)
    return result if is_valid else UsageError(f"a result must be an object with a 'testCase', got {show(result)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredTest:
    """A test with its answer, read from a result."""

    test: Mapping[str, Any]
    """The test, with the members of the result that are kept."""
    variables: Mapping[str, Any]
    defaults: Mapping[str, Any]
    """The members of its case where no variable is mapped to them."""
    recorded: Mapping[str, Any]
    """The cost and the time of the call, by the type of assertion that checks them."""


def read_result(result: Mapping[str, Any]) -> AnsweredTest:
    """Read a result as a test with its answer; raise ``UsageError`` for one without an answer.

    Judged as an empty answer, a rubric that only forbids things would pass it.
    """
    case_id = f"test {_number_from_one(result.get('testIdx'))}, prompt {_number_from_one(result.get('promptIdx'))}"
    test = check_test(result["testCase"])
    if isinstance(test, UsageError):
        raise test
    response = result.get("response")
    response = response if isinstance(response, dict) else {}
    error = response.get("error") or (result.get("error") if result.get("failureReason") == _ERROR else None)
    if error or response.get("output") is None:
        reason = f" ({flatten(str(error))[:200]})" if error else ""
        raise UsageError(f"the result of {case_id} has no answer{reason}; run it again")
    prompt = result.get("prompt")
    prompt_text = prompt.get("raw") if isinstance(prompt, dict) else prompt
    parts = {"task": prompt_text, "label": _find_label(result.get("gradingResult"))}
    members = {key: value for key, value in parts.items() if value is not None}
    result_vars = result.get("vars")
    variables = result_vars if isinstance(result_vars, dict) else {}
    kept = {key: result[key] for key in _RESULT_KEYS if result.get(key) is not None} | {"variables": variables}
    return AnsweredTest(
        test={**test, **kept},
        variables=variables,
        defaults={"id": case_id, "content": response["output"], **members},
        recorded=_find_measures(result, response),
    )


def _find_measures(result: Mapping[str, Any], response: Mapping[str, Any]) -> dict[str, Any]:
    """Find the cost and the time of the call, by the type of assertion that checks them.

    The time of a cached reply is left out, because it is not the model's.
    """
    latency = None if response.get("cached") else result.get("latencyMs")
    measures = {"cost": response.get("cost"), "latency": latency}
    return {kind: value for kind, value in measures.items() if value is not None}


def _number_from_one(index: Any) -> str:
    """Write an index as a number from 1; anything but an integer as it is shown in messages."""
    return str(index + 1) if isinstance(index, int) else show(index)


def _find_label(grading: Any) -> bool | None:
    """Find a person's verdict on the answer in a ``gradingResult``; those of other assertions are no labels."""
    components = grading.get("componentResults") if isinstance(grading, dict) else None
    for component in components if isinstance(components, list) else ():
        assertion = component.get("assertion") if isinstance(component, dict) else None
        is_by_person = isinstance(assertion, dict) and assertion.get("type") == _BY_PERSON
        if is_by_person and isinstance(component.get("pass"), bool):
            return component["pass"]
    return None


MOST_COMBINATIONS = 1_000
"""Cases that the lists among the variables of one test may stand for."""


_NOT_METADATA = frozenset(("vars", "metadata", "providerOutput"))
"""The members of a test that become parts of its case, and are not kept as metadata."""

_EMPTY: tuple[Any, ...] = (None, "", [], {})

NumberedCase = tuple[int, "Case | UsageError"]
"""The number of a test, from 1, and one of its cases or its error."""


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
    field_options, checked_map = read_fields(fields, table=False), check_label_map(label_map)
    return Dataset(
        lambda notes: _read_cases(
            name,
            _CaseMaker(fields=field_options, notes=notes, files=Files(root=Path(name).parent), label_map=checked_map),
        ),
        name=name,
        path=name,
        unit="test",
        on_bad_row=on_bad_row,
        is_suite=True,
    )


def _read_cases(name: str, maker: _CaseMaker) -> Iterator[NumberedCase]:
    """Yield the cases of each test behind its number, one for each combination of its variables, or its error."""
    number = 0
    for test in _list_items(Path(name)):
        number += 1
        if isinstance(test, UsageError):
            yield number, test
            continue
        try:
            if is_result(test):
                answered = read_result(test)
                yield (
                    number,
                    maker.make_case(answered.test, answered.variables, answered.defaults, recorded=answered.recorded),
                )
                continue
            combinations = list(_combine_variables(test))
            for index, variables in enumerate(combinations, 1):
                case_id = f"{number}.{index}" if len(combinations) > 1 else str(number)
                yield number, maker.make_case(test, variables, {"id": case_id})
        except UsageError as error:
            yield number, error


def _list_items(path: Path) -> Iterator[Mapping[str, Any] | UsageError]:
    """Yield the results in a file, else its tests; in place of one that cannot be read, its error.

    Raises ``UsageError``.
    """
    document = read_document(path) if path.suffix.lower() in {".yaml", ".yml", ".json"} else None
    results = list_results(document)
    yield from list_tests(path, document) if results is None else results


def _combine_variables(test: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield each combination of a test's variables: a list of texts stands for one of its values at a time.

    Raises ``UsageError`` for too many combinations.
    """
    variables = dict(test.get("vars") or {})
    options = test.get("options")
    if isinstance(options, dict) and options.get("disableVarExpansion"):
        yield variables
        return
    # As promptfoo does: a list that begins with a message or a number, or is empty, is one value.
    lists = {name: value for name, value in variables.items() if isinstance(value, list) and _is_list_of_texts(value)}
    count = 1
    for value in lists.values():
        count *= len(value)
    if count > MOST_COMBINATIONS:
        raise UsageError(f"its lists of variables make {count:,} tests, and at most {MOST_COMBINATIONS:,} are made")
    for values in product(*lists.values()):
        yield variables | dict(zip(lists, values, strict=True))


def _is_list_of_texts(value: list[Any]) -> bool:
    """Return whether a list begins with a text."""
    return bool(value) and isinstance(value[0], str)


@dataclass(frozen=True, slots=True, kw_only=True)
class _CaseMaker:
    """Makes cases of the tests of one file, with the caller's options."""

    fields: Fields
    notes: Notes
    files: Files
    label_map: LabelMap

    def make_case(
        self,
        test: Mapping[str, Any],
        variables: Mapping[str, Any],
        defaults: Mapping[str, Any],
        recorded: Mapping[str, Any] | None = None,
    ) -> Case:
        """Make the case of a test; ``defaults`` are its members where no variable is mapped to them.

        ``recorded`` are the cost and the time of the call that made the answer.
        """
        members, used_names = select_mapped(variables, self.fields)
        members = {**defaults, **members}
        assertions = list(_list_assertions(test.get("assert")))
        gold = None if "reference" in members else _take_gold(assertions, variables, used_names, members)
        others = {name: value for name, value in variables.items() if name not in used_names}
        has_answer = "content" in members or test.get("providerOutput") is not None
        if "content" not in members:
            members["content"], others = _choose_content(test, others, self.notes)
        task_variables = others if others and "task" not in members else {}
        if task_variables:
            members["task"] = _unwrap_single(task_variables)
        for value in variables.values():
            if _names_file(value):
                add_note(self.notes, "variable that names a file, which was not read")
        members["metadata"] = {**_make_metadata(test), **(members.get("metadata") or {})}
        if not has_answer:
            for assertion in assertions:
                add_note(
                    self.notes, f"assertion {show(assertion.get('type', '$ref'))} not applied: there is no answer yet"
                )
            return make_case(map_labels(members, self.label_map))
        names = Names(
            variables=variables,
            answer=_find_mapped(self.fields, "content", variables),
            reference=_find_mapped(self.fields, "reference", variables) or _find_named_variable(gold),
            task_names=frozenset(task_variables),
            recorded=recorded or {},
        )
        applied = apply_assertions(test, test.get("assert") or (), names, self.files.read_value, gold=gold)
        return self._add_rubric(members, applied, has_assertions=bool(test.get("assert")))

    def _add_rubric(self, members: dict[str, Any], applied: AppliedAssertions, *, has_assertions: bool) -> Case:
        """Make the case with the rubric of its assertions, and note those that were dropped.

        The variables that its criteria name go into the context, and an output that rules check becomes text.
        """
        for reason in applied.dropped:
            add_note(self.notes, reason)
        if applied.rubric is None:
            if has_assertions:
                add_note(self.notes, "test none of whose assertions is applied: only the run's own criteria judge it")
            return make_case(map_labels(members, self.label_map))
        if applied.context:
            mapped = members.get("context")
            members["context"] = applied.context if mapped is None else {**applied.context, "context": mapped}
        if applied.rubric.has_rules and not isinstance(members["content"], str):
            members["content"] = _write_output(members["content"])
        return replace(make_case(map_labels(members, self.label_map)), rubric=applied.rubric)


def _write_output(value: Any) -> str:
    """Write an output that is no text as promptfoo does, so that its assertions see the same characters."""
    return json.dumps(_drop_fractions(value), ensure_ascii=False, separators=(",", ":"))


def _drop_fractions(value: Any) -> Any:
    """Convert whole floats within a value to integers, as JavaScript writes them: 1.0 is 1."""
    if isinstance(value, dict):
        return {key: _drop_fractions(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_drop_fractions(member) for member in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e21 else value


def _find_mapped(fields: Fields, part: str, variables: Mapping[str, Any]) -> str | None:
    """Find the name of the variable that is mapped to a part of the case; ``None`` where none is."""
    paths = [path for (mapped_part, member), path in fields.mapped if mapped_part == part and member is None]
    return paths[0] if paths and paths[0] in variables else None


def _find_named_variable(gold: Mapping[str, Any] | None) -> str | None:
    """Find the name of the variable that is all of an assertion's value; ``None`` for another value or no assertion."""
    value = gold.get("value") if gold is not None else None
    return find_only_variable(parse_template(value)) if isinstance(value, str) else None


def _list_assertions(assertions: Any) -> Iterator[dict[str, Any]]:
    """Yield the assertions of a test, and in place of a set the assertions in it.

    A set with a threshold is yielded itself, because not all of its assertions must hold. Raises ``UsageError``.
    """
    for assertion in assertions or ():
        if not isinstance(assertion, dict):
            continue
        kind, inner = assertion.get("type"), assertion.get("assert") or []
        if not isinstance(kind, str | None) or not isinstance(inner, list):
            raise UsageError(
                f"an assertion must have a text as its type and a list as its 'assert', got {show(assertion)}"
            )
        if kind == "assert-set" and assertion.get("threshold") is None:
            yield from _list_assertions(inner)
        else:
            yield assertion


def _names_file(value: Any) -> bool:
    """Return whether a value is the address of a file."""
    return isinstance(value, str) and value.startswith("file://")


def _take_gold(
    assertions: list[dict[str, Any]], variables: Mapping[str, Any], used_names: set[str], members: dict[str, Any]
) -> dict[str, Any] | None:
    """Find the first assertion whose value is a known good answer, and set that answer as the reference in ``members``.

    Returns the assertion; ``None`` where there is none. A variable that has the answer is added to ``used_names``.
    """
    for assertion in assertions:
        value = None
        if assertion.get("type") in GOLD:
            value = _fill_reference(assertion.get("value"), variables, used_names)
        if value is not None:
            members["reference"] = value
            return assertion
    return None


def _fill_reference(value: Any, variables: Mapping[str, Any], used_names: set[str]) -> Any:
    """Return the reference that an assertion's value is: the value of a variable that is all of it, or itself.

    Such a variable is added to ``used_names``. ``None`` for the address of a file, and for any other template.
    """
    if not isinstance(value, str):
        return value
    if _names_file(value):
        return None
    try:
        variable = find_only_variable(parse_template(value))
    except UsageError:
        return None
    if variable is not None and variable in variables:
        used_names.add(variable)  # the good answer must be neither in the task nor in the content
        return variables[variable]
    return None if is_template(value) else value


def _choose_content(test: Mapping[str, Any], others: dict[str, Any], notes: Notes) -> tuple[Any, dict[str, Any]]:
    """Choose the content of a case, and return it with the variables that are left for its task.

    It is the test's answer; without one, the variables themselves, of which none is left then. Raises ``UsageError``
    where there is neither.
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
    """Make the metadata of a case: the test's own, and under ``promptfoo`` its members that are no part of the case."""
    others = {key: test[key] for key in test if key not in _NOT_METADATA and test[key] not in _EMPTY}
    return {**(test.get("metadata") or {})} | ({"promptfoo": others} if others else {})
