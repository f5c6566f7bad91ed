"""Cases whose content is an agent's run that is read from a transcript: one that a row names, or each file of a folder.

A data set and its folder may come from anybody. Only transcripts below the data set's folder are read, and no link is
followed: it could lead to a file of this machine that nobody meant to send to a model.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path, PurePosixPath
from typing import Any

from adjudge.agents.read import read_run
from adjudge.agents.run import AgentRun
from adjudge.dataset.case import Case
from adjudge.errors import UsageError
from adjudge.formats.text import show

KEY = "transcript"
"""The member of a row that names a transcript, in place of its content."""

SUFFIXES = (".jsonl", ".json")

MOST_FILES = 100_000
"""Transcripts of one folder."""

MOST_NESTED = 20
"""Levels of folders in the folder."""


def open_row(row: Mapping[str, Any], folder: Path | None) -> dict[str, Any]:
    """Return a row with the transcript that it names read as its content; the name is its id unless the row has one.

    Raises ``UsageError`` for a file that is no transcript, and for a path that leaves ``folder`` or leads through a
    link.
    """
    name = row[KEY]
    if "content" in row:
        raise UsageError(f"a row has 'content' or {KEY!r}, not both; keep one")
    if folder is None:
        raise UsageError(f"{KEY!r} names a file beside a data set; here hand in the run itself, read by read_run")
    run = _read_file(folder, name)
    rest = {key: value for key, value in row.items() if key != KEY}
    return {"id": name, **rest, "content": run}


def list_transcripts(folder: str, notes: MutableMapping[str, int]) -> Iterator[tuple[int, Case | UsageError]]:
    """Yield a case for each transcript below a folder, with its number, in the order of their paths, which are the ids.

    A transcript that cannot be read is yielded as its error. Files that are left out are counted in ``notes``. Raises
    ``UsageError`` for a folder that cannot be read as a whole, holds no transcript, or too many.
    """
    names = list_names(folder, notes)
    for number, name in enumerate(names, 1):
        try:
            yield number, Case(content=_read_file(Path(folder), name), id=name)
        except UsageError as error:
            yield number, error


def list_names(folder: str, notes: MutableMapping[str, int]) -> list[str]:
    """List the paths of the transcripts below a folder; raises as ``list_transcripts``."""

    def raise_unreadable(error: OSError) -> None:
        raise UsageError(f"cannot read {error.filename}: {error.strerror}; make it readable, or name another folder")

    names: list[str] = []
    root = Path(folder)
    for walked, subfolders, files in os.walk(folder, onerror=raise_unreadable):
        current = Path(walked)
        for name in [*subfolders]:
            if name.startswith(".") or (current / name).is_symlink():
                subfolders.remove(name)  # so that it is not walked through
                _count_note(notes, "hidden files and links are left out")
        if len(current.relative_to(root).parts) > MOST_NESTED:
            raise UsageError(
                f"{current} is more than {MOST_NESTED} folders deep; name the folder that holds transcripts"
            )
        paths = [current / name for name in files]
        names += [path.relative_to(root).as_posix() for path in paths if _is_transcript(path, notes)]
        if len(names) > MOST_FILES:
            raise UsageError(f"{folder} holds more than {MOST_FILES:,} transcripts; name a folder in it")
    if not names:
        raise UsageError(
            f"{folder} is a directory without a transcript in it; name one data set, or a folder with "
            f"{' or '.join(SUFFIXES)} files"
        )
    return sorted(names)


def _is_transcript(path: Path, notes: MutableMapping[str, int]) -> bool:
    """Return whether a file counts as a transcript; hidden files, links and other suffixes are counted in ``notes``."""
    if path.name.startswith(".") or path.is_symlink():
        _count_note(notes, "hidden files and links are left out")
        return False
    if path.suffix.lower() not in SUFFIXES:
        _count_note(notes, f"files that do not end in {' or '.join(SUFFIXES)} are left out")
        return False
    return True


def _count_note(notes: MutableMapping[str, int], note: str) -> None:
    notes[note] = notes.get(note, 0) + 1


def _read_file(folder: Path, name: object) -> AgentRun:
    """Read a transcript by its name below a folder. Raises ``UsageError`` if it cannot be read."""
    path = _find_file(folder, name)
    try:
        return read_run(path)
    except UsageError:
        raise
    except Exception as error:
        # One file that somebody else made must not end a run over all files, whatever a reader did not expect in it.
        raise UsageError(
            f"{show(name)} cannot be read as a transcript ({type(error).__name__}); leave it out"
        ) from error


def _find_file(folder: Path, name: object) -> Path:
    """Return the path of a file with this name below a folder, which need not exist.

    Raises ``UsageError`` for a name that leads out of the folder, or through a link.
    """
    if not isinstance(name, str) or not name.strip() or "\x00" in name or "\\" in name:
        raise UsageError(f"{KEY!r} must be the path of a file beside the data set, got {show(name)}")
    relative = PurePosixPath(name)
    if relative.is_absolute() or ".." in relative.parts:
        raise UsageError(f"{KEY!r} names {show(name)}, which is not below the folder of the data set")
    path = folder
    for part in relative.parts:
        path /= part
        if path.is_symlink():
            raise UsageError(f"{KEY!r} names {show(name)}, and {show(part)} is a link; name the file itself")
    return path
