"""The workspace of an agent: copying it, and listing every file in it, before and after the agent.

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
"""The most folders inside each other."""

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
    """Copy a workspace, links as links, without its ``.git`` unless ``with_git`` is set.

    A link into the source becomes a link into the copy. A ``.git`` that is a file is never copied, because it names a
    repository elsewhere, into which the agent would commit. Raises ``UsageError`` for a workspace that cannot be
    copied.
    """
    root = source.resolve()

    def leave_out(folder: str, names: list[str]) -> set[str]:
        folder_path = Path(folder)
        left_out = {name for name in names if not _is_copied(folder_path / name)}
        if not with_git and folder_path == source:
            left_out |= {name for name in names if name == ".git"}
        return left_out

    try:
        shutil.copytree(source, target, symlinks=True, ignore=leave_out)
        for folder, folder_names, file_names in os.walk(target):
            for name in (*folder_names, *file_names):
                link = Path(folder, name)
                if link.is_symlink():
                    _redirect_link(link, root, target)
    except (OSError, shutil.Error) as error:
        reason = getattr(error, "strerror", None) or "something in it cannot be read"
        raise UsageError(f"the workspace {source} cannot be copied: {reason}", argument="workspace") from None


def _is_copied(path: Path) -> bool:
    """Return whether a path is copied: a file, a folder or a link is, but not a ``.git`` that is no folder."""
    mode = path.lstat().st_mode
    if path.name == ".git":
        return stat.S_ISDIR(mode)
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)


def _redirect_link(link: Path, root: Path, target: Path) -> None:
    """Make an absolute link into the source, at ``root``, one to the same path in the copy, at ``target``."""
    leads_to = os.readlink(link)  # noqa: PTH115 - as it is written
    if not Path(leads_to).is_absolute():
        return
    inside = os.path.relpath(os.path.realpath(leads_to), root)
    if Path(inside).parts[:1] != (os.pardir,):
        # Otherwise the agent would change a file of the source by writing through the link.
        link.unlink()
        link.symlink_to(target / inside)


def take_snapshot(folder: Path) -> Snapshot:
    """List everything in a folder, with digests, hidden files and repositories included."""
    builder = _SnapshotBuilder(folder)
    builder.walk(folder, 0)
    return Snapshot(entries=builder.entries, problems=tuple(builder.problems))


class _SnapshotBuilder:
    """Collects the entries of a folder, and the problems with reading them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.entries: dict[str, Entry] = {}
        self.problems: list[str] = []
        self.total_bytes = 0

    def report(self, problem: str) -> None:
        """Add a problem, unless it is there already or there are many."""
        if len(self.problems) < _MOST_PROBLEMS and problem not in self.problems:
            self.problems.append(problem)

    def walk(self, folder: Path, depth: int) -> None:
        """Add everything in a folder, by name; report what is beyond a limit, and what cannot be read."""
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
        """Add one entry of a folder, and everything in it if it is a folder."""
        relative = path.relative_to(self.root).as_posix()
        try:
            relative.encode()
        except UnicodeEncodeError:
            # The name cannot be written as text. With characters replaced, it could be that of another file.
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
        """Read the kind, the permissions and the digest of one entry; for a link, its target is in place of the digest.

        If the files come to more than ``MOST_BYTES``, that is reported, and a file has no digest.
        """
        status = path.lstat()
        mode = stat.S_IMODE(status.st_mode)
        if stat.S_ISLNK(status.st_mode):
            return Entry(kind="link", mode=mode, digest=os.readlink(path))  # noqa: PTH115 - as it is written
        if stat.S_ISDIR(status.st_mode):
            return Entry(kind="folder", mode=mode)
        if not stat.S_ISREG(status.st_mode):
            return Entry(kind="other", mode=mode)
        self.total_bytes += status.st_size
        if self.total_bytes > MOST_BYTES:
            self.report(f"the workspace holds more than {MOST_BYTES:,} bytes")
            return Entry(kind="file", mode=mode, size=status.st_size)
        with open_unfollowed(path) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return Entry(kind="file", mode=mode, digest=digest, size=status.st_size)

    def _name_path(self, path: Path) -> str:
        """Write a path, relative to the root, in quotes for a message."""
        return quote(path.relative_to(self.root).as_posix().encode(errors="replace").decode(), 200)
