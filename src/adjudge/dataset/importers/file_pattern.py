"""A search for the files below a folder that match a pattern, in a limited number of steps.

``Path.glob`` looks into a folder once for each way that leads there: with ``*/../*/../x*`` these are multiplied by the
folders at each step, so that a pattern of thirty characters is never done.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from fnmatch import translate
from itertools import islice
from pathlib import Path

from adjudge.errors import UsageError
from adjudge.formats.text import show

MOST_FILES = 1_000
"""Files that one pattern may fit."""

MOST_STEPS = 500_000
"""Entries of folders that are looked at for all patterns of a suite, times the parts of the pattern that each could
be; some seconds. Links that lead back to a folder above would make it no end of them."""

_LONGEST = 4_096
"""Characters of a path that a system opens."""

_WILDCARDS = frozenset("*?[")

Matcher = Callable[[str], object]
"""Returns something true for a name that matches one part of a pattern."""

Matchers = Sequence[Matcher | None]
"""The matcher of each part of a pattern; ``None`` is ``**``, which is any number of folders."""


class FileSearch:
    """The files below one folder, by names and patterns."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._steps_left = MOST_STEPS
        self._known: dict[str, list[Path]] = {}

    def find_files(self, name: str) -> list[Path]:
        """List the files that a pattern fits; a name without ``*``, ``?`` and ``[`` is returned unseen.

        Raises ``UsageError`` for a pattern that fits no file or too many, or takes too many steps.
        """
        pattern = Path(name)
        if pattern.is_relative_to(self._folder):
            pattern = pattern.relative_to(self._folder)
        if _WILDCARDS.isdisjoint(str(pattern)):
            return [self._folder / pattern]
        if name not in self._known:
            self._known[name] = self._find_matching(pattern, name)
        return self._known[name]

    def _find_matching(self, pattern: Path, name: str) -> list[Path]:
        """List the paths that a pattern matches; ``name`` is the pattern as it was written. Raises ``UsageError``."""
        if ".." in pattern.parts:
            raise UsageError(f"the pattern {show(name)} has '..' among its folders; write the path without it")
        if len(name) > _LONGEST:
            raise UsageError(f"the pattern {show(name)} is longer than {_LONGEST:,} characters; name the files")
        paths = [] if pattern.is_absolute() else sorted(islice(self._walk(pattern.parts, name), MOST_FILES + 1))
        if not paths or len(paths) > MOST_FILES:
            problem = f"more than {MOST_FILES:,} files fit" if paths else "no file fits"
            raise UsageError(f"{problem} {show(name)} in {self._folder}; name the files")
        return paths

    def _walk(self, parts: Sequence[str], name: str) -> Iterator[Path]:
        """Yield the entries that the parts of a pattern match, looking into each folder once.

        For each folder it is known at which parts of the pattern its entries may be, so that no folder is visited for
        each way to match it. Links to folders may lead to one again. Raises ``UsageError`` when no steps are left.
        """
        start = next(index for index, part in enumerate(parts) if not _WILDCARDS.isdisjoint(part))
        matchers = [None if part == "**" else re.compile(translate(part)).match for part in parts[start:]]
        folders = [(self._folder.joinpath(*parts[:start]), _skip_folders({0}, matchers))]
        while folders:
            folder, positions = folders.pop()
            for entry in self._list_entries(folder, len(positions), name):
                next_positions = _skip_folders(_match_entry(entry, positions, matchers), matchers)
                if len(matchers) in next_positions:  # all parts are matched
                    yield Path(entry.path)
                next_positions.discard(len(matchers))
                if next_positions and _is_folder(entry):
                    folders.append((Path(entry.path), next_positions))

    def _list_entries(self, folder: Path, cost: int, name: str) -> list[os.DirEntry[str]]:
        """List the entries of a folder, each of which takes ``cost`` steps; none if the folder cannot be read.

        Raises ``UsageError`` when no steps are left.
        """
        entries: list[os.DirEntry[str]] = []
        with suppress(OSError, ValueError), os.scandir(folder) as scanned:
            entries = list(islice(scanned, self._steps_left // cost + 1))
        self._steps_left -= cost * len(entries) + 1  # a folder that is not there takes a step too
        if self._steps_left < 0:
            raise UsageError(
                f"the patterns up to {show(name)} take more than {MOST_STEPS:,} steps through {self._folder}; "
                "name the files"
            )
        return entries


def _match_entry(entry: os.DirEntry[str], positions: Iterable[int], matchers: Matchers) -> set[int]:
    """Match an entry with the parts of a pattern at these positions, and return the positions for what is inside it.

    A ``**`` matches any folder that is no link, and stays at its position.
    """
    next_positions: set[int] = set()
    for position in positions:
        matcher = matchers[position]
        if matcher is None:
            next_positions |= {position} if _is_folder(entry, links=False) else set()
        elif matcher(entry.name):
            next_positions.add(position + 1)
    return next_positions


def _skip_folders(positions: set[int], matchers: Matchers) -> set[int]:
    """Add to positions in a pattern those behind each ``**``, which may match no folder, and return them."""
    for position in sorted(positions):
        behind = position
        while behind < len(matchers) and matchers[behind] is None:
            behind += 1
            positions.add(behind)
    return positions


def _is_folder(entry: os.DirEntry[str], *, links: bool = True) -> bool:
    """Return whether an entry is a folder or, unless ``links`` is false, a link to one."""
    with suppress(OSError):
        return entry.is_dir(follow_symlinks=links)
    return False
