"""YAML read strictly as data, with the line of each value.

PyYAML alone keeps the last of two equal keys, follows aliases that multiply, and its C composer overruns the stack
on deep nesting, which ends the process. All three are found here before anything is built. Numbers in base 60
(``1:30``) and directives (``%TAG``) are refused as well, because they take PyYAML quadratic time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from adjudge.formats.text import flatten, quote

MAX_DEPTH = 50
"""The most levels of lists and mappings inside each other."""

MAX_VALUES = 50_000
"""The most values in one document; a value that aliases repeat is counted each time."""


# A directive, which can only be at the start of a line as YAML defines lines.
_DIRECTIVE = re.compile("(?:\\A\ufeff?|[\n\r\x85\u2028\u2029])%")

_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")

_BOOLEAN = "tag:yaml.org,2002:bool"

_DATE = "tag:yaml.org,2002:timestamp"


LineOf = Mapping[tuple[str | int, ...], int]
"""Line numbers, from 1, by path; a path holds keys and list positions."""


def read_yaml(text: str, *, most: int = MAX_VALUES, few_words: bool = False) -> tuple[Any, LineOf]:
    """Read a document; return its data and the line of each part. Raises ``ValueError`` with a message of one line.

    ``most`` is the number of values that it may have. With ``few_words``, ``yes``, ``no``, ``on``, ``off`` and dates
    are text, as in YAML 1.2, for files that were written for a program that reads it so.
    """
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    if few_words:
        loader = _make_yaml_12_loader(loader)
    match = _DIRECTIVE.search(text)
    if match is not None:
        line = text.count("\n", 0, match.end()) + 1
        raise ValueError(f"line {line}: directives (lines that begin with %) are not read here; take it out")
    reader = None
    try:
        _check_events(yaml.parse(text, loader), most)
        reader = loader(text)
        node = reader.get_single_node()
        if node is None:
            raise ValueError("it is empty")
        lines = _list_lines(reader, node, most)
        return reader.construct_document(node), lines
    except yaml.YAMLError as error:
        raise ValueError(_explain_error(error)) from None
    except (RecursionError, OverflowError):
        raise ValueError("it holds a value that cannot be read") from None
    finally:
        if reader is not None:
            reader.dispose()


def _make_yaml_12_loader(loader: Any) -> Any:
    """Make a loader for which dates, and all booleans but ``true`` and ``false``, are text.

    PyYAML has resolvers by the first letter of a word, each a tag and a pattern.
    """
    all_resolvers = {}
    for letter, resolvers in loader.yaml_implicit_resolvers.items():
        all_resolvers[letter] = [
            (tag, pattern)
            for tag, pattern in resolvers
            if tag != _DATE and (tag != _BOOLEAN or letter in "tTfF")  # of "yes", "no" and "on" no letter is left
        ]
    return type(loader.__name__, (loader,), {"yaml_implicit_resolvers": all_resolvers})


def _check_events(events: Iterator[Any], most: int) -> None:
    """Raise ``ValueError`` for events that nest too deeply, or that are more than twice ``most``."""
    # Reading events takes no recursion. Composing nodes recurses in C without a limit, so this check must come first.
    import yaml

    depth = 0
    for count, event in enumerate(events):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise ValueError(f"line {event.start_mark.line + 1}: nested more than {MAX_DEPTH} levels deep")
        if count > 2 * most:
            raise ValueError(f"it holds more than {most:,} values")


def _list_lines(reader: Any, root: Any, most: int) -> LineOf:
    """List the line of every value; raises ``ValueError`` for a repeated key and for aliases that multiply."""
    import yaml

    lines: dict[tuple[str | int, ...], int] = {}
    stack: list[tuple[tuple[str | int, ...], Any]] = [((), root)]
    count = 0
    while stack:
        path, node = stack.pop()
        count += 1
        if count > most or len(path) > MAX_DEPTH:
            raise ValueError(f"its aliases (*) multiply to more than {most:,} values; write the values out")
        lines.setdefault(path, node.start_mark.line + 1)
        _check_number(node)
        if isinstance(node, yaml.SequenceNode):
            stack.extend(((*path, index), child) for index, child in enumerate(node.value))
        elif isinstance(node, yaml.MappingNode):
            for key, line, value in _read_keys(reader, node):
                lines[*path, key] = line
                stack.append(((*path, key), value))
    return lines


def _read_keys(reader: Any, node: Any) -> Iterator[tuple[Any, int, Any]]:
    """Yield each key of a mapping with its line and the node of its value; raises ``ValueError`` for a refused key."""
    import yaml

    seen: dict[Any, int] = {}
    for key_node, value in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            # Not a TypeError, because read_yaml raises only ValueError for a document that it refuses.
            raise ValueError(f"line {line}: a key must be a word or a number, not a list or a mapping")  # noqa: TRY004
        if key_node.tag == "tag:yaml.org,2002:merge":
            raise ValueError(f"line {line}: merge keys (<<) are not read here; write the keys out")
        _check_number(key_node)
        key = reader.construct_object(key_node)
        if key in seen:
            raise ValueError(f"line {line}: the key {quote(str(key))} is already in line {seen[key]}; keep one")
        seen[key] = line
        yield key, line, value


def _check_number(node: Any) -> None:
    """Raise ``ValueError`` for a number in base 60, such as ``1:30``."""
    if node.tag in _NUMBERS and isinstance(node.value, str) and ":" in node.value:
        quoted = quote(node.value, 20)
        raise ValueError(f"line {node.start_mark.line + 1}: {quoted} would be a number in base 60; put it in quotes")


def _explain_error(error: Any) -> str:
    """Write an error of PyYAML on one line, with its line and column if it has them."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    if "nesting depth" in problem:
        # libyaml reads ahead. Newer versions have a limit of their own, which may be reached before the one here.
        problem = f"nested more than {MAX_DEPTH} levels deep"
    return (f"line {mark.line + 1}, column {mark.column + 1}: " if mark else "") + flatten(str(problem), 200)
