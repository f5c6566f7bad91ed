"""The files that configure or record a guard, by every spelling of their names."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from adjudge.guards import ToolCall
from adjudge.harness.self_protection import ProtectedFiles, SelfProtection, list_protected


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A workspace with links that lead to what is protected, beside it."""
    folder = tmp_path / "shop"
    guard = tmp_path / "guard"
    for made in (folder / ".claude", guard, folder / "src"):
        made.mkdir(parents=True)
    for file in (guard / "adjudge.toml", guard / "ledger.db", folder / ".claude" / "settings.json", folder / "a.py"):
        file.write_text("x")
    (folder / "c").symlink_to(".claude")
    (folder / "g").symlink_to(guard)
    (folder / "link.toml").symlink_to(guard / "adjudge.toml")
    os.link(guard / "adjudge.toml", folder / "hard.toml")
    return folder


def ask(shop: Path, tool: str, arguments: Mapping[str, Any], *, server: str | None = None) -> bool:
    guard = shop.parent / "guard"
    protected = ProtectedFiles(secret=(guard,), unwritable=(shop.parent / "env",))
    call = ToolCall(tool, arguments, "t", "s", server=server, cwd=str(shop))
    # Not the folder alone: a hard link outside of it is the file as well.
    screen = SelfProtection(
        ProtectedFiles(secret=(*protected.secret, guard / "adjudge.toml"), unwritable=protected.unwritable)
    )
    return asyncio.run(screen.screen_call(call, arguments)).allowed


SPELLINGS = [
    ".claude/settings.json",
    "./.claude/settings.json",
    "src/../.claude/settings.json",
    "c/settings.json",
    ".CLAUDE/Settings.JSON",
    ".claude//settings.json",
    "c/../.claude/settings.local.json",
    "../guard/adjudge.toml",
    "../guard/new-file",
    "../GUARD/adjudge.toml",
    "g/adjudge.toml",
    "g/ledger.db-wal",
    "link.toml",
    "hard.toml",
    "file:///etc/x/../../proc/self/environ",
    "/proc/1/environ",
    ".codex/config.toml",
    ".codex",
    "sub/.codex/hooks.json",
]

UNWRITABLE = [
    "CLAUDE.md",
    "claude.MD",
    "docs/AGENTS.md",
    ".mcp.json",
    ".git/hooks/pre-commit",
    ".git/config",
    "../env/x",
]

FREE = ["a.py", "src/new.py", "claude.py", ".claude/commands/x.md", "settings.json", ".git/HEAD", "/tmp/x", "codex"]


@pytest.mark.parametrize("path", SPELLINGS)
@pytest.mark.parametrize(
    ("tool", "name"),
    [
        ("Read", "file_path"),
        ("Edit", "file_path"),
        ("Write", "file_path"),
        ("NotebookEdit", "notebook_path"),
        ("view_image", "path"),
        ("Grep", "path"),
    ],
)
def test_a_protected_file_is_neither_read_nor_written(shop: Path, tool: str, name: str, path: str):
    """By every spelling, through links, and for a file that is not there yet."""
    assert not ask(shop, tool, {name: path})
    assert not ask(shop, tool, {name: str(shop / path)}) or path.startswith("file:")


@pytest.mark.parametrize("blank", [" ", "\n", "\t", "\r\n", "\xa0", "\ufeff", " \ufeff "])
@pytest.mark.parametrize("path", [".claude/settings.json", "../guard/adjudge.toml", "file:///proc/self/environ"])
def test_blanks_around_a_path_are_no_way_around(shop: Path, path: str, blank: str):
    """A harness trims them before it opens the file."""
    for spelling in (f"{path}{blank}", f"{blank}{path}", f"{blank}{path}{blank}"):
        assert not ask(shop, "Write", {"file_path": spelling, "content": "{}"})


def test_lines_in_a_path_are_no_way_around(shop: Path):
    """They go with the dots behind them, or stand for a link."""
    (shop / "l\nl").symlink_to(shop.parent / "guard")

    assert not ask(shop, "Write", {"file_path": "x\n/../.claude/settings.json", "content": "{}"})
    assert not ask(shop, "Write", {"file_path": "l\nl/adjudge.toml", "content": "{}"})
    assert ask(shop, "Write", {"file_path": ".gitignore", "content": "node_modules\n/.envrc\n/.codex\n"})


@pytest.mark.parametrize("path", [".claude/settings.json", "../guard/adjudge.toml", "hard.toml"])
def test_a_path_that_is_short_without_its_dots_is_looked_at(shop: Path, path: str):
    """A system opens none of that length; a program that takes the dots out first opens the short one."""
    long = "a/../" * 900

    assert not ask(shop, "Read", {"file_path": f"{shop}/{long}{path}"})
    assert not ask(shop, "Read", {"file_path": long + path})
    assert ask(shop, "Read", {"file_path": f"{long}a.py"})
    assert ask(shop, "Write", {"file_path": "a.py", "content": "words / words\n" * 10_000})


def test_letters_that_a_program_composes_are_no_way_around(shop: Path):
    """The name that was written is not there, and the composed one is a link."""
    (shop / "\u00e9").symlink_to(shop.parent / "guard")

    assert not ask(shop, "Read", {"file_path": "e\u0301/adjudge.toml"})
    assert not ask(shop, "Read", {"file_path": "\u00e9/adjudge.toml"})


