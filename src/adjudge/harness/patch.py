"""Patches as Codex applies them, by the files that they touch. Pure.

Codex carries out a patch in a shell command itself and tells its hooks of a command, so the files have to be found
here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from adjudge.errors import UsageError
from adjudge.formats.text import quote

_HEADER = re.compile(r"\*\*\* (?:Add|Update|Delete) File: (.+)|\*\*\* Move to: (.+)")

_MARKS = ("*** Begin Patch", "*** End Patch", "*** End of File")

_COMMAND = re.compile(
    r"""\s*(?:cd\s+(?P<folder>[^\s'"`$;&|<>()*?\[\]{}\\!~]+|'[^'\n]*')\s*&&\s*)?"""
    r"""(?:apply_patch|applypatch)\s*<<\s*(?P<quote>['"])(?P<end>\w+)(?P=quote)\s*\n"""
    r"""(?P<patch>.*?)\n(?P=end)\s*""",
    re.DOTALL,
)

_MENTION = re.compile(r"apply_?patch|\*\*\*\s*Begin\s+Patch", re.IGNORECASE)

_QUOTES = str.maketrans("", "", "'\"\\")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandPatch:
    """A patch in a shell command."""

    patch: str
    folder: str | None = None
    """The folder that the command changes to first; ``None`` where it does not."""


def find_patch(command: str) -> CommandPatch | None:
    """Find the patch that a shell command is; ``None`` for a command in which there is no word of one.

    Raises ``UsageError`` for a command that mentions a patch and is not one alone, in the one form whose text a shell
    leaves as it is: what Codex would make of any other is a guess.
    """
    if _MENTION.search(command.translate(_QUOTES)) is None:
        return None
    parts = _COMMAND.fullmatch(command)
    if parts is None:
        raise UsageError("the command mentions a patch and is not one alone, so the files that it writes are unknown")
    list_patched_files(parts["patch"])
    folder = parts["folder"]
    return CommandPatch(patch=parts["patch"], folder=None if folder is None else folder.strip("'"))


def list_patched_files(patch: str) -> tuple[str, ...]:
    """List the files that a patch adds, changes, deletes or moves, as it names them.

    Raises ``UsageError`` for a text that is no patch, and for a line that begins like a header and is none of those
    known: such a line could name a file.
    """
    lines = patch.strip().splitlines()
    if len(lines) < 2 or lines[0].strip() != _MARKS[0] or lines[-1].strip() != _MARKS[1]:
        raise UsageError("the patch does not begin and end as one, so the files that it writes are unknown")
    paths: list[str] = []
    for line in lines:
        # Codex takes blanks before a header for nothing; a line of a file begins with " ", "+" or "-".
        text = line.strip()
        if not text.startswith("***") or line.startswith(("+", "-")):
            continue
        header = _HEADER.fullmatch(text)
        if header is not None:
            paths.append((header[1] or header[2]).strip())
        elif text not in _MARKS:
            raise UsageError(f"the patch has the line {quote(text, 60)}, which is no header that is known")
    if not paths:
        raise UsageError("the patch names no file, so the files that it writes are unknown")
    return tuple(paths)
