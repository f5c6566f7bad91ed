"""The tests that a file of promptfoo holds or names, with what its configuration adds to each.

Nothing is executed, and nothing outside the folder of the file is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from typing import Any

from adjudge.dataset.formats import (
    LARGEST_JSON,
    LARGEST_YAML,
    MOST_YAML,
    check_path,
    find_format,
    read_rows,
    read_whole,
)
from adjudge.errors import UsageError
from adjudge.formats.text import show

_SIMILAR = ("similar", "similar:cosine", "similar:dot", "similar:euclidean")

GOLD = frozenset(
    (*_SIMILAR, "equals", "factuality", "model-graded-factuality", "levenshtein", "rouge-n", "bleu", "gleu", "meteor")
)
"""Assertions whose value is a known good answer."""

_OTHERS = """
agent-rubric answer-relevance classifier contains contains-all contains-any contains-html contains-json
contains-sql contains-xml context-faithfulness context-recall context-relevance conversation-relevance cost
eval finish-reason fn g-eval grade guardrails icontains icontains-all icontains-any is-html is-json is-refusal
is-sql is-valid-function-call is-valid-openai-function-call is-valid-openai-tools-call is-xml javascript
latency llm-rubric max-score model-graded-closedqa moderation perplexity perplexity-score pi python regex ruby
search-rubric select-best skill-used starts-with tool-call-f1 trace-error-spans trace-span-count
trace-span-duration trajectory:goal-success trajectory:step-count trajectory:tool-args-match
trajectory:tool-sequence trajectory:tool-used webhook word-count
"""
"""The other types of promptfoo 0.121.20: a cell that names none is an answer, which a new type would be taken for."""

_KNOWN = sorted({*GOLD, *_OTHERS.split()}, key=len, reverse=True)

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


MOST_FILES = 1_000

MOST_OF_SCENARIO = 100_000
"""Tests of one scenario: its settings times its tests, so that a small file could stand for no end of them."""

_LONGEST_CHAIN = 10
"""References that lead to one another, so that a circle has an end."""

_CODE = frozenset((".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".py", ".rb"))

_SHEETS = frozenset((".xlsx", ".xls"))


Test = Mapping[str, Any]

Found = Iterator[Test | UsageError]


def read_document(path: Path) -> Any:
    """What a file of YAML or JSON says; ``Yes`` and ``2024-01-02`` are texts, as promptfoo reads them."""
    from adjudge.formats.json import read_json, to_json_value
    from adjudge.formats.yaml import read_yaml

    plain = path.suffix.lower() == ".json"
    text = read_whole(str(path), LARGEST_JSON if plain else LARGEST_YAML)
    try:
        if plain:
            return read_json(text)
        return to_json_value(read_yaml(text, most=MOST_YAML, few_words=True)[0])
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None


def list_tests(path: Path, data: Any) -> Found:
    """The tests of a file; ``data`` is what it says when it is YAML or JSON, else ``None``."""
    files = Files(root=path.parent)
    if data is None:
        yield from files.read_tests(path)
    elif isinstance(data, list):
        yield from (files.open_test(item, path.parent, data) for item in data)
    elif isinstance(data, dict) and ("tests" in data or "scenarios" in data):
        yield from _list_configured(files, path, data)
    else:
        raise UsageError(f"{path} has no 'tests'; name a configuration of promptfoo, or a file of its tests or results")


def _list_configured(files: Files, path: Path, data: Mapping[str, Any]) -> Found:
    base = resolve(data, data.get("defaultTest") or {})
    if isinstance(base, str):
        base = files.read_one(base)
    base = files.open_test(base, path.parent, data)
    if isinstance(base, UsageError):
        raise UsageError(f"{path}: defaultTest: {base}")
    for test in files.list_given(data.get("tests"), data):
        yield test if isinstance(test, UsageError) else add_default(base, test)
    for scenario in files.list_scenarios(data):
        tests = list(files.list_given(scenario.get("tests"), data))
        settings = list(_list_settings(files, scenario, data))
        if (count := len(settings) * len(tests)) > MOST_OF_SCENARIO:
            raise UsageError(f"a scenario makes {count:,} tests, and at most {MOST_OF_SCENARIO:,} are made; split it")
        for setting, test in product(settings, tests):
            error = next((item for item in (setting, test) if isinstance(item, UsageError)), None)
            yield error or add_default(base, _merge(setting, test))


def _list_settings(files: Files, scenario: Test, data: Any) -> Found:
    given = scenario["config"]
    if isinstance(given, str):
        given = files.read_one(given)
    yield from (files.open_test(item, files.root, data) for item in (given if isinstance(given, list) else [given]))


def _merge(base: Any, test: Any) -> dict[str, Any]:
    merged = {**base, **test}
    for key in ("vars", "metadata", "options"):
        if base.get(key) or test.get(key):
            merged[key] = {**(base.get(key) or {}), **(test.get(key) or {})}
    merged["assert"] = [*(base.get("assert") or ()), *(test.get("assert") or ())]
    return merged


def add_default(base: Any, test: Any) -> Test:
    """A test with what ``defaultTest`` says, unless it wants no assertions of it."""
    options = test.get("options")
    plain = isinstance(options, dict) and options.get("disableDefaultAsserts") is True
    return _merge({**base, "assert": []} if plain else base, test)


def resolve(document: Any, item: Any) -> Any:
    """What a ``$ref`` into the same document names; anything else as it is."""
    for _ in range(_LONGEST_CHAIN):
        address = item.get("$ref") if isinstance(item, dict) else None
        if not isinstance(address, str) or not address.startswith("#/"):
            return item
        found = document
        for step in address[2:].split("/"):
            key = step.replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, dict) else None
        if found is None:
            return item
        item = found
    return item


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The files below one folder."""

    root: Path

    def list_given(self, given: Any, document: Any) -> Found:
        """The tests that ``tests`` holds: one or several, written out or in files."""
        for item in given if isinstance(given, list) else [] if given is None else [given]:
            path = item.get("path") if isinstance(item, dict) and "vars" not in item else None
            if isinstance(item, str):
                yield from self.follow(item)
            elif isinstance(path, str) and not _is_code(path):
                yield from self.follow(path)
            else:
                yield self.open_test(item, self.root, document)

    def list_scenarios(self, data: Mapping[str, Any]) -> Iterator[Test]:
        """The scenarios of a configuration, written out or in files."""
        given = data.get("scenarios")
        for item in given if isinstance(given, list) else [given] if given else []:
            found = [self.read_document(path) for path in self.find(item)] if isinstance(item, str) else [item]
            for scenario in (part for one in found for part in (one if isinstance(one, list) else [one])):
                if not isinstance(scenario, dict) or not isinstance(scenario.get("config"), list | str):
                    raise UsageError(f"a scenario must be a mapping with a list 'config', got {show(scenario)}")
                yield scenario

    def follow(self, address: str) -> Found:
        """The tests in the files that an address names."""
        if _is_code(address) or "://" in address.removeprefix("file://"):
            raise UsageError(f"the tests {show(address)} are made by code or elsewhere; export them to a file first")
        if Path(address.partition("#")[0]).suffix.lower() in _SHEETS:
            raise UsageError(f"the tests {show(address)} are a spreadsheet; save it as CSV, and name that")
        for path in self.find(address):
            yield from self.read_tests(path)

    def find(self, address: str) -> Iterator[Path]:
        """The files that an address names."""
        inside = self.root.resolve()
        for path in _find_files(inside, address.removeprefix("file://")):
            # A configuration that somebody else wrote must not bring other files of this machine before a model.
            try:
                is_inside = path.resolve().is_relative_to(inside)
            except (OSError, ValueError):  # half of a character, a NUL, or links in a circle
                raise UsageError(f"{show(address)} is no path of a file; name one") from None
            if not is_inside:
                raise UsageError(f"the tests {show(address)} are outside the configuration's folder; move them")
            if check_path(str(path)):
                raise UsageError(f"{path} is no regular file; tests are read from one")
            yield path

    def read_document(self, path: Path) -> Any:
        """What a file of YAML or JSON says; raises ``UsageError`` for any other file."""
        if path.suffix.lower() not in {".yaml", ".yml", ".json"}:
            raise UsageError(f"{path} is neither YAML nor JSON; write it out in the configuration")
        return read_document(path)

    def read_one(self, address: str) -> Any:
        """What the first file that an address names says."""
        return next(self.read_document(path) for path in self.find(address))

    def read_value(self, address: str) -> Any:
        """What a file that the value of an assertion names holds: the text of a .txt or .md, or a document."""
        path = next(self.find(address))
        if path.suffix.lower() in {".txt", ".md"}:
            return read_whole(str(path), LARGEST_YAML).strip()
        return self.read_document(path)

    def read_tests(self, path: Path) -> Found:
        """The tests of a file, and for each that is none, why."""
        form, gz = find_format(str(path), None)
        if form in {"yaml", "json"}:
            data = read_document(path)
            yield from (
                self.open_test(item, path.parent, data) for item in (data if isinstance(data, list) else [data])
            )
            return
        for line, row in read_rows(str(path), form, None, gz=gz):
            if isinstance(row, UsageError):
                yield UsageError(f"{path}, line {line}: {row}")
            else:
                yield read_columns(row) if form in {"csv", "tsv"} else self.open_test(row, path.parent, row)

    def open_test(self, item: Any, folder: Path, document: Any) -> Test | UsageError:
        """A test with its references, and with the variables that stand in files."""
        item = resolve(document, item)
        if isinstance(item, dict):
            item = dict(item)
            if isinstance(item.get("assert"), list):
                item["assert"] = [resolve(document, part) for part in item["assert"]]
            try:
                item["vars"] = self._read_vars(item.get("vars"), folder)
            except UsageError as error:
                return error
        return check_test(item)

    def _read_vars(self, given: Any, folder: Path) -> Any:
        addresses = [given] if isinstance(given, str) else given
        if not isinstance(addresses, list) or not all(isinstance(item, str) for item in addresses):
            return given
        found: dict[str, Any] = {}
        for address in addresses:
            for path in self.find(str(folder.resolve() / address.removeprefix("file://"))):
                more = self.read_document(path)
                if not isinstance(more, dict):
                    raise UsageError(f"{path} must hold a mapping of variables, got {show(more)}")
                found |= more
        return found


def _is_code(address: str) -> bool:
    name = address.removeprefix("file://")
    return Path(re.split(r"[:#]", name, maxsplit=1)[0]).suffix.lower() in _CODE


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
