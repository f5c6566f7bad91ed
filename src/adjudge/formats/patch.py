"""The files that a patch of Codex's tool ``apply_patch`` changes, read from the text of the patch."""

from __future__ import annotations

import re
import unicodedata

from adjudge.errors import UsageError
from adjudge.formats.text import quote

_HEADER = re.compile(r"\*\*\* (?:Add|Update|Delete) File: (.+)|\*\*\* Move to: (.+)")

_MARKS = ("*** Begin Patch", "*** End Patch", "*** End of File")


def list_patched_files(patch: str) -> tuple[str, ...]:
    """List the files that a patch adds, changes, deletes or moves, as it names them.

    Raises ``UsageError`` for a text that is no patch, for a line that begins like a header and is none of those known,
    since it could name a file, and for a name with blanks around it or characters that may end a line.
    """
    # Codex splits lines at newlines alone. ``splitlines`` also splits at nine other characters, so it would read only
    # the beginning of a name that has one of them, and another file would be checked than the one that Codex writes.
    lines = [line.removesuffix("\r") for line in patch.strip().split("\n")]
    if len(lines) < 2 or lines[0].strip() != _MARKS[0] or lines[-1].strip() != _MARKS[1]:
        raise UsageError("the patch does not begin and end as one, so the files that it writes are unknown")
    paths: list[str] = []
    for line in lines:
        # Codex ignores blanks before a header. A line of a file's content begins with " ", "+" or "-".
        text = line.strip()
        if not text.startswith("***") or line.startswith(("+", "-")):
            continue
        header = _HEADER.fullmatch(text)
        if header is not None:
            paths.append(_check_name(header[1] or header[2]))
        elif text not in _MARKS:
            raise UsageError(f"the patch has the line {quote(text, 60)}, which is no header that is known")
    if not paths:
        raise UsageError("the patch names no file, so the files that it writes are unknown")
    return tuple(paths)


def _check_name(name: str) -> str:
    """Return the name of a file unchanged; raises ``UsageError`` for one that two programs may read differently."""
    if name != name.strip() or any(unicodedata.category(character) in _LINE_ENDING_CATEGORIES for character in name):
        raise UsageError(
            f"the patch names the file {quote(name, 60)}, with blanks around it or control characters in it"
        )
    return name


_LINE_ENDING_CATEGORIES = frozenset({"Cc", "Zl", "Zp"})
"""Unicode categories of the characters at which some program ends a line."""
