"""A workspace before and after an agent: a copy to work in, and a list of every file in it.

Two such lists are compared in ``changes.py`` (``list_changes``). What changed is found by reading every file twice, and
never by asking git: an agent can commit, hide files from git by its settings and attributes, and break its index. No
link is followed. What cannot be read is a problem, because then nobody knows what changed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from adjudge.errors import UsageError
from adjudge.formats.files import open_unfollowed
from adjudge.formats.text import quote

MOST_FILES = 200_000

MOST_BYTES = 4_000_000_000

MOST_DEPTH = 100
"""Folders in each other."""

_MOST_PROBLEMS = 10

EntryKind = Literal["file", "link", "folder", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A file, link or folder as it was seen."""

    kind: EntryKind
    mode: int
    """Its permissions."""
    digest: str = ""
    """SHA-256 of a file; the target of a link."""
    size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything below a folder, by its path with ``/``."""

    entries: Mapping[str, Entry]
    problems: tuple[str, ...] = ()
    """The parts that could not be read, so that the snapshot is not whole."""

    @property
    def digest(self) -> str:
        """SHA-256 of all paths with what is there.

        Of permissions, only whether a file is a program: the others differ from one machine's checkout to another's.
        """
        hashed = hashlib.sha256()
        for path, entry in sorted(self.entries.items()):
            is_program = entry.kind == "file" and bool(entry.mode & 0o100)
            hashed.update(repr((path, entry.kind, is_program, entry.digest)).encode(errors="surrogatepass"))
        return hashed.hexdigest()


def copy_workspace(source: Path, target: Path, *, with_git: bool) -> None:
    """Copy a workspace, links as links, without its own ``.git`` unless that is asked for.

    A link that leads into the source leads into the copy afterwards. A ``.git`` that is a file is never copied: it
    names a repository elsewhere, into which the agent would commit. Raises ``UsageError`` for what cannot be copied.
    """
    root = source.resolve()

    def leave_out(place: str, names: list[str]) -> set[str]:
        here = Path(place)
        odd = {name for name in names if not _is_copied(here / name)}
        if not with_git and here == source:
            odd |= {name for name in names if name == ".git"}
        return odd

    try:
        shutil.copytree(source, target, symlinks=True, ignore=leave_out)
        for place, folders, files in os.walk(target):
            for name in (*folders, *files):
                link = Path(place, name)
                if link.is_symlink():
                    _redirect_link(link, root, target)
    except (OSError, shutil.Error) as error:
        reason = getattr(error, "strerror", None) or "something in it cannot be read"
        raise UsageError(f"the workspace {source} cannot be copied: {reason}", argument="workspace") from None


def _is_copied(path: Path) -> bool:
    mode = path.lstat().st_mode
    if path.name == ".git":
        return stat.S_ISDIR(mode)
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)


def _redirect_link(link: Path, root: Path, target: Path) -> None:
    """Point an absolute link into the source at the same place in the copy."""
    leads_to = os.readlink(link)  # noqa: PTH115 - as it is written
    if not Path(leads_to).is_absolute():
        return
    inside = os.path.relpath(os.path.realpath(leads_to), root)
    if Path(inside).parts[:1] != (os.pardir,):
        # Written through such a link, a file of the source would change.
        link.unlink()
        link.symlink_to(target / inside)


def look_at(folder: Path) -> Snapshot:
    """Look at everything below a folder, hidden files and repositories included."""
    look = _Look(folder)
    look.walk(folder, 0)
    return Snapshot(entries=look.entries, problems=tuple(look.problems))


class _Look:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.entries: dict[str, Entry] = {}
        self.problems: list[str] = []
        self.bytes = 0

    def report(self, problem: str) -> None:
        if len(self.problems) < _MOST_PROBLEMS and problem not in self.problems:
            self.problems.append(problem)

    def walk(self, folder: Path, depth: int) -> None:
        """Add all that is in a folder, in order of the names; report what is beyond a limit, or cannot be read."""
        try:
            with os.scandir(folder) as entries:
                names = sorted(entry.name for entry in entries)
        except OSError as error:
            self.report(f"the folder {self._name_path(folder)} cannot be read: {error.strerror}")
            return
        if depth > MOST_DEPTH:
            self.report(f"the workspace has more than {MOST_DEPTH} folders in each other")
            return
        for name in names:
            if len(self.entries) >= MOST_FILES:
                self.report(f"the workspace has more than {MOST_FILES:,} files")
                return
            self._add_entry(folder / name, depth)

    def _add_entry(self, path: Path, depth: int) -> None:
        """Add one entry of the workspace, and what is in it."""
        relative = path.relative_to(self.root).as_posix()
        try:
            relative.encode()
        except UnicodeEncodeError:
            # Its name could not be written, and shown otherwise it could be that of another file.
            self.report(f"the name of {self._name_path(path)} is no text")
            return
        try:
            entry = self._read_entry(path)
        except OSError as error:
            self.report(f"the file {self._name_path(path)} cannot be read: {error.strerror}")
            return
        self.entries[relative] = entry
        if entry.kind == "folder":
            self.walk(path, depth + 1)

    def _read_entry(self, path: Path) -> Entry:
        """Read the kind, the mode and the digest of one entry; of a link, where it leads, in place of a digest.

        The bytes of a file are counted, and of one beyond ``MOST_BYTES`` there is no digest: that is reported.
        """
        status = path.lstat()
        mode = stat.S_IMODE(status.st_mode)
        if stat.S_ISLNK(status.st_mode):
            return Entry(kind="link", mode=mode, digest=os.readlink(path))  # noqa: PTH115 - as it is written
        if stat.S_ISDIR(status.st_mode):
            return Entry(kind="folder", mode=mode)
        if not stat.S_ISREG(status.st_mode):
            return Entry(kind="other", mode=mode)
        self.bytes += status.st_size
        if self.bytes > MOST_BYTES:
            self.report(f"the workspace holds more than {MOST_BYTES:,} bytes")
            return Entry(kind="file", mode=mode, size=status.st_size)
        with open_unfollowed(path) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return Entry(kind="file", mode=mode, digest=digest, size=status.st_size)

    def _name_path(self, path: Path) -> str:
        return quote(path.relative_to(self.root).as_posix().encode(errors="replace").decode(), 200)
