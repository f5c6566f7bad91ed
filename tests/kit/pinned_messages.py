"""The messages of errors, pinned in one file: what causes each, its type, its argument and its words."""

from __future__ import annotations

import ast
import asyncio
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from adjudge import UsageError
from kit.house import TESTS

FILE = TESTS / "data" / "messages.json"

UPDATE = "ADJUDGE_UPDATE_MESSAGES"
"""Set to 1, the file is written anew. Nothing else writes it: a call that it does not have fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """An error as it is pinned."""

    error: str
    """The name of its type."""
    argument: str | None
    message: str


def list_calls(module: str, name: str) -> Iterator[str]:
    """The text of each call in a tuple of functions without parameters, as a module's file has it."""
    tree = ast.parse(Path(module).read_text("utf-8"))
    found = next(node for node in tree.body if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name)
    assert isinstance(found.value, ast.Tuple)
    for call in found.value.elts:
        yield ast.unparse(call.body if isinstance(call, ast.Lambda) else call)


def catch(call: Callable[[], Any]) -> Pinned:
    """The ``UsageError`` that a call raises, as it is pinned; a coroutine is run."""
    try:
        made = call()
        if asyncio.iscoroutine(made):
            asyncio.run(made)
    except UsageError as error:
        return Pinned(error=type(error).__name__, argument=error.argument, message=str(error))
    pytest.fail("no UsageError was raised")


def read_pinned() -> dict[str, Pinned]:
    """What is pinned, by the text of the call."""
    return {call: Pinned(**members) for call, members in json.loads(FILE.read_text("utf-8")).items()}


def updates() -> bool:
    """Whether the file is written anew."""
    return os.environ.get(UPDATE) == "1"


def write_pinned(pinned: dict[str, Pinned]) -> None:
    """Write the file anew."""
    members = {call: asdict(error) for call, error in pinned.items()}
    FILE.write_text(json.dumps(members, indent=1, ensure_ascii=False) + "\n", "utf-8")
