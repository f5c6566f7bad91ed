"""Patches in shell commands of Codex.

Codex applies a patch in a shell command itself, but tells its hooks only of a command, so the patch has to be found
here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from adjudge.errors import UsageError
from adjudge.formats.patch import list_patched_files

_PATCH_COMMAND = re.compile(
    r"""\s*(?:cd\s+(?P<folder>[^\s'"`$;&|<>()*?\[\]{}\\!~]+|'[^'\n]*')\s*&&\s*)?"""
    r"""(?:apply_patch|applypatch)\s*<<\s*(?P<quote>['"])(?P<end>\w+)(?P=quote)\s*\n"""
    r"""(?P<patch>.*?)\n(?P=end)\s*""",
    re.DOTALL,
)

_PATCH_MENTION = re.compile(r"apply_?patch|\*\*\*\s*Begin\s+Patch", re.IGNORECASE)

_QUOTES = str.maketrans("", "", "'\"\\")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandPatch:
    """A patch in a shell command."""

    patch: str
    folder: str | None = None
    """The folder that the command changes to first; ``None`` where it does not."""


def find_patch(command: str) -> CommandPatch | None:
    """Find the patch that a shell command applies; ``None`` for a command that mentions no patch.

    Raises ``UsageError`` for a command that mentions a patch and is more than that patch, or has it in another form
    than a quoted here-document, whose text a shell does not change: nobody knows what Codex would do with it.
    """
    if _PATCH_MENTION.search(command.translate(_QUOTES)) is None:
        return None
    parts = _PATCH_COMMAND.fullmatch(command)
    if parts is None:
        raise UsageError("the command mentions a patch and is not one alone, so the files that it writes are unknown")
    # Called for its error only: it raises for a patch whose files cannot be listed.
    list_patched_files(parts["patch"])
    folder = parts["folder"]
    return CommandPatch(patch=parts["patch"], folder=None if folder is None else folder.strip("'"))
