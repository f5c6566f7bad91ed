"""The messages of errors, decisions and commands, pinned in one file by the text of the call that causes each."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from adjudge import JudgeResult, UsageError
from kit.house import TESTS

FILE = TESTS / "data" / "messages.json"

IS_UPDATE = os.environ.get("ADJUDGE_UPDATE_MESSAGES") == "1"
"""True if the file is written anew. Nothing else writes it: a call that it does not have fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedError:
    """An error as it is pinned."""

    error: str
    """The name of its type."""
    argument: str | None
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The lines that a command wrote."""

    status: int
    lines: tuple[str, ...]


def list_calls(module: str, name: str) -> Iterator[str]:
    """The text of each call in a tuple of functions without parameters, as a module's file has it."""
    tree = ast.parse(Path(module).read_text("utf-8"))
    table = next(node for node in tree.body if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name)
    assert isinstance(table.value, ast.Tuple)
    for call in table.value.elts:
        yield ast.unparse(call.body if isinstance(call, ast.Lambda) else call)


def describe_outcome(call: Callable[[], Any]) -> Any:
    """The ``UsageError`` that a call raises, or the sentence or the lines that it returns; a coroutine is run."""
    try:
        outcome = call()
        if asyncio.iscoroutine(outcome):
            outcome = asyncio.run(outcome)
    except UsageError as error:
        message = str(error).replace("compliant: nan)", "compliant)")  # Python 3.12 adds the number
        return asdict(PinnedError(error=type(error).__name__, argument=error.argument, message=message))
    if isinstance(outcome, Written):
        return {"status": outcome.status, "lines": list(outcome.lines)}
    if isinstance(outcome, JudgeResult):
        outcome = f"{outcome.outcome}: {outcome.detail}"
    # The line of a function of the tests moves with every line above it.
    return re.sub(r"(\w+\.py):\d+", r"\1:1", outcome) if isinstance(outcome, str) else outcome


def read_pinned() -> dict[str, Any]:
    """The outcomes that are pinned, by the text of the call."""
    return json.loads(FILE.read_text("utf-8"))


def list_errors() -> list[PinnedError]:
    """The errors that are pinned."""
    pinned = [outcome for outcome in read_pinned().values() if isinstance(outcome, dict) and "error" in outcome]
    return [PinnedError(**error) for error in pinned]


def list_lines() -> list[str]:
    """The lines of commands that are pinned."""
    pinned = [outcome for outcome in read_pinned().values() if isinstance(outcome, dict)]
    return [line for outcome in pinned for line in outcome.get("lines", ())]


def list_messages() -> list[str]:
    """All messages that are pinned."""
    sentences = [outcome for outcome in read_pinned().values() if isinstance(outcome, str)]
    return [*(error.message for error in list_errors()), *sentences, *list_lines()]


def write_pinned(pinned: dict[str, Any]) -> None:
    """Write the file anew."""
    FILE.write_text(json.dumps(pinned, indent=1, ensure_ascii=False) + "\n", "utf-8")
