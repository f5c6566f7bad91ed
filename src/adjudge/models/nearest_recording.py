"""What differs between a request and the nearest recorded one, for people who have to mend a replay."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from adjudge.formats.text import quote

LARGEST = 20_000_000
"""Bytes of a recording that is looked through; a larger one is only said to have no reply."""

_FENCE = re.compile(r"^<<(end )?([a-z_-]{1,40}) ", re.MULTILINE)


class _Recorded(msgspec.Struct):
    key: str | None = None
    case: str | None = None
    order: str | None = None
    attempt: int | None = None
    model: str | None = None
    request: dict[str, Any] | None = None
    line: int = 0


def describe_nearest(
    path: Path,
    described: Mapping[str, Any],
    *,
    keys: Iterable[str],
    case: str | None,
    order: str | None,
    only: str | None,
) -> str:
    """A clause on the recorded request that is most like this one; empty where none can be compared.

    ``described`` is the request as a recording keeps it, ``keys`` under which it would have been found, ``only`` the
    one model whose rows are used. No content is quoted, because errors are logged; the prompt's parts are named.
    """
    wanted = set(keys)
    rows = list(_read_rows(path, only))
    same = [row for row in rows if row.key in wanted and (row.case is None or row.case == case)]
    if same:
        times = "once" if len(same) == 1 else f"{len(same)} times"
        return f"the same request was recorded {times}, and asked once more than that"
    comparable = [row for row in rows if row.request is not None]
    if not comparable:
        return ""
    nearest = max(comparable, key=lambda row: _measure(row, described, case, order))
    differences = list(_list_differences(nearest.request or {}, described))
    if case is not None and nearest.case not in (None, case):
        differences.insert(0, f"it is of case {quote(nearest.case or '', 60)}")
    elif order is not None and nearest.order not in (None, order):
        differences.insert(0, f"it is of order {nearest.order}")
    said = "; ".join(differences[:4])
    return f"the nearest is line {nearest.line}: {said}" if said else ""


def _read_rows(path: Path, only: str | None) -> Iterator[_Recorded]:
    if path.stat().st_size > LARGEST:
        return
    decoder = msgspec.json.Decoder(_Recorded)
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if line.strip():
            row = decoder.decode(line)
            row.line = number
            if only in (None, row.model):
                yield row


def _measure(row: _Recorded, described: Mapping[str, Any], case: str | None, order: str | None) -> tuple[int, ...]:
    """How near a recorded request is: the same case first, then equal parts, then how much of the data is the same."""
    request = row.request or {}
    equal = sum(request.get(name) == described[name] for name in ("system", "form", "parameters"))
    same_case = case is not None and row.case == case
    return (
        int(same_case),
        int(same_case and row.order == order),
        equal,
        _count_equal(str(request.get("user", "")), str(described["user"])),
    )


def _list_differences(recorded: Mapping[str, Any], described: Mapping[str, Any]) -> Iterator[str]:
    was, now = str(recorded.get("system", "")), str(described["system"])
    if was != now:
        yield f"its instructions differ from line {_find_line(was, now)} on (another rubric, or another version)"
    was, now = str(recorded.get("user", "")), str(described["user"])
    if was != now:
        yield f"its {_find_part(now, was)} differs"
    if recorded.get("form") != described["form"]:
        yield "one of the two asks for structured output of another form"
    before, after = recorded.get("parameters"), described["parameters"]
    before = before if isinstance(before, dict) else {}
    for name in after:
        if before.get(name) != after[name]:
            yield f"{name} was {_show_parameter(before.get(name))} and is {_show_parameter(after[name])}"


def _show_parameter(value: object) -> str:
    """A parameter is a number or a flag; a file may have anything in its place, a content among it."""
    return repr(value) if value is None or isinstance(value, bool | int | float) else f"a {type(value).__name__}"


def _count_equal(one: str, other: str) -> int:
    """How many characters two texts have in common at their beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:  # halving: comparing slices is far quicker than looking at each character
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def _find_line(was: str, now: str) -> int:
    return now.count("\n", 0, _count_equal(was, now)) + 1


def _find_part(now: str, was: str) -> str:
    """Which fenced piece of data the first difference stands in."""
    place = _count_equal(now, was)
    for text in (now, was):
        fences = [found for found in _FENCE.finditer(text) if found.start() <= place]
        if fences and fences[-1].group(1) is None:
            return fences[-1].group(2)
    return "prompt"
