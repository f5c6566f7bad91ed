"""Files below a folder that a pattern fits, looked for in a number of steps that has an end.

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

_SIGNS = frozenset("*?[")

Fits = Callable[[str], object]

Fitting = Sequence[Fits | None]
"""The test of a name for each part of a pattern; ``None`` is ``**``, which is any number of folders."""


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
        if _SIGNS.isdisjoint(str(pattern)):
            return [self._folder / pattern]
        if name not in self._known:
            self._known[name] = self._find_fitting(pattern, name)
        return self._known[name]

    def _find_fitting(self, pattern: Path, name: str) -> list[Path]:
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
        """Yield the entries that a pattern fits, looking into each folder once; links to folders may lead to one again.

        Raises ``UsageError`` when no steps are left.
        """
        start = next(number for number, part in enumerate(parts) if not _SIGNS.isdisjoint(part))
        fitting = [None if part == "**" else re.compile(translate(part)).match for part in parts[start:]]
        waiting = [(self._folder.joinpath(*parts[:start]), _skip_folders({0}, fitting))]
        while waiting:
            folder, places = waiting.pop()
            for entry in self._list_entries(folder, len(places), name):
                following = _skip_folders(_step_into(entry, places, fitting), fitting)
                if len(fitting) in following:
                    yield Path(entry.path)
                following.discard(len(fitting))
                if following and _is_folder(entry):
                    waiting.append((Path(entry.path), following))

    def _list_entries(self, folder: Path, cost: int, name: str) -> list[os.DirEntry[str]]:
        """List the entries of a folder, each of which takes ``cost`` steps; none of one that cannot be looked into."""
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


def _step_into(entry: os.DirEntry[str], places: Iterable[int], fitting: Fitting) -> set[int]:
    """Return the places in a pattern behind an entry, from those before it."""
    following: set[int] = set()
    for place in places:
        fits = fitting[place]
        if fits is None:
            following |= {place} if _is_folder(entry, links=False) else set()
        elif fits(entry.name):
            following.add(place + 1)
    return following


def _skip_folders(places: set[int], fitting: Fitting) -> set[int]:
    """Return the places with those behind each ``**``, which may stand for no folder."""
    for place in sorted(places):
        behind = place
        while behind < len(fitting) and fitting[behind] is None:
            behind += 1
            places.add(behind)
    return places


def _is_folder(entry: os.DirEntry[str], *, links: bool = True) -> bool:
    with suppress(OSError):
        return entry.is_dir(follow_symlinks=links)
    return False
