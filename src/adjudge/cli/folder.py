"""The text files of a folder that is to be judged.

A folder may have been filled by somebody who wants to pass. No link is followed: it could lead to a file of this
machine that nobody meant to send to a model.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from adjudge.errors import UsageError

LOOKED_AT = 8_192
"""Bytes of a file that are looked at to tell a text from something else."""

_LEFT_OUT = {"hidden": "hidden", "binary": "binary", "link": "links, or no files"}


def list_texts(folder: str) -> tuple[list[str], str | None]:
    """The paths of the text files below a folder, sorted, and a sentence about what was left out, if anything was.

    Raises ``UsageError`` for a folder that cannot be read as a whole, or holds no text: judging the rest, or nothing,
    would look as if all of it had passed.
    """
    left_out: Counter[str] = Counter()
    texts = sorted(_walk(folder, left_out), key=lambda path: Path(path).parts)
    sentence = ", ".join(f"{left_out[kind]:,} {words}" for kind, words in _LEFT_OUT.items() if left_out[kind])
    if not texts:
        raise UsageError(
            f"{folder} holds no text file{f' ({sentence})' if sentence else ''}; name a folder with texts in it"
        )
    return texts, f"left out of {folder}: {sentence}" if sentence else None


def _walk(folder: str, left_out: Counter[str]) -> Iterator[str]:
    """Yield the paths of the text files below a folder, and count in ``left_out`` what is skipped and why."""

    def refuse(error: OSError) -> None:
        raise UsageError(f"cannot read {error.filename}: {error.strerror}; make it readable, or name the files")

    for place, folders, files in os.walk(folder, onerror=refuse):
        for name in [*folders]:
            kind = "hidden" if name.startswith(".") else "link" if Path(place, name).is_symlink() else None
            if kind is not None:
                folders.remove(name)
                left_out[kind] += 1
        for name in files:
            path = str(Path(place, name))
            kind = _find_kind(path, name)
            if kind is None:
                yield path
            else:
                left_out[kind] += 1


def _find_kind(path: str, name: str) -> str | None:
    """Find why a file is left out; ``None`` for a text, and for a file that cannot be opened, which judging reports."""
    if name.startswith("."):
        return "hidden"
    if Path(path).is_symlink() or not Path(path).is_file():
        return "link"
    try:
        with Path(path).open("rb") as file:
            return "binary" if b"\x00" in file.read(LOOKED_AT) else None
    except OSError:
        return None
