"""The tests that a file of promptfoo holds or names, with what its configuration adds to each.

Nothing is executed, and nothing outside the folder of the file is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import product
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
from adjudge.dataset.importers.file_pattern import FileSearch
from adjudge.errors import UsageError
from adjudge.formats.text import show

_SIMILAR = ("similar", "similar:cosine", "similar:dot", "similar:euclidean")

GOLD = frozenset(
    (*_SIMILAR, "equals", "factuality", "model-graded-factuality", "levenshtein", "rouge-n", "bleu", "gleu", "meteor")
)
"""Assertions whose value is a known good answer."""

_OTHER_TYPES = """
agent-rubric answer-relevance classifier contains contains-all contains-any contains-html contains-json
contains-sql contains-xml context-faithfulness context-recall context-relevance conversation-relevance cost
eval finish-reason fn g-eval grade guardrails icontains icontains-all icontains-any is-html is-json is-refusal
is-sql is-valid-function-call is-valid-openai-function-call is-valid-openai-tools-call is-xml javascript
latency llm-rubric max-score model-graded-closedqa moderation perplexity perplexity-score pi python regex ruby
search-rubric select-best skill-used starts-with tool-call-f1 trace-error-spans trace-span-count
trace-span-duration trajectory:goal-success trajectory:step-count trajectory:tool-args-match
trajectory:tool-sequence trajectory:tool-used webhook word-count
"""
"""The other types of assertions of promptfoo 0.121.20. A table's cell that begins with no known type is an answer."""

_KNOWN = sorted({*GOLD, *_OTHER_TYPES.split()}, key=len, reverse=True)

_TYPE = re.compile(
    rf"(?P<type>(?:not-)?(?:{'|'.join(map(re.escape, _KNOWN))}))"
    r"(?:\((?P<threshold>[0-9.]{1,20})\))?(?::(?P<value>.*))?",
    re.DOTALL,
)


def check_test(test: Any) -> Mapping[str, Any] | UsageError:
    """Return a test, or the error for a value that is none."""
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


def read_test_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Read a row of a table of tests: columns with two underscores are promptfoo's, all others are variables."""
    test: dict[str, Any] = {"vars": {}, "metadata": {}, "assert": []}
    for name, cell in row.items():
        if name.startswith("__expected"):
            test["assert"] += [_read_assertion(cell)] if cell.strip() else []
        elif name.startswith("__metadata:"):
            key = name.removeprefix("__metadata:")
            if cell.strip():
                test["metadata"][key.removesuffix("[]")] = _split_list(cell) if key.endswith("[]") else cell
        elif name.startswith("__"):
            if cell:
                test[name.removeprefix("__")] = cell
        else:
            test["vars"][name] = cell
    return test


def _split_list(cell: str) -> list[str]:
    """Split a cell at its commas; a comma behind a backslash is part of a text."""
    return [part.replace("\\,", ",").strip() for part in re.split(r"(?<!\\),", cell)]


def _read_assertion(cell: str) -> dict[str, Any]:
    """Read a cell such as ``contains: Paris`` as an assertion; a text without a type is an answer to be equal to."""
    match = _TYPE.fullmatch(cell.strip())
    if match is None and cell.strip().startswith("file://"):  # a file of code, and no answer
        return {"type": "python" if ".py" in Path(cell).suffix else "javascript", "value": cell.strip()}
    if match is None:
        return {"type": "equals", "value": cell}
    kind = {"grade": "llm-rubric", "fn": "javascript", "eval": "javascript"}.get(match["type"], match["type"])
    assertion: dict[str, Any] = {"type": kind}
    if match["value"] is not None:
        assertion["value"] = match["value"].strip()
    return assertion | ({"threshold": float(match["threshold"])} if _is_number(match["threshold"]) else {})


def _is_number(text: str | None) -> bool:
    """Return whether a text is a number that is written with digits and at most one point."""
    return text is not None and re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", text) is not None


