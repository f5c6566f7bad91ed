"""Patches in the form of Codex's tool ``apply_patch``, by the files that they touch. Pure."""

from __future__ import annotations

import re

from adjudge.errors import UsageError
from adjudge.formats.text import quote

_HEADER = re.compile(r"\*\*\* (?:Add|Update|Delete) File: (.+)|\*\*\* Move to: (.+)")

_MARKS = ("*** Begin Patch", "*** End Patch", "*** End of File")


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
