"""Patches in shell commands of Codex. Pure.

Codex carries out a patch in a shell command itself and tells its hooks of a command, so the patch has to be found here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from adjudge.errors import UsageError
from adjudge.formats.patch import list_patched_files

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
    # Raises for a patch of which the files cannot be listed.
    list_patched_files(parts["patch"])
    folder = parts["folder"]
    return CommandPatch(patch=parts["patch"], folder=None if folder is None else folder.strip("'"))