MOST_OF_SCENARIO = 100_000
"""Tests of one scenario. Its settings are multiplied by its tests, so that a small file could stand for any number."""

_LONGEST_CHAIN = 10
"""References that are followed from one to the next; they may lead in a circle."""

_CODE = frozenset((".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".py", ".rb"))
"""The suffixes of files of code."""

_SHEETS = frozenset((".xlsx", ".xls"))
"""The suffixes of spreadsheets."""


Test = Mapping[str, Any]

ReadTests = Iterator[Test | UsageError]
"""Tests, and errors in place of those that cannot be read."""


def read_document(path: Path) -> Any:
    """Read a file of YAML or JSON; in YAML, ``Yes`` and ``2024-01-02`` are texts, as promptfoo reads them.

    Raises ``UsageError``.
    """
    from adjudge.formats.json import read_json, to_json_value
    from adjudge.formats.yaml import read_yaml

    is_json = path.suffix.lower() == ".json"
    text = read_whole(str(path), LARGEST_JSON if is_json else LARGEST_YAML)
    try:
        if is_json:
            return read_json(text)
        return to_json_value(read_yaml(text, most=MOST_YAML, few_words=True)[0])
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None


def list_tests(path: Path, document: Any) -> ReadTests:
    """Yield the tests of a file; ``document`` is its content when it is YAML or JSON, else ``None``.

    Raises ``UsageError``.
    """
    files = Files(root=path.parent)
    if document is None:
        yield from files.read_tests(path)
    elif isinstance(document, list):
        yield from (files.open_test(test, path.parent, document) for test in document)
    elif isinstance(document, dict) and ("tests" in document or "scenarios" in document):
        yield from _list_configured(files, path, document)
    else:
        raise UsageError(f"{path} has no 'tests'; name a configuration of promptfoo, or a file of its tests or results")


def _list_configured(files: Files, path: Path, document: Mapping[str, Any]) -> ReadTests:
    """Yield the tests and the scenarios' tests of a configuration, each with the defaults filled in.

    Raises ``UsageError``.
    """
    default_test = resolve_reference(document, document.get("defaultTest") or {})
    if isinstance(default_test, str):
        default_test = files.read_one(default_test)
    default_test = files.open_test(default_test, path.parent, document)
    if isinstance(default_test, UsageError):
        raise UsageError(f"{path}: defaultTest: {default_test}")
    for test in files.list_tests(document.get("tests"), document):
        yield test if isinstance(test, UsageError) else merge_default(default_test, test)
    for scenario in files.list_scenarios(document):
        tests = list(files.list_tests(scenario.get("tests"), document))
        settings = list(_list_settings(files, scenario, document))
        count = len(settings) * len(tests)
        if count > MOST_OF_SCENARIO:
            raise UsageError(f"a scenario makes {count:,} tests, and at most {MOST_OF_SCENARIO:,} are made; split it")
        for setting, test in product(settings, tests):
            if isinstance(setting, UsageError):
                yield setting
            elif isinstance(test, UsageError):
                yield test
            else:
                yield merge_default(default_test, _merge_test(setting, test))


def _list_settings(files: Files, scenario: Test, document: Any) -> ReadTests:
    """Yield the settings of a scenario, with each of which its tests are made: written out, or in a file."""
    config = scenario["config"]
    settings = files.read_one(config) if isinstance(config, str) else config
    for setting in settings if isinstance(settings, list) else [settings]:
        yield files.open_test(setting, files.root, document)


def _merge_test(base: Any, test: Any) -> dict[str, Any]:
    """Merge a test into a base: its members replace those of the base, and its assertions follow those of the base."""
    merged = {**base, **test}
    for key in ("vars", "metadata", "options"):
        if base.get(key) or test.get(key):
            merged[key] = {**(base.get(key) or {}), **(test.get(key) or {})}
    merged["assert"] = [*(base.get("assert") or ()), *(test.get("assert") or ())]
    return merged


def merge_default(base: Any, test: Any) -> Test:
    """Merge a test into ``defaultTest`` (``base``), without the assertions of that one if the test's options say so."""
    options = test.get("options")
    leaves_out_assertions = isinstance(options, dict) and options.get("disableDefaultAsserts") is True
    return _merge_test({**base, "assert": []} if leaves_out_assertions else base, test)


def resolve_reference(document: Any, value: Any) -> Any:
    """Return the value that a ``$ref`` into the same document points to; any other value as it is."""
    for _ in range(_LONGEST_CHAIN):
        address = value.get("$ref") if isinstance(value, dict) else None
        if not isinstance(address, str) or not address.startswith("#/"):
            return value
        target = document
        for step in address[2:].split("/"):
            key = step.replace("~1", "/").replace("~0", "~")
            target = target.get(key) if isinstance(target, dict) else None
        if target is None:
            return value
        value = target
    return value


class Files:
    """The files below one folder that a suite may name; each document is read once."""

    def __init__(self, *, root: Path) -> None:
        self.root = root
        self._inside = root.resolve()
        self._search = FileSearch(self._inside)
        # A hundred thousand assertions, or tests, may name one file of ten megabytes.
        self._kept: dict[tuple[Path, str], Any] = {}
        self._bytes_left = LARGEST_JSON

    def list_tests(self, tests: Any, document: Any) -> ReadTests:
        """Yield the tests that ``tests`` holds: one or several, written out or in files."""
        for test in tests if isinstance(tests, list) else [] if tests is None else [tests]:
            path = test.get("path") if isinstance(test, dict) and "vars" not in test else None
            if isinstance(test, str):
                yield from self.read_address(test)
            elif isinstance(path, str) and not _is_code(path):
                yield from self.read_address(path)
            else:
                yield self.open_test(test, self.root, document)

    def list_scenarios(self, configuration: Mapping[str, Any]) -> Iterator[Test]:
        """Yield the scenarios of a configuration, written out or in files. Raises ``UsageError``."""
        scenarios = configuration.get("scenarios")
        for entry in scenarios if isinstance(scenarios, list) else [scenarios] if scenarios else []:
            documents = [entry]
            if isinstance(entry, str):
                documents = [self.read_document(path) for path in self.find_paths(entry)]
            for document in documents:
                for scenario in document if isinstance(document, list) else [document]:
                    yield _check_scenario(scenario)

    def read_address(self, address: str) -> ReadTests:
        """Yield the tests in the files that an address names. Raises ``UsageError``."""
        if _is_code(address) or "://" in address.removeprefix("file://"):
            raise UsageError(f"the tests {show(address)} are made by code or elsewhere; export them to a file first")
        if Path(address.partition("#")[0]).suffix.lower() in _SHEETS:
            raise UsageError(f"the tests {show(address)} are a spreadsheet; save it as CSV, and name that")
        for path in self.find_paths(address):
            yield from self.read_tests(path)

    def find_paths(self, address: str) -> Iterator[Path]:
        """Yield the paths of the files that an address names, which may be a pattern. Raises ``UsageError``."""
        for path in self._search.find_files(address.removeprefix("file://")):
            # A configuration that somebody else wrote must not send other files of this machine to a model.
            try:
                is_inside = path.resolve().is_relative_to(self._inside)
            except (OSError, ValueError, RuntimeError):  # half of a character, a NUL, or links in a circle
                raise UsageError(f"{show(address)} is no path of a file; name one") from None
            if not is_inside:
                raise UsageError(f"the tests {show(address)} are outside the configuration's folder; move them")
            if check_path(str(path)):
                raise UsageError(f"{path} is no regular file; tests are read from one")
            yield path

    def read_document(self, path: Path) -> Any:
        """Read a file of YAML or JSON; raises ``UsageError`` for any other file."""
        if path.suffix.lower() not in {".yaml", ".yml", ".json"}:
            raise UsageError(f"{path} is neither YAML nor JSON; write it out in the configuration")
        return self._read_once(path, read_document)

    def read_one(self, address: str) -> Any:
        """Read the first file that an address names."""
        return next(self.read_document(path) for path in self.find_paths(address))

    def read_value(self, address: str) -> Any:
        """Read the file that the value of an assertion names: the text of a .txt or .md, or a document."""
        path = next(self.find_paths(address))
        if path.suffix.lower() in {".txt", ".md"}:
            return self._read_once(path, lambda text: read_whole(str(text), LARGEST_YAML).strip())
        return self.read_document(path)

    def _read_once(self, path: Path, read: Callable[[Path], Any]) -> Any:
        """Return what ``read`` returns for a file, kept from the first time.

        Raises ``UsageError`` for files of more bytes together than may be kept.
        """
        key = (path.resolve(), path.suffix.lower())
        if key not in self._kept:
            content = read(path)
            self._bytes_left -= path.stat().st_size
            if self._bytes_left < 0:
                raise UsageError(
                    f"with {path}, the files that the suite names hold more than {LARGEST_JSON // 1_000_000} MB; "
                    "split the suite"
                )
            self._kept[key] = content
        return self._kept[key]

    def read_tests(self, path: Path) -> ReadTests:
        """Yield the tests of a file, and an error for each row that is none."""
        form, gz = find_format(str(path), None)
        if form in {"yaml", "json"}:
            document = read_document(path)
            yield from (
                self.open_test(test, path.parent, document)
                for test in (document if isinstance(document, list) else [document])
            )
            return
        for line, row in read_rows(str(path), form, None, gz=gz):
            if isinstance(row, UsageError):
                yield UsageError(f"{path}, line {line}: {row}")
            else:
                yield read_test_row(row) if form in {"csv", "tsv"} else self.open_test(row, path.parent, row)

    def open_test(self, test: Any, folder: Path, document: Any) -> Test | UsageError:
        """Open a test: resolve its references, and read the variables that stand in files."""
        test = resolve_reference(document, test)
        if isinstance(test, dict):
            test = dict(test)
            if isinstance(test.get("assert"), list):
                test["assert"] = [resolve_reference(document, part) for part in test["assert"]]
            try:
                test["vars"] = self._read_vars(test.get("vars"), folder)
            except UsageError as error:
                return error
        return check_test(test)

    def _read_vars(self, variables: Any, folder: Path) -> Any:
        """Return the variables of a test; where they name files, those in the files, of which the last one counts.

        Raises ``UsageError`` for a file that holds no mapping.
        """
        addresses = [variables] if isinstance(variables, str) else variables
        if not isinstance(addresses, list) or not all(isinstance(entry, str) for entry in addresses):
            return variables
        paths: dict[Path, Path] = {}
        # A file that is named a million times counts once, where it is named last.
        for address in reversed(dict.fromkeys(reversed(addresses))):
            for path in self.find_paths(str(folder.resolve() / address.removeprefix("file://"))):
                paths.pop(path.resolve(), None)
                paths[path.resolve()] = path
        members: dict[str, Any] = {}
        for path in paths.values():
            document = self.read_document(path)
            if not isinstance(document, dict):
                raise UsageError(f"{path} must hold a mapping of variables, got {show(document)}")
            members |= document
        return members


def _check_scenario(scenario: Any) -> Test:
    """Return a scenario of a configuration; raise ``UsageError`` for a value that is none."""
    if not isinstance(scenario, dict) or not isinstance(scenario.get("config"), list | str):
        raise UsageError(f"a scenario must be a mapping with a list 'config', got {show(scenario)}")
    return scenario


def _is_code(address: str) -> bool:
    """Return whether an address names a file of code, perhaps with a function in it."""
    name = address.removeprefix("file://")
    return Path(re.split(r"[:#]", name, maxsplit=1)[0]).suffix.lower() in _CODE
