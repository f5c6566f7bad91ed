"""Which gate checks which tool: the most specific name that fits, in any order, and none that only resembles it."""

from __future__ import annotations

import random
from typing import Any

import pytest

from adjudge import Gate, UsageError
from adjudge.guards import ToolGuard
from adjudge.guards.tool_guard.tool_patterns import ToolPatterns

TOOLS: dict[Any, str] = {
    "*": "any",
    "Read": "read",
    "delete_*": "delete",
    "delete_draft": "draft",
    "Write|Edit|apply_patch": "files",
    ("bank", "*"): "bank",
    ("bank", "transfer*"): "payments",
    ("bank-*", "*"): "branches",
}

CALLS: list[tuple[str, str | None, str | None]] = [
    ("Read", None, "read"),
    ("query", None, "any"),
    ("delete_file", None, "delete"),
    ("delete_", None, "delete"),
    ("delete_draft", None, "draft"),
    ("delete_drafts", None, "delete"),
    ("Write", None, "files"),
    ("apply_patch", None, "files"),
    ("balance", "bank", "bank"),
    ("transfer_all", "bank", "payments"),
    ("balance", "bank-north", "branches"),
    ("transfer", "bank-north", "branches"),
    ("query", "files", "any"),
    # what only resembles a stricter name
    ("Delete_file", None, None),
    ("delete-file", None, None),
    ("DELETE_FILE", None, None),
    ("de1ete_file", None, None),
    ("fs__delete_file", None, None),
    ("mcp__fs__delete_file", None, None),
    ("fs.delete_file", None, None),
    ("fs/delete_file", None, None),
    ("fs:delete_file", None, None),
    ("delete_file", "fs", None),
    ("write", None, None),
    ("Write", "fs", None),
    ("mcp__bank__transfer", None, None),
    ("Transfer", "bank", None),
    ("transfer", "Bank", None),
    ("transfer", "b4nk", "any"),
    # what is no name
    ("", None, None),
    ("delete_file ", None, None),
    (" delete_file", None, None),
    ("fs-delete_file", None, "any"),
    ("delete.file", None, None),
    ("deleteFile", None, None),
    ("balance", "Bank", None),
    ("balance", "bank ", None),
    ("bank__balance", None, None),
    ("x__parallel", None, None),
    ("multi_tool_use__parallel", None, None),
    ("a" * 201, None, None),
    ("a__" * 60_000, None, None),
    ("löschen", None, None),
    ("Read\n", None, None),
    ("Read", "bänk", None),
    ("Read\x00", None, None),
    # tools that call other tools, which no guard sees
    ("multi_tool_use.parallel", None, None),
    ("batch", None, None),
    ("Batch", None, None),
]


@pytest.mark.parametrize(("tool", "server", "expected"), CALLS)
def test_the_most_specific_name_counts(tool: str, server: str | None, expected: str | None):
    """A name that only resembles a more specific one is refused."""
    matched = ToolPatterns(TOOLS).find(tool, server)

    assert (matched and matched.value) == expected


def test_the_order_of_writing_does_not_count():
    """Fifty orders, one answer each."""
    keys = list(TOOLS)
    for seed in range(50):
        random.Random(seed).shuffle(keys)
        patterns = ToolPatterns({key: TOOLS[key] for key in keys})
        all_matched = [patterns.find(tool, server) for tool, server, _ in CALLS]

        assert [matched and matched.value for matched in all_matched] == [expected for _, _, expected in CALLS]


def test_a_tool_that_nothing_names_is_refused():
    """Also where another server has a tool of that name."""
    patterns = ToolPatterns({"Read": 1, ("bank", "balance"): 2})

    assert patterns.find("Write", None) is None
    assert patterns.find("Read", "bank") is None
    assert patterns.find("balance", None) is None


def test_a_tool_that_calls_others_can_be_named_exactly():
    """Then somebody has thought of it."""
    assert ToolPatterns({"batch": 1, "*": 2}).find("batch", None)


@pytest.mark.parametrize("key", ["", "a?c", "a[b]", "*_file", "a*b", "Read|", "löschen", ("bank",), ("", "x"), 5, None])
def test_a_name_that_cannot_be_read_is_refused(key: Any):
    """Patterns are names and beginnings of names; nothing else is guessed."""
    with pytest.raises(UsageError):
        ToolPatterns({key: 1})


def test_a_name_that_is_written_twice_is_refused():
    """Which of two gates counts would be a guess."""
    with pytest.raises(UsageError, match="twice"):
        ToolPatterns({"Write|Edit": 1, "Edit": 2})


def test_two_names_of_which_neither_is_more_specific_are_refused_until_the_third_is_written():
    """Both fit ``bank: delete_all``, and which of the two gates is stricter nobody but their author can know."""
    tools: dict[Any, int] = {("bank", "*"): 1, ("*", "delete_*"): 2}
    with pytest.raises(UsageError, match="both fit"):
        ToolPatterns(tools)

    matched = ToolPatterns(tools | {("bank", "delete_*"): 3}).find("delete_all", "bank")
    assert matched is not None
    assert matched.value == 3


@pytest.mark.parametrize("key", ["read_*", "*", ("bank", "*"), ("*", "balance")])
def test_only_a_tool_that_is_named_exactly_may_go_unchecked(key: Any):
    """A beginning of a name would let tools pass that nobody has thought of."""
    with pytest.raises(UsageError, match="named exactly"):
        ToolGuard({key: None})


def test_what_cannot_check_is_refused():
    """A text in a gate's place is found when the guard is made."""
    checkers: Any = {"a": Gate("a", rules=[{"contains": "x"}]), "b": "gate b"}
    with pytest.raises(UsageError, match="got str"):
        ToolGuard(checkers)


@pytest.mark.parametrize(
    ("written", "right"),
    [
        ("mcp__bank__pay", "('bank', 'pay')"),
        ("Read|mcp__bank__pay*", "('bank', 'pay*')"),
        ("mcp__bank", "('bank', '*')"),
        ("mcp__*", "('*', '*')"),
    ],
)
def test_a_harnesss_spelling_of_a_tool_of_mcp_is_refused(written: str, right: str):
    """No call has that name, so its gate would never be asked; the message has the right one."""
    with pytest.raises(UsageError) as caught:
        ToolPatterns({written: 1})
    assert right in str(caught.value)