def test_paths_that_take_too_long_to_look_at_are_refused(shop: Path):
    """Many of them, and few that are a thousand folders deep."""
    assert ask(shop, "Read", {"paths": [f"src/lib/module/{number}/a.py" for number in range(4_000)]})
    assert ask(shop, "Read", {"path": "a/" * 1_000})
    assert not ask(shop, "Read", {"paths": [f"{'a/' * 2_000}{number}" for number in range(100)]})


def test_a_search_of_a_folder_above_what_is_protected_is_refused(shop: Path):
    """It shows what is in every file below it; in a list of names is nothing of that."""
    (shop / "up").symlink_to("..")
    (shop / "elsewhere").mkdir()
    for path in ("..", str(shop.parent), f"{shop.parent}/", "up", "/", " .. ", "src/../..", str(shop.parent).upper()):
        assert not ask(shop, "Grep", {"pattern": ".", "path": path, "output_mode": "content"}), path
    for path in ("", ".", "src", "elsewhere", "../other", str(shop)):
        assert ask(shop, "Grep", {"pattern": "/", "path": path}), path
    assert ask(shop, "Grep", {"pattern": ".."})
    assert ask(shop, "Glob", {"pattern": "*.py", "path": ".."})
    assert ask(shop, "Grep", {"pattern": ".", "path": ".."}, server="search")


@pytest.mark.parametrize("arguments", [{}, {"path": ""}, {"path": " "}, {"path": None}, {"path": ["src"]}])
def test_a_search_without_a_folder_is_one_of_the_session_s(shop: Path, arguments: dict[str, Any]):
    """Which may be above what is protected."""
    call = ToolCall("Grep", {"pattern": "x"} | arguments, "t", "s", cwd=str(shop.parent))
    for secret, is_free in ((shop.parent / "guard" / "adjudge.toml", False), (Path("/elsewhere/adjudge.toml"), True)):
        screen = SelfProtection(ProtectedFiles(secret=(secret,)))
        assert asyncio.run(screen.screen_call(call, dict(call.arguments))).allowed is is_free


@pytest.mark.parametrize("path", UNWRITABLE)
def test_what_the_harness_reads_may_be_read_and_not_written(shop: Path, path: str):
    """An agent needs to read its instructions."""
    assert ask(shop, "Read", {"file_path": path})
    assert not ask(shop, "Write", {"file_path": path, "content": "x"})
    assert not ask(shop, "write_file", {"options": [{"path": path}]}, server="fs")


@pytest.mark.parametrize("path", FREE)
def test_other_files_are_free(shop: Path, path: str):
    """Names that only resemble a protected one, too."""
    assert ask(shop, "Read", {"file_path": path})
    assert ask(shop, "Write", {"file_path": path, "content": "CLAUDE.md is\nmy file"})


@pytest.mark.parametrize("path", [*SPELLINGS[:3], ".mcp.json", "../guard/adjudge.toml"])
@pytest.mark.parametrize("header", ["Add File", "Update File", "Delete File"])
def test_every_file_of_a_patch_is_looked_at(shop: Path, path: str, header: str):
    """Also the one that another is moved to."""
    first = f"*** Begin Patch\n*** {header}: {path}\n*** End Patch"
    moved = f"*** Begin Patch\n*** Update File: a.py\n*** Move to: {path}\n*** End Patch"

    assert not ask(shop, "apply_patch", {"command": first})
    assert not ask(shop, "apply_patch", {"command": moved})


def test_a_patch_that_cannot_be_read_is_refused(shop: Path):
    """Nobody knows which files it writes."""
    assert not ask(shop, "apply_patch", {"command": "*** Begin Patch\n*** Rename File: a\n*** End Patch"})
    assert ask(shop, "apply_patch", {"command": "*** Begin Patch\n*** Add File: a.py\n+.codex\n*** End Patch"})


@pytest.mark.parametrize(
    ("command", "is_free"),
    [
        ("cat ../guard/adjudge.toml", False),
        ("cp a.py ./.claude/settings.json", False),
        ("tr '\\0' '\\n' </proc/self/environ", False),
        ("echo x>.codex/config.toml", False),
        ("cat CLAUDE.md", True),
        ("make test", True),
    ],
)
def test_the_words_of_a_command_are_looked_at(shop: Path, command: str, is_free: bool):
    """A net: a command can write a file without a word that names it."""
    assert ask(shop, "Bash", {"command": command}) is is_free


def test_the_home_folder_is_meant_by_its_sign(shop: Path, monkeypatch: pytest.MonkeyPatch):
    """And profiles of shells in it are not written."""
    monkeypatch.setenv("HOME", str(shop))
    screen = SelfProtection(list_protected([shop / "key"]))
    calls = [ToolCall("Write", {"file_path": path}, "t", "s", cwd="/") for path in ("~/key", "~/.bashrc", "~/a.py")]

    assert [asyncio.run(screen.screen_call(call, dict(call.arguments))).allowed for call in calls] == [
        False,
        False,
        True,
    ]
