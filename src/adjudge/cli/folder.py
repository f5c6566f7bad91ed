"""The text files of a folder that ``adjudge judge FOLDER`` is to judge.

A folder may have been filled by somebody who wants to pass. No link is followed: it could lead to a file of this
machine that nobody meant to send to a model.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from adjudge.errors import UsageError

BYTES_CHECKED = 8_192
"""Bytes at the beginning of a file that are checked to tell a text from a binary file."""

_SKIP_REASONS = {"hidden": "hidden", "binary": "binary", "link": "links, or no files"}
"""The reasons for which a file is left out, and the words for each in a message."""


def list_texts(folder: str) -> tuple[list[str], str | None]:
    """List the paths of the text files below a folder, sorted; also return a sentence about the files left out, if any.

    Raises ``UsageError`` for a folder of which a part cannot be read, or that holds no text: judging only some of the
    files, or none, would look as if all of them had passed.
    """
    left_out: Counter[str] = Counter()
    texts = sorted(_find_text_files(folder, left_out), key=lambda path: Path(path).parts)
    sentence = ", ".join(f"{left_out[reason]:,} {words}" for reason, words in _SKIP_REASONS.items() if left_out[reason])
    if not texts:
        raise UsageError(
            f"{folder} holds no text file{f' ({sentence})' if sentence else ''}; name a folder with texts in it"
        )
    return texts, f"left out of {folder}: {sentence}" if sentence else None


def _find_text_files(folder: str, left_out: Counter[str]) -> Iterator[str]:
    """Yield the paths of the text files below a folder, and count in ``left_out`` those that are skipped, by reason."""

    def refuse(error: OSError) -> None:
        raise UsageError(f"cannot read {error.filename}: {error.strerror}; make it readable, or name the files")

    for parent, folders, files in os.walk(folder, onerror=refuse):
        for name in [*folders]:
            reason = "hidden" if name.startswith(".") else "link" if Path(parent, name).is_symlink() else None
            if reason is not None:
                folders.remove(name)  # os.walk does not go into folders that were removed from its list
                left_out[reason] += 1
        for name in files:
            path = str(Path(parent, name))
            reason = _find_skip_reason(path, name)
            if reason is None:
                yield path
            else:
                left_out[reason] += 1


def _find_skip_reason(path: str, name: str) -> str | None:
    """Find why a file is left out: ``hidden``, ``link`` or ``binary``; ``None`` where it is judged.

    A file that cannot be opened is not left out: judging it reports the error.
    """
    if name.startswith("."):
        return "hidden"
    if Path(path).is_symlink() or not Path(path).is_file():
        return "link"
    try:
        with Path(path).open("rb") as file:
            return "binary" if b"\x00" in file.read(BYTES_CHECKED) else None
    except OSError:
        return None
