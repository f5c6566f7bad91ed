"""Reading the files that observability tools export: their rows, in JSON or tables, and the answer in an output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.dataset.case import check_text
from adjudge.dataset.formats import LARGEST_JSON, TABLES, Row, check_path, find_format, read_rows, read_whole
from adjudge.errors import UsageError
from adjudge.formats.json import read_json
from adjudge.formats.text import flatten, show

_OBJECT = ("{'", "[{'", "['")
"""The beginning of a cell that holds Python's text of an object, which no reader of JSON understands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The form of one tool's exports."""

    tool: str
    """The name of the tool."""
    lists: Sequence[str] = ()
    """Members of an outer object that hold the rows, with dots to reach inside: a page of an API, a whole data set."""
    cells: tuple[str, ...] = ()
    """The beginnings of columns whose cells are JSON where they look like an object or a list; others are text."""
    framed: bool = True
    """True if its tables are written from pandas frames, which write objects as Python does."""


def read_exported(path: str, shape: Shape) -> Iterator[Row]:
    """Yield the rows of a file with their numbers; for a row that cannot be read, its error."""
    check_path(path)
    form, gz = find_format(path, None)
    if form == "yaml":
        raise UsageError(f"{path}: {shape.tool} exports no YAML; name a file of JSON, JSON lines or a table")
    if form == "json":
        yield from _read_document(path, shape)
        return
    for number, row in read_rows(path, form, None, gz=gz):
        yield number, row if isinstance(row, UsageError) or form not in TABLES else _read_cells(row, shape)


def _read_document(path: str, shape: Shape) -> Iterator[Row]:
    """Yield the rows of an export that is one JSON document, each behind its number. Raises ``UsageError``."""
    try:
        document = read_json(read_whole(path, LARGEST_JSON), nan_is_null=True)
    except UsageError:
        raise
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON ({flatten(str(error))}); lines of JSON end in .jsonl") from None
    rows = document if isinstance(document, list) else _find_list(document, shape)
    for number, row in enumerate(rows, 1):
        try:
            check_text(row)
        except UsageError as error:
            yield number, error
            continue
        yield number, row if isinstance(row, dict) else UsageError(f"a row must be an object, got {show(row)}")


def _find_list(document: Any, shape: Shape) -> list[Any]:
    """Find the list of rows within a document, at one of the members that the shape names.

    A document without such a list is one row itself.
    """
    for name in shape.lists:
        value = document
        for step in name.split("."):
            value = value.get(step) if isinstance(value, dict) else None
        if isinstance(value, list):
            return value
    return [document]


def _read_cells(row: Mapping[str, Any], shape: Shape) -> Mapping[str, Any] | UsageError:
    """Read the cells of a table's row; a row with a cell that cannot be read is returned as its error."""
    try:
        # Pandas writes the index of a frame under such a name; it is one of the columns, or a number.
        cells = {name: cell for name, cell in row.items() if not name.startswith("__index_level_")}
        return {name: _read_cell(name, cell, shape) for name, cell in cells.items()}
    except UsageError as error:
        return error


def _read_cell(name: str, cell: Any, shape: Shape) -> Any:
    """Read a cell of a table: JSON if it is a column of JSON, ``None`` if it is empty, else as it is.

    Raises ``UsageError``.
    """
    if cell == "":
        return None
    if not isinstance(cell, str) or not cell.strip() or not name.startswith(shape.cells):
        return cell
    text = cell.strip()
    if shape.framed and text.startswith(_OBJECT):
        raise UsageError(
            f"the column {show(name)} holds Python's text of an object, which is no JSON; "
            "export JSON lines (frame.to_json(FILE, orient='records', lines=True))"
        )
    if text[0] not in "{[":
        return cell
    try:
        return read_json(text)
    except (ValueError, RecursionError):  # an answer may begin with a bracket
        return cell


def unwrap_single(value: Any) -> Any:
    """Return the value of an object's only member, where that can be judged by itself; anything else as it is.

    ``{"approved": true}`` stays: without its name, a truth or a number says nothing.
    """
    member = next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else None
    return member if isinstance(member, str | list | dict) else value


def find_answer(value: Any) -> Any:
    """Find the answer in an output: the text of its only message, without the objects and lists around that.

    An output without such a message is returned as it is, or as the value of its only member. So are a message without
    text, as before a call of a tool, and an output that holds several answers.
    """
    answer = value
    if isinstance(answer, dict) and isinstance(answer.get("choices"), list):
        answer = answer["choices"][0] if len(answer["choices"]) == 1 else answer
    for _ in range(3):  # the levels around a message that clients write
        if isinstance(answer, dict) and isinstance(answer.get("message"), dict):
            answer = answer["message"]
        elif isinstance(answer, list) and len(answer) == 1 and _is_answer(answer[0]):
            answer = answer[0]
        elif not _is_answer(answer):
            answer = unwrap_single(answer)
    return answer["content"] if _is_answer(answer) else answer


def _is_answer(value: Any) -> bool:
    """Return whether this is a message of an assistant that is text and nothing else."""
    return (
        isinstance(value, dict)
        and value.get("role") in ("assistant", "ai", "model")
        and isinstance(value.get("content"), str)
        and not value.get("tool_calls")
    )


def check_answer(value: Any, name: str) -> Any:
    """Return the answer of an item that ``name`` describes.

    Raises ``UsageError`` where there is none: judged as an empty answer, it could pass.
    """
    if value is None or value in ({}, []):
        raise UsageError(f"the {name} has no output; leave it out of the export, or run it again")
    return value


def read_text(value: Any) -> str | None:
    """Read a text that is not empty, or ``None``; a number is the text that it is written as."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value else None


def select_members(row: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Select the members of a row that have these names and are not empty."""
    return {name: row[name] for name in names if row.get(name) not in (None, "", [], {})}


def make_metadata(tool: str, metadata: Any, extras: Mapping[str, Any]) -> dict[str, Any]:
    """Make the metadata of a case: the item's own, and ``extras``, other members of the item, under the tool's name."""
    if isinstance(metadata, Mapping):
        members = dict(metadata)
    elif metadata in (None, "", []):
        members = {}
    else:
        members = {"metadata": metadata}
    return members | ({tool: dict(extras)} if extras else {})
