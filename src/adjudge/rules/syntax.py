"""The rule ``syntax``: the content is valid Python, JSON, YAML or TOML; nothing is run and no object is built."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

from adjudge.formats.arguments import check_choice
from adjudge.formats.json import read_json
from adjudge.formats.text import QUOTED, flatten
from adjudge.result import RuleResult

LONGEST = 200_000
"""The most characters that are parsed: a parser needs a hundred times as many bytes, and blocks everything else."""

MOST_DEPTH = 50
"""The most open brackets at once, and the most levels of YAML."""


_DIRECTIVE = re.compile("(?:\\A\ufeff?|[\n\r\x85\u2028\u2029])%")


def make_syntax(*, language: str) -> Callable[[Any], RuleResult]:
    """Make a check that the content is text in the language: its syntax is right, whatever it means."""
    check_choice("language", language, _READERS, where="rule syntax")
    read = _READERS[language]

    def check(content: Any) -> RuleResult:
        from adjudge.content import content_text

        text = content_text(content)
        if len(text) > LONGEST:
            return _make_result(f"is {len(text):,} characters long; at most {LONGEST:,} are parsed", passed=False)
        try:
            read(text)
        except ValueError as error:
            return _make_result(f"is not {language}: {flatten(str(error), QUOTED)}", passed=False)
        return _make_result(f"is {language}", passed=True)

    return check


def _make_result(message: str, *, passed: bool) -> RuleResult:
    return RuleResult(name="", passed=passed, message=message)


def _read_python(text: str) -> None:
    """Raise ``ValueError`` for a text that is no Python, or nests too deeply; nothing of it is run."""
    import ast

    _check_brackets(text)
    try:
        # An escape like "\d" is a warning, which a program may have turned into an error; it is no syntax error here.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        raise ValueError(f"line {error.lineno or 1}: {error.msg}") from None
    except (RecursionError, MemoryError):
        raise ValueError("nested too deeply to parse") from None


def _check_brackets(text: str) -> None:
    """Refuse deep nesting before a parser written in C descends into it; brackets in strings count as well."""
    depth = 0
    for char in text:
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth = max(0, depth - 1)
        if depth > MOST_DEPTH:
            raise ValueError(f"more than {MOST_DEPTH} brackets are open at once")


def _read_yaml(text: str) -> None:
    """Raise ``ValueError`` for a text that no YAML reader accepts; nothing is built of it."""
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    # A YAML reader compares each directive with all directives before it, so many of them would take too long.
    if _DIRECTIVE.search(text):
        raise ValueError("directives (lines that begin with %) are not read here")
    depth, anchors = 0, set()
    try:
        # Only events are read and no document is built, so no alias multiplies and no tag makes an object.
        events: Any = yaml.parse(text, loader)
        for event in events:
            line = event.start_mark.line + 1
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MOST_DEPTH:
                raise ValueError(f"line {line}: nested more than {MOST_DEPTH} levels deep")
            anchors = set() if isinstance(event, yaml.DocumentStartEvent) else anchors
            if isinstance(event, yaml.AliasEvent) and event.anchor not in anchors:
                raise ValueError(f"line {line}: an alias has no anchor before it")
            anchors.add(getattr(event, "anchor", None))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        raise ValueError(f"line {mark.line + 1}: {problem}" if mark else str(problem)) from None


def _read_toml(text: str) -> None:
    """Raise ``ValueError`` for a text that is no TOML, or would take too long to read."""
    import tomllib

    import re2

    # The time tomllib takes grows with the square of a dotted key's parts.
    if re2.search(r"""(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){50}""", text):
        raise ValueError("a dotted key has more than 50 parts")
    try:
        tomllib.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply to read") from None


_READERS: dict[str, Callable[[str], Any]] = {
    "python": _read_python,
    "json": read_json,
    "yaml": _read_yaml,
    "toml": _read_toml,
}
