"""The error for a request that no recording answers: the request, the reason, and the remedy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adjudge.errors import ModelError
from adjudge.formats.text import quote
from adjudge.models.model import FunctionIdentity, Request

if TYPE_CHECKING:
    from adjudge.models.replies.row import Prompt, PromptRow, Row

MOST_SEARCHED_BYTES = 20_000_000
"""Bytes of a recording that is looked through; a larger one is only said to have no reply."""

_FENCE_LINE = re.compile(r"^<<(end )?([a-z_-]{1,40}) ", re.MULTILINE)


class MissingRecording(ModelError):
    """No unused row of a recording answers this request.

    Args:
        message: What is missing, and what to do.
        key: The request's key.
    """

    def __init__(self, message: str, *, key: str) -> None:
        super().__init__(message)
        self.key = key


def make_missing_recording(
    path: Path, request: Request, key: str, *, other: str, nearest: str, erased: int
) -> MissingRecording:
    """Make the error for a request that no row answers.

    ``other`` says why a row that would answer the request may not, and ``nearest`` what differs from the most similar
    one; both may be empty. ``erased`` is how many rows of the file were deleted by ``adjudge forget``.
    """
    clauses = f"key {key}"
    clauses += f", case {request.case!r}" if request.case is not None else ""
    clauses += f", order {request.order}" if request.order is not None else ""
    message = f"{path} has no unused reply for {clauses}, attempt {request.attempt}"
    if other:
        return MissingRecording(f"{message}; {other}", key=key)
    if erased:
        number = "1 reply was" if erased == 1 else f"{erased:,} replies were"
        message += f"; {number} deleted from it by `adjudge forget`, and it may have been among them"
    message += f" ({nearest})" if nearest else ""
    return MissingRecording(f"{message}; record it again, or add a row by hand", key=key)


def make_no_recording_error(path: Path, model: str | None) -> MissingRecording:
    """Make the error for a file that does not exist, or has no row of a model."""
    return MissingRecording(f"there is no recording of {model or 'a model'} in {path}", key="")


def explain_other_judge(row: Row | None, function: FunctionIdentity | None) -> str:
    """Explain why a row that answers the request by its key or case may not answer this judge, and what to do.

    Empty if there is no such row, or if it is of this judge.
    """
    recorded = None if row is None else row.identify()
    if row is None or recorded == function:
        return ""
    if recorded is None:
        return "its reply is of a model, and the judge is a function; record it again"
    if function is None:
        counts = f"its reply is of the function {recorded}, and counts only if that function is the judge"
        return f"{counts}; name it as the judge, or record it again"
    return f"its reply is of the function {recorded}, which is another one or has other code; record it again"


def describe_nearest(
    path: Path,
    described: Mapping[str, Any],
    *,
    keys: Iterable[str],
    case: str | None,
    order: str | None,
    only: str | None,
) -> str:
    """Describe how the recorded request that is most similar to this one differs; empty where none can be compared.

    ``described`` is the request as a recording keeps it, ``keys`` under which it would have been found, ``only`` the
    one model whose rows are used. No content is quoted, because errors are logged; the prompt's parts are named.
    """
    wanted_keys = set(keys)
    rows = list(_read_rows(path, only))
    equal = [row for _, row in rows if row.key in wanted_keys and (row.case is None or row.case == case)]
    if equal:
        times = "once" if len(equal) == 1 else f"{len(equal)} times"
        return f"the same request was recorded {times}, and asked once more than that"
    comparable = [(number, row, row.request) for number, row in rows if row.request is not None]
    if not comparable:
        return ""
    line, nearest, recorded = max(
        comparable, key=lambda candidate: _measure_similarity(candidate[1], candidate[2], described, case, order)
    )
    differences = list(_list_differences(recorded, described))
    if case is not None and nearest.case not in (None, case):
        differences.insert(0, f"it is of case {quote(nearest.case or '', 60)}")
    elif order is not None and nearest.order not in (None, order):
        differences.insert(0, f"it is of order {nearest.order}")
    listed = "; ".join(differences[:4])
    return f"the nearest is line {line}: {listed}" if listed else ""


def _read_rows(path: Path, model: str | None) -> Iterator[tuple[int, PromptRow]]:
    """Yield the number of the line and the row, for the rows of one ``model`` of a recording, or (``None``) of all.

    Yields nothing for a file of more than ``MOST_SEARCHED_BYTES``.
    """
    from adjudge.models.replies.row import RECORDING, decode_prompt

    if path.stat().st_size > MOST_SEARCHED_BYTES:
        return
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if line.strip():
            row = decode_prompt(line, where=str(path), schema=RECORDING)
            if model in (None, row.model):
                yield number, row


def _measure_similarity(
    row: PromptRow, recorded: Prompt, described: Mapping[str, Any], case: str | None, order: str | None
) -> tuple[int, ...]:
    """Measure how similar a recorded request is, as a tuple to compare: the same case and order count most.

    Then count equal parts of the request, and last the characters with which the data begin alike.
    """
    equal = sum(getattr(recorded, name) == described[name] for name in ("system", "form", "parameters"))
    same_case = case is not None and row.case == case
    return (
        int(same_case),
        int(same_case and row.order == order),
        equal,
        _count_common_prefix(recorded.user, described["user"]),
    )


def _list_differences(recorded: Prompt, described: Mapping[str, Any]) -> Iterator[str]:
    """Yield a description of each part in which the present request differs from a recorded one."""
    if recorded.system != described["system"]:
        line = _find_first_different_line(recorded.system, described["system"])
        yield f"its instructions differ from line {line} on (another rubric, or another version)"
    if recorded.user != described["user"]:
        yield f"its {_find_different_part(described['user'], recorded.user)} differs"
    if recorded.form != described["form"]:
        yield "one of the two asks for structured output of another form"
    before = recorded.parameters if isinstance(recorded.parameters, dict) else {}
    after = described["parameters"]
    for name in after:
        if before.get(name) != after[name]:
            yield f"{name} was {_show_parameter(before.get(name))} and is {_show_parameter(after[name])}"


def _show_parameter(value: object) -> str:
    """Write a parameter, which is a number or a flag; of anything else, which may be content, only its type."""
    return repr(value) if value is None or isinstance(value, bool | int | float) else f"a {type(value).__name__}"


def _count_common_prefix(first: str, second: str) -> int:
    """Count the characters with which two texts begin alike."""
    low, high = 0, min(len(first), len(second))
    while low < high:  # binary search, because comparing slices is far quicker than a loop over characters
        middle = (low + high + 1) // 2
        low, high = (middle, high) if first[:middle] == second[:middle] else (low, middle - 1)
    return low


def _find_first_different_line(recorded: str, present: str) -> int:
    """Return the number, from 1, of the line in which the present text first differs from the recorded one."""
    return present.count("\n", 0, _count_common_prefix(recorded, present)) + 1


def _find_different_part(present: str, recorded: str) -> str:
    """Return the label of the fenced data in which the texts first differ; ``prompt`` if that is between fences."""
    position = _count_common_prefix(present, recorded)
    for text in (present, recorded):
        fences = [match for match in _FENCE_LINE.finditer(text) if match.start() <= position]
        if fences and fences[-1].group(1) is None:  # the last fence line before the difference opens its data
            return fences[-1].group(2)
    return "prompt"
